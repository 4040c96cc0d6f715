//! Tokens: password, token and application credential authentication, validation, revocation, the catalog.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{catalog, trusts};
use crate::cloud::call::{Answer, Call, Reply, Who};
use crate::cloud::clock::zulu_micros;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::state::State;

/// POST /v3/auth/tokens
pub(crate) fn issue(call: &mut Call<'_>) -> Answer {
    const METHODS: [&str; 3] = ["password", "token", "application_credential"];
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
    let login = login(call, identity)?;
    let scope = scope(call, &auth, &login)?;
    if let Some(trust) = &scope.trust {
        trusts::consume(call, trust);
    }
    sweep(call.state);

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
    doc.set(
        "project_id",
        scope
            .project
            .as_ref()
            .map_or("", |project| project.text("id")),
    );
    doc.set("domain_id", scope.domain.unwrap_or_default());
    doc.set("roles", scope.roles);
    doc.set("methods", login.methods);
    doc.set("credential_id", login.credential.unwrap_or_default());
    doc.set("issued_ms", now.as_millisecond());
    doc.set("expires_ms", expires);
    doc.set(
        "audit_id",
        URL_SAFE_NO_PAD.encode(rand::random::<[u8; 16]>()),
    );
    let body = describe(call, &doc, call.query.get("nocatalog").is_none());
    call.state.put(Kind::Token, doc);
    Ok(Reply::with(201, body)
        .header("x-subject-token", token)
        .header("vary", "X-Auth-Token"))
}

/// GET and HEAD /v3/auth/tokens
pub(crate) fn show(call: &mut Call<'_>) -> Answer {
    let (token, doc) = subject(call)?;
    let body = describe(call, &doc, call.query.get("nocatalog").is_none());
    Ok(Reply::ok(body)
        .header("x-subject-token", token)
        .header("vary", "X-Auth-Token"))
}

/// DELETE /v3/auth/tokens
pub(crate) fn revoke(call: &mut Call<'_>) -> Answer {
    let (_, doc) = subject(call)?;
    call.state.remove(Kind::Token, doc.text("id"));
    Ok(Reply::empty(204))
}

/// GET /v3/auth/catalog
pub(crate) fn show_catalog(call: &mut Call<'_>) -> Answer {
    let links = json!({"self": format!("{}/v3/auth/catalog", call.root())});
    Ok(Reply::ok(
        json!({"catalog": catalog::entries(call, &call.who.project_id), "links": links}),
    ))
}

/// The owner of the request's token; `None` if the token is missing, unknown or expired, or its owner is deleted.
pub(crate) fn authenticate(call: &Call<'_>) -> Option<Who> {
    let token = header(call.headers, "x-auth-token")?;
    let doc = valid(call.state, token)?;
    Some(Who {
        user_id: doc.text("user_id").to_owned(),
        project_id: doc.text("project_id").to_owned(),
        roles: doc.texts("roles").map(str::to_owned).collect(),
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

/// The names of a user's roles in a project.
pub(crate) fn roles_in(state: &State, user: &str, project: &str) -> Vec<String> {
    let assignments = state.by(Kind::Assignment, "user_id", user);
    let here = assignments
        .iter()
        .filter(|doc| doc.text("project_id") == project);
    here.filter_map(|doc| state.get(Kind::Role, doc.text("role_id")))
        .map(|role| role.text("name").to_owned())
        .collect()
}

struct Login {
    user: Arc<Doc>,
    methods: Vec<String>,
    /// The project an application credential or a token is bound to.
    project: Option<String>,
    /// The roles to which an application credential is restricted.
    roles: Option<Vec<String>>,
    credential: Option<String>,
    expires_ms: Option<i64>,
}

#[derive(Default)]
struct Scope {
    project: Option<Arc<Doc>>,
    domain: Option<String>,
    roles: Vec<String>,
    /// The trust of the token, which then belongs to the trust's user.
    trust: Option<Arc<Doc>>,
    user: Option<Arc<Doc>>,
}

fn login(call: &Call<'_>, identity: &Doc) -> Result<Login, Fault> {
    let methods: Vec<String> = identity.texts("methods").map(str::to_owned).collect();
    let Some(method) = methods.first().map(String::as_str) else {
        return Err(required("methods"));
    };
    let Some(given) = identity.get(method).and_then(Value::as_object) else {
        return Err(required(method));
    };
    match method {
        "password" => password(call, given),
        "token" => token(call, given),
        "application_credential" => credential(call, given),
        _ => Err(Fault::unauthenticated()),
    }
}

fn password(call: &Call<'_>, given: &Doc) -> Result<Login, Fault> {
    let Some(user) = given.get("user").and_then(Value::as_object) else {
        return Err(required("user"));
    };
    let found = named_user(call.state, user).ok_or_else(Fault::unauthenticated)?;
    if found.text("_password") != hashed(user.text("password")) || !found.flag("enabled") {
        return Err(Fault::unauthenticated());
    }
    let methods = vec!["password".to_owned()];
    Ok(Login {
        user: found,
        methods,
        project: None,
        roles: None,
        credential: None,
        expires_ms: None,
    })
}

fn token(call: &Call<'_>, given: &Doc) -> Result<Login, Fault> {
    let doc = valid(call.state, given.text("id")).ok_or_else(Fault::unauthenticated)?;
    let user = call
        .state
        .get(Kind::User, doc.text("user_id"))
        .ok_or_else(Fault::unauthenticated)?;
    let methods: Vec<String> = ["token"]
        .into_iter()
        .chain(doc.texts("methods").filter(|m| *m != "token"))
        .map(str::to_owned)
        .collect();
    Ok(Login {
        user,
        methods,
        project: None,
        roles: None,
        credential: None,
        expires_ms: Some(doc.number("expires_ms")),
    })
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
        .ok_or_else(Fault::unauthenticated)?;
    Ok(Login {
        user,
        methods: vec!["application_credential".to_owned()],
        project: Some(found.text("project_id").to_owned()),
        roles: Some(
            found
                .list("roles")
                .iter()
                .filter_map(|role| role.get("name")?.as_str().map(str::to_owned))
                .collect(),
        ),
        credential: Some(found.text("id").to_owned()),
        expires_ms: None,
    })
}

fn named_user(state: &State, given: &Doc) -> Option<Arc<Doc>> {
    if given.given("id") {
        return state.get(Kind::User, given.text("id"));
    }
    let domain = named_domain(state, given.get("domain")?.as_object()?)?;
    let named = state.by(Kind::User, "name", given.text("name"));
    named
        .into_iter()
        .find(|user| user.text("domain_id") == domain.text("id"))
}

fn named_domain(state: &State, given: &Doc) -> Option<Arc<Doc>> {
    if given.given("id") {
        return state.get(Kind::Domain, given.text("id"));
    }
    state
        .by(Kind::Domain, "name", given.text("name"))
        .into_iter()
        .next()
}

fn scope(call: &Call<'_>, auth: &Doc, login: &Login) -> Result<Scope, Fault> {
    let state = &*call.state;
    let user = login.user.text("id");
    let unscoped = Scope::default();
    if let Some(id) = auth
        .get("scope")
        .and_then(|scope| scope.get("OS-TRUST:trust")?.get("id")?.as_str())
    {
        // An application credential cannot be scoped to anything but its own project.
        if login.project.is_some() {
            return Err(Fault::unauthenticated());
        }
        let trusted = trusts::scope(call, &login.user, id)?;
        return Ok(Scope {
            project: Some(trusted.project),
            domain: None,
            roles: trusted.roles,
            trust: Some(trusted.trust),
            user: Some(trusted.user),
        });
    }
    let project = match (&login.project, auth.get("scope")) {
        (Some(bound), None) => state.get(Kind::Project, bound),
        // An application credential cannot be scoped to anything but its own project.
        (Some(_), Some(_)) => return Err(Fault::unauthenticated()),
        (None, Some(Value::Object(scope))) => match (scope.get("project"), scope.get("domain")) {
            (Some(Value::Object(project)), _) => named_project(state, project),
            (None, Some(Value::Object(domain))) => {
                let domain = named_domain(state, domain).ok_or_else(Fault::unauthenticated)?;
                let roles = roles_in(state, user, domain.text("id"));
                if roles.is_empty() {
                    return Err(Fault::unauthenticated());
                }
                let domain = Some(domain.text("id").to_owned());
                return Ok(Scope {
                    domain,
                    roles,
                    ..Scope::default()
                });
            }
            _ => return Ok(unscoped),
        },
        (None, Some(_)) => return Ok(unscoped),
        (None, None) => {
            let id = login.user.text("default_project_id");
            let in_project = in_project(call, login, state.get(Kind::Project, id));
            // As in Keystone: "The token will be unscoped rather than scoped to the project."
            return Ok(in_project.unwrap_or(unscoped));
        }
    };
    in_project(call, login, project)
}

/// The scope of a project in which the user has a role.
fn in_project(call: &Call<'_>, login: &Login, project: Option<Arc<Doc>>) -> Result<Scope, Fault> {
    let project = project
        .filter(|project| project.flag("enabled"))
        .ok_or_else(Fault::unauthenticated)?;
    let mut roles = roles_in(call.state, login.user.text("id"), project.text("id"));
    if let Some(only) = &login.roles {
        roles.retain(|role| only.contains(role));
    }
    if roles.is_empty() {
        return Err(Fault::unauthenticated());
    }
    Ok(Scope {
        project: Some(project),
        roles,
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

fn subject(call: &Call<'_>) -> Result<(String, Arc<Doc>), Fault> {
    let token = header(call.headers, "x-subject-token").unwrap_or_default();
    let doc = valid(call.state, token)
        .ok_or_else(|| Fault::missing("Could not find token: The token was not recognized."))?;
    if doc.text("user_id") != call.who.user_id && !call.who.admin() {
        return Err(Fault::forbidden(
            "You are not authorized to perform the requested action: identity:validate_token.",
        ));
    }
    Ok((token.to_owned(), doc))
}

fn valid(state: &State, token: &str) -> Option<Arc<Doc>> {
    let doc = state.get(Kind::Token, &hashed(token))?;
    let alive = doc.number("expires_ms") > state.now().as_millisecond();
    let user = state.get(Kind::User, doc.text("user_id"))?;
    let project = doc.text("project_id");
    let project_lives = project.is_empty() || state.get(Kind::Project, project).is_some();
    let credential = doc.text("credential_id");
    let credential_lives =
        credential.is_empty() || state.get(Kind::Credential, credential).is_some();
    let trust = doc.text("trust_id");
    let trust_lives = trust.is_empty() || state.get(Kind::Trust, trust).is_some();
    (alive && user.flag("enabled") && project_lives && credential_lives && trust_lives)
        .then_some(doc)
}

/// Removes expired tokens from time to time.
fn sweep(state: &mut State) {
    if !state.count(Kind::Token).is_multiple_of(256) {
        return;
    }
    let now = state.now().as_millisecond();
    let expired: Vec<String> = state
        .all(Kind::Token)
        .filter(|doc| doc.number("expires_ms") <= now)
        .map(|doc| doc.text("id").to_owned())
        .collect();
    for key in expired {
        state.remove(Kind::Token, &key);
    }
}

fn describe(call: &Call<'_>, doc: &Doc, with_catalog: bool) -> Value {
    let state = &*call.state;
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
    let user = state
        .get(Kind::User, doc.text("user_id"))
        .unwrap_or_default();
    let mut token = json!({
        "methods": doc.list("methods"),
        "user": {"id": user.text("id"), "name": user.text("name"), "domain": domain_of(&user),
            "password_expires_at": null},
        "audit_ids": [doc.text("audit_id")],
        "expires_at": time("expires_ms"),
        "issued_at": time("issued_ms"),
    });
    if !doc.text("domain_id").is_empty() {
        token["domain"] = named(Kind::Domain, doc.text("domain_id"));
    }
    if let Some(project) = state.get(Kind::Project, doc.text("project_id")) {
        token["project"] = json!({"id": project.text("id"), "name": project.text("name"), "domain": domain_of(&project)});
        token["is_domain"] = json!(false);
    }
    if !doc.list("roles").is_empty() {
        let roles = doc
            .texts("roles")
            .flat_map(|name| state.by(Kind::Role, "name", name));
        token["roles"] = roles
            .map(|role| json!({"id": role.text("id"), "name": role.text("name")}))
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
    if !doc.text("credential_id").is_empty() {
        let mut credential = named(Kind::Credential, doc.text("credential_id"));
        credential["restricted"] = json!(true);
        token["application_credential"] = credential;
    }
    json!({"token": token})
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn required(name: &str) -> Fault {
    Fault::bad(format!("'{name}' is a required property"))
}
