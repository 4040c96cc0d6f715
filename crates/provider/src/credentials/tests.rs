use std::collections::BTreeMap;

use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::json;

use super::selects;

#[test]
fn a_namespace_selector_selects_as_kubernetes_does() {
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
