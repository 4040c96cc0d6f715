//! Machines with a running server: API server ingress, and progress towards a Node.

use std::time::Duration;

use api::conditions::{Reason, Status, Type};
use api::core::v1beta2::Machine;
use api::infra::v1beta2::OpenStackMachine;
use api::k8s_openapi::jiff::Timestamp;
use kube::runtime::controller::Action;

use super::observed::Observed;
use super::status;
use super::surroundings::Surroundings;
use super::work::Work;
use crate::console;
use crate::context::kept::{self, reported};
use crate::context::{self, Error};

/// Minimum interval between reads of the console of a server that does not become a Node.
const CONSOLE_EVERY: Duration = Duration::from_secs(60);
/// Interval between checks of the server of a silent Node.
const SILENT_EVERY: Duration = Duration::from_secs(60);
/// Number of lines read from the console.
const CONSOLE_LINES: u32 = 200;

/// Reconciles the rest of a machine whose server runs.
pub(super) async fn running(
    work: &Work<'_>,
    next: &mut OpenStackMachine,
    around: &Surroundings,
    machine: &Machine,
) -> Result<Action, Error> {
    let now = work.ctx.now();
    if around.is_control_plane() {
        ingress(next, around, &work.known(), now);
    }
    let failure = failure(work, next, machine).await;
    match &failure {
        Progress::Failed(line, _) => {
            let message =
                format!("the server runs but did not become a Node; its console says: {line}");
            status::not_ready(next, now, Type::Ready, Reason::BootstrapFailed, &message);
            if reported(work.object, Type::Ready) != reported(next, Type::Ready) {
                let reason = Reason::BootstrapFailed.as_str();
                work.ctx
                    .recorder
                    .warning(work.object, reason, "Bootstrap", message)
                    .await;
            }
        }
        _ => kept::condition(next, now, Type::Ready, (Status::True, Reason::Ready, "")),
    }
    Ok(match failure {
        Progress::IsNode if work.is_silent => Action::requeue(SILENT_EVERY),
        Progress::IsNode => context::settled(),
        Progress::Booting(left) => Action::requeue(left),
        Progress::Failed(_, again) | Progress::Silent(again) => Action::requeue(again),
    })
}

/// Progress of a running server's bootstrap.
enum Progress {
    /// The Node exists.
    IsNode,
    /// The timeout is not reached: the remaining time.
    Booting(Duration),
    /// The timeout is exceeded: the error on the console, and the time of the next read.
    Failed(String, Duration),
    /// The timeout is exceeded, and the console has no error; the time of the next read.
    Silent(Duration),
}

async fn failure(work: &Work<'_>, next: &OpenStackMachine, machine: &Machine) -> Progress {
    if machine
        .status
        .as_ref()
        .is_some_and(|status| status.node_ref.is_some())
    {
        return Progress::IsNode;
    }
    let status = next.status.clone().unwrap_or_default();
    let since = api::conditions::find(&status.conditions, Type::InstanceReady);
    let since = since.map_or(0, |condition| condition.last_transition_time.0.as_second());
    let running = work
        .ctx
        .now()
        .as_second()
        .saturating_sub(since)
        .max(0)
        .unsigned_abs();
    let left = work
        .ctx
        .options
        .bootstrap_timeout
        .saturating_sub(Duration::from_secs(running));
    if !left.is_zero() {
        return Progress::Booting(left);
    }
    let id = status.instance_id.unwrap_or_default();
    let consoles = &work.ctx.consoles;
    // With a shorter timeout, the cause should be reported sooner, too.
    let every = CONSOLE_EVERY.min(work.ctx.options.bootstrap_timeout);
    let (failure, again) = match consoles.recent(&id, every) {
        Some(recent) => recent,
        None => {
            let compute = work.cloud.session.compute();
            let console = compute.console_output(&id, Some(CONSOLE_LINES)).await;
            // In a cloud without consoles, the cause is unknown.
            let failure = console.ok().and_then(|console| console::failure(&console));
            consoles.note(&id, failure.clone(), every);
            (failure, every)
        }
    };
    match failure {
        Some(line) => Progress::Failed(line, again),
        None => Progress::Silent(again),
    }
}

/// Reports if a control plane machine is reachable through the API endpoint. Only the controller of the cluster changes
/// the members of the load balancer, so that no two machines overwrite each other's changes.
fn ingress(
    next: &mut OpenStackMachine,
    around: &Surroundings,
    observed: &Observed,
    now: Timestamp,
) {
    let verdict = if !around.has_balancer() || !observed.members().is_empty() {
        (Status::True, Reason::Ready, "")
    } else {
        let text = "waiting for the machine to become a member of the load balancer";
        (Status::False, Reason::WaitingForCloud, text)
    };
    kept::condition(next, now, Type::APIServerIngressReady, verdict);
}
