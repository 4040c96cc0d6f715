//! How often the servers have booted, as the runner and the guests need it: a number that grows with each start.
//!
//! Nova shows no such number, and a reboot may be over between two polls. It records every action on a server, so the
//! number is the time of the latest action that starts it. The actions of a server are read only when it has changed.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt, stream};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use openstack::compute::{HostedServer, InstanceAction};
use openstack::session::Session;
use openstack::{ErrorKind, Result};

/// The actions of Nova after which a server boots.
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
/// How many servers are asked at a time.
const AT_A_TIME: usize = 8;
/// Nova's times of changes have no fractions of a second: for as long after a change was first seen, there may be another
/// one with the same time.
const UNSETTLED: Duration = Duration::from_secs(1);

/// The boots of the servers, and when they were read.
#[derive(Debug, Default)]
pub(super) struct Boots {
    known: HashMap<String, Known>,
}

#[derive(Clone, Debug)]
struct Known {
    boot: u64,
    /// Nova's time of the server's last change when the actions were read.
    updated: String,
    /// When that time was first seen.
    since: Instant,
    /// True if the actions were read when no other change could have that time any more.
    settled: bool,
}

impl Boots {
    /// The numbers of the boots of `servers`, by id.
    ///
    /// # Errors
    /// As for the requests.
    pub(super) async fn read(
        &mut self,
        session: &Session,
        servers: &[HostedServer],
    ) -> Result<BTreeMap<String, u64>> {
        let now = Instant::now();
        let stale: Vec<(&HostedServer, Instant)> = servers
            .iter()
            .filter_map(|hosted| Some((hosted, self.stale_since(hosted, now)?)))
            .collect();
        let read = stream::iter(stale)
            .map(|(hosted, since)| async move {
                let boot = latest(session, &hosted.server.id).await?;
                Ok((hosted, since, boot))
            })
            .buffer_unordered(AT_A_TIME);
        let read: Vec<(&HostedServer, Instant, u64)> = read.try_collect().await?;
        for (hosted, since, boot) in read {
            let known = Known {
                boot,
                updated: hosted.server.updated.clone(),
                since,
                settled: now.duration_since(since) > UNSETTLED,
            };
            self.known.insert(hosted.server.id.clone(), known);
        }
        let boot = |hosted: &HostedServer| {
            let id = &hosted.server.id;
            let known = self.known.get(id)?;
            Some((id.clone(), known.boot))
        };
        let boots: BTreeMap<String, u64> = servers.iter().filter_map(boot).collect();
        self.known.retain(|id, _| boots.contains_key(id));
        Ok(boots)
    }

    /// If the actions of the server have to be read: since when its last change is known.
    fn stale_since(&self, hosted: &HostedServer, now: Instant) -> Option<Instant> {
        match self.known.get(&hosted.server.id) {
            Some(known) if known.updated == hosted.server.updated => {
                (!known.settled).then_some(known.since)
            }
            _ => Some(now),
        }
    }
}

/// The number of the latest boot of a server, at this moment; 0 if the server is not there.
///
/// # Errors
/// As for the request.
pub(super) async fn latest(session: &Session, server: &str) -> Result<u64> {
    match session.compute().actions_of_server(server).await {
        Ok(actions) => Ok(number(&actions)),
        Err(error) if error.kind() == ErrorKind::Absent => Ok(0),
        Err(error) => Err(error),
    }
}

/// The time of the latest action that starts the server, in microseconds since 1970.
fn number(actions: &[InstanceAction]) -> u64 {
    let starts = actions
        .iter()
        .filter(|action| STARTS.contains(&action.action.as_str()));
    let microseconds = |action: &InstanceAction| {
        let time: DateTime = action.start_time.parse().ok()?;
        let time = time.to_zoned(TimeZone::UTC).ok()?.timestamp();
        u64::try_from(time.as_microsecond()).ok()
    };
    starts.filter_map(microseconds).max().unwrap_or(0)
}

#[cfg(test)]
mod tests;
