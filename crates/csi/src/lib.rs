//! The controller half of the [Cinder CSI driver]: what the CSI driver of Kubernetes' cloud-provider-openstack does, with
//! the same names, parameters and metadata.
//!
//! ```text
//!   driver       the RPCs: each reads its request, and decides by a plan
//!   round        observe, plan, send at most one write, wait for the cloud, answer
//!   plan         what one RPC does next, by the request and the observed cloud (pure)
//!   busy         one call at a time about one volume
//!   deadline     when a call answers at the latest
//!   request      requests checked, as typed values
//!   attributes   mutable parameters, those of a VolumeAttributesClass
//!   parameters   what classes can say
//!   capacity     what quotas leave
//!   hints        scheduler hints from the annotations of claims
//!   health       what is wrong with volumes
//!   answers      what is observed, as messages of CSI
//!   mark         what is ours: name and metadata
//!   owner        whose something is, by the uid of the cluster
//!   size         GiB and bytes
//!   time         times as Cinder writes them
//!   zone         zones of Nova, zones of Cinder, labels
//!   listing      pages of volumes and snapshots
//!   refusal      errors of the cloud as codes of CSI
//!   metrics      requests under the names of the Go driver's metrics
//! ```
//!
//! Nothing is remembered but in the cloud: the next call of a request that was not finished goes on from what is there. A
//! code after which a sidecar forgets its request is answered only when a list that began afterwards shows that nothing
//! is in progress ([why](../../docs/adr/0068-final-codes.md)).
//!
//! [Cinder CSI driver]: https://github.com/kubernetes/cloud-provider-openstack/blob/master/docs/cinder-csi-plugin/using-cinder-csi-plugin.md

mod answers;
mod attributes;
mod busy;
mod capacity;
mod deadline;
mod driver;
mod health;
mod hints;
mod listing;
mod mark;
mod metrics;
pub mod owner;
mod parameters;
mod plan;
mod refusal;
mod request;
mod round;
mod size;
mod time;
pub mod zone;

use std::sync::Arc;
use std::time::Duration;

use openstack::inventory::Intervals;

pub use driver::{Driver, NamedCloud};
pub use hints::Claims;
pub use metrics::GoMetrics;
pub use owner::ClusterUid;
pub use parameters::{
    refused_group_type, refused_of_attributes_class, refused_of_group_snapshot_class,
    refused_of_snapshot_class, refused_of_storage_class,
};
pub use zone::ZoneMap;

/// The intervals of lists: a list is needed when a sidecar asks for something, and often only while the cloud works.
pub const INTERVALS: Intervals = Intervals {
    pending_least: Duration::from_millis(50),
    pending_first: Duration::from_millis(150),
    // Each list is that of all volumes, and each attachment waits for one.
    share: 2,
    pending_most: Duration::from_secs(5),
    idle: Duration::from_secs(300),
    rest: Duration::from_secs(600),
    hints: Duration::from_secs(1),
    slow: Duration::from_secs(600),
    forget: Duration::from_secs(120),
};

/// The maximum number of concurrent requests to a cloud: the provisioner alone makes a hundred calls at once.
pub const MOST_AT_ONCE: usize = 64;

/// The options of the controller half.
#[derive(Clone, Debug)]
pub struct Options {
    /// `--cluster`: the name of the Kubernetes cluster, which is a volume's metadata.
    pub cluster: String,
    /// The uid of the namespace kube-system, which becomes metadata of what is created once it is known.
    pub cluster_uid: ClusterUid,
    /// `--with-topology`: whether volumes have zones.
    pub with_topology: bool,
    /// `ignore-volume-az`: volumes are made in Cinder's default zone, and can be used in each of Nova's.
    pub ignore_volume_az: bool,
    /// `zone-map`: Nova's zones whose volumes are in a zone of Cinder of another name.
    pub zones: ZoneMap,
    /// `--pvc-annotations`: the claims whose annotations are scheduler hints.
    pub claims: Option<Arc<dyn Claims>>,
    /// `--alpha`: single snapshots and the health of volumes are served, as the specification has them for trial.
    pub alpha: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cluster: String::new(),
            cluster_uid: ClusterUid::default(),
            with_topology: true,
            ignore_volume_az: false,
            zones: ZoneMap::default(),
            claims: None,
            alpha: false,
        }
    }
}
