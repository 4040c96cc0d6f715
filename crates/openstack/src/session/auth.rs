//! Login to Keystone v3, once for all concurrent requests.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderValue, Method, StatusCode, header};
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::catalog::CatalogEntry;
use super::send::Answered;
use super::{Session, Token};
use crate::answer;
use crate::config::{ApplicationCredentialRef, CloudConfig, Credential, DomainRef, Scope, UserRef};
use crate::error::{Error, ErrorKind, Result};
use crate::service::Service;

/// Assumed lifetime of a token whose dates cannot be parsed: early renewal is harmless.
const UNKNOWN_LIFETIME: Duration = Duration::from_secs(600);
const ROUTE: &str = "/auth/tokens";

#[derive(Default, Deserialize)]
#[serde(default)]
struct Body {
    token: Described,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Described {
    expires_at: String,
    issued_at: String,
    project: Named,
    user: Named,
    roles: Vec<Named>,
    catalog: Vec<CatalogEntry>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    id: String,
    name: String,
}

impl Session {
    pub(super) async fn valid_token(&self) -> Result<Arc<Token>> {
        self.token_that(|token| token.is_fresh(Instant::now()))
            .await
    }

    /// Returns a token other than `rejected`, which a service answered with 401.
    pub(super) async fn replace_token(&self, rejected: &Arc<Token>) -> Result<Arc<Token>> {
        self.token_that(|token| !Arc::ptr_eq(token, rejected)).await
    }

    /// Returns the token if `is_good`, or else the token of a login shared by all concurrent callers.
    fn token_that<'a>(
        &'a self,
        is_good: impl Fn(&Arc<Token>) -> bool + Send + Sync + 'a,
    ) -> BoxFuture<'a, Result<Arc<Token>>> {
        let ready = move || self.shared.token.load_full().filter(&is_good);
        async move {
            let log_in = async || self.log_in().await.map_err(Error::of_login);
            self.shared.login.run(ready, log_in).await
        }
        .boxed()
    }

    async fn log_in(&self) -> Result<Arc<Token>> {
        let token = match &self.shared.config.credential {
            Credential::OpenId { login, scope } => self.log_in_at_provider(login, scope).await?,
            _ => self.token_for(login_body(&self.shared.config)?).await?,
        };
        let token = Arc::new(token);
        self.shared.token.store(Some(Arc::clone(&token)));
        Ok(token)
    }

    /// Requests a token for a login. If Keystone wants another factor, asks a person.
    pub(super) async fn token_for(&self, body: Value) -> Result<Token> {
        let answered = self.ask_for_token(&body, None).await?;
        let Some(receipt) = Receipt::from_response(&answered.response) else {
            return self.issued(&answered).map(|(token, _)| token);
        };
        let config = &self.shared.config;
        let wants = receipt.wants(&answered.response);
        let (Some(prompts), Some(user), true) = (
            &self.shared.prompts,
            user_of(config),
            wants.contains("totp"),
        ) else {
            let message = format!(
                "cloud `{}`: Keystone wants more than this login: {wants}; give auth.passcode (OS_PASSCODE), with \
                 auth_type v3multifactor",
                config.name
            );
            return Err(Error::new(ErrorKind::Unauthenticated, message).at(
                Service::Identity,
                &Method::POST,
                &answered.path,
            ));
        };
        let passcode = prompts.passcode(&name_of(user))?;
        let body = factors_body(user, None, Some(&passcode), scope_body(config));
        let answered = self.ask_for_token(&body, Some(&receipt)).await?;
        self.issued(&answered).map(|(token, _)| token)
    }

    async fn ask_for_token(&self, body: &Value, receipt: Option<&Receipt>) -> Result<Answered> {
        let base = identity_url(&self.shared.config);
        let path = url_path(&base, ROUTE);
        let failed = |message: String| {
            Error::new(ErrorKind::Invalid, message).at(Service::Identity, &Method::POST, &path)
        };
        let mut request = http::Request::post(format!("{base}{ROUTE}"))
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, &self.shared.user_agent);
        if let Some(receipt) = receipt {
            request = request.header(RECEIPT, receipt.header());
        }
        let request = request
            .body(Bytes::from(body.to_string()))
            .map_err(|error| failed(format!("auth.auth_url: {error}")))?;
        self.exchange(Service::Identity, ROUTE, &path, request)
            .await
    }

    /// Returns the token of an answer, and its text.
    pub(super) fn issued(&self, answered: &Answered) -> Result<(Token, SecretString)> {
        let config = &self.shared.config;
        let failed = |kind, message: String| {
            Error::new(kind, message).at(Service::Identity, &Method::POST, &answered.path)
        };
        if !answered.response.status().is_success() {
            return Err(refusal(config, answered));
        }
        let response = &answered.response;
        let secret = response
            .headers()
            .get("x-subject-token")
            .and_then(|value| value.to_str().ok())
            .map(SecretString::from)
            .ok_or_else(|| {
                failed(
                    ErrorKind::Protocol,
                    "the answer has no X-Subject-Token; is auth_url a Keystone v3?".into(),
                )
            })?;
        let unexpected = |why: String| {
            let message = format!("the answer of {} to the login {why}", answered.host);
            failed(ErrorKind::Protocol, message)
        };
        let body = answer::json(response.body()).map_err(unexpected)?;
        let body: Body =
            answer::typed(body).map_err(|why| unexpected(format!("is not as expected: {why}")))?;
        Ok((token(secret.clone(), body.token, answered.asked), secret))
    }
}

/// Header with the receipt of a half-done login.
const RECEIPT: &str = "openstack-auth-receipt";

/// Receipt of a half-done login. Cannot be printed.
struct Receipt(HeaderValue);

impl Receipt {
    /// Reads the receipt of an answer.
    fn from_response(response: &http::Response<Bytes>) -> Option<Self> {
        let is_half = response.status() == StatusCode::UNAUTHORIZED;
        let header = response.headers().get(RECEIPT).filter(|_| is_half)?;
        let mut header = header.clone();
        header.set_sensitive(true);
        Some(Self(header))
    }

    fn header(&self) -> HeaderValue {
        self.0.clone()
    }

    /// Returns the methods that Keystone wants, in words: ` and ` between methods of one rule, ` or ` between rules.
    fn wants(&self, response: &http::Response<Bytes>) -> String {
        let body = answer::json(response.body()).unwrap_or_default();
        let body: Wanted = answer::typed(body).unwrap_or_default();
        let rules = body.required_auth_methods;
        let rules: Vec<String> = rules.iter().map(|rule| rule.join(" and ")).collect();
        rules.join(" or ")
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Wanted {
    required_auth_methods: Vec<Vec<String>>,
}

/// Returns the user of a login by a password.
fn user_of(config: &CloudConfig) -> Option<&UserRef> {
    match &config.credential {
        Credential::Password { user, .. } | Credential::Factors { user, .. } => Some(user),
        _ => None,
    }
}

fn name_of(user: &UserRef) -> String {
    match user {
        UserRef::Id(text) | UserRef::Named(text, _) => text.clone(),
    }
}

fn token(secret: SecretString, described: Described, asked: Instant) -> Token {
    let filled = |text: String| Some(text).filter(|text| !text.is_empty());
    let moment = |text: &str| text.parse::<Timestamp>().ok();
    let lifetime = match (moment(&described.issued_at), moment(&described.expires_at)) {
        (Some(issued), Some(expires)) => {
            Duration::try_from(expires.duration_since(issued)).unwrap_or(Duration::ZERO)
        }
        _ => UNKNOWN_LIFETIME,
    };
    Token {
        secret,
        project_id: filled(described.project.id),
        project_name: filled(described.project.name),
        user_id: described.user.id,
        roles: described.roles.into_iter().map(|role| role.name).collect(),
        catalog: described.catalog,
        // A year at most, so that the sum stays in range.
        expires: asked + lifetime.min(Duration::from_secs(365 * 86_400)),
        lifetime,
    }
}

/// Returns the error for a rejected login, with the entry and the field to check.
fn refusal(config: &CloudConfig, answered: &Answered) -> Error {
    let error = answered.error(Service::Identity, &Method::POST);
    let what = match error.kind() {
        ErrorKind::Unauthenticated => {
            "Keystone does not accept the credential; check auth in clouds.yaml"
        }
        // Keystone's answer to an application credential that was deleted.
        ErrorKind::Absent => {
            "Keystone does not know the credential, which may have been deleted; check auth in \
             clouds.yaml"
        }
        ErrorKind::Protocol => "auth.auth_url is not a Keystone v3",
        _ => return error,
    };
    error.explain(&format!("cloud `{}`: {what}", config.name))
}

/// Returns `auth_url` with `/v3` appended unless present.
pub(super) fn identity_url(config: &CloudConfig) -> String {
    let url = config.auth_url.trim_end_matches('/');
    let url = url.strip_suffix("/auth/tokens").unwrap_or(url);
    let url = url.strip_suffix("/v2.0").unwrap_or(url);
    if url.ends_with("/v3") {
        url.to_owned()
    } else {
        format!("{url}/v3")
    }
}

/// Returns the path of a route on a base URL, for messages.
pub(super) fn url_path(base: &str, rest: &str) -> String {
    let host = base.split_once("://").map_or(base, |(_, rest)| rest);
    let path = host
        .find('/')
        .and_then(|start| host.get(start..))
        .unwrap_or_default();
    format!("{path}{rest}")
}

/// Returns the body of a login at Keystone.
pub(super) fn login_body(config: &CloudConfig) -> Result<Value> {
    Ok(match &config.credential {
        Credential::Password { user, password, .. } => {
            factors_body(user, Some(password), None, scope_body(config))
        }
        Credential::Factors {
            user,
            password,
            passcode,
            ..
        } => factors_body(
            user,
            password.as_ref(),
            passcode.as_ref(),
            scope_body(config),
        ),
        Credential::Token { token, .. } => token_body(token, scope_body(config)),
        Credential::ApplicationCredential { which, secret } => {
            let mut credential = match which {
                ApplicationCredentialRef::Id(id) => json!({"id": id}),
                ApplicationCredentialRef::Named(name, user) => {
                    json!({"name": name, "user": user_body(user)})
                }
            };
            credential["secret"] = Value::from(secret.expose_secret());
            json!({"auth": {"identity": {
                "methods": ["application_credential"],
                "application_credential": credential,
            }}})
        }
        Credential::OpenId { .. } | Credential::Nobody => {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!("cloud `{}`: nobody logs in to it", config.name),
            ));
        }
    })
}

/// Returns the body of a login by a token.
pub(super) fn token_body(token: &SecretString, scope: Option<Value>) -> Value {
    let identity = json!({"methods": ["token"], "token": {"id": token.expose_secret()}});
    scoped(identity, scope)
}

/// Returns the body of a login by a password, a one-time password or both.
fn factors_body(
    user: &UserRef,
    password: Option<&SecretString>,
    passcode: Option<&SecretString>,
    scope: Option<Value>,
) -> Value {
    let mut identity = json!({});
    let mut methods = Vec::new();
    for (method, field, secret) in [
        ("password", "password", password),
        ("totp", "passcode", passcode),
    ] {
        if let Some(secret) = secret {
            let mut user = user_body(user);
            user[field] = Value::from(secret.expose_secret());
            identity[method] = json!({"user": user});
            methods.push(method);
        }
    }
    identity["methods"] = json!(methods);
    scoped(identity, scope)
}

fn scoped(identity: Value, scope: Option<Value>) -> Value {
    let mut auth = json!({"identity": identity});
    if let Some(scope) = scope {
        auth["scope"] = scope;
    }
    json!({"auth": auth})
}

/// Returns the scope of a login; `None` for the default project of the user.
pub(super) fn scope_body(config: &CloudConfig) -> Option<Value> {
    Some(match config.credential.scope()? {
        Scope::ProjectId(id) => json!({"project": {"id": id}}),
        Scope::Project(name, domain) => {
            json!({"project": {"name": name, "domain": domain_body(domain)}})
        }
        Scope::Domain(domain) => json!({"domain": domain_body(domain)}),
        Scope::System => json!({"system": {"all": true}}),
        Scope::Trust(id) => json!({"OS-TRUST:trust": {"id": id}}),
        Scope::Default => return None,
    })
}

fn user_body(user: &UserRef) -> Value {
    match user {
        UserRef::Id(id) => json!({"id": id}),
        UserRef::Named(name, domain) => json!({"name": name, "domain": domain_body(domain)}),
    }
}

fn domain_body(domain: &DomainRef) -> Value {
    match domain {
        DomainRef::Id(id) => json!({"id": id}),
        DomainRef::Name(name) => json!({"name": name}),
    }
}
