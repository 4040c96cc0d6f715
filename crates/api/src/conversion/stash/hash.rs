//! Short hash of a JSON value, independent of the order of fields.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Hash as twelve hexadecimal digits.
pub(super) fn hash(value: &Value) -> String {
    let mut digest = Sha256::new();
    feed(value, &mut digest);
    text(digest)
}

/// First digits of a digest.
pub(super) fn text(digest: Sha256) -> String {
    let bytes = digest.finalize();
    bytes
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn feed(value: &Value, digest: &mut Sha256) {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<_> = fields.keys().collect();
            names.sort();
            digest.update("{");
            for name in names {
                digest.update(Value::from(name.as_str()).to_string());
                feed(&fields[name], digest);
            }
            digest.update("}");
        }
        Value::Array(items) => {
            digest.update("[");
            items.iter().for_each(|item| feed(item, digest));
            digest.update("]");
        }
        plain => {
            digest.update(plain.to_string());
            digest.update(",");
        }
    }
}
