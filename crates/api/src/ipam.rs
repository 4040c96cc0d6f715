//! Group `ipam.cluster.x-k8s.io`: [`IPAddressClaim`](v1beta2::IPAddressClaim) and [`IPAddress`](v1beta2::IPAddress),
//! for requests of addresses between providers.
//!
//! v1beta2 is the stored hub; v1beta1 is also served. No controller here allocates addresses.

pub(crate) mod admission;
pub(crate) mod convert;
pub mod crd;
pub mod v1beta2;

/// The API group.
pub const GROUP: &str = "ipam.cluster.x-k8s.io";
