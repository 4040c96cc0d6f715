//! Edits from schemas of v1beta2 to schemas of v1beta1.

use serde_json::{Value, json};

mod class;

pub(super) use class::cluster_class;

use crate::definition::edit::{conditions, duration, old_conditions, property, remove, set, text};

/// Edits the schema of Cluster.
pub(super) fn cluster(root: &mut Value) {
    let status = property(root, "status").clone();
    let spec = spec_of(root);
    set(
        spec,
        "infrastructureRef",
        reference("The infrastructure of the cluster as a whole."),
    );
    set(spec, "controlPlaneRef", reference("The control plane."));
    let endpoint = property(spec, "controlPlaneEndpoint");
    set(
        endpoint,
        "host",
        json!({ "type": "string", "maxLength": 512, "description": "Host of the API server: a name or an address." }),
    );
    set(
        endpoint,
        "port",
        json!({ "type": "integer", "format": "int32", "description": "Port of the API server, such as 6443." }),
    );
    let port = property(property(spec, "clusterNetwork"), "apiServerPort");
    forget(port, &["minimum", "maximum"]);
    topology(property(spec, "topology"));
    let status = &mut status.clone();
    let mut new = json!({ "type": "object", "description": "Status in the words of v1beta2.",
        "properties": { "conditions": conditions() } });
    for name in ["controlPlane", "workers"] {
        if let Some(counts) = remove(status, name) {
            set(&mut new, name, counts);
        }
    }
    steps(status, &["infrastructureReady", "controlPlaneReady"]);
    let domains = remove(status, "failureDomains").unwrap_or_default();
    let mut domain = domains["items"].clone();
    remove(&mut domain, "name");
    set(
        status,
        "failureDomains",
        json!({ "type": "object", "additionalProperties": domain,
        "description": "Failure domains for machines, by name." }),
    );
    former(status, new);
    set(root, "status", status.clone());
}

/// Edits the schema of Machine.
pub(super) fn machine(root: &mut Value) {
    machine_spec(spec_of(root));
    let status = property(root, "status");
    steps(status, &["infrastructureReady", "bootstrapReady"]);
    set(status, "nodeRef", reference("The machine's Node."));
    // In v1beta1 a field of the spec.
    remove(status, "failureDomain");
    let phases = property(status, "phase")
        .get_mut("enum")
        .and_then(Value::as_array_mut);
    if let Some(phases) = phases {
        phases.retain(|phase| phase != "Updating");
    }
    let new = json!({ "type": "object", "description": "Status in the words of v1beta2.",
        "properties": { "conditions": conditions() } });
    former(status, new);
}

/// Edits the schema of MachineSet.
pub(super) fn machine_set(root: &mut Value) {
    template_spec(root);
    let spec = property(root, "spec");
    let order =
        remove(spec, "deletion").map(|mut deletion| property(&mut deletion, "order").take());
    set(spec, "deletePolicy", order.unwrap_or_default());
    let required = spec.get_mut("required").and_then(Value::as_array_mut);
    if let Some(required) = required {
        required.retain(|name| name != "template");
    }
    counted(property(root, "status"), &["fullyLabeledReplicas"]);
}

/// Edits the schema of MachineDeployment.
pub(super) fn deployment(root: &mut Value) {
    template_spec(root);
    let spec = property(root, "spec");
    strategy(spec);
    let effect = "No longer has any effect.";
    for name in ["progressDeadlineSeconds", "revisionHistoryLimit"] {
        set(
            spec,
            name,
            json!({ "type": "integer", "format": "int32", "description": effect }),
        );
    }
    set(
        spec,
        "rolloutAfter",
        time("Machines from before this moment are replaced."),
    );
    counted(
        property(root, "status"),
        &["updatedReplicas", "unavailableReplicas"],
    );
    for name in ["failureReason", "failureMessage"] {
        remove(property(root, "status"), name);
    }
}

/// Edits the schema of MachineHealthCheck.
pub(super) fn health_check(root: &mut Value) {
    let spec = spec_of(root);
    let mut of_topology = json!({ "type": "object", "properties": {
        "healthCheck": { "type": "object", "properties": { "checks": remove(spec, "checks") } },
    }});
    remove(spec, "remediation");
    health(&mut of_topology);
    let mut fields = remove(&mut of_topology, "machineHealthCheck").unwrap_or_default();
    for name in [
        "maxUnhealthy",
        "nodeStartupTimeout",
        "remediationTemplate",
        "unhealthyRange",
        "unhealthyConditions",
        "unhealthyMachineConditions",
    ] {
        set(spec, name, remove(&mut fields, name).unwrap_or_default());
    }
    let status = property(root, "status");
    former(status, new_conditions());
    for name in ["failureReason", "failureMessage"] {
        remove(status, name);
    }
}

/// Schema of the field `v1beta2` in the status of a kind with nothing but conditions.
pub(crate) fn new_conditions() -> Value {
    json!({ "type": "object", "description": "Status in the words of v1beta2.",
        "properties": { "conditions": conditions() } })
}

/// No edits of MachineDrainRule: both versions have the same schema.
pub(super) fn drain_rule(_root: &mut Value) {}

/// Relaxed schema of the spec, optional in v1beta1.
pub(crate) fn spec_of(root: &mut Value) -> &mut Value {
    if let Some(fields) = root.as_object_mut() {
        fields.remove("required");
    }
    relax(property(root, "spec"));
    property(root, "spec")
}

fn template_spec(root: &mut Value) {
    let spec = spec_of(root);
    let template = property(spec, "template");
    template
        .as_object_mut()
        .map(|fields| fields.remove("required"));
    machine_spec(property(template, "spec"));
    let naming = remove(spec, "machineNaming").unwrap_or_default();
    set(spec, "machineNamingStrategy", naming);
    set(
        spec,
        "minReadySeconds",
        json!({ "type": "integer", "format": "int32",
        "description": "Seconds for which a machine must be ready before it counts as available." }),
    );
}

fn machine_spec(spec: &mut Value) {
    set(
        spec,
        "infrastructureRef",
        reference("The infrastructure of the machine."),
    );
    set(
        property(spec, "bootstrap"),
        "configRef",
        reference("Bootstrap configuration whose controller makes the data."),
    );
    remove(spec, "minReadySeconds");
    tainted(spec);
    timeouts(spec);
}

/// Requires a non-empty list of taints: the field is new in both versions.
fn tainted(spec: &mut Value) {
    property(spec, "taints")["minItems"] = json!(1);
}

fn forget(schema: &mut Value, keywords: &[&str]) {
    if let Some(fields) = schema.as_object_mut() {
        for keyword in keywords {
            fields.remove(*keyword);
        }
    }
}

fn timeouts(spec: &mut Value) {
    remove(spec, "deletion");
    set(spec, "nodeDrainTimeout", duration("Timeout for draining."));
    set(
        spec,
        "nodeVolumeDetachTimeout",
        duration("Timeout for detaching volumes."),
    );
    set(
        spec,
        "nodeDeletionTimeout",
        duration("For how long deleting the Node is tried."),
    );
}

/// Merges `rollout.strategy`, `deletion` and `remediation` into `strategy`.
fn strategy(spec: &mut Value) {
    let order =
        remove(spec, "deletion").map(|mut deletion| property(&mut deletion, "order").take());
    let remediation = remove(spec, "remediation").unwrap_or_else(|| {
        json!({ "type": "object", "description": "Rules for the replacement of unhealthy machines.",
            "properties": { "maxInFlight": { "x-kubernetes-int-or-string": true,
                "description": "Maximum of machines that are replaced at a time: a number, or a percentage of the replicas." } } })
    });
    let mut rollout = remove(spec, "rollout").unwrap_or_default();
    let mut strategy = property(&mut rollout, "strategy").take();
    if let Some(fields) = strategy.as_object_mut() {
        fields.remove("required");
    }
    set(
        property(&mut strategy, "rollingUpdate"),
        "deletePolicy",
        order.unwrap_or_default(),
    );
    set(&mut strategy, "remediation", remediation);
    set(spec, "strategy", strategy);
}

fn topology(topology: &mut Value) {
    remove(topology, "classRef");
    set(topology, "class", text(1, 253, "The ClusterClass."));
    let mut namespace = text(1, 63, "Namespace of the class.");
    namespace["pattern"] = json!("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$");
    set(topology, "classNamespace", namespace);
    set(topology, "rolloutAfter", time("No longer has any effect."));
    topology["required"] = json!(["class", "version"]);
    defined(&mut property(topology, "variables")["items"]);
    let control_plane = property(topology, "controlPlane");
    tainted(control_plane);
    timeouts(control_plane);
    health(control_plane);
    overrides(control_plane);
    let workers = property(topology, "workers");
    let deployment = &mut property(workers, "machineDeployments")["items"];
    forget(property(deployment, "name"), &["pattern"]);
    tainted(deployment);
    health(deployment);
    overrides(deployment);
    let after = deployment["properties"]["rollout"]["properties"]["after"].clone();
    strategy(deployment);
    timeouts(deployment);
    set(
        deployment,
        "rollout",
        json!({ "type": "object", "properties": { "after": after },
        "description": "Conditions under which machines are replaced without a change of the spec." }),
    );
    let pool = &mut property(workers, "machinePools")["items"];
    forget(property(pool, "name"), &["pattern"]);
    tainted(pool);
    timeouts(pool);
    overrides(pool);
}

fn health(part: &mut Value) {
    let mut new = remove(part, "healthCheck").unwrap_or_default();
    let checks = property(&mut new, "checks");
    let share = json!({ "x-kubernetes-int-or-string": true,
        "description": "Above this number nothing is replaced." });
    let mut list = |name: &str| {
        let mut list = property(checks, name).take();
        let condition = &mut list["items"];
        remove(condition, "timeoutSeconds");
        set(
            condition,
            "timeout",
            duration("Minimum duration of the condition."),
        );
        condition["required"] = json!(["status", "timeout", "type"]);
        list
    };
    let of_node = list("unhealthyNodeConditions");
    let mut of_machine = list("unhealthyMachineConditions");
    of_machine["minItems"] = json!(1);
    let mut range = text(
        1,
        32,
        "Only with so many unhealthy machines is one replaced.",
    );
    range["pattern"] = json!("^\\[[0-9]+-[0-9]+\\]$");
    set(
        part,
        "machineHealthCheck",
        json!({ "type": "object",
        "description": "Health checks of the machines.",
        "properties": {
            "enable": { "type": "boolean", "description": "Enables the health check." },
            "maxUnhealthy": share,
            "nodeStartupTimeout": duration("Timeout for the Node to appear."),
            "remediationTemplate": reference("Template whose copies remediate machines."),
            "unhealthyConditions": of_node,
            "unhealthyMachineConditions": of_machine,
            "unhealthyRange": range,
        } }),
    );
}

fn overrides(part: &mut Value) {
    defined(&mut property(property(part, "variables"), "overrides")["items"]);
}

fn defined(variable: &mut Value) {
    set(
        variable,
        "definitionFrom",
        json!({ "type": "string", "maxLength": 256,
        "description": "No longer has any effect." }),
    );
}

fn steps(status: &mut Value, names: &[&str]) {
    remove(status, "initialization");
    for name in names {
        set(
            status,
            name,
            json!({ "type": "boolean", "description": "True once the step is done." }),
        );
    }
}

fn counted(status: &mut Value, older: &[&str]) {
    let mut new = json!({ "type": "object", "description": "Status in the words of v1beta2.",
        "properties": { "conditions": conditions() } });
    for name in ["readyReplicas", "availableReplicas", "upToDateReplicas"] {
        let count = property(status, name).clone();
        set(&mut new, name, count);
    }
    remove(status, "upToDateReplicas");
    for name in older {
        set(
            status,
            name,
            json!({ "type": "integer", "format": "int32",
            "description": "Counted by the rules of v1beta1." }),
        );
    }
    former(status, new);
}

/// Sets the conditions of v1beta1, with severities, and `new` as `v1beta2`.
pub(crate) fn former(status: &mut Value, new: Value) {
    relax(status);
    remove(status, "deprecated");
    set(status, "conditions", old_conditions());
    set(
        status,
        "failureReason",
        json!({ "type": "string", "description": "A terminal failure." }),
    );
    set(
        status,
        "failureMessage",
        text(1, 10240, "A sentence for a terminal failure."),
    );
    set(status, "v1beta2", new);
}

/// Removes the rules against empty lists and objects.
fn relax(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else {
        return;
    };
    fields.remove("minItems");
    fields.remove("minProperties");
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(relax);
    }
    fields.get_mut("items").map(relax);
}

fn reference(description: &str) -> Value {
    let field = |description: &str| json!({ "type": "string", "description": description });
    json!({ "type": "object", "description": description, "x-kubernetes-map-type": "atomic",
        "properties": {
            "apiVersion": field("API group and version of the object."),
            "kind": field("Kind of the object."),
            "name": field("Name of the object."),
            "namespace": field("Namespace of the object: always that of the referring one."),
            "fieldPath": field("Ignored."),
            "resourceVersion": field("Ignored."),
            "uid": field("Uid of the object, which the controllers ignore."),
        } })
}

fn time(description: &str) -> Value {
    json!({ "type": "string", "format": "date-time", "description": description })
}
