mod convergence;

use serde_json::{Value, json};
use topology::desired::Deployment;
use topology::upgrade::Decisions;

use super::{leaves, leaves_plane, reference};

fn object(api_version: &str, kind: &str) -> Value {
    json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": "demo-x" } })
}

fn deployment(topology_name: &str) -> Deployment {
    Deployment {
        topology_name: topology_name.to_owned(),
        object: json!({ "metadata": { "name": format!("demo-{topology_name}") } }),
        bootstrap: Value::Null,
        machines: Value::Null,
        check: None,
    }
}

#[test]
fn a_reference_has_the_group_without_the_version() {
    let found = reference(&object("a.example/v1", "A"));
    assert_eq!(
        (
            found.api_group.as_str(),
            found.kind.as_str(),
            found.name.as_str()
        ),
        ("a.example", "A", "demo-x")
    );
}

#[test]
fn what_waits_for_an_upgrade_is_left_alone() {
    let decisions = Decisions {
        control_plane_waits: true,
        waiting: vec!["demo-md-0".to_owned()],
        not_created: vec!["md-1".to_owned()],
        ..Decisions::default()
    };
    assert!(leaves_plane(&decisions, true));
    assert!(!leaves_plane(&decisions, false), "it is created");
    assert!(leaves(&decisions, &deployment("md-0")));
    assert!(leaves(&decisions, &deployment("md-1")));
    assert!(!leaves(&decisions, &deployment("md-2")));
}
