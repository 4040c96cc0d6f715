use serde_json::{Value, json};

use super::*;

fn at(text: &str) -> Timestamp {
    format!("2026-01-01T{text}Z").parse().unwrap()
}

fn condition(type_: &str, status: &str, since: &str) -> Value {
    json!({
        "type": type_, "status": status, "reason": "R", "message": "",
        "lastTransitionTime": format!("2026-01-01T{since}Z"),
    })
}

fn cluster(conditions: Vec<Value>) -> Cluster {
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": { "name": "demo" }, "spec": {}, "status": { "conditions": conditions },
    });
    serde_json::from_value(cluster).unwrap()
}

fn ready() -> Cluster {
    cluster(vec![
        condition("InfrastructureReady", "True", "00:01:00"),
        condition("ControlPlaneInitialized", "True", "00:05:00"),
    ])
}

fn machine(metadata: Value, conditions: Vec<Value>) -> Arc<Machine> {
    let mut machine = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": { "name": "m", "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": { "clusterName": "demo", "bootstrap": {},
            "infrastructureRef": { "apiGroup": "g", "kind": "K", "name": "m" } },
        "status": { "conditions": conditions },
    });
    for (name, value) in metadata.as_object().unwrap() {
        machine["metadata"][name] = value.clone();
    }
    Arc::new(serde_json::from_value(machine).unwrap())
}

fn node(conditions: Vec<Value>) -> Seen {
    let node = json!({ "metadata": { "name": "n" }, "status": { "conditions": conditions } });
    Seen::There(Arc::new(serde_json::from_value(node).unwrap()))
}

fn checks() -> HealthChecks {
    serde_json::from_value(json!({
        "nodeStartupTimeoutSeconds": 600,
        "unhealthyNodeConditions": [
            { "type": "Ready", "status": "Unknown", "timeoutSeconds": 300 },
            { "type": "Ready", "status": "False", "timeoutSeconds": 60 },
        ],
        "unhealthyMachineConditions":
            [{ "type": "Fan", "status": "False", "timeoutSeconds": 3725 }],
    }))
    .unwrap()
}

fn judge(machine: Arc<Machine>, node: Seen, cluster: &Cluster, now: &str) -> Health {
    health(&Target { machine, node }, cluster, &checks(), at(now))
}

fn unhealthy(reason: Reason, message: &str) -> Health {
    Health::Unhealthy(cause(reason, message.to_owned()))
}

fn later(seconds: u64) -> Health {
    Health::Undecided(Some(Duration::from_secs(seconds)))
}

#[test]
fn a_condition_of_the_node_counts_when_it_has_lasted() {
    let plain = || machine(json!({}), vec![]);
    let cases = [
        (
            vec![condition("Ready", "True", "00:00:00")],
            Health::Healthy,
        ),
        (vec![], Health::Healthy),
        (vec![condition("Ready", "Unknown", "00:56:00")], later(60)),
        (
            vec![condition("Ready", "Unknown", "00:55:00")],
            unhealthy(
                Reason::UnhealthyNode,
                "Condition Ready on Node is reporting status Unknown for more than 5m0s",
            ),
        ),
        (
            vec![condition("Ready", "False", "00:58:00")],
            unhealthy(
                Reason::UnhealthyNode,
                "Condition Ready on Node is reporting status False for more than 1m0s",
            ),
        ),
        (
            vec![condition("DiskPressure", "True", "00:00:00")],
            Health::Healthy,
        ),
    ];
    for (conditions, expected) in cases {
        let found = judge(plain(), node(conditions.clone()), &ready(), "01:00:00");
        assert_eq!(found, expected, "{conditions:?}");
    }
}

#[test]
fn a_condition_of_the_machine_counts_without_a_node() {
    let ill = machine(json!({}), vec![condition("Fan", "False", "00:00:00")]);
    let found = judge(ill, Seen::None, &cluster(vec![]), "02:00:00");
    let message = "Condition Fan on Machine is reporting status False for more than 1h2m5s";
    assert_eq!(found, unhealthy(Reason::UnhealthyMachine, message));
}

#[test]
fn the_time_to_start_is_counted_from_the_last_thing_that_a_machine_needs() {
    let late = || vec![condition("InfrastructureReady", "True", "00:20:00")];
    let worker = |conditions| machine(json!({}), conditions);
    let control_plane = || machine(json!({ "labels": { CONTROL_PLANE_LABEL: "" } }), vec![]);
    let startup = unhealthy(
        Reason::NodeStartupTimeout,
        "Node failed to report startup in 10m0s",
    );
    let no_control_plane = cluster(vec![condition("InfrastructureReady", "True", "00:01:00")]);
    let created = json!({ "creationTimestamp": "2026-01-01T00:30:00Z" });
    let cases = [
        // The control plane was initialized at 00:05.
        (worker(vec![]), ready(), "00:14:00", later(60)),
        (worker(vec![]), ready(), "00:15:00", startup.clone()),
        // Its infrastructure was there at 00:20.
        (worker(late()), ready(), "00:29:00", later(60)),
        (worker(late()), ready(), "00:30:00", startup.clone()),
        (machine(created, late()), ready(), "00:39:00", later(60)),
        // Workers wait for the control plane, and all wait for the infrastructure of the cluster.
        (
            worker(vec![]),
            no_control_plane.clone(),
            "09:00:00",
            Health::Undecided(None),
        ),
        (control_plane(), no_control_plane, "00:11:00", startup),
        (
            control_plane(),
            cluster(vec![]),
            "09:00:00",
            Health::Undecided(None),
        ),
    ];
    for (n, (machine, cluster, now, expected)) in cases.into_iter().enumerate() {
        assert_eq!(
            judge(machine, Seen::None, &cluster, now),
            expected,
            "case {n}"
        );
    }
    let unlimited = HealthChecks {
        node_startup_timeout_seconds: Some(0),
        ..HealthChecks::default()
    };
    let target = Target {
        machine: worker(vec![]),
        node: Seen::None,
    };
    let found = health(&target, &ready(), &unlimited, at("09:00:00"));
    assert_eq!(found, Health::Undecided(None));
}

#[test]
fn a_vanished_node_and_the_annotation_count_at_once() {
    let plain = machine(json!({}), vec![]);
    let found = judge(plain, Seen::Gone, &ready(), "00:06:00");
    assert_eq!(
        found,
        unhealthy(Reason::NodeDeleted, "Node has been deleted")
    );
    let annotations = json!({ "annotations": { REMEDIATE_MACHINE_ANNOTATION: "" } });
    let found = judge(
        machine(annotations, vec![]),
        node(vec![]),
        &ready(),
        "00:06:00",
    );
    let message = "marked for remediation via cluster.x-k8s.io/remediate-machine annotation";
    assert_eq!(found, unhealthy(Reason::HasRemediateAnnotation, message));
}

#[test]
fn a_machine_that_is_being_deleted_is_neither_healthy_nor_unhealthy() {
    let metadata = json!({ "deletionTimestamp": "2026-01-01T00:10:00Z" });
    for node in [node(vec![]), Seen::Gone] {
        let found = judge(
            machine(metadata.clone(), vec![]),
            node,
            &ready(),
            "00:11:00",
        );
        assert_eq!(found, Health::Undecided(None));
    }
}
