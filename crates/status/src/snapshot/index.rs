//! Objects of a [`Snapshot`](super::Snapshot), with an index of related objects: with a thousand clusters, one search
//! through all objects for each object would take a million steps.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;

use kube::ResourceExt;

use super::Item;

/// The label with the name of an object's Cluster.
pub(super) const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";

/// [`Item`]s in the order of display.
#[derive(Clone, Debug, Default)]
pub struct Items {
    list: Vec<Item>,
    /// [`Index`], built at first use.
    index: OnceLock<Index>,
}

/// Property shared by objects.
#[derive(Hash)]
pub(super) enum Common<'a> {
    /// The namespace and the name.
    Name(&'a str, &'a str),
    /// The namespace and the name of the Cluster, by label.
    Cluster(&'a str, &'a str),
    /// The uid of an owner.
    Owner(&'a str),
}

/// Places of objects by the hash of a common property. Matches are compared again.
#[derive(Clone, Debug, Default)]
struct Index(HashMap<u64, Vec<usize>>);

impl Items {
    /// Objects that may have one of the properties, in order, each once.
    pub(super) fn with<'a>(
        &'a self,
        common: &[Common<'_>],
    ) -> impl Iterator<Item = &'a Item> + use<'a> {
        let index = self.index.get_or_init(|| Index::from_items(&self.list));
        let found = common
            .iter()
            .filter_map(|common| index.0.get(&hash(common)));
        let mut places: Vec<usize> = found.flatten().copied().collect();
        places.sort_unstable();
        places.dedup();
        places.into_iter().filter_map(|place| self.list.get(place))
    }
}

impl From<Vec<Item>> for Items {
    fn from(list: Vec<Item>) -> Self {
        let index = OnceLock::new();
        Self { list, index }
    }
}

impl Deref for Items {
    type Target = Vec<Item>;

    fn deref(&self) -> &Vec<Item> {
        &self.list
    }
}

impl DerefMut for Items {
    fn deref_mut(&mut self) -> &mut Vec<Item> {
        self.index = OnceLock::new();
        &mut self.list
    }
}

impl<'a> IntoIterator for &'a Items {
    type Item = &'a Item;
    type IntoIter = std::slice::Iter<'a, Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

impl<'a> IntoIterator for &'a mut Items {
    type Item = &'a mut Item;
    type IntoIter = std::slice::IterMut<'a, Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl Index {
    fn from_items(items: &[Item]) -> Self {
        let mut index = Self::default();
        for (place, item) in items.iter().enumerate() {
            index.add(place, &Common::Name(item.namespace(), item.name()));
            if let Some(cluster) = item.object.labels().get(CLUSTER_NAME) {
                index.add(place, &Common::Cluster(item.namespace(), cluster));
            }
            for owner in item.object.owner_references() {
                index.add(place, &Common::Owner(&owner.uid));
            }
        }
        index
    }

    fn add(&mut self, place: usize, common: &Common<'_>) {
        self.0.entry(hash(common)).or_default().push(place);
    }
}

fn hash(common: &Common<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    common.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
