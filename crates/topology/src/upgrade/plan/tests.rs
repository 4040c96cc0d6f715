use serde_json::json;

use super::super::{Deployment, Plane, decide};
use super::Plan;

const LISTED: [&str; 7] = [
    "v1.30.0", "v1.31.0", "v1.31.4", "v1.32.1", "v1.33.0", "v1.34.0", "v1.35.0",
];

/// Plan of an upgrade to `wanted` of a control plane and of MachineDeployments that run these versions.
fn plan(wanted: &str, plane: &str, workers: &[&str]) -> Plan {
    let names = (0..)
        .zip(workers)
        .map(|(nth, _)| json!({ "class": "c", "name": format!("md-{nth}") }));
    let topology = serde_json::from_value(json!({
        "classRef": { "name": "c" }, "version": wanted,
        "workers": { "machineDeployments": names.collect::<Vec<_>>() },
    }))
    .unwrap();
    let listed = LISTED.map(str::to_owned);
    let plane = Plane {
        kind: "KubeadmControlPlane".to_owned(),
        version: plane.to_owned(),
        running: Some(plane.to_owned()),
    };
    let deployments: Vec<_> = (0..)
        .zip(workers)
        .map(|(nth, version)| Deployment {
            topology_name: format!("md-{nth}"),
            name: format!("demo-md-{nth}"),
            version: (*version).to_owned(),
            upgrading: false,
        })
        .collect();
    let decisions = decide(&topology, Some(&listed), Some(&plane), &deployments, 1).unwrap();
    Plan::new(&topology, Some(&listed), &decisions)
}

/// Rows of wanted version, control plane and workers, and the versions ahead of each.
#[test]
fn versions_that_are_applied_are_no_longer_in_the_plan() {
    let (old, middle, new) = ("v1.33.0", "v1.34.0", "v1.35.0");
    let none = vec![];
    let rows = [
        (old, old, vec![old, old], none.clone(), none.clone()),
        (middle, old, vec![old, old], none.clone(), vec![middle]),
        (new, old, vec![old, old], vec![new], vec![new]),
        (new, middle, vec![old, old], none.clone(), vec![new]),
        // The first one is upgraded now, the second one not yet.
        (new, new, vec![old, old], none.clone(), vec![new]),
        (new, new, vec![new, old], none.clone(), none.clone()),
        (new, old, vec![], vec![new], none.clone()),
    ];
    for (wanted, plane, workers, ahead, ahead_of_workers) in rows {
        let plan = plan(wanted, plane, &workers);
        assert_eq!(plan.control_plane, ahead, "{wanted} {plane} {workers:?}");
        assert_eq!(
            plan.workers, ahead_of_workers,
            "{wanted} {plane} {workers:?}"
        );
    }
}

#[test]
fn workers_skip_minor_releases_as_far_as_kubelets_may_be_older() {
    let start = plan("v1.35.0", "v1.30.0", &["v1.30.0"]);
    assert_eq!(
        start.control_plane,
        ["v1.32.1", "v1.33.0", "v1.34.0", "v1.35.0"]
    );
    assert_eq!(start.workers, ["v1.33.0", "v1.35.0"]);
    // Kubelets of v1.30 hold the control plane at v1.33.
    let held = plan("v1.35.0", "v1.33.0", &["v1.30.0", "v1.30.0"]);
    assert_eq!(held.control_plane, ["v1.34.0", "v1.35.0"]);
    assert_eq!(held.workers, ["v1.33.0", "v1.35.0"]);
}
