//! Services of type LoadBalancer.
//!
//! ```text
//!   annotations   the combined settings of annotations, class and cloud.conf
//!   identity      the owner of a load balancer: names and tags of the Go manager, and the uids of cluster and Service
//!   traffic       how listeners forward: TLS, PROXY protocol, X-Forwarded-For, limits
//!   ports         what the listener of each port understands
//!   certificate   the certificates of TLS listeners
//!   sharing       load balancers of several Services
//!   groups        the security group of the nodes
//!   floating      the floating IP
//!   vip           where the virtual address is
//!   immutable     what Octavia does not change
//!   members       the nodes that receive the traffic
//!   desired       the desired load balancer (pure)
//!   observed      the observed load balancer, from the shared lists
//!   plan          the steps from the observed to the desired load balancer (pure)
//!   apply         the application of the next steps
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
mod floating;
mod groups;
pub(crate) mod identity;
mod immutable;
mod members;
#[cfg(test)]
mod model;
mod observed;
mod plan;
mod ports;
pub(crate) mod recovery;
mod sharing;
mod status;
mod teardown;
#[cfg(test)]
mod tests;
mod traffic;
mod vip;

use std::sync::Arc;
use std::time::{Duration, Instant};

use api::k8s_openapi::api::core::v1::{Node, Service};
use kube::runtime::controller::Action;
use kube::runtime::reflector::Store;
use kube::{Api, ResourceExt};
use openstack::{Cloud, Kind, View};

use self::desired::{Desired, Facts};
use self::identity::Identity;
use self::observed::Observed;
use self::recovery::Recoveries;
use crate::context::{Context, Error};
use crate::metrics::Operation;
use crate::options::Settings;

pub(crate) use self::members::aspects as node_aspects;

pub(crate) const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

/// The maximum age of lists while nothing has to be changed.
const AT_REST: Duration = Duration::from_secs(600);
/// The maximum age of lists for which changes are planned.
const FRESH: Duration = Duration::from_secs(1);
/// The interval in which a Service that waits is reconciled without a change in the cloud.
const FALLBACK: Duration = Duration::from_secs(15);
/// The interval in which a Service is reconciled without any change.
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

/// Why a Service is rejected, for its event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rejection {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Rejection {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            reason: "SyncLoadBalancerFailed",
            message: message.into(),
        }
    }
}

/// A setting of a Service that has no effect, for its event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// What the reconciles of Services share in addition.
pub(crate) struct Shared {
    pub(crate) ctx: Arc<Context>,
    pub(crate) nodes: Store<Node>,
    pub(crate) recoveries: Recoveries,
}

/// The parameters of a reconcile.
pub(crate) struct Work<'a> {
    pub(crate) service: &'a Service,
    pub(crate) ctx: &'a Context,
    pub(crate) settings: &'a Settings,
    pub(crate) cloud: &'a Cloud,
    pub(crate) identity: &'a Identity,
    pub(crate) recoveries: &'a Recoveries,
    /// Whether Octavia gives a load balancer an address of each family.
    pub(crate) has_additional_vips: bool,
}

impl Work<'_> {
    pub(crate) fn api(&self) -> Api<Service> {
        Api::namespaced(
            self.ctx.client.clone(),
            &self.service.namespace().unwrap_or_default(),
        )
    }

    async fn view(&self, age: Duration) -> Result<Arc<View>, Error> {
        let view = self.cloud.inventory.view(KINDS, age).await;
        view.map_err(Error::cloud("listing load balancers"))
    }

    async fn warn(&self, reason: &str, message: &str) {
        tracing::warn!(service = self.service.name_any(), "{message}");
        self.ctx
            .recorder
            .warning(self.service, reason, "Sync", message)
            .await;
    }
}

/// Whether a Service of two families can have both addresses; others cost no request, and these one for all of them.
async fn has_additional_vips(service: &Service, cloud: &Cloud) -> Result<bool, Error> {
    let spec = service.spec.as_ref();
    if spec.is_none_or(|spec| vip::Family::of(spec).1.is_none()) {
        return Ok(false);
    }
    let versions = cloud.session.versions(openstack::Service::LoadBalancer);
    let versions = versions.await;
    let versions = versions.map_err(Error::cloud("reading the versions of Octavia"))?;
    Ok(versions.has(2, 26))
}

/// Whether a Service needs a load balancer from this controller.
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
    let identity = Identity::of(&service, &ctx.options.cluster_name, ctx.cluster().await?);
    let cloud = ctx.cloud(&settings).await?;
    let work = Work {
        service: &service,
        ctx,
        settings: &settings,
        cloud: &cloud,
        identity: &identity,
        recoveries: &shared.recoveries,
        has_additional_vips: wanted && has_additional_vips(&service, &cloud).await?,
    };
    let started = Instant::now();
    let (operation, result) = match wanted {
        true => ensure(&work, &shared).await,
        false => (Operation::Delete, teardown::run(&work).await),
    };
    let took = started.elapsed();
    ctx.metrics.reconcile(operation, took, result.is_ok());
    if let Err(error @ Error::Cloud { .. }) = &result {
        // The cloud may have executed a request without an answer. A list that is older would lead to a second one.
        for kind in KINDS {
            cloud.inventory.stale(*kind);
        }
        work.warn("SyncLoadBalancerFailed", &error.words()).await;
    }
    result
}

async fn ensure(work: &Work<'_>, shared: &Shared) -> (Operation, Result<Action, Error>) {
    let mut operation = Operation::Ensure;
    let result = converge(work, shared, &mut operation).await;
    (operation, result)
}

async fn converge(
    work: &Work<'_>,
    shared: &Shared,
    operation: &mut Operation,
) -> Result<Action, Error> {
    if !operator::finalizer::has(work.service, FINALIZER) {
        let added = operator::finalizer::add(&work.api(), work.service, FINALIZER).await;
        added.map_err(Error::kubernetes("storing the finalizer of the Service"))?;
        return Ok(Action::await_change());
    }
    // Before the nodes are listed, all members would be removed.
    if shared.nodes.wait_until_ready().await.is_err() {
        return Ok(Action::requeue(FALLBACK));
    }
    let nodes = shared.nodes.state();
    let mut view = work.view(AT_REST).await?;
    let unknown = names_unknown(work, &view);
    let settled = look(work, &nodes, &view).ok();
    let round = match settled.filter(|round| round.is_settled() && !unknown) {
        Some(round) => round,
        None => {
            // The load balancer in the annotation may be newer than the list.
            let age = if unknown { Duration::ZERO } else { FRESH };
            view = work.view(age).await?;
            match look(work, &nodes, &view) {
                Ok(round) => round,
                Err(rejection) => return rejected(work, rejection).await,
            }
        }
    };
    if round.changes_only_members() {
        *operation = Operation::Update;
    }
    for notice in &round.desired.notices {
        work.warn(notice.reason, &notice.message).await;
    }
    if round.is_ready()
        && let Some(rejection) = certificate::missing(work, &round.steps).await?
    {
        return rejected(work, rejection).await;
    }
    groups::ensure(work, round.desired.group.as_ref()).await?;
    let waits = apply::next(work, &round.desired, round.observed.as_ref(), round.steps).await?;
    let published = status::publish(work, &round.desired, &view).await?;
    Ok(Action::requeue(if waits || !published {
        FALLBACK
    } else {
        RESYNC
    }))
}

/// The desired and the observed load balancer, and the steps between them.
struct Round {
    desired: Desired,
    observed: Option<Observed>,
    steps: Vec<plan::Step>,
    /// Whether the security group is as desired.
    has_group: bool,
}

impl Round {
    fn changes_only_members(&self) -> bool {
        let is_members = |step: &plan::Step| matches!(step, plan::Step::SetMembers { .. });
        !self.steps.is_empty() && self.steps.iter().all(is_members)
    }

    fn is_settled(&self) -> bool {
        self.steps.is_empty() && self.has_group && self.observed.is_some() && self.is_ready()
    }

    /// Whether the load balancer is not there yet, or can be changed.
    fn is_ready(&self) -> bool {
        let observed = self.observed.as_ref();
        observed.is_none_or(|observed| observed.balancer.provisioning_status == "ACTIVE")
    }
}

/// Whether the annotation names a load balancer that is not in the view.
fn names_unknown(work: &Work<'_>, view: &View) -> bool {
    let named = work.service.annotations().get(annotations::ID);
    named.is_some_and(|id| !id.is_empty() && view.load_balancers.get(id).is_none())
}

fn look(work: &Work<'_>, nodes: &[Arc<Node>], view: &View) -> Result<Round, Rejection> {
    let observed = observed::find(work.service, work.identity, view)?;
    let facts = Facts {
        nodes,
        view,
        conf: &work.settings.conf,
        existing: observed.as_ref().map(|observed| &*observed.balancer),
        has_floating_ip: observed
            .as_ref()
            .is_some_and(|observed| observed.floating_ip.is_some()),
        has_additional_vips: work.has_additional_vips,
    };
    let mut desired = desired::of(work.service, work.identity, &facts)?;
    if let Some(observed) = &observed {
        desired
            .notices
            .extend(immutable::notices(work.service, observed));
        let most = work.settings.conf.load_balancer.max_shared;
        sharing::check(&desired, observed, work.identity, most)?;
    }
    let steps = plan::steps(&desired, observed.as_ref());
    let has_group = groups::is_settled(work.identity, desired.group.as_ref(), view);
    Ok(Round {
        has_group,
        desired,
        observed,
        steps,
    })
}

/// With `enabled = false`, load balancers are neither changed nor deleted, as by the Go manager, which does not start
/// its controller then. A deleted Service waits until the key is changed, with an event that names it.
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
