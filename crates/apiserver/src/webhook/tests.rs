use proptest::prelude::*;
use serde_json::{Value, json};

use super::refusal;

#[test]
fn failed_answers_have_the_messages_of_client_go() {
    for (code, body, words) in [
        (404, "", "the server could not find the requested resource"),
        (
            500,
            " broken\n",
            "an error on the server (\"broken\") has prevented the request from succeeding",
        ),
        (
            500,
            "",
            "an error on the server (\"unknown\") has prevented the request from succeeding",
        ),
        (403, "not you", "not you"),
        (
            418,
            "tea",
            "the server responded with the status code 418 but did not return more information",
        ),
        (400, r#"{"kind":"Status","message":"so"}"#, "so"),
    ] {
        assert_eq!(refusal(code, body.as_bytes()), words, "{code} {body}");
    }
}

/// Any JSON value: an answer of a webhook.
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..10).prop_map(Value::from),
        Just(json!(1.5)),
        "[a-c~/]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c-~/]{1,2}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}
