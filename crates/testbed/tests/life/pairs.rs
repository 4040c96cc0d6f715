//! Machines that fail in pairs and are replaced by their health checks.

use api::core::v1beta2::{Machine, MachineHealthCheck};
use api::kube::ResourceExt;
use serde_json::{Value, json};
use testbed::eventually;

use crate::steps::{Life, Wanted, names};
use crate::watcher::Limits;
use crate::world::{Kills, World};

const CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane";

fn check(name: &str, operator: &str) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineHealthCheck",
        "metadata": {"name": name},
        "spec": {
            "clusterName": "demo",
            "selector": {"matchExpressions": [{"key": CONTROL_PLANE, "operator": operator}]},
            "checks": {"unhealthyNodeConditions": [
                {"type": "Ready", "status": "Unknown", "timeoutSeconds": 1},
                {"type": "Ready", "status": "False", "timeoutSeconds": 1},
            ]},
            "remediation": {"triggerIf": {"unhealthyLessThanOrEqualTo": "100%"}},
        },
    })
}

/// Cluster of 3 + 3 machines with health checks.
async fn checked() -> Life {
    let wanted = Wanted {
        control_plane: 3,
        workers: 3,
        version: "v1.34.2",
        template: "first",
    };
    let mut life = Life::begin(World::open(Kills::None).await, wanted).await;
    let checks = [("control-plane", "Exists"), ("workers", "DoesNotExist")];
    life.world
        .apply(checks.map(|(name, operator)| check(name, operator)))
        .await;
    life.until(async |world: &World| {
        eventually("health checks that count", || async {
            let checks = world.list::<MachineHealthCheck>().await;
            let counts = checks
                .iter()
                .map(|it| it.status.as_ref().and_then(|it| it.current_healthy))
                .collect::<Vec<_>>();
            match counts[..] == [Some(3), Some(3)] {
                true => Ok(()),
                false => Err(format!("{counts:?}")),
            }
        })
        .await;
    })
    .await;
    life
}

/// How far the replacement of a machine is.
fn progress(machine: &Machine) -> String {
    let conditions = machine.conditions().iter();
    let reported = conditions.map(|it| format!("{}={} {}", it.type_, it.status, it.message));
    let reported: Vec<_> = reported.collect();
    format!("{}: {}", machine.name_any(), reported.join("; "))
}

/// Failure of a machine.
#[derive(Clone, Copy, Debug)]
enum Failure {
    /// The server is switched off.
    Off,
    /// The kubelet dies, while the server, and etcd on it, keep running.
    Kubelet,
}

/// Lets `victims` fail, and waits until others are in their place.
async fn replaced(life: &mut Life, step: &str, victims: Vec<Machine>, failure: Failure) {
    // Unhealthy workers are replaced one beside the other, a control plane machine after it is gone.
    life.allow(Limits {
        control_plane: 4,
        workers: 4,
        quorum: true,
    });
    for victim in &victims {
        let (path, body) = match failure {
            Failure::Off => ("action", json!({"os-stop": null})),
            Failure::Kubelet => (
                "metadata",
                json!({"metadata": {"simulator:guest": "kubelet-dies"}}),
            ),
        };
        life.world.ask_for(victim, path, body).await;
    }
    let victims = names(&victims);
    life.until(async |world: &World| {
        eventually(step, || async {
            let mut machines = world.list::<Machine>().await;
            machines.retain(|machine| victims.contains(&machine.name_any()));
            match machines.is_empty() {
                true => Ok(()),
                false => Err(machines.iter().map(progress).collect::<Vec<_>>().join("\n")),
            }
        })
        .await;
    })
    .await;
    life.settled(step).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn machines_that_fail_in_pairs_are_replaced_and_so_is_that_of_the_leader_of_etcd() {
    let mut life = checked().await;
    let workers = life.world.machines(false).await;
    let pair = workers[..2].to_vec();
    replaced(&mut life, "two workers", pair, Failure::Off).await;

    let worker = life.world.machines(false).await.remove(0);
    let plane = life.world.machines(true).await.remove(0);
    let pair = vec![worker, plane];
    let step = "a worker and a control plane machine";
    replaced(&mut life, step, pair, Failure::Off).await;

    let etcds = life.world.guests.etcds().await;
    let leader = etcds[0].members().into_iter().find(|it| it.leads).unwrap();
    let mut planes = life.world.machines(true).await;
    planes.retain(|machine| {
        let id = machine.spec.provider_id.as_deref().unwrap_or_default();
        id.ends_with(&leader.machine)
    });
    assert_eq!(planes.len(), 1, "{leader:?}");
    let step = "the kubelet of etcd's leader";
    replaced(&mut life, step, planes, Failure::Kubelet).await;
    let leads = etcds[0].members().into_iter().find(|it| it.leads).unwrap();
    assert_ne!(leads.name, leader.name);
    life.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_control_plane_machine_that_never_initializes_is_replaced() {
    let world = World::open(Kills::None).await;
    world.guest_fault("demo-", "never-joins", 1).await;
    let mut first = check("control-plane", "Exists");
    first["spec"]["checks"] = json!({"unhealthyMachineConditions": [
        {"type": "NodeReady", "status": "Unknown", "timeoutSeconds": 8},
    ]});
    world.create(first).await;
    let wanted = Wanted {
        control_plane: 1,
        workers: 1,
        version: "v1.34.2",
        template: "first",
    };
    let life = Life::begin(world, wanted).await;
    let cloud = life.world.cloud.world();
    let mut servers = cloud.borrow().instances.clone().into_iter();
    let faulty = servers.any(|it| it.metadata.contains_key("simulator:guest"));
    assert!(!faulty, "the machine that never joined is gone");
    life.end().await;
}
