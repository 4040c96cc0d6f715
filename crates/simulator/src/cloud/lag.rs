//! Lists that lag behind writes, as those of services whose replicas of a database do.

use std::time::Duration;

use http::Method;
use jiff::Timestamp;

use super::call::{Answer, Call};
use super::route::Route;
use super::service::Service;
use super::settings::Settings;

/// Time of the content of lists; `None` if they do not lag.
pub(super) fn since(settings: &Settings, now: Timestamp) -> Option<Timestamp> {
    let lag = settings.changeable.read().list_lag_milliseconds;
    let before = |lag| now.checked_sub(Duration::from_millis(lag)).ok();
    (lag > 0).then_some(lag).and_then(before)
}

/// Calls the handler of a route, for a list with the former state of the cloud.
pub(super) fn handle(call: &mut Call<'_>, route: &Route) -> Answer {
    let time = since(call.settings, call.now()).filter(|_| is_list(route, call.service));
    let Some(mut former) = time.and_then(|time| call.state.at(time)) else {
        return (route.handler)(call);
    };
    std::mem::swap(call.state, &mut former);
    let answer = (route.handler)(call);
    std::mem::swap(call.state, &mut former);
    answer
}

fn is_list(route: &Route, service: Service) -> bool {
    let lags = matches!(
        service,
        Service::Compute | Service::Network | Service::Volume | Service::LoadBalancer
    );
    lags && route.method == Method::GET && !route.pattern.ends_with('}')
}
