//! Sets of fields, in the form of `FieldsV1` in `managedFields` (`structured-merge-diff/v6/fieldpath`).

mod element;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

pub(crate) use element::{Element, Item};

/// Set of fields. A field and the fields below it are members independently of each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Set {
    members: BTreeSet<Element>,
    children: BTreeMap<Element, Set>,
}

impl Set {
    /// Decodes `fieldsV1`. Unknown kinds of elements are skipped, as in the reference.
    pub(crate) fn read(fields: &Value) -> Result<Self, String> {
        let Value::Object(fields) = fields else {
            return Err(format!("expected an object, got {fields}"));
        };
        let (set, _) = Self::read_node(fields)?;
        Ok(set)
    }

    /// Decodes a node. The flag is true if the node itself is a member.
    fn read_node(fields: &Map<String, Value>) -> Result<(Self, bool), String> {
        let mut set = Self::default();
        let mut member = false;
        for (key, value) in fields {
            if key == "." {
                member = true;
                continue;
            }
            let Some(element) = Element::read(key)? else {
                continue;
            };
            let Value::Object(value) = value else {
                return Err(format!("expected an object below {key:?}, got {value}"));
            };
            let (children, is_member) = Self::read_node(value)?;
            if is_member {
                set.members.insert(element.clone());
            }
            if !children.is_bare() {
                set.children.insert(element, children);
            }
        }
        if set.is_bare() {
            member = true;
        }
        Ok((set, member))
    }

    /// Writes `fieldsV1`.
    pub(crate) fn write(&self) -> Value {
        let mut fields = Map::new();
        for element in &self.members {
            fields.insert(element.to_string(), Value::Object(Map::new()));
        }
        for (element, children) in &self.children {
            let mut value = children.write();
            if self.members.contains(element)
                && !children.is_bare()
                && let Value::Object(fields) = &mut value
            {
                fields.insert(".".to_owned(), Value::Object(Map::new()));
            }
            fields.insert(element.to_string(), value);
        }
        Value::Object(fields)
    }

    /// Inserts a field. The empty path, the whole object, is not tracked.
    pub(crate) fn insert(&mut self, path: &[Element]) {
        match path {
            [] => {}
            [last] => {
                self.members.insert(last.clone());
            }
            [first, rest @ ..] => self.children.entry(first.clone()).or_default().insert(rest),
        }
    }

    /// Inserts an element at the top level.
    pub(crate) fn insert_member(&mut self, element: Element) {
        self.members.insert(element);
    }

    /// Inserts a set below an element, if the set is not empty.
    pub(crate) fn insert_children(&mut self, element: Element, children: Set) {
        if !children.is_empty() {
            let merged = match self.children.remove(&element) {
                Some(mine) => mine.union(&children),
                None => children,
            };
            self.children.insert(element, merged);
        }
    }

    pub(crate) fn has_member(&self, element: &Element) -> bool {
        self.members.contains(element)
    }

    /// True if a field is in the set.
    #[cfg(test)]
    pub(crate) fn has(&self, path: &[Element]) -> bool {
        match path {
            [] => false,
            [last] => self.members.contains(last),
            [first, rest @ ..] => self.children.get(first).is_some_and(|set| set.has(rest)),
        }
    }

    /// Returns the members below an element.
    pub(crate) fn below(&self, element: &Element) -> Option<&Set> {
        self.children.get(element)
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = &Element> {
        self.members.iter()
    }

    pub(crate) fn children(&self) -> impl Iterator<Item = (&Element, &Set)> {
        self.children.iter()
    }

    /// True if there are no members at any depth.
    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.values().all(Self::is_empty)
    }

    fn is_bare(&self) -> bool {
        self.members.is_empty() && self.children.is_empty()
    }

    pub(crate) fn union(&self, other: &Set) -> Set {
        let mut result = self.clone();
        result.members.extend(other.members.iter().cloned());
        for (element, children) in &other.children {
            let merged = match result.children.remove(element) {
                Some(mine) => mine.union(children),
                None => children.clone(),
            };
            result.children.insert(element.clone(), merged);
        }
        result
    }

    pub(crate) fn intersection(&self, other: &Set) -> Set {
        let members = self.members.intersection(&other.members).cloned().collect();
        let both = self.children.iter().filter_map(|(element, mine)| {
            let common = mine.intersection(other.children.get(element)?);
            (!common.is_empty()).then(|| (element.clone(), common))
        });
        Set {
            members,
            children: both.collect(),
        }
    }

    /// Returns the set without the fields of `other`; fields below them stay.
    pub(crate) fn difference(&self, other: &Set) -> Set {
        self.subtract(other, false)
    }

    /// Returns the set without the fields of `other` and the fields below them.
    pub(crate) fn recursive_difference(&self, other: &Set) -> Set {
        self.subtract(other, true)
    }

    fn subtract(&self, other: &Set, recursive: bool) -> Set {
        let members = self.members.difference(&other.members).cloned().collect();
        let children = self.children.iter().filter_map(|(element, mine)| {
            if recursive && other.members.contains(element) {
                return None;
            }
            let rest = match other.children.get(element) {
                Some(other) => mine.subtract(other, recursive),
                None => mine.clone(),
            };
            (!rest.is_empty()).then(|| (element.clone(), rest))
        });
        Set {
            members,
            children: children.collect(),
        }
    }

    /// Returns the paths of all members: at each level, members before their descendants.
    pub(crate) fn paths(&self) -> Vec<Vec<Element>> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect(&self, prefix: &mut Vec<Element>, paths: &mut Vec<Vec<Element>>) {
        for member in &self.members {
            let mut path = prefix.clone();
            path.push(member.clone());
            paths.push(path);
        }
        for (element, children) in &self.children {
            prefix.push(element.clone());
            children.collect(prefix, paths);
            prefix.pop();
        }
    }
}

/// Formats a path as in conflicts: `.spec.containers[name="a"].image`.
pub(crate) fn path_text(path: &[Element]) -> String {
    path.iter().map(Element::in_path).collect()
}

#[cfg(test)]
mod tests;
