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
            "spec.variables[0].schema.openAPIV3Schema.type: must be specified",
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
