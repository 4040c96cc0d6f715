//! Group `cluster.x-k8s.io`: Cluster, Machine, MachineSet, MachineDeployment, MachineHealthCheck, MachineDrainRule
//! and ClusterClass.
//!
//! v1beta2 is the stored hub; v1beta1 is served, too (reference: the Cluster API contract documents).

pub(crate) mod admission;
pub(crate) mod convert;
pub mod crd;
pub mod pool;
pub mod v1beta2;

/// The API group.
pub const GROUP: &str = "cluster.x-k8s.io";

/// The bounds of a range of numbers of unhealthy machines, such as `[3-5]`; `None` if it is not one.
pub fn unhealthy_range(text: &str) -> Option<(i32, i32)> {
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    let (least, most) = inner.split_once('-')?;
    let (least, most) = (least.parse().ok()?, most.parse().ok()?);
    (least <= most).then_some((least, most))
}
