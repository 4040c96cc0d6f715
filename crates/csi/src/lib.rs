//! Controller half of the [Cinder CSI driver]: drop-in for the CSI driver of cloud-provider-openstack, with the same
//! names, parameters and metadata.
//!
//! ```text
//!   driver       RPCs: each parses its request, and decides by a plan
//!   round        observe, plan, send at most one write, wait for the cloud, answer
//!   plan         next step of one RPC, by the request and the observed cloud (pure)
//!   busy         one call at a time about one volume
//!   deadline     latest moment for the answer of a call
//!   request      validated requests, as typed values
//!   attributes   mutable parameters, as in a VolumeAttributesClass
//!   parameters   parameters of classes
//!   capacity     rest of the quotas
//!   hints        scheduler hints from the annotations of claims
//!   health       findings about volumes
//!   answers      messages of CSI from observed objects
//!   mark         marks of our objects: name and metadata
//!   owner        owner of an object, by the uid of the cluster
//!   size         GiB and bytes
//!   time         times as Cinder writes them
//!   zone         zones of Nova, zones of Cinder, labels
//!   listing      pages of volumes and snapshots
//!   refusal      errors of the cloud as codes of CSI
//!   metrics      requests under the names of the Go driver's metrics
//! ```
//!
//! The only state is in the cloud: the next call of an unfinished request goes on from there. A final code, after which
//! a sidecar forgets its request, is answered only if a list that began afterwards shows no work in progress
//! ([why](../../docs/adr/0068-final-codes.md)).
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

/// Intervals of lists. A list is needed while a sidecar waits, often only while the cloud works.
pub const INTERVALS: Intervals = Intervals {
    pending_least: Duration::from_millis(50),
    pending_first: Duration::from_millis(150),
    // Each list has all volumes, and each attachment waits for one.
    share: 2,
    pending_most: Duration::from_secs(5),
    idle: Duration::from_secs(300),
    rest: Duration::from_secs(600),
    hints: Duration::from_secs(1),
    slow: Duration::from_secs(600),
    forget: Duration::from_secs(120),
};

/// Maximum number of concurrent requests to a cloud: the provisioner alone makes a hundred calls at once.
pub const MOST_AT_ONCE: usize = 64;

/// Options of the controller half.
#[derive(Clone, Debug)]
pub struct Options {
    /// `--cluster`: name of the Kubernetes cluster, written to the metadata of volumes.
    pub cluster: String,
    /// Uid of the namespace kube-system, added to the metadata of new objects once known.
    pub cluster_uid: ClusterUid,
    /// `--with-topology`: true if volumes have zones.
    pub with_topology: bool,
    /// `ignore-volume-az`: volumes are created in Cinder's default zone, and can be used in each zone of Nova.
    pub ignore_volume_az: bool,
    /// `zone-map`: zones of Nova whose volumes are in a zone of Cinder with another name.
    pub zones: ZoneMap,
    /// `--pvc-annotations`: [`Claims`], whose annotations are scheduler hints.
    pub claims: Option<Arc<dyn Claims>>,
    /// `--alpha`: serves single snapshots and the health of volumes, the alpha part of the specification.
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
