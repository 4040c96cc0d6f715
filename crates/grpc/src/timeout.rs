//! The header `grpc-timeout`: at most eight digits and a unit.

use std::time::Duration;

use http::HeaderMap;
use http::header::HeaderValue;

const NAME: &str = "grpc-timeout";
/// Units, from the finest. A header uses the finest unit with at most eight digits.
const UNITS: &[(char, u128)] = &[
    ('n', 1),
    ('u', 1_000),
    ('m', 1_000_000),
    ('S', 1_000_000_000),
    ('M', 60_000_000_000),
    ('H', 3_600_000_000_000),
];
const LARGEST: u128 = 99_999_999;

/// Returns the timeout of a call; `None` for a caller that waits for ever.
pub(crate) fn read(headers: &HeaderMap) -> Result<Option<Duration>, String> {
    let Some(value) = headers.get(NAME) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default();
    let wrong = || format!("malformed {NAME}: {}", text.escape_debug());
    let unit = text.chars().next_back().ok_or_else(wrong)?;
    let (_, nanoseconds) = UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(wrong)?;
    let digits = &text[..text.len() - 1];
    let plain = (1..=8).contains(&digits.len()) && digits.bytes().all(|it| it.is_ascii_digit());
    if !plain {
        return Err(wrong());
    }
    let count: u128 = digits.parse().map_err(|_| wrong())?;
    let total = count * nanoseconds;
    let seconds = u64::try_from(total / 1_000_000_000).map_err(|_| wrong())?;
    let rest = u32::try_from(total % 1_000_000_000).map_err(|_| wrong())?;
    Ok(Some(Duration::new(seconds, rest)))
}

/// Returns the header for a timeout, rounded up.
pub(crate) fn write(time: Duration) -> (&'static str, HeaderValue) {
    let total = time.as_nanos();
    let fits = |(_, unit): &&(char, u128)| total.div_ceil(*unit) <= LARGEST;
    let (name, unit) = UNITS
        .iter()
        .find(fits)
        .copied()
        .unwrap_or(('H', 3_600_000_000_000));
    let text = format!("{}{name}", total.div_ceil(unit).min(LARGEST));
    let value = HeaderValue::from_str(&text);
    (NAME, value.unwrap_or(HeaderValue::from_static("99999999H")))
}
