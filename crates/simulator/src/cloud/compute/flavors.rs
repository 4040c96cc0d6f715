//! Flavors.

use http::Method;
use serde_json::{Value, json};

use super::servers::links;
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields, doc as to_doc};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::query;
use crate::cloud::route::{Access, Table};

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .get("/v2.1/flavors", |call| list(call, false))
        .get("/v2.1/flavors/detail", |call| list(call, true))
        .get("/v2.1/flavors/{id}", |call| {
            let doc = find(call)?;
            Ok(Reply::ok(json!({"flavor": view(call, &doc)})))
        })
        .get("/v2.1/flavors/{id}/os-extra_specs", |call| {
            let doc = find(call)?;
            Ok(Reply::ok(json!({"extra_specs": doc.object("extra_specs")})))
        })
        .on(
            Method::POST,
            "/v2.1/flavors/{id}/os-extra_specs",
            Access::Admin,
            set_specs,
        )
        .on(Method::POST, "/v2.1/flavors", Access::Admin, create)
        .on(
            Method::DELETE,
            "/v2.1/flavors/{id}",
            Access::Admin,
            |call| {
                let doc = find(call)?;
                call.state.remove(Kind::Flavor, doc.text("id"));
                Ok(Reply::empty(202))
            },
        );
}

/// Returns the [`Doc`] of a public flavor: memory in MiB, disk in GiB.
pub(crate) fn flavor(id: &str, name: &str, vcpus: i64, ram: i64, disk: i64) -> Doc {
    to_doc(
        json!({"id": id, "name": name, "vcpus": vcpus, "ram": ram, "disk": disk, "public": true,
        "extra_specs": {}, "swap": 0, "ephemeral": 0}),
    )
}

fn find(call: &Call<'_>) -> Result<std::sync::Arc<Doc>, Fault> {
    let id = call.parameter("id");
    call.state
        .get(Kind::Flavor, id)
        .ok_or_else(|| Fault::missing(format!("Flavor {id} could not be found.")))
}

fn list(call: &mut Call<'_>, detail: bool) -> Answer {
    let number = |name: &str| {
        call.query
            .get(name)
            .and_then(|text| text.parse::<i64>().ok())
            .unwrap_or(0)
    };
    let (ram, disk) = (number("minRam"), number("minDisk"));
    let mut found: Vec<_> = call
        .state
        .all(Kind::Flavor)
        .filter(|doc| doc.number("ram") >= ram && doc.number("disk") >= disk)
        .filter(|doc| doc.flag("public") || call.who.admin())
        .cloned()
        .collect();
    found.sort_by(|a, b| (a.number("ram"), a.text("id")).cmp(&(b.number("ram"), b.text("id"))));
    let limit = call
        .query
        .limit()
        .map_err(|text| Fault::bad(format!("limit param must be an integer: {text}")))?;
    let marker = call.query.get("marker");
    let page = query::page(found, marker, limit, false)
        .ok_or_else(|| Fault::bad(format!("marker [{}] not found", marker.unwrap_or_default())))?;
    let views: Vec<Value> = page
        .docs
        .iter()
        .map(|doc| {
            if detail {
                return view(call, doc);
            }
            let mut brief = json!({"id": doc.text("id"), "name": doc.text("name"),
                "links": links(call, "flavors", doc.text("id"))});
            if call.version >= 55 {
                brief["description"] = Value::Null;
            }
            brief
        })
        .collect();
    let mut body = json!({"flavors": views});
    if let Some(next) = &page.next {
        let href = format!(
            "{}{}?{}",
            call.root(),
            call.path,
            call.query.with_marker(next, false)
        );
        body["flavors_links"] = json!([{"rel": "next", "href": href}]);
    }
    Ok(Reply::ok(body))
}

fn create(call: &mut Call<'_>) -> Answer {
    let given = call.wrapped("flavor")?;
    let name = given.text("name");
    if name.is_empty() || given.number("vcpus") < 1 || given.number("ram") < 1 {
        return Err(Fault::bad(
            "Invalid input for field/attribute flavor. name, vcpus and ram are required",
        ));
    }
    let id = match given.text("id") {
        "" | "auto" => call.state.new_id(),
        id => id.to_owned(),
    };
    if call.state.get(Kind::Flavor, &id).is_some()
        || !call.state.by(Kind::Flavor, "name", name).is_empty()
    {
        return Err(Fault::conflict(format!(
            "Flavor with name {name} already exists."
        )));
    }
    let mut doc = flavor(
        &id,
        name,
        given.number("vcpus"),
        given.number("ram"),
        given.number("disk"),
    );
    let public = given
        .get("os-flavor-access:is_public")
        .and_then(Value::as_bool)
        .unwrap_or(true);
    doc.set("public", public);
    call.state.put(Kind::Flavor, doc.clone());
    Ok(Reply::ok(json!({"flavor": view(call, &doc)})))
}

fn set_specs(call: &mut Call<'_>) -> Answer {
    let doc = find(call)?;
    let given = call.wrapped("extra_specs")?;
    let mut all = doc.object("extra_specs");
    all.extend(given);
    call.state.edit(Kind::Flavor, doc.text("id"), |doc| {
        doc.set("extra_specs", all.clone())
    });
    Ok(Reply::ok(json!({"extra_specs": all})))
}

fn view(call: &Call<'_>, doc: &Doc) -> Value {
    let id = doc.text("id");
    let swap = if call.version >= 75 {
        json!(0)
    } else {
        json!("")
    };
    let mut out = json!({"id": id, "name": doc.text("name"), "vcpus": doc.number("vcpus"),
        "ram": doc.number("ram"), "disk": doc.number("disk"), "swap": swap, "rxtx_factor": 1.0,
        "OS-FLV-EXT-DATA:ephemeral": 0, "OS-FLV-DISABLED:disabled": false,
        "os-flavor-access:is_public": doc.flag("public"), "links": links(call, "flavors", id)});
    if call.version >= 55 {
        out["description"] = Value::Null;
    }
    if call.version >= 61 {
        out["extra_specs"] = json!(doc.object("extra_specs"));
    }
    out
}
