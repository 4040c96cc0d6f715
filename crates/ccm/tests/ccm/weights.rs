//! Weights of members by ready endpoints.

use std::time::Duration;

use api::k8s_openapi::api::core::v1::Service;
use api::k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use testbed::eventually;

use crate::world::World;

const MEMBERS: &str = "PUT load-balancer /v2.0/lbaas/pools/{pool_id}/members";

pub(crate) async fn world(conf: &str, workers: &[&str], period: Duration) -> World {
    let mut world = World::open(conf).await;
    world.options(|options| options.weight_period = period);
    world.run();
    world.route_out().await;
    for name in workers {
        world.worker(name).await;
    }
    world.cloud.reset_requests();
    world
}

fn weighted() -> Value {
    json!({"metadata": {"annotations": {"loadbalancer.openstack.org/member-weights": "ready-endpoints"}}})
}

/// Sets the ready endpoints of Service `web`, as kube-controller-manager would.
pub(crate) async fn endpoints(world: &World, counts: &[(&str, usize)]) {
    let mut all = Vec::new();
    for (node, count) in counts {
        for _ in 0..*count {
            let address = format!("10.244.0.{}", all.len() + 1);
            all.push(
                json!({"addresses": [address], "nodeName": node, "conditions": {"ready": true}}),
            );
        }
    }
    let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "endpoints": all});
    let slices: Api<EndpointSlice> = Api::default_namespaced(world.cluster.client.clone());
    let params = PatchParams::apply("endpointslice-controller").force();
    let written = slices.patch("web-1", &params, &Patch::Apply(&slice)).await;
    written.unwrap();
}

async fn weights_are(world: &World, expected: &[(&str, i64)]) {
    eventually(&format!("the weights {expected:?}"), || async {
        let all = world.all_members().await;
        let weight = |member: &Value| {
            let name = member["name"].as_str().unwrap().to_owned();
            (name, member["weight"].as_i64().unwrap())
        };
        let mut seen: Vec<_> = all.iter().map(weight).collect();
        seen.sort();
        let seen: Vec<_> = seen
            .iter()
            .map(|(name, weight)| (name.as_str(), *weight))
            .collect();
        match seen == expected {
            true => Ok(()),
            false => Err(format!("{seen:?}")),
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn members_weigh_as_much_as_there_are_ready_endpoints_on_their_nodes_and_a_change_is_a_request_for_each_pool()
 {
    let world = world("", &["worker-1", "worker-2"], Duration::from_millis(200)).await;
    endpoints(&world, &[("worker-1", 3), ("worker-2", 1)]).await;
    world.service("web", &[("TCP", 80)], weighted()).await;
    world.published("web").await;
    weights_are(&world, &[("worker-1", 3), ("worker-2", 1)]).await;
    world.cloud.reset_requests();
    endpoints(&world, &[("worker-2", 2)]).await;
    weights_are(&world, &[("worker-1", 0), ("worker-2", 2)]).await;
    assert_eq!(world.writes(), [(MEMBERS.to_owned(), 1)].into());
    endpoints(&world, &[]).await;
    weights_are(&world, &[("worker-1", 1), ("worker-2", 1)]).await;
    endpoints(&world, &[("worker-1", 2)]).await;
    weights_are(&world, &[("worker-1", 2), ("worker-2", 0)]).await;
    let off =
        json!({"metadata": {"annotations": {"loadbalancer.openstack.org/member-weights": null}}});
    world.cluster.merge::<Service>("web", off).await;
    weights_are(&world, &[("worker-1", 1), ("worker-2", 1)]).await;
    world.cloud.reset_requests();
    endpoints(&world, &[("worker-1", 5)]).await;
    world.exclude("worker-2").await;
    weights_are(&world, &[("worker-1", 1)]).await;
    assert_eq!(world.writes(), [(MEMBERS.to_owned(), 1)].into());
}

#[tokio::test(start_paused = true)]
async fn endpoints_that_come_and_go_change_weights_once_in_a_period_and_end_right() {
    let period = Duration::from_secs(3);
    let world = world("", &["worker-1"], period).await;
    endpoints(&world, &[("worker-1", 1)]).await;
    world.service("web", &[("TCP", 80)], weighted()).await;
    world.published("web").await;
    weights_are(&world, &[("worker-1", 1)]).await;
    world.cloud.reset_requests();
    let began = tokio::time::Instant::now();
    for count in 2..40 {
        endpoints(&world, &[("worker-1", count)]).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    weights_are(&world, &[("worker-1", 39)]).await;
    let periods = began.elapsed().as_secs() / period.as_secs() + 1;
    let writes = world.writes()[MEMBERS];
    assert!(writes <= periods, "{writes} in {periods} periods");
}

#[tokio::test(start_paused = true)]
async fn a_driver_without_bulk_requests_gets_a_request_for_each_changed_weight() {
    let conf = "[LoadBalancer]\nprovider-requires-serial-api-calls = true\n";
    let world = world(conf, &["worker-1"], Duration::from_millis(200)).await;
    endpoints(&world, &[("worker-1", 2)]).await;
    world.service("web", &[("TCP", 80)], weighted()).await;
    world.published("web").await;
    let is = |weight: i64| {
        let world = &world;
        async move {
            eventually(&format!("weight {weight}"), || async {
                let all = world.all_members().await;
                let fits = all.len() == 1 && all[0]["weight"] == weight;
                fits.then_some(()).ok_or_else(|| format!("{all:?}"))
            })
            .await;
        }
    };
    is(2).await;
    world.cloud.reset_requests();
    endpoints(&world, &[("worker-1", 4)]).await;
    is(4).await;
    let one = "PUT load-balancer /v2.0/lbaas/pools/{pool_id}/members/{id}";
    assert_eq!(world.writes(), [(one.to_owned(), 1)].into());
}

#[tokio::test(start_paused = true)]
async fn weights_that_the_driver_ovn_does_not_have_are_reported() {
    let conf = "[LoadBalancer]\nlb-provider = ovn\nlb-method = SOURCE_IP_PORT\n";
    let world = world(conf, &["worker-1"], Duration::from_millis(200)).await;
    endpoints(&world, &[("worker-1", 2)]).await;
    world.service("web", &[("TCP", 80)], weighted()).await;
    let note = world.event("web", "LoadBalancerMemberWeightsIgnored").await;
    assert!(
        note.contains("loadbalancer.openstack.org/member-weights: the driver ovn has no weights"),
        "{note}"
    );
}
