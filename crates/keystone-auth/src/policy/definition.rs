//! Halves of a key of `resource_permissions`: `name`, `*`, `!name`, `['a', 'b']`, `!['a', 'b']`.

use std::collections::HashSet;

/// Names admitted by a half of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Definition {
    /// Half in lower case, which admits itself besides its meaning.
    raw: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Literal,
    Any,
    /// `!name`; `!*` admits nothing.
    Not(String),
    In(HashSet<String>),
    NotIn(HashSet<String>),
    /// Unreadable list.
    Broken,
}

impl Definition {
    /// Parses a half like the Go program. Never fails: an unreadable half admits nothing.
    pub(super) fn new(half: &str) -> Self {
        let raw = lower(half.trim());
        let closes = raw.find(']').is_some_and(|end| end + 1 == raw.len());
        let kind = match raw.strip_prefix('!') {
            None if raw == "*" => Kind::Any,
            None if raw.starts_with('[') && closes => list(&raw).map_or(Kind::Broken, Kind::In),
            Some(rest) if !rest.starts_with('[') => Kind::Not(rest.to_owned()),
            Some(rest) if closes => list(rest).map_or(Kind::Broken, Kind::NotIn),
            Some(_) => Kind::Broken,
            None if raw.starts_with('[') => Kind::Broken,
            None => Kind::Literal,
        };
        Self { raw, kind }
    }

    /// True if the half admits `name`. An empty name is always admitted, as in Go.
    pub(super) fn admits(&self, name: &str) -> bool {
        if name.is_empty() || self.raw == name {
            return true;
        }
        match &self.kind {
            Kind::Any => true,
            Kind::Literal | Kind::Broken => false,
            Kind::Not(other) => other != name && other != "*",
            Kind::In(names) => names.contains(name) || names.contains("*"),
            Kind::NotIn(names) => !names.contains(name) && !names.contains("*"),
        }
    }

    /// True for `*`, the only half that admits requests without a namespace.
    pub(super) fn is_star(&self) -> bool {
        self.kind == Kind::Any
    }

    /// Doubt about a half that admits next to nothing, or has an unlikely meaning.
    pub(super) fn doubt(&self) -> Option<String> {
        let raw = &self.raw;
        match &self.kind {
            Kind::Broken => Some(format!(
                "`{raw}` is no list such as ['a', 'b'], and admits nothing"
            )),
            Kind::Literal if raw.is_empty() => Some("an empty name admits nothing".to_owned()),
            Kind::Not(other) if other.is_empty() => {
                Some("`!` without a name admits everything".to_owned())
            }
            Kind::Not(other) if other == "*" => Some("`!*` admits nothing".to_owned()),
            Kind::NotIn(names) if names.contains("*") => Some(format!("`{raw}` admits nothing")),
            Kind::In(names) if names.is_empty() => Some(format!("`{raw}` admits nothing")),
            _ => None,
        }
    }

    /// Complete list of admitted names besides the empty one; `None` if there is no such list.
    pub(super) fn names(&self) -> Option<Vec<&str>> {
        match &self.kind {
            Kind::Literal | Kind::Broken => Some(vec![&self.raw]),
            Kind::In(names) if !names.contains("*") => {
                let names = names.iter().map(String::as_str);
                Some(names.chain(std::iter::once(self.raw.as_str())).collect())
            }
            _ => None,
        }
    }
}

/// List in JSON, with single quotation marks instead of double ones.
pub(super) fn list(text: &str) -> Option<HashSet<String>> {
    let items: Vec<Option<String>> = serde_json::from_str(&text.replace('\'', "\"")).ok()?;
    Some(items.into_iter().map(Option::unwrap_or_default).collect())
}

/// Lower case, each letter on its own as in Go.
pub(super) fn lower(text: &str) -> String {
    let small = |letter: char| letter.to_lowercase().next().unwrap_or(letter);
    text.chars().map(small).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_admit_what_the_go_program_lets_them() {
        for (half, admitted, refused) in [
            ("default", &["default", ""][..], &["Default", "x"][..]),
            (" Default ", &["default"], &["Default"]),
            ("*", &["a", ""], &[]),
            ("!kube-system", &["a", "!kube-system"], &["kube-system"]),
            ("!*", &["!*", ""], &["a"]),
            ("!", &["a"], &[]),
            ("['a', 'B']", &["a", "b", "['a', 'b']"], &["B", "c"]),
            ("[\"a\"]", &["a"], &["b"]),
            ("['*']", &["a"], &[]),
            ("[]", &["[]"], &["a"]),
            ("['a'", &["['a'"], &["a"]),
            ("['a', 1]", &[], &["a", "1"]),
            ("['a']]", &[], &["a"]),
            ("[a]", &[], &["a"]),
            ("['a', null]", &["a", ""], &["null"]),
            ("!['a']", &["b"], &["a"]),
            ("!['*']", &[], &["b"]),
            ("![]", &["a"], &[]),
            ("!['a'", &[], &["b"]),
            ("![a]", &[], &["b"]),
            ("", &[""], &["a"]),
        ] {
            let definition = Definition::new(half);
            for name in admitted {
                assert!(definition.admits(name), "{half} {name}");
            }
            for name in refused {
                assert!(!definition.admits(name), "{half} {name}");
            }
        }
    }

    #[test]
    fn letters_are_made_small_one_by_one() {
        assert_eq!(lower("ΑΣ İ"), "ασ i");
    }
}
