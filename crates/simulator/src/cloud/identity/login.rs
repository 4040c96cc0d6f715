//! Logins: the identity of a user, by each of the methods of Keystone.

use std::sync::Arc;

use serde_json::Value;

use super::tokens::hashed;
use super::validation::valid;
use super::{factors, rules};
use crate::cloud::call::Call;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::state::State;

/// Authenticated user, with the limits of the login on a token.
pub(super) struct Login {
    pub(super) user: Arc<Doc>,
    pub(super) methods: Vec<String>,
    /// Project to which an application credential is bound.
    pub(super) project: Option<String>,
    /// Roles to which an application credential is restricted.
    pub(super) roles: Option<Vec<String>>,
    pub(super) credential: Option<String>,
    pub(super) expires_ms: Option<i64>,
    /// Audit id of the first token, of a login by a token.
    pub(super) parent: String,
    /// Fields of a federated user's token: `groups`, `provider` and `protocol`.
    pub(super) federation: Doc,
}

impl Login {
    /// Creates a login without limits.
    pub(super) fn new(user: Arc<Doc>, method: &str) -> Self {
        Self {
            user,
            methods: vec![method.to_owned()],
            project: None,
            roles: None,
            credential: None,
            expires_ms: None,
            parent: String::new(),
            federation: Doc::new(),
        }
    }

    /// Returns the user's groups from an identity provider.
    pub(super) fn groups(&self) -> impl Iterator<Item = String> {
        self.federation.texts("groups").map(str::to_owned)
    }
}

/// Returns the [`Login`] by all methods of a request.
pub(super) fn login(call: &Call<'_>, identity: &Doc) -> Result<Login, Fault> {
    let mut whole: Option<Login> = None;
    for method in identity.texts("methods") {
        let Some(given) = identity.get(method).and_then(Value::as_object) else {
            return Err(required(method));
        };
        let login = by(call, method, given)?;
        whole = Some(match whole {
            None => login,
            Some(before) => joined(before, login)?,
        });
    }
    whole.ok_or_else(|| required("methods"))
}

fn by(call: &Call<'_>, method: &str, given: &Doc) -> Result<Login, Fault> {
    match method {
        "password" => password(call, given),
        "token" => token(call, given),
        "application_credential" => credential(call, given),
        "totp" => factors::totp(call, given),
        _ => Err(Fault::unauthenticated()),
    }
}

/// Joins the [`Login`]s by two methods, which must be of one user.
fn joined(mut before: Login, login: Login) -> Result<Login, Fault> {
    if before.user.text("id") != login.user.text("id") {
        return Err(Fault::unauthenticated());
    }
    for method in login.methods {
        if !before.methods.contains(&method) {
            before.methods.push(method);
        }
    }
    before.project = before.project.or(login.project);
    before.roles = before.roles.or(login.roles);
    before.credential = before.credential.or(login.credential);
    before.expires_ms = before.expires_ms.or(login.expires_ms);
    Ok(before)
}

fn password(call: &Call<'_>, given: &Doc) -> Result<Login, Fault> {
    let Some(user) = given.get("user").and_then(Value::as_object) else {
        return Err(required("user"));
    };
    let found = named_user(call.state, user).ok_or_else(Fault::unauthenticated)?;
    if found.text("_password") != hashed(user.text("password")) || !is_enabled(call.state, &found) {
        return Err(Fault::unauthenticated());
    }
    Ok(Login::new(found, "password"))
}

fn token(call: &Call<'_>, given: &Doc) -> Result<Login, Fault> {
    let valid = valid(call.state, given.text("id"), 0).ok_or_else(Fault::unauthenticated)?;
    let doc = valid.doc;
    if rules::has(call.state, &doc) {
        return Err(Fault::missing("Failed to validate token"));
    }
    if doc.given("trust_id") {
        return Err(Fault::forbidden(
            "You are not authorized to perform the requested action: Using trust-scoped token to create another \
             token. Create a new trust-scoped token instead.",
        ));
    }
    let user = call.state.get(Kind::User, doc.text("user_id"));
    let mut login = Login::new(user.ok_or_else(Fault::unauthenticated)?, "token");
    let before = doc.texts("methods").filter(|method| *method != "token");
    login.methods.extend(before.map(str::to_owned));
    login.expires_ms = Some(doc.number("expires_ms"));
    login.parent = match doc.text("parent_audit_id") {
        "" => doc.text("audit_id").to_owned(),
        first => first.to_owned(),
    };
    if !doc.text("credential_id").is_empty() {
        login.credential = Some(doc.text("credential_id").to_owned());
        login.project = Some(doc.text("project_id").to_owned());
        login.roles = Some(doc.texts("roles").map(str::to_owned).collect());
    }
    for field in ["groups", "provider", "protocol"] {
        if let Some(value) = doc.get(field) {
            login.federation.set(field, value.clone());
        }
    }
    Ok(login)
}

fn credential(call: &Call<'_>, given: &Doc) -> Result<Login, Fault> {
    let state = &*call.state;
    let found = if given.given("id") {
        let id = given.text("id");
        let found = state.get(Kind::Credential, id);
        // Unlike a wrong secret, an id that Keystone does not know, as after a deletion, is no 401.
        Some(found.ok_or_else(|| {
            Fault::missing(format!("Could not find Application Credential: {id}."))
        })?)
    } else {
        let user = given
            .get("user")
            .and_then(Value::as_object)
            .ok_or_else(|| required("user"))?;
        let user = named_user(state, user).ok_or_else(Fault::unauthenticated)?;
        let credentials = state.by(Kind::Credential, "user_id", user.text("id"));
        credentials
            .into_iter()
            .find(|doc| doc.text("name") == given.text("name"))
    };
    let found = found.ok_or_else(Fault::unauthenticated)?;
    let expired =
        found.given("_expires_ms") && found.number("_expires_ms") <= call.now().as_millisecond();
    if expired || found.text("_secret") != hashed(given.text("secret")) {
        return Err(Fault::unauthenticated());
    }
    let user = state
        .get(Kind::User, found.text("user_id"))
        .filter(|user| is_enabled(state, user))
        .ok_or_else(Fault::unauthenticated)?;
    let roles = found.list("roles").iter();
    let roles = roles.filter_map(|role| role.get("name")?.as_str().map(str::to_owned));
    Ok(Login {
        project: Some(found.text("project_id").to_owned()),
        roles: Some(roles.collect()),
        credential: Some(found.text("id").to_owned()),
        ..Login::new(user, "application_credential")
    })
}

/// True if both the user and the user's domain are enabled.
pub(super) fn is_enabled(state: &State, user: &Doc) -> bool {
    let domain = state.get(Kind::Domain, user.text("domain_id"));
    user.flag("enabled") && domain.is_some_and(|domain| domain.flag("enabled"))
}

/// Returns the [`Doc`] of a user by id, or by name and domain.
pub(super) fn named_user(state: &State, given: &Doc) -> Option<Arc<Doc>> {
    if given.given("id") {
        return state.get(Kind::User, given.text("id"));
    }
    let domain = named_domain(state, given.get("domain")?.as_object()?)?;
    let named = state.by(Kind::User, "name", given.text("name"));
    named
        .into_iter()
        .find(|user| user.text("domain_id") == domain.text("id"))
}

/// Returns the [`Doc`] of a domain by id or name.
pub(super) fn named_domain(state: &State, given: &Doc) -> Option<Arc<Doc>> {
    if given.given("id") {
        return state.get(Kind::Domain, given.text("id"));
    }
    state
        .by(Kind::Domain, "name", given.text("name"))
        .into_iter()
        .next()
}

/// Returns the [`Fault`] of a request without this field.
pub(super) fn required(name: &str) -> Fault {
    Fault::bad(format!("'{name}' is a required property"))
}
