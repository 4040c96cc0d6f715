//! Routes: method, path pattern, required role and handler.

use std::collections::HashMap;

use http::Method;

use super::call::{Answer, Call};
use super::service::Service;

/// Credential needed to call a route. The handler checks the permissions of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    /// Anyone, without a token.
    Open,
    /// Any valid token, regardless of roles and scope.
    Token,
    /// At least reader of a project.
    Reader,
    /// At least member of a project.
    Member,
    /// Administrators.
    Admin,
}

/// Values of the `{name}` segments.
pub(crate) type Parameters = Vec<(&'static str, String)>;

type Handler = Box<dyn Fn(&mut Call<'_>) -> Answer + Send + Sync>;

/// One operation of one service.
pub(crate) struct Route {
    pub(crate) service: Service,
    pub(crate) method: Method,
    /// Path segments after the service's; `{name}` stands for any one segment.
    pub(crate) pattern: &'static str,
    pub(crate) access: Access,
    pub(crate) handler: Handler,
}

/// All operations, found by service and number of path segments.
#[derive(Default)]
pub(crate) struct Routes {
    routes: Vec<Route>,
    by_length: HashMap<(Service, usize), Vec<usize>>,
}

/// Operation of a path.
pub(crate) enum Found<'a> {
    Route(&'a Route, Parameters),
    /// The path exists, with other methods.
    OtherMethod,
    Nothing,
}

/// Routes of one service during their registration.
pub(crate) struct Table<'a> {
    routes: &'a mut Routes,
    service: Service,
}

impl Routes {
    /// Starts the table of a service.
    pub(crate) fn of(&mut self, service: Service) -> Table<'_> {
        Table {
            routes: self,
            service,
        }
    }

    /// Finds the operation. A literal segment takes precedence over a parameter.
    pub(crate) fn find(&self, service: Service, method: &Method, path: &str) -> Found<'_> {
        let segments: Vec<&str> = path
            .split('/')
            .filter(|segment| !segment.is_empty())
            .collect();
        let mut best: Option<(&Route, Parameters)> = None;
        let mut other_method = false;
        for index in self
            .by_length
            .get(&(service, segments.len()))
            .into_iter()
            .flatten()
        {
            let route = &self.routes[*index];
            let Some(parameters) = matching(route.pattern, &segments) else {
                continue;
            };
            if route.method != *method {
                other_method = true;
            } else if best
                .as_ref()
                .is_none_or(|(_, best)| parameters.len() < best.len())
            {
                best = Some((route, parameters));
            }
        }
        match best {
            Some((route, parameters)) => Found::Route(route, parameters),
            None if other_method => Found::OtherMethod,
            None => Found::Nothing,
        }
    }

    /// Returns service, method and pattern of each operation.
    pub(crate) fn names(&self) -> Vec<(String, String, String)> {
        let name = |route: &Route| {
            let (service, method) = (route.service.segment(), route.method.as_str());
            (
                service.to_owned(),
                method.to_owned(),
                route.pattern.to_owned(),
            )
        };
        self.routes.iter().map(name).collect()
    }

    fn add(&mut self, route: Route) {
        let length = route
            .pattern
            .split('/')
            .filter(|segment| !segment.is_empty())
            .count();
        self.by_length
            .entry((route.service, length))
            .or_default()
            .push(self.routes.len());
        self.routes.push(route);
    }
}

impl Table<'_> {
    /// Adds an operation.
    pub(crate) fn on(
        &mut self,
        method: Method,
        pattern: &'static str,
        access: Access,
        handler: impl Fn(&mut Call<'_>) -> Answer + Send + Sync + 'static,
    ) -> &mut Self {
        let handler: Handler = Box::new(handler);
        self.routes.add(Route {
            service: self.service,
            method,
            pattern,
            access,
            handler,
        });
        self
    }

    /// Registers a read by any reader of the project.
    pub(crate) fn get(
        &mut self,
        pattern: &'static str,
        handler: impl Fn(&mut Call<'_>) -> Answer + Send + Sync + 'static,
    ) -> &mut Self {
        self.on(Method::GET, pattern, Access::Reader, handler)
    }

    /// Registers a creation or action by a member.
    pub(crate) fn post(
        &mut self,
        pattern: &'static str,
        handler: impl Fn(&mut Call<'_>) -> Answer + Send + Sync + 'static,
    ) -> &mut Self {
        self.on(Method::POST, pattern, Access::Member, handler)
    }

    /// Registers a change by a member.
    pub(crate) fn put(
        &mut self,
        pattern: &'static str,
        handler: impl Fn(&mut Call<'_>) -> Answer + Send + Sync + 'static,
    ) -> &mut Self {
        self.on(Method::PUT, pattern, Access::Member, handler)
    }

    /// Registers a removal by a member.
    pub(crate) fn delete(
        &mut self,
        pattern: &'static str,
        handler: impl Fn(&mut Call<'_>) -> Answer + Send + Sync + 'static,
    ) -> &mut Self {
        self.on(Method::DELETE, pattern, Access::Member, handler)
    }
}

fn matching(pattern: &'static str, segments: &[&str]) -> Option<Parameters> {
    let mut parameters = Vec::new();
    let wanted = || pattern.split('/').filter(|part| !part.is_empty());
    // Most patterns differ in a literal segment: nothing is decoded for them.
    let literal = |wanted: &str, segment: &str| wanted.starts_with('{') || wanted == segment;
    if !wanted()
        .zip(segments)
        .all(|(wanted, segment)| literal(wanted, segment))
    {
        return None;
    }
    for (wanted, segment) in wanted().zip(segments) {
        let name = wanted
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'));
        if let Some(name) = name {
            let decoded = percent_encoding::percent_decode_str(segment).decode_utf8_lossy();
            parameters.push((name, decoded.into_owned()));
        }
    }
    Some(parameters)
}
