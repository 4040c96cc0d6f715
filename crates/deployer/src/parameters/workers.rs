//! Number of requests answered by the API of a service at a time.

use serde::Deserialize;

use super::place::{Resources, thousandths};
use crate::release::Release;

/// Processes of an API without limits for its Pod: while one waits, the other answers.
const PROCESSES: u32 = 2;
/// Processes of an API by the limits of its Pod, at most.
const MANY: u32 = 16;
/// Memory of a process of an API after its first requests, in MiB.
const MEMORY: u128 = 250;
/// Range of permitted numbers.
const RANGE: std::ops::RangeInclusive<u32> = 1..=64;

/// Settings of the API of a service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Api {
    /// Number of processes; derived from the limits of the Pod if not set.
    pub processes: Option<u32>,
    /// Requests answered at a time by each process; as many as the release supports if not set.
    pub threads: Option<u32>,
}

/// Processes of an API, and threads of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Workers {
    /// Processes.
    pub processes: u32,
    /// Threads of each process.
    pub threads: u32,
}

impl Api {
    /// Numbers of processes and threads of an API.
    pub(super) fn workers(self, release: Release, part: &str, resources: &Resources) -> Workers {
        let threads = if no_threads(release, part).is_some() {
            1
        } else {
            4
        };
        Workers {
            processes: self.processes.unwrap_or_else(|| by_limits(resources)),
            threads: self.threads.unwrap_or(threads),
        }
    }

    /// First senseless number, and the reason.
    pub(super) fn wrong(self, release: Release, part: &str) -> Option<(String, &'static str)> {
        let path = |name: &str| format!("services.{part}.api.{name}");
        for (name, number) in [("processes", self.processes), ("threads", self.threads)] {
            if number.is_some_and(|it| !RANGE.contains(&it)) {
                return Some((path(name), "it is not from 1 to 64"));
            }
        }
        let why = no_threads(release, part)?;
        (self.threads? > 1).then(|| (path("threads"), why))
    }
}

/// Reason why each process of an API answers one request at a time.
fn no_threads(release: Release, part: &str) -> Option<&'static str> {
    match (release, part) {
        (Release::Zed | Release::Epoxy, _) => Some(
            "programs of this release replace threads by eventlet's, which uWSGI has not: ask for processes",
        ),
        (Release::Gazpacho, "neutron") => {
            Some("Neutron is served by processes alone, says its documentation: ask for processes")
        }
        (Release::Gazpacho, _) => None,
    }
}

/// One process for each processor of the Pod, as far as the memory suffices. The size of the node does not count, so
/// that a Pod is the same on each node.
fn by_limits(resources: &Resources) -> u32 {
    let limit = |name: &str| resources.limits.get(name).and_then(|it| thousandths(it));
    let few = |number: u128| u32::try_from(number).unwrap_or(MANY).clamp(1, MANY);
    let processes = limit("cpu").map_or(PROCESSES, |it| few(it.div_ceil(1000)).max(PROCESSES));
    let memory = limit("memory").map(|it| few(it / (MEMORY * 1_048_576_000)));
    memory.map_or(processes, |it| processes.min(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_follow_the_limits_of_the_pod() {
        for (limits, processes) in [
            (&[][..], 2),
            (&[("cpu", "500m")], 2),
            (&[("cpu", "2500m")], 3),
            (&[("cpu", "8")], 8),
            (&[("cpu", "100")], 16),
            (&[("memory", "64Mi")], 1),
            (&[("memory", "400Mi")], 1),
            (&[("memory", "8Gi")], 2),
            (&[("cpu", "8"), ("memory", "1Gi")], 4),
            (&[("cpu", "1"), ("memory", "100G")], 2),
        ] {
            let mut resources = Resources::default();
            for (name, quantity) in limits {
                resources
                    .limits
                    .insert((*name).to_owned(), (*quantity).to_owned());
            }
            let workers = Api::default().workers(Release::Gazpacho, "nova", &resources);
            let wanted = Workers {
                processes,
                threads: 4,
            };
            assert_eq!(workers, wanted, "{limits:?}");
        }
    }

    #[test]
    fn a_release_without_threads_has_processes_alone() {
        let none = Resources::default();
        let threads = |release, part| Api::default().workers(release, part, &none).threads;
        assert_eq!(threads(Release::Zed, "nova"), 1);
        assert_eq!(threads(Release::Epoxy, "keystone"), 1);
        assert_eq!(threads(Release::Gazpacho, "neutron"), 1);
        assert_eq!(threads(Release::Gazpacho, "horizon"), 4);
        let asked = Api {
            processes: Some(6),
            threads: Some(2),
        };
        let (path, why) = asked.wrong(Release::Epoxy, "glance").unwrap();
        assert_eq!(path, "services.glance.api.threads");
        assert!(why.contains("eventlet"), "{why}");
        assert!(asked.wrong(Release::Gazpacho, "neutron").is_some());
        assert_eq!(asked.wrong(Release::Gazpacho, "glance"), None);
        let workers = asked.workers(Release::Gazpacho, "glance", &none);
        assert_eq!((workers.processes, workers.threads), (6, 2));
        for (processes, threads) in [(Some(0), None), (None, Some(65))] {
            let asked = Api { processes, threads };
            assert!(asked.wrong(Release::Gazpacho, "nova").is_some());
        }
    }
}
