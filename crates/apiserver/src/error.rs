//! Errors as `meta/v1 Status`, with the reasons, codes and messages of kube-apiserver.
//!
//! Source of the messages: `k8s.io/apimachinery/pkg/api/errors` and the REST handlers of `k8s.io/apiserver`.

use std::collections::HashSet;

use apimachinery::patch::PatchError;
use apimachinery::schema;
use serde_json::{Value, json};

/// Error in the answer to a request.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ApiError {
    pub(crate) code: u16,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) details: Option<Box<Value>>,
    /// Continue token of an expired list.
    pub(crate) continue_with: Option<String>,
    /// Complete `Status`, returned unchanged.
    pub(crate) whole: Option<Box<Value>>,
}

impl From<schema::Overflow> for ApiError {
    fn from(overflow: schema::Overflow) -> Self {
        Self::new(500, "", overflow.to_string())
    }
}

impl ApiError {
    pub(crate) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            continue_with: None,
            whole: None,
        }
    }

    /// `Status` of a webhook, returned unchanged.
    pub(crate) fn whole(code: u16, status: Value) -> Self {
        let message = status["message"].as_str().unwrap_or_default().to_owned();
        Self {
            whole: Some(Box::new(status)),
            ..Self::new(code, "", message)
        }
    }

    fn with(mut self, details: Value) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// 404 for an object. `plural` and `group` as in the URL.
    pub(crate) fn not_found(group: &str, plural: &str, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", qualified(plural, group));
        Self::new(404, "NotFound", message).with(details(group, plural, name))
    }

    /// 404 for an unknown resource of a served group.
    pub(crate) fn unknown_resource() -> Self {
        Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        )
        .with(json!({}))
    }

    /// 409 for an existing name.
    pub(crate) fn already_exists(group: &str, plural: &str, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", qualified(plural, group));
        Self::new(409, "AlreadyExists", message).with(details(group, plural, name))
    }

    /// 409 for an object in another state than the request expects.
    pub(crate) fn conflict(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": {why}",
            qualified(plural, group)
        );
        Self::new(409, "Conflict", message).with(details(group, plural, name))
    }

    /// 409 for an outdated `resourceVersion`.
    pub(crate) fn modified(group: &str, plural: &str, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(group, plural, name, why)
    }

    /// 422 with one cause for each error. `kind` is the kind, not the plural.
    pub(crate) fn invalid(
        group: &str,
        kind: &str,
        name: &str,
        errors: &[schema::FieldError],
    ) -> Self {
        let texts: Vec<String> = unique(errors.iter().map(ToString::to_string));
        let joined = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{} \"{name}\" is invalid: {joined}", qualified(kind, group));
        let causes: Vec<Value> = errors
            .iter()
            .map(|e| json!({"reason": e.reason.as_str(), "message": e.message, "field": e.field()}))
            .collect();
        let mut fields = details(group, kind, name);
        fields["causes"] = Value::Array(causes);
        Self::new(422, "Invalid", message).with(fields)
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 403 for a named object, as from admission.
    pub(crate) fn forbidden(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let what = qualified(plural, group);
        let message = if name.is_empty() {
            format!("{what} is forbidden: {why}")
        } else {
            format!("{what} \"{name}\" is forbidden: {why}")
        };
        Self::new(403, "Forbidden", message).with(details(group, plural, name))
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message).with(json!({}))
    }

    pub(crate) fn not_acceptable(accepted: &str) -> Self {
        let message = format!("only the following media types are accepted: {accepted}");
        Self::new(406, "NotAcceptable", message)
    }

    /// 406 as from the router of kube-apiserver, before the object is looked up.
    pub(crate) fn no_representation(available: &str) -> Self {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {available}");
        Self::new(406, "NotAcceptable", message).with(json!({}))
    }

    pub(crate) fn unsupported_media_type(accepted: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {accepted}"
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    pub(crate) fn too_large() -> Self {
        let message = "Request entity too large: limit is 3145728";
        Self::new(413, "RequestEntityTooLarge", message)
    }

    /// 410 for a revision with compacted history.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub(crate) fn internal(message: impl std::fmt::Display) -> Self {
        Self::new(
            500,
            "InternalError",
            format!("Internal error occurred: {message}"),
        )
        .with(json!({"causes": [{"message": message.to_string()}]}))
    }

    /// 429 with `retryAfterSeconds`, as from eviction.
    pub(crate) fn too_many_requests(message: &str, cause: Value) -> Self {
        Self::new(429, "TooManyRequests", message).with(json!({"causes": [cause]}))
    }

    /// `Status` object of the error.
    pub(crate) fn status(&self) -> Value {
        if let Some(whole) = &self.whole {
            return (**whole).clone();
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = Value::from(self.reason);
        }
        if let Some(details) = &self.details {
            status["details"] = (**details).clone();
        }
        if let Some(token) = &self.continue_with {
            status["metadata"]["continue"] = Value::from(token.as_str());
        }
        status
    }
}

impl From<PatchError> for ApiError {
    fn from(error: PatchError) -> Self {
        let causes = error.causes();
        // kube-apiserver does not return the details to clients (`NewGenericServerResponse`).
        if let PatchError::Unprocessable { message } = &error {
            tracing::debug!(message, "a patch does not fit its object");
            let message = "the server rejected our request due to an error in our request";
            return Self::new(error.code(), error.reason(), message).with(json!({}));
        }
        let status = Self::new(error.code(), error.reason(), error.to_string());
        if causes.is_empty() {
            status
        } else {
            status.with(json!({"causes": causes}))
        }
    }
}

/// `pods`, or `openstackclusters.infrastructure.cluster.x-k8s.io`.
pub(crate) fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() {
        name.to_owned()
    } else {
        format!("{name}.{group}")
    }
}

fn details(group: &str, kind: &str, name: &str) -> Value {
    let mut details = json!({});
    if !kind.is_empty() {
        details["kind"] = Value::from(kind);
    }
    if !name.is_empty() {
        details["name"] = Value::from(name);
    }
    if !group.is_empty() {
        details["group"] = Value::from(group);
    }
    details
}

fn unique(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = HashSet::new();
    texts.filter(|text| seen.insert(text.clone())).collect()
}
