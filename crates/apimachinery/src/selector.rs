//! Label and field selectors: `labelSelector` and `fieldSelector` of a list or watch request.
//!
//! Grammar, peculiarities and messages are those of `k8s.io/apimachinery/pkg/labels` and `pkg/fields`.

mod field;
mod lexer;

use std::fmt;

use serde_json::Value;

use crate::names::{label_key_problems, label_value_problems};
use crate::schema::go_quote;
use lexer::{Parser, Token};

pub use field::FieldSelector;

/// Reason for the rejection of a selector, for a `Status` of reason `BadRequest`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParseError {
    /// Message of kube-apiserver.
    pub message: String,
}

/// Parsed label selector; all of its requirements must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

/// Operator of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Operator {
    Equals,
    NotEquals,
    In,
    NotIn,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
    /// Sorted, without duplicates.
    values: Vec<String>,
}

impl LabelSelector {
    /// Parses the query-string form: `a=b,c!=d,e in (f,g),h notin (i),j,!k`. The empty string matches everything.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut parser = Parser::new(text);
        let mut requirements = Vec::new();
        loop {
            match parser.peek_value() {
                (Token::Identifier | Token::Not, _) => {
                    let requirement = parse_requirement(&mut parser).map_err(|e| {
                        error(format!("unable to parse requirement: {}", e.message))
                    })?;
                    requirements.push(requirement);
                    match parser.next_value() {
                        (Token::End, _) => break,
                        (Token::Comma, _) => {
                            let (token, literal) = parser.peek_value();
                            if !matches!(token, Token::Identifier | Token::Not) {
                                return Err(error(format!(
                                    "found '{literal}', expected: identifier after ','"
                                )));
                            }
                        }
                        (_, literal) => {
                            return Err(error(format!(
                                "found '{literal}', expected: ',' or 'end of string'"
                            )));
                        }
                    }
                }
                (Token::End, _) => break,
                (_, literal) => {
                    return Err(error(format!(
                        "found '{literal}', expected: !, identifier, or 'end of string'"
                    )));
                }
            }
        }
        requirements.sort_by(|a: &Requirement, b| a.key.cmp(&b.key));
        Ok(Self { requirements })
    }

    /// Parses the object form, `{"matchLabels": {..}, "matchExpressions": [..]}`. An empty object matches everything.
    /// Null is rejected: an absent selector matches nothing in most, but not all, places of Kubernetes, so callers
    /// decide.
    pub fn from_object(selector: &Value) -> Result<Self, ParseError> {
        let Some(fields) = selector.as_object() else {
            return Err(error("a label selector must be an object"));
        };
        let mut requirements = Vec::new();
        if let Some(labels) = fields.get("matchLabels").and_then(Value::as_object) {
            for (key, value) in labels {
                let value = value.as_str().unwrap_or_default().to_owned();
                requirements.push(Requirement::new(
                    key.clone(),
                    Operator::Equals,
                    vec![value],
                )?);
            }
        }
        let expressions = fields.get("matchExpressions").and_then(Value::as_array);
        for expression in expressions.into_iter().flatten() {
            let text = |name: &str| {
                expression
                    .get(name)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
            };
            let operator = match text("operator") {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => {
                    let message =
                        format!("{} is not a valid label selector operator", go_quote(other));
                    return Err(error(message));
                }
            };
            let values = expression.get("values").and_then(Value::as_array);
            let values = values
                .into_iter()
                .flatten()
                .filter_map(|v| v.as_str().map(str::to_owned))
                .collect();
            requirements.push(Requirement::new(text("key").to_owned(), operator, values)?);
        }
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Self { requirements })
    }

    /// True if the selector matches an object with these labels (the value of `metadata.labels`, or null).
    pub fn matches(&self, labels: &Value) -> bool {
        self.requirements
            .iter()
            .all(|requirement| requirement.matches(labels))
    }

    /// True if the selector matches everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }
}

/// Formats the canonical form, which parses to the same selector.
impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, requirement) in self.requirements.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

impl Requirement {
    fn new(key: String, operator: Operator, mut values: Vec<String>) -> Result<Self, ParseError> {
        values.sort();
        values.dedup();
        let mut problems = Vec::new();
        for problem in [label_key_problems(&key)]
            .into_iter()
            .filter(|p| !p.is_empty())
        {
            problems.push(format!(
                "key: Invalid value: {}: {}",
                go_quote(&key),
                problem.join("; ")
            ));
        }
        let count = match operator {
            Operator::In | Operator::NotIn if values.is_empty() => {
                Some("for 'in', 'notin' operators, values set can't be empty")
            }
            Operator::Equals | Operator::NotEquals if values.len() != 1 => {
                Some("exact-match compatibility requires one single value")
            }
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                Some("values set must be empty for exists and does not exist")
            }
            Operator::GreaterThan | Operator::LessThan if values.len() != 1 => {
                Some("for 'Gt', 'Lt' operators, exactly one value is required")
            }
            _ => None,
        };
        if let Some(problem) = count {
            let printed = Value::from(values.clone());
            problems.push(format!("values: Invalid value: {printed}: {problem}"));
        }
        for (i, value) in values.iter().enumerate() {
            let quoted = go_quote(value);
            if matches!(operator, Operator::GreaterThan | Operator::LessThan)
                && value.parse::<i64>().is_err()
            {
                let problem = "for 'Gt', 'Lt' operators, the value must be an integer";
                problems.push(format!("values[{i}]: Invalid value: {quoted}: {problem}"));
            }
            let found = label_value_problems(value);
            if !found.is_empty() {
                let found = found.join("; ");
                problems.push(format!(
                    "values[{i}][{key}]: Invalid value: {quoted}: {found}"
                ));
            }
        }
        match problems.len() {
            0 => Ok(Self {
                key,
                operator,
                values,
            }),
            1 => Err(error(problems.remove(0))),
            _ => Err(error(format!("[{}]", problems.join(", ")))),
        }
    }

    fn matches(&self, labels: &Value) -> bool {
        let label = labels.get(&self.key).and_then(Value::as_str);
        let listed = |label: &str| self.values.iter().any(|value| value == label);
        match self.operator {
            Operator::Equals | Operator::In => label.is_some_and(listed),
            Operator::NotEquals | Operator::NotIn => !label.is_some_and(listed),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan | Operator::LessThan => {
                let number = |text: &str| text.parse::<i64>().ok();
                let bound = self.values.first().and_then(|value| number(value));
                match (label.and_then(number), bound) {
                    (Some(label), Some(bound)) if self.operator == Operator::GreaterThan => {
                        label > bound
                    }
                    (Some(label), Some(bound)) => label < bound,
                    _ => false,
                }
            }
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values.join(","));
        match self.operator {
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

fn parse_requirement(parser: &mut Parser<'_>) -> Result<Requirement, ParseError> {
    let (mut token, mut literal) = parser.next_value();
    let negated = token == Token::Not;
    if negated {
        (token, literal) = parser.next_value();
    }
    if token != Token::Identifier {
        return Err(error(format!("found '{literal}', expected: identifier")));
    }
    let problems = label_key_problems(&literal);
    if !problems.is_empty() {
        let quoted = go_quote(&literal);
        return Err(error(format!(
            "<nil>: Invalid value: {quoted}: {}",
            problems.join("; ")
        )));
    }
    if negated {
        return Requirement::new(literal, Operator::DoesNotExist, Vec::new());
    }
    if matches!(parser.peek_value().0, Token::End | Token::Comma) {
        return Requirement::new(literal, Operator::Exists, Vec::new());
    }
    let operator = parse_operator(parser)?;
    let values = match operator {
        Operator::In | Operator::NotIn => parse_values(parser)?,
        _ => vec![parse_exact_value(parser)?],
    };
    Requirement::new(literal, operator, values)
}

fn parse_operator(parser: &mut Parser<'_>) -> Result<Operator, ParseError> {
    let (token, literal) = parser.next();
    match token {
        Token::In => Ok(Operator::In),
        Token::NotIn => Ok(Operator::NotIn),
        Token::Equals | Token::DoubleEquals => Ok(Operator::Equals),
        Token::NotEquals => Ok(Operator::NotEquals),
        Token::GreaterThan => Ok(Operator::GreaterThan),
        Token::LessThan => Ok(Operator::LessThan),
        _ => Err(error(format!(
            "found '{literal}', expected: in, notin, =, ==, !=, gt, lt"
        ))),
    }
}

fn parse_exact_value(parser: &mut Parser<'_>) -> Result<String, ParseError> {
    if matches!(parser.peek_value().0, Token::End | Token::Comma) {
        return Ok(String::new());
    }
    match parser.next_value() {
        (Token::Identifier, literal) => Ok(literal),
        (_, literal) => Err(error(format!("found '{literal}', expected: identifier"))),
    }
}

/// Parses `(a,b)`. An empty element is the empty value, as in `(,)` and `()`.
fn parse_values(parser: &mut Parser<'_>) -> Result<Vec<String>, ParseError> {
    let (token, literal) = parser.next_value();
    if token != Token::Open {
        return Err(error(format!("found '{literal}' expected: '('")));
    }
    let (token, literal) = parser.peek_value();
    match token {
        Token::Close => {
            parser.next_value();
            return Ok(vec![String::new()]);
        }
        Token::Identifier | Token::Comma => {}
        _ => {
            return Err(error(format!(
                "found '{literal}', expected: ',', ')' or identifier"
            )));
        }
    }
    let mut values = Vec::new();
    loop {
        match parser.next_value() {
            (Token::Identifier, literal) => {
                values.push(literal);
                match parser.peek_value() {
                    (Token::Comma, _) => {}
                    (Token::Close, _) => break,
                    (_, literal) => {
                        return Err(error(format!("found '{literal}', expected: ',' or ')'")));
                    }
                }
            }
            (Token::Comma, _) => {
                if values.is_empty() {
                    values.push(String::new());
                }
                match parser.peek_value().0 {
                    Token::Close => {
                        values.push(String::new());
                        break;
                    }
                    Token::Comma => values.push(String::new()),
                    _ => {}
                }
            }
            (_, literal) => {
                return Err(error(format!(
                    "found '{literal}', expected: ',', or identifier"
                )));
            }
        }
    }
    parser.next_value(); // the closing parenthesis, which was peeked at
    Ok(values)
}

fn error(message: impl Into<String>) -> ParseError {
    ParseError {
        message: message.into(),
    }
}

#[cfg(test)]
mod tests;
