//! Open vSwitch and ovn-controller on the compute nodes (`compute.driver: Libvirt`).

use super::definition::{File, Host, Probe, Rights, Run, Variable, Workload, command};
use super::ovn;
use crate::cloud::Cloud;
use crate::held::Credentials;
use crate::parameters::{Datapath, Network};

/// Directory of the sockets of Open vSwitch in a container.
const SOCKETS: &str = "/run/openvswitch";
/// Address of Open vSwitch's database.
pub(super) const DATABASE: &str = "unix:/run/openvswitch/db.sock";
const SERVER: &str = "/opt/ferrostack/openvswitch-db.sh";
const SWITCH: &str = "/opt/ferrostack/openvswitch.sh";

/// Directory of the node that outlives a restart of the node.
pub(super) fn kept(held: &Credentials, name: &str) -> String {
    format!("/var/lib/ferrostack/{}/{name}", held.uid())
}

/// Directory of the node that is empty after a restart of the node.
pub(super) fn running(held: &Credentials, name: &str) -> String {
    format!("/run/ferrostack/{}/{name}", held.uid())
}

/// Sockets of Open vSwitch, for another program.
pub(super) fn sockets(held: &Credentials) -> (String, &'static str) {
    (running(held, "openvswitch"), SOCKETS)
}

/// [`Workload`]s of each compute node.
pub(super) fn workloads(cloud: &Cloud, held: &Credentials) -> Vec<Workload> {
    vec![server(held), switch(cloud, held), controller(held)]
}

fn workload(name: &'static str, run: Run, ready: Probe, needs: Vec<&'static str>) -> Workload {
    Workload {
        name,
        stateful: None,
        run,
        ports: &[],
        ready,
        // A restart is the decision of who administers the node.
        alive: None,
        needs,
    }
}

fn server(held: &Credentials) -> Workload {
    let program = include_str!("../../programs/openvswitch-db.sh");
    let run = Run {
        command: command(&["/bin/sh", SERVER]),
        user: "root",
        files: vec![File::public(
            "openvswitch-db-program",
            SERVER,
            program.to_owned(),
        )],
        scratch: vec!["/tmp"],
        host: Some(Host {
            directories: vec![
                (kept(held, "openvswitch"), "/etc/openvswitch"),
                sockets(held),
            ],
            ..Host::default()
        }),
        ..Run::default()
    };
    let ready = Probe::Command(&["ovsdb-client", "--timeout=5", "list-dbs", DATABASE]);
    workload("openvswitch-db", run, ready, vec![])
}

fn switch(cloud: &Cloud, held: &Credentials) -> Workload {
    let network = &cloud.parameters.network;
    let southbound = ovn::southbound(&cloud.namespace);
    let mut words = command(&["/bin/sh", SWITCH, datapath(network), &southbound]);
    words.extend(network.physical.iter().map(|it| {
        let interface = it.interface.as_deref().unwrap_or_default();
        format!("{}={interface}", it.name)
    }));
    let program = include_str!("../../programs/openvswitch.sh");
    let run = Run {
        command: words,
        user: "root",
        files: vec![File::public(
            "openvswitch-program",
            SWITCH,
            program.to_owned(),
        )],
        scratch: vec!["/tmp"],
        environment: vec![
            ("NODE", Variable::Field("spec.nodeName")),
            ("ADDRESS", Variable::Field("status.hostIP")),
        ],
        host: Some(Host {
            directories: vec![
                sockets(held),
                // Ports of the userspace datapath.
                ("/dev/net/tun".to_owned(), "/dev/net/tun"),
            ],
            network: true,
            rights: Rights::Capabilities(&["NET_ADMIN", "NET_RAW"]),
            ..Host::default()
        }),
        ..Run::default()
    };
    let asked = &[
        "ovs-appctl",
        "--timeout=5",
        "--target=/run/openvswitch/vswitchd.ctl",
        "dpif/show",
    ];
    let ready = Probe::Command(asked);
    workload("openvswitch", run, ready, vec!["openvswitch-db"])
}

fn datapath(network: &Network) -> &'static str {
    match network.datapath {
        Datapath::Auto => "Auto",
        Datapath::System => "System",
        Datapath::Userspace => "Userspace",
    }
}

/// Check that ovn-controller is connected to its database.
const CONNECTED: &str = "test \"$(ovn-appctl --timeout=5 --target=/run/ovn/controller.ctl connection-status)\" = connected";

fn controller(held: &Credentials) -> Workload {
    let run = Run {
        command: command(&[
            "ovn-controller",
            DATABASE,
            "--unixctl=/run/ovn/controller.ctl",
            "-vconsole:warn",
        ]),
        user: "root",
        scratch: vec!["/tmp", "/run/ovn"],
        host: Some(Host {
            directories: vec![sockets(held)],
            // Otherwise it takes the flows of guests with it.
            ending: &[
                "ovn-appctl",
                "--timeout=10",
                "--target=/run/ovn/controller.ctl",
                "exit",
                "--restart",
            ],
            ..Host::default()
        }),
        ..Run::default()
    };
    let ready = Probe::Command(&["/bin/sh", "-c", CONNECTED]);
    let needs = vec!["openvswitch", "ovn-sb", "ovn-northd"];
    workload("ovn-controller", run, ready, needs)
}

#[cfg(test)]
mod tests;
