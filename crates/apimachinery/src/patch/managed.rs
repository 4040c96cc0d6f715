//! `metadata.managedFields` of writes without server-side apply: create, update and the other patch types
//! (`apimachinery/pkg/util/managedfields`).

pub(crate) mod entries;

use serde_json::Value;

use super::{PatchError, Versions, fields::Set, updater::Updater};
use crate::schema::too_deep;
use entries::{Entry, Manager, Managers};

/// Maximum number of update entries; the oldest ones are merged.
const MAX_UPDATERS: usize = 10;

/// Manager of a write.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// `fieldManager` of the query, or [`default_manager`] of the User-Agent.
    pub manager: &'a str,
    /// `status`, `scale`, or empty.
    pub subresource: &'a str,
    /// `apiVersion` of the request.
    pub api_version: &'a str,
    /// Now, RFC 3339 in whole seconds.
    pub time: &'a str,
}

/// Updates the `managedFields` of `new` for a write by `writer`; `live` is the current object (`None` for a create).
/// Both are in the version of the request. If the fields cannot be tracked, because the object violates the schema or a
/// conversion fails, the write still succeeds and the entries of `live` are kept, as in kube-apiserver.
pub fn update(
    live: Option<&Value>,
    new: &mut Value,
    writer: Writer<'_>,
    versions: &dyn Versions,
) -> Result<(), PatchError> {
    let recorded = live.and_then(entries::of);
    let given = entries::take(new);
    let from_live = || {
        recorded
            .map(entries::decode)
            .and_then(Result::ok)
            .unwrap_or_default()
    };
    let mut managers = match given {
        // Writes to a subresource cannot change `managedFields` directly.
        _ if !writer.subresource.is_empty() => from_live(),
        Some(given) if entries::is_reset(&given) => Managers::new(),
        Some(given) => match entries::decode(&given) {
            Ok(managers) if !managers.is_empty() => managers,
            _ => from_live(),
        },
        None => from_live(),
    };
    let tracked = live.is_none_or(|live| live.pointer("/metadata/uid").is_none());
    if managers.is_empty() && !tracked {
        return Ok(());
    }
    if too_deep(new) || live.is_some_and(too_deep) {
        entries::put_raw(new, recorded);
        return Ok(());
    }
    match record(live, new, writer, versions, &mut managers) {
        Ok(()) => entries::put(new, &managers),
        Err(_) => entries::put_raw(new, recorded),
    }
    Ok(())
}

/// Restores the entries of `stored` if only the times in `new` differ, so that a write without a change is not stored.
/// Call last, once `new` has its defaults and is ready for the store.
pub fn keep_times(new: &mut Value, stored: &Value) {
    let (Some(entries), Some(recorded)) = (entries::of(new), entries::of(stored)) else {
        return;
    };
    if untimed(entries) == untimed(recorded) && entries::without(new) == entries::without(stored) {
        let recorded = recorded.clone();
        entries::put_raw(new, Some(&recorded));
    }
}

/// Returns the entries without times, in an order independent of times.
fn untimed(entries: &Value) -> Vec<Value> {
    let mut entries = entries.as_array().cloned().unwrap_or_default();
    for fields in entries.iter_mut().filter_map(Value::as_object_mut) {
        fields.remove("time");
    }
    entries.sort_by_cached_key(Value::to_string);
    entries
}

/// Returns the field manager of a request without `fieldManager`: the User-Agent up to the first `/`, at most 128
/// bytes.
pub fn default_manager(user_agent: &str) -> &str {
    let name = user_agent.split('/').next().unwrap_or_default();
    let end = (0..=name.len().min(128))
        .rev()
        .find(|end| name.is_char_boundary(*end));
    &name[..end.unwrap_or(0)]
}

/// Records the changes of `writer` between `live` and `new`.
pub(super) fn record(
    live: Option<&Value>,
    new: &Value,
    writer: Writer<'_>,
    versions: &dyn Versions,
    managers: &mut Managers,
) -> Result<(), PatchError> {
    let updater = Updater {
        versions,
        api_version: writer.api_version,
        resets: resets(versions, writer.api_version, writer.subresource),
    };
    let live = match live {
        Some(live) => entries::without(live),
        None => {
            let blank = versions.blank(writer.api_version);
            let mut blank = blank.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
            for name in ["apiVersion", "kind"] {
                if let (Value::Object(fields), Some(value)) = (&mut blank, new.get(name)) {
                    fields.insert(name.to_owned(), value.clone());
                }
            }
            blank
        }
    };
    let set = updater.update(&live, new, managers)?;
    let set = set.difference(&never_owned());
    if !set.is_empty() {
        let manager = Manager::updater(writer.manager, writer.api_version, writer.subresource);
        let set = match managers.get(&manager) {
            Some(previous) => set.union(&previous.set),
            None => set,
        };
        let api_version = writer.api_version.to_owned();
        // kube-apiserver's handler of scales writes entries without a time (`ScaleHandler`).
        let time = (writer.subresource != "scale").then(|| writer.time.to_owned());
        managers.insert(
            manager,
            Entry {
                set,
                api_version,
                applied: false,
                time,
            },
        );
    }
    cap(managers);
    Ok(())
}

/// Returns the fields that the storage of a resource or subresource resets.
pub(super) fn resets(versions: &dyn Versions, api_version: &str, subresource: &str) -> Set {
    let mut set = Set::default();
    for field in versions.resets(api_version, subresource) {
        let path: Vec<_> = field
            .split('.')
            .map(|name| super::fields::Element::Field(name.to_owned()))
            .collect();
        set.insert(&path);
    }
    set
}

/// Returns the fields that no manager owns.
pub(super) fn never_owned() -> Set {
    let mut set = Set::default();
    let field = |name: &str| super::fields::Element::Field(name.to_owned());
    for name in ["apiVersion", "kind", "metadata"] {
        set.insert(&[field(name)]);
    }
    for name in [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ] {
        set.insert(&[field("metadata"), field(name)]);
    }
    set
}

/// Merges the oldest update entries of each version until the limit is met.
fn cap(managers: &mut Managers) {
    let mut updaters: Vec<(i64, Manager)> = managers
        .iter()
        .filter(|(_, entry)| !entry.applied)
        .map(|(manager, entry)| (entry.seconds(), manager.clone()))
        .collect();
    let mut left = updaters.len();
    if left <= MAX_UPDATERS {
        return;
    }
    updaters.sort();
    let mut first_of: std::collections::BTreeMap<String, Manager> = Default::default();
    for (_, manager) in updaters {
        if left <= MAX_UPDATERS {
            return;
        }
        let Some(entry) = managers.get(&manager).cloned() else {
            continue;
        };
        let bucket = Manager::updater("ancient-changes", &entry.api_version, "");
        let Some(first) = first_of.get(&entry.api_version) else {
            first_of.insert(entry.api_version.clone(), manager);
            continue;
        };
        if !managers.contains_key(&bucket)
            && let Some(oldest) = managers.remove(first)
        {
            managers.insert(bucket.clone(), oldest);
        }
        if let Some(old) = managers.get_mut(&bucket) {
            old.set = old.set.union(&entry.set);
            old.time = entry.time;
        }
        managers.remove(&manager);
        left -= 1;
    }
}

#[cfg(test)]
mod tests;
