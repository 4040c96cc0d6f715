use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::core::v1beta2::TemplateMeta;

/// A variable of a class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClassVariable {
    /// The name.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// Requires a value in each Cluster.
    pub required: bool,
    /// Labels and annotations of v1beta1, without effect.
    #[serde(
        rename = "deprecatedV1Beta1Metadata",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(extend("minProperties" = 1))]
    pub deprecated_v1beta1_metadata: Option<TemplateMeta>,
    /// Schema of the value: valid values, and defaults.
    pub schema: VariableSchema,
}

/// Schema of a variable: valid values, and defaults ([`ClassVariable::schema`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariableSchema {
    /// A structural schema, as those of CustomResourceDefinitions.
    #[serde(rename = "openAPIV3Schema")]
    #[schemars(schema_with = "schema_of_schemas")]
    pub open_api_v3_schema: Value,
}

/// The definitions of one variable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClassStatusVariable {
    /// The name of the variable.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// True if the definitions differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definitions_conflict: Option<bool>,
    /// The definitions.
    #[schemars(length(min = 1, max = 100))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub definitions: Vec<ClassStatusDefinition>,
}

/// One definition of a variable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClassStatusDefinition {
    /// Source of the definition: `inline` for the class itself, else the name of a patch.
    #[schemars(length(min = 1, max = 256))]
    pub from: String,
    /// Requires a value in each Cluster.
    pub required: bool,
    /// Labels and annotations of v1beta1, without effect.
    #[serde(
        rename = "deprecatedV1Beta1Metadata",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(extend("minProperties" = 1))]
    pub deprecated_v1beta1_metadata: Option<TemplateMeta>,
    /// Schema of the value: valid values, and defaults.
    pub schema: VariableSchema,
}

/// Schema of a schema. Only the outermost fields are described: schemas of CustomResourceDefinitions cannot be
/// recursive.
fn schema_of_schemas(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let any = || json!({ "x-kubernetes-preserve-unknown-fields": true });
    let flag = || json!({ "type": "boolean" });
    let count = || json!({ "type": "integer", "format": "int64" });
    let text = |most: u32| json!({ "type": "string", "minLength": 1, "maxLength": most });
    let strings = || json!({ "type": "object", "additionalProperties": { "type": "string" } });
    let rule = json!({
        "type": "object",
        "required": ["rule"],
        "properties": {
            "rule": text(4096),
            "message": text(512),
            "messageExpression": text(1024),
            "fieldPath": text(512),
            "reason": {
                "type": "string",
                "default": "FieldValueInvalid",
                "enum": [
                    "FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate",
                ],
            },
        },
    });
    schemars::json_schema!({
        "type": "object",
        "description": "A structural schema, as those of CustomResourceDefinitions.",
        "minProperties": 1,
        "properties": {
            "additionalProperties": any(), "allOf": any(), "anyOf": any(), "default": any(),
            "description": text(4096),
            "enum": {
                "type": "array", "items": any(), "maxItems": 100, "x-kubernetes-list-type": "atomic",
            },
            "example": any(),
            "exclusiveMaximum": flag(), "exclusiveMinimum": flag(),
            "format": text(32),
            "items": any(),
            "maxItems": count(), "maxLength": count(), "maxProperties": count(), "maximum": count(),
            "minItems": count(), "minLength": count(), "minProperties": count(), "minimum": count(),
            "not": any(), "oneOf": any(),
            "pattern": text(512),
            "properties": any(),
            "required": {
                "type": "array", "items": text(256), "minItems": 1, "maxItems": 1000,
                "x-kubernetes-list-type": "atomic",
            },
            "type": {
                "type": "string",
                "enum": ["object", "array", "string", "integer", "number", "boolean"],
            },
            "uniqueItems": flag(),
            "x-kubernetes-int-or-string": flag(),
            "x-kubernetes-preserve-unknown-fields": flag(),
            "x-kubernetes-validations": {
                "type": "array", "items": rule, "minItems": 1, "maxItems": 100,
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["rule"],
            },
            "x-metadata": {
                "type": "object", "minProperties": 1,
                "properties": { "labels": strings(), "annotations": strings() },
            },
        },
    })
}
