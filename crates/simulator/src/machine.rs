//! A server's hardware, as a guest runner gets to know it, and the way back from the machines to the cloud.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use ipnet::IpNet;
use serde::Serialize;
use serde_json::{Map, Value};

/// What a machine has besides what an [`Instance`](crate::world::Instance) says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    /// The image that the server booted from; empty names for a volume without one.
    pub image: Image,
    /// The name of the flavor.
    pub flavor: String,
    /// The ports, in the order in which they were attached.
    pub ports: Vec<Port>,
    /// The volumes that are attached.
    pub volumes: Vec<Volume>,
    /// Whether the server was created with a config drive.
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
    /// Properties that whoever uploaded it chose.
    pub properties: Map<String, Value>,
}

/// A port of a server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Port {
    /// Neutron's id.
    pub id: String,
    /// The hardware address.
    pub mac_address: String,
    /// The network that it is a port of.
    pub network_id: String,
    /// That network's name.
    pub network_name: String,
    /// That network's MTU.
    pub mtu: u32,
    /// The fixed addresses.
    pub addresses: Vec<Address>,
    /// The TCP ports that the security groups let in from outside, to where a floating IP leads.
    #[serde(skip)]
    pub open: Vec<RangeInclusive<u16>>,
}

/// A fixed address with what DHCP says about its subnet.
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
    /// Whether DHCP serves the subnet.
    pub dhcp: bool,
}

/// A host route.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Route {
    /// Where to.
    pub destination: String,
    /// By way of.
    pub nexthop: String,
}

/// A volume that is attached.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Volume {
    /// Cinder's id.
    pub id: String,
    /// Nova's name of the device.
    pub device: String,
    /// The size in GiB.
    pub size_gib: u64,
}

/// An SSH key.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// Its name.
    pub name: String,
    /// The public part.
    pub public: String,
}

/// Whether a member of a load balancer's pool answers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// The load balancer.
    pub load_balancer_id: String,
    /// The address of the member.
    pub address: SocketAddr,
    /// Whether a connection to it was accepted.
    pub answers: bool,
}

/// The servers of a cloud, as those who run the machines see them.
pub trait Servers: Send + Sync + 'static {
    /// The hardware of a server; None once it is deleted.
    fn machine(&self, server: &str) -> Option<Machine>;
    /// The machine has switched itself off.
    fn ended(&self, server: &str);
    /// The machine cannot be started.
    fn failed(&self, server: &str, fault: &str);
    /// Members of load balancers began, or ceased, to answer.
    fn answering(&self, members: &[Member]);
}
