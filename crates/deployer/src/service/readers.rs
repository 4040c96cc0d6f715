//! Options by the programs that read them. A change of an option restarts the readers.
//!
//! Only options with certain readers, by the sources of both releases, are listed; every other option has all programs
//! as readers.

use super::Service;

/// [`Service`], section, option (empty: every other one of the section), programs that read the option (empty: all).
type Row = (Service, &'static str, &'static str, &'static [&'static str]);

const ALL: &[&str] = &[];
const SCHEDULER: &[&str] = &["nova-scheduler"];
const CONDUCTOR: &[&str] = &["nova-conductor"];
const COMPUTE: &[&str] = &["nova-compute"];
/// Programs of Nova outside of the hypervisors. Only these have the accounts of the databases.
const CONTROL: &[&str] = &[
    "nova-api",
    "nova-conductor",
    "nova-manage",
    "nova-metadata",
    "nova-novncproxy",
    "nova-scheduler",
];
const METADATA: &[&str] = &["nova-metadata"];
const CONSOLES: &[&str] = &["nova-compute", "nova-novncproxy"];

const ROWS: [Row; 27] = [
    // nova/scheduler/utils.py and the client of the scheduler are part of other programs, too.
    (Service::Nova, "scheduler", "max_attempts", ALL),
    (Service::Nova, "scheduler", "max_placement_results", ALL),
    (Service::Nova, "scheduler", "", SCHEDULER),
    (Service::Nova, "filter_scheduler", "enabled_filters", ALL),
    (Service::Nova, "filter_scheduler", "weight_classes", ALL),
    (Service::Nova, "filter_scheduler", "pci_in_placement", ALL),
    (
        Service::Nova,
        "filter_scheduler",
        "track_instance_changes",
        ALL,
    ),
    (Service::Nova, "filter_scheduler", "", SCHEDULER),
    (Service::Nova, "metrics", "", SCHEDULER),
    (Service::Nova, "conductor", "", CONDUCTOR),
    (Service::Nova, "keystone_authtoken", "", &["nova-api"]),
    (Service::Nova, "neutron", "service_metadata_proxy", METADATA),
    (
        Service::Nova,
        "neutron",
        "metadata_proxy_shared_secret",
        METADATA,
    ),
    (Service::Nova, "vnc", "", CONSOLES),
    (Service::Nova, "DEFAULT", "host", CONTROL),
    (Service::Nova, "api_database", "", CONTROL),
    (Service::Nova, "database", "", CONTROL),
    (Service::Nova, "DEFAULT", "compute_driver", COMPUTE),
    (Service::Nova, "DEFAULT", "my_ip", COMPUTE),
    (Service::Nova, "DEFAULT", "reserved_host_cpus", COMPUTE),
    (Service::Nova, "DEFAULT", "reserved_host_memory_mb", COMPUTE),
    (Service::Nova, "libvirt", "", COMPUTE),
    (Service::Nova, "os_vif_ovs", "", COMPUTE),
    (Service::Nova, "DEFAULT", "vif_plugging_is_fatal", COMPUTE),
    (Service::Nova, "DEFAULT", "vif_plugging_timeout", COMPUTE),
    (
        Service::Nova,
        "DEFAULT",
        "sync_power_state_interval",
        COMPUTE,
    ),
    (
        Service::Nova,
        "DEFAULT",
        "resume_guests_state_on_host_boot",
        COMPUTE,
    ),
];

/// True if a program reads an option.
pub(super) fn reads(service: Service, program: &str, section: &str, name: &str) -> bool {
    let rows = || {
        ROWS.iter()
            .filter(|row| row.0 == service && row.1 == section)
    };
    let row = rows()
        .find(|row| row.2 == name)
        .or_else(|| rows().find(|row| row.2.is_empty()));
    row.is_none_or(|row| row.3.is_empty() || row.3.contains(&program))
}
