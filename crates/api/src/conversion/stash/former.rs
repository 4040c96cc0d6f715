//! Stashes of earlier releases: read, never written.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::hash::{hash, text};
use super::lists::Lists;
use super::path::{Step, insert, remove};

/// Annotation of the infrastructure group.
pub(super) const ANNOTATION: &str = "infrastructure.cluster.x-k8s.io/ferrostack-conversion";

/// Fields with changes by controllers, without effect on entries of the infrastructure group.
const WRITTEN_BY_CONTROLLERS: &[&str] = &["providerID", "controlPlaneEndpoint"];

/// Entries by JSON pointer in the spec. Entries of the infrastructure group have a hash of the sibling scalar fields,
/// entries of other groups a hash of the field after conversion there and back.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entries {
    pub(super) fields: Map<String, Value>,
    pub(super) of_infra: bool,
}

impl Entries {
    pub(super) fn restore(&self, object: &mut Value, lists: &Lists) {
        let Some(converted) = object.get("spec").cloned() else {
            return;
        };
        for (pointer, entry) in &self.fields {
            let now = if self.of_infra {
                let parent = pointer.rsplit_once('/').map(|(parent, _)| parent);
                let parent = parent.and_then(|parent| converted.pointer(parent));
                parent.and_then(Value::as_object).map(hash_of_plain_fields)
            } else {
                converted.pointer(pointer).map(hash)
            };
            if now.as_deref() != entry.get("h").and_then(Value::as_str) {
                continue;
            }
            let mut steps = steps(pointer, &converted);
            steps.insert(0, Step::Member("spec".to_owned()));
            match entry.get("d") {
                Some(value) if lists.admits(object, &steps, value) => {
                    insert(object, &steps, value.clone());
                }
                Some(_) => {}
                None => remove(object, &steps),
            }
        }
    }
}

fn steps(pointer: &str, object: &Value) -> Vec<Step> {
    let mut at = Some(object);
    let mut steps = Vec::new();
    for part in pointer.split('/').skip(1) {
        let name = part.replace("~1", "/").replace("~0", "~");
        let index = at.filter(|value| value.is_array());
        match index.and_then(|_| name.parse().ok()) {
            Some(index) => {
                at = at.and_then(|value| value.get(index));
                steps.push(Step::Element(index));
            }
            None => {
                at = at.and_then(|value| value.get(&name));
                steps.push(Step::Member(name));
            }
        }
    }
    steps
}

fn hash_of_plain_fields(object: &Map<String, Value>) -> String {
    let mut digest = Sha256::new();
    let mut names: Vec<_> = object.keys().collect();
    names.sort();
    for name in names {
        let value = &object[name];
        let plain = !value.is_object() && !value.is_array();
        if plain && !WRITTEN_BY_CONTROLLERS.contains(&name.as_str()) {
            digest.update(format!("{name}={value}\n"));
        }
    }
    text(digest)
}
