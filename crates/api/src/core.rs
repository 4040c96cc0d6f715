//! Group `cluster.x-k8s.io`: [`Cluster`](v1beta2::Cluster), [`Machine`](v1beta2::Machine),
//! [`MachineSet`](v1beta2::MachineSet), [`MachineDeployment`](v1beta2::MachineDeployment),
//! [`MachineHealthCheck`](v1beta2::MachineHealthCheck), [`MachineDrainRule`](v1beta2::MachineDrainRule) and
//! [`ClusterClass`](v1beta2::ClusterClass).
//!
//! v1beta2 is the stored hub; v1beta1 is also served (reference: the Cluster API contract documents).

pub(crate) mod admission;
pub(crate) mod convert;
pub mod crd;
pub mod pool;
pub mod v1beta2;

/// The API group.
pub const GROUP: &str = "cluster.x-k8s.io";

/// Bounds in a range of numbers of unhealthy machines, such as `[3-5]`; `None` for another text.
pub fn unhealthy_range(text: &str) -> Option<(i32, i32)> {
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    let (least, most) = inner.split_once('-')?;
    let (least, most) = (least.parse().ok()?, most.parse().ok()?);
    (least <= most).then_some((least, most))
}
