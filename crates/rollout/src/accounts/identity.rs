//! Accounts in Keystone, by its API.

use deployer::{AccountPlan, AccountWrite, Identity, IdentitySeen, Password};
use http::{Method, StatusCode};
use serde_json::Value;

use super::method;
use crate::reach::{Answer, Port, Sent};

/// Header of tokens.
const TOKEN: &str = "x-auth-token";

/// Keystone, with a [`Port`] of its Pod and the token of the administrator.
pub(super) struct Keystone<'a> {
    port: Port<'a>,
    identity: &'a Identity,
    token: Option<Password>,
}

impl<'a> Keystone<'a> {
    pub(super) fn new(port: Port<'a>, identity: &'a Identity) -> Self {
        Self {
            port,
            identity,
            token: None,
        }
    }

    /// Reads the lists of [`Identity::lists`] and the assignments of roles, and plans.
    pub(super) async fn plan(&mut self) -> Result<AccountPlan, String> {
        let mut lists = self.read(&Identity::lists()).await?.into_iter();
        let lists = [const { Value::Null }; 5].map(|_| lists.next().unwrap_or_default());
        let mut seen = IdentitySeen::read(lists)?;
        let path = self.identity.assignments(&seen);
        let (users, path) = (self.identity.tried(&seen), path.as_slice());
        let (mut assignments, accepted) = self.read_and_try(path, &users).await?;
        if let Some(assignments) = assignments.pop() {
            seen.assigned(assignments)?;
        }
        for (user, _) in users.iter().zip(accepted).filter(|(_, is)| !is) {
            seen.rejected(user);
        }
        Ok(self.identity.plan(&seen))
    }

    pub(super) async fn write(&mut self, writes: &[AccountWrite]) -> Result<(), String> {
        for round in Identity::rounds(writes) {
            self.round(round).await?;
        }
        Ok(())
    }

    /// Sends independent writes at once.
    async fn round(&mut self, writes: &[AccountWrite]) -> Result<(), String> {
        let token = self.token().await?;
        let methods: Vec<Method> = writes.iter().map(method).collect::<Result<_, _>>()?;
        let sent = writes.iter().zip(&methods).map(|(write, method)| Sent {
            method,
            path: &write.path,
            login: Some((TOKEN, token.expose())),
            body: write.body.as_ref().map(Password::expose),
        });
        let answers = self.port.send_all(&sent.collect::<Vec<_>>()).await;
        for ((write, method), answer) in writes.iter().zip(methods).zip(answers) {
            let answer = answer.map_err(|why| unanswered(&write.doing, &why))?;
            let gone = method == Method::DELETE && answer.status == StatusCode::NOT_FOUND;
            if !answer.status.is_success() && !gone {
                return Err(failed(&answer, &write.doing));
            }
            if Identity::ends_token(write) {
                self.token = None;
            }
        }
        Ok(())
    }

    /// Lists at `paths`.
    async fn read(&mut self, paths: &[String]) -> Result<Vec<Value>, String> {
        Ok(self.read_and_try(paths, &[]).await?.0)
    }

    /// Lists at `paths`, and for each of `users` true if Keystone accepts the password.
    async fn read_and_try(
        &mut self,
        paths: &[String],
        users: &[String],
    ) -> Result<(Vec<Value>, Vec<bool>), String> {
        let token = self.token().await?;
        let lists = paths.iter().map(|path| Sent {
            method: &Method::GET,
            path,
            login: Some((TOKEN, token.expose())),
            body: None,
        });
        let bodies = users.iter().map(|user| self.identity.trial(user));
        let bodies: Vec<Option<Password>> = bodies.collect();
        let trials = bodies.iter().map(|body| log_in(body.as_ref()));
        let sent: Vec<Sent<'_>> = lists.chain(trials).collect();
        let mut answers = self.port.send_all(&sent).await.into_iter();
        let lists = paths.iter().zip(answers.by_ref());
        let lists = lists.map(|(path, answer)| list(path, answer));
        let lists = lists.collect::<Result<_, _>>()?;
        let accepted = users.iter().zip(answers);
        let accepted = accepted.map(|(user, answer)| accepted_as(user, answer));
        Ok((lists, accepted.collect::<Result<_, _>>()?))
    }

    /// Token of the controller, from a login as administrator; kept for later requests.
    pub(super) async fn token(&mut self) -> Result<Password, String> {
        if let Some(token) = &self.token {
            return Ok(token.clone());
        }
        let doing = "logging in as admin";
        let mut logins = self.identity.logins().into_iter();
        let answer = loop {
            let login = logins.next();
            let answer = self.port.send(&log_in(login.as_ref())).await;
            let answer = answer.map_err(|why| unanswered(doing, &why))?;
            // In a rotation Keystone has one password or the other.
            if answer.status != StatusCode::UNAUTHORIZED || logins.len() == 0 {
                break answer;
            }
        };
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
}

fn log_in(body: Option<&Password>) -> Sent<'_> {
    Sent {
        method: &Method::POST,
        path: Identity::TOKENS,
        login: None,
        body: body.map(Password::expose),
    }
}

/// List in an answer.
fn list(path: &str, answer: Result<Answer, String>) -> Result<Value, String> {
    let doing = format!("reading {path}");
    let answer = answer.map_err(|why| unanswered(&doing, &why))?;
    if !answer.status.is_success() {
        return Err(failed(&answer, &doing));
    }
    let read = serde_json::from_slice(&answer.body);
    read.map_err(|_| format!("Keystone: {path} has not answered with JSON"))
}

/// True if a login was accepted; an [`Answer`] with another status than 401 is an error.
fn accepted_as(user: &str, answer: Result<Answer, String>) -> Result<bool, String> {
    let doing = format!("logging in as {user}");
    let answer = answer.map_err(|why| unanswered(&doing, &why))?;
    match answer.status {
        StatusCode::UNAUTHORIZED => Ok(false),
        status if status.is_success() => Ok(true),
        _ => Err(failed(&answer, &doing)),
    }
}

fn unanswered(doing: &str, why: &str) -> String {
    format!("Keystone: {doing}: {why}")
}

fn failed(answer: &Answer, doing: &str) -> String {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let words = body["error"]["message"].as_str().unwrap_or_default();
    let colon = if words.is_empty() { "" } else { ": " };
    let status = answer.status.as_u16();
    format!("Keystone: {doing}: answered with {status}{colon}{words}")
}
