//! Conversion of the spec of a cluster.

use serde_json::{Value, json};

use super::machine;
use crate::conversion::fields::{Done, Fields, inverted, nested, rename, within};

/// Fields grouped in v1beta2: name in v1beta1, group, and name inside.
const GROUPED: &[(&str, &str, &str)] = &[
    ("networkMTU", "managedNetwork", "mtu"),
    (
        "disablePortSecurity",
        "managedNetwork",
        "enablePortSecurity",
    ),
    ("externalRouterIPs", "managedRouter", "externalIPs"),
    ("apiServerPort", "apiServer", "port"),
    ("apiServerFixedIP", "apiServer", "fixedIP"),
    ("apiServerFloatingIP", "apiServer", "floatingIP"),
    (
        "disableAPIServerFloatingIP",
        "apiServer",
        "enableFloatingIP",
    ),
    ("apiServerLoadBalancer", "apiServer", "managedLoadBalancer"),
];
/// Names of a field outside of groups.
const EXTERNAL: (&str, &str) = ("disableExternalNetwork", "enableExternalNetwork");
/// Names of the security group rules for all nodes.
const RULES: (&str, &str) = (
    "allNodesSecurityGroupRules",
    "clusterNodesSecurityGroupRules",
);

/// From v1beta1 to v1beta2.
pub(super) fn up(fields: &mut Fields) -> Done {
    for (old, group, new) in GROUPED {
        // An empty list has no address; in v1beta2 the field is then absent.
        if let Some(value) = fields.remove(*old).filter(|value| *value != json!([])) {
            nested(fields, &[group]).insert((*new).to_owned(), turned(old, value));
        }
    }
    if let Some(value) = fields.remove(EXTERNAL.0) {
        fields.insert(EXTERNAL.1.to_owned(), turned(EXTERNAL.0, value));
    }
    endpoint_up(fields);
    within(fields, &["managedSecurityGroups"], |groups| {
        rename(groups, RULES.0, RULES.1);
        Ok(())
    })?;
    within(fields, &["bastion", "spec"], machine::up)
}

/// From v1beta2 to v1beta1.
pub(super) fn down(fields: &mut Fields) -> Done {
    for (old, group, new) in GROUPED {
        let group = fields.get_mut(*group).and_then(Value::as_object_mut);
        if let Some(value) = group.and_then(|group| group.remove(*new)) {
            fields.insert((*old).to_owned(), turned(old, value));
        }
    }
    for (_, group, _) in GROUPED {
        fields.remove(*group);
    }
    if let Some(value) = fields.remove(EXTERNAL.1) {
        fields.insert(EXTERNAL.0.to_owned(), turned(EXTERNAL.0, value));
    }
    within(fields, &["managedSecurityGroups"], |groups| {
        rename(groups, RULES.1, RULES.0);
        Ok(())
    })?;
    within(fields, &["bastion", "spec"], machine::down)
}

/// Negates fields that disable in v1beta1 and enable in v1beta2.
fn turned(old: &str, value: Value) -> Value {
    if old.starts_with("disable") {
        inverted(value)
    } else {
        value
    }
}

/// Removes an unknown endpoint of v1beta1: empty host and port 0.
fn endpoint_up(fields: &mut Fields) {
    if let Some(Value::Object(endpoint)) = fields.get_mut("controlPlaneEndpoint") {
        endpoint.retain(|_, value| *value != json!("") && *value != json!(0));
        if endpoint.is_empty() {
            fields.remove("controlPlaneEndpoint");
        }
    }
}
