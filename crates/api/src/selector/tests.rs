use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::json;

use super::{is_empty, selects, to_query};

#[test]
fn selectors_select_as_kubernetes_does() {
    let labels = BTreeMap::from([("team".to_owned(), "a".to_owned())]);
    for (selector, selected) in [
        (json!({}), true),
        (json!({"matchLabels": {"team": "a"}}), true),
        (json!({"matchLabels": {"team": "b"}}), false),
        (
            json!({"matchExpressions": [{"key": "team", "operator": "In", "values": ["a", "b"]}]}),
            true,
        ),
        (
            json!({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}),
            false,
        ),
        (
            json!({"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["a"]}]}),
            true,
        ),
        (
            json!({"matchExpressions": [{"key": "team", "operator": "Exists"}]}),
            true,
        ),
        (
            json!({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}),
            false,
        ),
        (
            json!({"matchExpressions": [{"key": "team", "operator": "Nonsense"}]}),
            false,
        ),
    ] {
        let typed: LabelSelector = serde_json::from_value(selector.clone()).unwrap();
        assert_eq!(selects(&typed, &labels), selected, "{selector}");
    }
}

#[test]
fn a_selector_without_requirements_is_empty_and_selects_everything() {
    let empty = json!({"matchLabels": {}, "matchExpressions": []});
    for empty in [json!({}), empty] {
        let empty: LabelSelector = serde_json::from_value(empty).unwrap();
        assert!(is_empty(&empty) && selects(&empty, &BTreeMap::new()));
    }
    let one: LabelSelector = serde_json::from_value(json!({"matchLabels": {"a": "b"}})).unwrap();
    assert!(!is_empty(&one) && !selects(&one, &BTreeMap::new()));
}

#[test]
fn queries_are_written_as_kubectl_reads_them() {
    let selector = json!({"matchLabels": {"a": "b"}, "matchExpressions": [
        {"key": "c", "operator": "In", "values": ["d", "e"]},
        {"key": "f", "operator": "NotIn", "values": ["g"]},
        {"key": "h", "operator": "Exists"},
        {"key": "i", "operator": "DoesNotExist"},
    ]});
    let selector: LabelSelector = serde_json::from_value(selector).unwrap();
    assert_eq!(to_query(&selector), "a=b,c in (d,e),f notin (g),h,!i");
}
