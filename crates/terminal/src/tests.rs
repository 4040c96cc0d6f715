//! Foreign text, and the part of it that reaches a terminal.

use api::printable::is_hidden;
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Hostile text, as a cloud, a node or a container may send.
const CANARY: &str = "a\u{1b}[2Jb\rc\nALL CLUSTERS READY\u{202e}d";

fn is_raw(text: &str) -> bool {
    text.contains(|letter| letter != '\n' && is_hidden(letter))
}

#[test]
fn a_line_break_from_outside_begins_no_line_at_the_margin() {
    let printed = paragraph(&format!("error: {CANARY}"));
    assert_eq!(
        printed,
        "error: a\\u{1b}[2Jb\\rc\n  ALL CLUSTERS READY\\u{202e}d\n"
    );
    assert_eq!(paragraph("a:\n  b\n\nc"), "a:\n  b\n\n  c\n");
}

#[test]
fn cells_of_a_table_are_on_one_line() {
    assert_eq!(
        cells(["x".to_owned(), CANARY.to_owned()]),
        [
            "x".to_owned(),
            "a\\u{1b}[2Jb\\rc\\nALL CLUSTERS READY\\u{202e}d".to_owned()
        ]
    );
}

#[test]
fn json_is_escaped_as_json() {
    let value = json!({ CANARY: [CANARY, "\u{e0001}\u{7f}\u{9b}ü"] });
    for text in [json(&value).unwrap(), json_line(&value)] {
        assert!(!is_raw(&text), "{text}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).unwrap(),
            value
        );
    }
    assert!(json(&value).unwrap().contains("\\udb40\\udc01"));
}

#[test]
fn yaml_has_nothing_raw_either() {
    let value = json!({ "a": [CANARY, "plain"] });
    let text = yaml(&value).unwrap();
    assert!(!is_raw(&text), "{text}");
    assert_eq!(
        serde_saphyr::from_str::<serde_json::Value>(&text).unwrap(),
        value
    );
    assert_eq!(yaml(&json!({"a": "b"})).unwrap(), "a: b\n");
}

#[test]
fn a_document_on_a_terminal_keeps_its_lines_and_tabs() {
    assert_eq!(displayed("a:\n\tb\n"), "a:\n\tb\n");
    assert_eq!(displayed("a\t\u{1b}b\n"), "a\t\\u{1b}b\n");
}

proptest! {
    #[test]
    fn only_our_colors_are_kept(parts in proptest::collection::vec(".*", 0..4), color in 0..5usize) {
        let color = [RED, GREEN, YELLOW, RESET, "\x1b[35m"][color];
        let text = parts.join(color);
        let mut rest = painted(&text);
        for known in [RED, GREEN, YELLOW, RESET] {
            rest = rest.replace(known, "");
        }
        prop_assert!(!is_raw(&rest), "{rest:?}");
        prop_assert!(!is_raw(&paragraph(&text)));
    }
}

#[test]
fn colors_take_no_room() {
    assert_eq!(width("Ready: True"), 11);
    assert_eq!(width("\x1b[31mno\x1b[0m ä"), 4);
    assert_eq!(width(""), 0);
}

#[test]
fn several_objects_are_counted_in_the_plural() {
    for (count, kind, expected) in [
        (1, "Machine", "1 Machine"),
        (2, "Machine", "2 Machines"),
        (0, "ConfigMap", "0 ConfigMaps"),
        (2, "NetworkPolicy", "2 NetworkPolicies"),
        (2, "Ingress", "2 Ingresses"),
        (2, "Endpoints", "2 Endpoints"),
    ] {
        assert_eq!(counted(count, kind), expected);
    }
}
