//! MachineHealthChecks.

use serde_json::{Value, json};

use api::kube::ResourceExt;
use api::names::{CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL};

use super::Input;
use crate::names::{DEPLOYMENT_LABEL, OWNED_LABEL};

/// Returns the health check of the control plane machines.
pub(super) fn of_plane(input: &Input<'_>, plane: &Value) -> Option<Value> {
    let given = input.topology.control_plane.as_ref();
    let given = given.and_then(|plane| plane.health_check.as_ref());
    let class = input.class.spec.control_plane.health_check.as_ref();
    input
        .class
        .spec
        .control_plane
        .machine_infrastructure
        .as_ref()?;
    let given_rules =
        given.map(|given| json!({ "checks": given.checks, "remediation": given.remediation }));
    let class_rules =
        class.map(|class| json!({ "checks": class.checks, "remediation": class.remediation }));
    let enabled = given.and_then(|given| given.enabled);
    let rules = rules(enabled, given_rules, class_rules)?;
    let selector = json!({ "matchLabels": { CONTROL_PLANE_LABEL: "" } });
    Some(check(
        input,
        plane["metadata"]["name"].as_str()?,
        selector,
        &rules,
    ))
}

/// Returns the health check of the machines of a MachineDeployment.
pub(super) fn of_deployment(
    input: &Input<'_>,
    topology: &api::core::v1beta2::MachineDeploymentTopology,
    name: &str,
) -> Option<Value> {
    let given = topology.health_check.as_ref();
    let class = input
        .class
        .machine_deployment(&topology.class)?
        .health_check
        .as_ref();
    // How many machines are replaced at a time is a field of the MachineDeployment.
    let without = |remediation: Option<&api::core::v1beta2::HealthRemediation>| {
        let mut json = json!(remediation);
        if let Some(fields) = json.as_object_mut() {
            fields.remove("maxInFlight");
        }
        json
    };
    let given_rules = given.map(
        |given| json!({ "checks": given.checks, "remediation": without(given.remediation.as_ref()) }),
    );
    let class_rules = class.map(|class| json!({ "checks": class.checks, "remediation": without(class.remediation.as_ref()) }));
    let enabled = given.and_then(|given| given.enabled);
    let rules = rules(enabled, given_rules, class_rules)?;
    let selector = json!({ "matchLabels": { OWNED_LABEL: "", DEPLOYMENT_LABEL: topology.name } });
    Some(check(input, name, selector, &rules))
}

/// Returns the rules of the topology, or else of the class; `None` if the topology disables the check, or neither has
/// rules.
fn rules(enabled: Option<bool>, given: Option<Value>, class: Option<Value>) -> Option<Value> {
    let filled = |rules: &Value| {
        ["checks", "remediation"].iter().any(|part| {
            let fields = rules[*part].as_object();
            fields.is_some_and(|fields| !fields.is_empty())
        })
    };
    if enabled == Some(false) {
        return None;
    }
    given.filter(filled).or_else(|| class.filter(filled))
}

fn check(input: &Input<'_>, name: &str, selector: Value, rules: &Value) -> Value {
    let cluster = input.cluster.name_any();
    let mut spec = json!({ "clusterName": cluster, "selector": selector });
    for part in ["checks", "remediation"] {
        if rules[part]
            .as_object()
            .is_some_and(|fields| !fields.is_empty())
        {
            spec[part] = rules[part].clone();
        }
    }
    json!({
        "apiVersion": api::core::v1beta2::API_VERSION,
        "kind": "MachineHealthCheck",
        "metadata": {
            "name": name,
            "namespace": input.cluster.namespace(),
            "labels": { CLUSTER_NAME_LABEL: cluster, OWNED_LABEL: "" },
            "ownerReferences": [input.owner()],
        },
        "spec": spec,
    })
}
