use api::core::v1beta2::Topology;
use serde_json::{Value, json};

use super::{DEFER_UPGRADE, Decisions, Deployment, HOLD_UPGRADE_SEQUENCE, Plane, decide, verdict};

fn topology(version: &str, deployments: &[(&str, Value)]) -> Topology {
    let deployments: Vec<_> = deployments
        .iter()
        .map(|(name, annotations)| {
            json!({ "class": "c", "name": name, "metadata": { "annotations": annotations } })
        })
        .collect();
    serde_json::from_value(json!({
        "classRef": { "name": "c" }, "version": version, "workers": { "machineDeployments": deployments },
    }))
    .unwrap()
}

fn two(version: &str) -> Topology {
    topology(version, &[("a", json!({})), ("b", json!({}))])
}

fn plane(version: &str, running: Option<&str>) -> Plane {
    Plane {
        kind: "KubeadmControlPlane".to_owned(),
        version: version.to_owned(),
        running: running.map(str::to_owned),
    }
}

fn deployment(name: &str, version: &str, upgrading: bool) -> Deployment {
    Deployment {
        topology_name: name.to_owned(),
        name: format!("demo-{name}"),
        version: version.to_owned(),
        upgrading,
    }
}

fn versions(decisions: &Decisions) -> (&str, Vec<&str>) {
    let workers = decisions.deployments.values().map(String::as_str);
    (&decisions.control_plane, workers.collect())
}

fn decided(topology: &Topology, plane: &Plane, deployments: &[Deployment]) -> Decisions {
    decide(topology, None, Some(plane), deployments, 1).unwrap()
}

#[test]
fn a_new_cluster_gets_everything_at_once() {
    let decisions = decide(&two("v1.34.1"), None, None, &[], 1).unwrap();
    assert_eq!(
        versions(&decisions),
        ("v1.34.1", vec!["v1.34.1", "v1.34.1"])
    );
    assert!(!decisions.in_progress && decisions.not_created.is_empty());
    let verdict_of_new = verdict(&decisions, &two("v1.34.1"), None);
    assert_eq!(
        (verdict_of_new.status, verdict_of_new.reason.as_str()),
        (true.into(), "ReconcileSucceeded")
    );
}

/// Rows of observed state and expected decision.
#[test]
fn the_control_plane_goes_first_and_then_one_deployment_after_the_other() {
    let (old, new) = ("v1.34.1", "v1.35.0");
    let rows = [
        // Observed: spec and status of the control plane, a, b. Decided: control plane, a, b.
        ((old, old), (old, false), (old, false), (new, old, old)),
        ((new, old), (old, false), (old, false), (new, old, old)),
        ((new, new), (old, false), (old, false), (new, new, old)),
        ((new, new), (new, true), (old, false), (new, new, old)),
        ((new, new), (new, false), (old, false), (new, new, new)),
        ((new, new), (new, false), (new, true), (new, new, new)),
        ((new, new), (new, false), (new, false), (new, new, new)),
        // Still upgrading workers to the former version.
        ((old, old), (old, true), (old, false), (old, old, old)),
    ];
    for ((spec, running), a, b, (want, want_a, want_b)) in rows {
        let deployments = [deployment("a", a.0, a.1), deployment("b", b.0, b.1)];
        let decisions = decided(&two(new), &plane(spec, Some(running)), &deployments);
        assert_eq!(
            versions(&decisions),
            (want, vec![want_a, want_b]),
            "{spec} {running} {a:?} {b:?}"
        );
        let done = (spec, running, a, b) == (new, new, (new, false), (new, false));
        let verdict = verdict(&decisions, &two(new), Some(&plane(spec, Some(running))));
        let reason = if done {
            "ReconcileSucceeded"
        } else {
            "ClusterUpgrading"
        };
        assert_eq!(
            verdict.reason, reason,
            "{spec} {running} {a:?} {b:?}: {}",
            verdict.message
        );
    }
}

#[test]
fn as_many_deployments_are_upgraded_at_a_time_as_the_cluster_says() {
    let deployments = [
        deployment("a", "v1.34.1", false),
        deployment("b", "v1.34.1", false),
    ];
    let plane = plane("v1.35.0", Some("v1.35.0"));
    let decisions = decide(&two("v1.35.0"), None, Some(&plane), &deployments, 2).unwrap();
    assert_eq!(
        versions(&decisions),
        ("v1.35.0", vec!["v1.35.0", "v1.35.0"])
    );
}

#[test]
fn annotations_defer_upgrades() {
    let deployments = [
        deployment("a", "v1.34.1", false),
        deployment("b", "v1.34.1", false),
    ];
    let plane = plane("v1.35.0", Some("v1.35.0"));
    let rows = [
        (DEFER_UPGRADE, vec!["v1.34.1", "v1.35.0"], vec!["demo-a"]),
        (
            HOLD_UPGRADE_SEQUENCE,
            vec!["v1.34.1", "v1.34.1"],
            vec!["demo-a", "demo-b"],
        ),
    ];
    for (annotation, workers, deferred) in rows {
        let topology = topology(
            "v1.35.0",
            &[("a", json!({ annotation: "" })), ("b", json!({}))],
        );
        let decisions = decided(&topology, &plane, &deployments);
        assert_eq!(versions(&decisions).1, workers, "{annotation}");
        assert_eq!(decisions.deferred, deferred);
    }
    let waiting = topology(
        "v1.35.0",
        &[
            ("a", json!({ HOLD_UPGRADE_SEQUENCE: "" })),
            ("b", json!({})),
        ],
    );
    let decisions = decided(&waiting, &plane, &deployments);
    let verdict = verdict(&decisions, &waiting, Some(&plane));
    assert_eq!(verdict.reason, "MachineDeploymentsUpgradeDeferred");
    assert_eq!(
        verdict.message,
        "Cluster is upgrading to v1.35.0\n  * MachineDeployments demo-a, demo-b upgrade to version v1.35.0 deferred"
    );
}

#[test]
fn a_control_plane_that_is_not_there_yet_keeps_its_version_and_new_workers_wait() {
    let decisions = decided(
        &two("v1.35.0"),
        &plane("v1.34.1", None),
        &[deployment("a", "v1.34.1", false)],
    );
    assert_eq!(decisions.control_plane, "v1.34.1");
    assert!(decisions.control_plane_waits);
    assert_eq!(
        (decisions.waiting, decisions.not_created),
        (vec!["demo-a".to_owned()], vec!["b".to_owned()])
    );
    let same = decided(
        &two("v1.34.1"),
        &plane("v1.34.1", None),
        &[deployment("a", "v1.34.1", false)],
    );
    let verdict = verdict(&same, &two("v1.34.1"), None);
    assert_eq!(verdict.reason, "MachineDeploymentsCreatePending");
}

#[test]
fn several_minor_releases_are_passed_one_by_one() {
    let listed: Vec<String> = [
        "v1.30.0", "v1.31.0", "v1.31.4", "v1.32.1", "v1.33.0", "v1.34.0",
    ]
    .map(str::to_owned)
    .into();
    let topology = two("v1.34.0");
    let at = |spec: &str, worker: &str| {
        let deployments = [
            deployment("a", worker, false),
            deployment("b", worker, false),
        ];
        decide(
            &topology,
            Some(&listed),
            Some(&plane(spec, Some(spec))),
            &deployments,
            1,
        )
        .unwrap()
    };
    assert_eq!(at("v1.30.0", "v1.30.0").control_plane, "v1.31.4");
    assert_eq!(at("v1.31.4", "v1.30.0").control_plane, "v1.32.1");
    assert_eq!(at("v1.32.1", "v1.30.0").control_plane, "v1.33.0");
    // Kubelets of v1.30 cannot be older: they are upgraded before the control plane goes on.
    let decisions = at("v1.33.0", "v1.30.0");
    assert_eq!(
        versions(&decisions),
        ("v1.33.0", vec!["v1.33.0", "v1.30.0"])
    );
    assert!(decisions.control_plane_waits);
    assert_eq!(at("v1.33.0", "v1.33.0").control_plane, "v1.34.0");
}

#[test]
fn versions_that_cannot_be_reached_are_errors() {
    let known = [deployment("a", "v1.34.1", false)];
    for (wanted, words) in [
        ("v1.36.0", "no version of v1.35 is known"),
        ("v1.33.0", "cannot go back from v1.34.1 to v1.33.0"),
    ] {
        let error = decide(
            &two(wanted),
            None,
            Some(&plane("v1.34.1", Some("v1.34.1"))),
            &known,
            1,
        )
        .unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}
