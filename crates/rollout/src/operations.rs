//! OpenStackOperation objects: the next one, and the state of each. Pure, except for writes of the status.

use api::openstack::operation::{
    FAILED, OpenStackOperation, OpenStackOperationStatus, OperationStep, PENDING, RUNNING,
    SUCCEEDED,
};
use deployer::operation::{Operation, Phase, Report, Stages};
use deployer::{Cloud, Credentials, Graph};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::{Client, ResourceExt as _};
use operator::client::Api;
use operator::patch;

use crate::problem::Problem;
use crate::view::Seen;

/// The longest message in a status, in bytes.
const LONGEST: usize = 2000;

/// Operation in progress.
pub(crate) struct Running {
    pub(crate) object: OpenStackOperation,
    pub(crate) stages: Stages,
}

/// How far an operation is.
#[derive(Clone, Debug)]
pub(crate) struct Stand {
    pub(crate) phase: Phase,
    pub(crate) end: Option<Result<(), String>>,
    pub(crate) message: String,
    pub(crate) report: Option<Report>,
}

impl Stand {
    /// Without passwords and keys: it repeats the ends of logs.
    pub(crate) fn masked(&self, held: &Credentials) -> Self {
        Self {
            end: self
                .end
                .clone()
                .map(|it| it.map_err(|why| held.masked(&why))),
            message: held.masked(&self.message),
            ..self.clone()
        }
    }
}

/// Unfinished [`OpenStackOperation`]s on a cloud, in order.
fn unfinished(seen: &Seen, cloud: &str) -> Vec<OpenStackOperation> {
    let read = |it: &serde_json::Value| {
        // What cannot be read is an object of a newer version.
        serde_json::from_value::<OpenStackOperation>(it.clone()).ok()
    };
    let mut all: Vec<OpenStackOperation> = seen.operations.iter().filter_map(read).collect();
    all.retain(|it| {
        let is_over = it
            .status
            .as_ref()
            .is_some_and(OpenStackOperationStatus::is_over);
        it.spec.openstack == cloud && !is_over && it.metadata.deletion_timestamp.is_none()
    });
    // Whoever has begun goes on, whatever the clocks said.
    all.sort_by_key(|it| {
        (
            recorded(it).is_none(),
            it.creation_timestamp(),
            it.name_any(),
        )
    });
    all
}

/// Next [`OpenStackOperation`] on a cloud of the steps, or the reason of the wait; `None` without one.
pub(crate) fn next(
    seen: &Seen,
    cloud: &Cloud,
    held: &Credentials,
    whole: &Graph,
) -> Option<Result<Running, String>> {
    let object = unfinished(seen, &cloud.name).into_iter().next()?;
    if let Some(rotate) = &object.spec.rotate {
        let stages = Stages::rotation(cloud, held, whole, &rotate.only, rand::random);
        return Some(Ok(Running { object, stages }));
    }
    let operation = Operation {
        name: object.name_any(),
        uid: object.uid().unwrap_or_default(),
        from: object.spec.restore.as_ref().map(|it| it.from.clone()),
    };
    let stages = Stages::new(cloud, held, whole, &operation, &seen.objects);
    Some(stages.map(|stages| Running { object, stages }))
}

/// Operation that blocks all others until the end, in words: a restore that has stopped the programs of a cloud, or a
/// rotation under way.
pub(crate) fn first(seen: &Seen, cloud: &str) -> Option<String> {
    let words = |it: &OpenStackOperation| {
        let name = it.name_any();
        match recorded(it)? {
            Phase::Backup | Phase::Check => None,
            Phase::Stop | Phase::Load | Phase::Start => Some(format!(
                "restore {name} has stopped the programs of services"
            )),
            Phase::Make | Phase::Use | Phase::Drop | Phase::Verify => Some(format!(
                "rotation {name} has replaced some of the passwords"
            )),
        }
    };
    unfinished(seen, cloud).iter().find_map(words)
}

/// Newest backup of a cloud, and its time.
pub(crate) fn last_backup(seen: &Seen, cloud: &str) -> Option<(String, String)> {
    let done = seen.operations.iter().filter(|it| {
        it["spec"]["openstack"] == cloud
            && it["status"]["phase"] == SUCCEEDED
            && !it["spec"]["backup"].is_null()
    });
    let text = |it: &serde_json::Value| {
        let status = &it["status"];
        Some((
            status["started"].as_str()?.to_owned(),
            status["backup"].as_str()?.to_owned(),
        ))
    };
    done.filter_map(text).max().map(|(time, name)| (name, time))
}

/// Last recorded phase.
pub(crate) fn recorded(object: &OpenStackOperation) -> Option<Phase> {
    Phase::named(&object.status.as_ref()?.steps.last()?.name)
}

/// Writes the state of each unfinished [`OpenStackOperation`] on a cloud: `running` is carried out, the others wait.
pub(crate) async fn write(
    client: &Client,
    seen: &Seen,
    cloud: &Cloud,
    running: Option<(&OpenStackOperation, Stand)>,
    waits: &str,
) -> Result<(), Problem> {
    let api: Api<OpenStackOperation> = Api::namespaced(client.clone(), &cloud.namespace);
    for object in unfinished(seen, &cloud.name) {
        let mut after = object.clone();
        let now = Timestamp::now();
        after.status = Some(match &running {
            Some((it, stand)) if it.uid() == object.uid() => after_look(&object, stand, now),
            _ => waiting(&object, waits),
        });
        match patch::status(&api, &object, &after).await {
            // It was deleted meanwhile.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            written => {
                written.map_err(Problem::api("writing the status of an operation"))?;
            }
        }
    }
    Ok(())
}

fn waiting(object: &OpenStackOperation, why: &str) -> OpenStackOperationStatus {
    let mut status = object.status.clone().unwrap_or_default();
    status.phase = status.phase.or_else(|| Some(PENDING.to_owned()));
    why.clone_into(&mut status.message);
    status
}

/// The status after a look.
fn after_look(
    object: &OpenStackOperation,
    stand: &Stand,
    now: Timestamp,
) -> OpenStackOperationStatus {
    let mut status = object.status.clone().unwrap_or_default();
    status.phase = Some(RUNNING.to_owned());
    status.started = status.started.or(Some(Time(now)));
    status.message = shortened(&stand.message);
    steps(&mut status.steps, stand, now);
    if let Some(report) = &stand.report {
        status.backup = Some(report.backup.clone());
        status.digest = Some(report.digest.clone());
        status.size = Some(report.size);
        status.removed.clone_from(&report.removed);
    }
    if let Some(end) = &stand.end {
        status.finished = Some(Time(now));
        let (phase, message) = match end {
            Ok(()) => (SUCCEEDED, ""),
            Err(why) => (FAILED, why.as_str()),
        };
        status.phase = Some(phase.to_owned());
        status.message = shortened(message);
        // The report is gone with its Pod when the node is.
        let from = object.spec.restore.as_ref().map(|it| it.from.clone());
        let name = from.unwrap_or_else(|| object.name_any());
        if end.is_ok() && object.spec.rotate.is_none() {
            status.backup = status.backup.or(Some(name));
        }
    }
    status
}

/// Notes the start or the end of a step.
fn steps(all: &mut Vec<OperationStep>, stand: &Stand, now: Timestamp) {
    let passed = stand.phase.siblings().iter();
    for phase in passed.filter(|it| **it <= stand.phase) {
        if !all.iter().any(|it| it.name == phase.name()) {
            all.push(OperationStep {
                name: phase.name().to_owned(),
                started: Some(Time(now)),
                seconds: None,
            });
        }
    }
    for it in all.iter_mut() {
        let is_past = Phase::named(&it.name).is_some_and(|it| it < stand.phase);
        let since = it.started.as_ref();
        let since = since.map(|it| now.duration_since(it.0).as_secs().max(0));
        if is_past || stand.end.is_some() {
            it.seconds = it.seconds.or(since);
        }
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests;
