//! A request for its handler, and the handler's answer.

use bytes::Bytes;
use http::HeaderMap;
use jiff::Timestamp;
use serde_json::Value;

use super::base::Base;
use super::document::{Doc, Fields};
use super::fault::Fault;
use super::kind::Kind;
use super::query::Query;
use super::route::Parameters;
use super::service::Service;
use super::settings::Settings;
use super::state::State;

/// Request within its transaction.
pub(crate) struct Call<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) settings: &'a Settings,
    pub(crate) service: Service,
    /// Where the services are.
    pub(crate) base: &'a Base,
    /// Path after the service's segment, with a leading slash.
    pub(crate) path: &'a str,
    pub(crate) parameters: Parameters,
    pub(crate) query: Query,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) raw_body: Bytes,
    /// Decoded body; null if the request has none.
    pub(crate) body: Value,
    pub(crate) who: Who,
    /// Minor part of the negotiated microversion, for Nova, Cinder and Placement.
    pub(crate) version: u32,
    /// Microversion for the response headers; `None` until the service has negotiated one.
    pub(crate) answered: Option<String>,
}

/// Caller, from the token.
#[derive(Clone, Debug, Default)]
pub(crate) struct Who {
    pub(crate) user_id: String,
    pub(crate) project_id: String,
    pub(crate) roles: Vec<String>,
    /// True if the token is for the whole cloud.
    pub(crate) system: bool,
    /// Ids of the user's groups from an identity provider.
    pub(crate) groups: Vec<String>,
    /// True for a token from an application credential that may not create others.
    pub(crate) restricted: bool,
}

impl Who {
    /// True if the roles include `role`, also by implication (admin implies member, member implies reader).
    pub(crate) fn has(&self, role: &str) -> bool {
        self.roles.iter().any(|assigned| {
            assigned == role
                || assigned == "admin" && matches!(role, "member" | "reader")
                || assigned == "member" && role == "reader"
        })
    }

    /// True if the caller is an administrator of the cloud.
    pub(crate) fn admin(&self) -> bool {
        self.has("admin")
    }

    /// True if the caller may read resources of any user: an administrator, or a reader of the whole cloud.
    pub(crate) fn reads_all(&self) -> bool {
        self.admin() || self.system && self.has("reader")
    }
}

impl Call<'_> {
    /// Returns a path parameter.
    pub(crate) fn parameter(&self, name: &str) -> &str {
        self.parameters
            .iter()
            .find(|(key, _)| *key == name)
            .map_or("", |(_, value)| value)
    }

    /// Returns the time of this transaction.
    pub(crate) fn now(&self) -> Timestamp {
        self.state.now()
    }

    /// Returns the root URL of this service, without a slash at the end.
    pub(crate) fn root(&self) -> String {
        self.base.root(self.service)
    }

    /// Returns the object in the field `name` of the body, or the service's [`Fault`] without one.
    pub(crate) fn wrapped(&self, name: &str) -> Result<Doc, Fault> {
        match self.body.get(name) {
            Some(Value::Object(map)) => Ok(map.clone()),
            _ => Err(self.malformed(name)),
        }
    }

    /// Returns the [`Fault`] of each service for a body without the object `name`.
    pub(crate) fn malformed(&self, name: &str) -> Fault {
        match self.service {
            Service::Network => Fault::bad(format!("Unable to find '{name}' in request body")),
            Service::LoadBalancer => Fault::bad(format!("Missing argument: \"{name}\"")),
            Service::Compute | Service::Identity | Service::Volume => Fault::bad(format!(
                "Invalid input for field/attribute {name}. Value: {}. '{name}' is a required property",
                self.body
            )),
            _ => Fault::bad("Malformed request body"),
        }
    }

    /// Returns the [`Doc`] of a resource, if the caller may access the resource.
    pub(crate) fn accessible(&self, kind: Kind, key: &str) -> Option<std::sync::Arc<Doc>> {
        self.state.get(kind, key).filter(|doc| self.may_access(doc))
    }

    /// True if the caller is the owner of a resource or an administrator.
    pub(crate) fn may_access(&self, doc: &Doc) -> bool {
        self.who.admin() || doc.text("project_id") == self.who.project_id
    }

    /// True if a list contains the resources of all projects, by request of an administrator.
    pub(crate) fn everyone(&self) -> bool {
        self.who.admin()
            && self
                .query
                .get("all_tenants")
                .or_else(|| self.query.get("all_projects"))
                .is_some_and(|text| super::query::truth(text) != Some(false))
    }
}

/// Handler's answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Option<Value>,
    /// Body that is not JSON, with the content type.
    pub(crate) raw: Option<(&'static str, Bytes)>,
    pub(crate) headers: Vec<(&'static str, String)>,
}

impl Reply {
    /// Returns 200 with a body.
    pub(crate) fn ok(body: Value) -> Self {
        Self::with(200, body)
    }

    /// Returns any status with a body.
    pub(crate) fn with(status: u16, body: Value) -> Self {
        Self {
            status,
            body: Some(body),
            ..Self::default()
        }
    }

    /// Returns any status without a body.
    pub(crate) fn empty(status: u16) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    /// Returns any status without a body, but with a content type.
    pub(crate) fn empty_of(status: u16, kind: &'static str) -> Self {
        Self {
            status,
            raw: Some((kind, Bytes::new())),
            ..Self::default()
        }
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// Result of a handler.
pub(crate) type Answer = Result<Reply, Fault>;
