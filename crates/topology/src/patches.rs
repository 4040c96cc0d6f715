//! Patches of a ClusterClass: JSON patches of the templates, with values from variables and Go templates.
//!
//! As upstream, the patches are applied in order, each to all templates that match a selector; a template matches in
//! the version in which the class refers to it.

use api::core::v1beta2::{ClassPatch, JsonPatch, MatchClasses, PatchOperation, PatchSelector};
use serde_json::{Map, Value, json};

use crate::template::Template;
use crate::variables::{self, BUILTIN, Named};

/// Place of a template in a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateRole {
    /// Infrastructure of the cluster as a whole.
    InfrastructureCluster,
    /// Control plane.
    ControlPlane,
    /// Machines of the control plane.
    ControlPlaneMachines,
    /// Bootstrap or machines of a class of MachineDeployments.
    MachineDeployment(String),
}

/// Template, with the variables for this template alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Place in the class.
    pub place: TemplateRole,
    /// Template, with `apiVersion` and `kind` as the class refers to it.
    pub object: Value,
    /// Builtin variable `controlPlane` or `machineDeployment`.
    pub builtin: Option<(&'static str, Value)>,
    /// Values of variables that override the values of the Cluster.
    pub overrides: Vec<api::core::v1beta2::Variable>,
}

/// Patch that cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("patch {patch} of the ClusterClass cannot be applied to {kind}: {problem}")]
pub struct PatchFailed {
    /// Name of the patch.
    pub patch: String,
    /// Kind of the template.
    pub kind: String,
    /// Mistake, with the field of the patch.
    pub problem: String,
}

/// Applies all patches of a class to its templates. `values` are the values of the Cluster, `cluster` is
/// `builtin.cluster`.
///
/// # Errors
/// [`PatchFailed`] for the first patch that fails.
pub fn apply(
    patches: &[ClassPatch],
    targets: &mut [Target],
    values: &[api::core::v1beta2::Variable],
    cluster: &Value,
) -> Result<(), PatchFailed> {
    for patch in patches {
        for target in targets.iter_mut() {
            let all = variables_of(target, values, cluster);
            let changed = patched(patch, target, &all).map_err(|problem| PatchFailed {
                patch: patch.name.clone(),
                kind: target.object["kind"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
                problem,
            })?;
            if let Some(changed) = changed {
                target.object = changed;
            }
        }
    }
    Ok(())
}

/// Returns the variables for the patches of a template.
pub fn variables_of(
    target: &Target,
    values: &[api::core::v1beta2::Variable],
    cluster: &Value,
) -> Named {
    let mut builtin = Map::new();
    builtin.insert("cluster".to_owned(), cluster.clone());
    if let Some((name, fields)) = &target.builtin {
        builtin.insert((*name).to_owned(), fields.clone());
    }
    let mut all = variables::merged(values, &target.overrides);
    all.insert(BUILTIN.to_owned(), Value::Object(builtin));
    all
}

/// Returns the changed template; `None` if the patch does not apply to the template.
fn patched(patch: &ClassPatch, target: &Target, values: &Named) -> Result<Option<Value>, String> {
    let definitions = patch.definitions.iter().flatten().enumerate();
    let mut matching = definitions
        .filter(|(_, definition)| matches(&definition.selector, target))
        .peekable();
    if matching.peek().is_none() || !is_enabled(patch, values)? {
        return Ok(None);
    }
    let mut object = target.object.clone();
    for (at, definition) in matching {
        let mut operations = Vec::new();
        for (index, change) in definition.json_patches.iter().enumerate() {
            let field = format!("definitions[{at}].jsonPatches[{index}]");
            operations
                .push(operation(change, values).map_err(|problem| format!("{field}{problem}"))?);
        }
        let changed = apimachinery::patch::json(&object, &Value::from(operations));
        object = changed.map_err(|error| format!("definitions[{at}].jsonPatches: {error}"))?;
    }
    Ok(Some(object))
}

fn is_enabled(patch: &ClassPatch, values: &Named) -> Result<bool, String> {
    let Some(template) = &patch.enabled_if else {
        return Ok(true);
    };
    let value = rendered(template, values).map_err(|problem| format!("enabledIf: {problem}"))?;
    Ok(value == json!(true))
}

/// Returns one operation in the form of RFC 6902.
fn operation(change: &JsonPatch, values: &Named) -> Result<Value, String> {
    let mut operation = json!({ "op": change.op.as_str(), "path": change.path });
    if change.op != PatchOperation::Remove {
        operation["value"] = value(change, values)?;
    }
    Ok(operation)
}

fn value(change: &JsonPatch, values: &Named) -> Result<Value, String> {
    let from = change.value_from.clone().unwrap_or_default();
    match (&change.value, from.variable, from.template) {
        (Some(value), None, None) => Ok(value.clone()),
        (None, Some(path), None) => {
            let value = variables::value(values, &path).cloned();
            value.map_err(|problem| format!(".valueFrom.variable: {problem}"))
        }
        (None, None, Some(template)) => {
            rendered(&template, values).map_err(|problem| format!(".valueFrom.template: {problem}"))
        }
        (None, None, None) => Err(": neither value nor valueFrom is set".to_owned()),
        _ => Err(
            ": more than one of value, valueFrom.variable and valueFrom.template is set".to_owned(),
        ),
    }
}

/// Renders a template and reads the output as YAML.
fn rendered(template: &str, values: &Named) -> Result<Value, String> {
    let template = Template::parse(template).map_err(|error| error.to_string())?;
    let text = template.render(&variables::data(values));
    let text = text.map_err(|error| error.to_string())?;
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    serde_saphyr::from_str(&text).map_err(|error| {
        format!(
            "renders to text that is not YAML: {}",
            error.without_snippet()
        )
    })
}

/// True if a selector matches a template.
pub fn matches(selector: &PatchSelector, target: &Target) -> bool {
    let is = |field: &str, wanted: &str| target.object[field].as_str() == Some(wanted);
    if !is("apiVersion", &selector.api_version) || !is("kind", &selector.kind) {
        return false;
    }
    let resources = &selector.match_resources;
    match &target.place {
        TemplateRole::InfrastructureCluster => resources.infrastructure_cluster == Some(true),
        TemplateRole::ControlPlane | TemplateRole::ControlPlaneMachines => {
            resources.control_plane == Some(true)
        }
        TemplateRole::MachineDeployment(class) => {
            let classes = resources.machine_deployment_class.as_ref();
            classes.is_some_and(|classes| names(classes, class))
        }
    }
}

fn names(classes: &MatchClasses, class: &str) -> bool {
    classes.names.iter().flatten().any(|name| {
        let ends = name
            .strip_prefix('*')
            .is_some_and(|rest| class.ends_with(rest));
        let starts = name
            .strip_suffix('*')
            .is_some_and(|rest| class.starts_with(rest));
        name == class || ends || starts
    })
}

#[cfg(test)]
mod tests;
