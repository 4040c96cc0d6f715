//! Defaulting and validation beyond schemas, dispatched by API group and kind.
//!
//! Callers are the embedded API server (in process) and the admission webhooks. Objects are in the stored version:
//! v1beta2, or v1alpha1 for OpenStack.

use serde_json::Value;

use crate::change::Change;
pub use crate::change::FieldError;

mod decode;
pub mod deletion;

/// Further object needed for a [`Review`], such as the class of a Cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelatedObject {
    /// Group and version.
    pub api_version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural of the kind.
    pub plural: &'static str,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Write request for an object.
#[derive(Clone, Copy, Debug)]
pub struct Review<'a> {
    /// Object in the form to be stored.
    pub object: &'a Value,
    /// Stored object, on an update.
    pub old: Option<&'a Value>,
    /// True for a dry run.
    pub dry_run: bool,
}

impl<'a> Review<'a> {
    /// True if only metadata or status change.
    fn keeps_spec(&self) -> bool {
        let Some(old) = self.old else { return false };
        let same = |old: &Value| without_empty(&old["spec"]) == without_empty(&self.object["spec"]);
        same(old) || same(&defaulted(old))
    }

    /// True if the object is being deleted: then the spec has no more effect.
    fn is_deleting(&self) -> bool {
        let deleted = self.object.pointer("/metadata/deletionTimestamp");
        self.old.is_some() && deleted.is_some_and(|time| !time.is_null())
    }

    /// True if the rules of the spec apply: on a creation, and on an update that changes the spec.
    pub fn judges_spec(&self) -> bool {
        !self.is_deleting() && !self.keeps_spec()
    }

    /// Write request in the form for validation by the groups.
    pub(crate) fn change(&self) -> Change<'a> {
        Change {
            object: self.object,
            old: self.old,
            changed_from: self.old.filter(|old| decode::problem(old).is_none()),
            judges_spec: self.judges_spec(),
            dry_run: self.dry_run,
        }
    }
}

/// Stored object with today's defaults: defaults may be newer than the object.
fn defaulted(old: &Value) -> Value {
    let mut defaulted = old.clone();
    default_object(&mut defaulted, Some(old));
    defaulted
}

/// Value without nulls and empty objects and lists, since a conversion may add or drop those.
fn without_empty(value: &Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(members) => {
            let members = members.iter();
            let kept = members.map(|(name, value)| (name.clone(), without_empty(value)));
            Value::Object(kept.filter(|(_, value)| !is_empty(value)).collect())
        }
        Value::Array(items) => items.iter().map(without_empty).collect(),
        scalar => scalar.clone(),
    }
}

/// Sets the defaults of Cluster API's webhooks. `old` is the stored object on an update.
pub fn default_object(object: &mut Value, old: Option<&Value>) {
    crate::core::admission::default_object(object, old);
    crate::addons::admission::default_object(object);
    crate::bootstrap::admission::default_object(object, old);
    crate::controlplane::admission::default_object(object, old);
}

/// Validates everything beyond schemas: types for the controllers, relations between fields, and immutable fields.
///
/// An update is validated by its changes. A write of metadata or status is valid with any spec; so is a write to an
/// object under deletion, unless the object becomes undecodable. Errors in the stored object are ignored too, so that a
/// new rule never blocks an older object.
/// # Errors
/// All [`FieldError`]s of the object.
pub fn validate(review: Review<'_>) -> Result<(), Vec<FieldError>> {
    let mut errors = problems(review);
    if let Some(old) = review.old.filter(|_| !errors.is_empty()) {
        let stored = defaulted(old);
        let known = problems(Review {
            object: &stored,
            old: None,
            dry_run: review.dry_run,
        });
        errors.retain(|error| {
            let remains = |known: &FieldError| is_same(known, &stored, error, review.object);
            !known.iter().any(remains)
        });
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors)
    }
}

fn problems(review: Review<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if !review.keeps_spec() {
        errors.extend(decode::problem(review.object));
    }
    let change = review.change();
    if change.judges_spec {
        errors.extend(crate::core::admission::validate(change));
        errors.extend(crate::addons::admission::validate(change));
        errors.extend(crate::ipam::admission::validate(change));
        errors.extend(crate::bootstrap::admission::validate(change));
        errors.extend(crate::controlplane::admission::validate(change));
        errors.extend(crate::openstack::admission::validate(change));
    }
    errors.extend(crate::infra::admission::validate(change));
    errors
}

/// True for the same error: the same message about the same value of the same field, possibly at another index of a
/// list.
fn is_same(known: &FieldError, old: &Value, error: &FieldError, object: &Value) -> bool {
    known.message == error.message
        && without_indices(&known.path) == without_indices(&error.path)
        && value_at(old, &known.path) == value_at(object, &error.path)
}

/// Path without indices: `ports[2].tags` as `ports[].tags`.
fn without_indices(path: &str) -> String {
    let mut inside = false;
    let kept = path.chars().filter(|letter| {
        match letter {
            '[' => inside = true,
            ']' => inside = false,
            _ => return !inside,
        }
        true
    });
    kept.collect()
}

/// Value at a path such as `spec.ports[2].tags`.
fn value_at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split(['.', '[']).try_fold(object, |at, step| {
        match step.strip_suffix(']').map(str::parse::<usize>) {
            Some(Ok(index)) => at.get(index),
            _ => at.get(step),
        }
    })
}

#[cfg(test)]
pub(crate) mod tests;
