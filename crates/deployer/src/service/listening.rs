//! Options for the address and the processes of a program: parts of the structure of the cloud, or options without a
//! reader.
//!
//! uWSGI listens for the APIs, on the target port of the Service, and starts their processes.

use super::Service;
use crate::release::Release;

/// Reason for `glance-api` and zed's `neutron-server`, which listen without uWSGI: no Service would lead to another
/// port.
const PORT: &str = "its Service leads to one address and port of the program";
/// Reason for options read only by programs that serve the API without uWSGI.
const SOCKET: &str = "uWSGI listens in place of this program, where its Service leads to";
const PROCESSES: &str = "uWSGI starts the processes of this program, which reads no number of them";

const ABSENT: &str = "no such program is in the cloud: load balancers are made by OVN";

/// Service, section, names, affected releases (empty: all), and the reason.
type Row = (
    Service,
    &'static str,
    &'static [&'static str],
    &'static [Release],
    &'static str,
);

const ROWS: [Row; 16] = [
    (
        Service::Cinder,
        "DEFAULT",
        &["osapi_volume_listen", "osapi_volume_listen_port"],
        &[],
        SOCKET,
    ),
    (
        Service::Cinder,
        "DEFAULT",
        &["osapi_volume_workers"],
        &[],
        PROCESSES,
    ),
    (
        Service::Glance,
        "DEFAULT",
        &["bind_host", "bind_port"],
        &[Release::Zed, Release::Epoxy],
        PORT,
    ),
    (
        Service::Glance,
        "DEFAULT",
        &["bind_host", "bind_port"],
        &[Release::Gazpacho],
        SOCKET,
    ),
    (
        Service::Glance,
        "DEFAULT",
        &["workers"],
        &[Release::Gazpacho],
        PROCESSES,
    ),
    (
        Service::Neutron,
        "DEFAULT",
        &["bind_host", "bind_port"],
        &[Release::Zed],
        PORT,
    ),
    (
        Service::Neutron,
        "DEFAULT",
        &["bind_host", "bind_port"],
        &[],
        SOCKET,
    ),
    (
        Service::Neutron,
        "DEFAULT",
        &["api_workers"],
        &[Release::Epoxy, Release::Gazpacho],
        PROCESSES,
    ),
    (
        Service::Nova,
        "DEFAULT",
        &[
            "metadata_listen",
            "metadata_listen_port",
            "osapi_compute_listen",
            "osapi_compute_listen_port",
        ],
        &[],
        SOCKET,
    ),
    (
        Service::Nova,
        "DEFAULT",
        &["metadata_workers", "osapi_compute_workers"],
        &[],
        PROCESSES,
    ),
    (
        Service::Octavia,
        "api_settings",
        &["bind_host", "bind_port"],
        &[],
        SOCKET,
    ),
    (
        Service::Octavia,
        "controller_worker",
        &["workers"],
        &[],
        ABSENT,
    ),
    (Service::Octavia, "task_flow", &["max_workers"], &[], ABSENT),
    (
        Service::Octavia,
        "haproxy_amphora",
        &["bind_host", "bind_port"],
        &[],
        ABSENT,
    ),
    (
        Service::Octavia,
        "health_manager",
        &["bind_ip", "bind_port", "controller_ip_port_list"],
        &[],
        ABSENT,
    ),
    (
        Service::Keystone,
        "eventlet_server",
        &["admin_bind_host", "public_bind_host"],
        &[],
        SOCKET,
    ),
];

/// Reason why an option, by its current name, has no effect or makes the program unreachable.
pub(crate) fn refused(
    service: Service,
    release: Release,
    section: &str,
    name: &str,
) -> Option<&'static str> {
    let row = ROWS.iter().find(|row| {
        row.0 == service
            && row.1 == section
            && row.2.contains(&name)
            && (row.3.is_empty() || row.3.contains(&release))
    });
    row.map(|row| row.4)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of each release the options whose names say so, but for those that a program reads and its Service does not mind.
    #[test]
    fn every_option_of_a_socket_or_of_processes_of_an_api_is_refused_or_has_an_effect() {
        let effect = [
            ("cinder", "backup_workers"),
            ("cinder", "hitachi_rest_max_request_workers"),
            ("cinder", "hpexp_rest_max_request_workers"),
            ("glance", "workers"),
            ("glance", "max_workers"),
            ("neutron", "rpc_workers"),
            ("neutron", "rpc_state_report_workers"),
            ("nova", "server_listen"),
            ("nova", "workers"),
        ];
        for release in Release::ALL {
            for service in Service::ALL {
                let Some(table) = release.table(service) else {
                    continue;
                };
                for found in table.all() {
                    let name = found.name;
                    let is_one = name.ends_with("workers")
                        || name.contains("listen") && !name.contains("listener")
                        || name.ends_with("bind_host")
                        || name.ends_with("bind_port");
                    if is_one && !effect.contains(&(service.name(), name)) {
                        let zed_server = (release, name) == (Release::Zed, "api_workers");
                        let why = refused(service, release, found.section, name);
                        assert_eq!(why.is_some(), !zed_server, "{release} {service} {name}");
                    }
                }
            }
        }
    }
}
