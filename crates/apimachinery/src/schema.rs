//! Structural schemas of CustomResourceDefinitions, compiled once and used for pruning, defaulting and validation, in
//! this order.
//!
//! Behaviour and messages follow `k8s.io/apiextensions-apiserver` 0.34, including ratcheting: on update, an invalid
//! value that is unchanged stays accepted. Where the reference iterates over maps in random order, errors are sorted by
//! field name here.

mod budget;
mod cel;
mod correlate;
mod defaults;
mod embedded;
mod error;
mod format;
mod go;
mod lists;
mod node;
mod path;
mod prune;
mod samples;
mod structural;
mod validate;

pub use budget::Overflow;
pub(crate) use budget::{Budget, weight};
pub use cel::Condition;
pub use error::{FieldError, Reason};
pub(crate) use go::go_syntax;
pub use go::{go_json, go_plain, go_quote, json_type};
pub(crate) use node::{Additional, Kind, ListType, MapType, Node};

use std::sync::Arc;

use serde_json::Value;

use path::Path;

/// Maximum depth of objects, schemas and patches: less than the 128 levels of JSON readers, since lists and watch
/// events wrap objects in one or two more.
pub const MAX_DEPTH: usize = 120;

/// Maximum size of a stored object in bytes: the default limit of requests to etcd (`--max-request-bytes`).
pub const MAX_BYTES: usize = 3 << 19;

/// Maximum number of unknown or duplicate fields in a report, as in `sigs.k8s.io/json`.
pub const MAX_REPORTED: usize = 100;

/// Rules for the keywords of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rules {
    /// Rules for CustomResourceDefinitions.
    Definition,
    /// Rules for variables of a ClusterClass.
    Variables,
}

/// Compiled `openAPIV3Schema`. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Schema {
    root: Arc<Node>,
}

impl Schema {
    /// Compiles a schema, or returns the violations. The paths of errors start at the schema (`properties[spec].type`;
    /// empty for the schema itself): see [`FieldError::under`].
    pub fn compile(schema: &Value) -> Result<Self, Vec<FieldError>> {
        Self::compiled(schema, Rules::Definition)
    }

    /// Compiles the schema of variables of a ClusterClass, like Cluster API's webhook: the schema must be structural,
    /// but may have `uniqueItems`, and each value of an `enum` and each `example` must be valid by the schema around
    /// it.
    ///
    /// # Errors
    /// All violations, with paths as in [`Self::compile`].
    pub fn compile_variables(schema: &Value) -> Result<Self, Vec<FieldError>> {
        Self::compiled(schema, Rules::Variables)
    }

    fn compiled(schema: &Value, rules: Rules) -> Result<Self, Vec<FieldError>> {
        if too_deep(schema) {
            let detail = format!("must not be nested deeper than {MAX_DEPTH}");
            return Err(vec![FieldError::forbidden("", detail)]);
        }
        let mut errors = Vec::new();
        let mut root = Node::read(schema, Path::Root, &mut errors);
        structural::check(schema, &mut errors);
        if errors.is_empty() {
            check_defaults(&root, Path::Root, &mut errors);
        }
        match rules {
            Rules::Definition => structural::check_extensions(schema, &mut errors),
            Rules::Variables => structural::check_types(schema, &mut errors),
        }
        cel::check(schema, &root, &mut errors);
        if errors.is_empty() {
            cel::compile(schema, &mut root, &mut errors);
        }
        if errors.is_empty() && root.has_rules {
            check_defaults(&root, Path::Root, &mut errors);
        }
        if errors.is_empty() && rules == Rules::Variables {
            samples::check(schema, &mut root, Path::Root, &mut errors);
        }
        if errors.is_empty() {
            Ok(Self {
                root: Arc::new(root),
            })
        } else {
            Err(errors)
        }
    }

    /// Removes unknown fields and returns their sorted paths in the form of field validation: `spec.foo`,
    /// `spec.list[0].bar`.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        if too_deep(object) {
            return Vec::new(); // rejected by `validate`
        }
        prune::prune(object, &self.root)
    }

    /// Removes nulls of fields that are neither nullable nor have a default, then fills in defaults.
    ///
    /// # Errors
    /// [`Overflow`] if the defaults alone are larger than an object that can be stored; `object` may have some of them
    /// then.
    pub fn default(&self, object: &mut Value) -> Result<(), Overflow> {
        if too_deep(object) {
            return Ok(());
        }
        defaults::prune_nulls(object, Some(&self.root));
        self.fill(object)
    }

    /// Fills in defaults alone, as kube-apiserver after a server-side apply: other nulls stay, to be validated.
    ///
    /// # Errors
    /// [`Overflow`], as from [`Self::default`].
    pub fn fill(&self, object: &mut Value) -> Result<(), Overflow> {
        if too_deep(object) {
            return Ok(());
        }
        let mut budget = Budget::new(MAX_BYTES);
        defaults::fill(object, &self.root, &mut budget);
        budget.done()
    }

    /// Validates a whole object. With `old`, transition rules are evaluated, and violations by unchanged values are
    /// omitted.
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        if too_deep(object) || old.is_some_and(too_deep) {
            let detail = format!("must not be nested deeper than {MAX_DEPTH}");
            return vec![FieldError::forbidden("", detail)];
        }
        validate_all(object, &self.root, old, Vec::new())
    }

    /// Validates like [`Self::validate`] and inserts `others` between the violations of the schema and the violations
    /// of CEL rules.
    pub fn validate_beside(
        &self,
        object: &Value,
        old: Option<&Value>,
        others: Vec<FieldError>,
    ) -> Vec<FieldError> {
        if too_deep(object) || old.is_some_and(too_deep) {
            return self.validate(object, old);
        }
        validate_all(object, &self.root, old, others)
    }

    /// Returns the root [`Node`], for server-side apply and OpenAPI.
    pub(crate) fn root(&self) -> &Node {
        &self.root
    }
}

/// True if a value is nested deeper than [`MAX_DEPTH`].
pub fn too_deep(value: &Value) -> bool {
    depth(value) > MAX_DEPTH
}

/// Returns the number of nested arrays and objects: 0 for a scalar. Neither recurses nor continues beyond [`MAX_DEPTH`]
/// + 1.
pub fn depth(value: &Value) -> usize {
    let mut level: Vec<&Value> = vec![value];
    for depth in 0..=MAX_DEPTH {
        let mut next = Vec::new();
        let mut nested = false;
        for value in level {
            match value {
                Value::Array(items) => next.extend(items),
                Value::Object(fields) => next.extend(fields.values()),
                _ => continue,
            }
            nested = true;
        }
        if !nested {
            return depth;
        }
        level = next;
    }
    MAX_DEPTH + 1
}

fn validate_all(
    object: &Value,
    node: &Node,
    old: Option<&Value>,
    others: Vec<FieldError>,
) -> Vec<FieldError> {
    let mut errors = validate::validate(object, node, old);
    errors.extend(others);
    embedded::validate(object, node, Path::Root, &mut errors);
    let duplicates = |object: &Value| {
        let mut errors = Vec::new();
        lists::validate(object, node, Path::Root, &mut errors);
        errors
    };
    if old.is_none_or(|old| duplicates(old).is_empty()) {
        errors.extend(duplicates(object));
    }
    if node.has_rules {
        let blocking = |error: &FieldError| {
            use Reason::{NotSupported, Required, TooLong, TooMany, TypeInvalid};
            matches!(
                error.reason,
                NotSupported | Required | TooLong | TooMany | TypeInvalid
            )
        };
        if errors.iter().any(blocking) {
            let detail = "some validation rules were not checked because the object was invalid; \
                          correct the existing errors to complete validation";
            errors.push(FieldError::invalid("", &Value::Null, detail));
        } else {
            cel::validate(object, node, old, true, &mut errors);
        }
    }
    errors
}

/// Checks that defaults are pruned and valid.
fn check_defaults(node: &Node, path: Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some(default) = &node.default {
        let at = path.field("default").bracketed();
        let mut pruned = default.clone();
        prune::prune_value(&mut pruned, node);
        if pruned != *default {
            errors.push(FieldError::invalid(
                at.as_str(),
                default,
                "must not have unknown fields",
            ));
        }
        let mut found = Vec::new();
        embedded::validate(default, node, Path::Root, &mut found);
        if found.is_empty() {
            found = validate::validate(default, node, None);
        }
        if found.is_empty() {
            cel::validate(default, node, Some(default), false, &mut found);
            if found.is_empty() {
                cel::validate(default, node, None, false, &mut found);
            }
        }
        errors.extend(found.into_iter().map(|error| error.under(&at)));
    }
    if let Some(items) = &node.items {
        check_defaults(items, path.field("items"), errors);
    }
    let properties = path.field("properties");
    for (name, property) in &node.properties {
        check_defaults(property, properties.key(name), errors);
    }
}

#[cfg(test)]
mod tests;
