//! Deletion of a cluster: first its machines go, then everything with its mark.

use std::time::Duration;

use api::conditions::{Reason, Status, Type};
use api::core::v1beta2::Cluster;
use api::deletion::Wanted;
use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use api::names::WORKLOAD_UID_ANNOTATION;
use kube::ResourceExt;
use kube::core::PartialObjectMeta;
use kube::runtime::controller::Action;
use openstack::Kind;
use operator::client::Api;
use operator::finalizer;
use operator::retry::When;

use super::apply::{Outcome, Work, kinds};
use super::leftovers::{self, Leftovers};
use super::observed::Observed;
use super::prepare::prepare;
use super::{FINALIZER, age, bastion, labelled, plan, request};
use crate::application_credentials;
use crate::claims::SOON;
use crate::context::kept::{self, api};
use crate::context::{self, Context, Error, FALLBACK, namespace};
use crate::credentials;
use crate::identity::{CLUSTER_ID, Identity};
use crate::placement;
use crate::problem::Problem;

/// Reason of a waiting deletion, with the time of the next check.
struct Waiting {
    reason: Reason,
    message: String,
    action: Result<Action, Error>,
}

/// Deletes all resources with the mark of the cluster, then removes the finalizer.
pub(super) async fn delete(
    ctx: &Context,
    object: &OpenStackCluster,
    cluster: Option<&Cluster>,
) -> Result<Action, Error> {
    if !finalizer::has(object, FINALIZER) {
        return Ok(Action::await_change());
    }
    let (object, left) = match prepare(ctx, object).await {
        Ok(stored) => {
            let left = left(ctx, &stored, cluster).await;
            (stored, left)
        }
        Err(error) => (object.clone(), Err(error)),
    };
    if ctx.is_of_shutdown(&left) {
        return left.map(|_| Action::await_change());
    }
    match waiting(left) {
        Ok(Some(waiting)) => store(ctx, &object, waiting).await,
        Ok(None) => release(ctx, &object).await,
        Err(Error::Behind) => Ok(Action::requeue(SOON)),
        Err(error) => Err(error),
    }
}

/// Rest of the cluster: first the machines, then resources with the mark; `None` at the end.
async fn left(
    ctx: &Context,
    object: &OpenStackCluster,
    cluster: Option<&Cluster>,
) -> Result<Option<String>, Error> {
    match machines_left(ctx, object, cluster).await? {
        Some(machines) => Ok(Some(machines)),
        None => take_down(ctx, object, cluster).await,
    }
}

/// Text of the conditions about `left`; `None` when nothing is left.
///
/// # Errors
/// Errors not reported in the conditions of this object.
fn waiting(left: Result<Option<String>, Error>) -> Result<Option<Waiting>, Error> {
    let (reason, message, action) = match left {
        Ok(None) => return Ok(None),
        Ok(Some(message)) => {
            let again = Ok(Action::requeue(FALLBACK));
            (Reason::WaitingForDeletion, message, again)
        }
        Err(Error::Problem(problem)) => {
            let message = undeletable(&problem);
            (problem.reason, message, Err(Error::Problem(problem)))
        }
        Err(error) => return Err(error),
    };
    Ok(Some(Waiting {
        reason,
        message,
        action,
    }))
}

/// Stores the reason of the wait, and emits an event for a new problem.
async fn store(
    ctx: &Context,
    object: &OpenStackCluster,
    waiting: Waiting,
) -> Result<Action, Error> {
    let Waiting {
        reason,
        message,
        action,
    } = waiting;
    let mut next = object.clone();
    let now = ctx.now();
    let verdict = (Status::True, reason, message.as_str());
    kept::condition(&mut next, now, Type::Deleting, verdict);
    let ready = (Status::False, Reason::Deleting, message.as_str());
    kept::condition(&mut next, now, Type::Ready, ready);
    if let Err(Error::Problem(problem)) = &action {
        kept::announce(ctx, object, &next, problem).await;
    }
    kept::store_status(ctx, object, next).await?;
    action
}

/// Removes the finalizer: nothing of the cluster is left.
async fn release(ctx: &Context, object: &OpenStackCluster) -> Result<Action, Error> {
    if object.spec.bastion.is_some() {
        bastion::pool::give_back(ctx, object).await?;
    }
    let removed = finalizer::remove(&api(ctx, object), object, FINALIZER).await;
    removed.map_err(Error::kubernetes("removing the finalizer"))?;
    Ok(Action::await_change())
}

/// Reason why a deletion cannot continue, and what to do.
fn undeletable(problem: &Problem) -> String {
    match problem.about {
        Type::OpenStackAuthenticationSucceeded => format!(
            "{}. Nothing in the cloud can be deleted until this is fixed (if nothing of the \
             cluster is left there, remove the finalizer {FINALIZER})",
            problem.message.trim_end_matches('.')
        ),
        _ => problem.message.clone(),
    }
}

/// Deletes the resources with the mark of the cluster, and returns the reason to wait; `None` when none is left.
async fn take_down(
    ctx: &Context,
    object: &OpenStackCluster,
    cluster: Option<&Cluster>,
) -> Result<Option<String>, Error> {
    let Some(id) = Identity::for_object(object, CLUSTER_ID) else {
        return Ok(None);
    };
    let inner = inner(ctx, object, cluster).await?;
    let identity_ref = &object.spec.identity_ref;
    let cloud = credentials::cloud(ctx.access(), &namespace(object), identity_ref).await?;
    let mut kinds = kinds(&cloud, false, true).await.to_vec();
    kinds.extend(placement::is_used(object).then_some(Kind::ServerGroups));
    let work = Work {
        object,
        recorder: &ctx.recorder,
        cloud: &cloud,
        cluster: id,
        unmonitored: &ctx.unmonitored,
        kinds: &kinds,
        age: age(object),
    };
    if let Some(wait) = bastion::remove(&work).await? {
        return Ok(Some(wait));
    }
    read_of_others(&work).await?;
    if let Some((uid, wanted)) = &inner
        && let Some(wait) = remove_leftovers(&work, uid, *wanted).await?
    {
        return Ok(Some(wait));
    }
    let existing = existing_router(object);
    let plan = |observed: &Observed| plan::plan_deletion(observed, existing);
    let outcome = work.apply(plan, request::deletion).await?;
    if let Some(wait) = wait(outcome)? {
        return Ok(Some(wait));
    }
    // The view can be out of date: before the finalizer is removed, the cloud is read again.
    let now = work.observe(work.kinds, Duration::ZERO).await?;
    let is_gone =
        |(uid, wanted): &(String, Wanted)| Leftovers::for_uid(&now.view, uid).is_gone(*wanted);
    let is_empty = now.is_empty() && inner.as_ref().is_none_or(is_gone);
    if is_empty {
        // The programs are gone with the machines.
        application_credentials::end(ctx, object, &cloud, id).await?;
    }
    let again = "something that carries the cluster's mark appeared again";
    Ok((!is_empty).then(|| again.to_owned()))
}

/// Uid in the marks of a cluster's own programs, and the choice of their resources to delete with the cluster; `None`
/// if nothing is to be deleted.
///
/// # Errors
/// Another [`Cluster`] has the same uid recorded: one of the two is wrong.
async fn inner(
    ctx: &Context,
    object: &OpenStackCluster,
    cluster: Option<&Cluster>,
) -> Result<Option<(String, Wanted)>, Error> {
    let Some(cluster) = cluster.filter(|it| context::is_deleting(*it)) else {
        return Ok(None);
    };
    let wanted = Wanted::from_cluster(cluster)
        .map_err(|message| Problem::new(Type::Deleting, Reason::InvalidClusterSpec, message))?;
    if wanted.is_nothing() {
        return Ok(None);
    }
    let Some(uid) = leftovers::uid(cluster) else {
        let text = "The API server of the cluster never answered, so that its uid is not known: what its Services and claims \
                    may have created stays";
        let recorder = &ctx.recorder;
        recorder
            .warning(object, "WorkloadClusterUnknown", "Delete", text)
            .await;
        return Ok(None);
    };
    let clusters: Api<Cluster> = match &ctx.options.namespace {
        Some(namespace) => Api::namespaced(ctx.client.clone(), namespace),
        None => Api::all(ctx.client.clone()),
    };
    let all = clusters.list_metadata(&Default::default()).await;
    let all = all.map_err(Error::kubernetes("listing Clusters"))?.items;
    let same = |other: &&PartialObjectMeta<Cluster>| {
        let recorded = other.annotations().get(WORKLOAD_UID_ANNOTATION);
        other.uid() != cluster.uid() && recorded.is_some_and(|it| it == uid)
    };
    if let Some(other) = all.iter().find(same) {
        let message = format!(
            "annotation {WORKLOAD_UID_ANNOTATION}: Cluster {} in namespace {} has the same, so that what Services and claims \
             created may be that one's: remove the annotation from the Cluster that is not {uid}",
            other.name_any(),
            namespace(other)
        );
        return Err(Problem::new(Type::Deleting, Reason::IdentityShared, message).into());
    }
    Ok(Some((uid.to_owned(), wanted)))
}

/// Deletes the rest of Services and claims. The machines are gone, and with them the programs that would create these
/// resources again.
async fn remove_leftovers(
    work: &Work<'_>,
    uid: &str,
    wanted: Wanted,
) -> Result<Option<String>, Problem> {
    let plan_of = |observed: &Observed| leftovers::plan(observed, uid, wanted);
    let known = work.observe(work.kinds, work.age).await?;
    if plan_of(&known)
        .steps
        .iter()
        .any(|step| matches!(step, plan::Step::DeleteBalancer(_)))
    {
        // With a load balancer goes the evidence whose its floating IP and its group are.
        let kinds = [Kind::FloatingIps, Kind::SecurityGroups, Kind::Ports];
        work.observe(&kinds, Duration::ZERO).await?;
    }
    wait(work.apply(plan_of, request::deletion).await?)
}

/// Reads the load balancers: a Service's load balancer, made or deleted just before, decides about the deletion of the
/// router. The conditions also name its floating IP.
async fn read_of_others(work: &Work<'_>) -> Result<(), Problem> {
    if !work.kinds.contains(&Kind::LoadBalancers) {
        return Ok(());
    }
    let known = work.observe(&[Kind::LoadBalancers], Duration::ZERO).await?;
    if plan::holds_load_balancers(&known) {
        work.observe(&[Kind::FloatingIps], Duration::ZERO).await?;
    }
    Ok(())
}

/// Id of the router selected by the spec.
fn existing_router(object: &OpenStackCluster) -> Option<&str> {
    let status = object.status.as_ref()?;
    let router = status.router.as_ref();
    let router = router.filter(|_| object.spec.router.is_some());
    router.map(|router| router.id.as_str())
}

/// Reason to wait for the cloud.
///
/// # Errors
/// [`Problem`] that stopped the plan, or that needs intervention.
fn wait(outcome: Outcome) -> Result<Option<String>, Problem> {
    if let Some(problem) = outcome.problem {
        return Err(problem);
    }
    let waits = outcome.plan.waits;
    if let Some(wait) = waits.iter().find(|wait| wait.is_stuck) {
        let (about, reason) = (Type::Deleting, Reason::WaitingForDeletion);
        let mut problem = Problem::new(about, reason, wait.message.clone());
        problem.when = When::After(FALLBACK);
        return Err(problem);
    }
    Ok(waits.into_iter().next().map(|wait| wait.message))
}

/// Machines to be deleted first.
async fn machines_left(
    ctx: &Context,
    object: &OpenStackCluster,
    cluster: Option<&Cluster>,
) -> Result<Option<String>, Error> {
    let name = cluster.map(ResourceExt::name_any);
    let Some(name) = name.or_else(|| context::of_cluster(object).map(str::to_owned)) else {
        return Ok(None);
    };
    let machines = Api::<OpenStackMachine>::namespaced(ctx.client.clone(), &namespace(object));
    let machines = machines.list_metadata(&labelled(&name)).await;
    let machines = machines
        .map_err(Error::kubernetes("listing machines"))?
        .items;
    if machines.is_empty() {
        return Ok(None);
    }
    let names: Vec<_> = machines.iter().map(ResourceExt::name_any).collect();
    let names = crate::resolve::names(names.iter().map(String::as_str));
    Ok(Some(format!(
        "waiting for {} machines to be deleted: {names}",
        machines.len()
    )))
}
