//! The state of the cloud that is visible to guests: the only coupling between [`crate::cloud`] and [`crate::guest`].
//!
//! A [`World`] is a snapshot. The cloud publishes a new one on a watch channel after every change that is visible to
//! guests, which compare it with their state and start or stop accordingly. All lists are sorted by identity, so equal
//! clouds have equal snapshots.

mod reach;

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;

pub use reach::Reach;

/// A snapshot of the state that is visible to guests, over all projects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct World {
    /// Every server that has been scheduled and not deleted, by id.
    pub instances: Vec<Instance>,
    /// Every associated floating IP, by floating address.
    pub addresses: Vec<Forward>,
    /// Every load balancer listener that accepts traffic, by address and port.
    pub listeners: Vec<Listener>,
}

/// A virtual machine, as its firmware and metadata service describe it.
#[derive(Clone, PartialEq)]
pub struct Instance {
    /// Nova's server id; cloud-init's instance id.
    pub id: String,
    /// Nova's server name.
    pub name: String,
    /// The project that owns the server.
    pub project_id: String,
    /// User data, base64 removed. It contains secrets: never log it.
    pub user_data: Option<Bytes>,
    /// The fixed addresses of all ports, in the order of the ports.
    pub fixed_ips: Vec<IpAddr>,
    /// The availability zone that the server was scheduled to.
    pub availability_zone: String,
    /// Server metadata.
    pub metadata: BTreeMap<String, String>,
    /// The host name that Nova derives from the server name.
    pub hostname: String,
    /// True if the machine is powered on: true only while the server is ACTIVE (or rebooting out of it).
    pub running: bool,
    /// The number of reboots and rebuilds. A guest restarts when this changes.
    pub boot: u64,
    /// Virtual CPUs of the flavor.
    pub vcpus: u32,
    /// Memory of the flavor, in MiB.
    pub memory_mib: u64,
    /// Root disk of the flavor, in GiB.
    pub disk_gib: u64,
    /// The name of the server's image; empty when it booted from a volume without one.
    pub image: String,
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("user_data_bytes", &self.user_data.as_ref().map(Bytes::len))
            .field("fixed_ips", &self.fixed_ips)
            .field("running", &self.running)
            .field("boot", &self.boot)
            .finish_non_exhaustive()
    }
}

/// The property of a server that names a [`GuestFault`].
pub const GUEST_FAULT: &str = "simulator:guest";

/// What goes wrong with a guest although its server is in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestFault {
    /// `never-joins`: kubeadm fails at its first boot.
    NeverJoins,
    /// `joins-late=30`: it boots this many seconds later.
    JoinsLate(Duration),
    /// `kubelet-dies`: its kubelet reports no longer, while the server stays ACTIVE and its containers run.
    KubeletDies,
    /// `disk-gone`: with each start of the server its disk is that of the image again.
    DiskGone,
}

impl GuestFault {
    /// The fault of an instance, if there is one.
    pub fn of(instance: &Instance) -> Option<Self> {
        instance.metadata.get(GUEST_FAULT)?.parse().ok()
    }
}

/// A text is not a [`GuestFault`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a fault of a guest: there are never-joins, joins-late=SECONDS, kubelet-dies and disk-gone"
)]
pub struct UnknownGuestFault(String);

impl FromStr for GuestFault {
    type Err = UnknownGuestFault;

    fn from_str(text: &str) -> Result<Self, UnknownGuestFault> {
        match text.split_once('=') {
            None => match text {
                "never-joins" => Some(Self::NeverJoins),
                "kubelet-dies" => Some(Self::KubeletDies),
                "disk-gone" => Some(Self::DiskGone),
                _ => None,
            },
            Some(("joins-late", seconds)) => {
                let seconds = seconds.parse::<u32>().ok();
                seconds.map(|it| Self::JoinsLate(Duration::from_secs(it.into())))
            }
            Some(_) => None,
        }
        .ok_or_else(|| UnknownGuestFault(text.to_owned()))
    }
}

/// A floating address and its fixed address: that of a server's port or of a load balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// The address on the external network.
    pub floating: IpAddr,
    /// The fixed address.
    pub fixed: IpAddr,
    /// The id of the port that has it. Fixed addresses are not unique.
    pub port_id: String,
    /// The id of the server whose port it is.
    pub server: Option<String>,
}

/// A load balancer listener that accepts traffic: its load balancer and itself are ACTIVE and enabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Octavia's listener id.
    pub id: String,
    /// The id of its load balancer.
    pub load_balancer_id: String,
    /// The project that owns the load balancer.
    pub project_id: String,
    /// The fixed address of the load balancer.
    pub vip: IpAddr,
    /// The port that has it.
    pub vip_port_id: String,
    /// The network of that port.
    pub vip_network_id: String,
    /// The port that it listens on.
    pub port: u16,
    /// Octavia's protocol name, such as `TCP`.
    pub protocol: String,
    /// The enabled members of the default pool, in the order of their ids.
    pub members: Vec<Member>,
    /// The allowed source ranges; empty allows all.
    pub allowed_cidrs: Vec<String>,
}

/// A member of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its address and port.
    pub at: SocketAddr,
    /// The id of the server that the load balancer reaches at this address: the one with it in the subnet of the member
    /// (if the member has none, in that of the load balancer), or in a subnet that a router connects with it. `None` if
    /// there is none, so that nothing answers.
    pub server: Option<String>,
}
