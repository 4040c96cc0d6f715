//! Group `ipam.cluster.x-k8s.io`: IPAddressClaim and IPAddress, by which providers ask each other for addresses.
//!
//! v1beta2 is the stored hub; v1beta1 is served, too. No controller here allocates addresses.

pub(crate) mod admission;
pub(crate) mod convert;
pub mod crd;
pub mod v1beta2;

/// The API group.
pub const GROUP: &str = "ipam.cluster.x-k8s.io";
