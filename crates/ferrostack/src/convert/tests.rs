use std::path::Path;

use super::*;

const OLD: &str = "\
# The cluster.
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata:
  name: a
spec:
  infrastructureRef:
    apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
    kind: OpenStackCluster
    name: a
---
# Stays, with this comment.
apiVersion: v1
kind: Secret
metadata: {name: s}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: DockerCluster
metadata: {name: d}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: OpenStackCluster
metadata: {name: a}
spec:
  apiServerLoadBalancer: {enabled: true}
";

fn documents(text: &str) -> Vec<Value> {
    let documents = manifest::read("f", text).unwrap();
    documents.into_iter().map(|it| it.value).collect()
}

#[test]
fn what_is_known_is_converted_and_the_rest_stays_as_it_is() {
    let converted = all("f.yaml", OLD, "v1beta2").unwrap();
    let found = documents(&converted.text);
    assert_eq!(found[0]["apiVersion"], "cluster.x-k8s.io/v1beta2");
    let reference = &found[0]["spec"]["infrastructureRef"];
    assert_eq!(reference["apiGroup"], "infrastructure.cluster.x-k8s.io");
    assert!(reference.get("apiVersion").is_none());
    assert!(
        converted
            .text
            .contains("---\n# Stays, with this comment.\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\n---\n"),
        "{}",
        converted.text
    );
    assert_eq!(
        found[2]["apiVersion"],
        "infrastructure.cluster.x-k8s.io/v1beta1"
    );
    let balancer = &found[3]["spec"]["apiServer"]["managedLoadBalancer"];
    assert_eq!(balancer["enabled"], true);
    assert_eq!(
        converted.notes,
        ["f.yaml:17: DockerCluster d stays as it is: there is no conversion of its kind"]
    );
}

#[test]
fn what_was_converted_and_converted_back_is_what_it_was() {
    let there = all("f", OLD, "v1beta2").unwrap();
    let back = all("f", &there.text, "v1beta1").unwrap();
    let again = all("f", &back.text, "v1beta2").unwrap();
    assert_eq!(documents(&again.text), documents(&there.text));
    // Nothing is to be done twice.
    assert_eq!(all("f", &there.text, "v1beta2").unwrap().text, there.text);
}

#[test]
fn the_objects_of_a_list_are_converted_within_it() {
    let text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: cluster.x-k8s.io/v1beta1\n  kind: MachineSet\n  metadata: {name: a}\n  spec: {clusterName: a, template: {spec: {clusterName: a}}}\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: c}\n";
    let converted = all("f", text, "v1beta2").unwrap();
    let value: Value = serde_saphyr::from_str(&converted.text).unwrap();
    assert_eq!(value["kind"], "List");
    assert_eq!(value["items"][0]["apiVersion"], "cluster.x-k8s.io/v1beta2");
    assert_eq!(value["items"][1]["kind"], "ConfigMap");
}

#[test]
fn what_cannot_be_converted_is_named_with_its_place() {
    let text = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n---\napiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: a}\nspec: 3\n";
    let error = format!("{:#}", all("f.yaml", text, "v1beta2").unwrap_err());
    assert!(
        error.starts_with("f.yaml:5: Cluster a: Cluster in "),
        "{error}"
    );
    let error = all("f.yaml", "a: [", "v1beta2").unwrap_err().to_string();
    assert!(error.starts_with("f.yaml:1: malformed YAML: "), "{error}");
}

/// Beside the workspace, where it is present.
#[test]
fn released_templates_in_v1beta1_become_manifests_in_v1beta2() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/upstream/templates");
    let file = path.join("capo-v0.14.0/cluster-template-capi-v1beta1.yaml");
    let Ok(text) = std::fs::read_to_string(&file) else {
        skipped::because(format_args!("no released templates at {}", path.display()));
        return;
    };
    let text = text
        .replace("_COUNT}", "}")
        .replace("${CONTROL_PLANE_MACHINE}", "1")
        .replace("${WORKER_MACHINE}", "1");
    let converted = all("f", &text, "v1beta2").unwrap();
    assert_eq!(converted.notes, [""; 0]);
    for document in documents(&converted.text) {
        let version = document["apiVersion"].as_str().unwrap();
        assert!(
            version == "v1" || version.ends_with("/v1beta2"),
            "{version}"
        );
    }
}
