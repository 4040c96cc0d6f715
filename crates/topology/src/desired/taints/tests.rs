use serde_json::{Value, json};

use super::*;

fn taint(key: &str, value: &str, effect: &str) -> Value {
    json!({ "key": key, "value": value, "effect": effect, "propagation": "Always" })
}

#[test]
fn taints_of_the_topology_override_those_of_the_class() {
    let class = json!([
        taint("a", "class", "NoSchedule"),
        taint("b", "class", "NoSchedule")
    ]);
    let of_topology = json!([
        taint("a", "topology", "NoSchedule"),
        taint("a", "topology", "NoExecute")
    ]);
    let both = json!([
        taint("b", "class", "NoSchedule"),
        taint("a", "topology", "NoSchedule"),
        taint("a", "topology", "NoExecute"),
    ]);
    let none = Value::Null;
    for (topology, of_class, expected) in [
        (&of_topology, &class, &both),
        (&of_topology, &none, &of_topology),
        (&none, &class, &class),
        (&none, &none, &json!([])),
    ] {
        let read = |list: &Value| -> Option<Vec<MachineTaint>> {
            serde_json::from_value(list.clone()).unwrap()
        };
        let found = combined(read(topology).as_ref(), read(of_class).as_ref());
        assert_eq!(json!(found), *expected);
    }
}
