//! OpenStackServer: a server with neither a Machine nor a Cluster, by the plan of machines.

mod adopted;
mod kept;
mod status;

use std::sync::Arc;
use std::time::Duration;

use api::conditions::{Reason, Type};
use api::infra::v1alpha1::OpenStackServer;
use api::infra::v1beta2::{ManagedGroup, OpenStackMachineSpec};
use kube::runtime::controller::Action;
use kube::{Resource, ResourceExt};
use openstack::{Cloud, Kind};
use tracing::instrument;

use crate::alone;
use crate::context::{self, Context, Error, FALLBACK, is_managed_elsewhere, namespace};
use crate::credentials;
use crate::identity::{Identity, Mark};
use crate::images;
use crate::machine::desired::desired;
use crate::machine::drift;
use crate::machine::facts::{Scope, facts};
use crate::machine::inputs::{kinds, user_data};
use crate::machine::observed::{Observed, References};
use crate::machine::plan::{self, Step};
use crate::machine::pooled::Claimant;
use crate::machine::work::ServerWork;
use crate::problem::Problem;
use crate::recheck::in_lists_of_now;

/// Reconciles one OpenStackServer.
#[instrument(skip_all, fields(object = %object.name_any()))]
pub(crate) async fn reconcile(
    object: Arc<OpenStackServer>,
    ctx: Arc<Context>,
) -> Result<Action, Error> {
    if is_managed_elsewhere(object.as_ref()) {
        return Ok(Action::await_change());
    }
    let cluster = context::owner_cluster(&ctx.client, object.as_ref()).await?;
    if adopted::goes(&object) && !context::is_paused(object.as_ref(), cluster.as_ref()) {
        return adopted::release(&ctx, &object).await;
    }
    alone::reconcile(object, &ctx, cluster.as_ref()).await
}

async fn normal(
    ctx: &Context,
    object: &OpenStackServer,
    next: &mut OpenStackServer,
) -> Result<Action, Error> {
    let id = alone::prepare(ctx, object, next).await?;
    let (spec, cloud) = (object.spec.as_machine(), alone::cloud(ctx, object).await?);
    alone::authenticated(ctx, next);
    let mut work = work(ctx, object, &spec, &cloud, id);
    let is_new = work.before.server().is_none();
    let mut kinds = kinds(&spec, is_new, false);
    kinds.extend((is_new && work.failure_domain.is_some()).then_some(Kind::Zones));
    let observed = work.observe(&kinds, work.age).await?;
    if let (Some(id), None) = (work.before.server(), observed.server()) {
        return missing(&work, &observed, id).await;
    }
    if let Some(wait) = claim(&mut work, object, next).await? {
        status::not_ready(next, ctx.now(), Type::InstanceReady, wait.0, &wait.1);
        return Ok(Action::requeue(FALLBACK));
    }
    let waits = create(&work, object, next, &kinds, observed).await?;
    Ok(status::show(object, next, &work, waits).await)
}

/// Claims the address of a pool; returns the reason to wait.
async fn claim(
    work: &mut ServerWork<'_>,
    object: &OpenStackServer,
    next: &mut OpenStackServer,
) -> Result<Option<(Reason, String)>, Error> {
    let Some(reference) = &object.spec.floating_ip_pool_ref else {
        return Ok(None);
    };
    let name = object.name_any();
    match claimant(object, &name).claimed(work.ctx, reference).await? {
        Ok(given) => {
            work.address = Some(given);
            Ok(None)
        }
        Err(wait) => {
            let (now, reason) = (work.ctx.now(), Reason::WaitingForIPAMProvider);
            status::not_ready(next, now, Type::FloatingAddressFromPoolReady, reason, &wait);
            Ok(Some((reason, wait)))
        }
    }
}

fn claimant<'a>(object: &'a OpenStackServer, name: &'a str) -> Claimant<'a, OpenStackServer> {
    Claimant {
        object,
        server: name,
        cluster: context::of_cluster(object),
    }
}

/// Creates missing resources, and deletes duplicates; returns the reason to wait.
async fn create(
    work: &ServerWork<'_>,
    object: &OpenStackServer,
    next: &mut OpenStackServer,
    kinds: &[Kind],
    observed: Observed,
) -> Result<Vec<String>, Error> {
    if observed.server().is_some() {
        let status = object.status.as_ref();
        let resolved = status.and_then(|status| status.resolved.as_ref());
        let states = drift::of(&object.name_any(), work.spec, resolved);
        let plan = |observed: &Observed| plan::existing(&states, &[], observed);
        return work.apply(kinds, plan, plan::change).await;
    }
    let scope = Scope {
        cluster_name: context::of_cluster(object).unwrap_or_default().to_owned(),
        group: ManagedGroup::Worker,
        server_group: None,
        failure_domain: work.failure_domain.clone(),
        zone_field: work.zone_field,
        flavor_field: "flavor",
        project: format!("cloud {}", work.cloud.session.config().name),
    };
    let spec = images::named(work.ctx, &namespace(object), work.spec).await?;
    let resolve = |observed: &Observed| facts(&spec, None, work.mark, &scope, &observed.view);
    let of_view = |view| work.of_view(view);
    let (facts, _) = in_lists_of_now(work.cloud, observed, of_view, resolve).await?;
    let user_data = match &object.spec.user_data_ref {
        Some(secret) => Some(user_data(work.ctx, &namespace(object), &secret.name).await?),
        None => None,
    };
    let desired = desired(&object.name_any(), work.spec, &[], &facts, user_data);
    let plan = |observed: &Observed| plan::plan(&desired, observed);
    let request = |step: &Step, observed: &Observed| plan::request(step, &desired, observed);
    let result = work.apply(kinds, plan, request).await;
    let (resolved, resources) = crate::machine::status::resources(&facts, &desired, &work.known());
    let status = next.status.get_or_insert_default();
    (status.resolved, status.resources) = (Some(resolved), resources);
    result
}

/// Reports a server that was deleted, or cannot be proven to be this one. The server is not replaced.
async fn missing(work: &ServerWork<'_>, observed: &Observed, id: &str) -> Result<Action, Error> {
    if let Some(server) = &observed.unproven {
        let text = plan::unproven(observed, server);
        return Err(Problem::new(Type::InstanceReady, Reason::InstanceNotFound, text).into());
    }
    match work.cloud.session.compute().server(id).await {
        Ok(server) if !server.is_deleting() => {
            // The list did not contain it; this adds it to the views.
            work.cloud.inventory.fold(server);
            Ok(Action::requeue(Duration::from_secs(5)))
        }
        Err(error) if !error.is_absent() => Err(credentials::listing(&error).into()),
        _ => {
            let text = format!(
                "server {id} was deleted by somebody else: delete the OpenStackServer, and create another one"
            );
            Err(Problem::new(Type::InstanceReady, Reason::InstanceDeleted, text).into())
        }
    }
}

/// Deletes all resources with the mark of the server, and gives the address of a pool back; returns the reason to wait,
/// `None` at the end.
async fn take_down(
    ctx: &Context,
    object: &OpenStackServer,
    next: &mut OpenStackServer,
) -> Result<Option<String>, Error> {
    if let Some(id) = alone::identity(ctx, object, next).await?
        && let Some(wait) = delete(ctx, object, id).await?
    {
        return Ok(Some(wait));
    }
    if object.spec.floating_ip_pool_ref.is_some() {
        claimant(object, &object.name_any()).give_back(ctx).await?;
    }
    Ok(None)
}

async fn delete(
    ctx: &Context,
    object: &OpenStackServer,
    id: Identity,
) -> Result<Option<String>, Error> {
    let (spec, cloud) = (object.spec.as_machine(), alone::cloud(ctx, object).await?);
    let work = work(ctx, object, &spec, &cloud, id);
    let mut kinds = kinds(&spec, false, false);
    if kinds.contains(&Kind::Trunks) {
        // Others add subports, which go with their trunk.
        let of_trunks = [Kind::Trunks, Kind::Ports];
        work.observe(&of_trunks, Duration::ZERO).await?;
    }
    let plan = |observed: &Observed| plan::plan_deletion(observed, false);
    let waits = work.apply(&kinds, plan, plan::deletion).await?;
    if let Some(wait) = waits.into_iter().next() {
        return Ok(Some(wait));
    }
    // The view can be out of date: before the finalizer is removed, the cloud is read again.
    kinds.retain(|kind| matches!(kind, Kind::Servers | Kind::Ports | Kind::Volumes));
    let is_empty = work.observe(&kinds, Duration::ZERO).await?.is_empty();
    let again = "something that carries the server's mark appeared again";
    Ok((!is_empty).then(|| again.to_owned()))
}

/// [`Mark`] of a server, with its own identity also in place of a cluster's.
pub(crate) fn mark(id: Identity) -> Mark {
    Mark::machine(id, id)
}

fn work<'a>(
    ctx: &'a Context,
    object: &'a OpenStackServer,
    spec: &'a OpenStackMachineSpec,
    cloud: &'a Cloud,
    id: Identity,
) -> ServerWork<'a> {
    let status = object.status.as_ref();
    let created = status.and_then(|status| status.resources.as_ref());
    let ports = created.iter().flat_map(|created| &created.ports);
    let conditions = status.map(|status| status.conditions.as_slice());
    ServerWork {
        ctx,
        about: object.object_ref(&()),
        spec,
        cloud,
        mark: mark(id),
        before: References {
            provider_id: None,
            instance_id: status.and_then(|status| status.instance_id.clone()),
            ports: ports.map(|port| port.id.clone()).collect(),
        },
        failure_domain: object.spec.availability_zone.clone(),
        zone_field: "availabilityZone",
        flavor_field: "flavor",
        address: None,
        age: context::age(object, conditions),
    }
}
