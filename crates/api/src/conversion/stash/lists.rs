//! Merge keys of the lists of a kind, from its CustomResourceDefinition.

use std::collections::{BTreeMap, HashSet};
use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray,
};
use serde_json::Value;

use super::path::{Path, Step, get, key_of};
use super::schema::{Schema, Spot};

/// Lists of type `map` of one kind in one version.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    /// Keys by path; `*` stands for any element.
    keys: BTreeMap<String, Vec<String>>,
    /// Schema of the objects.
    schema: Option<Schema>,
}

static ALL: LazyLock<BTreeMap<[String; 3], Lists>> = LazyLock::new(|| {
    let mut all = BTreeMap::new();
    for crd in &crate::crds::known() {
        for version in &crd.spec.versions {
            let mut lists = Lists::default();
            let schema = version.schema.as_ref();
            if let Some(schema) = schema.and_then(|s| s.open_api_v3_schema.as_ref()) {
                lists.add(schema, "");
                lists.schema = Some(Schema::from(schema));
            }
            let name = [&crd.spec.group, &crd.spec.names.kind, &version.name];
            all.insert(name.map(String::clone), lists);
        }
    }
    all
});
static NONE: Lists = Lists {
    keys: BTreeMap::new(),
    schema: None,
};

impl Lists {
    /// [`Lists`] of one of our kinds.
    pub(crate) fn new(group: &str, kind: &str, version: &str) -> &'static Self {
        let name = [group, kind, version].map(str::to_owned);
        ALL.get(&name).unwrap_or(&NONE)
    }

    /// Fields of the merge key for the list at a [`Path`].
    pub(super) fn keys(&self, path: &Path) -> Option<&[String]> {
        self.keys.get(&path.pattern).map(Vec::as_slice)
    }

    /// True if both lists have the same elements in the same order: then elements can be compared in pairs.
    pub(super) fn pair(&self, path: &Path, old: &[Value], new: &[Value]) -> bool {
        let Some(keys) = self.keys(path) else {
            return old.len() == new.len();
        };
        let mut seen = HashSet::new();
        old.len() == new.len()
            && old.iter().zip(new).all(|(old, new)| {
                let key = key_of(old, keys);
                // An element without its key is found by its hash.
                key == key_of(new, keys) && key.is_none_or(|key| seen.insert(key))
            })
    }

    /// True if the [`Schema`] of the version admits `value` at `steps` in `object`.
    pub(super) fn admits(&self, object: &Value, steps: &[Step], value: &Value) -> bool {
        let Some(root) = &self.schema else {
            return true;
        };
        let Some(spot) = root.at(steps) else {
            return false;
        };
        let Spot::Schema(schema) = spot else {
            return true;
        };
        let has_room = steps.split_last().is_none_or(|(last, parents)| {
            let (Step::Member(name), Some(Spot::Schema(above))) = (last, root.at(parents)) else {
                return true;
            };
            let there = get(object, parents).and_then(Value::as_object);
            let others = there.map_or(0, |there| there.keys().filter(|key| *key != name).count());
            above.has_room(others)
        });
        has_room && schema.admits(value)
    }

    fn add(&mut self, schema: &JSONSchemaProps, path: &str) {
        if let Some(keys) = &schema.x_kubernetes_list_map_keys {
            self.keys.insert(path.to_owned(), keys.clone());
        }
        for (name, property) in schema.properties.iter().flatten() {
            self.add(property, &format!("{path}/{name}"));
        }
        if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
            self.add(items, &format!("{path}/*"));
        }
    }
}

#[cfg(test)]
impl Lists {
    /// Lists with these keys, by path.
    pub(super) fn with(keys: &[(&str, &[&str])]) -> Self {
        let row = |(path, keys): &(&str, &[&str])| {
            let keys = keys.iter().map(|key| (*key).to_owned());
            ((*path).to_owned(), keys.collect())
        };
        Self {
            keys: keys.iter().map(row).collect(),
            schema: None,
        }
    }
}
