//! Types of expressions, and the errors that kube-apiserver finds before a rule is ever evaluated (`cel-go/checker`).

use std::collections::HashMap;

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SelectExpr,
    operators::{LOGICAL_AND, LOGICAL_OR, OPT_SELECT},
};

use super::{
    functions::{Overload, library},
    literals,
    positions::{Problem, Problems},
    unify::{Substitutions, most_general},
    value_type::Type,
};

/// Returns the [`Type`] of an expression over variables, or the errors as cel-go prints them.
pub(super) fn infer(
    source: &str,
    expression: &IdedExpr,
    variables: Vec<(String, Type)>,
) -> Result<Type, String> {
    let mut checker = Checker {
        scope: variables,
        types: HashMap::new(),
        known: Substitutions::default(),
        problems: Vec::new(),
    };
    let of = checker.check(expression);
    if checker.problems.is_empty() {
        let types = checker
            .types
            .iter()
            .map(|(id, of)| (*id, checker.known.substitute(of, true)))
            .collect();
        checker.problems = literals::problems(expression, &types);
    }
    if checker.problems.is_empty() {
        return Ok(checker.known.substitute(&of, true));
    }
    Err(Problems::new(source, expression).print(&checker.problems))
}

struct Checker<'e> {
    scope: Vec<(String, Type)>,
    /// [`Type`]s of all expressions by their number.
    types: HashMap<u64, Type>,
    known: Substitutions,
    problems: Vec<Problem<'e>>,
}

impl<'e> Checker<'e> {
    /// Returns the [`Type`] of an expression. Recursion is bounded by the limits in `compile`.
    fn check(&mut self, expression: &'e IdedExpr) -> Type {
        let of = match &expression.expr {
            Expr::Unspecified => Type::Dyn,
            Expr::Literal(literal) => literal_type(literal),
            Expr::Ident(name) => self.name(expression, name),
            Expr::Select(select) => self.select(expression, select),
            Expr::Call(call) => self.call(expression, call),
            Expr::List(list) => {
                let mut item: Option<Type> = None;
                for (index, element) in list.elements.iter().enumerate() {
                    let of = self.check(element);
                    let optional = list.optional_indices.contains(&index);
                    let of = self.element(element, of, optional);
                    item = Some(self.join(item, of));
                }
                Type::list(item.unwrap_or_else(|| self.known.variable()))
            }
            Expr::Map(map) => {
                let (mut keys, mut values) = (None, None);
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else {
                        continue;
                    };
                    let key = self.check(&entry.key);
                    keys = Some(self.join(keys, key));
                    let value = self.check(&entry.value);
                    let value = self.element(&entry.value, value, entry.optional);
                    values = Some(self.join(values, value));
                }
                let keys = keys.unwrap_or_else(|| self.known.variable());
                Type::map(keys, values.unwrap_or_else(|| self.known.variable()))
            }
            // There are no types whose fields an expression could set.
            Expr::Struct(fields) => self.undeclared(expression, &fields.type_name),
            Expr::Comprehension(parts) => self.comprehension(expression, parts),
        };
        self.types.insert(expression.id, of.clone());
        of
    }

    fn report(&mut self, at: &'e IdedExpr, message: String) -> Type {
        self.problems.push(Problem { at, message });
        Type::Error
    }

    fn undeclared(&mut self, at: &'e IdedExpr, name: &str) -> Type {
        self.report(
            at,
            format!("undeclared reference to '{name}' (in container '')"),
        )
    }

    fn mismatch(&mut self, at: &'e IdedExpr, expected: &Type, found: &Type) -> Type {
        self.report(
            at,
            format!("expected type '{expected}' but found '{found}'"),
        )
    }

    fn lookup(&self, name: &str) -> Option<Type> {
        let local = self.scope.iter().rev().find(|(local, _)| local == name);
        local
            .map(|(_, of)| of.clone())
            .or_else(|| library().names.get(name).cloned())
    }

    fn name(&mut self, expression: &'e IdedExpr, name: &str) -> Type {
        match self.lookup(name) {
            Some(of) => of,
            None => self.undeclared(expression, name),
        }
    }

    /// Returns the type of an element of a list or map. An optional element is one of its value.
    fn element(&mut self, at: &'e IdedExpr, of: Type, optional: bool) -> Type {
        if !optional {
            return of;
        }
        let (inner, unwrapped) = of.unwrapped();
        if !unwrapped && !matches!(inner, Type::Dyn | Type::Error) {
            self.mismatch(at, &Type::optional(inner.clone()), inner);
        }
        inner.clone()
    }

    /// Returns the [`Type`] of the elements of a list.
    fn join(&mut self, before: Option<Type>, of: Type) -> Type {
        match before {
            None => of,
            Some(before) if self.known.assign(&before, &of) => most_general(&before, &of),
            Some(_) => Type::Dyn,
        }
    }

    fn select(&mut self, expression: &'e IdedExpr, select: &'e SelectExpr) -> Type {
        if let Some(of) = qualified(expression).and_then(|name| self.lookup(&name)) {
            return of;
        }
        let of = self.field(expression, &select.operand, &select.field, false);
        if select.test {
            return Type::Bool;
        }
        self.known.substitute(&of, false)
    }

    fn field(
        &mut self,
        at: &'e IdedExpr,
        operand: &'e IdedExpr,
        field: &str,
        optional: bool,
    ) -> Type {
        let of = self.check(operand);
        let of = self.known.substitute(&of, false);
        let (target, unwrapped) = of.unwrapped();
        let result = match target {
            Type::Map(entry) => entry.1.clone(),
            Type::Object(object) => match object.fields.get(field) {
                Some(of) => of.clone(),
                None => self.report(at, format!("undefined field '{field}'")),
            },
            Type::Variable(_) => {
                self.known.assign(&Type::Dyn, target);
                Type::Dyn
            }
            Type::Dyn | Type::Error => Type::Dyn,
            other => {
                let problem = format!("type '{other}' does not support field selection");
                self.report(at, problem);
                Type::Dyn
            }
        };
        if unwrapped || optional {
            return Type::optional(result);
        }
        result
    }

    fn call(&mut self, expression: &'e IdedExpr, call: &'e CallExpr) -> Type {
        if call.func_name == OPT_SELECT
            && let [operand, name] = &call.args[..]
            && let Expr::Literal(LiteralValue::String(name)) = &name.expr
        {
            let of = self.field(expression, operand, name.inner(), true);
            return self.known.substitute(&of, false);
        }
        let mut given: Vec<Type> = call
            .args
            .iter()
            .map(|argument| self.check(argument))
            .collect();
        let mut name = call.func_name.clone();
        let mut member = false;
        if let Some(target) = call.target.as_deref() {
            let full = qualified(target).map(|prefix| format!("{prefix}.{name}"));
            match full.filter(|full| library().functions.contains_key(full.as_str())) {
                Some(full) => name = full,
                None => {
                    given.insert(0, self.check(target));
                    member = true;
                }
            }
        }
        let Some(overloads) = library().functions.get(name.as_str()) else {
            return self.undeclared(expression, &name);
        };
        if matches!(name.as_str(), LOGICAL_AND | LOGICAL_OR) {
            return self.logical(&call.args, &given);
        }
        match self.resolve(overloads, member, &given) {
            Some(of) => of,
            None => {
                let mut words: Vec<String> = given
                    .iter()
                    .map(|of| self.known.substitute(of, true).to_string())
                    .collect();
                let target = if member {
                    format!("{}.", words.remove(0))
                } else {
                    String::new()
                };
                let applied = format!("{target}({})", words.join(", "));
                let problem =
                    format!("found no matching overload for '{name}' applied to '{applied}'");
                self.report(expression, problem)
            }
        }
    }

    fn logical(&mut self, arguments: &'e [IdedExpr], given: &[Type]) -> Type {
        let mut result = Type::Bool;
        for (argument, of) in arguments.iter().zip(given) {
            if !self.known.assign(of, &Type::Bool) {
                result = self.mismatch(argument, &Type::Bool, of);
            }
        }
        result
    }

    /// Returns the result of the overloads that fit: their type if it is one, else `dyn`.
    fn resolve(&mut self, overloads: &[Overload], member: bool, given: &[Type]) -> Option<Type> {
        let mut result: Option<Type> = None;
        for overload in overloads
            .iter()
            .filter(|overload| overload.member == member)
        {
            let types = std::iter::once(&overload.result).chain(&overload.arguments);
            let types = self.known.instantiate(types);
            if !self.known.assign_all(given, &types[1..]) {
                continue;
            }
            let of = self.known.substitute(&types[0], false);
            result = Some(match result {
                None => of,
                Some(before) if before == Type::Dyn || before == of => before,
                Some(_) => Type::Dyn,
            });
        }
        result
    }

    fn comprehension(&mut self, expression: &'e IdedExpr, parts: &'e ComprehensionExpr) -> Type {
        let range = self.check(&parts.iter_range);
        let range = self.known.substitute(&range, false);
        let accumulator = self.check(&parts.accu_init);
        let (first, second) = match &range {
            Type::List(item) if parts.iter_var2.is_some() => (Type::Int, (**item).clone()),
            Type::List(item) => ((**item).clone(), Type::Dyn),
            Type::Map(entry) => (entry.0.clone(), entry.1.clone()),
            Type::Dyn | Type::Error | Type::Variable(_) => {
                self.known.assign(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let problem = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be \
                     list, map, or dynamic)"
                );
                self.report(&parts.iter_range, problem);
                (Type::Error, Type::Error)
            }
        };
        let depth = self.scope.len();
        self.scope
            .push((parts.accu_var.clone(), accumulator.clone()));
        let inner = self.scope.len();
        self.scope.push((parts.iter_var.clone(), first));
        if let Some(name) = &parts.iter_var2 {
            self.scope.push((name.clone(), second));
        }
        self.require(expression, &parts.loop_cond, &Type::Bool);
        self.require(expression, &parts.loop_step, &accumulator);
        self.scope.truncate(inner);
        let result = self.check(&parts.result);
        self.scope.truncate(depth);
        self.known.substitute(&result, false)
    }

    /// Checks a part of a macro, whose position is that of the macro.
    fn require(&mut self, at: &'e IdedExpr, part: &'e IdedExpr, expected: &Type) {
        let of = self.check(part);
        if !self.known.assign(expected, &of) {
            self.mismatch(at, expected, &of);
        }
    }
}

/// Returns the name `a.b.c` of selections of a name.
fn qualified(expression: &IdedExpr) -> Option<String> {
    match &expression.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => {
            let operand = qualified(&select.operand)?;
            Some(format!("{operand}.{}", select.field))
        }
        _ => None,
    }
}

fn literal_type(literal: &LiteralValue) -> Type {
    match literal {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Bytes(_) => Type::Bytes,
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::Null => Type::Null,
        LiteralValue::String(_) => Type::String,
        LiteralValue::UInt(_) => Type::Uint,
    }
}
