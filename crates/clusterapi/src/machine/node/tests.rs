use api::k8s_openapi::api::core::v1::{NodeSpec, Taint};

use super::taints::UNINITIALIZED;
use super::*;

fn strings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn machine(labels: &[(&str, &str)]) -> Machine {
    let mut machine = Machine::new("m", Default::default());
    machine.metadata.labels = Some(strings(labels));
    machine
}

fn cluster() -> Cluster {
    let mut cluster = Cluster::new("demo", Default::default());
    cluster.metadata.namespace = Some("default".to_owned());
    cluster
}

fn taint(key: &str) -> Taint {
    Taint {
        key: key.to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Taint::default()
    }
}

#[test]
fn labels_of_three_domains_are_synced() {
    let cases = [
        ("node-role.kubernetes.io/worker", true),
        ("sub.node-role.kubernetes.io/worker", false),
        ("node-restriction.kubernetes.io/a", true),
        ("x.node-restriction.kubernetes.io/a", true),
        ("node.cluster.x-k8s.io/a", true),
        ("y.node.cluster.x-k8s.io/a", true),
        ("othernode.cluster.x-k8s.io/a", false),
        ("plain", false),
    ];
    for (label, expected) in cases {
        assert_eq!(is_synced(label), expected, "{label}");
    }
}

#[test]
fn a_new_node_gets_labels_and_annotations_and_loses_its_taint() {
    let mut node = Node::default();
    node.metadata.resource_version = Some("7".to_owned());
    let taints = vec![taint(UNINITIALIZED), taint("keep")];
    node.spec = Some(NodeSpec {
        taints: Some(taints),
        ..NodeSpec::default()
    });
    let machine = machine(&[("node-role.kubernetes.io/worker", ""), ("plain", "x")]);
    let patch = change(&node, &machine, &cluster(), &Synced::default()).unwrap();
    assert_eq!(patch["metadata"]["resourceVersion"], "7");
    assert_eq!(
        patch["metadata"]["labels"],
        json!({ "node-role.kubernetes.io/worker": "" })
    );
    let annotations = &patch["metadata"]["annotations"];
    assert_eq!(annotations["cluster.x-k8s.io/machine"], "m");
    assert_eq!(
        annotations[LABELS_FROM_MACHINE],
        "node-role.kubernetes.io/worker"
    );
    assert_eq!(patch["spec"]["taints"].as_array().unwrap().len(), 1);
}

#[test]
fn a_label_that_the_machine_lost_is_taken_back_and_then_nothing_is_left_to_do() {
    let mut node = Node::default();
    node.metadata.labels = Some(strings(&[("node.cluster.x-k8s.io/a", "1"), ("own", "2")]));
    node.metadata.annotations = Some(strings(&[
        ("cluster.x-k8s.io/cluster-name", "demo"),
        ("cluster.x-k8s.io/cluster-namespace", "default"),
        ("cluster.x-k8s.io/machine", "m"),
        (LABELS_FROM_MACHINE, "node.cluster.x-k8s.io/a"),
        (taints::TAINTS_FROM_MACHINE, ""),
    ]));
    let patch = change(&node, &machine(&[]), &cluster(), &Synced::default()).unwrap();
    assert_eq!(
        patch["metadata"]["labels"],
        json!({ "node.cluster.x-k8s.io/a": null })
    );
    assert_eq!(
        change(
            &node,
            &machine(&[("node.cluster.x-k8s.io/a", "1")]),
            &cluster(),
            &Synced::default(),
        ),
        None
    );
}

fn synced() -> Synced {
    let patterns = |texts: &[&str]| texts.iter().map(|text| Regex::new(text).unwrap()).collect();
    Synced {
        labels: patterns(&["^example[.]org/", "rack"]),
        annotations: patterns(&["^notes[.]example[.]org/", "cluster-name"]),
    }
}

#[test]
fn further_labels_and_annotations_are_handed_on_by_pattern_and_taken_back() {
    let mut machine = machine(&[
        ("example.org/zone", "a"),
        ("example.org.evil/zone", "b"),
        ("my-rack-number", "7"),
        ("plain", "x"),
    ]);
    machine.metadata.annotations = Some(strings(&[
        ("notes.example.org/owner", "me"),
        ("other.example.org/owner", "you"),
        // A machine has no say in the records about itself.
        ("cluster.x-k8s.io/cluster-name", "another"),
    ]));
    let mut node = Node::default();
    let patch = change(&node, &machine, &cluster(), &synced()).unwrap();
    assert_eq!(
        patch["metadata"]["labels"],
        json!({ "example.org/zone": "a", "my-rack-number": "7" })
    );
    let annotations = &patch["metadata"]["annotations"];
    assert_eq!(annotations["notes.example.org/owner"], "me");
    assert_eq!(annotations["cluster.x-k8s.io/cluster-name"], "demo");
    assert_eq!(annotations.get("other.example.org/owner"), None);
    assert_eq!(
        annotations[ANNOTATIONS_FROM_MACHINE],
        "cluster.x-k8s.io/cluster-name,notes.example.org/owner"
    );

    // A complete Node needs no change; without patterns, and with a machine that lost them, the annotations go.
    let merged = |part: &str| serde_json::from_value(patch["metadata"][part].clone()).unwrap();
    (node.metadata.labels, node.metadata.annotations) = (merged("labels"), merged("annotations"));
    assert_eq!(change(&node, &machine, &cluster(), &synced()), None);
    for (machine, synced) in [
        (machine.clone(), Synced::default()),
        (self::machine(&[]), synced()),
    ] {
        let patch = change(&node, &machine, &cluster(), &synced).unwrap();
        let gone = json!({ "example.org/zone": null, "my-rack-number": null });
        assert_eq!(patch["metadata"]["labels"], gone);
        let annotations = patch["metadata"]["annotations"].as_object().unwrap();
        assert_eq!(annotations["notes.example.org/owner"], Value::Null);
        assert_eq!(annotations[ANNOTATIONS_FROM_MACHINE], "");
        assert!(!annotations.contains_key("cluster.x-k8s.io/cluster-name"));
    }
}
