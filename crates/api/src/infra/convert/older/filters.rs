//! Filters for networks, subnets, routers and security groups: flat before v1beta1, an id or a filter since.

use serde_json::{Value, json};

use crate::conversion::fields::Fields;
use crate::conversion::moves::Move::{self, Formed, Joint, Old, Renamed};
use crate::conversion::moves::{down, unique, up};

/// Rule of a parameter, for the documentation.
pub(super) const PARAM: &str = "id alone if there is one, otherwise filter";

/// Rule of security groups in v1alpha6.
pub(super) const GROUPS: &str = "uuid, name and filter become one filter, uuid as its id; limit, marker and the order of results are dropped";

const TENANT: Move = Joint {
    old: "tenantId",
    new: "projectId",
    how: "if projectId is empty",
    up: |filter| {
        let tenant = filter.remove("tenantId");
        let is_free = filter.get("projectId").is_none_or(|id| *id == json!(""));
        if let Some(tenant) = tenant.filter(|_| is_free) {
            filter.insert("projectId".to_owned(), tenant);
        }
    },
    down: |_| {},
};

pub(super) const NETWORK_4: &[Move] = &[
    Old("adminStateUp"),
    Old("limit"),
    Old("marker"),
    Old("shared"),
    Old("sortDir"),
    Old("sortKey"),
    Old("status"),
    TENANT,
];

pub(super) const SUBNET_4: &[Move] = &[
    Old("enableDhcp"),
    Old("limit"),
    Old("marker"),
    Old("networkId"),
    Old("sortDir"),
    Old("sortKey"),
    Old("subnetpoolId"),
    TENANT,
];

const GROUP_6: &[Move] = &[
    Old("limit"),
    Old("marker"),
    Old("sortDir"),
    Old("sortKey"),
    TENANT,
];

pub(super) const ROUTER_IP_6: &[Move] = &[Formed {
    old: "subnet",
    new: "subnet",
    how: "uuid and filter become one filter, uuid as its id",
    up: |subnet| Some(flat(subnet, &[])),
    down: |subnet| Some(deep(subnet, &[])),
}];

/// Fields of a filter in v1alpha7, and in v1beta1.
const FILTER_7: &[Move] = &[
    Renamed("projectId", "projectID"),
    Renamed("gateway_ip", "gatewayIP"),
    Renamed("ipv6RaMode", "ipv6RAMode"),
    tags("tags"),
    tags("tagsAny"),
    tags("notTags"),
    tags("notTagsAny"),
];

const fn tags(name: &'static str) -> Move {
    Formed {
        old: name,
        new: name,
        how: "a list instead of a text with commas",
        up: split,
        down: joined,
    }
}

/// Value unless empty.
pub(super) fn given(value: Value) -> Option<Value> {
    let is_empty = match &value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Null => true,
        Value::Bool(_) => false,
    };
    (!is_empty).then_some(value)
}

/// Tags as a list, without empty ones.
fn split(value: Value) -> Option<Value> {
    let Value::String(text) = &value else {
        return Some(value);
    };
    let tags = text.split(',').filter(|tag| !tag.is_empty());
    let mut list = tags.map(Value::from).collect::<Value>();
    unique(&mut list);
    given(list)
}

fn joined(value: Value) -> Option<Value> {
    let Value::Array(items) = &value else {
        return Some(value);
    };
    let tags: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
    given(json!(tags.join(",")))
}

/// Filter of v1alpha7 as the parameter of v1beta1; `None` if empty.
pub(super) fn network_up(filter: Value) -> Option<Value> {
    let Value::Object(mut fields) = filter else {
        return Some(filter);
    };
    if let Some(id) = fields.remove("id").and_then(given) {
        return Some(json!({ "id": id }));
    }
    // No move in the table can fail.
    let _ = up(&mut fields, FILTER_7);
    let fields = without_empty(fields);
    (!fields.is_empty()).then(|| json!({ "filter": fields }))
}

fn without_empty(fields: Fields) -> Fields {
    let given = |(name, value)| Some((name, given(value)?));
    fields.into_iter().filter_map(given).collect()
}

/// Inverse of [`network_up`].
pub(super) fn network_down(parameter: Value) -> Option<Value> {
    let Value::Object(mut fields) = parameter else {
        return Some(parameter);
    };
    let mut flat = match fields.remove("filter") {
        Some(Value::Object(filter)) => filter,
        _ => Fields::new(),
    };
    let _ = down(&mut flat, FILTER_7);
    flat.extend(fields);
    given(Value::Object(without_empty(flat)))
}

/// Like [`network_up`], for the fields of a subnet.
pub(super) fn subnet_up(filter: Value) -> Option<Value> {
    network_up(filter)
}

/// Inverse of [`subnet_up`].
pub(super) fn subnet_down(parameter: Value) -> Option<Value> {
    network_down(parameter)
}

/// Filters of security groups as parameters.
pub(super) fn groups_up(groups: Value) -> Option<Value> {
    let Value::Array(items) = groups else {
        return Some(groups);
    };
    Some(items.into_iter().filter_map(network_up).collect())
}

/// Inverse of [`groups_up`].
pub(super) fn groups_down(groups: Value) -> Option<Value> {
    let Value::Array(items) = groups else {
        return Some(groups);
    };
    Some(items.into_iter().filter_map(network_down).collect())
}

/// Security groups of v1alpha6, by uuid, name or filter, as filters.
pub(super) fn security_groups_up(groups: Value) -> Option<Value> {
    let Value::Array(items) = groups else {
        return Some(groups);
    };
    Some(
        items
            .into_iter()
            .map(|group| flat(group, GROUP_6))
            .collect(),
    )
}

/// Inverse of [`security_groups_up`].
pub(super) fn security_groups_down(groups: Value) -> Option<Value> {
    let Value::Array(items) = groups else {
        return Some(groups);
    };
    let deep = |group| deep(group, &["name"]);
    Some(items.into_iter().map(deep).collect())
}

/// Flattens `{uuid, name, filter: {…}}` to one filter; fields outside of `filter` take precedence.
pub(super) fn flat(value: Value, moves: &[Move]) -> Value {
    let Value::Object(mut fields) = value else {
        return value;
    };
    let mut filter = match fields.remove("filter") {
        Some(Value::Object(filter)) => filter,
        _ => Fields::new(),
    };
    let _ = up(&mut filter, moves);
    for (outside, inside) in [("uuid", "id"), ("name", "name")] {
        if let Some(value) = fields.remove(outside).and_then(given) {
            filter.insert(inside.to_owned(), value);
        }
    }
    Value::Object(filter)
}

/// Filter as `{uuid, filter: {…}}`; the fields of `outside` are siblings of `filter`.
pub(super) fn deep(value: Value, outside: &[&str]) -> Value {
    let Value::Object(mut filter) = value else {
        return value;
    };
    let mut fields = Fields::new();
    if let Some(id) = filter.remove("id") {
        fields.insert("uuid".to_owned(), id);
    }
    for name in outside {
        if let Some(value) = filter.remove(*name) {
            fields.insert((*name).to_owned(), value);
        }
    }
    if !filter.is_empty() {
        fields.insert("filter".to_owned(), Value::Object(filter));
    }
    Value::Object(fields)
}
