//! Application of the next steps of a plan: all steps independent of the load balancer, and one change of the load
//! balancer.

use load_balancing::{Status, Step as Part};
use openstack::loadbalancer::{LoadBalancerCreate, LoadBalancerUpdate};
use openstack::network::{FloatingIpCreate, FloatingIpUpdate};
use openstack::{ErrorKind, Kind};

use super::desired::Desired;
use super::floating::Floating;
use super::observed::Observed;
use super::plan::{self, Step};
use super::{Work, drift, recovery, refused};
use crate::context::Error;

/// Applies the next [`Step`]s. Returns true if steps or waits are left.
pub(crate) async fn next(
    work: &Work<'_>,
    desired: &Desired,
    observed: Option<&Observed>,
    steps: Vec<Step>,
) -> Result<bool, Error> {
    let status = observed.map(|observed| Status::from_balancer(&observed.balancer));
    let breaks = |step: &Step| matches!(step, Step::DeleteBroken(_));
    if let Some(observed) = observed
        && status == Some(Status::Error)
        && !steps.iter().any(breaks)
    {
        return recovery::run(work, observed).await.map(|()| true);
    }
    if let Some(observed) = observed.filter(|_| status == Some(Status::Active)) {
        work.shared.recoveries.forget(&observed.balancer.id);
    }
    let (others, next, waits) = plan::due(steps, status);
    let beside = all(work, desired, observed, others).await;
    // A refused floating IP does not keep members from following the nodes.
    let on_balancer = all(work, desired, observed, next).await;
    beside.and(on_balancer).map(|()| waits)
}

/// Takes [`Step`]s until one fails.
async fn all(
    work: &Work<'_>,
    desired: &Desired,
    observed: Option<&Observed>,
    steps: impl IntoIterator<Item = Step>,
) -> Result<(), Error> {
    for step in steps {
        perform(work, desired, observed, step).await?;
    }
    Ok(())
}

/// Takes a [`Step`]. Publishes the change if others caused it, or if the Service was served before.
async fn perform(
    work: &Work<'_>,
    desired: &Desired,
    observed: Option<&Observed>,
    step: Step,
) -> Result<(), Error> {
    let is_drift = work.shared.settled.knows(desired);
    let is_served = observed.is_some_and(|observed| observed.is_published);
    let words = match is_drift || is_served {
        true => drift::words(&step, observed),
        false => None,
    };
    let is_of_members = step.is_of_members();
    take(work, desired, observed, step).await?;
    let Some(words) = words else {
        return Ok(());
    };
    if is_drift {
        let note = format!("others changed the load balancer, which is repaired: {words}");
        work.warn("LoadBalancerDriftRepaired", &note).await;
    } else if !is_of_members {
        let note = format!("Updated load balancer: {words}");
        let recorder = &work.ctx.recorder;
        recorder
            .normal(work.service, "UpdatedLoadBalancer", "Update", note)
            .await;
    }
    Ok(())
}

async fn take(
    work: &Work<'_>,
    desired: &Desired,
    observed: Option<&Observed>,
    step: Step,
) -> Result<(), Error> {
    let inventory = &work.cloud.inventory;
    let failed =
        |doing: &str| Error::cloud(format!("{doing} of Service {}", desired.identity.service));
    match step {
        Step::Balancer(step) => {
            let balancer = observed.map_or("", |observed| observed.balancer.id.as_str());
            part(work, desired, balancer, step).await?;
        }
        Step::DeleteBroken(id) => {
            inventory
                .delete_load_balancer(&id)
                .await
                .map_err(failed("deleting the load balancer in ERROR"))?;
            let note = format!(
                "load balancer {id} is in ERROR before it served; it is deleted and created again"
            );
            work.warn("SyncLoadBalancerFailed", &note).await;
        }
        Step::Adopt { id, tags } => {
            let change = LoadBalancerUpdate { tags: Some(tags) };
            let adopted = inventory.update_load_balancer(&id, &change).await;
            adopted.map_err(failed("tagging the load balancer"))?;
        }
        Step::CreateFloatingIp { port, floating } => {
            let identity = &desired.identity;
            let description = identity.floating_ip_description();
            let created = create_floating_ip(work, &floating, port, description).await;
            created.map_err(|error| refused::floating_ip(&floating, &identity.service, error))?;
        }
        Step::AttachFloatingIp { id, port } => attach(work, &id, Some(port))
            .await
            .map_err(failed("attaching the floating IP"))?,
        Step::DetachFloatingIp(id) => attach(work, &id, None)
            .await
            .map_err(failed("taking off the floating IP"))?,
        Step::DeleteFloatingIp(id) => {
            inventory
                .delete_floating_ip(&id)
                .await
                .map_err(failed("deleting the floating IP"))?;
        }
    }
    Ok(())
}

/// Creates the load balancer, and learns from a refusal of a driver.
async fn create(work: &Work<'_>, desired: &Desired, tree: LoadBalancerCreate) -> Result<(), Error> {
    let inventory = &work.cloud.inventory;
    let created = inventory.create_load_balancer(&tree).await;
    let driver = &work.settings.conf.load_balancer.provider;
    if let Err(error) = &created
        && work.shared.drivers.learn(driver, &tree, error)
    {
        return Err(Error::OneAddress(driver.clone()));
    }
    let service = &desired.identity.service;
    created.map_err(|error| refused::load_balancer(&tree, service, error))?;
    let note = "Ensuring load balancer";
    work.ctx
        .recorder
        .normal(work.service, "EnsuringLoadBalancer", "Ensure", note)
        .await;
    Ok(())
}

/// Sends a request for a part of a load balancer.
async fn part(work: &Work<'_>, desired: &Desired, balancer: &str, step: Part) -> Result<(), Error> {
    let inventory = &work.cloud.inventory;
    let failed =
        |doing: &str| Error::cloud(format!("{doing} of Service {}", desired.identity.service));
    match step {
        Part::Create(tree) => create(work, desired, *tree).await?,
        Part::CreateListener(listener) => {
            let created = inventory.create_listener(balancer, &listener).await;
            created.map_err(failed("creating a listener"))?;
            // The response lacks the resources created together with the listener.
            for kind in [Kind::Pools, Kind::Members, Kind::Monitors] {
                inventory.stale(kind);
            }
        }
        Part::UpdateListener { id, change } => {
            let updated = inventory.update_listener(balancer, &id, &change).await;
            updated.map_err(failed("changing a listener"))?;
        }
        Part::DeleteListener(id) => {
            inventory
                .delete_listener(balancer, &id)
                .await
                .map_err(failed("deleting a listener"))?;
            inventory.stale(Kind::Pools);
        }
        Part::CreatePool(pool) => {
            inventory
                .create_pool(balancer, &pool)
                .await
                .map_err(failed("creating a pool"))?;
            inventory.stale(Kind::Listeners);
        }
        Part::UpdatePool { id, change } => {
            inventory
                .update_pool(balancer, &id, &change)
                .await
                .map_err(failed("changing a pool"))?;
        }
        Part::DeletePool(id) => {
            inventory
                .delete_pool(balancer, &id)
                .await
                .map_err(failed("deleting a pool"))?;
            inventory.stale(Kind::Listeners);
        }
        Part::SetMembers { pool, members } => {
            inventory
                .set_members(&pool, &members)
                .await
                .map_err(failed("writing the members"))?;
            let note = "Updated load balancer with new hosts";
            work.ctx
                .recorder
                .normal(work.service, "UpdatedLoadBalancer", "Update", note)
                .await;
        }
        Part::CreateMember { pool, member } => {
            let created = inventory.create_member(&pool, &member).await;
            created.map_err(failed("creating a member"))?;
        }
        Part::UpdateMember { pool, id, change } => {
            let updated = inventory.update_member(&pool, &id, &change).await;
            updated.map_err(failed("changing a member"))?;
        }
        Part::DeleteMember { pool, id } => {
            let deleted = inventory.delete_member(&pool, &id).await;
            deleted.map_err(failed("deleting a member"))?;
        }
        Part::CreateMonitor(monitor) => {
            let created = inventory.create_monitor(balancer, &monitor).await;
            created.map_err(failed("creating a health monitor"))?;
        }
        Part::UpdateMonitor { id, change } => {
            let updated = inventory.update_monitor(balancer, &id, &change).await;
            updated.map_err(failed("changing a health monitor"))?;
        }
        Part::DeleteMonitor(id) => {
            inventory
                .delete_monitor(balancer, &id)
                .await
                .map_err(failed("deleting a health monitor"))?;
        }
    }
    Ok(())
}

async fn attach(work: &Work<'_>, id: &str, port: Option<String>) -> openstack::Result<()> {
    let change = FloatingIpUpdate {
        port_id: port,
        ..FloatingIpUpdate::default()
    };
    work.cloud
        .inventory
        .update_floating_ip(id, &change)
        .await
        .map(drop)
}

/// Creates the floating IP in the first subnet with a free address.
async fn create_floating_ip(
    work: &Work<'_>,
    floating: &Floating,
    port: String,
    description: String,
) -> openstack::Result<()> {
    let mut request = FloatingIpCreate {
        floating_network_id: floating.network.clone(),
        floating_ip_address: floating.address.clone(),
        port_id: Some(port),
        description: Some(description),
        ..FloatingIpCreate::default()
    };
    let mut subnets = floating.subnets.iter().peekable();
    loop {
        request.subnet_id = subnets.next().cloned();
        let created = work.cloud.inventory.create_floating_ip(&request).await;
        match created {
            // A subnet without free addresses; other errors would be the same in the next one.
            Err(error)
                if subnets.peek().is_some()
                    && matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Invalid) => {}
            result => return result.map(drop),
        }
    }
}
