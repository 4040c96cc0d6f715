//! Controller of [`Service`]s of type LoadBalancer.
//!
//! ```text
//!   annotations   the combined settings of annotations, class and cloud.conf
//!   identity      the owner of a load balancer: names and tags of the Go manager, and the uids of cluster and Service
//!   traffic       forwarding by listeners: TLS, PROXY protocol, X-Forwarded-For, limits
//!   ports         the protocol of the listener of each port
//!   certificate   the certificates of TLS listeners
//!   sharing       load balancers of several Services
//!   groups        the security group of the nodes
//!   floating      the floating IP
//!   vip           the network and subnet of the virtual address
//!   requested     the address in spec.loadBalancerIP
//!   second        a load balancer for the second address family
//!   immutable     settings that Octavia does not change
//!   members       the nodes that receive the traffic
//!   weights       weights of members, by the endpoints on them
//!   local         externalTrafficPolicy: Local: monitors, or the nodes with endpoints
//!   desired       the desired load balancer (pure)
//!   observed      the observed load balancer, from the shared lists
//!   plan          the steps: marks, floating IP, and the load balancer by the planner of `load_balancing` (pure)
//!   round         the steps for all load balancers of a Service
//!   apply         the application of the next steps
//!   drift         changes by others in the cloud
//!   pending       load balancers that stay PENDING
//!   refused       refusals by the cloud because of a single setting
//!   recovery      load balancers in ERROR
//!   teardown      deletion
//!   status        the published address
//! ```
//!
//! A load balancer is immutable while Octavia changes it, so each reconcile applies at most one step that changes it;
//! the inventory triggers the next reconcile when the change is complete.

pub(crate) mod annotations;
mod apply;
mod certificate;
mod desired;
mod drift;
mod floating;
mod groups;
pub(crate) mod identity;
mod immutable;
mod local;
mod members;
mod observed;
mod pending;
mod plan;
mod ports;
pub(crate) mod recovery;
mod refused;
mod requested;
mod round;
pub(crate) mod second;
mod sharing;
mod status;
mod teardown;
#[cfg(test)]
mod tests;
mod traffic;
pub(crate) mod vip;
pub(crate) mod weights;

use std::sync::Arc;
use std::time::Duration;

use api::k8s_openapi::api::core::v1::{Node, Service};
use kube::ResourceExt;
use kube::runtime::controller::Action;
use kube::runtime::reflector::Store;
use openstack::{Cloud, Kind, View};
use operator::client::Api;
use tokio::time::Instant;

use self::drift::Settled;
use self::identity::Identity;
use self::pending::Pendings;
use self::recovery::Recoveries;
use self::round::{Round, Rounds};
use self::second::Drivers;
use self::weights::Weights;
use crate::context::{Context, Error};
use crate::metrics::Operation;
use crate::options::Settings;

pub(crate) use self::local::is_local;
pub(crate) use self::members::aspects as node_aspects;

/// Driver without HTTP, monitors of other ports, and weights.
const OVN: &str = "ovn";

pub(crate) const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

/// Maximum age of lists while nothing has to be changed.
const AT_REST: Duration = Duration::from_secs(600);
/// Maximum age of lists for planned changes.
const FRESH: Duration = Duration::from_secs(1);
/// Interval at which a waiting Service is reconciled without a change in the cloud.
const FALLBACK: Duration = Duration::from_secs(15);
/// Interval at which a Service is reconciled without any change.
const RESYNC: Duration = Duration::from_secs(600);

const KINDS: &[Kind] = &[
    Kind::LoadBalancers,
    Kind::Listeners,
    Kind::Pools,
    Kind::Members,
    Kind::Monitors,
    Kind::FloatingIps,
    Kind::Networks,
    Kind::Subnets,
    Kind::Ports,
    Kind::SecurityGroups,
];

/// Reason for the rejection of a Service, for its event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rejection {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// Lists that show the reason, possibly older than a missing resource.
    pub(crate) seen_in: &'static [Kind],
}

impl Rejection {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            reason: "SyncLoadBalancerFailed",
            message: message.into(),
            seen_in: &[],
        }
    }

    /// Rejection with the lists that show the reason.
    pub(crate) fn seen_in(self, kinds: &'static [Kind]) -> Self {
        Self {
            seen_in: kinds,
            ..self
        }
    }
}

/// Setting of a Service without an effect, for an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// Further shared state of the reconciles of Services.
pub(crate) struct Shared {
    pub(crate) ctx: Arc<Context>,
    pub(crate) nodes: Store<Node>,
    pub(crate) recoveries: Recoveries,
    pub(crate) pendings: Pendings,
    pub(crate) settled: Settled,
    pub(crate) drivers: Drivers,
    pub(crate) weights: Arc<Weights>,
}

/// Parameters of a reconcile.
#[derive(Clone, Copy)]
pub(crate) struct Work<'a> {
    pub(crate) service: &'a Service,
    pub(crate) ctx: &'a Context,
    pub(crate) settings: &'a Settings,
    pub(crate) cloud: &'a Cloud,
    pub(crate) identity: &'a Identity,
    pub(crate) shared: &'a Shared,
    pub(crate) weights: &'a weights::Current,
    pub(crate) octavia: Octavia,
}

/// Features that depend on the version of Octavia and on the driver. Read where a Service needs one of them, and then
/// all at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Octavia {
    /// True if a load balancer can have an address of each family (API 2.26).
    pub(crate) has_additional_vips: bool,
    /// True if monitors of UDP pools can be HTTP (API 2.16).
    pub(crate) has_http_on_udp: bool,
}

impl Octavia {
    /// Features of Octavia for a [`Service`].
    async fn new(
        service: &Service,
        cloud: &Cloud,
        provider: &str,
        drivers: &Drivers,
    ) -> Result<Self, Error> {
        let Some(spec) = &service.spec else {
            return Ok(Self::default());
        };
        let has_two = vip::Family::from_spec(spec).1.is_some() && !drivers.lacks(provider);
        if !has_two && !local::asks_for_version(spec, provider == OVN) {
            return Ok(Self::default());
        }
        let versions = cloud.session.versions(openstack::Service::LoadBalancer);
        let versions = versions.await;
        let versions = versions.map_err(Error::cloud("reading the versions of Octavia"))?;
        Ok(Self {
            has_additional_vips: has_two && versions.has(2, 26),
            has_http_on_udp: versions.has(2, 16),
        })
    }
}

impl Work<'_> {
    pub(crate) fn api(&self) -> Api<Service> {
        Api::namespaced(
            self.ctx.client.clone(),
            &self.service.namespace().unwrap_or_default(),
        )
    }

    async fn view(&self, age: Duration) -> Result<Arc<View>, Error> {
        let listing = || Error::cloud("listing load balancers");
        let view = self.cloud.inventory.view(KINDS, age).await;
        let view = view.map_err(listing())?;
        if !floating::needs_routers(&view) {
            return Ok(view);
        }
        let view = self.cloud.inventory.view(&[Kind::Routers], AT_REST).await;
        view.map_err(listing())
    }

    async fn warn(&self, reason: &str, message: &str) {
        tracing::warn!(service = self.service.name_any(), "{message}");
        self.ctx
            .recorder
            .warning(self.service, reason, "Sync", message)
            .await;
    }
}

/// True if a [`Service`] needs a load balancer from this controller.
pub(crate) fn is_wanted(service: &Service) -> bool {
    let spec = service.spec.as_ref();
    service.metadata.deletion_timestamp.is_none()
        && spec.is_some_and(|spec| {
            spec.type_.as_deref() == Some("LoadBalancer") && spec.load_balancer_class.is_none()
        })
}

pub(crate) async fn reconcile(service: Arc<Service>, shared: Arc<Shared>) -> Result<Action, Error> {
    let ctx = &shared.ctx;
    let settings = ctx.settings();
    let wanted = is_wanted(&service);
    if !(wanted || operator::finalizer::has(&*service, FINALIZER)) {
        return Ok(Action::await_change());
    }
    if !settings.conf.load_balancer.enabled {
        return disabled(&service, ctx).await;
    }
    let identity = Identity::new(&service, &ctx.options.cluster_name, ctx.cluster().await?);
    let cloud = log_in(&service, ctx, &settings, wanted).await?;
    let provider = &settings.conf.load_balancer.provider;
    let octavia = match wanted {
        true => Octavia::new(&service, &cloud, provider, &shared.drivers).await?,
        false => Octavia::default(),
    };
    let has_local_members = local::of_service(&service, provider == OVN, octavia.has_http_on_udp);
    let work = Work {
        service: &service,
        ctx,
        settings: &settings,
        cloud: &cloud,
        identity: &identity,
        shared: &shared,
        weights: &shared
            .weights
            .of(&service, has_local_members, Instant::now()),
        octavia,
    };
    synchronize(&work, wanted).await
}

/// Session with the cloud; a failed login is an event.
async fn log_in(
    service: &Service,
    ctx: &Context,
    settings: &Settings,
    wanted: bool,
) -> Result<Cloud, Error> {
    let result = ctx.cloud(settings).await;
    if let Err(error) = &result {
        let operation = match wanted {
            true => Operation::Ensure,
            false => Operation::Delete,
        };
        let note = error.words();
        ctx.recorder
            .warning(service, operation.failed(), "Sync", note)
            .await;
    }
    result
}

/// Ensures the load balancers of a Service that wants one, or deletes them; counts the operation, and reports a
/// failure.
async fn synchronize(work: &Work<'_>, wanted: bool) -> Result<Action, Error> {
    let started = Instant::now();
    let (operation, result) = match wanted {
        true => ensure(work).await,
        false => (Operation::Delete, teardown::run(work).await),
    };
    let metrics = &work.ctx.metrics;
    metrics.reconcile(operation, started.elapsed(), result.is_ok());
    if let Err(error) = &result {
        report(work, operation, error).await;
    }
    result
}

/// Reports a failed request to the cloud.
async fn report(work: &Work<'_>, operation: Operation, error: &Error) {
    if !matches!(error, Error::Cloud { .. } | Error::Refused(_)) {
        return;
    }
    // The cloud may have executed a request without an answer. An older list would lead to a second request.
    for kind in KINDS.iter().chain(&[Kind::Routers]) {
        work.cloud.inventory.stale(*kind);
    }
    work.warn(operation.failed(), &error.words()).await;
}

async fn ensure(work: &Work<'_>) -> (Operation, Result<Action, Error>) {
    let mut operation = Operation::Ensure;
    let result = converge(work, &mut operation).await;
    (operation, result)
}

async fn converge(work: &Work<'_>, operation: &mut Operation) -> Result<Action, Error> {
    if !operator::finalizer::has(work.service, FINALIZER) {
        let added = operator::finalizer::add(&work.api(), work.service, FINALIZER).await;
        added.map_err(Error::kubernetes("storing the finalizer of the Service"))?;
        return Ok(Action::await_change());
    }
    // Before the nodes are listed, all members would be removed.
    if !operator::store::listed(&work.shared.nodes).await {
        return Ok(Action::requeue(FALLBACK));
    }
    let nodes = work.shared.nodes.state();
    let (mut rounds, view) = match observe(work, &nodes).await? {
        Ok(found) => found,
        Err(rejection) => return rejected(work, rejection).await,
    };
    if rounds.changes_only_members() {
        *operation = Operation::Update;
    }
    rounds.remember(&work.shared.settled);
    for notice in rounds.notices() {
        work.warn(notice.reason, &notice.message).await;
    }
    let waits = match advance_all(work, &mut rounds, &view).await? {
        Ok(waits) => waits,
        Err(rejection) => return rejected(work, rejection).await,
    };
    if let Some(rejection) = rounds.held() {
        let pause = rejected(work, rejection).await?;
        return Ok(if waits {
            Action::requeue(pending::next_look(work))
        } else {
            pause
        });
    }
    let published = status::publish(work, &rounds, &view).await?;
    let pause = if waits || !published {
        pending::next_look(work)
    } else {
        RESYNC
    };
    let weights = work.weights.changes_in.unwrap_or(pause);
    Ok(Action::requeue(pause.min(weights)))
}

/// Steps for the Service, from lists that are fresh unless there are no steps.
async fn observe(
    work: &Work<'_>,
    nodes: &[Arc<Node>],
) -> Result<Result<(Rounds, Arc<View>), Rejection>, Error> {
    let view = work.view(AT_REST).await?;
    let unknown = round::names_unknown(work, &view);
    if let Ok(rounds) = round::look(work, nodes, &view)
        && rounds.is_settled()
        && !unknown
    {
        return Ok(Ok((rounds, view)));
    }
    // The load balancer in the annotation may be newer than the list.
    let age = if unknown { Duration::ZERO } else { FRESH };
    let view = work.view(age).await?;
    let found = round::look(work, nodes, &view);
    let doubted = round::doubted(&found);
    if doubted.is_empty() {
        return Ok(found.map(|rounds| (rounds, view)));
    }
    // Since the start of the list, a missing resource may have been created, or a used one become free.
    let view = work.cloud.inventory.view(&doubted, Duration::ZERO).await;
    let view = view.map_err(Error::cloud("listing what the Service asks for"))?;
    Ok(round::look(work, nodes, &view).map(|rounds| (rounds, view)))
}

/// Takes the next steps of all load balancers, and removes the leftovers of others. Returns true if steps or waits
/// are left.
async fn advance_all(
    work: &Work<'_>,
    rounds: &mut Rounds,
    view: &View,
) -> Result<Result<bool, Rejection>, Error> {
    let mut waits = false;
    for left in &rounds.surplus {
        waits |= !teardown::remove(&left.work(work), view).await?;
    }
    let mut outcomes = vec![advance(work, &mut rounds.first).await?];
    if let Some((second, round)) = &mut rounds.second {
        outcomes.push(advance(&second.work(work), round).await?);
    }
    let outcomes: Result<Vec<bool>, Rejection> = outcomes.into_iter().collect();
    Ok(outcomes.map(|all| waits | all.contains(&true)))
}

/// Takes the next steps of a load balancer. Returns true if steps or waits are left.
async fn advance(work: &Work<'_>, round: &mut Round) -> Result<Result<bool, Rejection>, Error> {
    let balancer = round.observed.as_ref().map(|observed| &*observed.balancer);
    pending::watch(work, Operation::Ensure, balancer).await;
    if round.is_ready()
        && let Some(rejection) = certificate::missing(work, &round.steps).await?
    {
        return Ok(Err(rejection));
    }
    let awaits_group = groups::ensure(work, round.desired.group.as_ref()).await?;
    let steps = std::mem::take(&mut round.steps);
    let awaits_port = round.awaits_port;
    let left = apply::next(work, &round.desired, round.observed.as_ref(), steps).await?;
    Ok(Ok(left || awaits_group || awaits_port))
}

/// With `enabled = false`, load balancers are neither changed nor deleted, as by the Go manager, which does not start
/// its controller then. A deleted [`Service`] waits until the key is changed, with an event about the key.
async fn disabled(service: &Service, ctx: &Context) -> Result<Action, Error> {
    if service.metadata.deletion_timestamp.is_some() {
        let note = format!(
            "[LoadBalancer] enabled is false in cloud.conf, so that the load balancer is not deleted: set it to true, \
             or delete load balancer and floating IP, and remove the finalizer {FINALIZER}"
        );
        let recorder = &ctx.recorder;
        recorder
            .warning(service, "DeleteLoadBalancerFailed", "Delete", note)
            .await;
    }
    Ok(Action::await_change())
}

async fn rejected(work: &Work<'_>, rejection: Rejection) -> Result<Action, Error> {
    work.warn(rejection.reason, &rejection.message).await;
    Ok(Action::requeue(Duration::from_secs(60)))
}
