//! OpenStack objects: the tables of the release validate the options.

use api::admission::FieldError;
use deployer::{Parameters, Severity};
use serde_json::Value;

/// True if the object is an OpenStack object.
pub(crate) fn is_ours(object: &Value) -> bool {
    object["apiVersion"] == api::openstack::v1alpha1::API_VERSION && object["kind"] == "OpenStack"
}

/// Errors of the [`Parameters`], without warnings.
pub(crate) fn problems(object: &Value) -> Vec<FieldError> {
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
