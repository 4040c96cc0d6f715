//! Conversion and admission of the suite's CRDs, for the embedded API server as management API.
//!
//! The [`Rules`] run in the process, where a kube-apiserver would call webhooks. A crate of its own, used by the
//! binary and the test bed, because `api` and `apiserver` do not depend on each other.

use std::collections::BTreeSet;

use api::admission::{FieldError as Violation, Review, deletion};
use api::k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition,
};
use api::names::{CLUSTERCTL_LABEL, PROVIDER_LABEL};
use apiserver::{FieldError, Hooks};
use serde_json::Value;

mod class;
pub mod cluster;
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
        validate(review).map_err(|errors| errors.into_iter().map(field).collect())
    }

    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        api::convert::warnings(object, old)
    }

    fn beside(&self, object: &Value) -> Option<apiserver::RelatedObject> {
        let class = cluster::class_of(object)?;
        Some(apiserver::RelatedObject {
            group: api::core::GROUP.to_owned(),
            plural: class.plural.to_owned(),
            namespace: class.namespace,
            name: class.name,
        })
    }

    fn default_beside(&self, object: &mut Value, beside: &Value) {
        cluster::default_by(object, beside);
    }

    fn validate_beside(
        &self,
        object: &Value,
        old: Option<&Value>,
        beside: Option<&Value>,
    ) -> Result<Vec<String>, Vec<FieldError>> {
        let review = Review {
            object,
            old,
            dry_run: false,
        };
        cluster::validate_by(review, beside)
            .map_err(|errors| errors.into_iter().map(field).collect())
    }

    fn referrers(&self, object: &Value) -> Option<apiserver::Referrers> {
        let kind = deletion::referrers(object)?;
        Some(apiserver::Referrers {
            group: api::core::GROUP.to_owned(),
            plural: kind.plural.to_owned(),
        })
    }

    fn delete(&self, object: &Value, referrers: &[Value]) -> Result<(), String> {
        deletion::deletion(object, referrers)
    }
}

fn field(error: Violation) -> FieldError {
    FieldError {
        path: error.path,
        message: error.message,
    }
}

/// Validates an object of the suite's CRDs: the rules of [`api::admission::validate`], the options of an OpenStack
/// object by the tables of its release, and variables and patches of a ClusterClass.
///
/// # Errors
/// All errors, each with the path of its field.
pub fn validate(review: Review<'_>) -> Result<(), Vec<Violation>> {
    api::admission::validate(review)?;
    let mut judged = judged(review, openstack::is_ours, openstack::problems);
    judged.extend(self::judged(
        review,
        class::is_ours,
        topology::class::problems,
    ));
    if judged.is_empty() {
        Ok(())
    } else {
        Err(judged)
    }
}

/// New errors of an object, absent from the stored object. None for a write of metadata or status, and none for an
/// object being deleted.
fn judged(
    review: Review<'_>,
    is_ours: fn(&Value) -> bool,
    problems: fn(&Value) -> Vec<Violation>,
) -> Vec<Violation> {
    let Review { object, old, .. } = review;
    let kept = old.is_some_and(|old| old["spec"] == object["spec"]);
    let deleted = old.is_some() && !object["metadata"]["deletionTimestamp"].is_null();
    if !is_ours(object) || kept || deleted {
        return Vec::new();
    }
    let known: BTreeSet<(String, String)> = old
        .into_iter()
        .flat_map(problems)
        .map(|error| (error.path, error.message))
        .collect();
    let mut errors = problems(object);
    errors.retain(|error| !known.contains(&(error.path.clone(), error.message.clone())));
    errors
}

/// All CRDs of the API server: the suite's, and two more for clients of Cluster API, MachinePool and clusterctl's
/// Provider.
#[must_use]
pub fn definitions() -> Vec<CustomResourceDefinition> {
    let mut all = api::crds::all();
    all.extend(api::core::pool::definition());
    all.extend(api::inventory::definition());
    all.into_iter().map(converted).collect()
}

/// Definition with [`Rules`] as conversion if several versions exist: the strategy is `Webhook`, without a webhook.
/// The CRD of a provider also gets [`CLUSTERCTL_LABEL`].
#[must_use]
pub fn converted(mut definition: CustomResourceDefinition) -> CustomResourceDefinition {
    if let Some(labels) = &mut definition.metadata.labels
        && labels.contains_key(PROVIDER_LABEL)
    {
        labels.insert(CLUSTERCTL_LABEL.to_owned(), String::new());
    }
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
