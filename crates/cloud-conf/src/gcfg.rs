//! Syntax of cloud.conf: the dialect of git's configuration files in the Go library gcfg.
//!
//! ```text
//!   ; comment          # comment
//!   [Section]          names of sections and keys are case-insensitive
//!   [Section "name"]   names of subsections are not; \" and \\ are escapes
//!   key = value        white space around the value is removed
//!   key = "a ; b"      quotes keep white space and comment characters; \" \\ \n \t are escapes
//!   key = one \        a backslash at the end of a line continues the value
//!         two
//!   key                a key without a value: true, where the key is a boolean
//! ```

use std::fmt;
use std::iter::Peekable;
use std::str::Chars;

use zeroize::Zeroizing;

#[cfg(test)]
mod tests;

/// Line `key = value` with its section.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Section in lower case.
    pub(super) section: String,
    /// Subsection as written.
    pub(super) subsection: Option<String>,
    /// Key in lower case.
    pub(super) key: String,
    /// Value without quotes and escapes; `None` for a key without `=`.
    pub(super) value: Option<Zeroizing<String>>,
    /// Line of the key, counted from one.
    pub(super) line: usize,
}

/// Header of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Section in lower case.
    pub(super) section: String,
    /// Subsection as written.
    pub(super) subsection: Option<String>,
    /// Line of the header, counted from one.
    pub(super) line: usize,
}

/// Parsed file: every [`Header`] and [`Entry`], in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Document {
    pub(super) headers: Vec<Header>,
    pub(super) entries: Vec<Entry>,
}

/// Syntax error. Never contains a value, since values can be secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct SyntaxError {
    /// Line, counted from one.
    pub line: usize,
    /// Mistake of the line.
    pub message: String,
}

/// Parses a file into a [`Document`].
pub(super) fn parse(text: &str) -> Result<Document, SyntaxError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut parser = Parser {
        rest: text.chars().peekable(),
        line: 1,
    };
    let mut document = Document::default();
    while let Some(next) = parser.next_token() {
        match next {
            '[' => document.headers.push(parser.header()?),
            c if c.is_alphabetic() => {
                let Some(header) = document.headers.last() else {
                    return Err(parser.error(
                        "a key stands before the first section; write a header such as [Global]",
                    ));
                };
                let entry = parser.entry(header)?;
                document.entries.push(entry);
            }
            c => {
                let message = format!("`{c}` is neither a section header nor a key");
                return Err(parser.error(&message));
            }
        }
    }
    Ok(document)
}

struct Parser<'a> {
    rest: Peekable<Chars<'a>>,
    line: usize,
}

impl Parser<'_> {
    /// Returns the first character of the next header or key without consuming it.
    fn next_token(&mut self) -> Option<char> {
        loop {
            match *self.rest.peek()? {
                ';' | '#' => self.skip_line(),
                c if c.is_whitespace() => {
                    self.bump();
                }
                c => return Some(c),
            }
        }
    }

    fn bump(&mut self) -> Option<char> {
        let next = self.rest.next();
        if next == Some('\n') {
            self.line += 1;
        }
        next
    }

    /// Skips to the end of the line, without consuming the line break.
    fn skip_line(&mut self) {
        while self.rest.next_if(|c| *c != '\n').is_some() {}
    }

    fn skip_blanks(&mut self) {
        while self
            .rest
            .next_if(|c| matches!(c, ' ' | '\t' | '\r'))
            .is_some()
        {}
    }

    fn error(&self, message: &str) -> SyntaxError {
        SyntaxError {
            line: self.line,
            message: message.to_owned(),
        }
    }

    fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(c) = self.rest.next_if(|c| c.is_alphanumeric() || *c == '-') {
            name.extend(c.to_lowercase());
        }
        name
    }

    fn header(&mut self) -> Result<Header, SyntaxError> {
        let line = self.line;
        self.bump();
        self.skip_blanks();
        let section = self.name();
        if section.is_empty() {
            return Err(self.error("the name of a section is missing after `[`"));
        }
        self.skip_blanks();
        let subsection = match self.rest.peek() {
            Some('"') => Some(self.subsection()?),
            _ => None,
        };
        self.skip_blanks();
        if self.rest.next_if_eq(&']').is_none() {
            return Err(self.error(&format!(
                "the header of section `{section}` does not end with `]`; a subsection is written in double quotes"
            )));
        }
        self.end_of_header(&section)?;
        Ok(Header {
            section,
            subsection,
            line,
        })
    }

    fn subsection(&mut self) -> Result<String, SyntaxError> {
        let mut text = String::new();
        self.bump();
        loop {
            match self.bump() {
                Some('"') => return Ok(text),
                Some('\\') => {
                    match self.bump() {
                        Some(c @ ('"' | '\\')) => text.push(c),
                        _ => return Err(self.error(
                            "in the name of a subsection, `\\` stands only before `\"` and `\\`",
                        )),
                    }
                }
                None | Some('\n') => {
                    return Err(
                        self.error("the name of a subsection does not end with a double quote")
                    );
                }
                Some(c) => text.push(c),
            }
        }
    }

    fn end_of_header(&mut self, section: &str) -> Result<(), SyntaxError> {
        self.skip_blanks();
        match self.rest.peek() {
            None | Some('\n' | ';' | '#') => Ok(()),
            Some(_) => Err(self.error(&format!(
                "the header of section `{section}` is followed by something else on its line"
            ))),
        }
    }

    fn entry(&mut self, header: &Header) -> Result<Entry, SyntaxError> {
        let line = self.line;
        let key = self.name();
        self.skip_blanks();
        let value = match self.rest.peek() {
            None | Some('\n' | ';' | '#') => None,
            Some('=') => {
                self.bump();
                Some(self.value(&key)?)
            }
            Some(c) => {
                let message = format!("`{c}` cannot follow the key `{key}`; write `{key} = VALUE`");
                return Err(self.error(&message));
            }
        };
        Ok(Entry {
            section: header.section.clone(),
            subsection: header.subsection.clone(),
            key,
            value,
            line,
        })
    }

    fn value(&mut self, key: &str) -> Result<Zeroizing<String>, SyntaxError> {
        let mut value = Zeroizing::new(String::new());
        let (mut quoted, mut kept) = (false, 0);
        self.skip_blanks();
        while let Some(&next) = self.rest.peek() {
            match next {
                '\n' if quoted => {
                    return Err(
                        self.error(&format!("the quotes of `{key}` do not end on their line"))
                    );
                }
                '\n' => break,
                ';' | '#' if !quoted => {
                    self.skip_line();
                    break;
                }
                _ => {
                    self.bump();
                }
            }
            match next {
                '"' => {
                    quoted = !quoted;
                    kept = value.len();
                    continue;
                }
                '\\' => {
                    if let Some(c) = self.escape(key)? {
                        value.push(c);
                        kept = value.len();
                    }
                    continue;
                }
                c => value.push(c),
            }
            if quoted || !next.is_whitespace() {
                kept = value.len();
            }
        }
        if quoted {
            return Err(self.error(&format!("the quotes of `{key}` do not end")));
        }
        value.truncate(kept);
        Ok(value)
    }

    /// Character of an escape sequence; `None` for a continued line.
    fn escape(&mut self, key: &str) -> Result<Option<char>, SyntaxError> {
        self.rest.next_if_eq(&'\r');
        match self.bump() {
            Some(c @ ('"' | '\\')) => Ok(Some(c)),
            Some('n') => Ok(Some('\n')),
            Some('t') => Ok(Some('\t')),
            Some('\n') => Ok(None),
            _ => Err(self.error(&format!(
                "in the value of `{key}`, `\\` stands only before `\"`, `\\`, `n`, `t` and the end of the line; write a backslash as `\\\\`"
            ))),
        }
    }
}

/// Quotes `text` as a value that [`parse`] accepts.
pub(super) fn quoted(text: &str) -> Zeroizing<String> {
    let mut quoted = Zeroizing::new(String::with_capacity(text.len() + 2));
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

impl fmt::Debug for Entry {
    /// Omits the value, which can be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {} (line {})", self.section, self.key, self.line)
    }
}
