//! Quantities (`k8s.io/apimachinery/pkg/api/resource`): parsing and the canonical form.

const WRONG: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
/// Units in one: values are in units of 10⁻⁹, the smallest unit of Kubernetes.
const NANO: i128 = 1_000_000_000;
const MILLI: i128 = 1_000_000;
const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// Format of a quantity, kept by the canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Decimal,
    Binary,
    /// `1e3`.
    Exponent,
}

/// Value and format of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quantity {
    nano: i128,
    format: Format,
}

/// Returns the canonical form of a quantity: `1000m` becomes `1`, `1024Mi` becomes `1Gi`. Values beyond 64 bits are
/// unchanged.
pub(super) fn canonical(text: &str) -> Result<String, String> {
    check(text)?;
    Ok(match Quantity::parse(text) {
        Some(quantity) if !is_reused(text) => quantity.to_string(),
        _ => text.to_owned(),
    })
}

/// Returns the amount rounded up to thousandths, the resolution of resource amounts; `None` if no rounding is needed.
pub(super) fn rounded(text: &str) -> Option<String> {
    let quantity = Quantity::parse(text)?;
    let nano = away_from_zero(quantity.nano, MILLI)? * MILLI;
    (nano != quantity.nano).then(|| Quantity { nano, ..quantity }.to_string())
}

/// True if `ParseQuantity` keeps the text as canonical without parsing it, such as `5e0`.
fn is_reused(text: &str) -> bool {
    let (_, number, suffix) = parts(text);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        whole => whole,
    };
    let digits = format!("{whole}{fraction}");
    let Some((format, power, _)) = scale(suffix) else {
        return false;
    };
    let length = |text: &str| i32::try_from(text.len()).unwrap_or(i32::MAX);
    if format == Format::Binary {
        let times = BINARY.iter().position(|known| *known == suffix);
        let short = times.is_some_and(|times| digits.len() + 3 * times < 15);
        return short
            && fraction.is_empty()
            && digits.parse().is_ok_and(|n: u64| !n.is_multiple_of(8));
    }
    let scale = power.saturating_sub(length(fraction));
    let plain = !digits.ends_with("000") && digits.starts_with(|first| first != '0');
    length(&digits) <= 18 && scale >= -9 && scale % 3 == 0 && plain
}

fn check(text: &str) -> Result<(), String> {
    let (_, number, suffix) = parts(text);
    let fits = number.contains(|c: char| c.is_ascii_digit())
        && number.matches('.').count() <= 1
        && (exponent(suffix).is_some()
            || BINARY.contains(&suffix)
            || DECIMAL.iter().any(|(known, _)| *known == suffix));
    fits.then_some(()).ok_or_else(|| WRONG.to_owned())
}

impl Quantity {
    /// Parses a quantity. Returns `None` for invalid texts, and for values beyond 64 bits.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (negative, number, suffix) = parts(text);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let fraction = fraction.trim_end_matches('0');
        let mantissa: i128 = match format!("{whole}{fraction}").trim_start_matches('0') {
            "" => 0,
            digits => digits.parse().ok()?,
        };
        let (format, power, factor) = scale(suffix)?;
        let scale = power.checked_sub(i32::try_from(fraction.len()).ok()?)? + 9;
        let scaled = mantissa.checked_mul(factor)?;
        let tens = 10_i128.checked_pow(scale.unsigned_abs())?;
        let nano = if scale < 0 {
            away_from_zero(scaled, tens)?
        } else {
            scaled.checked_mul(tens)?
        };
        let most = i128::from(i64::MAX) * NANO;
        let nano = match format {
            Format::Binary => nano.min(most),
            _ if nano > most => return None,
            _ => nano,
        };
        Some(Self {
            nano: if negative { -nano } else { nano },
            format,
        })
    }
}

impl Quantity {
    /// Returns the sum, in the format of the first summand that is not zero.
    pub(super) fn plus(self, other: Self) -> Self {
        let format = match self.nano {
            0 => other.format,
            _ => self.format,
        };
        let nano = self.nano.saturating_add(other.nano);
        Self { nano, format }
    }

    pub(super) fn is_below(self, other: Self) -> bool {
        self.nano < other.nano
    }
}

impl std::fmt::Display for Quantity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let whole = self.nano / NANO;
        let binary = self.format == Format::Binary
            && self.nano % NANO == 0
            && !(-1023..=1023).contains(&whole);
        if binary {
            let (amount, times) = factored(whole, 1024, BINARY.len() - 1);
            return write!(f, "{amount}{}", BINARY[times]);
        }
        if self.nano == 0 {
            return f.write_str("0");
        }
        // The first suffix of DECIMAL is 10⁻⁹, and each next one is 10³ times larger.
        let (amount, times) = factored(self.nano, 1000, DECIMAL.len() - 1);
        let (suffix, power) = DECIMAL[times];
        match self.format {
            Format::Exponent if power == 0 => write!(f, "{amount}"),
            Format::Exponent => write!(f, "{amount}e{power}"),
            _ => write!(f, "{amount}{suffix}"),
        }
    }
}

/// Returns the value divided by its factors, and their number.
fn factored(mut value: i128, factor: i128, most: usize) -> (i128, usize) {
    let mut times = 0;
    while times < most && value % factor == 0 {
        value /= factor;
        times += 1;
    }
    (value, times)
}

fn away_from_zero(value: i128, unit: i128) -> Option<i128> {
    let more = i128::from(value % unit != 0) * value.signum();
    (value / unit).checked_add(more)
}

/// Splits a quantity into sign, number and suffix. The flag is true for a minus.
fn parts(text: &str) -> (bool, &str, &str) {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = unsigned
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    (text.starts_with('-'), number, suffix)
}

fn exponent(suffix: &str) -> Option<i32> {
    suffix.strip_prefix(['e', 'E'])?.parse().ok()
}

/// Returns the format of a suffix, and its power of ten and factor.
fn scale(suffix: &str) -> Option<(Format, i32, i128)> {
    if let Some((_, power)) = DECIMAL.iter().find(|(known, _)| *known == suffix) {
        return Some((Format::Decimal, *power, 1));
    }
    if let Some(times) = BINARY.iter().position(|known| *known == suffix) {
        return Some((Format::Binary, 0, 1 << (10 * times)));
    }
    exponent(suffix).map(|power| (Format::Exponent, power, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_written_in_their_canonical_form() {
        for (text, expected) in [
            ("1000m", "1"),
            ("100m", "100m"),
            ("0.5", "500m"),
            ("1.5", "1500m"),
            ("2", "2"),
            ("1500", "1500"),
            ("1000", "1k"),
            ("1e3", "1e3"),
            ("12e-3", "12e-3"),
            ("5e0", "5e0"),
            ("1e4", "10e3"),
            ("1e-4", "100e-6"),
            ("8Ei", "9223372036854775807"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("1Ki", "1Ki"),
            ("0.5Ki", "512"),
            ("0.1Gi", "107374182400m"),
            ("0", "0"),
            ("0Gi", "0"),
            ("-1000m", "-1"),
            ("+2Gi", "+2Gi"),
            ("0.1n", "1n"),
            ("1.25E3", "1250"),
            (".5", "500m"),
            ("0.500", "500m"),
            ("1e30", "1e30"),
        ] {
            assert_eq!(canonical(text).unwrap(), expected, "{text}");
        }
        for text in ["", "m", "1.2.3", "1X", "a", "1e", "1mi", "--1", "+-1"] {
            assert!(canonical(text).is_err(), "{text}");
        }
    }

    #[test]
    fn amounts_of_resources_are_rounded_up_to_thousandths() {
        for (text, expected) in [
            ("100u", Some("1m")),
            ("1500u", Some("2m")),
            ("-1u", Some("-1m")),
            ("1e-4", Some("1e-3")),
            ("1001m", None),
            ("1Gi", None),
        ] {
            assert_eq!(rounded(text).as_deref(), expected, "{text}");
        }
    }
}
