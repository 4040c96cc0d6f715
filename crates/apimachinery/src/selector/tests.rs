use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn matches(selector: &str, labels: Value) -> bool {
    LabelSelector::parse(selector).unwrap().matches(&labels)
}

#[test]
fn every_operator_selects_as_the_reference_does() {
    let labels = json!({"a": "b", "n": "5", "empty": ""});
    for (selector, expected) in [
        ("", true),
        ("a=b", true),
        ("a==b", true),
        (" a = b , n=5", true),
        ("a!=b", false),
        ("missing!=b", true),
        ("a in (b,c)", true),
        ("a in (c)", false),
        ("a notin (b)", false),
        ("missing notin (b)", true),
        ("missing in (b)", false),
        ("a", true),
        ("missing", false),
        ("!a", false),
        ("!missing", true),
        ("n>4", true),
        ("n<5", false),
        ("a>4", false),
        ("missing>4", false),
        ("empty=", true),
        ("empty=,a=b", true),
        ("empty in ()", true),
        ("empty in (,x)", true),
        ("in=x", false),
        ("a in (in,notin,b)", true),
    ] {
        assert_eq!(matches(selector, labels.clone()), expected, "{selector}");
    }
    assert!(matches("!a", Value::Null));
    assert!(
        !matches("a", json!({"a": 1})),
        "a label that is no string is no label"
    );
}

#[test]
fn errors_have_the_messages_of_the_reference() {
    let long = "a".repeat(64);
    for (selector, message) in [
        ("a,", "found '', expected: identifier after ','"),
        (
            "a b",
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
        ),
        (
            "=a",
            "found '=', expected: !, identifier, or 'end of string'",
        ),
        (
            "a in b",
            "unable to parse requirement: found 'b' expected: '('",
        ),
        (
            "a in (b",
            "unable to parse requirement: found '', expected: ',' or ')'",
        ),
        (
            "a=(",
            "unable to parse requirement: found '(', expected: identifier",
        ),
        (
            "!",
            "unable to parse requirement: found '', expected: identifier",
        ),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
    ] {
        assert_eq!(
            LabelSelector::parse(selector).unwrap_err().message,
            message,
            "{selector}"
        );
    }
    let error = LabelSelector::parse(&format!("a={long}"))
        .unwrap_err()
        .message;
    assert!(error.ends_with("must be no more than 63 bytes"), "{error}");
    let error = LabelSelector::parse("a/b/c=d").unwrap_err().message;
    assert!(error.starts_with("unable to parse requirement: <nil>: Invalid value: \"a/b/c\": a valid label key must consist"), "{error}");
}

#[test]
fn selectors_select_the_same_in_object_and_text_form() {
    let selector = LabelSelector::from_object(&json!({
        "matchLabels": {"a": "b"},
        "matchExpressions": [
            {"key": "n", "operator": "In", "values": ["5", "6"]},
            {"key": "x", "operator": "DoesNotExist"},
        ],
    }))
    .unwrap();
    assert_eq!(selector.to_string(), "a=b,n in (5,6),!x");
    assert!(selector.matches(&json!({"a": "b", "n": "6"})));
    assert!(!selector.matches(&json!({"a": "b", "n": "6", "x": ""})));
    let wrong =
        LabelSelector::from_object(&json!({"matchExpressions": [{"key": "a", "operator": "Is"}]}));
    assert_eq!(
        wrong.unwrap_err().message,
        "\"Is\" is not a valid label selector operator"
    );
    assert!(LabelSelector::from_object(&json!({})).unwrap().is_empty());
}

#[test]
fn field_selectors_compare_with_the_empty_string_when_a_field_is_absent() {
    let field = |path: &str| (path == "metadata.name").then(|| "a,b".to_owned());
    for (selector, expected) in [
        ("", true),
        ("metadata.name=a\\,b", true),
        ("metadata.name==a\\,b", true),
        ("metadata.name!=a\\,b", false),
        ("status.phase=", true),
        ("status.phase!=Running,metadata.name!=x", true),
        (",,", true),
    ] {
        assert_eq!(
            FieldSelector::parse(selector).unwrap().matches(field),
            expected,
            "{selector}"
        );
    }
    let selector = FieldSelector::parse("metadata.name=x,a!=b").unwrap();
    assert_eq!(selector.required("metadata.name"), Some("x"));
    assert_eq!(selector.required("a"), None);
    assert_eq!(
        selector.fields().collect::<Vec<_>>(),
        ["a", "metadata.name"]
    );
    for (selector, message) in [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        (
            "a=b=c",
            "invalid field selector: unescaped character in value: 61",
        ),
        (
            "a=\\b",
            "invalid field selector: invalid escape sequence: \\b",
        ),
        (
            "a=\\",
            "invalid field selector: invalid escape sequence: \\",
        ),
    ] {
        assert_eq!(FieldSelector::parse(selector).unwrap_err().message, message);
    }
}

proptest! {
    #[test]
    fn parsing_never_panics(text in "\\PC{0,40}", dense in "[a-c=!(),<> in\\\\.\u{0}é]{0,30}") {
        for text in [&text, &dense] {
            let _ = LabelSelector::parse(text);
            let _ = FieldSelector::parse(text);
        }
    }

    #[test]
    fn label_selectors_survive_printing(dense in "[a-c=!(),<>1 ]{0,20}", words in "(a|!b|c in \\(x,y\\)|d notin \\(,\\)|e!=1|f>3)(,(g|!h|i=2))?") {
        for text in [&dense, &words] {
            if let Ok(selector) = LabelSelector::parse(text) {
                prop_assert_eq!(LabelSelector::parse(&selector.to_string()).unwrap(), selector);
            }
        }
    }

    #[test]
    fn field_selectors_survive_printing(text in "[ab.=!,\\\\]{0,20}") {
        if let Ok(selector) = FieldSelector::parse(&text) {
            let again = FieldSelector::parse(&selector.to_string()).unwrap();
            let sorted = |s: &FieldSelector| {
                let mut terms: Vec<String> = s.to_string().split(',').map(str::to_owned).collect();
                terms.sort();
                terms
            };
            prop_assert_eq!(sorted(&again), sorted(&selector));
        }
    }
}
