//! Kinds of objects, with all declarations for each kind.

use std::sync::Arc;

use tokio::time::Instant;

use super::cell::Cell;
use super::pace::Pace;
use super::resource::{Quota, QuotaOfVolumes};
use super::table::Table;
use super::{Inner, Stored};
use crate::compute::{AvailabilityZone, Flavor, Server, ServerGroup};
use crate::error::Result;
use crate::image::Image;
use crate::loadbalancer::{
    LbFlavor, LbZone, Listener, LoadBalancer, Member, Monitor, Pool, Provider,
};
use crate::network::{
    Extension, FloatingIp, Network, Port, Router, SecurityGroup, Subnet, SubnetPool, Trunk,
};
use crate::volume::{
    Backup, GroupSnapshot, GroupType, Snapshot, Volume, VolumeGroup, VolumeType, VolumeZone,
};
use futures::FutureExt as _;
use futures::future::BoxFuture;

/// How often objects of a kind change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tempo {
    /// Objects change on their own: servers fail, members go offline.
    Lively,
    /// Objects change when a user changes them.
    Calm,
    /// Offers of the cloud. Listed on request, never in the background.
    Slow,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $field:ident $type:ty, $tempo:ident;)*) => {
        /// Kind of objects of a project.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// Returns the name, for example `floating_ips`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => stringify!($field),)*
                }
            }

            pub(super) const fn tempo(self) -> Tempo {
                match self {
                    $(Self::$kind => Tempo::$tempo,)*
                }
            }
        }

        /// Known objects of a project at one moment.
        #[derive(Clone, Debug, Default)]
        pub struct View {
            $($(#[$doc])* pub $field: Arc<Table<$type>>,)*
        }

        #[derive(Default)]
        #[doc(hidden)]
        pub struct Cells {
            $($field: Cell<$type>,)*
        }

        $(impl Stored for $type {
            fn cell(cells: &Cells) -> &Cell<Self> {
                &cells.$field
            }
        })*

        impl Inner {
            /// Lists a kind unless listed since. Boxed: the future of each kind is large, and one of all kinds as large
            /// as the largest.
            pub(super) fn refresh(
                &self,
                kind: Kind,
                since: Option<Instant>,
            ) -> BoxFuture<'_, Result<()>> {
                match kind {
                    $(Kind::$kind => self.refresh_as::<$type>(since).boxed(),)*
                }
            }

            pub(super) fn pace(&self, kind: Kind) -> &Pace {
                match kind {
                    $(Kind::$kind => &self.cells.$field.pace,)*
                }
            }

            pub(super) fn has_pending(&self, kind: Kind) -> bool {
                match kind {
                    $(Kind::$kind => self.cells.$field.has_pending(),)*
                }
            }

            pub(super) fn snapshot(&self) -> View {
                View { $($field: self.cells.$field.snapshot(),)* }
            }
        }

        #[cfg(test)]
        pub(super) fn kinds_agree() -> bool {
            true $(&& matches!(<$type as super::Resource>::KIND, Kind::$kind))*
        }
    };
}

kinds! {
    /// Servers.
    Servers servers Server, Lively;
    /// Server groups.
    ServerGroups server_groups ServerGroup, Slow;
    /// Ports.
    Ports ports Port, Lively;
    /// Networks: the project's own, shared and external ones.
    Networks networks Network, Calm;
    /// Subnets of the visible networks.
    Subnets subnets Subnet, Calm;
    /// Subnet pools: the project's own, and shared ones.
    SubnetPools subnet_pools SubnetPool, Slow;
    /// Routers.
    Routers routers Router, Calm;
    /// Security groups with their rules.
    SecurityGroups security_groups SecurityGroup, Calm;
    /// Floating IPs.
    FloatingIps floating_ips FloatingIp, Lively;
    /// Trunks.
    Trunks trunks Trunk, Calm;
    /// Load balancers.
    LoadBalancers load_balancers LoadBalancer, Lively;
    /// Listeners of load balancers.
    Listeners listeners Listener, Calm;
    /// Pools of load balancers.
    Pools pools Pool, Calm;
    /// Members of pools.
    Members members Member, Calm;
    /// Health monitors of pools.
    Monitors monitors Monitor, Calm;
    /// Volumes.
    Volumes volumes Volume, Lively;
    /// Snapshots of volumes.
    Snapshots snapshots Snapshot, Lively;
    /// Backups of volumes; none where the cloud has no such service, or the credential may not use the service.
    Backups backups Backup, Lively;
    /// Groups of volumes.
    VolumeGroups volume_groups VolumeGroup, Lively;
    /// Snapshots of groups of volumes.
    GroupSnapshots group_snapshots GroupSnapshot, Lively;
    /// Types of groups of volumes.
    GroupTypes group_types GroupType, Slow;
    /// Types of volumes.
    VolumeTypes volume_types VolumeType, Slow;
    /// Availability zones of volumes.
    VolumeZones volume_zones VolumeZone, Slow;
    /// Flavors of servers.
    Flavors flavors Flavor, Slow;
    /// Images.
    Images images Image, Slow;
    /// Availability zones of servers.
    Zones zones AvailabilityZone, Slow;
    /// Neutron's extensions; the id is the alias.
    Extensions extensions Extension, Slow;
    /// Drivers of load balancers; the id is the name.
    Providers providers Provider, Slow;
    /// Flavors of load balancers.
    LbFlavors lb_flavors LbFlavor, Slow;
    /// Availability zones of load balancers; none where Octavia is older than these. The id is the name.
    LbZones lb_zones LbZone, Slow;
    /// Quotas; the id is `service/resource`, for example `network/port`.
    Quotas quotas Quota, Slow;
    /// Quotas of volumes, of which no other service is asked; the id is the resource, for example `gigabytes`.
    VolumeQuotas volume_quotas QuotaOfVolumes, Slow;
}

impl Kind {
    /// True if objects of this kind are offered by the cloud and change rarely.
    pub const fn is_slow(self) -> bool {
        matches!(self.tempo(), Tempo::Slow)
    }
}

impl View {
    /// Returns the external networks.
    pub fn external_networks(&self) -> impl Iterator<Item = &Arc<Network>> {
        self.networks.iter().filter(|network| network.external)
    }

    /// True if Neutron has an extension.
    pub fn has_extension(&self, alias: &str) -> bool {
        self.extensions.get(alias).is_some()
    }
}
