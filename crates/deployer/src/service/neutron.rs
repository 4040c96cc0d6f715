//! Neutron: networks, with OVN.

use super::Service;
use super::definition::{
    Address, Callers, Definition, Entry, File, Probe, Run, Task, Variable, Workload, command, uwsgi,
};
use super::{fake, libvirt, mariadb, metadata, ovn, rabbitmq};
use crate::cloud::{self, Cloud};
use crate::config::{Config, Source, Value};
use crate::held::Credentials;
use crate::parameters::Parameters;
use crate::release::Release;

/// Bytes of each packet used by Geneve with OVN's options, in an IPv4 network between the nodes.
const GENEVE: &str = "38";

/// [`Config`] of Neutron with ML2's options: each program reads a single file.
pub(super) fn configuration(parameters: &Parameters) -> Config {
    let mut config = Config::default();
    config.logging();
    config.database("database", "neutron", "neutron");
    config.messaging("neutron");
    config.tokens("neutron", parameters);
    config.behind_edge();
    config.locks("neutron");
    config.require(
        "DEFAULT",
        "state_path",
        "/var/lib/neutron",
        "the only writable directory of the Pod",
    );
    let why = "callers are authenticated by Keystone";
    config.require("DEFAULT", "auth_strategy", "keystone", why);
    config.login("nova", "neutron", parameters);
    config.login("placement", "neutron", parameters);
    for section in ["nova", "placement"] {
        let why = "services call each other inside the cluster";
        config.require(section, "endpoint_type", "internal", why);
    }
    let processes = parameters.workers("neutron").processes;
    if parameters.release == Release::Zed {
        config.processes("DEFAULT", "api_workers", processes);
    }
    config.processes("DEFAULT", "rpc_workers", 2);
    if parameters.release == Release::Gazpacho {
        // Unset, `neutron-status upgrade check` warns.
        let why = "uWSGI starts the processes";
        config.require("DEFAULT", "api_workers", &processes.to_string(), why);
    }
    plugin(&mut config, parameters.release);
    place(&mut config, cloud::NAMESPACE);
    networks(&mut config, parameters);
    if fake::of(parameters).is_some() {
        fake::network_options(&mut config);
    }
    if libvirt::of(parameters).is_some() {
        let why = "guests read their metadata through the agents of their nodes";
        config.require("ovn", "ovn_metadata_enabled", "true", why);
    }
    config
}

/// Sets the addresses of OVN's databases in a cloud in this namespace.
pub(super) fn place(config: &mut Config, namespace: &str) {
    let why = "networks are made by OVN";
    let (northbound, southbound) = (ovn::northbound(namespace), ovn::southbound(namespace));
    config.require("ovn", "ovn_nb_connection", &northbound, why);
    config.require("ovn", "ovn_sb_connection", &southbound, why);
}

fn plugin(config: &mut Config, release: Release) {
    let why = "networks are made by OVN";
    config.require("DEFAULT", "core_plugin", "ml2", why);
    config.require("ml2", "mechanism_drivers", "ovn", why);
    config.require("ml2_type_geneve", "max_header_size", GENEVE, why);
    let plugins = "what OVN serves";
    config.set(
        "DEFAULT",
        "service_plugins",
        list(&["ovn-router", "trunk", "qos", "port_forwarding"]),
        Source::Default(plugins),
    );
    config.set(
        "ml2",
        "extension_drivers",
        list(&["port_security", "qos"]),
        Source::Default(plugins),
    );
    let types = match release {
        Release::Zed | Release::Epoxy => "tenant_network_types",
        Release::Gazpacho => "project_network_types",
    };
    config.set("ml2", types, list(&["geneve"]), Source::Default(plugins));
    config.set(
        "ml2",
        "type_drivers",
        list(&["local", "flat", "vlan", "geneve"]),
        Source::Default(plugins),
    );
    config.preset(
        "ml2_type_geneve",
        "vni_ranges",
        "1:65535",
        "every network has a number of these",
    );
}

fn networks(config: &mut Config, parameters: &Parameters) {
    let network = &parameters.network;
    let mtu = network.mtu.0.to_string();
    config.derive("DEFAULT", "global_physnet_mtu", &mtu, "network.mtu");
    config.derive("ml2", "path_mtu", &mtu, "network.mtu");
    let names: Vec<String> = network.physical.iter().map(|it| it.name.clone()).collect();
    let vlans = network
        .physical
        .iter()
        .filter_map(|it| Some(format!("{}:{}", it.name, it.vlans.as_deref()?)))
        .collect();
    for (section, name, value) in [
        ("ml2_type_flat", "flat_networks", names),
        ("ml2_type_vlan", "network_vlan_ranges", vlans),
    ] {
        config.set(
            section,
            name,
            Value::List(value),
            Source::Parameter("network.physical"),
        );
    }
}

fn list(names: &[&str]) -> Value {
    Value::List(names.iter().map(|name| (*name).to_owned()).collect())
}

const USER: &str = "neutron";
const PORTS: &[(&str, u16)] = &[("http", 9696)];
const UWSGI: &str = "/etc/neutron/uwsgi.ini";

/// [`Definition`] of Neutron.
pub(super) fn definition(cloud: &Cloud, held: &Credentials) -> Definition {
    let run = |command: Vec<String>| Run {
        command,
        user: USER,
        files: Service::Neutron.files(cloud, held, None),
        scratch: vec!["/tmp", "/var/lib/neutron"],
        // In uWSGI it would read Debian's file of ML2 after ours, with another driver.
        environment: vec![(
            "OS_NEUTRON_CONFIG_FILES",
            Variable::Text("neutron.conf".to_owned()),
        )],
        ..Run::default()
    };
    let (api, workers) = match cloud.parameters.release {
        // One program with all its processes.
        Release::Zed => (with_files("neutron-server"), &[][..]),
        _ => (uwsgi(&cloud.parameters, "neutron-api", 9696), WORKERS),
    };
    let mut api = run(api);
    if cloud.parameters.release == Release::Zed {
        // Before 3.3 the Python library of Open vSwitch takes no names.
        api.environment.extend([
            (
                "OS_OVN__OVN_NB_CONNECTION",
                Variable::Database("ovn-nb", ovn::NB),
            ),
            (
                "OS_OVN__OVN_SB_CONNECTION",
                Variable::Database("ovn-sb", ovn::SB),
            ),
        ]);
    } else {
        // By the time of its start an API knows which entries in the ring of OVN's events are of a process that is gone.
        api.command.extend(command(&["--ini", UWSGI]));
        api.files.push(File::public(
            "neutron-uwsgi",
            UWSGI,
            "[uwsgi]\nstart-time = %t\n".to_owned(),
        ));
    }
    let mut workloads = vec![Workload {
        name: "neutron-api",
        stateful: None,
        run: api,
        ports: PORTS,
        ready: Probe::Http("http", "/healthcheck"),
        alive: Some(Probe::Tcp("http")),
        needs: NEEDS.to_vec(),
    }];
    workloads.extend(workers.iter().map(|(name, connected)| Workload {
        name,
        stateful: None,
        run: run(with_files(name)),
        ports: &[],
        ready: Probe::Connected(connected),
        // What it has lost it connects to by itself.
        alive: None,
        needs: NEEDS.to_vec(),
    }));
    if libvirt::of(&cloud.parameters).is_some() {
        workloads.push(metadata::workload(cloud, held));
    }
    let mut schema = with_files("neutron-db-manage");
    schema.extend(command(&["upgrade", "heads"]));
    Definition {
        name: "neutron",
        databases: vec!["neutron"],
        messaging: true,
        account: true,
        catalogue: vec![Entry {
            kind: "network",
            name: "neutron",
            url: "http://neutron:9696",
        }],
        addresses: vec![Address {
            name: "neutron",
            workload: "neutron-api",
            ports: PORTS,
            replicas: false,
            callers: Callers::Anyone,
        }],
        volumes: vec![],
        tasks: vec![Task {
            name: "neutron-schema",
            run: run(schema),
            needs: vec!["databases"],
            repeat: true,
        }],
        workloads,
        ..Definition::default()
    }
}

/// Programs besides the API, each with the ports of its connections.
const WORKERS: &[(&str, &[u16])] = &[
    ("neutron-rpc-server", &[rabbitmq::PORT, ovn::NB, ovn::SB]),
    ("neutron-periodic-workers", &[mariadb::PORT]),
    ("neutron-ovn-maintenance-worker", &[ovn::NB, ovn::SB]),
];

const NEEDS: [&str; 5] = [
    "neutron-schema",
    "broker-accounts",
    "identities",
    "ovn-nb",
    "ovn-sb",
];

/// Command of a program of Neutron with its configuration files, without further files of Debian's packages.
fn with_files(program: &str) -> Vec<String> {
    command(&[
        program,
        "--config-file",
        "/etc/neutron/neutron.conf",
        "--config-dir",
        "/etc/neutron/neutron.conf.d",
    ])
}
