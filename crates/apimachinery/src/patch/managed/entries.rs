//! Decoding and encoding of the entries of `managedFields`.

use std::{cmp::Ordering, collections::BTreeMap};

use serde_json::{Map, Value, json};

use crate::{patch::fields::Set, schema::go_quote};

/// Managers and their fields.
pub(crate) type Managers = BTreeMap<Manager, Entry>;

/// Key of an entry. The version is part of the key for updates only.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Manager {
    name: String,
    operation: Operation,
    api_version: String,
    subresource: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Operation {
    Apply,
    Update,
}

/// Fields of a manager.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) set: Set,
    pub(crate) api_version: String,
    pub(crate) applied: bool,
    pub(crate) time: Option<String>,
}

impl Manager {
    pub(crate) fn updater(name: &str, api_version: &str, subresource: &str) -> Self {
        Self::new(name, Operation::Update, api_version, subresource)
    }

    pub(crate) fn applier(name: &str, subresource: &str) -> Self {
        Self::new(name, Operation::Apply, "", subresource)
    }

    fn new(name: &str, operation: Operation, api_version: &str, subresource: &str) -> Self {
        let name = if name.is_empty() { "unknown" } else { name };
        Self {
            name: name.to_owned(),
            operation,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }

    /// Orders conflicts in a message: by the JSON form of the managers, where an entry with a subresource comes before
    /// one without.
    pub(crate) fn compare_printed(&self, other: &Self) -> Ordering {
        let key = |m: &Self| (m.name.clone(), m.operation, m.api_version.clone());
        let part = |m: &Self| (m.subresource.is_empty(), m.subresource.clone());
        key(self)
            .cmp(&key(other))
            .then_with(|| part(self).cmp(&part(other)))
    }

    /// Formats the manager as in conflicts: `"kubectl" with subresource "status" using apps/v1`.
    pub(crate) fn printed(&self) -> String {
        let mut text = go_quote(&self.name);
        if !self.subresource.is_empty() {
            text.push_str(&format!(
                " with subresource {}",
                go_quote(&self.subresource)
            ));
        }
        if self.operation == Operation::Update {
            text.push_str(&format!(" using {}", self.api_version));
        }
        text
    }
}

impl Entry {
    /// Returns the time of the last change in seconds since 1970; 0 if unknown.
    pub(crate) fn seconds(&self) -> i64 {
        let time = self
            .time
            .as_deref()
            .and_then(|time| time.parse::<jiff::Timestamp>().ok());
        time.map_or(0, jiff::Timestamp::as_second)
    }
}

/// Returns the entries of an object.
pub(crate) fn of(object: &Value) -> Option<&Value> {
    object
        .pointer("/metadata/managedFields")
        .filter(|entries| !entries.is_null())
}

/// Removes the entries from an object and returns them.
pub(crate) fn take(object: &mut Value) -> Option<Value> {
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    metadata
        .remove("managedFields")
        .filter(|entries| !entries.is_null())
}

/// Returns the object without its entries.
pub(crate) fn without(object: &Value) -> Value {
    let mut object = object.clone();
    take(&mut object);
    object
}

/// True if an update resets `managedFields`: an empty list, or a list of one empty entry.
pub(crate) fn is_reset(entries: &Value) -> bool {
    match entries.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([only]) => only.as_object().is_some_and(Map::is_empty),
        _ => false,
    }
}

/// Decodes the entries into [`Managers`]. The error names the first malformed entry.
pub(crate) fn decode(entries: &Value) -> Result<Managers, String> {
    let Value::Array(entries) = entries else {
        return Err("managedFields must be an array".to_owned());
    };
    let mut managers = Managers::new();
    for (i, entry) in entries.iter().enumerate() {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let operation = match text("operation") {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return Err("operation must be `Apply` or `Update`".to_owned()),
        };
        let api_version = text("apiVersion");
        if api_version.is_empty() {
            return Err("apiVersion must not be empty".to_owned());
        }
        match text("fieldsType") {
            "FieldsV1" => {}
            "" => return Err(format!("missing fieldsType in managed fields entry {i}")),
            other => {
                let quoted = go_quote(other);
                return Err(format!(
                    "invalid fieldsType {quoted} in managed fields entry {i}"
                ));
            }
        }
        let applied = operation == Operation::Apply;
        let manager = Manager {
            name: text("manager").to_owned(),
            operation,
            api_version: if applied {
                String::new()
            } else {
                api_version.to_owned()
            },
            subresource: text("subresource").to_owned(),
        };
        let set = match entry.get("fieldsV1") {
            None | Some(Value::Null) => Set::default(),
            Some(fields) => Set::read(fields).map_err(|e| format!("error decoding set: {e}"))?,
        };
        let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
        managers.insert(
            manager,
            Entry {
                set,
                api_version: api_version.to_owned(),
                applied,
                time,
            },
        );
    }
    Ok(managers)
}

/// Sets the entries of an object, applied ones first, then by time and name.
pub(crate) fn put(object: &mut Value, managers: &Managers) {
    let mut sorted: Vec<(&Manager, &Entry)> = managers.iter().collect();
    sorted.sort_by_key(|(manager, entry)| {
        (
            manager.operation,
            entry.seconds(),
            manager.name.clone(),
            entry.api_version.clone(),
            manager.subresource.clone(),
        )
    });
    let entries: Vec<Value> = sorted
        .into_iter()
        .map(|(m, entry)| write(m, entry))
        .collect();
    let entries = Value::from(entries);
    put_raw(
        object,
        Some(&entries).filter(|entries| *entries != &json!([])),
    );
}

/// Sets entries in encoded form.
pub(crate) fn put_raw(object: &mut Value, entries: Option<&Value>) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    match entries {
        None => {
            if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
                metadata.remove("managedFields");
            }
        }
        Some(entries) => {
            let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
            if let Value::Object(metadata) = metadata {
                metadata.insert("managedFields".to_owned(), entries.clone());
            }
        }
    }
}

fn write(manager: &Manager, entry: &Entry) -> Value {
    let operation = match manager.operation {
        Operation::Apply => "Apply",
        Operation::Update => "Update",
    };
    let mut fields = Map::new();
    let mut set = |name: &str, value: &str| {
        if !value.is_empty() {
            fields.insert(name.to_owned(), Value::from(value));
        }
    };
    set("manager", &manager.name);
    set("operation", operation);
    set("apiVersion", &entry.api_version);
    set("time", entry.time.as_deref().unwrap_or_default());
    set("fieldsType", "FieldsV1");
    set("subresource", &manager.subresource);
    fields.insert("fieldsV1".to_owned(), entry.set.write());
    Value::Object(fields)
}
