//! Controller of [`KubeadmControlPlane`]: the control plane machines of a cluster, one step at a time.
//!
//! ```text
//!   certificates, kubeconfig          first: neither needs a machine
//!   observe   Machines, their configs and infrastructure, static Pods, Nodes, etcd members
//!   decide    (pure) init | scale up | scale down | wait, with reasons
//!   act       independent duties, and one machine created or deleted
//!   status    conditions of the Machines, then of the control plane
//! ```
//!
//! Every step is idempotent and can be interrupted: a machine with a KubeadmConfig but without a Machine is completed
//! first, under the same name.
//!
//! Machines, the Cluster, and Nodes and static Pods of the workload cluster are watched. Two things are polled: the
//! ConfigMap `kubeadm-config`, created at the end of the initialization, every second while awaited; and unhealthy
//! etcd, every second while machines are created or deleted, every five seconds otherwise, as are the connections of
//! its members while one joins. An API server with an unread certificate is asked again after half a minute.

mod adoption;
mod certificates;
mod conditions;
mod coredns;
mod deletion;
mod error;
pub mod etcd;
mod health;
mod hooks;
mod inplace;
mod joining;
mod machines;
mod members;
mod membership;
mod observe;
mod outdated;
mod plan;
mod pods;
pub mod quorum;
mod recovery;
mod remediation;
mod rollout;
mod secrets;
mod status;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use api::bootstrap::v1beta2::KubeadmConfig;
use api::controlplane::v1beta2::KubeadmControlPlane;
use api::core::v1beta2::{Cluster, Machine};
use api::kube::ResourceExt;
use api::kube::runtime::controller::{Action, Controller};
use api::kube::runtime::reflector::ObjectRef;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use operator::client::Api;
use operator::controller::RESYNC;
use operator::events::Recorder;
use operator::retry::is_conflict;

use crate::Context;
use crate::error::Error;
use crate::feed::{Feed, Memory};
use crate::pki::Purpose;
use crate::remote::{Change, ClusterKey};
use crate::templates::set_owner_of_template;
use crate::{news, owners, pause};

pub use error::ControlPlaneError;
use observe::Observation;
use plan::Step;

/// Added to a KubeadmControlPlane before its first machine is created.
pub const FINALIZER: &str = "kubeadm.controlplane.cluster.x-k8s.io";

/// Interval at which awaited objects of the workload cluster without a watch are polled.
const POLL: Duration = Duration::from_secs(1);

/// Interval at which unhealthy etcd is polled while no machine is created or deleted, and while a machine joins that
/// is not a member yet: etcd cannot be watched.
const ETCD_POLL: Duration = Duration::from_secs(5);

/// Duties of the reconcile of a control plane.
type Duties = crate::duties::Duties<ControlPlaneError>;

/// Context of the reconciler.
struct Scope {
    context: Arc<Context>,
    configs: Feed<KubeadmConfig>,
    pods: pods::Watches,
    etcd: etcd::Connections,
    events: Recorder,
    /// Last known version of a cluster's kube-proxy.
    kube_proxy: Memory<KubeadmControlPlane, String>,
    /// Version and images with which CoreDNS was in order.
    coredns: Memory<KubeadmControlPlane, String>,
    secrets: Memory<KubeadmControlPlane, secrets::InOrder>,
    certificates: Memory<KubeadmControlPlane, certificates::Asked>,
}

/// One control plane and its [`Cluster`].
struct Subject {
    plane: Arc<KubeadmControlPlane>,
    cluster: Arc<Cluster>,
    key: ClusterKey,
}

/// [`Observation`], decision and result of one reconcile.
type Outcome<'a> = (
    &'a Observation,
    &'a Step,
    &'a Result<(), ControlPlaneError>,
    &'a Duties,
);

impl Subject {
    /// `plane` with its Cluster; `None` without a Cluster.
    fn new(plane: Arc<KubeadmControlPlane>, context: &Context) -> Option<Self> {
        let cluster = cluster_of(context, &plane)?;
        let key = ClusterKey::new(plane.namespace()?, cluster.name_any());
        Some(Self {
            plane,
            cluster,
            key,
        })
    }
}

/// Runs the controller until shutdown.
pub async fn run(context: Arc<Context>, configs: Feed<KubeadmConfig>) {
    let planes: Feed<KubeadmControlPlane> = context.feed();
    let (pods, pod_changes) = pods::Watches::new(context.shutdown.clone());
    let etcd = etcd::Connections::default();
    let forget = {
        let (pods, etcd) = (pods.clone(), etcd.clone());
        Box::new(move |key: &ClusterKey| {
            pods.forget(key);
            etcd.forget(key);
        })
    };
    let triggers = triggers(&context, &planes, forget, pod_changes);
    let controller = Controller::for_shared_stream(planes.touched(), planes.store().clone());
    let context = context.of("kubeadmcontrolplane");
    let settings = context.settings();
    let scope = Scope {
        events: context.events.clone(),
        context,
        configs,
        pods,
        etcd,
        kube_proxy: planes.memory(),
        coredns: planes.memory(),
        secrets: planes.memory(),
        certificates: planes.memory(),
    };
    let scope = Arc::new(scope);
    operator::controller::run(
        controller.reconcile_on(triggers),
        reconcile,
        scope,
        settings,
    )
    .await;
}

async fn reconcile(
    plane: Arc<KubeadmControlPlane>,
    scope: Arc<Scope>,
) -> Result<Action, ControlPlaneError> {
    let Some(subject) = Subject::new(plane, &scope.context) else {
        return Ok(Action::await_change());
    };
    let planes: Api<KubeadmControlPlane> = scope.context.api(&subject.key.namespace);
    if let Some(reason) = pause::reason(Some(&subject.cluster), subject.plane.as_ref()) {
        return report_paused(&scope, &planes, &subject, &reason).await;
    }
    if subject.plane.metadata.deletion_timestamp.is_some() {
        return deletion::reconcile(&scope, &subject).await;
    }
    if !operator::finalizer::has(subject.plane.as_ref(), FINALIZER) {
        return add_finalizer(&planes, &subject).await;
    }
    let mut duties = Duties::default();
    duties.note(claim_template(&scope, &subject).await);
    let foundation = secrets::ensure(&scope, &subject).await;
    let observed = observe::observe(&scope, &subject, &foundation, &mut duties).await;
    let Some(mut seen) = duties.note(observed) else {
        return report_unseen(&scope, &planes, &subject, duties).await;
    };
    if foundation.is_ok() && is_reconnecting(&subject, &seen) {
        return Ok(requeue_after(&subject, &seen));
    }
    let step = plan::decide(&seen.facts);
    let step = members::before_addition(&scope, &subject, &mut seen, step).await;
    act(&scope, &subject, &seen, &step, &mut duties).await;
    let outcome = (&seen, &step, &foundation, &duties);
    report(&scope, &planes, &subject, outcome).await?;
    foundation?;
    duties.done()?;
    Ok(requeue_after(&subject, &seen))
}

/// Adds the Cluster as owner of the machine template.
async fn claim_template(scope: &Scope, subject: &Subject) -> Result<(), Error> {
    let template = &subject.plane.spec.machine_template.spec.infrastructure_ref;
    set_owner_of_template(&scope.context, template, &subject.cluster).await
}

/// True during the first attempt to connect after a restart. The end of the attempt triggers a reconcile, and the
/// reported status stays until then.
fn is_reconnecting(subject: &Subject, seen: &Observation) -> bool {
    seen.connecting && observe::is_initialized(subject)
}

/// Writes the status, and publishes its changes as events.
async fn report(
    scope: &Scope,
    planes: &Api<KubeadmControlPlane>,
    subject: &Subject,
    (seen, step, foundation, duties): Outcome<'_>,
) -> Result<(), ControlPlaneError> {
    let failure = foundation.as_ref().err().filter(|it| !is_conflict(*it));
    let after = status::after(&subject.plane, seen, step, failure, duties);
    store(scope, planes, subject, &after).await
}

/// Reports the reason why the machines are unknown, and changes nothing.
async fn report_unseen(
    scope: &Scope,
    planes: &Api<KubeadmControlPlane>,
    subject: &Subject,
    duties: Duties,
) -> Result<Action, ControlPlaneError> {
    let after = status::unseen(&subject.plane, &duties, scope.context.now());
    let stored = store(scope, planes, subject, &after).await;
    duties.done().and(stored)?;
    Ok(Action::await_change())
}

async fn store(
    scope: &Scope,
    planes: &Api<KubeadmControlPlane>,
    subject: &Subject,
    after: &KubeadmControlPlane,
) -> Result<(), ControlPlaneError> {
    operator::patch::status(planes, &subject.plane, after)
        .await
        .map_err(status::failed)?;
    let news = status::news(&subject.plane, after);
    news::publish(&scope.context, subject.plane.as_ref(), news).await;
    Ok(())
}

/// Reports that the control plane is paused, and changes nothing else.
async fn report_paused(
    scope: &Scope,
    planes: &Api<KubeadmControlPlane>,
    subject: &Subject,
    reason: &str,
) -> Result<Action, ControlPlaneError> {
    let after = status::paused(&subject.plane, reason, scope.context.now());
    store(scope, planes, subject, &after).await?;
    Ok(Action::await_change())
}

/// Adds the finalizer before the first machine is created. The change triggers a reconcile.
async fn add_finalizer(
    planes: &Api<KubeadmControlPlane>,
    subject: &Subject,
) -> Result<Action, ControlPlaneError> {
    let added = operator::finalizer::add(planes, subject.plane.as_ref(), FINALIZER).await;
    added.map_err(error::doing("adding the finalizer"))?;
    Ok(Action::await_change())
}

/// Performs the independent [`Duties`] of every reconcile, and then `step`.
async fn act(
    scope: &Scope,
    subject: &Subject,
    seen: &Observation,
    step: &Step,
    duties: &mut Duties,
) {
    duties.note(adoption::adopt(scope, subject, seen).await);
    duties.note(certificates::record(scope, subject, seen).await);
    conditions::write(scope, subject, seen, duties).await;
    inplace::synchronize(scope, subject, seen, duties).await;
    members::release(scope, subject, seen, duties).await;
    duties.note(members::collect(scope, subject, seen).await);
    duties.note(joining::add_learner(scope, subject, seen).await);
    rollout::add_ons(scope, subject, seen, duties).await;
    // A recovery and a remediation have precedence over `step`, also when they fail.
    if duties.note(recovery::act(scope, subject, seen).await) == Some(false)
        && duties.note(remediation::act(scope, subject, seen).await) == Some(false)
    {
        duties.note(take(scope, subject, seen, step).await);
    }
}

/// Creates or deletes a machine.
async fn take(
    scope: &Scope,
    subject: &Subject,
    seen: &Observation,
    step: &Step,
) -> Result<(), ControlPlaneError> {
    match step {
        Step::Wait(_) | Step::Nothing => Ok(()),
        Step::Create {
            failure_domain,
            init,
        } => {
            rollout::before_first_machine(subject, seen).await?;
            machines::create(scope, subject, failure_domain.as_deref(), *init).await
        }
        Step::Delete { machine } => machines::delete(scope, subject, seen, machine).await,
    }
}

/// Time until a reconcile without an event of a watch.
fn requeue_after(subject: &Subject, seen: &Observation) -> Action {
    if seen.awaits_initialization() || seen.awaits_etcd {
        return Action::requeue(POLL);
    }
    if !seen.etcd.is_settled() && seen.facts.initialized {
        let changing = seen.is_changing();
        return Action::requeue(if changing { POLL } else { ETCD_POLL });
    }
    if joining::joining(&subject.plane, seen).is_some() {
        return Action::requeue(ETCD_POLL);
    }
    let unread = seen.machines.iter().any(|seen| seen.unread.is_some());
    let longest = if unread { certificates::AGAIN } else { RESYNC };
    let pause = seen.facts.rollout_after.unwrap_or(longest).min(longest);
    Action::requeue(pause.max(POLL))
}

/// Owning [`Cluster`] of `plane`, or the one of its label as long as there is no owner.
fn cluster_of(context: &Context, plane: &KubeadmControlPlane) -> Option<Arc<Cluster>> {
    let namespace = plane.namespace()?;
    let owner = plane
        .owner_references()
        .iter()
        .find(|owner| owner.kind == "Cluster");
    let owner = owner.map(|owner| owner.name.as_str());
    let label = plane
        .labels()
        .get(api::names::CLUSTER_NAME_LABEL)
        .map(String::as_str);
    context.clusters.get(&namespace, owner.or(label)?)
}

/// Triggers besides the control plane, among them the template and awaited Secrets of users.
fn triggers(
    context: &Context,
    planes: &Feed<KubeadmControlPlane>,
    forget: Box<dyn Fn(&ClusterKey) + Send>,
    pod_changes: BoxStream<'static, ClusterKey>,
) -> impl Stream<Item = ObjectRef<KubeadmControlPlane>> + Send + use<> {
    let machines = context.machines.touched().filter_map({
        let planes = planes.clone();
        move |machine| std::future::ready(plane_of_machine(&planes, &machine))
    });
    let clusters = context
        .clusters
        .touched()
        .filter_map(|cluster| std::future::ready(plane_of_cluster(&cluster)));
    let known = context.clusters.clone();
    let remote = context.remote.changes().map(move |change| {
        if let Change::Disconnected(key) = &change {
            forget(key);
        }
        change.cluster().clone()
    });
    // Secrets of this controller have the label, and are never awaited.
    let supplied = context.secrets.touched().filter_map(|secret| {
        let mut purposes = Purpose::ALL.into_iter().chain([Purpose::EtcdClient]);
        let cluster = purposes.find_map(|purpose| secret.cluster_of(purpose));
        std::future::ready(cluster.filter(|_| !secret.labelled))
    });
    let secrets = futures::stream::select(context.secrets.changes(), supplied);
    let clusters_of = futures::stream::select(remote, secrets);
    let workload = futures::stream::select(clusters_of, pod_changes).filter_map(move |key| {
        let cluster = known.get(&key.namespace, &key.name);
        std::future::ready(cluster.and_then(|cluster| plane_of_cluster(&cluster)))
    });
    let planes = planes.clone();
    let templates = context.external.changes().flat_map(move |change| {
        let using = planes.referring_to(&change.namespace, &change.reference);
        let using = using.into_iter();
        futures::stream::iter(using.map(|plane| ObjectRef::from_obj(plane.as_ref())))
    });
    let objects = futures::stream::select(machines, templates);
    futures::stream::select(objects, futures::stream::select(clusters, workload))
}

fn plane_of_cluster(cluster: &Cluster) -> Option<ObjectRef<KubeadmControlPlane>> {
    let reference = cluster.spec.control_plane_ref.as_ref()?;
    (reference.kind == "KubeadmControlPlane" && reference.api_group == api::controlplane::GROUP)
        .then(|| ObjectRef::new(&reference.name).within(&cluster.namespace().unwrap_or_default()))
}

/// Control plane that owns a [`Machine`]; for a worker, the control plane whose deletion waits for the worker.
fn plane_of_machine(
    planes: &Feed<KubeadmControlPlane>,
    machine: &Machine,
) -> Option<ObjectRef<KubeadmControlPlane>> {
    let namespace = machine.namespace()?;
    if machine.is_control_plane() {
        let owner = owners::controller_of(&machine.metadata)?;
        return (owner.kind == "KubeadmControlPlane")
            .then(|| ObjectRef::new(&owner.name).within(&namespace));
    }
    let waits = |plane: &KubeadmControlPlane| plane.metadata.deletion_timestamp.is_some();
    planes
        .in_cluster(&namespace, &machine.spec.cluster_name, waits)
        .first()
        .map(|plane| ObjectRef::from_obj(plane.as_ref()))
}
