use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::cloud::document::doc;

#[test]
fn values_match_as_the_services_compare_them() {
    let list = json!([{"subnet_id": "s", "ip_address": "10.0.0.1"}]);
    for (value, wanted, expected) in [
        (json!("a"), "a", true),
        (json!("a"), "A", false),
        (json!(true), "True", true),
        (json!(true), "1", true),
        (json!(false), "true", false),
        (json!(5), "5", true),
        (json!(null), "", true),
        (json!(null), "None", true),
        (json!("x"), "", false),
        (json!(["a", "b"]), "b", true),
        (list.clone(), "ip_address=10.0.0.1", true),
        (list, "subnet_id=t", false),
    ] {
        assert_eq!(
            matches(Some(&value), &[wanted]),
            expected,
            "{value} = {wanted}"
        );
    }
}

#[test]
fn pages_of_any_size_cover_a_list_exactly_once() {
    let docs: Vec<Arc<Doc>> = (0..7)
        .map(|n| Arc::new(doc(json!({"id": n.to_string()}))))
        .collect();
    for limit in 1..9 {
        let mut seen = Vec::new();
        let mut marker: Option<String> = None;
        loop {
            let page = page(docs.clone(), marker.as_deref(), Some(limit), false).unwrap();
            seen.extend(page.docs.iter().map(|doc| doc.text("id").to_owned()));
            marker = page.next;
            if marker.is_none() {
                break;
            }
        }
        assert_eq!(seen, ["0", "1", "2", "3", "4", "5", "6"], "limit {limit}");
    }
    assert!(page(docs, Some("nope"), None, false).is_none());
}

#[test]
fn a_page_can_be_walked_backwards() {
    let docs: Vec<Arc<Doc>> = (0..5)
        .map(|n| Arc::new(doc(json!({"id": n.to_string()}))))
        .collect();
    let page = page(docs, Some("3"), Some(2), true).unwrap();
    let ids: Vec<&str> = page.docs.iter().map(|doc| doc.text("id")).collect();
    assert_eq!(ids, ["1", "2"]);
    assert_eq!(
        (page.previous.as_deref(), page.next.as_deref()),
        (Some("1"), Some("2"))
    );
}
