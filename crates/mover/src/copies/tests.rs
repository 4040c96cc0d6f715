use super::*;
use crate::graph::tests::object;

#[test]
fn a_copy_is_paused_marked_and_owned_by_copies_only() {
    let mut original = object(
        "Cluster",
        "c",
        &["ClusterClass/k", "Other/o"],
        json!({"spec": {"x": 1}, "status": {"phase": "Provisioned"}, "finalizers": ["f"],
            "annotations": {"kept": "yes", MOVE_ANNOTATION: "7"}, "labels": {"l": "v"}}),
    );
    original.object.metadata.resource_version = Some("5".to_owned());
    original.object.metadata.generation = Some(3);
    let uids = HashMap::from([("ClusterClass/k".to_owned(), "new".to_owned())]);
    let copied = serde_json::to_value(copy(&original, "7", &uids)).unwrap();
    assert_eq!(
        copied["metadata"],
        json!({"name": "c", "namespace": "default", "labels": {"l": "v"}, "finalizers": ["f"],
            "annotations": {"kept": "yes", MOVE_ANNOTATION: "7 Cluster/c resume"},
            "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass", "name": "k", "uid": "new"}]})
    );
    assert_eq!(copied["spec"], json!({"x": 1, "paused": true}));
    assert_eq!(copied.get("status"), None);
}

#[test]
fn what_was_paused_before_the_move_stays_paused() {
    let set = |annotations: Value| {
        object(
            "ClusterResourceSet",
            "s",
            &[],
            json!({"annotations": annotations}),
        )
    };
    assert!(resumes(&set(json!({}))));
    assert!(resumes(&set(
        json!({PAUSED_ANNOTATION: "", MOVE_ANNOTATION: "7"})
    )));
    assert!(!resumes(&set(json!({PAUSED_ANNOTATION: ""}))));
    assert!(!resumes(&object("Machine", "m", &[], json!({}))));
    let copied = copy(&set(json!({})), "7", &HashMap::new());
    assert!(copied.annotations().contains_key(PAUSED_ANNOTATION));
    assert_eq!(
        release(&set(json!({})), true),
        json!({"metadata": {"annotations": {MOVE_ANNOTATION: null, PAUSED_ANNOTATION: null}}})
    );
}

#[test]
fn a_mark_is_found_again_and_that_of_a_paused_original_is_none() {
    for resumes in [true, false] {
        let mark = Mark {
            id: "7".to_owned(),
            original: "u".to_owned(),
            resumes,
        };
        let copy = object(
            "Secret",
            "s",
            &[],
            json!({"annotations": {MOVE_ANNOTATION: mark.text()}}),
        );
        assert_eq!(Mark::from_object(&copy.object), Some(mark));
    }
    let original = object(
        "Cluster",
        "c",
        &[],
        json!({"annotations": {MOVE_ANNOTATION: "7"}}),
    );
    assert_eq!(Mark::from_object(&original.object), None);
    assert!(is_paused_by(&original, "7") && !is_paused_by(&original, "8"));
}

#[test]
fn the_status_is_copied_without_generations() {
    let with = object(
        "Machine",
        "m",
        &[],
        json!({"status": {"observedGeneration": 3, "phase": "Running",
        "conditions": [{"type": "Ready", "observedGeneration": 3}]}}),
    );
    assert_eq!(
        status(&with),
        Some(json!({"phase": "Running", "conditions": [{"type": "Ready"}]}))
    );
    let nothing = object(
        "Machine",
        "m",
        &[],
        json!({"status": {"observedGeneration": 3}}),
    );
    assert_eq!(status(&nothing), None);
}

#[test]
fn more_fields_are_no_difference_and_other_values_are() {
    let stored = json!({"a": {"b": 1, "defaulted": true}, "list": [{"x": 1, "y": 2}]});
    for (wanted, expected) in [
        (json!({"a": {"b": 1}, "none": {}}), true),
        (json!({"list": [{"x": 1}]}), true),
        (json!({"list": []}), false),
        (json!({"a": {"b": 2}}), false),
        (json!({"c": 0}), false),
    ] {
        assert_eq!(contains(&stored, &wanted), expected, "{wanted}");
    }
}
