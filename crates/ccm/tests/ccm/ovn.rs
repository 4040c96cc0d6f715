//! Driver ovn: supported features, and missing ones.

use api::k8s_openapi::api::core::v1::Service;
use bytes::Bytes;
use futures::future::{self, BoxFuture};
use futures::{FutureExt, TryFutureExt};
use http::StatusCode;
use openstack::transport::{Limits, SharedTransport, Transport, TransportError};
use serde_json::{Value, json};

use crate::services::octavia_where;
use crate::world::World;

pub(crate) const CONF: &str = "[LoadBalancer]\nlb-provider = ovn\nlb-method = SOURCE_IP_PORT\n";

/// Simulated Octavia with the driver ovn, which rejects the same requests as the driver.
pub(crate) struct Ovn(pub(crate) SharedTransport);

impl Transport for Ovn {
    fn send(
        &self,
        request: http::Request<Bytes>,
        limits: Limits,
    ) -> BoxFuture<'static, Result<http::Response<Bytes>, TransportError>> {
        if !request.uri().path().starts_with("/load-balancer") || request.body().is_empty() {
            return self.0.send(request, limits);
        }
        let (parts, body) = request.into_parts();
        let mut document: Value = serde_json::from_slice(&body).unwrap();
        if let Some(problem) = unsupported(&document) {
            let fault = json!({"faultcode": "Client", "faultstring": problem, "debuginfo": null});
            let mut answer = http::Response::new(Bytes::from(fault.to_string()));
            *answer.status_mut() = StatusCode::NOT_IMPLEMENTED;
            return future::ready(Ok(answer)).boxed();
        }
        if let Some(balancer) = document.get_mut("loadbalancer")
            && let Some(provider) = balancer.get_mut("provider")
        {
            assert_eq!(*provider, "ovn");
            *provider = json!("amphora");
        }
        let request = http::Request::from_parts(parts, Bytes::from(document.to_string()));
        self.0.send(request, limits).map_ok(of_ovn).boxed()
    }
}

fn of_ovn(answer: http::Response<Bytes>) -> http::Response<Bytes> {
    let (mut parts, body) = answer.into_parts();
    let Ok(mut document) = serde_json::from_slice::<Value>(&body) else {
        return http::Response::from_parts(parts, body);
    };
    if let Some(balancer) = document.get_mut("loadbalancer") {
        balancer["provider"] = json!("ovn");
    }
    parts.headers.remove("content-length");
    http::Response::from_parts(parts, Bytes::from(document.to_string()))
}

/// Unsupported part of a request, if any.
fn unsupported(value: &Value) -> Option<String> {
    let lacks = |name: &str, value: &Value| {
        let text = value.as_str().unwrap_or_default();
        let has = match name {
            "allowed_cidrs" | "availability_zone" | "monitor_address" | "monitor_port" => {
                value.is_null()
            }
            "lb_algorithm" => text == "SOURCE_IP_PORT",
            "protocol" => matches!(text, "TCP" | "UDP" | "SCTP"),
            _ => true,
        };
        (!has).then(|| format!("OVN provider does not support {name} {value}"))
    };
    match value {
        Value::Object(fields) => fields
            .iter()
            .find_map(|(name, value)| lacks(name, value).or_else(|| unsupported(value))),
        Value::Array(items) => items.iter().find_map(unsupported),
        _ => None,
    }
}

async fn monitors(world: &World, wanted: &[&str]) {
    octavia_where(world, "healthmonitors", |list| {
        let mut kinds: Vec<_> = list.iter().map(|monitor| &monitor["type"]).collect();
        kinds.sort_by_key(|kind| kind.to_string());
        kinds == wanted
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn tcp_and_udp_are_served_with_monitors_and_without() {
    let world = World::serving(CONF, &["worker-1", "worker-2"]).await;
    let before = world.cloud.resources();
    world
        .service("web", &[("TCP", 80), ("UDP", 53)], json!({}))
        .await;
    world.published("web").await;
    let pools = world.octavia("pools").await;
    let mut protocols: Vec<_> = pools.iter().map(|pool| &pool["protocol"]).collect();
    protocols.sort_by_key(|protocol| protocol.to_string());
    assert_eq!(protocols, ["TCP", "UDP"]);
    assert!(pools.iter().all(|p| p["lb_algorithm"] == "SOURCE_IP_PORT"));
    assert_eq!(world.members().await.len(), 4);
    monitors(&world, &[]).await;
    for (enabled, wanted) in [("true", &["TCP", "UDP-CONNECT"][..]), ("false", &[])] {
        let name = "loadbalancer.openstack.org/enable-health-monitor";
        let change = json!({"metadata": {"annotations": {name: enabled}}});
        world.cluster.merge::<Service>("web", change).await;
        monitors(&world, wanted).await;
    }
    world.exclude("worker-1").await;
    world.members_are(&["worker-2", "worker-2"]).await;
    world.delete_service("web").await;
    assert_eq!(world.cloud.resources(), before);
}
