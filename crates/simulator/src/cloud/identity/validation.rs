//! What a token is good for: its owner, its scope and its roles at this moment, its description, its revocation.

use std::sync::Arc;

use http::{HeaderMap, Method};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::assignments::{Place, roles_of};
use super::directory::denied;
use super::tokens::hashed;
use super::{catalog, rules};
use crate::cloud::call::{Answer, Call, Reply, Who};
use crate::cloud::clock::zulu_micros;
use crate::cloud::document::{Doc, Fields, public_fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::state::State;

/// Keystone's `[token] allow_expired_window`: how long an expired token can still be validated by who asks for that.
const EXPIRED_WINDOW_MS: i64 = 172_800_000;

/// A token that is good, with the roles that its owner has in its scope now.
pub(super) struct Valid {
    pub(super) doc: Arc<Doc>,
    pub(super) roles: Vec<String>,
}

/// GET and HEAD /v3/auth/tokens
pub(crate) fn show(call: &mut Call<'_>) -> Answer {
    let expired = call.query.get("allow_expired");
    let window = match expired.and_then(crate::cloud::query::truth) {
        Some(true) => EXPIRED_WINDOW_MS,
        _ => 0,
    };
    let may_all = call.who.reads_all() || call.who.has("service");
    let (token, valid) = subject(call, window, may_all, "validate_token")?;
    let body = describe(call, &valid, call.query.get("nocatalog").is_none());
    Ok(Reply::ok(body)
        .header("x-subject-token", token)
        .header("vary", "X-Auth-Token"))
}

/// DELETE /v3/auth/tokens
pub(crate) fn revoke(call: &mut Call<'_>) -> Answer {
    let (_, valid) = subject(call, 0, call.who.admin(), "revoke_token")?;
    call.state.remove(Kind::Token, valid.doc.text("id"));
    Ok(Reply::empty(204))
}

/// The owner of the request's token; `None` if the token is missing, unknown or expired, its owner is deleted, or its
/// access rules do not allow the request.
pub(crate) fn authenticate(call: &Call<'_>, method: &Method) -> Option<Who> {
    let token = header(call.headers, "x-auth-token")?;
    let Valid { doc, roles } = valid(call.state, token, 0)?;
    if !rules::allow(call, &doc, method) {
        return None;
    }
    Some(Who {
        user_id: doc.text("user_id").to_owned(),
        project_id: doc.text("project_id").to_owned(),
        roles,
        system: doc.flag("system"),
        groups: doc.texts("groups").map(str::to_owned).collect(),
        restricted: call
            .state
            .get(Kind::Credential, doc.text("credential_id"))
            .is_some_and(|credential| !credential.flag("unrestricted")),
    })
}

/// The project of the request's token, or an empty text.
pub(crate) fn project_of(state: &State, headers: &HeaderMap) -> String {
    header(headers, "x-auth-token")
        .and_then(|token| state.get(Kind::Token, &hashed(token)))
        .map(|doc| doc.text("project_id").to_owned())
        .unwrap_or_default()
}

/// Removes the tokens from time to time that nobody can validate any more.
pub(super) fn sweep(state: &mut State) {
    if !state.count(Kind::Token).is_multiple_of(256) {
        return;
    }
    let now = state.now().as_millisecond();
    let ended = state
        .all(Kind::Token)
        .filter(|token| token.number("expires_ms").saturating_add(EXPIRED_WINDOW_MS) <= now);
    let ended: Vec<String> = ended.map(|token| token.text("id").to_owned()).collect();
    for token in ended {
        state.remove(Kind::Token, &token);
    }
}

/// The token whose text is `token`, unless it ended more than `window_ms` ago, or what it is of or for is gone or
/// disabled.
pub(super) fn valid(state: &State, token: &str, window_ms: i64) -> Option<Valid> {
    let doc = state.get(Kind::Token, &hashed(token))?;
    let ends = doc.number("expires_ms").saturating_add(window_ms);
    let is_enabled = |kind, id: &str| state.get(kind, id).is_some_and(|it| it.flag("enabled"));
    let user = state.get(Kind::User, doc.text("user_id"))?;
    let is_good = ends > state.now().as_millisecond()
        && user.flag("enabled")
        && is_enabled(Kind::Domain, user.text("domain_id"))
        && ["credential_id", "trust_id"]
            .into_iter()
            .zip([Kind::Credential, Kind::Trust])
            .all(|(field, kind)| {
                doc.text(field).is_empty() || state.get(kind, doc.text(field)).is_some()
            });
    if !is_good {
        return None;
    }
    let Some(place) = place(&doc) else {
        let roles = Vec::new();
        return Some(Valid { doc, roles });
    };
    let stands = match place {
        Place::System => true,
        Place::Domain(id) => is_enabled(Kind::Domain, id),
        Place::Project(id) => state.get(Kind::Project, id).is_some_and(|project| {
            project.flag("enabled") && is_enabled(Kind::Domain, project.text("domain_id"))
        }),
    };
    let roles = roles_now(state, &doc, place);
    (stands && !roles.is_empty()).then_some(Valid { doc, roles })
}

/// The scope of a token; `None` if it is unscoped.
fn place(doc: &Doc) -> Option<Place<'_>> {
    match (doc.text("project_id"), doc.text("domain_id")) {
        ("", "") => doc.flag("system").then_some(Place::System),
        ("", domain) => Some(Place::Domain(domain)),
        (project, _) => Some(Place::Project(project)),
    }
}

/// As Keystone, whose tokens contain no roles: those that are assigned now. A trust and an application credential say
/// which of them; the operator of the simulation has its own.
fn roles_now(state: &State, doc: &Doc, place: Place<'_>) -> Vec<String> {
    if doc.given("trust_id") || doc.flag("operator") {
        return doc.texts("roles").map(str::to_owned).collect();
    }
    let groups = doc.texts("groups").map(str::to_owned);
    let mut roles = roles_of(state, doc.text("user_id"), groups, place);
    if !doc.text("credential_id").is_empty() {
        roles.retain(|role| {
            doc.texts("roles")
                .any(|of_credential| of_credential == role)
        });
    }
    roles
}

/// The token that the request is about. Who asks about another's needs to be `may_all`, and learns first whether there is
/// such a token: 404 precedes 403, as in Keystone.
fn subject(
    call: &Call<'_>,
    window_ms: i64,
    may_all: bool,
    action: &str,
) -> Result<(String, Valid), Fault> {
    let Some(token) = header(call.headers, "x-subject-token") else {
        return Err(match may_all {
            true => Fault::missing("No token in the request"),
            false => denied(action),
        });
    };
    let valid = valid(call.state, token, window_ms)
        .ok_or_else(|| Fault::missing("Could not find token: The token was not recognized."))?;
    if rules::has(call.state, &valid.doc) && !rules::understands(call.headers) {
        return Err(Fault::missing("Failed to validate token"));
    }
    // Keystone has the trustee for the owner of a token that its bearer uses as the trustor.
    let trust = call.state.get(Kind::Trust, valid.doc.text("trust_id"));
    let owner = match &trust {
        Some(trust) => trust.text("trustee_user_id"),
        None => valid.doc.text("user_id"),
    };
    if owner != call.who.user_id && !may_all {
        return Err(denied(action));
    }
    Ok((token.to_owned(), valid))
}

/// The description of a token.
pub(super) fn describe(call: &Call<'_>, valid: &Valid, with_catalog: bool) -> Value {
    let (state, doc) = (&*call.state, &*valid.doc);
    let named = |kind, id: &str| {
        let name = state
            .get(kind, id)
            .map_or_else(String::new, |doc| doc.text("name").to_owned());
        json!({"id": id, "name": name})
    };
    let domain_of = |doc: &Doc| named(Kind::Domain, doc.text("domain_id"));
    let time = |field| {
        Timestamp::from_millisecond(doc.number(field)).map_or_else(|_| String::new(), zulu_micros)
    };
    let mut audit_ids = vec![doc.text("audit_id")];
    audit_ids.extend(Some(doc.text("parent_audit_id")).filter(|id| !id.is_empty()));
    let mut token = json!({
        "methods": doc.list("methods"),
        "user": owner(state, doc),
        "audit_ids": audit_ids,
        "expires_at": time("expires_ms"),
        "issued_at": time("issued_ms"),
    });
    if doc.flag("system") {
        token["system"] = json!({"all": true});
    }
    if !doc.text("domain_id").is_empty() {
        token["domain"] = named(Kind::Domain, doc.text("domain_id"));
    }
    if let Some(project) = state.get(Kind::Project, doc.text("project_id")) {
        token["project"] = json!({"id": project.text("id"), "name": project.text("name"), "domain": domain_of(&project)});
        // Keystone leaves it out of a token of a trust.
        if !doc.given("trust_id") {
            token["is_domain"] = json!(false);
        }
    }
    if !valid.roles.is_empty() {
        let roles = valid.roles.iter();
        let roles = roles.flat_map(|name| state.by(Kind::Role, "name", name));
        token["roles"] = roles
            .map(|role| match doc.given("trust_id") {
                // Keystone copies them whole.
                true => Value::Object(public_fields(&role)),
                false => json!({"id": role.text("id"), "name": role.text("name")}),
            })
            .collect();
        if with_catalog {
            token["catalog"] = catalog::entries(call, doc.text("project_id"));
        }
    }
    if let Some(trust) = state.get(Kind::Trust, doc.text("trust_id")) {
        token["OS-TRUST:trust"] = json!({"id": trust.text("id"),
            "impersonation": trust.flag("impersonation"),
            "trustor_user": {"id": trust.text("trustor_user_id")},
            "trustee_user": {"id": trust.text("trustee_user_id")}});
    }
    if let Some(credential) = state.get(Kind::Credential, doc.text("credential_id")) {
        let mut out = json!({"id": credential.text("id"), "name": credential.text("name"),
            "restricted": !credential.flag("unrestricted")});
        if credential.given("access_rules") {
            out["access_rules"] = json!(credential.list("access_rules"));
        }
        token["application_credential"] = out;
    }
    json!({"token": token})
}

/// The owner of a token; one whom an identity provider knows has groups of its own.
fn owner(state: &State, token: &Doc) -> Value {
    let user = state.get(Kind::User, token.text("user_id"));
    let user = user.unwrap_or_default();
    let domain = state.get(Kind::Domain, user.text("domain_id"));
    let domain = domain.unwrap_or_default();
    let mut owner = json!({"id": user.text("id"), "name": user.text("name"),
        "domain": {"id": domain.text("id"), "name": domain.text("name")}});
    if token.given("provider") {
        let groups = token.texts("groups").map(|id| json!({"id": id}));
        owner["OS-FEDERATION"] = json!({"groups": groups.collect::<Vec<Value>>(),
            "identity_provider": {"id": token.text("provider")},
            "protocol": {"id": token.text("protocol")}});
    } else {
        owner["password_expires_at"] = Value::Null;
    }
    owner
}

/// The text of a header.
pub(super) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
