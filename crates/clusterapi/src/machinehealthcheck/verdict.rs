//! Health of a machine.

use std::sync::Arc;
use std::time::Duration;

use api::conditions::{self, Reason, Type};
use api::core::v1beta2::{Cluster, HealthChecks, Machine};
use api::k8s_openapi::api::core::v1::Node;
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use api::k8s_openapi::jiff::Timestamp;
use api::kube::ResourceExt;
use api::names::{CONTROL_PLANE_LABEL, REMEDIATE_MACHINE_ANNOTATION};

use crate::update;

/// Default of `nodeStartupTimeoutSeconds`, for objects from before the default.
const STARTUP: i32 = 600;

/// Checked machine, and its Node.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) machine: Arc<Machine>,
    pub(super) node: Seen,
}

/// Node of a machine.
#[derive(Clone, Debug)]
pub(super) enum Seen {
    /// The machine has no Node yet.
    None,
    /// The former Node does not exist any more.
    Gone,
    /// The [`Node`].
    There(Arc<Node>),
}

/// Health of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// With a Node, and without a problem.
    Healthy,
    /// Starting, being deleted, or with a problem that has not lasted long enough; with the time until the next
    /// check.
    Undecided(Option<Duration>),
    /// To be replaced.
    Unhealthy(Cause),
}

/// Reason and message of the condition of an unhealthy machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cause {
    pub(super) reason: Reason,
    pub(super) message: String,
}

/// Problem, and the time from which it makes the machine unhealthy.
struct Problem {
    due: Timestamp,
    cause: Cause,
}

/// [`Health`] of `target` at `now`.
pub(super) fn health(
    target: &Target,
    cluster: &Cluster,
    checks: &HealthChecks,
    now: Timestamp,
) -> Health {
    // The owner of a machine under an update in place decides about a failure of the update.
    if target.machine.is_deleting() || update::is_under_way(&target.machine) {
        return Health::Undecided(None);
    }
    if target
        .machine
        .annotations()
        .contains_key(REMEDIATE_MACHINE_ANNOTATION)
    {
        return Health::Unhealthy(cause(
            Reason::HasRemediateAnnotation,
            format!("marked for remediation via {REMEDIATE_MACHINE_ANNOTATION} annotation"),
        ));
    }
    let problems = problems(target, cluster, checks);
    if let Some(due) = problems.iter().find(|problem| problem.due <= now) {
        return Health::Unhealthy(due.cause.clone());
    }
    let next = problems.iter().map(|problem| problem.due).min();
    let left = next.map(|due| Duration::try_from(due.duration_since(now)).unwrap_or_default());
    match left {
        None if matches!(target.node, Seen::There(_)) => Health::Healthy,
        left => Health::Undecided(left),
    }
}

fn problems(target: &Target, cluster: &Cluster, checks: &HealthChecks) -> Vec<Problem> {
    let mut problems = of_machine(&target.machine, checks);
    let is_worker = !target.machine.labels().contains_key(CONTROL_PLANE_LABEL);
    let has = |type_| conditions::is_true(cluster.conditions(), type_);
    // Without infrastructure there are no machines, and without a control plane workers have nothing to join.
    if !has(Type::InfrastructureReady) || (is_worker && !has(Type::ControlPlaneInitialized)) {
        return problems;
    }
    match &target.node {
        Seen::None => problems.extend(startup(&target.machine, cluster, checks)),
        Seen::Gone => problems.push(Problem {
            due: Timestamp::MIN,
            cause: cause(Reason::NodeDeleted, "Node has been deleted".to_owned()),
        }),
        Seen::There(node) => problems.extend(of_node(node, checks)),
    }
    problems
}

fn of_machine(machine: &Machine, checks: &HealthChecks) -> Vec<Problem> {
    let wanted = checks.unhealthy_machine_conditions.iter().flatten();
    let found = wanted.filter_map(|check| {
        let status = check.status.as_str();
        let known = conditions::find(machine.conditions(), &check.type_)?;
        let since = known.last_transition_time.0;
        (known.status == status).then(|| Problem {
            due: after(since, check.timeout_seconds),
            cause: lasting(
                Reason::UnhealthyMachine,
                "Machine",
                &check.type_,
                status,
                check.timeout_seconds,
            ),
        })
    });
    found.collect()
}

fn of_node(node: &Node, checks: &HealthChecks) -> Vec<Problem> {
    let known = node
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    let wanted = checks.unhealthy_node_conditions.iter().flatten();
    let found = wanted.filter_map(|check| {
        let known = known?.iter().find(|known| known.type_ == check.type_)?;
        let since = known.last_transition_time.as_ref()?.0;
        (known.status == check.status).then(|| Problem {
            due: after(since, check.timeout_seconds),
            cause: lasting(
                Reason::UnhealthyNode,
                "Node",
                &check.type_,
                &check.status,
                check.timeout_seconds,
            ),
        })
    });
    found.collect()
}

/// Limit for a Node to appear, from the moment when all preconditions were met.
fn startup(machine: &Machine, cluster: &Cluster, checks: &HealthChecks) -> Option<Problem> {
    let limit = checks.node_startup_timeout_seconds.unwrap_or(STARTUP);
    if limit == 0 {
        return None;
    }
    let since = |found: Option<&Condition>| {
        let found = found.filter(|found| found.status == "True");
        found.map(|found| found.last_transition_time.0)
    };
    let created = machine.creation_timestamp().map(|time| time.0);
    let needed = [
        created,
        since(conditions::find(
            cluster.conditions(),
            Type::InfrastructureReady,
        )),
        since(conditions::find(
            cluster.conditions(),
            Type::ControlPlaneInitialized,
        )),
        since(conditions::find(
            machine.conditions(),
            Type::InfrastructureReady,
        )),
    ];
    let from = needed.into_iter().flatten().max()?;
    let message = format!("Node failed to report startup in {}", duration(limit));
    Some(Problem {
        due: after(from, limit),
        cause: cause(Reason::NodeStartupTimeout, message),
    })
}

fn after(since: Timestamp, seconds: i32) -> Timestamp {
    let limit = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    since.checked_add(limit).unwrap_or(Timestamp::MAX)
}

fn lasting(reason: Reason, of: &str, type_: &str, status: &str, seconds: i32) -> Cause {
    let lasted = duration(seconds);
    cause(
        reason,
        format!("Condition {type_} on {of} is reporting status {status} for more than {lasted}"),
    )
}

fn cause(reason: Reason, message: String) -> Cause {
    Cause {
        reason,
        message: format!("Health check failed: {message}"),
    }
}

/// Seconds in Go's format of a duration: `5m0s`.
fn duration(seconds: i32) -> String {
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest}s"),
        (0, _) => format!("{minutes}m{rest}s"),
        _ => format!("{hours}h{minutes}m{rest}s"),
    }
}

#[cfg(test)]
mod tests;
