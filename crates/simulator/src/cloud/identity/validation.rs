//! Validity of a token: owner, scope and roles at this moment, description, revocation.

use std::sync::Arc;

use http::{HeaderMap, Method};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::assignments::{GrantTarget, roles_of};
use super::directory::denied;
use super::tokens::hashed;
use super::{catalog, rules};
use crate::cloud::call::{Answer, Call, Reply, Who};
use crate::cloud::clock::zulu_micros;
use crate::cloud::document::{Doc, Fields, public_fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::state::State;

/// Keystone's `[token] allow_expired_window` in milliseconds: time after expiry in which a token can still be validated
/// on request.
const EXPIRED_WINDOW_MS: i64 = 172_800_000;

/// Valid token, with the present roles of the owner in the scope.
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

/// Returns the owner of the request's token; `None` for a missing, unknown or expired token, for a deleted owner, or
/// for access rules that do not allow the request.
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

/// Returns the project of the request's token, or an empty text.
pub(crate) fn project_of(state: &State, headers: &HeaderMap) -> String {
    header(headers, "x-auth-token")
        .and_then(|token| state.get(Kind::Token, &hashed(token)))
        .map(|doc| doc.text("project_id").to_owned())
        .unwrap_or_default()
}

/// Removes tokens that nobody can validate any more, from time to time.
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

/// Returns the token with the text `token`, unless expired more than `window_ms` ago, or its owner or scope is gone or
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
        GrantTarget::System => true,
        GrantTarget::Domain(id) => is_enabled(Kind::Domain, id),
        GrantTarget::Project(id) => state.get(Kind::Project, id).is_some_and(|project| {
            project.flag("enabled") && is_enabled(Kind::Domain, project.text("domain_id"))
        }),
    };
    let roles = roles_now(state, &doc, place);
    (stands && !roles.is_empty()).then_some(Valid { doc, roles })
}

/// Returns the [`GrantTarget`] of a token's scope; `None` for an unscoped token.
fn place(doc: &Doc) -> Option<GrantTarget<'_>> {
    match (doc.text("project_id"), doc.text("domain_id")) {
        ("", "") => doc.flag("system").then_some(GrantTarget::System),
        ("", domain) => Some(GrantTarget::Domain(domain)),
        (project, _) => Some(GrantTarget::Project(project)),
    }
}

/// Returns the roles assigned now: as in Keystone, tokens contain no roles. A trust and an application credential
/// restrict the roles; the operator of the simulation has fixed ones.
fn roles_now(state: &State, doc: &Doc, place: GrantTarget<'_>) -> Vec<String> {
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

/// Returns the [`Valid`] token in question. For a token of somebody else, the caller needs `may_all`, and learns first
/// whether the token exists: 404 precedes 403, as in Keystone.
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
    // For a token used on behalf of the trustor, Keystone counts the trustee as the owner.
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

/// Returns the description of a token.
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

/// Returns the owner of a token; a federated user with groups from the provider.
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

/// Returns the text of a header, if present.
pub(super) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
