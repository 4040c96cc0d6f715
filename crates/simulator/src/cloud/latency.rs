//! Durations of requests and state transitions.

mod file;

use std::time::Duration;

use http::Method;

use super::service::Service;

pub use self::file::LatencyError;

/// Durations of answers and of transitions of the simulated cloud.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Latency {
    /// Answers at once; every transition is complete by the next request.
    #[default]
    None,
    /// Medians measured on a real OpenStack Zed on two cores (docs/project/test-cloud.md, what it takes).
    Real,
    /// Custom durations.
    Custom(Box<Timings>),
}

/// Durations of a custom [`Latency`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timings {
    /// Before every answer.
    pub request: Duration,
    /// Durations in place of `request`, by operation.
    pub routes: Vec<RouteTiming>,
    /// Server POST to ACTIVE.
    pub server_create: Duration,
    /// Server DELETE to gone; also stop, start and reboot.
    pub server_action: Duration,
    /// Load balancer POST to ACTIVE.
    pub load_balancer_create: Duration,
    /// Duration of changes of a load balancer and its parts.
    pub load_balancer_update: Duration,
    /// Load balancer DELETE to gone.
    pub load_balancer_delete: Duration,
    /// Volume POST to available; also deletion, growth, attachment, detachment, snapshots and backups.
    pub volume: Duration,
}

/// Duration of an operation. The names are those of [`super::RequestCount`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteTiming {
    /// Service, such as `network`.
    pub service: String,
    /// Method, such as `POST`.
    pub method: String,
    /// Route, such as `/v2.0/routers`.
    pub route: String,
    /// Time before the answer.
    pub duration: Duration,
}

/// Transitions with a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transition {
    ServerCreate,
    ServerAction,
    BalancerCreate,
    BalancerUpdate,
    BalancerDelete,
    Volume,
}

impl Latency {
    /// Returns the time before a request is answered.
    pub(crate) fn request(&self, service: Service, method: &Method, route: &str) -> Duration {
        match self {
            Self::None => Duration::ZERO,
            Self::Real => measured(service, method, route),
            Self::Custom(timings) => {
                let timing = timings.routes.iter().find(|timing| {
                    timing.route == route
                        && timing.method == method.as_str()
                        && timing.service == service.segment()
                });
                timing.map_or(timings.request, |timing| timing.duration)
            }
        }
    }

    /// Returns the time from acceptance to completion.
    pub(crate) fn transition(&self, transition: Transition) -> Duration {
        let millis = Duration::from_millis;
        match (self, transition) {
            (Self::None, _) => Duration::ZERO,
            (Self::Real, Transition::ServerCreate) => millis(1320),
            (Self::Real, Transition::ServerAction) => millis(400),
            (Self::Real, Transition::BalancerCreate) => millis(4500),
            (Self::Real, Transition::BalancerUpdate) => millis(350),
            (Self::Real, Transition::BalancerDelete) => millis(2200),
            (Self::Real, Transition::Volume) => millis(170),
            (Self::Custom(timings), Transition::ServerCreate) => timings.server_create,
            (Self::Custom(timings), Transition::ServerAction) => timings.server_action,
            (Self::Custom(timings), Transition::BalancerCreate) => timings.load_balancer_create,
            (Self::Custom(timings), Transition::BalancerUpdate) => timings.load_balancer_update,
            (Self::Custom(timings), Transition::BalancerDelete) => timings.load_balancer_delete,
            (Self::Custom(timings), Transition::Volume) => timings.volume,
        }
    }
}

/// Returns the measured median. An operation without a measurement has the value of a similar one.
fn measured(service: Service, method: &Method, route: &str) -> Duration {
    let read = method == Method::GET || method == Method::HEAD;
    let tail = route.rsplit('/').next().unwrap_or_default();
    let millis = match service {
        Service::Identity => 14,
        Service::Compute if read => match tail {
            "detail" => 115,
            "{server_id}" => 55,
            "limits" => 12,
            _ => 8,
        },
        Service::Compute if route.ends_with("/servers") => 180,
        Service::Compute => 60,
        Service::Network if read => match tail {
            "ports" => 84,
            "networks" => 35,
            _ => 15,
        },
        Service::Network if method == Method::DELETE => 146,
        Service::Network if tail == "security-group-rules" => 200,
        Service::Network if tail == "routers" => 900,
        Service::Network if tail == "tags" => 30,
        Service::Network => 238,
        Service::Image => 8,
        Service::Volume if read => 20,
        Service::Volume => 60,
        Service::LoadBalancer if read => 9,
        Service::LoadBalancer => 150,
        Service::Placement | Service::Secrets => 10,
        Service::Control => 0,
    };
    Duration::from_millis(millis)
}

#[cfg(test)]
mod tests;
