//! Load balancers: whether the cloud has Octavia, and its settings.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value as Json;

use super::{Api, Parameters, Resources, ServiceParameters};

/// Octavia with its settings.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "Fields")]
pub struct Octavia {
    /// True if the cloud has Octavia.
    pub(crate) enabled: bool,
    /// Settings of the service.
    pub(crate) settings: ServiceParameters,
}

/// Fields of [`Octavia`] in the parameters.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Fields {
    enabled: bool,
    config: BTreeMap<String, BTreeMap<String, Json>>,
    resources: Resources,
    api: Api,
}

impl From<Fields> for Octavia {
    fn from(fields: Fields) -> Self {
        Self {
            enabled: fields.enabled,
            settings: ServiceParameters {
                config: fields.config,
                resources: fields.resources,
                api: fields.api,
            },
        }
    }
}

impl Parameters {
    /// True for a cloud with Octavia. False while programs of two releases exist: no upgrade adds Octavia.
    pub(super) fn has_balancers(&self) -> bool {
        self.services.octavia.enabled && self.release.has_balancers() && !self.upgrading
    }

    /// First senseless field of Octavia, and the reason.
    pub(super) fn wrong_of_balancers(&self) -> Option<(String, &'static str)> {
        let octavia = &self.services.octavia;
        if octavia.enabled && !self.release.has_balancers() {
            let problem = "it needs release 2026.1: the images of other releases have no Octavia";
            return Some(("services.octavia.enabled".to_owned(), problem));
        }
        let is_alone = !octavia.enabled && octavia.settings != ServiceParameters::default();
        is_alone.then(|| {
            let problem = "Octavia is there with services.octavia.enabled: true alone";
            ("services.octavia".to_owned(), problem)
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::project::Service;

    fn read(release: &str, octavia: &Json) -> Result<Parameters, String> {
        let document = json!({"release": release, "services": {"octavia": octavia}});
        let read = Parameters::read(&document);
        read.map(|it| it.0).map_err(|it| it.to_string())
    }

    #[test]
    fn octavia_is_there_when_it_is_enabled_and_not_while_two_releases_run() {
        let parameters = read(
            "2026.1",
            &json!({"enabled": true, "api": {"processes": 3, "threads": 2}}),
        );
        let parameters = parameters.unwrap();
        assert!(parameters.has(Service::Octavia));
        assert_eq!(parameters.workers("octavia").processes, 3);
        let upgrading = Parameters {
            upgrading: true,
            ..parameters
        };
        assert!(!upgrading.has(Service::Octavia));
        for off in [json!({}), json!({"enabled": false})] {
            assert!(!read("2026.1", &off).unwrap().has(Service::Octavia));
        }
    }

    #[test]
    fn what_is_wrong_with_octavia_is_named_with_its_field() {
        for (release, octavia, message) in [
            (
                "2025.1",
                json!({"enabled": true}),
                "services.octavia.enabled: it needs release 2026.1: the images of other releases have no Octavia",
            ),
            (
                "2026.1",
                json!({"config": {"quotas": {"default_pool_quota": 3}}}),
                "services.octavia: Octavia is there with services.octavia.enabled: true alone",
            ),
            (
                "2026.1",
                json!({"enabled": true, "replicas": 2}),
                "services.octavia.replicas: this field is not built yet",
            ),
            (
                "2026.1",
                json!({"enabled": true, "api": {"processes": 0}}),
                "services.octavia.api.processes: it is not from 1 to 64",
            ),
            (
                "2026.1",
                json!({"enabled": "yes"}),
                "services.octavia.enabled: invalid type: string \"yes\", expected a boolean",
            ),
            (
                "2026.1",
                json!({"provider": "amphora"}),
                "services.octavia.provider: unknown field `provider`, expected one of `enabled`, `config`, `resources`, `api`",
            ),
        ] {
            assert_eq!(read(release, &octavia).unwrap_err(), message);
        }
    }
}
