//! OpenStackCluster: network, router, security groups, load balancer and floating IP of the API server.

pub(crate) mod address;
pub mod adoption;
pub(crate) mod apply;
pub(crate) mod balancer;
pub mod bastion;
pub(crate) mod control_plane;
pub mod desired;
pub mod facts;
pub mod leftovers;
pub mod observed;
pub mod plan;
pub(crate) mod prepare;
pub mod request;
pub mod rules;
mod status;
pub mod subnet_pools;
mod teardown;
pub mod zonal;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use api::conditions::{Reason, Type};
use api::core::v1beta2::Cluster;
use api::infra::v1beta2::{OpenStackCluster, OpenStackClusterSpec, OpenStackMachine};
use kube::ResourceExt;
use kube::api::ListParams;
use kube::runtime::controller::Action;
use openstack::loadbalancer::LoadBalancer;
use openstack::{Cloud, Kind};
use operator::client::Api;
use operator::decode::{self, NotDecoded};
use operator::patch;
use tracing::instrument;

use self::apply::{Outcome, Work};
use self::control_plane::control_plane;
use self::desired::{Desired, balancer_spec};
use self::facts::{Facts, Inside};
use self::observed::Observed;
use self::prepare::prepare;
use crate::application_credentials;
use crate::claims::SOON;
use crate::context::kept::{self, api};
use crate::context::{
    self, Context, Error, FALLBACK, is_deleting, is_managed_elsewhere, is_paused, namespace,
};
use crate::credentials;
use crate::identity::{CLUSTER_ID, Identity, Mark};
pub use crate::names::CLUSTER_FINALIZER as FINALIZER;
use crate::names::Names;
use crate::placement;
use crate::problem::Problem;
use crate::recheck::in_lists_of_now;

/// Reconciles one OpenStackCluster.
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
        return teardown::delete(&ctx, &object, cluster.as_ref()).await;
    }
    let Some(cluster) = cluster else {
        return Ok(Action::await_change());
    };
    let (object, prepared) = match prepare(&ctx, &object).await {
        Ok(stored) => (stored, Ok(())),
        Err(error) => (OpenStackCluster::clone(&object), Err(error)),
    };
    let mut next = object.clone();
    kept::paused(&mut next, ctx.now(), false);
    let (result, due) = match prepared {
        Ok(()) => {
            let result = normal(&ctx, &object, &mut next, &cluster).await;
            let due = application_credentials::reconcile(&ctx, &object, &mut next, &cluster).await;
            (result, due)
        }
        Err(error) => (Err(error), None),
    };
    finish(&ctx, &object, next, result, due).await
}

/// Reconciles an [`OpenStackCluster`] that is neither paused nor being deleted.
async fn normal(
    ctx: &Context,
    object: &OpenStackCluster,
    next: &mut OpenStackCluster,
    cluster: &Cluster,
) -> Result<Progress, Error> {
    let Some(id) = Identity::for_object(object, CLUSTER_ID) else {
        return Ok(Progress::Settled);
    };
    let identity_ref = &object.spec.identity_ref;
    let cloud = credentials::cloud(ctx.access(), &namespace(object), identity_ref).await?;
    status::authenticated(next, ctx.now());
    let kinds = kinds(&cloud, object).await;
    let work = Work {
        object,
        recorder: &ctx.recorder,
        cloud: &cloud,
        cluster: id,
        unmonitored: &ctx.unmonitored,
        kinds: &kinds,
        age: age(object),
    };
    let (facts, observed) = looked_up(ctx, &work, cluster).await?;
    let desired = desired::desired(&object.spec, &facts);
    let plan = |observed: &Observed| plan::plan(&ctx.served(&desired, observed), observed);
    let request =
        |step: &plan::Step, observed: &Observed| request::request(step, &desired, observed);
    let outcome = work.apply(plan, request).await?;
    // Once, since the warnings are about decisions at the creation of the load balancer.
    if observed.balancer().is_none() && outcome.observed.balancer().is_some() {
        warn(ctx, object, &facts).await;
    }
    let seen = outcome.problem.is_none().then(|| outcome.observed.clone());
    let progress = show(ctx, &object.spec, next, &facts, &desired, outcome);
    match seen {
        Some(seen) => with_bastion(ctx, &work, &facts, seen, next, progress).await,
        None => Ok(progress),
    }
}

/// Reconciles the bastion; of two problems, the cluster's one is returned.
async fn with_bastion(
    ctx: &Context,
    work: &Work<'_>,
    facts: &Facts,
    seen: Observed,
    next: &mut OpenStackCluster,
    progress: Progress,
) -> Result<Progress, Error> {
    let bastion = bastion::reconcile(ctx, work, facts, seen, next).await;
    Ok(match (progress, bastion) {
        (Progress::Stopped(problem), _) | (_, Err(Error::Problem(problem))) => {
            Progress::Stopped(problem)
        }
        (_, Err(error)) => return Err(error),
        (Progress::Settled, Ok(true)) => Progress::Waiting,
        (progress, Ok(_)) => progress,
    })
}

/// [`Facts`] about a cluster, and the observed state behind the facts. Missing resources, and the basis of irrevocable
/// decisions, are looked for in current lists.
async fn looked_up(
    ctx: &Context,
    work: &Work<'_>,
    cluster: &Cluster,
) -> Result<(Facts, Observed), Error> {
    let (object, spec) = (work.object, &work.object.spec);
    let observed = work.observe(work.kinds, work.age).await?;
    let of_view = |view| work.of_view(view);
    let place = |observed: &Observed| facts::place(spec, observed);
    let (place, observed) = in_lists_of_now(work.cloud, observed, of_view, place).await?;
    let inside = Inside {
        control_plane: control_plane(ctx, object, cluster, &observed, &place).await?,
        cidrs: cidrs(cluster),
        is_adopted: adoption::is_wanted(object),
        server_groups: server_groups(object)?,
        octavia_without_cidrs: octavia_without_cidrs(work.cloud, spec).await?,
    };
    let mark = Mark::cluster(work.cluster);
    let names = Names::new(&namespace(object), &cluster.name_any());
    let resolve =
        |observed: &Observed| facts::facts(spec, mark, names.clone(), observed, inside.clone());
    let (facts, observed) = in_lists_of_now(work.cloud, observed, of_view, resolve).await?;
    if facts.doubts.is_empty() {
        return Ok((facts, observed));
    }
    let doubts: Vec<_> = facts.doubts.iter().copied().collect();
    let observed = work.observe(&doubts, Duration::ZERO).await?;
    Ok((resolve(&observed)?, observed))
}

/// Version of an Octavia that has no allowed CIDRs, if the spec has some.
///
/// # Errors
/// [`Problem`] with the request for the version.
pub(crate) async fn octavia_without_cidrs(
    cloud: &Cloud,
    spec: &OpenStackClusterSpec,
) -> Result<Option<(u32, u32)>, Problem> {
    let about = Type::APIEndpointReady;
    let failed = |error: openstack::Error| {
        let doing = "ask Octavia for its version";
        Problem::cloud(about, Reason::OpenStackError, doing, &error)
    };
    let version = balancer::octavia_without_cidrs(cloud, spec).await;
    version.map_err(failed)
}

/// [`placement::Policies`] of the roles with a server group.
///
/// # Errors
/// [`Problem`] with the annotation.
pub(crate) fn server_groups(object: &OpenStackCluster) -> Result<placement::Policies, Problem> {
    let invalid = |text| Problem::new(Type::Ready, Reason::InvalidClusterSpec, text);
    placement::policies(object).map_err(invalid)
}

/// CIDRs of pods and Services.
pub(crate) fn cidrs(cluster: &Cluster) -> Vec<String> {
    let network = cluster.spec.cluster_network.as_ref();
    let ranges = network.map(|network| [network.pods.as_ref(), network.services.as_ref()]);
    let ranges = ranges.into_iter().flatten().flatten();
    ranges
        .flat_map(|ranges| ranges.cidr_blocks.clone())
        .collect()
}

async fn warn(ctx: &Context, object: &OpenStackCluster, facts: &Facts) {
    for (reason, text) in &facts.warnings {
        let recorder = &ctx.recorder;
        recorder
            .warning(object, reason, "CreateLoadBalancer", text)
            .await;
    }
}

fn age(object: &OpenStackCluster) -> Duration {
    let status = object.status.as_ref();
    context::age(object, status.map(|status| status.conditions.as_slice()))
}

impl Context {
    /// [`Desired`] state, without health monitors that the driver of the load balancer has refused.
    fn served<'d>(&self, desired: &'d Desired, observed: &Observed) -> Cow<'d, Desired> {
        let is_refused = |known: &Arc<LoadBalancer>| self.unmonitored.has(&known.id);
        if !observed.balancers.iter().any(is_refused) {
            return Cow::Borrowed(desired);
        }
        let mut served = desired.clone();
        if let Some(balancer) = &mut served.balancer {
            balancer.monitor = None;
        }
        Cow::Owned(served)
    }
}

/// [`Kind`]s of resources read in a reconcile of this object.
async fn kinds(cloud: &Cloud, object: &OpenStackCluster) -> Vec<Kind> {
    let balancer = balancer_spec(&object.spec);
    let known = object
        .status
        .as_ref()
        .and_then(|status| status.api_server_managed_load_balancer.as_ref());
    let kinds = apply::kinds(cloud, balancer.is_some(), false).await;
    let mut kinds = kinds.to_vec();
    kinds.extend(placement::is_used(object).then_some(Kind::ServerGroups));
    kinds.extend(subnet_pools::are_asked_for(object).then_some(Kind::SubnetPools));
    if let Some(balancer) = balancer {
        let has_zones = !balancer.availability_zone_subnets.is_empty();
        let lacks_zone = zonal::lacks_one(balancer, object.status.as_ref());
        let is_new = lacks_zone || !has_zones && known.is_none();
        let is_asked = balancer.provider.is_some() || is_new;
        kinds.extend(is_asked.then_some(Kind::Providers));
        kinds.extend(lacks_zone.then_some(Kind::LbZones));
        kinds.extend(balancer.flavor.is_some().then_some(Kind::LbFlavors));
    }
    kinds
}

/// Writes existing resources and the reason of a wait into `next`.
fn show(
    ctx: &Context,
    spec: &OpenStackClusterSpec,
    next: &mut OpenStackCluster,
    facts: &Facts,
    desired: &Desired,
    outcome: Outcome,
) -> Progress {
    let problem = outcome.problem;
    let problem = problem
        .or_else(|| status::no_endpoint(spec, desired))
        .or_else(|| status::stuck(next, &outcome.plan, ctx.now()));
    let unusable = status::unknown_zones(facts)
        .or_else(|| status::unusable_cidrs(spec, desired, &outcome.observed));
    if let Some(endpoint) = status::endpoint(spec, desired, &outcome.observed) {
        next.spec.control_plane_endpoint = Some(endpoint);
    }
    let reported = next.status.get_or_insert_default();
    status::resources(reported, spec, desired, &outcome.observed);
    let verdicts = [problem.as_ref(), unusable.as_ref()];
    status::verdicts(next, &outcome.plan, verdicts, ctx.now());
    match problem.or(unusable) {
        Some(problem) => Progress::Stopped(problem),
        None if outcome.plan.is_empty() => Progress::Settled,
        None => Progress::Waiting,
    }
}

/// The result of a reconcile.
enum Progress {
    /// The observed state is the desired one.
    Settled,
    /// Operations of the cloud are not finished.
    Waiting,
    /// [`Problem`], reported in the conditions.
    Stopped(Problem),
}

/// Writes endpoint and status, and returns the time of the next reconcile: for a cluster at rest, after `due` at the latest.
async fn finish(
    ctx: &Context,
    object: &OpenStackCluster,
    mut next: OpenStackCluster,
    result: Result<Progress, Error>,
    due: Option<Duration>,
) -> Result<Action, Error> {
    let was_planned = result.is_ok();
    let result = match result {
        Err(Error::Behind) => Ok(Action::requeue(SOON)),
        Ok(Progress::Settled) => Ok(due.map_or_else(context::settled, context::settled_until)),
        Ok(Progress::Waiting) => Ok(Action::requeue(FALLBACK)),
        Ok(Progress::Stopped(problem)) => Err(Error::Problem(problem)),
        Err(error) => Err(error),
    };
    if ctx.is_of_shutdown(&result) {
        return result;
    }
    if let Err(Error::Problem(problem)) = &result {
        if !was_planned {
            status::unplanned(&mut next, problem, ctx.now());
        }
        kept::announce(ctx, object, &next, problem).await;
    }
    store(ctx, object, next).await?;
    result
}

/// Stores endpoint and status.
async fn store(
    ctx: &Context,
    object: &OpenStackCluster,
    mut next: OpenStackCluster,
) -> Result<(), Error> {
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
    kept::store_status(ctx, &before, next).await
}

async fn openstack_machines(
    ctx: &Context,
    object: &OpenStackCluster,
    cluster: &str,
) -> Result<Vec<OpenStackMachine>, Error> {
    let machines = Api::<OpenStackMachine>::namespaced(ctx.client.clone(), &namespace(object));
    let found = decode::list(&machines, &labelled(cluster)).await;
    let found = found.map_err(Error::kubernetes("listing machines"))?;
    // A control plane machine that cannot be decoded must not be removed from the load balancer.
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
    kept::paused(&mut next, ctx.now(), true);
    kept::store_status(ctx, object, next).await?;
    Ok(Action::await_change())
}
