use serde_json::{Value, json};

use super::{accept, decide, is_open, is_served, outline};

fn crd(plural: &str, kind: &str, short: &[&str]) -> Value {
    json!({
        "spec": {"names": {
            "plural": plural, "singular": kind.to_lowercase(), "kind": kind,
            "listKind": format!("{kind}List"), "shortNames": short,
        }},
        "status": {"acceptedNames": {"plural": "", "kind": ""}, "conditions": null},
    })
}

fn accepted(mut crd: Value, others: &[Value]) -> Value {
    accept(&mut crd, others, jiff::Timestamp::UNIX_EPOCH);
    crd
}

#[test]
fn names_without_a_conflict_are_accepted_and_the_definition_is_established() {
    let one = accepted(crd("ones", "One", &["o"]), &[]);
    assert_eq!(one["status"]["acceptedNames"], one["spec"]["names"]);
    let conditions = &one["status"]["conditions"];
    assert_eq!(
        (&conditions[0]["type"], &conditions[0]["status"]),
        (&json!("NamesAccepted"), &json!("True"))
    );
    assert_eq!(conditions[1]["reason"], "InitialNamesAccepted");
    assert!(is_served(&one, &[]));
    assert!(
        !accept(&mut one.clone(), &[], jiff::Timestamp::now()),
        "nothing is left to do"
    );
}

#[test]
fn names_in_use_are_not_accepted_and_the_definition_is_not_served() {
    let one = accepted(crd("ones", "One", &["o", "w"]), &[]);
    let others = [one];
    for (other, reason, message) in [
        (
            crd("others", "One", &[]),
            "ListKindConflict",
            "\"OneList\" is already in use",
        ),
        (
            crd("others", "Other", &["o"]),
            "ShortNamesConflict",
            "\"o\" is already in use",
        ),
        (
            crd("others", "Other", &["o", "w"]),
            "ShortNamesConflict",
            "[\"o\" is already in use, \"w\" is already in use]",
        ),
        (
            crd("o", "Other", &[]),
            "PluralConflict",
            "\"o\" is already in use",
        ),
    ] {
        assert!(!is_served(&other, &others), "{reason}");
        let other = accepted(other, &others);
        let conditions = &other["status"]["conditions"];
        assert_eq!(
            (&conditions[0]["reason"], &conditions[0]["message"]),
            (&json!(reason), &json!(message))
        );
        assert_eq!(conditions[1]["reason"], "NotAccepted");
        assert!(!is_served(&other, &others));
        // The conflicting definition is deleted.
        let other = accepted(other, &[]);
        assert_eq!(other["status"]["acceptedNames"], other["spec"]["names"]);
        assert!(is_served(&other, &[]));
    }
}

#[test]
fn an_established_definition_is_served_on_when_it_requests_a_name_in_use() {
    let one = accepted(crd("ones", "One", &["o"]), &[]);
    let mut two = accepted(crd("twos", "Two", &["t"]), std::slice::from_ref(&one));
    two["spec"]["names"]["shortNames"] = json!(["t", "o"]);
    let two = accepted(two, std::slice::from_ref(&one));
    assert_eq!(two["status"]["acceptedNames"]["shortNames"], json!(["t"]));
    assert_eq!(
        two["status"]["conditions"][0]["reason"],
        "ShortNamesConflict"
    );
    assert_eq!(two["status"]["conditions"][1]["status"], "True");
    assert!(is_served(&two, &[one]));
}

#[test]
fn an_outline_decides_as_the_whole_definition_does() {
    let one = accepted(crd("ones", "One", &["o"]), &[]);
    let open = crd("twos", "Two", &["o"]);
    for whole in [&one, &open] {
        let mut whole = whole.clone();
        whole["metadata"]["name"] = json!("ones.example.com");
        whole["spec"]["group"] = json!("example.com");
        whole["spec"]["versions"] = json!([{"schema": {"a": [1]}}]);
        let whole = &whole;
        let outline = outline(whole.to_string().as_bytes());
        assert_eq!(is_open(&outline), is_open(whole));
        let others = |other: &Value| decide(&open, std::slice::from_ref(other)).conflict;
        assert_eq!(others(&outline), others(whole));
        assert_eq!(outline["metadata"]["name"], whole["metadata"]["name"]);
        assert_eq!(outline["spec"]["group"], whole["spec"]["group"]);
        assert_eq!(outline["spec"]["versions"], Value::Null);
    }
    assert_eq!(outline(b"1"), Value::Null);
}
