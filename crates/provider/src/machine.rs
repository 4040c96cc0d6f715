//! OpenStackMachine: ports, volumes and a server for a Machine.

mod address;
pub mod desired;
pub mod drift;
mod evidence;
pub mod facts;
pub mod failed;
pub(crate) mod inputs;
pub mod observed;
pub mod pairs;
pub mod plan;
pub mod pooled;
pub(crate) mod prepare;
pub mod rebuild;
mod retries;
mod running;
pub(crate) mod status;
mod surroundings;
mod teardown;
pub(crate) mod work;

use std::sync::Arc;
use std::time::Duration;

use api::conditions::{Reason, Status, Type};
use api::infra::v1beta2::OpenStackMachine;
use kube::ResourceExt;
use kube::runtime::controller::Action;
use openstack::Kind;
use operator::patch;
use tracing::instrument;

use self::failed::{Failed, Placement};
use self::inputs::{cloud, kinds, provider_id, user_data};
use self::observed::Observed;
use self::plan::Step;
use self::prepare::prepare;
use self::surroundings::{Needs, Surroundings};
use self::work::Work;
use crate::context::kept::{self, api, condition, reported};
use crate::context::{
    self, Context, Error, FALLBACK, is_deleting, is_managed_elsewhere, is_paused, namespace,
};
use crate::credentials;
use crate::images;
pub use crate::names::MACHINE_FINALIZER as FINALIZER;
use crate::names::Names;
use crate::placement;
use crate::problem::Problem;
use crate::recheck::in_lists_of_now;

/// Reconciles one OpenStackMachine.
#[instrument(skip_all, fields(object = %object.name_any()))]
pub(crate) async fn reconcile(
    object: Arc<OpenStackMachine>,
    ctx: Arc<Context>,
) -> Result<Action, Error> {
    if is_managed_elsewhere(object.as_ref()) {
        return Ok(Action::await_change());
    }
    let around = Surroundings::for_object(&ctx, &object).await?;
    let mut next = OpenStackMachine::clone(&object);
    let paused = is_paused(object.as_ref(), around.cluster.as_ref());
    kept::paused(&mut next, ctx.now(), paused);
    let result = if paused {
        Ok(Action::await_change())
    } else if is_deleting(object.as_ref()) {
        match teardown::delete(&ctx, &object, &mut next, &around).await {
            Ok(None) => return Ok(Action::await_change()),
            Ok(Some(action)) => Ok(action),
            Err(error) => Err(error),
        }
    } else {
        normal(&ctx, &object, &mut next, &around).await
    };
    let write = |next| store(&ctx, &object, next);
    kept::finish(&ctx, object.as_ref(), next, result, write).await
}

/// Stores providerID and status.
async fn store(
    ctx: &Context,
    object: &OpenStackMachine,
    mut next: OpenStackMachine,
) -> Result<(), Error> {
    let api = api(ctx, object);
    // Identity and finalizer may have been stored since `object` was read.
    let mut before = OpenStackMachine {
        metadata: next.metadata.clone(),
        ..object.clone()
    };
    if next.spec != before.spec {
        let mut after = before.clone();
        after.spec = next.spec.clone();
        let stored = patch::object(&api, &before, &after).await;
        before = stored
            .map_err(Error::kubernetes("storing the providerID"))?
            .unwrap_or(after);
        next.metadata = before.metadata.clone();
    }
    kept::store_status(ctx, &before, next).await
}

/// Reconciles an OpenStackMachine that is neither paused nor being deleted.
async fn normal(
    ctx: &Context,
    object: &OpenStackMachine,
    next: &mut OpenStackMachine,
    around: &Surroundings,
) -> Result<Action, Error> {
    let now = ctx.now();
    let needs = match around.needs() {
        Ok(needs) => needs,
        Err((reason, message)) => {
            status::not_ready(next, now, Type::InstanceReady, reason, message);
            return Ok(Action::await_change());
        }
    };
    let mark = prepare(ctx, object, next, around, &needs).await?;
    let cloud = cloud(ctx, object, Some(needs.infra)).await?;
    let verdict = (Status::True, Reason::OpenStackAuthenticationSucceeded, "");
    condition(next, now, Type::OpenStackAuthenticationSucceeded, verdict);
    let zone = needs.machine.spec.failure_domain.clone();
    let place = Placement::new(object, zone, &Failed::from_object(object));
    let spec = place.spec(&object.spec);
    let mut work = Work::new(
        ctx,
        object,
        (&spec, &place),
        &cloud,
        mark,
        around.is_silent(),
    );
    let is_new = work.before.server().is_none();
    let mut kinds = kinds(&object.spec, is_new, around.is_balanced());
    kinds.extend((is_new && place.zone.is_some()).then_some(Kind::Zones));
    let is_grouped = is_new && placement::is_used(needs.infra);
    kinds.extend(is_grouped.then_some(Kind::ServerGroups));
    let observed = work.observe(&kinds, work.age).await?;
    if let (Some(id), None) = (work.before.server(), observed.server()) {
        return missing(&work, &observed, id, next).await;
    }
    if address::claim(&mut work, next, around).await? {
        return Ok(Action::requeue(FALLBACK));
    }
    if let Some(wait) = create(&work, next, around, &needs, &kinds, observed).await? {
        status::not_ready(
            next,
            now,
            Type::InstanceReady,
            Reason::WaitingForCloud,
            &wait,
        );
        return Ok(Action::requeue(FALLBACK));
    }
    address::associated(&work, next);
    server(&work, next, around, &needs).await
}

/// Continues the reconcile of a machine whose server exists.
async fn server(
    work: &Work<'_>,
    next: &mut OpenStackMachine,
    around: &Surroundings,
    needs: &Needs<'_>,
) -> Result<Action, Error> {
    let (ctx, object) = (work.ctx, work.object);
    let observed = work.known();
    let Some(server) = observed.server() else {
        return Ok(Action::requeue(FALLBACK));
    };
    if let Some(action) = rebuild::update(work, next, needs, server).await? {
        return Ok(action);
    }
    let zone = needs.machine.spec.failure_domain.clone();
    if let Some(action) = retries::retry(work, next, zone, server).await? {
        return Ok(action);
    }
    if !status::server(next, server, ctx.now()) {
        if server.status == "ERROR"
            && reported(object, Type::InstanceReady) != reported(next, Type::InstanceReady)
        {
            let text = status::fault(server, "Machine");
            // A server that was running has not failed to be created.
            let ran = object.spec.provider_id.is_some();
            let reason = if ran {
                Reason::InstanceStateError.as_str()
            } else {
                "FailedCreateServer"
            };
            let action = if ran { "Watch" } else { "CreateServer" };
            ctx.recorder.warning(object, reason, action, text).await;
        }
        return Ok(Action::requeue(FALLBACK));
    }
    next.spec.provider_id = Some(provider_id(object, &server.id));
    running::running(work, next, around, needs.machine).await
}

/// Creates the missing resources of a machine; returns the reason to wait.
async fn create(
    work: &Work<'_>,
    next: &mut OpenStackMachine,
    around: &Surroundings,
    needs: &Needs<'_>,
    kinds: &[Kind],
    observed: Observed,
) -> Result<Option<String>, Error> {
    let (ctx, object) = (work.ctx, work.object);
    if observed.server().is_some() {
        return change(work, next, kinds, &observed).await;
    }
    let scope = facts::Scope {
        cluster_name: needs.cluster.name_any(),
        group: around.group(),
        server_group: server_group(object, needs, around)?,
        failure_domain: work.failure_domain.clone(),
        zone_field: work.zone_field,
        flavor_field: work.flavor_field,
        project: format!("cloud {}", work.cloud.session.config().name),
    };
    let spec = images::named(ctx, &namespace(object), work.spec).await?;
    let resolve = |observed: &Observed| {
        facts::facts(&spec, Some(needs.infra), work.mark, &scope, &observed.view)
    };
    let of_view = |view| work.of_view(view);
    let (facts, _) = in_lists_of_now(work.cloud, observed, of_view, resolve).await?;
    let user_data = user_data(ctx, &namespace(object), needs.secret).await?;
    let desired = desired::desired(
        &object.name_any(),
        work.spec,
        &needs.infra.spec.tags,
        &facts,
        Some(user_data),
    );
    let plan = |observed: &Observed| plan::plan(&desired, observed);
    let request = |step: &Step, observed: &Observed| plan::request(step, &desired, observed);
    let result = work.apply(kinds, plan, request).await;
    let status = next.status.get_or_insert_default();
    let (resolved, resources) = status::resources(&facts, &desired, &work.known());
    (status.resolved, status.resources) = (Some(resolved), resources);
    if let Err(Error::Problem(problem)) = &result
        && problem.lacks_quota
    {
        retries::refused(work, next, needs.machine.spec.failure_domain.clone()).await?;
    }
    Ok(result?.into_iter().next())
}

/// Name of the server group of the machine's role, if any.
fn server_group(
    object: &OpenStackMachine,
    needs: &Needs<'_>,
    around: &Surroundings,
) -> Result<Option<String>, Problem> {
    let names = Names::new(&namespace(object), &needs.cluster.name_any());
    let name = placement::of_role(needs.infra, &names, around.group());
    name.map_err(|text| Problem::new(Type::InstanceReady, Reason::DependencyFailed, text))
}

/// Deletes duplicates of a machine with a server, and applies permitted changes; returns the reason to wait.
async fn change(
    work: &Work<'_>,
    next: &mut OpenStackMachine,
    kinds: &[Kind],
    observed: &Observed,
) -> Result<Option<String>, Error> {
    let mut all = pairs::of(work.object);
    let mut announced = next.clone();
    if pairs::announce(&mut announced, &all, observed) {
        let before = OpenStackMachine {
            metadata: next.metadata.clone(),
            ..work.object.clone()
        };
        let after = OpenStackMachine {
            status: announced.status.clone(),
            ..before.clone()
        };
        let stored = patch::status(&api(work.ctx, work.object), &before, &after).await;
        let stored = stored.map_err(Error::kubernetes("recording the allowed address pairs"))?;
        next.metadata = stored.map_or(before.metadata, |stored| stored.metadata);
        next.status = announced.status;
        all = pairs::of(&OpenStackMachine {
            spec: work.object.spec.clone(),
            ..next.clone()
        });
    }
    let status = next.status.as_ref();
    let resolved = status.and_then(|status| status.resolved.as_ref());
    let states = drift::of(&work.object.name_any(), work.spec, resolved);
    let plan = |observed: &Observed| plan::existing(&states, &all, observed);
    let waits = work.apply(kinds, plan, plan::change).await?;
    pairs::record(next, &all, observed);
    Ok(waits.into_iter().next())
}

/// Reports a server that was deleted, or cannot be proven to be the machine's. The server is not replaced: a new server
/// needs a new Machine.
async fn missing(
    work: &Work<'_>,
    observed: &Observed,
    id: &str,
    next: &mut OpenStackMachine,
) -> Result<Action, Error> {
    let now = work.ctx.now();
    if let Some(server) = &observed.unproven {
        let text = plan::unproven(observed, server);
        status::not_ready(
            next,
            now,
            Type::InstanceReady,
            Reason::InstanceNotFound,
            &text,
        );
        return Ok(Action::requeue(FALLBACK));
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
                "server {id} was deleted by somebody else: delete the Machine, and its owner creates \
                 another one"
            );
            status::not_ready(
                next,
                now,
                Type::InstanceReady,
                Reason::InstanceDeleted,
                &text,
            );
            if reported(work.object, Type::InstanceReady) != reported(next, Type::InstanceReady) {
                let (reason, recorder) = (Reason::InstanceDeleted.as_str(), &work.ctx.recorder);
                recorder.warning(work.object, reason, "Watch", text).await;
            }
            Ok(context::settled())
        }
    }
}
