//! Servers of the cloud, for the guest runner, and reports of machines to the cloud.
//!
//! A [`Report`] is written until the cloud shows the new state, or until the server has booted again: a machine at its
//! end stops its server, and a machine that cannot be started sets its server to ERROR. No API sets the fault or the
//! console of a server, or the health of a member of a load balancer: these become lines for users.

use std::collections::{BTreeMap, BTreeSet};

use openstack::compute::HostedServer;
use openstack::session::Session;
use openstack::{ErrorKind, Result};
use parking_lot::Mutex;
use simulator::machine::{Machine, Member, Servers};

use super::observe::Observation;
use super::{boots, hardware};

/// [`Machine`]s of the servers, and their [`Report`]s.
#[derive(Debug, Default)]
pub(super) struct Machines {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    hardware: BTreeMap<String, Machine>,
    names: BTreeMap<String, String>,
    reports: BTreeMap<String, Report>,
    /// Servers whose [`Report`] could not be written at the last attempt.
    failing: BTreeSet<String>,
    lines: Vec<String>,
}

/// Report of the machine of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Report {
    boot: u64,
    outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Ended,
    CannotStart,
}

/// Action on a [`Report`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    /// Write the report.
    Now,
    /// Look again after the next poll: Nova has a task on the server.
    Later,
    /// Drop the report: shown by the cloud, or no longer true.
    Never,
}

impl Machines {
    /// Takes over an [`Observation`].
    pub(super) fn observe(&self, seen: &Observation) {
        let hardware = hardware::machines(seen);
        let named = |hosted: &HostedServer| (hosted.server.id.clone(), hosted.server.name.clone());
        let names = seen.servers.iter().map(named).collect();
        let mut state = self.state.lock();
        (state.hardware, state.names) = (hardware, names);
        state
            .reports
            .retain(|id, report| due(report, id, seen) != Due::Never);
        let reported: BTreeSet<String> = state.reports.keys().cloned().collect();
        state.failing.retain(|id| reported.contains(id));
    }

    /// Writes the [`Report`]s to the cloud.
    pub(super) async fn write(&self, session: &Session, seen: &Observation) {
        let reports = self.state.lock().reports.clone();
        for (id, report) in reports {
            if due(&report, &id, seen) != Due::Now {
                continue;
            }
            let written = write(session, &id, &report).await;
            let mut state = self.state.lock();
            match written {
                Ok(()) => drop(state.failing.remove(&id)),
                Err(error) => {
                    if state.failing.insert(id.clone()) {
                        let name = state.name(&id);
                        let goal = report.outcome.goal();
                        state.lines.push(format!(
                            "{name}: its server cannot be {goal}, it is tried again: {error}"
                        ));
                    }
                }
            }
        }
    }

    /// Lines for users since the last call.
    pub(super) fn lines(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().lines)
    }

    /// Ids of the existing servers.
    pub(super) fn ids(&self) -> BTreeSet<String> {
        self.state.lock().hardware.keys().cloned().collect()
    }

    fn report(&self, server: &str, boot: u64, outcome: Outcome, line: &str) {
        let mut state = self.state.lock();
        let line = format!("{}: {line}", state.name(server));
        state.lines.push(line);
        let report = Report { boot, outcome };
        state.reports.insert(server.to_owned(), report);
    }
}

impl Servers for Machines {
    fn machine(&self, server: &str) -> Option<Machine> {
        self.state.lock().hardware.get(server).cloned()
    }

    fn ended(&self, server: &str, boot: u64) {
        let line = "its machine ended, its server is being stopped";
        self.report(server, boot, Outcome::Ended, line);
    }

    fn failed(&self, server: &str, boot: u64, fault: &str) {
        let line = format!("cannot be started, its server becomes ERROR: {fault}");
        self.report(server, boot, Outcome::CannotStart, &line);
    }

    fn answering(&self, members: &[Member]) {
        let mut state = self.state.lock();
        for member in members {
            let answers = if member.answers {
                "answers"
            } else {
                "does not answer"
            };
            state.lines.push(format!(
                "member {} of load balancer {} {answers}",
                member.address, member.load_balancer_id
            ));
        }
    }
}

impl State {
    fn name(&self, server: &str) -> String {
        let name = self.names.get(server).map_or(server, String::as_str);
        name.to_owned()
    }
}

impl Outcome {
    fn goal(self) -> &'static str {
        match self {
            Self::Ended => "stopped",
            Self::CannotStart => "set to ERROR",
        }
    }
}

fn due(report: &Report, id: &str, seen: &Observation) -> Due {
    let server = seen.servers.iter().find(|it| it.server.id == id);
    let Some(HostedServer { server, .. }) = server else {
        return Due::Never;
    };
    if server.status != "ACTIVE" || seen.boots.get(id).map(|it| it.boot) != Some(report.boot) {
        return Due::Never;
    }
    match server.task_state {
        Some(_) => Due::Later,
        None => Due::Now,
    }
}

async fn write(session: &Session, id: &str, report: &Report) -> Result<()> {
    // A server that was rebooted since the poll has another machine.
    if boots::latest(session, id).await?.boot != report.boot {
        return Ok(());
    }
    let written = match report.outcome {
        Outcome::Ended => session.compute().stop_server(id).await,
        Outcome::CannotStart => session.compute().set_server_to_error(id).await,
    };
    match written {
        // Nova is doing something else with it, or it is gone: the next poll shows which.
        Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Absent) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests;
