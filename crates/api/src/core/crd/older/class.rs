//! Edits of ClusterClass.

use serde_json::{Value, json};

use super::{
    conditions, former, health, property, reference, remove, set, spec_of, strategy, text, timeouts,
};

/// Edits the schema of ClusterClass.
pub(in crate::core::crd) fn cluster_class(root: &mut Value) {
    let spec = property(root, "spec");
    let (versions, upgrade) = (
        property(spec, "kubernetesVersions").clone(),
        property(spec, "upgrade").clone(),
    );
    let spec = spec_of(root);
    if let Some(fields) = spec.as_object_mut() {
        fields.remove("required");
    }
    // Both fields are younger than the others, with the same schema in both versions.
    set(spec, "kubernetesVersions", versions);
    set(spec, "upgrade", upgrade);
    let infrastructure = property(spec, "infrastructure");
    let naming = remove(infrastructure, "naming").unwrap_or_default();
    template(infrastructure);
    set(spec, "infrastructureNamingStrategy", naming);
    control_plane(property(spec, "controlPlane"));
    let workers = property(spec, "workers");
    let deployment = &mut property(workers, "machineDeployments")["items"];
    checks(deployment);
    strategy(deployment);
    timeouts(deployment);
    remove(deployment, "rollout");
    worker(deployment);
    let pool = &mut property(workers, "machinePools")["items"];
    timeouts(pool);
    worker(pool);
    older_metadata(&mut property(spec, "variables")["items"]);
    patch(&mut property(spec, "patches")["items"]);
    status(property(root, "status"));
}

fn control_plane(plane: &mut Value) {
    template(plane);
    template(property(plane, "machineInfrastructure"));
    let naming = remove(plane, "naming").unwrap_or_default();
    set(plane, "namingStrategy", naming);
    checks(plane);
    timeouts(plane);
    property(plane, "taints")["minItems"] = json!(1);
}

fn worker(class: &mut Value) {
    let mut inner = json!({ "type": "object", "required": ["bootstrap", "infrastructure"],
        "description": "The templates of the machines." });
    for name in ["metadata", "bootstrap", "infrastructure"] {
        let mut part = remove(class, name).unwrap_or_default();
        if name != "metadata" {
            template(&mut part);
        }
        set(&mut inner, name, part);
    }
    set(class, "template", inner);
    let naming = remove(class, "naming").unwrap_or_default();
    set(class, "namingStrategy", naming);
    property(class, "taints")["minItems"] = json!(1);
    class["required"] = json!(["class", "template"]);
}

/// Replaces `templateRef` by `ref`.
fn template(part: &mut Value) {
    remove(part, "templateRef");
    set(part, "ref", reference("The template."));
    part["required"] = json!(["ref"]);
}

fn checks(part: &mut Value) {
    health(part);
    let checks = property(part, "machineHealthCheck");
    remove(checks, "enable");
}

fn older_metadata(definition: &mut Value) {
    let metadata = remove(definition, "deprecatedV1Beta1Metadata").unwrap_or_default();
    set(definition, "metadata", metadata);
}

fn patch(patch: &mut Value) {
    let definition = &mut property(patch, "definitions")["items"];
    let selector = property(definition, "selector");
    set(
        selector,
        "apiVersion",
        text(1, 512, "Group and version of the template."),
    );
    set(selector, "kind", text(1, 256, "Kind of the template."));
    let external = property(patch, "external");
    for (new, old) in [
        ("generatePatchesExtension", "generateExtension"),
        ("validateTopologyExtension", "validateExtension"),
    ] {
        let field = remove(external, new).unwrap_or_default();
        set(external, old, field);
    }
}

fn status(status: &mut Value) {
    let new = json!({ "type": "object", "description": "Status in the words of v1beta2.",
        "properties": { "conditions": conditions() } });
    former(status, new);
    for name in ["failureReason", "failureMessage"] {
        remove(status, name);
    }
    older_metadata(
        &mut property(&mut property(status, "variables")["items"], "definitions")["items"],
    );
}
