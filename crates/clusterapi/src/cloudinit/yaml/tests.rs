use proptest::prelude::*;
use serde_json::{Value, json};

use super::{document, literal, quoted, scalar};

#[test]
fn what_could_mean_something_else_is_quoted() {
    for plain in [
        "external",
        "v1.34.1",
        "/etc/kubernetes",
        "demo-admin@demo",
        "TLS_RSA",
    ] {
        assert_eq!(scalar(plain), plain);
    }
    for text in [
        "", "0640", "yes", "Off", "null", "~", "1e3", "12:30", "- a", "a: b", "a #b", "{{ x }}",
        " a", "a ", "'", "\"", "a\nb", "*x", "&x", "!x", "%x", "@x", "`x", "true", "N", ".inf",
    ] {
        assert!(
            scalar(text).starts_with('"'),
            "{text:?} became {}",
            scalar(text)
        );
    }
}

#[test]
fn documents_are_sorted_and_readable() {
    let value = json!({
        "kind": "ClusterConfiguration",
        "apiServer": {"extraArgs": [{"name": "a", "value": "1"}], "certSANs": []},
        "empty": {},
        "nested": [[1, 2], []],
        "text": "two\nlines\n",
        "number": 3,
        "none": null,
    });
    insta::assert_snapshot!(document(&value), @r#"
    apiServer:
      certSANs: []
      extraArgs:
      - name: a
        value: "1"
    empty: {}
    kind: ClusterConfiguration
    nested:
    - - 1
      - 2
    - []
    none: null
    number: 3
    text: |
      two
      lines
    "#);
}

#[test]
fn literal_blocks_keep_the_end_of_the_text() {
    assert_eq!(literal("a\nb\n", 2), "|\n  a\n  b");
    assert_eq!(literal("a\nb", 2), "|-\n  a\n  b");
    assert_eq!(literal("a\n\nb\n", 2), "|\n  a\n\n  b");
    assert!(
        literal(" a\n", 2).starts_with('"'),
        "a leading blank would count as indentation"
    );
    assert!(literal("a\n\n", 2).starts_with('"'));
    assert!(literal("", 2).starts_with('"'));
    assert!(literal("a\r\nb", 2).starts_with('"'));
}

fn value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        ".{0,12}",
        "[ -~\\n\\t]{0,20}",
        "[a-z]{1,4}",
        "[0-9.:e+-]{1,6}"
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(text.clone(), inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    #[test]
    fn every_document_reads_as_what_was_written(value in value()) {
        let text = document(&value);
        let read: Value = serde_saphyr::from_str(&text).map_err(|e| TestCaseError::fail(format!("{e}: {text}")))?;
        prop_assert_eq!(read, value, "{}", text);
    }

    #[test]
    fn every_literal_reads_as_the_text(text in "[ -~\\n\\tä]{0,40}") {
        let written = format!("a:\n  b: {}\n", literal(&text, 4));
        let read: Value = serde_saphyr::from_str(&written).map_err(|e| TestCaseError::fail(format!("{e}: {written}")))?;
        prop_assert_eq!(read["a"]["b"].as_str(), Some(text.as_str()), "{}", written);
    }

    #[test]
    fn quotes_hold_any_text(text in any::<String>()) {
        let read: Value = serde_saphyr::from_str(&quoted(&text)).map_err(|e| TestCaseError::fail(format!("{e}")))?;
        prop_assert_eq!(read.as_str(), Some(text.as_str()));
    }
}
