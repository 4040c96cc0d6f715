//! Placement: inventory of resources, and their consumers.

use super::Service;
use super::definition::{
    Address, Callers, Definition, Entry, Probe, Run, Task, Workload, command, uwsgi,
};
use crate::cloud::Cloud;
use crate::config::Config;
use crate::held::Credentials;
use crate::parameters::Parameters;

/// [`Config`] of Placement.
pub(super) fn configuration(parameters: &Parameters) -> Config {
    let mut config = Config::default();
    config.logging();
    config.database("placement_database", "placement", "placement");
    config.tokens("placement", parameters);
    config.behind_edge();
    let why = "callers are authenticated by Keystone";
    config.require("api", "auth_strategy", "keystone", why);
    config
}

const USER: &str = "placement";
const PORTS: &[(&str, u16)] = &[("http", 8778)];

/// [`Definition`] of Placement.
pub(super) fn definition(cloud: &Cloud, held: &Credentials) -> Definition {
    let run = |command: Vec<String>| Run {
        command,
        user: USER,
        files: Service::Placement.files(cloud, held, None),
        scratch: vec!["/tmp", "/var/lib/placement"],
        ..Run::default()
    };
    Definition {
        name: "placement",
        databases: vec!["placement"],
        account: true,
        catalogue: vec![Entry {
            kind: "placement",
            name: "placement",
            url: "http://placement:8778",
        }],
        addresses: vec![Address {
            name: "placement",
            workload: "placement-api",
            ports: PORTS,
            replicas: false,
            callers: Callers::Anyone,
        }],
        tasks: vec![Task {
            name: "placement-schema",
            run: run(command(&["placement-manage", "db", "sync"])),
            needs: vec!["databases"],
            repeat: true,
        }],
        workloads: vec![Workload {
            name: "placement-api",
            stateful: None,
            run: run(uwsgi(&cloud.parameters, "placement-api", 8778)),
            ports: PORTS,
            // The versions, which need no token.
            ready: Probe::Http("http", "/"),
            alive: Some(Probe::Tcp("http")),
            needs: vec!["placement-schema", "identities"],
        }],
        ..Definition::default()
    }
}
