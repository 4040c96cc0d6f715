//! Projects, users and roles, and functions common to all lists of Keystone.

use std::sync::Arc;

use serde_json::{Value, json};

use super::assignments::{self, GrantTarget, roles_of};
use super::tokens::hashed;
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields, public_fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::network;
use crate::cloud::query;
use crate::cloud::state::State;

/// Fields for filters of lists.
const FILTERS: [&str; 8] = [
    "name",
    "domain_id",
    "enabled",
    "parent_id",
    "type",
    "service_id",
    "interface",
    "region_id",
];

/// GET /v3/projects
pub(crate) fn projects(call: &mut Call<'_>) -> Answer {
    admin_only(call, "list_projects")?;
    let found = call.state.all(Kind::Project).cloned().collect();
    Ok(listing(call, "projects", found))
}

/// GET /v3/auth/projects and /v3/users/{id}/projects: the projects in which the user has a role
pub(crate) fn projects_of_user(call: &mut Call<'_>) -> Answer {
    let user = match call.parameter("user_id") {
        "" => call.who.user_id.clone(),
        other if other == call.who.user_id || call.who.admin() => other.to_owned(),
        _ => return Err(denied("list_user_projects")),
    };
    let federated = match user == call.who.user_id {
        true => call.who.groups.clone(),
        false => Vec::new(),
    };
    let with_role = |project: &&Arc<Doc>| {
        let place = GrantTarget::Project(project.text("id"));
        !roles_of(call.state, &user, federated.iter().cloned(), place).is_empty()
    };
    let found = call.state.all(Kind::Project).filter(with_role);
    let found = found.cloned().collect();
    Ok(listing(call, "projects", found))
}

/// GET /v3/projects/{id}
pub(crate) fn project(call: &mut Call<'_>) -> Answer {
    if call.parameter("id") != call.who.project_id {
        admin_only(call, "get_project")?;
    }
    one(call, Kind::Project, "project")
}

/// POST /v3/projects
pub(crate) fn create_project(call: &mut Call<'_>) -> Answer {
    let given = call.wrapped("project")?;
    let name = required(&given, "project", "name")?;
    let domain = domain_given(call, &given)?;
    if same_name(call.state, Kind::Project, &name, &domain).is_some() {
        return Err(Fault::conflict(format!(
            "Conflict occurred attempting to store project - it is not permitted to have two \
             projects with the same name in the same domain : {name}."
        )));
    }
    let id = call.state.new_hex_id();
    let doc = project_doc(&id, &name, &domain, given.text("description"));
    call.state.put(Kind::Project, doc.clone());
    network::ensure_default_group(call.state, &id);
    Ok(Reply::with(
        201,
        json!({"project": with_link(call, "projects", doc)}),
    ))
}

/// PATCH /v3/projects/{id}
pub(crate) fn update_project(call: &mut Call<'_>) -> Answer {
    let id = call.parameter("id").to_owned();
    let given = call.wrapped("project")?;
    if given.contains_key("domain_id") || given.contains_key("id") {
        return Err(Fault::bad("Cannot change Domain ID or Project ID"));
    }
    let known = call.state.edit(Kind::Project, &id, |doc| {
        let fields = given.iter().filter(|(name, _)| !name.starts_with('_'));
        doc.extend(fields.map(|(name, value)| (name.clone(), value.clone())));
    });
    if !known {
        return Err(missing("project", &id));
    }
    one(call, Kind::Project, "project")
}

/// DELETE /v3/projects/{id}
pub(crate) fn delete_project(call: &mut Call<'_>) -> Answer {
    let id = call.parameter("id").to_owned();
    match forget_project(call.state, &id) {
        true => Ok(Reply::empty(204)),
        false => Err(missing("project", &id)),
    }
}

/// Removes a project with its grants and application credentials; returns false for an unknown one.
pub(super) fn forget_project(state: &mut State, id: &str) -> bool {
    if state.remove(Kind::Project, id).is_none() {
        return false;
    }
    assignments::forget(state, "project_id", id);
    for credential in state.by(Kind::Credential, "project_id", id) {
        state.remove(Kind::Credential, credential.text("id"));
    }
    true
}

/// GET /v3/users
pub(crate) fn users(call: &mut Call<'_>) -> Answer {
    admin_only(call, "list_users")?;
    let found = call.state.all(Kind::User).cloned().collect();
    Ok(listing(call, "users", found))
}

/// GET /v3/users/{id}
pub(crate) fn user(call: &mut Call<'_>) -> Answer {
    if call.parameter("id") != call.who.user_id {
        admin_only(call, "get_user")?;
    }
    one(call, Kind::User, "user")
}

/// POST /v3/users
pub(crate) fn create_user(call: &mut Call<'_>) -> Answer {
    let given = call.wrapped("user")?;
    let name = required(&given, "user", "name")?;
    let domain = domain_given(call, &given)?;
    if same_name(call.state, Kind::User, &name, &domain).is_some() {
        return Err(Fault::conflict(format!(
            "Conflict occurred attempting to store user - Duplicate entry found with name {name} \
             at domain ID {domain}."
        )));
    }
    let id = call.state.new_hex_id();
    let mut doc = user_doc(
        &id,
        &name,
        given.text("password"),
        given.text("default_project_id"),
    );
    // Keystone keeps whatever else is given.
    let known = ["id", "password", "default_project_id"];
    let more = given.iter().filter(|(name, value)| {
        !name.starts_with('_') && !known.contains(&name.as_str()) && !value.is_null()
    });
    doc.extend(more.map(|(name, value)| (name.clone(), value.clone())));
    doc.set("domain_id", domain);
    call.state.put(Kind::User, doc.clone());
    Ok(Reply::with(
        201,
        json!({"user": with_link(call, "users", public_fields(&doc))}),
    ))
}

/// PATCH /v3/users/{id}
pub(crate) fn update_user(call: &mut Call<'_>) -> Answer {
    let id = call.parameter("id").to_owned();
    let given = call.wrapped("user")?;
    if given.contains_key("domain_id") || given.contains_key("id") {
        return Err(Fault::bad("Cannot change Domain ID or user ID"));
    }
    let known = call.state.edit(Kind::User, &id, |doc| {
        for (name, value) in &given {
            match (name.as_str(), value) {
                ("password", Value::String(password)) => doc.set("_password", hashed(password)),
                ("options", Value::Object(options)) => {
                    let mut all = doc.object("options");
                    all.extend(options.clone());
                    all.retain(|_, value| !value.is_null());
                    doc.set("options", all);
                }
                (name, _) if name.starts_with('_') => {}
                (name, value) => doc.set(name, value.clone()),
            }
        }
    });
    if !known {
        return Err(missing("user", &id));
    }
    // As Keystone does: a changed password and a disabled user end what was given to the former.
    if given.contains_key("password") || given.get("enabled") == Some(&json!(false)) {
        for token in call.state.by(Kind::Token, "user_id", &id) {
            call.state.remove(Kind::Token, token.text("id"));
        }
    }
    one(call, Kind::User, "user")
}

/// DELETE /v3/users/{id}
pub(crate) fn delete_user(call: &mut Call<'_>) -> Answer {
    let id = call.parameter("id").to_owned();
    match forget_user(call.state, &id) {
        true => Ok(Reply::empty(204)),
        false => Err(missing("user", &id)),
    }
}

/// Removes a user with everything owned; returns false for an unknown one.
pub(super) fn forget_user(state: &mut State, id: &str) -> bool {
    if state.remove(Kind::User, id).is_none() {
        return false;
    }
    let of_user = [
        Kind::Assignment,
        Kind::Credential,
        Kind::Token,
        Kind::Membership,
    ];
    for kind in of_user {
        for doc in state.by(kind, "user_id", id) {
            state.remove(kind, doc.text("id"));
        }
    }
    true
}

/// GET /v3/roles
pub(crate) fn roles(call: &mut Call<'_>) -> Answer {
    admin_only(call, "list_roles")?;
    let found = call.state.all(Kind::Role).cloned().collect();
    Ok(listing(call, "roles", found))
}

/// GET /v3/roles/{id}
pub(crate) fn role(call: &mut Call<'_>) -> Answer {
    admin_only(call, "get_role")?;
    one(call, Kind::Role, "role")
}

/// POST /v3/roles
pub(crate) fn create_role(call: &mut Call<'_>) -> Answer {
    let given = call.wrapped("role")?;
    let name = required(&given, "role", "name")?;
    if !call.state.by(Kind::Role, "name", &name).is_empty() {
        return Err(Fault::conflict(format!(
            "Conflict occurred attempting to store role - Duplicate entry found with name {name}."
        )));
    }
    let doc = role_doc(
        &call.state.new_hex_id(),
        &name,
        given.get("description"),
        false,
    );
    call.state.put(Kind::Role, doc.clone());
    Ok(Reply::with(
        201,
        json!({"role": with_link(call, "roles", doc)}),
    ))
}

/// DELETE /v3/roles/{id}
pub(crate) fn delete_role(call: &mut Call<'_>) -> Answer {
    let id = call.parameter("id").to_owned();
    let role = call.state.get(Kind::Role, &id);
    let role = role.ok_or_else(|| missing("role", &id))?;
    if role.object("options").flag("immutable") {
        return Err(Fault::forbidden(format!(
            "Cannot delete immutable resource: role {id}: the immutable option must first be removed."
        )));
    }
    call.state.remove(Kind::Role, &id);
    assignments::forget(call.state, "role_id", &id);
    Ok(Reply::empty(204))
}

/// Returns the [`Doc`] of a project.
pub(crate) fn project_doc(id: &str, name: &str, domain: &str, description: &str) -> Doc {
    crate::cloud::document::doc(json!({"id": id, "name": name, "domain_id": domain,
        "description": description, "enabled": true, "is_domain": false, "parent_id": domain,
        "tags": [], "options": {}}))
}

/// Returns the [`Doc`] of a user of the domain Default.
pub(crate) fn user_doc(id: &str, name: &str, password: &str, default_project: &str) -> Doc {
    let mut doc = crate::cloud::document::doc(
        json!({"id": id, "name": name, "domain_id": "default",
        "enabled": true, "password_expires_at": null, "options": {}, "_password": hashed(password)}),
    );
    if !default_project.is_empty() {
        doc.set("default_project_id", default_project);
    }
    doc
}

/// Returns the [`Doc`] of a role.
pub(crate) fn role_doc(id: &str, name: &str, description: Option<&Value>, fixed: bool) -> Doc {
    let options = if fixed {
        json!({"immutable": true})
    } else {
        json!({})
    };
    crate::cloud::document::doc(json!({"id": id, "name": name, "domain_id": null,
        "description": description, "options": options}))
}

pub(super) fn listing(call: &Call<'_>, many: &'static str, found: Vec<Arc<Doc>>) -> Reply {
    let filters: Vec<&str> = call
        .query
        .names()
        .into_iter()
        .filter(|name| FILTERS.contains(name))
        .collect();
    let docs: Vec<Value> = found
        .iter()
        .filter(|doc| {
            filters.iter().all(|name| {
                let wanted: Vec<&str> = call.query.all(name).collect();
                query::matches(doc.get(*name), &wanted)
            })
        })
        .map(|doc| Value::Object(with_link(call, many, public_fields(doc))))
        .collect();
    let mut body = Doc::new();
    body.set(many, docs);
    body.set("links", links(call));
    Reply::ok(Value::Object(body))
}

pub(super) fn one(call: &Call<'_>, kind: Kind, name: &str) -> Answer {
    let id = call.parameter("id");
    let doc = call.state.get(kind, id).ok_or_else(|| missing(name, id))?;
    Ok(Reply::ok(
        json!({name: with_link(call, &format!("{name}s"), public_fields(&doc))}),
    ))
}

pub(super) fn with_link(call: &Call<'_>, many: &str, mut doc: Doc) -> Doc {
    doc.retain(|name, _| !name.starts_with('_'));
    let url = format!("{}/v3/{many}/{}", call.root(), doc.text("id"));
    doc.set("links", json!({"self": url}));
    doc
}

pub(super) fn links(call: &Call<'_>) -> Value {
    json!({"next": null, "self": format!("{}{}", call.root(), call.path), "previous": null})
}

pub(super) fn admin_only(call: &Call<'_>, action: &str) -> Result<(), Fault> {
    if call.who.admin() {
        Ok(())
    } else {
        Err(denied(action))
    }
}

pub(super) fn denied(action: &str) -> Fault {
    Fault::forbidden(format!(
        "You are not authorized to perform the requested action: identity:{action}."
    ))
}

/// Returns the domain of a new resource: the given one, else the default domain.
pub(super) fn domain_given(call: &Call<'_>, given: &Doc) -> Result<String, Fault> {
    let domain = match given.text("domain_id") {
        "" => "default",
        domain => domain,
    };
    let known = call.state.get(Kind::Domain, domain);
    known.ok_or_else(|| missing("domain", domain))?;
    Ok(domain.to_owned())
}

/// Returns the [`Doc`] of the resource with this name in this domain.
pub(super) fn same_name(state: &State, kind: Kind, name: &str, domain: &str) -> Option<Arc<Doc>> {
    let mut named = state.by(kind, "name", name).into_iter();
    named.find(|it| it.text("domain_id") == domain)
}

pub(super) fn missing(what: &str, id: &str) -> Fault {
    Fault::missing(format!("Could not find {what}: {id}."))
}

pub(super) fn required(given: &Doc, what: &str, field: &str) -> Result<String, Fault> {
    match given.text(field) {
        "" => Err(Fault::bad(format!(
            "'{field}' is a required property of {what}"
        ))),
        text => Ok(text.to_owned()),
    }
}
