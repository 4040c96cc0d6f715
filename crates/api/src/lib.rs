//! Kubernetes types of the suite.
//!
//! CRD types in every version, conversion, defaulting and validation, conditions, labels and annotations. The crate is
//! free of I/O: all functions depend on their arguments only. No other crate re-exports `kube` and `k8s-openapi`.
//!
//! ```text
//!   core          cluster.x-k8s.io                  Cluster, Machine, MachineSet, MachineDeployment, MachineHealthCheck,
//!                                                   MachineDrainRule, ClusterClass
//!   addons        addons.cluster.x-k8s.io           ClusterResourceSet, ClusterResourceSetBinding
//!   ipam          ipam.cluster.x-k8s.io             IPAddressClaim, IPAddress
//!   bootstrap     bootstrap.cluster.x-k8s.io        KubeadmConfig, KubeadmConfigTemplate
//!   controlplane  controlplane.cluster.x-k8s.io     KubeadmControlPlane(Template)
//!   infra         infrastructure.cluster.x-k8s.io   OpenStackCluster, OpenStackMachine, templates
//!      each: v1beta2 (stored hub), v1beta1 (served), conversion, admission
//!   openstack     ferrostack.dev                    OpenStack, OpenStackOperation, in v1alpha1 alone
//! ```
//!
//! - [`selector`], [`version`]: label selectors and Kubernetes versions, as in apimachinery and semver
//! - [`decode`]: decoder of objects from JSON, with the path of the field in errors
//! - [`printable`]: text from outside, made safe for conditions, events and terminals
//! - [`providers`]: Cluster API providers of these kinds
//! - [`in_place`]: strategies of updates in place, and the fields that these change
//! - [`crds`]: all CustomResourceDefinitions, generated from the types by [`generate`]
//! - `definition`: parts of CustomResourceDefinitions, and edits of their schemas
//! - `conversion`: building blocks of conversions: mappings, durations, the stash
//! - `change`: write request for validation, and errors of fields
//! - [`convert`](mod@convert), [`admission`]: dispatch by group and kind

// The columns of a kind repeat parts of kube's printcolumn attribute.
#![allow(clippy::duplicated_attributes)]

pub mod addons;
pub mod admission;
pub mod bootstrap;
mod change;
pub mod conditions;
pub mod controlplane;
mod conversion;
pub mod convert;
pub mod core;
pub mod crds;
pub mod decode;
mod definition;
pub mod deletion;
pub mod generate;
pub mod in_place;
pub mod infra;
pub mod inventory;
pub mod ipam;
pub mod names;
pub mod openstack;
pub mod printable;
pub mod providers;
pub mod selector;
mod shape;
pub mod version;

pub use k8s_openapi;
pub use kube;
