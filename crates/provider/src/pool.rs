//! OpenStackFloatingIPPool: floating IPs that answer the IPAddressClaims which name the pool.

pub mod plan;
mod prepare;
mod status;
mod work;

use std::sync::Arc;

use api::conditions::Status;
use api::infra::v1alpha1::OpenStackFloatingIPPool;
use kube::ResourceExt;
use kube::runtime::controller::Action;
use operator::client::Api;
use operator::{finalizer, patch};
use tracing::instrument;

use self::work::{Outcome, Work};
use crate::claims::SOON;
use crate::context::{
    self, Context, Error, FALLBACK, is_deleting, is_managed_elsewhere, is_paused, namespace,
};
use crate::credentials;
use crate::names::POOL_FINALIZER as FINALIZER;
use crate::problem::Problem;
use crate::reason::{Reason, Type};

/// The finalizer of the IPAddresses of a pool, the same as that of the Go provider.
pub const ADDRESS_FINALIZER: &str =
    "openstackfloatingippool.infrastructure.cluster.x-k8s.io/delete-floating-ip";

/// Reconciles one OpenStackFloatingIPPool.
#[instrument(skip_all, fields(object = %object.name_any()))]
pub(crate) async fn reconcile(
    object: Arc<OpenStackFloatingIPPool>,
    ctx: Arc<Context>,
) -> Result<Action, Error> {
    if is_managed_elsewhere(object.as_ref()) {
        return Ok(Action::await_change());
    }
    let mut next = OpenStackFloatingIPPool::clone(&object);
    let paused = is_paused(object.as_ref(), None);
    let reason = if paused {
        Reason::Paused
    } else {
        Reason::NotPaused
    };
    let verdict = (paused.into(), reason, "");
    status::condition(&mut next, ctx.now(), Type::Paused, verdict);
    let result = if paused {
        Ok(Action::await_change())
    } else if is_deleting(object.as_ref()) {
        match delete(&ctx, &object, &mut next).await {
            Ok(None) => return Ok(Action::await_change()),
            Ok(Some(action)) => Ok(action),
            Err(error) => Err(error),
        }
    } else {
        normal(&ctx, &object, &mut next).await
    };
    finish(&ctx, &object, next, result).await
}

async fn normal(
    ctx: &Context,
    object: &OpenStackFloatingIPPool,
    next: &mut OpenStackFloatingIPPool,
) -> Result<Action, Error> {
    let id = prepare::prepare(ctx, object, next).await?;
    let identity_ref = &object.spec.identity_ref;
    let cloud =
        credentials::cloud(&ctx.client, &ctx.clouds, &namespace(object), identity_ref).await?;
    let verdict = (Status::True, Reason::OpenStackAuthenticationSucceeded, "");
    status::condition(next, ctx.now(), Type::Authentication, verdict);
    let work = Work {
        ctx,
        object,
        cloud: &cloud,
        id,
    };
    let (wanted, network) = work.wanted().await?;
    let outcome = work.apply(&wanted, Some(&network.id)).await?;
    status::show(next, &network, &wanted, &outcome, ctx.now());
    work.tell_waiting(&outcome).await?;
    let Outcome { plan, problem, .. } = outcome;
    match problem {
        Some(problem) => Err(problem.into()),
        None if plan.steps.is_empty() => Ok(context::settled()),
        None => Ok(Action::requeue(FALLBACK)),
    }
}

/// Takes back and deletes what the pool has; `None`: nothing is left, and the finalizer is removed.
async fn delete(
    ctx: &Context,
    object: &OpenStackFloatingIPPool,
    next: &mut OpenStackFloatingIPPool,
) -> Result<Option<Action>, Error> {
    if !finalizer::has(object, FINALIZER) {
        return Ok(Some(Action::await_change()));
    }
    let waits = match take_down(ctx, object, next).await {
        Err(Error::Problem(problem)) => {
            let verdict = (Status::True, problem.reason, problem.message.as_str());
            status::condition(next, ctx.now(), Type::Deleting, verdict);
            return Err(problem.into());
        }
        other => other?,
    };
    let Some(text) = waits else {
        let removed = finalizer::remove(&api(ctx, object), object, FINALIZER).await;
        removed.map_err(Error::kubernetes("removing the finalizer"))?;
        return Ok(None);
    };
    let verdict = (Status::True, Reason::WaitingForDeletion, text.as_str());
    status::condition(next, ctx.now(), Type::Deleting, verdict);
    status::not_ready(next, ctx.now(), Type::Pool, Reason::Deleting, &text);
    Ok(Some(Action::requeue(FALLBACK)))
}

/// Reason for which the deletion waits; `None` when nothing is left.
async fn take_down(
    ctx: &Context,
    object: &OpenStackFloatingIPPool,
    next: &mut OpenStackFloatingIPPool,
) -> Result<Option<String>, Error> {
    let Some(id) = prepare::identity(ctx, object, next).await? else {
        return Ok(None);
    };
    let identity_ref = &object.spec.identity_ref;
    let cloud =
        credentials::cloud(&ctx.client, &ctx.clouds, &namespace(object), identity_ref).await?;
    let work = Work {
        ctx,
        object,
        cloud: &cloud,
        id,
    };
    let outcome = work.apply(&work.nothing(), None).await?;
    if let Some(problem) = outcome.problem {
        return Err(problem.into());
    }
    let step = outcome.plan.steps.first().map(ToString::to_string);
    Ok(outcome.plan.waits.into_iter().next().or(step))
}

/// Writes the status, and returns when to reconcile again.
async fn finish(
    ctx: &Context,
    object: &OpenStackFloatingIPPool,
    mut next: OpenStackFloatingIPPool,
    result: Result<Action, Error>,
) -> Result<Action, Error> {
    if ctx.is_of_shutdown(&result) {
        return result;
    }
    if let Err(Error::Problem(problem)) = &result {
        report(ctx, object, &mut next, problem).await;
    }
    let before = OpenStackFloatingIPPool {
        metadata: next.metadata.clone(),
        ..object.clone()
    };
    let conditions = |pool: &OpenStackFloatingIPPool| {
        let status = pool.status.as_ref();
        status.map(|status| status.conditions.clone())
    };
    let after = next.status.as_mut();
    let after = after.map(|status| status.conditions.as_mut_slice());
    context::steady(conditions(&before).as_deref(), after);
    let stored = patch::status(&api(ctx, object), &before, &next).await;
    stored.map_err(Error::kubernetes("storing the status"))?;
    match result {
        Err(Error::Behind) => Ok(Action::requeue(SOON)),
        result => result,
    }
}

/// Writes a problem into the conditions, and emits an event if they did not report it before.
async fn report(
    ctx: &Context,
    object: &OpenStackFloatingIPPool,
    next: &mut OpenStackFloatingIPPool,
    problem: &Problem,
) {
    let (about, reason, message) = (problem.about, problem.reason, &problem.message);
    status::not_ready(next, ctx.now(), about, reason, message);
    let is_new = status::reported(object, about) != status::reported(next, about);
    if is_new && !problem.is_announced {
        let recorder = &ctx.recorder;
        recorder
            .warning(object, reason.as_str(), "Reconcile", message)
            .await;
    }
}

fn api(ctx: &Context, object: &OpenStackFloatingIPPool) -> Api<OpenStackFloatingIPPool> {
    Api::namespaced(ctx.client.clone(), &namespace(object))
}
