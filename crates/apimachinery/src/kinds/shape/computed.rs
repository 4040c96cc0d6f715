//! Defaults of a struct that depend on its other fields (`pkg/apis/*/v1/defaults.go` of Kubernetes), and the two names
//! of a pod's service account, kept equal as in conversion.

mod amounts;
mod image;

use serde_json::{Map, Value, json};

type Fields = Map<String, Value>;

/// Returns the function for such defaults of a struct, by the name in `shapes.json`. Nested structs are defaulted
/// afterwards.
pub(super) fn of(name: &str) -> Option<fn(&mut Fields)> {
    Some(match name {
        "apps.v1.DaemonSetUpdateStrategy" => daemon_set_strategy,
        "apps.v1.DeploymentStrategy" => deployment_strategy,
        "apps.v1.StatefulSetUpdateStrategy" => stateful_set_strategy,
        "batch.v1.Job" => job,
        "core.v1.Container" | "core.v1.EphemeralContainer" => container,
        "core.v1.LimitRangeItem" => limits,
        "core.v1.NodeSpec" => pod_ranges,
        "core.v1.NodeStatus" => node_status,
        "core.v1.PersistentVolume" => persistent_volume,
        "core.v1.Pod" => pod,
        "core.v1.PodSpec" => service_account,
        "core.v1.ReplicationController" => replication_controller,
        "core.v1.Service" => service,
        "core.v1.ServicePort" => service_port,
        "core.v1.Volume" => volume,
        "networking.v1.NetworkPolicySpec" => policy_types,
        "rbac.v1.Subject" => subject,
        _ => return None,
    })
}

fn deployment_strategy(strategy: &mut Fields) {
    set(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate"
        && let Some(rolling) = part(strategy, "rollingUpdate")
    {
        set_absent(rolling, "maxUnavailable", "25%");
        set_absent(rolling, "maxSurge", "25%");
    }
}

/// As in conversion, omitted details of the other strategy type are 0.
fn daemon_set_strategy(strategy: &mut Fields) {
    set(strategy, "type", "RollingUpdate");
    let rolls = strategy["type"] == "RollingUpdate";
    if !rolls && is_absent(strategy, "rollingUpdate") {
        return;
    }
    if let Some(rolling) = part(strategy, "rollingUpdate") {
        set_absent(rolling, "maxUnavailable", i32::from(rolls));
        set_absent(rolling, "maxSurge", 0);
    }
}

/// Unlike the other strategies, a strategy with a type only is not completed.
fn stateful_set_strategy(strategy: &mut Fields) {
    if text(strategy, "type").is_empty() {
        set(strategy, "type", "RollingUpdate");
        part(strategy, "rollingUpdate");
    }
    if strategy["type"] == "RollingUpdate"
        && let Some(Value::Object(rolling)) = strategy.get_mut("rollingUpdate")
    {
        set_absent(rolling, "partition", 0);
    }
}

/// The template of a CronJob has no defaults; they are set on the creation of a Job.
fn job(job: &mut Fields) {
    let Some(spec) = part(job, "spec") else {
        return;
    };
    if is_absent(spec, "completions") && is_absent(spec, "parallelism") {
        set_absent(spec, "completions", 1);
    }
    let limit = match is_absent(spec, "backoffLimitPerIndex") {
        true => 6,
        false => i32::MAX,
    };
    let replacement = match is_absent(spec, "podFailurePolicy") {
        true => "TerminatingOrFailed",
        false => "Failed",
    };
    set_absent(spec, "parallelism", 1);
    set_absent(spec, "backoffLimit", limit);
    set_absent(spec, "completionMode", "NonIndexed");
    set_absent(spec, "suspend", false);
    set_absent(spec, "podReplacementPolicy", replacement);
    set_absent(spec, "manualSelector", false);
}

fn container(container: &mut Fields) {
    let policy = image::pull_policy(text(container, "image"));
    set(container, "imagePullPolicy", policy);
}

/// The default limits of containers are their maximums; the default requests are the default limits or else the
/// minimums.
fn limits(item: &mut Fields) {
    if text(item, "type") != "Container" {
        return;
    }
    for (from, to) in [
        ("max", "default"),
        ("default", "defaultRequest"),
        ("min", "defaultRequest"),
    ] {
        fill_amounts(item, from, to);
    }
}

/// The first range for pods has a field of its own. This field wins if the two differ
/// (`Convert_v1_NodeSpec_To_core_NodeSpec`).
fn pod_ranges(spec: &mut Fields) {
    let first = items_of(spec, "podCIDRs").and_then(|ranges| ranges.first().cloned());
    let named = text(spec, "podCIDR").to_owned();
    match first {
        Some(first) if named.is_empty() => {
            spec.insert("podCIDR".to_owned(), first);
        }
        first if !named.is_empty() && first.as_ref().is_none_or(|first| *first != named) => {
            spec.insert("podCIDRs".to_owned(), json!([named]));
        }
        _ => {}
    }
}

fn node_status(status: &mut Fields) {
    if is_absent(status, "allocatable")
        && let Some(capacity) = status.get("capacity").cloned()
    {
        status.insert("allocatable".to_owned(), capacity);
    }
}

/// Does not apply to a volume spec inside a VolumeAttachment.
fn persistent_volume(volume: &mut Fields) {
    if let Some(spec) = part(volume, "spec") {
        set(spec, "persistentVolumeReclaimPolicy", "Retain");
        set_absent(spec, "volumeMode", "Filesystem");
    }
}

/// Sets defaults of pods that pod templates do not have.
fn pod(pod: &mut Fields) {
    let Some(spec) = part(pod, "spec") else {
        return;
    };
    set_absent(spec, "enableServiceLinks", true);
    let on_host = spec.get("hostNetwork").is_some_and(|value| *value == true);
    for list in ["containers", "initContainers"] {
        for container in items(spec, list) {
            if let Some(Value::Object(resources)) = container.get_mut("resources") {
                fill_amounts(resources, "limits", "requests");
            }
            for port in items(container, "ports").filter(|_| on_host) {
                let number = port.get("containerPort").cloned().unwrap_or_default();
                set(port, "hostPort", number);
            }
        }
    }
    amounts::of_pod(spec);
}

/// `serviceAccount` is the deprecated name of `serviceAccountName`; both are written.
fn service_account(spec: &mut Fields) {
    let mut names = ["serviceAccountName", "serviceAccount"].into_iter();
    let name = names
        .find(|name| !text(spec, name).is_empty())
        .and_then(|name| spec.get(name).cloned());
    if let Some(name) = name {
        spec.insert("serviceAccountName".to_owned(), name.clone());
        spec.insert("serviceAccount".to_owned(), name);
    }
}

fn replication_controller(controller: &mut Fields) {
    let labels = controller
        .get("spec")
        .and_then(|spec| spec.pointer("/template/metadata/labels"))
        .filter(|labels| labels.is_object())
        .cloned();
    let Some(labels) = labels else { return };
    for (owner, field) in [("spec", "selector"), ("metadata", "labels")] {
        let Some(owner) = part(controller, owner) else {
            continue;
        };
        let empty = |value: &Value| value.as_object().is_none_or(Map::is_empty);
        if owner.get(field).is_none_or(empty) {
            owner.insert(field.to_owned(), labels.clone());
        }
    }
}

fn service(service: &mut Fields) {
    let Some(spec) = part(service, "spec") else {
        return;
    };
    session_affinity(spec);
    set(spec, "type", "ClusterIP");
    let kind = text(spec, "type").to_owned();
    let external = spec
        .get("externalIPs")
        .and_then(Value::as_array)
        .is_some_and(|addresses| !addresses.is_empty());
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") || kind == "ClusterIP" && external {
        set(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer") {
        set_absent(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind != "LoadBalancer" {
        return;
    }
    set_absent(spec, "allocateLoadBalancerNodePorts", true);
    let balancer = service
        .get_mut("status")
        .and_then(|status| status.get_mut("loadBalancer"))
        .and_then(Value::as_object_mut);
    for address in balancer
        .into_iter()
        .flat_map(|balancer| items(balancer, "ingress"))
    {
        if !text(address, "ip").is_empty() {
            set_absent(address, "ipMode", "VIP");
        }
    }
}

fn session_affinity(spec: &mut Fields) {
    set(spec, "sessionAffinity", "None");
    match text(spec, "sessionAffinity") {
        "None" => {
            spec.remove("sessionAffinityConfig");
        }
        "ClientIP" => {
            let given = spec
                .get("sessionAffinityConfig")
                .and_then(|config| config.pointer("/clientIP/timeoutSeconds"));
            if given.is_none_or(Value::is_null) {
                let config = json!({"clientIP": {"timeoutSeconds": 10800}});
                spec.insert("sessionAffinityConfig".to_owned(), config);
            }
        }
        _ => {}
    }
}

fn service_port(port: &mut Fields) {
    let number = port.get("port").cloned().unwrap_or_default();
    set(port, "targetPort", number);
}

fn volume(volume: &mut Fields) {
    let sourceless = volume
        .iter()
        .all(|(name, source)| name == "name" || source.is_null());
    if sourceless {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
}

fn policy_types(spec: &mut Fields) {
    let egress = items_of(spec, "egress").is_some_and(|rules| !rules.is_empty());
    let types = match egress {
        true => json!(["Ingress", "Egress"]),
        false => json!(["Ingress"]),
    };
    set(spec, "policyTypes", types);
}

fn subject(subject: &mut Fields) {
    if matches!(text(subject, "kind"), "User" | "Group") {
        set(subject, "apiGroup", "rbac.authorization.k8s.io");
    }
}

/// Copies the amounts that the other list lacks.
fn fill_amounts(fields: &mut Fields, from: &str, to: &str) {
    let Some(Value::Object(given)) = fields.get(from).cloned() else {
        return;
    };
    if let Some(amounts) = part(fields, to) {
        for (resource, amount) in given {
            amounts.entry(resource).or_insert(amount);
        }
    }
}

fn text<'a>(fields: &'a Fields, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn is_absent(fields: &Fields, name: &str) -> bool {
    fields.get(name).is_none_or(Value::is_null)
}

/// Sets a field with a pointer as Go type: an empty value counts as set.
fn set_absent(fields: &mut Fields, name: &str, value: impl Into<Value>) {
    if is_absent(fields, name) {
        fields.insert(name.to_owned(), value.into());
    }
}

/// Sets a field whose Go type is no pointer: an empty value counts as not set.
fn set(fields: &mut Fields, name: &str, value: impl Into<Value>) {
    let unset = match fields.get(name) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(number) => *number == 0,
    };
    if unset {
        fields.insert(name.to_owned(), value.into());
    }
}

/// Returns a nested struct, created if missing; `None` if the field has another type.
fn part<'a>(fields: &'a mut Fields, name: &str) -> Option<&'a mut Fields> {
    let value = fields.entry(name).or_insert_with(|| json!({}));
    if value.is_null() {
        *value = json!({});
    }
    value.as_object_mut()
}

fn items_of<'a>(fields: &'a Fields, name: &str) -> Option<&'a Vec<Value>> {
    fields.get(name).and_then(Value::as_array)
}

/// Returns the structs in a list.
fn items<'a>(fields: &'a mut Fields, name: &str) -> impl Iterator<Item = &'a mut Fields> {
    fields
        .get_mut(name)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
}

#[cfg(test)]
mod tests;
