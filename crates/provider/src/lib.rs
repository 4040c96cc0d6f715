//! Cluster API infrastructure provider for OpenStack.
//!
//! ```text
//!   cluster      OpenStackCluster: network, router, security groups, load balancer, endpoint
//!   machine      OpenStackMachine: ports, volumes, server, providerID
//!   identity     whose a resource of the cloud is
//!   evidence     which identity an object had that lost its annotation
//!   credentials  from an identityRef to a cloud
//!   index        objects by their cluster and their mark
//!   wake         from a change in the cloud to the objects concerned
//! ```
//!
//! Each reconcile fetches facts from the cloud's inventory, computes what is desired from spec and
//! facts (pure), plans the steps that lead there from what is observed (pure), applies them one by
//! one, and writes status. Deletion is the same plan towards nothing.

pub mod cluster;
mod context;
mod credentials;
mod evidence;
pub mod identity;
mod index;
pub mod machine;
pub mod names;
mod options;
pub mod problem;
pub mod reason;
mod resolve;
mod run;
mod wake;

pub use options::Options;
pub use run::run;
