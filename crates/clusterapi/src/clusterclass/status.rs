//! Status of a ClusterClass. Pure.

use api::conditions::{self, Reason, Status, Type, Verdict};
use api::core::v1beta2::{ClassStatusDefinition, ClassStatusVariable, ClusterClass};
use api::k8s_openapi::jiff::Timestamp;
use api::kube::ResourceExt;

use super::Templates;
use crate::pause;

/// Source of the definitions of variables, in upstream's words: the class itself.
const INLINE: &str = "inline";

/// Class with its status; the generation is observed only if Clusters can use the class.
pub(super) fn desired(class: &ClusterClass, seen: &Templates, now: Timestamp) -> ClusterClass {
    let mut after = class.clone();
    let generation = class.metadata.generation;
    let status = after.status.get_or_insert_default();
    let variables = variables_ready(class);
    let usable = seen.problems.is_empty() && variables.status == Status::True;
    if variables.status == Status::True {
        status.variables = variables_of(class);
    }
    for verdict in [variables, versions(class, seen), pause::verdict(None)] {
        conditions::set(&mut status.conditions, verdict, generation, now);
    }
    if usable {
        status.observed_generation = generation;
    }
    after
}

/// Class with the status of a paused one.
pub(super) fn paused(class: &ClusterClass, why: &str, now: Timestamp) -> ClusterClass {
    let mut after = class.clone();
    let status = after.status.get_or_insert_default();
    let generation = class.metadata.generation;
    pause::record(&mut status.conditions, Some(why), generation, now);
    after
}

fn variables_of(class: &ClusterClass) -> Vec<ClassStatusVariable> {
    let definition = |variable: &api::core::v1beta2::ClassVariable| ClassStatusVariable {
        name: variable.name.clone(),
        definitions_conflict: Some(false),
        definitions: vec![ClassStatusDefinition {
            from: INLINE.to_owned(),
            required: variable.required,
            deprecated_v1beta1_metadata: variable.deprecated_v1beta1_metadata.clone(),
            schema: variable.schema.clone(),
        }],
    };
    class.variables().iter().map(definition).collect()
}

/// Condition of the variables. Admission rejects invalid definitions, but a class of a former release may have some.
fn variables_ready(class: &ClusterClass) -> Verdict {
    let type_ = Type::VariablesReady;
    match topology::variables::definitions(class.variables()) {
        Ok(_) => Verdict::new(type_, true, Reason::VariablesReady),
        Err(errors) => {
            let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
            Verdict::new(type_, false, Reason::VariableDiscoveryFailed).because(lines.join("\n"))
        }
    }
}

fn versions(class: &ClusterClass, seen: &Templates) -> Verdict {
    let type_ = Type::RefVersionsUpToDate;
    if !seen.problems.is_empty() {
        let lines = seen.problems.join("\n");
        return Verdict::new(type_, Status::Unknown, Reason::InternalError).because(lines);
    }
    if seen.outdated.is_empty() {
        return Verdict::new(type_, true, Reason::RefVersionsUpToDate);
    }
    let namespace = class.namespace().unwrap_or_default();
    let line = |(reference, latest): &(api::core::v1beta2::VersionedReference, String)| {
        let object = format!("Kind={} {namespace}/{}", reference.kind, reference.name);
        let version = &reference.api_version;
        format!("* Ref \"{version}, {object}\" should be \"{latest}, {object}\"")
    };
    let lines: Vec<_> = seen.outdated.iter().map(line).collect();
    let lines = format!(
        "The following refs do not use the latest apiVersion:\n{}",
        lines.join("\n")
    );
    Verdict::new(type_, false, Reason::RefVersionsNotUpToDate).because(lines)
}

#[cfg(test)]
mod tests;
