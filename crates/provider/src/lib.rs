//! Cluster API infrastructure provider for OpenStack.
//!
//! ```text
//!   cluster      OpenStackCluster: network, router, security groups, load balancer, endpoint
//!   machine      OpenStackMachine: ports, volumes, server, providerID
//! ```
//!
//! Each reconcile fetches facts from the cloud's inventory, computes what is desired from spec and
//! facts (pure), plans the steps that lead there from what is observed (pure), applies them one by
//! one, and writes status. Deletion is the same plan towards nothing.

mod options;

use kube::Client;
use tokio_util::sync::CancellationToken;

pub use options::Options;

/// Runs the controllers of OpenStackCluster and OpenStackMachine until `shutdown`, and returns when
/// the reconciles under way are through.
pub async fn run(_client: Client, _options: Options, shutdown: CancellationToken) {
    shutdown.cancelled().await;
}
