//! Request, as described by the service modules.

use std::time::Duration;

use http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::{Error, ErrorKind};
use crate::service::Service;
use crate::transport::Limits;

/// Everything but unreserved characters (RFC 3986, section 2.3).
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Class of a request, which determines the timeout and the size of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Reads of one object.
    Read,
    /// Lists, which grow with the project.
    List,
    /// Writes; Neutron's bulk creates are the slowest.
    Write,
}

/// Timeouts of the classes of requests.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// Reads of one object, and authentication.
    pub read: Duration,
    /// One page of a list.
    pub list: Duration,
    /// Writes.
    pub write: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            read: Duration::from_secs(30),
            list: Duration::from_secs(60),
            write: Duration::from_secs(90),
        }
    }
}

impl Timeouts {
    pub(crate) fn limits(&self, class: Class) -> Limits {
        match class {
            Class::Read => Limits::object(self.read),
            Class::List => Limits::page(self.list),
            Class::Write => Limits::object(self.write),
        }
    }
}

/// Request without endpoint and token.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) service: Service,
    pub(crate) method: Method,
    pub(crate) route: &'static str,
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) body: Option<Value>,
    pub(crate) microversion: Option<&'static str>,
    pub(crate) class: Class,
    /// Required revision of a Neutron resource: at any other revision, the change fails.
    pub(crate) revision: Option<i64>,
    /// True to request the service's version list instead of its API.
    pub(crate) root: bool,
    pub(crate) error: Option<Error>,
}

impl Call {
    pub(crate) fn get(service: Service, route: &'static str, ids: &[&str]) -> Self {
        Self::new(Method::GET, service, route, ids, Class::Read)
    }

    pub(crate) fn list(service: Service, route: &'static str, ids: &[&str]) -> Self {
        Self::new(Method::GET, service, route, ids, Class::List)
    }

    pub(crate) fn post(service: Service, route: &'static str, ids: &[&str]) -> Self {
        Self::new(Method::POST, service, route, ids, Class::Write)
    }

    pub(crate) fn put(service: Service, route: &'static str, ids: &[&str]) -> Self {
        Self::new(Method::PUT, service, route, ids, Class::Write)
    }

    pub(crate) fn delete(service: Service, route: &'static str, ids: &[&str]) -> Self {
        Self::new(Method::DELETE, service, route, ids, Class::Write)
    }

    /// Replaces the placeholders of `route` by `ids` in order, escaped. An empty id, or an id of dots only, is an
    /// error: it would address another resource (`DELETE /ports/`).
    fn new(
        method: Method,
        service: Service,
        route: &'static str,
        ids: &[&str],
        class: Class,
    ) -> Self {
        let mut path = String::new();
        let mut error = None;
        let mut ids = ids.iter();
        for segment in route.split('/').skip(1) {
            path.push('/');
            if !segment.starts_with('{') {
                path.push_str(segment);
                continue;
            }
            let id = ids.next().copied().unwrap_or_default();
            if id.chars().all(|letter| letter == '.') {
                error = Some(
                    Error::new(ErrorKind::Invalid, format!("`{id}` is not an id"))
                        .at(service, &method, route),
                );
            }
            path.extend(utf8_percent_encode(id, SEGMENT));
        }
        Self {
            service,
            method,
            route,
            path,
            query: Vec::new(),
            body: None,
            microversion: None,
            class,
            revision: None,
            root: false,
            error,
        }
    }

    pub(crate) fn at_root(mut self) -> Self {
        self.root = true;
        self
    }

    pub(crate) fn query(mut self, key: &str, value: impl Into<String>) -> Self {
        self.query.push((key.to_owned(), value.into()));
        self
    }

    pub(crate) fn query_if(self, key: &str, value: Option<impl Into<String>>) -> Self {
        match value {
            Some(value) => self.query(key, value),
            None => self,
        }
    }

    pub(crate) fn fields(mut self, fields: &[&str]) -> Self {
        self.query.extend(
            fields
                .iter()
                .map(|field| ("fields".to_owned(), (*field).to_owned())),
        );
        self
    }

    pub(crate) fn microversion(mut self, version: &'static str) -> Self {
        self.microversion = Some(version);
        self
    }

    /// Sets the body `{key: value}`.
    pub(crate) fn body(self, key: &str, value: &impl Serialize) -> Self {
        self.raw_body(value, |value| {
            let mut map = Map::new();
            map.insert(key.to_owned(), value);
            Value::Object(map)
        })
    }

    /// Sets the body to `value`.
    pub(crate) fn whole_body(self, value: &impl Serialize) -> Self {
        self.raw_body(value, |value| value)
    }

    fn raw_body(mut self, value: &impl Serialize, wrap: impl FnOnce(Value) -> Value) -> Self {
        match serde_json::to_value(value) {
            Ok(value) => self.body = Some(wrap(value)),
            Err(error) => {
                self.error = Some(
                    Error::new(
                        ErrorKind::Invalid,
                        format!("body cannot be written: {error}"),
                    )
                    .at(self.service, &self.method, self.route),
                );
            }
        }
        self
    }

    /// Returns the URL of the call at an endpoint.
    pub(crate) fn url(&self, endpoint: &str) -> String {
        let mut url = String::from(endpoint.trim_end_matches('/'));
        url.push_str(&self.path);
        let mut separator = '?';
        for (key, value) in &self.query {
            url.push(separator);
            separator = '&';
            url.extend(utf8_percent_encode(key, SEGMENT));
            url.push('=');
            url.extend(utf8_percent_encode(value, SEGMENT));
        }
        url
    }
}
