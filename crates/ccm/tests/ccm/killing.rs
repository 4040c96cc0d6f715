//! After a kill in the middle of any write and a restart, the result is the same.

use std::collections::BTreeMap;

use api::k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use serde_json::{Value, json};
use testbed::{Fuse, eventually};

use crate::services::world;
use crate::tls::{certificate, the_certificate};
use crate::world::{World, ip, ports_of};

/// Expected state of a Service in the cloud: listeners with their settings, members and monitors.
fn shape(
    listeners: &[Value],
    pools: &[Value],
    monitors: &[Value],
    members: &[String],
) -> Vec<String> {
    let mut all: Vec<String> = listeners
        .iter()
        .map(|l| {
            format!(
                "{} {} {}",
                l["protocol"], l["protocol_port"], l["allowed_cidrs"]
            )
        })
        .collect();
    all.extend(
        pools
            .iter()
            .map(|p| format!("{} {}", p["protocol"], p["lb_algorithm"])),
    );
    all.extend(
        monitors
            .iter()
            .map(|m| format!("{} {}", m["type"], m["delay"])),
    );
    all.extend(members.iter().cloned());
    all.sort();
    all
}

async fn seen(world: &World) -> Vec<String> {
    shape(
        &world.octavia("listeners").await,
        &world.octavia("pools").await,
        &world.octavia("healthmonitors").await,
        &world
            .members()
            .await
            .iter()
            .map(|name| node_of(name))
            .collect::<Vec<_>>(),
    )
}

/// Node of a member, a part of the name of a member created alone.
fn node_of(name: &str) -> String {
    let alone = name.strip_prefix("member_");
    let node = alone.and_then(|rest| rest.split('_').next());
    node.unwrap_or(name).to_owned()
}

/// Creates the resources of the phases in the cloud.
pub(crate) async fn prepare(world: &World) {
    world.share_external_network().await;
    certificate(world).await;
}

/// The phases of a Service, with what is there at the end of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Created,
    Changed,
    /// The settings of pools and monitors have other values.
    Adjusted,
    /// Without monitors.
    Bare,
    /// TLS ends at one port, and the other one is HTTP.
    Secured,
    Deleted,
}

impl Phase {
    pub(crate) const ALL: [Self; 6] = [
        Self::Created,
        Self::Changed,
        Self::Adjusted,
        Self::Bare,
        Self::Secured,
        Self::Deleted,
    ];

    pub(crate) async fn begin(self, world: &World) {
        match self {
            Self::Created => {
                let fields = json!({"metadata": {"annotations": {
                    "loadbalancer.openstack.org/floating-subnet": "public*",
                }}});
                world
                    .service("web", &[("TCP", 80), ("TCP", 443)], fields)
                    .await;
            }
            Self::Changed => {
                let change = json!({
                    "metadata": {"annotations": {
                        "loadbalancer.openstack.org/lb-method": "LEAST_CONNECTIONS",
                        "loadbalancer.openstack.org/enable-health-monitor": "true",
                        "loadbalancer.openstack.org/proxy-protocol": "true",
                    }},
                    "spec": {"ports": ports_of(&[("TCP", 443), ("TCP", 8080)]),
                        "loadBalancerSourceRanges": ["10.0.0.0/8"]},
                });
                world.cluster.merge::<Service>("web", change).await;
            }
            Self::Adjusted => {
                let change = json!({"metadata": {"annotations": {
                    "loadbalancer.openstack.org/lb-method": "SOURCE_IP",
                    "loadbalancer.openstack.org/health-monitor-delay": "7",
                }}});
                world.cluster.merge::<Service>("web", change).await;
            }
            Self::Bare => {
                let change = json!({"metadata": {"annotations": {
                    "loadbalancer.openstack.org/enable-health-monitor": null,
                    "loadbalancer.openstack.org/health-monitor-delay": null,
                }}});
                world.cluster.merge::<Service>("web", change).await;
            }
            Self::Secured => {
                let change = json!({"metadata": {"annotations": {
                    "loadbalancer.openstack.org/default-tls-container-ref": the_certificate(world).await,
                    "loadbalancer.openstack.org/port-protocols": "443=TERMINATED_HTTPS,8080=HTTP",
                    "loadbalancer.openstack.org/x-forwarded-for": "true",
                    "loadbalancer.openstack.org/proxy-protocol": null,
                }}});
                world.cluster.merge::<Service>("web", change).await;
            }
            Self::Deleted => world.cluster.delete::<Service>("web").await,
        }
    }

    fn wanted(self) -> Vec<String> {
        let everyone = json!(["0.0.0.0/0"]);
        let some = json!(["10.0.0.0/8"]);
        let of = |protocol: &str, port: u16, cidrs: &Value| json!({"protocol": protocol, "protocol_port": port, "allowed_cidrs": cidrs});
        let listener = |port: u16, cidrs: &Value| of("TCP", port, cidrs);
        let pool =
            |protocol: &str, method: &str| json!({"protocol": protocol, "lb_algorithm": method});
        let members = vec!["worker-1".to_owned(); 2];
        let (tcp, proxy) = (
            pool("TCP", "ROUND_ROBIN"),
            pool("PROXY", "LEAST_CONNECTIONS"),
        );
        let (http, adjusted) = (pool("HTTP", "SOURCE_IP"), pool("PROXY", "SOURCE_IP"));
        let monitor = json!({"type": "TCP", "delay": 5});
        match self {
            Self::Created => shape(
                &[listener(80, &everyone), listener(443, &everyone)],
                &[tcp.clone(), tcp],
                &[],
                &members,
            ),
            Self::Changed => shape(
                &[listener(443, &some), listener(8080, &some)],
                &[proxy.clone(), proxy],
                &[monitor.clone(), monitor],
                &members,
            ),
            Self::Adjusted | Self::Bare => {
                let monitor = json!({"type": "TCP", "delay": 7});
                let monitors = if self == Self::Bare { 0 } else { 2 };
                shape(
                    &[listener(443, &some), listener(8080, &some)],
                    &[adjusted.clone(), adjusted],
                    &vec![monitor; monitors],
                    &members,
                )
            }
            Self::Secured => shape(
                &[of("TERMINATED_HTTPS", 443, &some), of("HTTP", 8080, &some)],
                &[http.clone(), http],
                &[],
                &members,
            ),
            Self::Deleted => Vec::new(),
        }
    }

    /// Missing part of the phase, until it is complete.
    async fn problem(self, world: &World) -> Option<String> {
        let service = world.cluster.api::<Service>().get_opt("web").await.unwrap();
        match (self, service) {
            (Self::Deleted, None) => {}
            (Self::Deleted, Some(_)) => return Some("the Service exists".to_owned()),
            (_, service) => {
                let Some(service) = service else {
                    return Some("there is no Service".to_owned());
                };
                let recorded = service
                    .annotations()
                    .contains_key("loadbalancer.openstack.org/load-balancer-address");
                if ip(&service).is_empty() || !recorded {
                    return Some("the Service has no address".to_owned());
                }
            }
        }
        let seen = seen(world).await;
        (seen != self.wanted()).then(|| format!("{seen:?}"))
    }

    pub(crate) async fn complete(self, world: &World) {
        eventually(&format!("{self:?}"), || async {
            self.problem(world).await.map_or(Ok(()), Err)
        })
        .await;
    }
}

/// Runs until the connection is cut in the `nth` write; returns false if the phase is complete before.
async fn run_until_cut(world: &mut World, nth: u64, phase: Phase) -> bool {
    world.run();
    let writes = world.cut_at(nth);
    phase.begin(world).await;
    let world_ref = &*world;
    let was_cut = eventually("the cut", || async {
        if writes.reached() {
            return Ok(true);
        }
        match phase.problem(world_ref).await {
            None => Ok(false),
            Some(problem) => Err(problem),
        }
    })
    .await;
    world.kill().await;
    world.cloud.on_write(|_| {});
    // Asked again: the last write is visible before it is counted.
    was_cut || writes.reached()
}

#[tokio::test(start_paused = true)]
async fn killed_at_any_write_to_the_cloud_it_ends_the_same() {
    ends_the_same(world(&["worker-1"]).await, &Phase::ALL, 8).await;
}

/// Goes through the phases again and again, killed at the first write of each, at the second one, and so on, which are
/// more than `least`.
pub(crate) async fn ends_the_same(mut world: World, phases: &[Phase], least: u64) {
    prepare(&world).await;
    world.kill().await;
    let before = world.cloud.resources();
    let mut ends: BTreeMap<usize, _> = BTreeMap::new();
    for nth in 1.. {
        let mut was_cut = false;
        for (index, phase) in phases.iter().copied().enumerate() {
            was_cut |= run_until_cut(&mut world, nth, phase).await;
            world.run();
            phase.complete(&world).await;
            world.kill().await;
            let resources = world.cloud.resources();
            let end = ends.entry(index).or_insert_with(|| resources.clone());
            assert_eq!(resources, *end, "{phase:?}, killed at write {nth}");
        }
        assert_eq!(world.cloud.resources(), before, "killed at write {nth}");
        if !was_cut {
            assert!(nth > least, "only {nth} writes");
            break;
        }
    }
}

/// Here the writes to the API server are cut off, again and again.
#[tokio::test(start_paused = true)]
async fn killed_at_every_nth_write_to_the_cluster_it_ends_the_same() {
    let mut world = world(&["worker-1"]).await;
    prepare(&world).await;
    world.kill().await;
    let before = world.cloud.resources();
    let client = world.cluster.client.clone();
    for nth in [1, 2, 3, 5] {
        for phase in Phase::ALL {
            phase.begin(&world).await;
            let mut kills = 0;
            loop {
                let fuse = Fuse::at(nth);
                world.client = Some(fuse.protect(&client));
                world.run();
                let killed = tokio::select! {
                    () = fuse.blown() => true,
                    () = phase.complete(&world) => false,
                };
                world.kill().await;
                if !killed {
                    break;
                }
                kills += 1;
                assert!(
                    kills < 100,
                    "{phase:?}, no end with kills at every write {nth}"
                );
            }
            phase.complete(&world).await;
        }
        assert_eq!(
            world.cloud.resources(),
            before,
            "killed at every write {nth}"
        );
    }
}
