//! Scheduled backups and rotations: at each time of a schedule, an OpenStackOperation.
//!
//! The time of the next operation is in the status of the cloud, and the name of an operation has the time of its schedule. Whoever is
//! interrupted between the two finds the operation again, and makes no second one. Times that have passed while no controller ran count as one.

use std::sync::Arc;
use std::time::Duration;

use api::openstack::operation::{
    Backup, OpenStackOperation, OpenStackOperationSpec, OpenStackOperationStatus, Rotate,
};
use api::openstack::v1alpha1::{OpenStack, ScheduleStatus};
use deployer::{Cloud, Schedule};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, ObjectMeta, PostParams, Preconditions};
use kube::runtime::controller::Action;
use kube::{Client, Resource as _, ResourceExt as _};
use operator::client::Api;
use operator::patch;
use serde_json::Value;

use crate::described;
use crate::problem::Problem;
use crate::view::View;

/// Label of an operation with the name of its schedule.
const SCHEDULE: &str = "ferrostack.dev/schedule";

/// Number of operations of a schedule that stay when they are over.
const HISTORY: usize = 10;

/// The longest sleep: clocks are set, and machines sleep.
const LONGEST: Duration = Duration::from_secs(600);

/// The present time, which tests set.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// A clock that shows what `now` returns.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Time now.
    pub(crate) fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new(Timestamp::now)
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Clock({})", self.now())
    }
}

/// Context of every reconcile.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) view: View,
    pub(crate) clock: Clock,
}

/// Follows the schedules of a cloud.
pub(crate) async fn reconcile(
    object: Arc<OpenStack>,
    context: Arc<Context>,
) -> Result<Action, Problem> {
    if object.metadata.deletion_timestamp.is_some() || object.spec.paused || has_none(&object) {
        return Ok(Action::await_change());
    }
    let Ok(cloud) = described::cloud(&object)? else {
        return Ok(Action::await_change());
    };
    let now = context.clock.now();
    let seen = match is_due(&object, now) {
        true => context.view.operations(&cloud.namespace).await?,
        false => Vec::new(),
    };
    let plan = Plan::new(&object, &cloud, &seen, now);
    plan.apply(&context.client, &cloud.namespace).await?;
    let action = next(&plan.schedules, now);
    let mut after = (*object).clone();
    after.status.get_or_insert_default().schedules = plan.schedules;
    let api: Api<OpenStack> = Api::namespaced(context.client.clone(), &cloud.namespace);
    let written = patch::status(&api, &object, &after).await;
    written.map_err(Problem::api("writing the schedules"))?;
    Ok(action)
}

/// Reconcile at the next time of a schedule.
fn next(schedules: &[ScheduleStatus], now: Timestamp) -> Action {
    let next = schedules.iter().filter_map(|it| it.next.as_ref()).min();
    let left = next.map(|it| Duration::try_from(it.0.duration_since(now)).unwrap_or_default());
    left.map_or_else(Action::await_change, |it| Action::requeue(it.min(LONGEST)))
}

/// True for a cloud without schedules, also in its status: most changes of most clouds end here.
fn has_none(object: &OpenStack) -> bool {
    let backup = object.spec.backup.as_ref();
    let is_followed = object
        .status
        .as_ref()
        .is_some_and(|it| !it.schedules.is_empty());
    !is_followed && object.spec.rotation.is_none() && backup.is_none_or(|it| it.schedule.is_none())
}

/// True if the time of a schedule has come, and the operations matter.
fn is_due(object: &OpenStack, now: Timestamp) -> bool {
    let recorded = object.status.iter().flat_map(|it| &it.schedules);
    let mut times = recorded.filter_map(|it| it.next.as_ref());
    times.any(|it| it.0 <= now)
}

/// Operations that are made and removed now, and the schedules afterwards.
#[derive(Debug, Default)]
struct Plan {
    made: Vec<OpenStackOperation>,
    removed: Vec<OpenStackOperation>,
    schedules: Vec<ScheduleStatus>,
}

impl Plan {
    fn new(object: &OpenStack, cloud: &Cloud, seen: &[Value], now: Timestamp) -> Self {
        let mut plan = Self::default();
        let recorded = object.status.as_ref().map(|it| it.schedules.as_slice());
        for (name, text) in wanted(cloud) {
            let Ok(schedule) = Schedule::read(text) else {
                continue;
            };
            let known = recorded.unwrap_or_default().iter();
            let mut known = known.filter(|it| it.name == name && it.schedule == text);
            let mut entry = known.next().cloned().unwrap_or_else(|| ScheduleStatus {
                name: name.to_owned(),
                schedule: text.to_owned(),
                next: schedule.next(now).map(Time),
                ..ScheduleStatus::default()
            });
            if let Some(time) = entry.next.clone().filter(|it| it.0 <= now) {
                plan.due(&mut entry, object, seen, time.0);
                entry.next = schedule.next(now).map(Time);
            }
            plan.schedules.push(entry);
        }
        plan
    }

    /// Writes the operations.
    async fn apply(&self, client: &Client, namespace: &str) -> Result<(), Problem> {
        let api: Api<OpenStackOperation> = Api::namespaced(client.clone(), namespace);
        for operation in &self.made {
            create(&api, operation).await?;
        }
        for operation in &self.removed {
            remove(&api, operation).await?;
        }
        Ok(())
    }

    /// Makes the operation of a time, unless it is there or the one before is not over.
    fn due(
        &mut self,
        entry: &mut ScheduleStatus,
        object: &OpenStack,
        seen: &[Value],
        time: Timestamp,
    ) {
        let operation = operation(object, &entry.name, time);
        let name = operation.name_any();
        let there = seen.iter();
        let there: Vec<OpenStackOperation> = there
            .filter_map(|it| serde_json::from_value(it.clone()).ok())
            .collect();
        let (mut ours, others): (Vec<_>, Vec<_>) = there
            .into_iter()
            .partition(|it| is_of(it, object, &entry.name));
        let is_there = ours.iter().any(|it| it.name_any() == name);
        let unfinished = ours.iter().find(|it| !is_over(it));
        let is_taken = others.iter().any(|it| it.name_any() == name);
        entry.message = match unfinished {
            Some(it) if !is_there => format!("{} is not over", it.name_any()),
            _ if is_taken => format!("the OpenStackOperation {name} is not of this schedule"),
            _ => String::new(),
        };
        if !entry.message.is_empty() {
            return;
        }
        entry.operation = Some(name);
        if !is_there {
            self.made.push(operation);
        }
        ours.retain(is_over);
        ours.sort_by_key(|it| std::cmp::Reverse((it.creation_timestamp(), it.name_any())));
        self.removed.extend(ours.into_iter().skip(HISTORY));
    }
}

/// Name and times of each schedule of a cloud.
fn wanted(cloud: &Cloud) -> impl Iterator<Item = (&'static str, &str)> {
    let parameters = &cloud.parameters;
    let backup = parameters.backup.as_ref();
    let backup = backup.and_then(|it| it.schedule.as_deref());
    let rotation = parameters.rotation.as_ref();
    let rotation = rotation.map(|it| it.schedule.as_str());
    let all = [("backup", backup), ("rotation", rotation)];
    all.into_iter()
        .filter_map(|(name, text)| Some((name, text?)))
}

/// The operation of a schedule at a time.
fn operation(object: &OpenStack, schedule: &str, time: Timestamp) -> OpenStackOperation {
    let cloud = object.name_any();
    let spec = OpenStackOperationSpec {
        openstack: cloud.clone(),
        backup: (schedule == "backup").then(Backup::default),
        rotate: (schedule == "rotation").then(Rotate::default),
        restore: None,
    };
    let time = time.strftime("%Y%m%d-%H%M");
    let mut operation = OpenStackOperation::new(&format!("{cloud}-{schedule}-{time}"), spec);
    operation.metadata = ObjectMeta {
        labels: Some([(SCHEDULE.to_owned(), schedule.to_owned())].into()),
        owner_references: object.owner_ref(&()).map(|it| vec![it]),
        ..operation.metadata
    };
    operation
}

/// True for an operation that a schedule of this cloud has made.
fn is_of(operation: &OpenStackOperation, object: &OpenStack, schedule: &str) -> bool {
    let label = operation.labels().get(SCHEDULE);
    let mut owners = operation.owner_references().iter();
    label.is_some_and(|it| it == schedule)
        && owners.any(|it| Some(&it.uid) == object.metadata.uid.as_ref())
}

fn is_over(operation: &OpenStackOperation) -> bool {
    let status = operation.status.as_ref();
    status.is_some_and(OpenStackOperationStatus::is_over)
}

async fn create(
    api: &Api<OpenStackOperation>,
    operation: &OpenStackOperation,
) -> Result<(), Problem> {
    let created = api.create(&PostParams::default(), operation).await;
    created.map_err(Problem::api("making a scheduled operation"))?;
    Ok(())
}

async fn remove(
    api: &Api<OpenStackOperation>,
    operation: &OpenStackOperation,
) -> Result<(), Problem> {
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: operation.uid(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    match api.delete(&operation.name_any(), &params).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        deleted => {
            deleted.map_err(Problem::api("removing an old scheduled operation"))?;
            Ok(())
        }
    }
}
