//! Backup and restore of a running cloud, and rotation of its passwords.
//!
//! ```text
//!   backup    Backup   a task beside the cloud, which goes on unchanged
//!   restore   Check    checks the backup: complete, and of this cloud; changes nothing
//!             Stop     the programs of services go; guests, networks and databases stay
//!             Load     databases and networks of the backup
//!             Start    the desired cloud
//!   rotate    Make     the other half of each account in its store
//!             Use      programs change to the other half
//!             Drop     the former half leaves the store
//!             Verify   a login with the former half is refused
//! ```
//!
//! The task of a backup or restore is `backup.py` in the image of the cloud's database. After an interruption the
//! operation continues in the same [`Phase`]: a [`Graph`] of steps like the graph of any cloud. [`Stages::turn`] has
//! the actions of a phase, [`Stages::report`] the report of its task.

mod rotate;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserialize;
use serde_json::{Value as Json, json};

use self::rotate::Rotation;
use crate::accounts::Written;
use crate::cloud::Cloud;
use crate::desired::{self, Graph, Step};
use crate::held::halves::Swaps;
use crate::held::{ACCOUNTS, CREDENTIAL, Credentials, FERNET, UID};
use crate::object::{ObjectKind, Reference};
use crate::plan::{self, Plan, Progress, State};
use crate::release::Release;
use crate::service::definition::{File, Run, Task};
use crate::service::stores;

/// Part whose image and nodes the tasks use.
pub(crate) const PART: &str = "mariadb";
/// Program of the tasks.
const PROGRAM: &str = include_str!("operation/backup.py");
/// Path of the program.
const PATH: &str = "/etc/backup/backup.py";
/// User of the tasks; the volume gets its group.
const USER: &str = "mysql";
/// Steps of the programs needed by a task.
const NEEDS: [&str; 3] = ["mariadb", "ovn-nb", "memcached"];
/// Steps of the tasks.
const BACKUP: &str = "backup";
const CHECK: &str = "restore-check";
const LOAD: &str = "restore-load";
/// Number of retries of a task.
const RETRIES: u32 = 3;

/// Part of an [`Operation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Writes a backup, and reads it back.
    Backup,
    /// Checks the backup.
    Check,
    /// Deletes the programs of services.
    Stop,
    /// Loads the backup.
    Load,
    /// Starts the desired cloud.
    Start,
    /// Makes the other half of each account.
    Make,
    /// Changes programs to the other half.
    Use,
    /// Deletes the former half.
    Drop,
    /// Checks that the former half is refused.
    Verify,
}

impl Phase {
    /// Every phase, in order.
    pub const ALL: [Self; 9] = [
        Self::Backup,
        Self::Check,
        Self::Stop,
        Self::Load,
        Self::Start,
        Self::Make,
        Self::Use,
        Self::Drop,
        Self::Verify,
    ];
    /// Phases of a backup.
    const OF_BACKUP: &[Self] = &[Self::Backup];
    /// Phases of a restore.
    const OF_RESTORE: &[Self] = &[Self::Check, Self::Stop, Self::Load, Self::Start];
    /// Phases of a rotation.
    const OF_ROTATION: &[Self] = &[Self::Make, Self::Use, Self::Drop, Self::Verify];

    /// Phases of the operation with this phase, in order.
    pub fn siblings(self) -> &'static [Self] {
        let all = [Self::OF_BACKUP, Self::OF_RESTORE, Self::OF_ROTATION];
        let mut all = all.into_iter();
        all.find(|it| it.contains(&self)).unwrap_or_default()
    }

    /// Next phase of the same operation.
    fn next(self) -> Option<Self> {
        let mut all = self.siblings().iter().copied();
        all.find(|it| *it > self)
    }

    /// Name of the phase.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Backup => "Backup",
            Self::Check => "Check",
            Self::Stop => "Stop",
            Self::Load => "Load",
            Self::Start => "Start",
            Self::Make => "Make",
            Self::Use => "Use",
            Self::Drop => "Drop",
            Self::Verify => "Verify",
        }
    }

    /// [`Phase`] of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Requested backup or restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Name of the operation; a backup has this name on the volume.
    pub name: String,
    /// Uid, different for another operation of the same name.
    pub uid: String,
    /// Backup to load; `None` for a backup.
    pub from: Option<String>,
}

/// Graphs of an [`Operation`].
#[derive(Clone, Debug, PartialEq)]
pub struct Stages {
    kind: Kind,
    whole: Graph,
    /// Steps needed by the tasks, and no others.
    base: Graph,
    tasks: BTreeMap<Phase, Step>,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Backup,
    Restore,
    Rotate(Rotation),
}

/// Next actions of an [`Operation`].
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// Current [`Phase`].
    pub phase: Phase,
    /// Steps of the phase.
    pub graph: Graph,
    /// [`Plan`] of the phase.
    pub plan: Plan,
    /// [`Progress`] of the phase.
    pub progress: Progress,
    /// End of the operation, with the reason of a failure; `None` before.
    pub end: Option<Result<(), String>>,
    /// Reason why the phase is not over; empty at its end.
    pub message: String,
    /// New content of Secrets of passwords and keys. Each Secret is written only if unchanged since it was read.
    pub swaps: Swaps,
}

impl Stages {
    /// Stages of a backup or a restore of a cloud with the steps `whole`.
    ///
    /// # Errors
    /// Missing volume or parameter: the operation waits for it.
    pub fn new(
        cloud: &Cloud,
        held: &Credentials,
        whole: &Graph,
        operation: &Operation,
        objects: &[Json],
    ) -> Result<Self, String> {
        let Some(backups) = &cloud.parameters.backup else {
            return Err(format!(
                "spec.backup of the cloud {} is not set: it names the volume",
                cloud.name
            ));
        };
        let claim = &backups.claim_name;
        let wanted = Reference {
            kind: ObjectKind::PersistentVolumeClaim,
            name: claim.clone(),
        };
        let mut there = objects.iter().filter_map(Reference::from_object);
        if !there.any(|it| it == wanted) {
            return Err(format!(
                "spec.backup.claimName: there is no PersistentVolumeClaim {claim} in namespace {}",
                cloud.namespace
            ));
        }
        let (kind, phases) = match operation.from {
            None => (Kind::Backup, Phase::OF_BACKUP),
            Some(_) => (Kind::Restore, Phase::OF_RESTORE),
        };
        let step = |phase: &Phase| Some((*phase, step(cloud, held, operation, *phase)?));
        Ok(Self {
            kind,
            base: needed(whole),
            whole: whole.clone(),
            tasks: phases.iter().filter_map(step).collect(),
        })
    }

    /// Every [`Step`] of the cloud.
    pub fn whole(&self) -> &Graph {
        &self.whole
    }

    /// First unfinished [`Phase`], from a recorded one on, with its actions.
    pub fn turn(
        &self,
        recorded: Option<Phase>,
        objects: &[Json],
        pods: &[Json],
        written: &BTreeMap<String, Written>,
    ) -> Turn {
        let first = match &self.kind {
            Kind::Backup => return self.backup(objects, pods, written),
            Kind::Restore => Phase::Check,
            Kind::Rotate(_) => Phase::Make,
        };
        let mut phase = recorded.unwrap_or(first);
        loop {
            let (mut turn, is_done) = match &self.kind {
                Kind::Rotate(rotation) => self.rotate(rotation, phase, objects, pods, written),
                _ => {
                    let turn = self.restore(phase, objects, pods, written);
                    let is_gone =
                        phase != Phase::Stop || is_stopped(&self.whole.uid, objects, pods);
                    let is_done = turn.is_settled() && is_gone;
                    (turn, is_done)
                }
            };
            match (is_done, phase.next()) {
                (true, Some(next)) => phase = next,
                (true, None) => {
                    turn.end = Some(Ok(()));
                    return turn;
                }
                (false, _) => return turn,
            }
        }
    }

    /// Cloud with the task beside it: the state of the task is not part of the state of the cloud.
    fn backup(&self, objects: &[Json], pods: &[Json], written: &BTreeMap<String, Written>) -> Turn {
        let mut graph = self.whole.clone();
        graph.steps.extend(self.tasks.values().cloned());
        let plan = plan::plan(&graph, objects);
        let mut progress = plan::progress(&graph, &plan, objects, pods, written);
        let state = progress.steps.iter().position(|(name, _)| name == BACKUP);
        let state = state.map(|at| progress.steps.remove(at).1);
        let (end, message) = match state {
            Some(State::Ready) if self.is_ahead(objects, pods) => {
                (None, "the end of its Pod is awaited".to_owned())
            }
            Some(State::Ready) => (Some(Ok(())), String::new()),
            Some(State::Failed(why)) => (Some(Err(why)), String::new()),
            Some(other) => (None, other.message().to_owned()),
            None => (None, String::new()),
        };
        Turn {
            phase: Phase::Backup,
            graph,
            plan,
            progress,
            end,
            message,
            swaps: Swaps::new(),
        }
    }

    fn restore(
        &self,
        phase: Phase,
        objects: &[Json],
        pods: &[Json],
        written: &BTreeMap<String, Written>,
    ) -> Turn {
        let mut graph = match phase {
            Phase::Start => self.whole.clone(),
            _ => self.base.clone(),
        };
        graph.steps.extend(self.tasks.get(&phase).cloned());
        let plan = plan::plan(&graph, objects);
        let mut progress = plan::progress(&graph, &plan, objects, pods, written);
        match phase {
            Phase::Start => {}
            Phase::Stop => progress.deletions.retain(is_program),
            _ => progress.deletions.clear(),
        }
        let mut left = progress.steps.iter().filter(|(_, it)| !it.is_done());
        let failed = left.clone().find(|(_, it)| matches!(it, State::Failed(_)));
        let message = match failed.or_else(|| left.next()) {
            Some((name, state)) => format!("{name}: {}", state.message()),
            None if phase == Phase::Stop => "programs of services are ending".to_owned(),
            None => String::new(),
        };
        // Nothing has changed by then. A restore that fails later cannot end: the cloud is between two states.
        let end = match (phase, failed) {
            (Phase::Check, Some((name, State::Failed(why)))) if name == CHECK => {
                Some(Err(why.clone()))
            }
            _ => None,
        };
        Turn {
            phase,
            graph,
            plan,
            progress,
            end,
            message,
            swaps: Swaps::new(),
        }
    }
}

impl Turn {
    /// True if every step is ready, and no action is left.
    fn is_settled(&self) -> bool {
        self.progress.is_ready()
            && self.progress.actions.is_empty()
            && self.plan.conflicts.is_empty()
    }
}

/// Report of a task on a written backup ([`Phase::Backup`]) or a loaded one ([`Phase::Load`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Report {
    /// Name of the backup on the volume.
    pub backup: String,
    /// SHA-256 of the checksums of its parts, in hexadecimal.
    pub digest: String,
    /// Size of the backup, in bytes.
    pub size: i64,
    /// Removed older backups.
    #[serde(default)]
    pub removed: Vec<String>,
}

impl Stages {
    /// [`Report`] of the last task, from the status of its Pod; `None` while no task has succeeded, or if the Pod is
    /// gone.
    pub fn report(&self, objects: &[Json], pods: &[Json]) -> Option<Report> {
        self.succeeded(objects, pods).find_map(|ended| {
            let text = ended["message"].as_str()?;
            serde_json::from_str(text).ok()
        })
    }

    /// True if the Job of the last task is over but its Pod is not seen as ended: Jobs and Pods are watched separately.
    fn is_ahead(&self, objects: &[Json], pods: &[Json]) -> bool {
        let has_pods = self.ended(objects, pods).next().is_some();
        has_pods && self.succeeded(objects, pods).next().is_none()
    }

    /// Ends of the successful Pods of the last task.
    fn succeeded<'a>(
        &self,
        objects: &'a [Json],
        pods: &'a [Json],
    ) -> impl Iterator<Item = &'a Json> {
        let ended = self.ended(objects, pods);
        ended.filter(|it| it["exitCode"] == 0)
    }

    /// End of each Pod of the last task; null for a running one.
    fn ended<'a>(&self, objects: &'a [Json], pods: &'a [Json]) -> impl Iterator<Item = &'a Json> {
        let task = self.tasks.last_key_value();
        let job = task.and_then(|(_, step)| Some(step.objects.last()?.reference()));
        let mut objects = objects.iter();
        let job = objects.find(|it| job.is_some() && Reference::from_object(it).as_ref() == job);
        let uid = job.and_then(|it| it["metadata"]["uid"].as_str());
        let is_of = move |pod: &&Json| {
            let owners = pod["metadata"]["ownerReferences"].as_array();
            let mut owners = owners.into_iter().flatten();
            uid.is_some_and(|uid| owners.any(|it| it["uid"] == uid))
        };
        pods.iter()
            .filter(is_of)
            .map(|pod| &pod["status"]["containerStatuses"][0]["state"]["terminated"])
    }
}

/// True for the programs that stop in a restore: readers and writers of the databases.
fn is_program(reference: &Reference) -> bool {
    let is_workload = matches!(
        reference.kind,
        ObjectKind::Deployment | ObjectKind::StatefulSet | ObjectKind::DaemonSet
    );
    is_workload && desired::is_program(&reference.name)
}

/// True if no program of services exists, and no Pod of one.
fn is_stopped(uid: &str, objects: &[Json], pods: &[Json]) -> bool {
    let ours = |it: &&Json| it["metadata"]["labels"][UID] == uid;
    let runs = |pod: &Json| {
        let name = &pod["metadata"]["labels"]["app.kubernetes.io/name"];
        let ended = matches!(
            pod["status"]["phase"].as_str(),
            Some("Succeeded" | "Failed")
        );
        !ended && name.as_str().is_some_and(desired::is_program)
    };
    let mut there = objects
        .iter()
        .filter(ours)
        .filter_map(Reference::from_object);
    !there.any(|it| is_program(&it)) && !pods.iter().filter(ours).any(runs)
}

/// Steps needed by a task ([`NEEDS`]), and the steps needed by these.
fn needed(whole: &Graph) -> Graph {
    let mut names: BTreeSet<&str> = NEEDS.into();
    // Each step comes after those that it needs.
    for step in whole.steps.iter().rev() {
        if names.contains(step.name.as_str()) {
            names.extend(step.needs.iter().map(String::as_str));
        }
    }
    let steps = whole.steps.iter();
    Graph {
        uid: whole.uid.clone(),
        problems: whole.problems.clone(),
        steps: steps
            .filter(|it| names.contains(it.name.as_str()))
            .cloned()
            .collect(),
    }
}

/// Task of a [`Phase`] of a backup or a restore; `None` for a phase without one.
fn step(cloud: &Cloud, held: &Credentials, operation: &Operation, phase: Phase) -> Option<Step> {
    let (name, word, retries) = match phase {
        Phase::Backup => (BACKUP, "backup", RETRIES),
        // What is wrong with a backup is told at once.
        Phase::Check => (CHECK, "check", 1),
        Phase::Load => (LOAD, "load", RETRIES),
        _ => return None,
    };
    let mut about = about(cloud, held);
    about["name"] = operation
        .from
        .as_ref()
        .unwrap_or(&operation.name)
        .as_str()
        .into();
    about["operation"] = operation.uid.as_str().into();
    if phase == Phase::Backup {
        about["parameters"] = parameters(cloud);
    }
    let task = task(cloud, held, name, word, &about)?;
    Some(desired::operation(
        cloud,
        held,
        (PART, &task, retries),
        "operation",
    ))
}

/// Backup of a cloud before its upgrade, if its parameters name a volume. The [`Step`] has this name.
pub(crate) fn before_upgrade(
    cloud: &Cloud,
    held: &Credentials,
    name: &'static str,
    to: Release,
) -> Option<Step> {
    let mut about = about(cloud, held);
    about["name"] = format!("{}-before-{to}", cloud.name).into();
    about["operation"] = name.into();
    about["stamped"] = true.into();
    about["parameters"] = parameters(cloud);
    let task = task(cloud, held, name, "backup", &about)?;
    Some(desired::operation(
        cloud,
        held,
        (PART, &task, RETRIES),
        name,
    ))
}

/// Parameters of the cloud in its current release: in an upgrade the spec already names the next one.
fn parameters(cloud: &Cloud) -> Json {
    let mut spec = cloud.spec.clone();
    if let Some(fields) = spec.as_object_mut() {
        fields.insert("release".to_owned(), cloud.parameters.release.name().into());
    }
    spec
}

/// Facts of the [`Cloud`] for a task. Passwords and keys are included as digests alone, which reveal no value.
fn about(cloud: &Cloud, held: &Credentials) -> Json {
    let secrets: BTreeMap<&str, Json> =
        desired::secrets_metadata(cloud, held).into_iter().collect();
    json!({
        "stamped": false,
        "cloud": cloud.name,
        "uid": held.uid(),
        "release": cloud.parameters.release.name(),
        "databases": desired::databases(cloud, held),
        "keys": held.digests(),
        "secrets": secrets,
        "keep": cloud.parameters.backup.as_ref().map(|it| it.keep),
        "northbound": stores::northbound(&cloud.namespace),
        "cache": stores::CACHE,
    })
}

/// Secrets of passwords and keys, with their paths.
fn keys() -> Vec<(String, &'static str)> {
    let paths = [
        (ACCOUNTS, "/keys/openstack-accounts"),
        (FERNET, "/keys/keystone-fernet-keys"),
        (CREDENTIAL, "/keys/keystone-credential-keys"),
    ];
    paths.map(|(name, path)| (name.to_owned(), path)).into()
}

fn task(
    cloud: &Cloud,
    held: &Credentials,
    name: &'static str,
    word: &str,
    about: &Json,
) -> Option<Task> {
    let backups = cloud.parameters.backup.as_ref()?;
    let certificate = format!("{}\n", backups.certificate.trim());
    let mut command = vec!["python3".to_owned(), PATH.to_owned(), word.to_owned()];
    // Policies follow what a command names.
    command.push(stores::DATABASE.to_owned());
    // From there the kubelet takes the report into the status of the Pod.
    command.push("/dev/termination-log".to_owned());
    let run = Run {
        command,
        user: USER,
        files: vec![
            File::public("backup-program", PATH, PROGRAM.to_owned()),
            File::public(
                "backup-certificate",
                "/etc/backup/certificate.pem",
                certificate,
            ),
            // Parameters may have what is not for everybody.
            File::secret(name, "/etc/backup/cloud.json", about.to_string()),
            stores::login(held),
        ],
        keys: match word {
            "backup" => keys(),
            _ => Vec::new(),
        },
        scratch: vec!["/tmp"],
        claims: vec![(backups.claim_name.clone(), "/backups")],
        ..Run::default()
    };
    Some(Task {
        name,
        run,
        needs: NEEDS.to_vec(),
        repeat: false,
    })
}
