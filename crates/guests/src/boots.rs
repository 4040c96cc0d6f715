//! Numbers of boots and of disks of a server, as needed by the runner and the guests, growing with each start and each
//! rebuild.
//!
//! Nova shows no such number, and a reboot may be over between two polls. Nova records every action on a server, so the
//! numbers are the times of the latest [`InstanceAction`]s with a start and with a rebuild of the server. The actions of a server are read
//! only after a change of the server.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt, stream};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use openstack::compute::{HostedServer, InstanceAction};
use openstack::session::Session;
use openstack::{ErrorKind, Result};

/// Actions of Nova after which a server boots.
const STARTS: [&str; 10] = [
    "create",
    "start",
    "reboot",
    "rebuild",
    "restore",
    "resize",
    "revertResize",
    "resume",
    "unpause",
    "unshelve",
];
/// Action of Nova that replaces the disk of a server.
const REBUILD: &str = "rebuild";
/// Number of servers whose actions are requested at a time.
const AT_A_TIME: usize = 8;
/// Resolution of Nova's times, without fractions of a second: for as long after the first sight of a change, another
/// change may have the same time.
const UNSETTLED: Duration = Duration::from_secs(1);

/// Numbers of the boots and of the disks of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Starts {
    pub(super) boot: u64,
    /// 0 without a rebuild.
    pub(super) disk: u64,
}

/// Boots of the servers, and the times of reading.
#[derive(Debug, Default)]
pub(super) struct Boots {
    known: HashMap<String, BootRecord>,
}

#[derive(Clone, Debug)]
struct BootRecord {
    starts: Starts,
    /// Nova's time of the server's last change when the actions were read.
    updated: String,
    /// Time of the first sight of `updated`.
    since: Instant,
    /// True if the actions were read when no other change could have the time `updated` any more.
    settled: bool,
}

impl Boots {
    /// Numbers of the boots of `servers`, by id.
    ///
    /// # Errors
    /// Errors of the requests.
    pub(super) async fn read(
        &mut self,
        session: &Session,
        servers: &[HostedServer],
    ) -> Result<BTreeMap<String, Starts>> {
        let now = Instant::now();
        let stale: Vec<(&HostedServer, Instant)> = servers
            .iter()
            .filter_map(|hosted| Some((hosted, self.stale_since(hosted, now)?)))
            .collect();
        let read = stream::iter(stale)
            .map(|(hosted, since)| async move {
                let starts = latest(session, &hosted.server.id).await?;
                Ok((hosted, since, starts))
            })
            .buffer_unordered(AT_A_TIME);
        let read: Vec<(&HostedServer, Instant, Starts)> = read.try_collect().await?;
        for (hosted, since, starts) in read {
            let known = BootRecord {
                starts,
                updated: hosted.server.updated.clone(),
                since,
                settled: now.duration_since(since) > UNSETTLED,
            };
            self.known.insert(hosted.server.id.clone(), known);
        }
        let boot = |hosted: &HostedServer| {
            let id = &hosted.server.id;
            let known = self.known.get(id)?;
            Some((id.clone(), known.starts))
        };
        let boots: BTreeMap<String, Starts> = servers.iter().filter_map(boot).collect();
        self.known.retain(|id, _| boots.contains_key(id));
        Ok(boots)
    }

    /// Time of the first sight of the last change, if the actions of the [`HostedServer`] have to be read.
    fn stale_since(&self, hosted: &HostedServer, now: Instant) -> Option<Instant> {
        match self.known.get(&hosted.server.id) {
            Some(known) if known.updated == hosted.server.updated => {
                (!known.settled).then_some(known.since)
            }
            _ => Some(now),
        }
    }
}

/// Numbers of the latest boot and disk of a server, at this moment; 0 without the server.
///
/// # Errors
/// Errors of the request.
pub(super) async fn latest(session: &Session, server: &str) -> Result<Starts> {
    match session.compute().actions_of_server(server).await {
        Ok(actions) => Ok(Starts {
            boot: number(&actions, &STARTS),
            disk: number(&actions, &[REBUILD]),
        }),
        Err(error) if error.kind() == ErrorKind::Absent => Ok(Starts::default()),
        Err(error) => Err(error),
    }
}

/// Time of the latest [`InstanceAction`] of these, in microseconds since 1970; 0 without one.
fn number(actions: &[InstanceAction], wanted: &[&str]) -> u64 {
    let starts = actions
        .iter()
        .filter(|action| wanted.contains(&action.action.as_str()));
    let microseconds = |action: &InstanceAction| {
        let time: DateTime = action.start_time.parse().ok()?;
        let time = time.to_zoned(TimeZone::UTC).ok()?.timestamp();
        u64::try_from(time.as_microsecond()).ok()
    };
    starts.filter_map(microseconds).max().unwrap_or(0)
}

#[cfg(test)]
mod tests;
