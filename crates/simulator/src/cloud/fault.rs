//! Errors, with the messages and the JSON form of each service.

use http::StatusCode;
use serde_json::{Value, json};

use super::service::Service;

/// Why a request is rejected.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    /// HTTP status.
    pub(crate) status: u16,
    /// Neutron's error type, such as `NetworkInUse`. Other services have none.
    pub(crate) kind: &'static str,
    /// Message of the service.
    pub(crate) message: String,
    /// Seconds for the `Retry-After` header.
    pub(crate) retry_after: Option<u64>,
}

impl Fault {
    /// Creates an error with any status.
    pub(crate) fn new(status: u16, kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            kind,
            message: message.into(),
            retry_after: None,
        }
    }

    /// Returns a 400: the request is invalid.
    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(400, "HTTPBadRequest", message)
    }

    /// Returns a 404: the resource does not exist.
    pub(crate) fn missing(message: impl Into<String>) -> Self {
        Self::new(404, "HTTPNotFound", message)
    }

    /// Returns a 409: the state of the resource does not allow the request.
    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(409, "Conflict", message)
    }

    /// Returns a 403: the caller's roles do not allow the request.
    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(403, "PolicyNotAuthorized", message)
    }

    /// Returns a 401: the token is missing or invalid.
    pub(crate) fn unauthenticated() -> Self {
        Self::new(
            401,
            "Unauthorized",
            "The request you have made requires authentication.",
        )
    }

    /// Returns content type and body.
    pub(crate) fn render(
        &self,
        service: Service,
        request_id: &str,
        json: bool,
    ) -> (&'static str, Vec<u8>) {
        const JSON: &str = "application/json";
        // keystonemiddleware validates tokens in front of each service and answers in Keystone's form.
        if self.status == 401 && !matches!(service, Service::Control | Service::Image) {
            return (JSON, to_bytes(&self.keystone()));
        }
        match service {
            Service::Identity => (JSON, to_bytes(&self.keystone())),
            Service::Compute | Service::Volume => (JSON, to_bytes(&self.nova())),
            Service::Network => (
                JSON,
                to_bytes(&json!({"NeutronError": {
                    "type": self.kind, "message": self.message, "detail": ""}})),
            ),
            Service::LoadBalancer => {
                let code = if self.status >= 500 {
                    "Server"
                } else {
                    "Client"
                };
                let body =
                    json!({"faultcode": code, "faultstring": self.message, "debuginfo": null});
                (JSON, to_bytes(&body))
            }
            Service::Image if json => (
                JSON,
                to_bytes(&webob(self.status, self.title(), &self.message)),
            ),
            Service::Image => ("text/html; charset=UTF-8", self.glance().into_bytes()),
            Service::Placement => (
                JSON,
                to_bytes(
                    &json!({"errors": [{"status": self.status, "title": self.title(),
                    "detail": format!("{}\n\n   ", self.message), "request_id": request_id}]}),
                ),
            ),
            Service::Secrets => (
                JSON,
                to_bytes(&json!({"code": self.status, "title": self.title(),
                    "description": self.message})),
            ),
            Service::Control => (JSON, to_bytes(&json!({"error": self.message}))),
        }
    }

    fn title(&self) -> &'static str {
        StatusCode::from_u16(self.status)
            .ok()
            .and_then(|status| status.canonical_reason())
            .unwrap_or("Error")
    }

    fn keystone(&self) -> Value {
        json!({"error": {"code": self.status, "message": self.message, "title": self.title()}})
    }

    /// Also Cinder's form. The keys are `nova.api.openstack.wsgi.Fault._fault_names`.
    fn nova(&self) -> Value {
        let key = match self.status {
            400 => "badRequest",
            401 => "unauthorized",
            403 => "forbidden",
            404 => "itemNotFound",
            405 => "badMethod",
            409 => "conflictingRequest",
            413 | 429 => "overLimit",
            415 => "badMediaType",
            501 => "notImplemented",
            503 => "serviceUnavailable",
            _ => "computeFault",
        };
        let mut body = json!({"code": self.status, "message": self.message});
        if self.status == 413 || self.status == 429 {
            body["retryAfter"] = json!(self.retry_after.unwrap_or(0).to_string());
        }
        json!({key: body})
    }

    /// Glance answers with webob's HTML page.
    fn glance(&self) -> String {
        let heading = format!("{} {}", self.status, self.title());
        let message = self
            .message
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;");
        format!(
            "<html>\n <head>\n  <title>{heading}</title>\n </head>\n <body>\n  \
             <h1>{heading}</h1>\n  {message}<br /><br />\n\n\n\n </body>\n</html>"
        )
    }
}

/// Returns an error page of webob in the form for clients that accept JSON.
pub(crate) fn webob(status: u16, title: &str, message: &str) -> Value {
    let message = if message.is_empty() {
        "The resource could not be found."
    } else {
        message
    };
    json!({"message": format!("{message}<br /><br />\n\n\n"), "code": format!("{status} {title}"), "title": title})
}

fn to_bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}
