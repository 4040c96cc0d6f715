//! Requests about the tokens of others, never about the session's own token.

use std::fmt;

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;

use super::Session;
use super::auth::{identity_url, url_path};
use super::send::Answered;
use crate::answer;
use crate::error::{Error, ErrorKind, Result};
use crate::service::Service;

/// Token of somebody else. Cannot be printed, and no session ever uses it as its own.
#[derive(Clone)]
pub struct SubjectToken(SecretString);

impl SubjectToken {
    pub(crate) fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl From<String> for SubjectToken {
    fn from(token: String) -> Self {
        Self(token.into())
    }
}

impl From<SecretString> for SubjectToken {
    fn from(token: SecretString) -> Self {
        Self(token)
    }
}

impl fmt::Debug for SubjectToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SubjectToken")
    }
}

/// Credential of a request about a token.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asker<'a> {
    /// Session.
    Session,
    /// Owner of a token, authenticated by the token itself.
    Subject(&'a SubjectToken),
}

impl Session {
    /// Sends a GET to a path of Keystone, about a token if there is one; returns the object under `key`.
    pub(crate) async fn ask_keystone<T: DeserializeOwned>(
        &self,
        asker: Asker<'_>,
        route: &'static str,
        path: &str,
        about: Option<&SubjectToken>,
        key: &str,
    ) -> Result<T> {
        let answered = match asker {
            Asker::Subject(token) => {
                let text = header_of(token)?;
                self.get_of_keystone(text, route, path, about).await?
            }
            Asker::Session => {
                let token = self.valid_token().await?;
                let text = header_of_session(token.secret.expose_secret())?;
                let answered = self.get_of_keystone(text, route, path, about).await?;
                if answered.response.status() == StatusCode::UNAUTHORIZED {
                    let token = self.replace_token(&token).await?;
                    let text = header_of_session(token.secret.expose_secret())?;
                    self.get_of_keystone(text, route, path, about).await?
                } else {
                    answered
                }
            }
        };
        if !answered.response.status().is_success() {
            return Err(answered.error(Service::Identity, &Method::GET));
        }
        let unexpected = |why: String| {
            let message = format!("the answer of {} {why}", answered.host);
            Error::new(ErrorKind::Protocol, message).at(
                Service::Identity,
                &Method::GET,
                &answered.path,
            )
        };
        let subject = answered.response.headers().get("X-Subject-Token");
        let is_about = |token: &SubjectToken| {
            subject.is_none_or(|it| it.as_bytes() == token.expose().as_bytes())
        };
        if !about.is_none_or(is_about) {
            return Err(unexpected("is about another token".to_owned()));
        }
        let mut body = answer::json(answered.response.body()).map_err(unexpected)?;
        let inner = body.get_mut(key).map(serde_json::Value::take);
        let inner = inner.ok_or_else(|| unexpected(format!("has no `{key}`")))?;
        answer::typed(inner).map_err(|why| unexpected(format!("is not as expected: {why}")))
    }

    async fn get_of_keystone(
        &self,
        token: HeaderValue,
        route: &'static str,
        path: &str,
        about: Option<&SubjectToken>,
    ) -> Result<Answered> {
        let base = identity_url(&self.shared.config);
        let mut request = http::Request::get(format!("{base}{path}"))
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, &self.shared.user_agent)
            .header("X-Auth-Token", token);
        if let Some(subject) = about {
            request = request
                .header("X-Subject-Token", header_of(subject)?)
                // Whoever validates has to look at access rules: without this, Keystone says of a token with some that
                // there is none.
                .header("OpenStack-Identity-Access-Rules", "1.0");
        }
        let without_query = path.split('?').next().unwrap_or(path);
        let path = url_path(&base, without_query);
        let request = request
            .body(Bytes::new())
            .map_err(|error| Error::new(ErrorKind::Invalid, format!("auth.auth_url: {error}")))?;
        self.exchange(Service::Identity, route, &path, request)
            .await
    }
}

fn header_of(token: &SubjectToken) -> Result<HeaderValue> {
    sensitive(token.expose()).ok_or_else(|| {
        Error::new(
            ErrorKind::Unauthenticated,
            "the token has characters that no token has",
        )
    })
}

fn header_of_session(token: &str) -> Result<HeaderValue> {
    sensitive(token).ok_or_else(|| {
        Error::new(
            ErrorKind::Protocol,
            "the token of the login is not a header value",
        )
    })
}

fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}
