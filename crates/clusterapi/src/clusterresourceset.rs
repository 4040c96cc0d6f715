//! Controller of [`ClusterResourceSet`]: applies manifests from ConfigMaps and Secrets to workload clusters.
//!
//! Reconcile: the selected Clusters with their bindings → the due resources → apply → bindings → status. A connection
//! to a workload cluster triggers its sets. ConfigMaps and Secrets are watched by their metadata, and read only when
//! due or changed.
//!
//! ```text
//!   source     ConfigMaps and Secrets: watches, reads, owners
//!   manifest   the objects in their data (pure)
//!   apply      objects in a workload cluster
//!   binding    applied resources of each Cluster, and the end of this record
//!   plan       due resources, and the condition (pure)
//! ```

use std::sync::Arc;

use api::addons::FINALIZER;
use api::addons::v1beta2::{ClusterResourceSet, ClusterResourceSetBinding};
use api::core::v1beta2::Cluster;
use api::kube::ResourceExt;
use api::kube::runtime::controller::Action;
use api::kube::runtime::reflector::ObjectRef;
use futures::future::{BoxFuture, join_all};
use futures::{FutureExt, Stream, StreamExt, stream};
use operator::controller::RESYNC;
use operator::{finalizer, patch};

use crate::duties::Duties;
use crate::error::{Doing, Error, is_absent};
use crate::feed::{Feed, Memory};
use crate::remote::{Change, ClusterKey};
use crate::summary::FIRST_NODE;
use crate::{Context, news, pause, selector};

mod apply;
mod binding;
mod manifest;
mod plan;
mod source;

use plan::Outcome;
use source::{Hashes, Source, Sources};

/// Maximum number of Clusters in work for one set.
const AT_A_TIME: usize = 16;

/// Shared [`Context`], with further state for sets.
struct Runner {
    context: Arc<Context>,
    bindings: Feed<ClusterResourceSetBinding>,
    sources: Sources,
    hashes: Memory<ClusterResourceSet, Hashes>,
}

impl std::ops::Deref for Runner {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

/// Runs the controllers of both kinds until shutdown.
pub(crate) fn run(context: &Arc<Context>) -> BoxFuture<'static, ()> {
    let sets: Feed<ClusterResourceSet> = context.feed();
    let bindings: Feed<ClusterResourceSetBinding> = context.feed();
    let (sources, changed) = Sources::start(context, &sets);
    let triggers = stream::select(triggers(context, &sets, &bindings), changed);
    let controller = sets.controller().reconcile_on(triggers);
    let cleanup = binding::run(context, &bindings);
    let known = bindings.store().clone();
    let context = context.of("clusterresourceset");
    let settings = context.settings();
    let runner = Arc::new(Runner {
        hashes: sets.memory(),
        context,
        bindings,
        sources,
    });
    let apply = operator::controller::run(controller, reconcile, runner, settings);
    let both = async move {
        // Without the bindings, everything would be applied again. Fails at shutdown only.
        if operator::store::listed(&known).await {
            futures::join!(apply, cleanup);
        }
    };
    both.boxed()
}

/// Triggers besides the set and its resources: the selected Clusters, their connections, and the bindings.
fn triggers(
    context: &Arc<Context>,
    sets: &Feed<ClusterResourceSet>,
    bindings: &Feed<ClusterResourceSetBinding>,
) -> impl Stream<Item = ObjectRef<ClusterResourceSet>> + Send + use<> {
    let ctx = Arc::clone(context);
    let connected = context.remote.changes().filter_map(move |change| {
        let cluster = match change {
            Change::Connected(key) | Change::Disconnected(key) => {
                ctx.clusters.get(&key.namespace, &key.name)
            }
            Change::Node { .. } => None,
        };
        std::future::ready(cluster)
    });
    let of_bindings = bindings.touched().flat_map(|binding| {
        let namespace = binding.namespace().unwrap_or_default();
        let sets = binding.spec.bindings.iter().flatten();
        let names = sets
            .map(|set| ObjectRef::new(&set.cluster_resource_set_name).within(namespace.as_str()));
        stream::iter(names.collect::<Vec<_>>())
    });
    let sets = sets.clone();
    let of_clusters =
        stream::select(context.clusters.touched(), connected).flat_map(move |cluster| {
            let namespace = cluster.namespace().unwrap_or_default();
            let selecting = sets.in_namespace(&namespace, |set| selects(set, &cluster));
            let found = selecting
                .iter()
                .map(|set| ObjectRef::from_obj(set.as_ref()));
            stream::iter(found.collect::<Vec<_>>())
        });
    stream::select(of_clusters, of_bindings)
}

/// True if the set selects the [`Cluster`].
fn selects(set: &ClusterResourceSet, cluster: &Cluster) -> bool {
    set.namespace() == cluster.namespace()
        && selector::matches(&set.spec.cluster_selector, cluster.labels())
}

async fn reconcile(set: Arc<ClusterResourceSet>, runner: Arc<Runner>) -> Result<Action, Error> {
    if set.is_deleting() {
        return binding::release_all(&runner, &set).await;
    }
    if let Some(why) = pause::reason(None, set.as_ref()) {
        return paused(&runner, &set, &why).await;
    }
    if !finalizer::has(set.as_ref(), FINALIZER) {
        let api = runner.api::<ClusterResourceSet>(&set.namespace().unwrap_or_default());
        let added = finalizer::add(&api, &set, FINALIZER).await;
        added.doing(|| of("changing", &set))?;
        return Ok(Action::await_change());
    }
    let targets = targets(&runner, &set);
    let mut duties = Duties::default();
    let sources = source::fetch(&runner, &set, &targets, &mut duties).await;
    let Some(sources) = duties.note(sources) else {
        return undecided(&runner, &set, duties).await;
    };
    let outcomes = apply_to_all(&runner, &set, &targets, &sources, &mut duties).await;
    let is_connecting = |(_, outcome): &(_, Outcome)| *outcome == Outcome::Connecting;
    if outcomes.len() < targets.len() || outcomes.iter().any(is_connecting) {
        // After a restart: the reported condition stays until the first attempt to connect ends.
        return undecided(&runner, &set, duties).await;
    }
    let stored = write(&runner, &set, &outcomes, &duties).await;
    duties.done().and(stored)?;
    match plan::to_retry(&outcomes) {
        Some(problem) => Err(Error::NotApplied {
            action: of("applying", &set),
            problem,
        }),
        None => Ok(Action::requeue(RESYNC)),
    }
}

/// Reports failures; the reported state of the resources stays.
async fn undecided(
    runner: &Runner,
    set: &ClusterResourceSet,
    duties: Duties<Error>,
) -> Result<Action, Error> {
    let mut after = set.clone();
    let list = &mut after.status.get_or_insert_default().conditions;
    duties.report(list, set.metadata.generation, runner.now());
    let stored = store(runner, set, &after).await;
    duties.done().and(stored)?;
    Ok(Action::requeue(RESYNC))
}

/// Selected Cluster, with its applied resources.
struct Target {
    cluster: Arc<Cluster>,
    binding: Option<Arc<ClusterResourceSetBinding>>,
}

impl Target {
    /// Entries of the binding for `set`.
    fn bound(&self, set: &ClusterResourceSet) -> &[api::addons::v1beta2::ResourceBinding] {
        let binding = self.binding.as_deref();
        binding.map_or(&[], |binding| binding.of_set(&set.name_any()))
    }
}

/// Selected Clusters, sorted by name, without Clusters being deleted.
fn targets(runner: &Runner, set: &ClusterResourceSet) -> Vec<Target> {
    let namespace = set.namespace().unwrap_or_default();
    let is_target =
        |cluster: &Cluster| selects(set, cluster) && cluster.metadata.deletion_timestamp.is_none();
    let selected = runner
        .clusters
        .in_namespace(&namespace, is_target)
        .into_iter();
    selected
        .map(|cluster| {
            let binding = runner.bindings.get(&namespace, &cluster.name_any());
            Target { cluster, binding }
        })
        .collect()
}

/// Applies the due resources to each Cluster. Returns the outcomes with the names of the Clusters, without Clusters
/// of unknown state.
async fn apply_to_all(
    runner: &Runner,
    set: &ClusterResourceSet,
    targets: &[Target],
    sources: &[Source],
    duties: &mut Duties<Error>,
) -> Vec<(String, Outcome)> {
    let mut outcomes = Vec::new();
    for some in targets.chunks(AT_A_TIME) {
        let tasks = some
            .iter()
            .map(|target| apply_to(runner, set, target, sources));
        for (target, outcome) in some.iter().zip(join_all(tasks).await) {
            let outcome = duties.note(outcome);
            outcomes.extend(outcome.map(|it| (target.cluster.name_any(), it)));
        }
    }
    outcomes
}

/// Applies the due resources to one Cluster, and records them in the binding.
async fn apply_to(
    runner: &Runner,
    set: &ClusterResourceSet,
    target: &Target,
    sources: &[Source],
) -> Result<Outcome, Error> {
    let bound = target.bound(set);
    let due = |source: &&Source| {
        plan::is_due(
            bound,
            &source.resource,
            set.strategy(),
            source.hash.as_deref(),
        )
    };
    let due: Vec<_> = sources.iter().filter(due).collect();
    if due.is_empty() {
        return Ok(Outcome::Applied);
    }
    let cluster = &target.cluster;
    let key = ClusterKey::new(cluster.namespace().unwrap_or_default(), cluster.name_any());
    if let Some(why) = obstacle(target) {
        return Ok(Outcome::Waiting(why));
    }
    let client = match runner.remote.client(&key) {
        Ok(client) => client,
        Err(missing) if missing.connecting => return Ok(Outcome::Connecting),
        Err(missing) => return Ok(Outcome::Waiting(missing.reason)),
    };
    let mut workload = apply::Workload::new(client, set.strategy());
    let (mut results, mut problems) = (Vec::new(), Vec::new());
    for source in due {
        let found = match &source.manifests {
            Ok(manifests) => workload.apply(&source.resource, manifests).await,
            Err(problem) => vec![problem.clone()],
        };
        results.push(plan::result(source, found.is_empty(), runner.now()));
        problems.extend(found);
    }
    binding::record(runner, set, target, results).await?;
    Ok(match problems.is_empty() {
        true => Outcome::Applied,
        false => Outcome::Failed(problems),
    })
}

/// Reason why nothing can be applied to the Cluster yet.
fn obstacle(target: &Target) -> Option<String> {
    let binding = target.binding.as_deref();
    if target.cluster.is_paused() {
        Some("The Cluster is paused".to_owned())
    } else if !target.cluster.control_plane_initialized() {
        Some(FIRST_NODE.to_owned())
    } else if binding.is_some_and(ClusterResourceSetBinding::is_deleting) {
        Some("The ClusterResourceSetBinding is being deleted".to_owned())
    } else {
        None
    }
}

/// Writes the conditions.
async fn write(
    runner: &Runner,
    set: &ClusterResourceSet,
    outcomes: &[(String, Outcome)],
    duties: &Duties<Error>,
) -> Result<(), Error> {
    let (now, generation) = (runner.now(), set.metadata.generation);
    let mut after = set.clone();
    let status = after.status.get_or_insert_default();
    status.observed_generation = generation;
    match plan::verdict(outcomes) {
        Some(verdict) => {
            api::conditions::set(&mut status.conditions, verdict, generation, now);
        }
        None => status
            .conditions
            .retain(|condition| condition.type_ != plan::APPLIED),
    }
    pause::record(&mut status.conditions, None, generation, now);
    duties.report(&mut status.conditions, generation, now);
    store(runner, set, &after).await
}

async fn paused(runner: &Runner, set: &ClusterResourceSet, why: &str) -> Result<Action, Error> {
    let mut after = set.clone();
    let status = after.status.get_or_insert_default();
    let generation = set.metadata.generation;
    pause::record(&mut status.conditions, Some(why), generation, runner.now());
    store(runner, set, &after).await?;
    Ok(Action::requeue(RESYNC))
}

async fn store(
    runner: &Runner,
    set: &ClusterResourceSet,
    after: &ClusterResourceSet,
) -> Result<(), Error> {
    let api = runner.api::<ClusterResourceSet>(&set.namespace().unwrap_or_default());
    match patch::status(&api, set, after).await {
        Err(error) if is_absent(&error) => return Ok(()),
        other => other.doing(|| of("writing the status of", set))?,
    };
    let list = |it: &ClusterResourceSet| it.status.clone().unwrap_or_default().conditions;
    news::publish(runner, set, news::pause(&list(set), &list(after))).await;
    Ok(())
}

/// `action ClusterResourceSet namespace/name`, for errors.
fn of(action: &str, set: &ClusterResourceSet) -> String {
    let namespace = set.namespace().unwrap_or_default();
    format!("{action} ClusterResourceSet {namespace}/{}", set.name_any())
}
