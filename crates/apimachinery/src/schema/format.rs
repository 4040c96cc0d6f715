//! String formats (`kube-openapi/pkg/validation/strfmt`, based on govalidator).

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::LazyLock,
};

use base64::Engine as _;
use jiff::{civil::Date, fmt::temporal::DateTimeParser};
use regex::Regex;

/// True if a definition may use this format; others are ignored. Dashes in names are ignored.
pub(super) fn is_known(format: &str) -> bool {
    matches!(
        format.replace('-', "").as_str(),
        "bsonobjectid"
            | "uri"
            | "email"
            | "hostname"
            | "ipv4"
            | "ipv6"
            | "cidr"
            | "mac"
            | "uuid"
            | "uuid3"
            | "uuid4"
            | "uuid5"
            | "isbn"
            | "isbn10"
            | "isbn13"
            | "creditcard"
            | "ssn"
            | "hexcolor"
            | "rgbcolor"
            | "byte"
            | "password"
            | "date"
            | "duration"
            | "datetime"
            | "k8sshortname"
            | "k8slongname"
    )
}

/// True if a text has the format. Any text has an unknown format.
pub(super) fn matches(format: &str, text: &str) -> bool {
    match format.replace('-', "").as_str() {
        "bsonobjectid" => text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
        "uri" => is_uri(text),
        "email" => is_email(text),
        "hostname" => is_hostname(text),
        "ipv4" => ipv4(text).is_some(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => cidr(text).is_some(),
        "mac" => is_mac(text),
        "uuid" => uuid(text).is_some(),
        "uuid3" => uuid(text).is_some_and(|d| d.as_bytes()[12] == b'3'),
        "uuid4" => uuid(text).is_some_and(|d| d.as_bytes()[12] == b'4' && has_variant(&d)),
        "uuid5" => uuid(text).is_some_and(|d| d.as_bytes()[12] == b'5' && has_variant(&d)),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "creditcard" => is_credit_card(text),
        "ssn" => is_ssn(text),
        "hexcolor" => is_hex_color(text),
        "rgbcolor" => is_rgb_color(text),
        "byte" => {
            !text.is_empty()
                && base64::engine::general_purpose::STANDARD
                    .decode(text)
                    .is_ok()
        }
        "date" => text.len() == 10 && text.parse::<Date>().is_ok(),
        "duration" => duration_nanoseconds(text).is_some(),
        "datetime" => is_date_time(text),
        "k8sshortname" => is_short_name(text),
        "k8slongname" => {
            let labels = text
                .split('.')
                .all(|label| is_label(label) && !label.is_empty());
            text.len() <= 253 && labels
        }
        _ => true,
    }
}

/// Returns the nanoseconds of a duration: `1h30m`, `1.5s`, or in the notation of Scala `22 ns`, `3 days`.
pub(super) fn duration_nanoseconds(text: &str) -> Option<i64> {
    go_duration(text).or_else(|| scala_duration(text))
}

pub(super) fn go_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0_f64;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let number = &rest[..digits];
        if !number.bytes().any(|b| b.is_ascii_digit()) {
            return None;
        }
        let number: f64 = number.parse().ok()?;
        rest = &rest[digits..];
        let unit = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        let factor = match &rest[..unit] {
            "ns" => 1.0,
            "us" | "µs" | "μs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            _ => return None,
        };
        total += number * factor;
        rest = &rest[unit..];
    }
    (total <= i64::MAX as f64).then_some(if negative { -total } else { total } as i64)
}

fn scala_duration(text: &str) -> Option<i64> {
    let (mut total, mut found) = (0_i64, false);
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = &rest[start..];
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let number: i64 = rest[..digits].parse().ok()?;
        let after = rest[digits..].trim_start();
        let letters = after
            .find(|c: char| !c.is_ascii_alphabetic() && c != 'µ')
            .unwrap_or(after.len());
        let unit = after[..letters].to_lowercase();
        rest = &after[letters..];
        let second = 1_000_000_000;
        let factor = match unit.as_str() {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "s" => second,
            "m" => 60 * second,
            "h" | "hr" => 3600 * second,
            "d" => 86_400 * second,
            "w" | "wk" => 604_800 * second,
            u if u.starts_with("nano") => 1,
            u if u.starts_with("micro") => 1_000,
            u if u.starts_with("milli") => 1_000_000,
            u if u.starts_with("sec") => second,
            u if u.starts_with("min") => 60 * second,
            u if u.starts_with("hour") => 3600 * second,
            u if u.starts_with("day") => 86_400 * second,
            u if u.starts_with("week") => 604_800 * second,
            _ => continue,
        };
        found = true;
        total = total.wrapping_add(number.wrapping_mul(factor));
    }
    found.then_some(total)
}

fn is_date_time(text: &str) -> bool {
    static PARSER: DateTimeParser = DateTimeParser::new();
    let bytes = text.as_bytes();
    let separated = bytes.len() > 10 && matches!(bytes[10], b'T' | b't' | b' ');
    separated && PARSER.parse_timestamp(text).is_ok()
}

/// True if `url.ParseRequestURI` accepts a text: an absolute URI, or an absolute path.
fn is_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b.is_ascii_control() || b == b' ') {
        return false;
    }
    if text.starts_with('/') {
        return true;
    }
    let Some((scheme, rest)) = text.split_once(':') else {
        return text == "*";
    };
    let valid = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    if !valid {
        return false;
    }
    match rest.strip_prefix("//") {
        Some(rest) => {
            let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
            let host = authority.rsplit('@').next().unwrap_or_default();
            let port = host
                .rsplit_once(':')
                .filter(|(h, _)| !h.contains(':'))
                .map(|(_, p)| p);
            !host.contains(['<', '>', '"', '\\', '^', '`', '{', '|', '}'])
                && port.is_none_or(|port| port.bytes().all(|b| b.is_ascii_digit()))
        }
        None => true,
    }
}

fn is_email(text: &str) -> bool {
    // `Name <address>` is accepted, as by net/mail.
    let address = match (text.rfind('<'), text.ends_with('>')) {
        (Some(start), true) => &text[start + 1..text.len() - 1],
        _ => text,
    };
    let Some((local, domain)) = address.rsplit_once('@') else {
        return false;
    };
    let atom = |c: char| c.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~.".contains(c);
    let quoted = local.len() >= 2 && local.starts_with('"') && local.ends_with('"');
    let dotted = |part: &str| !part.is_empty() && part.split('.').all(|p| !p.is_empty());
    (quoted || dotted(local) && local.chars().all(atom))
        && dotted(domain)
        && domain.chars().all(atom)
}

/// Pattern of the reference: letters of any script and symbols, but a top-level domain of letters only.
fn is_hostname(text: &str) -> bool {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let inner = r"a-zA-Z0-9\p{S}\p{L}";
        let pattern = format!(
            r"^([{inner}]((-?[{inner}]{{0,62}})?)|([{inner}](([{inner}-]{{0,61}}[{inner}])?)(\.)){{1,}}([a-zA-Z\p{{L}}]){{2,63}})$"
        );
        Regex::new(&pattern).ok()
    });
    text.len() <= 255
        && text.split('.').all(|label| label.len() <= 63)
        && PATTERN
            .as_ref()
            .is_some_and(|pattern| pattern.is_match(text))
}

/// Leading zeros are accepted, as in Go before 1.17.
fn ipv4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0_u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        *octet = digits
            .then(|| part.trim_start_matches('0'))
            .and_then(|part| {
                if part.is_empty() {
                    Some(0)
                } else {
                    part.parse().ok()
                }
            })?;
    }
    parts.next().is_none().then(|| Ipv4Addr::from(octets))
}

fn cidr(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text.split_once('/')?;
    let plain = !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit());
    let length: u8 = plain.then(|| length.parse().ok()).flatten()?;
    let (address, max) = match ipv4(address) {
        Some(address) => (IpAddr::V4(address), 32),
        None => (IpAddr::V6(address.parse().ok()?), 128),
    };
    (length <= max).then_some((address, length))
}

fn is_mac(text: &str) -> bool {
    let groups = |separator: char, width: usize, counts: &[usize]| {
        let parts: Vec<&str> = text.split(separator).collect();
        let hex = |part: &&str| part.len() == width && part.bytes().all(|b| b.is_ascii_hexdigit());
        counts.contains(&parts.len()) && parts.iter().all(hex)
    };
    groups(':', 2, &[6, 8, 20]) || groups('-', 2, &[6, 8, 20]) || groups('.', 4, &[3, 4, 10])
}

/// Returns the 32 digits of a UUID in lower case. Each dash is optional.
fn uuid(text: &str) -> Option<String> {
    let mut digits = String::with_capacity(32);
    let mut dash_at = None;
    for c in text.chars() {
        match c {
            '-' if matches!(digits.len(), 8 | 12 | 16 | 20) && dash_at != Some(digits.len()) => {
                dash_at = Some(digits.len());
            }
            c if c.is_ascii_hexdigit() => digits.push(c.to_ascii_lowercase()),
            _ => return None,
        }
    }
    (digits.len() == 32).then_some(digits)
}

fn has_variant(digits: &str) -> bool {
    matches!(digits.as_bytes()[16], b'8' | b'9' | b'a' | b'b')
}

fn is_isbn10(text: &str) -> bool {
    let digits: Vec<char> = text.chars().filter(|c| !matches!(c, ' ' | '-')).collect();
    if digits.len() != 10 {
        return false;
    }
    let mut sum = 0;
    for (i, c) in digits.iter().enumerate() {
        let digit = match c.to_digit(10) {
            Some(digit) => digit,
            None if i == 9 && *c == 'X' => 10,
            None => return false,
        };
        sum += (10 - i as u32) * digit;
    }
    sum.is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits: Option<Vec<u32>> = text
        .chars()
        .filter(|c| !matches!(c, ' ' | '-'))
        .map(|c| c.to_digit(10))
        .collect();
    digits.is_some_and(|digits| {
        let sum: u32 = digits
            .iter()
            .enumerate()
            .map(|(i, d)| if i % 2 == 0 { *d } else { 3 * d })
            .sum();
        digits.len() == 13 && sum.is_multiple_of(10)
    })
}

fn is_credit_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
    let doubled = |d: u32| if d > 4 { 2 * d - 9 } else { 2 * d };
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(i, d)| if i % 2 == 0 { *d } else { doubled(*d) })
        .sum();
    let starts = |prefixes: &[&str]| {
        let text: String = digits.iter().map(|d| char::from(b'0' + *d as u8)).collect();
        prefixes.iter().any(|prefix| text.starts_with(prefix))
    };
    let network = match digits.len() {
        13 => starts(&["4"]),
        14 => starts(&["300", "301", "302", "303", "304", "305", "36", "38"]),
        15 => starts(&["34", "37", "2131", "1800"]),
        16 => starts(&["4", "51", "52", "53", "54", "55", "6011", "65", "35"]),
        _ => false,
    };
    network && sum.is_multiple_of(10)
}

fn is_ssn(text: &str) -> bool {
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let separators = text
        .chars()
        .enumerate()
        .all(|(i, c)| c.is_ascii_digit() || (matches!(c, '-' | ' ') && matches!(i, 3 | 5 | 6)));
    text.len() == 11 && digits == 9 && separators
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_rgb_color(text: &str) -> bool {
    let inner = text
        .strip_prefix("rgb(")
        .and_then(|rest| rest.strip_suffix(')'));
    inner.is_some_and(|inner| {
        let parts: Vec<&str> = inner.split(',').map(str::trim).collect();
        parts.len() == 3 && parts.iter().all(|part| part.parse::<u8>().is_ok())
    })
}

fn is_short_name(text: &str) -> bool {
    (1..=63).contains(&text.len()) && is_label(text)
}

fn is_label(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.chars().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}
