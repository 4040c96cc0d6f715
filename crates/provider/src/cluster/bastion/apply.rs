//! Applies the steps of the plan of a bastion.

use std::time::Duration;

use api::conditions::{Reason, Type};
use openstack::{ErrorKind, Kind};
use operator::retry::When;

use super::plan::{self, Observed, Plan, Request, Step, Wanted};
use crate::cluster::apply::Work;
use crate::cluster::request;
use crate::credentials;
use crate::machine::plan as server;
use crate::problem::Problem;
use crate::words::past;

/// Maximum number of plans in one reconcile.
const ROUNDS: usize = 4;

/// Rest after the steps.
pub(super) struct Outcome {
    pub(super) observed: Observed,
    pub(super) plan: Plan,
}

/// Plans and applies until only waits are left.
///
/// # Errors
/// The [`Step`] that failed.
pub(super) async fn apply(
    work: &Work<'_>,
    kinds: &[Kind],
    age: Duration,
    wanted: Option<&Wanted>,
) -> Result<Outcome, Problem> {
    let mark = wanted.map(|wanted| wanted.mark);
    for _ in 0..ROUNDS {
        let observed = Observed::new(&work.observe(kinds, age).await?, mark);
        let plan = plan::plan(wanted, &observed);
        let mut is_changed = false;
        for step in &plan.steps {
            let known = Observed::new(&work.known(), mark);
            let Some(request) = plan::request(step, wanted, &known) else {
                continue;
            };
            is_changed = true;
            send(work, step, &request).await?;
        }
        if !is_changed {
            return Ok(Outcome { observed, plan });
        }
    }
    let observed = Observed::new(&work.known(), mark);
    let plan = plan::plan(wanted, &observed);
    Ok(Outcome { observed, plan })
}

async fn send(work: &Work<'_>, step: &Step, request: &Request) -> Result<(), Problem> {
    let inventory = &work.cloud.inventory;
    let result = match request {
        Request::Server(request) => server::send(inventory, request).await,
        Request::FloatingIp(request) => request::send(inventory, request).await,
    };
    let (object, recorder, event) = (work.object, work.recorder, step.event());
    let error = match (result, event) {
        (Ok(()), None) => return Ok(()),
        (Ok(()), Some(event)) => {
            let (reason, text) = (format!("Successful{event}"), past(&step.to_string()));
            recorder.normal(object, &reason, event, text).await;
            return Ok(());
        }
        (Err(error), _) => error,
    };
    let mut problem = problem(work, step, &error);
    if let (Some(event), true) = (event, error.kind() != ErrorKind::Busy) {
        let reason = format!("Failed{event}");
        recorder
            .warning(object, &reason, event, &problem.message)
            .await;
        problem.is_announced = true;
    }
    Err(problem)
}

fn problem(work: &Work<'_>, step: &Step, error: &openstack::Error) -> Problem {
    if credentials::is_authentication(error) {
        return credentials::listing(error);
    }
    let reason = match step {
        Step::Server(server::Step::CreateServer) => Reason::InstanceCreateFailed,
        Step::Server(
            server::Step::CreatePorts
            | server::Step::TagPort(_)
            | server::Step::CreateTrunk(_)
            | server::Step::TagTrunk(_),
        ) => Reason::PortCreateFailed,
        Step::Server(server::Step::CreateVolume(_)) => Reason::VolumeCreateFailed,
        Step::Server(_) => Reason::InstanceDeleteFailed,
        _ => Reason::FloatingIPError,
    };
    let mut problem = Problem::cloud(Type::BastionReady, reason, &step.to_string(), error);
    let bastion = work.object.spec.bastion.as_ref();
    let given = bastion.and_then(|bastion| bastion.floating_ip.as_ref());
    if let (Step::CreateFloatingIp, ErrorKind::Denied, Some(address)) = (step, error.kind(), given)
    {
        problem.message = format!(
            "bastion.floatingIP: the project has no floating IP {address}, and only an administrator may allocate a \
             certain address: allocate one (openstack floating ip create NETWORK) and give its address, or give none \
             and one is allocated ({})",
            error.cause(&step.to_string())
        );
    }
    if error.kind() == ErrorKind::Busy {
        problem.when = When::After(Duration::from_secs(1));
    }
    problem
}
