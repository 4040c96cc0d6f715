//! Cells of built-in kinds, computed from several fields.

use jiff::Timestamp;
use serde_json::Value;

use crate::time::age;

pub(super) const NONE: &str = "<none>";
const UNKNOWN: &str = "<unknown>";

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn text_or(value: &Value, default: &str) -> Value {
    Value::from(
        value
            .as_str()
            .filter(|text| !text.is_empty())
            .unwrap_or(default),
    )
}

pub(super) fn joined(parts: impl Iterator<Item = String>) -> Value {
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() {
        Value::from(NONE)
    } else {
        Value::from(parts.join(","))
    }
}

fn count(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    let found = list(&object["status"]["conditions"])
        .iter()
        .find(|c| c["type"] == kind)?;
    found["status"].as_str()
}

pub(super) fn nothing(_: &Value) -> Value {
    Value::Null
}

pub(super) fn node_status(node: &Value) -> Value {
    let mut parts = vec![match condition(node, "Ready") {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }];
    if node["spec"]["unschedulable"] == true {
        parts.push("SchedulingDisabled");
    }
    Value::from(parts.join(","))
}

pub(super) fn node_roles(node: &Value) -> Value {
    let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
    joined(labels.filter_map(|(key, value)| {
        if let Some(role) = key.strip_prefix("node-role.kubernetes.io/") {
            return (!role.is_empty()).then(|| role.to_owned());
        }
        let role = value.as_str().filter(|_| key == "kubernetes.io/role")?;
        Some(role.to_owned())
    }))
}

fn node_address(node: &Value, kind: &str) -> Value {
    let found = list(&node["status"]["addresses"])
        .iter()
        .find(|a| a["type"] == kind);
    found.map_or(Value::from(NONE), |address| {
        text_or(&address["address"], NONE)
    })
}

pub(super) fn node_internal_ip(node: &Value) -> Value {
    node_address(node, "InternalIP")
}

pub(super) fn node_external_ip(node: &Value) -> Value {
    node_address(node, "ExternalIP")
}

pub(super) fn node_os(node: &Value) -> Value {
    text_or(&node["status"]["nodeInfo"]["osImage"], UNKNOWN)
}

pub(super) fn node_kernel(node: &Value) -> Value {
    text_or(&node["status"]["nodeInfo"]["kernelVersion"], UNKNOWN)
}

pub(super) fn node_runtime(node: &Value) -> Value {
    text_or(
        &node["status"]["nodeInfo"]["containerRuntimeVersion"],
        UNKNOWN,
    )
}

pub(super) fn pod_ready(pod: &Value) -> Value {
    let ready = list(&pod["status"]["containerStatuses"])
        .iter()
        .filter(|c| c["ready"] == true);
    Value::from(format!(
        "{}/{}",
        ready.count(),
        list(&pod["spec"]["containers"]).len()
    ))
}

pub(super) fn pod_status(pod: &Value) -> Value {
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        return Value::from("Terminating");
    }
    let waiting = list(&pod["status"]["containerStatuses"])
        .iter()
        .rev()
        .find_map(|container| {
            let state = &container["state"];
            let reason = state["waiting"]["reason"]
                .as_str()
                .or_else(|| state["terminated"]["reason"].as_str());
            reason.filter(|reason| !reason.is_empty())
        });
    let reason = pod["status"]["reason"]
        .as_str()
        .filter(|reason| !reason.is_empty());
    waiting
        .or(reason)
        .map_or_else(|| text_or(&pod["status"]["phase"], UNKNOWN), Value::from)
}

pub(super) fn pod_restarts(pod: &Value) -> Value {
    let restarts: i64 = list(&pod["status"]["containerStatuses"])
        .iter()
        .map(|c| count(&c["restartCount"]))
        .sum();
    Value::from(restarts.to_string())
}

pub(super) fn pod_ip(pod: &Value) -> Value {
    text_or(&pod["status"]["podIP"], NONE)
}

pub(super) fn pod_node(pod: &Value) -> Value {
    text_or(&pod["spec"]["nodeName"], NONE)
}

pub(super) fn nominated_node(pod: &Value) -> Value {
    text_or(&pod["status"]["nominatedNodeName"], NONE)
}

pub(super) fn readiness_gates(pod: &Value) -> Value {
    let gates = list(&pod["spec"]["readinessGates"]);
    if gates.is_empty() {
        return Value::from(NONE);
    }
    let met = gates.iter().filter(|gate| {
        gate["conditionType"]
            .as_str()
            .is_some_and(|kind| condition(pod, kind) == Some("True"))
    });
    Value::from(format!("{}/{}", met.count(), gates.len()))
}

pub(super) fn data_count(object: &Value) -> Value {
    let fields = |name: &str| object[name].as_object().map_or(0, serde_json::Map::len);
    Value::from(fields("data") + fields("binaryData"))
}

pub(super) fn secrets_count(account: &Value) -> Value {
    Value::from(list(&account["secrets"]).len())
}

pub(super) fn cluster_ip(service: &Value) -> Value {
    text_or(&service["spec"]["clusterIP"], NONE)
}

pub(super) fn external_ip(service: &Value) -> Value {
    let spec = &service["spec"];
    let given = list(&spec["externalIPs"])
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned);
    match spec["type"].as_str() {
        Some("LoadBalancer") => {
            let ingress = list(&service["status"]["loadBalancer"]["ingress"]).iter();
            let assigned =
                ingress.filter_map(|i| i["ip"].as_str().or_else(|| i["hostname"].as_str()));
            let all: Vec<String> = assigned.map(str::to_owned).chain(given).collect();
            Value::from(if all.is_empty() {
                "<pending>".to_owned()
            } else {
                all.join(",")
            })
        }
        Some("ExternalName") => text_or(&spec["externalName"], NONE),
        _ => joined(given),
    }
}

pub(super) fn ports(service: &Value) -> Value {
    joined(list(&service["spec"]["ports"]).iter().map(|port| {
        let protocol = port["protocol"].as_str().unwrap_or("TCP");
        match port["nodePort"].as_i64() {
            Some(node) if node > 0 => format!("{}:{node}/{protocol}", count(&port["port"])),
            _ => format!("{}/{protocol}", count(&port["port"])),
        }
    }))
}

pub(super) fn selector(object: &Value) -> Value {
    let selector = &object["spec"]["selector"];
    let labels = selector["matchLabels"]
        .as_object()
        .or_else(|| selector.as_object());
    let pairs = labels.into_iter().flatten();
    joined(pairs.filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?))))
}

pub(super) fn endpoints(object: &Value) -> Value {
    joined(list(&object["subsets"]).iter().flat_map(|subset| {
        let ports = list(&subset["ports"]);
        list(&subset["addresses"]).iter().flat_map(move |address| {
            let ip = address["ip"].as_str().unwrap_or_default().to_owned();
            ports
                .iter()
                .map(move |port| format!("{ip}:{}", count(&port["port"])))
        })
    }))
}

pub(super) fn access_modes(object: &Value) -> Value {
    let modes = list(&object["spec"]["accessModes"])
        .iter()
        .filter_map(Value::as_str);
    let short = modes.map(|mode| match mode {
        "ReadWriteOnce" => "RWO",
        "ReadOnlyMany" => "ROX",
        "ReadWriteMany" => "RWX",
        "ReadWriteOncePod" => "RWOP",
        other => other,
    });
    Value::from(short.collect::<Vec<_>>().join(","))
}

pub(super) fn claim(volume: &Value) -> Value {
    let claim = &volume["spec"]["claimRef"];
    match (claim["namespace"].as_str(), claim["name"].as_str()) {
        (Some(namespace), Some(name)) => Value::from(format!("{namespace}/{name}")),
        _ => Value::from(""),
    }
}

pub(super) fn job_status(job: &Value) -> Value {
    let is = |kind: &str| condition(job, kind) == Some("True");
    let known = [
        ("Complete", "Complete"),
        ("Failed", "Failed"),
        ("Suspended", "Suspended"),
    ];
    let found = known
        .into_iter()
        .find(|(kind, _)| is(kind))
        .map(|(_, unit)| unit);
    Value::from(found.unwrap_or("Running"))
}

pub(super) fn completions(job: &Value) -> Value {
    let wanted = job["spec"]["completions"].as_i64().unwrap_or(1);
    Value::from(format!("{}/{wanted}", count(&job["status"]["succeeded"])))
}

pub(super) fn min_available(budget: &Value) -> Value {
    int_or_text(&budget["spec"]["minAvailable"])
}

pub(super) fn max_unavailable(budget: &Value) -> Value {
    int_or_text(&budget["spec"]["maxUnavailable"])
}

fn int_or_text(value: &Value) -> Value {
    match value {
        Value::Null => Value::from("N/A"),
        Value::String(text) => Value::from(text.as_str()),
        other => Value::from(other.to_string()),
    }
}

pub(super) fn role_ref(binding: &Value) -> Value {
    let role = &binding["roleRef"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Value::from(format!("{}/{}", text(&role["kind"]), text(&role["name"])))
}

pub(super) fn expansion(class: &Value) -> Value {
    Value::from(class["allowVolumeExpansion"].as_bool().unwrap_or(false))
}

pub(super) fn drivers(node: &Value) -> Value {
    Value::from(list(&node["spec"]["drivers"]).len())
}

pub(super) fn no_duration(request: &Value) -> Value {
    match request["spec"]["expirationSeconds"].as_i64() {
        Some(seconds) => Value::from(crate::time::human(seconds)),
        None => Value::from(NONE),
    }
}

pub(super) fn csr_condition(request: &Value) -> Value {
    let is = |kind: &str| {
        list(&request["status"]["conditions"])
            .iter()
            .any(|c| c["type"] == kind)
    };
    let mut parts = Vec::new();
    for kind in ["Approved", "Denied", "Failed"] {
        if is(kind) {
            parts.push(kind);
        }
    }
    if parts.is_empty() {
        parts.push("Pending");
    }
    if request["status"]["certificate"]
        .as_str()
        .is_some_and(|text| !text.is_empty())
    {
        parts.push("Issued");
    }
    Value::from(parts.join(","))
}

pub(super) fn webhooks(configuration: &Value) -> Value {
    Value::from(list(&configuration["webhooks"]).len())
}

pub(super) fn replicas_ready(object: &Value) -> Value {
    let ready = count(&object["status"]["readyReplicas"]);
    Value::from(format!("{ready}/{}", count(&object["spec"]["replicas"])))
}

pub(super) fn updated(object: &Value) -> Value {
    Value::from(count(&object["status"]["updatedReplicas"]))
}

pub(super) fn available(object: &Value) -> Value {
    Value::from(count(&object["status"]["availableReplicas"]))
}

pub(super) fn current(object: &Value) -> Value {
    Value::from(count(&object["status"]["replicas"]))
}

pub(super) fn ready(object: &Value) -> Value {
    Value::from(count(&object["status"]["readyReplicas"]))
}

pub(super) fn scheduled_desired(set: &Value) -> Value {
    Value::from(count(&set["status"]["desiredNumberScheduled"]))
}

pub(super) fn scheduled(set: &Value) -> Value {
    Value::from(count(&set["status"]["currentNumberScheduled"]))
}

pub(super) fn scheduled_ready(set: &Value) -> Value {
    Value::from(count(&set["status"]["numberReady"]))
}

pub(super) fn scheduled_updated(set: &Value) -> Value {
    Value::from(count(&set["status"]["updatedNumberScheduled"]))
}

pub(super) fn scheduled_available(set: &Value) -> Value {
    Value::from(count(&set["status"]["numberAvailable"]))
}

pub(super) fn node_selector(set: &Value) -> Value {
    let labels = set["spec"]["template"]["spec"]["nodeSelector"]
        .as_object()
        .into_iter()
        .flatten();
    joined(labels.filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?))))
}

fn template_containers(object: &Value) -> impl Iterator<Item = &Value> {
    list(&object["spec"]["template"]["spec"]["containers"]).iter()
}

pub(super) fn containers(object: &Value) -> Value {
    joined(template_containers(object).filter_map(|c| c["name"].as_str().map(str::to_owned)))
}

pub(super) fn images(object: &Value) -> Value {
    joined(template_containers(object).filter_map(|c| c["image"].as_str().map(str::to_owned)))
}

pub(super) fn last_seen(event: &Value, now: Timestamp) -> Value {
    let times = [
        &event["series"]["lastObservedTime"],
        &event["lastTimestamp"],
        &event["deprecatedLastTimestamp"],
        &event["eventTime"],
        &event["firstTimestamp"],
    ];
    let last = times.into_iter().find_map(Value::as_str);
    Value::from(last.map_or_else(|| UNKNOWN.to_owned(), |last| age(last, now)))
}

pub(super) fn event_object(event: &Value) -> Value {
    let object = if event["involvedObject"].is_object() {
        &event["involvedObject"]
    } else {
        &event["regarding"]
    };
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    Value::from(format!("{}/{}", text("kind").to_lowercase(), text("name")))
}

pub(super) fn event_message(event: &Value) -> Value {
    let message = event["message"].as_str().or_else(|| event["note"].as_str());
    Value::from(message.unwrap_or_default().trim())
}
