//! OVN: databases of networks, and northd between these.

use super::definition::{
    Address, Callers, Definition, Probe, Run, Stateful, Task, Volume, Workload, command,
};
use super::mark::Marked;
use super::{fake, libvirt, openvswitch};
use crate::cloud::Cloud;
use crate::held::Credentials;

/// User of all programs.
pub(super) const USER: &str = "openvswitch";
const NORTHBOUND: &[(&str, u16)] = &[("ovsdb", NB)];
const SOUTHBOUND: &[(&str, u16)] = &[("ovsdb", SB)];
/// Port of the northbound database.
pub(super) const NB: u16 = 6641;
/// Port of the southbound database.
pub(super) const SB: u16 = 6642;

/// URL of the northbound database of the cloud in this namespace.
pub(super) fn northbound(namespace: &str) -> String {
    remote("ovn-nb", namespace, NB)
}

/// URL of the southbound database of the cloud in this namespace.
pub(super) fn southbound(namespace: &str) -> String {
    remote("ovn-sb", namespace, SB)
}

/// URL of a database with a full host name: OVN's libraries resolve names themselves, without the search domains of the
/// Pod.
fn remote(name: &str, namespace: &str, port: u16) -> String {
    format!("tcp:{name}.{namespace}.svc.{DOMAIN}:{port}")
}

/// Domain of the cluster.
const DOMAIN: &str = "cluster.local";

/// [`Definition`] of OVN.
pub(super) fn definition(cloud: &Cloud, held: &Credentials) -> Definition {
    let address = |name, ports| Address {
        name,
        workload: name,
        ports,
        replicas: false,
        callers: Callers::Readers,
    };
    let volume = |name| Volume { name, size: "1Gi" };
    let chassis = fake::of(&cloud.parameters).map(|fake| fake::chassis(cloud, fake));
    let mut definition = Definition {
        name: "ovn",
        addresses: vec![address("ovn-nb", NORTHBOUND), address("ovn-sb", SOUTHBOUND)],
        volumes: vec![volume("ovn-nb-data"), volume("ovn-sb-data")],
        tasks: vec![
            create(held, "ovn-nb-create", "ovn-nb-data", "ovn-nb.ovsschema"),
            create(held, "ovn-sb-create", "ovn-sb-data", "ovn-sb.ovsschema"),
        ],
        workloads: vec![
            database(
                "ovn-nb",
                "ovn-nb-data",
                "ovn-nb-create",
                NORTHBOUND,
                "ptcp:6641",
            ),
            database(
                "ovn-sb",
                "ovn-sb-data",
                "ovn-sb-create",
                SOUTHBOUND,
                "ptcp:6642",
            ),
            northd(&cloud.namespace),
        ],
        ..Definition::default()
    };
    definition.workloads.extend(chassis);
    if libvirt::of(&cloud.parameters).is_some() {
        // The agents of nodes are in the network of these, and no policy can name them.
        for address in &mut definition.addresses {
            if address.name == "ovn-sb" {
                address.callers = Callers::Anyone;
            }
        }
        let workloads = openvswitch::workloads(cloud, held);
        definition.workloads.extend(workloads);
    }
    definition
}

/// [`Task`] to make a database with this schema on the volume, unless one exists.
fn create(held: &Credentials, name: &'static str, volume: &'static str, schema: &str) -> Task {
    let database = Marked {
        volume,
        directory: "/var/lib/ovn",
        data: "ovn.db",
        make: &format!("ovsdb-tool create new /usr/share/ovn/{schema}"),
    };
    Task {
        name,
        run: Run {
            command: database.command(held.uid()),
            user: USER,
            scratch: vec!["/tmp"],
            volumes: vec![(volume, "/var/lib/ovn")],
            ..Run::default()
        },
        needs: vec![],
        // The server has the volume by then.
        repeat: false,
    }
}

fn database(
    name: &'static str,
    volume: &'static str,
    create: &'static str,
    ports: &'static [(&'static str, u16)],
    remote: &str,
) -> Workload {
    Workload {
        name,
        stateful: Some(Stateful::one(name)),
        run: Run {
            command: [
                command(&["ovsdb-server", "/var/lib/ovn/ovn.db"]),
                vec![format!("--remote={remote}:0.0.0.0")],
                command(&["--unixctl=/run/ovn/ovn.ctl", "-vconsole:warn"]),
            ]
            .concat(),
            user: USER,
            scratch: vec!["/tmp", "/run/ovn"],
            volumes: vec![(volume, "/var/lib/ovn")],
            ..Run::default()
        },
        ports,
        ready: Probe::Tcp("ovsdb"),
        alive: Some(Probe::Tcp("ovsdb")),
        needs: vec![create],
    }
}

/// Check that northd has both databases: without one, northd is a standby that looks healthy.
const BOTH: &str = "for side in nb sb; do \
test \"$(ovn-appctl -t /run/ovn/northd.ctl $side-connection-status)\" = connected || exit 1; done";

fn northd(namespace: &str) -> Workload {
    Workload {
        name: "ovn-northd",
        stateful: None,
        run: Run {
            command: command(&[
                "ovn-northd",
                &format!("--ovnnb-db={}", northbound(namespace)),
                &format!("--ovnsb-db={}", southbound(namespace)),
                "--unixctl=/run/ovn/northd.ctl",
                "-vconsole:warn",
            ]),
            user: USER,
            scratch: vec!["/tmp", "/run/ovn"],
            ..Run::default()
        },
        ports: &[],
        // Active or standby: while a new one starts, the old one has the lock of the southbound database.
        ready: Probe::Command(&["/bin/sh", "-c", BOTH]),
        // After an outage of DNS it does not find the databases again.
        alive: Some(Probe::Command(&["/bin/sh", "-c", BOTH])),
        needs: vec!["ovn-nb", "ovn-sb"],
    }
}
