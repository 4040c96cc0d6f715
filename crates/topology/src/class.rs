//! Validation of a ClusterClass beyond the schema: rules for variables, patches and names.

use std::collections::{BTreeMap, BTreeSet};

use api::admission::FieldError;
use api::core::v1beta2::{
    ClassNaming, ClassPatch, ClassVariable, ClusterClassSpec, JsonPatch, PatchDefinition,
    PatchOperation,
};
use serde::Deserialize;
use serde_json::Value;

use crate::builtin::{NAMES_OF_TEMPLATES, PATHS};
use crate::patches::{Target, TemplateRole, matches};
use crate::template::Template;
use crate::{template, variables};

/// Maximum length of names of objects, which become label values and host names.
const LONGEST: usize = 63;

/// Returns a [`FieldError`] for every violation of a ClusterClass. A spec that cannot be decoded gives none here: the
/// error is reported elsewhere.
pub fn problems(object: &Value) -> Vec<FieldError> {
    let Ok(spec) = ClusterClassSpec::deserialize(&object["spec"]) else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    names_of_variables(spec.variables.as_deref().unwrap_or_default(), &mut errors);
    if let Err(found) = variables::definitions(spec.variables.as_deref().unwrap_or_default()) {
        errors.extend(found);
    }
    patches(&spec, &mut errors);
    names(&spec, &mut errors);
    errors
}

fn names_of_variables(all: &[ClassVariable], errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (at, variable) in all.iter().enumerate() {
        let name = variable.name.as_str();
        let path = format!("spec.variables[{at}].name");
        let message = if name == variables::BUILTIN {
            "builtin is the name of the variables that every class has".to_owned()
        } else if name.contains(['.', '[', ']']) {
            format!(
                "{name} cannot contain . or [ ], which lead to fields and elements of variables"
            )
        } else if !seen.insert(name) {
            format!("{name} is the name of another variable, too")
        } else {
            continue;
        };
        errors.push(FieldError::new(path, message));
    }
}

fn patches(spec: &ClusterClassSpec, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (at, patch) in spec.patches.iter().flatten().enumerate() {
        let path = format!("spec.patches[{at}]");
        if !seen.insert(patch.name.as_str()) {
            let message = format!("{} is the name of another patch, too", patch.name);
            errors.push(FieldError::new(format!("{path}.name"), message));
        }
        of_patch(spec, patch, &path, errors);
    }
}

fn of_patch(spec: &ClusterClassSpec, patch: &ClassPatch, path: &str, errors: &mut Vec<FieldError>) {
    if patch.external.is_some() {
        // Rejected by name, whatever else is set.
        return;
    }
    if patch.definitions.as_ref().is_none_or(Vec::is_empty) {
        errors.push(FieldError::new(
            format!("{path}.definitions"),
            "must not be empty",
        ));
    }
    if let Some(template) = &patch.enabled_if {
        parsed(template, format!("{path}.enabledIf"), errors);
    }
    for (at, definition) in patch.definitions.iter().flatten().enumerate() {
        let path = format!("{path}.definitions[{at}]");
        selector(spec, definition, &format!("{path}.selector"), errors);
        for (at, change) in definition.json_patches.iter().enumerate() {
            of_change(spec, change, &format!("{path}.jsonPatches[{at}]"), errors);
        }
    }
}

fn parsed(template: &str, path: String, errors: &mut Vec<FieldError>) {
    if let Err(error) = Template::parse(template) {
        errors.push(FieldError::new(
            path,
            format!("is not a Go template: {error}"),
        ));
    }
}

/// Returns the templates of a class with their places.
fn targets(spec: &ClusterClassSpec) -> Vec<Target> {
    let mut all = vec![
        (
            TemplateRole::InfrastructureCluster,
            &spec.infrastructure.template_ref,
        ),
        (TemplateRole::ControlPlane, &spec.control_plane.template_ref),
    ];
    if let Some(machines) = &spec.control_plane.machine_infrastructure {
        all.push((TemplateRole::ControlPlaneMachines, &machines.template_ref));
    }
    let workers = spec.workers.iter();
    for class in workers.flat_map(|workers| workers.machine_deployments.iter().flatten()) {
        let place = TemplateRole::MachineDeployment(class.class.clone());
        all.push((place.clone(), &class.bootstrap.template_ref));
        all.push((place, &class.infrastructure.template_ref));
    }
    let target = |(place, reference): (TemplateRole, &api::core::v1beta2::VersionedReference)| {
        Target {
            place,
            object: serde_json::json!({ "apiVersion": reference.api_version, "kind": reference.kind }),
            builtin: None,
            overrides: Vec::new(),
        }
    };
    all.into_iter().map(target).collect()
}

fn selector(
    spec: &ClusterClassSpec,
    definition: &PatchDefinition,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let selector = &definition.selector;
    let all = targets(spec);
    if !all.iter().any(|target| matches(selector, target)) {
        let message = format!(
            "selects no template of this class: {} in {} must be the kind and apiVersion of a template in one of the places that matchResources names",
            selector.kind, selector.api_version
        );
        errors.push(FieldError::new(path, message));
    }
    let classes = selector.match_resources.machine_deployment_class.as_ref();
    let names = classes.and_then(|classes| classes.names.as_deref());
    for (at, name) in names.unwrap_or_default().iter().enumerate() {
        let inner = name.trim_start_matches('*').trim_end_matches('*');
        let twice = name.len() - inner.len() > 1 && name != "*" || inner.contains('*');
        if twice {
            let path = format!("{path}.matchResources.machineDeploymentClass.names[{at}]");
            let message = format!("{name} has more than one *, or one in the middle");
            errors.push(FieldError::new(path, message));
        }
    }
}

fn of_change(
    spec: &ClusterClassSpec,
    change: &JsonPatch,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let mut error = |field: &str, message: String| {
        errors.push(FieldError::new(format!("{path}{field}"), message));
    };
    if !change.path.starts_with("/spec/") {
        error(
            ".path",
            format!("{} does not begin with /spec/", change.path),
        );
    }
    let is_add = change.op == PatchOperation::Add;
    let index = change.path.split('/').find(|step| {
        let is_index = !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit());
        let at_an_end = is_add && (*step == "0" || *step == "-");
        (is_index || *step == "-") && !at_an_end
    });
    if let Some(index) = index {
        let message = format!(
            "element {index} of a list: only elements 0 and - can be added, and none replaced or removed"
        );
        error(".path", message);
    }
    let from = change.value_from.as_ref();
    let sources = [
        change.value.is_some(),
        from.is_some_and(|from| from.variable.is_some()),
        from.is_some_and(|from| from.template.is_some()),
    ];
    match (change.op, sources.iter().filter(|is_set| **is_set).count()) {
        (PatchOperation::Remove, 0) if from.is_none() => {}
        (PatchOperation::Remove, _) => error("", "remove takes no value".to_owned()),
        (_, 1) => {}
        _ => {
            let message =
                "exactly one of value, valueFrom.variable and valueFrom.template must be set";
            error("", message.to_owned());
        }
    }
    if let Some(name) = from.and_then(|from| from.variable.as_deref())
        && let Some(message) = unknown(spec, name)
    {
        error(".valueFrom.variable", message);
    }
    if let Some(template) = from.and_then(|from| from.template.as_deref()) {
        parsed(template, format!("{path}.valueFrom.template"), errors);
    }
}

/// Returns the reason why a patch cannot refer to a variable.
fn unknown(spec: &ClusterClassSpec, path: &str) -> Option<String> {
    let end = path.find(['.', '[']).unwrap_or(path.len());
    let name = &path[..end];
    if name == variables::BUILTIN {
        let plain = path.split('[').next().unwrap_or_default();
        if NAMES_OF_TEMPLATES.contains(&plain) {
            return Some(format!(
                "{plain} is not built: the names of templates depend on their content"
            ));
        }
        return (!PATHS.contains(&plain)).then(|| format!("there is no builtin variable {plain}"));
    }
    let mut all = spec.variables.iter().flatten();
    let known = all.any(|variable| variable.name == name);
    (!known).then(|| format!("the class has no variable {name}"))
}

fn names(spec: &ClusterClassSpec, errors: &mut Vec<FieldError>) {
    let mut check = |naming: &Option<ClassNaming>, path: String, topology: Option<&str>| {
        let template = naming
            .as_ref()
            .and_then(|naming| naming.template.as_deref());
        if let Some(template) = template
            && let Err(problem) = named(template, "cluster", "x2b4c", topology)
        {
            errors.push(FieldError::new(format!("{path}.naming.template"), problem));
        }
    };
    check(
        &spec.infrastructure.naming,
        "spec.infrastructure".to_owned(),
        None,
    );
    check(
        &spec.control_plane.naming,
        "spec.controlPlane".to_owned(),
        None,
    );
    let workers = spec.workers.iter();
    let classes = workers.flat_map(|workers| workers.machine_deployments.iter().flatten());
    for (at, class) in classes.enumerate() {
        let path = format!("spec.workers.machineDeployments[{at}]");
        check(&class.naming, path, Some("md-0"));
    }
}

/// Renders a name template for an object of a cluster. `topology_name` is the name of a MachineDeployment in the
/// topology.
///
/// # Errors
/// The template cannot be rendered, or does not give a valid name.
pub fn named(
    template: &str,
    cluster: &str,
    random: &str,
    topology_name: Option<&str>,
) -> Result<String, String> {
    use template::Value::{Map, Text};
    let text = |text: &str| Text(text.to_owned());
    let mut data = BTreeMap::from([
        (
            "cluster".to_owned(),
            Map(BTreeMap::from([("name".to_owned(), text(cluster))])),
        ),
        ("random".to_owned(), text(random)),
    ]);
    if let Some(name) = topology_name {
        let fields = BTreeMap::from([("topologyName".to_owned(), text(name))]);
        data.insert("machineDeployment".to_owned(), Map(fields));
    }
    let parsed =
        Template::parse(template).map_err(|error| format!("is not a Go template: {error}"))?;
    let name = parsed
        .render(&Map(data))
        .map_err(|error| error.to_string())?;
    if name.contains("<no value>") {
        return Err("uses a value that names do not have: there are .cluster.name, .random and, of MachineDeployments, .machineDeployment.topologyName".to_owned());
    }
    let name = shortened(&name, random);
    let valid = |part: &str| {
        let edges = part.starts_with('-') || part.ends_with('-');
        let letters = part
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        !part.is_empty() && !edges && letters
    };
    match name.split('.').all(valid) {
        true => Ok(name),
        false => Err(format!("gives `{name}`, which is not a name of an object")),
    }
}

/// Cuts a name to [`LONGEST`], keeping the random part at the end.
pub(crate) fn shortened(name: &str, random: &str) -> String {
    if name.len() <= LONGEST || !name.is_ascii() {
        return name.to_owned();
    }
    match name.strip_suffix(random) {
        Some(base) => {
            let room = LONGEST - random.len();
            format!("{}{random}", &base[..room])
        }
        None => name[..LONGEST].to_owned(),
    }
}

#[cfg(test)]
mod tests;
