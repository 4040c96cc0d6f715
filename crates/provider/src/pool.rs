//! OpenStackFloatingIPPool: floating IPs in answer to the IPAddressClaims of the pool.

mod kept;
pub mod plan;
mod status;
mod work;

use std::sync::Arc;

use api::infra::v1alpha1::OpenStackFloatingIPPool;
use kube::ResourceExt;
use kube::runtime::controller::Action;
use tracing::instrument;

use self::work::{Outcome, Work};
use crate::alone;
use crate::context::{self, Context, Error, FALLBACK, is_managed_elsewhere};

/// Finalizer of the IPAddresses of a pool, equal to the Go provider's.
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
    alone::reconcile(object, &ctx, None).await
}

async fn normal(
    ctx: &Context,
    object: &OpenStackFloatingIPPool,
    next: &mut OpenStackFloatingIPPool,
) -> Result<Action, Error> {
    let id = alone::prepare(ctx, object, next).await?;
    let cloud = alone::cloud(ctx, object).await?;
    alone::authenticated(ctx, next);
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

/// Takes back and deletes everything of the pool; returns the reason to wait, `None` at the end.
async fn take_down(
    ctx: &Context,
    object: &OpenStackFloatingIPPool,
    next: &mut OpenStackFloatingIPPool,
) -> Result<Option<String>, Error> {
    let Some(id) = alone::identity(ctx, object, next).await? else {
        return Ok(None);
    };
    let cloud = alone::cloud(ctx, object).await?;
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
