//! memcached: cache of Keystone and of token validation.

use super::definition::{Address, Callers, Definition, Probe, Run, Stateful, Workload, command};

const PORTS: &[(&str, u16)] = &[("memcached", PORT)];
const PORT: u16 = 11211;
/// Request `version`, answered with `VERSION` and a number.
const VERSION: Probe = Probe::Answers(PORT, "76657273696f6e0d0a", "56455253494f4e20");

/// [`Definition`] of memcached.
pub(super) fn definition() -> Definition {
    Definition {
        name: "memcached",
        addresses: vec![Address {
            name: "memcached",
            workload: "memcached",
            ports: PORTS,
            replicas: false,
            callers: Callers::Readers,
        }],
        workloads: vec![Workload {
            name: "memcached",
            stateful: Some(Stateful::one("memcached")),
            run: Run {
                command: command(&[
                    "memcached",
                    "-l",
                    "0.0.0.0",
                    "-p",
                    "11211",
                    "-U",
                    "0",
                    "-m",
                    "128",
                    "-c",
                    "4096",
                ]),
                user: "memcache",
                ..Run::default()
            },
            ports: PORTS,
            ready: VERSION,
            alive: Some(VERSION),
            needs: vec![],
        }],
        ..Definition::default()
    }
}
