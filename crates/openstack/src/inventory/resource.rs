//! Common properties of all observed objects.

use serde::{Deserialize, Serialize};

use super::Kind;
use crate::compute::{AvailabilityZone, Flavor, Server, ServerGroup};
use crate::image::Image;
use crate::loadbalancer::{
    LbFlavor, LbZone, Listener, LoadBalancer, Member, Monitor, Pool, Provider, Reference,
};
use crate::network::{
    Extension, FloatingIp, Network, Port, Router, SecurityGroup, SecurityGroupRule, Subnet,
    SubnetPool, Trunk,
};
use crate::volume::{
    Backup, GroupSnapshot, GroupType, Snapshot, Volume, VolumeGroup, VolumeType, VolumeZone,
};

/// Object that can be found by id, name, tag, description and parent.
pub trait Resource: Clone + PartialEq + Send + Sync + Sized + 'static {
    /// Kind of the object.
    const KIND: Kind;
    /// Returns the id, unique within the kind.
    fn id(&self) -> &str;
    /// Returns the name; for a floating IP the address.
    fn name(&self) -> &str;
    /// Returns the tags.
    fn tags(&self) -> &[String] {
        &[]
    }
    /// Returns the description.
    fn description(&self) -> &str {
        ""
    }
    /// Returns the id of the parent object: a port's device, a subnet's network, a floating IP's or trunk's port, a
    /// volume's server, a listener's, pool's or monitor's owner, a member's pool.
    fn parent(&self) -> Option<&str> {
        None
    }
    /// True while the cloud is working on the object.
    fn is_pending(&self) -> bool {
        false
    }
    /// Sorts lists in arbitrary order, so that equal lists compare equal.
    fn sort(&mut self) {}
}

/// Quota of a project for one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// `service/resource`, for example `network/port` or `compute/cores`.
    pub id: String,
    /// Maximum; negative for no limit.
    pub limit: i64,
    /// Number of existing and reserved objects, if the service returns it.
    pub used: Option<i64>,
}

/// A quota of Cinder; the id is the resource, for example `gigabytes`, or `gigabytes_TYPE` for those of a type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QuotaOfVolumes(pub Quota);

impl Quota {
    /// Returns the number of objects that can still be created; `None` for no limit or an unknown use.
    pub fn left(&self) -> Option<i64> {
        (self.limit >= 0).then_some(())?;
        Some((self.limit - self.used?).max(0))
    }
}

macro_rules! resource {
    (
        $type:ty, $kind:ident
        $(, $method:ident = |$item:ident| -> $result:ty $body:block)*
        $(; $list:ident by $key:ident)*
        $(,)?
    ) => {
        impl Resource for $type {
            const KIND: Kind = Kind::$kind;
            fn id(&self) -> &str {
                &self.id
            }
            fn name(&self) -> &str {
                &self.name
            }
            $(fn $method(&self) -> $result {
                let $item = self;
                $body
            })*
            fn sort(&mut self) {
                $(self.$list.sort_by(|a, b| $key(a).cmp($key(b)));)*
            }
        }
    };
}

fn by_id(reference: &Reference) -> &str {
    &reference.id
}

fn by_rule(rule: &SecurityGroupRule) -> &str {
    &rule.id
}

fn by_text(text: &str) -> &str {
    text
}

fn filled(id: &str) -> Option<&str> {
    Some(id).filter(|id| !id.is_empty())
}

fn is_pending(provisioning_status: &str) -> bool {
    provisioning_status.starts_with("PENDING_")
}

resource!(
    Server,
    Servers,
    tags = |item| -> &[String] { &item.tags },
    is_pending = |item| -> bool {
        // Nova records the fault of a server that it cannot build after the state.
        item.task_state.is_some()
            || item.is_unexplained()
            || matches!(
                item.status.as_str(),
                "BUILD" | "REBUILD" | "REBOOT" | "HARD_REBOOT" | "RESIZE" | "MIGRATING"
            )
    },
);
resource!(
    ServerGroup,
    ServerGroups,
    // Nova's server groups have names alone.
    description = |item| -> &str { &item.name },
);
resource!(
    Port,
    Ports,
    tags = |item| -> &[String] { &item.tags },
    description = |item| -> &str { &item.description },
    parent = |item| -> Option<&str> { filled(&item.device_id) },
    is_pending = |item| -> bool { item.status == "BUILD" }; security_groups by by_text
);
resource!(
    Network,
    Networks,
    tags = |item| -> &[String] { &item.tags },
    description = |item| -> &str { &item.description },
    is_pending = |item| -> bool { item.status == "BUILD" }; subnets by by_text
);
resource!(
    Subnet,
    Subnets,
    tags = |item| -> &[String] { &item.tags },
    description = |item| -> &str { &item.description },
    parent = |item| -> Option<&str> { filled(&item.network_id) },
);
resource!(
    SubnetPool,
    SubnetPools,
    tags = |item| -> &[String] { &item.tags },
    description = |item| -> &str { &item.description },
);
resource!(
    Router,
    Routers,
    tags = |item| -> &[String] { &item.tags },
    description = |item| -> &str { &item.description },
    is_pending = |item| -> bool { item.status == "ALLOCATING" },
);
resource!(
    SecurityGroup,
    SecurityGroups,
    tags = |item| -> &[String] { &item.tags },
    description = |item| -> &str { &item.description }; rules by by_rule
);
resource!(
    Trunk,
    Trunks,
    tags = |item| -> &[String] { &item.tags },
    description = |item| -> &str { &item.description },
    parent = |item| -> Option<&str> { filled(&item.port_id) },
    is_pending = |item| -> bool { item.status == "BUILD" },
);
resource!(
    LoadBalancer,
    LoadBalancers,
    tags = |item| -> &[String] { &item.tags },
    description = |item| -> &str { &item.description },
    is_pending = |item| -> bool { item.is_pending() }; listeners by by_id; pools by by_id
);
resource!(
    Listener,
    Listeners,
    tags = |item| -> &[String] { &item.tags },
    description = |item| -> &str { &item.description },
    parent = |item| -> Option<&str> { item.loadbalancers.first().and_then(|lb| filled(&lb.id)) },
    is_pending = |item| -> bool { is_pending(&item.provisioning_status) },
);
resource!(
    Pool,
    Pools,
    tags = |item| -> &[String] { &item.tags },
    description = |item| -> &str { &item.description },
    parent = |item| -> Option<&str> { item.loadbalancers.first().and_then(|lb| filled(&lb.id)) },
    is_pending = |item| -> bool { is_pending(&item.provisioning_status) }; members by by_id; listeners by by_id
);
resource!(
    Member,
    Members,
    tags = |item| -> &[String] { &item.tags },
    parent = |item| -> Option<&str> { filled(&item.pool_id) },
    is_pending = |item| -> bool { is_pending(&item.provisioning_status) },
);
resource!(
    Monitor,
    Monitors,
    parent = |item| -> Option<&str> { item.pools.first().and_then(|pool| filled(&pool.id)) },
    is_pending = |item| -> bool { is_pending(&item.provisioning_status) },
);
resource!(
    Volume,
    Volumes,
    description = |item| -> &str { &item.description },
    parent = |item| -> Option<&str> {
        item.attachments
            .first()
            .and_then(|attachment| filled(&attachment.server_id))
    },
    is_pending = |item| -> bool { is_volume_pending(&item.status) },
);
resource!(
    Snapshot,
    Snapshots,
    description = |item| -> &str { &item.description },
    parent = |item| -> Option<&str> { filled(&item.volume_id) },
    is_pending = |item| -> bool { is_volume_pending(&item.status) },
);
resource!(
    Backup,
    Backups,
    description = |item| -> &str { &item.description },
    parent = |item| -> Option<&str> { filled(&item.volume_id) },
    is_pending = |item| -> bool { is_volume_pending(&item.status) },
);
resource!(
    VolumeGroup,
    VolumeGroups,
    description = |item| -> &str { &item.description },
    is_pending = |item| -> bool { is_volume_pending(&item.status) }; volumes by by_text; volume_types by by_text
);
resource!(
    GroupSnapshot,
    GroupSnapshots,
    description = |item| -> &str { &item.description },
    parent = |item| -> Option<&str> { filled(&item.group_id) },
    is_pending = |item| -> bool { is_volume_pending(&item.status) },
);
resource!(GroupType, GroupTypes);
resource!(VolumeType, VolumeTypes);
resource!(Flavor, Flavors);
resource!(Image, Images, tags = |item| -> &[String] { &item.tags });
resource!(LbFlavor, LbFlavors);

impl Resource for FloatingIp {
    const KIND: Kind = Kind::FloatingIps;
    fn id(&self) -> &str {
        &self.id
    }
    fn name(&self) -> &str {
        &self.floating_ip_address
    }
    fn tags(&self) -> &[String] {
        &self.tags
    }
    fn description(&self) -> &str {
        &self.description
    }
    fn parent(&self) -> Option<&str> {
        self.port_id.as_deref()
    }
}

impl Resource for AvailabilityZone {
    const KIND: Kind = Kind::Zones;
    fn id(&self) -> &str {
        &self.name
    }
    fn name(&self) -> &str {
        &self.name
    }
}

impl Resource for LbZone {
    const KIND: Kind = Kind::LbZones;
    fn id(&self) -> &str {
        &self.name
    }
    fn name(&self) -> &str {
        &self.name
    }
}

impl Resource for VolumeZone {
    const KIND: Kind = Kind::VolumeZones;
    fn id(&self) -> &str {
        &self.0.name
    }
    fn name(&self) -> &str {
        &self.0.name
    }
}

impl Resource for Extension {
    const KIND: Kind = Kind::Extensions;
    fn id(&self) -> &str {
        &self.alias
    }
    fn name(&self) -> &str {
        &self.name
    }
}

impl Resource for Provider {
    const KIND: Kind = Kind::Providers;
    fn id(&self) -> &str {
        &self.name
    }
    fn name(&self) -> &str {
        &self.name
    }
    fn description(&self) -> &str {
        &self.description
    }
}

impl Resource for Quota {
    const KIND: Kind = Kind::Quotas;
    fn id(&self) -> &str {
        &self.id
    }
    fn name(&self) -> &str {
        &self.id
    }
}

impl Resource for QuotaOfVolumes {
    const KIND: Kind = Kind::VolumeQuotas;
    fn id(&self) -> &str {
        &self.0.id
    }
    fn name(&self) -> &str {
        &self.0.id
    }
}

/// True while Cinder is working on a volume, snapshot, backup or group.
fn is_volume_pending(status: &str) -> bool {
    matches!(
        status,
        "creating"
            | "deleting"
            | "attaching"
            | "detaching"
            | "extending"
            | "retyping"
            | "downloading"
            | "uploading"
            | "reserved"
            | "backing-up"
            | "restoring-backup"
            | "restoring"
            | "updating"
            | "unmanaging"
            | "managing"
    )
}
