//! Compilation of rules to programs, with the checks that a CustomResourceDefinition must pass.

use std::panic::{AssertUnwindSafe, catch_unwind};

use kube_cel::cel::{
    common::ast::{
        EntryExpr, Expr, IdedExpr,
        operators::{OPT_INDEX, OPT_SELECT},
    },
    parser::Parser,
};
use serde_json::{Value, json};

use super::{
    RULE_LIMIT, Rule, SCHEMA_LIMIT, cost, infer::infer, measure::Measure, value_type::Type,
};
use crate::schema::{
    FieldError,
    error::UNCORRELATABLE,
    go::go_json,
    node::{Additional, ListType, Node},
    path::Path,
};

/// Maximum length of an expression in characters.
const MAX_LENGTH: usize = 16 * 1024;
/// Maximum number of operators, calls and selections of an expression. The number bounds the depth of the syntax tree,
/// and so the stack of parser and interpreter.
const MAX_OPERATORS: usize = 600;
/// Stack size of the parser in bytes: the generated parser needs up to 100 KiB per level in an unoptimised build.
pub(super) const PARSER_STACK: usize = 96 << 20;
/// Number of rules in the report of a total cost over the limit.
const MOST_EXPENSIVE: usize = 4;
/// Maximum depth of brackets.
const MAX_NESTING: usize = 24;
const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// Checks the form of all rules without compilation.
pub(in crate::schema) fn check(schema: &Value, root: &Node, errors: &mut Vec<FieldError>) {
    check_node(schema, root, Path::Root, errors);
}

/// Compiles the rules of a schema into its nodes. [`check`] must have accepted them.
pub(in crate::schema) fn compile(schema: &Value, root: &mut Node, errors: &mut Vec<FieldError>) {
    let mut compiler = Compiler {
        total: 0,
        costs: Vec::new(),
        errors: Vec::new(),
    };
    let place = Position {
        path: Path::Root,
        root: true,
        cardinality: Some(1),
        uncorrelated: None,
    };
    stacker::grow(PARSER_STACK, || compiler.visit(schema, root, &place));
    if compiler.total > SCHEMA_LIMIT {
        compiler
            .costs
            .sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
        for (_, path) in compiler.costs.into_iter().take(MOST_EXPENSIVE) {
            let detail = "contributed to estimated rule cost total exceeding cost limit for entire \
                          OpenAPIv3 schema";
            compiler.errors.push(FieldError::forbidden(path, detail));
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let detail = over_budget(what, compiler.total, SCHEMA_LIMIT);
        compiler.errors.push(FieldError::forbidden("", detail));
    }
    errors.extend(compiler.errors);
}

/// Position of a node in the schema.
struct Position<'a> {
    path: Path<'a>,
    root: bool,
    /// Maximum number of values in one object; `None` if only the size of the request limits it.
    cardinality: Option<u64>,
    /// First enclosing list or map whose old items cannot be correlated.
    uncorrelated: Option<String>,
}

/// Value of a rule.
struct This<'a> {
    of: &'a Type,
    measure: &'a Measure,
    node: &'a Node,
}

struct Compiler {
    total: u64,
    costs: Vec<(u64, String)>,
    errors: Vec<FieldError>,
}

impl Compiler {
    /// Recursion is bounded: the depth of the schema has been checked.
    fn visit(&mut self, schema: &Value, node: &mut Node, place: &Position<'_>) {
        let mut has_rules = false;
        if let Some(Value::Array(rules)) = schema.get("x-kubernetes-validations") {
            let root = place.root || node.embedded;
            let measure = Measure::of_schema(node, root);
            let of = Type::of_schema(node, root);
            let path = place.path.field("x-kubernetes-validations");
            for (i, rule) in rules.iter().enumerate() {
                let Some(of) = &of else {
                    let path = path.index(i);
                    let path = path.field("rule");
                    let detail = "failed to convert to declType for CEL validation rules";
                    self.errors.push(rejected(rule, path, detail));
                    continue;
                };
                let this = This {
                    of,
                    measure: &measure,
                    node,
                };
                let compiled = self.rule(rule, &this, path.index(i), place);
                node.rules.extend(compiled);
            }
            has_rules = !rules.is_empty();
        }
        let times = |max: Option<i64>| {
            place
                .cardinality
                .zip(max)
                .map(|(n, max)| n.saturating_mul(max.max(0) as u64))
        };
        let uncorrelated = |ok: bool| {
            place
                .uncorrelated
                .clone()
                .or_else(|| (!ok).then(|| place.path.bracketed()))
        };
        if let (Some(items), Some(schema)) = (&mut node.items, schema.get("items")) {
            let place = Position {
                path: place.path.field("items"),
                root: false,
                cardinality: times(node.checks.as_ref().and_then(|checks| checks.max_items)),
                uncorrelated: uncorrelated(matches!(node.list, Some(ListType::Map(_)))),
            };
            self.visit(schema, items, &place);
            has_rules |= items.has_rules;
        }
        if let (Some(Additional::Schema(child)), Some(schema)) =
            (&mut node.additional, schema.get("additionalProperties"))
        {
            let place = Position {
                path: place.path.field("additionalProperties"),
                root: false,
                cardinality: times(
                    node.checks
                        .as_ref()
                        .and_then(|checks| checks.max_properties),
                ),
                uncorrelated: place.uncorrelated.clone(),
            };
            self.visit(schema, child, &place);
            has_rules |= child.has_rules;
        }
        let properties = place.path.field("properties");
        for (name, property) in &mut node.properties {
            let Some(schema) = schema.get("properties").and_then(|all| all.get(name)) else {
                continue;
            };
            let place = Position {
                path: properties.key(name),
                root: false,
                cardinality: place.cardinality,
                uncorrelated: place.uncorrelated.clone(),
            };
            self.visit(schema, property, &place);
            has_rules |= property.has_rules;
        }
        node.has_rules = has_rules;
    }

    fn rule(
        &mut self,
        rule: &Value,
        this: &This<'_>,
        path: Path<'_>,
        place: &Position<'_>,
    ) -> Option<Rule> {
        let text = |name: &str| {
            rule.get(name)
                .and_then(Value::as_str)
                .filter(|t| !t.is_empty())
        };
        let source = text("rule").map(str::trim).unwrap_or_default();
        let field_path = text("fieldPath").and_then(|given| normalize(given, this.node));
        let program_path = path.field("rule");
        let (program, estimate) = self.program(source, rule, this, program_path, place)?;
        let mut depth = estimate.depth;
        let message_program = match text("messageExpression") {
            None => None,
            Some(source) => {
                let path = path.field("messageExpression");
                let (program, estimate) = self.program(source.trim(), rule, this, path, place)?;
                depth = depth.max(estimate.depth);
                Some(program)
            }
        };
        let optional = rule.get("optionalOldSelf").and_then(Value::as_bool);
        let uses_old_self = estimate.uses_old_self;
        if let Some(above) = place.uncorrelated.as_deref().filter(|_| uses_old_self) {
            let above = if above.is_empty() { "<nil>" } else { above };
            let detail = format!("{UNCORRELATABLE}{above}");
            let path = program_path.bracketed();
            self.errors
                .push(FieldError::invalid(path, &Value::from(source), detail));
        } else if let Some(optional) = optional.filter(|_| !uses_old_self) {
            let path = path.field("optionalOldSelf").bracketed();
            let detail = "may not be set if oldSelf is not used in rule";
            self.errors
                .push(FieldError::invalid(path, &Value::from(optional), detail));
        }
        Some(Rule {
            source: source.to_owned(),
            message: text("message").map(|message| message.trim().to_owned()),
            reason: text("reason").map(str::to_owned),
            field_path: field_path.unwrap_or_default(),
            optional_old_self: optional.unwrap_or(false),
            uses_old_self,
            program,
            message_program,
            cost: estimate.cost,
            depth,
        })
    }

    /// Parses an expression, checks its types and estimates its cost.
    fn program(
        &mut self,
        source: &str,
        rule: &Value,
        this: &This<'_>,
        path: Path<'_>,
        place: &Position<'_>,
    ) -> Option<(IdedExpr, cost::Estimate)> {
        let of_message = !matches!(path, Path::Field(_, "rule"));
        let old = match rule.get("optionalOldSelf").and_then(Value::as_bool) {
            Some(true) => Type::optional(this.of.clone()),
            _ => this.of.clone(),
        };
        let variables = vec![("self".into(), this.of.clone()), ("oldSelf".into(), old)];
        let checked = parse(source).and_then(|program| {
            let of = infer(source, &program, variables)?;
            Ok((program, of))
        });
        let refused = match &checked {
            Err(why) if of_message => Some(format!("messageExpression compilation failed: {why}")),
            Err(why) => Some(format!("compilation failed: {why}")),
            Ok((_, Type::String)) if of_message => None,
            Ok(_) if of_message => Some("messageExpression must evaluate to a string".to_owned()),
            Ok((_, Type::Bool)) => None,
            Ok(_) => Some("cel expression must evaluate to a bool".to_owned()),
        };
        if let Some(detail) = refused {
            self.errors.push(rejected(rule, path, &detail));
            return None;
        }
        let mut program = checked.ok()?.0;
        index_optionally(&mut program);
        let estimate = cost::estimate(&program, this.measure);
        let times = place
            .cardinality
            .unwrap_or_else(|| cost::cardinality(this.measure));
        let cost = estimate.cost.saturating_mul(times);
        if cost > RULE_LIMIT {
            let what = match path {
                Path::Field(_, "rule") => "estimated rule cost",
                _ => "estimated messageExpression cost",
            };
            let detail = over_budget(what, cost, RULE_LIMIT);
            self.errors
                .push(FieldError::forbidden(path.bracketed(), detail));
        }
        self.total = self.total.saturating_add(cost);
        // Rules that contribute less than a hundredth are not reported.
        if cost >= SCHEMA_LIMIT / 100 {
            self.costs.push((cost, path.bracketed()));
        }
        Some((program, estimate))
    }
}

/// Recursion is bounded: the depth of the schema has been checked.
fn check_node(schema: &Value, node: &Node, path: Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some(Value::Array(rules)) = schema.get("x-kubernetes-validations") {
        let path = path.field("x-kubernetes-validations");
        for (i, rule) in rules.iter().enumerate() {
            check_rule(rule, node, path.index(i), errors);
        }
    }
    if let (Some(node), Some(schema)) = (&node.items, schema.get("items")) {
        check_node(schema, node, path.field("items"), errors);
    }
    if let (Some(Additional::Schema(node)), Some(schema)) =
        (&node.additional, schema.get("additionalProperties"))
    {
        check_node(schema, node, path.field("additionalProperties"), errors);
    }
    let properties = path.field("properties");
    for (name, node) in &node.properties {
        if let Some(schema) = schema.get("properties").and_then(|all| all.get(name)) {
            check_node(schema, node, properties.key(name), errors);
        }
    }
}

fn check_rule(rule: &Value, node: &Node, path: Path<'_>, errors: &mut Vec<FieldError>) {
    let given = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default();
    let at = |name: &str| path.field(name).bracketed();
    let source = given("rule").trim();
    let message = given("message");
    let broken = |text: &str| text.contains(['\n', '\r']);
    if source.is_empty() {
        errors.push(FieldError::required(at("rule"), "rule is not specified"));
    } else if !message.is_empty() && message.trim().is_empty() {
        let detail = "must be non-empty if specified";
        errors.push(FieldError::invalid(at("message"), &message.into(), detail));
    } else if broken(message.trim()) {
        let detail = "must not contain line breaks";
        errors.push(FieldError::invalid(at("message"), &message.into(), detail));
    } else if broken(source) && message.trim().is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        errors.push(FieldError::required(at("message"), detail));
    }
    let expression = given("messageExpression");
    if !expression.is_empty() && expression.trim().is_empty() {
        let detail = "messageExpression must be non-empty if specified";
        errors.push(FieldError::required(at("messageExpression"), detail));
    }
    let reason = given("reason");
    if rule.get("reason").is_some_and(|r| !r.is_null()) && !REASONS.contains(&reason) {
        let supported = REASONS.map(str::to_owned);
        errors.push(FieldError::not_supported(
            at("reason"),
            &reason.into(),
            &supported,
        ));
    }
    let field_path = given("fieldPath");
    if !field_path.is_empty() && field_path.trim().is_empty() {
        let detail = "must be non-empty if specified";
        errors.push(FieldError::invalid(
            at("fieldPath"),
            &field_path.into(),
            detail,
        ));
    }
    if broken(field_path) {
        let detail = "must not contain line breaks";
        errors.push(FieldError::invalid(
            at("fieldPath"),
            &field_path.into(),
            detail,
        ));
    }
    if !field_path.is_empty() && normalize(field_path, node).is_none() {
        let detail = "must be a valid path";
        errors.push(FieldError::invalid(
            at("fieldPath"),
            &field_path.into(),
            detail,
        ));
    }
}

pub(super) fn parse(source: &str) -> Result<IdedExpr, String> {
    if source.len() > MAX_LENGTH {
        return Err(format!("expression is longer than {MAX_LENGTH} characters"));
    }
    let (mut nesting, mut deepest, mut operators) = (0_usize, 0_usize, 0_usize);
    for c in source.chars() {
        match c {
            '(' | '[' | '{' => nesting += 1,
            ')' | ']' | '}' => nesting = nesting.saturating_sub(1),
            _ => {}
        }
        operators += usize::from(!c.is_alphanumeric() && !c.is_whitespace() && c != '_');
        deepest = deepest.max(nesting);
    }
    if deepest > MAX_NESTING || operators > MAX_OPERATORS {
        return Err("expression is nested too deeply".to_owned());
    }
    // The generated parser indexes arrays without checks; a panic in it must not stop the server.
    let parse = || Parser::new().enable_optional_syntax(true).parse(source);
    match catch_unwind(AssertUnwindSafe(parse)) {
        Ok(Ok(program)) => Ok(program),
        // cel-go indents the source lines that it prints.
        Ok(Err(errors)) => Err(errors.to_string().replace("\n| ", "\n | ")),
        Err(_) => Err("the expression cannot be parsed".to_owned()),
    }
}

/// Rewrites `a.?b` to `a[?'b']`: the interpreter fails on the former if `b` does not exist.
pub(super) fn index_optionally(expression: &mut IdedExpr) {
    let entry = |entry: &mut EntryExpr| match entry {
        EntryExpr::StructField(field) => index_optionally(&mut field.value),
        EntryExpr::MapEntry(entry) => {
            index_optionally(&mut entry.key);
            index_optionally(&mut entry.value);
        }
    };
    match &mut expression.expr {
        Expr::Call(call) => {
            if call.func_name == OPT_SELECT {
                OPT_INDEX.clone_into(&mut call.func_name);
            }
            call.target
                .as_deref_mut()
                .into_iter()
                .chain(&mut call.args)
                .for_each(index_optionally);
        }
        Expr::Comprehension(parts) => {
            let parts = &mut **parts;
            for part in [
                &mut parts.iter_range,
                &mut parts.accu_init,
                &mut parts.loop_cond,
                &mut parts.loop_step,
                &mut parts.result,
            ] {
                index_optionally(part);
            }
        }
        Expr::List(list) => list.elements.iter_mut().for_each(index_optionally),
        Expr::Map(map) => map.entries.iter_mut().for_each(|e| entry(&mut e.expr)),
        Expr::Struct(fields) => fields.entries.iter_mut().for_each(|e| entry(&mut e.expr)),
        Expr::Select(select) => index_optionally(&mut select.operand),
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
    }
}

/// Returns the [`FieldError`] for a rule, with all fields of the rule in Go's syntax.
fn rejected(rule: &Value, path: Path<'_>, detail: &str) -> FieldError {
    let text = |name: &str| rule.get(name).cloned().unwrap_or(json!(""));
    let other = |name: &str| rule.get(name).cloned().unwrap_or(Value::Null);
    let printed = format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\
         \"OptionalOldSelf\":{}}}",
        go_json(&text("rule")),
        go_json(&text("message")),
        go_json(&text("messageExpression")),
        go_json(&other("reason")),
        go_json(&text("fieldPath")),
        go_json(&other("optionalOldSelf")),
    );
    FieldError::invalid_unprinted(path.bracketed(), format!("{printed}: {detail}"))
}

fn over_budget(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = match factor {
        f if f > 100.0 => "more than 100x".to_owned(),
        f if f < 1.5 => format!("{f:.6}x"),
        f => format!("{f:.1}x"),
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, \
         maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

/// Returns the path `.spec.names['a.b']` in its normal form, if the schema declares the field.
fn normalize(given: &str, node: &Node) -> Option<String> {
    let mut rest = given;
    let mut node = node;
    let mut path = String::new();
    while !rest.is_empty() {
        let name = if let Some(after) = rest.strip_prefix("['") {
            let end = after.find("']")?;
            rest = &after[end + 2..];
            after[..end].replace("\\'", "'").replace("\\\\", "\\")
        } else {
            let after = rest.strip_prefix('.')?;
            let end = after.find(['.', '[']).unwrap_or(after.len());
            rest = &after[end..];
            after[..end].to_owned()
        };
        let (child, declared) = node.child(&name)?;
        node = child;
        if !declared {
            path.push_str(&format!("[{name}]"));
        } else {
            let dot = if path.is_empty() { "" } else { "." };
            path.push_str(&format!("{dot}{name}"));
        }
    }
    (!path.is_empty()).then_some(path)
}
