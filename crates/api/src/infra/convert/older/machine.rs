//! Moves of the spec of a machine, and of ports.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::filters::{self, GROUPS, NETWORK_4, SUBNET_4, given};
use super::network;
use crate::conversion::fields::Fields;
use crate::conversion::moves::Move::{self, Formed, Inside, Joint, New, Old, Renamed, Set, Text};

/// Maximum length of key and value in a server's metadata, in characters.
const METADATA: usize = 255;

pub(super) const SPEC_4: &[Move] = &[
    Inside("networks[].filter", NETWORK_4),
    Inside("networks[].subnets[].filter", SUBNET_4),
    Inside(
        "ports[]",
        &[
            New("securityGroupFilters"),
            Joint {
                old: "securityGroups",
                new: "securityGroups",
                how: "in v1alpha4 with the filters by uuid",
                up: |_| {},
                down: filters_by_uuid,
            },
            New("network"),
            Renamed("networkId", "network.id"),
            Inside(
                "fixedIPs[]",
                &[New("subnet"), Renamed("subnetId", "subnet.id")],
            ),
        ],
    ),
    Joint {
        old: "rootVolume.deviceType, rootVolume.sourceType",
        new: "",
        how: "`disk` and `image` in v1alpha4",
        up: |fields| {
            if let Some(Value::Object(volume)) = fields.get_mut("rootVolume") {
                volume.remove("deviceType");
                volume.remove("sourceType");
            }
        },
        down: |fields| {
            if let Some(Value::Object(volume)) = fields.get_mut("rootVolume") {
                volume.insert("deviceType".to_owned(), json!("disk"));
                volume.insert("sourceType".to_owned(), json!("image"));
            }
        },
    },
    Joint {
        old: "rootVolume.sourceUUID",
        new: "imageUUID",
        how: "without a root volume, v1alpha4 has no field for it",
        up: |fields| {
            let volume = fields.get_mut("rootVolume").and_then(Value::as_object_mut);
            let id = volume.and_then(|volume| volume.remove("sourceUUID"));
            if let Some(id) = id.and_then(given) {
                fields.insert("imageUUID".to_owned(), id);
            }
        },
        down: |fields| {
            let id = fields.remove("imageUUID");
            let volume = fields.get_mut("rootVolume").and_then(Value::as_object_mut);
            if let (Some(volume), Some(id)) = (volume, id) {
                volume.insert("sourceUUID".to_owned(), id);
            }
        },
    },
    New("rootVolume.volumeType"),
    New("rootVolume.availabilityZone"),
];

pub(super) const SPEC_5: &[Move] = &[
    Set("tags"),
    Inside(
        "ports[]",
        &[New("valueSpecs"), Set("securityGroups"), Set("tags")],
    ),
];

pub(super) const SPEC_6: &[Move] = &[
    New("additionalBlockDevices"),
    New("flavorID"),
    Old("subnet"),
    Formed {
        old: "securityGroups",
        new: "securityGroups",
        how: GROUPS,
        up: filters::security_groups_up,
        down: filters::security_groups_down,
    },
    Inside(
        "ports[]",
        &[
            New("propagateUplinkStatus"),
            Old("tenantId"),
            Old("projectId"),
            Joint {
                old: "securityGroups, securityGroupFilters",
                new: "securityGroupFilters",
                how: "a security group by its id is a filter by id",
                up: port_groups_up,
                down: port_groups_down,
            },
            Formed {
                old: "profile",
                new: "profile",
                how: "ovsHWOffload if capabilities has switchdev, trustedVF if trusted is true",
                up: profile_up,
                down: profile_down,
            },
        ],
    ),
    Joint {
        old: "networks",
        new: "ports",
        how: "before the other ports, one for each subnet of each network; a filter finds one network, or it is an error",
        up: networks_up,
        down: |_| {},
    },
];

pub(super) const SPEC_7: &[Move] = &[
    New("floatingIPPoolRef"),
    New("schedulerHintAdditionalProperties"),
    Old("instanceID"),
    Old("floatingIP"),
    Joint {
        old: "cloudName, identityRef",
        new: "identityRef",
        how: "absent without identityRef.name",
        up: network::machine_identity_up,
        down: network::machine_identity_down,
    },
    Joint {
        old: "image, imageUUID",
        new: "image",
        how: "id if there is one, otherwise filter.name",
        up: image_up,
        down: image_down,
    },
    New("serverGroup"),
    Formed {
        old: "serverGroupID",
        new: "serverGroup.id",
        how: "absent if empty",
        up: given,
        down: given,
    },
    Formed {
        old: "serverMetadata",
        new: "serverMetadata",
        how: "a list of key and value, each of 255 characters at the most",
        up: metadata_up,
        down: metadata_down,
    },
    Formed {
        old: "securityGroups",
        new: "securityGroups",
        how: filters::PARAM,
        up: filters::groups_up,
        down: filters::groups_down,
    },
    Formed {
        old: "rootVolume",
        new: "rootVolume",
        how: "diskSize is sizeGiB, volumeType is type; absent if the size is 0",
        up: root_volume_up,
        down: root_volume_down,
    },
    Inside(
        "additionalBlockDevices[].storage.volume",
        &[Joint {
            old: "availabilityZone",
            new: "availabilityZone",
            how: "name; an empty one is from the machine",
            up: zone_up,
            down: zone_down,
        }],
    ),
    Inside(
        "ports[]",
        &[
            Formed {
                old: "network",
                new: "network",
                how: filters::PARAM,
                up: filters::network_up,
                down: filters::network_down,
            },
            Inside(
                "fixedIPs[]",
                &[
                    Formed {
                        old: "subnet",
                        new: "subnet",
                        how: filters::PARAM,
                        up: filters::subnet_up,
                        down: filters::subnet_down,
                    },
                    Text("ipAddress"),
                ],
            ),
            Formed {
                old: "securityGroupFilters",
                new: "securityGroups",
                how: filters::PARAM,
                up: filters::groups_up,
                down: filters::groups_down,
            },
            Formed {
                old: "hostId",
                new: "hostID",
                how: "absent if empty",
                up: given,
                down: given,
            },
            Text("nameSuffix"),
            Text("description"),
            Text("macAddress"),
            Text("vnicType"),
        ],
    ),
];

/// Converts the filters of a port with nothing but an id to ids.
fn filters_by_uuid(port: &mut Fields) {
    let filters = port.get("securityGroupFilters").and_then(Value::as_array);
    let uuid = |filter: &Value| {
        let alone = filter.as_object().filter(|fields| fields.len() == 1)?;
        alone.get("uuid").cloned()
    };
    let ids: Vec<Value> = filters.into_iter().flatten().filter_map(uuid).collect();
    if ids.is_empty() {
        return;
    }
    let groups = port.entry("securityGroups").or_insert(json!([]));
    if let Value::Array(groups) = groups {
        groups.extend(ids);
    }
}

fn port_groups_up(port: &mut Fields) {
    let ids = port.remove("securityGroups");
    let filters = port.remove("securityGroupFilters");
    if ids.is_none() && filters.is_none() {
        return;
    }
    let filters = filters.and_then(filters::security_groups_up);
    let mut all = match filters {
        Some(Value::Array(filters)) => filters,
        _ => Vec::new(),
    };
    if let Some(Value::Array(ids)) = ids {
        all.extend(ids.into_iter().map(|id| json!({ "id": id })));
    }
    port.insert("securityGroupFilters".to_owned(), Value::Array(all));
}

fn port_groups_down(port: &mut Fields) {
    let filters = port.remove("securityGroupFilters");
    let filters = filters.and_then(filters::security_groups_down);
    port.extend(filters.map(|filters| ("securityGroupFilters".to_owned(), filters)));
}

fn profile_up(profile: Value) -> Option<Value> {
    let Value::Object(old) = profile else {
        return Some(profile);
    };
    let text = |name: &str| old.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut new = Fields::new();
    if text("capabilities").contains("switchdev") {
        new.insert("ovsHWOffload".to_owned(), json!(true));
    }
    if text("trusted") == "true" {
        new.insert("trustedVF".to_owned(), json!(true));
    }
    given(Value::Object(new))
}

fn profile_down(profile: Value) -> Option<Value> {
    let Value::Object(new) = profile else {
        return Some(profile);
    };
    let mut old = Fields::new();
    if new.get("ovsHWOffload") == Some(&json!(true)) {
        old.insert("capabilities".to_owned(), json!("[\"switchdev\"]"));
    }
    if new.get("trustedVF") == Some(&json!(true)) {
        old.insert("trusted".to_owned(), json!("true"));
    }
    given(Value::Object(old))
}

/// Turns networks into ports. The fixed IP of a network had no effect.
fn networks_up(machine: &mut Fields) {
    let Some(Value::Array(networks)) = machine.remove("networks") else {
        return;
    };
    let mut ports: Vec<Value> = networks.iter().flat_map(ports_of).collect();
    match machine.get_mut("ports") {
        Some(Value::Array(others)) => {
            ports.append(others);
            *others = ports;
        }
        _ if ports.is_empty() => {}
        _ => {
            machine.insert("ports".to_owned(), Value::Array(ports));
        }
    }
}

fn ports_of(network: &Value) -> Vec<Value> {
    // A uuid takes precedence over a filter.
    let found = |value: &Value| {
        let uuid = value.get("uuid").cloned().and_then(given);
        let filter = value.get("filter").cloned();
        match uuid {
            Some(uuid) => Some(json!({ "id": uuid })),
            None => filter.and_then(given),
        }
    };
    let mut port = Fields::new();
    port.extend(found(network).map(|network| ("network".to_owned(), network)));
    let subnets = network.get("subnets").and_then(Value::as_array);
    let Some(subnets) = subnets.filter(|subnets| !subnets.is_empty()) else {
        return vec![Value::Object(port)];
    };
    let in_subnet = |subnet: &Value| {
        let mut port = port.clone();
        if let Some(subnet) = found(subnet) {
            port.insert("fixedIPs".to_owned(), json!([{ "subnet": subnet }]));
        }
        Value::Object(port)
    };
    subnets.iter().map(in_subnet).collect()
}

fn image_up(machine: &mut Fields) {
    let name = machine.remove("image").and_then(given);
    let id = machine.remove("imageUUID").and_then(given);
    let image = match (id, name) {
        (Some(id), _) => json!({ "id": id }),
        (None, Some(name)) => json!({ "filter": { "name": name } }),
        (None, None) => return,
    };
    machine.insert("image".to_owned(), image);
}

fn image_down(machine: &mut Fields) {
    let Some(image) = machine.remove("image") else {
        return;
    };
    let text = |pointer: &str| image.pointer(pointer).cloned().and_then(given);
    if let Some(id) = text("/id") {
        machine.insert("imageUUID".to_owned(), id);
    } else if let Some(name) = text("/filter/name") {
        machine.insert("image".to_owned(), name);
    }
}

fn metadata_up(metadata: Value) -> Option<Value> {
    let Value::Object(metadata) = metadata else {
        return Some(metadata);
    };
    let cut = |text: &str| text.chars().take(METADATA).collect::<String>();
    // The first of keys with the same start is kept.
    let mut list = BTreeMap::new();
    for (key, value) in metadata {
        let value = value.as_str().map(cut).map_or(value, Value::from);
        list.entry(cut(&key)).or_insert(value);
    }
    let pair = |(key, value)| json!({"key": key, "value": value});
    Some(list.into_iter().map(pair).collect())
}

fn metadata_down(metadata: Value) -> Option<Value> {
    let Value::Array(list) = metadata else {
        return Some(metadata);
    };
    let pair = |item: Value| {
        let key = item.get("key")?.as_str()?.to_owned();
        Some((key, item.get("value").cloned().unwrap_or_default()))
    };
    Some(Value::Object(list.into_iter().filter_map(pair).collect()))
}

fn root_volume_up(volume: Value) -> Option<Value> {
    let Value::Object(mut fields) = volume else {
        return Some(volume);
    };
    let size = fields.remove("diskSize").and_then(given)?;
    fields.insert("sizeGiB".to_owned(), size);
    if let Some(kind) = fields.remove("volumeType").and_then(given) {
        fields.insert("type".to_owned(), kind);
    }
    zone_up(&mut fields);
    Some(Value::Object(fields))
}

fn root_volume_down(volume: Value) -> Option<Value> {
    let Value::Object(mut fields) = volume else {
        return Some(volume);
    };
    let size = fields.remove("sizeGiB").and_then(given)?;
    fields.insert("diskSize".to_owned(), size);
    let kind = fields.remove("type").and_then(given);
    fields.extend(kind.map(|kind| ("volumeType".to_owned(), kind)));
    zone_down(&mut fields);
    Some(Value::Object(fields))
}

/// Availability zone of v1alpha7; without one, the zone of the machine.
fn zone_up(volume: &mut Fields) {
    let zone = match volume.remove("availabilityZone").and_then(given) {
        Some(name) => json!({"from": "Name", "name": name}),
        None => json!({"from": "Machine"}),
    };
    volume.insert("availabilityZone".to_owned(), zone);
}

fn zone_down(volume: &mut Fields) {
    let zone = volume.remove("availabilityZone");
    let name = zone.as_ref().and_then(|zone| zone.get("name"));
    if let Some(name) = name.cloned() {
        volume.insert("availabilityZone".to_owned(), name);
    }
}
