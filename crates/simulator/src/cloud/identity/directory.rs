//! Domains, projects, users, roles, assignments, and the catalog as lists.

use std::sync::Arc;

use serde_json::{Value, json};

use super::tokens::hashed;
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields, public_fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::network;
use crate::cloud::query;

/// The fields by which lists can be filtered.
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

/// GET /v3/domains
pub(crate) fn domains(call: &mut Call<'_>) -> Answer {
    let found = call.state.all(Kind::Domain).cloned().collect();
    Ok(listing(call, "domains", found))
}

/// GET /v3/auth/domains: those in which the user has a role. Here roles are assigned in projects only.
pub(crate) fn domains_of_caller(call: &mut Call<'_>) -> Answer {
    Ok(listing(call, "domains", Vec::new()))
}

/// GET /v3/domains/{id}
pub(crate) fn domain(call: &mut Call<'_>) -> Answer {
    one(call, Kind::Domain, "domain")
}

/// GET /v3/projects
pub(crate) fn projects(call: &mut Call<'_>) -> Answer {
    admin_only(call, "list_projects")?;
    let found = call.state.all(Kind::Project).cloned().collect();
    Ok(listing(call, "projects", found))
}

/// GET /v3/auth/projects and /v3/users/{id}/projects
pub(crate) fn projects_of_user(call: &mut Call<'_>) -> Answer {
    let user = match call.parameter("user_id") {
        "" => call.who.user_id.clone(),
        other if other == call.who.user_id || call.who.admin() => other.to_owned(),
        _ => return Err(denied("list_user_projects")),
    };
    let mut found: Vec<Arc<Doc>> = call
        .state
        .by(Kind::Assignment, "user_id", &user)
        .iter()
        .filter_map(|doc| call.state.get(Kind::Project, doc.text("project_id")))
        .collect();
    found.sort_by(|a, b| a.text("id").cmp(b.text("id")));
    found.dedup_by(|a, b| a.text("id") == b.text("id"));
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
    if !call.state.by(Kind::Project, "name", &name).is_empty() {
        return Err(Fault::conflict(format!(
            "Conflict occurred attempting to store project - it is not permitted to have two \
             projects with the same name in the same domain : {name}."
        )));
    }
    let id = call.state.new_hex_id();
    let domain = match given.text("domain_id") {
        "" => "default",
        other => other,
    };
    let doc = project_doc(&id, &name, domain, given.text("description"));
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
    call.state
        .remove(Kind::Project, &id)
        .ok_or_else(|| missing("project", &id))?;
    for assignment in call.state.by(Kind::Assignment, "project_id", &id) {
        call.state.remove(Kind::Assignment, assignment.text("id"));
    }
    for credential in call.state.by(Kind::Credential, "project_id", &id) {
        call.state.remove(Kind::Credential, credential.text("id"));
    }
    Ok(Reply::empty(204))
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
    if !call.state.by(Kind::User, "name", &name).is_empty() {
        return Err(Fault::conflict(format!(
            "Conflict occurred attempting to store user - Duplicate entry found with name {name} \
             at domain ID default."
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
    call.state
        .remove(Kind::User, &id)
        .ok_or_else(|| missing("user", &id))?;
    for kind in [Kind::Assignment, Kind::Credential, Kind::Token] {
        for doc in call.state.by(kind, "user_id", &id) {
            call.state.remove(kind, doc.text("id"));
        }
    }
    Ok(Reply::empty(204))
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
    let all: Vec<Arc<Doc>> = call.state.all(Kind::Assignment).cloned().collect();
    for assignment in all.iter().filter(|it| it.text("role_id") == id) {
        call.state.remove(Kind::Assignment, assignment.text("id"));
    }
    Ok(Reply::empty(204))
}

/// GET /v3/role_assignments
pub(crate) fn assignments(call: &mut Call<'_>) -> Answer {
    let is_caller = call.query.get("user.id") == Some(&call.who.user_id);
    if !is_caller {
        admin_only(call, "list_role_assignments")?;
    }
    let wanted = |name: &str, value: &str| call.query.get(name).is_none_or(|text| text == value);
    let found: Vec<Value> = call
        .state
        .all(Kind::Assignment)
        .filter(|doc| {
            wanted("user.id", doc.text("user_id"))
                && wanted("scope.project.id", doc.text("project_id"))
                && wanted("role.id", doc.text("role_id"))
        })
        .map(|doc| assignment(call, doc))
        .collect();
    Ok(Reply::ok(
        json!({"role_assignments": found, "links": links(call)}),
    ))
}

fn assignment(call: &Call<'_>, doc: &Doc) -> Value {
    let [user, role, project] = ["user_id", "role_id", "project_id"].map(|name| doc.text(name));
    let href = format!(
        "{}/v3/projects/{project}/users/{user}/roles/{role}",
        call.root()
    );
    let mut out = json!({"user": {"id": user}, "role": {"id": role}, "scope": {"project": {"id": project}},
        "links": {"assignment": href}});
    if call.query.get("include_names").is_some() {
        let named = |kind, id: &str| {
            let found = call.state.get(kind, id).unwrap_or_default();
            json!({"id": id, "name": found.text("name"), "domain": {"id": "default", "name": "Default"}})
        };
        out["user"] = named(Kind::User, user);
        out["scope"]["project"] = named(Kind::Project, project);
        let role_name = call.state.get(Kind::Role, role).unwrap_or_default();
        out["role"]["name"] = json!(role_name.text("name"));
    }
    out
}

/// PUT /v3/projects/{}/users/{}/roles/{}
pub(crate) fn grant(call: &mut Call<'_>) -> Answer {
    let [project, user, role] =
        ["project_id", "user_id", "role_id"].map(|name| call.parameter(name).to_owned());
    for (kind, id) in [
        (Kind::Project, &project),
        (Kind::User, &user),
        (Kind::Role, &role),
    ] {
        call.state
            .get(kind, id)
            .ok_or_else(|| missing(kind.name(), id))?;
    }
    call.state
        .put(Kind::Assignment, assignment_doc(&user, &project, &role));
    Ok(Reply::empty(204))
}

/// DELETE /v3/projects/{}/users/{}/roles/{}
pub(crate) fn withdraw(call: &mut Call<'_>) -> Answer {
    let [project, user, role] =
        ["project_id", "user_id", "role_id"].map(|name| call.parameter(name).to_owned());
    let doc = assignment_doc(&user, &project, &role);
    call.state
        .remove(Kind::Assignment, doc.text("id"))
        .ok_or_else(|| {
            Fault::missing(format!("Could not find role assignment with role: {role}."))
        })?;
    Ok(Reply::empty(204))
}

/// A project.
pub(crate) fn project_doc(id: &str, name: &str, domain: &str, description: &str) -> Doc {
    crate::cloud::document::doc(json!({"id": id, "name": name, "domain_id": domain,
        "description": description, "enabled": true, "is_domain": false, "parent_id": domain,
        "tags": [], "options": {}}))
}

/// A user of the domain Default.
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

/// A role.
pub(crate) fn role_doc(id: &str, name: &str, description: Option<&Value>, fixed: bool) -> Doc {
    let options = if fixed {
        json!({"immutable": true})
    } else {
        json!({})
    };
    crate::cloud::document::doc(json!({"id": id, "name": name, "domain_id": null,
        "description": description, "options": options}))
}

/// A role of a user in a project.
pub(crate) fn assignment_doc(user: &str, project: &str, role: &str) -> Doc {
    crate::cloud::document::doc(
        json!({"id": format!("{user}/{project}/{role}"), "user_id": user,
        "project_id": project, "role_id": role}),
    )
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

fn admin_only(call: &Call<'_>, action: &str) -> Result<(), Fault> {
    if call.who.admin() {
        Ok(())
    } else {
        Err(denied(action))
    }
}

fn denied(action: &str) -> Fault {
    Fault::forbidden(format!(
        "You are not authorized to perform the requested action: identity:{action}."
    ))
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
