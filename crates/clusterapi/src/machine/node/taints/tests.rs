use serde_json::{Value, json};

use super::*;

/// Node with taints, and the annotation for the taints of its machine.
fn node(taints: &Value, annotation: Option<&str>) -> Node {
    let annotations = annotation.map(|names| json!({TAINTS_FROM_MACHINE: names}));
    let node = json!({"metadata": {"annotations": annotations}, "spec": {"taints": taints}});
    serde_json::from_value(node).unwrap()
}

fn machine(taints: &Value) -> Machine {
    let mut machine = Machine::new("m", Default::default());
    machine.spec.taints = serde_json::from_value(taints.clone()).unwrap();
    machine
}

fn has(key: &str, value: &str, effect: &str) -> Value {
    match value {
        "" => json!({"key": key, "effect": effect}),
        value => json!({"key": key, "value": value, "effect": effect}),
    }
}

fn asks(key: &str, value: &str, effect: &str, propagation: &str) -> Value {
    let mut taint = has(key, value, effect);
    taint["propagation"] = json!(propagation);
    taint
}

#[test]
fn taints_follow_the_machine() {
    let always = || asks("a", "1", "NoSchedule", "Always");
    let once = || asks("a", "1", "NoSchedule", "OnInitialization");
    let a = || has("a", "1", "NoSchedule");
    let foreign = || has("foreign", "", "NoExecute");
    let uninitialized = has(UNINITIALIZED, "", "NoSchedule");
    // Of the machine; of the Node, with its annotation; of the Node afterwards.
    let cases = [
        (json!([]), json!([]), None, json!([])),
        (
            json!([]),
            json!([uninitialized, foreign()]),
            None,
            json!([foreign()]),
        ),
        // Set with the first change, and again when it is removed.
        (
            json!([always()]),
            json!([foreign()]),
            None,
            json!([foreign(), a()]),
        ),
        (
            json!([always()]),
            json!([]),
            Some("a:NoSchedule"),
            json!([a()]),
        ),
        (json!([always()]), json!([]), Some(""), json!([a()])),
        // Set with the first change only.
        (json!([once()]), json!([uninitialized]), None, json!([a()])),
        (json!([once()]), json!([]), Some(""), json!([])),
        (json!([once()]), json!([a()]), Some(""), json!([a()])),
        // A taint lost by the machine is removed if it was kept, and stays otherwise.
        (
            json!([]),
            json!([a(), foreign()]),
            Some("a:NoSchedule"),
            json!([foreign()]),
        ),
        (json!([]), json!([a()]), Some(""), json!([a()])),
        (json!([]), json!([a()]), None, json!([a()])),
        // One that is no longer kept, but still wanted, stays.
        (
            json!([once()]),
            json!([a()]),
            Some("a:NoSchedule"),
            json!([a()]),
        ),
        // Another value, and another effect of the same key.
        (
            json!([always()]),
            json!([has("a", "2", "NoSchedule")]),
            Some("a:NoSchedule"),
            json!([a()]),
        ),
        (
            json!([always()]),
            json!([has("a", "2", "NoExecute")]),
            Some("a:NoExecute"),
            json!([a()]),
        ),
        (
            json!([once()]),
            json!([has("a", "2", "NoSchedule")]),
            None,
            json!([has("a", "2", "NoSchedule")]),
        ),
    ];
    for (of_machine, of_node, annotation, expected) in cases {
        let (node, machine) = (node(&of_node, annotation), machine(&of_machine));
        let after = synced(&node, &machine);
        let case = format!("{of_machine} {of_node} {annotation:?}");
        assert_eq!(json!(after), expected, "{case}");
        // Nothing is left to do.
        let mut settled = node;
        settled.spec.get_or_insert_default().taints = Some(after.clone());
        let annotations = settled.annotations_mut();
        annotations.insert(TAINTS_FROM_MACHINE.to_owned(), recorded(&machine));
        assert_eq!(synced(&settled, &machine), after, "{case}");
    }
}

#[test]
fn the_annotation_names_the_taints_that_are_kept() {
    let taints = json!([
        asks("b", "1", "NoExecute", "Always"),
        asks("example.org/a", "", "NoSchedule", "Always"),
        asks("c", "", "NoSchedule", "OnInitialization"),
        asks("b", "2", "NoSchedule", "Always"),
    ]);
    let names = recorded(&machine(&taints));
    assert_eq!(names, "b:NoExecute,b:NoSchedule,example.org/a:NoSchedule");
    assert_eq!(recorded(&machine(&json!(null))), "");
}
