use serde_json::{Value, json};

use super::*;

fn rule(name: &str, spec: &Value) -> MachineDrainRule {
    serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap()
}

fn machine(labels: &Value) -> Machine {
    let mut machine = Machine::new("m", Default::default());
    machine.metadata.labels = serde_json::from_value(labels.clone()).unwrap();
    machine
}

fn cluster(labels: &Value) -> Cluster {
    let mut cluster = Cluster::new("demo", Default::default());
    cluster.metadata.labels = serde_json::from_value(labels.clone()).unwrap();
    cluster
}

fn pod(namespace: &str, labels: &Value) -> Pod {
    let metadata = json!({ "name": "p", "namespace": namespace, "labels": labels });
    serde_json::from_value(json!({ "metadata": metadata })).unwrap()
}

fn by(field: &str, value: &str) -> Value {
    json!({ field: { "matchLabels": { "app": value } } })
}

#[test]
fn a_rule_applies_to_the_machines_that_one_of_its_selectors_matches() {
    let skip = json!({ "behavior": "Skip" });
    let both = json!({
        "selector": { "matchLabels": { "app": "db" } },
        "clusterSelector": { "matchLabels": { "stage": "prod" } },
    });
    let cases = [
        (json!(null), json!({}), true),
        (json!([{ "selector": {} }]), json!({}), true),
        (json!([by("selector", "db")]), json!({ "app": "db" }), true),
        (
            json!([by("selector", "db")]),
            json!({ "app": "web" }),
            false,
        ),
        (
            json!([by("selector", "db"), by("selector", "web")]),
            json!({ "app": "web" }),
            true,
        ),
        (json!([both]), json!({ "app": "db" }), true),
        (json!([both]), json!({ "app": "web" }), false),
        (
            json!([by("clusterSelector", "db")]),
            json!({ "app": "db" }),
            false,
        ),
    ];
    for (machines, labels, expected) in cases {
        let rules = vec![rule("a", &json!({ "drain": skip, "machines": machines }))];
        let cluster = cluster(&json!({ "stage": "prod" }));
        let found = Rules::select(rules, &machine(&labels), Some(&cluster));
        assert_eq!(!found.0.is_empty(), expected, "{machines} {labels}");
    }
}

#[test]
fn without_the_cluster_no_label_of_it_matches() {
    let spec = json!({ "drain": { "behavior": "Skip" }, "machines": [by("clusterSelector", "a")] });
    let found = Rules::select(vec![rule("a", &spec)], &machine(&json!({})), None);
    assert!(found.0.is_empty());
}

#[test]
fn the_first_rule_by_name_that_matches_a_pod_counts() {
    let rules = vec![
        rule(
            "z-rest",
            &json!({ "drain": { "behavior": "Drain", "order": 9 } }),
        ),
        rule(
            "b-db",
            &json!({ "drain": { "behavior": "Drain", "order": 5 }, "pods": [by("selector", "db")] }),
        ),
        rule(
            "a-jobs",
            &json!({ "drain": { "behavior": "WaitCompleted" }, "pods": [
                by("selector", "job"),
                { "selector": {}, "namespaceSelector": { "matchLabels": { "kind": "batch" } } },
            ]}),
        ),
        rule(
            "c-kube",
            &json!({ "drain": { "behavior": "Skip" }, "pods": [{
                "selector": { "matchLabels": { "app": "dns" } },
                "namespaceSelector": { "matchLabels": { "kind": "system" } },
            }]}),
        ),
    ];
    let rules = Rules::select(rules, &machine(&json!({})), None);
    let namespaces: BTreeMap<String, Labels> = serde_json::from_value(json!({
        "kube-system": { "kind": "system" }, "jobs": { "kind": "batch" },
    }))
    .unwrap();
    let cases = [
        ("default", json!({ "app": "db" }), Treatment::Drain(5)),
        ("default", json!({ "app": "job" }), Treatment::WaitCompleted),
        ("jobs", json!({ "app": "db" }), Treatment::WaitCompleted),
        ("kube-system", json!({ "app": "dns" }), Treatment::Skip),
        ("default", json!({ "app": "dns" }), Treatment::Drain(9)),
        ("unknown", json!({}), Treatment::Drain(9)),
    ];
    for (namespace, labels, expected) in cases {
        let found = rules.treatment(&pod(namespace, &labels), &namespaces);
        assert_eq!(found, expected, "{namespace} {labels}");
    }
    let none = Rules::default().treatment(&pod("default", &json!({})), &namespaces);
    assert_eq!(none, Treatment::Drain(0));
}
