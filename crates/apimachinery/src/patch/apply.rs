//! Server-side apply (KEP-555; `apimachinery/pkg/util/managedfields`).

use serde_json::Value;

use super::{
    PatchError,
    fields::Set,
    managed::{
        self, Writer,
        entries::{self, Entry, Manager, Managers},
    },
    updater::{Failure, Updater, conflicts},
};
use crate::schema::{MAX_DEPTH, Schema, go_json, too_deep};

/// Annotation of client-side apply.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Maximum size in bytes of all annotations of an object.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// Source of the merge rules of lists.
#[derive(Clone, Copy, Debug)]
pub enum Types<'a> {
    /// [`Schema`] of a custom resource.
    Schema(&'a Schema),
    /// Descriptions of built-in kinds.
    BuiltIn {
        /// API group, empty for core.
        group: &'a str,
        /// Kind.
        kind: &'a str,
    },
}

/// Versions of a kind. `managedFields` may refer to versions other than that of the request.
pub trait Versions {
    /// Returns the merge rules of `api_version` (`group/version`), or `None` for a version that is no longer served.
    fn types(&self, api_version: &str) -> Option<Types<'_>>;
    /// Converts the object to `api_version`.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String>;
    /// Returns the object to compare a new object with. For a built-in kind, the object has the fields that the Go type
    /// writes when empty.
    fn blank(&self, _api_version: &str) -> Option<Value> {
        None
    }
    /// Returns fields (dotted paths) that a request to `subresource` cannot change and thus cannot own
    /// (kube-apiserver's `GetResetFields`). The default is for kinds with a status subresource; for the empty
    /// subresource of other kinds, implementations return nothing.
    fn resets(&self, api_version: &str, subresource: &str) -> &[&str] {
        match (subresource, self.types(api_version)) {
            ("", _) => &["status"],
            ("status", Some(Types::BuiltIn { .. })) => &["spec"],
            ("status", _) => &["metadata", "spec"],
            _ => &[],
        }
    }
}

/// Manager and options of an apply.
#[derive(Clone, Copy, Debug)]
pub struct Applier<'a> {
    /// `fieldManager` of the query.
    pub manager: &'a str,
    /// True to take over fields that other managers own.
    pub force: bool,
    /// `status`, `scale`, or empty.
    pub subresource: &'a str,
    /// `apiVersion` of the request.
    pub api_version: &'a str,
    /// Now, RFC 3339 in whole seconds, as in `2026-11-20T10:00:00Z`.
    pub time: &'a str,
}

/// Applies a configuration to the live object, and returns the object to store, with updated `managedFields`. `live` is
/// in the version of the request; for a create it has only `apiVersion`, `kind` and `metadata.name`. When nothing
/// changes, the result equals `live`, including the times in `managedFields`.
///
///
/// # Errors
/// [`PatchError::Conflicts`] for fields of other managers, unless [`Applier::force`] is set; other errors for an
/// invalid configuration.
pub fn apply(
    live: &Value,
    config: &Value,
    applier: Applier<'_>,
    versions: &dyn Versions,
) -> Result<Value, PatchError> {
    if too_deep(live) || too_deep(config) {
        let message = format!("objects must not be nested deeper than {MAX_DEPTH}");
        return Err(PatchError::Malformed { message });
    }
    check(config, applier.api_version)?;
    let mut managers = match entries::of(live) {
        Some(recorded) => entries::decode(recorded).map_err(|e| PatchError::Untyped {
            message: format!("failed to decode managed fields: {e}"),
        })?,
        None => Managers::new(),
    };
    let live = entries::without(live);
    if managers.is_empty() {
        claim_existing(&live, applier, versions, &mut managers)?;
    }
    let updater = Updater {
        versions,
        api_version: applier.api_version,
        resets: managed::resets(versions, applier.api_version, applier.subresource),
    };
    let manager = Manager::applier(applier.manager, applier.subresource);
    let previous = managers.clone();
    let mut result = match updater.apply(&live, config, &mut managers, &manager, applier.force) {
        Ok(result) => result,
        Err(Failure::Other(error)) => return Err(error),
        Err(Failure::Conflicts(found)) => {
            let found = without_client_side(found, &live, applier, &updater);
            if !found.is_empty() {
                return Err(conflicts(found));
            }
            managers = previous.clone();
            match updater.apply(&live, config, &mut managers, &manager, true) {
                Ok(result) => result,
                Err(Failure::Other(error)) => return Err(error),
                Err(Failure::Conflicts(found)) => return Err(conflicts(found)),
            }
        }
    };
    let changed = result != live;
    finish_entry(
        &mut managers,
        &manager,
        previous.get(&manager),
        changed.then_some(applier.time),
    );
    if applier.manager == "kubectl" {
        update_last_applied(&mut result, config);
    }
    entries::put(&mut result, &managers);
    Ok(result)
}

fn check(config: &Value, api_version: &str) -> Result<(), PatchError> {
    let malformed = |message: String| Err(PatchError::Malformed { message });
    if !config.is_object() {
        return malformed("an apply patch must be an object".to_owned());
    }
    let given = config
        .get("apiVersion")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if given != api_version {
        return malformed(format!(
            "Incorrect version specified in apply patch. Specified patch version: {given}, \
             expected: {api_version}"
        ));
    }
    if entries::of(config).is_some() {
        return malformed("metadata.managedFields must be nil".to_owned());
    }
    Ok(())
}

/// Assigns the fields of an object without `managedFields` to the manager `before-first-apply`.
fn claim_existing(
    live: &Value,
    applier: Applier<'_>,
    versions: &dyn Versions,
    managers: &mut Managers,
) -> Result<(), PatchError> {
    let writer = Writer {
        manager: "before-first-apply",
        subresource: applier.subresource,
        api_version: applier.api_version,
        time: applier.time,
    };
    managed::record(None, live, writer, versions, managers).map_err(|error| PatchError::Untyped {
        message: format!("failed to create manager for existing fields: {error}"),
    })
}

/// Removes unowned fields from the manager's [`Set`], and keeps the time of the entry if the set is unchanged.
fn finish_entry(
    managers: &mut Managers,
    manager: &Manager,
    previous: Option<&Entry>,
    time: Option<&str>,
) {
    let Some(entry) = managers.get_mut(manager) else {
        return;
    };
    entry.set = entry.set.difference(&managed::never_owned());
    entry.time = match time {
        Some(time) => Some(time.to_owned()),
        None => previous.and_then(|previous| previous.time.clone()),
    };
    if entry.set.is_empty() {
        managers.remove(manager);
    }
}

/// Filters out conflicts with kubectl's client-side apply over equal values: `kubectl apply --server-side` may take
/// such fields over.
fn without_client_side(
    found: Vec<(Manager, Set)>,
    live: &Value,
    applier: Applier<'_>,
    updater: &Updater<'_>,
) -> Vec<(Manager, Set)> {
    if applier.manager != "kubectl" {
        return found;
    }
    let applied = last_applied(live).and_then(|text| serde_json::from_str::<Value>(text).ok());
    let Some(allowed) = applied.and_then(|applied| updater.still_as_applied(live, &applied)) else {
        return found;
    };
    found
        .into_iter()
        .map(|(manager, set)| (manager, set.difference(&allowed)))
        .filter(|(_, set)| !set.is_empty())
        .collect()
}

fn last_applied(object: &Value) -> Option<&str> {
    let annotations = object.get("metadata")?.get("annotations")?;
    annotations
        .get(LAST_APPLIED)?
        .as_str()
        .filter(|text| !text.is_empty())
}

/// Updates the annotation of client-side apply, if the object has one.
fn update_last_applied(object: &mut Value, config: &Value) {
    if last_applied(object).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(Value::Object(annotations)) = config.pointer_mut("/metadata/annotations") {
        annotations.remove(LAST_APPLIED);
    }
    if let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") {
        let text = format!("{}\n", go_json(&config));
        annotations.insert(LAST_APPLIED.to_owned(), Value::from(text));
        let size: usize = annotations
            .iter()
            .map(|(name, value)| name.len() + value.as_str().map_or(0, str::len))
            .sum();
        if size > MAX_ANNOTATIONS {
            annotations.remove(LAST_APPLIED);
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
