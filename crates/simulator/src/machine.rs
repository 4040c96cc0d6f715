//! The hardware of a server, for guest runners, and the interface through which machines report to the cloud.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use ipnet::IpNet;
use serde::Serialize;
use serde_json::{Map, Value};

/// The hardware of a machine, in addition to its [`Instance`](crate::world::Instance).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    /// The image of the server; empty for a volume without image.
    pub image: Image,
    /// The name of the flavor.
    pub flavor: String,
    /// The ports, in the order in which they were attached.
    pub ports: Vec<Port>,
    /// The attached volumes.
    pub volumes: Vec<Volume>,
    /// True if the server was created with a config drive.
    pub config_drive: bool,
    /// The SSH key of the server.
    pub key: Option<Key>,
}

/// An image with its properties.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Image {
    /// Glance's id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Free-form properties of the image.
    pub properties: Map<String, Value>,
}

impl Image {
    /// True if a field of Glance's image is a property, which users set, and not one that Glance itself defines.
    #[must_use]
    pub fn is_property(field: &str) -> bool {
        const BASE: [&str; 24] = [
            "id",
            "name",
            "owner",
            "status",
            "visibility",
            "disk_format",
            "container_format",
            "min_disk",
            "min_ram",
            "size",
            "virtual_size",
            "checksum",
            "os_hash_algo",
            "os_hash_value",
            "protected",
            "os_hidden",
            "tags",
            "created_at",
            "updated_at",
            "file",
            "schema",
            "self",
            "locations",
            "direct_url",
        ];
        !BASE.contains(&field)
    }
}

/// A port of a server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Port {
    /// Neutron's id.
    pub id: String,
    /// The MAC address.
    pub mac_address: String,
    /// The id of its network.
    pub network_id: String,
    /// The name of its network.
    pub network_name: String,
    /// The MTU of its network.
    pub mtu: u32,
    /// The fixed addresses.
    pub addresses: Vec<Address>,
    /// The TCP ports that the security groups allow from outside, for floating IPs.
    #[serde(skip)]
    pub open: Vec<RangeInclusive<u16>>,
}

/// True if a rule of a security group with this `remote_ip_prefix` applies to every address; an absent one is empty.
#[must_use]
pub fn is_everywhere(remote_ip_prefix: &str) -> bool {
    let range = remote_ip_prefix.parse::<IpNet>();
    remote_ip_prefix.is_empty() || range.is_ok_and(|range| range.prefix_len() == 0)
}

/// A fixed address with the DHCP options of its subnet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Address {
    /// The address.
    pub address: IpAddr,
    /// The subnet.
    pub subnet_id: String,
    /// The range of the subnet.
    pub cidr: IpNet,
    /// The subnet's router.
    pub gateway: Option<IpAddr>,
    /// The subnet's name servers.
    pub dns_nameservers: Vec<String>,
    /// The subnet's host routes.
    pub routes: Vec<Route>,
    /// True if DHCP serves the subnet.
    pub dhcp: bool,
}

/// A host route.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Route {
    /// The destination.
    pub destination: String,
    /// The next hop.
    pub nexthop: String,
}

/// An attached volume.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Volume {
    /// Cinder's id.
    pub id: String,
    /// The device name that Nova chose.
    pub device: String,
    /// The size in GiB.
    pub size_gib: u64,
}

/// What a machine says about a volume that it was offered, or that was taken away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeAnswer {
    /// The machine has it as a disk.
    Ready,
    /// The machine does not have it any more.
    Gone,
    /// The machine cannot have it, and why.
    Failed(String),
}

/// An SSH key.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// Its name.
    pub name: String,
    /// The public part.
    pub public: String,
}

/// Whether a member of a load balancer's pool accepts connections.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// The load balancer.
    pub load_balancer_id: String,
    /// The address of the member.
    pub address: SocketAddr,
    /// True if a connection to it was accepted.
    pub answers: bool,
}

/// The servers of a cloud, for guest runners.
pub trait Servers: Send + Sync + 'static {
    /// The hardware of a server; `None` once it is deleted.
    fn machine(&self, server: &str) -> Option<Machine>;
    /// Reports that the machine of this boot has powered itself off. Ignored if the server has booted again since.
    fn ended(&self, server: &str, boot: u64);
    /// Reports that the machine of this boot cannot be started. Ignored if the server has booted again since.
    fn failed(&self, server: &str, boot: u64, fault: &str);
    /// The volumes that a server has, and those that it is offered; `None` once it is deleted.
    fn volumes(&self, server: &str) -> Option<Vec<Volume>> {
        self.machine(server).map(|machine| machine.volumes)
    }
    /// Reports that the machine of this boot answers for its volumes: attachments wait for it from now on.
    fn answers_for_volumes(&self, _server: &str, _boot: u64) {}
    /// Reports what a machine did with a volume.
    fn volume_answered(&self, _server: &str, _volume: &str, _answer: &VolumeAnswer) {}
    /// Reports members of load balancers that began, or ceased, to accept connections.
    fn answering(&self, members: &[Member]);
}
