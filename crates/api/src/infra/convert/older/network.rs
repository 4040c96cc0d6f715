//! Joint conversions of fields of a cluster.

use serde_json::{Value, json};

use super::filters::{given, subnet_down, subnet_up};
use crate::conversion::fields::Fields;
use crate::conversion::moves::unique;

/// Type of credentials in v1beta1 other than a Secret; in v1alpha7 the kind.
const IDENTITY: &str = "ClusterIdentity";

/// Credentials of v1alpha7, with the name of the cloud in a separate field.
pub(super) fn identity_up(fields: &mut Fields) {
    let cloud = fields.remove("cloudName").and_then(given);
    let mut identity = match fields.remove("identityRef") {
        Some(Value::Object(identity)) => identity,
        _ => Fields::new(),
    };
    if let Some(kind) = identity.remove("kind").filter(|kind| kind == IDENTITY) {
        identity.insert("type".to_owned(), kind);
    }
    identity.extend(cloud.map(|cloud| ("cloudName".to_owned(), cloud)));
    if !identity.is_empty() {
        fields.insert("identityRef".to_owned(), Value::Object(identity));
    }
}

/// Credentials of a machine; without any, the cluster's apply.
pub(super) fn machine_identity_up(fields: &mut Fields) {
    let name = fields.get("identityRef").and_then(|it| it.get("name"));
    if name.is_some_and(|name| given(name.clone()).is_some()) {
        identity_up(fields);
    } else {
        fields.remove("identityRef");
        fields.remove("cloudName");
    }
}

/// Inverse of [`machine_identity_up`].
pub(super) fn machine_identity_down(fields: &mut Fields) {
    let name = fields.get("identityRef").and_then(|it| it.get("name"));
    if name.is_some_and(|name| given(name.clone()).is_some()) {
        identity_down(fields);
    } else {
        fields.remove("identityRef");
    }
}

/// Inverse of [`identity_up`].
pub(super) fn identity_down(fields: &mut Fields) {
    let Some(Value::Object(identity)) = fields.get_mut("identityRef") else {
        return;
    };
    let cloud = identity.remove("cloudName").and_then(given);
    identity.remove("region");
    let kind = match identity.remove("type") {
        Some(kind) if kind == IDENTITY => kind,
        _ => json!("Secret"),
    };
    if identity.is_empty() {
        fields.remove("identityRef");
    } else {
        identity.insert("kind".to_owned(), kind);
    }
    fields.extend(cloud.map(|cloud| ("cloudName".to_owned(), cloud)));
}

/// Subnet as a list of subnets.
pub(super) fn subnets_up(subnet: Value) -> Option<Value> {
    subnet_up(subnet).map(|subnet| json!([subnet]))
}

/// First subnet of a list.
pub(super) fn subnets_down(subnets: Value) -> Option<Value> {
    first(subnets).and_then(subnet_down)
}

/// First element of a list.
pub(super) fn first(list: Value) -> Option<Value> {
    match list {
        Value::Array(items) => items.into_iter().next(),
        other => Some(other),
    }
}

/// Subnet created for the cluster, as a list.
pub(super) fn managed_subnets_up(fields: &mut Fields) {
    let cidr = fields.remove("nodeCidr").and_then(given);
    let servers = fields.remove("dnsNameservers").and_then(given);
    let Some(cidr) = cidr else { return };
    let mut subnet = json!({ "cidr": cidr });
    if let Some(servers) = servers {
        subnet["dnsNameservers"] = servers;
    }
    fields.insert("managedSubnets".to_owned(), json!([subnet]));
}

/// Inverse of [`managed_subnets_up`].
pub(super) fn managed_subnets_down(fields: &mut Fields) {
    let Some(Value::Object(mut subnet)) = fields.remove("managedSubnets").and_then(first) else {
        return;
    };
    let Some(cidr) = subnet.remove("cidr").and_then(given) else {
        return;
    };
    fields.insert("nodeCidr".to_owned(), cidr);
    let servers = subnet.remove("dnsNameservers").and_then(given);
    fields.extend(servers.map(|servers| ("dnsNameservers".to_owned(), servers)));
}

/// Built-in rules of the security groups of v1alpha7.
fn legacy_rules() -> Value {
    let rule = |name: &str, protocol: &str| {
        json!({"name": name, "description": format!("Created by cluster-api-provider-openstack - {name}"),
            "direction": "ingress", "etherType": "IPv4", "protocol": protocol,
            "remoteManagedGroups": ["controlplane", "worker"]})
    };
    let mut bgp = rule("BGP (calico)", "tcp");
    for name in ["portRangeMin", "portRangeMax"] {
        bgp[name] = json!(179);
    }
    json!([bgp, rule("IP-in-IP (calico)", "4")])
}

/// Security groups created for the cluster.
pub(super) fn security_groups_up(fields: &mut Fields) {
    let all = fields.remove("allowAllInClusterTraffic");
    let managed = fields.remove("managedSecurityGroups");
    match managed {
        Some(Value::Bool(true)) => {}
        // Already in the form of the newer version.
        Some(Value::Object(groups)) => {
            fields.insert("managedSecurityGroups".to_owned(), Value::Object(groups));
            return;
        }
        _ => return,
    }
    let mut groups = Fields::new();
    if all != Some(json!(true)) {
        groups.insert("allNodesSecurityGroupRules".to_owned(), legacy_rules());
    }
    groups.extend(all.map(|all| ("allowAllInClusterTraffic".to_owned(), all)));
    fields.insert("managedSecurityGroups".to_owned(), Value::Object(groups));
}

/// Inverse of [`security_groups_up`].
pub(super) fn security_groups_down(fields: &mut Fields) {
    let Some(Value::Object(mut groups)) = fields.remove("managedSecurityGroups") else {
        return;
    };
    let all = groups.remove("allowAllInClusterTraffic");
    fields.insert("managedSecurityGroups".to_owned(), json!(true));
    fields.extend(all.map(|all| ("allowAllInClusterTraffic".to_owned(), all)));
}

/// Load balancer of the API server; in v1alpha7 absent if empty.
pub(super) fn balancer_up(fields: &mut Fields) {
    if let Some(Value::Object(balancer)) = fields.get_mut("apiServerLoadBalancer") {
        for name in ["additionalPorts", "allowedCidrs"] {
            if let Some(list) = balancer.get_mut(name) {
                unique(list);
            }
        }
    }
    if let Some(balancer) = set_balancer(fields) {
        balancer.entry("enabled").or_insert(json!(false));
    }
}

/// Inverse of [`balancer_up`].
pub(super) fn balancer_down(fields: &mut Fields) {
    if let Some(Value::Object(balancer)) = fields.get_mut("apiServerLoadBalancer") {
        let known = ["additionalPorts", "allowedCidrs", "enabled", "provider"];
        balancer.retain(|name, _| known.contains(&name.as_str()));
    }
    set_balancer(fields);
}

/// Load balancer without empty fields, removed if empty.
fn set_balancer(fields: &mut Fields) -> Option<&mut Fields> {
    let balancer = fields.get_mut("apiServerLoadBalancer")?.as_object_mut()?;
    balancer.retain(|_, value| given(value.take()).map(|it| *value = it).is_some());
    let is_off = balancer.get("enabled").is_none_or(|it| *it == json!(false));
    if is_off && balancer.keys().all(|name| name == "enabled") {
        fields.remove("apiServerLoadBalancer");
        return None;
    }
    fields.get_mut("apiServerLoadBalancer")?.as_object_mut()
}
