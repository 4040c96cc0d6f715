use api::core::v1beta2::{ClassVariable, Variable, VariableSchema};
use serde_json::{Value, json};

use super::{Values, data, defaulted, definitions, merged, overridden, validate, value};

fn variable(name: &str, required: bool, schema: Value) -> ClassVariable {
    ClassVariable {
        name: name.to_owned(),
        required,
        schema: VariableSchema {
            open_api_v3_schema: schema,
        },
        ..ClassVariable::default()
    }
}

fn class() -> Vec<ClassVariable> {
    vec![
        variable(
            "image",
            true,
            json!({ "type": "string", "minLength": 2, "example": "ubuntu" }),
        ),
        variable(
            "count",
            false,
            json!({ "type": "integer", "default": 3, "maximum": 5 }),
        ),
        variable(
            "ranges",
            false,
            json!({ "type": "array", "items": { "type": "string", "format": "cidr" }, "default": [] }),
        ),
        variable(
            "bastion",
            false,
            json!({
                "type": "object",
                "required": ["flavor"],
                "properties": {
                    "enabled": { "type": "boolean", "default": false, "x-metadata": { "labels": { "a": "b" } } },
                    "flavor": { "type": "string" },
                },
                "x-kubernetes-validations": [{
                    "rule": "!self.enabled || self.flavor != 'tiny'",
                    "message": "a bastion is more than tiny",
                }],
            }),
        ),
    ]
}

fn values(json: Value) -> Vec<Variable> {
    let fields = json.as_object().cloned().unwrap_or_default().into_iter();
    fields
        .map(|(name, value)| Variable { name, value })
        .collect()
}

fn errors(given: Value, complete: bool) -> Vec<String> {
    let definitions = definitions(&class()).unwrap();
    let found = validate(
        &definitions,
        Values {
            path: "spec.topology.variables",
            values: &values(given),
            complete,
        },
    );
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn defaults_are_set_in_values_and_for_values_that_are_not_given() {
    let definitions = definitions(&class()).unwrap();
    let given = values(json!({ "bastion": { "flavor": "small" }, "image": "ubuntu" }));
    let after = merged(&defaulted(&definitions, &given), &[]);
    assert_eq!(
        serde_json::to_value(&after).unwrap(),
        json!({
            "image": "ubuntu", "count": 3, "ranges": [],
            "bastion": { "flavor": "small", "enabled": false },
        })
    );
    let overrides = overridden(
        &definitions,
        &values(json!({ "bastion": { "flavor": "x" } })),
    );
    assert_eq!(
        overrides,
        values(json!({ "bastion": { "flavor": "x", "enabled": false } }))
    );
}

#[test]
fn values_are_judged_by_schema_and_rules() {
    let valid = json!({ "image": "ubuntu" });
    assert_eq!(errors(valid.clone(), true), Vec::<String>::new());
    let cases = [
        (
            json!({}),
            "spec.topology.variables: the ClusterClass requires a value of image",
        ),
        (
            json!({ "image": "u" }),
            "spec.topology.variables[0].value: Invalid value: \"u\": spec.topology.variables",
        ),
        (
            json!({ "image": 3 }),
            "spec.topology.variables[0].value: Invalid value: \"integer\"",
        ),
        (
            json!({ "image": "ubuntu", "colour": 1 }),
            "the ClusterClass has no variable colour; it has: image, count, ranges, bastion",
        ),
        (
            json!({ "image": "ubuntu", "count": 6 }),
            "should be less than or equal to 5",
        ),
        (json!({ "image": "ubuntu", "ranges": ["x"] }), "value[0]"),
        (
            json!({ "image": "ubuntu", "bastion": {} }),
            "value.flavor: Required value",
        ),
        (
            json!({ "image": "ubuntu", "bastion": { "flavor": "tiny", "enabled": true } }),
            "a bastion is more than tiny",
        ),
        (
            json!({ "image": "ubuntu", "bastion": { "flavor": "a", "size": 1, "enabled": false } }),
            "value.size: the schema of the variable has no such field",
        ),
    ];
    for (given, words) in cases {
        let found = errors(given.clone(), true);
        let part = words
            .strip_suffix(": spec.topology.variables")
            .unwrap_or(words);
        assert!(
            found.iter().any(|error| error.contains(part)),
            "{given}: {words}: {found:?}"
        );
    }
    assert_eq!(
        errors(json!({}), false),
        Vec::<String>::new(),
        "overrides need no required ones"
    );
}

#[test]
fn definitions_that_are_no_schemas_are_reported_with_their_path() {
    let cases = [
        (
            json!({ "properties": {} }),
            "spec.variables[0].schema.openAPIV3Schema.type: Required value",
        ),
        (
            json!({ "type": "string", "default": 3 }),
            "spec.variables[0].schema.openAPIV3Schema.default",
        ),
        (
            json!({ "type": "object", "properties": { "a": {
                "type": "string", "x-kubernetes-validations": [{ "rule": "self == oldSelf" }],
            } } }),
            "spec.variables[0].schema.openAPIV3Schema.properties[a].x-kubernetes-validations[0].rule: rules about changes",
        ),
        (
            json!({ "type": "array" }),
            "spec.variables[0].schema.openAPIV3Schema.items: Required value",
        ),
        (
            json!({ "type": "string", "pattern": "(" }),
            "spec.variables[0].schema.openAPIV3Schema.pattern",
        ),
        (
            json!({ "type": "string", "x-kubernetes-validations": [{ "rule": "self +" }] }),
            "spec.variables[0].schema.openAPIV3Schema.x-kubernetes-validations[0].rule",
        ),
    ];
    for (schema, words) in cases {
        let found = definitions(&[variable("a", false, schema.clone())]).unwrap_err();
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert!(
            found.iter().any(|error| error.starts_with(words)),
            "{schema}: {found:?}"
        );
    }
}

#[test]
fn definitions_are_judged_by_the_rules_of_cluster_api() {
    let accepted = [
        json!({ "type": "array", "uniqueItems": true, "items": { "type": "string" } }),
        json!({ "type": "array", "uniqueItems": false, "items": { "type": "string" } }),
        json!({ "type": "object", "properties": { "a": {
            "type": "array", "items": { "type": "integer" }, "uniqueItems": true, "example": [1, 2],
        } } }),
        json!({ "type": "string", "enum": ["a", "", null], "example": "a" }),
        json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": false }),
        json!({ "type": "array", "items": { "type": "string" }, "x-kubernetes-list-type": "map" }),
    ];
    for schema in accepted {
        let found = definitions(&[variable("a", false, schema.clone())]);
        assert!(found.is_ok(), "{schema}: {found:?}");
    }
    let rejected = [
        (json!({ "type": "string", "enum": ["a", 1] }), "enum[1]"),
        (
            json!({ "type": "string", "maxLength": 2, "enum": ["abc"] }),
            "enum[0]",
        ),
        (json!({ "type": "integer", "example": "three" }), "example"),
        (
            json!({ "type": "string", "enum": ["a"], "example": "b" }),
            "example",
        ),
        (
            json!({ "type": "array", "items": { "type": "integer" }, "uniqueItems": true, "example": [1, 1] }),
            "example",
        ),
        (
            json!({ "type": "object", "properties": { "a": { "type": "boolean", "example": 1 } } }),
            "properties[a].example",
        ),
        (
            json!({ "type": "array", "items": { "type": "string", "minLength": 1, "enum": [""] } }),
            "items.enum[0]",
        ),
        (
            json!({ "type": "object", "additionalProperties": { "type": "string", "example": 1 } }),
            "additionalProperties.example",
        ),
        (
            json!({ "type": "string", "anyOf": [{ "maxLength": 2, "enum": ["abc"] }] }),
            "anyOf[0].enum[0]",
        ),
        (
            json!({ "type": "integer", "enum": [1, 2], "x-kubernetes-validations": [{ "rule": "self != 2" }] }),
            "enum[1]",
        ),
        (
            json!({ "type": "integer", "example": 2, "x-kubernetes-validations": [{ "rule": "self != 2" }] }),
            "example",
        ),
        (
            json!({
                "type": "object", "properties": { "a": { "type": "string" } },
                "additionalProperties": { "type": "string" },
            }),
            "additionalProperties",
        ),
        (
            json!({ "type": "object", "properties": { "a": { "type": "null" } } }),
            "properties[a].type",
        ),
        (
            json!({ "type": "object", "additionalProperties": true }),
            "additionalProperties",
        ),
        (
            json!({ "type": "string", "x-metadata": { "labels": { "a b": "c" } } }),
            "x-metadata.labels",
        ),
        (
            json!({ "type": "array", "items": { "type": "string", "x-metadata": { "annotations": { "a/b/c": "" } } } }),
            "items.x-metadata.annotations",
        ),
    ];
    for (schema, path) in rejected {
        let found = definitions(&[variable("a", false, schema.clone())]).unwrap_err();
        let path = format!("spec.variables[0].schema.openAPIV3Schema.{path}");
        assert!(
            found.iter().any(|error| error.path == path),
            "{schema}: {path}: {found:?}"
        );
    }
}

#[test]
fn values_that_must_be_unique_are_not_repeated() {
    let servers = json!({
        "type": "array", "minItems": 1, "uniqueItems": true, "items": { "type": "string", "format": "ipv4" },
    });
    let definitions = definitions(&[variable("dnsNameservers", true, servers)]).unwrap();
    let found = |given: Value| {
        let all = Values {
            path: "spec.topology.variables",
            values: &values(json!({ "dnsNameservers": given })),
            complete: true,
        };
        let found = validate(&definitions, all);
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        found(json!(["9.9.9.9", "149.112.112.112"])),
        Vec::<String>::new()
    );
    let repeated = found(json!(["9.9.9.9", "1.1.1.1", "9.9.9.9"]));
    assert!(
        repeated.len() == 1
            && repeated[0].starts_with("spec.topology.variables[0].value: ")
            && repeated[0].contains("shouldn't contain duplicates"),
        "{repeated:?}"
    );
}

#[test]
fn a_schema_of_very_many_values_is_judged_in_time_that_grows_with_its_size() {
    let many: Vec<Value> = (0..100_000).map(Value::from).collect();
    let began = std::time::Instant::now();
    let schema = json!({ "type": "object", "properties": {
        "enum": { "type": "integer", "enum": many },
        "example": { "type": "array", "uniqueItems": true, "items": { "type": "integer" }, "example": many },
    } });
    assert!(definitions(&[variable("a", false, schema)]).is_ok());
    let took = began.elapsed();
    assert!(took < std::time::Duration::from_secs(10), "{took:?}");
}

#[test]
fn paths_lead_to_fields_and_elements() {
    let all = merged(
        &values(json!({ "a": { "b": [{ "c": 1 }] }, "list": [[1, 2]], "over": 1 })),
        &values(json!({ "over": 2 })),
    );
    let found = |path: &str| value(&all, path).cloned();
    assert_eq!(found("a.b[0].c"), Ok(json!(1)));
    assert_eq!(found("list[0][1]"), Ok(json!(2)));
    assert_eq!(found("over"), Ok(json!(2)));
    for path in ["x", "a.x", "a.b[1]", "a.b[x]", "a.b[0", "over.x", ""] {
        assert!(found(path).is_err(), "{path}");
    }
    let template = crate::template::Template::parse("{{ (index .a.b 0).c }}").unwrap();
    assert_eq!(template.render(&data(&all)).unwrap(), "1");
}
