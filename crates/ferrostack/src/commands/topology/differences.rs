//! Differences between two states of a namespace. Pure.

use std::collections::{BTreeMap, BTreeSet};

use api::names::CLUSTER_NAME_LABEL;
use serde_json::{Value, json};

/// Objects by kind and name.
pub(crate) type Objects = BTreeMap<(String, String), Value>;

/// Change of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Created,
    Modified,
    Deleted,
}

impl Action {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
        }
    }
}

/// Changed object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) action: Action,
    /// Cluster of the object.
    pub(crate) cluster: Option<String>,
    /// Paths of fields of a modified object.
    pub(crate) fields: Vec<String>,
}

impl Difference {
    pub(crate) fn json(&self, namespace: &str) -> Value {
        json!({
            "namespace": namespace,
            "kind": self.kind,
            "name": self.name,
            "action": self.action.as_str(),
            "fields": self.fields,
        })
    }
}

/// Created, modified and deleted objects, by kind and name, as [`Difference`]s.
pub(crate) fn differences(before: &Objects, after: &Objects) -> Vec<Difference> {
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let mut found = Vec::new();
    for key in keys {
        let old = before.get(key);
        let new = after.get(key).filter(|object| !is_deleted(object));
        let (action, fields) = match (old, new) {
            (Some(old), Some(new)) => {
                let mut fields = Vec::new();
                for part in ["metadata.labels", "metadata.annotations", "spec"] {
                    let pointer = format!("/{}", part.replace('.', "/"));
                    let (old, new) = (old.pointer(&pointer), new.pointer(&pointer));
                    compare(
                        part,
                        old.unwrap_or(&Value::Null),
                        new.unwrap_or(&Value::Null),
                        &mut fields,
                    );
                }
                (Action::Modified, fields)
            }
            (None, Some(_)) => (Action::Created, Vec::new()),
            (Some(_), None) => (Action::Deleted, Vec::new()),
            (None, None) => continue,
        };
        if action == Action::Modified && fields.is_empty() {
            continue;
        }
        found.push(Difference {
            kind: key.0.clone(),
            name: key.1.clone(),
            action,
            cluster: new.or(old).and_then(|object| cluster_of(key, object)),
            fields,
        });
    }
    found
}

fn is_deleted(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

fn cluster_of((kind, name): &(String, String), object: &Value) -> Option<String> {
    if kind == "Cluster" {
        return Some(name.clone());
    }
    let label = &object["metadata"]["labels"][CLUSTER_NAME_LABEL];
    label.as_str().map(str::to_owned)
}

/// Paths with a difference between two values: fields of objects, and otherwise the value itself.
fn compare(path: &str, old: &Value, new: &Value, found: &mut Vec<String>) {
    match (old, new) {
        _ if old == new => {}
        (Value::Object(old), Value::Object(new)) => {
            let names: BTreeSet<_> = old.keys().chain(new.keys()).collect();
            for name in names {
                let (old, new) = (old.get(name), new.get(name));
                let path = format!("{path}.{name}");
                compare(
                    &path,
                    old.unwrap_or(&Value::Null),
                    new.unwrap_or(&Value::Null),
                    found,
                );
            }
        }
        _ => found.push(path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(all: Value) -> Objects {
        let all = all.as_array().unwrap().iter();
        let key = |it: &Value| {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            (text(&it["kind"]), text(&it["metadata"]["name"]))
        };
        all.map(|it| (key(it), it.clone())).collect()
    }

    #[test]
    fn objects_are_created_modified_and_deleted() {
        let labels = json!({ CLUSTER_NAME_LABEL: "demo" });
        let deployment = |name: &str, replicas: i32, deleted: Value| {
            json!({ "kind": "MachineDeployment", "metadata": { "name": name, "labels": labels, "deletionTimestamp": deleted },
                "spec": { "replicas": replicas, "kept": true } })
        };
        let none = Value::Null;
        let before = objects(json!([
            deployment("a", 1, none.clone()),
            deployment("b", 1, none.clone()),
            deployment("c", 1, none.clone()),
        ]));
        let after = objects(json!([
            deployment("a", 2, none.clone()),
            deployment("b", 1, none.clone()),
            deployment("c", 1, json!("now")),
            deployment("d", 1, none),
        ]));
        let found: Vec<_> = differences(&before, &after)
            .into_iter()
            .map(|it| (it.name, it.action, it.fields, it.cluster))
            .collect();
        let demo = || Some("demo".to_owned());
        assert_eq!(
            found,
            [
                (
                    "a".to_owned(),
                    Action::Modified,
                    vec!["spec.replicas".to_owned()],
                    demo()
                ),
                ("c".to_owned(), Action::Deleted, vec![], demo()),
                ("d".to_owned(), Action::Created, vec![], demo()),
            ]
        );
    }
}
