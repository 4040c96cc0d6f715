//! An immutable table of objects with lookups.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use super::Resource;

/// Objects of one kind at one moment, in the order of their ids.
#[derive(Clone, Debug)]
pub struct Table<T> {
    items: Vec<Arc<T>>,
    is_read: bool,
    by_name: OnceLock<Index<T>>,
    by_tag: OnceLock<Index<T>>,
    by_parent: OnceLock<Index<T>>,
}

type Index<T> = HashMap<String, Vec<Arc<T>>>;

impl<T> Default for Table<T> {
    /// Returns an empty table that counts as listed.
    fn default() -> Self {
        Self::with(Vec::new(), true)
    }
}

impl<T> Table<T> {
    /// Creates a table of `items`, sorted by id.
    pub(super) fn with(items: Vec<Arc<T>>, is_read: bool) -> Self {
        Self {
            items,
            is_read,
            by_name: OnceLock::new(),
            by_tag: OnceLock::new(),
            by_parent: OnceLock::new(),
        }
    }

    /// True once the kind was listed. Before, the table has our own writes only, and the absence of an object means
    /// nothing.
    pub fn is_read(&self) -> bool {
        self.is_read
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// True without any object.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns all objects.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.items.iter()
    }
}

impl<T: Resource> Table<T> {
    /// Creates a table of these objects, for tests of functions of views. No two objects may have the same id.
    pub fn from_items(items: impl IntoIterator<Item = T>) -> Self {
        let mut items: Vec<_> = items.into_iter().map(Arc::new).collect();
        items.sort_by(|a, b| a.id().cmp(b.id()));
        Self::with(items, true)
    }

    /// Returns the object with this id.
    pub fn get(&self, id: &str) -> Option<&Arc<T>> {
        let found = self.items.binary_search_by(|item| item.id().cmp(id)).ok()?;
        self.items.get(found)
    }

    /// Returns the objects with this name.
    pub fn named(&self, name: &str) -> &[Arc<T>] {
        let index = || self.index(|item| vec![item.name()]);
        self.by_name
            .get_or_init(index)
            .get(name)
            .map_or(&[], Vec::as_slice)
    }

    /// Returns the objects with this tag.
    pub fn tagged(&self, tag: &str) -> &[Arc<T>] {
        let index = || self.index(|item| item.tags().iter().map(String::as_str).collect());
        self.by_tag
            .get_or_init(index)
            .get(tag)
            .map_or(&[], Vec::as_slice)
    }

    /// Returns the objects with this parent: see [`Resource::parent`].
    pub fn of_parent(&self, id: &str) -> &[Arc<T>] {
        let index = || self.index(|item| item.parent().into_iter().collect());
        self.by_parent
            .get_or_init(index)
            .get(id)
            .map_or(&[], Vec::as_slice)
    }

    fn index<'a>(&'a self, keys: impl Fn(&'a T) -> Vec<&'a str>) -> Index<T> {
        let mut index = Index::new();
        for item in &self.items {
            for key in keys(item) {
                index
                    .entry(key.to_owned())
                    .or_default()
                    .push(Arc::clone(item));
            }
        }
        index
    }
}
