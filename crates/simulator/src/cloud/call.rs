//! One request as its handler sees it, and the handler's answer.

use bytes::Bytes;
use http::HeaderMap;
use jiff::Timestamp;
use serde_json::Value;

use super::document::{Doc, Fields};
use super::fault::Fault;
use super::kind::Kind;
use super::query::Query;
use super::route::Parameters;
use super::service::Service;
use super::settings::Settings;
use super::state::State;

/// A request in the middle of its transaction.
pub(crate) struct Call<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) settings: &'a Settings,
    pub(crate) service: Service,
    /// The base URL of the whole cloud, without a slash at the end.
    pub(crate) base: &'a str,
    /// The path after the service's segment, with a leading slash.
    pub(crate) path: &'a str,
    pub(crate) parameters: Parameters,
    pub(crate) query: Query,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) raw_body: Bytes,
    /// The decoded body; null if the request has none.
    pub(crate) body: Value,
    pub(crate) who: Who,
    /// The minor part of the negotiated microversion, for Nova, Cinder and Placement.
    pub(crate) version: u32,
    /// The microversion in the response headers; `None` until the service has negotiated it.
    pub(crate) answered: Option<String>,
}

/// The caller: what the token says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Who {
    pub(crate) user_id: String,
    pub(crate) project_id: String,
    pub(crate) roles: Vec<String>,
    /// Whether the token comes from an application credential that may not make others.
    pub(crate) restricted: bool,
}

impl Who {
    /// Whether the roles, with what they imply (admin, then member, then reader), contain this one.
    pub(crate) fn has(&self, role: &str) -> bool {
        self.roles.iter().any(|own| {
            own == role
                || own == "admin" && matches!(role, "member" | "reader")
                || own == "member" && role == "reader"
        })
    }

    /// Whether this is an administrator of the cloud.
    pub(crate) fn admin(&self) -> bool {
        self.has("admin")
    }
}

impl Call<'_> {
    /// A path parameter.
    pub(crate) fn parameter(&self, name: &str) -> &str {
        self.parameters
            .iter()
            .find(|(own, _)| *own == name)
            .map_or("", |(_, value)| value)
    }

    /// The time of this transaction.
    pub(crate) fn now(&self) -> Timestamp {
        self.state.now()
    }

    /// The URL of this service's root, without a slash at the end.
    pub(crate) fn root(&self) -> String {
        format!("{}/{}", self.base, self.service.segment())
    }

    /// The object under `name` in the body.
    pub(crate) fn wrapped(&self, name: &str) -> Result<Doc, Fault> {
        match self.body.get(name) {
            Some(Value::Object(map)) => Ok(map.clone()),
            _ => Err(self.malformed(name)),
        }
    }

    /// The message of each service when the body lacks its one object.
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

    /// A resource that the caller may see: in its own project, or as an administrator.
    pub(crate) fn own(&self, kind: Kind, key: &str) -> Option<std::sync::Arc<Doc>> {
        self.state.get(kind, key).filter(|doc| self.owns(doc))
    }

    /// Whether the resource is the caller's, or the caller an administrator.
    pub(crate) fn owns(&self, doc: &Doc) -> bool {
        self.who.admin() || doc.text("project_id") == self.who.project_id
    }

    /// The project whose resources are listed; `None`, all of them, for an administrator who asks for that.
    pub(crate) fn everyone(&self) -> bool {
        self.who.admin()
            && self
                .query
                .get("all_tenants")
                .or_else(|| self.query.get("all_projects"))
                .is_some_and(|text| super::query::truth(text) != Some(false))
    }
}

/// A handler's answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Option<Value>,
    /// A body that is not JSON, with its content type.
    pub(crate) raw: Option<(&'static str, Bytes)>,
    pub(crate) headers: Vec<(&'static str, String)>,
}

impl Reply {
    /// 200 with a body.
    pub(crate) fn ok(body: Value) -> Self {
        Self::with(200, body)
    }

    /// Any status with a body.
    pub(crate) fn with(status: u16, body: Value) -> Self {
        Self {
            status,
            body: Some(body),
            ..Self::default()
        }
    }

    /// Any status without a body.
    pub(crate) fn empty(status: u16) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    /// Any status without a body, of a content type nevertheless.
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

/// What a handler returns.
pub(crate) type Answer = Result<Reply, Fault>;
