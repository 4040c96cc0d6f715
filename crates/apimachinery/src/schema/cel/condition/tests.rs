use serde_json::{Value, json};

use super::Condition;

#[test]
fn conditions_are_evaluated_over_objects_and_the_request() {
    let object = json!({"metadata": {"name": "a", "labels": {"x": "y"}}});
    let request = json!({"operation": "CREATE", "userInfo": {"groups": ["g"]}, "dryRun": false});
    for (source, result) in [
        ("object.metadata.name == 'a'", Ok(true)),
        ("oldObject == null", Ok(true)),
        ("request.operation == 'UPDATE'", Ok(false)),
        (
            "'g' in request.userInfo.groups && !request.dryRun",
            Ok(true),
        ),
        ("has(object.metadata.annotations)", Ok(false)),
        (
            "object.metadata.none == 'a'",
            Err("expression 'object.metadata.none == 'a'' resulted in error: no such key: none"),
        ),
        (
            "object.metadata.name",
            Err("expression 'object.metadata.name' resulted in error: must evaluate to bool"),
        ),
    ] {
        let holds = Condition::new(source).evaluate(&object, &Value::Null, &request);
        assert_eq!(holds, result.map_err(str::to_owned), "{source}");
    }
    assert!(Condition::new("a ==").problem().is_some());
    assert!(Condition::new("true").problem().is_none());
}
