//! What the inside of the cloud looks like to its guests: the only coupling between [`crate::cloud`] and
//! [`crate::guest`].
//!
//! A [`World`] is a snapshot. The cloud publishes a new one on a watch channel after every change that a
//! guest could notice; a guest compares it with what it is running and starts or stops accordingly.
//! Everything is sorted by identity, so two equal clouds give equal snapshots.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;

/// One snapshot of everything guests may know of the cloud, over all projects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct World {
    /// Every server that exists and has been scheduled, by id. A deleted server is absent.
    pub instances: Vec<Instance>,
    /// Every associated floating IP, by floating address.
    pub addresses: Vec<Forward>,
    /// Every load balancer listener that takes traffic, by address and port.
    pub listeners: Vec<Listener>,
}

/// One virtual machine, as its own firmware and metadata service would describe it.
#[derive(Clone, PartialEq)]
pub struct Instance {
    /// Nova's server id; also what cloud-init sees as the instance id.
    pub id: String,
    /// Nova's server name.
    pub name: String,
    /// The project that owns the server.
    pub project_id: String,
    /// User data as the guest sees it, base64 already removed. It carries secrets: never log it.
    pub user_data: Option<Bytes>,
    /// The fixed addresses of all ports, in the order of the ports.
    pub fixed_ips: Vec<IpAddr>,
    /// The availability zone that the server was scheduled to.
    pub availability_zone: String,
    /// Server metadata.
    pub metadata: BTreeMap<String, String>,
    /// The host name Nova derives from the server name.
    pub hostname: String,
    /// Whether the machine is powered on: true only while the server is ACTIVE (or rebooting out of it).
    pub running: bool,
    /// How often the server was rebooted or rebuilt. A guest that sees this grow starts again.
    pub boot: u64,
    /// Virtual CPUs of the flavor.
    pub vcpus: u32,
    /// Memory of the flavor, in MiB.
    pub memory_mib: u64,
    /// Root disk of the flavor, in GiB.
    pub disk_gib: u64,
    /// The name of the image the server booted from; empty when it booted from a volume without one.
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

/// A floating address and the fixed address it stands for: a server's port or a load balancer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forward {
    /// The address outside, from the external network.
    pub floating: IpAddr,
    /// The address inside.
    pub fixed: IpAddr,
}

/// A load balancer listener that takes traffic: its load balancer and itself are ACTIVE and enabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Octavia's listener id.
    pub id: String,
    /// The load balancer the listener belongs to.
    pub load_balancer_id: String,
    /// The project that owns the load balancer.
    pub project_id: String,
    /// The address it listens on, inside.
    pub vip: IpAddr,
    /// The port it listens on.
    pub port: u16,
    /// Octavia's protocol name, such as `TCP`.
    pub protocol: String,
    /// The enabled members of the default pool, in the order of their ids.
    pub members: Vec<SocketAddr>,
    /// Who may connect; empty means everyone.
    pub allowed_cidrs: Vec<String>,
}
