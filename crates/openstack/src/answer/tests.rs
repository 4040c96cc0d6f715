use std::collections::BTreeMap;

use serde_json::json;

use super::*;

#[test]
fn an_error_of_a_value_names_its_kind_and_not_the_value() {
    let why = typed::<BTreeMap<String, u8>>(json!("canary, expected x")).unwrap_err();
    assert_eq!(why, "invalid type: string, expected a map");
    let why = typed::<BTreeMap<String, u8>>(json!({"a": 70000})).unwrap_err();
    assert_eq!(why, "invalid value: integer, expected u8");
    let why = typed::<std::net::IpAddr>(json!("canary")).unwrap_err();
    assert_eq!(why, "a value is not as expected");
    let why = json(b"{\"canary\":canary}").unwrap_err();
    assert_eq!(why, "is not JSON: expected value at line 1 column 11");
}

#[test]
fn text_is_no_value() {
    assert_eq!(
        tree_size(br#"{"a":"[{},{\"},{","b":[1,2,{}]}"#),
        2 * OBJECT + 5 * VALUE
    );
}

proptest::proptest! {
    #[test]
    fn the_estimate_is_not_below_the_number_of_values(
        body in r#"(\{"[a-z]{1,3}":|\[|"x"|1|null|\}|\]|,|"[\\"\\\\]"|\{){0,12}"#,
    ) {
        fn count(value: &Value) -> usize {
            1 + match value {
                Value::Array(items) => items.iter().map(count).sum(),
                Value::Object(fields) => fields.values().map(count).sum(),
                _ => 0_usize,
            }
        }
        if let Ok(value) = json(body.as_bytes()) {
            proptest::prop_assert!(tree_size(body.as_bytes()) >= count(&value) * VALUE);
        }
    }
}
