//! Hardware of a server, for guest runners, and the interface through which machines report to the cloud.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use ipnet::IpNet;
use serde::Serialize;
use serde_json::{Map, Value};

/// Hardware of a machine, in addition to its [`Instance`](crate::data_plane::Instance).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    /// Image of the server; empty for a volume without image.
    pub image: Image,
    /// Name of the flavor.
    pub flavor: String,
    /// Ports, in the order of attachment.
    pub ports: Vec<Port>,
    /// Attached volumes.
    pub volumes: Vec<Volume>,
    /// True if the server was created with a config drive.
    pub config_drive: bool,
    /// SSH key of the server.
    pub key: Option<Key>,
}

/// Image with its properties.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Image {
    /// Glance's id.
    pub id: String,
    /// Name of the image.
    pub name: String,
    /// Free-form properties of the image.
    pub properties: Map<String, Value>,
}

impl Image {
    /// True for a field of Glance's image that users set, as opposed to a field defined by Glance.
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

/// Port of a server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Port {
    /// Neutron's id.
    pub id: String,
    /// MAC address.
    pub mac_address: String,
    /// Id of the network.
    pub network_id: String,
    /// Name of the network.
    pub network_name: String,
    /// MTU of the network.
    pub mtu: u32,
    /// Fixed addresses.
    pub addresses: Vec<Address>,
    /// TCP ports that the security groups allow from outside, for floating IPs.
    #[serde(skip)]
    pub open: Vec<RangeInclusive<u16>>,
}

/// True if a security group rule with this `remote_ip_prefix` applies to every address. An absent prefix is empty.
#[must_use]
pub fn is_everywhere(remote_ip_prefix: &str) -> bool {
    let range = remote_ip_prefix.parse::<IpNet>();
    remote_ip_prefix.is_empty() || range.is_ok_and(|range| range.prefix_len() == 0)
}

/// Fixed address with the DHCP options of its subnet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Address {
    /// Address.
    pub address: IpAddr,
    /// Subnet.
    pub subnet_id: String,
    /// Range of the subnet.
    pub cidr: IpNet,
    /// Router of the subnet.
    pub gateway: Option<IpAddr>,
    /// Name servers of the subnet.
    pub dns_nameservers: Vec<String>,
    /// Host routes of the subnet.
    pub routes: Vec<Route>,
    /// True if DHCP serves the subnet.
    pub dhcp: bool,
}

/// Host route.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Route {
    /// Destination.
    pub destination: String,
    /// Next hop.
    pub nexthop: String,
}

/// Attached volume.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Volume {
    /// Cinder's id.
    pub id: String,
    /// Device name chosen by Nova.
    pub device: String,
    /// Size in GiB.
    pub size_gib: u64,
}

/// Answer of a machine about an offered or withdrawn volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeAnswer {
    /// The machine has the volume as a disk.
    Ready,
    /// The machine no longer has the volume.
    Gone,
    /// The machine cannot have the volume, with the reason.
    Failed(String),
}

/// SSH key.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// Name of the key.
    pub name: String,
    /// Public part.
    pub public: String,
}

/// Health of a load balancer member.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// Load balancer.
    pub load_balancer_id: String,
    /// Address of the member.
    pub address: SocketAddr,
    /// True if the member accepted a connection.
    pub answers: bool,
}

/// Servers of a cloud, for guest runners.
pub trait Servers: Send + Sync + 'static {
    /// Returns the hardware of a server; `None` after its deletion.
    fn machine(&self, server: &str) -> Option<Machine>;
    /// Reports that the machine of this boot has powered itself off. Ignored after a later boot of the server.
    fn ended(&self, server: &str, boot: u64);
    /// Reports that the machine of this boot cannot be started. Ignored after a later boot of the server.
    fn failed(&self, server: &str, boot: u64, fault: &str);
    /// Returns the volumes of a server, and the volumes on offer; `None` after its deletion.
    fn volumes(&self, server: &str) -> Option<Vec<Volume>> {
        self.machine(server).map(|machine| machine.volumes)
    }
    /// Reports that the machine of this boot answers for its volumes: attachments wait for the answers from now on.
    fn answers_for_volumes(&self, _server: &str, _boot: u64) {}
    /// Reports the answer of a machine about a volume.
    fn volume_answered(&self, _server: &str, _volume: &str, _answer: &VolumeAnswer) {}
    /// Reports members of load balancers that began, or ceased, to accept connections.
    fn answering(&self, members: &[Member]);
}
