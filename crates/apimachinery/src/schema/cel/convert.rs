//! Conversion of JSON to CEL values by their schema (`apiextensions-apiserver/pkg/apiserver/schema/cel/values.go`).

use std::{collections::HashMap, sync::Arc};

use base64::Engine as _;
use kube_cel::cel::{
    self, Context, IdedExpr,
    objects::{Key, Map},
    parser::Parser,
};
use serde_json::Value;

use crate::schema::{
    format::duration_nanoseconds,
    node::{Additional, Kind, Node},
};

/// Converts a value; without a schema, by its JSON type.
pub(super) fn to_cel(value: &Value, node: Option<&Node>, root: bool) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(flag) => cel::Value::Bool(*flag),
        Value::Number(number) => {
            let float = number.as_f64().unwrap_or_default();
            match (node.and_then(|node| node.kind), number.as_i64()) {
                (Some(Kind::Number), _) => cel::Value::Float(float),
                (_, Some(integer)) => cel::Value::Int(integer),
                (Some(Kind::Integer), None) if float.fract() == 0.0 => {
                    cel::Value::Int(float as i64)
                }
                _ => cel::Value::Float(float),
            }
        }
        Value::String(string) => text(string, node),
        Value::Array(items) => {
            let schema = node.and_then(|node| node.items.as_deref());
            let items = items
                .iter()
                .map(|item| to_cel(item, schema, false))
                .collect();
            cel::Value::List(Arc::new(items))
        }
        Value::Object(fields) => {
            let entry = |(name, value): (&String, &Value)| {
                let (name, schema) = match node {
                    None => (name.clone(), None),
                    Some(node) => match (node.properties.get(name), &node.additional) {
                        (Some(property), _) => (escape(name), Some(property)),
                        (None, Some(Additional::Schema(schema))) => (name.clone(), Some(&**schema)),
                        _ if root || node.embedded => (escape(name), None),
                        // Undeclared fields do not exist in rules.
                        _ => return None,
                    },
                };
                Some((Key::String(Arc::new(name)), to_cel(value, schema, false)))
            };
            let map: HashMap<Key, cel::Value> = fields.iter().filter_map(entry).collect();
            cel::Value::Map(Map { map: Arc::new(map) })
        }
    }
}

/// Escapes a field name as in rules (`apiserver/pkg/cel/escaping.go`).
pub(super) fn escape(name: &str) -> String {
    const RESERVED: [&str; 21] = [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ];
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}

/// Returns `optional.of(value)` or `optional.none()`.
pub(super) fn optional(value: Option<cel::Value>) -> Option<cel::Value> {
    match value {
        Some(value) => call("optional.of(x)", value),
        None => call("optional.none()", cel::Value::Null),
    }
}

fn text(string: &str, node: Option<&Node>) -> cel::Value {
    let plain = || cel::Value::String(Arc::new(string.to_owned()));
    let checks = node
        .filter(|node| !node.int_or_string)
        .and_then(|node| node.checks.as_ref());
    let argument = |text: String| cel::Value::String(Arc::new(text));
    let converted = match checks.and_then(|checks| checks.format.as_deref()) {
        Some("byte") => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(string);
            bytes.ok().map(|bytes| cel::Value::Bytes(Arc::new(bytes)))
        }
        Some("date-time") => call("timestamp(x)", argument(string.to_owned())),
        Some("date") => call("timestamp(x)", argument(format!("{string}T00:00:00Z"))),
        Some("duration") => duration_nanoseconds(string)
            .and_then(|nanoseconds| call("duration(x)", argument(format!("{nanoseconds}ns")))),
        _ => None,
    };
    converted.unwrap_or_else(plain)
}

/// Times and optionals are created by evaluating a call, since the interpreter does not export their types.
fn call(source: &'static str, x: cel::Value) -> Option<cel::Value> {
    thread_local! {
        static BASE: Context<'static> = Context::default();
        static PROGRAMS: std::cell::RefCell<HashMap<&'static str, Arc<IdedExpr>>> =
            std::cell::RefCell::new(HashMap::new());
    }
    let program = PROGRAMS.with_borrow_mut(|programs| {
        if let Some(program) = programs.get(source) {
            return Some(program.clone());
        }
        let program = Arc::new(Parser::new().parse(source).ok()?);
        programs.insert(source, program.clone());
        Some(program)
    })?;
    BASE.with(|base| {
        let mut context = base.new_inner_scope();
        context.add_variable_from_value("x", x);
        cel::Value::resolve(&program, &context).ok()
    })
}
