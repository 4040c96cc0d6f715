//! Parser: actions as a tree.

use super::TemplateError;
use super::functions;
use super::lex::{Kind, Part, Word, error, parts};

/// Maximum depth of blocks and parentheses.
const DEEPEST: usize = 50;

/// Part of a template.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    /// Literal text.
    Text(String),
    /// Pipeline whose value is printed, unless the pipeline declares or assigns a variable.
    Print(Pipe),
    /// `if`, `with` or `range`, with pipeline, body and `else`.
    Block(Block, Pipe, Vec<Node>, Vec<Node>),
    /// `break` of the innermost `range`.
    Break,
    /// `continue` with the innermost `range`.
    Continue,
}

/// Kind of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Block {
    If,
    With,
    Range,
}

/// Pipeline.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pipe {
    pub(super) line: usize,
    /// Variables that receive the value.
    pub(super) variables: Vec<String>,
    /// True to declare the variables, false to assign them.
    pub(super) declares: bool,
    pub(super) commands: Vec<Vec<Operand>>,
}

/// Operand of a command.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    Dot,
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    /// Fields of the dot.
    Field(Vec<String>),
    /// Variable, with a path of fields.
    Variable(String, Vec<String>),
    /// Pipeline in parentheses, with a path of fields.
    Group(Box<Pipe>, Vec<String>),
    Function(String),
}

pub(super) fn parse(text: &str) -> Result<Vec<Node>, TemplateError> {
    let mut parser = Parser {
        parts: parts(text)?.into_iter(),
        variables: vec![String::new()],
        ranges: 0,
        depth: 0,
    };
    let (nodes, end) = parser.nodes()?;
    match end {
        None => Ok(nodes),
        Some(End { line, .. }) => Err(error(line, "an end or else without a block")),
    }
}

struct Parser {
    parts: std::vec::IntoIter<Part>,
    /// Variables in scope; the first is `$`.
    variables: Vec<String>,
    ranges: usize,
    depth: usize,
}

/// End of a list of nodes.
struct End {
    line: usize,
    /// Words after `else`; `None` for `end`.
    otherwise: Option<Vec<Word>>,
}

impl Parser {
    fn nodes(&mut self) -> Result<(Vec<Node>, Option<End>), TemplateError> {
        let mut nodes = Vec::new();
        while let Some(part) = self.parts.next() {
            let (words, line) = match part {
                Part::Text(text) => {
                    nodes.push(Node::Text(text));
                    continue;
                }
                Part::Action(words, line) => (words, line),
            };
            let keyword = match words.first().map(|word| &word.kind) {
                Some(Kind::Name(name)) => name.clone(),
                _ => String::new(),
            };
            match keyword.as_str() {
                "if" => nodes.push(self.block(Block::If, &words[1..], line)?),
                "with" => nodes.push(self.block(Block::With, &words[1..], line)?),
                "range" => nodes.push(self.block(Block::Range, &words[1..], line)?),
                "end" | "else" => {
                    let rest = words[1..].to_vec();
                    let is_end = keyword == "end";
                    if is_end && !rest.is_empty() {
                        return Err(error(line, "unexpected words after end"));
                    }
                    let otherwise = (!is_end).then_some(rest);
                    return Ok((nodes, Some(End { line, otherwise })));
                }
                "break" | "continue" => {
                    if self.ranges == 0 || words.len() > 1 {
                        return Err(error(line, format!("{keyword} outside of range")));
                    }
                    let is_break = keyword == "break";
                    nodes.push(if is_break {
                        Node::Break
                    } else {
                        Node::Continue
                    });
                }
                "define" | "template" | "block" => {
                    let problem =
                        format!("{keyword} is not one of the actions that are known here");
                    return Err(error(line, problem));
                }
                _ => {
                    let pipe = self.whole(&words, line, false)?;
                    nodes.push(Node::Print(pipe));
                }
            }
        }
        Ok((nodes, None))
    }

    fn block(&mut self, block: Block, words: &[Word], line: usize) -> Result<Node, TemplateError> {
        self.deeper(line)?;
        let scope = self.variables.len();
        let pipe = self.whole(words, line, block == Block::Range)?;
        self.ranges += usize::from(block == Block::Range);
        let (body, end) = self.nodes()?;
        self.ranges -= usize::from(block == Block::Range);
        let unclosed = || error(line, "a block has no end");
        let end = end.ok_or_else(unclosed)?;
        let mut otherwise = Vec::new();
        if let Some(words) = end.otherwise {
            let again = match words.first().map(|word| &word.kind) {
                None => None,
                Some(Kind::Name(name)) if name == "if" && block == Block::If => Some(Block::If),
                Some(Kind::Name(name)) if name == "with" && block == Block::With => {
                    Some(Block::With)
                }
                Some(_) => return Err(error(end.line, "unexpected words after else")),
            };
            match again {
                Some(again) => otherwise.push(self.block(again, &words[1..], end.line)?),
                None => {
                    let (nodes, end) = self.nodes()?;
                    let end = end.ok_or_else(unclosed)?;
                    if end.otherwise.is_some() {
                        return Err(error(end.line, "a second else"));
                    }
                    otherwise = nodes;
                }
            }
        }
        self.variables.truncate(scope);
        self.depth -= 1;
        Ok(Node::Block(block, pipe, body, otherwise))
    }

    fn deeper(&mut self, line: usize) -> Result<(), TemplateError> {
        self.depth += 1;
        match self.depth > DEEPEST {
            true => Err(error(line, format!("nested deeper than {DEEPEST}"))),
            false => Ok(()),
        }
    }

    /// Parses all `words` as a pipeline.
    fn whole(&mut self, words: &[Word], line: usize, range: bool) -> Result<Pipe, TemplateError> {
        let mut words = Words { words, at: 0, line };
        let pipe = self.pipe(&mut words, range)?;
        match words.peek() {
            None => Ok(pipe),
            Some(_) => Err(error(line, "unexpected )")),
        }
    }

    fn pipe(&mut self, words: &mut Words<'_>, range: bool) -> Result<Pipe, TemplateError> {
        let line = words.line;
        let (variables, declares) = words.declaration(range)?;
        let mut commands = Vec::new();
        loop {
            let command = self.command(words)?;
            if command.is_empty() {
                return Err(error(line, "a command is missing"));
            }
            let is_value = !matches!(command[0], Operand::Function(_) | Operand::Group(..));
            if is_value && (command.len() > 1 || !commands.is_empty()) {
                return Err(error(
                    line,
                    "an argument is given to something that is no function",
                ));
            }
            if matches!(command[0], Operand::Group(..))
                && (command.len() > 1 || !commands.is_empty())
            {
                return Err(error(
                    line,
                    "an argument is given to something that is no function",
                ));
            }
            commands.push(command);
            match words.peek() {
                Some(Kind::Sign('|')) => words.at += 1,
                _ => break,
            }
        }
        for name in &variables {
            let known = self.variables.contains(name);
            if declares {
                self.variables.push(name.clone());
            } else if !known {
                return Err(error(line, format!("undefined variable ${name}")));
            }
        }
        Ok(Pipe {
            line,
            variables,
            declares,
            commands,
        })
    }

    fn command(&mut self, words: &mut Words<'_>) -> Result<Vec<Operand>, TemplateError> {
        let line = words.line;
        let mut operands = Vec::new();
        while let Some(word) = words.words.get(words.at) {
            if matches!(word.kind, Kind::Sign('|' | ')')) {
                break;
            }
            if !operands.is_empty() && !word.spaced {
                return Err(error(line, "operands are not separated by white space"));
            }
            words.at += 1;
            operands.push(self.operand(&word.kind, words)?);
        }
        Ok(operands)
    }

    fn operand(&mut self, kind: &Kind, words: &mut Words<'_>) -> Result<Operand, TemplateError> {
        let line = words.line;
        Ok(match kind {
            Kind::Dot => Operand::Dot,
            Kind::Int(number) => Operand::Int(*number),
            Kind::Float(number) => Operand::Float(*number),
            Kind::Text(text) => Operand::Text(text.clone()),
            Kind::Field(name) => {
                let mut path = vec![name.clone()];
                path.extend(words.fields());
                Operand::Field(path)
            }
            Kind::Variable(name) => {
                if !self.variables.contains(name) {
                    return Err(error(line, format!("undefined variable ${name}")));
                }
                Operand::Variable(name.clone(), words.fields())
            }
            Kind::Name(name) => match name.as_str() {
                "true" => Operand::Bool(true),
                "false" => Operand::Bool(false),
                "nil" => Operand::Nil,
                name if functions::is_known(name) => Operand::Function(name.to_owned()),
                name => {
                    return Err(error(
                        line,
                        format!("function \"{name}\" is not defined here"),
                    ));
                }
            },
            Kind::Sign('(') => {
                self.deeper(line)?;
                let pipe = self.pipe(words, false)?;
                self.depth -= 1;
                if words.peek() != Some(&Kind::Sign(')')) {
                    return Err(error(line, "a ( has no )"));
                }
                words.at += 1;
                Operand::Group(Box::new(pipe), words.fields())
            }
            Kind::Sign(sign) => return Err(error(line, format!("unexpected {sign}"))),
            Kind::Declare | Kind::Assign => return Err(error(line, "unexpected assignment")),
        })
    }
}

/// Words of an action, and the position of the next one.
struct Words<'a> {
    words: &'a [Word],
    at: usize,
    line: usize,
}

impl Words<'_> {
    fn peek(&self) -> Option<&Kind> {
        self.words.get(self.at).map(|word| &word.kind)
    }

    /// Parses the fields that follow without white space.
    fn fields(&mut self) -> Vec<String> {
        let mut path = Vec::new();
        while let Some(word) = self.words.get(self.at)
            && let Kind::Field(name) = &word.kind
            && !word.spaced
        {
            path.push(name.clone());
            self.at += 1;
        }
        path
    }

    /// Parses the variables before `:=` or `=`.
    fn declaration(&mut self, range: bool) -> Result<(Vec<String>, bool), TemplateError> {
        let kind = |offset: usize| self.words.get(self.at + offset).map(|word| &word.kind);
        let Some(Kind::Variable(first)) = kind(0) else {
            return Ok((Vec::new(), false));
        };
        let mut names = vec![first.clone()];
        let mut length = 1;
        if range
            && kind(1) == Some(&Kind::Sign(','))
            && let Some(Kind::Variable(second)) = kind(2)
        {
            names.push(second.clone());
            length = 3;
        }
        let declares = match kind(length) {
            Some(Kind::Declare) => true,
            Some(Kind::Assign) => false,
            _ if length == 3 => {
                return Err(error(self.line, "range expects := after two variables"));
            }
            _ => return Ok((Vec::new(), false)),
        };
        if names.iter().any(String::is_empty) {
            return Err(error(self.line, "$ cannot be assigned"));
        }
        self.at += length + 1;
        Ok((names, declares))
    }
}
