//! Parses the text of a template into pieces.

use super::TemplateError;

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Variable { name: String, function: Function },
}

/// Function of a variable's value in a [`Piece::Variable`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Value,
    Length,
    Default(Vec<Piece>),
    Case(Case),
    Slice {
        start: Vec<Piece>,
        length: Option<Vec<Piece>>,
    },
    Trim {
        end: End,
        longest: bool,
        pattern: Vec<Piece>,
    },
    Replace {
        place: Anchor,
        find: Vec<Piece>,
        with: Vec<Piece>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    UpperFirst,
    UpperAll,
    LowerFirst,
    LowerAll,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Prefix,
    Suffix,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    First,
    All,
    Prefix,
    Suffix,
}

impl Function {
    /// Arguments in the form of `--list-variables`.
    pub(super) fn argument_text(&self) -> String {
        match self {
            Function::Value | Function::Length | Function::Case(_) => String::new(),
            Function::Default(pieces)
            | Function::Trim {
                pattern: pieces, ..
            } => source(pieces),
            Function::Slice { start, length } => {
                source(start) + &length.as_deref().map(source).unwrap_or_default()
            }
            Function::Replace { find, with, .. } => source(find) + &source(with),
        }
    }
}

fn source(pieces: &[Piece]) -> String {
    pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Variable { name, .. } => format!("${{{name}}}"),
        })
        .collect()
}

/// Text without blanks inside the braces of plain variables: `${ NAME }` is `${NAME}`.
pub(super) fn without_inner_blanks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let inner = &from[2..];
        match inner.find('}').map(|end| (inner[..end].trim(), end)) {
            Some((name, end)) if !name.is_empty() && name.chars().all(is_name) => {
                out.push_str("${");
                out.push_str(name);
                out.push('}');
                rest = &inner[end + 1..];
            }
            _ => {
                out.push_str("${");
                rest = inner;
            }
        }
    }
    out.push_str(rest);
    out
}

pub(super) fn parse(text: &str) -> Result<Vec<Piece>, TemplateError> {
    Parser {
        text,
        at: 0,
        depth: 0,
    }
    .top()
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Maximum nesting of defaults. Deeper templates are rejected: they could overflow the stack.
const DEEPEST: usize = 64;

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn top(&mut self) -> Result<Vec<Piece>, TemplateError> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        while let Some(c) = self.peek() {
            if self.eat("$$") {
                plain.push('$');
            } else if self.rest().starts_with("${") {
                push_text(&mut pieces, &mut plain);
                pieces.push(self.variable()?);
            } else {
                plain.push(c);
                self.at += c.len_utf8();
            }
        }
        push_text(&mut pieces, &mut plain);
        Ok(pieces)
    }

    fn variable(&mut self) -> Result<Piece, TemplateError> {
        let start = self.at;
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.error(start, "it nests too deeply"));
        }
        self.eat("${");
        let length = self.eat("#");
        let name: String = self.rest().chars().take_while(|c| is_name(*c)).collect();
        self.at += name.len();
        if name.is_empty() {
            return Err(self.error(start, "the name of a variable must follow `${`"));
        }
        let function = if length {
            Function::Length
        } else {
            self.function(start)?
        };
        if !self.eat("}") {
            return Err(self.error(start, "the closing `}` is missing"));
        }
        self.depth -= 1;
        Ok(Piece::Variable { name, function })
    }

    fn function(&mut self, start: usize) -> Result<Function, TemplateError> {
        for default in [":=", ":-", ":?", ":+", "="] {
            if self.eat(default) {
                return Ok(Function::Default(self.argument(start, &[])?));
            }
        }
        for (sign, case) in [
            ("^^", Case::UpperAll),
            ("^", Case::UpperFirst),
            (",,", Case::LowerAll),
            (",", Case::LowerFirst),
        ] {
            if self.eat(sign) {
                return Ok(Function::Case(case));
            }
        }
        for (sign, end, longest) in [
            ("##", End::Prefix, true),
            ("#", End::Prefix, false),
            ("%%", End::Suffix, true),
            ("%", End::Suffix, false),
        ] {
            if self.eat(sign) {
                let pattern = self.argument(start, &[])?;
                return Ok(Function::Trim {
                    end,
                    longest,
                    pattern,
                });
            }
        }
        for (sign, place) in [
            ("//", Anchor::All),
            ("/#", Anchor::Prefix),
            ("/%", Anchor::Suffix),
            ("/", Anchor::First),
        ] {
            if self.eat(sign) {
                let find = self.escaped_argument(start)?;
                let with = if self.eat("/") {
                    self.escaped_argument(start)?
                } else {
                    Vec::new()
                };
                return Ok(Function::Replace { place, find, with });
            }
        }
        if self.eat(":") {
            let from = self.argument(start, &[':'])?;
            let length = if self.eat(":") {
                Some(self.argument(start, &[])?)
            } else {
                None
            };
            return Ok(Function::Slice {
                start: from,
                length,
            });
        }
        Ok(Function::Value)
    }

    /// Text and nested variables up to the first `}` or one of `stops`.
    fn argument(&mut self, start: usize, stops: &[char]) -> Result<Vec<Piece>, TemplateError> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        loop {
            if self.rest().starts_with("${") {
                push_text(&mut pieces, &mut plain);
                pieces.push(self.variable()?);
                continue;
            }
            match self.peek() {
                None => return Err(self.error(start, "the closing `}` is missing")),
                Some(c) if c == '}' || stops.contains(&c) => break,
                Some(c) => {
                    plain.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
        push_text(&mut pieces, &mut plain);
        Ok(pieces)
    }

    /// Like [`Self::argument`] up to `/`, where `\/` and `\\` are escapes for `/` and `\`.
    fn escaped_argument(&mut self, start: usize) -> Result<Vec<Piece>, TemplateError> {
        let mut pieces = Vec::new();
        loop {
            pieces.extend(self.argument(start, &['/', '\\'])?);
            if self.eat("\\/") {
                pieces.push(Piece::Text("/".to_owned()));
            } else if self.eat("\\\\") || self.eat("\\") {
                pieces.push(Piece::Text("\\".to_owned()));
            } else {
                return Ok(pieces);
            }
        }
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn eat(&mut self, expected: &str) -> bool {
        let there = self.rest().starts_with(expected);
        if there {
            self.at += expected.len();
        }
        there
    }

    fn error(&self, start: usize, problem: &'static str) -> TemplateError {
        let line = self.text[..start].matches('\n').count() + 1;
        let text = self.text[start..].lines().next().unwrap_or_default();
        TemplateError::Syntax {
            line,
            text: text.chars().take(40).collect(),
            problem,
        }
    }
}

fn push_text(pieces: &mut Vec<Piece>, plain: &mut String) {
    if !plain.is_empty() {
        pieces.push(Piece::Text(std::mem::take(plain)));
    }
}
