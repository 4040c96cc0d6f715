//! Observed state of a control plane.

use std::sync::Arc;
use std::time::Duration;

use api::conditions::{self, Reason, Type, Verdict};
use api::controlplane::v1beta2::KubeadmControlPlane;
use api::core::v1beta2::Machine;
use api::k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use api::k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use api::k8s_openapi::jiff::{SignedDuration, Timestamp};
use api::kube::api::{ListParams, ObjectMeta};
use api::kube::{Client, ResourceExt};
use api::names::{CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL, DELETE_MACHINE_ANNOTATION};
use operator::client::Api;
use operator::decode::{self, NotDecoded};

use super::adoption::Orphan;
use super::coredns::{self, CoreDns};
use super::etcd::{self, View};
use super::health::Component;
use super::plan::{Etcd, Facts, MachineFacts};
use super::recovery::{self, Recovery};
use super::{
    ControlPlaneError, Duties, Scope, Subject, certificates, error, health, members, membership,
    outdated,
};
use crate::owners;

/// Age up to which a machine counts as new.
const YOUNG: SignedDuration = SignedDuration::from_mins(5);
/// Age up to which the etcd member of a Node may still connect to others: etcd tries again every 100 ms, and counts a
/// connection after 5 s.
const FRESH: SignedDuration = SignedDuration::from_secs(15);

/// Observed state of a control plane.
pub(super) struct Observation {
    /// Input of the plan.
    pub(super) facts: Facts,
    /// Machines of the control plane, oldest first.
    pub(super) machines: Vec<Seen>,
    /// Stand-alone machines of the cluster.
    pub(super) orphans: Vec<Orphan>,
    /// Workload cluster, while reachable.
    pub(super) workload: Option<Reached>,
    /// True before the end of the first attempt to connect, so that the reported conditions stay.
    pub(super) connecting: bool,
    /// Members of etcd.
    pub(super) etcd: View,
    /// True if the creation of a machine waits for connections between members of etcd.
    pub(super) awaits_etcd: bool,
    /// State of the [`Recovery`] from a lost quorum.
    pub(super) recovery: Recovery,
    /// State of [`CoreDns`].
    pub(super) coredns: CoreDns,
    /// Time of the observation.
    pub(super) now: Timestamp,
}

/// Machine and the conditions derived for it.
pub(super) struct Seen {
    pub(super) machine: Machine,
    /// Conditions of this controller for the machine.
    pub(super) verdicts: Vec<Verdict>,
    /// API server of the machine, while the expiry of its certificate is not recorded.
    pub(super) unread: Option<certificates::Unread>,
}

/// Connected workload cluster.
pub(super) struct Reached {
    pub(super) client: Client,
    pub(super) pods: Vec<Arc<Pod>>,
    pub(super) nodes: Vec<Arc<Node>>,
}

impl Reached {
    /// Existing Nodes with an etcd Pod.
    pub(super) fn etcd_nodes(&self) -> Vec<String> {
        let of = |pod: &Arc<Pod>| health::node_of(pod, Component::Etcd).map(str::to_owned);
        let mut nodes: Vec<_> = self.pods.iter().filter_map(of).collect();
        nodes.retain(|name| self.nodes.iter().any(|node| node.name_any() == *name));
        nodes
    }
}

impl Observation {
    /// True while machines are created or deleted: an unhealthy member is then likely to recover soon.
    pub(super) fn is_changing(&self) -> bool {
        let begun = |machine: &MachineFacts| {
            let age = self.now.duration_since(machine.created);
            machine.deleting || machine.node.is_none() || age < YOUNG
        };
        self.facts.machines.iter().any(begun)
    }

    /// True if `machine` has no Node, or was created a short time ago.
    pub(super) fn is_young(&self, machine: &Machine) -> bool {
        machine.node_name().is_none() || self.now.duration_since(created(machine)) < YOUNG
    }

    /// True if a Node of the control plane has just joined.
    pub(super) fn has_fresh_node(&self) -> bool {
        let ours = |node: &&Arc<Node>| {
            let name = node.name_any();
            let mut machines = self.facts.machines.iter();
            machines.any(|machine| machine.node.as_ref() == Some(&name))
        };
        let fresh = |node: &Arc<Node>| {
            let created = node.metadata.creation_timestamp.as_ref();
            created.is_some_and(|created| self.now.duration_since(created.0) < FRESH)
        };
        let workload = self.workload.as_ref();
        let nodes = workload.into_iter().flat_map(|reached| &reached.nodes);
        nodes.filter(ours).any(fresh)
    }

    /// True if the ConfigMap that completes the initialization is awaited.
    pub(super) fn awaits_initialization(&self) -> bool {
        !self.facts.initialized && self.workload.is_some() && !self.machines.is_empty()
    }
}

/// Observes everything. Machines are read live, because their number must not come from a cache.
pub(super) async fn observe(
    scope: &Scope,
    subject: &Subject,
    foundation: &Result<(), ControlPlaneError>,
    duties: &mut Duties,
) -> Result<Observation, ControlPlaneError> {
    let now = scope.context.now();
    let (machines, orphans) = listed(scope, subject).await?;
    scope.context.remote.track(&subject.key);
    let workload = reach(scope, subject);
    let connecting = workload.is_none() && is_connecting(scope, subject);
    let initialized = match &workload {
        _ if is_initialized(subject) => true,
        Some(workload) => has_kubeadm_config(&workload.client).await,
        None => false,
    };
    let etcd = members::observe(scope, subject, workload.as_ref(), initialized).await;
    let mut seen = Vec::new();
    for machine in machines {
        let around = (workload.as_ref(), &etcd);
        seen.push(observe_machine(scope, subject, machine, around, now, duties).await);
    }
    if connecting {
        keep_reported(&mut seen);
    }
    let facts = Facts {
        replicas: usize::try_from(subject.plane.spec.replicas.unwrap_or(1)).unwrap_or(0),
        surge: surge(&subject.plane),
        infrastructure: subject.cluster.infrastructure_provisioned()
            && subject.cluster.endpoint().is_some(),
        certificates: foundation.is_ok(),
        initialized,
        reachable: workload.is_some(),
        machines: facts_of_machines(subject, &seen, &etcd),
        unjudged: seen.iter().filter_map(unjudged).collect(),
        orphans: orphans.iter().map(Orphan::wait).collect(),
        failure_domains: failure_domains(subject),
        etcd: facts_of_etcd(&etcd),
        rollout_after: until_rollout(&subject.plane, now),
    };
    let mut seen = Observation {
        facts,
        machines: seen,
        orphans,
        workload,
        connecting,
        etcd,
        awaits_etcd: false,
        recovery: Recovery::default(),
        coredns: CoreDns::default(),
        now,
    };
    seen.recovery = recovery::of(&subject.plane, &seen);
    seen.coredns = coredns::observe(scope, subject, &seen).await;
    Ok(seen)
}

/// [`Machine`]s controlled by `plane`, oldest first.
pub(super) async fn machines(
    scope: &Scope,
    subject: &Subject,
) -> Result<Vec<Machine>, ControlPlaneError> {
    listed(scope, subject).await.map(|(machines, _)| machines)
}

/// [`Machine`]s controlled by `plane`, oldest first, and machines of the cluster without a controller.
async fn listed(
    scope: &Scope,
    subject: &Subject,
) -> Result<(Vec<Machine>, Vec<Orphan>), ControlPlaneError> {
    let selector = format!(
        "{CLUSTER_NAME_LABEL}={},{CONTROL_PLANE_LABEL}",
        subject.key.name
    );
    let api: Api<Machine> = scope.context.api(&subject.key.namespace);
    let list = decode::list(&api, &ListParams::default().labels(&selector)).await;
    let list = list.map_err(error::doing("listing Machines"))?;
    let ours = |machine: &ObjectMeta| owners::is_controlled_by(machine, subject.plane.as_ref());
    NotDecoded::check::<Machine>(&list.undecodable, ours)?;
    let (mut machines, others): (Vec<_>, Vec<_>) = list
        .objects
        .into_iter()
        .partition(|machine| ours(&machine.metadata));
    machines.sort_by_key(|machine| (created(machine), machine.name_any()));
    let orphans = others.into_iter().filter_map(|it| Orphan::new(it, subject));
    Ok((machines, orphans.collect()))
}

/// True if etcd is external, not managed here.
pub(super) fn has_external_etcd(plane: &KubeadmControlPlane) -> bool {
    let config = plane.spec.kubeadm_config_spec.as_ref();
    let cluster = config.and_then(|config| config.cluster_configuration.as_ref());
    cluster
        .and_then(|cluster| cluster.etcd.as_ref())
        .is_some_and(|etcd| etcd.external.is_some())
}

/// True if the status of the control plane or of its Cluster reports the initialization: after a restore from a
/// backup, one of them may be missing.
pub(super) fn is_initialized(subject: &Subject) -> bool {
    let status = subject.plane.status.as_ref();
    let steps = status.and_then(|status| status.initialization.as_ref());
    let initialized = steps.and_then(|steps| steps.control_plane_initialized);
    initialized == Some(true) || subject.cluster.control_plane_initialized()
}

fn created(machine: &Machine) -> Timestamp {
    machine
        .metadata
        .creation_timestamp
        .as_ref()
        .map_or(Timestamp::MAX, |time| time.0)
}

async fn observe_machine(
    scope: &Scope,
    subject: &Subject,
    machine: Machine,
    (workload, etcd): (Option<&Reached>, &View),
    now: Timestamp,
    duties: &mut Duties,
) -> Seen {
    let namespace = &subject.key.namespace;
    let config = machine.spec.bootstrap.config_ref.as_ref();
    let config = config.and_then(|reference| scope.configs.get(namespace, &reference.name));
    let infrastructure = scope
        .context
        .external
        .get(&machine.spec.infrastructure_ref, namespace)
        .await;
    let judged = infrastructure.map(|infrastructure| {
        let parts = outdated::Parts {
            machine: &machine,
            config: config.as_deref(),
            infrastructure: infrastructure.as_deref(),
        };
        up_to_date(&outdated::reasons(&subject.plane, parts, now))
    });
    let judged = judged.map_err(ControlPlaneError::from);
    let mut verdicts = vec![match judged {
        Ok(verdict) => verdict,
        Err(error) => {
            let why = operator::words::chain(&error);
            duties.note(Err::<(), _>(error));
            Verdict::new(
                Type::UpToDate,
                conditions::Status::Unknown,
                Reason::InternalError,
            )
            .because(why)
        }
    }];
    let view = workload.map(|workload| health::View {
        pods: &workload.pods,
        nodes: &workload.nodes,
        etcd,
    });
    // While the cluster cannot be reached, too, an external etcd has no conditions on machines.
    let gates = health::gates(has_external_etcd(&subject.plane));
    let judged = health::judge(machine.node_name(), view).into_iter();
    verdicts.extend(judged.filter(|verdict| gates.iter().any(|gate| verdict.type_ == *gate)));
    let unread = certificates::unread(&machine, config.as_deref());
    Seen {
        machine,
        verdicts,
        unread,
    }
}

fn up_to_date(reasons: &[String]) -> Verdict {
    if reasons.is_empty() {
        return Verdict::new(Type::UpToDate, true, Reason::UpToDate);
    }
    let lines: Vec<_> = reasons.iter().map(|reason| format!("* {reason}")).collect();
    Verdict::new(Type::UpToDate, false, Reason::NotUpToDate).because(lines.join("\n"))
}

/// Reason why the state of a machine is unknown.
fn unjudged(seen: &Seen) -> Option<String> {
    let mut verdicts = seen.verdicts.iter();
    let verdict = verdicts.find(|it| it.type_ == Type::UpToDate)?;
    let name = seen.machine.name_any();
    let why = &verdict.message;
    (verdict.status == conditions::Status::Unknown)
        .then(|| format!("It is not known whether Machine {name} is up to date: {why}"))
}

fn facts_of_machines(subject: &Subject, seen: &[Seen], etcd: &View) -> Vec<MachineFacts> {
    let machines: Vec<_> = seen.iter().map(|seen| &seen.machine).collect();
    let held = members::held(subject, &machines, etcd);
    let memberships = membership::of(&machines, etcd);
    let external = has_external_etcd(&subject.plane);
    let of = |(seen, membership): (&Seen, _)| MachineFacts {
        membership,
        held: seen.machine.uid().is_some_and(|uid| held.contains(&uid)),
        ..facts_of(seen, external)
    };
    seen.iter().zip(memberships).map(of).collect()
}

fn facts_of(seen: &Seen, external_etcd: bool) -> MachineFacts {
    let machine = &seen.machine;
    let bad = |type_: &Type| {
        let verdict = seen.verdicts.iter().find(|verdict| verdict.type_ == *type_);
        verdict.is_none_or(|verdict| verdict.status != conditions::Status::True)
    };
    let problems = health::gates(external_etcd)
        .into_iter()
        .filter(bad)
        .map(|type_| type_.to_string());
    let outdated = seen
        .verdicts
        .iter()
        .find(|verdict| verdict.type_ == Type::UpToDate);
    let outdated = outdated.filter(|verdict| verdict.status == conditions::Status::False);
    let status = machine.status.as_ref();
    MachineFacts {
        name: machine.name_any(),
        created: created(machine),
        deleting: machine.is_deleting(),
        marked: machine
            .annotations()
            .contains_key(DELETE_MACHINE_ANNOTATION),
        failure_domain: machine
            .spec
            .failure_domain
            .clone()
            .or_else(|| status.and_then(|status| status.failure_domain.clone())),
        outdated: outdated
            .map(|verdict| verdict.message.clone())
            .into_iter()
            .collect(),
        server: machine.spec.provider_id.is_some(),
        node: machine.node_name().map(str::to_owned),
        problems: problems.collect(),
        ..MachineFacts::default()
    }
}

fn failure_domains(subject: &Subject) -> Vec<String> {
    let status = subject.cluster.status.as_ref();
    let domains = status
        .and_then(|status| status.failure_domains.clone())
        .unwrap_or_default();
    let ours = domains
        .into_iter()
        .filter(|domain| domain.control_plane == Some(true));
    ours.map(|domain| domain.name).collect()
}

fn surge(plane: &KubeadmControlPlane) -> usize {
    let rollout = plane.spec.rollout.as_ref();
    let strategy = rollout.and_then(|rollout| rollout.strategy.as_ref());
    let update = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
    match update.and_then(|update| update.max_surge.as_ref()) {
        Some(IntOrString::Int(0)) => 0,
        Some(IntOrString::String(text)) if text == "0" => 0,
        _ => 1,
    }
}

fn until_rollout(plane: &KubeadmControlPlane, now: Timestamp) -> Option<Duration> {
    let after = plane.spec.rollout.as_ref()?.after.as_ref()?;
    Duration::try_from(after.0.duration_since(now))
        .ok()
        .filter(|left| !left.is_zero())
}

/// Workload cluster, if connected and with a complete list of static Pods.
fn reach(scope: &Scope, subject: &Subject) -> Option<Reached> {
    let client = scope.context.remote.client(&subject.key).ok()?;
    let nodes = scope.context.remote.nodes(&subject.key).ok()?;
    let pods = scope.pods.of(&subject.key, &client)?;
    Some(Reached {
        client,
        pods,
        nodes,
    })
}

/// Input of the plan about [`Etcd`].
fn facts_of_etcd(etcd: &View) -> Etcd {
    match etcd {
        View::External => Etcd::External,
        View::Unknown(why) => Etcd::Unknown(why.clone()),
        View::NoQuorum(members) => Etcd::Unknown(etcd::without_quorum(members)),
        View::Known(members) => Etcd::Known(etcd::count(members)),
    }
}

/// True before the end of the first attempt to connect; the end triggers a reconcile.
fn is_connecting(scope: &Scope, subject: &Subject) -> bool {
    let health = scope.context.remote.health(&subject.key);
    health.is_connecting() || (health.connected && scope.pods.is_listing(&subject.key))
}

/// Removes the verdicts about the workload cluster, so that the reported conditions stay.
fn keep_reported(machines: &mut [Seen]) {
    for seen in machines {
        seen.verdicts
            .retain(|verdict| verdict.type_ == Type::UpToDate);
    }
}

/// True after the upload of the configuration by `kubeadm init`. Before, responses of the API server are not
/// reliable.
async fn has_kubeadm_config(client: &Client) -> bool {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    matches!(maps.get_metadata_opt("kubeadm-config").await, Ok(Some(_)))
}
