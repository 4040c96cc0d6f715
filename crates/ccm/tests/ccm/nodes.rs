//! Nodes are changed with their servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use api::k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Patch, PatchParams};
use kube::client::Body;
use serde_json::json;

use crate::world::{World, addresses, eventually, label, settings, taints};

const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";

pub(crate) fn provider_id(node: &Node) -> &str {
    node.spec
        .as_ref()
        .and_then(|spec| spec.provider_id.as_deref())
        .unwrap_or_default()
}

pub(crate) fn is_initialised(node: &Node) -> bool {
    !taints(node).contains(&UNINITIALIZED)
}

/// Creates worker-1 and worker-2 with their initialized Nodes; returns the id of the first one's server.
async fn two_workers(world: &World) -> String {
    let first = world.server("worker-1").await;
    world.server("worker-2").await;
    for name in ["worker-1", "worker-2"] {
        world.node(name).await;
        world.node_where(name, is_initialised).await;
    }
    first
}

/// Waits for an event about a Node, whose note contains `words`.
async fn notes(world: &World, about: &str, reason: &str, words: &str) {
    let note = world.event(about, reason).await;
    assert!(note.contains(words), "{note}");
}

#[tokio::test(start_paused = true)]
async fn a_node_is_initialised_from_its_server() {
    let world = World::start("").await;
    let id = world.server("worker-1").await;
    world.node("worker-1").await;
    let node = world.node_where("worker-1", is_initialised).await;
    assert_eq!(provider_id(&node), format!("openstack:///{id}"));
    assert!(
        addresses(&node)[0].starts_with("InternalIP 10.0."),
        "{:?}",
        addresses(&node)
    );
    assert_eq!(label(&node, "node.kubernetes.io/instance-type"), "m1.small");
    assert_eq!(label(&node, "beta.kubernetes.io/instance-type"), "m1.small");
    assert_eq!(label(&node, "topology.kubernetes.io/zone"), "nova");
    assert_eq!(label(&node, "topology.kubernetes.io/region"), "RegionOne");
    assert_eq!(
        world.event("worker-1", "Synced").await,
        "Node synced successfully"
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_that_comes_before_its_server_is_initialised_when_the_server_is_there() {
    let world = World::start("").await;
    world.node("worker-1").await;
    world.ready("worker-1", "True").await;
    world.server("worker-1").await;
    world.node_where("worker-1", is_initialised).await;
}

#[tokio::test(start_paused = true)]
async fn provider_ids_name_the_region_if_asked_to_and_nodes_of_other_regions_are_left_alone() {
    let mut world = World::open("").await;
    world.options(|options| options.regional = true);
    world.run();
    let id = world.server("worker-1").await;
    world.node("worker-1").await;
    let node = world.node_where("worker-1", is_initialised).await;
    assert_eq!(provider_id(&node), format!("openstack://RegionOne/{id}"));

    world.node("far-away").await;
    let patch = Patch::Merge(json!({"spec": {"providerID": "openstack://RegionTwo/3c1f"}}));
    world
        .nodes()
        .patch("far-away", &PatchParams::default(), &patch)
        .await
        .unwrap();
    world.ready("far-away", "Unknown").await;
    // Proof that deletions work: a Node of this region without a server is deleted, while the Node of the other
    // region stays.
    world.server("witness").await;
    world.node("witness").await;
    world.node_where("witness", is_initialised).await;
    world.delete_server(&id).await;
    world.node_gone("worker-1").await;
    world
        .node_where("far-away", |node| !is_initialised(node))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_stopped_server_taints_its_node_until_the_node_is_ready_again() {
    let world = World::start("").await;
    let id = world.server("worker-1").await;
    world.node("worker-1").await;
    world.node_where("worker-1", is_initialised).await;
    world.ready("worker-1", "True").await;
    world.act(&id, json!({"os-stop": null})).await;
    world.ready("worker-1", "Unknown").await;
    world
        .node_where("worker-1", |node| taints(node).contains(&SHUTDOWN))
        .await;
    world.act(&id, json!({"os-start": null})).await;
    world.ready("worker-1", "True").await;
    world
        .node_where("worker-1", |node| !taints(node).contains(&SHUTDOWN))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_node_is_deleted_when_its_server_is_gone_and_never_while_it_is_ready() {
    let world = World::start("").await;
    let gone = two_workers(&world).await;
    for name in ["worker-1", "worker-2"] {
        world.ready(name, "True").await;
    }
    world.delete_server(&gone).await;
    world.cloud.reset_requests();
    // It is checked several times, and is kept as long as the kubelet reports.
    eventually("some looks at the cloud", || async {
        let lists = world
            .requests()
            .get("GET compute /v2.1/servers/detail")
            .copied()
            .unwrap_or(0);
        (lists >= 3)
            .then_some(())
            .ok_or_else(|| format!("{:?}", world.requests()))
    })
    .await;
    world.nodes().get("worker-1").await.unwrap();
    world.ready("worker-1", "Unknown").await;
    world.node_gone("worker-1").await;
    let note = world.event("worker-1", "DeletingNode").await;
    assert_eq!(
        note,
        "Deleting node worker-1 because it does not exist in the cloud provider"
    );
    world.nodes().get("worker-2").await.unwrap();
}

/// Worker with a server, as proof that deletions are possible.
async fn witness(world: &World) {
    world.server("witness").await;
    world.node("witness").await;
    world.node_where("witness", is_initialised).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_without_provider_id_is_never_deleted_and_its_event_says_what_is_missing() {
    let world = World::start("").await;
    witness(&world).await;
    world.node("nobody").await;
    notes(
        &world,
        "nobody",
        "ServerNotFound",
        "no server of the name nobody",
    )
    .await;
    let lists = world.requests()["GET compute /v2.1/servers/detail"];
    eventually("further looks", || async {
        let further = world.requests()["GET compute /v2.1/servers/detail"];
        (further > lists + 10)
            .then_some(())
            .ok_or_else(|| further.to_string())
    })
    .await;
    world.nodes().get("nobody").await.unwrap();
    assert_eq!(world.count_events("nobody", "DeletingNode").await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_node_is_initialised_by_the_host_name_that_nova_gives_to_its_server() {
    let world = World::start("").await;
    witness(&world).await;
    for (server, node) in [
        ("K8S-Node-1", "k8s-node-1"),
        ("db_1", "db-1.novalocal"),
        ("web.example.com", "web"),
        ("api.example.com", "api-example-com"),
    ] {
        let id = world.server(server).await;
        world.node(node).await;
        let found = world.node_where(node, is_initialised).await;
        assert_eq!(provider_id(&found), format!("openstack:///{id}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_is_initialised_by_the_host_name_that_was_chosen_for_its_server() {
    let world = World::start("").await;
    witness(&world).await;
    let id = world
        .server_with("Database", json!({"hostname": "db-7"}))
        .await;
    world.node("db-7").await;
    let found = world.node_where("db-7", is_initialised).await;
    assert_eq!(provider_id(&found), format!("openstack:///{id}"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_a_node_names_by_its_id_is_of_no_other_node() {
    let world = World::start("").await;
    world.server("Worker-1").await;
    world.node("worker-1.example.com").await;
    world
        .node_where("worker-1.example.com", is_initialised)
        .await;
    world.node("worker-1").await;
    let words = "it is that of Node worker-1.example.com";
    notes(&world, "worker-1", "ServerNotFound", words).await;
    assert!(!is_initialised(
        &world.nodes().get("worker-1").await.unwrap()
    ));
}

#[tokio::test(start_paused = true)]
async fn no_node_is_deleted_when_the_cloud_knows_none_of_the_cluster() {
    let world = World::start("").await;
    for name in ["worker-1", "worker-2"] {
        world.node(name).await;
        let patch = Patch::Merge(json!({"spec": {"providerID": format!("openstack:///{name}")}}));
        let nodes = world.nodes();
        nodes
            .patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }
    let words = "cloud.conf may be those of another project";
    notes(&world, "worker-1", "DeletionInDoubt", words).await;
    world.nodes().get("worker-1").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn no_node_is_deleted_on_an_error_of_the_cloud() {
    let world = World::start("").await;
    let gone = two_workers(&world).await;
    let fault = |path: &str| json!({"service": "compute", "method": "GET", "route": path, "status": 500, "message": "broken"});
    let fault = fault("/v2.1/servers/{server_id}");
    world.request("POST", "/_simulator/faults", fault).await;
    world.delete_server(&gone).await;
    world.ready("worker-1", "Unknown").await;
    eventually("the direct question", || async {
        let asked = world
            .requests()
            .into_iter()
            .any(|(route, count)| route.starts_with("GET compute /v2.1/servers/{") && count >= 2);
        asked
            .then_some(())
            .ok_or_else(|| format!("{:?}", world.requests()))
    })
    .await;
    world.nodes().get("worker-1").await.unwrap();
    world
        .request("DELETE", "/_simulator/faults", serde_json::Value::Null)
        .await;
    world.node_gone("worker-1").await;
}

#[tokio::test(start_paused = true)]
async fn two_servers_of_one_name_leave_the_node_waiting_with_an_event() {
    let world = World::start("").await;
    world.server("twin").await;
    world.server("twin").await;
    world.node("twin").await;
    let words = "2 servers of this project are called twin";
    notes(&world, "twin", "ServerNotFound", words).await;
    assert!(!is_initialised(&world.nodes().get("twin").await.unwrap()));
}

#[tokio::test(start_paused = true)]
async fn the_options_of_cloud_conf_apply_as_soon_as_they_change() {
    let world = World::start("").await;
    world.server("worker-1").await;
    world.node("worker-1").await;
    world
        .node_where("worker-1", |node| addresses(node).len() == 1)
        .await;
    let changed = settings(&world.cloud, "[Networking]\npublic-network-name = nodes\n");
    world.settings.send(Arc::new(changed)).unwrap();
    world
        .node_where("worker-1", |node| {
            addresses(node)
                .iter()
                .all(|address| address.starts_with("ExternalIP"))
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn internal_network_name_without_a_match_keeps_the_taint_and_is_an_event_that_names_both() {
    let world = World::start("[Networking]\ninternal-network-name = nosuchnet\n").await;
    let id = world.server("worker-1").await;
    world.node("worker-1").await;
    let note = world.event("worker-1", "AddressNotFound").await;
    for words in [
        format!("Server worker-1 ({id}) has no address in the networks"),
        "internal-network-name (nosuchnet), but in nodes".to_owned(),
        "the node is not initialised".to_owned(),
    ] {
        assert!(note.contains(&words), "{note}");
    }
    let node = world.nodes().get("worker-1").await.unwrap();
    assert!(!is_initialised(&node), "{:?}", taints(&node));
    assert!(addresses(&node).is_empty(), "{:?}", addresses(&node));
    assert_eq!(world.count_events("worker-1", "Synced").await, 0);
    assert_eq!(world.count_events("worker-1", "AddressNotFound").await, 1);
    let corrected = settings(
        &world.cloud,
        "[Networking]\ninternal-network-name = nodes\n",
    );
    world.settings.send(Arc::new(corrected)).unwrap();
    let node = world.node_where("worker-1", is_initialised).await;
    assert!(addresses(&node)[0].starts_with("InternalIP 10.0."));
}

#[tokio::test(start_paused = true)]
async fn a_node_keeps_its_addresses_when_no_network_matches_any_longer_and_is_still_tainted() {
    let world = World::start("").await;
    let id = world.server("worker-1").await;
    world.node("worker-1").await;
    let before = world.node_where("worker-1", is_initialised).await;
    let wrong = settings(
        &world.cloud,
        "[Networking]\ninternal-network-name = nosuchnet\n",
    );
    world.settings.send(Arc::new(wrong)).unwrap();
    let words = "keeps the addresses that it has";
    notes(&world, "worker-1", "AddressNotFound", words).await;
    world.act(&id, json!({"os-stop": null})).await;
    world.ready("worker-1", "Unknown").await;
    let node = world
        .node_where("worker-1", |node| taints(node).contains(&SHUTDOWN))
        .await;
    assert_eq!(addresses(&node), addresses(&before));
}

#[tokio::test(start_paused = true)]
async fn a_thousand_nodes_are_initialised_with_five_requests() {
    const NODES: usize = 1000;
    let mut world = World::open("").await;
    world.options(|options| {
        options.node_monitor_period = Duration::from_secs(3600);
        options.node_status_update_frequency = Duration::from_secs(3600);
        // Longer than the test, so that only the lists for the initialization are read.
        options.clouds.intervals.idle = Duration::from_secs(3600);
        options.clouds.intervals.rest = Duration::from_secs(3600);
    });
    for index in 0..NODES {
        world.server(&format!("worker-{index}")).await;
        world.node(&format!("worker-{index}")).await;
        world.ready(&format!("worker-{index}"), "True").await;
    }
    world.cloud.reset_requests();
    world.run();
    // A busy machine needs longer for all than one wait lasts, so that progress is enough.
    let waiting = async || {
        let nodes = world.nodes().list(&Default::default()).await.unwrap();
        let nodes = nodes.items.iter();
        nodes.filter(|node| !is_initialised(node)).count()
    };
    let mut before = NODES;
    while before > 0 {
        let left = eventually("further nodes", || async {
            let left = waiting().await;
            (left < before)
                .then_some(left)
                .ok_or_else(|| format!("{left} are not initialised"))
        })
        .await;
        before = left;
    }
    let requests = world.requests();
    let total: u64 = requests.values().sum();
    assert!(total <= 5, "{total}: {requests:?}");
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_is_killed_between_any_two_writes_finishes_after_its_restart() {
    let mut world = World::open("").await;
    world.server("worker-1").await;
    for round in 0..5 {
        world.node("worker-1").await;
        world.run();
        tokio::time::sleep(Duration::from_millis(round * 15)).await;
        world.kill().await;
        world.run();
        let node = world.node_where("worker-1", is_initialised).await;
        assert!(addresses(&node)[0].starts_with("InternalIP"));
        world.kill().await;
        world
            .nodes()
            .delete("worker-1", &Default::default())
            .await
            .unwrap();
    }
}

/// Client whose deletions are rejected with a conflict, as when a Node changes between the lookup and the deletion.
fn conflicting(inner: Client, rejected: Arc<AtomicUsize>) -> Client {
    let namespace = inner.default_namespace().to_owned();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (inner, rejected) = (inner.clone(), Arc::clone(&rejected));
        async move {
            if request.method() != http::Method::DELETE {
                return inner.send(request).await;
            }
            rejected.fetch_add(1, Ordering::SeqCst);
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 409,
                "reason": "Conflict", "message": "the object has been modified"});
            let answer = http::Response::builder().status(409);
            Ok(answer
                .body(Body::from(status.to_string().into_bytes()))
                .unwrap())
        }
    });
    Client::new(service, namespace)
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_deletion_is_rejected_has_no_event_of_its_deletion() {
    let mut world = World::open("").await;
    let rejected = Arc::new(AtomicUsize::new(0));
    world.client = Some(conflicting(
        world.cluster.client.clone(),
        Arc::clone(&rejected),
    ));
    world.run();
    let gone = world.server("worker-1").await;
    world.server("worker-2").await;
    for name in ["worker-1", "worker-2"] {
        world.node(name).await;
        world.node_where(name, is_initialised).await;
    }
    world.delete_server(&gone).await;
    eventually("two rejected deletions", || async {
        let count = rejected.load(Ordering::SeqCst);
        (count >= 2).then_some(()).ok_or_else(|| count.to_string())
    })
    .await;
    assert_eq!(world.count_events("worker-1", "DeletingNode").await, 0);
    world.kill().await;
    world.client = None;
    world.run();
    world.node_gone("worker-1").await;
    world.event("worker-1", "DeletingNode").await;
}
