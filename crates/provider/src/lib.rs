//! Cluster API infrastructure provider for OpenStack.
//!
//! ```text
//!   cluster      OpenStackCluster: network, router, security groups, load balancer, endpoint
//!                (its load balancer by the planner of `load_balancing`)
//!   machine      OpenStackMachine: ports, volumes, server, providerID
//!   pool         OpenStackFloatingIPPool: floating IPs that answer IPAddressClaims
//!   server       OpenStackServer: a server of its own, by the plan of machines
//!   context      shared parts of reconciles; kept: identity, finalizer, conditions, the end of a deletion
//!   alone        pools and servers: an identity of their own, without that of a cluster
//!   identity     the owner of a resource in the cloud
//!   claims       holders of identities: a shared identity does not act
//!   evidence     the identity of an object that lost its annotation
//!   application_credentials  credentials for the programs of a cluster, on request
//!   credentials  an identityRef resolved to a cloud
//!   resolve      the references of a spec resolved to resources of the cloud
//!   preview      writes of the plans, for people
//!   recheck      second look before a resource is reported as missing
//!   index        objects by cluster and by mark
//!   wake         changes in the cloud mapped to objects
//!   placement    server groups of the roles of a cluster
//!   failures     failed servers for want of room, and drivers without health monitors, as seen by this process
//!   looks        times of looks at application credentials
//!   console      the cause of a failed bootstrap in the console of a server
//!   family       families of addresses
//!   owners, spec, words   namespaces and owners of objects, parts of specs, steps and ports in words
//! ```
//!
//! Each reconcile reads facts from the inventory of the cloud, computes the desired state from spec and facts (pure),
//! plans the steps from the observed to the desired state (pure), applies them one by one, and writes status. Deletion
//! is the same with an empty desired state.

mod alone;
mod application_credentials;
mod claims;
pub mod cluster;
mod console;
mod context;
mod credentials;
mod evidence;
mod failures;
pub mod family;
pub mod identity;
mod images;
mod index;
mod looks;
pub mod machine;
pub mod names;
mod options;
mod owners;
pub mod placement;
pub mod pool;
pub mod preview;
pub mod problem;
mod recheck;
mod resolve;
mod run;
mod server;
mod spec;
mod template;
mod wake;
mod words;
mod zones;

pub use application_credentials::{
    is_asked_for as is_credential_asked_for, name_in_workload as name_of_cloud_config,
    name_of_manifests as name_of_cloud_configs,
};
pub use credentials::cloud_config;
pub use images::{Available as AvailableImages, available as available_images};
pub use options::Options;
pub use run::run;
