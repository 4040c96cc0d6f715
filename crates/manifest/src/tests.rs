use proptest::prelude::*;
use serde_json::json;

use super::*;

const TWO: &str = "\
# a comment
apiVersion: v1
kind: Secret
metadata:
  name: a
---

---
apiVersion: v1
kind: ConfigMap
metadata:
  name: b
data:
  on: yes
  list:
  - one
  - deep:
      x: 010
";

#[test]
fn documents_are_read_with_the_lines_of_their_fields() {
    let documents = read("f.yaml", TWO).unwrap();
    let labels: Vec<_> = documents.iter().map(Document::label).collect();
    assert_eq!(labels, ["Secret a", "ConfigMap b"]);
    let second = &documents[1];
    assert_eq!(second.value["data"]["list"][1]["deep"]["x"], json!(8));
    assert_eq!(second.place("kind"), "f.yaml:10");
    assert_eq!(second.place("data.list[1].deep.x"), "f.yaml:18");
    assert_eq!(second.place("data.list[1].deep.missing"), "f.yaml:17");
    assert_eq!(second.place("spec"), "f.yaml:9");
    assert_eq!(documents[0].place("metadata.name"), "f.yaml:5");
}

#[test]
fn mistakes_are_named_with_file_and_line() {
    for (text, expected) in [
        (
            "kind: X\nmetadata: {name: a}\n",
            "f:1: the field apiVersion is missing or not a text",
        ),
        (
            "\napiVersion: v1\nmetadata: {name: a}\n",
            "f:2: the field kind is missing or not a text",
        ),
        (
            "apiVersion: v1\nkind: X\nmetadata:\n  labels: {}\n",
            "f:3: X has no metadata.name",
        ),
        (
            "- a\n- b\n",
            "f:1: expected an object with apiVersion, kind and metadata",
        ),
        ("# nothing\n---\n\n", "f contains no Kubernetes object"),
    ] {
        assert_eq!(read("f", text).unwrap_err().to_string(), expected, "{text}");
    }
}

#[test]
fn malformed_yaml_and_repeated_keys_name_the_line_in_the_file() {
    for (text, line) in [
        (
            "apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\napiVersion: v1\nkind: [\n",
            5..=7,
        ),
        ("apiVersion: v1\nkind: A\nkind: B\n", 3..=3),
    ] {
        match read("f", text).unwrap_err() {
            ManifestError::Malformed { line: found, .. } => {
                assert!(line.contains(&found), "{found} {text}");
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn lists_are_taken_apart() {
    let text = "\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Secret
  metadata:
    name: a
- apiVersion: v1
  kind: Secret
  metadata:
    name: b
";
    let documents = read("f", text).unwrap();
    assert_eq!(documents.len(), 2);
    assert_eq!(documents[1].place("metadata.name"), "f:11");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_without_a_panic(text in "[a-c:\\[\\]{}&*!|>'\"#?% \n-]{0,80}") {
        let _ = read("f", &text);
    }
}
