//! MachineHealthChecks: machines whose Nodes fail are replaced by their MachineSet.

use std::time::Duration;

use api::conditions;
use api::core::v1beta2::{Machine, MachineHealthCheck};
use api::k8s_openapi::api::core::v1::Node;
use api::kube::ResourceExt;
use api::kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use testbed::{Fuse, fake_definition};

use crate::events::reported_events;
use crate::world::{NO_UPGRADE, NS, World, eventually, uids};

/// The controllers are killed at every nth write, for each of these n.
const WRITES: [usize; 4] = [1, 2, 3, 5];

fn check(remediation: Value) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineHealthCheck",
        "metadata": { "name": "workers", "namespace": NS },
        "spec": {
            "clusterName": "demo",
            "selector": { "matchLabels": { "pool": "demo-md" } },
            "checks": { "unhealthyNodeConditions": [
                { "type": "Ready", "status": "Unknown", "timeoutSeconds": 1 },
            ]},
            "remediation": remediation,
        },
    })
}

fn any() -> Value {
    json!({ "triggerIf": { "unhealthyLessThanOrEqualTo": "100%" } })
}

/// The kubelet of a machine dies: the node lifecycle controller of its cluster marks the Node.
async fn silence(world: &World, machine: &Machine) {
    ready(world, machine, "Unknown").await;
}

async fn ready(world: &World, machine: &Machine, status: &str) {
    let nodes: Api<Node> = Api::all(world.workload.clone());
    let conditions = json!({ "status": { "conditions": [{
        "type": "Ready", "status": status, "reason": "NodeStatusUnknown", "message": "-",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]}});
    let name = machine.node_name().unwrap();
    let params = PatchParams::default();
    nodes
        .patch_status(name, &params, &Patch::Merge(conditions))
        .await
        .unwrap();
}

async fn replaced(world: &World, victim: &str) {
    eventually(&format!("{victim} to be replaced"), || async {
        let now = uids(&world.list::<Machine>().await);
        if now.contains_key(victim) {
            Err(format!("{now:?}"))
        } else {
            Ok(())
        }
    })
    .await;
    world.settled(2).await;
}

async fn health(world: &World, what: &str, holds: impl Fn(&MachineHealthCheck) -> bool) {
    eventually(what, || async {
        let check = world
            .api::<MachineHealthCheck>()
            .get("workers")
            .await
            .unwrap();
        if holds(&check) {
            Ok(())
        } else {
            Err(format!("{:?}", check.status))
        }
    })
    .await;
}

fn healthy(check: &MachineHealthCheck, count: i32) -> bool {
    let status = check.status.clone().unwrap_or_default();
    status.current_healthy == Some(count) && status.expected_machines == Some(2)
}

async fn marked(world: &World, machine: &str, type_: &str, status: &str) {
    eventually(&format!("{type_} {status}"), || async {
        let machine = world.api::<Machine>().get(machine).await.unwrap();
        let found = conditions::find(machine.conditions(), type_);
        if found.is_some_and(|found| found.status == status) {
            Ok(())
        } else {
            Err(format!("{:?}", machine.conditions()))
        }
    })
    .await;
}

async fn two_workers(remediation: Value) -> (World, Vec<Machine>) {
    let world = World::start().await;
    world.cluster(2).await;
    world.settled(2).await;
    world.create(check(remediation)).await;
    health(&world, "two healthy machines", |check| healthy(check, 2)).await;
    let machines = world.list::<Machine>().await;
    (world, machines)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn machines_are_replaced_whose_kubelet_dies_or_whose_node_is_deleted() {
    let (world, machines) = two_workers(any()).await;
    for machine in &machines {
        marked(&world, &machine.name_any(), "HealthCheckSucceeded", "True").await;
    }
    let owner = world
        .api::<MachineHealthCheck>()
        .get("workers")
        .await
        .unwrap();
    assert_eq!(owner.owner_references()[0].kind, "Cluster");
    silence(&world, &machines[0]).await;
    replaced(&world, &machines[0].name_any()).await;
    assert!(
        world
            .api::<Machine>()
            .get_opt(&machines[1].name_any())
            .await
            .unwrap()
            .is_some()
    );
    let nodes: Api<Node> = Api::all(world.workload.clone());
    let second = machines[1].node_name().unwrap();
    nodes
        .delete(second, &DeleteParams::default())
        .await
        .unwrap();
    replaced(&world, &machines[1].name_any()).await;
    health(&world, "two healthy machines", |check| healthy(check, 2)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_is_marked_by_a_user_is_replaced_and_an_exempt_one_is_not() {
    let (world, machines) = two_workers(any()).await;
    let (marked_one, exempt) = (machines[0].name_any(), machines[1].name_any());
    let annotation = |name: &str| json!({ "metadata": { "annotations": { name: "" } } });
    let skip = annotation("cluster.x-k8s.io/skip-remediation");
    world.merge::<Machine>(&exempt, skip).await;
    health(&world, "one machine to be exempt", |check| {
        let status = check.status.clone().unwrap_or_default();
        status.expected_machines == Some(1)
    })
    .await;
    silence(&world, &machines[1]).await;
    let remediate = annotation("cluster.x-k8s.io/remediate-machine");
    world.merge::<Machine>(&marked_one, remediate).await;
    eventually("the marked machine to be replaced", || async {
        let now = uids(&world.list::<Machine>().await);
        if now.len() == 2 && !now.contains_key(&marked_one) && now.contains_key(&exempt) {
            Ok(())
        } else {
            Err(format!("{now:?}"))
        }
    })
    .await;
    let exempt = world.api::<Machine>().get(&exempt).await.unwrap();
    let succeeded = conditions::find(exempt.conditions(), "HealthCheckSucceeded");
    assert!(succeeded.is_none_or(|found| found.status == "True"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_replaced_while_too_many_machines_are_unhealthy() {
    let limit = json!({ "triggerIf": { "unhealthyLessThanOrEqualTo": 1 } });
    let (world, machines) = two_workers(limit).await;
    world.kill().await;
    for machine in &machines {
        silence(&world, machine).await;
    }
    world.run();
    health(&world, "the refusal", |check| {
        let status = check.status.clone().unwrap_or_default();
        let found = conditions::find(&status.conditions, "RemediationAllowed").cloned();
        found.is_some_and(|found| {
            found.status == "False"
                && found.reason == "TooManyUnhealthy"
                && found.message.contains("unhealthyLessThanOrEqualTo: 1")
        }) && status.remediations_allowed == Some(0)
    })
    .await;
    for machine in &machines {
        let name = machine.name_any();
        marked(&world, &name, "HealthCheckSucceeded", "False").await;
        let machine = world.api::<Machine>().get(&name).await.unwrap();
        assert!(!machine.is_deleting());
        assert!(conditions::find(machine.conditions(), "OwnerRemediated").is_none());
    }
    // One recovers, so that the other may be replaced.
    ready(&world, &machines[1], "True").await;
    replaced(&world, &machines[0].name_any()).await;
    marked(
        &world,
        &machines[1].name_any(),
        "HealthCheckSucceeded",
        "True",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_is_not_replaced_reads_which_preflight_check_failed() {
    let (world, machines) = two_workers(any()).await;
    let plane = world.fake("FakeControlPlane");
    let params = PatchParams::default();
    let upgrade = json!({
        "metadata": { "annotations": { NO_UPGRADE: "" } }, "spec": { "version": "v1.34.2" },
    });
    plane
        .patch("demo", &params, &Patch::Merge(upgrade))
        .await
        .unwrap();
    silence(&world, &machines[0]).await;
    let victim = machines[0].name_any();
    let why = "* Waiting for FakeControlPlane demo, which is being upgraded from v1.34.1 to v1.34.2 \
               (\"ControlPlaneIsStable\" preflight check failed)";
    eventually("the reason", || async {
        let machine = world.api::<Machine>().get(&victim).await.unwrap();
        match conditions::find(machine.conditions(), "OwnerRemediated") {
            Some(it) if it.reason == "RemediationDeferred" && it.message == why => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    let found = reported_events(&world, &[("Machine RemediationDeferred", 1)]).await;
    let note = &found["Machine RemediationDeferred"][0];
    assert!(note.contains("ControlPlaneIsStable"), "{note}");
    assert_eq!(world.list::<Machine>().await.len(), 2);
    let upgraded = json!({ "metadata": { "annotations": { NO_UPGRADE: null } } });
    plane
        .patch("demo", &params, &Patch::Merge(upgraded))
        .await
        .unwrap();
    replaced(&world, &victim).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_template_another_provider_is_asked() {
    let group = "infrastructure.cluster.x-k8s.io";
    let remediation = json!({ "templateRef": {
        "apiVersion": format!("{group}/v1"), "kind": "FakeRepairTemplate", "name": "fix",
    }});
    let (world, machines) = two_workers(remediation).await;
    let name = machines[0].name_any();
    silence(&world, &machines[0]).await;
    // The provider is not installed yet.
    marked(&world, &name, "ExternallyRemediated", "False").await;
    let machine = world.api::<Machine>().get(&name).await.unwrap();
    let found = conditions::find(machine.conditions(), "ExternallyRemediated").unwrap();
    assert_eq!(found.reason, "RemediationRequestCreationFailed");
    for kind in ["FakeRepair", "FakeRepairTemplate"] {
        let definition = fake_definition(group, kind);
        let definitions = Api::all(world.client.clone());
        definitions
            .create(&Default::default(), &definition)
            .await
            .unwrap();
    }
    world
        .create(json!({
            "apiVersion": format!("{group}/v1"), "kind": "FakeRepairTemplate",
            "metadata": { "name": "fix", "namespace": NS },
            "spec": { "template": { "spec": { "how": "reboot" } } },
        }))
        .await;
    let fixes = testbed::fake(&world.client, group, "FakeRepair");
    let touch = json!({ "metadata": { "labels": { "look": "again" } } });
    world.merge::<MachineHealthCheck>("workers", touch).await;
    eventually("the request", || async {
        let fix = fixes.get_opt(&name).await.unwrap();
        let owners = fix.map(|fix| fix.owner_references().to_vec());
        match owners.as_deref() {
            Some([owner]) if owner.kind == "Machine" && owner.name == name => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    let machine = world.api::<Machine>().get(&name).await.unwrap();
    assert!(conditions::find(machine.conditions(), "OwnerRemediated").is_none());
    assert!(!machine.is_deleting());
    // The other provider has restarted the machine.
    ready(&world, &machines[0], "True").await;
    eventually("the request to be withdrawn", || async {
        match fixes.get_opt(&name).await.unwrap() {
            None => Ok(()),
            Some(fix) => Err(format!("{fix:?}")),
        }
    })
    .await;
    marked(&world, &name, "HealthCheckSucceeded", "True").await;
}

#[tokio::test(start_paused = true)]
async fn controllers_killed_at_every_write_replace_one_machine() {
    for nth in WRITES {
        let (world, machines) = two_workers(any()).await;
        world.kill().await;
        silence(&world, &machines[0]).await;
        let victim = machines[0].name_any();
        let kills = world
            .killed_at_every(nth, || replaced(&world, &victim))
            .await;
        assert!(
            kills > 8 / nth,
            "only {kills} kills at each write number {nth}"
        );
        let gone = world.gone.lock().clone();
        let gone = gone.iter().filter(|name| name.starts_with("FakeMachine/"));
        assert_eq!(gone.count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_check_at_rest_writes_nothing() {
    let (world, _) = two_workers(any()).await;
    // The reconciles that follow the last change.
    tokio::time::sleep(Duration::from_secs(10)).await;
    world.kill().await;
    world.stop_provider();
    let fuse = Fuse::recorder();
    let _running = world.run_with(&fuse);
    tokio::time::sleep(Duration::from_secs(1200)).await;
    assert_eq!(fuse.writes(), Vec::<String>::new());
}
