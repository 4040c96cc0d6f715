//! Ids of a cloud as names of the script: two clouds have different ids for the same object.

use std::collections::BTreeMap;

use anyhow::bail;
use serde_json::Value;

/// Length of a UUID in text.
const UUID: usize = 36;

/// Names, with the text for each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(BTreeMap<String, String>);

impl Names {
    pub(crate) fn insert(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_owned(), value.to_owned());
    }

    /// Replaces each `$name` in a text.
    pub(crate) fn resolve(&self, text: &str) -> anyhow::Result<String> {
        let mut parts = text.split('$');
        let mut resolved = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            let end = part.find(|c| !is_name(c)).unwrap_or(part.len());
            let (name, rest) = part.split_at(end);
            let Some(value) = self.0.get(name) else {
                bail!("`${name}` in `{text}` is nothing that a step before has kept");
            };
            resolved.push_str(value);
            resolved.push_str(rest);
        }
        Ok(resolved)
    }

    /// Replaces each `$name` in all texts of a value.
    pub(crate) fn resolve_all(&self, value: &Value) -> anyhow::Result<Value> {
        Ok(match value {
            Value::String(text) => Value::String(self.resolve(text)?),
            Value::Array(items) => {
                let items = items.iter().map(|it| self.resolve_all(it));
                Value::Array(items.collect::<anyhow::Result<_>>()?)
            }
            Value::Object(fields) => {
                let fields = fields
                    .iter()
                    .map(|(key, it)| Ok((key.clone(), self.resolve_all(it)?)));
                Value::Object(fields.collect::<anyhow::Result<_>>()?)
            }
            other => other.clone(),
        })
    }

    /// Value with names in place of ids; all ids without a name look alike.
    pub(crate) fn hide(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.hidden(text)),
            Value::Array(items) => items.into_iter().map(|it| self.hide(it)).collect(),
            Value::Object(fields) => {
                let fields = fields.into_iter();
                fields.map(|(key, it)| (key, self.hide(it))).collect()
            }
            other => other,
        }
    }

    fn hidden(&self, mut text: String) -> String {
        for (name, value) in &self.0 {
            // Short values may be ordinary words.
            if value.len() >= 8 {
                text = text.replace(value, &format!("${name}"));
            }
        }
        let mut at = 0;
        while at + UUID <= text.len() {
            if text.get(at..at + UUID).is_some_and(is_uuid) {
                text.replace_range(at..at + UUID, "(id)");
            }
            at += 1;
        }
        text
    }
}

fn is_uuid(text: &str) -> bool {
    text.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_are_names_and_names_ids() {
        let id = "f3554c76-da8f-495d-bb4b-ffe5e5323823";
        let mut names = Names::default();
        names.insert("one", id);
        assert_eq!(
            names.resolve("/volumes/$one/x").unwrap(),
            format!("/volumes/{id}/x")
        );
        assert!(names.resolve("$two").is_err());
        let other = id.replace('f', "a");
        let hidden = names.hide(json!({"id": [id, format!("<{other}>"), 1]}));
        assert_eq!(hidden, json!({"id": ["$one", "<(id)>", 1]}));
        assert_eq!(
            names.hide(json!("Ünïcödé ünïcödé ünïcödé ünïcödé")),
            json!("Ünïcödé ünïcödé ünïcödé ünïcödé")
        );
    }
}
