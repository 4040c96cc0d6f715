//! Keystone, as it answers.

use deployer::{AccountPlan, AccountWrite, Identity, IdentitySeen, Password};
use http::{Method, StatusCode};
use serde_json::Value;

use super::method;
use crate::reach::{Answer, Port, Sent};

/// Keystone.
pub(super) struct Keystone<'a> {
    port: Port<'a>,
    identity: &'a Identity,
    token: Option<Password>,
}

impl<'a> Keystone<'a> {
    pub(super) fn of(port: Port<'a>, identity: &'a Identity) -> Self {
        Self {
            port,
            identity,
            token: None,
        }
    }

    /// Reads what is there, and plans.
    pub(super) async fn plan(&mut self) -> Result<AccountPlan, String> {
        let mut lists = [const { Value::Null }; 5];
        for (list, path) in lists.iter_mut().zip(Identity::lists()) {
            *list = self.list(&path).await?;
        }
        let mut seen = IdentitySeen::read(lists)?;
        if let Some(path) = self.identity.assignments(&seen) {
            let assignments = self.list(&path).await?;
            seen.assigned(assignments)?;
        }
        for user in self.identity.tried(&seen) {
            if !self.accepts(&user).await? {
                seen.rejected(&user);
            }
        }
        Ok(self.identity.plan(&seen))
    }

    pub(super) async fn write(&mut self, write: &AccountWrite) -> Result<(), String> {
        let (method, body) = (method(write)?, write.body.as_ref().map(Password::expose));
        let answer = self.ask(&method, &write.path, body, &write.doing).await?;
        let gone = method == Method::DELETE && answer.status == StatusCode::NOT_FOUND;
        match answer.status.is_success() || gone {
            true => Ok(()),
            false => Err(failed(&answer, &write.doing)),
        }
    }

    async fn list(&mut self, path: &str) -> Result<Value, String> {
        let doing = format!("reading {path}");
        let answer = self.ask(&Method::GET, path, None, &doing).await?;
        if !answer.status.is_success() {
            return Err(failed(&answer, &doing));
        }
        let read = serde_json::from_slice(&answer.body);
        read.map_err(|_| format!("Keystone: {path} has not answered with JSON"))
    }

    /// Whether the password of a service is right.
    async fn accepts(&mut self, user: &str) -> Result<bool, String> {
        let doing = format!("logging in as {user}");
        let Some(body) = self.identity.trial(user) else {
            return Ok(true);
        };
        let answer = self.log_in(&body, &doing).await?;
        match answer.status {
            StatusCode::UNAUTHORIZED => Ok(false),
            status if status.is_success() => Ok(true),
            _ => Err(failed(&answer, &doing)),
        }
    }

    async fn log_in(&mut self, body: &Password, doing: &str) -> Result<Answer, String> {
        let sent = Sent {
            method: &Method::POST,
            path: Identity::TOKENS,
            login: None,
            body: Some(body.expose()),
        };
        let answer = self.port.send(&sent).await;
        answer.map_err(|why| format!("Keystone: {doing}: {why}"))
    }

    /// The token of the controller.
    async fn token(&mut self) -> Result<Password, String> {
        if let Some(token) = &self.token {
            return Ok(token.clone());
        }
        let doing = "logging in as admin";
        let answer = self.log_in(&self.identity.login(), doing).await?;
        if answer.status == StatusCode::UNAUTHORIZED {
            let advice = Identity::advice();
            return Err(format!("{}. {advice}", failed(&answer, doing)));
        }
        if !answer.status.is_success() {
            return Err(failed(&answer, doing));
        }
        let token = answer.headers.get("x-subject-token");
        let token = token.and_then(|it| it.to_str().ok());
        let token = token.ok_or("Keystone: a login has no header X-Subject-Token")?;
        Ok(self.token.insert(Password::new(token)).clone())
    }

    async fn ask(
        &mut self,
        method: &Method,
        path: &str,
        body: Option<&str>,
        doing: &str,
    ) -> Result<Answer, String> {
        let token = self.token().await?;
        let sent = Sent {
            method,
            path,
            login: Some(("x-auth-token", token.expose())),
            body,
        };
        let answer = self.port.send(&sent).await;
        answer.map_err(|why| format!("Keystone: {doing}: {why}"))
    }
}

fn failed(answer: &Answer, doing: &str) -> String {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let words = body["error"]["message"].as_str().unwrap_or_default();
    let colon = if words.is_empty() { "" } else { ": " };
    let status = answer.status.as_u16();
    format!("Keystone: {doing}: answered with {status}{colon}{words}")
}
