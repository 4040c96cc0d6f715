//! OpenID Connect provider trusted by Keystone for federated logins: discovery, tokens by password and for clients, and
//! the device flow (RFC 8628).
//!
//! The provider has no clients and accounts until the operator names them: `POST /_simulator/oidc`.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::tokens::hashed;
use super::validation::header;
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::fault::Fault;
use crate::cloud::route::{Access, Table};

/// Path of the provider below Keystone's.
pub(crate) const ROOT: &str = "/oidc/";
const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
const LIFETIME_S: i64 = 300;

/// Clients, accounts and issued tokens of the provider.
#[derive(Debug, Default)]
pub(crate) struct Provider {
    known: OidcAccounts,
    /// Account or client of each access token, with the expiry, by the hash of the token.
    tokens: BTreeMap<String, (String, i64)>,
    /// Logins of devices, by the hash of the device code.
    devices: BTreeMap<String, Device>,
}

/// Clients and accounts of the provider, as given by the operator.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct OidcAccounts {
    /// Secrets of clients by client id; empty for a public client.
    clients: BTreeMap<String, String>,
    /// Accounts by name.
    accounts: BTreeMap<String, Account>,
    /// Seconds between two polls of a device; 5 if 0.
    interval: i64,
}

/// Account.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Account {
    password: String,
    /// Groups in the claims of the account.
    pub(crate) groups: Vec<String>,
}

/// Decision of a user about a device.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Consent {
    user_code: String,
    /// Account that logs in on the device; `None` declines the login.
    account: Option<String>,
}

#[derive(Debug)]
struct Device {
    user_code: String,
    client: String,
    ends: i64,
    /// Logged-in account: `None` while undecided, empty after a declined login.
    account: Option<String>,
    polled: i64,
}

impl Provider {
    /// Replaces clients and accounts.
    pub(crate) fn set(&mut self, known: OidcAccounts) {
        self.known = known;
    }

    /// Decides on the login of a device; returns false for an unknown code.
    pub(crate) fn consent(&mut self, consent: &Consent) -> bool {
        let mut devices = self.devices.values_mut();
        let device = devices.find(|it| it.user_code == consent.user_code);
        let account = consent.account.clone().unwrap_or_default();
        device.is_some_and(|device| {
            device.account = Some(account);
            true
        })
    }

    /// Returns name and groups of the holder of an access token, at a time in seconds.
    pub(crate) fn holder(&self, token: &str, now: i64) -> Option<(String, Vec<String>)> {
        let (name, ends) = self.tokens.get(&hashed(token))?;
        let groups = self.known.accounts.get(name).map(|it| it.groups.clone());
        (*ends > now).then(|| (name.clone(), groups.unwrap_or_default()))
    }

    fn interval(&self) -> i64 {
        match self.known.interval {
            0 => 5,
            seconds => seconds,
        }
    }

    fn issue(&mut self, holder: &str, now: i64) -> Reply {
        let token = random();
        let ends = now.saturating_add(LIFETIME_S);
        self.tokens
            .insert(hashed(&token), (holder.to_owned(), ends));
        Reply::ok(
            json!({"access_token": token, "token_type": "Bearer", "expires_in": LIFETIME_S,
            "scope": "openid profile"}),
        )
    }
}

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    let open = Access::Open;
    table
        .on(
            Method::GET,
            "/oidc/.well-known/openid-configuration",
            open,
            discovery,
        )
        .on(Method::POST, "/oidc/token", open, token)
        .on(Method::POST, "/oidc/device", open, device);
}

/// GET of the discovery document
fn discovery(call: &mut Call<'_>) -> Answer {
    let issuer = format!("{}/oidc", call.root());
    Ok(Reply::ok(json!({
        "issuer": issuer,
        "token_endpoint": format!("{issuer}/token"),
        "device_authorization_endpoint": format!("{issuer}/device"),
        "grant_types_supported": ["password", "client_credentials", DEVICE_GRANT],
        "scopes_supported": ["openid", "profile"],
    })))
}

/// POST of a request for a token
fn token(call: &mut Call<'_>) -> Answer {
    let form = form(call)?;
    let now = call.now().as_second();
    let mut provider = call.settings.oidc.lock();
    let Some(client) = client(call, &form, &provider) else {
        return Ok(refused(401, "invalid_client"));
    };
    let field = |name: &str| form.get(name).map_or("", String::as_str);
    match field("grant_type") {
        "password" => {
            let name = field("username");
            let account = provider.known.accounts.get(name);
            let is_known = account.is_some_and(|it| it.password == field("password"));
            match is_known {
                true => Ok(provider.issue(name, now)),
                false => Ok(refused(400, "invalid_grant")),
            }
        }
        "client_credentials" => {
            let is_public = provider
                .known
                .clients
                .get(&client)
                .is_none_or(String::is_empty);
            match is_public {
                true => Ok(refused(400, "unauthorized_client")),
                false => Ok(provider.issue(&client, now)),
            }
        }
        DEVICE_GRANT => Ok(of_device(&mut provider, &client, field("device_code"), now)),
        _ => Ok(refused(400, "unsupported_grant_type")),
    }
}

/// Returns the [`Reply`] to a device that polls for the login of its user.
fn of_device(provider: &mut Provider, client: &str, code: &str, now: i64) -> Reply {
    let interval = provider.interval();
    let key = hashed(code);
    let device = provider.devices.get_mut(&key);
    let Some(device) = device.filter(|it| it.client == client) else {
        return refused(400, "invalid_grant");
    };
    if device.ends <= now {
        return refused(400, "expired_token");
    }
    match device.account.clone() {
        None if now - device.polled < interval => {
            device.polled = now;
            refused(400, "slow_down")
        }
        None => {
            device.polled = now;
            refused(400, "authorization_pending")
        }
        Some(account) => {
            provider.devices.remove(&key);
            match provider.known.accounts.contains_key(&account) {
                true => provider.issue(&account, now),
                false => refused(400, "access_denied"),
            }
        }
    }
}

/// POST of a new device login
fn device(call: &mut Call<'_>) -> Answer {
    let form = form(call)?;
    let now = call.now().as_second();
    let mut provider = call.settings.oidc.lock();
    let Some(client) = client(call, &form, &provider) else {
        return Ok(refused(401, "invalid_client"));
    };
    let (code, number) = (random(), rand::random::<u32>());
    let user_code = format!("{:04}-{:04}", number % 10_000, number / 10_000 % 10_000);
    let interval = provider.interval();
    let device = Device {
        user_code: user_code.clone(),
        client,
        ends: now.saturating_add(LIFETIME_S),
        account: None,
        polled: 0,
    };
    provider.devices.insert(hashed(&code), device);
    let at = format!("{}/oidc/verify", call.root());
    Ok(Reply::ok(json!({
        "device_code": code,
        "user_code": user_code,
        "verification_uri": at,
        "verification_uri_complete": format!("{at}?user_code={user_code}"),
        "expires_in": LIFETIME_S,
        "interval": interval,
    })))
}

/// Returns the client of a request, by HTTP Basic or, for a public client, by the id in the form.
fn client(call: &Call<'_>, form: &BTreeMap<String, String>, provider: &Provider) -> Option<String> {
    let basic = header(call.headers, "authorization").and_then(|it| it.strip_prefix("Basic "));
    let (id, secret) = match basic {
        Some(text) => {
            let text = STANDARD.decode(text.trim()).ok()?;
            let text = String::from_utf8(text).ok()?;
            let (id, secret) = text.split_once(':')?;
            (id.to_owned(), secret.to_owned())
        }
        None => {
            let field = |name| form.get(name).cloned().unwrap_or_default();
            (field("client_id"), field("client_secret"))
        }
    };
    let wanted = provider.known.clients.get(&id)?;
    (*wanted == secret).then_some(id)
}

fn form(call: &Call<'_>) -> Result<BTreeMap<String, String>, Fault> {
    let kind = header(call.headers, "content-type").unwrap_or_default();
    if !kind.starts_with("application/x-www-form-urlencoded") {
        return Err(Fault::bad("invalid_request: not a form"));
    }
    let pairs = form_urlencoded::parse(&call.raw_body);
    Ok(pairs.into_owned().collect())
}

fn refused(status: u16, error: &str) -> Reply {
    let body: Value = json!({"error": error});
    Reply::with(status, body)
}

fn random() -> String {
    URL_SAFE_NO_PAD.encode(rand::random::<[u8; 24]>())
}
