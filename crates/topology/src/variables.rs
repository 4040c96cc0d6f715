//! Variables of a ClusterClass.
//!
//! A definition is a structural schema with CEL rules. Cluster API's rules for such schemas apply, which differ from
//! the rules for CustomResourceDefinitions; values are defaulted and validated by the same code as custom resources
//! ([`Schema`]).

use std::collections::BTreeMap;

use api::admission::FieldError;
use api::core::v1beta2::{ClassVariable, Variable};
use apimachinery::names::{label_key_problems, label_value_problems};
use apimachinery::schema::Schema;
use serde_json::{Map, Value, json};

/// Name of the variable with the builtin variables as fields.
pub const BUILTIN: &str = "builtin";
/// Only field of the object around a variable's schema: the root of a compiled [`Schema`] must be an object.
const FIELD: &str = "value";
/// Keywords of a variable's schema that decide which values are valid. Cluster API ignores all others, without an
/// error.
const KEYWORDS: [&str; 28] = [
    "additionalProperties",
    "allOf",
    "anyOf",
    "default",
    "enum",
    "example",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "not",
    "oneOf",
    "pattern",
    "properties",
    "required",
    "type",
    "uniqueItems",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

/// Compiled definition.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Name of the variable.
    pub name: String,
    /// True if a Cluster must have a value.
    pub required: bool,
    schema: Schema,
}

/// Compiles the definitions of a class.
///
/// # Errors
/// Every definition without a valid schema, with paths below `spec.variables`.
pub fn definitions(variables: &[ClassVariable]) -> Result<Vec<Definition>, Vec<FieldError>> {
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    for (at, variable) in variables.iter().enumerate() {
        match compile(variable) {
            Ok(schema) => found.push(Definition {
                name: variable.name.clone(),
                required: variable.required,
                schema,
            }),
            Err(problems) => errors.extend(problems.into_iter().map(|(path, message)| {
                let path = if path.is_empty() {
                    path
                } else {
                    format!(".{path}")
                };
                let path = format!("spec.variables[{at}].schema.openAPIV3Schema{path}");
                FieldError::new(path, message)
            })),
        }
    }
    if errors.is_empty() {
        Ok(found)
    } else {
        Err(errors)
    }
}

/// Compiles the schema of a variable.
fn compile(variable: &ClassVariable) -> Result<Schema, Vec<(String, String)>> {
    let mut schema = variable.schema.open_api_v3_schema.clone();
    let mut metadata = Vec::new();
    about_metadata(&schema, "", &mut metadata);
    if !metadata.is_empty() {
        return Err(metadata);
    }
    reduce(&mut schema);
    let mut changes = Vec::new();
    about_changes(&schema, "", &mut changes);
    if !changes.is_empty() {
        return Err(changes);
    }
    let root = json!({ "type": "object", "properties": { FIELD: schema } });
    Schema::compile_variables(&root).map_err(|errors| {
        let prefix = format!("properties[{FIELD}]");
        let inner = |path: &str| {
            let path = path.strip_prefix(&prefix).unwrap_or(path);
            path.trim_start_matches('.').to_owned()
        };
        errors
            .into_iter()
            .map(|error| (inner(&error.path), error.message))
            .collect()
    })
}

/// Finds rules that compare a value with the old one: a reconcile of a topology has no old value.
fn about_changes(schema: &Value, path: &str, found: &mut Vec<(String, String)>) {
    let rules = schema
        .get("x-kubernetes-validations")
        .and_then(Value::as_array);
    for (at, rule) in rules.into_iter().flatten().enumerate() {
        let text = rule["rule"].as_str().unwrap_or_default();
        if text.contains("oldSelf") {
            let path = format!("{path}x-kubernetes-validations[{at}].rule");
            found.push((
                path,
                "rules about changes of variables (oldSelf) are not built".to_owned(),
            ));
        }
    }
    for name in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get(name) {
            about_changes(inner, &format!("{path}{name}."), found);
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, inner) in properties.into_iter().flatten() {
        about_changes(inner, &format!("{path}properties[{name}]."), found);
    }
}

/// Finds labels and annotations of a schema that no object could have. Recursion is bounded by the depth of JSON.
fn about_metadata(schema: &Value, path: &str, found: &mut Vec<(String, String)>) {
    let of = |field: &str| {
        schema["x-metadata"][field]
            .as_object()
            .into_iter()
            .flatten()
    };
    let mut add = |field: &str, key: &str, problems: Vec<String>| {
        let path = format!("{path}x-metadata.{field}");
        found.extend(
            problems
                .into_iter()
                .map(|problem| (path.clone(), format!("{key}: {problem}"))),
        );
    };
    for (key, value) in of("labels") {
        add("labels", key, label_key_problems(key));
        let value = value.as_str().unwrap_or_default();
        add("labels", key, label_value_problems(value));
    }
    for (key, _) in of("annotations") {
        add("annotations", key, label_key_problems(&key.to_lowercase()));
    }
    for name in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get(name) {
            about_metadata(inner, &format!("{path}{name}."), found);
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, inner) in properties.into_iter().flatten() {
        about_metadata(inner, &format!("{path}properties[{name}]."), found);
    }
}

/// Removes all but [`KEYWORDS`], in nested schemas as well.
fn reduce(schema: &mut Value) {
    let Value::Object(fields) = schema else {
        return;
    };
    fields.retain(|name, value| {
        let is_default = name == "x-kubernetes-preserve-unknown-fields" && *value == false;
        KEYWORDS.contains(&name.as_str()) && !is_default
    });
    for name in ["items", "additionalProperties", "not"] {
        if let Some(inner) = fields.get_mut(name) {
            reduce(inner);
        }
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = fields.get_mut(name) {
            branches.iter_mut().for_each(reduce);
        }
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(reduce);
    }
}

/// Returns the values of a Cluster with defaults: inside of given values, and for variables without a value.
pub fn defaulted(definitions: &[Definition], values: &[Variable]) -> Vec<Variable> {
    let mut all = overridden(definitions, values);
    for definition in definitions {
        if values.iter().any(|value| value.name == definition.name) {
            continue;
        }
        let mut object = json!({});
        if definition.schema.default(&mut object).is_ok()
            && let Some(value) = object.get_mut(FIELD)
        {
            all.push(Variable {
                name: definition.name.clone(),
                value: value.take(),
            });
        }
    }
    all
}

/// Returns values with defaults inside; unlike [`defaulted`], variables without a value get none.
pub fn overridden(definitions: &[Definition], values: &[Variable]) -> Vec<Variable> {
    let with_defaults = |variable: &Variable| {
        let known = definitions.iter().find(|known| known.name == variable.name);
        let Some(definition) = known else {
            return variable.clone();
        };
        let mut object = json!({ FIELD: variable.value });
        // A value too large with its defaults stays without them, and validation reports the size.
        match definition.schema.default(&mut object) {
            Ok(()) => Variable {
                name: variable.name.clone(),
                value: object.get_mut(FIELD).map(Value::take).unwrap_or_default(),
            },
            Err(_) => variable.clone(),
        }
    };
    values.iter().map(with_defaults).collect()
}

/// Values at `path` of a Cluster, such as `spec.topology.variables`.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    /// Path of the list.
    pub path: &'a str,
    /// Values of the list.
    pub values: &'a [Variable],
    /// True for the complete values. Overrides may omit required variables.
    pub complete: bool,
}

/// Returns a [`FieldError`] for every invalid value.
pub fn validate(definitions: &[Definition], all: Values<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let Values {
        path,
        values,
        complete,
    } = all;
    for (at, variable) in values.iter().enumerate() {
        let path = format!("{path}[{at}]");
        let known = definitions.iter().find(|known| known.name == variable.name);
        let Some(definition) = known else {
            let names: Vec<_> = definitions
                .iter()
                .map(|known| known.name.as_str())
                .collect();
            let message = format!(
                "the ClusterClass has no variable {}; it has: {}",
                variable.name,
                names.join(", ")
            );
            errors.push(FieldError::new(format!("{path}.name"), message));
            continue;
        };
        errors.extend(definition.problems(&path, variable));
    }
    if complete {
        for definition in definitions.iter().filter(|definition| definition.required) {
            if !values.iter().any(|value| value.name == definition.name) {
                let message = format!("the ClusterClass requires a value of {}", definition.name);
                errors.push(FieldError::new(path, message));
            }
        }
    }
    errors
}

impl Definition {
    fn problems(&self, path: &str, variable: &Variable) -> Vec<FieldError> {
        let object = json!({ FIELD: variable.value });
        let at = |inner: &str| {
            let inner = inner.strip_prefix(FIELD).unwrap_or(inner);
            format!("{path}.value{inner}")
        };
        let mut pruned = object.clone();
        if self.schema.default(&mut pruned).is_err() {
            let message = "would be too large with the defaults of its schema";
            return vec![FieldError::new(at(""), message)];
        }
        let unknown = self.schema.prune(&mut pruned);
        let mut errors: Vec<_> = unknown
            .iter()
            .map(|inner| FieldError::new(at(inner), "the schema of the variable has no such field"))
            .collect();
        let found = self.schema.validate(&object, None);
        errors.extend(
            found
                .into_iter()
                .map(|error| FieldError::new(at(&error.path), error.message)),
        );
        errors
    }
}

/// Values by the names of their variables.
pub type Named = BTreeMap<String, Value>;

/// Returns the values by name; values in `overrides` take precedence.
pub fn merged(values: &[Variable], overrides: &[Variable]) -> Named {
    let all = values.iter().chain(overrides);
    all.map(|variable| (variable.name.clone(), variable.value.clone()))
        .collect()
}

/// Returns the value at a path such as `builtin.cluster.name` or `list[0].field`.
///
/// # Errors
/// A sentence with the part of the path without a value.
pub fn value<'a>(values: &'a Named, path: &str) -> Result<&'a Value, String> {
    let mut steps = path.split('.');
    let first = steps.next().unwrap_or_default();
    let (name, indices) = indexed(first)?;
    let root = values
        .get(name)
        .ok_or_else(|| format!("variable {name} has no value"))?;
    let mut at = step(root, &indices, path)?;
    for part in steps {
        let (name, indices) = indexed(part)?;
        let field = at.get(name).filter(|_| at.is_object());
        let field =
            field.ok_or_else(|| format!("variable {path} has no value: there is no {name}"))?;
        at = step(field, &indices, path)?;
    }
    Ok(at)
}

fn step<'a>(value: &'a Value, indices: &[usize], path: &str) -> Result<&'a Value, String> {
    let mut at = value;
    for index in indices {
        let item = at.get(index);
        at = item
            .ok_or_else(|| format!("variable {path} has no value: there is no element {index}"))?;
    }
    Ok(at)
}

/// Splits `name[0][1]` into name and indices.
fn indexed(part: &str) -> Result<(&str, Vec<usize>), String> {
    let Some((name, rest)) = part.split_once('[') else {
        return Ok((part, Vec::new()));
    };
    let problem = || format!("{part} is not a name with an index such as list[0]");
    let inner = rest.strip_suffix(']').ok_or_else(problem)?;
    let indices = inner
        .split("][")
        .map(|index| index.parse().map_err(|_| problem()));
    Ok((name, indices.collect::<Result<_, _>>()?))
}

/// Returns variables as data for the templates of a patch.
pub fn data(values: &Named) -> crate::template::Value {
    let fields: Map<String, Value> = values.clone().into_iter().collect();
    crate::template::Value::from(&Value::Object(fields))
}

#[cfg(test)]
mod tests;
