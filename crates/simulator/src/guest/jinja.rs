//! Jinja of cloud-init's user data, by [`minijinja`]: with the options of cloud-init, and its word for a missing
//! variable. Methods of Python's types, such as `split`, are errors, and so is each filter that Jinja itself lacks; the sum
//! of two missing variables is an empty list, though an error with Python.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Enumerator, Object, ObjectRepr, Value as Rendered};
use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior};
use serde_json::{Map, Value};

/// Why a template cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub(crate) struct Error {
    /// Line of the template, from 1.
    pub(crate) line: usize,
    /// Error.
    pub(crate) problem: String,
}

/// Maximum number of steps of one template, so that no loop of user data holds a guest up.
const FUEL: u64 = 100_000;

/// Prefix of a missing variable in the result.
const MISSING: &str = "CI_MISSING_JINJA_VAR/";

/// Renders `template` with the variables in `facts`, a tree of JSON objects.
///
/// A missing variable becomes [`MISSING`] and its name; a field of a missing variable is an error.
pub(crate) fn render(template: &str, facts: &Value) -> Result<String, Error> {
    let rendered = environment().and_then(|environment| {
        let functions = environment.globals();
        let variables = Variables {
            functions: functions.map(|(name, _)| name.to_owned()).collect(),
            facts: value(facts),
        };
        environment.render_str(template, Rendered::from_object(variables))
    });
    rendered.map_err(|error| Error {
        line: error.line().unwrap_or(1),
        problem: match error.detail() {
            Some(detail) => format!("{}: {detail}", error.kind()),
            None => error.kind().to_string(),
        },
    })
}

fn environment() -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    let mut syntax = SyntaxConfig::builder();
    environment.set_syntax(
        syntax
            .trim_blocks(true)
            .keep_trailing_newline(true)
            .build()?,
    );
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    environment.set_fuel(Some(FUEL));
    for name in ["default", "d"] {
        environment.add_filter(name, default);
    }
    environment.add_test("defined", |value: &Rendered| !is_missing(value));
    environment.add_test("undefined", is_missing);
    Ok(environment)
}

/// Filter `default(fallback, boolean)`. With `boolean`, values that count as false are replaced, too.
fn default(value: Rendered, fallback: Option<Rendered>, boolean: Option<bool>) -> Rendered {
    let is_replaced = is_missing(&value) || boolean == Some(true) && !value.is_true();
    match is_replaced {
        true => fallback.unwrap_or_else(|| Rendered::from("")),
        false => value,
    }
}

fn is_missing(value: &Rendered) -> bool {
    value.is_undefined() || value.downcast_object_ref::<Missing>().is_some()
}

/// Variable of a template.
fn value(fact: &Value) -> Rendered {
    match fact {
        Value::Null => Rendered::from(()),
        Value::Bool(it) => Rendered::from(*it),
        Value::Number(it) => match (it.as_i64(), it.as_u64(), it.as_f64()) {
            (Some(it), ..) => Rendered::from(it),
            (None, Some(it), _) => Rendered::from(it),
            (None, None, it) => Rendered::from(it.unwrap_or_default()),
        },
        Value::String(it) => Rendered::from(it.as_str()),
        Value::Array(items) => Rendered::from_object(Items(items.clone())),
        Value::Object(fields) => Rendered::from_object(Fields(fields.clone())),
    }
}

/// Variables of a template. Functions such as `range` are not missing.
#[derive(Debug)]
struct Variables {
    functions: HashSet<String>,
    facts: Rendered,
}

impl Object for Variables {
    fn get_value(self: &Arc<Self>, key: &Rendered) -> Option<Rendered> {
        let found = self.facts.get_item(key).ok()?;
        let is_function = key.as_str().is_some_and(|it| self.functions.contains(it));
        (!is_function || !is_missing(&found)).then_some(found)
    }
}

/// Map whose absent fields are [`Missing`].
#[derive(Debug)]
struct Fields(Map<String, Value>);

impl Object for Fields {
    fn get_value(self: &Arc<Self>, key: &Rendered) -> Option<Rendered> {
        let name = key.as_str()?;
        // cloud-init offers each key with hyphens with underscores as well.
        let alias = |(key, _): &(&String, &Value)| key.replace('-', "_") == name;
        let found = self.0.get(name);
        let found = found.or_else(|| self.0.iter().find(alias).map(|(_, it)| it));
        Some(found.map_or_else(|| Missing::named(name), value))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let keys: Vec<Rendered> = self
            .0
            .keys()
            .map(|it| Rendered::from(it.as_str()))
            .collect();
        Enumerator::Iter(Box::new(keys.into_iter()))
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.0.len())
    }
}

/// List whose absent items are [`Missing`].
#[derive(Debug)]
struct Items(Vec<Value>);

impl Object for Items {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Rendered) -> Option<Rendered> {
        let index = key.as_usize();
        let found = index.and_then(|it| self.0.get(it));
        Some(found.map_or_else(|| Missing::named(&key.to_string()), value))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let items: Vec<Rendered> = self.0.iter().map(value).collect();
        Enumerator::Iter(Box::new(items.into_iter()))
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.0.len())
    }
}

/// Value of a variable that is not there: false, empty, and named where it is printed.
#[derive(Debug)]
struct Missing(String);

impl Missing {
    fn named(name: &str) -> Rendered {
        Rendered::from_object(Self(name.to_owned()))
    }
}

impl Object for Missing {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }

    fn get_value(self: &Arc<Self>, _: &Rendered) -> Option<Rendered> {
        let words = format!("'{}' is undefined", self.0);
        Some(minijinja::Error::new(ErrorKind::UndefinedError, words).into())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Empty
    }

    fn is_true(self: &Arc<Self>) -> bool {
        false
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MISSING}{}", self.0)
    }
}

#[cfg(test)]
mod tests;
