//! JSON of hand-written files, with the place of each value, so that errors name line and column.
//!
//! Repeated keys are kept, because the reader decides if a repetition is an error.

use std::fmt;

/// Maximum nesting of arrays and objects.
const DEPTH: usize = 32;

/// Place in a text; both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The line.
    pub line: usize,
    /// Byte of the line.
    pub column: usize,
}

impl Location {
    /// [`Location`] of the byte at `offset`.
    pub(crate) fn new(text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        Self {
            line: before.matches('\n').count() + 1,
            column: line.len() + 1,
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Mistake in a text, with the position in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) offset: usize,
    pub(crate) message: String,
}

impl Wrong {
    pub(crate) fn new(offset: usize, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { offset, message }
    }
}

/// Value at a byte of a text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) offset: usize,
    pub(crate) value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool,
    Number,
    String(String),
    Array(Vec<Node>),
    Object(Vec<(Key, Node)>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) offset: usize,
    pub(crate) name: String,
}

impl Value {
    /// Type of the value, for errors.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "a truth value",
            Self::Number => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "a list",
            Self::Object(_) => "an object",
        }
    }
}

/// Parses a text with exactly one value into a [`Node`].
pub(crate) fn parse(text: &str) -> Result<Node, Wrong> {
    let mut reader = Reader { text, at: 0 };
    let node = reader.value(DEPTH)?;
    reader.space();
    match reader.next() {
        None => Ok(node),
        Some(_) => Err(reader.wrong("there is more after the end of the value")),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Result<Node, Wrong> {
        self.space();
        let offset = self.at;
        if depth == 0 {
            return Err(self.wrong(format!("this is nested deeper than {DEPTH} levels")));
        }
        let value = match self.next() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => Value::String(self.string()?),
            Some(_) => self.word()?,
            None => return Err(self.wrong("the text ends where a value is expected")),
        };
        Ok(Node { offset, value })
    }

    fn object(&mut self, depth: usize) -> Result<Value, Wrong> {
        let mut members = Vec::new();
        self.at += 1;
        self.space();
        if self.take(b'}') {
            return Ok(Value::Object(members));
        }
        loop {
            self.space();
            let offset = self.at;
            if self.next() != Some(b'"') {
                return Err(self.wrong("a key in quotation marks is expected here"));
            }
            let name = self.string()?;
            self.space();
            if !self.take(b':') {
                return Err(self.wrong("`:` is expected here"));
            }
            members.push((Key { offset, name }, self.value(depth - 1)?));
            if !self.goes_on(b'}')? {
                return Ok(Value::Object(members));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, Wrong> {
        let mut items = Vec::new();
        self.at += 1;
        self.space();
        if self.take(b']') {
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value(depth - 1)?);
            if !self.goes_on(b']')? {
                return Ok(Value::Array(items));
            }
        }
    }

    /// True if a comma follows, and not `end`.
    fn goes_on(&mut self, end: u8) -> Result<bool, Wrong> {
        self.space();
        if self.take(b',') {
            return Ok(true);
        }
        match self.take(end) {
            true => Ok(false),
            false => Err(self.wrong(format!("`,` or `{}` is expected here", end as char))),
        }
    }

    fn string(&mut self) -> Result<String, Wrong> {
        let start = self.at;
        let mut escaped = false;
        let rest = self.text.get(start + 1..).unwrap_or_default();
        let end = rest.bytes().position(|byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        });
        let Some(end) = end else {
            return Err(Wrong::new(start, "this string has no end"));
        };
        self.at = start + 1 + end + 1;
        let quoted = self.text.get(start..self.at).unwrap_or_default();
        serde_json::from_str(quoted)
            .map_err(|_| Wrong::new(start, "this string has an escape or character that is none"))
    }

    fn word(&mut self) -> Result<Value, Wrong> {
        let start = self.at;
        let rest = self.text.get(start..).unwrap_or_default();
        let is_end =
            |letter: char| !matches!(letter, 'a'..='z' | 'A'..='Z' | '0'..='9' | '+' | '-' | '.');
        let length = rest.find(is_end).unwrap_or(rest.len());
        let word = rest.get(..length).unwrap_or_default();
        self.at = start + length;
        match word {
            "null" => Ok(Value::Null),
            "true" | "false" => Ok(Value::Bool),
            number if serde_json::from_str::<serde_json::Number>(number).is_ok() => {
                Ok(Value::Number)
            }
            _ => Err(Wrong::new(start, "a value is expected here")),
        }
    }

    fn space(&mut self) {
        while matches!(self.next(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn next(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.next() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn wrong(&self, message: impl Into<String>) -> Wrong {
        Wrong::new(self.at, message)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn errors_have_a_place() {
        for (text, place, words) in [
            ("", (1, 1), "ends where a value"),
            ("[1,\n  x]", (2, 3), "a value is expected"),
            ("{\"a\" 1}", (1, 6), "`:` is expected"),
            ("{a: 1}", (1, 2), "in quotation marks"),
            ("[1 2]", (1, 4), "`,` or `]`"),
            ("[1,]", (1, 4), "a value is expected"),
            ("{\"ä\": \"x", (1, 8), "no end"),
            ("\"\\x\"", (1, 1), "an escape"),
            ("[] []", (1, 4), "after the end"),
            ("01", (1, 1), "a value"),
        ] {
            let wrong = parse(text).unwrap_err();
            let at = Location::new(text, wrong.offset);
            assert_eq!((at.line, at.column), place, "{text}");
            assert!(wrong.message.contains(words), "{text}: {}", wrong.message);
        }
        let deep = "[".repeat(100_000);
        assert!(parse(&deep).unwrap_err().message.contains("deeper than 32"));
    }

    proptest! {
        #[test]
        fn what_serde_json_reads_is_read_and_nothing_else(text in "[\\[\\]{}:,\" \\\\ntrue0-9.eu\n-]{0,12}") {
            let expected = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            prop_assert_eq!(parse(&text).is_ok(), expected, "{}", text);
        }
    }
}
