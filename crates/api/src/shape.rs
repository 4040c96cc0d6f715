//! Schemas of Kubernetes' types in our CustomResourceDefinitions.
//!
//! `k8s-openapi` has them for all its types, whose compilation takes two thirds of its time; these few stand in for them.

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
                    // A file that is no schema would show as a stale definition: `cargo xtask codegen --check`.
                    serde_json::from_str(include_str!(concat!("shape/", $file))).unwrap_or_default()
                }
            }
        )*
    };
}

shapes! {
    /// A condition.
    Condition "condition.json";
    /// A point in time.
    Time "time.json";
    /// A label selector.
    LabelSelector "label_selector.json";
    /// A number or a share.
    IntOrString "int_or_string.json";
    /// The source of a variable's value.
    EnvVarSource "env_var_source.json";
    /// A taint of a node.
    Taint "taint.json";
}
