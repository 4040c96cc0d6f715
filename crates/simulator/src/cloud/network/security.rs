//! Security groups and their rules.

use ipnet::IpNet;
use serde_json::{Value, json};

use super::resource::{
    Hooks, Resource, bump, merge, owner_only, referenced, routes as standard, stamp, with_tenant,
    within_quota,
};
use crate::cloud::attribute::{Attribute, Preset, Shape, attribute, fixed};
use crate::cloud::call::{Call, Who};
use crate::cloud::collection::Collection;
use crate::cloud::document::{Doc, Fields, doc as to_doc, public_fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::Table;
use crate::cloud::state::State;

const GROUP_ATTRIBUTES: &[Attribute] = &[
    attribute("name", Shape::Text(255), Preset::Text("")).editable(),
    attribute("description", Shape::Text(255), Preset::Text("")).editable(),
    attribute("stateful", Shape::Flag, Preset::Flag(true)).editable(),
    fixed("id"),
    fixed("security_group_rules"),
    fixed("shared"),
    fixed("tags"),
    fixed("revision_number"),
];

const RULE_ATTRIBUTES: &[Attribute] = &[
    attribute("security_group_id", Shape::Id, Preset::Required),
    attribute(
        "direction",
        Shape::OneOf(&["ingress", "egress"]),
        Preset::Required,
    ),
    attribute(
        "ethertype",
        Shape::OneOf(&["IPv4", "IPv6"]),
        Preset::Text("IPv4"),
    ),
    attribute("protocol", Shape::Any, Preset::Null),
    attribute("port_range_min", Shape::Number(0, 65_535), Preset::Null),
    attribute("port_range_max", Shape::Number(0, 65_535), Preset::Null),
    attribute("remote_group_id", Shape::Id, Preset::Null),
    attribute("remote_ip_prefix", Shape::Any, Preset::Null),
    attribute("remote_address_group_id", Shape::Id, Preset::Null),
    attribute("description", Shape::Text(255), Preset::Text("")),
    fixed("id"),
    fixed("revision_number"),
];

/// Neutron's security groups.
pub(crate) static GROUP: Resource = Resource {
    collection: Collection {
        kind: Kind::SecurityGroup,
        one: "security_group",
        many: "security_groups",
        attributes: GROUP_ATTRIBUTES,
        across_projects: false,
        visible: owner_only,
        present: with_rules,
        missing: missing_group,
    },
    quota: "security_group",
    create: create_group,
    update: update_group,
    delete: delete_group,
    hooks: Hooks::NONE,
};

/// Neutron's security group rules.
pub(crate) static RULE: Resource = Resource {
    collection: Collection {
        kind: Kind::SecurityGroupRule,
        one: "security_group_rule",
        many: "security_group_rules",
        attributes: RULE_ATTRIBUTES,
        across_projects: false,
        visible: owner_only,
        present: rule_present,
        missing: missing_rule,
    },
    quota: "security_group_rule",
    create: create_rule,
    update: |_, _, _, _| {
        Err(Fault::new(
            405,
            "HTTPMethodNotAllowed",
            "The method PUT is not allowed.",
        ))
    },
    delete: delete_rule,
    hooks: Hooks {
        together: of_one_group,
        ..Hooks::NONE
    },
};

/// Returns a [`Fault`] unless all rules are of one group, as Neutron requires in one request.
fn of_one_group(rules: &[Doc]) -> Result<(), Fault> {
    let group = |rule: &Doc| rule.text("security_group_id").to_owned();
    let first = rules.first().map(group);
    if rules
        .iter()
        .map(group)
        .all(|id| Some(&id) == first.as_ref())
    {
        return Ok(());
    }
    Err(Fault::new(
        400,
        "SecurityGroupNotSingleGroupRules",
        "Only allowed to update rules for one security profile at a time",
    ))
}

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    standard(
        table,
        "/v2.0/security-groups",
        "/v2.0/security-groups/{id}",
        &GROUP,
    );
    standard(
        table,
        "/v2.0/security-group-rules",
        "/v2.0/security-group-rules/{id}",
        &RULE,
    );
}

/// Returns the project's group `default`, which Neutron creates with the project's first security group or port.
pub(crate) fn ensure_default_group(state: &mut State, project: &str) -> String {
    let groups = state.by(Kind::SecurityGroup, "project_id", project);
    if let Some(group) = groups.iter().find(|group| group.text("name") == "default") {
        return group.text("id").to_owned();
    }
    let mut doc = to_doc(
        json!({"name": "default", "description": "Default security group",
        "stateful": true, "shared": false}),
    );
    let id = state.new_id();
    stamp(&mut doc, id.clone(), project, state);
    state.put(Kind::SecurityGroup, doc);
    egress(state, project, &id);
    for family in ["IPv4", "IPv6"] {
        add_rule(
            state,
            project,
            &id,
            json!({"direction": "ingress", "ethertype": family, "remote_group_id": id}),
        );
    }
    id
}

fn create_group(call: &mut Call<'_>, mut doc: Doc) -> Result<Doc, Fault> {
    let project = doc.text("project_id").to_owned();
    if doc.text("name") == "default" {
        return Err(Fault::new(
            409,
            "SecurityGroupDefaultAlreadyExists",
            "Default security group already exists.",
        ));
    }
    ensure_default_group(call.state, &project);
    within_quota(call, "security_group_rule", &project, 2)?;
    doc.set("shared", false);
    let id = doc.text("id").to_owned();
    call.state.put(Kind::SecurityGroup, doc.clone());
    egress(call.state, &project, &id);
    Ok(doc)
}

fn update_group(_: &mut Call<'_>, old: &Doc, new: &mut Doc, changes: &Doc) -> Result<(), Fault> {
    let renamed = changes.contains_key("name") && changes.text("name") != old.text("name");
    if old.text("name") == "default" && renamed {
        return Err(Fault::new(
            409,
            "SecurityGroupCannotUpdateDefault",
            "Updating default security group not allowed.",
        ));
    }
    merge(new, changes);
    Ok(())
}

fn delete_group(call: &mut Call<'_>, doc: &Doc) -> Result<(), Fault> {
    let id = doc.text("id");
    if call.state.count_by(Kind::Port, "security_group_id", id) > 0 {
        return Err(Fault::new(
            409,
            "SecurityGroupInUse",
            format!("Security Group {id} in use."),
        ));
    }
    if doc.text("name") == "default" && !call.who.admin() {
        return Err(Fault::new(
            409,
            "SecurityGroupCannotRemoveDefault",
            "Insufficient rights for removing default security group.",
        ));
    }
    for (field, value) in [("security_group_id", id), ("remote_group_id", id)] {
        for rule in call.state.by(Kind::SecurityGroupRule, field, value) {
            call.state.remove(Kind::SecurityGroupRule, rule.text("id"));
        }
    }
    call.state.remove(Kind::SecurityGroup, id);
    Ok(())
}

fn create_rule(call: &mut Call<'_>, mut doc: Doc) -> Result<Doc, Fault> {
    let group = referenced(call, &GROUP, doc.text("security_group_id"))?;
    if doc.given("remote_group_id") {
        referenced(call, &GROUP, doc.text("remote_group_id"))?;
    }
    normalise(&mut doc)?;
    let same = fingerprint(&doc);
    if let Some(twin) = call
        .state
        .by(Kind::SecurityGroupRule, "_same", &same)
        .first()
    {
        return Err(Fault::new(
            409,
            "SecurityGroupRuleExists",
            format!(
                "Security group rule already exists. Rule id is {}.",
                twin.text("id")
            ),
        ));
    }
    doc.set("_same", same);
    doc.set(
        "normalized_cidr",
        doc.get("remote_ip_prefix").cloned().unwrap_or_default(),
    );
    call.state.put(Kind::SecurityGroupRule, doc.clone());
    bump(call.state, Kind::SecurityGroup, group.text("id"));
    Ok(doc)
}

fn delete_rule(call: &mut Call<'_>, doc: &Doc) -> Result<(), Fault> {
    call.state.remove(Kind::SecurityGroupRule, doc.text("id"));
    bump(
        call.state,
        Kind::SecurityGroup,
        doc.text("security_group_id"),
    );
    Ok(())
}

/// Returns a [`Fault`] for a rule that neutron's `securitygroups_db._validate_security_group_rule` rejects; otherwise
/// sets canonical values.
fn normalise(doc: &mut Doc) -> Result<(), Fault> {
    let protocol = match doc.get("protocol") {
        None | Some(Value::Null) => None,
        Some(Value::Number(number)) => Some(number.to_string()),
        Some(Value::String(text)) if text.is_empty() || text.eq_ignore_ascii_case("any") => None,
        Some(Value::String(text)) => Some(text.to_ascii_lowercase()),
        Some(other) => return Err(bad_protocol(&other.to_string())),
    };
    if let Some(name) = &protocol
        && protocol_number(name).is_none()
    {
        return Err(bad_protocol(name));
    }
    doc.set(
        "protocol",
        protocol.clone().map_or(Value::Null, Value::String),
    );
    if doc.given("remote_group_id") && doc.given("remote_ip_prefix") {
        return Err(Fault::new(
            400,
            "SecurityGroupMultipleRemoteEntites",
            "Only remote_ip_prefix or remote_group_id or remote_address_group_id may be provided.",
        ));
    }
    if let Some(prefix) = doc.get("remote_ip_prefix").filter(|value| !value.is_null()) {
        let text = prefix.as_str().unwrap_or_default();
        let net = text
            .parse::<IpNet>()
            .or_else(|_| text.parse::<std::net::IpAddr>().map(IpNet::from))
            .map_err(|_| {
                Fault::bad(format!(
                    "Invalid input for remote_ip_prefix. Reason: '{text}' is not a valid IP subnet."
                ))
            })?;
        let family = if net.addr().is_ipv4() { "IPv4" } else { "IPv6" };
        if doc.text("ethertype") != family {
            return Err(Fault::new(
                400,
                "SecurityGroupRuleParameterConflict",
                format!(
                    "Conflicting value ethertype {} for CIDR {text}",
                    doc.text("ethertype")
                ),
            ));
        }
        doc.set("remote_ip_prefix", net.to_string());
    }
    let (min, max) = (doc.given("port_range_min"), doc.given("port_range_max"));
    let number = protocol.as_deref().and_then(protocol_number);
    if !min && !max {
        return Ok(());
    }
    match number {
        None => Err(Fault::new(
            400,
            "SecurityGroupProtocolRequiredWithPorts",
            "Must also specify protocol if port range is given.",
        )),
        // ICMP: type and code.
        Some(1 | 58) => Ok(()),
        Some(6 | 17 | 33 | 132 | 136) => {
            let (low, high) = (doc.number("port_range_min"), doc.number("port_range_max"));
            if min && max && low >= 1 && low <= high {
                return Ok(());
            }
            Err(Fault::new(
                400,
                "SecurityGroupInvalidPortRange",
                "For TCP/UDP protocols, port_range_min must be <= port_range_max",
            ))
        }
        Some(_) => Err(Fault::new(
            400,
            "SecurityGroupInvalidProtocolForPort",
            format!(
                "Invalid protocol {} for port range, only supported for TCP, UDP, UDPLITE, SCTP and DCCP.",
                protocol.unwrap_or_default()
            ),
        )),
    }
}

/// Returns the identity of a rule (neutron's `_rule_to_key`): all fields except id, description and times, where an
/// explicit "any address" equals an absent one.
fn fingerprint(doc: &Doc) -> String {
    let prefix = match doc.text("remote_ip_prefix") {
        "0.0.0.0/0" | "::/0" => "",
        other => other,
    };
    let protocol = protocol_number(doc.text("protocol")).map_or(-1, i64::from);
    let number = |name: &str| doc.get(name).and_then(Value::as_i64).unwrap_or(-1);
    format!(
        "{}/{}/{}/{protocol}/{}/{}/{}/{prefix}",
        doc.text("security_group_id"),
        doc.text("direction"),
        doc.text("ethertype"),
        number("port_range_min"),
        number("port_range_max"),
        doc.text("remote_group_id"),
    )
}

fn protocol_number(name: &str) -> Option<u8> {
    Some(match name {
        "ah" => 51,
        "dccp" => 33,
        "egp" => 8,
        "esp" => 50,
        "gre" => 47,
        "hopopt" => 0,
        "icmp" => 1,
        "icmpv6" | "ipv6-icmp" => 58,
        "igmp" => 2,
        "ip" => 0,
        "ipip" => 4,
        "ipv6-encap" => 41,
        "ipv6-frag" => 44,
        "ipv6-nonxt" => 59,
        "ipv6-opts" => 60,
        "ipv6-route" => 43,
        "ospf" => 89,
        "pgm" => 113,
        "rsvp" => 46,
        "sctp" => 132,
        "tcp" => 6,
        "udp" => 17,
        "udplite" => 136,
        "vrrp" => 112,
        number => return number.parse().ok(),
    })
}

fn bad_protocol(name: &str) -> Fault {
    Fault::new(
        400,
        "SecurityGroupRuleInvalidProtocol",
        format!(
            "Security group rule protocol {name} not supported. Only protocol values [None, 'ah', \
         'dccp', 'egp', 'esp', 'gre', 'icmp', 'icmpv6', 'igmp', 'ipip', 'ipv6-encap', 'ipv6-frag', \
         'ipv6-icmp', 'ipv6-nonxt', 'ipv6-opts', 'ipv6-route', 'ospf', 'pgm', 'rsvp', 'sctp', \
         'tcp', 'udp', 'udplite', 'vrrp'] and integer representations [0 to 255] are supported."
        ),
    )
}

fn egress(state: &mut State, project: &str, group: &str) {
    for family in ["IPv4", "IPv6"] {
        add_rule(
            state,
            project,
            group,
            json!({"direction": "egress", "ethertype": family}),
        );
    }
}

fn add_rule(state: &mut State, project: &str, group: &str, given: Value) {
    let mut doc = to_doc(
        json!({"security_group_id": group, "protocol": null, "port_range_min": null,
        "port_range_max": null, "remote_group_id": null, "remote_ip_prefix": null,
        "remote_address_group_id": null, "normalized_cidr": null}),
    );
    merge(&mut doc, &to_doc(given));
    let same = fingerprint(&doc);
    doc.set("_same", same);
    let id = state.new_id();
    stamp(&mut doc, id, project, state);
    doc.set("description", Value::Null);
    state.put(Kind::SecurityGroupRule, doc);
}

fn with_rules(state: &State, who: &Who, doc: &mut Doc) {
    with_tenant(state, who, doc);
    let rules: Vec<Value> = state
        .by(Kind::SecurityGroupRule, "security_group_id", doc.text("id"))
        .iter()
        .map(|rule| {
            let mut rule = public_fields(rule);
            rule_present(state, who, &mut rule);
            // Rules within a group have more fields.
            rule.set("standard_attr_id", 1);
            rule.set("tags", json!([]));
            Value::Object(rule)
        })
        .collect();
    doc.set("security_group_rules", rules);
}

fn rule_present(state: &State, who: &Who, doc: &mut Doc) {
    with_tenant(state, who, doc);
    doc.remove("tags");
}

fn missing_group(id: &str) -> Fault {
    Fault::new(
        404,
        "SecurityGroupNotFound",
        format!("Security group {id} does not exist"),
    )
}

fn missing_rule(id: &str) -> Fault {
    Fault::new(
        404,
        "SecurityGroupRuleNotFound",
        format!("Security group rule {id} does not exist"),
    )
}
