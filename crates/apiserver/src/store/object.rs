//! Stored object: JSON, and the fields for lists, watches and the collector.

use std::io::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;

use super::packing::Packable;

/// One revision of one object.
#[derive(Debug)]
pub(crate) struct Object {
    /// Revision of the write: `metadata.resourceVersion`.
    pub(crate) revision: u64,
    /// `namespace/name`, or `name`.
    pub(crate) key: Arc<str>,
    /// Whole object as JSON in the stored version.
    body: Packable,
    /// Fields for use without parsing the JSON.
    pub(crate) facts: Facts,
    /// [`Object`] as written, if its form differs under a schema changed since.
    written: Option<Arc<Object>>,
}

/// Fields for use without parsing the JSON.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Facts {
    pub(crate) api_version: Box<str>,
    pub(crate) uid: Arc<str>,
    /// `metadata.labels`, or null.
    pub(crate) labels: Value,
    /// Uids in `metadata.ownerReferences`.
    pub(crate) owners: Vec<Arc<str>>,
    /// `metadata.finalizers`.
    pub(crate) finalizers: Box<[Box<str>]>,
    /// True if `metadata.deletionTimestamp` is set.
    pub(crate) deleting: bool,
}

impl Object {
    /// Whole object as JSON in the stored version.
    pub(crate) fn json(&self) -> Bytes {
        self.body.bytes()
    }

    /// Length of the JSON in bytes.
    pub(crate) fn length(&self) -> usize {
        self.body.length()
    }

    /// Object as a value. Serialised from a value, so parsing cannot fail.
    pub(crate) fn value(&self) -> Value {
        serde_json::from_slice(&self.json()).unwrap_or(Value::Null)
    }

    /// Same object in less memory, if possible.
    pub(crate) fn packed(&self) -> Self {
        Self {
            revision: self.revision,
            key: Arc::clone(&self.key),
            body: self.body.packed(),
            facts: self.facts.clone(),
            written: self.written.clone(),
        }
    }

    /// Object as written.
    pub(crate) fn written(self: &Arc<Self>) -> &Arc<Self> {
        self.written.as_ref().unwrap_or(self)
    }

    /// True if the object still has its written form.
    pub(crate) fn is_as_written(&self) -> bool {
        self.written.is_none()
    }

    /// Same revision in the form of a changed schema.
    pub(crate) fn converted_to(self: &Arc<Self>, value: &Value) -> Self {
        Self {
            written: Some(Arc::clone(self.written())),
            ..Draft::new(value).at(self.revision, Arc::clone(&self.key))
        }
    }

    pub(crate) fn namespace(&self) -> &str {
        self.key
            .split_once('/')
            .map_or("", |(namespace, _)| namespace)
    }

    pub(crate) fn name(&self) -> &str {
        self.key.split_once('/').map_or(&self.key, |(_, name)| name)
    }

    /// Object read back from disk.
    pub(crate) fn load(revision: u64, key: Arc<str>, bytes: Vec<u8>) -> Option<Self> {
        let value: Value = serde_json::from_slice(&bytes).ok()?;
        let facts = Facts::from_value(&value);
        Some(Self {
            revision,
            key,
            body: Packable::from(Bytes::from(bytes)),
            facts,
            written: None,
        })
    }
}

impl Facts {
    pub(crate) fn has_finalizer(&self, wanted: &str) -> bool {
        self.finalizers.iter().any(|name| **name == *wanted)
    }

    fn from_value(value: &Value) -> Self {
        let metadata = &value["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self {
            api_version: text(&value["apiVersion"]).into(),
            uid: text(&metadata["uid"]).into(),
            labels: metadata["labels"].clone(),
            owners: metadata["ownerReferences"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|owner| text(&owner["uid"]).into())
                .collect(),
            finalizers: metadata["finalizers"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|finalizer| finalizer.as_str().map(Box::from))
                .collect(),
            deleting: !metadata["deletionTimestamp"].is_null(),
        }
    }
}

/// Object without a revision yet: the JSON before and after the number.
#[derive(Debug)]
pub(crate) struct Draft {
    head: Vec<u8>,
    tail: Vec<u8>,
    facts: Facts,
}

impl Draft {
    /// Serialises everything but the revision, so that only copying is left under the lock.
    /// [`gate::pass`](super::gate::pass) is the only way to create a draft of an object.
    pub(super) fn new(value: &Value) -> Self {
        let mut head = Vec::with_capacity(512);
        head.push(b'{');
        for field in ["apiVersion", "kind"] {
            if let Some(text) = value.get(field) {
                member(&mut head, field, text);
                head.push(b',');
            }
        }
        head.extend_from_slice(b"\"metadata\":{");
        for (name, field) in value["metadata"].as_object().into_iter().flatten() {
            if name != "resourceVersion" {
                member(&mut head, name, field);
                head.push(b',');
            }
        }
        head.extend_from_slice(b"\"resourceVersion\":\"");
        let mut tail = Vec::with_capacity(512);
        tail.extend_from_slice(b"\"}");
        for (name, field) in value.as_object().into_iter().flatten() {
            if !matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                tail.push(b',');
                member(&mut tail, name, field);
            }
        }
        tail.push(b'}');
        Self {
            head,
            tail,
            facts: Facts::from_value(value),
        }
    }

    /// True if the object is being deleted.
    pub(super) fn is_deleting(&self) -> bool {
        self.facts.deleting
    }

    /// Size of the object in bytes, without the digits of its revision.
    pub(super) fn length(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    /// Object as it will be written, at revision 0.
    pub(super) fn preview(&self) -> Vec<u8> {
        [&*self.head, b"0", &*self.tail].concat()
    }

    /// [`Object`] at `revision`.
    pub(crate) fn at(self, revision: u64, key: Arc<str>) -> Object {
        let mut bytes = Vec::with_capacity(self.head.len() + self.tail.len() + 20);
        bytes.extend_from_slice(&self.head);
        // Writing to a vector cannot fail.
        let _ = write!(bytes, "{revision}");
        bytes.extend_from_slice(&self.tail);
        Object {
            revision,
            key,
            body: Packable::from(Bytes::from(bytes)),
            facts: self.facts,
            written: None,
        }
    }
}

/// JSON of an object in another form than the stored one, at `revision`.
pub(crate) fn json_at(value: &Value, revision: u64) -> Bytes {
    Draft::new(value).at(revision, Arc::from("")).json()
}

fn member(out: &mut Vec<u8>, name: &str, value: &Value) {
    // Writing a value to a vector cannot fail.
    let _ = serde_json::to_writer(&mut *out, name);
    out.push(b':');
    let _ = serde_json::to_writer(&mut *out, value);
}

/// Change of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Added,
    Modified,
    Deleted,
}

impl Change {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// Write, for watches.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) change: Change,
    /// [`Object`] after the write; on a deletion, the last state with the revision of the deletion.
    pub(crate) object: Arc<Object>,
    /// [`Object`] before the write.
    pub(crate) previous: Option<Arc<Object>>,
    frame: Mutex<Option<Bytes>>,
}

impl Event {
    pub(crate) fn new(change: Change, object: Arc<Object>, previous: Option<Arc<Object>>) -> Self {
        Self {
            change,
            object,
            previous,
            frame: Mutex::default(),
        }
    }

    /// Line of a watch stream, serialised once for all watchers of the stored version.
    pub(crate) fn frame(&self) -> Bytes {
        let mut shared = self.frame.lock();
        let line = || frame(self.change.as_str(), &self.object.json());
        shared.get_or_insert_with(line).clone()
    }

    /// Length of the line in bytes, if kept.
    pub(super) fn line_length(&self) -> usize {
        self.frame.lock().as_ref().map_or(0, Bytes::len)
    }

    /// Frees the line, a copy of the object. A watcher serialises it again when needed.
    pub(super) fn forget_frame(&self) {
        *self.frame.lock() = None;
    }
}

/// One line of a watch stream.
pub(crate) fn frame(kind: &str, object: &[u8]) -> Bytes {
    let mut line = Vec::with_capacity(object.len() + 40);
    line.extend_from_slice(b"{\"type\":\"");
    line.extend_from_slice(kind.as_bytes());
    line.extend_from_slice(b"\",\"object\":");
    line.extend_from_slice(object);
    line.extend_from_slice(b"}\n");
    line.into()
}

#[cfg(test)]
mod tests;
