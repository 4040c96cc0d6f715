//! POST /servers: checks in Nova's order, then ports, volumes and the server.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::servers::links;
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::clock::zulu;
use crate::cloud::document::{Doc, Fields, doc as to_doc};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::latency::Transition;
use crate::cloud::network;
use crate::cloud::quota;
use crate::cloud::service::Service;

use super::attachments;

/// Longest user data, base64 encoded (nova `servers.py` schema, `maxLength`).
const USER_DATA_LIMIT: usize = 65_535;

/// Fields of a request body, each with the microversion that introduced the field.
const FIELDS: &[(&str, u32)] = &[
    ("name", 1),
    ("flavorRef", 1),
    ("imageRef", 1),
    ("networks", 1),
    ("user_data", 1),
    ("metadata", 1),
    ("availability_zone", 1),
    ("key_name", 1),
    ("config_drive", 1),
    ("security_groups", 1),
    ("block_device_mapping", 1),
    ("block_device_mapping_v2", 1),
    ("adminPass", 1),
    ("min_count", 1),
    ("max_count", 1),
    ("accessIPv4", 1),
    ("accessIPv6", 1),
    ("OS-DCF:diskConfig", 1),
    ("personality", 1),
    ("return_reservation_id", 1),
    ("description", 19),
    ("tags", 52),
    ("trusted_image_certificates", 63),
    ("host", 74),
    ("hypervisor_hostname", 74),
    ("hostname", 90),
];

/// POST /servers
pub(crate) fn create(call: &mut Call<'_>) -> Answer {
    let given = call.wrapped("server")?;
    check_shape(call, &given)?;
    let flavor = flavor(call, &given)?;
    let group = group(call)?;
    let zone = zone(call, &given)?;
    key(call, &given)?;
    quota(call, &flavor)?;
    let id = call.state.new_id();
    let groups = security_groups(call, &given)?;
    let plan = attachments::plan(call, &given)?;
    let created_ports = ports(call, &given, &id, &zone, &groups)?;
    let has_image = !plan.image.is_empty();
    let volumes = attachments::carry_out(call, plan.devices, &id, &zone, has_image)?;

    let now = zulu(call.now());
    let name = given.text("name").to_owned();
    let mut doc = to_doc(json!({
        "id": id, "name": name, "project_id": call.who.project_id, "user_id": call.who.user_id,
        "status": "BUILD", "created": now, "updated": now,
        "metadata": given.get("metadata").cloned().unwrap_or_else(|| json!({})),
        "tags": given.list("tags"), "accessIPv4": given.text("accessIPv4"),
        "accessIPv6": given.text("accessIPv6"),
        "description": given.get("description").cloned().unwrap_or_else(|| {
            if call.version >= 19 { Value::Null } else { json!(name) }
        }),
        "_task": "spawning", "_flavor": flavor.text("id"), "_flavor_name": flavor.text("name"),
        "_vcpus": flavor.number("vcpus"), "_ram": flavor.number("ram"), "_disk": flavor.number("disk"),
        "_image": plan.image, "_image_name": plan.image_name, "_zone": zone,
        "_key_name": given.text("key_name"), "_groups": groups.iter().map(|g| g.text("name")).collect::<Vec<_>>(),
        "_hostname": hostname(given.get("hostname").and_then(Value::as_str).unwrap_or(&name)),
        "_own_ports": created_ports, "_volumes": volumes, "_boot": 1,
        "_created_ms": call.now().as_millisecond(), "_locked": false,
        "_disk_config": match given.text("OS-DCF:diskConfig") { "" => "MANUAL", other => other },
    }));
    doc.set(
        "_config_drive",
        given
            .get("config_drive")
            .is_some_and(|v| *v == true || *v == "True" || *v == "true"),
    );
    doc.set("_user_data", given.text("user_data"));
    if let Some(group) = &group {
        doc.set("_group", group.text("id"));
        call.state
            .edit(Kind::ServerGroup, group.text("id"), |group| {
                let mut members = group.list("members").to_vec();
                members.push(json!(id));
                group.set("members", members);
            });
    }
    call.state.put(Kind::Server, doc);
    let delay = call.settings.latency.transition(Transition::ServerCreate);
    call.state.schedule(delay, "spawn", Kind::Server, &id);

    let names: Vec<Value> = match groups.is_empty() {
        true => vec![json!({"name": "default"})],
        false => groups
            .iter()
            .map(|group| json!({"name": group.text("name")}))
            .collect(),
    };
    let password = password(&id);
    let body = json!({"server": {"id": id, "links": links(call, "servers", &id),
        "OS-DCF:diskConfig": "MANUAL", "security_groups": names, "adminPass": password}});
    let location = format!("{}/v2.1/servers/{id}", call.root());
    Ok(Reply::with(202, body).header("location", location))
}

/// Returns the host name that Nova derives from a display name.
fn hostname(name: &str) -> String {
    let kept: String = name
        .chars()
        .map(|c| {
            if matches!(c, ' ' | '_') {
                '-'
            } else {
                c.to_ascii_lowercase()
            }
        })
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'))
        .collect();
    kept.replace('.', "-")
        .trim_matches('-')
        .chars()
        .take(63)
        .collect()
}

/// Password of an administrator that Nova makes up for a guest.
pub(super) fn password(id: &str) -> String {
    crate::cloud::identity_hash(id)[..12].to_owned()
}

fn check_shape(call: &Call<'_>, given: &Doc) -> Result<(), Fault> {
    for name in given.keys() {
        if !FIELDS
            .iter()
            .any(|(field, since)| field == name && *since <= call.version)
        {
            return Err(Fault::bad(format!(
                "Invalid input for field/attribute server. Value: {}. Additional properties are not \
                 allowed ('{name}' was unexpected)",
                redacted(given)
            )));
        }
    }
    let name = given.text("name");
    if !given.contains_key("name") || !given.contains_key("flavorRef") {
        let missing = if given.contains_key("name") {
            "flavorRef"
        } else {
            "name"
        };
        return Err(Fault::bad(format!(
            "Invalid input for field/attribute server. Value: {}. '{missing}' is a required property",
            redacted(given)
        )));
    }
    if name.is_empty() || name.chars().count() > 255 || name.trim() != name {
        return Err(Fault::bad(format!(
            "Invalid input for field/attribute name. Value: {}. {} is too short, too long, or has \
             leading or trailing spaces",
            given["name"], given["name"]
        )));
    }
    if call.version >= 37 && !given.contains_key("networks") {
        return Err(Fault::bad(format!(
            "Invalid input for field/attribute server. Value: {}. 'networks' is a required property",
            redacted(given)
        )));
    }
    for (field, shape) in [
        ("metadata", Value::is_object as fn(&Value) -> bool),
        ("tags", Value::is_array),
        ("security_groups", Value::is_array),
        ("block_device_mapping_v2", Value::is_array),
    ] {
        if let Some(value) = given.get(field).filter(|value| !shape(value)) {
            return Err(wrong_type(field, value));
        }
    }
    let metadata = given.get("metadata").and_then(Value::as_object);
    for (key, value) in metadata.into_iter().flatten() {
        let fits = value.as_str().is_some_and(|text| text.len() <= 255);
        if !fits || key.is_empty() || key.len() > 255 {
            return Err(wrong_type(key, value));
        }
    }
    for tag in given.list("tags") {
        check_tag(tag)?;
    }
    if given.list("tags").len() > 50 {
        return Err(Fault::bad(
            "The number of tags exceeded the per-server limit 50",
        ));
    }
    check_user_data(given)
}

/// Checks Nova's tag rules: 1 to 60 characters, no slash and no comma.
pub(crate) fn check_tag(tag: &Value) -> Result<(), Fault> {
    match tag.as_str() {
        Some(text) if (1..=60).contains(&text.chars().count()) && !text.contains([',', '/']) => {
            Ok(())
        }
        _ => Err(Fault::bad(format!(
            "Invalid input for field/attribute tags. Value: {tag}. {tag} does not match '^[^,/]*$' or is too long"
        ))),
    }
}

/// Checks the user data of a request: base64, up to [`USER_DATA_LIMIT`].
pub(super) fn check_user_data(given: &Doc) -> Result<(), Fault> {
    let Some(value) = given.get("user_data").filter(|value| !value.is_null()) else {
        return Ok(());
    };
    let Some(text) = value.as_str() else {
        return Err(wrong_type("user_data", value));
    };
    if text.len() > USER_DATA_LIMIT {
        // Nova prints the value; here it is left out, since bootstrap tokens do not belong in logs.
        return Err(Fault::bad(
            "Invalid input for field/attribute user_data. Value: (not repeated). '(not repeated)' is too long",
        ));
    }
    let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    STANDARD.decode(plain).map_err(|_| {
        Fault::bad(
            "Invalid input for field/attribute user_data. Value: (not repeated). '(not repeated)' is not a 'base64'",
        )
    })?;
    Ok(())
}

fn flavor(call: &Call<'_>, given: &Doc) -> Result<std::sync::Arc<Doc>, Fault> {
    let id = match &given["flavorRef"] {
        Value::String(text) => text.rsplit('/').next().unwrap_or_default().to_owned(),
        other => other.to_string(),
    };
    call.state
        .get(Kind::Flavor, &id)
        .ok_or_else(|| Fault::bad(format!("Flavor {id} could not be found.")))
}

fn zone(call: &Call<'_>, given: &Doc) -> Result<String, Fault> {
    let zones = &call.settings.zones;
    match given.get("availability_zone") {
        None | Some(Value::Null) => Ok(zones.first().cloned().unwrap_or_else(|| "nova".to_owned())),
        Some(Value::String(zone)) => {
            // `zone:host:node` is a form for administrators.
            let name = zone.split(':').next().unwrap_or_default();
            if zones.iter().any(|known| known == name) {
                return Ok(name.to_owned());
            }
            Err(Fault::bad(
                "The requested availability zone is not available",
            ))
        }
        Some(other) => Err(wrong_type("availability_zone", other)),
    }
}

fn key(call: &Call<'_>, given: &Doc) -> Result<(), Fault> {
    let name = given.text("key_name");
    let key = format!("{}/{name}", call.who.user_id);
    if name.is_empty() || call.state.get(Kind::Keypair, &key).is_some() {
        return Ok(());
    }
    Err(Fault::bad("Invalid key_name provided."))
}

fn group(call: &Call<'_>) -> Result<Option<std::sync::Arc<Doc>>, Fault> {
    let hints = call
        .body
        .get("os:scheduler_hints")
        .or_else(|| call.body.get("OS-SCH-HNT:scheduler_hints"));
    let Some(id) = hints
        .and_then(|hints| hints.get("group"))
        .and_then(Value::as_str)
    else {
        return Ok(None);
    };
    match call.accessible(Kind::ServerGroup, id) {
        Some(group) => Ok(Some(group)),
        None => Err(Fault::bad(format!(
            "Instance group {id} could not be found."
        ))),
    }
}

fn quota(call: &Call<'_>, flavor: &Doc) -> Result<(), Fault> {
    let wanted = [
        ("instances", 1),
        ("cores", flavor.number("vcpus")),
        ("ram", flavor.number("ram")),
    ];
    let project = call.who.project_id.clone();
    let exceeded = quota::exceeded(call, Service::Compute, &project, &wanted);
    if exceeded.is_empty() {
        return Ok(());
    }
    let join = |value: fn(&quota::Exceeded) -> String| {
        exceeded.iter().map(value).collect::<Vec<_>>().join(", ")
    };
    Err(Fault::forbidden(format!(
        "Quota exceeded for {}: Requested {}, but already used {} of {} {}",
        join(|one| one.name.to_owned()),
        join(|one| one.requested.to_string()),
        join(|one| one.used.to_string()),
        join(|one| one.limit.to_string()),
        join(|one| one.name.to_owned()),
    )))
}

fn security_groups(call: &mut Call<'_>, given: &Doc) -> Result<Vec<Doc>, Fault> {
    let project = call.who.project_id.clone();
    let mut groups: Vec<Doc> = Vec::new();
    for wanted in given.list("security_groups") {
        let name = wanted
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if name == "default" {
            network::ensure_default_group(call.state, &project);
        }
        let found = match call.accessible(Kind::SecurityGroup, name) {
            Some(group) => vec![group],
            None => {
                let mut named = call.state.by(Kind::SecurityGroup, "name", name);
                named.retain(|group| group.text("project_id") == project);
                named
            }
        };
        match found.as_slice() {
            [group] => groups.push((**group).clone()),
            [] => {
                return Err(Fault::bad(format!(
                    "Security group {name} not found for project {project}."
                )));
            }
            _ => {
                return Err(Fault::conflict(format!(
                    "Multiple security groups found matching '{name}'. Use an ID to be more specific."
                )));
            }
        }
    }
    Ok(groups)
}

/// Attaches existing ports and creates the others; returns the ids of the created ports, which Nova will delete.
fn ports(
    call: &mut Call<'_>,
    given: &Doc,
    server: &str,
    zone: &str,
    groups: &[Doc],
) -> Result<Vec<String>, Fault> {
    let wanted: Vec<Value> = match given.get("networks") {
        Some(Value::Array(list)) => list.clone(),
        Some(Value::String(word)) if word == "none" => return Ok(Vec::new()),
        Some(Value::String(word)) if word == "auto" => automatic(call)?,
        None | Some(Value::Null) => automatic(call)?,
        Some(other) => return Err(wrong_type("networks", other)),
    };
    let owner = format!("compute:{zone}");
    let mut created = Vec::new();
    for (order, entry) in wanted.iter().enumerate() {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let port = match (text("port"), text("uuid")) {
            ("", "") => {
                return Err(Fault::bad("Bad network format: missing 'uuid' or 'port'"));
            }
            ("", network) => {
                let port = make_port(call, network, text("fixed_ip"), groups)?;
                created.push(port.clone());
                port
            }
            (port, _) => given_port(call, port)?,
        };
        network::bind(call.state, &port, server, &owner, "", false);
        call.state
            .edit(Kind::Port, &port, |doc| doc.set("_order", order));
    }
    Ok(created)
}

/// Returns the project's network, if there is exactly one.
fn automatic(call: &Call<'_>) -> Result<Vec<Value>, Fault> {
    let networks = call
        .state
        .by(Kind::Network, "project_id", &call.who.project_id);
    match networks.as_slice() {
        [] => Ok(Vec::new()),
        [one] => Ok(vec![json!({"uuid": one.text("id")})]),
        _ => Err(Fault::conflict(
            "Multiple possible networks found, use a Network ID to be more specific.",
        )),
    }
}

fn given_port(call: &Call<'_>, id: &str) -> Result<String, Fault> {
    let port = call
        .accessible(Kind::Port, id)
        .ok_or_else(|| Fault::bad(format!("Port {id} could not be found.")))?;
    if !port.text("device_id").is_empty() {
        return Err(Fault::conflict(format!("Port {id} is still in use.")));
    }
    Ok(id.to_owned())
}

/// Creates a port on a network, also for interface attachment.
pub(crate) fn make_port(
    call: &mut Call<'_>,
    network: &str,
    fixed_ip: &str,
    groups: &[Doc],
) -> Result<String, Fault> {
    let doc = call
        .state
        .get(Kind::Network, network)
        .filter(|doc| call.may_access(doc) || doc.flag("shared") || doc.flag("router:external"));
    let Some(doc) = doc else {
        return Err(Fault::bad(format!("Network {network} could not be found.")));
    };
    if doc.flag("router:external") && !doc.flag("shared") && !call.who.admin() {
        return Err(Fault::forbidden(format!(
            "It is not allowed to create an interface on external network {network}"
        )));
    }
    if call.state.count_by(Kind::Subnet, "network_id", network) == 0 {
        return Err(Fault::bad(format!(
            "Network {network} requires a subnet in order to boot instances on."
        )));
    }
    let project = call.who.project_id.clone();
    if !quota::exceeded(call, Service::Network, &project, &[("port", 1)]).is_empty() {
        return Err(Fault::forbidden("Maximum number of ports exceeded"));
    }
    let secured = doc.flag("port_security_enabled");
    let groups: Vec<String> = if !secured {
        Vec::new()
    } else if groups.is_empty() {
        vec![network::ensure_default_group(call.state, &project)]
    } else {
        groups
            .iter()
            .map(|group| group.text("id").to_owned())
            .collect()
    };
    let wanted = (!fixed_ip.is_empty()).then(|| json!([{"ip_address": fixed_ip}]));
    let fixed = network::allocate(call.state, network, wanted.as_ref(), &[])
        .map_err(|fault| Fault::bad(fault.message))?;
    let port = network::create_port(
        call.state,
        json!({"network_id": network, "project_id": project, "fixed_ips": fixed,
            "security_groups": groups, "port_security_enabled": secured}),
    );
    Ok(port.text("id").to_owned())
}

/// Returns the body without the fields that must not appear in a message.
fn redacted(given: &Doc) -> String {
    let mut given = given.clone();
    for secret in ["user_data", "adminPass"] {
        if given.contains_key(secret) {
            given.set(secret, "(not repeated)");
        }
    }
    Value::Object(given).to_string()
}

/// Returns the [`Fault`] of Nova's schema validation for a value of the wrong type.
pub(crate) fn wrong_type(field: &str, value: &Value) -> Fault {
    Fault::bad(format!(
        "Invalid input for field/attribute {field}. Value: {value}. {value} is not of the expected type"
    ))
}
