//! The OpenAPI documents: v2 at `/openapi/v2`, v3 at `/openapi/v3` and `/openapi/v3/apis/<group>/<version>`.

pub(crate) mod builtin;

use serde_json::{Value, json};

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
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Verbs, as in discovery.
    pub verbs: &'a [&'a str],
    /// `status`, `scale`.
    pub subresources: &'a [&'a str],
    /// `openAPIV3Schema` of a custom resource; `None` for a built-in kind.
    pub schema: Option<&'a Value>,
}

/// The v2 (swagger) document over all models.
pub fn v2(_models: &[Model<'_>]) -> Value {
    json!({"swagger": "2.0", "info": {"title": "Kubernetes", "version": "v1"}, "paths": {}, "definitions": {}})
}

/// The v3 index: `{"paths": {"apis/apps/v1": {"serverRelativeURL": "/openapi/v3/apis/apps/v1?hash=.."}}}`.
pub fn v3_index(_models: &[Model<'_>]) -> Value {
    json!({"paths": {}})
}

/// The v3 document of one group and version; `group` is empty for core.
pub fn v3(_models: &[Model<'_>], _group: &str, _version: &str) -> Value {
    json!({"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1"}, "paths": {}, "components": {"schemas": {}}})
}
