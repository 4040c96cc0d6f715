//! Positions of problems in the source of an expression, and their print as by cel-go.
//!
//! The parser does not keep positions. It numbers expressions in the order of their tokens, though, so that the n-th
//! expression of a kind is at the n-th token of that kind.

use kube_cel::cel::common::ast::{
    EntryExpr, Expr, IdedExpr, LiteralValue,
    operators::{ADD, CONDITIONAL, LOGICAL_AND, LOGICAL_OR, OPT_SELECT},
};

/// Error of an expression.
#[derive(Debug)]
pub(super) struct Problem<'e> {
    pub(super) at: &'e IdedExpr,
    pub(super) message: String,
}

/// Kind of a token, by which expressions are counted.
#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Operator(&'static str),
    /// Opening bracket of a call of the function.
    Call(String),
    /// Opening bracket of a macro over a list or map.
    Macro,
    /// Opening bracket of `has`.
    Has,
    /// Dot in front of the field.
    Field(String),
    Name(String),
    Text,
    Number,
    List,
    Map,
}

/// Positions within one source.
pub(super) struct Problems<'s, 'e> {
    source: &'s str,
    /// Offset of each token.
    tokens: Vec<(Kind, usize)>,
    found: Found<'e>,
}

/// Expressions of a source.
#[derive(Default)]
struct Found<'e> {
    /// Expressions that have a token, with the number by which they are ordered.
    expressions: Vec<(u64, Kind, &'e IdedExpr)>,
    /// Expressions that a macro adds, each with that macro.
    added: Vec<(&'e IdedExpr, &'e IdedExpr)>,
}

impl<'s, 'e> Problems<'s, 'e> {
    pub(super) fn new(source: &'s str, root: &'e IdedExpr) -> Self {
        let mut found = Found::default();
        found.collect(root);
        found.expressions.sort_by_key(|(order, ..)| *order);
        Self {
            source,
            tokens: tokens(source),
            found,
        }
    }

    /// Prints problems in the order of their positions: `ERROR: <input>:1:5: …`, and the line with a marker.
    pub(super) fn print(&self, problems: &[Problem<'e>]) -> String {
        let mut placed: Vec<(Option<usize>, &str)> = problems
            .iter()
            .map(|problem| (self.offset(problem.at), problem.message.as_str()))
            .collect();
        placed.sort_by_key(|(offset, _)| *offset);
        let lines = placed
            .iter()
            .map(|(offset, message)| self.line(*offset, message));
        lines.collect::<Vec<_>>().join("\n")
    }

    fn offset(&self, at: &IdedExpr) -> Option<usize> {
        let added = self.found.added.iter();
        let at = added
            .clone()
            .find(|(expression, _)| std::ptr::eq(*expression, at))
            .map_or(at, |(_, by)| by);
        let expressions = &self.found.expressions;
        let kind = expressions
            .iter()
            .find(|(_, _, expression)| std::ptr::eq(*expression, at))
            .map(|(_, kind, _)| kind)?;
        let index = expressions
            .iter()
            .filter(|(_, other, _)| other == kind)
            .position(|(_, _, expression)| std::ptr::eq(*expression, at))?;
        self.tokens
            .iter()
            .filter(|(other, _)| other == kind)
            .nth(index)
            .map(|(_, offset)| *offset)
    }

    fn line(&self, offset: Option<usize>, message: &str) -> String {
        let Some(offset) = offset else {
            return format!("ERROR: <input>: {message}");
        };
        let before = &self.source[..offset];
        let number = before.matches('\n').count();
        let text = self.source.split('\n').nth(number).unwrap_or_default();
        let column = before.rsplit('\n').next().unwrap_or_default();
        let wide = |c: char| c.len_utf8() > 1;
        let dots: String = column
            .chars()
            .map(|c| if wide(c) { '\u{ff0e}' } else { '.' })
            .collect();
        let at = self.source[offset..].chars().next();
        let marker = if at.is_some_and(wide) {
            '\u{ff3e}'
        } else {
            '^'
        };
        format!(
            "ERROR: <input>:{}:{}: {message}\n | {}\n | {dots}{marker}",
            number + 1,
            column.chars().count() + 1,
            text.replace('\t', " "),
        )
    }
}

impl<'e> Found<'e> {
    /// Recursion is bounded by the limits in `compile`.
    fn collect(&mut self, expression: &'e IdedExpr) {
        let found = &mut self.expressions;
        let mut add = |kind: Kind| found.push((expression.id, kind, expression));
        match &expression.expr {
            Expr::Unspecified => {}
            Expr::Ident(name) => add(Kind::Name(name.clone())),
            Expr::Literal(literal) => add(literal_kind(literal)),
            Expr::Select(select) => {
                add(if select.test {
                    Kind::Has
                } else {
                    Kind::Field(select.field.clone())
                });
                self.collect(&select.operand);
            }
            Expr::Call(call) => {
                add(operator(&call.func_name));
                // The field of `a.?b` is no token of its own.
                let hidden = usize::from(call.func_name == OPT_SELECT);
                let arguments = call.args.len().saturating_sub(hidden);
                let arguments = call.args.iter().take(arguments);
                for part in call.target.as_deref().into_iter().chain(arguments) {
                    self.collect(part);
                }
            }
            Expr::List(list) => {
                add(Kind::List);
                for element in &list.elements {
                    self.collect(element);
                }
            }
            Expr::Map(map) => {
                add(Kind::Map);
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        self.collect(&entry.key);
                        self.collect(&entry.value);
                    }
                }
            }
            Expr::Struct(_) => add(Kind::Map),
            Expr::Comprehension(parts) => {
                let start = self.expressions.len();
                self.collect(&parts.iter_range);
                let orders = self.expressions[start..].iter().map(|(order, ..)| *order);
                let order = orders.max().unwrap_or_default();
                self.expressions.push((order, Kind::Macro, expression));
                for part in [&parts.loop_cond, &parts.result] {
                    self.added.push((part, expression));
                }
                self.collect_step(expression, &parts.accu_var, &parts.loop_step);
            }
        }
    }

    /// Collects the arguments of a macro out of the step of its loop.
    fn collect_step(&mut self, of: &'e IdedExpr, accumulator: &str, step: &'e IdedExpr) {
        self.added.push((step, of));
        let accumulates =
            |part: &IdedExpr| matches!(&part.expr, Expr::Ident(name) if name == accumulator);
        let Expr::Call(call) = &step.expr else {
            return;
        };
        match (call.func_name.as_str(), &call.args[..]) {
            (CONDITIONAL, [condition, then, _]) => {
                self.collect(condition);
                self.collect_step(of, accumulator, then);
            }
            (ADD, [first, second]) if accumulates(first) => {
                if let Expr::List(list) = &second.expr {
                    for element in &list.elements {
                        self.collect(element);
                    }
                }
            }
            (LOGICAL_AND | LOGICAL_OR, [first, second]) if accumulates(first) => {
                self.collect(second);
            }
            _ => {}
        }
    }
}

fn literal_kind(literal: &LiteralValue) -> Kind {
    match literal {
        LiteralValue::String(_) | LiteralValue::Bytes(_) => Kind::Text,
        LiteralValue::Boolean(flag) => Kind::Name(flag.inner().to_string()),
        LiteralValue::Null => Kind::Name("null".to_owned()),
        LiteralValue::Int(_) | LiteralValue::UInt(_) | LiteralValue::Double(_) => Kind::Number,
    }
}

fn operator(function: &str) -> Kind {
    const OPERATORS: [(&str, &str); 20] = [
        ("_==_", "=="),
        ("_!=_", "!="),
        ("_<=_", "<="),
        ("_>=_", ">="),
        ("_<_", "<"),
        ("_>_", ">"),
        ("_&&_", "&&"),
        ("_||_", "||"),
        ("_+_", "+"),
        ("_-_", "-"),
        ("_*_", "*"),
        ("_/_", "/"),
        ("_%_", "%"),
        ("!_", "!"),
        ("-_", "-x"),
        ("_?_:_", "?"),
        ("@in", "in"),
        ("_[_]", "["),
        ("_[?_]", "["),
        ("_?._", ".?"),
    ];
    let known = OPERATORS.iter().find(|(name, _)| *name == function);
    match known {
        Some((_, token)) => Kind::Operator(token),
        None => Kind::Call(function.to_owned()),
    }
}

/// Reads the tokens of a source that has been parsed.
fn tokens(source: &str) -> Vec<(Kind, usize)> {
    let mut found: Vec<(Kind, usize)> = Vec::new();
    let mut at = 0;
    // True after a token that ends an operand: an operator follows.
    let mut operand = false;
    let mut after_macro = false;
    while let Some(c) = source[at..].chars().next() {
        let token = next(&source[at..], c, operand);
        if let Some(kind) = token.kind {
            // The variable of a macro is no expression.
            let is_variable = matches!(kind, Kind::Name(_)) && after_macro;
            after_macro = kind == Kind::Macro;
            if !is_variable {
                found.push((kind, at + token.offset));
            }
        }
        operand = token.operand;
        at += token.length.max(c.len_utf8());
    }
    found
}

struct Token {
    kind: Option<Kind>,
    /// Position of the token that counts: of the bracket of a call.
    offset: usize,
    length: usize,
    operand: bool,
}

impl Token {
    fn new(kind: impl Into<Option<Kind>>, length: usize, operand: bool) -> Self {
        Self {
            kind: kind.into(),
            offset: 0,
            length,
            operand,
        }
    }
}

/// Returns the token at the start of `rest`. `operand` is true if an operand is in front of it.
fn next(rest: &str, c: char, operand: bool) -> Token {
    const OPERATORS: [&str; 15] = [
        "==", "!=", "<=", ">=", "&&", "||", ".?", "<", ">", "+", "-", "*", "/", "%", "!",
    ];
    let digit = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    if c.is_whitespace() {
        return Token::new(None, c.len_utf8(), operand);
    }
    if rest.starts_with("//") {
        return Token::new(None, rest.find('\n').unwrap_or(rest.len()), operand);
    }
    if let Some(length) = text(rest) {
        return Token::new(Kind::Text, length, true);
    }
    if c.is_ascii_digit() || !operand && c == '.' && digit(&rest[1..]) {
        return Token::new(Kind::Number, number(rest), true);
    }
    if c.is_alphabetic() || c == '_' {
        return word(rest);
    }
    match c {
        '-' if !operand && digit(&rest[1..]) => {
            return Token::new(Kind::Number, 1 + number(&rest[1..]), true);
        }
        '-' if !operand => return Token::new(Kind::Operator("-x"), 1, false),
        '[' if !operand => return Token::new(Kind::List, 1, false),
        '[' => {
            let length = if rest.starts_with("[?") { 2 } else { 1 };
            return Token::new(Kind::Operator("["), length, false);
        }
        '{' => return Token::new(Kind::Map, 1, false),
        '?' if operand => return Token::new(Kind::Operator("?"), 1, false),
        ')' | ']' | '}' => return Token::new(None, 1, true),
        '.' if !rest.starts_with(".?") => return field(rest),
        _ => {}
    }
    match OPERATORS.into_iter().find(|token| rest.starts_with(token)) {
        Some(".?") => {
            let length = 2 + name(rest[2..].trim_start()).len();
            Token::new(Kind::Operator(".?"), length + spaces(&rest[2..]), true)
        }
        Some(token) => Token::new(Kind::Operator(token), token.len(), false),
        None => Token::new(None, c.len_utf8(), false),
    }
}

fn spaces(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

/// Returns the name at the start.
fn name(rest: &str) -> &str {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    &rest[..rest.find(|c| !part(c)).unwrap_or(rest.len())]
}

/// Returns the selection of a field, or only the dot in front of a call.
fn field(rest: &str) -> Token {
    let space = 1 + spaces(&rest[1..]);
    let name = name(&rest[space..]);
    let end = space + name.len();
    if name.is_empty() || rest[end..].trim_start().starts_with('(') {
        return Token::new(None, 1, false);
    }
    Token::new(Kind::Field(name.to_owned()), end, true)
}

/// Returns a name, or a call.
fn word(rest: &str) -> Token {
    const MACROS: [&str; 6] = ["all", "exists", "exists_one", "existsOne", "map", "filter"];
    let name = name(rest);
    if name == "in" {
        return Token::new(Kind::Operator("in"), name.len(), false);
    }
    let open = name.len() + spaces(&rest[name.len()..]);
    if !rest[open..].starts_with('(') {
        return Token::new(Kind::Name(name.to_owned()), name.len(), true);
    }
    let kind = match name {
        "has" => Kind::Has,
        _ if MACROS.contains(&name) => Kind::Macro,
        _ => Kind::Call(name.to_owned()),
    };
    Token {
        offset: open,
        ..Token::new(kind, open + 1, false)
    }
}

fn number(rest: &str) -> usize {
    let mut before = ' ';
    let end = rest.find(|c: char| {
        let exponent = matches!(before, 'e' | 'E') && matches!(c, '+' | '-');
        let part = c.is_ascii_alphanumeric() || c == '.' || exponent;
        before = c;
        !part
    });
    end.unwrap_or(rest.len())
}

/// Returns the length of a text at the start, with its prefixes `r` and `b`.
fn text(rest: &str) -> Option<usize> {
    let start = rest.find(['"', '\''])?;
    let prefix = &rest[..start];
    if start > 2 || !prefix.chars().all(|c| matches!(c, 'r' | 'R' | 'b' | 'B')) {
        return None;
    }
    let raw = prefix.contains(['r', 'R']);
    let quote = &rest[start..=start];
    let triple = quote.repeat(3);
    let close = match rest[start..].starts_with(&triple) {
        true => triple.as_str(),
        false => quote,
    };
    let mut at = start + close.len();
    while at < rest.len() {
        if rest[at..].starts_with(close) {
            return Some(at + close.len());
        }
        let c = rest[at..].chars().next()?;
        at += c.len_utf8();
        if c == '\\' && !raw {
            at += rest[at..].chars().next().map_or(0, char::len_utf8);
        }
    }
    Some(rest.len())
}

#[cfg(test)]
mod tests {
    use super::{Kind, tokens};

    #[test]
    fn tokens_of_a_source_are_found_outside_of_texts() {
        let source = "self.a == '==' && -1 < x.size ( )[0] // == \n ? .?b : r\"\\\" - -c";
        let found: Vec<(Kind, usize)> = tokens(source);
        let at = |kind: Kind| -> Vec<usize> {
            let same = found.iter().filter(|(other, _)| *other == kind);
            same.map(|(_, at)| *at).collect()
        };
        assert_eq!(at(Kind::Operator("==")), [7]);
        assert_eq!(at(Kind::Text), [10, source.find("r\"").unwrap()]);
        assert_eq!(at(Kind::Number), [18, source.find("0]").unwrap()]);
        assert_eq!(at(Kind::Call("size".into())), [30]);
        assert_eq!(at(Kind::Field("a".into())), [4]);
        assert_eq!(at(Kind::Operator("[")), [33]);
        assert_eq!(at(Kind::Operator("?")), [source.find(" ? ").unwrap() + 1]);
        assert_eq!(at(Kind::Operator("-x")), [source.len() - 2]);
        assert_eq!(at(Kind::Operator("-")), [source.len() - 4]);
    }

    #[test]
    fn the_variable_of_a_macro_is_no_expression() {
        let found = tokens("self.list.all(x, x == 'a') && x == 'b'");
        let names: Vec<usize> = found
            .iter()
            .filter(|(kind, _)| *kind == Kind::Name("x".into()))
            .map(|(_, at)| *at)
            .collect();
        assert_eq!(names, [17, 30]);
    }
}
