//! Fields of a Service that only some types of Services have. When a changed Service cannot have such a field any
//! more, an unchanged value is dropped, and a changed value is an error, as in kube-apiserver
//! (`dropTypeDependentFields` in `pkg/registry/core/service/strategy.go`).

use apimachinery::schema::FieldError;
use serde_json::{Value, json};

/// True if a Service is reachable from outside of the cluster, and has a policy for external traffic.
fn is_external(spec: &Value) -> bool {
    let external_ips = spec["externalIPs"].as_array();
    match spec["type"].as_str() {
        Some("NodePort" | "LoadBalancer") => true,
        Some("ExternalName") => false,
        _ => external_ips.is_some_and(|all| !all.is_empty()),
    }
}

fn is_balanced(spec: &Value) -> bool {
    spec["type"] == "LoadBalancer"
}

/// True if a Service has a cluster IP, or none on purpose.
fn has_address(spec: &Value) -> bool {
    !is_named(spec)
}

fn is_named(spec: &Value) -> bool {
    spec["type"] == "ExternalName"
}

fn has_node_ports(spec: &Value) -> bool {
    matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer"))
}

/// True if a Service has a node port for health checks, with an answer about local endpoints.
pub(super) fn has_health_check(spec: &Value) -> bool {
    is_balanced(spec) && spec["externalTrafficPolicy"] == "Local"
}

/// Port of the health check; `None` if absent or 0.
pub(super) fn health_check_port(spec: &Value) -> Option<i64> {
    spec["healthCheckNodePort"]
        .as_i64()
        .filter(|port| *port != 0)
}

/// True if a Service with this spec may have a field.
type MayHave = fn(&Value) -> bool;

/// Fields that depend on the type of a Service, except the ports.
const DEPENDENT: [(&str, MayHave); 9] = [
    ("healthCheckNodePort", has_health_check),
    ("allocateLoadBalancerNodePorts", is_balanced),
    ("loadBalancerClass", is_balanced),
    ("externalTrafficPolicy", is_external),
    ("clusterIP", has_address),
    ("clusterIPs", has_address),
    ("ipFamilies", has_address),
    ("ipFamilyPolicy", has_address),
    ("externalName", is_named),
];

/// Drops fields that the new `spec` cannot have, and only inherits from the `old` one.
pub(crate) fn drop_dependent(spec: &mut Value, old: &Value) {
    // All fields are checked before one of them is dropped.
    let surplus = DEPENDENT.map(|(field, may_have)| {
        let dropped = may_have(old) && !may_have(spec) && spec[field] == old[field];
        dropped.then_some(field)
    });
    let ports = has_node_ports(old) && !has_node_ports(spec) && node_ports(spec) == node_ports(old);
    let Some(map) = spec.as_object_mut() else {
        return;
    };
    for field in surplus.into_iter().flatten() {
        map.remove(field);
    }
    let all = map.get_mut("ports").and_then(Value::as_array_mut);
    for port in all.into_iter().flatten().filter(|_| ports) {
        if let Some(port) = port.as_object_mut() {
            port.remove("nodePort");
        }
    }
}

/// Gives a changed Service its former cluster IPs if the author left them out. Clients that know only `clusterIP`
/// change the first of `clusterIPs` by it.
pub(crate) fn carry_addresses(spec: &mut Value, old: &Value) {
    if !has_address(spec) || !has_address(old) || !spec.is_object() {
        return;
    }
    let is_empty = |value: &Value| value.is_null() || value == "" || value == &json!([]);
    if is_empty(&spec["clusterIP"]) && !is_empty(&old["clusterIP"]) {
        spec["clusterIP"] = old["clusterIP"].clone();
    }
    if spec["clusterIP"] == old["clusterIP"] {
        if is_empty(&spec["clusterIPs"]) && !is_empty(&old["clusterIPs"]) {
            spec["clusterIPs"] = old["clusterIPs"].clone();
        }
    } else if spec["clusterIPs"] == old["clusterIPs"] {
        let address = spec["clusterIP"].clone();
        if let Some(first) = spec["clusterIPs"].get_mut(0) {
            *first = address;
        }
    }
}

/// Restores dropped or allocated fields of a changed Service as `sent`: managed fields follow the sent object.
pub(crate) fn restore_sent(spec: &mut Value, sent: &Value) {
    let Some(map) = spec.as_object_mut() else {
        return;
    };
    for (field, _) in DEPENDENT {
        if !sent[field].is_null() {
            map.entry(field).or_insert_with(|| sent[field].clone());
        }
    }
    if sent["healthCheckNodePort"].is_null() {
        map.remove("healthCheckNodePort");
    }
}

fn node_ports(spec: &Value) -> Vec<i64> {
    let ports = spec["ports"].as_array().into_iter().flatten();
    let mut ports: Vec<i64> = ports.filter_map(|port| port["nodePort"].as_i64()).collect();
    ports.sort_unstable();
    ports
}

/// Violations in the fields that depend on the type. `old`: the Service before the update.
pub(crate) fn problems(spec: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    const PORT: &str = "spec.healthCheckNodePort";
    const POLICY: &str = "spec.externalTrafficPolicy";
    let policy = spec["externalTrafficPolicy"].as_str().unwrap_or_default();
    if !is_external(spec) && !policy.is_empty() {
        let why = "may only be set for externally-accessible services";
        errors.push(FieldError::invalid(POLICY, &Value::from(policy), why));
    } else if !matches!(policy, "" | "Cluster" | "Local") {
        let known = ["Cluster", "Local"].map(str::to_owned);
        errors.push(FieldError::not_supported(
            POLICY,
            &Value::from(policy),
            &known,
        ));
    }
    let Some(port) = health_check_port(spec) else {
        return;
    };
    if !has_health_check(spec) {
        let why =
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        errors.push(FieldError::invalid(PORT, &Value::from(port), why));
    } else if old.is_some_and(|old| {
        has_health_check(old) && health_check_port(old).is_some_and(|old| old != port)
    }) {
        errors.push(FieldError::forbidden(PORT, "field is immutable"));
    } else if !(1..=65535).contains(&port) {
        let why = "must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(PORT, &Value::from(port), why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_changes_its_type_loses_what_its_author_did_not_change() {
        let balanced = json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 31000,
            "allocateLoadBalancerNodePorts": true, "loadBalancerClass": "a/b", "ports": [{"port": 80, "nodePort": 30080}]});
        let with = |field: &str, value: Value| {
            let mut spec = balanced.clone();
            spec[field] = value;
            drop_dependent(&mut spec, &balanced);
            spec
        };
        let plain = json!({"type": "ClusterIP", "ports": [{"port": 80}]});
        assert_eq!(with("type", json!("ClusterIP")), plain);
        let on_nodes = json!({"type": "NodePort", "externalTrafficPolicy": "Local", "ports": [{"port": 80, "nodePort": 30080}]});
        assert_eq!(with("type", json!("NodePort")), on_nodes);
        let everywhere = with("externalTrafficPolicy", json!("Cluster"));
        assert_eq!(everywhere.get("healthCheckNodePort"), None);
        assert_eq!(everywhere["ports"], balanced["ports"]);
        assert_eq!(
            with("selector", json!({"a": "b"}))["healthCheckNodePort"],
            31000
        );
        // A field changed at the same time is an error, not dropped.
        let mut changed = balanced.clone();
        changed["externalTrafficPolicy"] = json!("Cluster");
        changed["healthCheckNodePort"] = json!(31001);
        drop_dependent(&mut changed, &balanced);
        assert_eq!(changed["healthCheckNodePort"], 31001);
    }

    #[test]
    fn what_a_type_cannot_have_and_another_health_check_port_are_errors() {
        let paths = |spec: Value, old: Option<Value>| -> Vec<String> {
            let mut errors = Vec::new();
            problems(&spec, old.as_ref(), &mut errors);
            errors.iter().map(|error| error.path.clone()).collect()
        };
        let local = |port: i64| json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": port});
        assert!(paths(local(31000), Some(local(31000))).is_empty());
        assert!(paths(local(31000), Some(json!({"type": "ClusterIP"}))).is_empty());
        let port = "spec.healthCheckNodePort";
        assert_eq!(paths(local(31001), Some(local(31000))), [port]);
        let cluster = json!({"type": "LoadBalancer", "externalTrafficPolicy": "Cluster", "healthCheckNodePort": 31000});
        assert_eq!(paths(cluster, None), [port]);
        let inside = json!({"type": "ClusterIP", "externalTrafficPolicy": "Local"});
        assert_eq!(paths(inside, None), ["spec.externalTrafficPolicy"]);
        let with_ips = json!({"type": "ClusterIP", "externalIPs": ["192.0.2.1"], "externalTrafficPolicy": "Local"});
        assert!(paths(with_ips, None).is_empty());
    }
}
