//! Errors of requests to a cloud, classified by what a caller can do about them.

mod printable;
mod shape;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};

use crate::service::Service;

pub(crate) use shape::retry_after;

/// The class of an [`Error`], by what a caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The object of the request does not exist: the service says so (404, 410). A page of somebody else with such a
    /// status, and a login that Keystone refuses with it, are not this.
    Absent,
    /// The object exists but cannot be changed now: it is immutable, in a PENDING state or in use (409, 412). The same
    /// request succeeds later.
    Busy,
    /// Another object conflicts: a duplicate name, an address that is allocated (409).
    Conflict,
    /// The project's quota is used up (403, 409 or 413, depending on the service).
    Quota,
    /// The credential does not permit the request (403).
    Denied,
    /// The cloud rejects the credential (401 with a fresh token, or a failed login).
    Unauthenticated,
    /// The request is invalid, or the cloud lacks the feature; repeating it is pointless.
    Invalid,
    /// The cloud is overloaded or failing temporarily (429, 5xx).
    Transient {
        /// The wait that the cloud requests, if any.
        retry_after: Option<Duration>,
    },
    /// No answer: connection refused, name not resolved, certificate not trusted, timeout.
    Unreachable,
    /// An answer that violates the API.
    Protocol,
}

/// A failed call, with everything that explains it to a user. Its texts are cut, on one line, and have no characters that
/// a terminal interprets, wherever they come from.
#[derive(Clone)]
pub struct Error(Arc<Detail>);

#[derive(Clone)]
struct Detail {
    kind: ErrorKind,
    service: Option<Service>,
    method: Option<Method>,
    path: String,
    status: Option<StatusCode>,
    message: String,
    request_id: Option<String>,
    is_login: bool,
}

/// The longest message, in characters. Longer ones are lists and stack traces.
const LONGEST_MESSAGE: usize = 1_000;
/// The longest path. A catalog may name any.
const LONGEST_PATH: usize = 300;

/// A request that was answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) service: Service,
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    /// Host and port of the server.
    pub(crate) host: &'a str,
}

impl Error {
    /// An error without a request, for example of an invalid setting.
    pub fn new(kind: ErrorKind, message: impl AsRef<str>) -> Self {
        Self(Arc::new(Detail {
            kind,
            service: None,
            method: None,
            path: String::new(),
            status: None,
            message: printable::line(message.as_ref(), LONGEST_MESSAGE),
            request_id: None,
            is_login: false,
        }))
    }

    /// The error for a response with a status of 300 or more. A body that is no fault of OpenStack is not in it: whoever
    /// writes a clouds.yaml or a catalog names any server, and must not read its pages by this.
    pub(crate) fn from_response(asked: &Asked<'_>, response: &http::Response<Bytes>) -> Self {
        let (status, headers) = (response.status(), response.headers());
        let fault = shape::fault(response.body());
        let kind = shape::kind(status, headers, fault.as_ref());
        let message = fault.map_or_else(
            || {
                format!(
                    "{} answers {status}, without an error of OpenStack",
                    asked.host
                )
            },
            |fault| fault.message,
        );
        let mut detail = Arc::unwrap_or_clone(Self::new(kind, message).0);
        detail.status = Some(status);
        detail.request_id = shape::request_id(headers);
        Self(Arc::new(detail)).at(asked.service, asked.method, asked.path)
    }

    pub(crate) fn at(self, service: Service, method: &Method, path: &str) -> Self {
        let mut detail = Arc::unwrap_or_clone(self.0);
        detail.service = Some(service);
        detail.method = Some(method.clone());
        detail.path = printable::line(path, LONGEST_PATH);
        Self(Arc::new(detail))
    }

    /// Prepends an explanation to the cloud's message.
    pub(crate) fn explain(self, what: &str) -> Self {
        let mut detail = Arc::unwrap_or_clone(self.0);
        let message = format!("{what} ({})", detail.message);
        detail.message = printable::line(&message, LONGEST_MESSAGE);
        Self(Arc::new(detail))
    }

    /// The error of a login: about the credential, and never about the object for whose sake it was.
    pub(crate) fn of_login(self) -> Self {
        let mut detail = Arc::unwrap_or_clone(self.0);
        detail.is_login = true;
        if detail.kind == ErrorKind::Absent {
            detail.kind = ErrorKind::Unauthenticated;
        }
        Self(Arc::new(detail))
    }

    /// The class of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The service of the request, if one was made.
    pub fn service(&self) -> Option<Service> {
        self.0.service
    }

    /// The HTTP method of the request, if one was made.
    pub fn method(&self) -> Option<&Method> {
        self.0.method.as_ref()
    }

    /// The path of the request's URL; empty if none was made.
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// The HTTP status, if there was a response.
    pub fn status(&self) -> Option<StatusCode> {
        self.0.status
    }

    /// The cloud's message.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The id of the request, by which the cloud's operator finds it in logs.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// True if the login failed, whatever the request was.
    pub fn is_login(&self) -> bool {
        self.0.is_login
    }

    /// True if the object does not exist.
    pub fn is_absent(&self) -> bool {
        self.0.kind == ErrorKind::Absent
    }

    /// True if the same request can succeed later without a change by anyone.
    pub fn is_temporary(&self) -> bool {
        matches!(
            self.0.kind,
            ErrorKind::Busy | ErrorKind::Transient { .. } | ErrorKind::Unreachable
        )
    }

    /// The wait that the cloud requests, if any.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.0.kind {
            ErrorKind::Transient { retry_after } => retry_after,
            _ => None,
        }
    }
}

impl Error {
    /// The error without the id of its request: equal for equal failures, for conditions, which should not change with
    /// each request.
    pub fn words(&self) -> impl fmt::Display + '_ {
        Words(self)
    }
}

impl Error {
    /// The cloud's message first, then what failed: for users, who read the start of a message.
    /// `Quota exceeded for resources: ['port'] (create the port: network POST /v2.0/ports: 409)`
    pub fn cause(&self, doing: &str) -> String {
        let inner = &self.0;
        let mut failed = doing.to_owned();
        if let (Some(service), Some(method)) = (inner.service, &inner.method) {
            failed.push_str(&format!(": {service} {method} {}", inner.path));
        }
        if let Some(status) = inner.status {
            failed.push_str(&format!(": {}", status.as_u16()));
        }
        let message = match inner.message.trim().trim_end_matches('.') {
            "" => "no reason is given",
            message => message,
        };
        format!("{message} ({failed})")
    }
}

struct Words<'a>(&'a Error);

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &self.0.0;
        if let (Some(service), Some(method)) = (inner.service, &inner.method) {
            write!(f, "{service} {method} {}: ", inner.path)?;
        }
        if let Some(status) = inner.status {
            write!(f, "{} ", status.as_u16())?;
        }
        f.write_str(&inner.message)
    }
}

impl fmt::Display for Error {
    /// `network POST /v2.0/ports: 409 Quota exceeded for resources: ['port'] (request req-1)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.words())?;
        if let Some(id) = &self.0.request_id {
            write!(f, " (request {id})")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({self})", self.0.kind)
    }
}

impl std::error::Error for Error {}

/// The result of a call to a cloud.
pub type Result<T, E = Error> = std::result::Result<T, E>;
