//! Trunks: a parent port and subports on VLANs.

use http::Method;
use serde_json::{Value, json};

use super::ports::PORT;
use super::resource::{
    Hooks, Resource, bump, merge, owner_only, referenced, routes as standard, with_tenant,
};
use crate::cloud::attribute::{Attribute, Preset, Shape, attribute, fixed};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::collection::Collection;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::{Access, Table};

const ATTRIBUTES: &[Attribute] = &[
    attribute("port_id", Shape::Id, Preset::Required),
    attribute("name", Shape::Text(255), Preset::Text("")).editable(),
    attribute("description", Shape::Text(255), Preset::Text("")).editable(),
    attribute("admin_state_up", Shape::Flag, Preset::Flag(true)).editable(),
    attribute("sub_ports", Shape::List, Preset::EmptyList),
    fixed("id"),
    fixed("status"),
    fixed("tags"),
    fixed("revision_number"),
];

/// Neutron's trunks.
pub(crate) static TRUNK: Resource = Resource {
    collection: Collection {
        kind: Kind::Trunk,
        one: "trunk",
        many: "trunks",
        attributes: ATTRIBUTES,
        across_projects: false,
        visible: owner_only,
        present: with_tenant,
        missing,
    },
    quota: "trunk",
    create,
    update: |_, _, new, changes| {
        merge(new, changes);
        Ok(())
    },
    delete,
    hooks: Hooks::NONE,
};

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    standard(table, "/v2.0/trunks", "/v2.0/trunks/{id}", &TRUNK);
    table
        .on(
            Method::PUT,
            "/v2.0/trunks/{id}/add_subports",
            Access::Member,
            add_subports,
        )
        .on(
            Method::PUT,
            "/v2.0/trunks/{id}/remove_subports",
            Access::Member,
            remove_subports,
        )
        .on(
            Method::GET,
            "/v2.0/trunks/{id}/get_subports",
            Access::Reader,
            get_subports,
        );
}

fn create(call: &mut Call<'_>, mut doc: Doc) -> Result<Doc, Fault> {
    let port = referenced(call, &PORT, doc.text("port_id"))?;
    let id = port.text("id").to_owned();
    if let Some(trunk) = call.state.by(Kind::Trunk, "port_id", &id).first() {
        return Err(Fault::new(
            409,
            "ParentPortInUse",
            format!("Port {id} is in use by trunk {}.", trunk.text("id")),
        ));
    }
    let wanted = doc.list("sub_ports").to_vec();
    doc.set("sub_ports", json!([]));
    // OVN binds a trunk at once.
    doc.set("status", "ACTIVE");
    let trunk_id = doc.text("id").to_owned();
    call.state.put(Kind::Trunk, doc);
    attach(call, &trunk_id, &id, &wanted)?;
    Ok((*call.state.get(Kind::Trunk, &trunk_id).unwrap_or_default()).clone())
}

fn delete(call: &mut Call<'_>, doc: &Doc) -> Result<(), Fault> {
    for port in doc
        .list("sub_ports")
        .iter()
        .filter_map(|sub| sub["port_id"].as_str())
    {
        super::ports::release(call.state, port);
    }
    call.state.remove(Kind::Trunk, doc.text("id"));
    Ok(())
}

fn add_subports(call: &mut Call<'_>) -> Answer {
    let trunk = TRUNK.collection.find_writable(call, call.parameter("id"))?;
    let wanted = subports(call)?;
    attach(call, trunk.text("id"), trunk.text("port_id"), &wanted)?;
    bump(call.state, Kind::Trunk, trunk.text("id"));
    answer_with(call, trunk.text("id"))
}

fn remove_subports(call: &mut Call<'_>) -> Answer {
    let trunk = TRUNK.collection.find_writable(call, call.parameter("id"))?;
    let mut left = trunk.list("sub_ports").to_vec();
    for sub in subports(call)? {
        let port = sub["port_id"].as_str().unwrap_or_default();
        let before = left.len();
        left.retain(|existing| existing["port_id"] != port);
        if left.len() == before {
            return Err(Fault::new(
                404,
                "SubPortNotFound",
                format!(
                    "SubPort on trunk {} with parent port {port} could not be found.",
                    trunk.text("id")
                ),
            ));
        }
        super::ports::release(call.state, port);
    }
    call.state.edit(Kind::Trunk, trunk.text("id"), |doc| {
        doc.set("sub_ports", left)
    });
    bump(call.state, Kind::Trunk, trunk.text("id"));
    answer_with(call, trunk.text("id"))
}

fn get_subports(call: &mut Call<'_>) -> Answer {
    let trunk = TRUNK.collection.find(call, call.parameter("id"))?;
    Ok(Reply::ok(json!({"sub_ports": trunk.list("sub_ports")})))
}

fn attach(call: &mut Call<'_>, trunk: &str, parent: &str, wanted: &[Value]) -> Result<(), Fault> {
    for sub in wanted {
        let port = sub
            .get("port_id")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let segment = sub
            .get("segmentation_id")
            .and_then(Value::as_i64)
            .unwrap_or(-1);
        let found = referenced(call, &PORT, port)?;
        let in_trunk = call.state.by(Kind::Trunk, "port_id", port);
        if found.text("device_owner") == "trunk:subport" {
            return Err(Fault::new(
                409,
                "TrunkPortInUse",
                format!("Port {port} is in use by another trunk."),
            ));
        }
        if port == parent || !in_trunk.is_empty() || !found.text("device_id").is_empty() {
            return Err(Fault::new(
                409,
                "PortInUse",
                format!(
                    "Unable to complete operation on port {port} for network {}. Port already has an \
                 attached device {}.",
                    found.text("network_id"),
                    found.text("device_id")
                ),
            ));
        }
        if !(1..=4094).contains(&segment) {
            return Err(Fault::bad(format!(
                "Invalid input for sub_ports. Reason: Invalid values for segmentation_id '{segment}'."
            )));
        }
        let stored = call.state.get(Kind::Trunk, trunk).unwrap_or_default();
        if stored
            .list("sub_ports")
            .iter()
            .any(|existing| existing["segmentation_id"] == segment)
        {
            return Err(Fault::new(
                409,
                "DuplicateSubPort",
                format!(
                    "segmentation_type vlan and segmentation_id {segment} already in use on trunk {trunk}."
                ),
            ));
        }
        super::ports::change(call.state, port, |doc| {
            doc.set("device_id", trunk);
            doc.set("device_owner", "trunk:subport");
            doc.set("status", "ACTIVE");
        });
        call.state.edit(Kind::Trunk, trunk, |doc| {
            let mut subs = doc.list("sub_ports").to_vec();
            subs.push(
                json!({"port_id": port, "segmentation_id": segment, "segmentation_type": "vlan"}),
            );
            doc.set("sub_ports", subs);
        });
    }
    Ok(())
}

fn subports(call: &Call<'_>) -> Result<Vec<Value>, Fault> {
    match call.body.get("sub_ports") {
        Some(Value::Array(list)) => Ok(list.clone()),
        _ => Err(Fault::bad(
            "Invalid input for sub_ports. Reason: not a list.",
        )),
    }
}

fn answer_with(call: &Call<'_>, id: &str) -> Answer {
    let doc = call.state.get(Kind::Trunk, id).unwrap_or_default();
    Ok(Reply::ok(Value::Object(TRUNK.collection.show(call, &doc))))
}

fn missing(id: &str) -> Fault {
    Fault::new(
        404,
        "TrunkNotFound",
        format!("Trunk {id} could not be found."),
    )
}
