//! Lexer: text between actions, and actions as words.

use super::TemplateError;

/// Part of a template.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    /// Literal text.
    Text(String),
    /// Words of an action, and the line.
    Action(Vec<Word>, usize),
}

/// Word of an action.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Word {
    pub(super) kind: Kind,
    /// True after white space.
    pub(super) spaced: bool,
}

/// Kind of a word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// `name`: a function, a keyword, `true`, `false` or `nil`.
    Name(String),
    /// `.name`
    Field(String),
    /// `$name`, or `$` with an empty name.
    Variable(String),
    /// `.`
    Dot,
    /// Integer.
    Int(i64),
    /// Number with a fraction or exponent.
    Float(f64),
    /// Quoted text.
    Text(String),
    /// `|`, `(`, `)`, `,`
    Sign(char),
    /// `:=`
    Declare,
    /// `=`
    Assign,
}

/// Splits a template into text and actions, with the white space around trim markers removed.
pub(super) fn parts(text: &str) -> Result<Vec<Part>, TemplateError> {
    let (mut parts, mut rest, mut line) = (Vec::new(), text, 1);
    let mut trim = false;
    while let Some(start) = rest.find("{{") {
        let before = &rest[..start];
        let mut inner = &rest[start + 2..];
        let mut kept = if trim { before.trim_start() } else { before };
        if let Some(after) = inner.strip_prefix('-').filter(|after| starts_spaced(after)) {
            kept = kept.trim_end();
            inner = after;
        }
        push_text(&mut parts, kept);
        line += newlines(before);
        let end = end_of(inner, line)?;
        let mut body = &inner[..end];
        trim = body.ends_with('-') && body[..body.len() - 1].ends_with(char::is_whitespace);
        if trim {
            body = &body[..body.len() - 1];
        }
        let trimmed = body.trim();
        if trimmed.starts_with("/*") {
            if !trimmed.ends_with("*/") {
                return Err(error(line, "a comment does not end with */ before }}"));
            }
        } else {
            parts.push(Part::Action(words(body, line)?, line));
        }
        line += newlines(&inner[..end]);
        rest = &inner[end + 2..];
    }
    push_text(&mut parts, if trim { rest.trim_start() } else { rest });
    Ok(parts)
}

fn push_text(parts: &mut Vec<Part>, text: &str) {
    if !text.is_empty() {
        parts.push(Part::Text(text.to_owned()));
    }
}

fn starts_spaced(text: &str) -> bool {
    text.starts_with(char::is_whitespace)
}

fn newlines(text: &str) -> usize {
    text.matches('\n').count()
}

/// Returns the position of the `}}` that ends an action, skipping comments and quoted texts.
fn end_of(text: &str, line: usize) -> Result<usize, TemplateError> {
    let unclosed = || error(line, "an action has no }}");
    let lead = text.len() - text.trim_start().len();
    if text[lead..].starts_with("/*") {
        let close = text[lead + 2..].find("*/").ok_or_else(unclosed)? + lead + 4;
        return text[close..]
            .find("}}")
            .map(|at| close + at)
            .ok_or_else(unclosed);
    }
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'}' if bytes.get(at + 1) == Some(&b'}') => return Ok(at),
            quote @ (b'"' | b'\'' | b'`') => {
                at = closing(bytes, at, quote)
                    .ok_or_else(|| error(line, "a quoted text does not end"))?;
            }
            _ => {}
        }
        at += 1;
    }
    Err(unclosed())
}

/// Returns the position of the closing quote for the text that begins at `start`.
fn closing(bytes: &[u8], start: usize, quote: u8) -> Option<usize> {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if quote != b'`' => at += 1,
            b'\n' if quote != b'`' => return None,
            byte if byte == quote => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

fn words(body: &str, line: usize) -> Result<Vec<Word>, TemplateError> {
    let mut words = Vec::new();
    let mut rest = body;
    loop {
        let next = rest.trim_start();
        let spaced = next.len() != rest.len();
        if next.is_empty() {
            return Ok(words);
        }
        let (kind, length) = word(next).map_err(|problem| error(line, problem))?;
        words.push(Word { kind, spaced });
        rest = &next[length..];
    }
}

/// Returns the first word, and its length in bytes.
fn word(text: &str) -> Result<(Kind, usize), String> {
    let first = text.chars().next().unwrap_or_default();
    match first {
        '|' | '(' | ')' | ',' => Ok((Kind::Sign(first), 1)),
        ':' if text.starts_with(":=") => Ok((Kind::Declare, 2)),
        '=' => Ok((Kind::Assign, 1)),
        '"' | '\'' | '`' => quoted(text, first),
        '$' => {
            let name = identifier(&text[1..]);
            Ok((Kind::Variable(name.to_owned()), 1 + name.len()))
        }
        '.' if !text[1..].starts_with(|c: char| c.is_ascii_digit()) => {
            let name = identifier(&text[1..]);
            let kind = match name {
                "" => Kind::Dot,
                name => Kind::Field(name.to_owned()),
            };
            Ok((kind, 1 + name.len()))
        }
        c if c.is_ascii_digit() || "+-.".contains(c) => number(text),
        c if c.is_alphabetic() || c == '_' => {
            let name = identifier(text);
            Ok((Kind::Name(name.to_owned()), name.len()))
        }
        c => Err(format!("unexpected character `{c}` in an action")),
    }
}

fn identifier(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_'));
    &text[..end.unwrap_or(text.len())]
}

fn number(text: &str) -> Result<(Kind, usize), String> {
    let sign = usize::from(text.starts_with(['+', '-']));
    let is_hex = text[sign..].starts_with("0x") || text[sign..].starts_with("0X");
    let mut before = ' ';
    let end = text[sign..].find(|c: char| {
        let exponent = !is_hex && "+-".contains(c) && "eE".contains(before);
        let part = c.is_alphanumeric() || c == '.' || c == '_' || exponent;
        before = c;
        !part
    });
    let length = end.map_or(text.len(), |end| end + sign);
    let written = text[..length].replace('_', "");
    let digits = &written[sign..];
    let radix = match digits.get(..2) {
        Some("0x" | "0X") => Some((16, 2)),
        Some("0b" | "0B") => Some((2, 2)),
        Some("0o" | "0O") => Some((8, 2)),
        Some(two) if two.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit()) => {
            Some((8, 1))
        }
        _ => None,
    };
    let parsed = match radix {
        Some((radix, skip)) => i64::from_str_radix(&digits[skip..], radix).ok(),
        None => digits.parse().ok(),
    };
    let negative = written.starts_with('-');
    if let Some(number) = parsed {
        return Ok((Kind::Int(if negative { -number } else { number }), length));
    }
    match written.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok((Kind::Float(number), length)),
        _ => Err(format!("bad number {}", &text[..length])),
    }
}

/// Parses a quoted text, or a character, which is a number.
fn quoted(text: &str, quote: char) -> Result<(Kind, usize), String> {
    let end = closing(text.as_bytes(), 0, quote as u8).ok_or("a quoted text does not end")?;
    let inner = &text[1..end];
    if quote == '`' {
        return Ok((Kind::Text(inner.replace('\r', "")), end + 1));
    }
    let unquoted = unquote(inner).ok_or_else(|| format!("bad escape in {}", &text[..=end]))?;
    if quote == '"' {
        return Ok((Kind::Text(unquoted), end + 1));
    }
    let mut letters = unquoted.chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) => Ok((Kind::Int(i64::from(u32::from(letter))), end + 1)),
        _ => Err(format!("{} is not one character", &text[..=end])),
    }
}

/// Returns the text of a Go string literal without the quotes.
fn unquote(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        let code = |letters: &mut std::str::Chars<'_>, count: usize| {
            let digits: String = letters.take(count).collect();
            let full = digits.len() == count;
            let number = u32::from_str_radix(&digits, 16).ok().filter(|_| full)?;
            char::from_u32(number)
        };
        out.push(match letters.next()? {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            same @ ('\\' | '\'' | '"') => same,
            // Bytes above 127 would not be text.
            'x' => code(&mut letters, 2).filter(char::is_ascii)?,
            'u' => code(&mut letters, 4)?,
            'U' => code(&mut letters, 8)?,
            _ => return None,
        });
    }
    Some(out)
}

pub(super) fn error(line: usize, problem: impl Into<String>) -> TemplateError {
    TemplateError {
        line,
        problem: problem.into(),
    }
}
