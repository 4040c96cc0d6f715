//! A machine whose server runs: whether it is reached, and whether it becomes a Node.

use std::time::Duration;

use api::conditions::Status;
use api::core::v1beta2::Machine;
use api::infra::v1beta2::OpenStackMachine;
use api::k8s_openapi::jiff::Timestamp;
use kube::runtime::controller::Action;

use super::observed::Observed;
use super::surroundings::Surroundings;
use super::work::Work;
use super::{console, reported, status};
use crate::context::{self, Error};
use crate::reason::{Reason, Type};

/// How often at most the console of a server that does not become a Node is read.
const CONSOLE_EVERY: Duration = Duration::from_secs(60);
/// How many lines of it.
const CONSOLE_LINES: u32 = 200;

/// A server runs: what else there is to say about its machine.
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
        _ => status::condition(next, now, Type::Ready, (Status::True, Reason::Ready, "")),
    }
    Ok(match failure {
        Progress::IsNode => context::settled(),
        Progress::Booting(left) => Action::requeue(left),
        Progress::Failed(_, again) | Progress::Silent(again) => Action::requeue(again),
    })
}

/// How far a running server came towards being a Node.
enum Progress {
    /// It is one.
    IsNode,
    /// It has this much time left.
    Booting(Duration),
    /// It should be one by now, and its console says why it is not. It is read again after this time.
    Failed(String, Duration),
    /// It should be one by now, and nobody knows why it is not. The console is read again after this time.
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
    let since = api::conditions::find(&status.conditions, Type::Instance.as_str());
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
    // Whoever waits less for a Node wants to know the reason sooner.
    let every = CONSOLE_EVERY.min(work.ctx.options.bootstrap_timeout);
    let (failure, again) = match consoles.recent(&id, every) {
        Some(recent) => recent,
        None => {
            let compute = work.cloud.session.compute();
            let console = compute.console_output(&id, Some(CONSOLE_LINES)).await;
            // A cloud without consoles says nothing about the machine.
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

/// Whether the API endpoint leads to a control plane machine. The cluster's controller sees to it:
/// it alone sets the members of the load balancer, so that no two machines overwrite each other.
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
    status::condition(next, now, Type::ApiServerIngress, verdict);
}
