//! OpenStack objects: their options are judged by the tables of their release.

use std::collections::BTreeSet;

use api::admission::{FieldError, Review};
use deployer::{Parameters, Severity};
use serde_json::Value;

/// The errors of the parameters that the stored object does not have. A write of metadata or status, or to an object that
/// is being deleted, has none.
pub(crate) fn judged(review: Review<'_>) -> Vec<FieldError> {
    let Review { object, old, .. } = review;
    let is_ours = object["apiVersion"] == api::openstack::v1alpha1::API_VERSION
        && object["kind"] == "OpenStack";
    let kept = old.is_some_and(|old| old["spec"] == object["spec"]);
    let deleted = old.is_some() && !object["metadata"]["deletionTimestamp"].is_null();
    if !is_ours || kept || deleted {
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

fn problems(object: &Value) -> Vec<FieldError> {
    let parameters = match Parameters::read(object) {
        Ok((parameters, _)) => parameters,
        Err(error) => return vec![FieldError::new(error.path, error.problem)],
    };
    let findings = deployer::check(&parameters).into_iter();
    findings
        .filter(|finding| finding.severity == Severity::Error)
        .map(|finding| FieldError::new(format!("spec.{}", finding.path), finding.message))
        .collect()
}
