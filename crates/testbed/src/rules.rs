//! Conversion and admission of our kinds, as the binary wires them.

use api::k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition,
};
use serde_json::Value;

/// A definition whose versions are converted by [`Rules`]: it names no webhook.
pub(crate) fn converted(mut definition: CustomResourceDefinition) -> CustomResourceDefinition {
    if definition.spec.versions.len() > 1 {
        definition.spec.conversion = Some(CustomResourceConversion {
            strategy: "Webhook".to_owned(),
            webhook: None,
        });
    }
    definition
}

pub(crate) struct Rules;

impl apiserver::Hooks for Rules {
    fn convert(&self, object: Value, to: &str) -> Result<Value, String> {
        api::convert::convert(object, to).map_err(|error| error.to_string())
    }

    fn default(&self, object: &mut Value, old: Option<&Value>) {
        api::admission::default_object(object, old);
    }

    fn validate(
        &self,
        object: &Value,
        old: Option<&Value>,
        dry_run: bool,
    ) -> Result<(), Vec<apiserver::FieldError>> {
        let review = api::admission::Review {
            object,
            old,
            dry_run,
        };
        api::admission::validate(review).map_err(|errors| {
            let field = |error: api::admission::FieldError| apiserver::FieldError {
                path: error.path,
                message: error.message,
            };
            errors.into_iter().map(field).collect()
        })
    }
}
