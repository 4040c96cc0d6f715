//! The controller of KubeadmControlPlane: a cluster's control plane machines, one step at a time.
//!
//! ```text
//!   certificates, kubeconfig          early: neither needs a machine
//!   observe   Machines, their configs and infrastructure, static Pods, Nodes, etcd members
//!   decide    (pure) init | scale up | scale down | wait, and why
//!   act       one machine made or deleted
//!   status    conditions of the Machines, then ours
//! ```
//!
//! Every step is idempotent and can be cut off anywhere: a machine whose KubeadmConfig exists but
//! whose Machine does not is finished first, under the same name.
//!
//! Waiting is waking: Machines, the Cluster, Nodes and static Pods of the workload cluster are watched.
//! Only the ConfigMap `kubeadm-config`, whose appearance ends the initialization, is polled, once a
//! second while it is awaited, and etcd while something is wrong with it: once a second while machines come and go, every five seconds otherwise.

mod conditions;
mod deletion;
mod error;
pub mod etcd;
mod health;
mod hooks;
mod machines;
mod members;
mod observe;
mod outdated;
mod plan;
mod pods;
pub mod quorum;
mod remediation;
mod rollout;
mod secrets;
mod status;

use std::sync::Arc;
use std::time::Duration;

use api::bootstrap::v1beta2::KubeadmConfig;
use api::controlplane::v1beta2::KubeadmControlPlane;
use api::core::v1beta2::{Cluster, Machine};
use api::kube::ResourceExt;
use api::kube::api::Api;
use api::kube::runtime::controller::{Action, Controller};
use api::kube::runtime::reflector::ObjectRef;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use operator::controller::RESYNC;
use operator::events::Recorder;

use crate::Context;
use crate::feed::{Feed, Memory};
use crate::machineset::own_template;
use crate::remote::{Change, ClusterKey};
use crate::{owners, pause};

pub use error::ControlPlaneError;
use observe::Observation;
use plan::Step;

/// Put on a KubeadmControlPlane before its first machine is made.
pub const FINALIZER: &str = "kubeadm.controlplane.cluster.x-k8s.io";

/// How often the workload cluster is asked for what cannot be watched, while that is awaited.
const POLL: Duration = Duration::from_secs(1);

/// How often etcd is asked while something is wrong with it and no machine comes or goes: it cannot be watched.
const ETCD_POLL: Duration = Duration::from_secs(5);

/// What the reconciler works with.
struct Scope {
    context: Arc<Context>,
    configs: Feed<KubeadmConfig>,
    pods: pods::Watches,
    etcd: etcd::Connections,
    events: Recorder,
    /// The version of kube-proxy that a cluster is known to have.
    kube_proxy: Memory<KubeadmControlPlane, String>,
}

/// One control plane and its Cluster.
struct Subject {
    plane: Arc<KubeadmControlPlane>,
    cluster: Arc<Cluster>,
    key: ClusterKey,
}

impl Subject {
    /// `plane` with its Cluster, once there is one.
    fn of(plane: Arc<KubeadmControlPlane>, context: &Context) -> Option<Self> {
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
        events: context.recorder(),
        context,
        configs,
        pods,
        etcd,
        kube_proxy: planes.memory(),
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
    let Some(subject) = Subject::of(plane, &scope.context) else {
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
    let template = &subject.plane.spec.machine_template.spec.infrastructure_ref;
    let owned = own_template(&scope.context, template, &subject.cluster).await;
    let foundation = secrets::ensure(&scope, &subject).await;
    let seen = observe::observe(&scope, &subject, &foundation).await?;
    if seen.connecting && foundation.is_ok() && observe::is_initialized(&subject) {
        // After a start of the program: what was reported stays until the attempt to connect ends, which wakes us.
        return Ok(requeue_after(&seen));
    }
    let step = plan::decide(&seen.facts);
    let acted = act(&scope, &subject, &seen, &step).await;
    let after = status::after(&subject.plane, &seen, &step, foundation.as_ref().err());
    operator::patch::status(&planes, &subject.plane, &after)
        .await
        .map_err(status::failed)?;
    owned?;
    foundation?;
    acted?;
    Ok(requeue_after(&seen))
}

/// Reports that it is paused, and changes nothing else.
async fn report_paused(
    scope: &Scope,
    planes: &Api<KubeadmControlPlane>,
    subject: &Subject,
    reason: &str,
) -> Result<Action, ControlPlaneError> {
    let after = status::paused(&subject.plane, reason, scope.context.now());
    let stored = operator::patch::status(planes, &subject.plane, &after).await;
    stored.map_err(status::failed)?;
    Ok(Action::await_change())
}

/// Before the first machine is made. The change wakes us again.
async fn add_finalizer(
    planes: &Api<KubeadmControlPlane>,
    subject: &Subject,
) -> Result<Action, ControlPlaneError> {
    let added = operator::finalizer::add(planes, subject.plane.as_ref(), FINALIZER).await;
    added.map_err(error::doing("adding the finalizer"))?;
    Ok(Action::await_change())
}

/// Does one step, after what every look does anyway.
async fn act(
    scope: &Scope,
    subject: &Subject,
    seen: &Observation,
    step: &Step,
) -> Result<(), ControlPlaneError> {
    conditions::write(scope, subject, seen).await?;
    machines::synchronize(scope, subject, seen).await?;
    members::release(scope, subject, seen).await?;
    members::collect(scope, subject, seen).await?;
    if remediation::act(scope, subject, seen).await? {
        return Ok(());
    }
    match step {
        Step::Wait(_) | Step::Nothing => {}
        Step::Create {
            failure_domain,
            init,
        } => {
            rollout::before_first_machine(subject, seen).await?;
            machines::create(scope, subject, failure_domain.as_deref(), *init).await?;
        }
        Step::Delete { machine } => machines::delete(scope, subject, seen, machine).await?,
    }
    rollout::add_ons(scope, subject, seen).await
}

/// When to look again although nothing changed that is watched.
fn requeue_after(seen: &Observation) -> Action {
    if seen.awaits_initialization() {
        return Action::requeue(POLL);
    }
    if !seen.etcd.is_settled() && seen.facts.initialized {
        let changing = seen.is_changing();
        return Action::requeue(if changing { POLL } else { ETCD_POLL });
    }
    let pause = seen
        .facts
        .rollout_after
        .map_or(RESYNC, |after| after.min(RESYNC));
    Action::requeue(pause.max(POLL))
}

/// The Cluster that owns `plane`, or that its label names before it does.
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

/// What wakes a control plane besides itself.
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
    let workload = futures::stream::select(remote, pod_changes).filter_map(move |key| {
        let cluster = known.get(&key.namespace, &key.name);
        std::future::ready(cluster.and_then(|cluster| plane_of_cluster(&cluster)))
    });
    futures::stream::select(machines, futures::stream::select(clusters, workload))
}

fn plane_of_cluster(cluster: &Cluster) -> Option<ObjectRef<KubeadmControlPlane>> {
    let reference = cluster.spec.control_plane_ref.as_ref()?;
    (reference.kind == "KubeadmControlPlane" && reference.api_group == api::controlplane::GROUP)
        .then(|| ObjectRef::new(&reference.name).within(&cluster.namespace().unwrap_or_default()))
}

/// The control plane that a machine belongs to; for a worker, the one whose deletion waits for it.
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
