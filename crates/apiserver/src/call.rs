//! Request for objects, and its answer.

mod warnings;

use std::sync::Arc;

use apimachinery::kinds::{Resource, Version};
use apimachinery::patch::managed;
use apimachinery::schema::json_type;
use bytes::Bytes;
use http::{HeaderMap, header};
use serde_json::Value;

use crate::body::Body;
use crate::core::Core;
use crate::error::ApiError;
use crate::request::accept::Accept;
use crate::request::decode::{self, Decoded};
use crate::request::go_json;
use crate::request::query::Query;
use crate::services::Reservations;
use crate::user::UserInfo;

pub(crate) use warnings::Warnings;

/// Request for objects with a parsed path and a [`Resource`].
pub(crate) struct Call {
    pub(crate) core: Arc<Core>,
    pub(crate) user: UserInfo,
    pub(crate) resource: Arc<Resource>,
    /// Version in the URL.
    pub(crate) version: String,
    /// Empty for cluster-scoped resources and for requests across all namespaces.
    pub(crate) namespace: String,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    pub(crate) query: Query,
    pub(crate) accept: Accept,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Addresses and ports chosen for a Service that is not stored yet.
    pub(crate) reservations: Reservations,
}

/// Answer of a verb.
pub(crate) enum Answer {
    /// Object or list, serialised in the requested form.
    Bytes(u16, Bytes),
    /// Object or list as a value.
    Value(u16, Value),
    /// A watch.
    Stream(Body),
}

impl Call {
    pub(crate) fn group(&self) -> &str {
        &self.resource.group
    }

    /// [`Version`] in the URL; routing checks the existence.
    pub(crate) fn version(&self) -> &Version {
        self.resource
            .version(&self.version)
            .unwrap_or_else(|| self.resource.stored_version())
    }

    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    pub(crate) fn not_found(&self) -> ApiError {
        ApiError::not_found(self.group(), &self.resource.plural, self.name())
    }

    pub(crate) fn dry_run(&self, kind: &str) -> Result<bool, ApiError> {
        self.query.dry_run(kind)
    }

    /// `fieldManager`, or the name of the client's program.
    pub(crate) fn manager(&self) -> String {
        let agent = self
            .headers
            .get(header::USER_AGENT)
            .and_then(|value| value.to_str().ok());
        let default = managed::default_manager(agent.unwrap_or("unknown"));
        self.query.get("fieldManager").unwrap_or(default).to_owned()
    }

    pub(crate) fn content_type(&self) -> Option<&str> {
        self.headers
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
    }

    pub(crate) fn decode(&self) -> Result<Decoded, ApiError> {
        decode::decode(&self.body, self.content_type())
    }

    /// Decodes the object in the body of a create or an update into a [`Decoded`]. A body without an object is
    /// rejected with the messages of Go's decoders.
    pub(crate) fn decode_object(&self) -> Result<Decoded, ApiError> {
        let unrecognized = |why: &str| {
            ApiError::bad_request(format!(
                "the object provided is unrecognized (must be of type {}): {why} ({})",
                self.resource.kind,
                go_json::summary(&self.body)
            ))
        };
        let parse = "couldn't get version/kind; json parse error:";
        let json = self.content_type().is_none_or(|media| {
            let others = ["application/yaml", "application/vnd.kubernetes.protobuf"];
            !others.iter().any(|other| media.starts_with(other))
        });
        let mut decoded = self.decode().map_err(|error| match error.code {
            400 if json => unrecognized(&format!("{parse} {}", error.message)),
            400 => unrecognized(&error.message),
            _ => error,
        })?;
        if decoded.value.is_null() && !self.resource.is_custom() {
            decoded.value = Value::Object(serde_json::Map::new());
        }
        let kind = json_type(&decoded.value);
        match &decoded.value {
            Value::Object(fields) => {
                for field in ["apiVersion", "kind"] {
                    let wrong = fields
                        .get(field)
                        .filter(|value| !value.is_string() && !value.is_null());
                    if let Some(wrong) = wrong {
                        return Err(unrecognized(&format!(
                            "{parse} json: cannot unmarshal {} into Go struct field .{field} of type string",
                            json_type(wrong)
                        )));
                    }
                }
            }
            Value::Null => {}
            _ => {
                return Err(unrecognized(&format!(
                    "{parse} json: cannot unmarshal {kind} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
                )));
            }
        }
        if self.resource.is_custom() && decoded.value["kind"].as_str().is_none_or(str::is_empty) {
            let body = String::from_utf8_lossy(&self.body);
            return Err(unrecognized(&format!(
                "Object 'Kind' is missing in '{body}'"
            )));
        }
        Ok(decoded)
    }
}
