//! The embedded API server as management API: conversion and admission of the suite's kinds, for which a kube-apiserver
//! calls webhooks, run in the process. A crate of its own for the binary and the test bed, since `api` and `apiserver`
//! do not depend on each other.

use api::admission::{FieldError as Violation, Review};
use api::k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition,
};
use apiserver::{FieldError, Hooks};
use serde_json::Value;

mod openstack;

/// Conversion, defaults and validation of the suite's kinds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules;

impl Hooks for Rules {
    fn convert(&self, object: Value, to_api_version: &str) -> Result<Value, String> {
        api::convert::convert(object, to_api_version).map_err(|error| error.to_string())
    }

    fn default(&self, object: &mut Value, old: Option<&Value>) {
        api::admission::default_object(object, old);
    }

    fn validate(
        &self,
        object: &Value,
        old: Option<&Value>,
        dry_run: bool,
    ) -> Result<(), Vec<FieldError>> {
        let review = Review {
            object,
            old,
            dry_run,
        };
        let field = |error: Violation| FieldError {
            path: error.path,
            message: error.message,
        };
        validate(review).map_err(|errors| errors.into_iter().map(field).collect())
    }
}

/// Validates an object of the suite's kinds: as [`api::admission::validate`], and the options of an OpenStack object by
/// the tables of its release.
///
/// # Errors
/// All errors, each with the path of its field.
pub fn validate(review: Review<'_>) -> Result<(), Vec<Violation>> {
    api::admission::validate(review)?;
    let judged = openstack::judged(review);
    if judged.is_empty() {
        Ok(())
    } else {
        Err(judged)
    }
}

/// The definition, with [`Rules`] as its conversion if it has several versions: the strategy is `Webhook`, without a
/// webhook.
#[must_use]
pub fn converted(mut definition: CustomResourceDefinition) -> CustomResourceDefinition {
    if definition.spec.versions.len() > 1 {
        definition.spec.conversion = Some(CustomResourceConversion {
            strategy: "Webhook".to_owned(),
            webhook: None,
        });
    }
    definition
}

#[cfg(test)]
mod tests;
