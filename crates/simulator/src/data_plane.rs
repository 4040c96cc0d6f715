//! State of the cloud that is visible to guests: the only coupling between [`crate::cloud`] and [`crate::guest`].
//!
//! A [`DataPlane`] is a snapshot. The cloud publishes a new one on a watch channel after every visible change; guests
//! compare the snapshot with their state and start or stop accordingly. All lists are sorted by identity, so equal
//! clouds have equal snapshots.

mod reach;

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;

pub use reach::Reach;

/// Snapshot of the state visible to guests, over all projects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataPlane {
    /// Scheduled servers that are not deleted, by id.
    pub instances: Vec<Instance>,
    /// Every associated floating IP, by floating address.
    pub addresses: Vec<Forward>,
    /// Load balancer [`Listener`]s that accept traffic, by address and port.
    pub listeners: Vec<Listener>,
}

/// Virtual machine, as described by its firmware and metadata service.
#[derive(Clone, PartialEq)]
pub struct Instance {
    /// Nova's server id; cloud-init's instance id.
    pub id: String,
    /// Nova's server name.
    pub name: String,
    /// Id of the owning project.
    pub project_id: String,
    /// User data, decoded from base64. The content has secrets: never log it.
    pub user_data: Option<Bytes>,
    /// Fixed addresses of all ports, in the order of the ports.
    pub fixed_ips: Vec<IpAddr>,
    /// Availability zone of the server's host.
    pub availability_zone: String,
    /// Server metadata.
    pub metadata: BTreeMap<String, String>,
    /// Host name that Nova derives from the server name.
    pub hostname: String,
    /// True if the machine is powered on: only while the server is ACTIVE (or rebooting out of it).
    pub running: bool,
    /// Number of reboots and rebuilds. A guest restarts with each change.
    pub boot: u64,
    /// Number of the root disk, which grows with each rebuild. A guest begins anew with each change.
    pub disk: u64,
    /// Virtual CPUs of the flavor.
    pub vcpus: u32,
    /// Memory of the flavor, in MiB.
    pub memory_mib: u64,
    /// Root disk of the flavor, in GiB.
    pub disk_gib: u64,
    /// Name of the server's image; empty for a boot from a volume without one.
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
            .field("disk", &self.disk)
            .finish_non_exhaustive()
    }
}

/// Property of a server with the name of a [`GuestFault`].
pub const GUEST_FAULT: &str = "simulator:guest";

/// Fault of a guest on a healthy server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestFault {
    /// `never-joins`: kubeadm fails at the first boot.
    NeverJoins,
    /// `joins-late=30`: the boot begins this many seconds later.
    JoinsLate(Duration),
    /// `kubelet-dies`: the kubelet stops to report, while the server stays ACTIVE and the containers run.
    KubeletDies,
    /// `disk-gone`: each start of the server begins with the disk of the image.
    DiskGone,
}

impl GuestFault {
    /// Returns the fault of an instance, if there is one.
    pub fn from_instance(instance: &Instance) -> Option<Self> {
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

/// Floating address and its fixed address, on the port of a server or of a load balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// Address on the external network.
    pub floating: IpAddr,
    /// Fixed address.
    pub fixed: IpAddr,
    /// Id of the port with the fixed address. Fixed addresses are not unique.
    pub port_id: String,
    /// Id of the server with the port.
    pub server: Option<String>,
}

/// Load balancer listener that accepts traffic: both load balancer and listener are ACTIVE and enabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Octavia's listener id.
    pub id: String,
    /// Id of the load balancer.
    pub load_balancer_id: String,
    /// Project that owns the load balancer.
    pub project_id: String,
    /// Fixed address of the load balancer.
    pub vip: IpAddr,
    /// Id of the port with the virtual address.
    pub vip_port_id: String,
    /// Id of the network of the port.
    pub vip_network_id: String,
    /// Port number of the listener.
    pub port: u16,
    /// Octavia's protocol name, such as `TCP`.
    pub protocol: String,
    /// Enabled members of the default pool, in the order of their ids.
    pub members: Vec<Member>,
    /// Allowed source ranges; empty allows all.
    pub allowed_cidrs: Vec<String>,
}

/// Member of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Address and port of the member.
    pub at: SocketAddr,
    /// Id of the server that the load balancer reaches at this address: the one in the subnet of the member (or of the
    /// load balancer, for a member without one), or in a subnet connected by a router. `None` without such a server:
    /// nothing answers.
    pub server: Option<String>,
}
