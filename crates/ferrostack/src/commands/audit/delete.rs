//! Deletes displayed orphans, and nothing else.
//!
//! Each round reads cloud and owners again and judges anew. Remaining orphans are deleted, dependents first; a deletion
//! refused because of a resource on its way out is repeated in the next round. No state is kept, so the command can be
//! killed at any point and repeated.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use openstack::inventory::Inventory;
use openstack::network::RouterUpdate;
use openstack::{ErrorKind, View};

use super::judge::Finding;
use super::report::Outcomes;
use super::thing::Form;
use super::{Look, deletable};

/// Maximum of rounds, and the pause between two.
const ROUNDS: u32 = 90;
const PAUSE: Duration = Duration::from_secs(1);

/// Outcome for an orphan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Deleted.
    Deleted,
    /// No orphan any more.
    Kept,
    /// Message of the cloud, or the obstacle.
    Failed(String),
}

/// Deletes the remaining orphans among `shown`.
///
/// # Errors
/// If cloud or owners cannot be read.
pub(super) async fn all(
    shown: &[Finding],
    inventory: &Inventory,
    look: impl AsyncFn() -> anyhow::Result<Look>,
) -> anyhow::Result<Outcomes> {
    let mut outcomes = Outcomes::new();
    let mut wanted: BTreeMap<&str, &Finding> = deletable(shown).map(|it| (&*it.id, it)).collect();
    for round in 0..ROUNDS {
        let now = look().await?;
        let there: BTreeSet<&str> = now.things.iter().map(|it| &*it.id).collect();
        let orphans: BTreeSet<&str> = deletable(&now.findings).map(|it| &*it.id).collect();
        wanted.retain(|id, _| {
            let outcome = match (there.contains(id), orphans.contains(id)) {
                (false, _) => Outcome::Deleted,
                (true, false) => Outcome::Kept,
                (true, true) => return true,
            };
            // What a former round has asked to go may be in a state in which nothing can be asked.
            let is_going = outcome == Outcome::Kept && outcomes.contains_key(*id);
            if !is_going {
                outcomes.insert((*id).to_owned(), outcome);
            }
            is_going
        });
        if wanted.is_empty() {
            return Ok(outcomes);
        }
        let mut in_order: Vec<&&Finding> = wanted.values().collect();
        in_order.sort_by_key(|it| it.form);
        let mut refused = Vec::new();
        for finding in in_order.into_iter().filter(|it| orphans.contains(&*it.id)) {
            let waits = Outcome::Failed("the cloud is not done with it yet".to_owned());
            let outcome = match one(finding, inventory, &now.view).await {
                Ok(()) => waits,
                Err(error) if error.is_absent() => waits,
                Err(error) => {
                    let again = matches!(
                        error.kind(),
                        ErrorKind::Busy
                            | ErrorKind::Conflict
                            | ErrorKind::Transient { .. }
                            | ErrorKind::Unreachable
                    );
                    // Cinder says of a volume that has snapshots that the request is invalid.
                    if !again && error.kind() != ErrorKind::Invalid {
                        refused.push(finding.id.clone());
                    }
                    Outcome::Failed(error.cause(&format!(
                        "delete {} {}",
                        finding.form.name(),
                        finding.id
                    )))
                }
            };
            outcomes.insert(finding.id.clone(), outcome);
        }
        wanted.retain(|id, _| !refused.iter().any(|it| it == id));
        if round + 1 < ROUNDS && !wanted.is_empty() {
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(outcomes)
}

async fn one(finding: &Finding, inventory: &Inventory, view: &View) -> openstack::Result<()> {
    let id = finding.id.as_str();
    match finding.form {
        Form::LoadBalancer => inventory.delete_load_balancer(id).await,
        Form::FloatingIp => inventory.delete_floating_ip(id).await,
        Form::Server => inventory.delete_server(id).await,
        Form::Backup => inventory.delete_backup(id).await,
        Form::Snapshot => inventory.delete_snapshot(id).await,
        Form::Volume => inventory.delete_volume(id).await,
        Form::Trunk => inventory.delete_trunk(id).await,
        Form::Port => inventory.delete_port(id).await,
        Form::SecurityGroup => inventory.delete_security_group(id).await,
        Form::Router => router(id, inventory, view).await,
        Form::Subnet => inventory.delete_subnet(id).await,
        Form::Network => inventory.delete_network(id).await,
    }
}

/// Deletes routes and interfaces first: a router with either cannot be deleted.
async fn router(id: &str, inventory: &Inventory, view: &View) -> openstack::Result<()> {
    let routes = view.routers.get(id).is_some_and(|it| !it.routes.is_empty());
    if routes {
        let none = RouterUpdate {
            routes: Some(Vec::new()),
            ..RouterUpdate::default()
        };
        inventory.update_router(id, &none).await?;
    }
    for port in view
        .ports
        .of_parent(id)
        .iter()
        .filter(|it| is_interface(&it.device_owner))
    {
        for fixed in &port.fixed_ips {
            match inventory
                .remove_router_interface(id, &fixed.subnet_id)
                .await
            {
                Err(error) if !error.is_absent() => return Err(error),
                _ => {}
            }
        }
    }
    inventory.delete_router(id).await
}

/// True if the owner of a port is a router, with a connection to a subnet.
pub(super) fn is_interface(owner: &str) -> bool {
    owner.contains("router_interface") || owner.contains("router_replicated_interface")
}
