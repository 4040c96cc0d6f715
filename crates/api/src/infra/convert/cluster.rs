//! The spec of a cluster.

use serde_json::{Value, json};

use super::machine;
use crate::convert::fields::{Done, Fields, inverted, nested, rename, within};

/// Fields that v1beta2 groups: the name in v1beta1, the group, and the name in it.
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
/// The same for a field that stays where it is.
const EXTERNAL: (&str, &str) = ("disableExternalNetwork", "enableExternalNetwork");
/// The rules for all nodes.
const RULES: (&str, &str) = (
    "allNodesSecurityGroupRules",
    "clusterNodesSecurityGroupRules",
);

/// From v1beta1 to v1beta2.
pub(super) fn up(fields: &mut Fields) -> Done {
    for (old, group, new) in GROUPED {
        // An empty list gives no address; v1beta2 has none then.
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

/// What v1beta1 disables, v1beta2 enables.
fn turned(old: &str, value: Value) -> Value {
    if old.starts_with("disable") {
        inverted(value)
    } else {
        value
    }
}

/// v1beta1 writes an unknown endpoint as an empty host and port 0.
fn endpoint_up(fields: &mut Fields) {
    if let Some(Value::Object(endpoint)) = fields.get_mut("controlPlaneEndpoint") {
        endpoint.retain(|_, value| *value != json!("") && *value != json!(0));
        if endpoint.is_empty() {
            fields.remove("controlPlaneEndpoint");
        }
    }
}
