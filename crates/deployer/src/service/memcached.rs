//! memcached: the cache of Keystone and of the validation of tokens.

use super::definition::{Address, Callers, Definition, Probe, Run, Stateful, Workload, command};

const PORTS: &[(&str, u16)] = &[("memcached", 11211)];

/// What memcached consists of.
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
            ready: Probe::Tcp("memcached"),
            alive: Some(Probe::Tcp("memcached")),
            needs: vec![],
        }],
        ..Definition::default()
    }
}
