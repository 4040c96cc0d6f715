//! Checks of literals, in an expression without errors (`cel-go/cel/validator.go`): durations, times, regular
//! expressions, and lists and maps with elements of one type.

use std::collections::HashMap;

use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue};
use regex::Regex;

use super::{positions::Problem, value_type::Type};
use crate::schema::format::go_duration;

/// Returns the [`Problem`]s of an expression whose parts have these types.
pub(super) fn problems<'e>(
    expression: &'e IdedExpr,
    types: &HashMap<u64, Type>,
) -> Vec<Problem<'e>> {
    let mut found = Found {
        types,
        problems: Vec::new(),
    };
    found.visit(expression, false);
    found.problems
}

struct Found<'e, 't> {
    types: &'t HashMap<u64, Type>,
    problems: Vec<Problem<'e>>,
}

impl<'e> Found<'e, '_> {
    /// `formatted` is true within a call of `format`, whose arguments may have several types.
    fn visit(&mut self, expression: &'e IdedExpr, formatted: bool) {
        match &expression.expr {
            Expr::Call(call) => {
                self.call(call);
                let formatted = formatted || call.func_name == "format";
                for part in call.target.as_deref().into_iter().chain(&call.args) {
                    self.visit(part, formatted);
                }
            }
            Expr::Select(select) => self.visit(&select.operand, formatted),
            Expr::List(list) => {
                if !formatted {
                    let optional = |at: usize| list.optional_indices.contains(&at);
                    let elements = list.elements.iter().enumerate();
                    self.same(elements.map(|(at, element)| (element, optional(at))), true);
                }
                for element in &list.elements {
                    self.visit(element, formatted);
                }
            }
            Expr::Map(map) => {
                let entries = || {
                    map.entries.iter().filter_map(|entry| match &entry.expr {
                        EntryExpr::MapEntry(entry) => Some(entry),
                        EntryExpr::StructField(_) => None,
                    })
                };
                if !formatted {
                    self.same(entries().map(|entry| (&entry.key, false)), false);
                    let values = entries().map(|entry| (&entry.value, entry.optional));
                    self.same(values, false);
                }
                for entry in entries() {
                    self.visit(&entry.key, formatted);
                    self.visit(&entry.value, formatted);
                }
            }
            Expr::Comprehension(parts) => {
                for part in [
                    &parts.iter_range,
                    &parts.accu_init,
                    &parts.loop_cond,
                    &parts.loop_step,
                    &parts.result,
                ] {
                    self.visit(part, formatted);
                }
            }
            Expr::Struct(_) | Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
        }
    }

    fn call(&mut self, call: &'e CallExpr) {
        let position = match call.func_name.as_str() {
            "duration" | "timestamp" => 0,
            "matches" if call.target.is_some() => 0,
            "matches" => 1,
            _ => return,
        };
        let Some(argument) = call.args.get(position) else {
            return;
        };
        let Expr::Literal(LiteralValue::String(text)) = &argument.expr else {
            return;
        };
        let text = text.inner();
        let valid = match call.func_name.as_str() {
            "duration" => go_duration(text).is_some(),
            "timestamp" => text.parse::<jiff::Timestamp>().is_ok(),
            _ => Regex::new(text).is_ok(),
        };
        if !valid {
            self.problems.push(Problem {
                at: argument,
                message: format!("invalid {} argument", call.func_name),
            });
        }
    }

    /// Elements of a list, keys or values of a map have the type of the first one.
    fn same(&mut self, elements: impl Iterator<Item = (&'e IdedExpr, bool)>, once: bool) {
        let mut first: Option<Type> = None;
        for (element, optional) in elements {
            let Some(of) = self.types.get(&element.id) else {
                continue;
            };
            let of = if optional { of.unwrapped().0 } else { of };
            let Some(expected) = &first else {
                first = Some(of.clone());
                continue;
            };
            if expected != of {
                let message = format!("expected type '{expected}' but found '{of}'");
                self.problems.push(Problem {
                    at: element,
                    message,
                });
                if once {
                    return;
                }
            }
        }
    }
}
