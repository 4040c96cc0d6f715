//! Evaluation of rules.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use kube_cel::{
    KubeCelExt as _,
    cel::{self, Context, ExecutionError, IdedExpr, ResolveResult, extractors::Arguments},
};
use serde_json::Value;

use super::{
    CALL_LIMIT, OBJECT_LIMIT, Rule,
    convert::{optional, to_cel},
    cost::estimate,
    measure::Measure,
};
use crate::schema::{
    FieldError,
    correlate::{OldItems, unchanged},
    node::{Additional, Node},
    path::Path,
};

/// Maximum length of the message from a message expression, in bytes.
const MAX_MESSAGE: usize = 5 * 1024;
/// Stack of the interpreter per level of an expression: about 50 KiB without optimisation.
const STACK_PER_LEVEL: usize = if cfg!(debug_assertions) {
    96 << 10
} else {
    32 << 10
};

/// Evaluates every rule. With `ratchet`, violations by unchanged values are omitted, unless the rule refers to the old
/// value.
pub(in crate::schema) fn validate(
    object: &Value,
    root: &Node,
    old: Option<&Value>,
    ratchet: bool,
    errors: &mut Vec<FieldError>,
) {
    if !root.has_rules {
        return;
    }
    thread_local! {
        static FUNCTIONS: Context<'static> = functions();
    }
    FUNCTIONS.with(|functions| {
        let mut runner = Runner {
            functions,
            ratchet,
            left: OBJECT_LIMIT,
            exhausted: false,
            errors,
        };
        let unchanged = Unchanged {
            root: true,
            same: None,
        };
        runner.visit(object, root, old, Path::Root, unchanged);
    });
}

/// Returns the Kubernetes functions, and `type()` with the names of types, missing in the interpreter.
pub(super) fn functions() -> Context<'static> {
    let mut context = Context::default().with_all();
    context.add_function("type", type_of);
    let names = [
        "list",
        "map",
        "int",
        "uint",
        "double",
        "string",
        "bytes",
        "bool",
        "null_type",
    ];
    for name in names {
        context.add_variable_from_value(name, type_value(name));
    }
    context
}

fn type_of(Arguments(values): Arguments) -> ResolveResult {
    Ok(type_value(match values.first() {
        Some(cel::Value::List(_)) => "list",
        Some(cel::Value::Map(_)) => "map",
        Some(cel::Value::Int(_)) => "int",
        Some(cel::Value::UInt(_)) => "uint",
        Some(cel::Value::Float(_)) => "double",
        Some(cel::Value::String(_)) => "string",
        Some(cel::Value::Bytes(_)) => "bytes",
        Some(cel::Value::Bool(_)) => "bool",
        Some(cel::Value::Null) => "null_type",
        _ => "other",
    }))
}

/// Represents a type as a text that no rule contains by accident.
fn type_value(name: &str) -> cel::Value {
    cel::Value::String(Arc::new(format!("\u{0}type {name}")))
}

struct Runner<'a> {
    functions: &'a Context<'static>,
    ratchet: bool,
    left: u64,
    exhausted: bool,
    errors: &'a mut Vec<FieldError>,
}

/// Flags about unchanged values: the value itself, or the nearest enclosing value with an old value.
#[derive(Clone, Copy)]
struct Unchanged {
    root: bool,
    same: Option<bool>,
}

impl Runner<'_> {
    fn visit(
        &mut self,
        value: &Value,
        node: &Node,
        old: Option<&Value>,
        path: Path<'_>,
        above: Unchanged,
    ) {
        if value.is_null() || !node.has_rules || self.exhausted {
            return;
        }
        let state = Unchanged {
            root: false,
            same: old.map(|old| unchanged(node, value, old)).or(above.same),
        };
        if !node.rules.is_empty() {
            self.rules(value, node, old, path, above.root, state.same == Some(true));
        }
        match value {
            Value::Array(items) => {
                let Some(schema) = &node.items else { return };
                let old = OldItems::new(node, old);
                for (i, item) in items.iter().enumerate() {
                    let old = old.as_ref().and_then(|old| old.get(item));
                    self.visit(item, schema, old, path.index(i), state);
                }
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    let old = old.and_then(|old| old.get(name));
                    match (node.properties.get(name), &node.additional) {
                        (Some(property), _) => {
                            self.visit(value, property, old, path.field(name), state);
                        }
                        (None, Some(Additional::Schema(schema))) => {
                            self.visit(value, schema, old, path.key(name), state);
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    fn rules(
        &mut self,
        value: &Value,
        node: &Node,
        old: Option<&Value>,
        path: Path<'_>,
        root: bool,
        unchanged: bool,
    ) {
        let old = old.filter(|old| !old.is_null());
        let mut scope = self.functions.new_inner_scope();
        scope.add_variable_from_value("self", to_cel(value, Some(node), root));
        let old_value = old.map(|old| to_cel(old, Some(node), root));
        if let Some(old) = &old_value {
            scope.add_variable_from_value("oldSelf", old.clone());
        }
        for rule in &node.rules {
            if rule.uses_old_self && old.is_none() && !rule.optional_old_self {
                continue;
            }
            let mut inner = scope.new_inner_scope();
            if rule.optional_old_self
                && let Some(old) = optional(old_value.clone())
            {
                inner.add_variable_from_value("oldSelf", old);
            }
            if !self.pay(rule, value, old, node, path) {
                return;
            }
            let result = execute(&rule.program, &inner, rule.depth);
            let violated = match result {
                Ok(cel::Value::Bool(true)) => continue,
                Ok(cel::Value::Bool(false)) => None,
                Ok(_) => Some("rule must evaluate to a bool".to_owned()),
                Err(why) => Some(why),
            };
            if let Some(why) = violated {
                let detail = format!("{why} evaluating rule: {}", rule.name());
                let kind = Value::from(node.type_name());
                self.errors
                    .push(FieldError::invalid(path.bracketed(), &kind, detail));
                continue;
            }
            if self.ratchet && unchanged && !rule.uses_old_self {
                continue;
            }
            let message = rule
                .message_program
                .as_ref()
                .and_then(|program| message(program, &inner, rule.depth));
            let message = message.unwrap_or_else(|| match &rule.message {
                Some(message) => message.clone(),
                None => format!("failed rule: {}", rule.source),
            });
            self.errors.push(violation(rule, node, path, &message));
        }
    }

    /// Subtracts the cost of a rule from the remaining budget of the object. The values are measured only when the
    /// estimate by schema exceeds the limit.
    fn pay(
        &mut self,
        rule: &Rule,
        value: &Value,
        old: Option<&Value>,
        node: &Node,
        path: Path<'_>,
    ) -> bool {
        let mut cost = rule.cost;
        if cost > CALL_LIMIT / 100 {
            cost = [Some(value), old]
                .into_iter()
                .flatten()
                .map(|value| {
                    let measure = Measure::of_value(value);
                    stacker::maybe_grow(
                        rule.depth * STACK_PER_LEVEL,
                        rule.depth * STACK_PER_LEVEL,
                        || estimate(&rule.program, &measure).cost,
                    )
                })
                .max()
                .unwrap_or(cost);
        }
        let kind = Value::from(node.type_name());
        let refusal = if cost > CALL_LIMIT {
            let name = rule.name();
            format!(
                "'operation cancelled: actual cost limit exceeded': no further validation rules \
                 will be run due to call cost exceeds limit for rule: {name}"
            )
        } else if cost > self.left {
            "validation failed due to running out of cost budget, no further validation rules will \
             be run"
                .to_owned()
        } else {
            self.left -= cost;
            return true;
        };
        self.exhausted = true;
        self.errors
            .push(FieldError::invalid(path.bracketed(), &kind, refusal));
        false
    }
}

/// Returns the error for a violated [`Rule`]. The value is printed as its type only, as in Kubernetes 1.34.
fn violation(rule: &Rule, node: &Node, path: Path<'_>, message: &str) -> FieldError {
    let mut at = path.bracketed();
    if !rule.field_path.is_empty() {
        let dot = if at.is_empty() { "" } else { "." };
        at = format!("{at}{dot}{}", rule.field_path);
    }
    let kind = Value::from(node.type_name());
    match rule.reason.as_deref() {
        Some("FieldValueForbidden") => FieldError::forbidden(at, message),
        Some("FieldValueRequired") => FieldError::required(at, message),
        Some("FieldValueDuplicate") => FieldError::duplicate(at, &kind),
        _ => FieldError::invalid(at, &kind, message),
    }
}

/// Returns the result of a message expression, unless it fails or is not a valid message.
fn message(program: &IdedExpr, scope: &Context<'_>, depth: usize) -> Option<String> {
    let Ok(cel::Value::String(text)) = execute(program, scope, depth) else {
        return None;
    };
    let text = text.trim();
    let fit = !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n');
    fit.then(|| text.to_owned())
}

pub(super) fn execute(
    program: &IdedExpr,
    scope: &Context<'_>,
    depth: usize,
) -> Result<cel::Value, String> {
    // The interpreter may panic; that must not stop the server.
    let run = || catch_unwind(AssertUnwindSafe(|| cel::Value::resolve(program, scope)));
    let needed = (depth + 4) * STACK_PER_LEVEL;
    match stacker::maybe_grow(needed, needed, run) {
        Ok(result) => result.map_err(|error| describe(&error)),
        Err(_) => Err("internal error".to_owned()),
    }
}

/// Returns an evaluation error in the words of cel-go.
fn describe(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::UndeclaredReference(name) => format!("no such attribute(s): {name}"),
        ExecutionError::NoSuchOverload
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnexpectedType { .. } => "no such overload".to_owned(),
        ExecutionError::FunctionError { message, .. } => message.clone(),
        other => other.to_string(),
    }
}
