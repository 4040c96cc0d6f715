use super::*;
use crate::read;

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
    let documents = read("f", text).unwrap();
    documents.into_iter().map(|it| it.value).collect()
}

#[test]
fn what_is_known_is_converted_and_the_rest_stays_as_it_is() {
    let converted = converted("f.yaml", OLD, "v1beta2").unwrap();
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
        [
            "f.yaml:17: DockerCluster d stays as it is: there is no conversion of its kind to v1beta2"
        ]
    );
}

#[test]
fn what_was_converted_and_converted_back_is_what_it_was() {
    let there = converted("f", OLD, "v1beta2").unwrap();
    let back = converted("f", &there.text, "v1beta1").unwrap();
    let again = converted("f", &back.text, "v1beta2").unwrap();
    assert_eq!(documents(&again.text), documents(&there.text));
    // Nothing is to be done twice.
    assert_eq!(
        converted("f", &there.text, "v1beta2").unwrap().text,
        there.text
    );
}

#[test]
fn the_objects_of_a_list_are_converted_within_it() {
    let text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: cluster.x-k8s.io/v1beta1\n  kind: MachineSet\n  metadata: {name: a}\n  spec: {clusterName: a, template: {spec: {clusterName: a}}}\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: c}\n";
    let converted = converted("f", text, "v1beta2").unwrap();
    let value: Value = serde_saphyr::from_str(&converted.text).unwrap();
    assert_eq!(value["kind"], "List");
    assert_eq!(value["items"][0]["apiVersion"], "cluster.x-k8s.io/v1beta2");
    assert_eq!(value["items"][1]["kind"], "ConfigMap");
}

#[test]
fn what_cannot_be_converted_is_named_with_its_place() {
    let text = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n---\napiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: a}\nspec: 3\n";
    let error = converted("f.yaml", text, "v1beta2").unwrap_err();
    let error = format!("{:#}", anyhow::Error::from(error));
    assert!(
        error.starts_with("f.yaml:5: Cluster a: Cluster in "),
        "{error}"
    );
    let error = converted("f.yaml", "a: [", "v1beta2")
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("f.yaml:1: malformed YAML: "), "{error}");
}

#[test]
fn comments_and_order_of_a_converted_object_stay() {
    let converted = converted("f.yaml", OLD, "v1beta2").unwrap();
    assert!(
        converted
            .text
            .starts_with("# The cluster.\napiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata:\n  name: a\nspec:\n  infrastructureRef:\n    kind: OpenStackCluster\n    name: a\n"),
        "{}",
        converted.text
    );
}

#[test]
fn fields_without_effect_are_named_with_the_place_of_the_object() {
    let text = "apiVersion: infrastructure.cluster.x-k8s.io/v1alpha7\nkind: OpenStackMachine\nmetadata: {name: m, namespace: ns}\nspec: {flavor: m1, floatingIP: 192.0.2.1}\n";
    let there = converted("f.yaml", text, "v1beta2").unwrap();
    assert_eq!(there.notes.len(), 1);
    assert!(
        there.notes[0].starts_with(
            "f.yaml:1: OpenStackMachine ns/m: spec.floatingIP of v1alpha7 has no effect"
        ),
        "{:?}",
        there.notes
    );
    let back = converted("f.yaml", &there.text, "v1alpha7").unwrap();
    assert_eq!(documents(&back.text), documents(text));
}
