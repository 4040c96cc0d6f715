//! Times as parsed by Go (`time.Parse`), and Go's error messages.

use crate::schema::go_quote;

/// Fields of type `MicroTime`, with six fractional digits.
pub(super) const MICROSECONDS: [&str; 4] =
    ["acquireTime", "eventTime", "lastObservedTime", "renewTime"];

/// Checks for a valid time; the error has the words of Go.
pub fn check(text: &str, micro: bool) -> Result<(), String> {
    let fraction = if micro { ".000000" } else { "" };
    let layout = format!("2006-01-02T15:04:05{fraction}Z07:00");
    let failed = |at: &str, element: &str| {
        let (text, layout) = (go_quote(text), go_quote(&layout));
        let (at, element) = (go_quote(at), go_quote(element));
        format!("parsing time {text} as {layout}: cannot parse {at} as {element}")
    };
    let wrong = |what: &str| format!("parsing time {}: {what}", go_quote(text));
    let mut rest = text;
    // Each element: name, separator in front, and range. Days are checked once the month is known.
    let elements = [
        ("2006", "", 0_i16, 9999, "year"),
        ("01", "-", 1, 12, "month"),
        ("02", "-", 0, 99, "day"),
        ("15", "T", 0, 23, "hour"),
        ("04", ":", 0, 59, "minute"),
        ("05", ":", 0, 59, "second"),
    ];
    let mut numbers = [0; 6];
    for (index, (element, before, least, most, name)) in elements.into_iter().enumerate() {
        rest = rest
            .strip_prefix(before)
            .ok_or_else(|| failed(rest, before))?;
        let number = digits(rest, element.len()).ok_or_else(|| failed(rest, element))?;
        if !(least..=most).contains(&number) {
            return Err(wrong(&format!("{name} out of range")));
        }
        numbers[index] = number;
        rest = &rest[element.len()..];
    }
    if micro {
        let six = rest.strip_prefix('.').and_then(|rest| digit_text(rest, 6));
        six.ok_or_else(|| failed(rest, fraction))?;
        rest = &rest[fraction.len()..];
    } else if let Some(after) = rest.strip_prefix(['.', ',']) {
        // A fraction that the layout does not have is skipped.
        let more = after.trim_start_matches(|c: char| c.is_ascii_digit());
        if more.len() < after.len() {
            rest = more;
        }
    }
    if let Some(utc) = rest.strip_prefix('Z') {
        rest = utc;
    } else {
        let (hours, minutes, more) = offset(rest).ok_or_else(|| failed(rest, "Z07:00"))?;
        if hours > 24 {
            return Err(wrong("time zone offset hour out of range"));
        }
        if minutes > 60 {
            return Err(wrong("time zone offset minute out of range"));
        }
        rest = more;
    }
    if !rest.is_empty() {
        return Err(wrong(&format!("extra text: {}", go_quote(rest))));
    }
    let [year, month, day, ..] = numbers;
    let (month, day) = (i8::try_from(month), i8::try_from(day));
    let date = month.and_then(|month| Ok((month, day?)));
    match date.map(|(month, day)| jiff::civil::Date::new(year, month, day)) {
        Ok(Ok(_)) => Ok(()),
        _ => Err(wrong("day out of range")),
    }
}

/// Returns the number in the first characters, which must all be digits.
fn digits(text: &str, length: usize) -> Option<i16> {
    digit_text(text, length)?.parse().ok()
}

fn digit_text(text: &str, length: usize) -> Option<&str> {
    let digits = text.get(..length)?;
    let all = digits.bytes().all(|byte| byte.is_ascii_digit());
    all.then_some(digits)
}

/// Splits off an offset from UTC in hours and minutes, `+02:00`, and the rest of the text.
fn offset(text: &str) -> Option<(i16, i16, &str)> {
    let rest = text.strip_prefix(['+', '-'])?;
    let hours = digits(rest, 2)?;
    let minutes = digits(rest.get(2..)?.strip_prefix(':')?, 2)?;
    Some((hours, minutes, &rest["00:00".len()..]))
}
