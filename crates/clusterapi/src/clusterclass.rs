//! Controller of [`ClusterClass`]: becomes an owner of the templates, and reports in the status if Clusters can use
//! the class.
//!
//! Reconcile: read the templates → own them → status (pure). Clusters wait for `status.observedGeneration`, written
//! only when all templates exist and all variables can be compiled.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::core::v1beta2::{ClusterClass, VersionedReference};
use api::kube::ResourceExt;
use api::kube::runtime::controller::Action;
use api::kube::runtime::reflector::ObjectRef;
use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt, stream};
use operator::controller::RESYNC;
use operator::patch;

use crate::error::{Doing, is_absent};
use crate::feed::Feed;
use crate::references::contract;
use crate::{Context, Error, duties, news, owners, pause};

mod status;

/// Runs the controller until shutdown.
pub(crate) fn run(context: &Arc<Context>, classes: &Feed<ClusterClass>) -> BoxFuture<'static, ()> {
    let controller = classes
        .controller()
        .reconcile_on(triggers(context, classes));
    let context = context.of("clusterclass");
    let settings = context.settings();
    operator::controller::run(controller, reconcile, context, settings).boxed()
}

/// Triggers besides the class: its templates, including new ones.
fn triggers(
    context: &Arc<Context>,
    classes: &Feed<ClusterClass>,
) -> impl Stream<Item = ObjectRef<ClusterClass>> + Send + use<> {
    let classes = classes.clone();
    context.external.changes().flat_map(move |change| {
        let found = classes.referring_to(&change.namespace, &change.reference);
        let found = found
            .into_iter()
            .map(|class| ObjectRef::from_obj(class.as_ref()));
        stream::iter(found.collect::<Vec<_>>())
    })
}

async fn reconcile(class: Arc<ClusterClass>, ctx: Arc<Context>) -> Result<Action, Error> {
    if class.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let paused = pause::reason(None, class.as_ref());
    let seen = match &paused {
        Some(_) => Templates::default(),
        None => add_ownership(&ctx, &class).await,
    };
    let after = match &paused {
        Some(why) => status::paused(&class, why, ctx.now()),
        None => status::desired(&class, &seen, ctx.now()),
    };
    store(&ctx, &class, &after).await?;
    match seen.problem {
        Some(problem) => Err(problem),
        None => Ok(Action::requeue(RESYNC)),
    }
}

/// Observed templates of a class.
#[derive(Debug, Default)]
pub(super) struct Templates {
    /// References with an outdated version, each with the latest version of the contract.
    pub(super) outdated: Vec<(VersionedReference, String)>,
    /// Problems of templates, one sentence each.
    pub(super) problems: Vec<String>,
    /// The first error.
    pub(super) problem: Option<Error>,
}

/// Reads each template, and adds the class as its owner.
async fn add_ownership(ctx: &Context, class: &ClusterClass) -> Templates {
    let mut seen = Templates::default();
    let mut known = BTreeSet::new();
    for (_, reference) in class.templates() {
        let key = (&reference.api_version, &reference.kind, &reference.name);
        if !known.insert(key) {
            continue;
        }
        if let Err(error) = add_owner(ctx, class, reference, &mut seen).await {
            // A write conflict is repeated at once.
            seen.problems.extend(duties::reported(&error));
            seen.problem.get_or_insert(error);
        }
    }
    seen
}

async fn add_owner(
    ctx: &Context,
    class: &ClusterClass,
    reference: &VersionedReference,
    seen: &mut Templates,
) -> Result<(), Error> {
    let (plain, namespace) = (contract(reference), class.namespace().unwrap_or_default());
    let kind = ctx.external.kind(&plain.api_group, &plain.kind).await?;
    if kind.resource.api_version != reference.api_version {
        seen.outdated
            .push((reference.clone(), kind.resource.api_version));
    }
    let Some(template) = ctx.external.get(&plain, &namespace).await? else {
        // The creation of the template triggers the class.
        let sentence = format!("{} {namespace}/{} does not exist", plain.kind, plain.name);
        seen.problems.push(sentence);
        return Ok(());
    };
    let owner = owners::owner(class);
    ctx.external
        .ensure_owner(&template, &owner, &BTreeMap::new())
        .await?;
    Ok(())
}

async fn store(ctx: &Context, class: &ClusterClass, after: &ClusterClass) -> Result<(), Error> {
    let api = ctx.api::<ClusterClass>(&class.namespace().unwrap_or_default());
    match patch::status(&api, class, after).await {
        Err(error) if is_absent(&error) => return Ok(()),
        other => other.doing(|| of("writing the status of", class))?,
    };
    let list = |it: &ClusterClass| it.status.clone().unwrap_or_default().conditions;
    news::publish(ctx, class, news::pause(&list(class), &list(after))).await;
    Ok(())
}

/// `action ClusterClass namespace/name`, for errors.
fn of(action: &str, class: &ClusterClass) -> String {
    let namespace = class.namespace().unwrap_or_default();
    format!("{action} ClusterClass {namespace}/{}", class.name_any())
}
