//! Agent on each compute node that serves metadata to guests: a proxy in a namespace of each network.

use super::definition::{File, Host, Probe, Rights, Run, Variable, Workload, command};
use super::openvswitch::{self, DATABASE};
use super::ovn;
use crate::cloud::Cloud;
use crate::config::{Config, Source, Value};
use crate::held::Credentials;

const DIRECTORY: &str = "/etc/neutron/ovn-agent";
/// Request to the agent, like the requests of the networks' proxies; any response is good.
const ASKED: &str = "import socket
it = socket.socket(socket.AF_UNIX)
it.settimeout(5)
it.connect('/var/lib/neutron/metadata_proxy')
it.sendall(b'GET / HTTP/1.0\\r\\nX-Forwarded-For: 127.0.0.1\\r\\nX-OVN-Network-ID: none\\r\\n\\r\\n')
assert it.recv(4) == b'HTTP'";

/// [`Workload`] of the agent on each compute node.
pub(super) fn workload(cloud: &Cloud, held: &Credentials) -> Workload {
    let config = configuration(&ovn::southbound(&cloud.namespace));
    let secret = config.secret(|_| held.password("metadata-nova").expose().to_owned());
    let mut words = command(&["neutron-ovn-agent", "--config-file"]);
    words.push(format!("{DIRECTORY}/agent.ini"));
    words.push("--config-file".to_owned());
    words.push(format!("{DIRECTORY}/secret.ini"));
    let run = Run {
        command: words,
        user: "root",
        files: vec![
            File::public(
                "neutron-ovn-agent",
                format!("{DIRECTORY}/agent.ini"),
                config.public(),
            ),
            File::secret(
                "neutron-ovn-agent-secret",
                format!("{DIRECTORY}/secret.ini"),
                secret,
            ),
        ],
        // Namespaces of networks, and the proxies in them, end with the Pod, and the next one makes them again.
        scratch: vec!["/tmp", "/run", "/var/lib/neutron"],
        environment: vec![("OS_DEFAULT__HOST", Variable::Field("spec.nodeName"))],
        host: Some(Host {
            directories: vec![openvswitch::sockets(held)],
            network: true,
            // It makes namespaces and sets sysctls in them, and /proc/sys cannot be written with less.
            rights: Rights::All,
            ..Host::default()
        }),
        ..Run::default()
    };
    Workload {
        name: "neutron-ovn-agent",
        stateful: None,
        run,
        ports: &[],
        ready: Probe::Command(&["python3", "-c", ASKED]),
        alive: None,
        needs: vec!["ovn-controller", "nova-metadata"],
    }
}

fn configuration(southbound: &str) -> Config {
    let mut config = Config::default();
    config.logging();
    let why = "it is root in its Pod";
    for (section, name, value) in [
        ("DEFAULT", "state_path", "/var/lib/neutron"),
        ("DEFAULT", "nova_metadata_host", "nova-metadata"),
        ("DEFAULT", "nova_metadata_port", "8775"),
        ("DEFAULT", "metadata_workers", "1"),
        ("agent", "extensions", "metadata"),
        ("agent", "root_helper", "/usr/bin/env"),
        ("oslo_concurrency", "lock_path", "/var/lib/neutron/tmp"),
        ("ovs", "ovsdb_connection", DATABASE),
        ("ovn", "ovn_sb_connection", southbound),
    ] {
        config.require(section, name, value, why);
    }
    let secret = Value::Secret {
        pattern: "{}".to_owned(),
        account: "metadata",
    };
    let name = "metadata_proxy_shared_secret";
    config.set("DEFAULT", name, secret, Source::Structure(why));
    config
}
