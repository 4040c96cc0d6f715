//! Evaluation of templates, within bounds.

use super::TemplateError;
use super::functions;
use super::lex::error;
use super::parse::{Block, Node, Operand, Pipe};
use super::value::Value;

/// Maximum number of evaluated actions and function calls.
const STEPS: usize = 20_000;
/// Maximum size of a value, in elements and sixteenths of bytes (see [`Value::weight`]).
pub(super) const LARGEST: usize = 65_536;
/// Maximum size of the output in bytes, equal to the limit of an object in the API server.
const LONGEST: usize = 1 << 20;

pub(super) fn run(nodes: &[Node], data: &Value) -> Result<String, TemplateError> {
    let mut run = Run {
        variables: vec![(String::new(), data.clone())],
        out: String::new(),
        steps: 0,
    };
    run.nodes(nodes, data)?;
    Ok(run.out)
}

struct Run {
    variables: Vec<(String, Value)>,
    out: String,
    steps: usize,
}

/// Outcome of a list of nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

impl Run {
    fn nodes(&mut self, nodes: &[Node], dot: &Value) -> Result<Flow, TemplateError> {
        for node in nodes {
            let flow = match node {
                Node::Text(text) => self.print(text, 0).map(|()| Flow::Next),
                Node::Print(pipe) => self.action(pipe, dot),
                Node::Block(block, pipe, body, otherwise) => {
                    let scope = self.variables.len();
                    let flow = self.block(*block, pipe, (body, otherwise), dot);
                    self.variables.truncate(scope);
                    flow
                }
                Node::Break => Ok(Flow::Break),
                Node::Continue => Ok(Flow::Continue),
            }?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn print(&mut self, text: &str, line: usize) -> Result<(), TemplateError> {
        if self.out.len() + text.len() > LONGEST {
            return Err(error(line, format!("prints more than {LONGEST} bytes")));
        }
        self.out.push_str(text);
        Ok(())
    }

    fn action(&mut self, pipe: &Pipe, dot: &Value) -> Result<Flow, TemplateError> {
        let value = self.pipe(pipe, dot)?;
        if pipe.variables.is_empty() {
            self.print(&value.printed(), pipe.line)?;
        }
        Ok(Flow::Next)
    }

    fn block(
        &mut self,
        block: Block,
        pipe: &Pipe,
        (body, otherwise): (&[Node], &[Node]),
        dot: &Value,
    ) -> Result<Flow, TemplateError> {
        if block == Block::Range {
            return self.range(pipe, (body, otherwise), dot);
        }
        let value = self.pipe(pipe, dot)?;
        match (value.is_true(), block) {
            (true, Block::With) => self.nodes(body, &value),
            (true, _) => self.nodes(body, dot),
            (false, _) => self.nodes(otherwise, dot),
        }
    }

    fn range(
        &mut self,
        pipe: &Pipe,
        (body, otherwise): (&[Node], &[Node]),
        dot: &Value,
    ) -> Result<Flow, TemplateError> {
        let scope = self.variables.len();
        let value = self.commands(pipe, dot)?;
        let problem = |what: String| error(pipe.line, what);
        let items: Vec<(Value, Value)> = match value {
            Value::List(items) => items
                .into_iter()
                .enumerate()
                .map(|(at, item)| (Value::Int(i64::try_from(at).unwrap_or(i64::MAX)), item))
                .collect(),
            Value::Map(fields) => fields
                .into_iter()
                .map(|(name, item)| (Value::Text(name), item))
                .collect(),
            Value::Int(count) if count > LARGEST as i64 => {
                return Err(problem(format!("range over more than {LARGEST}")));
            }
            Value::Int(count) => (0..count.max(0))
                .map(|at| (Value::Int(at), Value::Int(at)))
                .collect(),
            Value::Missing | Value::Nil => Vec::new(),
            other => {
                return Err(problem(format!(
                    "range can't iterate over {}",
                    other.go_text()
                )));
            }
        };
        if items.is_empty() {
            return self.nodes(otherwise, dot);
        }
        for (key, item) in items {
            let values = match pipe.variables.len() {
                2 => vec![key, item.clone()],
                1 => vec![item.clone()],
                _ => Vec::new(),
            };
            if pipe.declares {
                self.variables.truncate(scope);
            }
            for (name, value) in pipe.variables.iter().zip(values) {
                self.assign(name, value, pipe.declares);
            }
            let inner = self.variables.len();
            let flow = self.nodes(body, &item)?;
            self.variables.truncate(inner);
            if flow == Flow::Break {
                break;
            }
        }
        Ok(Flow::Next)
    }

    /// Evaluates a pipeline, and sets its variable.
    fn pipe(&mut self, pipe: &Pipe, dot: &Value) -> Result<Value, TemplateError> {
        let value = self.commands(pipe, dot)?;
        for name in &pipe.variables {
            self.assign(name, value.clone(), pipe.declares);
        }
        Ok(value)
    }

    fn assign(&mut self, name: &str, value: Value, declares: bool) {
        let known = self.variables.iter_mut().rev();
        let known = known.filter(|_| !declares).find(|(known, _)| known == name);
        match known {
            Some((_, place)) => *place = value,
            None => self.variables.push((name.to_owned(), value)),
        }
    }

    fn commands(&mut self, pipe: &Pipe, dot: &Value) -> Result<Value, TemplateError> {
        let mut value = None;
        for command in &pipe.commands {
            value = Some(self.command(command, value, pipe.line, dot)?);
        }
        Ok(value.unwrap_or(Value::Missing))
    }

    fn command(
        &mut self,
        command: &[Operand],
        last: Option<Value>,
        line: usize,
        dot: &Value,
    ) -> Result<Value, TemplateError> {
        self.steps += 1;
        if self.steps > STEPS {
            return Err(error(line, format!("takes more than {STEPS} steps")));
        }
        let Some((Operand::Function(name), operands)) = command.split_first() else {
            return match command.first() {
                Some(Operand::Nil) => Err(error(line, "nil is not a command")),
                Some(operand) => self.operand(operand, line, dot),
                None => Ok(Value::Missing),
            };
        };
        if matches!(name.as_str(), "and" | "or") {
            return self.junction(name == "and", operands, last, line, dot);
        }
        let mut values = Vec::new();
        for operand in operands {
            values.push(match self.operand(operand, line, dot)? {
                // Go passes a key that a map does not have as nil.
                Value::Missing => Value::Nil,
                value => value,
            });
        }
        values.extend(last.map(|last| match last {
            Value::Missing => Value::Nil,
            value => value,
        }));
        let value = functions::call(name, values);
        let value = value.map_err(|problem| error(line, format!("{name}: {problem}")))?;
        match value.weight(LARGEST) > LARGEST {
            true => Err(error(line, format!("{name}: the result is too large"))),
            false => Ok(value),
        }
    }

    /// Evaluates `and` and `or`, with no more operands than needed.
    fn junction(
        &mut self,
        and: bool,
        operands: &[Operand],
        last: Option<Value>,
        line: usize,
        dot: &Value,
    ) -> Result<Value, TemplateError> {
        let mut value = None;
        for operand in operands {
            let next = self.operand(operand, line, dot)?;
            if next.is_true() != and {
                return Ok(next);
            }
            value = Some(next);
        }
        let value = last.or(value);
        let name = if and { "and" } else { "or" };
        value.ok_or_else(|| {
            error(
                line,
                format!("{name}: wrong number of args: want at least 1 got 0"),
            )
        })
    }

    fn operand(
        &mut self,
        operand: &Operand,
        line: usize,
        dot: &Value,
    ) -> Result<Value, TemplateError> {
        let fields = |value: &Value, path: &[String]| {
            let mut value = value.clone();
            for name in path {
                value = value.field(name).map_err(|problem| error(line, problem))?;
            }
            Ok(value)
        };
        Ok(match operand {
            Operand::Dot => dot.clone(),
            Operand::Nil => Value::Nil,
            Operand::Bool(value) => Value::Bool(*value),
            Operand::Int(number) => Value::Int(*number),
            Operand::Float(number) => Value::Float(*number),
            Operand::Text(text) => Value::Text(text.clone()),
            Operand::Field(path) => fields(dot, path)?,
            Operand::Variable(name, path) => {
                let known = self.variables.iter().rev().find(|(known, _)| known == name);
                let value = known.map(|(_, value)| value);
                fields(value.unwrap_or(&Value::Missing), path)?
            }
            Operand::Group(pipe, path) => {
                let value = self.pipe(pipe, dot)?;
                fields(&value, path)?
            }
            Operand::Function(_) => {
                let command = std::slice::from_ref(operand);
                self.command(command, None, line, dot)?
            }
        })
    }
}
