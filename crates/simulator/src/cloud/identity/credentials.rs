//! Application credentials.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::tokens::hashed;
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields, public_fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;

/// GET of the list
pub(crate) fn list(call: &mut Call<'_>) -> Answer {
    let user = requesting_user(call)?;
    let wanted = call.query.get("name");
    let found: Vec<Value> = call
        .state
        .by(Kind::Credential, "user_id", &user)
        .iter()
        .filter(|doc| wanted.is_none_or(|name| doc.text("name") == name))
        .map(|doc| Value::Object(view(call, doc)))
        .collect();
    let links =
        json!({"next": null, "self": format!("{}{}", call.root(), call.path), "previous": null});
    Ok(Reply::ok(
        json!({"application_credentials": found, "links": links}),
    ))
}

/// GET of one
pub(crate) fn show(call: &mut Call<'_>) -> Answer {
    let doc = find(call)?;
    Ok(Reply::ok(
        json!({"application_credential": view(call, &doc)}),
    ))
}

/// POST: only this answer has the secret
pub(crate) fn create(call: &mut Call<'_>) -> Answer {
    let user = requesting_user(call)?;
    unrestricted(call)?;
    if user != call.who.user_id {
        return Err(Fault::forbidden(
            "You are not authorized to perform the requested action: Cannot create an application credential for \
             another user.",
        ));
    }
    let given = call.wrapped("application_credential")?;
    let name = given.text("name").to_owned();
    if name.is_empty() {
        return Err(Fault::bad("'name' is a required property"));
    }
    let existing = call.state.by(Kind::Credential, "user_id", &user);
    if existing.iter().any(|doc| doc.text("name") == name) {
        return Err(Fault::conflict(
            "Conflict occurred attempting to store application_credential - Duplicate entry found \
             with name "
                .to_owned()
                + &name
                + ".",
        ));
    }
    let roles = roles(call, &given)?;
    let secret = match given.text("secret") {
        "" => URL_SAFE_NO_PAD.encode(rand::random::<[u8; 64]>()),
        given => given.to_owned(),
    };
    let mut doc = Doc::new();
    doc.set("id", call.state.new_hex_id());
    doc.set("name", name);
    doc.set(
        "description",
        given.get("description").cloned().unwrap_or_default(),
    );
    doc.set("user_id", user);
    doc.set("project_id", call.who.project_id.clone());
    doc.set("roles", roles);
    doc.set(
        "unrestricted",
        given.get("unrestricted").cloned().unwrap_or_default(),
    );
    checked(given.list("access_rules"))?;
    if !given.list("access_rules").is_empty() {
        let rules: Vec<Value> = given
            .list("access_rules")
            .iter()
            .map(|rule| {
                json!({"id": call.state.new_hex_id(), "service": rule["service"], "path": rule["path"],
                    "method": rule["method"]})
            })
            .collect();
        doc.set("access_rules", rules);
    }
    doc.set("system", Value::Null);
    doc.set(
        "expires_at",
        given.get("expires_at").cloned().unwrap_or_default(),
    );
    if let Some(at) = given.get("expires_at").and_then(Value::as_str) {
        let text = if at.ends_with('Z') {
            at.to_owned()
        } else {
            format!("{at}Z")
        };
        let at: jiff::Timestamp = text
            .parse()
            .map_err(|_| Fault::bad("The 'expires_at' must not be before now or is malformed."))?;
        if at <= call.now() {
            return Err(Fault::bad(
                "The 'expires_at' must not be before now. The server could not comply with the request since it is \
                 either malformed or otherwise incorrect. The client is assumed to be in error.",
            ));
        }
        doc.set("_expires_ms", at.as_millisecond());
    }
    doc.set("_secret", hashed(&secret));
    let mut body = view(call, &doc);
    body.set("secret", secret);
    call.state.put(Kind::Credential, doc);
    Ok(Reply::with(201, json!({"application_credential": body})))
}

/// DELETE
pub(crate) fn delete(call: &mut Call<'_>) -> Answer {
    unrestricted(call)?;
    let doc = find(call)?;
    call.state.remove(Kind::Credential, doc.text("id"));
    Ok(Reply::empty(204))
}

/// Refuses a token of an application credential that is not unrestricted, also for deletions.
fn unrestricted(call: &Call<'_>) -> Result<(), Fault> {
    match call.who.restricted {
        true => Err(Fault::forbidden(
            "You are not authorized to perform the requested action: Using method 'application_credential' \
             is not allowed for managing additional application credentials.",
        )),
        false => Ok(()),
    }
}

/// Refuses access rules outside of Keystone's schema.
fn checked(rules: &[Value]) -> Result<(), Fault> {
    for (at, rule) in rules.iter().enumerate() {
        let text = |key: &str| rule[key].as_str().unwrap_or_default();
        let path = text("path");
        if !path.starts_with('/') || path.len() > 225 {
            let why = format!("Invalid input for field 'access_rules[{at}].path': '{path}'");
            return Err(Fault::bad(why));
        }
        let methods = ["POST", "GET", "HEAD", "PATCH", "PUT", "DELETE"];
        if !methods.contains(&text("method")) {
            let method = text("method");
            let why = format!("Invalid input for field 'access_rules[{at}].method': '{method}'");
            return Err(Fault::bad(why));
        }
    }
    Ok(())
}

fn roles(call: &Call<'_>, given: &Doc) -> Result<Value, Fault> {
    // As for Keystone, an empty list, which the openstack client sends, is no choice.
    let chosen = given.list("roles");
    let names: Vec<String> = if chosen.is_empty() {
        call.who.roles.clone()
    } else {
        chosen
            .iter()
            .map(|role| {
                let by_id = role.get("id").and_then(Value::as_str).unwrap_or_default();
                let by_name = role.get("name").and_then(Value::as_str).unwrap_or_default();
                let known = call.state.get(Kind::Role, by_id);
                known.map_or_else(|| by_name.to_owned(), |doc| doc.text("name").to_owned())
            })
            .collect()
    };
    let roles: Vec<Value> = names
        .iter()
        .filter(|name| call.who.has(name))
        .flat_map(|name| call.state.by(Kind::Role, "name", name))
        .map(|role| json!({"id": role.text("id"), "name": role.text("name"), "domain_id": null, "description": null,
            "options": {"immutable": true}}))
        .collect();
    if roles.len() < names.len() {
        return Err(Fault::bad(
            "Invalid application credential: Could not find role assignment for the requested roles.",
        ));
    }
    Ok(Value::Array(roles))
}

fn find(call: &Call<'_>) -> Result<std::sync::Arc<Doc>, Fault> {
    let user = requesting_user(call)?;
    let id = call.parameter("id");
    call.state
        .get(Kind::Credential, id)
        .filter(|doc| doc.text("user_id") == user)
        .ok_or_else(|| Fault::missing(format!("Could not find Application Credential: {id}.")))
}

fn requesting_user(call: &Call<'_>) -> Result<String, Fault> {
    let user = call.parameter("user_id");
    if user == call.who.user_id || call.who.admin() {
        return Ok(user.to_owned());
    }
    Err(Fault::forbidden(
        "You are not authorized to perform the requested action: identity:list_application_credentials.",
    ))
}

fn view(call: &Call<'_>, doc: &Doc) -> Doc {
    let mut out = public_fields(doc);
    let url = format!(
        "{}/v3/users/{}/application_credentials/{}",
        call.root(),
        doc.text("user_id"),
        doc.text("id")
    );
    out.set("links", json!({"self": url}));
    out
}
