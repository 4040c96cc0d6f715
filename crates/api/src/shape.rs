//! Schemas of Kubernetes' types in our CustomResourceDefinitions.
//!
//! `k8s-openapi` has schemas for all its types, at the price of two thirds of its compile time; these few are a
//! substitute.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};

macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident $file:literal;)*) => {
        $(
            $(#[$doc])*
            pub(crate) enum $name {}

            impl JsonSchema for $name {
                fn inline_schema() -> bool {
                    true
                }

                fn schema_name() -> Cow<'static, str> {
                    stringify!($name).into()
                }

                fn json_schema(_: &mut SchemaGenerator) -> Schema {
                    // An invalid file would show as a stale definition: `cargo xtask codegen --check`.
                    serde_json::from_str(include_str!(concat!("shape/", $file))).unwrap_or_default()
                }
            }
        )*
    };
}

shapes! {
    /// Condition.
    Condition "condition.json";
    /// Point in time.
    Time "time.json";
    /// Label selector.
    LabelSelector "label_selector.json";
    /// Number or percentage.
    IntOrString "int_or_string.json";
    /// Source of a variable's value.
    EnvVarSource "env_var_source.json";
    /// Taint of a node.
    Taint "taint.json";
}
