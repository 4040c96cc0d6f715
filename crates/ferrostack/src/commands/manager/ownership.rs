//! Field ownership of webhook addresses, for the field manager of the manifests.
//!
//! The manifests contain a Service. A manager with `--webhook-url` replaces the Service by a URL, and the API server
//! records the manager as the owner of the field. When the manifests are applied again by server-side apply, the
//! Service is added while the URL of another owner stays, and the API server rejects the combination ("exactly one of
//! url or service is required"). If the field manager of the manifests also owns the URL, applying replaces the URL by
//! the Service, and the manager writes the URL again.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde_json::{Map, Value};

const PARENT: &str = "f:clientConfig";
const FIELD: &str = "f:url";

/// Transfers the ownership of URLs to the field managers that applied the webhooks, in [`ManagedFieldsEntry`]s.
pub(super) fn give_back(entries: &mut [ManagedFieldsEntry]) {
    let is_applied = |entry: &ManagedFieldsEntry| entry.operation.as_deref() == Some("Apply");
    let mut webhooks = Vec::new();
    for entry in entries.iter().filter(|entry| !is_applied(entry)) {
        if let Some(fields) = &entry.fields_v1 {
            find(&fields.0, &mut Vec::new(), &mut webhooks);
        }
    }
    for webhook in webhooks {
        let mut given = false;
        for entry in entries.iter_mut().filter(|entry| is_applied(entry)) {
            let fields = entry.fields_v1.as_mut().map(|fields| &mut fields.0);
            if let Some(Value::Object(webhook)) = fields.and_then(|fields| at(fields, &webhook)) {
                let config = webhook
                    .entry(PARENT)
                    .or_insert_with(|| Value::Object(Map::new()));
                config[FIELD] = Value::Object(Map::new());
                given = true;
            }
        }
        for entry in entries
            .iter_mut()
            .filter(|entry| given && !is_applied(entry))
        {
            if let Some(fields) = &mut entry.fields_v1 {
                remove(&mut fields.0, &webhook);
            }
        }
    }
}

/// Paths of all fields with a `clientConfig` that has a URL.
fn find(fields: &Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    let Some(members) = fields.as_object() else {
        return;
    };
    if members
        .get(PARENT)
        .is_some_and(|config| config.get(FIELD).is_some())
    {
        found.push(path.clone());
    }
    for (name, inner) in members {
        path.push(name.clone());
        find(inner, path, found);
        path.pop();
    }
}

fn at<'a>(fields: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    path.iter().try_fold(fields, |at, name| at.get_mut(name))
}

/// Removes the URL of the webhook at `path`, and parents that become empty: `{}` would own the whole field.
fn remove(fields: &mut Value, path: &[String]) {
    let Some(members) = fields.as_object_mut() else {
        return;
    };
    let (name, rest) = match path {
        [] => (PARENT, None),
        [name, rest @ ..] => (name.as_str(), Some(rest)),
    };
    let Some(inner) = members.get_mut(name) else {
        return;
    };
    match (rest, inner.as_object_mut()) {
        (Some(rest), _) => remove(inner, rest),
        (None, Some(config)) => drop(config.remove(FIELD)),
        (None, None) => {}
    }
    if inner.as_object().is_some_and(Map::is_empty) {
        members.remove(name);
    }
}
