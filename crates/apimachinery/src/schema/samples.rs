//! Values in the schema itself, `enum` and `example`: nobody can use a value that the rest of the schema rejects
//! (`validateSchema` in Cluster API's `internal/topology/variables`).

use serde_json::{Map, Value};

use super::{
    FieldError, cel,
    node::{Additional, Node},
    path::Path,
    validate::{self, MOST},
};

/// Appends the violations of all such values. The caller has compiled the schema into `node` and checked its depth.
pub(super) fn check(schema: &Value, node: &mut Node, path: Path<'_>, errors: &mut Vec<FieldError>) {
    let Value::Object(fields) = schema else {
        return;
    };
    if let Some(example) = fields.get("example") {
        judge(example, node, path.field("example"), errors);
    }
    // Values of an enum are members anyway, and looking each of them up would take quadratic time.
    let allowed = node
        .checks
        .as_mut()
        .and_then(|checks| checks.allowed.take());
    let place = path.field("enum");
    for (i, value) in allowed.iter().flatten().enumerate() {
        judge(value, node, place.index(i), errors);
    }
    if let Some(checks) = &mut node.checks {
        checks.allowed = allowed;
    }
    check_inner(fields, node, path, errors);
}

fn check_inner(
    fields: &Map<String, Value>,
    node: &mut Node,
    path: Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if let (Some(schema), Some(items)) = (fields.get("items"), &mut node.items) {
        check(schema, items, path.field("items"), errors);
    }
    if let (Some(schema), Some(Additional::Schema(values))) =
        (fields.get("additionalProperties"), &mut node.additional)
    {
        check(schema, values, path.field("additionalProperties"), errors);
    }
    let properties = path.field("properties");
    for (name, property) in &mut node.properties {
        if let Some(schema) = fields.get("properties").and_then(|all| all.get(name)) {
            check(schema, property, properties.key(name), errors);
        }
    }
    let Some(checks) = &mut node.checks else {
        return;
    };
    for (name, branches) in [
        ("allOf", &mut checks.all_of),
        ("anyOf", &mut checks.any_of),
        ("oneOf", &mut checks.one_of),
    ] {
        let path = path.field(name);
        for (i, branch) in branches.iter_mut().enumerate() {
            if let Some(schema) = fields.get(name).and_then(|all| all.get(i)) {
                check(schema, branch, path.index(i), errors);
            }
        }
    }
    if let (Some(schema), Some(not)) = (fields.get("not"), &mut checks.not) {
        check(schema, not, path.field("not"), errors);
    }
}

/// Validates one value; nulls count as unset and are skipped.
fn judge(value: &Value, node: &Node, path: Path<'_>, errors: &mut Vec<FieldError>) {
    if value.is_null() || errors.len() >= MOST {
        return;
    }
    let mut found = validate::validate(value, node, None);
    if found.is_empty() {
        cel::validate(value, node, None, false, &mut found);
    }
    let at = path.bracketed();
    errors.extend(found.into_iter().map(|error| error.under(&at)));
}
