//! OpenStackCluster: network, router, security groups, and what leads to the API server.

pub(crate) mod apply;
pub mod desired;
pub mod facts;
pub mod observed;
pub mod plan;
pub mod request;
pub mod rules;
mod status;

use std::sync::Arc;
use std::time::Duration;

use api::conditions::Status;
use api::core::v1beta2::{Cluster, Machine};
use api::infra::v1beta2::{OpenStackCluster, OpenStackClusterSpec, OpenStackMachine};
use kube::api::ListParams;
use kube::core::PartialObjectMeta;
use kube::runtime::controller::Action;
use kube::{Api, ResourceExt};
use openstack::{Cloud, Kind};
use operator::decode::{self, Decoded, NotDecoded};
use operator::{finalizer, patch};
use tracing::instrument;

use self::apply::{Outcome, Work};
use self::desired::{ControlPlaneMachine, Desired, balancer_spec};
use self::observed::Observed;
use crate::context::{
    self, Context, Error, FALLBACK, is_deleting, is_managed_elsewhere, is_paused, namespace,
};
use crate::credentials;
use crate::identity::{CLUSTER_ID, Identity, MACHINE_ID, Mark};
use crate::names::Names;
use crate::problem::Problem;
use crate::reason::{Reason, Type};

/// The finalizer of OpenStackClusters, the Go provider's.
pub const FINALIZER: &str = "openstackcluster.infrastructure.cluster.x-k8s.io";

/// Brings one OpenStackCluster and its part of the cloud closer to its spec.
#[instrument(skip_all, fields(object = %object.name_any()))]
pub(crate) async fn reconcile(
    object: Arc<OpenStackCluster>,
    ctx: Arc<Context>,
) -> Result<Action, Error> {
    if is_managed_elsewhere(object.as_ref()) {
        return Ok(Action::await_change());
    }
    let cluster = context::owner_cluster(&ctx.client, object.as_ref()).await?;
    if is_paused(object.as_ref(), cluster.as_ref()) {
        return pause(&ctx, &object).await;
    }
    if is_deleting(object.as_ref()) {
        return delete(&ctx, &object, cluster.as_ref()).await;
    }
    let Some(cluster) = cluster else {
        return Ok(Action::await_change());
    };
    let (object, prepared) = match prepare(&ctx, &object).await {
        Ok(stored) => (stored, Ok(())),
        Err(error) => (OpenStackCluster::clone(&object), Err(error)),
    };
    let mut next = object.clone();
    not_paused(&mut next, &ctx);
    let result = match prepared {
        Ok(()) => normal(&ctx, &object, &mut next, &cluster).await,
        Err(error) => Err(error),
    };
    finish(&ctx, &object, next, result).await
}

/// Stores identity and finalizer, both in one patch, before anything is made.
async fn prepare(ctx: &Context, object: &OpenStackCluster) -> Result<OpenStackCluster, Error> {
    let known = Identity::of(object, CLUSTER_ID).is_some();
    if known && finalizer::has(object, FINALIZER) {
        return Ok(object.clone());
    }
    if known {
        unique(ctx, object).await?;
    }
    let mut next = object.clone();
    if !known {
        let id = Identity::new().to_string();
        next.annotations_mut().insert(CLUSTER_ID.to_owned(), id);
    }
    if !finalizer::has(object, FINALIZER) {
        next.finalizers_mut().push(FINALIZER.to_owned());
    }
    let stored = patch::object(&api(ctx, object), object, &next).await;
    let stored = stored.map_err(Error::kubernetes("storing identity and finalizer"))?;
    Ok(stored.unwrap_or(next))
}

/// Refuses an identity that another object has, too: whoever copies an object with its annotations
/// would share its network with the copy, and lose it when the copy is deleted.
async fn unique(ctx: &Context, object: &OpenStackCluster) -> Result<(), Error> {
    let Some(id) = Identity::of(object, CLUSTER_ID) else {
        return Ok(());
    };
    let all: Api<OpenStackCluster> = match &ctx.options.namespace {
        Some(namespace) => Api::namespaced(ctx.client.clone(), namespace),
        None => Api::all(ctx.client.clone()),
    };
    let all = all.list_metadata(&ListParams::default()).await;
    let all = all.map_err(Error::kubernetes("listing OpenStackClusters"))?;
    let same = |other: &&PartialObjectMeta<OpenStackCluster>| {
        other.uid() != object.uid() && Identity::of(*other, CLUSTER_ID) == Some(id)
    };
    let Some(other) = all.iter().find(same) else {
        return Ok(());
    };
    let text = format!(
        "OpenStackCluster {}/{} has the same annotation {CLUSTER_ID}: remove it from the copy, \
         which then gets an identity of its own",
        namespace(other),
        other.name_any()
    );
    Err(Problem::new(Type::Ready, Reason::InvalidClusterSpec, text).into())
}

/// Does everything that can be done now.
async fn normal(
    ctx: &Context,
    object: &OpenStackCluster,
    next: &mut OpenStackCluster,
    cluster: &Cluster,
) -> Result<Progress, Error> {
    let Some(id) = Identity::of(object, CLUSTER_ID) else {
        return Ok(Progress::Settled);
    };
    let identity_ref = &object.spec.identity_ref;
    let cloud =
        credentials::cloud(&ctx.client, &ctx.clouds, &namespace(object), identity_ref).await?;
    let kinds = kinds(&cloud, &object.spec).await;
    let work = Work {
        object,
        recorder: &ctx.recorder,
        cloud: &cloud,
        cluster: id,
        kinds: &kinds,
    };
    let observed = work.observe(apply::FRESH).await?;
    let machines = control_plane(ctx, object, cluster, &observed).await?;
    let names = Names::new(&namespace(object), &cluster.name_any());
    let facts = facts::facts(&object.spec, Mark::cluster(id), names, &observed, machines)?;
    for (reason, text) in &facts.warnings {
        let recorded = ctx
            .recorder
            .warning(object, reason, "CreateLoadBalancer", text);
        recorded.await;
    }
    let desired = desired::desired(&object.spec, &facts);
    let plan = |observed: &Observed| plan::plan(&desired, observed);
    let request =
        |step: &plan::Step, observed: &Observed| request::request(step, &desired, observed);
    let outcome = work.apply(plan, request).await?;
    Ok(show(ctx, &object.spec, next, &desired, outcome))
}

/// The kinds of resources that this spec needs a look at.
async fn kinds(cloud: &Cloud, spec: &OpenStackClusterSpec) -> Vec<Kind> {
    let balancer = balancer_spec(spec);
    let kinds = apply::kinds(cloud, balancer.is_some(), false).await;
    let mut kinds = kinds.to_vec();
    if let Some(balancer) = balancer {
        kinds.extend(balancer.provider.is_some().then_some(Kind::Providers));
        kinds.extend(balancer.flavor.is_some().then_some(Kind::LbFlavors));
    }
    kinds
}

/// Writes into `next` what is there, and what it is waiting for.
fn show(
    ctx: &Context,
    spec: &OpenStackClusterSpec,
    next: &mut OpenStackCluster,
    desired: &Desired,
    outcome: Outcome,
) -> Progress {
    let problem = outcome.problem;
    let problem = problem.or_else(|| status::no_endpoint(spec, desired));
    if let Some(endpoint) = status::endpoint(spec, desired, &outcome.observed) {
        next.spec.control_plane_endpoint = Some(endpoint);
    }
    let shown = next.status.get_or_insert_default();
    status::resources(shown, spec, desired, &outcome.observed);
    status::verdicts(next, &outcome.plan, problem.as_ref(), ctx.now());
    match problem {
        Some(problem) => Progress::Stopped(problem),
        None if outcome.plan.is_empty() => Progress::Settled,
        None => Progress::Waiting,
    }
}

/// How far a reconcile came.
enum Progress {
    /// Everything is as desired.
    Settled,
    /// The cloud has to finish something.
    Waiting,
    /// Something stands in the way; the conditions say what.
    Stopped(Problem),
}

/// Writes endpoint and status, and says when to look again.
async fn finish(
    ctx: &Context,
    object: &OpenStackCluster,
    mut next: OpenStackCluster,
    result: Result<Progress, Error>,
) -> Result<Action, Error> {
    if let Err(Error::Problem(problem)) = &result {
        status::unplanned(&mut next, problem, ctx.now());
    }
    let result = match result {
        Ok(Progress::Settled) => Ok(context::settled()),
        Ok(Progress::Waiting) => Ok(Action::requeue(FALLBACK)),
        Ok(Progress::Stopped(problem)) => Err(Error::Problem(problem)),
        Err(error) => Err(error),
    };
    if let Err(Error::Problem(problem)) = &result {
        announce(ctx, object, &next, problem).await;
    }
    let api = api(ctx, object);
    let mut before = object.clone();
    if next.spec != before.spec {
        let mut after = before.clone();
        after.spec = next.spec.clone();
        let stored = patch::object(&api, &before, &after).await;
        let stored = stored.map_err(Error::kubernetes("storing the control plane endpoint"))?;
        before = stored.unwrap_or(after);
    }
    next.metadata = before.metadata.clone();
    context::steady(
        before
            .status
            .as_ref()
            .map(|status| status.conditions.as_slice()),
        next.status
            .as_mut()
            .map(|status| status.conditions.as_mut_slice()),
    );
    patch::status(&api, &before, &next)
        .await
        .map_err(Error::kubernetes("storing the status"))?;
    result
}

/// One event for a problem that the conditions did not show before.
async fn announce(
    ctx: &Context,
    before: &OpenStackCluster,
    after: &OpenStackCluster,
    problem: &Problem,
) {
    let message = |object: &OpenStackCluster| {
        let status = object.status.as_ref()?;
        let known = api::conditions::find(&status.conditions, problem.about.as_str())?;
        Some((known.reason.clone(), known.message.clone()))
    };
    if message(before) != message(after) {
        let reason = problem.reason.as_str();
        ctx.recorder
            .warning(before, reason, "Reconcile", &problem.message)
            .await;
    }
}

/// Takes everything down that carries the cluster's mark, then lets the object go.
async fn delete(
    ctx: &Context,
    object: &OpenStackCluster,
    cluster: Option<&Cluster>,
) -> Result<Action, Error> {
    if !finalizer::has(object, FINALIZER) {
        return Ok(Action::await_change());
    }
    let mut next = object.clone();
    let waiting = match machines_left(ctx, object, cluster).await? {
        Some(machines) => Ok(Some(machines)),
        None => take_down(ctx, object).await,
    };
    let (reason, message, action) = match waiting {
        Ok(None) => {
            let removed = finalizer::remove(&api(ctx, object), object, FINALIZER).await;
            removed.map_err(Error::kubernetes("removing the finalizer"))?;
            return Ok(Action::await_change());
        }
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
    let generation = next.metadata.generation;
    let shown = next.status.get_or_insert_default();
    let deleting = (Status::True, reason, message.as_str());
    status::condition(shown, generation, ctx.now(), Type::Deleting, deleting);
    let ready = (Status::False, Reason::Deleting, message.as_str());
    status::condition(shown, generation, ctx.now(), Type::Ready, ready);
    if let Err(Error::Problem(problem)) = &action {
        announce(ctx, object, &next, problem).await;
    }
    let stored = patch::status(&api(ctx, object), object, &next).await;
    stored.map_err(Error::kubernetes("storing the status"))?;
    action
}

/// Why a deletion does not go on, and what to do.
fn undeletable(problem: &Problem) -> String {
    match problem.about {
        Type::Authentication => format!(
            "{}. Until that is put right nothing can be deleted in the cloud (if nothing of \
             the cluster is left there, remove the finalizer {FINALIZER})",
            problem.message
        ),
        _ => problem.message.clone(),
    }
}

/// What is being waited for until nothing in the cloud carries the cluster's mark.
async fn take_down(ctx: &Context, object: &OpenStackCluster) -> Result<Option<String>, Error> {
    // Without an identity nothing was ever made.
    let Some(id) = Identity::of(object, CLUSTER_ID) else {
        return Ok(None);
    };
    unique(ctx, object).await?;
    let identity_ref = &object.spec.identity_ref;
    let cloud =
        credentials::cloud(&ctx.client, &ctx.clouds, &namespace(object), identity_ref).await?;
    let kinds = apply::kinds(&cloud, false, true).await;
    let recorder = &ctx.recorder;
    let work = Work {
        object,
        recorder,
        cloud: &cloud,
        cluster: id,
        kinds: &kinds,
    };
    let router = object
        .status
        .as_ref()
        .and_then(|status| status.router.as_ref());
    let existing = router
        .filter(|_| object.spec.router.is_some())
        .map(|router| router.id.clone());
    let plan = |observed: &Observed| plan::plan_deletion(observed, existing.as_deref());
    let outcome = work.apply(plan, request::deletion).await?;
    if let Some(problem) = outcome.problem {
        return Err(problem.into());
    }
    if let Some(wait) = outcome.plan.waits.first() {
        return Ok(Some(wait.message.clone()));
    }
    // What is known may be old: the last look is at the cloud itself.
    if work.observe(Duration::ZERO).await?.is_empty() {
        return Ok(None);
    }
    Ok(Some(
        "something that carries the cluster's mark appeared again".to_owned(),
    ))
}

/// The machines that have to go first.
async fn machines_left(
    ctx: &Context,
    object: &OpenStackCluster,
    cluster: Option<&Cluster>,
) -> Result<Option<String>, Error> {
    let name = cluster.map(ResourceExt::name_any);
    let name = name.or_else(|| object.labels().get(api::names::CLUSTER_NAME_LABEL).cloned());
    let Some(name) = name else { return Ok(None) };
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
        "waiting for {} machines to go: {names}",
        machines.len()
    )))
}

/// The control plane machines whose servers run, by name. A Machine that is being drained still
/// serves the API; only when its OpenStackMachine goes, too, it leaves the load balancer.
async fn control_plane(
    ctx: &Context,
    object: &OpenStackCluster,
    cluster: &Cluster,
    observed: &Observed,
) -> Result<Vec<ControlPlaneMachine>, Error> {
    let list = labelled(&cluster.name_any()).labels(api::names::CONTROL_PLANE_LABEL);
    let machines = Api::<Machine>::namespaced(ctx.client.clone(), &namespace(object));
    let machines = machines
        .list_metadata(&list)
        .await
        .map_err(Error::kubernetes("listing control plane machines"))?;
    let machines: Vec<_> = machines.iter().map(ResourceExt::name_any).collect();
    let mut found: Vec<_> = openstack_machines(ctx, object, &cluster.name_any())
        .await?
        .iter()
        .filter(|machine| !is_deleting(*machine))
        .filter(|machine| {
            context::owner(*machine, "Machine")
                .is_some_and(|owner| machines.iter().any(|name| name == owner))
        })
        .filter_map(|machine| running(machine, observed))
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// The address of a machine whose server runs.
fn running(machine: &OpenStackMachine, observed: &Observed) -> Option<ControlPlaneMachine> {
    let mark = Mark::machine(observed.cluster, Identity::of(machine, MACHINE_ID)?);
    let server = observed
        .servers
        .iter()
        .find(|server| Mark::in_tags(&server.tags) == Some(mark))?;
    if matches!(server.status.as_str(), "BUILD" | "ERROR") || server.is_deleting() {
        return None;
    }
    let mut ports: Vec<_> = observed
        .ports
        .iter()
        .filter(|port| Mark::in_description(&port.description) == Some(mark))
        .collect();
    ports.sort_by(|a, b| a.name.cmp(&b.name));
    let address = |port: &&Arc<openstack::network::Port>| {
        let ip = port
            .fixed_ips
            .iter()
            .find(|ip| !ip.ip_address.contains(':'))?;
        Some((ip.ip_address.clone(), port.id.clone()))
    };
    let (address, port_id) = ports.iter().find_map(address)?;
    Some(ControlPlaneMachine {
        name: machine.name_any(),
        address,
        port_id,
    })
}

async fn openstack_machines(
    ctx: &Context,
    object: &OpenStackCluster,
    cluster: &str,
) -> Result<Vec<OpenStackMachine>, Error> {
    let machines =
        Api::<Decoded<OpenStackMachine>>::namespaced(ctx.client.clone(), &namespace(object));
    let found = decode::list(&machines, &labelled(cluster)).await;
    let found = found.map_err(Error::kubernetes("listing machines"))?;
    // A control plane machine that cannot be decoded must not leave the load balancer.
    NotDecoded::check::<OpenStackMachine>(&found.undecodable, |machine| {
        let labels = machine.labels.as_ref();
        labels.is_some_and(|labels| labels.contains_key(api::names::CONTROL_PLANE_LABEL))
    })?;
    Ok(found.objects)
}

fn labelled(cluster: &str) -> ListParams {
    ListParams::default().labels(&format!("{}={cluster}", api::names::CLUSTER_NAME_LABEL))
}

async fn pause(ctx: &Context, object: &OpenStackCluster) -> Result<Action, Error> {
    let mut next = object.clone();
    let generation = next.metadata.generation;
    let shown = next.status.get_or_insert_default();
    let verdict = (Status::True, Reason::Paused, "");
    status::condition(shown, generation, ctx.now(), Type::Paused, verdict);
    let stored = patch::status(&api(ctx, object), object, &next).await;
    stored.map_err(Error::kubernetes("storing the status"))?;
    Ok(Action::await_change())
}

fn not_paused(next: &mut OpenStackCluster, ctx: &Context) {
    let generation = next.metadata.generation;
    let shown = next.status.get_or_insert_default();
    let verdict = (Status::False, Reason::NotPaused, "");
    status::condition(shown, generation, ctx.now(), Type::Paused, verdict);
}

fn api(ctx: &Context, object: &OpenStackCluster) -> Api<OpenStackCluster> {
    Api::namespaced(ctx.client.clone(), &namespace(object))
}
