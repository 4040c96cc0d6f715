//! Logins at an OpenID Connect provider: a token of the provider, then an unscoped Keystone token, then the Keystone
//! token with the wanted scope.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderValue, Method, header};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use tokio::time::Instant;
use zeroize::Zeroizing;

use super::auth::{identity_url, scope_body, token_body, url_path};
use super::prompts::DeviceLogin;
use super::send::Answered;
use super::{Session, Token};
use crate::answer;
use crate::config::{Flow, OpenId, Scope};
use crate::error::{Error, ErrorKind, Result};
use crate::service::Service;

const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// Interval between polls in seconds if the provider names none, and the increment after the answer "too fast" (RFC
/// 8628).
const INTERVAL: u64 = 5;
const SLOWER: u64 = 5;
/// Longest wait for a person.
const LONGEST: Duration = Duration::from_secs(900);

/// Discovery document.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Discovery {
    token_endpoint: String,
    device_authorization_endpoint: String,
}

/// Answer of the endpoint of tokens.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Issued {
    access_token: String,
    id_token: String,
    error: String,
    error_description: String,
}

/// Beginning of a login on another device.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Begun {
    device_code: String,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: String,
    expires_in: u64,
    interval: u64,
}

/// Pairs of a form, and the client's secret in a header.
struct Form {
    text: Zeroizing<String>,
    authorization: Option<HeaderValue>,
}

impl Session {
    /// Logs in at the provider, then at Keystone with the provider's token.
    pub(super) async fn log_in_at_provider(&self, login: &OpenId, scope: &Scope) -> Result<Token> {
        let of_provider = match &login.flow {
            Flow::AccessToken(token) => token.clone(),
            _ => self.token_of_provider(login).await?,
        };
        let unscoped = self.federated(login, &of_provider).await?;
        let (token, text) = self.issued(&unscoped)?;
        if *scope == Scope::Default {
            return Ok(token);
        }
        let body = token_body(&text, scope_body(&self.shared.config));
        self.token_for(body).await
    }

    /// Exchanges a token of the provider for a Keystone token.
    async fn federated(&self, login: &OpenId, of_provider: &SecretString) -> Result<Answered> {
        const ROUTE: &str =
            "/OS-FEDERATION/identity_providers/{provider}/protocols/{protocol}/auth";
        let escaped = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let route = ROUTE
            .replace("{provider}", &escaped(&login.provider))
            .replace("{protocol}", &escaped(&login.protocol));
        let base = identity_url(&self.shared.config);
        let path = url_path(&base, &route);
        let bearer = Zeroizing::new(format!("Bearer {}", of_provider.expose_secret()));
        let invalid = |message: &str| {
            Error::new(ErrorKind::Invalid, message).at(Service::Identity, &Method::POST, &path)
        };
        let mut bearer = HeaderValue::from_str(&bearer)
            .map_err(|_| invalid("the token of the identity provider is not a header value"))?;
        bearer.set_sensitive(true);
        let request = http::Request::post(format!("{base}{route}"))
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, &self.shared.user_agent)
            .header(header::AUTHORIZATION, bearer)
            .body(Bytes::new())
            .map_err(|error| invalid(&format!("auth.auth_url: {error}")))?;
        self.exchange(Service::Identity, ROUTE, &path, request)
            .await
    }

    async fn token_of_provider(&self, login: &OpenId) -> Result<SecretString> {
        let discovery = self.discovery(login).await?;
        let endpoint = |given: &Option<String>, found: &str, key: &str| match given {
            Some(url) => Ok(url.clone()),
            None if !found.is_empty() => Ok(found.to_owned()),
            None => Err(self.about(&format!(
                "the discovery document names no URL of that kind: give auth.{key}"
            ))),
        };
        let url = endpoint(
            &login.token_endpoint,
            &discovery.token_endpoint,
            "access_token_endpoint",
        )?;
        if !matches!(login.flow, Flow::Device) {
            let issued = self.post_form(&url, &form(login, &grant(login))).await?;
            return self.taken(login, issued);
        }
        let device = endpoint(
            &login.device_endpoint,
            &discovery.device_authorization_endpoint,
            "device_authorization_endpoint",
        )?;
        self.device(login, &device, &url).await
    }

    async fn discovery(&self, login: &OpenId) -> Result<Discovery> {
        let Some(url) = &login.discovery_endpoint else {
            return Ok(Discovery::default());
        };
        let request = http::Request::get(url.as_str())
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, &self.shared.user_agent)
            .body(Bytes::new())
            .map_err(|error| self.about(&format!("auth.discovery_endpoint: {error}")))?;
        let answered = self.of_provider(url, request).await?;
        if !answered.response.status().is_success() {
            return Err(self.about(&format!(
                "{} answers {} to the request for its discovery document",
                answered.host,
                answered.response.status()
            )));
        }
        self.read(&answered)
    }

    /// Logs in on another device: shows the address, and polls until the person is done.
    async fn device(&self, login: &OpenId, device: &str, tokens: &str) -> Result<SecretString> {
        let Some(prompts) = &self.shared.prompts else {
            return Err(self.about("a person has to log in with a browser, and nobody is there"));
        };
        let answered = self.post_form(device, &form(login, &[])).await?;
        let begun: Begun = self.read(&answered)?;
        if !answered.response.status().is_success() || begun.device_code.is_empty() {
            return Err(self.refused(&answered));
        }
        let lifetime = match begun.expires_in {
            0 => LONGEST,
            seconds => Duration::from_secs(seconds).min(LONGEST),
        };
        prompts.device(&DeviceLogin {
            url: begun.verification_uri,
            url_with_code: Some(begun.verification_uri_complete).filter(|url| !url.is_empty()),
            code: begun.user_code,
            lifetime,
        })?;
        let ends = Instant::now() + lifetime;
        let mut wait = match begun.interval {
            0 => INTERVAL,
            seconds => seconds,
        };
        loop {
            tokio::time::sleep(Duration::from_secs(wait).min(lifetime)).await;
            let fields = [
                ("grant_type", DEVICE_GRANT),
                ("device_code", begun.device_code.as_str()),
            ];
            let answered = self.post_form(tokens, &form(login, &fields)).await?;
            let issued: Issued = self.read(&answered)?;
            match issued.error.as_str() {
                "authorization_pending" if Instant::now() < ends => {}
                "slow_down" if Instant::now() < ends => wait += SLOWER,
                "authorization_pending" | "slow_down" => {
                    return Err(self.about("nobody has logged in in time"));
                }
                _ => return self.taken(login, answered),
            }
        }
    }

    /// Returns the field of an answer that Keystone takes.
    fn taken(&self, login: &OpenId, answered: Answered) -> Result<SecretString> {
        let issued: Issued = self.read(&answered)?;
        if !answered.response.status().is_success() || !issued.error.is_empty() {
            return Err(self.refused(&answered));
        }
        let token = match login.token_field.name() {
            "id_token" => issued.id_token,
            _ => issued.access_token,
        };
        match token.is_empty() {
            true => Err(self.about(&format!(
                "the answer of {} has no {}",
                answered.host,
                login.token_field.name()
            ))),
            false => Ok(SecretString::from(token)),
        }
    }

    async fn post_form(&self, url: &str, form: &Form) -> Result<Answered> {
        let mut request = http::Request::post(url)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, &self.shared.user_agent);
        if let Some(authorization) = &form.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let request = request
            .body(Bytes::from(form.text.as_bytes().to_vec()))
            .map_err(|error| self.about(&format!("the URL of the identity provider: {error}")))?;
        self.of_provider(url, request).await
    }

    async fn of_provider(&self, url: &str, request: http::Request<Bytes>) -> Result<Answered> {
        let path = url_path(url, "");
        let exchanged = self.exchange(Service::Identity, "openid", &path, request);
        exchanged.await
    }

    fn read<T: serde::de::DeserializeOwned>(&self, answered: &Answered) -> Result<T> {
        let unexpected = |why: String| {
            let (host, status) = (&answered.host, answered.response.status());
            self.protocol(&format!("the answer of {host} ({status}) {why}"))
        };
        let body = answer::json(answered.response.body()).map_err(unexpected)?;
        answer::typed(body).map_err(|why| unexpected(format!("is not as expected: {why}")))
    }

    /// Returns the provider's error about a refused login.
    fn refused(&self, answered: &Answered) -> Error {
        let issued: Issued = match self.read(answered) {
            Ok(issued) => issued,
            Err(error) => return error,
        };
        let words = match (issued.error.as_str(), issued.error_description.as_str()) {
            ("", _) => answered.response.status().to_string(),
            (error, "") => error.to_owned(),
            (error, description) => format!("{error}, {description}"),
        };
        let message = format!(
            "cloud `{}`: the identity provider at {} refuses the login: {words}",
            self.shared.config.name, answered.host
        );
        Error::new(ErrorKind::Unauthenticated, message)
    }

    fn about(&self, what: &str) -> Error {
        let message = format!("cloud `{}`: {what}", self.shared.config.name);
        Error::new(ErrorKind::Invalid, message)
    }

    fn protocol(&self, what: &str) -> Error {
        let message = format!("cloud `{}`: {what}", self.shared.config.name);
        Error::new(ErrorKind::Protocol, message)
    }
}

/// Returns the fields of a flow without a person.
fn grant(login: &OpenId) -> Vec<(&'static str, &str)> {
    match &login.flow {
        Flow::Password { username, password } => vec![
            ("grant_type", "password"),
            ("username", username),
            ("password", password.expose_secret()),
        ],
        Flow::ClientCredentials => vec![("grant_type", "client_credentials")],
        Flow::Device | Flow::AccessToken(_) => Vec::new(),
    }
}

/// Returns a form with the scopes and the client; the client's secret goes into a header.
fn form(login: &OpenId, fields: &[(&str, &str)]) -> Form {
    let mut text = Zeroizing::new(String::new());
    let client = [
        ("scope", login.scopes.as_str()),
        ("client_id", login.client_id.as_str()),
    ];
    for (name, value) in fields.iter().chain(&client) {
        if !text.is_empty() {
            text.push('&');
        }
        let value = utf8_percent_encode(value, NON_ALPHANUMERIC);
        text.push_str(&format!("{name}={value}"));
    }
    let authorization = login.client_secret.as_ref().and_then(|secret| {
        let pair = Zeroizing::new(format!("{}:{}", login.client_id, secret.expose_secret()));
        let mut value =
            HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(&*pair))).ok()?;
        value.set_sensitive(true);
        Some(value)
    });
    Form {
        text,
        authorization,
    }
}
