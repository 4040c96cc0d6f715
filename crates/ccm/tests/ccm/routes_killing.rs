//! Routes after kills in the middle of any write, and after requests that fail in every way.

use serde_json::{Value, json};
use simulator::cloud::Options as CloudOptions;
use testbed::{Fuse, eventually};

use crate::faults::{classes, inject, left};
use crate::routes::{Routed, atomic};

/// Two nodes; then one of them is replaced and the other one gets a new range; then none.
const PHASES: [&[(&str, &str)]; 3] = [
    &[("a", "10.244.1.0/24"), ("b", "10.244.2.0/24")],
    &[("b", "10.244.3.0/24"), ("c", "10.244.1.0/24")],
    &[],
];

/// The servers that nodes have.
struct Servers(Vec<(String, String)>);

impl Servers {
    async fn create(routed: &Routed) -> Self {
        let mut all = Vec::new();
        for name in ["a", "b", "c"] {
            all.push((name.to_owned(), routed.world.server(name).await));
        }
        Self(all)
    }

    fn id(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(known, _)| known == name);
        &found.unwrap().1
    }

    /// Replaces the Nodes by those of a phase.
    async fn begin(&self, routed: &Routed, phase: &[(&str, &str)]) {
        let nodes = routed.world.nodes();
        for node in nodes.list(&Default::default()).await.unwrap() {
            let name = node.metadata.name.unwrap();
            nodes.delete(&name, &Default::default()).await.unwrap();
        }
        for (name, cidr) in phase {
            routed.node(name, self.id(name), &[cidr]).await;
        }
    }

    async fn wanted(&self, routed: &Routed, phase: &[(&str, &str)]) -> Vec<String> {
        let all = routed
            .world
            .request("GET", "/network/v2.0/ports", Value::Null)
            .await;
        let ports = all["ports"].as_array().unwrap();
        let address = |name: &str| {
            let mut ports = ports.iter();
            let port = ports
                .find(|port| port["device_id"] == self.id(name))
                .unwrap();
            port["fixed_ips"][0]["ip_address"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        let phase = phase.iter();
        phase
            .map(|(name, cidr)| format!("{cidr} via {}", address(name)))
            .collect()
    }
}

#[tokio::test(start_paused = true)]
async fn killed_at_any_write_to_the_cloud_the_routes_end_the_same() {
    for options in [CloudOptions::default(), atomic()] {
        let mut routed = Routed::open(options).await;
        let servers = Servers::create(&routed).await;
        for nth in 1.. {
            let mut was_cut = false;
            for phase in PHASES {
                let wanted = servers.wanted(&routed, phase).await;
                servers.begin(&routed, phase).await;
                routed.world.run();
                let writes = routed.world.cut_at(nth);
                tokio::select! {
                    () = routed.settled(&wanted) => {}
                    () = async {
                        while !writes.reached() {
                            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                        }
                    } => {}
                }
                routed.world.kill().await;
                routed.world.cloud.on_write(|_| {});
                // Asked last: the last write is visible before it is counted.
                was_cut |= writes.reached();
                routed.world.run();
                routed.settled(&wanted).await;
                routed.world.kill().await;
            }
            if !was_cut {
                assert!(nth > 3, "only {nth} writes");
                break;
            }
        }
    }
}

/// Here the writes to the API server are cut off, again and again: the record and the conditions.
#[tokio::test(start_paused = true)]
async fn killed_at_every_nth_write_to_the_cluster_the_routes_end_the_same() {
    let mut routed = Routed::open(atomic()).await;
    let servers = Servers::create(&routed).await;
    let client = routed.world.cluster.client.clone();
    for nth in [1, 2, 3] {
        for phase in PHASES {
            servers.begin(&routed, phase).await;
            let wanted = servers.wanted(&routed, phase).await;
            for kills in 0.. {
                assert!(kills < 100, "no end with kills at every write {nth}");
                let fuse = Fuse::at(nth);
                routed.world.client = Some(fuse.protect(&client));
                routed.world.run();
                let killed = tokio::select! {
                    () = fuse.blown() => true,
                    () = routed.settled(&wanted) => false,
                };
                routed.world.kill().await;
                if !killed {
                    break;
                }
            }
            routed.settled(&wanted).await;
        }
    }
}

/// Failing requests for routes in a phase: lists, changes with their reads, and removals.
fn requests(phase: usize, is_atomic: bool) -> Vec<(&'static str, &'static str)> {
    let routers = match is_atomic {
        true => [
            ("PUT", "/v2.0/routers/{id}/remove_extraroutes"),
            ("PUT", "/v2.0/routers/{id}/add_extraroutes"),
        ],
        false => [("GET", "/v2.0/routers/{id}"), ("PUT", "/v2.0/routers/{id}")],
    };
    match phase {
        0 => vec![
            ("GET", "/v2.0/ports"),
            ("GET", "/v2.0/routers"),
            ("GET", "/v2.0/subnets"),
            ("GET", "/v2.0/extensions"),
        ],
        1 => vec![
            ("GET", "/v2.0/ports/{id}"),
            ("PUT", "/v2.0/ports/{id}"),
            routers[0],
            routers[1],
        ],
        _ => vec![("PUT", "/v2.0/ports/{id}"), routers[0]],
    }
}

#[tokio::test(start_paused = true)]
async fn every_request_for_routes_fails_once_in_every_way_and_the_end_is_the_same() {
    for is_atomic in [false, true] {
        let options = if is_atomic {
            atomic()
        } else {
            CloudOptions::default()
        };
        let mut routed = Routed::open(options).await;
        let servers = Servers::create(&routed).await;
        let mut all = classes();
        // The revision has changed since it was read.
        all.push(json!({"status": 412}));
        for class in all {
            for (index, phase) in PHASES.into_iter().enumerate() {
                servers.begin(&routed, phase).await;
                let wanted = servers.wanted(&routed, phase).await;
                for (method, route) in requests(index, is_atomic) {
                    inject(&routed.world, "network", method, route, &class).await;
                }
                routed.world.run();
                // Requests of the test would take part.
                eventually("the faults", || async {
                    let left = left(&routed.world).await;
                    left.is_empty()
                        .then_some(())
                        .ok_or_else(|| format!("{class}: {left:?}"))
                })
                .await;
                routed.settled(&wanted).await;
                routed.world.kill().await;
            }
        }
    }
}
