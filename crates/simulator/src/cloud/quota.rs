//! Quotas: defaults, overrides of a project, and usage.

use serde_json::{Value, json};

use super::call::Call;
use super::document::{Doc, Fields};
use super::kind::Kind;
use super::service::Service;
use super::settings::Settings;
use super::state::State;

/// Limit: name in the service's API, default, and the function that counts the use.
pub(crate) struct Limit {
    pub(crate) name: &'static str,
    default: i64,
    used: Used,
}

enum Used {
    Count(Kind),
    Cores,
    Ram,
    Gigabytes,
    BackupGigabytes,
    Nothing,
}

const fn limit(name: &'static str, default: i64, used: Used) -> Limit {
    Limit {
        name,
        default,
        used,
    }
}

/// Returns the limits of each service. If the real cloud of docs/project/test-cloud.md raised a default, the raised
/// value applies, made large enough for benchmarks; other defaults are the service's own.
pub(crate) fn limits(service: Service) -> &'static [Limit] {
    use Used::{BackupGigabytes, Cores, Count, Gigabytes, Nothing, Ram};
    match service {
        Service::Compute => {
            const {
                &[
                    limit("instances", 20_000, Count(Kind::Server)),
                    limit("cores", 100_000, Cores),
                    limit("ram", 400_000_000, Ram),
                    limit("key_pairs", 100, Nothing),
                    limit("metadata_items", 128, Nothing),
                    limit("server_groups", 1000, Count(Kind::ServerGroup)),
                    limit("server_group_members", 1000, Nothing),
                ]
            }
        }
        Service::Network => {
            const {
                &[
                    limit("network", 10_000, Count(Kind::Network)),
                    limit("subnet", 10_000, Count(Kind::Subnet)),
                    limit("port", 100_000, Count(Kind::Port)),
                    limit("router", 10_000, Count(Kind::Router)),
                    limit("floatingip", 10_000, Count(Kind::FloatingIp)),
                    limit("security_group", 10_000, Count(Kind::SecurityGroup)),
                    limit(
                        "security_group_rule",
                        100_000,
                        Count(Kind::SecurityGroupRule),
                    ),
                    limit("trunk", -1, Count(Kind::Trunk)),
                    limit("rbac_policy", 10, Nothing),
                    limit("subnetpool", -1, Count(Kind::SubnetPool)),
                ]
            }
        }
        Service::Volume => {
            const {
                &[
                    limit("volumes", 20_000, Count(Kind::Volume)),
                    limit("snapshots", 20_000, Count(Kind::Snapshot)),
                    limit("gigabytes", 2_000_000, Gigabytes),
                    limit("backups", 100, Count(Kind::Backup)),
                    limit("backup_gigabytes", 10_000, BackupGigabytes),
                    limit("per_volume_gigabytes", -1, Nothing),
                    limit("groups", 10, Count(Kind::VolumeGroup)),
                ]
            }
        }
        Service::LoadBalancer => {
            const {
                &[
                    limit("load_balancer", -1, Count(Kind::LoadBalancer)),
                    limit("listener", -1, Count(Kind::Listener)),
                    limit("pool", -1, Count(Kind::Pool)),
                    limit("member", -1, Count(Kind::Member)),
                    limit("health_monitor", -1, Count(Kind::HealthMonitor)),
                    limit("l7policy", -1, Count(Kind::L7Policy)),
                    limit("l7rule", -1, Count(Kind::L7Rule)),
                ]
            }
        }
        _ => &[],
    }
}

impl Limit {
    /// Returns the limit of a project; -1 is unlimited.
    pub(crate) fn of(
        &self,
        state: &State,
        settings: &Settings,
        service: Service,
        project: &str,
    ) -> i64 {
        state
            .get(Kind::Quota, &key(service, project))
            .and_then(|doc| doc.get(self.name).and_then(Value::as_i64))
            .unwrap_or_else(|| self.default(settings))
    }

    /// Returns the limit of a project without an override.
    pub(crate) fn default(&self, settings: &Settings) -> i64 {
        settings
            .quotas
            .get(self.name)
            .copied()
            .unwrap_or(self.default)
    }

    /// Returns the use of a project.
    pub(crate) fn used(&self, state: &State, project: &str) -> i64 {
        match self.used {
            Used::Count(kind) => {
                i64::try_from(state.count_by(kind, "project_id", project)).unwrap_or(i64::MAX)
            }
            Used::Cores => state.usage(project).cores,
            Used::Ram => state.usage(project).ram,
            Used::Gigabytes => state.usage(project).gigabytes,
            Used::BackupGigabytes => {
                let backups = state.by(Kind::Backup, "project_id", project);
                backups.iter().map(|doc| doc.number("size")).sum()
            }
            Used::Nothing => 0,
        }
    }
}

/// Quota that a request would exceed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Exceeded {
    pub(crate) name: &'static str,
    pub(crate) requested: i64,
    pub(crate) used: i64,
    pub(crate) limit: i64,
}

/// Returns the limits of `service` that the requested amounts exceed.
pub(crate) fn exceeded(
    call: &Call<'_>,
    service: Service,
    project: &str,
    wanted: &[(&str, i64)],
) -> Vec<Exceeded> {
    limits(service)
        .iter()
        .filter_map(|limit| {
            let requested = wanted.iter().find(|(name, _)| *name == limit.name)?.1;
            let most = limit.of(call.state, call.settings, service, project);
            let used = limit.used(call.state, project);
            (most >= 0 && requested > 0 && used + requested > most).then_some(Exceeded {
                name: limit.name,
                requested,
                used,
                limit: most,
            })
        })
        .collect()
}

/// Returns all limits of a project by name, for a [`Service`].
pub(crate) fn set_of(call: &Call<'_>, service: Service, project: &str) -> Doc {
    limits(service)
        .iter()
        .map(|limit| {
            let most = limit.of(call.state, call.settings, service, project);
            (limit.name.to_owned(), json!(most))
        })
        .collect()
}

/// Returns limit, use and reservation of each, under the service's names.
pub(crate) fn details(call: &Call<'_>, service: Service, project: &str, used_as: &str) -> Doc {
    limits(service)
        .iter()
        .map(|limit| {
            let most = limit.of(call.state, call.settings, service, project);
            let used = limit.used(call.state, project);
            (
                limit.name.to_owned(),
                json!({"limit": most, used_as: used, "reserved": 0}),
            )
        })
        .collect()
}

/// Returns the limits among `wanted` below the use of the project.
pub(crate) fn below_use(
    call: &Call<'_>,
    service: Service,
    project: &str,
    wanted: &Doc,
) -> Vec<Exceeded> {
    let of_limit = |limit: &Limit| {
        let most = number(wanted.get(limit.name)?)?;
        let used = limit.used(call.state, project);
        (most >= 0 && used > most).then_some(Exceeded {
            name: limit.name,
            requested: 0,
            used,
            limit: most,
        })
    };
    limits(service).iter().filter_map(of_limit).collect()
}

/// Overrides limits of a project; returns the unknown names.
pub(crate) fn change(
    call: &mut Call<'_>,
    service: Service,
    project: &str,
    wanted: &Doc,
) -> Vec<String> {
    let key = key(service, project);
    let mut doc = call
        .state
        .get(Kind::Quota, &key)
        .map(|doc| (*doc).clone())
        .unwrap_or_default();
    doc.set("id", key);
    let mut unknown = Vec::new();
    for (name, value) in wanted {
        match (
            limits(service).iter().find(|limit| limit.name == name),
            number(value),
        ) {
            (Some(limit), Some(value)) => doc.set(limit.name, value),
            _ if ["tenant_id", "project_id", "force", "check_limit"].contains(&name.as_str()) => {}
            _ => unknown.push(name.clone()),
        }
    }
    call.state.put(Kind::Quota, doc);
    unknown
}

/// Returns the limit of any name, including names from the cloud's content, such as a volume type; -1 is unlimited.
pub(crate) fn named(call: &Call<'_>, service: Service, project: &str, name: &str) -> i64 {
    if let Some(limit) = limits(service).iter().find(|limit| limit.name == name) {
        return limit.of(call.state, call.settings, service, project);
    }
    let overridden = call.state.get(Kind::Quota, &key(service, project));
    overridden
        .and_then(|doc| doc.get(name).and_then(Value::as_i64))
        .or_else(|| call.settings.quotas.get(name).copied())
        .unwrap_or(-1)
}

/// Overrides a limit of any name.
pub(crate) fn set_named(
    call: &mut Call<'_>,
    service: Service,
    project: &str,
    name: &str,
    most: i64,
) {
    call.state.edit(Kind::Quota, &key(service, project), |doc| {
        doc.set(name, most)
    });
}

/// Removes the overrides of a project.
pub(crate) fn reset(call: &mut Call<'_>, service: Service, project: &str) {
    call.state.remove(Kind::Quota, &key(service, project));
}

fn number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

fn key(service: Service, project: &str) -> String {
    format!("{}/{project}", service.segment())
}
