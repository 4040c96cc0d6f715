//! Groups of users.

use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};

use super::assignments;
use super::directory::{
    admin_only, denied, domain_given, listing, missing, one, required, same_name, with_link,
};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields, doc};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::{Access, Table};
use crate::cloud::state::State;

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    let (many, single) = ("/v3/groups", "/v3/groups/{id}");
    let membership = "/v3/groups/{group_id}/users/{user_id}";
    table
        .on(
            Method::GET,
            "/v3/users/{user_id}/groups",
            Access::Token,
            of_user,
        )
        .on(Method::GET, many, Access::Token, list)
        .on(Method::POST, many, Access::Admin, create)
        .on(Method::GET, single, Access::Token, |call| {
            admin_only(call, "get_group")?;
            one(call, Kind::Group, "group")
        })
        .on(Method::PATCH, single, Access::Admin, update)
        .on(Method::DELETE, single, Access::Admin, delete)
        .on(
            Method::GET,
            "/v3/groups/{group_id}/users",
            Access::Token,
            members,
        )
        .on(Method::GET, membership, Access::Token, check)
        .on(Method::PUT, membership, Access::Admin, add)
        .on(Method::DELETE, membership, Access::Admin, remove);
}

/// Removes the memberships with this `id` in `field`.
pub(super) fn forget_members(state: &mut State, field: &'static str, id: &str) {
    for membership in state.by(Kind::Membership, field, id) {
        state.remove(Kind::Membership, membership.text("id"));
    }
}

/// Removes a group with its memberships and grants, and with its members' tokens if the group had grants.
pub(super) fn forget(state: &mut State, id: &str) {
    if !state.by(Kind::Assignment, "group_id", id).is_empty() {
        for membership in state.by(Kind::Membership, "group_id", id) {
            revoke(state, membership.text("user_id"));
        }
    }
    state.remove(Kind::Group, id);
    forget_members(state, "group_id", id);
    assignments::forget(state, "group_id", id);
}

/// As Keystone does: whoever leaves a group logs in anew.
fn revoke(state: &mut State, user: &str) {
    for token in state.by(Kind::Token, "user_id", user) {
        state.remove(Kind::Token, token.text("id"));
    }
}

fn membership(user: &str, group: &str) -> Doc {
    doc(json!({"id": format!("{group}/{user}"), "user_id": user, "group_id": group}))
}

/// GET /v3/users/{id}/groups: own groups, and any user's for administrators. Only administrators learn that a user is
/// unknown.
fn of_user(call: &mut Call<'_>) -> Answer {
    let user = call.parameter("user_id").to_owned();
    if user != call.who.user_id {
        reads_all(call, "list_groups_for_user")?;
    }
    let known = call.state.get(Kind::User, &user);
    known.ok_or_else(|| missing("user", &user))?;
    let groups = assignments::groups_of(call.state, &user);
    let groups = groups
        .iter()
        .filter_map(|id| call.state.get(Kind::Group, id));
    // A date for a membership from an identity provider.
    let groups = groups.map(|group| {
        let mut group = (*group).clone();
        group.set("membership_expires_at", Value::Null);
        Arc::new(group)
    });
    let groups = groups.collect();
    Ok(listing(call, "groups", groups))
}

/// GET /v3/groups
fn list(call: &mut Call<'_>) -> Answer {
    reads_all(call, "list_groups")?;
    let all = call.state.all(Kind::Group).cloned().collect();
    Ok(listing(call, "groups", all))
}

/// POST /v3/groups
fn create(call: &mut Call<'_>) -> Answer {
    let given = call.wrapped("group")?;
    let name = required(&given, "group", "name")?;
    let domain = domain_given(call, &given)?;
    if same_name(call.state, Kind::Group, &name, &domain).is_some() {
        return Err(duplicate(&name, &domain));
    }
    let id = call.state.new_hex_id();
    let group = doc(
        json!({"id": id, "name": name, "domain_id": domain, "description": given.text("description")}),
    );
    call.state.put(Kind::Group, group.clone());
    let rendered = with_link(call, "groups", group);
    Ok(Reply::with(201, json!({"group": rendered})))
}

/// PATCH /v3/groups/{id}
fn update(call: &mut Call<'_>) -> Answer {
    let id = call.parameter("id").to_owned();
    let given = call.wrapped("group")?;
    let known = call.state.get(Kind::Group, &id);
    let known = known.ok_or_else(|| missing("group", &id))?;
    if given.contains_key("domain_id") && given.text("domain_id") != known.text("domain_id") {
        return Err(Fault::bad("Cannot change Domain ID"));
    }
    let (name, domain) = (given.text("name"), known.text("domain_id"));
    let other = same_name(call.state, Kind::Group, name, domain);
    if other.is_some_and(|other| other.text("id") != id) {
        return Err(duplicate(name, domain));
    }
    call.state.edit(Kind::Group, &id, |group| {
        for name in ["name", "description"] {
            if given.contains_key(name) {
                group.set(name, given.text(name));
            }
        }
    });
    one(call, Kind::Group, "group")
}

/// DELETE /v3/groups/{id}
fn delete(call: &mut Call<'_>) -> Answer {
    let id = call.parameter("id").to_owned();
    let known = call.state.get(Kind::Group, &id);
    known.ok_or_else(|| missing("group", &id))?;
    forget(call.state, &id);
    Ok(Reply::empty(204))
}

/// GET /v3/groups/{id}/users
fn members(call: &mut Call<'_>) -> Answer {
    reads_all(call, "list_users_in_group")?;
    let id = call.parameter("group_id").to_owned();
    let known = call.state.get(Kind::Group, &id);
    known.ok_or_else(|| missing("group", &id))?;
    let memberships = call.state.by(Kind::Membership, "group_id", &id);
    let users = memberships.iter();
    let users = users.filter_map(|it| call.state.get(Kind::User, it.text("user_id")));
    let users = users.collect();
    Ok(listing(call, "users", users))
}

/// GET and HEAD of a membership
fn check(call: &mut Call<'_>) -> Answer {
    let (user, group) = member(call);
    reads_all(call, "check_user_in_group")?;
    both(call, &user, &group)?;
    let found = call
        .state
        .get(Kind::Membership, membership(&user, &group).text("id"));
    found.ok_or_else(|| not_in(&user, &group))?;
    Ok(Reply::empty(204))
}

/// PUT of a membership
fn add(call: &mut Call<'_>) -> Answer {
    let (user, group) = member(call);
    both(call, &user, &group)?;
    call.state.put(Kind::Membership, membership(&user, &group));
    Ok(Reply::empty(204))
}

/// DELETE of a membership
fn remove(call: &mut Call<'_>) -> Answer {
    let (user, group) = member(call);
    both(call, &user, &group)?;
    let id = membership(&user, &group);
    let removed = call.state.remove(Kind::Membership, id.text("id"));
    removed.ok_or_else(|| not_in(&user, &group))?;
    revoke(call.state, &user);
    Ok(Reply::empty(204))
}

fn member(call: &Call<'_>) -> (String, String) {
    let [user, group] = ["user_id", "group_id"].map(|name| call.parameter(name).to_owned());
    (user, group)
}

fn both(call: &Call<'_>, user: &str, group: &str) -> Result<(Arc<Doc>, Arc<Doc>), Fault> {
    let user = (call.state.get(Kind::User, user)).ok_or_else(|| missing("user", user))?;
    let group = (call.state.get(Kind::Group, group)).ok_or_else(|| missing("group", group))?;
    Ok((user, group))
}

fn not_in(user: &str, group: &str) -> Fault {
    Fault::missing(format!("User '{user}' not found in group '{group}'"))
}

fn duplicate(name: &str, domain: &str) -> Fault {
    Fault::conflict(format!(
        "Conflict occurred attempting to store group - Duplicate entry found with name {name} at domain ID {domain}."
    ))
}

/// Returns a [`Fault`] for everybody but administrators and readers of the whole cloud.
fn reads_all(call: &Call<'_>, action: &str) -> Result<(), Fault> {
    match call.who.reads_all() {
        true => Ok(()),
        false => Err(denied(action)),
    }
}
