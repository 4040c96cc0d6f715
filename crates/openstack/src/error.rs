//! Errors of requests to a cloud, classified by the possible reaction of a caller.

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

/// Class of an [`Error`], by the possible reaction of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The object of the request does not exist, according to the service (404, 410). Such a status on a foreign page,
    /// or in a refused login, is of another class.
    Absent,
    /// The object exists but cannot be changed now: immutable, in a PENDING state or in use (409, 412). The same
    /// request succeeds later.
    Busy,
    /// Another object conflicts: a duplicate name, an allocated address (409).
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
        /// Wait that the cloud requests, if any.
        retry_after: Option<Duration>,
    },
    /// No answer: connection refused, name not resolved, certificate not trusted, timeout.
    Unreachable,
    /// Answer that violates the API.
    Protocol,
}

/// Failed call, with everything that explains the failure to a user. The texts are cut, on one line, and without
/// characters that a terminal interprets.
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

/// Maximum length of a message, in characters. Longer messages are lists and stack traces.
const LONGEST_MESSAGE: usize = 1_000;
/// Maximum length of a path, in characters. A catalog may name any path.
const LONGEST_PATH: usize = 300;

/// Request with an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) service: Service,
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    /// Host and port of the server.
    pub(crate) host: &'a str,
}

impl Error {
    /// Creates an error without a request, for example of an invalid setting.
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

    /// Creates the error for a response with a status of 300 or more. Only a body with a fault of OpenStack is quoted:
    /// the writer of a clouds.yaml or a catalog may name any server, and must not read its pages through an error.
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

    /// Turns the error into one of a login: about the credential, never about an object.
    pub(crate) fn of_login(self) -> Self {
        let mut detail = Arc::unwrap_or_clone(self.0);
        detail.is_login = true;
        if detail.kind == ErrorKind::Absent {
            detail.kind = ErrorKind::Unauthenticated;
        }
        Self(Arc::new(detail))
    }

    /// Returns the class of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the service of the request, if there was one.
    pub fn service(&self) -> Option<Service> {
        self.0.service
    }

    /// Returns the HTTP method of the request, if there was one.
    pub fn method(&self) -> Option<&Method> {
        self.0.method.as_ref()
    }

    /// Returns the path of the request's URL; empty without a request.
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// Returns the HTTP status, if there was a response.
    pub fn status(&self) -> Option<StatusCode> {
        self.0.status
    }

    /// Returns the cloud's message.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the id of the request, for the cloud's operator to search in logs.
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

    /// Returns the wait that the cloud requests, if any.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.0.kind {
            ErrorKind::Transient { retry_after } => retry_after,
            _ => None,
        }
    }
}

impl Error {
    /// Formats the error without the request id: equal for equal failures. For conditions, which should not change with
    /// each request.
    pub fn words(&self) -> impl fmt::Display + '_ {
        Words(self)
    }
}

impl Error {
    /// Formats the cloud's message first, then the failed request: for users, who read the start of a message.
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

/// Result of a call to a cloud.
pub type Result<T, E = Error> = std::result::Result<T, E>;
