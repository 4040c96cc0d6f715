//! Checks of the user's options by the tables of the release, before anything is rendered.

use serde_json::Value as Json;

use crate::finding::{Finding, Severity};
use crate::parameters::Parameters;
use crate::project::Service;
use crate::release::Release;
use crate::service::{horizon, judged};

/// Every [`Finding`] about the options of every service.
pub fn check(parameters: &Parameters) -> Vec<Finding> {
    let mut findings = Vec::new();
    let release = parameters.release;
    findings.extend(release.ended().map(|ended| Finding {
        severity: Severity::Warning,
        path: "release".to_owned(),
        message: format!(
            "{release} is out of maintenance since {ended}; {} is maintained",
            Release::DEFAULT
        ),
    }));
    for service in Service::ALL {
        judged::judge(service, parameters, |finding| findings.push(finding));
    }
    findings.extend(horizon::check(parameters));
    findings
}

/// Reads the [`Parameters`] of an object, and checks them.
///
/// # Errors
/// Errors, each with its field from `spec` on.
pub fn checked(object: &Json) -> Result<Parameters, Vec<String>> {
    let (parameters, _) = Parameters::read(object).map_err(|error| vec![error.to_string()])?;
    let findings = check(&parameters).into_iter();
    let errors = findings.filter(|it| it.severity == Severity::Error);
    let errors: Vec<String> = errors.map(|it| format!("spec.{it}")).collect();
    match errors.is_empty() {
        true => Ok(parameters),
        false => Err(errors),
    }
}

#[cfg(test)]
mod tests;
