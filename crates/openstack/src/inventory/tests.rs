use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use axum::{Json, Router};
use futures::future::join_all;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::kind::kinds_agree;
use super::{Inventory, InventoryOptions, Kind, Table, View, What};
use crate::compute::ServerCreate;
use crate::network::{Port, PortCreate, RuleCreate};
use crate::tests::testing::{self, Keystone};
use crate::{ErrorKind, Metrics, Session};

const LONG: Duration = Duration::from_secs(3600);

/// A cloud of JSON objects by collection.
#[derive(Clone)]
struct Cloud {
    state: Arc<Mutex<Objects>>,
    /// Lists wait for a permit before they return the state at their start.
    gate: Arc<Semaphore>,
}

#[derive(Default)]
struct Objects {
    servers: Vec<Value>,
    ports: Vec<Value>,
    pools: Vec<Value>,
    lists: Vec<String>,
    broken: bool,
}

impl Cloud {
    fn new() -> Self {
        Self {
            state: Arc::default(),
            gate: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
        }
    }

    /// Lists from now on wait until [`Cloud::open`].
    fn close(&self) {
        self.gate.forget_permits(Semaphore::MAX_PERMITS);
    }

    fn open(&self) {
        self.gate.add_permits(1000);
    }

    fn lists(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().lists)
    }

    async fn list(&self, name: &str, key: &str, of: impl Fn(&Objects) -> Vec<Value>) -> Response {
        let answer = {
            let mut state = self.state.lock();
            state.lists.push(name.to_owned());
            if state.broken {
                return StatusCode::INTERNAL_SERVER_ERROR.into_response();
            }
            Json(json!({key: of(&state)}))
        };
        self.gate.acquire().await.unwrap().forget();
        answer.into_response()
    }

    fn routes(&self) -> Router {
        Router::new()
            .route("/compute/v2.1/servers/detail", get(list_servers))
            .route("/compute/v2.1/servers", post(create_server))
            .route(
                "/compute/v2.1/servers/{id}",
                delete(|| async { StatusCode::NO_CONTENT }),
            )
            .route("/network/v2.0/ports", get(list_ports).post(create_ports))
            .route("/network/v2.0/ports/{id}", delete(delete_port))
            .route(
                "/network/v2.0/ports/{id}/tags",
                put(|body: Json<Value>| async { body }),
            )
            .route("/network/v2.0/security-groups", post(create_group))
            .route("/network/v2.0/security-group-rules", post(create_rules))
            .route("/load-balancer/v2.0/lbaas/pools", get(list_pools))
            .route(
                "/load-balancer/v2.0/lbaas/pools/{id}/members",
                get(list_members),
            )
            .with_state(self.clone())
    }

    fn inventory(&self, background: bool) -> (Inventory, Metrics) {
        let options = testing::options(&Keystone::default(), self.routes());
        let session = Session::new(testing::config("secret"), &options).unwrap();
        let mut inventory = InventoryOptions {
            background,
            ..InventoryOptions::default()
        };
        inventory.intervals.pending_least = Duration::from_millis(1);
        inventory.intervals.pending_most = Duration::from_millis(5);
        (Inventory::new(session, inventory), options.metrics)
    }
}

async fn list_servers(State(cloud): State<Cloud>) -> Response {
    cloud
        .list("servers", "servers", |state| state.servers.clone())
        .await
}

async fn list_ports(
    State(cloud): State<Cloud>,
    Query(query): Query<Vec<(String, String)>>,
) -> Response {
    assert!(
        query.contains(&("project_id".into(), "p1".into())),
        "{query:?}"
    );
    assert!(
        query.contains(&("fields".into(), "tags".into())),
        "{query:?}"
    );
    cloud
        .list("ports", "ports", |state| state.ports.clone())
        .await
}

async fn list_pools(State(cloud): State<Cloud>) -> Response {
    cloud
        .list("pools", "pools", |state| state.pools.clone())
        .await
}

async fn list_members(State(cloud): State<Cloud>, Path(id): Path<String>) -> Response {
    let of = |state: &Objects| {
        let pool = state.pools.iter().find(|pool| pool["id"] == id).unwrap();
        let ids = pool["members"].as_array().unwrap();
        ids.iter()
            .map(|member| json!({"id": member["id"], "address": "10.0.0.1"}))
            .collect()
    };
    cloud.list(&format!("members of {id}"), "members", of).await
}

async fn create_server(State(cloud): State<Cloud>, Json(body): Json<Value>) -> Response {
    let mut state = cloud.state.lock();
    let id = format!("s{}", state.servers.len());
    let server = json!({"id": id, "name": body["server"]["name"], "status": "BUILD",
        "tags": body["server"]["tags"]});
    state.servers.push(server);
    (StatusCode::ACCEPTED, Json(json!({"server": {"id": id}}))).into_response()
}

async fn create_ports(State(cloud): State<Cloud>, Json(mut body): Json<Value>) -> Json<Value> {
    let mut state = cloud.state.lock();
    for port in body["ports"].as_array_mut().unwrap() {
        port["id"] = json!(format!("p{}", state.ports.len()));
        state.ports.push(port.clone());
    }
    Json(body)
}

async fn delete_port(State(cloud): State<Cloud>, Path(id): Path<String>) -> Response {
    let mut state = cloud.state.lock();
    let before = state.ports.len();
    state.ports.retain(|port| port["id"] != id);
    if state.ports.len() < before {
        StatusCode::NO_CONTENT.into_response()
    } else {
        testing::absent("Port").into_response()
    }
}

async fn create_rules(Json(mut body): Json<Value>) -> Json<Value> {
    for (n, rule) in body["security_group_rules"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .enumerate()
    {
        rule["id"] = json!(format!("new{n}"));
    }
    Json(body)
}

async fn create_group(Json(mut body): Json<Value>) -> Json<Value> {
    body["security_group"]["id"] = json!("g");
    body["security_group"]["security_group_rules"] = json!([{"id": "r0", "direction": "egress"}]);
    Json(body)
}

fn new_port(name: &str) -> [PortCreate; 1] {
    [PortCreate {
        name: name.into(),
        network_id: "n".into(),
        ..PortCreate::default()
    }]
}

/// Runs other tasks until `done`.
async fn until(done: impl Fn() -> bool) {
    while !done() {
        tokio::task::yield_now().await;
    }
}

#[test]
fn every_type_knows_its_own_kind() {
    assert!(kinds_agree());
}

#[tokio::test]
async fn many_askers_share_one_list_per_kind_and_it_is_counted_as_polling() {
    let cloud = Cloud::new();
    let (inventory, metrics) = cloud.inventory(false);
    let needs = [Kind::Servers, Kind::Ports];
    let views = join_all((0..50).map(|_| inventory.view(&needs, LONG))).await;
    assert!(views.iter().all(Result::is_ok));
    let mut lists = cloud.lists();
    lists.sort();
    assert_eq!(lists, ["ports", "servers"]);
    let polled: Vec<_> = metrics
        .counts()
        .into_keys()
        .filter(|labels| labels.poll == "true" && labels.method == "GET")
        .map(|labels| labels.route)
        .collect();
    assert_eq!(polled, ["/servers/detail", "/ports"]);
}

#[tokio::test]
async fn a_view_is_as_fresh_as_asked_for() {
    let cloud = Cloud::new();
    let (inventory, _) = cloud.inventory(false);
    inventory.view(&[Kind::Ports], LONG).await.unwrap();
    inventory.view(&[Kind::Ports], LONG).await.unwrap();
    assert_eq!(cloud.lists().len(), 1);
    inventory
        .view(&[Kind::Ports], Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(cloud.lists().len(), 1);
    // A running list began too early for a request with age zero.
    cloud.close();
    let first = tokio::spawn({
        let inventory = inventory.clone();
        async move {
            inventory
                .view(&[Kind::Ports], Duration::ZERO)
                .await
                .map(|_| ())
        }
    });
    until(|| cloud.state.lock().lists.len() == 1).await;
    let others: Vec<_> = (0..5)
        .map(|_| {
            let inventory = inventory.clone();
            tokio::spawn(async move {
                inventory
                    .view(&[Kind::Ports], Duration::ZERO)
                    .await
                    .map(|_| ())
            })
        })
        .collect();
    tokio::task::yield_now().await;
    cloud.open();
    first.await.unwrap().unwrap();
    for other in others {
        other.await.unwrap().unwrap();
    }
    assert_eq!(cloud.lists().len(), 2, "the five shared one");
}

#[tokio::test]
async fn a_failure_is_shared_by_those_who_waited_and_not_remembered() {
    let cloud = Cloud::new();
    let (inventory, _) = cloud.inventory(false);
    cloud.state.lock().broken = true;
    let results = join_all((0..10).map(|_| inventory.view(&[Kind::Ports], LONG))).await;
    assert!(results.iter().all(Result::is_err));
    assert_eq!(cloud.lists().len(), 1);
    cloud.state.lock().broken = false;
    assert!(inventory.view(&[Kind::Ports], LONG).await.is_ok());
}

#[tokio::test]
async fn a_write_is_read_at_once_even_if_a_list_that_began_before_it_ends_after_it() {
    let cloud = Cloud::new();
    let (inventory, _) = cloud.inventory(false);
    let old = inventory
        .create_ports(&new_port("old"))
        .await
        .unwrap()
        .remove(0);
    cloud.close();
    let list = tokio::spawn({
        let inventory = inventory.clone();
        async move { inventory.view(&[Kind::Ports], Duration::ZERO).await }
    });
    until(|| cloud.state.lock().lists.len() == 1).await;
    // The answer of the list is computed; now we write.
    let new = inventory
        .create_ports(&new_port("new"))
        .await
        .unwrap()
        .remove(0);
    inventory.delete_port(&old.id).await.unwrap();
    inventory
        .set_tags::<Port>(&new.id, &["mine".to_owned()])
        .await
        .unwrap();
    cloud.open();
    let view = list.await.unwrap().unwrap();
    assert!(
        view.ports.get(&old.id).is_none(),
        "its deletion is not undone"
    );
    assert_eq!(view.ports.named("new").len(), 1);
    assert_eq!(view.ports.tagged("mine")[0].id, new.id);
    // Deleting it again succeeds.
    inventory.delete_port(&old.id).await.unwrap();
}

#[tokio::test]
async fn a_server_s_deletion_is_seen_at_once_and_complete_when_the_list_says_so() {
    let cloud = Cloud::new();
    let (inventory, _) = cloud.inventory(false);
    let create = ServerCreate {
        name: "a".into(),
        tags: vec!["t".into()],
        ..Default::default()
    };
    let server = inventory.create_server(&create).await.unwrap();
    inventory
        .view(&[Kind::Servers], Duration::ZERO)
        .await
        .unwrap();
    let mut changes = inventory.changes();
    inventory.delete_server(&server.id).await.unwrap();
    let view = inventory.view(&[Kind::Servers], LONG).await.unwrap();
    assert!(view.servers.get(&server.id).unwrap().is_deleting());
    cloud.state.lock().servers.clear();
    let view = inventory
        .view(&[Kind::Servers], Duration::ZERO)
        .await
        .unwrap();
    assert!(view.servers.is_empty());
    let change = changes.try_recv().unwrap();
    assert_eq!(
        (change.what, change.id, change.tags),
        (What::Gone, server.id.clone(), vec!["t".to_owned()])
    );
    assert!(changes.try_recv().is_err(), "our own write is not a change");
}

#[tokio::test]
async fn rules_are_folded_into_their_group() {
    let cloud = Cloud::new();
    let (inventory, _) = cloud.inventory(false);
    let group = inventory
        .create_security_group(&Default::default())
        .await
        .unwrap();
    let rule = RuleCreate {
        security_group_id: group.id.clone(),
        ..Default::default()
    };
    inventory.create_rules(&[rule.clone(), rule]).await.unwrap();
    let view = inventory.known();
    assert_eq!(view.security_groups.get("g").unwrap().rules.len(), 3);
    assert!(!view.security_groups.is_read());
    assert!(
        View::default().ports.is_read(),
        "a hand-made view is complete"
    );
}

#[tokio::test]
async fn differences_between_lists_are_changes() {
    let cloud = Cloud::new();
    let (inventory, _) = cloud.inventory(false);
    let port = |id: &str, status: &str| {
        json!({"id": id, "name": "n", "status": status, "tags": ["t"], "device_id": "s",
            "description": "owner"})
    };
    cloud.state.lock().ports = vec![port("a", "DOWN"), port("b", "DOWN")];
    let mut changes = inventory.changes();
    inventory
        .view(&[Kind::Ports], Duration::ZERO)
        .await
        .unwrap();
    assert!(
        changes.try_recv().is_err(),
        "the first list changes nothing"
    );
    cloud.state.lock().ports = vec![port("a", "ACTIVE"), port("c", "DOWN")];
    inventory
        .view(&[Kind::Ports], Duration::ZERO)
        .await
        .unwrap();
    let mut seen = Vec::new();
    while let Ok(change) = changes.try_recv() {
        assert_eq!(change.kind, Kind::Ports);
        assert_eq!(
            (change.name.as_str(), change.description.as_str()),
            ("n", "owner")
        );
        assert_eq!(
            (change.parent.as_deref(), &*change.scope),
            (Some("s"), &**inventory.scope())
        );
        seen.push((change.id, change.what));
    }
    let expected = [
        ("a", What::Changed),
        ("c", What::Appeared),
        ("b", What::Gone),
    ];
    assert_eq!(seen, expected.map(|(id, what)| (id.to_owned(), what)));
}

#[tokio::test]
async fn what_is_pending_is_read_in_the_background_until_it_is_not() {
    let cloud = Cloud::new();
    let (inventory, _) = cloud.inventory(true);
    let mut changes = inventory.changes();
    inventory.view(&[Kind::Servers], LONG).await.unwrap();
    let server = inventory
        .create_server(&ServerCreate::default())
        .await
        .unwrap();
    // Without a request, the background reader detects the change.
    until(|| cloud.state.lock().lists.len() > 3).await;
    cloud.state.lock().servers[0]["status"] = json!("ACTIVE");
    loop {
        let change = changes.recv().await.unwrap();
        assert_eq!(change.id, server.id);
        let known = inventory.known();
        if known.servers.get(&server.id).unwrap().status == "ACTIVE" {
            break;
        }
    }
    assert!(!inventory.inner.has_pending(Kind::Servers));
}

#[tokio::test]
async fn what_someone_watches_is_read_in_the_background() {
    let cloud = Cloud::new();
    let (inventory, _) = cloud.inventory(true);
    cloud.state.lock().ports = vec![json!({"id": "a", "status": "DOWN"})];
    inventory.view(&[Kind::Ports], LONG).await.unwrap();
    let mut changes = inventory.changes();
    inventory.watch_pending(Kind::Ports, "a");
    until(|| cloud.state.lock().lists.len() > 3).await;
    cloud.state.lock().ports.clear();
    assert_eq!(changes.recv().await.unwrap().what, What::Gone);
}

#[tokio::test]
async fn the_background_reader_ends_with_the_inventory() {
    let cloud = Cloud::new();
    let (inventory, _) = cloud.inventory(true);
    inventory.watch_pending(Kind::Ports, "a");
    until(|| !cloud.state.lock().lists.is_empty()).await;
    let inner = Arc::downgrade(&inventory.inner);
    drop(inventory);
    until(|| inner.strong_count() == 0).await;
}

#[tokio::test]
async fn a_stale_kind_is_read_again_whatever_its_age() {
    let cloud = Cloud::new();
    let (inventory, _) = cloud.inventory(false);
    inventory.view(&[Kind::Ports], LONG).await.unwrap();
    inventory.stale(Kind::Ports);
    inventory.view(&[Kind::Ports], LONG).await.unwrap();
    inventory.view(&[Kind::Ports], LONG).await.unwrap();
    assert_eq!(cloud.lists().len(), 2);
}

#[tokio::test]
async fn only_pools_that_changed_are_asked_for_their_members() {
    let cloud = Cloud::new();
    let (inventory, _) = cloud.inventory(false);
    let pool = |id: &str, members: &[&str]| {
        let members: Vec<_> = members.iter().map(|id| json!({"id": id})).collect();
        json!({"id": id, "provisioning_status": "ACTIVE", "members": members})
    };
    cloud.state.lock().pools = vec![pool("a", &["1", "2"]), pool("b", &["3"]), pool("c", &[])];
    let view = inventory
        .view(&[Kind::Members], Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(view.members.of_parent("a").len(), 2);
    assert_eq!(&*view.members.get("3").unwrap().pool_id, "b");
    assert_eq!(cloud.lists(), ["pools", "members of a", "members of b"]);
    inventory
        .view(&[Kind::Members], Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(cloud.lists(), ["pools"]);
    cloud.state.lock().pools[1] = pool("b", &["3", "4"]);
    let view = inventory
        .view(&[Kind::Members], Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(view.members.len(), 4);
    assert_eq!(cloud.lists(), ["pools", "members of b"]);
    // A view of pools and members lists the pools once.
    inventory
        .view(&[Kind::Pools, Kind::Members], Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(cloud.lists(), ["pools"]);
    cloud.state.lock().pools.remove(0);
    let view = inventory
        .view(&[Kind::Members], Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(view.members.len(), 2);
}

/// Nova's answer about an absent resource.
async fn absent() -> (StatusCode, Json<Value>) {
    let fault = json!({"itemNotFound": {"code": 404, "message": "no such resource"}});
    (StatusCode::NOT_FOUND, Json(fault))
}

#[tokio::test]
async fn quotas_come_from_whichever_services_show_them() {
    let neutron = || async {
        Json(
            json!({"quota": {"port": {"limit": 10, "used": 3, "reserved": 1},
            "network": {"limit": -1, "used": 1, "reserved": 0}}}),
        )
    };
    let nova = || async {
        Json(json!({"limits": {"absolute": {"maxTotalCores": 20, "totalCoresUsed": 21}}}))
    };
    let routes = Router::new()
        .route("/network/v2.0/quotas/p1/details.json", get(neutron))
        .route("/compute/v2.1/limits", get(nova))
        .fallback(absent);
    let options = InventoryOptions {
        background: false,
        ..InventoryOptions::default()
    };
    let inventory = Inventory::new(testing::session(routes), options);
    let view = inventory.view(&[Kind::Quotas], LONG).await.unwrap();
    let left = |id: &str| view.quotas.get(id).unwrap().left();
    assert_eq!(left("network/port"), Some(6));
    assert_eq!(left("network/network"), None);
    assert_eq!(left("compute/cores"), Some(0));
    assert!(view.quotas.get("block-storage/volumes").is_none());
}

#[tokio::test]
async fn quotas_of_volumes_are_those_of_types_too_unless_cinder_shows_limits_alone() {
    let set = || async {
        Json(json!({"quota_set": {"id": "p1",
            "volumes": {"limit": -1, "in_use": 2, "reserved": 0},
            "gigabytes": {"limit": 10, "in_use": 2, "reserved": 1},
            "gigabytes_fast": {"limit": 5, "in_use": 1, "reserved": 0}}}))
    };
    let denied = || async { StatusCode::FORBIDDEN };
    let limits = || async {
        Json(
            json!({"limits": {"absolute": {"maxTotalVolumeGigabytes": 4, "totalGigabytesUsed": 1}}}),
        )
    };
    let path = "/volume/v3/p1/os-quota-sets/p1";
    for (routes, expected) in [
        (Router::new().route(path, get(set)), [Some(7), Some(4)]),
        (Router::new().route(path, get(denied)), [Some(3), None]),
    ] {
        let routes = routes
            .route("/volume/v3/p1/limits", get(limits))
            .fallback(absent);
        let options = InventoryOptions {
            background: false,
            ..InventoryOptions::default()
        };
        let inventory = Inventory::new(testing::session(routes), options);
        let both = [Kind::Quotas, Kind::VolumeQuotas];
        let view = inventory.view(&both, LONG).await.unwrap();
        let left = |id: &str| {
            let alone = view.volume_quotas.get(id).and_then(|quota| quota.0.left());
            let id = format!("block-storage/{id}");
            let left = view.quotas.get(&id).and_then(|quota| quota.left());
            assert_eq!(left, alone, "{id}");
            left
        };
        assert_eq!(["gigabytes", "gigabytes_fast"].map(left), expected);
        assert_eq!(left("volumes"), None);
    }
}

/// Somebody else's page says nothing of what is there.
#[tokio::test]
async fn a_list_that_is_no_list_is_not_an_empty_one() {
    let page = || async { (StatusCode::NOT_FOUND, "<html>no such page</html>") };
    let denied = || async { StatusCode::FORBIDDEN };
    let garbled = || async { "{\"backups\": [{\"id\":" };
    let read = async |routes: Router, kind: Kind| {
        let options = InventoryOptions {
            background: false,
            ..InventoryOptions::default()
        };
        let inventory = Inventory::new(testing::session(routes), options);
        inventory.view(&[kind], LONG).await
    };
    let backups = "/volume/v3/p1/backups/detail";
    for (route, kind) in [
        (get(page), ErrorKind::Protocol),
        (get(denied), ErrorKind::Denied),
        (get(garbled), ErrorKind::Protocol),
    ] {
        let routes = Router::new().route(backups, route);
        let error = read(routes, Kind::Backups).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
    let routes = Router::new().route(backups, get(absent));
    let view = read(routes, Kind::Backups).await.unwrap();
    assert!(view.backups.is_empty() && view.backups.is_read());
    let quotas = "/volume/v3/p1/os-quota-sets/p1";
    let routes = Router::new().route(quotas, get(garbled)).fallback(absent);
    for kind in [Kind::Quotas, Kind::VolumeQuotas] {
        let error = read(routes.clone(), kind).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
    }
}

#[tokio::test]
async fn a_service_that_the_cloud_lacks_is_named() {
    let cloud = Cloud::new();
    let options = testing::options(&Keystone::default(), cloud.routes());
    let config = testing::config("secret").with_region(Some("three"));
    let session = Session::new(config, &options).unwrap();
    let inventory = Inventory::new(session, InventoryOptions::default());
    let error = inventory
        .view(&[Kind::LoadBalancers], LONG)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(
        error.message().contains("load-balancer in region `three`"),
        "{error}"
    );
}

#[test]
fn tables_find_by_name_tag_and_parent() {
    let port = |id: &str, name: &str, tag: &str, device: &str| Port {
        id: id.into(),
        name: name.into(),
        tags: vec![tag.into()],
        device_id: device.into(),
        ..Port::default()
    };
    let table = Table::from_items([
        port("1", "a", "x", "s"),
        port("2", "a", "y", ""),
        port("3", "b", "x", "s"),
    ]);
    let ids = |ports: &[Arc<Port>]| ports.iter().map(|port| port.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(table.named("a")), ["1", "2"]);
    assert_eq!(ids(table.tagged("x")), ["1", "3"]);
    assert_eq!(ids(table.of_parent("s")), ["1", "3"]);
    assert!(table.of_parent("").is_empty());
}

#[test]
fn views_can_be_awaited_in_any_task() {
    fn is_send<T: Send>(_: T) {}
    let options = InventoryOptions {
        background: false,
        ..InventoryOptions::default()
    };
    let inventory = Inventory::new(testing::session(Router::new()), options);
    is_send(inventory.view(Kind::ALL, LONG));
    is_send(inventory.create_server(&ServerCreate::default()));
    is_send(inventory.set_tags::<Port>("a", &[]));
}
