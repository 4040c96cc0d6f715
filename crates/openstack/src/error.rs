//! What can go wrong between us and a cloud, by what a caller can do about it.

mod shape;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method, StatusCode};

use crate::service::Service;

pub(crate) use shape::retry_after;

/// What a caller can do about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The object is not there (404, 410).
    Absent,
    /// The object is there but cannot be changed now: immutable, in a PENDING state or still in
    /// use (409, 412). The same request succeeds later.
    Busy,
    /// Another object stands in the way: a duplicate name, an address that is taken (409).
    Conflict,
    /// The project's quota is used up (403, 409 or 413, depending on the service).
    Quota,
    /// The credential may not do this (403).
    Denied,
    /// The cloud does not accept the credential (401 after a fresh token, or a refused login).
    Unauthenticated,
    /// The request is wrong, or the cloud lacks the feature; repeating it is pointless.
    Invalid,
    /// The cloud is overloaded or broken at the moment (429, 5xx).
    Transient {
        /// How long the cloud asked us to wait, when it did.
        retry_after: Option<Duration>,
    },
    /// No answer: connection refused, name not resolved, TLS not trusted, time-out.
    Unreachable,
    /// An answer that does not follow the API.
    Protocol,
}

/// A failed call, with all that is needed to explain it to a person.
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
}

impl Error {
    /// An error that no request led to, for example a bad setting.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Arc::new(Detail {
            kind,
            service: None,
            method: None,
            path: String::new(),
            status: None,
            message: message.into(),
            request_id: None,
        }))
    }

    /// The error that a response with a status of 300 or more stands for.
    pub fn from_response(
        service: Service,
        method: &Method,
        path: &str,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Self {
        let fault = shape::fault(status, headers, body);
        let kind = shape::kind(status, headers, &fault);
        Self(Arc::new(Detail {
            kind,
            service: Some(service),
            method: Some(method.clone()),
            path: path.to_owned(),
            status: Some(status),
            message: fault.message,
            request_id: shape::request_id(headers),
        }))
    }

    pub(crate) fn at(self, service: Service, method: &Method, path: &str) -> Self {
        let mut detail = Arc::unwrap_or_clone(self.0);
        detail.service = Some(service);
        detail.method = Some(method.clone());
        detail.path = path.to_owned();
        Self(Arc::new(detail))
    }

    /// Puts an explanation before the cloud's own words.
    pub(crate) fn explain(self, what: &str) -> Self {
        let mut detail = Arc::unwrap_or_clone(self.0);
        detail.message = format!("{what} ({})", detail.message);
        Self(Arc::new(detail))
    }

    /// What can be done about it.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The service that was asked, if a request was made.
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

    /// The cloud's own words.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The request id to quote to the cloud's operator.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// Whether the object is not there.
    pub fn is_absent(&self) -> bool {
        self.0.kind == ErrorKind::Absent
    }

    /// Whether the same request can succeed later without anyone changing anything.
    pub fn is_temporary(&self) -> bool {
        matches!(
            self.0.kind,
            ErrorKind::Busy | ErrorKind::Transient { .. } | ErrorKind::Unreachable
        )
    }

    /// How long the cloud asked us to wait, when it did.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.0.kind {
            ErrorKind::Transient { retry_after } => retry_after,
            _ => None,
        }
    }
}

impl Error {
    /// The error without the id of its request: the same words whenever the same thing happens, for conditions,
    /// where a new id each time would look like news.
    pub fn words(&self) -> impl fmt::Display + '_ {
        Words(self)
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
