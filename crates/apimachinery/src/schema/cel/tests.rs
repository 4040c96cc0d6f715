use serde_json::{Value, json};

use crate::schema::Schema;

/// A schema whose `spec` has a size, a name, a list, a map, and rules.
fn schema(rules: Value) -> Result<Schema, Vec<String>> {
    let schema = json!({
        "type": "object",
        "properties": {"spec": {
            "type": "object",
            "x-kubernetes-validations": rules,
            "properties": {
                "size": {"type": "integer"},
                "max": {"type": "integer"},
                "ratio": {"type": "number"},
                "name": {"type": "string", "maxLength": 64},
                "names": {"type": "array", "maxItems": 10, "items": {"type": "string", "maxLength": 64}},
                "free": {"type": "array", "maxItems": 500, "items": {"type": "string", "maxLength": 5000}},
                "labels": {"type": "object", "maxProperties": 10, "additionalProperties": {"type": "string", "maxLength": 64}},
                "until": {"type": "string", "format": "date-time"},
                "every": {"type": "string", "format": "duration"},
                "data": {"type": "string", "format": "byte", "maxLength": 64},
                "port": {"x-kubernetes-int-or-string": true},
                "namespace": {"type": "string", "maxLength": 64},
                "a-b": {"type": "string", "maxLength": 64},
                "a_b": {"type": "string", "maxLength": 64},
                "a__b": {"type": "string", "maxLength": 64},
            },
        }},
    });
    Schema::compile(&schema).map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

fn check(rules: Value, new: Value, old: Option<Value>) -> Vec<String> {
    let schema = schema(rules).unwrap_or_else(|errors| panic!("{errors:#?}"));
    let old = old.map(|old| json!({ "spec": old }));
    schema
        .validate(&json!({ "spec": new }), old.as_ref())
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn is_satisfied(rule: &str, spec: Value) -> bool {
    check(json!([{ "rule": rule }]), spec, None).is_empty()
}

#[test]
fn rules_get_values_as_their_schema_declares_them() {
    for (rule, spec) in [
        ("self.size <= self.max", json!({"size": 1, "max": 2})),
        ("self.ratio == 1.0", json!({"ratio": 1})),
        ("!has(self.name) || self.name.startsWith('a')", json!({})),
        (
            "self.names.all(n, n.size() == 1)",
            json!({"names": ["a", "b"]}),
        ),
        (
            "self.names.exists(n, n == 'b') && !self.names.exists_one(n, n == 'c')",
            json!({"names": ["a", "b"]}),
        ),
        (
            "self.names.map(n, n + '!').size() == 2",
            json!({"names": ["a", "b"]}),
        ),
        (
            "self.names.filter(n, n == 'a') == ['a']",
            json!({"names": ["a", "b"]}),
        ),
        (
            "self.labels.all(k, self.labels[k] == 'v')",
            json!({"labels": {"a.b/c": "v"}}),
        ),
        ("'a.b/c' in self.labels", json!({"labels": {"a.b/c": "v"}})),
        (
            "self.until > timestamp('2026-01-01T00:00:00Z')",
            json!({"until": "2026-11-20T10:00:00Z"}),
        ),
        ("self.every < duration('2h')", json!({"every": "90m"})),
        ("self.data == b'hi'", json!({"data": "aGk="})),
        (
            "type(self.port) == int ? self.port > 0 : self.port.endsWith('%')",
            json!({"port": 5}),
        ),
        (
            "type(self.port) == int ? self.port > 0 : self.port.endsWith('%')",
            json!({"port": "5%"}),
        ),
        ("self.__namespace__ == 'n'", json!({"namespace": "n"})),
        ("self.a__dash__b == 'x'", json!({"a-b": "x"})),
        ("self.a_b == 'x'", json!({"a_b": "x"})),
        ("self.a__underscores__b == 'x'", json!({"a__b": "x"})),
        ("self.name.matches('^[a-z]+$')", json!({"name": "abc"})),
        (
            "isURL(self.name) && url(self.name).getHost() == 'x'",
            json!({"name": "https://x/"}),
        ),
        (
            "quantity(self.name).isLessThan(quantity('2Gi'))",
            json!({"name": "1Gi"}),
        ),
        (
            "isIP(self.name) && ip(self.name).family() == 4",
            json!({"name": "10.0.0.1"}),
        ),
        (
            "cidr('10.0.0.0/8').containsIP(self.name)",
            json!({"name": "10.0.0.1"}),
        ),
        ("self.?name.orValue('x') == 'x'", json!({})),
    ] {
        let errors = check(json!([{ "rule": rule }]), spec.clone(), None);
        assert!(errors.is_empty(), "{rule} on {spec}: {errors:?}");
    }
    assert!(!is_satisfied(
        "self.size <= self.max",
        json!({"size": 3, "max": 2})
    ));
}

#[test]
fn violations_have_the_message_path_and_reason_of_the_rule() {
    let spec = json!({"size": 3, "max": 2});
    for (rule, expected) in [
        (
            json!({"rule": "self.size <= self.max"}),
            "spec: Invalid value: \"object\": failed rule: self.size <= self.max",
        ),
        (
            json!({"rule": "self.size <= self.max", "message": " too big "}),
            "spec: Invalid value: \"object\": too big",
        ),
        (
            json!({"rule": "self.size <= self.max", "messageExpression": "'at most %d'.format([self.max])"}),
            "spec: Invalid value: \"object\": at most 2",
        ),
        (
            json!({"rule": "self.size <= self.max", "message": "m", "messageExpression": "self.name"}),
            "spec: Invalid value: \"object\": m",
        ),
        (
            json!({"rule": "self.size <= self.max", "message": "m", "fieldPath": ".size"}),
            "spec.size: Invalid value: \"object\": m",
        ),
        (
            json!({"rule": "self.size <= self.max", "message": "m", "fieldPath": "['a-b']"}),
            "spec.a-b: Invalid value: \"object\": m",
        ),
        (
            json!({"rule": "self.size <= self.max", "message": "m", "fieldPath": ".labels['x']"}),
            "spec.labels[x]: Invalid value: \"object\": m",
        ),
        (
            json!({"rule": "self.size <= self.max", "message": "m", "reason": "FieldValueForbidden"}),
            "spec: Forbidden: m",
        ),
        (
            json!({"rule": "self.size <= self.max", "message": "m", "reason": "FieldValueRequired"}),
            "spec: Required value: m",
        ),
        (
            json!({"rule": "self.size <= self.max", "message": "m", "reason": "FieldValueDuplicate"}),
            "spec: Duplicate value: \"object\"",
        ),
        (
            json!({"rule": "self.name == 'x'", "message": "m"}),
            "spec: Invalid value: \"object\": no such key: name evaluating rule: m",
        ),
        (
            json!({"rule": "self.size / 0 == 1"}),
            "spec: Invalid value: \"object\": division by zero evaluating rule: self.size / 0 == 1",
        ),
    ] {
        assert_eq!(
            check(json!([rule]), spec.clone(), None),
            [expected],
            "{rule}"
        );
    }
}

#[test]
fn transition_rules_run_when_there_is_an_old_value() {
    let rule = json!([{"rule": "self.size >= oldSelf.size", "message": "m"}]);
    assert!(check(rule.clone(), json!({"size": 1}), None).is_empty());
    assert!(check(rule.clone(), json!({"size": 2}), Some(json!({"size": 1}))).is_empty());
    assert_eq!(
        check(rule, json!({"size": 1}), Some(json!({"size": 2}))),
        ["spec: Invalid value: \"object\": m"]
    );

    let rule = json!([{"rule": "oldSelf.hasValue() || self.size == 0", "optionalOldSelf": true, "message": "m"}]);
    assert_eq!(
        check(rule.clone(), json!({"size": 1}), None),
        ["spec: Invalid value: \"object\": m"]
    );
    assert!(check(rule.clone(), json!({"size": 0}), None).is_empty());
    assert!(check(rule, json!({"size": 1}), Some(json!({"size": 5}))).is_empty());

    let rule = json!([{"rule": "self.size == oldSelf.orValue(self).size", "optionalOldSelf": true, "message": "m"}]);
    assert!(check(rule.clone(), json!({"size": 1}), None).is_empty());
    assert_eq!(
        check(rule, json!({"size": 1}), Some(json!({"size": 5}))),
        ["spec: Invalid value: \"object\": m"]
    );
}

#[test]
fn values_that_violate_a_rule_stay_accepted_while_they_are_unchanged() {
    let rule = json!([{"rule": "self.size <= 1", "message": "m"}]);
    let old = json!({"size": 5});
    assert!(check(rule.clone(), json!({"size": 5}), Some(old.clone())).is_empty());
    assert_eq!(
        check(rule, json!({"size": 5, "max": 1}), Some(old)),
        ["spec: Invalid value: \"object\": m"]
    );
}

#[test]
fn rules_are_not_run_on_objects_that_are_invalid_otherwise() {
    let errors = check(
        json!([{"rule": "self.size <= 1"}]),
        json!({"size": "x"}),
        None,
    );
    assert_eq!(errors.len(), 2);
    assert_eq!(
        errors[1],
        "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
    );
}

#[test]
fn schemas_with_rules_that_cannot_be_evaluated_are_rejected() {
    let at = "properties[spec].x-kubernetes-validations[0]";
    let mut rules = 0;
    for (rule, start) in [
        (
            json!({}),
            format!("{at}.rule: Required value: rule is not specified"),
        ),
        (
            json!({"rule": "self.size >="}),
            format!("{at}.rule: Invalid value: {{\"Rule\":\"self.size \\u003e=\","),
        ),
        (
            json!({"rule": "self.nothing == 1"}),
            format!(
                "{at}.rule: Invalid value: {{\"Rule\":\"self.nothing == 1\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}}: compilation failed: ERROR: <input>:1:5: undefined field 'nothing'\n | self.nothing == 1\n | ....^"
            ),
        ),
        (
            json!({"rule": "request.name == 'x'"}),
            format!("{at}.rule: Invalid value: {{"),
        ),
        (
            json!({"rule": "frobnicate(self)"}),
            format!("{at}.rule: Invalid value: {{"),
        ),
        (
            json!({"rule": "self.size\n== 1"}),
            format!(
                "{at}.message: Required value: message must be specified if rule contains line breaks"
            ),
        ),
        (
            json!({"rule": "self.size == 1", "message": "a\nb"}),
            format!("{at}.message: Invalid value: \"a\\nb\": must not contain line breaks"),
        ),
        (
            json!({"rule": "self.size == 1", "reason": "Because"}),
            format!(
                "{at}.reason: Unsupported value: \"Because\": supported values: \"FieldValueDuplicate\""
            ),
        ),
        (
            json!({"rule": "self.size == 1", "fieldPath": ".nothing"}),
            format!("{at}.fieldPath: Invalid value: \".nothing\": must be a valid path"),
        ),
        (
            json!({"rule": "self.size == 1", "optionalOldSelf": true}),
            format!(
                "{at}.optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule"
            ),
        ),
        (
            json!({"rule": "self.size == 1", "messageExpression": "self.x"}),
            format!("{at}.messageExpression: Invalid value: {{"),
        ),
        (
            json!({"rule": "self.free.all(a, self.free.all(b, self.free.all(c, a == b)))"}),
            format!(
                "{at}.rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x"
            ),
        ),
        (
            json!({"rule": "((((((((((((((((((((((((((((((1))))))))))))))))))))))))))))))"}),
            format!("{at}.rule: Invalid value: {{"),
        ),
        (
            json!({"rule": "self.size".to_owned() + &" + 1".repeat(10_000)}),
            format!("{at}.rule: Invalid value: {{"),
        ),
    ] {
        let errors = schema(json!([rule])).expect_err(&rule.to_string());
        assert!(errors[0].starts_with(&start), "{rule}: {}", errors[0]);
        rules += 1;
    }
    assert_eq!(rules, 14);
}

#[test]
fn transition_rules_in_lists_without_keys_are_rejected() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "array", "maxItems": 5, "items": {
        "type": "string", "maxLength": 5, "x-kubernetes-validations": [{"rule": "self == oldSelf"}],
    }}}});
    let errors = Schema::compile(&schema).unwrap_err();
    assert_eq!(
        errors[0].to_string(),
        "properties[a].items.x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf\": oldSelf cannot be used on the uncorrelatable portion of the schema within properties[a]"
    );
    let error = errors[0].clone().under("spec.schema");
    assert_eq!(
        error.path,
        "spec.schema.properties[a].items.x-kubernetes-validations[0].rule"
    );
    assert!(
        error.message.ends_with(" within spec.schema.properties[a]"),
        "{error}"
    );
}

#[test]
fn a_rule_that_actual_values_make_too_expensive_is_not_run() {
    let rule = json!([{"rule": "self.free.all(a, a.matches('^yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy') || true)", "message": "m"}]);
    let small: Vec<String> = (0..100).map(|i| format!("{i}")).collect();
    assert!(check(rule.clone(), json!({"free": small}), None).is_empty());
    let large: Vec<String> = (0..500).map(|_| "y".repeat(5_000)).collect();
    let errors = check(rule, json!({"free": large}), None);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(
        errors[0].contains("call cost exceeds limit for rule: m"),
        "{}",
        errors[0]
    );
}

#[test]
fn the_deepest_accepted_expressions_fit_on_a_small_stack() {
    // 1 MiB is half of the stack of worker threads.
    let run = || {
        for rule in [
            format!("self.size{} > 0", " + 1".repeat(590)),
            format!("{}true", "!".repeat(590)),
            format!("self.labels{} == 'x'", ".a".repeat(300)),
            format!("self.name == 'a'{}", " || self.name == 'b'".repeat(100)),
            format!("self.size == 0{}", " ? true : self.size == 1".repeat(80)),
        ] {
            if let Ok(schema) = schema(json!([{"rule": rule, "message": "m"}])) {
                let _ = schema.validate(
                    &json!({"spec": {"size": 1, "name": "x", "labels": {}}}),
                    None,
                );
            }
        }
    };
    std::thread::Builder::new()
        .stack_size(1 << 20)
        .spawn(run)
        .unwrap()
        .join()
        .unwrap();
}

/// Answers of kube-apiserver: more are in `tests/kubernetes/scenario/54-expressions.yaml`.
#[test]
fn types_that_do_not_go_together_are_refused_with_their_positions() {
    for (rule, expected) in [
        (
            "self.name == null",
            "ERROR: <input>:1:11: found no matching overload for '_==_' applied to '(string, null)'\n | self.name == null\n | ..........^",
        ),
        (
            "self.names.all(x, x.startsWith(self.size))",
            "ERROR: <input>:1:31: found no matching overload for 'startsWith' applied to 'string.(int)'\n | self.names.all(x, x.startsWith(self.size))\n | ..............................^",
        ),
        (
            "self.size == 1.0 && self.name",
            "ERROR: <input>:1:11: found no matching overload for '_==_' applied to '(int, double)'\n | self.size == 1.0 && self.name\n | ..........^\nERROR: <input>:1:25: expected type 'bool' but found 'string'\n | self.size == 1.0 && self.name\n | ........................^",
        ),
        (
            "self.every < duration('1 hour')",
            "ERROR: <input>:1:23: invalid duration argument\n | self.every < duration('1 hour')\n | ......................^",
        ),
        (
            "self.names.exists_one(x, x)",
            "ERROR: <input>:1:22: found no matching overload for '_?_:_' applied to '(string, int, int)'\n | self.names.exists_one(x, x)\n | .....................^",
        ),
    ] {
        let errors = schema(json!([{ "rule": rule }])).expect_err(rule);
        let expected = format!("compilation failed: {expected}");
        assert!(errors[0].ends_with(&expected), "{rule}: {}", errors[0]);
    }
    for (rule, expected) in [
        ("self.port", "cel expression must evaluate to a bool"),
        ("self.?name", "cel expression must evaluate to a bool"),
    ] {
        let errors = schema(json!([{ "rule": rule }])).expect_err(rule);
        assert!(errors[0].ends_with(expected), "{rule}: {}", errors[0]);
    }
    for rule in [
        "self.until == null",
        "self == null",
        "self.port == 1 || self.port == 'x'",
        "self.size < 1.5",
        "self.names == []",
        "size(self.size > 1 ? self.names : []) == 0",
    ] {
        assert!(schema(json!([{ "rule": rule }])).is_ok(), "{rule}");
    }
}
