//! Values from a cloud as YAML scalars. A name of a key pair or an image must not become a field of an object.
//!
//! A plain string is inserted unchanged. Other values are quoted: the variable must then be a whole scalar, or stand between
//! double quotes.

use api::printable::is_hidden;

/// Form of `value` between the texts `before` and `after`.
///
/// # Errors
/// The cause if there is no quoted form in this place.
pub(super) fn written(value: &str, before: &str, after: &str) -> Result<String, &'static str> {
    let line = before.rsplit('\n').next().unwrap_or_default();
    let rest = after.split('\n').next().unwrap_or_default();
    let inside = is_in_quotes(line);
    if value.is_empty() || (inside || is_string(value)) && is_plain(value) {
        return Ok(value.to_owned());
    }
    let whole = visible(&quoted(value));
    if inside {
        let within = whole.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
        return Ok(within.unwrap_or_default().to_owned());
    }
    let begins = line.is_empty()
        || [": ", "- ", "[", ", "]
            .iter()
            .any(|end| line.ends_with(end));
    let ends = rest.trim().is_empty()
        || rest.starts_with([']', ','])
        || rest.trim_start().starts_with("# ");
    match begins && ends {
        true => Ok(whole),
        false if is_plain(value) => Ok(value.to_owned()),
        false => Err("it can be quoted only as a whole value, or between double quotes"),
    }
}

/// `value` in double quotes. A JSON string is a YAML string, but for the characters that [`visible`] escapes.
fn quoted(value: &str) -> String {
    serde_json::Value::from(value).to_string()
}

/// A quoted scalar with escapes for invisible characters ([`is_hidden`]) and for changes of direction.
fn visible(quoted: &str) -> String {
    let mut text = String::with_capacity(quoted.len());
    for letter in quoted.chars() {
        match u32::from(letter) {
            _ if !is_hidden(letter) => text.push(letter),
            code @ 0..=0xffff => text.push_str(&format!("\\u{code:04x}")),
            code => text.push_str(&format!("\\U{code:08x}")),
        }
    }
    text
}

/// True if the position after `line` is between double quotes.
fn is_in_quotes(line: &str) -> bool {
    let (mut inside, mut escaped) = (false, false);
    for letter in line.chars() {
        match letter {
            '"' if !escaped => inside = !inside,
            _ => {}
        }
        escaped = inside && letter == '\\' && !escaped;
    }
    inside
}

/// True if no character of `value` has a meaning in YAML, in any context.
fn is_plain(value: &str) -> bool {
    let is_harmless = |letter: char| letter.is_ascii_alphanumeric() || "._/@+=-".contains(letter);
    value.chars().all(is_harmless)
        && value.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '/')
}

/// True if YAML 1.1 and 1.2 read `value` as a string.
fn is_string(value: &str) -> bool {
    let read = serde_saphyr::from_str::<serde_json::Value>(value);
    let ambiguous = ["y", "n", "yes", "no", "on", "off"];
    // Digits alone are numbers in several notations of YAML 1.1, or dates.
    let numeric = |letter: char| letter.is_ascii_digit() || "_.+-eE".contains(letter);
    read.is_ok_and(|read| read == value)
        && !ambiguous.contains(&value.to_ascii_lowercase().as_str())
        && !value.chars().all(numeric)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_yaml_reads_as_it_is_stays_as_it_is() {
        for value in [
            "m1.large",
            "ubuntu-2404-kube-v1.34.2",
            "9d6f3c1e-0000-4000-8000-000000000000",
            "Cg==",
            "",
        ] {
            assert_eq!(written(value, "name: ", "\n").unwrap(), value);
        }
        // A part of a longer scalar.
        assert_eq!(written("1e3", "name: a-", "-b\n").unwrap(), "1e3");
    }

    #[test]
    fn what_is_no_string_is_quoted_where_it_is_a_whole_value() {
        for value in [
            "1e3", "0755", "true", "no", "null", "1_000", "12:30", "~", "a b: c",
        ] {
            assert_eq!(
                written(value, "x: 1\nname: ", "\ny: 2").unwrap(),
                format!("\"{value}\"")
            );
        }
        assert_eq!(written("1e3", "name: \"", "\"\n").unwrap(), "1e3");
        assert!(written("a: b", "name: x-", "-y\n").is_err());
        assert!(written("a\nb: c", "name: ", "-y\n").is_err());
    }

    #[test]
    fn characters_that_are_not_seen_are_escaped() {
        let text = written("a\u{202e}b\u{e0001}c", "x: ", "\n").unwrap();
        assert_eq!(text, "\"a\\u202eb\\U000e0001c\"");
    }

    proptest! {
        #[test]
        fn a_value_is_one_string_whatever_it_contains(value in any::<String>()) {
            prop_assume!(!value.is_empty());
            for (before, after) in [("x: ", "\ny: 2\n"), ("x: \"", "\"\ny: 2\n"), ("x: ", " # it\ny: 2\n")] {
                let text = format!("{before}{}{after}", written(&value, before, after).unwrap());
                let read: Value = serde_saphyr::from_str(&text).unwrap();
                prop_assert_eq!(read, json!({"x": value, "y": 2}));
            }
            for (before, after) in [("x:\n- ", "\n"), ("x: [", "]\n")] {
                let text = format!("{before}{}{after}", written(&value, before, after).unwrap());
                let read: Value = serde_saphyr::from_str(&text).unwrap();
                prop_assert_eq!(read, json!({"x": [value]}));
            }
        }
    }
}
