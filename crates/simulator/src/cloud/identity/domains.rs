//! Domains, each with its own users, groups and projects.

use std::sync::Arc;

use http::Method;
use serde_json::json;

use super::assignments::{self, GrantTarget, roles_of};
use super::directory::{forget_project, forget_user, listing, missing, one, required, with_link};
use super::groups;
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields, doc};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::{Access, Table};

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    let (many, single) = ("/v3/domains", "/v3/domains/{id}");
    table
        .on(Method::GET, "/v3/auth/domains", Access::Token, of_caller)
        .on(Method::GET, "/v3/auth/system", Access::Token, system)
        .on(Method::GET, many, Access::Token, |call| {
            let all = call.state.all(Kind::Domain).cloned().collect();
            Ok(listing(call, "domains", all))
        })
        .on(Method::POST, many, Access::Admin, create)
        .on(Method::GET, single, Access::Token, |call| {
            one(call, Kind::Domain, "domain")
        })
        .on(Method::PATCH, single, Access::Admin, update)
        .on(Method::DELETE, single, Access::Admin, delete);
}

/// GET /v3/auth/domains: the domains in which the user has a role.
fn of_caller(call: &mut Call<'_>) -> Answer {
    let with_role = |domain: &&Arc<Doc>| {
        let groups = call.who.groups.iter().cloned();
        let place = GrantTarget::Domain(domain.text("id"));
        !roles_of(call.state, &call.who.user_id, groups, place).is_empty()
    };
    let found = call.state.all(Kind::Domain).filter(with_role);
    let found = found.cloned().collect();
    Ok(listing(call, "domains", found))
}

/// GET /v3/auth/system
fn system(call: &mut Call<'_>) -> Answer {
    let groups = call.who.groups.iter().cloned();
    let roles = roles_of(call.state, &call.who.user_id, groups, GrantTarget::System);
    let system = match roles.is_empty() {
        true => json!([]),
        false => json!([{"all": true}]),
    };
    let links = json!({"self": format!("{}/v3/auth/system", call.root())});
    Ok(Reply::ok(json!({"system": system, "links": links})))
}

/// POST /v3/domains
fn create(call: &mut Call<'_>) -> Answer {
    let given = call.wrapped("domain")?;
    let name = required(&given, "domain", "name")?;
    if !call.state.by(Kind::Domain, "name", &name).is_empty() {
        return Err(duplicate(&name));
    }
    let id = call.state.new_hex_id();
    let enabled = given.get("enabled").is_none_or(|it| *it == json!(true));
    let domain = doc(
        json!({"id": id, "name": name, "description": given.text("description"),
        "enabled": enabled, "tags": [], "options": {}}),
    );
    call.state.put(Kind::Domain, domain.clone());
    let rendered = with_link(call, "domains", domain);
    Ok(Reply::with(201, json!({"domain": rendered})))
}

/// PATCH /v3/domains/{id}. While the domain is disabled, no token of its users is valid, and no token
/// for the domain or its projects.
fn update(call: &mut Call<'_>) -> Answer {
    let id = call.parameter("id").to_owned();
    let given = call.wrapped("domain")?;
    let name = given.text("name");
    let others = call.state.by(Kind::Domain, "name", name);
    if others.iter().any(|other| other.text("id") != id) {
        return Err(duplicate(name));
    }
    let known = call.state.edit(Kind::Domain, &id, |domain| {
        for name in ["name", "description", "enabled"] {
            if let Some(value) = given.get(name) {
                domain.set(name, value.clone());
            }
        }
    });
    if !known {
        return Err(missing("domain", &id));
    }
    one(call, Kind::Domain, "domain")
}

/// DELETE /v3/domains/{id}, with the whole content. The domain must be disabled.
fn delete(call: &mut Call<'_>) -> Answer {
    let id = call.parameter("id").to_owned();
    let known = call.state.get(Kind::Domain, &id);
    let known = known.ok_or_else(|| missing("domain", &id))?;
    if known.flag("enabled") {
        return Err(Fault::forbidden(
            "Cannot delete a domain that is enabled, please disable it first.",
        ));
    }
    let within = |call: &Call<'_>, kind| {
        let all = call.state.all(kind).filter(|it| it.text("domain_id") == id);
        let ids = all.map(|it| it.text("id").to_owned());
        ids.collect::<Vec<String>>()
    };
    for project in within(call, Kind::Project) {
        forget_project(call.state, &project);
    }
    for group in within(call, Kind::Group) {
        groups::forget(call.state, &group);
    }
    for user in within(call, Kind::User) {
        forget_user(call.state, &user);
    }
    assignments::forget(call.state, "domain_id", &id);
    call.state.remove(Kind::Domain, &id);
    Ok(Reply::empty(204))
}

fn duplicate(name: &str) -> Fault {
    Fault::conflict(format!(
        "Conflict occurred attempting to store domain - it is not permitted to have two domains with the same name : \
         {name}."
    ))
}
