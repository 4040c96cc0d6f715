//! Differences between the answers of two programs to the same requests, and the accepted ones, read from a file.
//!
//! - [`names`]: ids of a cloud as names of the script
//! - [`page`]: table of the accepted ones in docs/
//! - [`plays`]: several plays of a script at a time

pub(crate) mod names;
pub(crate) mod page;
pub(crate) mod plays;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, ensure};
use serde::Deserialize;
use serde_json::Value;

/// Name of the final state of the cloud in places.
const LEFT: &str = "left in the cloud";

/// Result of a play.
#[derive(Debug)]
pub(crate) struct Played {
    /// Answer to each step, by its name, with the code.
    pub(crate) answers: Vec<(String, Value)>,
    /// Messages of refusals, by the name of the step.
    pub(crate) words: BTreeMap<String, String>,
    /// Objects left in the cloud.
    pub(crate) left: Value,
}

/// Accepted differences.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Accepted {
    pub(crate) differences: Vec<Rule>,
}

/// Accepted differences with one cause. `*` in patterns is any text.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    /// Subject, for the page.
    pub(crate) about: String,
    /// Behaviour of the Go program.
    pub(crate) go: String,
    /// Behaviour of ours.
    pub(crate) here: String,
    /// Reason why ours is right.
    pub(crate) why: String,
    /// Occurrences.
    seen: Vec<Seen>,
}

/// Places and values of differences.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seen {
    /// Patterns for `GROUP: STEP`.
    #[serde(rename = "in")]
    places: Vec<String>,
    /// Pattern for the field, such as `code` or `answer/bytes`.
    at: String,
    /// Patterns for the values; the empty one is an absent field.
    go: String,
    here: String,
}

/// Value that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Place: `GROUP: STEP`.
    pub(crate) place: String,
    pub(crate) at: String,
    pub(crate) one: String,
    pub(crate) other: String,
    /// Messages of both programs.
    pub(crate) words: String,
}

/// Compares two plays of a group, by [`Played`].
pub(crate) fn differences(group: &str, one: &Played, other: &Played) -> Vec<Difference> {
    let mut found = Vec::new();
    let steps = one.answers.iter().zip(&other.answers);
    for ((step, answer), (_, other_answer)) in steps {
        let words_of = |played: &Played| played.words.get(step).cloned().unwrap_or_default();
        let words = format!("`{}`, `{}`", words_of(one), words_of(other));
        let place = format!("{group}: {step}");
        let is_refused = answer["code"] != other_answer["code"];
        for (at, one, other) in unequal(answer, other_answer) {
            // A missing answer follows from a different code.
            if !is_refused || at == "code" {
                let (place, words) = (place.clone(), words.clone());
                found.push(Difference {
                    place,
                    at,
                    one,
                    other,
                    words,
                });
            }
        }
    }
    for (at, one, other) in unequal(&one.left, &other.left) {
        let place = format!("{group}: {LEFT}");
        let words = String::new();
        found.push(Difference {
            place,
            at,
            one,
            other,
            words,
        });
    }
    found
}

/// Fields that differ. Nothing, and an empty list or object, are equal.
fn unequal(one: &Value, other: &Value) -> Vec<(String, String, String)> {
    let (mut all, mut others) = (BTreeMap::new(), BTreeMap::new());
    flatten("", one, &mut all);
    flatten("", other, &mut others);
    let mut found = Vec::new();
    for (at, value) in &all {
        let other = others.remove(at).unwrap_or_default();
        if *value != other {
            found.push((at.clone(), value.clone(), other));
        }
    }
    found.extend(
        others
            .into_iter()
            .map(|(at, other)| (at, String::new(), other)),
    );
    found
}

fn flatten(at: &str, value: &Value, into: &mut BTreeMap<String, String>) {
    let below = |key: &str| {
        if at.is_empty() {
            key.to_owned()
        } else {
            format!("{at}/{key}")
        }
    };
    match value {
        Value::Null => {}
        Value::Object(fields) => fields
            .iter()
            .for_each(|(key, it)| flatten(&below(key), it, into)),
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.for_each(|(at, it)| flatten(&below(&at.to_string()), it, into));
        }
        Value::String(text) => {
            into.insert(at.to_owned(), text.clone());
        }
        other => {
            into.insert(at.to_owned(), other.to_string());
        }
    }
}

impl Accepted {
    pub(crate) fn read(file: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let read: Self =
            serde_saphyr::from_str(&text).with_context(|| file.display().to_string())?;
        for rule in &read.differences {
            let words = [&rule.about, &rule.go, &rule.here, &rule.why];
            ensure!(
                words.iter().all(|it| !it.is_empty()),
                "`{}`: a word is missing",
                rule.about
            );
            ensure!(!rule.seen.is_empty(), "`{}` is seen nowhere", rule.about);
        }
        Ok(read)
    }

    /// Prints the differences that are not accepted and, after a complete play, the rules without an occurrence.
    /// Returns the number of differences, and true if there is neither.
    pub(crate) fn report(&self, found: &[Difference], is_whole: bool) -> (usize, bool) {
        let (left, mut unseen) = self.judge(found);
        if !is_whole {
            unseen.clear();
        }
        for it in &left {
            let both = format!("`{}`, `{}`", it.one, it.other);
            crate::report(&format!("{}: {}: {both} ({})", it.place, it.at, it.words));
        }
        for it in &unseen {
            crate::report(&format!("accepted, and not seen: {it}"));
        }
        (left.len(), left.is_empty() && unseen.is_empty())
    }

    /// Differences that are not accepted, and rules without an occurrence.
    pub(crate) fn judge(&self, found: &[Difference]) -> (Vec<Difference>, Vec<String>) {
        let mut used = vec![Vec::new(); self.differences.len()];
        for (rule, used) in self.differences.iter().zip(&mut used) {
            used.resize(rule.seen.len(), false);
        }
        let mut left = Vec::new();
        for difference in found {
            let mut is_accepted = false;
            for (rule, used) in self.differences.iter().zip(&mut used) {
                for (seen, used) in rule.seen.iter().zip(used) {
                    if seen.accepts(difference) {
                        (is_accepted, *used) = (true, true);
                    }
                }
            }
            if !is_accepted {
                left.push(difference.clone());
            }
        }
        let mut unseen = Vec::new();
        for (rule, used) in self.differences.iter().zip(&used) {
            for (seen, used) in rule.seen.iter().zip(used) {
                if !used {
                    unseen.push(format!(
                        "{}: {} in {}",
                        rule.about,
                        seen.at,
                        seen.places.join(", ")
                    ));
                }
            }
        }
        (left, unseen)
    }
}

impl Seen {
    fn accepts(&self, difference: &Difference) -> bool {
        self.places.iter().any(|it| matches(it, &difference.place))
            && matches(&self.at, &difference.at)
            && matches(&self.go, &difference.one)
            && matches(&self.here, &difference.other)
    }
}

/// True if the text matches the pattern.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn played(code: &str, bytes: u64, left: Value) -> Played {
        let answer = json!({"code": code, "answer": {"bytes": bytes, "context": {}}});
        Played {
            answers: vec![("a step".to_owned(), answer)],
            words: BTreeMap::new(),
            left,
        }
    }

    fn found(one: &Played, other: &Played) -> Vec<(String, String)> {
        let found = differences("group", one, other).into_iter();
        found
            .map(|it| {
                (
                    format!("{} {}", it.place, it.at),
                    format!("{} {}", it.one, it.other),
                )
            })
            .collect()
    }

    #[test]
    fn what_differs_is_found_and_what_is_empty_does_not() {
        let one = played("OK", 1, json!({"volumes": {"a": [{"servers": []}]}}));
        assert_eq!(
            found(&one, &played("OK", 1, json!({"volumes": {"a": []}}))),
            []
        );
        let expected = [("group: a step answer/bytes".to_owned(), "1 2".to_owned())];
        assert_eq!(found(&one, &played("OK", 2, json!({}))), expected);
        let refused = played("ABORTED", 2, json!({"volumes": {"b": [{"size": 1}]}}));
        let expected = [
            ("group: a step code".to_owned(), "OK ABORTED".to_owned()),
            (
                "group: left in the cloud volumes/b/0/size".to_owned(),
                " 1".to_owned(),
            ),
        ];
        assert_eq!(found(&one, &refused), expected);
    }

    #[test]
    fn an_accepted_difference_has_its_place_its_field_and_its_values() {
        let accepted = "differences: [{about: a, go: b, here: c, why: d, seen: [{in: ['g*: s?', 'x'], at: code, go: OK, here: ABORTED}]}]";
        let accepted: Accepted = serde_saphyr::from_str(&accepted.replace('?', "*")).unwrap();
        let difference = |place: &str, other: &str| Difference {
            place: place.to_owned(),
            at: "code".to_owned(),
            one: "OK".to_owned(),
            other: other.to_owned(),
            words: String::new(),
        };
        let right = difference("group: step", "ABORTED");
        assert_eq!(
            accepted.judge(std::slice::from_ref(&right)),
            (vec![], vec![])
        );
        for wrong in [
            difference("group: step", "INTERNAL"),
            difference("other: step", "ABORTED"),
        ] {
            let (left, unseen) = accepted.judge(std::slice::from_ref(&wrong));
            assert_eq!((left, unseen.len()), (vec![wrong], 1));
        }
    }

    #[test]
    fn a_pattern_matches_the_whole_text() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "a1c2b", false),
            ("a", "ab", false),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
