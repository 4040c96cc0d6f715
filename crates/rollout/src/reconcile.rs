//! One cloud: fetch, plan, apply, status.

use std::sync::Arc;

use api::openstack::FINALIZER;
use api::openstack::v1alpha1::OpenStack;
use deployer::{Cloud, Credentials};
use k8s_openapi::jiff::Timestamp;
use kube::runtime::controller::Action;
use kube::{Client, ResourceExt as _};
use operator::client::Api;
use operator::{finalizer, patch};
use tokio::sync::watch;

use crate::accounts::{AccountCache, INTERVAL, Look};
use crate::apply::{self, Applied};
use crate::described;
use crate::drain::{self, Drained, Drains};
use crate::problem::Problem;
use crate::releases::{Refused, Work};
use crate::remove;
use crate::rendered::Rendered;
use crate::schedules::Clock;
use crate::status::{self, Outcome};
use crate::view::{Seen, View};

/// Context of every reconcile.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) view: View,
    pub(crate) accounts: AccountCache,
    pub(crate) rendered: Rendered,
    pub(crate) drains: Drains,
    pub(crate) clock: Clock,
    pub(crate) looked: Option<Arc<watch::Sender<bool>>>,
}

/// Brings a cloud one step further.
pub(crate) async fn reconcile(
    object: Arc<OpenStack>,
    context: Arc<Context>,
) -> Result<Action, Problem> {
    let namespace = object.namespace().unwrap_or_default();
    let api: Api<OpenStack> = Api::namespaced(context.client.clone(), &namespace);
    context.view.ready().await;
    let seen = context.view.of(&namespace)?;
    if object.metadata.deletion_timestamp.is_some() {
        context.accounts.forget(&namespace);
        context.drains.forget(&namespace);
        let (client, rendered) = (&context.client, &context.rendered);
        if remove::remove(&api, &object, client, rendered, &seen).await? {
            rendered.forget(&namespace);
            context.view.forget(&namespace);
        }
        return Ok(Action::await_change());
    }
    if !finalizer::has(&*object, FINALIZER) {
        let added = finalizer::add(&api, &object, FINALIZER).await;
        added.map_err(Problem::api("adding the finalizer"))?;
        return Ok(Action::await_change());
    }
    let rest = Ok(Action::await_change());
    let (outcome, next) = match described::cloud(&object)? {
        Err(problem) => (Outcome::Invalid(problem), rest),
        Ok(_) if object.spec.paused => (Outcome::Paused, rest),
        Ok(cloud) => rolled_out(&context, &object, &cloud, &seen).await,
    };
    let mut after = (*object).clone();
    after.status = Some(status::next(&object, &outcome));
    let written = patch::status(&api, &object, &after).await;
    written.map_err(Problem::api("writing the status"))?;
    if let Some(looked) = &context.looked {
        looked.send_replace(true);
    }
    next
}

/// Plans, and executes the possible actions. Also returns the error of a failed request, or the time of the next look
/// at accounts.
async fn rolled_out(
    context: &Context,
    object: &OpenStack,
    cloud: &Cloud,
    seen: &Seen,
) -> (Outcome, Result<Action, Problem>) {
    let rest = Ok(Action::await_change());
    let missing = Credentials::missing(&cloud.name, &seen.objects);
    let has_secrets = object.status.as_ref().is_some_and(|it| it.uid.is_some());
    if has_secrets && !missing.is_empty() {
        return (Outcome::Conflict(lost(&missing)), rest);
    }
    let mut held = Credentials::complete(&cloud.name, &seen.objects, rand::random);
    let second = Timestamp::now().as_second();
    let unusable = deployer::fall_back(cloud, &mut held, second);
    let work = match Work::new(&context.rendered, object, cloud, &held, seen) {
        Ok(work) => work,
        Err(Refused::Invalid(why)) => return (Outcome::Invalid(why), rest),
        Err(Refused::Conflict(why)) => return (Outcome::Conflict(why), rest),
    };
    let look = Look {
        client: &context.client,
        cloud,
        graph: work.accounts(),
        held: &held,
        pods: &seen.pods,
    };
    let mut known = context.accounts.known(&look);
    let mut turn = work.turn(seen, &known);
    if !turn.plan.conflicts.is_empty() {
        return (Outcome::Conflict(turn.plan.conflicts.join("; ")), rest);
    }
    if unusable.is_none()
        && let Some(ended) = deployer::ended(cloud, &held, second)
    {
        // A certificate that is not valid yet becomes valid without any event.
        return (Outcome::Conflict(ended), Ok(Action::requeue(INTERVAL)));
    }
    if context
        .accounts
        .read_and_write(&look, &turn.progress, &mut known)
        .await
    {
        turn = work.turn(seen, &known);
    }
    turn.stand = turn.stand.map(|it| it.masked(&held));
    // A phase is recorded before its first action; the new status wakes the controller again.
    let applied = match work.is_recorded(&turn) {
        true => {
            apply::apply(
                &context.client,
                cloud,
                &turn.graph,
                &turn.progress,
                &seen.objects,
            )
            .await
        }
        false => Ok(Applied::Stopped),
    };
    let applied = match applied {
        Ok(Applied::All) => {
            apply::swap_all(&context.client, cloud, &turn.swaps, &seen.objects).await
        }
        other => other,
    };
    let (rejection, next) = match applied {
        Ok(Applied::All | Applied::Stopped) => (None, context.accounts.next(cloud)),
        Err(problem) => (problem.rejection(), Err(problem)),
    };
    let next = match work.operations(&context.client, seen, cloud, &turn).await {
        Ok(()) => next,
        Err(problem) => Err(problem),
    };
    let drains = drain::Look {
        accounts: &look,
        owner: object,
        seen,
        clock: &context.clock,
    };
    let (drained, next) = match missing.is_empty() {
        true => context.drains.look(&drains, next).await,
        false => (Drained::default(), next),
    };
    let uid = missing.is_empty().then(|| held.uid().to_owned());
    let mut warnings = deployer::upgrade::warnings(held.uid(), &seen.pods);
    warnings.extend(work.unsaved(seen, cloud));
    let warnings = warnings.into_iter();
    let outcome = Outcome::Progress {
        uid,
        release: work.entry(&turn, warnings.map(|it| held.masked(&it)).collect()),
        progress: status::masked(turn.progress, &held),
        rejection: rejection.map(|text| held.masked(&text)),
        unusable,
        drained: drained.summary.map(Box::new),
    };
    (outcome, next)
}

fn lost(missing: &[&str]) -> String {
    format!(
        "the cloud was made with passwords and keys in Secrets that are gone: {}. Restore them from a backup, or delete the cloud with its data",
        missing.join(", ")
    )
}
