//! Conversion between Go durations (`1h2m3.5s`, `time.ParseDuration`) and whole seconds.

/// Seconds of a Go duration, without fractions, saturated to 32 bits; `None` for another text.
pub(crate) fn seconds(text: &str) -> Option<i32> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if text == "0" {
        return Some(0);
    }
    let mut rest = text;
    let mut nanoseconds: f64 = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let number: f64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        let end = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        nanoseconds += number * unit(&rest[..end])?;
        rest = &rest[end..];
    }
    let whole = (nanoseconds / 1e9).trunc() * if negative { -1.0 } else { 1.0 };
    // The cast saturates.
    Some(whole as i32)
}

fn unit(name: &str) -> Option<f64> {
    Some(match name {
        "ns" => 1.0,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" => 60e9,
        "h" => 3600e9,
        _ => return None,
    })
}

/// Formats seconds like Go's `Duration.String`: `1h0m5s`, `4m0s`, `30s`.
pub(crate) fn text(seconds: i64) -> String {
    let sign = if seconds < 0 { "-" } else { "" };
    let all = seconds.unsigned_abs();
    let (hours, minutes, rest) = (all / 3600, all / 60 % 60, all % 60);
    match (hours, minutes) {
        (0, 0) => format!("{sign}{rest}s"),
        (0, _) => format!("{sign}{minutes}m{rest}s"),
        _ => format!("{sign}{hours}h{minutes}m{rest}s"),
    }
}

#[cfg(test)]
mod tests;
