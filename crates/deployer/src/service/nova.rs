//! Nova: servers. API, conductor and scheduler read the same file.

use super::Service;
use super::definition::{
    Address, Callers, Definition, Entry, Probe, Run, Task, Workload, command, uwsgi,
};
use super::{edge, fake, libvirt, rabbitmq};
use crate::cloud::Cloud;
use crate::config::Config;
use crate::held::Credentials;
use crate::parameters::Parameters;
use crate::release::Release;

/// [`Config`] of Nova.
pub(super) fn configuration(parameters: &Parameters) -> Config {
    let mut config = Config::default();
    config.logging();
    config.database("api_database", "nova", "nova_api");
    config.database("database", "nova", "nova");
    config.messaging("nova");
    config.tokens("nova", parameters);
    config.behind_edge();
    config.locks("nova");
    config.require(
        "DEFAULT",
        "state_path",
        "/var/lib/nova",
        "the only writable directory of the Pod",
    );
    // Nova keeps a record of each host, and names of Pods would leave one behind with every restart.
    let why = "conductors, schedulers and APIs are one host, whatever their Pods";
    config.require("DEFAULT", "host", "control", why);
    for section in ["placement", "neutron", "service_user"] {
        config.login(section, "nova", parameters);
    }
    let why = "services call each other with service tokens";
    config.require("service_user", "send_service_user_token", "true", why);
    for section in ["placement", "neutron", "glance"] {
        let why = "services call each other inside the cluster";
        config.require(section, "valid_interfaces", "internal", why);
    }
    config.derive("glance", "region_name", &parameters.region, "region");
    for section in ["conductor", "scheduler"] {
        config.processes(section, "workers", 2);
    }
    if parameters.release == Release::Gazpacho {
        endings(&mut config, parameters);
    }
    config.metadata();
    consoles(&mut config, parameters);
    if fake::of(parameters).is_some() {
        fake::compute_options(&mut config);
    }
    if parameters.has(Service::Cinder) {
        volumes(&mut config, parameters);
    }
    if let Some(libvirt) = libvirt::of(parameters) {
        libvirt::compute_options(&mut config, parameters, libvirt);
    }
    config
}

/// Options for graceful ends of programs, and for RPC to programs of another release during an upgrade.
fn endings(config: &mut Config, parameters: &Parameters) {
    // It sleeps that long even when there is nothing to wait for: 160 s without the option.
    let why = "a manager sleeps so long at its end, which is within the grace of its Pod";
    config.preset("DEFAULT", "manager_shutdown_timeout", "5", why);
    let why = "longer than managers take, and within the grace of the Pod";
    config.preset("DEFAULT", "graceful_shutdown_timeout", "30", why);
    if parameters.upgrading {
        let why = "computes of two releases are there while a cloud is upgraded";
        config.preset("upgrade_levels", "compute", "auto", why);
    }
}

/// Options for requests to Cinder.
fn volumes(config: &mut Config, parameters: &Parameters) {
    config.login("cinder", "nova", parameters);
    let why = "services call each other inside the cluster";
    config.require("cinder", "catalog_info", "volumev3::internalURL", why);
    config.derive("cinder", "os_region_name", &parameters.region, "region");
}

/// Options with the URLs of consoles for browsers.
fn consoles(config: &mut Config, parameters: &Parameters) {
    let url = edge::public(
        parameters,
        &format!("http://nova-novncproxy:{NOVNC}/vnc_lite.html"),
    );
    config.derive("vnc", "novncproxy_base_url", &url, "exposure");
    let why = "the port of its Service";
    config.require("vnc", "novncproxy_host", "0.0.0.0", why);
    config.require("vnc", "novncproxy_port", &NOVNC.to_string(), why);
}

const USER: &str = "nova";
const METADATA_PORTS: &[(&str, u16)] = &[("http", 8775)];
/// Port of the noVNC proxy.
const NOVNC: u16 = 6080;
const NOVNC_PORTS: &[(&str, u16)] = &[("http", NOVNC)];
const PORTS: &[(&str, u16)] = &[("http", 8774)];
/// URLs of a cell with placeholders for the parts of Nova's own configuration in place of its account: the database has
/// no password, and a new one does not touch the database.
const CELL: &str = "{scheme}://{username}:{password}@{hostname}:{port}/{path}?{query}";
const CELL0: &str = "{scheme}://{username}:{password}@{hostname}:{port}/nova_cell0?{query}";
/// Command to create the cell once: a second cell of the same URLs is an error.
const CREATE_CELL: &str = "nova-manage cell_v2 list_cells | grep -q ' cell1 ' || \
exec nova-manage cell_v2 create_cell --name cell1 --database_connection \"$0\" --transport-url \"$0\"";

/// [`Definition`] of Nova.
pub(super) fn definition(cloud: &Cloud, held: &Credentials) -> Definition {
    let mut definition = Definition {
        name: "nova",
        databases: vec!["nova", "nova_api", "nova_cell0"],
        messaging: true,
        account: true,
        catalogue: vec![Entry {
            kind: "compute",
            name: "nova",
            url: "http://nova:8774/v2.1",
        }],
        addresses: vec![
            address("nova", "nova-api", PORTS),
            address("nova-metadata", "nova-metadata", METADATA_PORTS),
            address("nova-novncproxy", "nova-novncproxy", NOVNC_PORTS),
        ],
        volumes: vec![],
        tasks: tasks(cloud, held),
        workloads: vec![
            api(cloud, held),
            worker(cloud, held, "nova-conductor"),
            worker(cloud, held, "nova-scheduler"),
            metadata(cloud, held),
            novncproxy(cloud, held),
        ],
        ..Definition::default()
    };
    if let Some(fake) = fake::of(&cloud.parameters) {
        definition.addresses.push(fake::address());
        definition.workloads.push(fake::computes(cloud, held, fake));
        definition.tasks.extend(fake::tasks(cloud, held, fake));
    }
    if let Some(parameters) = libvirt::of(&cloud.parameters) {
        let workloads = libvirt::workloads(cloud, held, parameters);
        definition.workloads.extend(workloads);
    }
    definition
}

/// [`Task`]s for the schemas of the API, of cell0 for servers without a host, and of cell1.
fn tasks(cloud: &Cloud, held: &Credentials) -> Vec<Task> {
    let task = |name, words: &[&str], needs| Task {
        name,
        run: run(cloud, held, "nova-manage", command(words)),
        needs,
        repeat: true,
    };
    vec![
        task(
            "nova-api-schema",
            &["nova-manage", "api_db", "sync"],
            vec!["databases"],
        ),
        task(
            "nova-cell0",
            &[
                "nova-manage",
                "cell_v2",
                "map_cell0",
                "--database_connection",
                CELL0,
            ],
            vec!["nova-api-schema"],
        ),
        task(
            "nova-cell1",
            &["/bin/sh", "-c", CREATE_CELL, CELL],
            vec!["nova-cell0"],
        ),
        task(
            "nova-schema",
            &["nova-manage", "db", "sync"],
            vec!["nova-cell1"],
        ),
    ]
}

fn api(cloud: &Cloud, held: &Credentials) -> Workload {
    Workload {
        name: "nova-api",
        stateful: None,
        run: run(
            cloud,
            held,
            "nova-api",
            uwsgi(&cloud.parameters, "nova-api", 8774),
        ),
        ports: PORTS,
        // The versions, which need no token.
        ready: Probe::Http("http", "/"),
        alive: Some(Probe::Tcp("http")),
        needs: vec!["nova-schema", "broker-accounts", "identities"],
    }
}

/// [`Workload`] of the metadata API, requested by servers through the proxies of their networks.
fn metadata(cloud: &Cloud, held: &Credentials) -> Workload {
    let command = uwsgi(&cloud.parameters, "nova-metadata", 8775);
    Workload {
        name: "nova-metadata",
        stateful: None,
        run: run(cloud, held, "nova-metadata", command),
        ports: METADATA_PORTS,
        // The versions, which every client may read.
        ready: Probe::Http("http", "/"),
        alive: Some(Probe::Tcp("http")),
        needs: vec!["nova-schema", "broker-accounts", "identities"],
    }
}

/// [`Workload`] of the pages with consoles of servers, and of the connections to these consoles.
fn novncproxy(cloud: &Cloud, held: &Credentials) -> Workload {
    let command = command(&["nova-novncproxy", "--web", "/usr/share/novnc"]);
    Workload {
        name: "nova-novncproxy",
        stateful: None,
        run: run(cloud, held, "nova-novncproxy", command),
        ports: NOVNC_PORTS,
        ready: Probe::Http("http", "/vnc_lite.html"),
        alive: Some(Probe::Tcp("http")),
        needs: vec!["nova-schema", "broker-accounts"],
    }
}

fn address(
    name: &'static str,
    workload: &'static str,
    ports: &'static [(&'static str, u16)],
) -> Address {
    Address {
        name,
        workload,
        ports,
        replicas: false,
        callers: Callers::Anyone,
    }
}

fn worker(cloud: &Cloud, held: &Credentials, name: &'static str) -> Workload {
    Workload {
        name,
        stateful: None,
        run: run(cloud, held, name, command(&[name])),
        ports: &[],
        ready: Probe::Connected(&[rabbitmq::PORT]),
        // Without a broker it reconnects by itself.
        alive: None,
        needs: vec!["nova-schema", "broker-accounts", "identities"],
    }
}

fn run(cloud: &Cloud, held: &Credentials, component: &str, command: Vec<String>) -> Run {
    Run {
        command,
        user: USER,
        files: Service::Nova.files(cloud, held, Some(component)),
        scratch: vec!["/tmp", "/var/lib/nova"],
        ..Run::default()
    }
}
