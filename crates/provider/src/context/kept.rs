//! Objects with identity, finalizer and conditions. Identity and finalizer are stored in one patch, before the first
//! write to the cloud.

use std::fmt::Debug;

use api::conditions::{self, Reason, Status, Type, Verdict};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use api::k8s_openapi::jiff::Timestamp;
use kube::core::NamespaceResourceScope;
use kube::runtime::controller::Action;
use kube::{Resource, ResourceExt};
use operator::client::Api;
use operator::{finalizer, patch};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Context, Error, FALLBACK, namespace};
use crate::claims::SOON;
use crate::identity::Identity;
use crate::problem::Problem;

/// Kind of objects with identity, finalizer and conditions.
pub(crate) trait Kept:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    /// The annotation with the identity.
    const ID: &'static str;
    /// Finalizer of the objects.
    const FINALIZER: &'static str;

    /// [`Condition`]s in the status.
    fn conditions(&self) -> Option<&[Condition]>;

    /// [`Condition`]s in the status, of a new status if necessary.
    fn conditions_mut(&mut self) -> &mut Vec<Condition>;
}

/// Kind with a condition of its own besides Ready.
pub(crate) trait Served: Kept {
    /// [`Type`] of the condition about the resource of the object in the cloud.
    const MAIN: Type;

    /// Sets a condition to false, together with the summaries.
    fn not_ready(&mut self, now: Timestamp, type_: Type, reason: Reason, message: &str);
}

/// The objects of the kind in the namespace of `object`.
pub(crate) fn api<K: Kept>(ctx: &Context, object: &K) -> Api<K> {
    Api::namespaced(ctx.client.clone(), &namespace(object))
}

/// Stores identity and finalizer of `object` and the additions of `with`, all in one patch; returns the stored object.
pub(crate) async fn store<K: Kept>(
    ctx: &Context,
    object: &K,
    id: Identity,
    with: impl FnOnce(&mut K) + Send,
) -> Result<K, Error> {
    let mut wanted = object.clone();
    let annotations = wanted.annotations_mut();
    annotations.insert(K::ID.to_owned(), id.to_string());
    with(&mut wanted);
    if !finalizer::has(object, K::FINALIZER) {
        wanted.finalizers_mut().push(K::FINALIZER.to_owned());
    }
    if wanted.meta() == object.meta() {
        return Ok(wanted);
    }
    let stored = patch::object(&api(ctx, object), object, &wanted).await;
    let stored = stored.map_err(Error::kubernetes("storing identity and finalizer"))?;
    Ok(stored.unwrap_or(wanted))
}

/// Sets one condition.
pub(crate) fn condition<K: Kept>(
    object: &mut K,
    now: Timestamp,
    type_: Type,
    (holds, reason, message): (Status, Reason, &str),
) {
    let generation = object.meta().generation;
    let verdict = Verdict::new(type_, holds, reason).because(message);
    conditions::set(object.conditions_mut(), verdict, generation, now);
}

/// Sets the condition Paused.
pub(crate) fn paused<K: Kept>(object: &mut K, now: Timestamp, paused: bool) {
    let reason = match paused {
        true => Reason::Paused,
        false => Reason::NotPaused,
    };
    condition(object, now, Type::Paused, (paused.into(), reason, ""));
}

/// Reason and message of a condition.
pub(crate) fn reported<K: Kept>(object: &K, type_: Type) -> Option<(&str, &str)> {
    let known = conditions::find(object.conditions()?, type_)?;
    Some((&known.reason, &known.message))
}

/// Emits an event for a new problem.
pub(crate) async fn announce<K: Kept>(ctx: &Context, before: &K, after: &K, problem: &Problem) {
    let is_new = reported(before, problem.about) != reported(after, problem.about);
    if is_new && !problem.is_announced {
        let reason = problem.reason.as_str();
        ctx.recorder
            .warning(before, reason, "Reconcile", &problem.message)
            .await;
    }
}

/// Writes the differences between the statuses of `before` and `next`; both have the same resourceVersion.
pub(crate) async fn store_status<K: Kept>(
    ctx: &Context,
    before: &K,
    mut next: K,
) -> Result<(), Error> {
    let after = next.conditions().is_some().then(|| next.conditions_mut());
    super::steady(before.conditions(), after.map(Vec::as_mut_slice));
    let stored = patch::status(&api(ctx, before), before, &next).await;
    stored.map_err(Error::kubernetes("storing the status"))?;
    Ok(())
}

/// Reports a problem, stores `next` by `write`, and returns the time of the next reconcile.
pub(crate) async fn finish<K: Served, W>(
    ctx: &Context,
    object: &K,
    mut next: K,
    result: Result<Action, Error>,
    write: impl FnOnce(K) -> W + Send,
) -> Result<Action, Error>
where
    W: Future<Output = Result<(), Error>> + Send,
{
    if ctx.is_of_shutdown(&result) {
        return result;
    }
    if let Err(Error::Problem(problem)) = &result {
        next.not_ready(ctx.now(), problem.about, problem.reason, &problem.message);
        announce(ctx, object, &next, problem).await;
    }
    write(next).await?;
    match result {
        Err(Error::Behind) => Ok(Action::requeue(SOON)),
        result => result,
    }
}

/// End of a deletion; `left` is the reason to wait. `None`: nothing is left, and the finalizer is removed.
pub(crate) async fn let_go<K: Served>(
    ctx: &Context,
    object: &K,
    next: &mut K,
    left: Result<Option<String>, Error>,
) -> Result<Option<Action>, Error> {
    let now = ctx.now();
    let left = match left {
        Err(Error::Problem(problem)) => {
            let verdict = (Status::True, problem.reason, problem.message.as_str());
            condition(next, now, Type::Deleting, verdict);
            return Err(problem.into());
        }
        other => other?,
    };
    let Some(text) = left else {
        let removed = finalizer::remove(&api(ctx, object), object, K::FINALIZER).await;
        removed.map_err(Error::kubernetes("removing the finalizer"))?;
        return Ok(None);
    };
    let verdict = (Status::True, Reason::WaitingForDeletion, text.as_str());
    condition(next, now, Type::Deleting, verdict);
    next.not_ready(now, K::MAIN, Reason::Deleting, &text);
    Ok(Some(Action::requeue(FALLBACK)))
}
