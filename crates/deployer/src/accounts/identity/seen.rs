//! Existing objects in Keystone.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value as Json;

/// Existing objects in Keystone.
#[derive(Clone, Debug, Default)]
pub struct IdentitySeen {
    pub(super) projects: Vec<Named>,
    pub(super) users: Vec<Named>,
    pub(super) roles: Vec<Named>,
    pub(super) services: Vec<Service>,
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) assignments: Vec<Assignment>,
    /// Users with another password than desired.
    pub(super) rejected: BTreeSet<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Named {
    pub(super) id: String,
    pub(super) name: String,
    /// Null for a role of all domains.
    #[serde(default)]
    domain_id: Option<String>,
    #[serde(default, deserialize_with = "text")]
    pub(super) description: String,
    #[serde(default = "enabled")]
    pub(super) enabled: bool,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Service {
    pub(super) id: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default, deserialize_with = "text")]
    pub(super) name: String,
    #[serde(default, deserialize_with = "text")]
    pub(super) description: String,
    #[serde(default = "enabled")]
    pub(super) enabled: bool,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Endpoint {
    pub(super) id: String,
    pub(super) service_id: String,
    #[serde(default, deserialize_with = "text")]
    region_id: String,
    pub(super) interface: String,
    pub(super) url: String,
    #[serde(default, deserialize_with = "text")]
    pub(super) description: String,
    #[serde(default = "enabled")]
    pub(super) enabled: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Assignment {
    pub(super) project: String,
    pub(super) user: String,
    pub(super) role: String,
}

impl IdentitySeen {
    /// Reads the responses to [`Identity::lists`](super::Identity::lists).
    ///
    /// # Errors
    /// The response with an unexpected form.
    pub fn read([projects, users, roles, services, endpoints]: [Json; 5]) -> Result<Self, String> {
        Ok(Self {
            projects: list("projects", projects)?,
            users: list("users", users)?,
            roles: list("roles", roles)?,
            services: list("services", services)?,
            endpoints: list("endpoints", endpoints)?,
            ..Self::default()
        })
    }

    /// Adds the roles in the project of the services.
    ///
    /// # Errors
    /// If the response has an unexpected form.
    pub fn assigned(&mut self, answer: Json) -> Result<(), String> {
        let all: Vec<Json> = list("role_assignments", answer)?;
        let text = |it: &Json, path: &str| it.pointer(path)?.as_str().map(str::to_owned);
        // Those of groups and of the system have other fields.
        let ours = all.iter().filter_map(|it| {
            Some(Assignment {
                project: text(it, "/scope/project/id")?,
                user: text(it, "/user/id")?,
                role: text(it, "/role/id")?,
            })
        });
        self.assignments = ours.collect();
        Ok(())
    }

    /// Adds the rejected login of a user.
    pub fn rejected(&mut self, user: &str) {
        self.rejected.insert(user.to_owned());
    }

    /// Id of a role of all domains.
    pub(super) fn role(&self, name: &str) -> Option<&str> {
        let mut roles = self.roles.iter();
        let role = roles.find(|it| it.name == name && it.domain_id.is_none())?;
        Some(&role.id)
    }
}

impl Endpoint {
    pub(super) fn is(&self, service: &str, region: &str, interface: &str) -> bool {
        (
            self.service_id.as_str(),
            self.region_id.as_str(),
            self.interface.as_str(),
        ) == (service, region, interface)
    }
}

fn list<T: DeserializeOwned>(name: &str, mut answer: Json) -> Result<Vec<T>, String> {
    let items = answer.get_mut(name).map(Json::take).unwrap_or_default();
    // The words of the error would repeat values.
    serde_json::from_value(items)
        .map_err(|_| format!("Keystone's list of {name} is of an unknown form"))
}

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.unwrap_or_default())
}

fn enabled() -> bool {
    true
}
