use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::core::v1beta2::topology::anything;

/// A change of templates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClassPatch {
    /// The name of the patch.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// Purpose of the patch, for readers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub description: Option<String>,
    /// A Go template; the patch applies if it renders to `true`, and always when unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub enabled_if: Option<String>,
    /// The changes, and the templates that they concern.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub definitions: Option<Vec<PatchDefinition>>,
    /// Changes by a runtime extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalPatch>,
}

/// Changes of some templates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PatchDefinition {
    /// Selector of the templates that are changed.
    pub selector: PatchSelector,
    /// The changes.
    #[schemars(length(min = 1, max = 100))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub json_patches: Vec<JsonPatch>,
}

/// Selector of the templates that are changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PatchSelector {
    /// Group and version of the template, as the class refers to it.
    #[schemars(length(min = 1, max = 317))]
    #[schemars(regex(
        pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[a-z]([-a-z0-9]*[a-z0-9])?$"
    ))]
    pub api_version: String,
    /// Kind of the template.
    #[schemars(length(min = 1, max = 63))]
    #[schemars(regex(pattern = r"^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$"))]
    pub kind: String,
    /// The places of the class in which the template is.
    #[schemars(extend("minProperties" = 1))]
    pub match_resources: MatchResources,
}

/// Places of a class for a patch ([`PatchSelector::match_resources`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MatchResources {
    /// The template of the control plane, and that of its machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<bool>,
    /// The template of the infrastructure of the cluster as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infrastructure_cluster: Option<bool>,
    /// The templates of these classes of MachineDeployments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_deployment_class: Option<MatchClasses>,
    /// The templates of these classes of MachinePools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_pool_class: Option<MatchClasses>,
}

/// Classes of workers, by name ([`MatchResources::machine_deployment_class`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MatchClasses {
    /// The names; `*` alone, at the start or at the end stands for any text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 256)))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub names: Option<Vec<String>>,
}

/// One change of a template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JsonPatch {
    /// Operation of the JSON patch: `add`, `replace` or `remove`.
    pub op: PatchOperation,
    /// JSON pointer into the template, below `/spec/`.
    #[schemars(length(min = 1, max = 512))]
    pub path: String,
    /// The value that is added, or replaces another one.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(schema_with = "anything")]
    pub value: Option<Value>,
    /// Source of the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_from: Option<PatchValue>,
}

/// Operation of a JSON patch in a class ([`JsonPatch::op`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PatchOperation {
    /// Adds a value.
    #[default]
    Add,
    /// Replaces a value.
    Replace,
    /// Removes a value.
    Remove,
}

impl PatchOperation {
    /// The value in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Replace => "replace",
            Self::Remove => "remove",
        }
    }
}

/// Source of the value of a change: a variable or a template ([`JsonPatch::value_from`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PatchValue {
    /// A variable, or a field of one: `name`, `builtin.cluster.name`, `list[0].field`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub variable: Option<String>,
    /// A Go template that renders to YAML.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10240))]
    pub template: Option<String>,
}

/// Changes by a runtime extension.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalPatch {
    /// The extension that computes the changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub generate_patches_extension: Option<String>,
    /// The extension that validates the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub validate_topology_extension: Option<String>,
    /// The extension that defines variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub discover_variables_extension: Option<String>,
    /// Values that the extensions get.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<BTreeMap<String, String>>,
}

/// Reads a present value, `null` included.
fn present<'de, D: serde::Deserializer<'de>>(source: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(source).map(Some)
}
