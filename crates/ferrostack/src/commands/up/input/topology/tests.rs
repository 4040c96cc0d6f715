use status::snapshot::Kind;

use super::*;
use crate::tests::item;

fn cluster(deployments: &Value) -> Item {
    item(
        Kind::Cluster,
        json!({
            "metadata": {"name": "demo", "namespace": "default"},
            "spec": {"topology": {
                "classRef": {"name": "dev-test"}, "version": "v1.34.2", "controlPlane": {"replicas": 1},
                "workers": {"machineDeployments": deployments},
            }},
        }),
    )
}

fn one() -> Value {
    json!([{"class": "default-worker", "name": "md-0", "replicas": 2}])
}

fn options(planes: u32, workers: u32, version: &str) -> ClusterOptions {
    ClusterOptions {
        control_plane_machine_count: Some(planes),
        worker_machine_count: Some(workers),
        kubernetes_version: Some(version.to_owned()),
        ..ClusterOptions::default()
    }
}

#[test]
fn a_cluster_of_a_class_is_changed_in_its_topology() {
    let cluster = cluster(&one());
    assert!(is_managed(&cluster));
    let found = changes(&options(1, 2, "v1.34.2"), &cluster, "kubectl").unwrap();
    assert_eq!(found, Vec::new());
    let found = changes(&options(3, 4, "v1.35.0"), &cluster, "kubectl").unwrap();
    let patches: Vec<(&Value, &str)> = found
        .iter()
        .map(|it| (&it.patch["spec"]["topology"], it.what.as_str()))
        .collect();
    assert_eq!(
        patches,
        [
            (&json!({"version": "v1.35.0"}), "v1.34.2 to v1.35.0"),
            (
                &json!({"controlPlane": {"replicas": 3}}),
                "1 to 3 control plane machines"
            ),
            (
                &json!({"workers": {"machineDeployments": [{"class": "default-worker", "name": "md-0", "replicas": 4}]}}),
                "2 to 4 workers"
            ),
        ]
    );
    assert!(found.iter().all(|it| it.kind == Kind::Cluster));
}

#[test]
fn several_kinds_of_workers_are_not_scaled_by_one_number() {
    let mut two = one();
    two.as_array_mut()
        .unwrap()
        .push(json!({"class": "default-worker", "name": "md-1"}));
    let error = changes(&options(1, 5, "v1.34.2"), &cluster(&two), "kubectl").unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("has 2 MachineDeployments")
            && error.ends_with("kubectl -n default edit cluster demo"),
        "{error}"
    );
    let error = changes(&options(1, 5, "v1.34.2"), &cluster(&json!([])), "kubectl");
    assert!(error.unwrap_err().to_string().contains("has no workers"));
}

#[test]
fn a_class_that_exists_is_left_out_with_its_templates() {
    let text = "apiVersion: cluster.x-k8s.io/v1beta2\nkind: ClusterClass\nmetadata: {name: a}\n\
                spec: {infrastructure: {templateRef: {kind: T, name: t}}, workers: {machineDeployments: [{bootstrap: {templateRef: {kind: T, name: u}}}]}}\n\
                ---\napiVersion: x/v1\nkind: T\nmetadata: {name: t}\n\
                ---\napiVersion: x/v1\nkind: T\nmetadata: {name: u}\n\
                ---\napiVersion: x/v1\nkind: T\nmetadata: {name: other}\n";
    let documents = manifest::read("f", text).unwrap();
    let mut all = documents.clone();
    leave_out(&mut all, &["another".to_owned()]);
    assert_eq!(all.len(), documents.len());
    leave_out(&mut all, &["a".to_owned()]);
    let names: Vec<&str> = all
        .iter()
        .map(|it| it.text(&["metadata", "name"]))
        .collect();
    assert_eq!(names, ["other"]);
}
