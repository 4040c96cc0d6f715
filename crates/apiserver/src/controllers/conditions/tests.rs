use serde_json::Value;

use super::Left;

#[test]
fn the_conditions_of_a_namespace_report_its_remaining_content() {
    let mut left = Left::default();
    let finalizers = [Box::from("example.com/wait")];
    left.count("configmaps", "", &finalizers);
    left.count("deployments", "apps", &finalizers);
    left.count("deployments", "apps", &[]);
    let conditions = left.conditions(&Value::Null, "t0");
    let reported: Vec<(&str, &str, &str)> = conditions
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let text = |field: &str| one[field].as_str().unwrap();
            (text("type"), text("status"), text("message"))
        })
        .collect();
    assert_eq!(reported.len(), 5);
    assert_eq!(
        reported[3],
        (
            "NamespaceContentRemaining",
            "True",
            "Some resources are remaining: configmaps. has 1 resource instances, deployments.apps has 2 resource instances"
        )
    );
    assert_eq!(
        reported[4],
        (
            "NamespaceFinalizersRemaining",
            "True",
            "Some content in the namespace has finalizers remaining: example.com/wait in 2 resource instances"
        )
    );
}

#[test]
fn a_condition_keeps_its_time_until_its_status_changes() {
    let mut left = Left::default();
    left.count("configmaps", "", &[]);
    let first = left.conditions(&Value::Null, "t0");
    let same = left.conditions(&first, "t1");
    assert_eq!(first, same);
    let gone = Left::default().conditions(&same, "t2");
    assert_eq!(gone[3]["lastTransitionTime"], "t2");
    assert_eq!(gone[3]["status"], "False");
    assert_eq!(gone[0]["lastTransitionTime"], "t0");
}
