//! Login to Keystone v3, once for all concurrent requests.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, header};
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

/// The assumed lifetime of a token whose dates cannot be parsed: early renewal is harmless.
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

    /// A token other than `rejected`, to which a service answered 401.
    pub(super) async fn replace_token(&self, rejected: &Arc<Token>) -> Result<Arc<Token>> {
        self.token_that(|token| !Arc::ptr_eq(token, rejected)).await
    }

    /// The token if `is_good`, or that of a login, which all who need one meanwhile share.
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
        let config = &self.shared.config;
        let base = identity_url(config);
        let path = url_path(&base, ROUTE);
        let failed = |kind, message: String| {
            Error::new(kind, message).at(Service::Identity, &Method::POST, &path)
        };
        let request = http::Request::post(format!("{base}{ROUTE}"))
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, &self.shared.user_agent)
            .body(Bytes::from(login_body(config).to_string()))
            .map_err(|error| failed(ErrorKind::Invalid, format!("auth.auth_url: {error}")))?;
        let asked = Instant::now();
        let answered = self
            .exchange(Service::Identity, ROUTE, &path, request)
            .await?;
        if !answered.response.status().is_success() {
            return Err(refusal(config, &answered));
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
        let token = Arc::new(token(secret, body.token, asked));
        self.shared.token.store(Some(Arc::clone(&token)));
        Ok(token)
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

/// The error for a rejected login, which names the entry and the field to check.
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

/// `auth_url` with `/v3` appended unless it is present.
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

/// The path of a route on a base URL, for messages.
pub(super) fn url_path(base: &str, rest: &str) -> String {
    let host = base.split_once("://").map_or(base, |(_, rest)| rest);
    let path = host
        .find('/')
        .and_then(|start| host.get(start..))
        .unwrap_or_default();
    format!("{path}{rest}")
}

pub(super) fn login_body(config: &CloudConfig) -> Value {
    match &config.credential {
        Credential::Password {
            user,
            password,
            scope,
        } => {
            let mut user = user_body(user);
            user["password"] = Value::from(password.expose_secret());
            let mut auth = json!({
                "identity": {"methods": ["password"], "password": {"user": user}},
            });
            match scope {
                Scope::ProjectId(id) => auth["scope"] = json!({"project": {"id": id}}),
                Scope::Project(name, domain) => {
                    auth["scope"] =
                        json!({"project": {"name": name, "domain": domain_body(domain)}});
                }
                Scope::Domain(domain) => auth["scope"] = json!({"domain": domain_body(domain)}),
                Scope::System => auth["scope"] = json!({"system": {"all": true}}),
                Scope::Trust(id) => auth["scope"] = json!({"OS-TRUST:trust": {"id": id}}),
                Scope::Default => {}
            }
            json!({"auth": auth})
        }
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
    }
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
