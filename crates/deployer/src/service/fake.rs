//! Imaginary hypervisors (`compute.driver: Fake`): real nova-compute services with guests as entries in memory, and a
//! stand-in for their ovn-controllers, which makes ports ACTIVE. No packet flows.

use super::Service;
use super::definition::{
    Address, Callers, File, Probe, Run, Stateful, Task, Variable, Workload, command,
};
use super::{ovn, rabbitmq};
use crate::accounts::mark;
use crate::cloud::Cloud;
use crate::config::Config;
use crate::held::Credentials;
use crate::parameters::{Driver, Fake, Parameters};
use crate::release::Release;

/// Name of the StatefulSet, and, with a number, of each hypervisor; with guests, name of the DaemonSet.
pub(crate) const COMPUTE: &str = "nova-compute";
/// Paths of this crate's programs in a container.
const COMPUTE_PROGRAM: &str = "/opt/ferrostack/compute.py";
const CHASSIS_PROGRAM: &str = "/opt/ferrostack/chassis.py";
const ZONES_PROGRAM: &str = "/opt/ferrostack/zones.py";
/// File made by nova-compute once its records exist.
const STARTED: &str = "/var/lib/nova/started";
/// Schema of the southbound database, for the stand-in.
const SCHEMA: &str = "/usr/share/ovn/ovn-sb.ovsschema";
/// Command to map new hosts to a cell: other hosts get no servers.
const DISCOVER: &str = "nova-manage cell_v2 discover_hosts || exit
nova-manage cell_v2 list_hosts >/tmp/hosts || exit
for host; do
grep -Eq \"\\| $host +\\|\" /tmp/hosts || { echo \"$host has no record in the cell\" >&2; exit 1; }
done";

/// Options of Nova for such hypervisors.
pub(super) fn compute_options(config: &mut Config) {
    config.derive(
        "DEFAULT",
        "compute_driver",
        "fake.Hypervisor",
        "compute.driver",
    );
    let plug =
        "the stand-in for ovn-controller plugs ports after a moment, for which no server waits";
    config.preset("DEFAULT", "vif_plugging_is_fatal", "false", plug);
    config.preset("DEFAULT", "vif_plugging_timeout", "0", plug);
    let why = "the driver forgets its guests with the Pod, which is no power failure";
    config.preset("DEFAULT", "sync_power_state_interval", "-1", why);
    config.require("DEFAULT", "resume_guests_state_on_host_boot", "true", why);
    let why = "many of them share a machine, and a late report is no outage";
    config.preset("DEFAULT", "report_interval", "20", why);
    config.preset("DEFAULT", "service_down_time", "120", why);
}

/// Options of Neutron for such hypervisors.
pub(super) fn network_options(config: &mut Config) {
    let why = "the stand-ins for ovn-controller report only when northd asks";
    config.preset("DEFAULT", "agent_down_time", "3600", why);
}

/// Each hypervisor with its zone. The zones take turns.
fn hosts(fake: &Fake) -> impl Iterator<Item = (String, &str)> {
    (0..fake.hypervisors.0).map(|number| {
        let zones = fake.zones.iter().map(String::as_str);
        let zone = zones.cycle().nth(number as usize).unwrap_or_default();
        (format!("{COMPUTE}-{number}"), zone)
    })
}

/// [`Address`] with the names of the replicas.
pub(super) fn address() -> Address {
    Address {
        name: COMPUTE,
        workload: COMPUTE,
        ports: &[],
        replicas: true,
        callers: Callers::Anyone,
    }
}

/// [`Workload`] of the hypervisors.
pub(super) fn computes(cloud: &Cloud, held: &Credentials, fake: &Fake) -> Workload {
    let mut files = Service::Nova.files(cloud, held, Some(COMPUTE));
    let program = include_str!("../../programs/compute.py");
    files.push(File::public(
        "nova-compute-program",
        COMPUTE_PROGRAM,
        program.to_owned(),
    ));
    Workload {
        name: COMPUTE,
        stateful: Some(Stateful {
            address: COMPUTE,
            replicas: fake.hypervisors.0,
            parallel: true,
        }),
        run: Run {
            command: command(&["python3", COMPUTE_PROGRAM, held.uid()]),
            user: "nova",
            files,
            scratch: vec!["/tmp", "/var/lib/nova"],
            ..Run::default()
        },
        ports: &[],
        ready: Probe::Announced(STARTED, &[rabbitmq::PORT]),
        // Without a broker it reconnects by itself.
        alive: None,
        // It ends without a conductor, and reports to Placement.
        needs: vec!["nova-conductor", "placement-api"],
    }
}

/// [`Task`]s after the first report of the hypervisors: the map of cells, then the zones.
pub(super) fn tasks(cloud: &Cloud, held: &Credentials, fake: &Fake) -> Vec<Task> {
    let mut discover = command(&["/bin/sh", "-c", DISCOVER, "discover"]);
    discover.extend(hosts(fake).map(|(host, _)| host));
    let mut tasks = vec![Task {
        name: "nova-hosts",
        run: Run {
            command: discover,
            user: "nova",
            files: Service::Nova.files(cloud, held, Some("nova-manage")),
            scratch: vec!["/tmp", "/var/lib/nova"],
            ..Run::default()
        },
        needs: vec![COMPUTE],
        repeat: false,
    }];
    if !fake.zones.is_empty() {
        tasks.push(zones(cloud, held, fake));
    }
    tasks
}

fn zones(cloud: &Cloud, held: &Credentials, fake: &Fake) -> Task {
    let region = &cloud.parameters.region;
    let mut words = command(&["python3", ZONES_PROGRAM, &mark(held.uid()), region]);
    words.extend(hosts(fake).map(|(host, zone)| format!("{host}:{zone}")));
    let program = include_str!("../../programs/zones.py");
    Task {
        name: "nova-zones",
        run: Run {
            command: words,
            user: "nova",
            files: vec![File::public(
                "nova-zones-program",
                ZONES_PROGRAM,
                program.to_owned(),
            )],
            scratch: vec!["/tmp"],
            environment: vec![("OS_PASSWORD", Variable::Account("identity-nova"))],
            ..Run::default()
        },
        needs: vec!["nova-hosts", "nova-api"],
        repeat: false,
    }
}

/// [`Workload`] of the stand-in for the ovn-controllers of all hypervisors.
pub(super) fn chassis(cloud: &Cloud, fake: &Fake) -> Workload {
    let physical = cloud.parameters.network.physical.iter();
    let mappings: Vec<String> = physical.map(|it| format!("{0}:br-{0}", it.name)).collect();
    let southbound = match cloud.parameters.release {
        // Before 3.3 the Python library of Open vSwitch takes no names.
        Release::Zed => Variable::Database("ovn-sb", ovn::SB),
        Release::Epoxy | Release::Gazpacho => Variable::Text(ovn::southbound(&cloud.namespace)),
    };
    // A word of the command can refer to a variable, and is no word of a shell.
    let mut words = command(&["python3", "-u", CHASSIS_PROGRAM, "$(SOUTHBOUND)", SCHEMA]);
    words.push(mappings.join(","));
    words.extend(hosts(fake).map(|(host, zone)| format!("{host}:{zone}")));
    let program = include_str!("../../programs/chassis.py");
    Workload {
        name: "ovn-chassis",
        stateful: None,
        run: Run {
            command: words,
            user: ovn::USER,
            files: vec![File::public(
                "ovn-chassis-program",
                CHASSIS_PROGRAM,
                program.to_owned(),
            )],
            scratch: vec!["/tmp"],
            environment: vec![("SOUTHBOUND", southbound)],
            ..Run::default()
        },
        ports: &[],
        ready: Probe::Connected(&[ovn::SB]),
        alive: None,
        needs: vec!["ovn-sb"],
    }
}

/// [`Fake`] hypervisors of a cloud, if any.
pub(super) fn of(parameters: &Parameters) -> Option<&Fake> {
    let compute = parameters.compute.as_ref()?;
    (compute.driver == Driver::Fake).then_some(&compute.fake)
}

#[cfg(test)]
mod tests;
