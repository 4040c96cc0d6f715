//! Glance: images, in files on a volume.

use super::definition::{
    Address, Callers, Definition, Entry, Probe, Run, Task, Volume, Workload, command, uwsgi,
};
use super::{Service, ceph};
use crate::cloud::Cloud;
use crate::config::Config;
use crate::held::Credentials;
use crate::parameters::Parameters;
use crate::release::Release;

/// [`Config`] of Glance.
pub(super) fn configuration(parameters: &Parameters) -> Config {
    let mut config = Config::default();
    config.logging();
    config.database("database", "glance", "glance");
    config.tokens("glance", parameters);
    config.behind_edge();
    config.locks("glance");
    if parameters.release != Release::Gazpacho {
        config.processes("DEFAULT", "workers", parameters.workers("glance").processes);
    }
    let store = "images are files on the volume of Glance";
    match parameters.images() {
        Some(pool) => ceph::store_options(&mut config, parameters, pool),
        None => {
            config.require("DEFAULT", "enabled_backends", "file:file", store);
            config.require("glance_store", "default_backend", "file", store);
        }
    }
    for (section, directory) in [
        ("file", "images"),
        ("os_glance_staging_store", "staging"),
        ("os_glance_tasks_store", "tasks"),
    ] {
        let path = format!("/var/lib/glance/{directory}");
        config.require(section, "filesystem_store_datadir", &path, store);
    }
    config.require(
        "paste_deploy",
        "flavor",
        "keystone",
        "callers are authenticated by Keystone",
    );
    config.preset(
        "oslo_messaging_notifications",
        "driver",
        "noop",
        "nothing reads notifications",
    );
    config
}

const USER: &str = "glance";
const PORTS: &[(&str, u16)] = &[("http", 9292)];
const VOLUME: &str = "glance-images";

/// [`Definition`] of Glance.
pub(super) fn definition(cloud: &Cloud, held: &Credentials) -> Definition {
    let release = cloud.parameters.release;
    let directory = Service::Glance.directory(release);
    // Its programs look for files of other names when they run as others.
    let with_files = |words: &[&str]| {
        let file = "/etc/glance/glance-api.conf";
        [
            command(words.get(..1).unwrap_or_default()),
            command(&["--config-file", file, "--config-dir", &directory]),
            command(words.get(1..).unwrap_or_default()),
        ]
        .concat()
    };
    let run = |command: Vec<String>| Run {
        command,
        user: USER,
        files: Service::Glance.files(cloud, held, None),
        scratch: vec!["/tmp"],
        ..Run::default()
    };
    let mut api = Run {
        volumes: vec![(VOLUME, "/var/lib/glance")],
        ..run(match release {
            Release::Zed | Release::Epoxy => with_files(&["glance-api"]),
            Release::Gazpacho => uwsgi(&cloud.parameters, "glance-api", 9292),
        })
    };
    let mut needs = vec!["glance-metadata", "identities"];
    if cloud.parameters.images().is_some() {
        api.files.extend(ceph::files(cloud, held));
        needs.push(ceph::STEP);
    }
    Definition {
        name: "glance",
        databases: vec!["glance"],
        account: true,
        catalogue: vec![Entry {
            kind: "image",
            name: "glance",
            url: "http://glance:9292",
        }],
        addresses: vec![Address {
            name: "glance",
            workload: "glance-api",
            ports: PORTS,
            replicas: false,
            callers: Callers::Anyone,
        }],
        volumes: vec![Volume {
            name: VOLUME,
            size: "20Gi",
        }],
        tasks: vec![
            Task {
                name: "glance-schema",
                run: run(with_files(&["glance-manage", "db_sync"])),
                needs: vec!["databases"],
                repeat: true,
            },
            Task {
                name: "glance-metadata",
                run: run(with_files(&[
                    "glance-manage",
                    "db_load_metadefs",
                    "/usr/share/glance-common/metadefs",
                ])),
                needs: vec!["glance-schema"],
                repeat: true,
            },
        ],
        workloads: vec![Workload {
            name: "glance-api",
            stateful: None,
            run: api,
            ports: PORTS,
            ready: Probe::Http("http", "/healthcheck"),
            alive: Some(Probe::Tcp("http")),
            needs,
        }],
        ..Definition::default()
    }
}
