//! Report of a move, for users and programs.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::graph::{Object, Selection};

/// Object with the reason for moving or staying.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Reason for moving or staying.
    pub reason: String,
}

/// Effects of a move, planned or done.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Namespace that moves.
    pub namespace: String,
    /// Names of the Clusters.
    pub clusters: Vec<String>,
    /// Objects of the move, in the order of creation.
    pub moves: Vec<Entry>,
    /// Objects that stay in the namespace.
    pub stays: Vec<Entry>,
    /// Problems that prevent the move; only in a preview.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

impl Report {
    pub(crate) fn new(namespace: &str, selection: &Selection) -> Self {
        let clusters = selection.of_kind("Cluster");
        Self {
            namespace: namespace.to_owned(),
            clusters: clusters.map(|cluster| cluster.name().to_owned()).collect(),
            moves: selection
                .moves
                .iter()
                .map(|one| entry(&one.object, &one.why))
                .collect(),
            stays: selection
                .stays
                .iter()
                .map(|one| entry(&one.object, &one.why))
                .collect(),
            problems: Vec::new(),
        }
    }

    /// Number of objects of the move, by kind.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for entry in &self.moves {
            *counts.entry(entry.kind.as_str()).or_default() += 1;
        }
        counts
    }
}

fn entry(object: &Object, reason: &str) -> Entry {
    let (namespace, name) = object.key();
    let version = crate::preflight::version(object);
    Entry {
        api_version: match object.kind.group.as_str() {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        },
        kind: object.kind.name.clone(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        reason: reason.to_owned(),
    }
}
