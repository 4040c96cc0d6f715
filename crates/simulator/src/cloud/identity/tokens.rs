//! Tokens: issue after a login, for a scope; the catalog of a token.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::assignments::{GrantTarget, roles_of};
use super::login::{Login, login, named_domain, required};
use super::validation::{Valid, describe, sweep};
use super::{catalog, factors, trusts};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::state::State;

/// Methods in this Keystone's `[auth] methods`.
const METHODS: [&str; 4] = ["password", "token", "application_credential", "totp"];

/// POST /v3/auth/tokens
pub(crate) fn issue(call: &mut Call<'_>) -> Answer {
    let asked = call
        .body
        .pointer("/auth/identity/methods")
        .and_then(Value::as_array);
    if asked.is_some_and(|asked| {
        asked
            .iter()
            .any(|method| !METHODS.iter().any(|known| method == known))
    }) {
        let message = "Attempted to authenticate with an unsupported method.";
        let error = json!({"code": 401, "title": "Unauthorized", "message": message, "identity": {"methods": METHODS}});
        let keystone = format!("Keystone uri=\"{}\"", call.root());
        return Ok(Reply::with(401, json!({"error": error})).header("www-authenticate", keystone));
    }
    let auth = match call.body.get("auth").and_then(Value::as_object) {
        Some(auth) => auth.clone(),
        None => return Err(required("auth")),
    };
    let Some(identity) = auth.get("identity").and_then(Value::as_object) else {
        return Err(required("identity"));
    };
    let mut login = login(call, identity)?;
    // A receipt requires an existing scope, whether or not the user has a role there.
    named_scope(call.state, &auth)?;
    factors::with_receipt(call, &mut login)?;
    if let Some(receipt) = factors::incomplete(call, &login, &METHODS) {
        return Ok(receipt);
    }
    let scope = scope(call, &auth, &login)?;
    if let Some(trust) = &scope.trust {
        trusts::consume(call, trust);
    }
    sweep(call.state);
    Ok(write(call, &login, scope))
}

/// Stores a token, and returns the [`Reply`] with it.
pub(super) fn write(call: &mut Call<'_>, login: &Login, scope: Scope) -> Reply {
    let token = format!(
        "gAAAAA{}",
        URL_SAFE_NO_PAD.encode(rand::random::<[u8; 48]>())
    );
    let now = call.now();
    let expires = login.expires_ms.unwrap_or_else(|| {
        let lifetime = i64::try_from(call.settings.token_lifetime.as_millis());
        now.as_millisecond()
            .saturating_add(lifetime.unwrap_or(i64::MAX))
    });
    let mut doc = Doc::new();
    doc.set("id", hashed(&token));
    let user = scope.user.as_ref().unwrap_or(&login.user);
    doc.set("user_id", user.text("id"));
    if let Some(trust) = &scope.trust {
        doc.set("trust_id", trust.text("id"));
    }
    let project = scope.project.as_ref();
    doc.set("project_id", project.map_or("", |it| it.text("id")));
    doc.set("domain_id", scope.domain.unwrap_or_default());
    doc.set("system", scope.system);
    doc.set("roles", scope.roles.clone());
    doc.set("methods", login.methods.clone());
    doc.set(
        "credential_id",
        login.credential.clone().unwrap_or_default(),
    );
    doc.set("issued_ms", now.as_millisecond());
    doc.set("expires_ms", expires);
    doc.set(
        "audit_id",
        URL_SAFE_NO_PAD.encode(rand::random::<[u8; 16]>()),
    );
    doc.set("parent_audit_id", login.parent.clone());
    // A federated user's token has the groups.
    doc.extend(login.federation.clone());
    let valid = Valid {
        doc: Arc::new(doc.clone()),
        roles: scope.roles,
    };
    let body = describe(call, &valid, call.query.get("nocatalog").is_none());
    call.state.put(Kind::Token, doc);
    Reply::with(201, body)
        .header("x-subject-token", token)
        .header("vary", "X-Auth-Token")
}

/// GET /v3/auth/catalog
pub(crate) fn show_catalog(call: &mut Call<'_>) -> Answer {
    let links = json!({"self": format!("{}/v3/auth/catalog", call.root())});
    Ok(Reply::ok(
        json!({"catalog": catalog::entries(call, &call.who.project_id), "links": links}),
    ))
}

/// Secrets are stored as hashes, in hexadecimal digits.
pub(crate) fn hashed(secret: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = String::with_capacity(64);
    for byte in Sha256::digest(secret.as_bytes()) {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    out
}

/// Scope of a token.
#[derive(Default)]
pub(super) struct Scope {
    project: Option<Arc<Doc>>,
    domain: Option<String>,
    system: bool,
    roles: Vec<String>,
    /// Trust of the token. The token then belongs to the trust's user.
    trust: Option<Arc<Doc>>,
    user: Option<Arc<Doc>>,
}

/// Returns a [`Fault`] for a scope in an unknown project or domain.
fn named_scope(state: &State, auth: &Doc) -> Result<(), Fault> {
    let part = |name: &str| auth.get("scope")?.get(name)?.as_object();
    let project = part("project").map(|given| named_project(state, given));
    let domain = part("domain").map(|given| named_domain(state, given));
    match (project, domain) {
        (Some(None), _) | (None, Some(None)) => Err(Fault::unauthenticated()),
        _ => Ok(()),
    }
}

fn scope(call: &Call<'_>, auth: &Doc, login: &Login) -> Result<Scope, Fault> {
    let state = &*call.state;
    let asked = auth.get("scope");
    // An application credential cannot be scoped to anything but its own project.
    if let Some(bound) = &login.project {
        return match asked {
            None => in_project(call, login, state.get(Kind::Project, bound)),
            Some(_) => Err(Fault::unauthenticated()),
        };
    }
    let Some(asked) = asked else {
        let id = login.user.text("default_project_id");
        let in_project = in_project(call, login, state.get(Kind::Project, id));
        // As in Keystone: "The token will be unscoped rather than scoped to the project."
        return Ok(in_project.unwrap_or_default());
    };
    let part = |name: &str| asked.get(name).and_then(Value::as_object);
    if let Some(trust) = part("OS-TRUST:trust") {
        let trusted = trusts::scope(call, &login.user, trust.text("id"))?;
        return Ok(Scope {
            project: Some(trusted.project),
            roles: trusted.roles,
            trust: Some(trusted.trust),
            user: Some(trusted.user),
            ..Scope::default()
        });
    }
    if let Some(project) = part("project") {
        return in_project(call, login, named_project(state, project));
    }
    if let Some(domain) = part("domain") {
        let domain = named_domain(state, domain).filter(|domain| domain.flag("enabled"));
        let domain = domain.ok_or_else(Fault::unauthenticated)?;
        let id = domain.text("id").to_owned();
        return Ok(Scope {
            roles: roles(state, login, GrantTarget::Domain(&id))?,
            domain: Some(id),
            ..Scope::default()
        });
    }
    if part("system").is_some_and(|system| system.flag("all")) {
        return Ok(Scope {
            roles: roles(state, login, GrantTarget::System)?,
            system: true,
            ..Scope::default()
        });
    }
    Ok(Scope::default())
}

/// Returns the roles for a token of a [`GrantTarget`]; at least one is required.
fn roles(state: &State, login: &Login, place: GrantTarget<'_>) -> Result<Vec<String>, Fault> {
    let mut roles = roles_of(state, login.user.text("id"), login.groups(), place);
    if let Some(only) = &login.roles {
        roles.retain(|role| only.contains(role));
    }
    match roles.is_empty() {
        true => Err(Fault::unauthenticated()),
        false => Ok(roles),
    }
}

/// Returns the [`Scope`] of a project in which the user has a role.
fn in_project(call: &Call<'_>, login: &Login, project: Option<Arc<Doc>>) -> Result<Scope, Fault> {
    let is_enabled = |project: &Arc<Doc>| {
        let domain = call.state.get(Kind::Domain, project.text("domain_id"));
        project.flag("enabled") && domain.is_some_and(|domain| domain.flag("enabled"))
    };
    let project = project
        .filter(is_enabled)
        .ok_or_else(Fault::unauthenticated)?;
    Ok(Scope {
        roles: roles(call.state, login, GrantTarget::Project(project.text("id")))?,
        project: Some(project),
        ..Scope::default()
    })
}

fn named_project(state: &State, given: &Doc) -> Option<Arc<Doc>> {
    if given.given("id") {
        return state.get(Kind::Project, given.text("id"));
    }
    let domain = named_domain(state, given.get("domain")?.as_object()?)?;
    let named = state.by(Kind::Project, "name", given.text("name"));
    named
        .into_iter()
        .find(|project| project.text("domain_id") == domain.text("id"))
}
