//! Configuration file of clusterctl: variables, and settings for clusterctl alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

/// Content of a file.
#[derive(Debug, Default)]
pub(super) struct Configuration {
    /// Values of variables, with the text of the file: `0755` and `1e3` are no other numbers.
    pub(super) values: BTreeMap<String, String>,
    /// Sentences about settings without an effect.
    pub(super) without_effect: Vec<String>,
}

/// Reads a file.
///
/// # Errors
/// If the text is not YAML.
pub(super) fn read(text: &str) -> Result<Configuration, String> {
    let problem = |error: serde_saphyr::Error| error.without_snippet().to_string();
    let document: Value = serde_saphyr::from_str(text).map_err(problem)?;
    let Some(read) = document.as_object() else {
        return Ok(Configuration::default());
    };
    let mut values = BTreeMap::new();
    let mut numbers = BTreeSet::new();
    for (name, value) in read {
        match value {
            Value::String(text) => {
                values.insert(name.clone(), text.clone());
            }
            Value::Bool(value) => {
                values.insert(name.clone(), value.to_string());
            }
            Value::Number(_) => {
                numbers.insert(name.clone());
            }
            Value::Null | Value::Array(_) | Value::Object(_) => {}
        }
    }
    if !numbers.is_empty() {
        let texts = serde_saphyr::with_deserializer_from_str(text, |document| {
            document.deserialize_map(Texts(&numbers))
        });
        let texts = texts.map_err(problem)?;
        values.extend(texts);
    }
    Ok(Configuration {
        values,
        without_effect: without_effect(&document),
    })
}

/// Settings of the file for clusterctl alone, and why these have no effect here.
fn without_effect(values: &Value) -> Vec<String> {
    const KNOWN: [(&str, &str); 4] = [
        (
            "overridesFolder",
            "templates are read from files with --from",
        ),
        ("providers", "the providers are parts of this program"),
        (
            "images",
            "the providers are parts of this program, whose image `init` and `generate manager` take as --image",
        ),
        (
            "cert-manager",
            "there is none: webhooks have certificates of their own",
        ),
    ];
    let named = |name: &str| values.get(name).is_some_and(|it| !it.is_null());
    let found = KNOWN.iter().filter(|(name, _)| named(name));
    found
        .map(|(name, why)| format!("`{name}` has no effect here: {why}"))
        .collect()
}

/// Reads the scalars of these names as strings.
struct Texts<'a>(&'a BTreeSet<String>);

impl<'de> Visitor<'de> for Texts<'_> {
    type Value = BTreeMap<String, String>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "a mapping")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut texts = BTreeMap::new();
        while let Some(name) = map.next_key::<String>()? {
            match self.0.contains(&name) {
                true => {
                    texts.insert(name, map.next_value()?);
                }
                false => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(texts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_text() {
        let text =
            "A: 1e3\nB: 0755\nC: 1.10\nD: true\nE: 'x'\nF: 12\nG: 0x1F\nlist: [a]\nnothing:\n";
        let values = read(text).unwrap().values;
        let expected = [
            ("A", "1e3"),
            ("B", "0755"),
            ("C", "1.10"),
            ("D", "true"),
            ("E", "x"),
            ("F", "12"),
            ("G", "0x1F"),
        ];
        let expected = expected.map(|(name, text)| (name.to_owned(), text.to_owned()));
        assert_eq!(values, BTreeMap::from(expected));
        assert!(read("- a\n").unwrap().values.is_empty());
        assert!(read("a: [\n").is_err());
    }

    #[test]
    fn what_is_for_clusterctl_alone_is_named_as_without_effect() {
        let text = "overridesFolder: /x\nproviders:\n- name: p\nimages:\nA: 1\n";
        let found = read(text).unwrap();
        assert_eq!(found.without_effect.len(), 2, "{found:?}");
        assert!(found.without_effect[0].starts_with("`overridesFolder` has no effect here: "));
        assert!(found.without_effect[1].starts_with("`providers` has no effect here: "));
        assert_eq!(found.values.len(), 2, "{found:?}");
    }
}
