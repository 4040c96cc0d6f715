use super::*;

/// A schema for `spec.x` and a value for it.
fn messages(property: Value, value: Value) -> Vec<String> {
    let schema = compile(json!({
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"x": property}}},
    }));
    let object = json!({"spec": {"x": value}});
    schema
        .validate(&object, None)
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn violations_have_the_messages_of_the_reference() {
    let integer = json!({"type": "integer"});
    for (property, value, expected) in [
        (
            integer.clone(),
            json!("a"),
            "spec.x: Invalid value: \"string\": spec.x in body must be of type integer: \"string\"",
        ),
        (
            integer.clone(),
            json!(null),
            "spec.x: Invalid value: \"null\": spec.x in body must be of type integer: \"null\"",
        ),
        (
            json!({"type": "integer", "format": "int32"}),
            json!(true),
            "spec.x: Invalid value: \"boolean\": spec.x in body must be of type integer: \"boolean\"",
        ),
        (
            json!({"type": "integer", "minimum": 1}),
            json!(0),
            "spec.x: Invalid value: 0: spec.x in body should be greater than or equal to 1",
        ),
        (
            json!({"type": "integer", "maximum": 1, "exclusiveMaximum": true}),
            json!(1),
            "spec.x: Invalid value: 1: spec.x in body should be less than 1",
        ),
        (
            json!({"type": "number", "maximum": 1.5}),
            json!(1.75),
            "spec.x: Invalid value: 1.75: spec.x in body should be less than or equal to 1.5",
        ),
        (
            json!({"type": "integer", "multipleOf": 3}),
            json!(4),
            "spec.x: Invalid value: 4: spec.x in body should be a multiple of 3",
        ),
        (
            json!({"type": "string", "enum": ["a", "b"]}),
            json!("c"),
            "spec.x: Unsupported value: \"c\": supported values: \"a\", \"b\"",
        ),
        (
            json!({"type": "integer", "enum": [1, 2]}),
            json!(3),
            "spec.x: Unsupported value: 3: supported values: \"1\", \"2\"",
        ),
        (
            json!({"type": "string", "maxLength": 2}),
            json!("äöü"),
            "spec.x: Too long: may not be more than 2 bytes",
        ),
        (
            json!({"type": "string", "minLength": 1}),
            json!(""),
            "spec.x: Invalid value: \"\": spec.x in body should be at least 1 chars long",
        ),
        (
            json!({"type": "string", "pattern": "^a+$"}),
            json!("b\n"),
            "spec.x: Invalid value: \"b\\n\": spec.x in body should match '^a+$'",
        ),
        (
            json!({"type": "string", "format": "date-time"}),
            json!("yesterday"),
            "spec.x: Invalid value: \"yesterday\": spec.x in body must be of type date-time: \"yesterday\"",
        ),
        (
            json!({"type": "string", "format": "date-time"}),
            json!(5),
            "spec.x: Invalid value: \"int64\": spec.x in body must be of type date-time: \"int64\"",
        ),
        (
            json!({"type": "array", "maxItems": 1, "items": {"type": "string"}}),
            json!(["a", "b"]),
            "spec.x: Too many: 2: must have at most 1 item",
        ),
        (
            json!({"type": "array", "minItems": 1, "items": {"type": "string"}}),
            json!([]),
            "spec.x: Invalid value: 0: spec.x in body should have at least 1 items",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            json!(["a", 1]),
            "spec.x[1]: Invalid value: \"integer\": spec.x[1] in body must be of type string: \"integer\"",
        ),
        (
            json!({"type": "object", "minProperties": 1, "properties": {"a": {"type": "string"}}}),
            json!({}),
            "spec.x: Invalid value: 0: spec.x in body should have at least 1 properties",
        ),
        (
            json!({"type": "object", "maxProperties": 1, "additionalProperties": {"type": "string"}}),
            json!({"a": "", "b": ""}),
            "spec.x: Too many: 2: must have at most 1 item",
        ),
        (
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}),
            json!({}),
            "spec.x.a: Required value",
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"a.b/c": 1}),
            "spec.x.a.b/c: Invalid value: \"integer\": spec.x.a.b/c in body must be of type string: \"integer\"",
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!(true),
            "spec.x: Invalid value: \"boolean\": spec.x in body must be of type integer,string: \"boolean\"",
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}),
            json!(["a", "b", "a", "a"]),
            "spec.x[2]: Duplicate value: \"a\"",
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}}}),
            json!([{"k": "<"}, {"k": "<"}]),
            "spec.x[1]: Duplicate value: {\"k\":\"\\u003c\"}",
        ),
        (
            json!({"type": "string", "not": {"enum": ["a"]}}),
            json!("a"),
            "<nil>: Invalid value: \"\": \"spec.x\" must not validate the schema (not)",
        ),
    ] {
        assert_eq!(messages(property, value), [expected]);
    }
}

#[test]
fn junctors_report_themselves_and_the_branch_with_the_most_checks() {
    let property = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}]});
    assert_eq!(
        messages(property.clone(), json!({})),
        [
            "<nil>: Invalid value: \"\": \"spec.x\" must validate one and only one schema (oneOf). Found none valid",
            "spec.x.a: Required value",
        ]
    );
    assert_eq!(
        messages(property, json!({"a": "", "b": ""})),
        [
            "<nil>: Invalid value: \"\": \"spec.x\" must validate one and only one schema (oneOf). Found 2 valid alternatives"
        ]
    );
    let property = json!({"type": "string", "allOf": [{"minLength": 2}, {"pattern": "^b"}]});
    assert_eq!(
        messages(property, json!("a")),
        [
            "spec.x: Invalid value: \"a\": spec.x in body should be at least 2 chars long",
            "spec.x: Invalid value: \"a\": spec.x in body should match '^b'",
            "<nil>: Invalid value: \"\": \"spec.x\" must validate all the schemas (allOf). None validated",
        ]
    );
}

#[test]
fn embedded_objects_need_a_type() {
    let property = json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
    assert_eq!(
        messages(
            property.clone(),
            json!({"kind": "", "metadata": {"name": "a/b"}})
        ),
        [
            "spec.x.apiVersion: Required value",
            "spec.x.kind: Invalid value: \"\": must not be empty",
            "spec.x.metadata.name: Invalid value: \"a/b\": may not contain '/'",
        ]
    );
    assert!(
        messages(
            property,
            json!({"apiVersion": "v1", "kind": "Pod", "spec": {}})
        )
        .is_empty()
    );
}

#[test]
fn formats_accept_and_reject() {
    for (format, good, bad) in [
        ("date-time", "2026-11-20T10:00:00.5+01:00", "2026-11-20"),
        ("date", "2026-11-20", "2026-13-20"),
        ("duration", "1h30m", "soon"),
        ("duration", "22 ns", "1 parsec"),
        ("ipv4", "127.0.0.1", "127.0.0.256"),
        ("ipv6", "::1", "127.0.0.1"),
        ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
        ("mac", "00:11:22:33:44:55", "00:11:22:33:44"),
        ("uuid", "123E4567-E89B-12D3-A456-426614174000", "123"),
        (
            "uuid4",
            "123e4567-e89b-42d3-a456-426614174000",
            "123e4567-e89b-12d3-a456-426614174000",
        ),
        ("hostname", "a.example.com", "-a"),
        ("email", "a@example.com", "a.example.com"),
        ("uri", "https://example.com/a?b", "example com"),
        ("byte", "aGk=", "aGk"),
        ("isbn10", "0321751043", "0321751044"),
        ("isbn13", "978-0321751041", "978-0321751042"),
        ("creditcard", "4111 1111 1111 1111", "4111 1111 1111 1112"),
        ("ssn", "078-05-1120", "078-05-112"),
        ("hexcolor", "#FFF", "#FFFF"),
        ("rgbcolor", "rgb(1, 2, 255)", "rgb(1,2,256)"),
        ("k8s-short-name", "a-b", "A"),
        ("k8s-long-name", "a-b.c", "a..b"),
    ] {
        let property = json!({"type": "string", "format": format});
        assert!(
            messages(property.clone(), json!(good)).is_empty(),
            "{format} {good}"
        );
        assert_eq!(messages(property, json!(bad)).len(), 1, "{format} {bad}");
    }
    assert!(messages(json!({"type": "string", "format": "made-up"}), json!("x")).is_empty());
}

/// `kube-apiserver` drops these formats before it validates (`StripUnsupportedFormatsPostProcess`).
#[test]
fn formats_of_integers_are_not_enforced() {
    for format in ["int32", "int64"] {
        let property = json!({"type": "integer", "format": format});
        for value in [json!(99_999_999_999_i64), json!(i64::MAX)] {
            assert_eq!(messages(property.clone(), value), Vec::<String>::new());
        }
    }
}

#[test]
fn floats_count_as_integers_as_in_the_reference() {
    let property = json!({"type": "integer"});
    for value in [
        -3.0,
        9_007_199_254_740_991.0,
        1_000_000_000.5,
        100.000_000_01,
    ] {
        assert_eq!(
            messages(property.clone(), json!(value)),
            Vec::<String>::new(),
            "{value}"
        );
    }
    let expected =
        "spec.x: Invalid value: \"number\": spec.x in body must be of type integer: \"number\"";
    for value in [
        json!(-3.5),
        json!(1.5),
        json!(9_007_199_254_740_992.0),
        json!(1e20),
        json!(u64::MAX),
    ] {
        assert_eq!(messages(property.clone(), value), [expected]);
    }
}
