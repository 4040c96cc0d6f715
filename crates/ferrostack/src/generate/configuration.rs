//! The configuration file of clusterctl: variables, and what is for clusterctl alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

/// The values of variables, with the text that the file has: `0755` and `1e3` are no other numbers.
///
/// # Errors
/// When it is not YAML.
pub(super) fn values(text: &str) -> Result<BTreeMap<String, String>, String> {
    let problem = |error: serde_saphyr::Error| error.without_snippet().to_string();
    let read: Value = serde_saphyr::from_str(text).map_err(problem)?;
    let Some(read) = read.as_object() else {
        return Ok(BTreeMap::new());
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
    Ok(values)
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
        let values = values(text).unwrap();
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
        assert!(super::values("- a\n").unwrap().is_empty());
        assert!(super::values("a: [\n").is_err());
    }
}
