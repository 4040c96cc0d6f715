//! Trusts: a user delegates roles in a project to another user, until the trust is deleted (OS-TRUST).

use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};

use super::assignments::{GrantTarget, roles_of};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields, public_fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::{Access, Table};

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    let (many, one) = ("/v3/OS-TRUST/trusts", "/v3/OS-TRUST/trusts/{id}");
    table
        .on(Method::GET, many, Access::Token, list)
        .on(Method::POST, many, Access::Token, create)
        .on(Method::GET, one, Access::Token, |call| {
            let doc = find(call)?;
            Ok(Reply::ok(json!({"trust": view(call, &doc)})))
        })
        .on(Method::DELETE, one, Access::Token, |call| {
            let doc = find(call)?;
            if doc.text("trustor_user_id") != call.who.user_id && !call.who.admin() {
                return Err(denied("delete_trust"));
            }
            call.state.remove(Kind::Trust, doc.text("id"));
            Ok(Reply::empty(204))
        })
        .on(
            Method::GET,
            "/v3/OS-TRUST/trusts/{id}/roles",
            Access::Token,
            |call| {
                let doc = find(call)?;
                let links = json!({"next": null, "previous": null,
                    "self": format!("{}{}", call.root(), call.path)});
                Ok(Reply::ok(
                    json!({"roles": doc.list("roles"), "links": links}),
                ))
            },
        );
}

/// Effect of a token scoped to a trust.
pub(crate) struct Trusted {
    /// Trustor if the trust allows impersonation, else the trustee.
    pub(crate) user: Arc<Doc>,
    pub(crate) project: Arc<Doc>,
    pub(crate) roles: Vec<String>,
    pub(crate) trust: Arc<Doc>,
}

/// Checks that `user` may use the trust now. Keystone's other answers are 401 and 403.
pub(crate) fn scope(call: &Call<'_>, user: &Arc<Doc>, id: &str) -> Result<Trusted, Fault> {
    let state = &*call.state;
    let trust = state
        .get(Kind::Trust, id)
        .filter(|trust| alive(trust, call.now().as_millisecond()))
        .ok_or_else(Fault::unauthenticated)?;
    if trust.text("trustee_user_id") != user.text("id") {
        return Err(Fault::forbidden("User is not a trustee."));
    }
    let project = state
        .get(Kind::Project, trust.text("project_id"))
        .ok_or_else(Fault::unauthenticated)?;
    let trustor = state
        .get(Kind::User, trust.text("trustor_user_id"))
        .filter(|trustor| trustor.flag("enabled"))
        .ok_or_else(|| Fault::forbidden("Trustor is disabled."))?;
    let place = GrantTarget::Project(project.text("id"));
    let still = roles_of(state, trustor.text("id"), std::iter::empty(), place);
    let roles: Vec<String> = role_names(&trust).map(str::to_owned).collect();
    if roles.iter().any(|role| !still.contains(role)) {
        return Err(Fault::forbidden(
            "The trustor no longer has the roles of the trust.",
        ));
    }
    let user = if trust.flag("impersonation") {
        trustor
    } else {
        Arc::clone(user)
    };
    Ok(Trusted {
        user,
        project,
        roles,
        trust,
    })
}

/// Counts one use of a trust with a limited number of uses.
pub(crate) fn consume(call: &mut Call<'_>, trust: &Doc) {
    if trust.given("remaining_uses") {
        let left = trust.number("remaining_uses") - 1;
        call.state.edit(Kind::Trust, trust.text("id"), |doc| {
            doc.set("remaining_uses", left);
        });
    }
}

/// True if the trust can still be used.
pub(crate) fn alive(trust: &Doc, now_ms: i64) -> bool {
    let expired = trust.given("_expires_ms") && trust.number("_expires_ms") <= now_ms;
    let used_up = trust.given("remaining_uses") && trust.number("remaining_uses") < 1;
    !expired && !used_up
}

fn list(call: &mut Call<'_>) -> Answer {
    let filter = |name: &str| call.query.get(name).map(str::to_owned);
    let (trustor, trustee) = (filter("trustor_user_id"), filter("trustee_user_id"));
    let is_caller = |wanted: &Option<String>| wanted.as_ref() == Some(&call.who.user_id);
    if !call.who.admin() && !is_caller(&trustor) && !is_caller(&trustee) {
        return Err(denied("list_trusts"));
    }
    let is = |doc: &Doc, field: &str, wanted: &Option<String>| {
        wanted
            .as_ref()
            .is_none_or(|wanted| doc.text(field) == wanted)
    };
    let now = call.now().as_millisecond();
    let found: Vec<Value> = call
        .state
        .all(Kind::Trust)
        .filter(|doc| alive(doc, now))
        .filter(|doc| is(doc, "trustor_user_id", &trustor) && is(doc, "trustee_user_id", &trustee))
        .map(|doc| {
            // The roles are returned for a single trust only.
            let mut out = view(call, doc);
            out.remove("roles");
            out.remove("roles_links");
            Value::Object(out)
        })
        .collect();
    let links =
        json!({"next": null, "self": format!("{}{}", call.root(), call.path), "previous": null});
    Ok(Reply::ok(json!({"trusts": found, "links": links})))
}

fn create(call: &mut Call<'_>) -> Answer {
    let given = call.wrapped("trust")?;
    for name in ["impersonation", "trustee_user_id", "trustor_user_id"] {
        if !given.contains_key(name) {
            return Err(Fault::bad(format!("'{name}' is a required property")));
        }
    }
    let trustor = given.text("trustor_user_id");
    if trustor != call.who.user_id {
        return Err(denied("create_trust"));
    }
    let trustee = given.text("trustee_user_id");
    if call.state.get(Kind::User, trustee).is_none() {
        return Err(Fault::missing(format!("Could not find user: {trustee}.")));
    }
    let roles = roles(call, &given)?;
    let project = match given.text("project_id") {
        "" => Value::Null,
        id => Value::from(id),
    };
    let expires = given.get("expires_at").cloned().unwrap_or_default();
    let expires_ms = expires.as_str().map(expiry).transpose()?;
    if expires_ms.is_some_and(|at| at <= call.now().as_millisecond()) {
        return Err(Fault::bad(
            "The 'expires_at' must not be before now. The server could not comply with the request \
             since it is either malformed or otherwise incorrect. The client is assumed to be in error.",
        ));
    }
    let mut doc = Doc::new();
    doc.set("id", call.state.new_hex_id());
    doc.set("trustor_user_id", trustor);
    doc.set("trustee_user_id", trustee);
    doc.set("project_id", project);
    doc.set("impersonation", given.flag("impersonation"));
    doc.set("roles", roles);
    doc.set("expires_at", expires);
    doc.set(
        "remaining_uses",
        given.get("remaining_uses").cloned().unwrap_or_default(),
    );
    doc.set("deleted_at", Value::Null);
    doc.set("redelegation_count", 0);
    doc.set("redelegated_trust_id", Value::Null);
    if let Some(at) = expires_ms {
        doc.set("_expires_ms", at);
    }
    let body = view(call, &doc);
    call.state.put(Kind::Trust, doc);
    Ok(Reply::with(201, json!({"trust": body})))
}

/// Returns the roles given by id or name; the trustor must have each of them in the project.
fn roles(call: &Call<'_>, given: &Doc) -> Result<Value, Fault> {
    let place = GrantTarget::Project(given.text("project_id"));
    let groups = call.who.groups.iter().cloned();
    let trustor_roles = roles_of(call.state, &call.who.user_id, groups, place);
    let mut roles = Vec::new();
    for wanted in given.list("roles").iter().filter_map(Value::as_object) {
        let (id, name) = (wanted.text("id"), wanted.text("name"));
        let role = call
            .state
            .get(Kind::Role, id)
            .or_else(|| call.state.by(Kind::Role, "name", name).into_iter().next())
            .filter(|role| trustor_roles.iter().any(|name| name == role.text("name")))
            .ok_or_else(|| {
                let named = if id.is_empty() { name } else { id };
                Fault::missing(format!("Could not find role: {named}."))
            })?;
        roles.push(
            json!({"id": role.text("id"), "name": role.text("name"), "domain_id": null,
            "description": null, "options": {"immutable": true},
            "links": {"self": format!("{}/v3/roles/{}", call.root(), role.text("id"))}}),
        );
    }
    if roles.is_empty() {
        return Err(Fault::forbidden("At least one role should be specified"));
    }
    Ok(Value::Array(roles))
}

fn expiry(text: &str) -> Result<i64, Fault> {
    let with_zone = if text.ends_with('Z') {
        text.to_owned()
    } else {
        format!("{text}Z")
    };
    with_zone
        .parse()
        .map(jiff::Timestamp::as_millisecond)
        .map_err(|_| {
            Fault::bad(format!(
                "Invalid input for field 'expires_at': '{text}' is not a 'date-time'"
            ))
        })
}

fn role_names(trust: &Doc) -> impl Iterator<Item = &str> {
    let roles = trust.list("roles").iter();
    roles.filter_map(|role| role.get("name").and_then(Value::as_str))
}

/// Returns the [`Doc`] of the trust in the path, visible to its two users and to administrators.
fn find(call: &Call<'_>) -> Result<Arc<Doc>, Fault> {
    let id = call.parameter("id");
    let doc = call
        .state
        .get(Kind::Trust, id)
        .filter(|doc| alive(doc, call.now().as_millisecond()))
        .ok_or_else(|| Fault::missing(format!("Could not find trust: {id}.")))?;
    let party = |field| doc.text(field) == call.who.user_id;
    if party("trustor_user_id") || party("trustee_user_id") || call.who.admin() {
        return Ok(doc);
    }
    Err(denied("get_trust"))
}

fn view(call: &Call<'_>, doc: &Doc) -> Doc {
    let mut out = public_fields(doc);
    let url = format!("{}/v3/OS-TRUST/trusts/{}", call.root(), doc.text("id"));
    out.set(
        "roles_links",
        json!({"self": format!("{url}/roles"), "next": null, "previous": null}),
    );
    out.set("links", json!({"self": url}));
    out
}

fn denied(action: &str) -> Fault {
    Fault::forbidden(format!(
        "You are not authorized to perform the requested action: identity:{action}."
    ))
}
