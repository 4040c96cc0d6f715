//! Syntax errors of Go's `encoding/json`: a port of its scanner (`scanner.go`), reduced to the parts that determine
//! the messages.

use std::fmt::Write as _;

use apimachinery::schema::go_quote;

/// Syntax error of a document; `None` for valid JSON.
pub(crate) fn problem(bytes: &[u8]) -> Option<String> {
    let mut scanner = Scanner {
        step: Step::Value,
        open: Vec::new(),
    };
    for &byte in bytes {
        if let Err(context) = scanner.step(byte) {
            return Some(format!("invalid character {} {context}", quoted(byte)));
        }
    }
    // A number may end at the end of the document.
    let ended = match scanner.step {
        Step::Zero | Step::Digits | Step::Fraction | Step::Exponent => scanner.open.is_empty(),
        Step::After => scanner.open.is_empty(),
        _ => false,
    };
    (!ended).then(|| "unexpected end of JSON input".to_owned())
}

/// Start of a document in the format of `runtime.NewMissingKindErr` and others: text if the document looks like JSON,
/// else hexadecimal.
pub(crate) fn summary(bytes: &[u8]) -> String {
    const LENGTH: usize = 30;
    let start = &bytes[..bytes.len().min(LENGTH)];
    let more = if bytes.len() > LENGTH { " ..." } else { "" };
    match bytes.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(start)),
        Some(_) => {
            let mut text = String::new();
            for byte in start {
                let _ = write!(text, "{byte:02x}");
            }
            text + more
        }
    }
}

/// Character as Go's `quoteChar` prints it.
fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        _ => {
            let text = go_quote(&char::from(byte).to_string());
            format!("'{}'", &text[1..text.len() - 1])
        }
    }
}

enum Open {
    Key,
    Value,
    Item,
}

#[derive(Clone, Copy)]
enum Step {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    String,
    Escape,
    Unicode(u8),
    Minus,
    Zero,
    Digits,
    Dot,
    Fraction,
    E,
    ESign,
    Exponent,
    Literal(&'static str, usize),
    After,
}

struct Scanner {
    step: Step,
    open: Vec<Open>,
}

impl Scanner {
    fn step(&mut self, byte: u8) -> Result<(), String> {
        let blank = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        match self.step {
            Step::Value | Step::ValueOrEnd | Step::Key | Step::KeyOrEnd | Step::After if blank => {
                Ok(())
            }
            Step::ValueOrEnd if byte == b']' => self.close(),
            Step::Value | Step::ValueOrEnd => self.value(byte),
            Step::KeyOrEnd if byte == b'}' => self.close(),
            Step::Key | Step::KeyOrEnd if byte == b'"' => self.go(Step::String),
            Step::Key | Step::KeyOrEnd => Err("looking for beginning of object key string".into()),
            Step::String => match byte {
                b'"' => self.go(Step::After),
                b'\\' => self.go(Step::Escape),
                0..0x20 => Err("in string literal".into()),
                _ => Ok(()),
            },
            Step::Escape => match byte {
                b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => self.go(Step::String),
                b'u' => self.go(Step::Unicode(0)),
                _ => Err("in string escape code".into()),
            },
            Step::Unicode(_) if !byte.is_ascii_hexdigit() => {
                Err("in \\u hexadecimal character escape".into())
            }
            Step::Unicode(3) => self.go(Step::String),
            Step::Unicode(digits) => self.go(Step::Unicode(digits + 1)),
            Step::Minus => match byte {
                b'0' => self.go(Step::Zero),
                b'1'..=b'9' => self.go(Step::Digits),
                _ => Err("in numeric literal".into()),
            },
            Step::Digits if byte.is_ascii_digit() => Ok(()),
            Step::Zero | Step::Digits if byte == b'.' => self.go(Step::Dot),
            Step::Dot if byte.is_ascii_digit() => self.go(Step::Fraction),
            Step::Dot => Err("after decimal point in numeric literal".into()),
            Step::Fraction if byte.is_ascii_digit() => Ok(()),
            Step::Zero | Step::Digits | Step::Fraction if matches!(byte, b'e' | b'E') => {
                self.go(Step::E)
            }
            Step::E if matches!(byte, b'+' | b'-') => self.go(Step::ESign),
            Step::E | Step::ESign | Step::Exponent if byte.is_ascii_digit() => {
                self.go(Step::Exponent)
            }
            Step::E | Step::ESign => Err("in exponent of numeric literal".into()),
            Step::Literal(word, at) => match word.as_bytes().get(at) {
                Some(&wanted) if wanted == byte && at + 1 == word.len() => self.go(Step::After),
                Some(&wanted) if wanted == byte => self.go(Step::Literal(word, at + 1)),
                wanted => {
                    let wanted = char::from(wanted.copied().unwrap_or_default());
                    Err(format!("in literal {word} (expecting '{wanted}')"))
                }
            },
            Step::Zero | Step::Digits | Step::Fraction | Step::Exponent | Step::After => {
                self.after(byte, blank)
            }
        }
    }

    fn go(&mut self, step: Step) -> Result<(), String> {
        self.step = step;
        Ok(())
    }

    fn value(&mut self, byte: u8) -> Result<(), String> {
        match byte {
            b'{' => {
                self.open.push(Open::Key);
                self.go(Step::KeyOrEnd)
            }
            b'[' => {
                self.open.push(Open::Item);
                self.go(Step::ValueOrEnd)
            }
            b'"' => self.go(Step::String),
            b'-' => self.go(Step::Minus),
            b'0' => self.go(Step::Zero),
            b'1'..=b'9' => self.go(Step::Digits),
            b't' => self.go(Step::Literal("true", 1)),
            b'f' => self.go(Step::Literal("false", 1)),
            b'n' => self.go(Step::Literal("null", 1)),
            _ => Err("looking for beginning of value".into()),
        }
    }

    fn close(&mut self) -> Result<(), String> {
        self.open.pop();
        self.go(Step::After)
    }

    fn after(&mut self, byte: u8, blank: bool) -> Result<(), String> {
        if blank {
            return self.go(Step::After);
        }
        match (self.open.last_mut(), byte) {
            (None, _) => Err("after top-level value".into()),
            (Some(open @ Open::Key), b':') => {
                *open = Open::Value;
                self.go(Step::Value)
            }
            (Some(Open::Key), _) => Err("after object key".into()),
            (Some(open @ Open::Value), b',') => {
                *open = Open::Key;
                self.go(Step::Key)
            }
            (Some(Open::Value), b'}') | (Some(Open::Item), b']') => self.close(),
            (Some(Open::Value), _) => Err("after object key:value pair".into()),
            (Some(Open::Item), b',') => self.go(Step::Value),
            (Some(Open::Item), _) => Err("after array element".into()),
        }
    }
}

#[cfg(test)]
mod tests;
