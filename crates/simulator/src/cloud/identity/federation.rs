//! Federated logins (OS-FEDERATION): identity providers, protocols, mappings, and users known to a provider.

use http::Method;
use serde_json::{Value, json};

use super::directory::{listing, missing, one, same_name, with_link};
use super::login::{Login, is_enabled};
use super::mapping::{self, Mapped};
use super::tokens::{Scope, hashed, write};
use super::validation::header;
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields, doc, public_fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::{Access, Table};

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    let (token, admin) = (Access::Token, Access::Admin);
    const PROVIDERS: &str = "/v3/OS-FEDERATION/identity_providers";
    const PROVIDER: &str = "/v3/OS-FEDERATION/identity_providers/{id}";
    const MAPPINGS: &str = "/v3/OS-FEDERATION/mappings";
    const MAPPING: &str = "/v3/OS-FEDERATION/mappings/{id}";
    const PROTOCOL: &str = "/v3/OS-FEDERATION/identity_providers/{provider}/protocols/{protocol}";
    const AUTH: &str = "/v3/OS-FEDERATION/identity_providers/{provider}/protocols/{protocol}/auth";
    table
        .on(Method::GET, PROVIDERS, admin, |call| {
            let all = call.state.all(Kind::IdentityProvider).cloned().collect();
            Ok(listing(call, "identity_providers", all))
        })
        .on(Method::GET, PROVIDER, admin, |call| {
            one(call, Kind::IdentityProvider, "identity_provider")
        })
        .on(Method::PUT, PROVIDER, admin, create_provider)
        .on(Method::DELETE, PROVIDER, admin, |call| {
            delete(call, Kind::IdentityProvider, "identity_provider")
        })
        .on(Method::GET, MAPPINGS, admin, |call| {
            let all = call.state.all(Kind::Mapping).cloned().collect();
            Ok(listing(call, "mappings", all))
        })
        .on(Method::GET, MAPPING, admin, |call| {
            one(call, Kind::Mapping, "mapping")
        })
        .on(Method::PUT, MAPPING, admin, create_mapping)
        .on(Method::DELETE, MAPPING, admin, |call| {
            delete(call, Kind::Mapping, "mapping")
        })
        .on(Method::GET, PROTOCOL, admin, |call| {
            let found = protocol(call)?;
            Ok(Reply::ok(json!({"protocol": public_fields(&found)})))
        })
        .on(Method::PUT, PROTOCOL, admin, create_protocol)
        .on(Method::GET, AUTH, Access::Open, log_in)
        .on(Method::POST, AUTH, Access::Open, log_in)
        .on(
            Method::GET,
            "/v3/OS-FEDERATION/projects",
            token,
            super::directory::projects_of_user,
        );
}

/// PUT of an identity provider. Its users are in the given domain, or in a new one.
fn create_provider(call: &mut Call<'_>) -> Answer {
    let id = call.parameter("id").to_owned();
    let given = call.wrapped("identity_provider")?;
    if call.state.get(Kind::IdentityProvider, &id).is_some() {
        return Err(conflict("identity_provider", &id));
    }
    let domain = match given.text("domain_id") {
        "" => {
            let domain = call.state.new_hex_id();
            let created = json!({"id": domain, "name": domain, "enabled": true, "tags": [], "options": {},
                "description": "Auto generated federated domain"});
            call.state.put(Kind::Domain, doc(created));
            domain
        }
        domain => {
            let known = call.state.get(Kind::Domain, domain);
            known.ok_or_else(|| missing("domain", domain))?;
            domain.to_owned()
        }
    };
    let provider = doc(
        json!({"id": id, "domain_id": domain, "enabled": given.flag("enabled"),
        "description": given.get("description"), "remote_ids": given.list("remote_ids"),
        "authorization_ttl": null}),
    );
    call.state.put(Kind::IdentityProvider, provider.clone());
    let rendered = with_link(call, "OS-FEDERATION/identity_providers", provider);
    Ok(Reply::with(201, json!({"identity_provider": rendered})))
}

/// PUT of a mapping
fn create_mapping(call: &mut Call<'_>) -> Answer {
    let id = call.parameter("id").to_owned();
    let given = call.wrapped("mapping")?;
    if given.list("rules").is_empty() {
        return Err(Fault::bad("'rules' is a required property"));
    }
    if call.state.get(Kind::Mapping, &id).is_some() {
        return Err(conflict("mapping", &id));
    }
    let mapping = doc(json!({"id": id, "rules": given.list("rules"), "schema_version": "1.0"}));
    call.state.put(Kind::Mapping, mapping.clone());
    let rendered = with_link(call, "OS-FEDERATION/mappings", mapping);
    Ok(Reply::with(201, json!({"mapping": rendered})))
}

/// PUT of a protocol of a provider
fn create_protocol(call: &mut Call<'_>) -> Answer {
    let [provider, id] = ["provider", "protocol"].map(|name| call.parameter(name).to_owned());
    let given = call.wrapped("protocol")?;
    let known = call.state.get(Kind::IdentityProvider, &provider);
    known.ok_or_else(|| missing("identity_provider", &provider))?;
    let mapping = given.text("mapping_id");
    let known = call.state.get(Kind::Mapping, mapping);
    known.ok_or_else(|| Fault::bad(format!("Could not find mapping: {mapping}.")))?;
    let protocol =
        doc(json!({"id": id, "mapping_id": mapping, "_key": format!("{provider}/{id}")}));
    call.state.put(Kind::Protocol, protocol.clone());
    let rendered = public_fields(&protocol);
    Ok(Reply::with(201, json!({"protocol": rendered})))
}

fn delete(call: &mut Call<'_>, kind: Kind, name: &str) -> Answer {
    let id = call.parameter("id").to_owned();
    let removed = call.state.remove(kind, &id);
    removed.ok_or_else(|| missing(name, &id))?;
    Ok(Reply::empty(204))
}

fn conflict(what: &str, id: &str) -> Fault {
    Fault::conflict(format!(
        "Conflict occurred attempting to store {what} - Duplicate entry found with ID {id}."
    ))
}

fn protocol(call: &Call<'_>) -> Result<std::sync::Arc<Doc>, Fault> {
    let [provider, id] = ["provider", "protocol"].map(|name| call.parameter(name));
    let found = call.state.get(Kind::Protocol, &format!("{provider}/{id}"));
    found.ok_or_else(|| {
        Fault::missing(format!(
            "Could not find federated protocol {id} for Identity Provider: {provider}."
        ))
    })
}

/// GET and POST of the login by an access token; returns an unscoped token.
fn log_in(call: &mut Call<'_>) -> Answer {
    // Before Keystone, mod_auth_openidc asks for the access token.
    let bearer = header(call.headers, "authorization").and_then(|it| it.strip_prefix("Bearer "));
    let holder = bearer.and_then(|token| {
        let provider = call.settings.oidc.lock();
        provider.holder(token.trim(), call.now().as_second())
    });
    let Some((name, groups)) = holder else {
        let page = "<html><head><title>401 Unauthorized</title></head><body><h1>Unauthorized</h1></body></html>\n";
        let reply = Reply {
            status: 401,
            raw: Some(("text/html; charset=iso-8859-1", page.into())),
            ..Reply::default()
        };
        return Ok(reply.header("www-authenticate", "Bearer realm=\"simulated\""));
    };
    let provider_id = call.parameter("provider").to_owned();
    let provider = call.state.get(Kind::IdentityProvider, &provider_id);
    let provider = provider.ok_or_else(|| missing("identity_provider", &provider_id))?;
    if !provider.flag("enabled") {
        return Err(Fault::forbidden(format!(
            "Identity Provider {provider_id} is disabled"
        )));
    }
    let protocol = protocol(call)?;
    let mapping = call.state.get(Kind::Mapping, protocol.text("mapping_id"));
    let mapping = mapping.ok_or_else(Fault::unauthenticated)?;
    let mapped = mapping::apply(call.state, mapping.list("rules"), &name, &groups);
    let mapped = mapped.ok_or_else(Fault::unauthenticated)?;
    let user = shadow(call, &provider, &mapped);
    let user = call.state.get(Kind::User, &user);
    let user = user
        .filter(|user| is_enabled(call.state, user))
        .ok_or_else(Fault::unauthenticated)?;
    let mut login = Login::new(user, protocol.text("id"));
    login.federation = doc(json!({"groups": mapped.groups, "provider": provider_id,
        "protocol": protocol.text("id")}));
    Ok(write(call, &login, Scope::default()))
}

/// Returns the id of the user described by a provider. The first login creates the user.
fn shadow(call: &mut Call<'_>, provider: &Doc, mapped: &Mapped) -> String {
    let domain = provider.text("domain_id");
    if let Some(known) = same_name(call.state, Kind::User, &mapped.name, domain) {
        return known.text("id").to_owned();
    }
    let id = hashed(&format!("{}/{}", provider.text("id"), mapped.name));
    let user = json!({"id": id, "name": mapped.name, "domain_id": domain, "enabled": true,
        "password_expires_at": null, "options": {}, "_password": Value::Null});
    call.state.put(Kind::User, doc(user));
    id
}
