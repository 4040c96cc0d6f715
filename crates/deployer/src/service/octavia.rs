//! Octavia: load balancers of OVN, in clouds with `services.octavia.enabled` in the parameters.
//!
//! OVN balances in the flows of every node, so there are no amphorae, and none of the programs that care for these. The
//! provider works in the process of the API, and tells the outcome to an agent by sockets: both are in one container.

use super::definition::{
    Address, Callers, Definition, Entry, File, Probe, Run, Task, Workload, command, uwsgi,
};
use super::{Service, ovn};
use crate::cloud::{self, Cloud};
use crate::config::Config;
use crate::held::Credentials;
use crate::parameters::Parameters;

const USER: &str = "octavia";
const API: &str = "octavia-api";
const PORTS: &[(&str, u16)] = &[("http", 9876)];
/// Directory of our programs.
const PROGRAMS: &str = "/opt/ferrostack";
/// Path of the program that runs API and agent.
const RUN: &str = "/opt/ferrostack/balancers.sh";
/// Path of the WSGI module around Octavia's.
const MODULE: &str = "/opt/ferrostack/balancers.py";
/// Question to the API, and to the agent, which asks the database.
const ASKED: &str = "import http.client, json, socket, sys
api = http.client.HTTPConnection('127.0.0.1', 9876, timeout=5)
api.request('GET', '/healthcheck')
if api.getresponse().status >= 400:
    sys.exit('the API is not healthy')
question = json.dumps({'object': 'loadbalancers', 'id': 'none'}).encode()
with socket.socket(socket.AF_UNIX) as agent:
    agent.settimeout(5)
    agent.connect('/run/octavia/get.sock')
    agent.sendall(b'%d\\n' % len(question) + question)
    sys.exit(not agent.recv(1))";

/// The configuration.
pub(super) fn configuration(parameters: &Parameters) -> Config {
    let mut config = Config::default();
    config.logging();
    config.database("database", "octavia", "octavia");
    config.tokens("octavia", parameters);
    config.behind_edge();
    for section in ["service_auth", "neutron"] {
        config.login(section, "octavia", parameters);
    }
    let why = "services call each other inside the cluster";
    config.require("neutron", "valid_interfaces", "internal", why);
    config.require("nova", "endpoint_type", "internalURL", why);
    config.derive("nova", "region_name", &parameters.region, "region");
    let section = "api_settings";
    let why = "callers are authenticated by Keystone";
    config.require(section, "auth_strategy", "keystone", why);
    let why = "the kubelet asks it";
    config.require(section, "healthcheck_enabled", "true", why);
    providers(&mut config);
    place(&mut config, cloud::NAMESPACE);
    config
}

/// The provider, its agent, and what it cannot do.
fn providers(config: &mut Config) {
    let why = "load balancers are made by OVN";
    let provider = "ovn:Octavia OVN driver.";
    config.require("api_settings", "enabled_provider_drivers", provider, why);
    config.require("api_settings", "default_provider_driver", "ovn", why);
    let agent = "driver_agent";
    config.require(agent, "enabled_provider_agents", "ovn", why);
    let why = "the provider looks for the sockets there";
    for name in ["status", "stats", "get"] {
        let path = format!("/var/run/octavia/{name}.sock");
        config.require(agent, &format!("{name}_socket_path"), &path, why);
    }
    let why = "the agent ends within the grace of its Pod";
    config.preset(agent, "provider_agent_shutdown_timeout", "10", why);
    let why = "OVN does not serve it, so that it is refused at once";
    for name in [
        "allow_tls_terminated_listeners",
        "allow_ping_health_monitors",
        "allow_prometheus_listeners",
    ] {
        config.preset("api_settings", name, "false", why);
    }
}

/// Sets the addresses of OVN's databases in a cloud in this namespace.
pub(super) fn place(config: &mut Config, namespace: &str) {
    let why = "load balancers are made by OVN";
    let (northbound, southbound) = (ovn::northbound(namespace), ovn::southbound(namespace));
    config.require("ovn", "ovn_nb_connection", &northbound, why);
    config.require("ovn", "ovn_sb_connection", &southbound, why);
}

/// Definition of Octavia; `None` in a cloud without.
pub(super) fn definition(cloud: &Cloud, held: &Credentials) -> Option<Definition> {
    if !cloud.parameters.has(Service::Octavia) {
        return None;
    }
    let schema = command(&["octavia-db-manage", "upgrade", "head"]);
    Some(Definition {
        name: "octavia",
        databases: vec!["octavia"],
        account: true,
        catalogue: vec![Entry {
            kind: "load-balancer",
            name: "octavia",
            url: "http://octavia:9876",
        }],
        addresses: vec![Address {
            name: "octavia",
            workload: API,
            ports: PORTS,
            replicas: false,
            callers: Callers::Anyone,
        }],
        tasks: vec![Task {
            name: "octavia-schema",
            run: run(cloud, held, schema),
            needs: vec!["databases"],
            repeat: true,
        }],
        workloads: vec![api(cloud, held)],
        ..Definition::default()
    })
}

/// API and agent.
fn api(cloud: &Cloud, held: &Credentials) -> Workload {
    let mut words = command(&["/bin/bash", RUN]);
    words.extend(uwsgi(&cloud.parameters, API, 9876));
    // The module of ours has the application of Octavia's.
    let entry = words.iter().position(|it| it == "--module");
    if let Some(module) = entry.and_then(|at| words.get_mut(at + 1)) {
        "balancers:application".clone_into(module);
    }
    words.extend(command(&["--pythonpath", PROGRAMS]));
    let mut run = run(cloud, held, words);
    run.files.extend([
        File::public(
            "octavia-run",
            RUN,
            include_str!("../../programs/balancers.sh").to_owned(),
        ),
        File::public(
            "octavia-module",
            MODULE,
            include_str!("../../programs/balancers.py").to_owned(),
        ),
    ]);
    Workload {
        name: API,
        stateful: None,
        run,
        ports: PORTS,
        ready: Probe::Command(&["python3", "-c", ASKED]),
        alive: Some(Probe::Tcp("http")),
        needs: vec![
            "octavia-schema",
            "identities",
            "ovn-nb",
            "ovn-sb",
            "neutron-api",
        ],
    }
}

fn run(cloud: &Cloud, held: &Credentials, command: Vec<String>) -> Run {
    Run {
        command,
        user: USER,
        files: Service::Octavia.files(cloud, held, None),
        scratch: vec!["/tmp", "/run/octavia"],
        ..Run::default()
    }
}

#[cfg(test)]
mod tests;
