//! Hypervisors with guests (`compute.driver: Libvirt`): libvirtd and nova-compute on the compute nodes.

use super::Service;
use super::definition::{File, Host, Probe, Rights, Run, Variable, Workload, command};
use super::openvswitch::{self, DATABASE, kept, running};
use super::{ceph, fake, rabbitmq};
use crate::certificate;
use crate::cloud::Cloud;
use crate::config::{Config, Source, Value};
use crate::held::Credentials;
use crate::parameters::{CpuMode, Libvirt, Parameters};

const LIBVIRT: &str = "/opt/ferrostack/libvirt.sh";
/// Authority of the certificates by which the libvirt of nodes know each other, and its key.
const AUTHORITY: &str = "/opt/ferrostack/migration.crt";
const MIGRATION_KEY: &str = "/opt/ferrostack/migration.key";
const COMPUTE: &str = "/opt/ferrostack/nova-compute.sh";
const CONSOLES: &str = "/opt/ferrostack/nova-compute.py";
/// Path of the file with sections missing in the option table: commands that give Nova's helpers the rights of root.
const RIGHTS: &str = "/etc/nova/nova.conf.d/60-rights.conf";

/// Options of Nova for [`Libvirt`] hypervisors.
pub(super) fn compute_options(config: &mut Config, parameters: &Parameters, libvirt: &Libvirt) {
    ceph::compute_options(config, parameters);
    let drain = parameters.compute.as_ref().map(|it| it.drain.clone());
    let drain = drain.unwrap_or_default();
    let field = "compute.driver";
    config.derive("DEFAULT", "compute_driver", "libvirt.LibvirtDriver", field);
    let at_once = drain.at_once.0.to_string();
    let at_once_field = "compute.drain.atOnce";
    config.derive(
        "DEFAULT",
        "max_concurrent_live_migrations",
        &at_once,
        at_once_field,
    );
    let cpus = libvirt.reserved_cpus.to_string();
    let field = "compute.libvirt.reservedCpus";
    config.derive("DEFAULT", "reserved_host_cpus", &cpus, field);
    let memory = libvirt.reserved_memory_mib.to_string();
    let field = "compute.libvirt.reservedMemoryMib";
    config.derive("DEFAULT", "reserved_host_memory_mb", &memory, field);
    let mode = match libvirt.cpu_mode {
        CpuMode::Default => None,
        CpuMode::HostModel => Some("host-model"),
        CpuMode::HostPassthrough => Some("host-passthrough"),
        CpuMode::Custom => Some("custom"),
    };
    if let Some(mode) = mode {
        config.derive("libvirt", "cpu_mode", mode, "compute.libvirt.cpuMode");
    }
    if !libvirt.cpu_models.is_empty() {
        let models = Value::List(libvirt.cpu_models.clone());
        let field = Source::Parameter("compute.libvirt.cpuModels");
        config.set("libvirt", "cpu_models", models, field);
    }
    let why = "each node tries it by starting a guest, and has kvm then";
    config.require("libvirt", "virt_type", "qemu", why);
    let why = "the libvirt of the node";
    config.require("libvirt", "connection_uri", "qemu:///system", why);
    let why = "the Open vSwitch of the node";
    config.require("os_vif_ovs", "ovsdb_connection", DATABASE, why);
    let why = "each node has its own";
    config.require("DEFAULT", "my_ip", "127.0.0.1", why);
    config.require("vnc", "server_listen", "127.0.0.1", why);
    config.require("vnc", "server_proxyclient_address", "127.0.0.1", why);
    config.require("libvirt", "live_migration_inbound_addr", "127.0.0.1", why);
    let why = "the libvirt of nodes know each other by certificates of the cloud";
    config.require("libvirt", "live_migration_scheme", "tls", why);
    config.require("libvirt", "live_migration_with_native_tls", "true", why);
    let why = "disks of stopped servers are copied to no other node, and there may be none";
    config.preset("DEFAULT", "allow_resize_to_same_host", "true", why);
    let why = "a node that gets the label of compute nodes gets servers half a minute later";
    let name = "discover_hosts_in_cells_interval";
    config.preset("scheduler", name, "30", why);
}

/// [`Workload`]s of each compute node.
pub(super) fn workloads(cloud: &Cloud, held: &Credentials, parameters: &Libvirt) -> Vec<Workload> {
    vec![libvirt(cloud, held), compute(cloud, held, parameters)]
}

fn libvirt(cloud: &Cloud, held: &Credentials) -> Workload {
    let file = |object: &str, path: &str, text: &str| File::public(object, path, text.to_owned());
    // An error means that eight hashes in a row are no key.
    let (authority, key) = certificate::of_migrations(cloud, held).unwrap_or_default();
    let run = Run {
        command: command(&["/bin/sh", LIBVIRT]),
        user: "root",
        files: vec![
            file(
                "libvirt-program",
                LIBVIRT,
                include_str!("../../programs/libvirt.sh"),
            ),
            file(
                "libvirt",
                "/opt/ferrostack/libvirtd.conf",
                include_str!("../../programs/libvirtd.conf"),
            ),
            file(
                "libvirt-qemu",
                "/opt/ferrostack/qemu.conf",
                include_str!("../../programs/qemu.conf"),
            ),
            file("libvirt-authority", AUTHORITY, &authority),
            File::secret("libvirt-migration", MIGRATION_KEY, key.expose().to_owned()),
        ],
        scratch: vec![
            "/tmp",
            "/run",
            "/var/cache/libvirt",
            "/var/log/libvirt",
            "/etc/pki",
        ],
        environment: vec![
            ("NODE", Variable::Field("spec.nodeName")),
            ("ADDRESS", Variable::Field("status.hostIP")),
        ],
        host: Some(Host {
            directories: vec![
                (kept(held, "definitions"), "/etc/libvirt"),
                (kept(held, "libvirt"), "/var/lib/libvirt"),
                (kept(held, "nova"), "/var/lib/nova"),
                (running(held, "libvirt"), "/run/libvirt"),
                openvswitch::sockets(held),
                ("/sys/fs/cgroup".to_owned(), "/node/cgroup"),
            ],
            network: true,
            processes: true,
            rights: Rights::All,
            ending: &[],
        }),
        ..Run::default()
    };
    Workload {
        name: "libvirt",
        stateful: None,
        run,
        ports: &[],
        ready: Probe::Command(&["virsh", "--quiet", "version", "--daemon"]),
        alive: None,
        // It plugs the ports of its guests.
        needs: vec!["openvswitch"],
    }
}

fn compute(cloud: &Cloud, held: &Credentials, parameters: &Libvirt) -> Workload {
    let mode = match parameters.cpu_mode {
        CpuMode::HostPassthrough => "HostPassthrough",
        CpuMode::Default | CpuMode::HostModel | CpuMode::Custom => "any",
    };
    let mut files = Service::Nova.files(cloud, held, Some(fake::COMPUTE));
    let mut program = |object: &str, path: &str, text: &str| {
        files.push(File::public(object, path, text.to_owned()));
    };
    program(
        "nova-compute-program",
        COMPUTE,
        include_str!("../../programs/nova-compute.sh"),
    );
    program(
        "nova-compute-consoles",
        CONSOLES,
        include_str!("../../programs/nova-compute.py"),
    );
    files.push(File::public("nova-compute-rights", RIGHTS, rights()));
    let mut needs = vec![
        "libvirt",
        "ovn-controller",
        "nova-conductor",
        "placement-api",
    ];
    if let Some(of_guests) = ceph::files_of_guests(cloud, held) {
        files.extend(of_guests);
        needs.push(ceph::STEP);
    }
    let node = || Variable::Field("spec.nodeName");
    let address = || Variable::Field("status.hostIP");
    let run = Run {
        command: command(&["/bin/sh", COMPUTE, mode]),
        user: "root",
        files,
        scratch: vec!["/tmp"],
        // What is of the node alone. oslo.config takes it before files.
        environment: vec![
            ("OS_DEFAULT__HOST", node()),
            ("OS_DEFAULT__MY_IP", address()),
            ("OS_LIBVIRT__LIVE_MIGRATION_INBOUND_ADDR", address()),
            ("OS_VNC__SERVER_LISTEN", address()),
            ("OS_VNC__SERVER_PROXYCLIENT_ADDRESS", address()),
        ],
        host: Some(Host {
            directories: vec![
                (kept(held, "nova"), "/var/lib/nova"),
                (running(held, "libvirt"), "/run/libvirt"),
                openvswitch::sockets(held),
            ],
            rights: Rights::Capabilities(CAPABILITIES),
            ..Host::default()
        }),
        ..Run::default()
    };
    Workload {
        name: fake::COMPUTE,
        stateful: None,
        run,
        ports: &[],
        ready: Probe::Connected(&[rabbitmq::PORT]),
        alive: None,
        needs,
    }
}

/// Capabilities of nova-compute: for disks and consoles of guests, owned by QEMU's user, and ports.
const CAPABILITIES: &[&str] = &[
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "NET_ADMIN",
];

/// Sections of Nova's helpers: without sudo, which no image has, and with no more capabilities than the Pod.
fn rights() -> String {
    let helper =
        "privsep-helper --config-file /etc/nova/nova.conf --config-dir /etc/nova/nova.conf.d";
    let capabilities: Vec<String> = CAPABILITIES.iter().map(|it| format!("CAP_{it}")).collect();
    let section = |(name, capabilities): (&str, String)| {
        format!("[{name}]\nhelper_command = {helper}\ncapabilities = {capabilities}\n")
    };
    [
        ("nova_sys_admin", capabilities.join(",")),
        ("vif_plug_ovs_privileged", "CAP_NET_ADMIN".to_owned()),
        (
            "vif_plug_linux_bridge_privileged",
            "CAP_NET_ADMIN".to_owned(),
        ),
        // It tells how the node could attach a volume, also one of RBD, which QEMU attaches.
        ("privsep_osbrick", "CAP_DAC_READ_SEARCH".to_owned()),
    ]
    .map(section)
    .join("\n")
}

/// [`Libvirt`] hypervisors of a cloud, if any.
pub(super) fn of(parameters: &Parameters) -> Option<&Libvirt> {
    parameters.libvirt()
}
