//! `print`, `println` and `printf`, as Go's fmt.

use super::text::go_quote;
use super::{Named, Value, first_of, string};

/// Largest width and precision.
const WIDEST: usize = 1000;

pub(super) const ALL: &[Named] = &[
    ("print", |values| Ok(Value::Text(print(&values)))),
    ("println", |values| {
        let texts: Vec<_> = values.iter().map(Value::go_text).collect();
        Ok(Value::Text(format!("{}\n", texts.join(" "))))
    }),
    ("printf", |values| {
        let (format, values) = first_of(values)?;
        printf(&string(format)?, &values).map(Value::Text)
    }),
];

/// Prints operands with a blank between two operands that are no texts.
fn print(values: &[Value]) -> String {
    let is_text = |value: &Value| matches!(value, Value::Text(_));
    let mut out = String::new();
    for (at, value) in values.iter().enumerate() {
        if at > 0 && !is_text(value) && !is_text(&values[at - 1]) {
            out.push(' ');
        }
        out.push_str(&value.go_text());
    }
    out
}

/// Flags, width and precision between `%` and the verb.
#[derive(Default)]
struct Flags {
    minus: bool,
    plus: bool,
    zero: bool,
    space: bool,
    sharp: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

fn printf(format: &str, values: &[Value]) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = format;
    let mut used = 0;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        let (flags, after) = flags(after)?;
        let mut letters = after.chars();
        let Some(verb) = letters.next() else {
            out.push_str("%!(NOVERB)");
            rest = "";
            break;
        };
        rest = letters.as_str();
        if verb == '%' {
            out.push('%');
            continue;
        }
        match values.get(used) {
            Some(value) => out.push_str(&formatted(value, verb, &flags)),
            None => out.push_str(&format!("%!{verb}(MISSING)")),
        }
        used += 1;
    }
    out.push_str(rest);
    if let Some(extra) = values.get(used..).filter(|extra| !extra.is_empty()) {
        let extra: Vec<_> = extra
            .iter()
            .map(|value| match value {
                Value::Nil => "<nil>".to_owned(),
                value => format!("{}={}", value.type_name(), value.go_text()),
            })
            .collect();
        out.push_str(&format!("%!(EXTRA {})", extra.join(", ")));
    }
    Ok(out)
}

fn flags(text: &str) -> Result<(Flags, &str), String> {
    let mut flags = Flags::default();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        match letter {
            '-' => flags.minus = true,
            '+' => flags.plus = true,
            '0' => flags.zero = true,
            ' ' => flags.space = true,
            '#' => flags.sharp = true,
            _ => break,
        }
        rest = &rest[1..];
    }
    let number = |rest: &str| {
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let number = match &rest[..end] {
            "" => None,
            digits => Some(digits.parse::<usize>().unwrap_or(usize::MAX)),
        };
        match number {
            Some(number) if number > WIDEST => Err(format!("a width of more than {WIDEST}")),
            number => Ok((number, end)),
        }
    };
    if rest.starts_with(['*', '[']) {
        return Err("widths from arguments and argument indexes are not known here".to_owned());
    }
    let (width, end) = number(rest)?;
    flags.width = width;
    rest = &rest[end..];
    if let Some(after) = rest.strip_prefix('.') {
        let (precision, end) = number(after)?;
        flags.precision = Some(precision.unwrap_or(0));
        rest = &after[end..];
    }
    Ok((flags, rest))
}

fn formatted(value: &Value, verb: char, flags: &Flags) -> String {
    match value {
        Value::List(items) if verb != 'v' => {
            let items: Vec<_> = items.iter().map(|item| inner(item, verb, flags)).collect();
            return format!("[{}]", items.join(" "));
        }
        Value::Map(fields) if verb != 'v' => {
            let fields: Vec<_> = fields
                .iter()
                .map(|(name, value)| {
                    let name = formatted(&Value::Text(name.clone()), verb, flags);
                    format!("{name}:{}", inner(value, verb, flags))
                })
                .collect();
            return format!("map[{}]", fields.join(" "));
        }
        _ => {}
    }
    match plain(value, verb, flags) {
        Some((text, is_number)) => padded(text, is_number, flags),
        None => match value {
            Value::Nil | Value::Missing => format!("%!{verb}(<nil>)"),
            value => format!("%!{verb}({}={})", value.type_name(), value.go_text()),
        },
    }
}

/// Formats an element of a list or map.
fn inner(value: &Value, verb: char, flags: &Flags) -> String {
    match value {
        Value::Nil => "<nil>".to_owned(),
        value => formatted(value, verb, flags),
    }
}

/// Returns the text without padding, and true if zeros may pad the text; `None` if the verb does not fit the value.
fn plain(value: &Value, verb: char, flags: &Flags) -> Option<(String, bool)> {
    let signed = |text: String, negative: bool| match (negative, flags.plus, flags.space) {
        (false, true, _) => format!("+{text}"),
        (false, false, true) => format!(" {text}"),
        _ => text,
    };
    let cut = |text: String| match flags.precision {
        Some(most) => text.chars().take(most).collect(),
        None => text,
    };
    Some(match (value, verb) {
        (Value::Bool(value), 't' | 'v') => (value.to_string(), false),
        (Value::Int(number), 'd' | 'v') => (signed(number.to_string(), *number < 0), true),
        (Value::Int(number), 'x') => (radix(*number, |n| format!("{n:x}"), flags, "0x"), true),
        (Value::Int(number), 'X') => (radix(*number, |n| format!("{n:X}"), flags, "0X"), true),
        (Value::Int(number), 'o') => (radix(*number, |n| format!("{n:o}"), flags, "0"), true),
        (Value::Int(number), 'b') => (radix(*number, |n| format!("{n:b}"), flags, "0b"), true),
        (Value::Int(number), 'c') => (letter(*number), false),
        (Value::Int(number), 'q') => (format!("'{}'", letter(*number)), false),
        (Value::Int(number), 'U') => (format!("U+{number:04X}"), false),
        (Value::Float(number), 'v' | 'g') if flags.precision.is_none() => {
            let text = crate::template::value::float(*number);
            (signed(text, number.is_sign_negative()), true)
        }
        (Value::Float(number), 'f' | 'F') => {
            let text = format!("{number:.*}", flags.precision.unwrap_or(6));
            (signed(text, number.is_sign_negative()), true)
        }
        (Value::Float(number), 'e') => {
            let text = format!("{number:.*e}", flags.precision.unwrap_or(6));
            let (digits, exponent) = text.split_once('e')?;
            let exponent: i32 = exponent.parse().ok()?;
            let sign = if exponent < 0 { '-' } else { '+' };
            let text = format!("{digits}e{sign}{:02}", exponent.abs());
            (signed(text, number.is_sign_negative()), true)
        }
        (Value::Text(text), 's' | 'v') => (cut(text.clone()), false),
        (Value::Text(text), 'q') => (go_quote(&cut(text.clone())), false),
        (Value::Text(text), 'x') => (
            text.bytes().map(|byte| format!("{byte:02x}")).collect(),
            false,
        ),
        (Value::Version(version), 's' | 'v') => (cut(version.text()), false),
        (Value::Version(version), 'q') => (go_quote(&cut(version.text())), false),
        (Value::List(_) | Value::Map(_) | Value::Nil | Value::Missing, 'v') => {
            (value.go_text(), false)
        }
        _ => return None,
    })
}

fn letter(number: i64) -> String {
    let code = u32::try_from(number).ok().and_then(char::from_u32);
    code.unwrap_or('\u{fffd}').to_string()
}

fn radix(number: i64, digits: fn(u64) -> String, flags: &Flags, prefix: &str) -> String {
    let sign = if number < 0 { "-" } else { "" };
    let prefix = if flags.sharp { prefix } else { "" };
    format!("{sign}{prefix}{}", digits(number.unsigned_abs()))
}

fn padded(text: String, is_number: bool, flags: &Flags) -> String {
    let missing = flags
        .width
        .unwrap_or(0)
        .saturating_sub(text.chars().count());
    if missing == 0 {
        return text;
    }
    if flags.minus {
        return text + &" ".repeat(missing);
    }
    if flags.zero && is_number {
        let (sign, digits) = match text.strip_prefix(['-', '+']) {
            Some(digits) => (&text[..1], digits),
            None => ("", text.as_str()),
        };
        return format!("{sign}{}{digits}", "0".repeat(missing));
    }
    " ".repeat(missing) + &text
}
