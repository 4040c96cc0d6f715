//! Ownership of fields through updates and applies (`structured-merge-diff/v6/merge`).

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    Conflict, PatchError, Types, Versions,
    atom::Type,
    fields::{Set, path_text},
    managed::entries::{Entry, Manager, Managers},
    typed::{
        Comparison, compare, field_set, merge, reconcile, remove, validate, with_named_fields,
    },
};
use crate::openapi::builtin;

/// Update and apply of objects of one kind, in the version of one request.
pub(super) struct Updater<'a> {
    pub(super) versions: &'a dyn Versions,
    pub(super) api_version: &'a str,
    /// Fields that the request cannot set and thus cannot own.
    pub(super) resets: Set,
}

/// Failure of an operation.
pub(super) enum Failure {
    Conflicts(Vec<(Manager, Set)>),
    Other(PatchError),
}

impl From<PatchError> for Failure {
    fn from(error: PatchError) -> Self {
        Self::Other(error)
    }
}

impl<'a> Updater<'a> {
    /// Returns the [`Type`] of objects in a version, if the version is served.
    pub(super) fn root(&self, api_version: &str) -> Option<Type<'a>> {
        let types = self.versions.types(api_version)?;
        Some(match types {
            Types::Schema(schema) => Type::Node {
                node: schema.root(),
                preserve: false,
                root: true,
            },
            Types::BuiltIn { group, kind } => {
                let version = api_version.rsplit('/').next().unwrap_or_default();
                match builtin::shape(&builtin::name(group, version, kind)) {
                    Some(shape) => Type::Shape {
                        shape,
                        atomic: false,
                    },
                    None => Type::Deduced,
                }
            }
        })
    }

    /// Returns the [`Set`] of fields that a writer owns after replacing `live` with `new`. Other managers lose changed
    /// and removed fields.
    pub(super) fn update(
        &self,
        live: &Value,
        new: &Value,
        managers: &mut Managers,
    ) -> Result<Set, PatchError> {
        let of = self.request_type()?;
        for object in [live, new] {
            validate(object, of, true).map_err(|message| PatchError::Untyped {
                message: format!(
                    "failed to convert new object ({}) to smd typed: {message}",
                    object_name(object)
                ),
            })?;
        }
        self.reconcile(live, managers)?;
        let comparison = match self.take(live, new, managers, None, true) {
            Ok(comparison) => comparison,
            Err(Failure::Other(error)) => return Err(error),
            Err(Failure::Conflicts(_)) => Comparison::default(), // not when forced
        };
        let set = comparison.modified.union(&comparison.added);
        Ok(set.recursive_difference(&self.resets))
    }

    /// Returns the object with a configuration applied. `managers` are updated even if the object does not change.
    pub(super) fn apply(
        &self,
        live: &Value,
        config: &Value,
        managers: &mut Managers,
        manager: &Manager,
        force: bool,
    ) -> Result<Value, Failure> {
        let of = self.request_type()?;
        let untyped = |what: &str, object: &Value, message: String| {
            let name = object_name(object);
            let message = format!("failed to create typed {what} object ({name}): {message}");
            Failure::Other(PatchError::Untyped { message })
        };
        validate(config, of, false).map_err(|message| untyped("patch", config, message))?;
        validate(live, of, true).map_err(|message| untyped("live", live, message))?;
        self.reconcile(live, managers)?;
        let merged = merge(live, config, of).map_err(|message| PatchError::Untyped {
            message: format!("failed to merge config: {message}"),
        })?;
        let last = managers.get(manager).cloned();
        let set = field_set(config, of).recursive_difference(&self.resets);
        let entry = Entry {
            set,
            api_version: self.api_version.to_owned(),
            applied: true,
            time: None,
        };
        managers.insert(manager.clone(), entry);
        let new = match last.filter(|last| !last.set.is_empty()) {
            Some(last) => self.prune(&merged, managers, &last)?,
            None => merged.clone(),
        };
        self.take(live, &new, managers, Some(manager), force)?;
        Ok(without_emptied(&new, &merged, Some(config)))
    }

    /// Returns the fields of the applied configuration whose value in `live` is still the applied one.
    pub(super) fn still_as_applied(&self, live: &Value, applied: &Value) -> Option<Set> {
        let of = self.root(self.api_version)?;
        if applied.get("apiVersion").and_then(Value::as_str) != Some(self.api_version) {
            return None;
        }
        validate(live, of, false).ok()?;
        validate(applied, of, false).ok()?;
        let changed = compare(applied, live, of);
        let set = field_set(applied, of);
        Some(
            set.difference(&changed.modified)
                .difference(&changed.added)
                .difference(&changed.removed),
        )
    }

    fn request_type(&self) -> Result<Type<'a>, PatchError> {
        let missing = || PatchError::Untyped {
            message: format!("no corresponding type for {}", self.api_version),
        };
        self.root(self.api_version).ok_or_else(missing)
    }

    /// Converts the object to a version; `None` for a version that is no longer served.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Option<Value>, PatchError> {
        if object.get("apiVersion").and_then(Value::as_str) == Some(api_version) {
            return Ok(Some(object.clone()));
        }
        if self.versions.types(api_version).is_none() {
            return Ok(None);
        }
        let converted = self.versions.convert(object, api_version);
        converted
            .map(Some)
            .map_err(|message| PatchError::Conversion {
                api_version: api_version.to_owned(),
                message,
            })
    }

    /// Adapts the set of every manager to the current schema.
    fn reconcile(&self, live: &Value, managers: &mut Managers) -> Result<(), PatchError> {
        let _ = live;
        managers.retain(|_, entry| self.root(&entry.api_version).is_some());
        for entry in managers.values_mut() {
            if let Some(of) = self.root(&entry.api_version)
                && let Some(set) = reconcile(&entry.set, of)
            {
                entry.set = set;
            }
        }
        Ok(())
    }

    /// Removes the fields that differ between `old` and `new` from all managers but `workflow`. Without `force`, fails
    /// with the owners of such fields.
    fn take(
        &self,
        old: &Value,
        new: &Value,
        managers: &mut Managers,
        workflow: Option<&Manager>,
        force: bool,
    ) -> Result<Comparison, Failure> {
        let mut comparisons: BTreeMap<String, Option<Comparison>> = BTreeMap::new();
        let comparison = compare(old, new, self.request_type()?);
        comparisons.insert(
            self.api_version.to_owned(),
            Some(self.without_resets(comparison)),
        );
        let mut conflicts = Vec::new();
        let mut rest: BTreeMap<Manager, Option<Set>> = BTreeMap::new();
        for (manager, entry) in managers
            .iter()
            .filter(|(manager, _)| Some(*manager) != workflow)
        {
            if !comparisons.contains_key(&entry.api_version) {
                let comparison = self.compare_in(old, new, &entry.api_version)?;
                comparisons.insert(entry.api_version.clone(), comparison);
            }
            let Some(Some(comparison)) = comparisons.get(&entry.api_version) else {
                rest.insert(manager.clone(), None);
                continue;
            };
            let changed = comparison.modified.union(&comparison.added);
            let conflict = entry.set.intersection(&changed);
            if !conflict.is_empty() {
                conflicts.push((manager.clone(), conflict.clone()));
            }
            let set = entry
                .set
                .difference(&conflict)
                .difference(&comparison.removed);
            rest.insert(manager.clone(), Some(set));
        }
        if !force && !conflicts.is_empty() {
            return Err(Failure::Conflicts(conflicts));
        }
        managers.retain(|manager, entry| match rest.remove(manager) {
            None => !entry.set.is_empty(),
            Some(None) => false,
            Some(Some(set)) => {
                entry.set = set;
                !entry.set.is_empty()
            }
        });
        Ok(comparisons
            .remove(self.api_version)
            .flatten()
            .unwrap_or_default())
    }

    fn compare_in(
        &self,
        old: &Value,
        new: &Value,
        api_version: &str,
    ) -> Result<Option<Comparison>, PatchError> {
        let (Some(old), Some(new), Some(of)) = (
            self.convert(old, api_version)?,
            self.convert(new, api_version)?,
            self.root(api_version),
        ) else {
            return Ok(None);
        };
        Ok(Some(self.without_resets(compare(&old, &new, of))))
    }

    fn without_resets(&self, comparison: Comparison) -> Comparison {
        Comparison {
            added: comparison.added.recursive_difference(&self.resets),
            modified: comparison.modified.recursive_difference(&self.resets),
            removed: comparison.removed.recursive_difference(&self.resets),
        }
    }

    /// Removes fields of the manager's last apply without any owner now, the manager itself included.
    fn prune(
        &self,
        merged: &Value,
        managers: &Managers,
        last: &Entry,
    ) -> Result<Value, PatchError> {
        let version = last.api_version.as_str();
        let (Some(merged_then), Some(of)) = (self.convert(merged, version)?, self.root(version))
        else {
            return Ok(merged.clone());
        };
        let last_set = with_named_fields(&last.set, of);
        let mut pruned = remove(&merged_then, &last_set, of);
        let mut owned: BTreeMap<&str, Set> = BTreeMap::new();
        for entry in managers.values() {
            let set = owned.entry(&entry.api_version).or_default();
            *set = set.union(&entry.set);
        }
        // The version of the last apply comes first: it has the fields that conversion requires.
        let first = owned.remove_entry(version);
        for (version, owned) in first.into_iter().chain(owned) {
            pruned = self.add_back_owned(&merged_then, pruned, version, &owned)?;
        }
        let pruned = self.convert(&pruned, version)?.unwrap_or(pruned);
        // Only fields that this manager applied may be removed; fields without a manager stay.
        let before = with_named_fields(&field_set(&merged_then, of), of);
        let after = with_named_fields(&field_set(&pruned, of), of);
        let gone = before.difference(&after).intersection(&last_set);
        let result = remove(&merged_then, &gone, of);
        Ok(self.convert(&result, self.api_version)?.unwrap_or(result))
    }

    fn add_back_owned(
        &self,
        merged: &Value,
        pruned: Value,
        version: &str,
        owned: &Set,
    ) -> Result<Value, PatchError> {
        let (Some(merged), Some(of)) = (self.convert(merged, version)?, self.root(version)) else {
            return Ok(pruned);
        };
        let Some(pruned) = self.convert(&pruned, version)? else {
            return Ok(pruned);
        };
        let all = with_named_fields(&field_set(&merged, of), of);
        let kept = with_named_fields(&field_set(&pruned, of), of);
        let owned = with_named_fields(owned, of);
        Ok(remove(&merged, &all.difference(&kept.union(&owned)), of))
    }
}

/// Returns the error for conflicts, sorted by manager and path.
pub(super) fn conflicts(mut found: Vec<(Manager, Set)>) -> PatchError {
    found.sort_by(|(a, _), (b, _)| a.compare_printed(b));
    let mut all = Vec::new();
    for (manager, set) in found {
        let name = manager.printed();
        for path in set.paths() {
            all.push(Conflict {
                manager: name.clone(),
                field: path_text(&path),
            });
        }
    }
    PatchError::Conflicts(all)
}

/// Removes fields that became null by removal: Go writes them as null, and the next decoder drops them. Nulls and empty
/// values of the configuration itself stay, since the same apply would add them again the next time.
fn without_emptied(value: &Value, before: &Value, config: Option<&Value>) -> Value {
    let (Value::Object(fields), Value::Object(before)) = (value, before) else {
        return value.clone();
    };
    let set = |name: &str| config.and_then(|config| config.get(name));
    let mut kept = serde_json::Map::new();
    for (name, before) in before {
        let value = match fields.get(name) {
            Some(value) if before.is_null() || !value.is_null() => {
                Some(without_emptied(value, before, set(name)))
            }
            _ => set(name).filter(|set| is_empty(set)).cloned(),
        };
        kept.extend(value.map(|value| (name.clone(), value)));
    }
    for (name, value) in fields
        .iter()
        .filter(|(name, _)| !before.contains_key(*name))
    {
        kept.insert(name.clone(), value.clone());
    }
    Value::Object(kept)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        value => value.is_null(),
    }
}

/// Formats the object as in messages: `default/foo; example.com/v1, Kind=Foo`.
fn object_name(object: &Value) -> String {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let api_version = text("/apiVersion");
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!(
        "{}/{}; {slash}{api_version}, Kind={}",
        text("/metadata/namespace"),
        text("/metadata/name"),
        text("/kind")
    )
}
