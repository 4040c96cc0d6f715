use std::collections::BTreeMap;

use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::matches;

#[test]
fn an_empty_selector_matches_no_machine() {
    let labels = BTreeMap::from([("pool".to_owned(), "a".to_owned())]);
    let selector = |pool: Option<&str>| LabelSelector {
        match_labels: pool.map(|pool| BTreeMap::from([("pool".to_owned(), pool.to_owned())])),
        match_expressions: Some(Vec::new()),
    };
    assert!(matches(&selector(Some("a")), &labels));
    assert!(!matches(&selector(Some("b")), &labels));
    assert!(!matches(&selector(None), &labels));
}
