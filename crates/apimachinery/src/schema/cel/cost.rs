//! Cost of a rule for values of given sizes (the estimator of cel-go's checker with the costs of
//! `apiserver/pkg/cel/library/cost.go`; upper bounds only).

use super::measure::{Measure, REQUEST, Shape};
use kube_cel::cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue};

/// Result of an estimate.
#[derive(Debug, Default)]
pub(super) struct Estimate {
    pub(super) cost: u64,
    pub(super) uses_old_self: bool,
    /// Depth of the syntax tree.
    pub(super) depth: usize,
}

/// Estimates the cost of an expression over `self` (and `oldSelf`) with the sizes of a [`Measure`].
pub(super) fn estimate(expression: &IdedExpr, this: &Measure) -> Estimate {
    let mut walker = Walker {
        this,
        scope: Vec::new(),
        depth: 0,
        estimate: Estimate::default(),
    };
    let (cost, _) = walker.visit(expression);
    walker.estimate.cost = cost;
    walker.estimate
}

/// Returns the number of values of a schema that fit into a request.
pub(super) fn cardinality(this: &Measure) -> u64 {
    REQUEST / (this.smallest + 1) // with a comma between them
}

struct Walker<'a> {
    this: &'a Measure,
    scope: Vec<(String, Measure)>,
    depth: usize,
    estimate: Estimate,
}

impl Walker<'_> {
    /// Returns the cost and the [`Measure`] of an expression. Recursion is bounded by the limits in `compile`.
    fn visit(&mut self, expression: &IdedExpr) -> (u64, Measure) {
        self.depth += 1;
        self.estimate.depth = self.estimate.depth.max(self.depth);
        let result = self.visit_inner(expression);
        self.depth -= 1;
        result
    }

    fn visit_inner(&mut self, expression: &IdedExpr) -> (u64, Measure) {
        match &expression.expr {
            Expr::Unspecified => (0, Measure::default()),
            Expr::Literal(literal) => match literal {
                LiteralValue::String(text) => (0, Measure::text(text.inner().len() as u64)),
                LiteralValue::Bytes(bytes) => (0, Measure::text(bytes.inner().len() as u64)),
                LiteralValue::Null => (0, Measure::default()),
                _ => (
                    0,
                    Measure {
                        length: 1,
                        ..Measure::default()
                    },
                ),
            },
            Expr::Ident(name) => (1, self.variable(name)),
            // `has()` costs no more than its operand.
            Expr::Select(select) => {
                let (cost, operand) = self.visit(&select.operand);
                let selection = u64::from(!select.test);
                (cost + selection, self.select(&operand, &select.field))
            }
            Expr::List(list) => {
                let mut cost: u64 = 10;
                let mut item: Option<Measure> = None;
                for element in &list.elements {
                    let (element_cost, measure) = self.visit(element);
                    cost = cost.saturating_add(element_cost);
                    item = Some(match item {
                        Some(item) => item.join(measure),
                        None => measure,
                    });
                }
                (
                    cost,
                    Measure::list(list.elements.len() as u64, item.unwrap_or_default()),
                )
            }
            Expr::Map(map) => (
                self.entries(30, map.entries.iter().map(|e| &e.expr)),
                Measure::default(),
            ),
            Expr::Struct(fields) => (
                self.entries(40, fields.entries.iter().map(|e| &e.expr)),
                Measure::default(),
            ),
            Expr::Comprehension(loop_) => {
                let (range_cost, range) = self.visit(&loop_.iter_range);
                let (init_cost, accumulator) = self.visit(&loop_.accu_init);
                let item = if range.shape == Shape::Map {
                    Measure::text(range.length.max(64))
                } else {
                    range.item()
                };
                let depth = self.scope.len();
                self.scope.push((loop_.accu_var.clone(), accumulator));
                self.scope.push((loop_.iter_var.clone(), item));
                if let Some(second) = &loop_.iter_var2 {
                    self.scope.push((second.clone(), range.item()));
                }
                let (condition_cost, _) = self.visit(&loop_.loop_cond);
                let (step_cost, step) = self.visit(&loop_.loop_step);
                self.scope.truncate(depth);
                let step_result = if step.shape == Shape::List {
                    Measure::list(range.length, step.item())
                } else {
                    step
                };
                self.scope.push((loop_.accu_var.clone(), step_result));
                let (result_cost, result) = self.visit(&loop_.result);
                self.scope.truncate(depth);
                let turns = condition_cost
                    .saturating_add(step_cost)
                    .saturating_mul(range.length);
                let cost = range_cost.saturating_add(init_cost).saturating_add(turns);
                (cost.saturating_add(result_cost), result)
            }
            Expr::Call(call) if call.func_name == "_?_:_" && call.args.len() == 3 => {
                let (condition, _) = self.visit(&call.args[0]);
                let (yes_cost, yes) = self.visit(&call.args[1]);
                let (no_cost, no) = self.visit(&call.args[2]);
                (
                    condition.saturating_add(yes_cost.max(no_cost)),
                    yes.join(no),
                )
            }
            Expr::Call(call) => {
                let mut cost: u64 = 0;
                let mut arguments = Vec::with_capacity(call.args.len() + 1);
                for argument in call.target.as_deref().into_iter().chain(&call.args) {
                    // In `ip.isCanonical(x)` and `sets.contains(a, b)` the target is a namespace.
                    if let Expr::Ident(name) = &argument.expr
                        && is_namespace(name)
                        && self.local(name).is_none()
                    {
                        continue;
                    }
                    let (argument_cost, measure) = self.visit(argument);
                    cost = cost.saturating_add(argument_cost);
                    arguments.push(measure);
                }
                let (call_cost, result) = self.call(&call.func_name, &arguments, &call.args);
                (cost.saturating_add(call_cost), result)
            }
        }
    }

    fn entries<'e>(&mut self, base: u64, entries: impl Iterator<Item = &'e EntryExpr>) -> u64 {
        let mut cost = base;
        for entry in entries {
            let (key, value) = match entry {
                EntryExpr::StructField(field) => (None, &field.value),
                EntryExpr::MapEntry(entry) => (Some(&entry.key), &entry.value),
            };
            for part in key.into_iter().chain([value]) {
                cost = cost.saturating_add(self.visit(part).0);
            }
        }
        cost
    }

    fn local(&self, name: &str) -> Option<&Measure> {
        self.scope
            .iter()
            .rev()
            .find(|(local, _)| local == name)
            .map(|(_, measure)| measure)
    }

    fn variable(&mut self, name: &str) -> Measure {
        if let Some(local) = self.local(name) {
            return local.clone();
        }
        match name {
            "self" => self.this.clone(),
            "oldSelf" => {
                self.estimate.uses_old_self = true;
                self.this.clone()
            }
            _ => Measure::default(), // the name of a type
        }
    }

    fn select(&mut self, operand: &Measure, field: &str) -> Measure {
        if let Some(measure) = operand.fields.get(field) {
            return measure.clone();
        }
        match operand.shape {
            Shape::Object => Measure::default(),
            Shape::Map => operand.item(),
            _ => Measure {
                length: operand.length,
                ..Measure::default()
            },
        }
    }

    fn call(&mut self, name: &str, given: &[Measure], source: &[IdedExpr]) -> (u64, Measure) {
        let length = |i: usize| given.get(i).map_or(0, |measure| measure.length);
        let tenth = |n: u64| n.div_ceil(10);
        let nth = |i: usize| given.get(i).cloned().unwrap_or_default();
        let scalar = || Measure {
            length: 1,
            ..Measure::default()
        };
        match name {
            "_&&_" | "_||_" => (0, scalar()),
            "!_"
            | "-_"
            | "_-_"
            | "_*_"
            | "_/_"
            | "_%_"
            | "size"
            | "type"
            | "int"
            | "uint"
            | "double"
            | "hasValue"
            | "@not_strictly_false" => (1, scalar()),
            "_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_" => {
                (tenth(length(0).min(length(1))), scalar())
            }
            "@in" | "_in_" | "in" => (length(1), scalar()),
            "_[_]" | "_[?_]" | "_?._" => {
                let operand = nth(0);
                // A literal key selects a declared field: `self[?'a']`, `self.?a`.
                let literal = source.last().and_then(|key| match &key.expr {
                    Expr::Literal(LiteralValue::String(text)) => Some(text.inner().to_owned()),
                    _ => None,
                });
                let result = match (&literal, operand.shape) {
                    (Some(field), Shape::Object) => self.select(&operand, field),
                    (Some(field), _) if operand.fields.contains_key(field.as_str()) => {
                        self.select(&operand, field)
                    }
                    _ => operand.item(),
                };
                (1, result)
            }
            "_+_" => {
                let total = length(0).saturating_add(length(1));
                match given.first().map(|measure| measure.shape) {
                    Some(Shape::List) => {
                        let (a, b) = (nth(0), nth(1));
                        let item = match (a.item, b.item) {
                            // The initial empty list of the macros `map` and `filter` has no item type.
                            (_, Some(b)) if a.length == 0 => *b,
                            (Some(a), Some(b)) => a.join(*b),
                            (a, b) => a.or(b).map(|item| *item).unwrap_or_default(),
                        };
                        (1, Measure::list(total, item))
                    }
                    Some(Shape::Text) => (tenth(total), Measure::text(total)),
                    _ => (
                        1,
                        Measure {
                            length: total,
                            ..Measure::default()
                        },
                    ),
                }
            }
            "contains" => (tenth(length(0)).saturating_mul(tenth(length(1))), scalar()),
            "matches" | "find" | "findAll" => {
                let pattern = length(1).div_ceil(4).max(1);
                let cost = tenth(length(0).saturating_add(1)).saturating_mul(pattern);
                let found = Measure::text(length(0));
                (
                    cost,
                    if name == "findAll" {
                        Measure::list(length(0), found)
                    } else {
                        found
                    },
                )
            }
            "startsWith" | "endsWith" => (tenth(length(1)), scalar()),
            "string" | "bytes" | "lowerAscii" | "upperAscii" | "trim" | "substring" | "charAt"
            | "reverse" => (tenth(length(0)), Measure::text(length(0).max(20))),
            "replace" => {
                let grown = length(0).saturating_mul(length(2).max(1));
                (tenth(length(0).saturating_add(grown)), Measure::text(grown))
            }
            "split" => (
                tenth(length(0)),
                Measure::list(length(0), Measure::text(length(0))),
            ),
            "join" => {
                let items =
                    length(0).saturating_mul(nth(0).item().length.saturating_add(length(1)));
                (tenth(items), Measure::text(items))
            }
            "format" => {
                let items = nth(1)
                    .item()
                    .length
                    .saturating_mul(length(1))
                    .saturating_add(length(0));
                (tenth(items), Measure::text(items))
            }
            "isSorted" | "sum" | "max" | "min" | "distinct" | "flatten" | "sort" | "first"
            | "last" | "slice" => {
                let list = nth(0);
                let result = match name {
                    "sum" | "max" | "min" | "first" | "last" => list.item(),
                    _ => list,
                };
                (length(0).max(1), result)
            }
            "indexOf" | "lastIndexOf" => {
                let list = nth(0).shape == Shape::List;
                let cost = if list {
                    length(0)
                } else {
                    tenth(length(0)).saturating_mul(tenth(length(1)))
                };
                (cost.max(1), scalar())
            }
            "sets.contains" | "sets.equivalent" | "sets.intersects" | "equivalent"
            | "intersects" => (length(0).saturating_mul(length(1)).max(1), scalar()),
            // The value of an optional, or its replacement.
            "value" | "optional.of" | "of" | "optional.ofNonZeroValue" | "ofNonZeroValue" => {
                (1, nth(0))
            }
            "orValue" | "or" => (1, nth(0).join(nth(1))),
            _ => {
                let longest = given
                    .iter()
                    .map(|measure| measure.length)
                    .max()
                    .unwrap_or(0);
                (
                    tenth(longest),
                    Measure {
                        length: longest,
                        ..Measure::default()
                    },
                )
            }
        }
    }
}

/// True if a name is the namespace of functions.
fn is_namespace(name: &str) -> bool {
    matches!(
        name,
        "sets"
            | "math"
            | "base64"
            | "format"
            | "jsonpatch"
            | "optional"
            | "ip"
            | "cidr"
            | "strings"
    )
}
