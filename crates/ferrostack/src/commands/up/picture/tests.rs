use serde_json::json;

use super::*;
use crate::tests::item;
use crate::tests::{condition, of_demo};

const QUOTA: &str = "InstanceReady: Quota exceeded for instances: Requested 1, but already used 10 of 10 instances \
    (create the server: compute POST /compute/v2.1/servers: 403)";

/// A control plane that is ready, and three workers: one ready, one waiting, one failing.
fn demo() -> Snapshot {
    let ready = |more: serde_json::Value| {
        let mut status = json!({"conditions": [
            condition("Available", "True", "Available", ""), condition("Ready", "True", "Ready", ""),
            condition("InfrastructureReady", "True", "Ready", ""), condition("ControlPlaneInitialized", "True", "R", ""),
            condition("Initialized", "True", "R", "")]});
        for (key, value) in more.as_object().cloned().unwrap_or_default() {
            status[key] = value;
        }
        status
    };
    let machine = |name: &str, owner: &str, status: serde_json::Value| {
        let spec = json!({"bootstrap": {"dataSecretName": name}});
        of_demo(
            Kind::Machine,
            name,
            owner,
            json!({"spec": spec, "status": status}),
        )
    };
    let running = json!({"phase": "Running", "nodeRef": {"name": "n"}});
    let mut cluster = ready(json!({"phase": "Provisioned"}));
    cluster["conditions"][0] = condition(
        "Available",
        "False",
        "NotAvailable",
        "* WorkersAvailable:\n  * MachineDeployments demo-md-0: 1 available replicas, at least 3 required",
    );
    let waiting = json!({"phase": "Provisioning", "conditions": [
        condition("Ready", "False", "NotReady", ""),
        condition("InfrastructureReady", "False", "WaitingForCloud",
            "InstanceReady: creating server 8d29613f-1d0e-4e2c-ad59-399dbdf1ffbf")]});
    let failing = json!({"phase": "Provisioning", "conditions": [
        condition("Ready", "False", "NotReady", ""),
        condition("InfrastructureReady", "False", "InstanceCreateFailed", QUOTA)]});
    Snapshot::from(vec![
        of_demo(Kind::Cluster, "demo", "", json!({"status": cluster})),
        of_demo(
            Kind::OpenStackCluster,
            "demo",
            "demo",
            json!({"status": ready(json!({}))}),
        ),
        of_demo(
            Kind::KubeadmControlPlane,
            "demo-control-plane",
            "demo",
            json!({"spec": {"replicas": 1}, "status": ready(json!({"replicas": 1, "readyReplicas": 1}))}),
        ),
        of_demo(
            Kind::MachineDeployment,
            "demo-md-0",
            "demo",
            json!({"spec": {"replicas": 3},
                       "status": {"replicas": 3, "readyReplicas": 1, "phase": "ScalingUp",
                                  "conditions": [condition("Available", "False", "NotAvailable", "x")]}}),
        ),
        of_demo(Kind::MachineSet, "demo-md-0-7d7pl", "demo-md-0", json!({})),
        machine(
            "demo-control-plane-blm9w",
            "demo-control-plane",
            ready(running.clone()),
        ),
        machine("demo-md-0-7d7pl-5xfmf", "demo-md-0-7d7pl", ready(running)),
        machine("demo-md-0-7d7pl-hbrhw", "demo-md-0-7d7pl", waiting),
        machine("demo-md-0-7d7pl-zzzzz", "demo-md-0-7d7pl", failing),
    ])
}

fn text(snapshot: &Snapshot, width: usize, height: usize) -> String {
    let lines = lines(snapshot, false, width, height);
    assert!(lines.len() <= height);
    assert!(lines.iter().all(|line| line.text.chars().count() <= width));
    let lines: Vec<String> = lines.into_iter().map(|line| line.text).collect();
    lines.join("\n")
}

#[test]
fn the_cause_of_a_failure_is_read_in_full_on_every_width() {
    for width in [60, 100, 160] {
        let text = text(&demo(), width, 24);
        let first: Vec<&str> = text.lines().take(2).collect();
        let cause = "quota of instances: 10 of 10 used";
        assert!(first.join(" ").contains(cause), "{width}:\n{text}");
    }
}

#[test]
fn a_long_cause_is_wrapped_below_its_cluster_while_there_is_room() {
    let mut snapshot = demo();
    let cause = "the image ubuntu-24.04-kubernetes-v1.34.2 does not exist in cloud simulated; there are: cirros, \
        debian-12, flatcar-stable, ubuntu-22.04";
    for item in &mut snapshot.items {
        let text = serde_json::to_string(&item.object).unwrap();
        let text = text.replace(
            "Quota exceeded for instances: Requested 1, but already used 10 of 10 instances",
            cause,
        );
        item.object = serde_json::from_str(&text).unwrap();
    }
    let picture = text(&snapshot, 60, 24);
    let lines: Vec<&str> = picture.lines().collect();
    assert!(lines[0].starts_with("✗ Cluster/demo"), "{picture}");
    let below: Vec<&str> = lines[1..]
        .iter()
        .take_while(|line| line.starts_with("│ "))
        .map(|line| &line["│ ".len()..])
        .collect();
    assert_eq!(below.join(" "), cause);
    // Without room for it, the rows of the objects come first.
    let picture = text(&snapshot, 60, 9);
    assert!(
        !picture.lines().any(|line| line.starts_with("│ the image")),
        "{picture}"
    );
}

#[test]
fn the_first_row_says_that_the_cloud_is_simulated() {
    let lines = lines(&demo(), true, 100, 40);
    let marked = lines
        .iter()
        .filter(|line| line.text.contains("(simulated)"));
    assert_eq!(marked.count(), 1);
    let first = lines[0].text.as_str();
    assert!(first.contains("Cluster/demo (simulated)  "), "{first}");
}

#[test]
fn a_paused_cluster_is_drawn_as_paused() {
    let cluster = json!({
        "metadata": {"name": "demo", "namespace": "default", "uid": "demo"},
        "spec": {"paused": true},
        "status": {"conditions": [{"type": "Available", "status": "True", "reason": "Available", "message": ""}]},
    });
    let snapshot = Snapshot::from(vec![item(Kind::Cluster, cluster)]);
    let lines = lines(&snapshot, false, 100, 10);
    let first = lines[0].text.as_str();
    assert!(first.starts_with("… Cluster/demo "), "{first}");
    assert!(first.contains("paused by spec.paused"), "{first}");
}

#[test]
fn on_60_columns() {
    insta::assert_snapshot!(text(&demo(), 60, 24));
}

#[test]
fn on_100_columns() {
    insta::assert_snapshot!(text(&demo(), 100, 24));
}

#[test]
fn on_160_columns() {
    insta::assert_snapshot!(text(&demo(), 160, 24));
}

#[test]
fn on_six_lines_what_fails_is_kept_and_the_rest_is_counted() {
    insta::assert_snapshot!(text(&demo(), 100, 6));
}

#[test]
fn failing_clusters_come_first_and_ready_ones_take_one_row() {
    let mut snapshot = demo();
    for name in ["another", "third"] {
        let metadata = json!({"name": name, "namespace": "prod", "uid": name, "labels": {}});
        let status = json!({"conditions": [condition("Available", "True", "A", "")], "phase": "Provisioned"});
        snapshot.items.insert(
            0,
            item(
                Kind::Cluster,
                json!({"metadata": metadata, "status": status}),
            ),
        );
    }
    let text = text(&snapshot, 100, 24);
    assert!(text.starts_with("✗ Cluster/demo (-n default)"), "{text}");
    let folded = text.lines().filter(|line| line.ends_with("0 machines"));
    assert_eq!(folded.count(), 2, "{text}");
}

#[test]
fn an_available_cluster_does_not_claim_success_over_what_fails() {
    let untrue = |type_: &str, reason: &str, message: &str| {
        json!({"phase": "Running", "nodeRef": {"name": "n"},
               "conditions": [condition(type_, "False", reason, message)]})
    };
    let deleted = "InstanceReady: The server was deleted by somebody else";
    for (kind, name, status, sign, cause) in [
        (
            Kind::Machine,
            "demo-control-plane-blm9w",
            untrue("InfrastructureReady", "InstanceDeleted", deleted),
            "✗",
            "the server was deleted by somebody else",
        ),
        (
            Kind::Machine,
            "demo-md-0-7d7pl-5xfmf",
            untrue("InfrastructureReady", "InstanceDeleted", deleted),
            "✗",
            "the server was deleted by somebody else",
        ),
        (
            Kind::OpenStackCluster,
            "demo",
            untrue("Ready", "OpenStackError", "quota of routers"),
            "✗",
            "quota of routers",
        ),
        (
            Kind::OpenStackCluster,
            "demo",
            untrue("Ready", "WaitingForCloud", "Creating load balancer x"),
            "…",
            "creating the load balancer",
        ),
    ] {
        let mut snapshot = demo();
        // All is well but for this object.
        snapshot.items.truncate(7);
        let set = |item: &mut Item, change: &dyn Fn(&mut serde_json::Value)| {
            let mut object = serde_json::to_value(&*item.object).unwrap();
            change(&mut object);
            item.object = serde_json::from_value(object).unwrap();
        };
        for item in &mut snapshot.items {
            set(item, &|object| match kind_of(object).as_str() {
                "Cluster" => object["status"]["conditions"][0]["status"] = "True".into(),
                "MachineDeployment" => {
                    object["spec"]["replicas"] = 1.into();
                    object["status"]["replicas"] = 1.into();
                    object["status"]["conditions"][0]["status"] = "True".into();
                }
                _ => {}
            });
        }
        let fine = text(&snapshot, 160, 24);
        assert!(fine.starts_with("✔ Cluster/demo"), "{fine}");
        let item = snapshot.items.iter_mut();
        let item = item
            .filter(|item| item.kind == kind)
            .find(|item| item.name() == name)
            .unwrap();
        set(item, &|object| object["status"] = status.clone());
        if kind == Kind::Machine {
            // Its owner counts one ready machine less.
            let owner = match name.contains("control-plane") {
                true => Kind::KubeadmControlPlane,
                false => Kind::MachineDeployment,
            };
            let owner = snapshot.items.iter_mut().find(|item| item.kind == owner);
            set(owner.unwrap(), &|object| {
                object["status"]["readyReplicas"] = 0.into();
            });
        }
        let picture = text(&snapshot, 160, 24);
        let first = picture.lines().next().unwrap();
        assert!(
            first.starts_with(&format!("{sign} Cluster/demo")) && first.ends_with(cause),
            "{name}:\n{picture}"
        );
    }
}

fn kind_of(object: &serde_json::Value) -> String {
    object["kind"].as_str().unwrap().to_owned()
}
