//! OpenAPI documents: v2 at `/openapi/v2`, v3 at `/openapi/v3` and `/openapi/v3/apis/<group>/<version>`.
//!
//! The documents contain the served kinds and all referenced types, with descriptions, so that kubectl can explain,
//! validate and merge. Operations have the parts used by clients: methods, kinds, query parameters, media types. List
//! kinds have no definitions.

pub(crate) mod builtin;
mod definitions;
mod operations;
pub mod protobuf;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use definitions::{Dialect, collect};

/// One served resource in one version.
#[derive(Clone, Debug)]
pub struct Model<'a> {
    /// API group, empty for core.
    pub group: &'a str,
    /// Version, `v1`.
    pub version: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// Lower-case plural name.
    pub plural: &'a str,
    /// True if objects live in namespaces.
    pub namespaced: bool,
    /// Verbs, as in discovery.
    pub verbs: &'a [&'a str],
    /// `status`, `scale`.
    pub subresources: &'a [&'a str],
    /// `openAPIV3Schema` of a custom resource; `None` for a built-in kind.
    pub schema: Option<&'a Value>,
}

/// Returns the v2 (swagger) document of all [`Model`]s.
pub fn v2(models: &[Model<'_>]) -> Value {
    let mut paths = Map::new();
    for model in models {
        operations::add(model, Dialect::V2, &mut paths);
    }
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "v1"},
        "paths": paths,
        "definitions": collect(models, Dialect::V2),
    })
}

/// Returns the v3 index: `{"paths": {"apis/apps/v1": {"serverRelativeURL": "/openapi/v3/apis/apps/v1?hash=.."}}}`. The
/// hash changes with the document, so clients may keep a document for good.
pub fn v3_index(models: &[Model<'_>]) -> Value {
    let versions: BTreeSet<(&str, &str)> = models
        .iter()
        .map(|model| (model.group, model.version))
        .collect();
    let mut paths = Map::new();
    for (group, version) in versions {
        let path = path_of(group, version);
        let hash = hash(models, group, version);
        let url = format!("/openapi/v3/{path}?hash={hash}");
        paths.insert(path, json!({"serverRelativeURL": url}));
    }
    json!({ "paths": paths })
}

/// Returns the v3 document of one group and version; `group` is empty for core. Without a [`Model`] of the group and
/// version, the document is empty.
pub fn v3(models: &[Model<'_>], group: &str, version: &str) -> Value {
    let models: Vec<Model<'_>> = models
        .iter()
        .filter(|model| model.group == group && model.version == version)
        .cloned()
        .collect();
    let mut paths = Map::new();
    for model in &models {
        operations::add(model, Dialect::V3, &mut paths);
    }
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": paths,
        "components": {"schemas": collect(&models, Dialect::V3)},
    })
}

/// Returns the path of a group and version: `api/v1`, `apis/apps/v1`.
fn path_of(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}

/// Returns a hash of the input of a generated document.
fn hash(models: &[Model<'_>], group: &str, version: &str) -> String {
    let mut hasher = Sha256::new();
    hasher.update(env!("CARGO_PKG_VERSION"));
    for model in models
        .iter()
        .filter(|m| m.group == group && m.version == version)
    {
        let parts = json!([
            model.kind,
            model.plural,
            model.namespaced,
            model.verbs,
            model.subresources,
            model.schema,
        ]);
        hasher.update(parts.to_string());
    }
    let digest = hasher.finalize();
    digest.iter().map(|byte| format!("{byte:02X}")).collect()
}

#[cfg(test)]
mod tests;
