//! An answer without what is never the same twice.

use std::sync::LazyLock;

use serde_json::Value;

/// Replaces what differs between two plays by what it is.
#[derive(Default)]
pub(crate) struct Normal {
    /// Saved values, longest first, and what they are shown as.
    names: Vec<(String, String)>,
}

static RULES: LazyLock<Vec<(regex::Regex, &str)>> = LazyLock::new(|| {
    [
        (
            r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            "<uid>",
        ),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", "<microtime>"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "<time>"),
        (
            r"kube-api-access-[a-z0-9]{5}",
            "kube-api-access-<generated>",
        ),
        (r"in record \(\d+\)", "in record (<revision>)"),
        (r"X509SHA256=[0-9a-f]{64}", "X509SHA256=<hash>"),
        (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "<token>"),
        (r"\b10\.(9[6-9]|10\d|11[01])\.\d+\.\d+\b", "<cluster IP>"),
        // The whole object in a message: Go writes its fields in the order of its types.
        (
            r#"Invalid value: "\{.*\}": "#,
            r#"Invalid value: "<object>": "#,
        ),
        (
            r"resource version: \d+ \(\d+\)",
            "resource version: <revision>",
        ),
        (
            r"Too large resource version: \d+, current: \d+",
            "Too large resource version: <revision>, current: <revision>",
        ),
    ]
    .map(|(pattern, name)| (regex::Regex::new(pattern).unwrap(), name))
    .to_vec()
});

impl Normal {
    /// From now on shows a value as `<name>`.
    pub(crate) fn name(&mut self, name: &str, value: &Value) {
        // Digits are a revision, which the rules below know where it is part of a message.
        let named =
            |text: &&str| text.len() >= 5 && !text.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(text) = value.as_str().filter(named) {
            self.names.push((text.to_owned(), format!("<{name}>")));
            self.names
                .sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        }
    }

    /// A value as it is compared.
    pub(crate) fn of(&self, value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let mut normal: serde_json::Map<String, Value> = fields
                    .iter()
                    .map(|(name, value)| (self.text(name), self.field(name, value)))
                    .collect();
                if let (Some(base), Some(name)) = (
                    fields.get("generateName").and_then(Value::as_str),
                    fields.get("name").and_then(Value::as_str),
                ) && name.len() == base.len() + 5
                    && name.starts_with(base)
                {
                    let name = self.text(&format!("{base}<generated>"));
                    normal.insert("name".to_owned(), Value::from(name));
                }
                Value::Object(normal)
            }
            Value::Array(items) => items.iter().map(|item| self.of(item)).collect(),
            Value::String(text) => Value::from(self.text(text)),
            other => other.clone(),
        }
    }

    fn field(&self, name: &str, value: &Value) -> Value {
        match (name, value) {
            ("resourceVersion", Value::String(text)) if !text.is_empty() && text != "0" => {
                Value::from("<revision>")
            }
            // Ages: a play may be slow.
            ("cells", Value::Array(cells)) => cells
                .iter()
                .map(|cell| match cell.as_str() {
                    Some(text) if is_age(text) => Value::from("<age>"),
                    _ => self.of(cell),
                })
                .collect(),
            // Also where the name is a pointer, for steps that compare only parts.
            (name, Value::Array(entries)) if name.ends_with("managedFields") => {
                Value::Array(sorted(entries.iter().map(|entry| self.of(entry)).collect()))
            }
            ("continue", Value::String(text)) if !text.is_empty() => Value::from("<continue>"),
            ("nodePort" | "healthCheckNodePort", Value::Number(_)) => Value::from("<node port>"),
            ("caBundle" | "ca.crt", Value::String(text)) if text.len() > 200 => Value::from("<ca>"),
            _ => self.of(value),
        }
    }

    fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (value, name) in &self.names {
            if text.contains(value) {
                text = text.replace(value, name);
            }
        }
        for (pattern, name) in &*RULES {
            if let std::borrow::Cow::Owned(changed) = pattern.replace_all(&text, *name) {
                text = changed;
            }
        }
        text
    }
}

/// Entries of managedFields by what they are of: the servers sort them by their times in whole seconds first, so that
/// the order tells whether a second went by between two requests.
fn sorted(mut entries: Vec<Value>) -> Vec<Value> {
    entries.sort_by_cached_key(|entry| {
        ["operation", "manager", "subresource", "apiVersion"]
            .map(|field| entry[field].as_str().unwrap_or_default().to_owned())
    });
    entries
}

fn is_age(text: &str) -> bool {
    text.ends_with(['s', 'm', 'h', 'd'])
        && text.starts_with(|first: char| first.is_ascii_digit())
        && text
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, 's' | 'm' | 'h' | 'd'))
}
