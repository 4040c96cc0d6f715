//! Latencies from a data file.

use std::time::Duration;

use serde::Deserialize;

use super::{Latency, RouteTiming, Timings};
use crate::cloud::dispatch;

/// Why a file of latencies is rejected.
#[derive(Debug, thiserror::Error)]
pub enum LatencyError {
    /// The file is malformed or has unknown fields.
    #[error("the latencies cannot be read")]
    Unreadable(#[source] serde_saphyr::Error),
    /// Duration for an unknown operation.
    #[error(
        "routes[{index}]: there is no operation {method} {route} of the service {service}; \
         GET /_simulator/requests shows how operations are called"
    )]
    UnknownRoute {
        /// Place in the list.
        index: usize,
        /// Service as written.
        service: String,
        /// Method as written.
        method: String,
        /// Route as written.
        route: String,
    },
}

/// File, in milliseconds. Absent durations are 0.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct File {
    request: u64,
    routes: Vec<Route>,
    server_create: u64,
    server_action: u64,
    load_balancer_create: u64,
    load_balancer_update: u64,
    load_balancer_delete: u64,
    volume: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Route {
    service: String,
    method: String,
    route: String,
    milliseconds: u64,
}

impl Latency {
    /// Parses latencies from YAML (docs/latencies.yaml is an example).
    ///
    /// # Errors
    /// The text is malformed, has unknown fields, or names an unknown operation.
    pub fn parse(text: &str) -> Result<Self, LatencyError> {
        let options = serde_saphyr::options! { with_snippet: false };
        let file: File =
            serde_saphyr::from_str_with_options(text, options).map_err(LatencyError::Unreadable)?;
        let known = dispatch::routes().names();
        let millis = Duration::from_millis;
        let mut routes = Vec::new();
        for (index, route) in file.routes.into_iter().enumerate() {
            let method = route.method.to_ascii_uppercase();
            let is_it = |(service, other, pattern): &(String, String, String)| {
                *service == route.service && *other == method && *pattern == route.route
            };
            if !known.iter().any(is_it) {
                return Err(LatencyError::UnknownRoute {
                    index,
                    service: route.service,
                    method: route.method,
                    route: route.route,
                });
            }
            routes.push(RouteTiming {
                service: route.service,
                method,
                route: route.route,
                duration: millis(route.milliseconds),
            });
        }
        Ok(Self::Custom(Box::new(Timings {
            request: millis(file.request),
            routes,
            server_create: millis(file.server_create),
            server_action: millis(file.server_action),
            load_balancer_create: millis(file.load_balancer_create),
            load_balancer_update: millis(file.load_balancer_update),
            load_balancer_delete: millis(file.load_balancer_delete),
            volume: millis(file.volume),
        })))
    }
}
