//! Rotation of passwords by the two halves of each account ([`crate::held::halves`]), and of the keys of Keystone
//! ([`crate::held::keys`]).
//!
//! Each [`Phase`] swaps keys of the Secrets of passwords and keys, and is over when the cloud follows. The swaps are
//! computed from the content of the Secret, so that no swap is done twice.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::{Kind, PART, Phase, Stages, Turn, USER};
use crate::accounts::Written;
use crate::cloud::Cloud;
use crate::desired::{self, CONFIGURES, Graph, REVISION, Step};
use crate::held::halves::{ADMINISTRATOR, ROTATED, STORES, Swap, Swaps};
use crate::held::keys::KEYS;
use crate::held::{ACCOUNTS, CREDENTIAL, Credentials, UID};
use crate::object::ObjectKind;
use crate::plan::{self, Plan, Progress, State};
use crate::project::Service;
use crate::service::definition::{File, Run, Task, Variable, command};
use crate::service::stores;

/// Step of the task that tests former logins.
const CHECK: &str = "rotation-check";
/// Step of the task that encrypts credentials with the new key.
const MIGRATE: &str = "rotation-credentials";
/// Part of the task [`MIGRATE`].
const KEYSTONE: &str = "keystone";
/// Program of the task [`CHECK`].
const PROGRAM: &str = include_str!("refused.py");
const PATH: &str = "/etc/rotation/refused.py";
/// Number of retries of the task, since a store may be unavailable for a moment.
const RETRIES: u32 = 3;

/// Rotation, by the next swaps from the content of the Secret of the accounts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rotation {
    make: Swaps,
    /// True if a half is left from an interrupted rotation, to be replaced by [`Self::make`].
    has_leftovers: bool,
    used: Swaps,
    dropped: Swaps,
    administrator: Swaps,
    forgotten: Swaps,
}

impl Stages {
    /// Names of everything that is rotated: stores, keys and accounts.
    pub fn rotated() -> impl Iterator<Item = &'static str> {
        let keys = KEYS.iter().map(|(name, _)| *name);
        STORES.into_iter().chain(keys).chain(ROTATED)
    }

    /// [`Stages`] of a rotation of the given keys and accounts, or of all accounts in the given stores, in a cloud with
    /// the steps `whole`; of everything without a name. New passwords are made from random bytes.
    pub fn rotation(
        cloud: &Cloud,
        held: &Credentials,
        whole: &Graph,
        names: &[String],
        mut random: impl FnMut() -> u8,
    ) -> Self {
        let is_chosen = |account: &&str| {
            let is_of = |name: &String| {
                let rest = account.strip_prefix(name.as_str());
                rest.is_some_and(|it| it.is_empty() || it.starts_with('-'))
            };
            names.is_empty() || names.iter().any(is_of)
        };
        let is_there = |account: &&str| {
            let service = account.split_once('-').map(|(_, it)| it);
            let service = service.and_then(Service::named);
            service.is_none_or(|it| cloud.parameters.has(it))
        };
        let accounts = ROTATED.into_iter().filter(is_there);
        let mut chosen: BTreeSet<&str> = accounts.filter(is_chosen).collect();
        let administrator: BTreeSet<&str> = chosen.take(ADMINISTRATOR).into_iter().collect();
        let mut dropped = held.without_former();
        dropped.extend(held.with_next(&administrator, &mut random));
        let mut make = Swaps::from([(ACCOUNTS, held.with_next(&chosen, &mut random))]);
        let mut used = Swaps::from([(ACCOUNTS, held.used())]);
        for (name, secret) in KEYS {
            if is_chosen(&name) {
                make.insert(secret, held.staged(secret, &mut random));
            }
            used.insert(secret, held.promoted(secret, &mut random));
        }
        let accounts = |swap: Swap| some(Swaps::from([(ACCOUNTS, swap)]));
        let rotation = Rotation {
            make: some(make),
            has_leftovers: held.has_leftovers(&chosen),
            used: some(used),
            dropped: some(Swaps::from([
                (ACCOUNTS, dropped),
                (CREDENTIAL, held.migrated()),
            ])),
            administrator: accounts(held.with_administrator()),
            forgotten: accounts(held.forgotten()),
        };
        let check = (!rotation.forgotten.is_empty()).then(|| (Phase::Verify, check(cloud, held)));
        let migrate = held.is_migrating().then(|| migrate(cloud, held)).flatten();
        let tasks = check.into_iter().chain(migrate.map(|it| (Phase::Drop, it)));
        Self {
            kind: Kind::Rotate(rotation),
            whole: whole.clone(),
            base: Graph::default(),
            tasks: tasks.collect(),
        }
    }

    /// [`Turn`] of a phase of a rotation, and true if the phase is over.
    pub(super) fn rotate(
        &self,
        rotation: &Rotation,
        phase: Phase,
        objects: &[Json],
        pods: &[Json],
        written: &BTreeMap<String, Written>,
    ) -> (Turn, bool) {
        let mut graph = self.whole.clone();
        // The administrator is among the logins that are tried.
        let is_early = phase == Phase::Verify && !rotation.administrator.is_empty();
        let task = self.tasks.get(&phase).filter(|_| !is_early);
        graph.steps.extend(task.cloned());
        let plan = plan::plan(&graph, objects);
        let mut progress = plan::progress(&graph, &plan, objects, pods, written);
        // What becomes of the task is nothing of the cloud's.
        let is_task = |name: &String| task.is_some_and(|it| it.name == *name);
        let state = progress.steps.iter().position(|(name, _)| is_task(name));
        let state = state.map(|at| progress.steps.remove(at));
        let swaps = rotation.swaps(phase);
        let behind = match phase {
            Phase::Make if rotation.has_leftovers => behind(&graph, pods),
            Phase::Make => late(&graph, pods),
            Phase::Use => behind(&graph, pods).or_else(|| late(&graph, pods)),
            _ => None,
        };
        let mut turn = turn(phase, graph, plan, progress);
        let is_tried = state.as_ref().is_none_or(|(_, it)| it.is_done());
        let is_settled = turn.is_settled() && is_tried;
        // In Use the swap begins what is waited for.
        let can_swap = is_settled && (phase == Phase::Use || behind.is_none());
        if turn.message.is_empty() {
            turn.message = match state.filter(|(_, it)| !it.is_done()) {
                Some((name, state)) => format!("{name}: {}", state.message()),
                None => behind.clone().unwrap_or_default(),
            };
        }
        let is_done = is_settled && swaps.is_empty() && behind.is_none();
        if can_swap {
            turn.swaps = swaps;
        }
        (turn, is_done)
    }
}

impl Rotation {
    /// [`Swaps`] of a phase, without the ones done before.
    fn swaps(&self, phase: Phase) -> Swaps {
        let swaps = match phase {
            Phase::Make => &self.make,
            Phase::Use => &self.used,
            Phase::Drop => &self.dropped,
            _ if !self.administrator.is_empty() => &self.administrator,
            _ => &self.forgotten,
        };
        swaps.clone()
    }
}

/// [`Swaps`] without empty ones.
fn some(mut swaps: Swaps) -> Swaps {
    swaps.retain(|_, it| !it.is_empty());
    swaps
}

fn turn(phase: Phase, graph: Graph, plan: Plan, progress: Progress) -> Turn {
    let mut left = progress.steps.iter().filter(|(_, it)| !it.is_done());
    let is_stuck = |it: &State| matches!(it, State::Failed(_) | State::Conflict(_));
    let stuck = left.clone().find(|(_, it)| is_stuck(it));
    let busy = left
        .clone()
        .find(|(_, it)| matches!(it, State::Progressing(_)));
    let first = stuck.or(busy).or_else(|| left.next());
    let message = first.map_or_else(String::new, |(name, state)| {
        format!("{name}: {}", state.message())
    });
    Turn {
        phase,
        graph,
        plan,
        progress,
        end: None,
        message,
        swaps: Swaps::new(),
    }
}

/// First Pod with a former configuration, and thus former passwords, in words.
fn behind(graph: &Graph, pods: &[Json]) -> Option<String> {
    let files = graph.objects().filter(|(_, object)| {
        let is_file = !object.public()["metadata"]["labels"][CONFIGURES].is_null();
        object.reference().kind == ObjectKind::Secret && is_file
    });
    // The name of a file begins with that of the volume; a digest follows.
    let files: BTreeSet<&str> = files.map(|(_, it)| it.reference().name.as_str()).collect();
    let volumes: BTreeSet<&str> = files
        .iter()
        .filter_map(|it| Some(it.rsplit_once('-')?.0))
        .collect();
    let is_former = |volume: &Json| {
        let is_file = volume["name"]
            .as_str()
            .is_some_and(|it| volumes.contains(it));
        let secret = volume["secret"]["secretName"].as_str();
        is_file && secret.is_some_and(|it| !files.contains(it))
    };
    let ours = |pod: &&Json| pod["metadata"]["labels"][UID] == graph.uid.as_str();
    let mut running = pods.iter().filter(ours).filter(|it| !has_ended(it));
    let pod = running.find(|pod| {
        let volumes = pod["spec"]["volumes"].as_array();
        volumes.into_iter().flatten().any(is_former)
    })?;
    let metadata = &pod["metadata"];
    let [namespace, name] =
        [&metadata["namespace"], &metadata["name"]].map(|it| it.as_str().unwrap_or_default());
    let node = pod["spec"]["nodeName"].as_str().unwrap_or("no node");
    let how = match metadata["deletionTimestamp"].is_null() {
        true => format!("`kubectl -n {namespace} delete pod {name}` has it made again"),
        false => "its end is awaited".to_owned(),
    };
    Some(format!(
        "Pod {name} on {node} has former passwords, which stay until it is gone: {how}"
    ))
}

/// First Pod made before the current keys of Keystone, in words.
fn late(graph: &Graph, pods: &[Json]) -> Option<String> {
    let annotation = |metadata: &Json| {
        metadata["annotations"][REVISION]
            .as_str()
            .map(str::to_owned)
    };
    let wanted = graph.objects().find_map(|(step, object)| {
        let template = &object.public()["spec"]["template"]["metadata"];
        Some((step.name.as_str(), annotation(template)?))
    });
    let (program, revision) = wanted?;
    let is_late = |pod: &&Json| {
        let metadata = &pod["metadata"];
        metadata["labels"][UID] == graph.uid.as_str()
            && metadata["labels"]["app.kubernetes.io/name"] == program
            && annotation(metadata).as_ref() != Some(&revision)
            && !has_ended(pod)
    };
    let pod = pods.iter().find(is_late)?;
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let node = pod["spec"]["nodeName"].as_str().unwrap_or("no node");
    Some(format!(
        "Pod {name} on {node} has former keys: its end is awaited"
    ))
}

fn has_ended(pod: &Json) -> bool {
    let phase = pod["status"]["phase"].as_str();
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Task that encrypts the credentials in Keystone with the primary key. Another key makes another task.
fn migrate(cloud: &Cloud, held: &Credentials) -> Option<Step> {
    let mut task = desired::task_named(cloud, held, "keystone-schema")?;
    task.name = MIGRATE;
    task.run.command = command(&["keystone-manage", "credential_migrate"]);
    task.run.environment = vec![("KEYS", Variable::Text(held.revision()?))];
    task.needs = vec!["keystone-api"];
    task.repeat = false;
    Some(desired::operation(
        cloud,
        held,
        (KEYSTONE, &task, RETRIES),
        "rotation",
    ))
}

/// Task that tests former logins.
fn check(cloud: &Cloud, held: &Credentials) -> Step {
    let logins = held.dropped().into_iter();
    let login = |(account, login): (&str, crate::held::halves::Login)| {
        let store = account.split('-').next();
        json!({"store": store, "user": login.user, "password": login.password.expose()})
    };
    let logins: Vec<Json> = logins.map(login).collect();
    let former = json!({
        "addresses": {
            "database": stores::DATABASE,
            "messaging": stores::BROKER,
            "identity": stores::IDENTITY,
        },
        "logins": logins,
    });
    let mut command = vec!["python3".to_owned(), PATH.to_owned()];
    // Policies follow what a command names.
    command.extend([stores::DATABASE, stores::BROKER].map(str::to_owned));
    let run = Run {
        command,
        user: USER,
        files: vec![
            File::public("rotation-program", PATH, PROGRAM.to_owned()),
            File::secret(CHECK, "/etc/rotation/former.json", former.to_string()),
        ],
        scratch: vec!["/tmp"],
        ..Run::default()
    };
    let task = Task {
        name: CHECK,
        run,
        needs: vec!["mariadb", "rabbitmq", "keystone-api"],
        repeat: false,
    };
    desired::operation(cloud, held, (PART, &task, RETRIES), "rotation")
}

#[cfg(test)]
mod tests;
