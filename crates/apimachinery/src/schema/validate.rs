//! Value validation (`kube-openapi/pkg/validation/validate`, with the ratcheting of
//! `apiextensions-apiserver/pkg/apiserver/validation`).

mod scalar;

use serde_json::{Map, Value};

use super::{
    FieldError,
    correlate::{OldItems, unchanged},
    go::go_quote,
    lists,
    node::{Additional, Kind, Node},
    path::Path,
};

/// Maximum number of violations: each has a path, and an object may have as many violations as bytes.
pub(super) const MOST: usize = 256;

/// Violations of a walk, and the number of checks: for a failed `anyOf`, the branch with the most checks is reported.
#[derive(Default)]
struct Outcome {
    errors: Vec<(String, FieldError)>,
    checks: usize,
}

/// Validates `value` by a [`Node`]; `old` is the previous value, if there is one.
pub(super) fn validate(value: &Value, node: &Node, old: Option<&Value>) -> Vec<FieldError> {
    let outcome = validate_node(value, node, Path::Root, old);
    outcome.errors.into_iter().map(|(_, error)| error).collect()
}

/// Validates a node that is not a junctor branch. An unchanged invalid value is accepted.
fn validate_node(value: &Value, node: &Node, path: Path<'_>, old: Option<&Value>) -> Outcome {
    let mut outcome = check(value, node, path, old);
    if !outcome.errors.is_empty() && old.is_some_and(|old| unchanged(node, value, old)) {
        outcome.errors.clear();
    }
    outcome
}

/// Validates even an unchanged value, as for junctor branches.
fn check(value: &Value, node: &Node, path: Path<'_>, old: Option<&Value>) -> Outcome {
    let mut outcome = Outcome::default();
    if value.is_null() {
        outcome.merge(scalar::check_type(value, node, path));
        outcome.merge(scalar::check_enum(value, node, path));
        return outcome;
    }
    outcome.merge(scalar::check_type(value, node, path));
    outcome.checks += 1;
    outcome.merge(check_junctors(value, node, path));
    outcome.checks += 1;
    outcome.merge(scalar::check(value, node, path));
    if let Value::Array(items) = value {
        outcome.merge(check_items(items, node, path, old));
        outcome.checks += 1;
    }
    outcome.merge(scalar::check_enum(value, node, path));
    outcome.checks += 1;
    if let Value::Object(fields) = value {
        outcome.merge(check_fields(fields, node, path, old));
        outcome.checks += 1;
    }
    outcome.checks += 1;
    outcome
}

/// Checks the junctors. Branches have no old values, so unchanged values are not accepted there.
fn check_junctors(value: &Value, node: &Node, path: Path<'_>) -> Outcome {
    let mut outcome = Outcome {
        checks: 1,
        ..Outcome::default()
    };
    let Some(checks) = &node.checks else {
        return outcome;
    };
    let name = || go_quote(&path.dotted());

    if !checks.any_of.is_empty() {
        match first_or_best(value, &checks.any_of, path) {
            Ok(success) => outcome.merge(success),
            Err(failure) => {
                let message = format!("{} must validate at least one schema (anyOf)", name());
                outcome.composite(message);
                outcome.merge(failure);
            }
        }
    }
    if !checks.one_of.is_empty() {
        let mut valid = 0;
        let mut success: Option<Outcome> = None;
        let mut best: Option<Outcome> = None;
        for branch in &checks.one_of {
            let result = check(value, branch, path, None);
            if result.errors.is_empty() {
                valid += 1;
                best = None;
                success.get_or_insert(result);
            } else if valid == 0 && best.as_ref().is_none_or(|b| result.checks > b.checks) {
                best = Some(result);
            }
        }
        match (valid, success) {
            (1, Some(success)) => outcome.merge(success),
            (0, _) => {
                let rule = "must validate one and only one schema (oneOf). Found none valid";
                outcome.composite(format!("{} {rule}", name()));
                outcome.merge(best.unwrap_or_default());
            }
            (found, _) => {
                let rule = "must validate one and only one schema (oneOf)";
                outcome.composite(format!(
                    "{} {rule}. Found {found} valid alternatives",
                    name()
                ));
            }
        }
    }
    if !checks.all_of.is_empty() {
        let mut valid = 0;
        for branch in &checks.all_of {
            let result = check(value, branch, path, None);
            valid += usize::from(result.errors.is_empty());
            outcome.merge(result);
        }
        if valid != checks.all_of.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            outcome.composite(format!(
                "{} must validate all the schemas (allOf){none}",
                name()
            ));
        }
    }
    if let Some(branch) = &checks.not
        && check(value, branch, path, None).errors.is_empty()
    {
        outcome.composite(format!("{} must not validate the schema (not)", name()));
    }
    outcome
}

/// Returns the [`Outcome`] of the first branch that accepts the value, or of the branch with the most checks.
fn first_or_best(value: &Value, branches: &[Node], path: Path<'_>) -> Result<Outcome, Outcome> {
    let mut best: Option<Outcome> = None;
    for branch in branches {
        let result = check(value, branch, path, None);
        if result.errors.is_empty() {
            return Ok(result);
        }
        if best.as_ref().is_none_or(|b| result.checks > b.checks) {
            best = Some(result);
        }
    }
    Err(best.unwrap_or_default())
}

fn check_items(items: &[Value], node: &Node, path: Path<'_>, old: Option<&Value>) -> Outcome {
    let mut outcome = Outcome {
        checks: 1,
        ..Outcome::default()
    };
    if let Some(schema) = &node.items {
        let old = OldItems::new(node, old);
        for (i, item) in items.iter().enumerate() {
            if outcome.errors.len() >= MOST {
                break;
            }
            let old = old.as_ref().and_then(|old| old.get(item));
            outcome.merge(validate_node(item, schema, path.index(i), old));
        }
    }
    let Some(checks) = &node.checks else {
        return outcome;
    };
    let count = items.len() as i64;
    let name = || path.dotted();
    if let Some(min) = checks.min_items.filter(|min| count < *min) {
        let message = format!("{} in body should have at least {min} items", name());
        outcome.fail(
            message,
            |path, message| FieldError::invalid(path, &count.into(), message),
            path,
        );
    }
    if let Some(max) = checks.max_items.filter(|max| count > *max) {
        let message = format!("{} in body should have at most {max} items", name());
        outcome.fail(
            message,
            |path, _| FieldError::too_many(path, count, max),
            path,
        );
    }
    if checks.unique && lists::has_duplicates(items) {
        let message = format!("{} in body shouldn't contain duplicates", name());
        let error = |path, message: &str| FieldError::invalid(path, &Value::from(""), message);
        outcome.fail(message, error, path);
    }
    outcome
}

fn check_fields(
    fields: &Map<String, Value>,
    node: &Node,
    path: Path<'_>,
    old: Option<&Value>,
) -> Outcome {
    let mut outcome = Outcome::default();
    let count = fields.len() as i64;
    if let Some(checks) = &node.checks {
        if let Some(min) = checks.min_properties.filter(|min| count < *min) {
            let message = format!(
                "{} in body should have at least {min} properties",
                path.dotted()
            );
            let error = |path, message: &str| FieldError::invalid(path, &count.into(), message);
            outcome.fail(message, error, path);
        }
        if let Some(max) = checks.max_properties.filter(|max| count > *max) {
            let message = format!(
                "{} in body should have at most {max} properties",
                path.dotted()
            );
            outcome.fail(
                message,
                |path, _| FieldError::too_many(path, count, max),
                path,
            );
        }
    }
    let root = matches!(path, Path::Root);
    for (name, value) in fields {
        if outcome.errors.len() >= MOST {
            break;
        }
        let old = old.and_then(|old| old.get(name));
        if let Some(property) = node.properties.get(name) {
            // A change of version is not visible in these two fields, so they are always validated.
            let old = old.filter(|_| !(root && matches!(name.as_str(), "apiVersion" | "kind")));
            outcome.merge(validate_node(value, property, path.field(name), old));
            continue;
        }
        match &node.additional {
            Some(Additional::Schema(schema)) => {
                outcome.merge(validate_node(value, schema, path.key(name), old));
            }
            Some(Additional::Any(false)) => {
                let message = format!("{}.{name} in body is a forbidden property", path.dotted());
                let name = Value::from(name.as_str());
                outcome.fail(message, |path, m| FieldError::invalid(path, &name, m), path);
            }
            _ => {}
        }
    }
    for name in node.checks.iter().flat_map(|checks| &checks.required) {
        if !fields.contains_key(name) {
            let message = format!("{}.{name} in body is required", path.dotted());
            outcome.fail(
                message,
                |path, _| FieldError::required(path, ""),
                path.field(name),
            );
        }
    }
    outcome
}

impl Outcome {
    fn merge(&mut self, other: Self) {
        self.checks += other.checks;
        for (text, error) in other.errors {
            self.push(text, error);
        }
    }

    /// Records a violation at `path`; `error` gets the printed path and the message.
    fn fail(
        &mut self,
        message: String,
        error: impl FnOnce(String, &str) -> FieldError,
        path: Path<'_>,
    ) {
        let name = path.dotted();
        let error = error(name.strip_prefix('.').unwrap_or(&name).to_owned(), &message);
        self.push(message, error);
    }

    /// Records a violation without a field, as for junctors.
    fn composite(&mut self, message: String) {
        let error = FieldError::invalid("", &Value::from(""), &message);
        self.push(message, error);
    }

    fn push(&mut self, text: String, error: FieldError) {
        if !self.errors.iter().any(|(reported, _)| *reported == text) {
            self.errors.push((text, error));
        }
    }
}

impl Kind {
    /// Returns the JSON type of a value; integers are distinguished, as in Go's decoder.
    fn of(value: &Value) -> &'static str {
        match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_i64() => "integer",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        }
    }
}
