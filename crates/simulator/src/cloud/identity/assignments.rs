//! Roles of a user or a group in a project, in a domain or in the whole cloud.

use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};

use super::directory::{denied, links, listing, missing};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields, doc};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::{Access, Table};
use crate::cloud::state::State;

/// Field of a grant in the whole cloud, and its only value.
const SYSTEM: (&str, &str) = ("system_id", "all");

/// Roles, each with the role that it implies, as after `keystone-manage bootstrap`.
const IMPLIED: [(&str, &str); 3] = [
    ("admin", "member"),
    ("manager", "member"),
    ("member", "reader"),
];

/// Where a role is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrantTarget<'a> {
    /// Project by id.
    Project(&'a str),
    /// Domain by id.
    Domain(&'a str),
    /// Whole cloud.
    System,
}

impl<'a> GrantTarget<'a> {
    /// Returns the field of a grant and the value.
    const fn field(self) -> (&'static str, &'a str) {
        match self {
            Self::Project(id) => ("project_id", id),
            Self::Domain(id) => ("domain_id", id),
            Self::System => SYSTEM,
        }
    }
}

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table.on(
        Method::GET,
        "/v3/role_assignments",
        Access::Token,
        assignments,
    );
    for (many, one) in [
        (
            "/v3/projects/{project_id}/users/{user_id}/roles",
            "/v3/projects/{project_id}/users/{user_id}/roles/{role_id}",
        ),
        (
            "/v3/projects/{project_id}/groups/{group_id}/roles",
            "/v3/projects/{project_id}/groups/{group_id}/roles/{role_id}",
        ),
        (
            "/v3/domains/{domain_id}/users/{user_id}/roles",
            "/v3/domains/{domain_id}/users/{user_id}/roles/{role_id}",
        ),
        (
            "/v3/domains/{domain_id}/groups/{group_id}/roles",
            "/v3/domains/{domain_id}/groups/{group_id}/roles/{role_id}",
        ),
        (
            "/v3/system/users/{user_id}/roles",
            "/v3/system/users/{user_id}/roles/{role_id}",
        ),
        (
            "/v3/system/groups/{group_id}/roles",
            "/v3/system/groups/{group_id}/roles/{role_id}",
        ),
    ] {
        table
            .on(Method::GET, many, Access::Admin, granted)
            .on(Method::GET, one, Access::Admin, check)
            .on(Method::PUT, one, Access::Admin, grant)
            .on(Method::DELETE, one, Access::Admin, withdraw);
    }
}

/// Returns the [`Doc`] of a user's role in a project.
pub(crate) fn assignment_doc(user: &str, project: &str, role: &str) -> Doc {
    doc(
        json!({"id": format!("{user}/{project}/{role}"), "user_id": user,
        "project_id": project, "role_id": role}),
    )
}

/// Returns the ids of the groups of a user.
pub(crate) fn groups_of(state: &State, user: &str) -> Vec<String> {
    let memberships = state.by(Kind::Membership, "user_id", user);
    let groups = memberships.iter().map(|it| it.text("group_id").to_owned());
    groups.collect()
}

/// Returns the names of the user's roles in a place: own roles, roles of the user's groups and of `more` groups, and
/// implied roles.
pub(crate) fn roles_of(
    state: &State,
    user: &str,
    more: impl Iterator<Item = String>,
    place: GrantTarget<'_>,
) -> Vec<String> {
    let mut grants = state.by(Kind::Assignment, "user_id", user);
    for group in groups_of(state, user).into_iter().chain(more) {
        grants.extend(state.by(Kind::Assignment, "group_id", &group));
    }
    let (field, id) = place.field();
    let here = grants.iter().filter(|grant| grant.text(field) == id);
    let roles = here.filter_map(|grant| state.get(Kind::Role, grant.text("role_id")));
    let mut names: Vec<String> = Vec::new();
    let add = |names: &mut Vec<String>, name: &str| {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    };
    for role in roles {
        add(&mut names, role.text("name"));
    }
    let mut at = 0;
    while let Some(name) = names.get(at).cloned() {
        for (_, implied) in IMPLIED.iter().filter(|(from, _)| *from == name) {
            if !state.by(Kind::Role, "name", implied).is_empty() {
                add(&mut names, implied);
            }
        }
        at += 1;
    }
    names
}

/// Removes the grants with this `id` in `field`.
pub(super) fn forget(state: &mut State, field: &'static str, id: &str) {
    let all: Vec<Arc<Doc>> = state.all(Kind::Assignment).cloned().collect();
    for grant in all.iter().filter(|grant| grant.text(field) == id) {
        state.remove(Kind::Assignment, grant.text("id"));
    }
}

/// Returns the [`Doc`] of the grant in the path.
fn named(call: &Call<'_>) -> Doc {
    let [project, domain, user, group, role] =
        ["project_id", "domain_id", "user_id", "group_id", "role_id"]
            .map(|name| call.parameter(name));
    let place = match (project, domain) {
        ("", "") => GrantTarget::System,
        ("", domain) => GrantTarget::Domain(domain),
        (project, _) => GrantTarget::Project(project),
    };
    if let (GrantTarget::Project(project), "") = (place, group) {
        return assignment_doc(user, project, role);
    }
    let (holder, who) = match group {
        "" => ("user_id", user),
        group => ("group_id", group),
    };
    let (field, id) = place.field();
    doc(
        json!({"id": format!("{holder}={who}/{field}={id}/{role}"), holder: who, field: id, "role_id": role}),
    )
}

/// Returns a [`Fault`] for a path with unknown users, groups, roles or places.
fn known(call: &Call<'_>) -> Result<(), Fault> {
    for (kind, what, name) in [
        (Kind::Role, "role", "role_id"),
        (Kind::User, "user", "user_id"),
        (Kind::Group, "group", "group_id"),
        (Kind::Project, "project", "project_id"),
        (Kind::Domain, "domain", "domain_id"),
    ] {
        let id = call.parameter(name);
        if !id.is_empty() && call.state.get(kind, id).is_none() {
            return Err(missing(what, id));
        }
    }
    Ok(())
}

/// PUT of a grant
fn grant(call: &mut Call<'_>) -> Answer {
    known(call)?;
    let grant = named(call);
    call.state.put(Kind::Assignment, grant);
    Ok(Reply::empty(204))
}

/// GET and HEAD of a grant
fn check(call: &mut Call<'_>) -> Answer {
    known(call)?;
    let id = named(call).text("id").to_owned();
    let found = call.state.get(Kind::Assignment, &id);
    found.ok_or_else(|| no_grant(call))?;
    Ok(Reply::empty(204))
}

/// DELETE of a grant
fn withdraw(call: &mut Call<'_>) -> Answer {
    let id = named(call).text("id").to_owned();
    let removed = call.state.remove(Kind::Assignment, &id);
    removed.ok_or_else(|| no_grant(call))?;
    Ok(Reply::empty(204))
}

fn no_grant(call: &Call<'_>) -> Fault {
    let role = call.parameter("role_id");
    Fault::missing(format!("Could not find role assignment with role: {role}."))
}

/// GET of the granted roles
fn granted(call: &mut Call<'_>) -> Answer {
    known(call)?;
    let wanted = named(call);
    let same = |grant: &&Arc<Doc>| {
        ["user_id", "group_id", "project_id", "domain_id", SYSTEM.0]
            .iter()
            .all(|field| grant.text(field) == wanted.text(field))
    };
    let grants = call.state.all(Kind::Assignment).filter(same);
    let roles = grants.filter_map(|grant| call.state.get(Kind::Role, grant.text("role_id")));
    let roles = roles.collect();
    Ok(listing(call, "roles", roles))
}

/// GET /v3/role_assignments
fn assignments(call: &mut Call<'_>) -> Answer {
    if !call.who.reads_all() {
        return Err(denied("list_role_assignments"));
    }
    let wanted = |name: &str, value: &str| call.query.get(name).is_none_or(|text| text == value);
    let found: Vec<Value> = call
        .state
        .all(Kind::Assignment)
        .filter(|doc| {
            wanted("user.id", doc.text("user_id"))
                && wanted("group.id", doc.text("group_id"))
                && wanted("scope.project.id", doc.text("project_id"))
                && wanted("scope.domain.id", doc.text("domain_id"))
                && wanted("scope.system", doc.text(SYSTEM.0))
                && wanted("role.id", doc.text("role_id"))
        })
        .map(|doc| assignment(call, doc))
        .collect();
    Ok(Reply::ok(
        json!({"role_assignments": found, "links": links(call)}),
    ))
}

fn assignment(call: &Call<'_>, grant: &Doc) -> Value {
    let names = call.query.get("include_names").is_some();
    let described = |kind, id: &str| {
        if !names {
            return json!({"id": id});
        }
        let found = call.state.get(kind, id).unwrap_or_default();
        let mut out = json!({"id": id, "name": found.text("name")});
        if matches!(kind, Kind::User | Kind::Group | Kind::Project) {
            let domain = call.state.get(Kind::Domain, found.text("domain_id"));
            let domain = domain.unwrap_or_default();
            out["domain"] = json!({"id": domain.text("id"), "name": domain.text("name")});
        }
        out
    };
    let role = grant.text("role_id");
    let (holder, of_holder) = match grant.given("group_id") {
        true => ("group", (Kind::Group, grant.text("group_id"))),
        false => ("user", (Kind::User, grant.text("user_id"))),
    };
    let (scope, path) = if grant.given(SYSTEM.0) {
        (json!({"system": {"all": true}}), "system".to_owned())
    } else if grant.given("domain_id") {
        let id = grant.text("domain_id");
        let scope = json!({"domain": described(Kind::Domain, id)});
        (scope, format!("domains/{id}"))
    } else {
        let id = grant.text("project_id");
        let scope = json!({"project": described(Kind::Project, id)});
        (scope, format!("projects/{id}"))
    };
    let href = format!(
        "{}/v3/{path}/{holder}s/{}/roles/{role}",
        call.root(),
        of_holder.1
    );
    let mut out = json!({"role": described(Kind::Role, role), "scope": scope,
        "links": {"assignment": href}});
    out[holder] = described(of_holder.0, of_holder.1);
    out
}
