//! Differences between what two programs answer to the same requests, and those that are accepted, which a file has.
//!
//! ```text
//!   names  ids of a cloud as names of the script
//!   page   the accepted ones in docs/
//!   plays  several plays of a script at a time
//! ```

pub(crate) mod names;
pub(crate) mod page;
pub(crate) mod plays;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, ensure};
use serde::Deserialize;
use serde_json::Value;

/// The name of what is in the cloud after the steps.
const LEFT: &str = "left in the cloud";

/// What a play has come to.
#[derive(Debug)]
pub(crate) struct Played {
    /// The answer to each step, by its name, with the code.
    pub(crate) answers: Vec<(String, Value)>,
    /// The words of refusals, by the name of the step.
    pub(crate) words: BTreeMap<String, String>,
    /// What there is afterwards.
    pub(crate) left: Value,
}

/// The differences that are accepted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Accepted {
    pub(crate) differences: Vec<Rule>,
}

/// Accepted differences of one cause. In patterns `*` is any text.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    /// What it is about, for the page.
    pub(crate) about: String,
    /// What the Go program does.
    pub(crate) go: String,
    /// What ours does.
    pub(crate) here: String,
    /// Why that is right.
    pub(crate) why: String,
    /// Where it is seen.
    seen: Vec<Seen>,
}

/// Places and values of differences.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seen {
    /// Patterns for `GROUP: STEP`.
    #[serde(rename = "in")]
    places: Vec<String>,
    /// A pattern for the field, such as `code` or `answer/bytes`.
    at: String,
    /// Patterns for the values; the empty one is an absent field.
    go: String,
    here: String,
}

/// One value that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// `GROUP: STEP`.
    pub(crate) place: String,
    pub(crate) at: String,
    pub(crate) one: String,
    pub(crate) other: String,
    /// What each has said.
    pub(crate) words: String,
}

/// Compares two plays of a group.
pub(crate) fn differences(group: &str, one: &Played, other: &Played) -> Vec<Difference> {
    let mut found = Vec::new();
    let steps = one.answers.iter().zip(&other.answers);
    for ((step, answer), (_, other_answer)) in steps {
        let words_of = |played: &Played| played.words.get(step).cloned().unwrap_or_default();
        let words = format!("`{}`, `{}`", words_of(one), words_of(other));
        let place = format!("{group}: {step}");
        let is_refused = answer["code"] != other_answer["code"];
        for (at, one, other) in unequal(answer, other_answer) {
            // The answer that is not there is a matter of the code.
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

/// The fields that differ. Nothing, and an empty list or object, are the same.
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

    /// Prints those that are not accepted, and, where all was played, the rules of which nothing was seen. Returns the number of
    /// the former, and whether there is neither.
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

    /// Those that are not accepted, and then the rules of which nothing was seen.
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

/// Whether a text is of a pattern.
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
