//! Semantic versions, as in the library of sprig.

use std::cmp::Ordering;

use super::{Named, Value, exactly, string};
use crate::template::value::Version;

pub(super) const ALL: &[Named] = &[
    ("semver", |values| {
        let [text] = exactly(values)?;
        let (version, _) = read(&string(text)?)?;
        Ok(Value::Version(Box::new(version)))
    }),
    ("semverCompare", |values| {
        let [constraint, text] = exactly(values)?;
        let (version, _) = read(&string(text)?)?;
        matches(&string(constraint)?, &version).map(Value::Bool)
    }),
];

/// Parses a version, and returns the number of its given parts: `v1.34` is a version, too.
fn read(text: &str) -> Result<(Version, usize), String> {
    let problem = || "Invalid Semantic Version".to_owned();
    let rest = text.strip_prefix('v').unwrap_or(text);
    let (rest, build) = rest.split_once('+').unwrap_or((rest, ""));
    let (core, pre) = rest.split_once('-').unwrap_or((rest, ""));
    let has_build = text.contains('+');
    let has_pre = rest.contains('-');
    let valid = |part: &str| {
        let mut names = part.split('.');
        names.all(|name| {
            !name.is_empty()
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        })
    };
    if has_build && !valid(build) || has_pre && !valid(pre) {
        return Err(problem());
    }
    let mut numbers = [0; 3];
    let parts: Vec<_> = core.split('.').collect();
    if parts.len() > 3 {
        return Err(problem());
    }
    for (place, part) in numbers.iter_mut().zip(&parts) {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        *place = part.parse().ok().filter(|_| digits).ok_or_else(problem)?;
    }
    let version = Version {
        original: text.to_owned(),
        numbers,
        pre: pre.to_owned(),
        build: build.to_owned(),
    };
    Ok((version, parts.len()))
}

fn compare(a: &Version, b: &Version) -> Ordering {
    let by_numbers = a.numbers.cmp(&b.numbers);
    by_numbers.then_with(|| match (a.pre.is_empty(), b.pre.is_empty()) {
        (true, true) => Ordering::Equal,
        // A release is later than its pre-releases.
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => pre_releases(&a.pre, &b.pre),
    })
}

fn pre_releases(a: &str, b: &str) -> Ordering {
    let key = |name: &str| match name.parse::<u64>() {
        // Numbers are before words.
        Ok(number) => (0, number, String::new()),
        Err(_) => (1, 0, name.to_owned()),
    };
    let keys = |text: &str| text.split('.').map(key).collect::<Vec<_>>();
    keys(a).cmp(&keys(b))
}

/// True if a version matches: alternatives with `||`, each a list of conditions with commas or blanks.
fn matches(constraint: &str, version: &Version) -> Result<bool, String> {
    for alternative in constraint.split("||") {
        let mut all = true;
        for condition in conditions(alternative)? {
            all &= condition.holds(version);
        }
        if all {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Comparison such as `>= 1.30` or `~1.2.x`.
struct Condition {
    operator: &'static str,
    version: Version,
    /// Number of given parts; the missing ones match any number.
    given: usize,
}

const OPERATORS: [&str; 11] = ["!=", ">=", "=>", "<=", "=<", "~>", "=", ">", "<", "~", "^"];

fn conditions(text: &str) -> Result<Vec<Condition>, String> {
    let improper = || format!("improper constraint: {text}");
    let spread = text.replace(',', " ");
    let mut found = Vec::new();
    let mut words = spread.split_whitespace().peekable();
    while let Some(word) = words.next() {
        if words.peek() == Some(&"-") {
            return Err(format!("ranges such as a - b are not known here: {text}"));
        }
        let operator = OPERATORS
            .into_iter()
            .find(|operator| word.starts_with(operator));
        let mut rest = word[operator.map_or(0, str::len)..].to_owned();
        if rest.is_empty() {
            rest = words.next().ok_or_else(improper)?.to_owned();
        }
        let plain = rest.strip_prefix('v').unwrap_or(&rest);
        let is_any = |part: &str| matches!(part, "x" | "X" | "*");
        let kept: Vec<_> = plain.split('.').take_while(|part| !is_any(part)).collect();
        let (version, given) = match kept.join(".").as_str() {
            "" => (read("0")?.0, 0),
            core => read(core).map_err(|_| improper())?,
        };
        found.push(Condition {
            operator: operator.unwrap_or("="),
            version,
            given,
        });
    }
    match found.is_empty() {
        true => Err(improper()),
        false => Ok(found),
    }
}

impl Condition {
    fn holds(&self, version: &Version) -> bool {
        // A pre-release matches only conditions that name one.
        if !version.pre.is_empty() && self.version.pre.is_empty() {
            return false;
        }
        let order = compare(version, &self.version);
        let within = |count: usize| version.numbers[..count] == self.version.numbers[..count];
        match self.operator {
            "=" if self.given < 3 => within(self.given),
            "=" => order.is_eq(),
            "!=" if self.given < 3 => !within(self.given),
            "!=" => order.is_ne(),
            ">" if self.given < 3 => order.is_gt() && !within(self.given),
            ">" => order.is_gt(),
            "<" => order.is_lt(),
            ">=" | "=>" => order.is_ge(),
            "<=" | "=<" if self.given < 3 => order.is_lt() || within(self.given),
            "<=" | "=<" => order.is_le(),
            "~" | "~>" => order.is_ge() && within(self.given.min(2)),
            // The first number that is not zero must be the same.
            _ => {
                let first = self.version.numbers.iter().position(|number| *number != 0);
                let same = first.map_or(self.given, |at| at + 1).min(self.given);
                order.is_ge() && within(same)
            }
        }
    }
}
