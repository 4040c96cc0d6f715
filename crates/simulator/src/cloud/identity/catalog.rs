//! Regions, services and endpoints, and the resulting catalog.

use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};

use super::directory::{links, listing, missing, one, required, with_link};
use super::tokens::hashed;
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields, doc, public_fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::query;
use crate::cloud::route::{Access, Table};
use crate::cloud::service::Service;
use crate::cloud::settings::REGION;
use crate::cloud::state::State;

/// Order of a service in the catalog: first the services of every simulated cloud, in the order of the documentation,
/// then later ones.
const RANK: &str = "_rank";
/// Segment of a service of this cloud, below the URL used by the client.
const SEGMENT: &str = "_segment";
/// Placeholders for the project in the URL of an endpoint.
const PROJECT: [&str; 4] = [
    "%(project_id)s",
    "$(project_id)s",
    "%(tenant_id)s",
    "$(tenant_id)s",
];
pub(super) const INTERFACES: [&str; 3] = ["public", "internal", "admin"];

/// Registers the operations.
pub(super) fn routes(table: &mut Table<'_>) {
    const ONE_SERVICE: &str = "/v3/services/{id}";
    const ONE_ENDPOINT: &str = "/v3/endpoints/{id}";
    const ONE_REGION: &str = "/v3/regions/{id}";
    let admin = Access::Admin;
    table
        .on(Method::GET, "/v3/services", admin, services)
        .on(Method::POST, "/v3/services", admin, create_service)
        .on(Method::GET, ONE_SERVICE, admin, |call| {
            one(call, Kind::CatalogService, "service")
        })
        .on(Method::PATCH, ONE_SERVICE, admin, |call| {
            update(call, Kind::CatalogService, "service")
        })
        .on(Method::DELETE, ONE_SERVICE, admin, delete_service)
        .on(Method::GET, "/v3/endpoints", admin, endpoints)
        .on(Method::POST, "/v3/endpoints", admin, create_endpoint)
        .on(Method::GET, ONE_ENDPOINT, admin, endpoint)
        .on(Method::PATCH, ONE_ENDPOINT, admin, |call| {
            update(call, Kind::Endpoint, "endpoint")
        })
        .on(Method::DELETE, ONE_ENDPOINT, admin, delete_endpoint)
        .on(Method::GET, "/v3/regions", Access::Token, regions)
        .on(Method::POST, "/v3/regions", admin, create_region)
        .on(Method::GET, ONE_REGION, Access::Token, |call| {
            one(call, Kind::Region, "region")
        })
        .on(Method::DELETE, ONE_REGION, admin, delete_region);
}

/// Returns the catalog of a project, with URLs for clients of this cloud.
pub(super) fn entries(call: &Call<'_>, project: &str) -> Value {
    let mut services: Vec<&Arc<Doc>> = call.state.all(Kind::CatalogService).collect();
    services.sort_by_key(|it| it.number(RANK));
    let services = services.into_iter().filter(|it| it.flag("enabled"));
    let entry = |service: &Arc<Doc>| {
        let id = service.text("id");
        let endpoints = call.state.by(Kind::Endpoint, "service_id", id);
        // As in Keystone: what needs a project is not in the catalog of a token for none.
        let endpoints = endpoints.iter().filter(|it| {
            it.flag("enabled")
                && !(project.is_empty() && PROJECT.iter().any(|form| it.text("url").contains(form)))
        });
        let endpoints = endpoints.map(|it| {
            let url = url(call, it, project);
            json!({"id": it.text("id"), "interface": it.text("interface"),
                "region": it.text("region_id"), "region_id": it.text("region_id"),
                "url": call.base.endpoint(&url)})
        });
        let mut endpoints: Vec<Value> = endpoints.collect();
        let place = |it: &Value| INTERFACES.iter().position(|name| it["interface"] == *name);
        endpoints.sort_by_key(place);
        json!({"id": id, "type": service.text("type"), "name": service.text("name"),
            "endpoints": endpoints})
    };
    services.map(entry).collect()
}

/// Returns the URL of an endpoint for the project.
fn url(call: &Call<'_>, endpoint: &Doc, project: &str) -> String {
    let url = endpoint.text("url");
    let url = match Service::of_segment(endpoint.text(SEGMENT)) {
        Some(service) => format!("{}{url}", call.base.root(service)),
        None => url.to_owned(),
    };
    PROJECT
        .iter()
        .fold(url, |url, form| url.replace(form, project))
}

/// Adds the catalog of a cloud with all its services at one URL.
pub(crate) fn seed(state: &mut State) {
    let id = |text: &str| hashed(text)[..32].to_owned();
    state.put(Kind::Region, region_doc(REGION, ""));
    for (rank, service) in Service::OPENSTACK.into_iter().enumerate() {
        let (kind, name) = service.catalog();
        let mut entry = doc(json!({"id": id(kind), "type": kind, "name": name, "enabled": true}));
        entry.set(RANK, rank);
        state.put(Kind::CatalogService, entry);
        for interface in INTERFACES {
            let mut endpoint = doc(json!({
                "id": id(&format!("{kind}/{interface}")), "interface": interface,
                "region": REGION, "region_id": REGION, "service_id": id(kind), "enabled": true,
                "url": service.endpoint_suffix("%(project_id)s"),
            }));
            endpoint.set(SEGMENT, service.segment());
            state.put(Kind::Endpoint, endpoint);
        }
    }
}

pub(super) fn region_doc(id: &str, description: &str) -> Doc {
    doc(json!({"id": id, "description": description, "parent_region_id": null}))
}

/// GET /v3/services
fn services(call: &mut Call<'_>) -> Answer {
    let mut found: Vec<Arc<Doc>> = call.state.all(Kind::CatalogService).cloned().collect();
    found.sort_by_key(|it| it.number(RANK));
    Ok(listing(call, "services", found))
}

/// POST /v3/services. Two services may have the same type and name.
fn create_service(call: &mut Call<'_>) -> Answer {
    let given = call.wrapped("service")?;
    required(&given, "service", "type")?;
    let id = call.state.new_hex_id();
    let mut entry = kept(&given);
    entry.set("id", id);
    entry.set(RANK, 1000);
    if !entry.given("enabled") {
        entry.set("enabled", true);
    }
    call.state.put(Kind::CatalogService, entry.clone());
    let rendered = with_link(call, "services", entry);
    Ok(Reply::with(201, json!({"service": rendered})))
}

/// DELETE /v3/services/{id}
fn delete_service(call: &mut Call<'_>) -> Answer {
    let id = call.parameter("id").to_owned();
    let removed = call.state.remove(Kind::CatalogService, &id);
    removed.ok_or_else(|| missing("service", &id))?;
    for endpoint in call.state.by(Kind::Endpoint, "service_id", &id) {
        call.state.remove(Kind::Endpoint, endpoint.text("id"));
    }
    Ok(Reply::empty(204))
}

/// GET /v3/endpoints. Returns URLs as written, not as clients of this cloud have to use them.
fn endpoints(call: &mut Call<'_>) -> Answer {
    let all = call.state.all(Kind::Endpoint);
    let all: Vec<Arc<Doc>> = all.map(|it| Arc::new(written(call, it))).collect();
    Ok(listing(call, "endpoints", all))
}

/// GET /v3/endpoints/{id}
fn endpoint(call: &mut Call<'_>) -> Answer {
    let id = call.parameter("id");
    let found = call.state.get(Kind::Endpoint, id);
    let found = found.ok_or_else(|| missing("endpoint", id))?;
    let rendered = with_link(call, "endpoints", written(call, &found));
    Ok(Reply::ok(json!({"endpoint": rendered})))
}

/// Returns the [`Doc`] of an endpoint with its URL as written; the URL of an endpoint of this cloud begins with the
/// base URL of the request.
fn written(call: &Call<'_>, endpoint: &Doc) -> Doc {
    let mut rendered = endpoint.clone();
    if endpoint.given(SEGMENT) {
        rendered.set("url", url(call, endpoint, &call.who.project_id));
    }
    rendered
}

/// POST /v3/endpoints
fn create_endpoint(call: &mut Call<'_>) -> Answer {
    let given = call.wrapped("endpoint")?;
    for field in ["interface", "service_id", "url"] {
        required(&given, "endpoint", field)?;
    }
    if !INTERFACES.contains(&given.text("interface")) {
        return Err(Fault::bad(format!(
            "Invalid input for field 'interface': '{}' is not one of ['admin', 'internal', 'public']",
            given.text("interface")
        )));
    }
    let absent = |what: &str| {
        Fault::bad(format!(
            "Expecting to find endpoint {what}_id in {what} table. The server could not comply with the request \
             since it is either malformed or otherwise incorrect. The client is assumed to be in error."
        ))
    };
    let service = given.text("service_id");
    if call.state.get(Kind::CatalogService, service).is_none() {
        return Err(absent("service"));
    }
    // The older name creates its region.
    let region = match (given.text("region_id"), given.text("region")) {
        ("", name) if !name.is_empty() => {
            if call.state.get(Kind::Region, name).is_none() {
                call.state.put(Kind::Region, region_doc(name, ""));
            }
            json!(name)
        }
        ("", _) => Value::Null,
        (id, _) if call.state.get(Kind::Region, id).is_some() => json!(id),
        _ => return Err(absent("region")),
    };
    let mut endpoint = kept(&given);
    endpoint.set("id", call.state.new_hex_id());
    endpoint.set("region", region.clone());
    endpoint.set("region_id", region);
    if !endpoint.given("enabled") {
        endpoint.set("enabled", true);
    }
    call.state.put(Kind::Endpoint, endpoint.clone());
    let rendered = with_link(call, "endpoints", endpoint);
    Ok(Reply::with(201, json!({"endpoint": rendered})))
}

/// DELETE /v3/endpoints/{id}
fn delete_endpoint(call: &mut Call<'_>) -> Answer {
    let id = call.parameter("id").to_owned();
    let removed = call.state.remove(Kind::Endpoint, &id);
    removed.ok_or_else(|| missing("endpoint", &id))?;
    Ok(Reply::empty(204))
}

fn update(call: &mut Call<'_>, kind: Kind, name: &str) -> Answer {
    let id = call.parameter("id").to_owned();
    let given = call.wrapped(name)?;
    let changed = call.state.edit(kind, &id, |entry| {
        // A written URL is no longer one of this cloud's own.
        if given.contains_key("url") {
            entry.remove(SEGMENT);
        }
        entry.extend(kept(&given));
    });
    if !changed {
        return Err(missing(name, &id));
    }
    match kind {
        Kind::Endpoint => endpoint(call),
        kind => one(call, kind, name),
    }
}

/// Returns a [`Doc`] of the given fields, without the id and internal fields.
fn kept(given: &Doc) -> Doc {
    let mut kept = public_fields(given);
    kept.remove("id");
    kept
}

/// GET /v3/regions
fn regions(call: &mut Call<'_>) -> Answer {
    let all = call.state.all(Kind::Region);
    let rendered = all.filter(|it| {
        let wanted: Vec<&str> = call.query.all("parent_region_id").collect();
        wanted.is_empty() || query::matches(it.get("parent_region_id"), &wanted)
    });
    let rendered = rendered.map(|it| Value::Object(with_link(call, "regions", (**it).clone())));
    let rendered: Vec<Value> = rendered.collect();
    Ok(Reply::ok(
        json!({"regions": rendered, "links": links(call)}),
    ))
}

/// POST /v3/regions
fn create_region(call: &mut Call<'_>) -> Answer {
    let given = call.wrapped("region")?;
    let id = match given.text("id") {
        "" => call.state.new_hex_id(),
        id => id.to_owned(),
    };
    if call.state.get(Kind::Region, &id).is_some() {
        return Err(Fault::conflict(format!(
            "Conflict occurred attempting to store region - Duplicate ID, {id}.."
        )));
    }
    let mut region = region_doc(&id, given.text("description"));
    let parent = given.text("parent_region_id");
    if !parent.is_empty() {
        let known = call.state.get(Kind::Region, parent);
        known.ok_or_else(|| missing("region", parent))?;
        region.set("parent_region_id", parent);
    }
    call.state.put(Kind::Region, region.clone());
    let rendered = with_link(call, "regions", region);
    Ok(Reply::with(201, json!({"region": rendered})))
}

/// DELETE /v3/regions/{id}, with the regions below, unless one of those has an endpoint.
fn delete_region(call: &mut Call<'_>) -> Answer {
    let id = call.parameter("id").to_owned();
    let known = call.state.get(Kind::Region, &id);
    known.ok_or_else(|| missing("region", &id))?;
    let mut leaving = vec![id.clone()];
    let mut at = 0;
    while let Some(parent) = leaving.get(at) {
        let below = call.state.all(Kind::Region);
        let below = below.filter(|it| it.text("parent_region_id") == *parent);
        let below: Vec<String> = below.map(|it| it.text("id").to_owned()).collect();
        leaving.extend(below);
        at += 1;
    }
    let used = |id: &String| {
        let mut endpoints = call.state.all(Kind::Endpoint);
        endpoints.any(|it| it.text("region_id") == *id)
    };
    if leaving.iter().any(used) {
        return Err(Fault::forbidden(format!(
            "Unable to delete region {id} because it or its child regions have associated endpoints."
        )));
    }
    for id in &leaving {
        call.state.remove(Kind::Region, id);
    }
    Ok(Reply::empty(204))
}
