//! Drains of compute nodes, and nodes that are gone.

use std::time::Duration;

use api::openstack::conditions::Type;
use api::openstack::v1alpha1::OpenStack;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, DeleteParams, EvictParams, Patch, PatchParams};
use serde_json::{Value, json};
use simulator::cloud::Cloud;
use testbed::{NAMESPACE, eventually, killed_at_every};

use crate::requests::Counter;
use crate::schedules::clock_from;
use crate::world::{CLOUD, MINUTE, World, start};

const BUDGET: &str = "PodDisruptionBudget";

/// A cloud with guests on every node.
fn guests(drain: &Value) -> Value {
    json!({
        "release": "2026.1",
        // What is lost with a node is not the control plane.
        "nodes": {
            "control": {"kubernetes.io/hostname": "node-1"},
            "compute": {"kubernetes.io/os": "linux"},
        },
        "compute": {"driver": "Libvirt", "drain": drain},
    })
}

impl World {
    fn nova(&self) -> Cloud {
        self.programs.cloud_of_pods().unwrap()
    }

    fn nodes(&self) -> Api<Node> {
        Api::all(self.management.client.clone())
    }

    async fn cordon(&self, node: &str, cordoned: bool) {
        let patch = Patch::Merge(json!({"spec": {"unschedulable": cordoned}}));
        let params = PatchParams::default();
        self.nodes().patch(node, &params, &patch).await.unwrap();
    }

    /// The guard of a node.
    async fn guard(&self, node: &str) -> Option<String> {
        let pods = self.list("", "Pod").await;
        let mut guards = pods.iter().filter(|pod| {
            pod["metadata"]["labels"]["app.kubernetes.io/name"] == "compute-guard"
                && pod["spec"]["nodeName"] == node
                && pod["status"]["phase"] == "Running"
        });
        let guard = guards.next()?;
        Some(guard["metadata"]["name"].as_str().unwrap().to_owned())
    }

    /// Waits until a node has a guard, and returns its name.
    async fn guarded(&self, node: &str) -> String {
        eventually(&format!("a guard of {node}"), || async {
            let guard = self.guard(node).await;
            // Its compute service is known, too.
            let known = self.budget(node).await.is_some_and(|it| {
                it["metadata"]["annotations"]["ferrostack.dev/compute-service"].is_string()
            });
            guard.filter(|_| known).ok_or("none".to_owned())
        })
        .await
    }

    async fn budget(&self, node: &str) -> Option<Value> {
        let budgets = self.list("policy", BUDGET).await;
        let of = |it: &Value| it["metadata"]["annotations"]["ferrostack.dev/node"] == node;
        budgets.into_iter().find(of)
    }

    /// Waits until the guard of a node may go.
    async fn opened(&self, node: &str) {
        eventually(&format!("an open budget of {node}"), || async {
            let budget = self.budget(node).await.unwrap_or_default();
            let is_open = budget["spec"]["minAvailable"] == 0;
            is_open.then_some(()).ok_or(budget["spec"].to_string())
        })
        .await;
    }

    /// The status of the answer to an eviction.
    async fn evict(&self, pod: &str) -> u16 {
        let pods: Api<Pod> = Api::namespaced(self.management.client.clone(), NAMESPACE);
        match pods.evict(pod, &EvictParams::default()).await {
            Ok(_) => 201,
            Err(kube::Error::Api(status)) => status.code,
            Err(error) => panic!("{error}"),
        }
    }

    /// Evicts the guard of a node as `kubectl drain` does, until it goes.
    async fn drained(&self, node: &str) {
        let guard = self.guarded(node).await;
        eventually(&format!("the eviction of {guard}"), || async {
            match self.evict(&guard).await {
                201 | 404 => Ok(()),
                code => Err(code.to_string()),
            }
        })
        .await;
    }

    /// Status and reason of the compute service of a node.
    fn service(&self, node: &str) -> Option<(String, String)> {
        let (_, answer) = self
            .programs
            .compute("GET", "/v2.1/os-services", &Value::Null)?;
        let mut services = answer["services"].as_array()?.iter();
        let found = services.find(|it| it["host"] == node)?;
        let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
        Some((text("status"), text("disabled_reason")))
    }

    fn servers_on(&self, node: &str) -> usize {
        let path = format!("/v2.1/servers/detail?all_tenants=1&host={node}");
        let (_, answer) = self.programs.compute("GET", &path, &Value::Null).unwrap();
        answer["servers"].as_array().map_or(0, Vec::len)
    }

    fn put_servers(&self, node: &str, count: usize) {
        for number in 0..count {
            self.nova()
                .put_server(&format!("web-{number}"), node)
                .unwrap();
        }
    }

    /// Statuses of all migrations.
    fn migrations(&self) -> Vec<String> {
        let path = "/v2.1/os-migrations";
        let (_, answer) = self.programs.compute("GET", path, &Value::Null).unwrap();
        let all = answer["migrations"].as_array().unwrap().iter();
        all.map(|it| it["status"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Waits for the condition about drains to have this reason, and returns its message.
    async fn drains_are(&self, reason: &str) -> String {
        eventually(&format!("the reason {reason}"), || async {
            let status = self.cloud().await.status.unwrap_or_default();
            let found = api::conditions::find(&status.conditions, Type::NodesDrained);
            match found {
                Some(found) if found.reason == reason => Ok(found.message.clone()),
                found => Err(format!("{found:?}")),
            }
        })
        .await
    }

    /// A cloud with guests on the nodes, with a guard on each.
    async fn guests(&self, drain: Value) {
        self.create(guests(&drain)).await;
        self.ready().await;
        for node in self.nodes().list(&Default::default()).await.unwrap() {
            self.guarded(node.metadata.name.as_deref().unwrap()).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hundred_servers_leave_a_cordoned_node_within_a_minute_and_then_its_guard_may_go() {
    let world = World::from_names(&["node-0", "node-1"]).await;
    let counter = Counter::default();
    let _controller = start(counter.of(&world.management.client));
    world.guests(json!({})).await;
    world.drains_are("NoneCordoned").await;
    world.put_servers("node-0", 100);
    world.nova().set_live_migration(Duration::from_secs(1));
    assert_eq!(world.evict(&world.guarded("node-0").await).await, 429);

    let began = tokio::time::Instant::now();
    world.cordon("node-0", true).await;
    let guard = world.guarded("node-0").await;
    world.drains_are("Draining").await;
    assert_eq!(world.evict(&guard).await, 429);
    let (status, reason) = world.service("node-0").unwrap();
    assert_eq!(status, "disabled");
    assert!(reason.starts_with("ferrostack "), "{reason}");
    world.drained("node-0").await;
    let took = began.elapsed();
    assert!(took < MINUTE, "{took:?}");
    assert_eq!(
        (world.servers_on("node-0"), world.servers_on("node-1")),
        (0, 100)
    );
    assert_eq!(world.migrations(), vec!["completed"; 100]);
    let message = world.drains_are("Drained").await;
    assert_eq!(message, "node-0 has no server");
    world.ready().await;

    // A node that is cordoned and empty is looked at once a minute, by three lists; accounts every five minutes.
    tokio::time::sleep(MINUTE).await;
    let before = counter.besides_watches();
    tokio::time::sleep(MINUTE * 10).await;
    let more = counter.besides_watches() - before;
    assert!(more <= 50, "{:#?}", counter.all());
    assert_eq!(world.guard("node-0").await, None);

    world.cordon("node-0", false).await;
    world.drains_are("NoneCordoned").await;
    world.guarded("node-0").await;
    assert_eq!(world.service("node-0").unwrap().0, "enabled");
    assert_eq!(world.servers_on("node-1"), 100, "nobody moves them back");
    tokio::time::sleep(MINUTE).await;
    let before = counter.besides_watches();
    tokio::time::sleep(MINUTE * 4).await;
    // The look at the accounts, which comes every five minutes, may be among them.
    let more = counter.besides_watches() - before;
    assert!(more <= 8, "{:#?}", counter.all());
}

#[tokio::test(start_paused = true)]
async fn servers_that_cannot_move_are_told_with_the_reason_and_hold_the_guard() {
    let world = World::from_names(&["node-0", "node-1"]).await;
    let _controller = world.controller();
    world.guests(json!({})).await;
    world.put_servers("node-0", 2);
    let stopped = world.nova().put_server("stopped", "node-0").unwrap();
    let path = format!("/v2.1/servers/{stopped}/action");
    world
        .programs
        .compute("POST", &path, &json!({"os-stop": null}));
    world
        .nova()
        .fail_migrations("web-1", "Migration pre-check error: CPU does not match", 99);
    world.cordon("node-0", true).await;
    // Three attempts, with a rest after each.
    tokio::time::sleep(MINUTE * 4).await;
    let message = eventually("both are told", || async {
        let message = world.drains_are("ServersCannotMove").await;
        let all = ["web-1", "stopped", "3 of 3 attempts"];
        let is_complete = all.iter().all(|it| message.contains(it));
        is_complete.then_some(message.clone()).ok_or(message)
    })
    .await;
    assert!(
        message.contains("flavor m1.small): Migration pre-check error: CPU does not match"),
        "{message}"
    );
    assert!(
        message.contains("SHUTOFF: only running servers are migrated"),
        "{message}"
    );
    assert_eq!(world.servers_on("node-0"), 2);
    assert_eq!(world.evict(&world.guarded("node-0").await).await, 429);
    world.ready().await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_somebody_has_disabled_is_drained_and_stays_disabled() {
    let world = World::from_names(&["node-0", "node-1"]).await;
    let _controller = world.controller();
    world.guests(json!({})).await;
    world.put_servers("node-0", 3);
    let (_, answer) = world
        .programs
        .compute("GET", "/v2.1/os-services?host=node-0", &Value::Null)
        .unwrap();
    let path = format!(
        "/v2.1/os-services/{}",
        answer["services"][0]["id"].as_str().unwrap()
    );
    let body = json!({"status": "disabled", "disabled_reason": "broken fan"});
    assert_eq!(world.programs.compute("PUT", &path, &body).unwrap().0, 200);
    world.cordon("node-0", true).await;
    world.drained("node-0").await;
    world.cordon("node-0", false).await;
    world.drains_are("NoneCordoned").await;
    world.guarded("node-0").await;
    let expected = ("disabled".to_owned(), "broken fan".to_owned());
    assert_eq!(world.service("node-0"), Some(expected));
}

#[tokio::test(start_paused = true)]
async fn in_mode_wait_servers_stay_until_somebody_moves_them_and_in_mode_ignore_nothing_is_guarded()
{
    let world = World::from_names(&["node-0", "node-1"]).await;
    let _controller = world.controller();
    world.guests(json!({"mode": "Wait"})).await;
    world.put_servers("node-0", 1);
    world.cordon("node-0", true).await;
    world.drains_are("WaitingForServers").await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.servers_on("node-0"), 1);
    assert_eq!(world.service("node-0").unwrap().0, "disabled");

    let drain = json!({"compute": {"drain": {"mode": "Ignore"}}});
    world.changed(json!({"spec": drain})).await;
    eventually("no guard, and the service enabled", || async {
        let budgets = world.list("policy", BUDGET).await.len();
        let (status, _) = world.service("node-0").unwrap();
        let guard = world.guard("node-1").await;
        let is_done = budgets == 0 && status == "enabled" && guard.is_none();
        is_done
            .then_some(())
            .ok_or(format!("{budgets} {status} {guard:?}"))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn killed_at_every_write_a_node_is_drained_and_serves_again() {
    let world = World::from_names(&["node-0", "node-1"]).await;
    let controller = world.controller();
    world.guests(json!({"atOnce": 2})).await;
    drop(controller);
    world.put_servers("node-0", 5);
    world.cordon("node-0", true).await;
    let drained = || async {
        world.drains_are("Drained").await;
        world.opened("node-0").await;
    };
    let kills = killed_at_every(1, |fuse| world.controller_with(fuse), drained).await;
    // Since when, the service, five migrations, the budget, and the status some times.
    assert!(kills >= 8, "{kills}");
    assert_eq!(
        (world.servers_on("node-0"), world.servers_on("node-1")),
        (0, 5)
    );
    assert_eq!(
        world.migrations(),
        vec!["completed"; 5],
        "nothing is moved twice"
    );
    world.drained("node-0").await;

    world.cordon("node-0", false).await;
    let serves = || async {
        world.drains_are("NoneCordoned").await;
        world.guarded("node-0").await;
        let budget = world.budget("node-0").await.unwrap();
        assert_eq!(budget["spec"]["minAvailable"], 1);
    };
    let kills = killed_at_every(1, |fuse| world.controller_with(fuse), serves).await;
    assert!(kills >= 3, "{kills}");
    assert_eq!(world.service("node-0").unwrap().0, "enabled");
}

#[tokio::test(start_paused = true)]
async fn a_node_to_which_servers_are_on_their_way_is_held_until_they_have_come_and_gone() {
    let world = World::from_names(&["node-0", "node-1", "node-2"]).await;
    // Nova's clock goes on with the time of the test, and so does that of the cordon.
    let clock = clock_from(Timestamp::now());
    let _controller = world.scheduled(&clock, None);
    world.guests(json!({"timeout": "2h"})).await;
    world.put_servers("node-0", 4);
    world.nova().set_live_migration(MINUTE * 30);
    // With node-2 out of service all of them go to node-1.
    world.cordon("node-2", true).await;
    world.drained("node-2").await;
    world.cordon("node-0", true).await;
    eventually("four migrations", || async {
        let all = world.migrations();
        (all.len() == 4).then_some(()).ok_or(format!("{all:?}"))
    })
    .await;
    world.nova().set_live_migration(Duration::from_secs(1));
    world.cordon("node-2", false).await;
    // The migrations do not change before the end.
    tokio::time::sleep(MINUTE).await;
    world.cordon("node-1", true).await;
    let guard = world.guarded("node-1").await;
    eventually("the message", || async {
        let message = world.drains_are("Draining").await;
        let expected = "node-1 has no server, and 4 are on the way to it";
        message.contains(expected).then_some(()).ok_or(message)
    })
    .await;
    assert_eq!(world.servers_on("node-1"), 0);
    assert_eq!(world.evict(&guard).await, 429);
    tokio::time::sleep(MINUTE * 30).await;
    world.drained("node-0").await;
    world.drained("node-1").await;
    assert_eq!(world.servers_on("node-2"), 4);
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_build_had_begun_before_the_cordon_holds_the_guard() {
    let world = World::from_names(&["node-0", "node-1"]).await;
    let _controller = world.controller();
    world.guests(json!({})).await;
    world.cordon("node-0", true).await;
    world.drains_are("Drained").await;
    let guard = world.guarded("node-0").await;
    assert_eq!(world.evict(&guard).await, 429);
    // Nova tells the host of a server once the host has begun to build it.
    world.put_servers("node-0", 1);
    world.drains_are("Draining").await;
    assert_eq!(world.evict(&guard).await, 429);
    world.drained("node-0").await;
    let there = ["node-0", "node-1"].map(|it| world.servers_on(it));
    assert_eq!(there, [0, 1]);
}

#[tokio::test(start_paused = true)]
async fn of_a_node_that_is_gone_nothing_is_left_once_its_servers_are_away() {
    let world = World::from_names(&["node-0", "node-1"]).await;
    let controller = world.controller();
    world.guests(json!({})).await;
    world.put_servers("node-0", 2);
    world.faults.node_is_removed("node-0", true);
    world
        .nodes()
        .delete("node-0", &DeleteParams::default())
        .await
        .unwrap();
    let message = world.drains_are("NodeGone").await;
    let message = match message.contains("nova-compute") {
        false => message,
        // Its Pod has not ended yet.
        true => {
            tokio::time::sleep(MINUTE).await;
            world.drains_are("NodeGone").await
        }
    };
    assert!(
        message.contains("web-0 (") && message.contains("web-1 ("),
        "{message}"
    );
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.servers_on("node-0"), 2, "nobody has said so");
    drop(controller);

    let drain = json!({"compute": {"drain": {"evacuate": true}}});
    world.changed(json!({"spec": drain})).await;
    let gone = || async {
        world.drains_are("NoneCordoned").await;
    };
    let kills = killed_at_every(1, |fuse| world.controller_with(fuse), gone).await;
    assert!(kills >= 5, "{kills}");
    assert_eq!(world.servers_on("node-1"), 2);
    assert_eq!(world.service("node-0"), None);
    assert_eq!(world.budget("node-0").await, None);
    let (_, agents) = world
        .programs
        .network("GET", "/v2.0/agents", &Value::Null)
        .unwrap();
    let agents = agents["agents"].as_array().unwrap();
    assert!(agents.iter().all(|it| it["host"] == "node-1"), "{agents:?}");
    assert!(!agents.is_empty());
}

#[tokio::test(start_paused = true)]
async fn with_the_cloud_its_guards_go() {
    let world = World::from_names(&["node-0", "node-1"]).await;
    let _controller = world.controller();
    world.guests(json!({})).await;
    world.delete(true).await;
    world.management.gone::<OpenStack>(CLOUD).await;
    assert_eq!(world.list("policy", BUDGET).await, Vec::<Value>::new());
    eventually("no guard", || async {
        let guards = [world.guard("node-0").await, world.guard("node-1").await];
        guards
            .iter()
            .all(Option::is_none)
            .then_some(())
            .ok_or(format!("{guards:?}"))
    })
    .await;
}
