//! Checks of a rule like those of cel-go's checker: the type of the expression, and the positions of unknown names.

use kube_cel::cel::common::ast::{Expr, IdedExpr, LiteralValue};

use crate::schema::node::{Kind, Node};

/// True if the type of a rule is known and is not `bool`. An unknown type is checked at the evaluation.
pub(super) fn is_not_bool(expression: &IdedExpr, this: &Node) -> bool {
    match &expression.expr {
        Expr::Literal(literal) => !matches!(literal, LiteralValue::Boolean(_)),
        Expr::List(_) | Expr::Map(_) | Expr::Struct(_) => true,
        Expr::Ident(_) => node_of(expression, this).is_some_and(is_not_boolean),
        Expr::Select(select) => {
            !select.test && node_of(expression, this).is_some_and(is_not_boolean)
        }
        Expr::Comprehension(parts) => match &parts.result.expr {
            Expr::Ident(name) if *name == parts.accu_var => is_not_bool(&parts.accu_init, this),
            _ => is_not_bool(&parts.result, this),
        },
        Expr::Call(call) if call.func_name == "_?_:_" => call
            .args
            .iter()
            .skip(1)
            .any(|branch| is_not_bool(branch, this)),
        Expr::Call(call) => matches!(
            call.func_name.as_str(),
            "_+_"
                | "_-_"
                | "_*_"
                | "_/_"
                | "_%_"
                | "-_"
                | "size"
                | "int"
                | "uint"
                | "double"
                | "string"
                | "bytes"
                | "duration"
                | "timestamp"
                | "type"
                | "lowerAscii"
                | "upperAscii"
                | "trim"
                | "replace"
                | "substring"
                | "split"
                | "join"
                | "format"
                | "charAt"
                | "indexOf"
                | "lastIndexOf"
                | "find"
                | "findAll"
        ),
        Expr::Unspecified => false,
    }
}

fn is_not_boolean(node: &Node) -> bool {
    !node.int_or_string && node.kind.is_some_and(|kind| kind != Kind::Boolean)
}

/// Returns the [`Node`] of `self`, or of a declared field of `self`.
fn node_of<'a>(expression: &IdedExpr, this: &'a Node) -> Option<&'a Node> {
    match &expression.expr {
        Expr::Ident(name) if name == "self" || name == "oldSelf" => Some(this),
        Expr::Select(select) => node_of(&select.operand, this)?
            .properties
            .get(&select.field),
        _ => None,
    }
}

/// Formats a problem with its position in the source, like cel-go: `ERROR: <input>:1:5: …` and the line with a marker.
pub(super) fn located(source: &str, problem: &str) -> String {
    let name = problem.split('\'').nth(1).unwrap_or_default();
    let field = problem.starts_with("undefined field");
    let Some(at) = find(source, name, field) else {
        return format!("ERROR: <input>: {problem}");
    };
    let before = &source[..at];
    let line = before.matches('\n').count();
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count();
    let text = source.split('\n').nth(line).unwrap_or_default();
    let dots = ".".repeat(column);
    format!(
        "ERROR: <input>:{}:{}: {problem}\n | {text}\n | {dots}^",
        line + 1,
        column + 1
    )
}

/// Returns the first position of a name as a whole word. For a field, the position of the dot in front.
fn find(source: &str, name: &str, field: bool) -> Option<usize> {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    source.match_indices(name).map(|(at, _)| at).find_map(|at| {
        let after = source[at + name.len()..].chars().next();
        let before = source[..at].chars().next_back();
        let alone = !name.is_empty() && !after.is_some_and(part) && !before.is_some_and(part);
        match (alone, before == Some('.'), field) {
            (true, true, true) => Some(at - 1),
            (true, false, false) => Some(at),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::located;

    #[test]
    fn a_problem_is_printed_with_its_position() {
        assert_eq!(
            located("self.b == 1", "undefined field 'b'"),
            "ERROR: <input>:1:5: undefined field 'b'\n | self.b == 1\n | ....^"
        );
        assert_eq!(
            located(
                "true &&\nfoo",
                "undeclared reference to 'foo' (in container '')"
            ),
            "ERROR: <input>:2:1: undeclared reference to 'foo' (in container '')\n | foo\n | ^"
        );
        assert_eq!(
            located("x", "undefined field 'y'"),
            "ERROR: <input>: undefined field 'y'"
        );
    }
}
