//! The permissions of the manager.

use std::time::Duration;

use api::k8s_openapi::api::coordination::v1::Lease;
use api::k8s_openapi::api::core::v1::{ConfigMap, Service};
use api::k8s_openapi::api::events::v1::Event;
use ccm::Routes;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use operator::election;
use serde_json::json;

use crate::weights::endpoints;
use crate::world::{World, eventually, settings, taints};
use testbed::Guard;

/// The role that `generate cloud-controller-manager` prints.
const OURS: &str = include_str!("../../../../config/ccm/rbac.yaml");

/// Permissions of the Go manager's role (§1.1 of its manifests), without repetitions.
const GOS: &str = r#"
kind: ClusterRole
rules:
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update]}
- {apiGroups: [""], resources: [events], verbs: [create, patch, update]}
- {apiGroups: [""], resources: [nodes], verbs: ["*"]}
- {apiGroups: [""], resources: [nodes/status], verbs: [patch]}
- {apiGroups: [""], resources: [services], verbs: [list, patch, update, watch]}
- {apiGroups: [""], resources: [services/status], verbs: [patch]}
- {apiGroups: [""], resources: [serviceaccounts], verbs: [create, get]}
- {apiGroups: [""], resources: [serviceaccounts/token], verbs: [create]}
- {apiGroups: [""], resources: [persistentvolumes], verbs: ["*"]}
- {apiGroups: [""], resources: [endpoints], verbs: [create, get, list, watch, update]}
- {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [secrets], verbs: [list, get, watch]}
"#;

fn lease() -> election::Config {
    election::Config {
        namespace: "kube-system".to_owned(),
        name: "cloud-controller-manager".to_owned(),
        identity: "ferrostack".to_owned(),
        lease_duration: Duration::from_secs(4),
        renew_deadline: Duration::from_secs(3),
        retry_period: Duration::from_secs(1),
    }
}

/// A manager with all controllers behind the guard, and a router.
async fn guarded(guard: &Guard) -> World {
    let mut world = World::open("").await;
    world.client = Some(guard.of(&world.cluster.client));
    world.options(|options| {
        options.routes = Routes {
            cluster_cidrs: vec!["10.244.0.0/16".parse().unwrap()],
            period: Duration::from_secs(5),
        };
        options.weight_period = Duration::from_millis(100);
    });
    let router = world.route_out().await;
    let conf = format!("[Route]\nrouter-id = {router}\n");
    world
        .settings
        .send_replace(settings(&world.cloud, &conf).into());
    world.run();
    world
}

async fn pods_of(world: &World, node: &str, range: &str) {
    let patch = Patch::Merge(json!({"spec": {"podCIDR": range, "podCIDRs": [range]}}));
    let nodes = world.nodes();
    nodes
        .patch(node, &PatchParams::default(), &patch)
        .await
        .unwrap();
    world
        .node_where(node, |node| {
            let conditions = node
                .status
                .as_ref()
                .and_then(|status| status.conditions.as_ref());
            conditions.is_some_and(|all| {
                all.iter()
                    .any(|it| it.type_ == "NetworkUnavailable" && it.status == "False")
            })
        })
        .await;
}

/// Life of a cluster: election, nodes that come, stop and go, routes, and a Service with all of its requests to
/// Kubernetes.
async fn life(world: &World, guard: &Guard) {
    let client = guard.of(&world.cluster.client);
    let leader = election::elected(client, lease()).await.unwrap();
    for (name, range) in [("worker-1", "10.244.1.0/24"), ("worker-2", "10.244.2.0/24")] {
        world.worker(name).await;
        pods_of(world, name, range).await;
    }
    let maps: Api<ConfigMap> = Api::namespaced(world.cluster.client.clone(), "kube-system");
    let record = maps.get("ferrostack-routes").await.unwrap();
    assert!(
        format!("{record:?}").contains("10.244.2.0/24"),
        "{record:?}"
    );
    endpoints(world, &[("worker-1", 1), ("worker-2", 2)]).await;
    let weighted = json!({"metadata": {"annotations": {"loadbalancer.openstack.org/member-weights": "ready-endpoints"}}});
    world.service("web", &[("TCP", 80)], weighted).await;
    world.published("web").await;
    // The same event again is a change of the first one.
    for _ in 0..2 {
        world.exclude("worker-2").await;
        world.members_are(&["worker-1"]).await;
        world.include("worker-2").await;
        world.members_are(&["worker-1", "worker-2"]).await;
    }
    let events: Api<Event> = Api::default_namespaced(world.cluster.client.clone());
    eventually("an event that was counted", || async {
        let all = events.list(&ListParams::default()).await.unwrap();
        let mut all = all.iter();
        let counted = all.any(|event| event.series.as_ref().is_some_and(|series| series.count > 1));
        counted
            .then_some(())
            .ok_or_else(|| "there is none".to_owned())
    })
    .await;
    world.delete_service("web").await;
    let stopped = server_of(world, "worker-1").await;
    world.act(&stopped, json!({"os-stop": null})).await;
    world.ready("worker-1", "Unknown").await;
    world
        .node_where("worker-1", |node| {
            taints(node).iter().any(|taint| taint.ends_with("shutdown"))
        })
        .await;
    world.delete_server(&stopped).await;
    world.node_gone("worker-1").await;
    leader.release().await;
    let leases: Api<Lease> = Api::namespaced(world.cluster.client.clone(), "kube-system");
    let held = leases.get("cloud-controller-manager").await.unwrap();
    let holder = held
        .spec
        .and_then(|spec| spec.holder_identity)
        .unwrap_or_default();
    assert_eq!(holder, "", "released");
}

async fn server_of(world: &World, node: &str) -> String {
    let node = world.nodes().get(node).await.unwrap();
    let id = node.spec.unwrap().provider_id.unwrap();
    id.trim_start_matches("openstack:///").to_owned()
}

#[tokio::test(start_paused = true)]
async fn the_role_allows_what_the_manager_asks_for_and_nothing_else() {
    let guard = Guard::new(OURS);
    let world = guarded(&guard).await;
    life(&world, &guard).await;
    assert_eq!(guard.forbidden(), Default::default());
    assert_eq!(
        guard.unused(),
        Default::default(),
        "allowed, and not asked for"
    );
}

/// docs/guides/cloud-controller-manager.md names these: whoever comes from the Go manager has to apply our role.
#[tokio::test(start_paused = true)]
async fn with_the_role_of_the_go_manager_the_uid_of_the_cluster_events_and_the_lease_are_forbidden()
{
    let guard = Guard::new(GOS);
    let world = guarded(&guard).await;
    world.server("worker-1").await;
    world.node("worker-1").await;
    // Nodes are initialised all the same.
    world
        .node_where("worker-1", |node| {
            !taints(node)
                .iter()
                .any(|taint| taint.ends_with("uninitialized"))
        })
        .await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    let client = guard.of(&world.cluster.client);
    let standing = tokio::spawn(async move {
        // The manager never gives up the election, and logs the reason.
        let mut leader = election::elected(client, lease()).await.unwrap();
        leader.lost().await
    });
    let wanted = [
        "create of events.events.k8s.io default/",
        "get of namespaces. /kube-system",
        "patch of leases.coordination.k8s.io kube-system/cloud-controller-manager",
    ];
    eventually("the requests that are forbidden", || async {
        let forbidden = guard.forbidden();
        let mut missing = wanted.iter().filter(|words| !forbidden.contains(**words));
        missing
            .next()
            .is_none()
            .then_some(())
            .ok_or_else(|| format!("{forbidden:?}"))
    })
    .await;
    standing.abort();
    let service = world.cluster.api::<Service>().get("web").await.unwrap();
    assert!(service.annotations().is_empty(), "{service:?}");
    assert!(world.octavia("loadbalancers").await.is_empty());
    assert_eq!(
        world
            .writes()
            .get("POST load-balancer /v2.0/lbaas/loadbalancers"),
        None
    );
    assert!(world.floating_ips().await.is_empty());
}
