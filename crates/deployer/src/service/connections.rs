//! Maximum number of connections of the cloud's programs at the database.

use super::Service;
use crate::parameters::Parameters;

/// Default sizes of a pool: kept connections, and further ones under load.
const POOL: (u64, u64) = (5, 50);
/// Connections of tasks and the controller.
const OTHERS: u64 = 50;
/// Largest number accepted by the server.
const LARGEST: u64 = 100_000;
/// Databases of Nova: one of its API and two of cells.
const DATABASES_OF_NOVA: u64 = 3;
/// Programs of Neutron besides its API and RPC workers: periodic work, and maintenance of OVN.
const WORKERS_OF_NEUTRON: u64 = 2;
/// Programs of Cinder besides the API: scheduler, volumes, backups.
const WORKERS_OF_CINDER: u64 = 3;
/// Processes of Octavia's agent: one for each socket, and the provider's.
const AGENTS_OF_OCTAVIA: u64 = 4;

/// Maximum of connections open in all pools together: each process has one pool for each database. The number is
/// rounded up to a power of two, so that another number of processes rarely restarts the server.
pub(super) fn most(parameters: &Parameters) -> u64 {
    let of_services: u64 = Service::ALL
        .into_iter()
        .map(|it| pools(parameters, it).saturating_mul(pool(parameters, it)))
        .fold(OTHERS, u64::saturating_add);
    of_services
        .checked_next_power_of_two()
        .map_or(LARGEST, |it| it.min(LARGEST))
}

/// Pools of all processes of a service.
fn pools(parameters: &Parameters, service: Service) -> u64 {
    let api = u64::from(parameters.workers(service.name()).processes);
    match service {
        Service::Keystone | Service::Placement => api,
        // The server of 2025.1 has an option of its own.
        Service::Glance => {
            api.max(number(parameters, service, "DEFAULT", "workers").unwrap_or_default())
        }
        Service::Neutron => {
            let rpc = number(parameters, service, "DEFAULT", "rpc_workers").unwrap_or(2);
            api.saturating_add(rpc).saturating_add(WORKERS_OF_NEUTRON)
        }
        Service::Cinder | Service::Octavia if !parameters.has(service) => 0,
        Service::Cinder => api.saturating_add(WORKERS_OF_CINDER),
        Service::Octavia => api.saturating_add(AGENTS_OF_OCTAVIA),
        Service::Nova => {
            let workers = |section| number(parameters, service, section, "workers").unwrap_or(2);
            // Its API, the metadata API, and the proxy of consoles.
            (2 * api + 1)
                .saturating_add(workers("conductor"))
                .saturating_add(workers("scheduler"))
                .saturating_mul(DATABASES_OF_NOVA)
        }
    }
}

/// Connections of one pool. A size of zero, and a negative overflow, mean no limit.
fn pool(parameters: &Parameters, service: Service) -> u64 {
    let sections: &[&str] = match service {
        Service::Nova => &["database", "api_database"],
        Service::Placement => &["placement_database"],
        _ => &["database"],
    };
    let of = |section: &&str| {
        let size = number(parameters, service, section, "max_pool_size").unwrap_or(POOL.0);
        let more = "max_overflow";
        let is_endless =
            text(parameters, service, section, more).is_some_and(|it| it.starts_with('-'));
        match size == 0 || is_endless {
            true => LARGEST,
            false => {
                size.saturating_add(number(parameters, service, section, more).unwrap_or(POOL.1))
            }
        }
    };
    sections.iter().map(of).max().unwrap_or(POOL.0 + POOL.1)
}

/// Option set to a whole number in the parameters.
fn number(parameters: &Parameters, service: Service, section: &str, name: &str) -> Option<u64> {
    text(parameters, service, section, name)?.parse().ok()
}

/// Option set in the parameters.
fn text(parameters: &Parameters, service: Service, section: &str, name: &str) -> Option<String> {
    let value = parameters.service(service).config.get(section)?.get(name)?;
    Some(
        value
            .as_str()
            .map_or_else(|| value.to_string(), |it| it.trim().to_owned()),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(services: serde_json::Value) -> u64 {
        let document = json!({"release": "2026.1", "services": services});
        most(&Parameters::read(&document).unwrap().0)
    }

    #[test]
    fn the_server_takes_what_all_pools_can_open() {
        // 6 processes of three APIs with one database, 6 of Neutron, 9 of Nova with three: 39 pools of 55.
        assert_eq!(of(json!({})), 4096);
        let many = json!({"api": {"processes": 30}});
        assert_eq!(of(json!({"nova": many})), 16384);
        let pools = json!({"config": {"database": {"max_pool_size": 2, "max_overflow": 0}, "api_database": {"max_overflow": "0"}}});
        assert_eq!(of(json!({"nova": pools})), 1024);
        for endless in [
            json!({"max_pool_size": 0}),
            json!({"max_overflow": -1}),
            json!({"max_overflow": "-1"}),
        ] {
            let pools = json!({"config": {"database": endless}});
            assert_eq!(of(json!({"keystone": pools})), LARGEST);
        }
        let workers = json!({"config": {"conductor": {"workers": 40}}});
        assert_eq!(of(json!({"nova": workers})), 16384);
        // 2025.1 has an option for the processes of Glance.
        let glance = json!({"release": "2025.1", "services": {"glance": {"config": {"DEFAULT": {"workers": 200}}}}});
        assert_eq!(most(&Parameters::read(&glance).unwrap().0), 16384);
    }
}
