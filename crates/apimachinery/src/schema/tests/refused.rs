use super::*;

fn refused(schema: Value) -> Vec<String> {
    let errors = Schema::compile(&schema).expect_err("the schema must be refused");
    errors
        .into_iter()
        .map(|error| {
            error
                .under("spec.versions[0].schema.openAPIV3Schema")
                .to_string()
        })
        .collect()
}

#[test]
fn schemas_that_are_not_structural_are_rejected_as_by_the_reference() {
    let at = "spec.versions[0].schema.openAPIV3Schema";
    for (schema, expected) in [
        (
            json!({"type": "array", "items": {"type": "string"}}),
            vec![format!(
                "{at}.type: Invalid value: \"array\": must be object at the root"
            )],
        ),
        (
            json!({}),
            vec![format!(
                "{at}.type: Required value: must not be empty at the root"
            )],
        ),
        (
            json!({"type": "object", "properties": {"spec": {}}}),
            vec![format!(
                "{at}.properties[spec].type: Required value: must not be empty for specified object fields"
            )],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array"}}}),
            vec![format!(
                "{at}.properties[a].items: Required value: must be specified"
            )],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array", "items": {}}}}),
            vec![format!(
                "{at}.properties[a].items.type: Required value: must not be empty for specified array items"
            )],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "strin"}}}),
            vec![format!(
                "{at}.properties[a].type: Unsupported value: \"strin\": supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\""
            )],
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            vec![format!(
                "{at}.additionalProperties: Forbidden: must not be used at the root"
            )],
        ),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object", "required": ["a"]}}}),
            vec![format!(
                "{at}.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified"
            )],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "anyOf": [{"type": "string"}]}}}),
            vec![format!(
                "{at}.properties[a].anyOf[0].type: Forbidden: must be empty to be structural"
            )],
        ),
        (
            json!({"type": "object", "allOf": [{"properties": {"b": {"minLength": 1}}}]}),
            vec![format!(
                "{at}.properties[b]: Required value: because it is defined in allOf[0].properties[b]"
            )],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}),
            vec![],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "x-kubernetes-list-type": "set"}}}),
            vec![format!(
                "{at}.properties[a].type: Invalid value: \"string\": must be array if x-kubernetes-list-type is specified"
            )],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object", "properties": {"k": {"type": "string"}}}}}}),
            vec![format!(
                "{at}.properties[a].items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            )],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "default": 1}}}),
            vec![format!(
                "{at}.properties[a].default: Invalid value: \"integer\":  in body must be of type string: \"integer\""
            )],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}, "default": {"c": 1}}}}),
            vec![format!(
                "{at}.properties[a].default: Invalid value: {{\"c\":1}}: must not have unknown fields"
            )],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "object", "$ref": "#/x"}}}),
            vec![format!(
                "{at}.properties[a].$ref: Forbidden: $ref is not supported"
            )],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array", "uniqueItems": true, "items": {"type": "string"}}}}),
            vec![format!(
                "{at}.properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
            )],
        ),
        (
            json!({"type": "object", "nullable": true}),
            vec![format!(
                "{at}.nullable: Forbidden: nullable cannot be true at the root"
            )],
        ),
    ] {
        let errors = refused(schema.clone());
        if expected.is_empty() {
            assert_eq!(errors.len(), 1, "{schema}: {errors:?}");
        } else {
            assert_eq!(errors, expected, "{schema}");
        }
    }
}

#[test]
fn patterns_that_need_too_much_memory_are_rejected() {
    let errors = refused(
        json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "((a{1000}){1000}){1000}"}}}),
    );
    assert!(
        errors[0].contains("must be a valid regular expression"),
        "{errors:?}"
    );
}
