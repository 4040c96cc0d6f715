//! Requests to Nova and Neutron through forwarded ports of Pods ([`Port`]).

use deployer::Password;
use deployer::drain::{self, Asked, Fleet, Memory, Place, Store, Turn, Write};
use http::{Method, StatusCode};
use serde_json::Value;

use crate::accounts::Look;
use crate::reach::{Answer, Port, Sent};

/// Program and port of Nova, and the first microversion with reasons in actions.
const NOVA: (&str, u16, &str) = ("nova-api", 8774, "compute 2.84");
/// Program and port of Neutron.
const NEUTRON: (&str, u16) = ("neutron-api", 9696);
/// Header of tokens.
const TOKEN: &str = "x-auth-token";
/// Maximum number of pages of a list of servers.
const PAGES: usize = 20;

/// Token of the controller, kept between looks.
pub(super) type Token = Option<Password>;

/// Nova and Neutron of a cloud.
pub(super) struct Apis<'a> {
    look: &'a Look<'a>,
    token: Token,
}

impl<'a> Apis<'a> {
    pub(super) fn new(look: &'a Look<'a>, token: Token) -> Self {
        Self { look, token }
    }

    /// The token for the next look.
    pub(super) fn token(self) -> Token {
        self.token
    }

    /// Asks, plans and sends; a rejected token is replaced once.
    pub(super) async fn turn(
        &mut self,
        places: &[Place],
        memory: &mut Memory,
    ) -> Result<Turn, String> {
        let fleet = match self.fleet(places).await {
            Err(Failed::Unauthorized) => {
                self.token = None;
                self.fleet(places).await
            }
            other => other,
        };
        let fleet = fleet.map_err(Failed::words)?;
        let (cloud, held) = (self.look.cloud, self.look.held);
        let mut turn = drain::turn(cloud, held, places, &fleet, memory);
        if !turn.unknown.is_empty() {
            for (server, kind, migration) in turn.unknown {
                let why = self.reason(&server, &kind).await.map_err(Failed::words)?;
                memory.failed(server, migration, why);
            }
            turn = drain::turn(cloud, held, places, &fleet, memory);
        }
        self.send(&turn.writes, memory).await?;
        Ok(turn)
    }

    async fn fleet(&mut self, places: &[Place]) -> Result<Fleet, Failed> {
        let mut fleet = Fleet::default();
        let lists = drain::lists(places);
        for store in [Store::Nova, Store::Neutron] {
            let of = lists.iter().filter(|(_, it, _)| *it == store);
            let asked: Vec<(&Asked, String)> =
                of.map(|(asked, _, path)| (asked, path.clone())).collect();
            let wanted: Vec<String> = asked.iter().map(|(_, path)| path.clone()).collect();
            let found = self.read(store, &wanted).await?;
            for ((asked, path), list) in asked.into_iter().zip(found) {
                if !asked.is_answered(&list) {
                    let why = format!("{}: {path} is not answered with a list", name(store));
                    return Err(Failed::Because(why));
                }
                match asked {
                    Asked::Services => fleet.services(&list),
                    Asked::Servers(host) => self.pages(&mut fleet, host, path, list).await?,
                    Asked::Migrations(host, since) => fleet.migrations(host, since, &list),
                    Asked::Agents(host) => fleet.agents(host, &list),
                }
            }
        }
        Ok(fleet)
    }

    async fn pages(
        &mut self,
        fleet: &mut Fleet,
        host: &str,
        path: String,
        mut list: Value,
    ) -> Result<(), Failed> {
        for _ in 0..PAGES {
            fleet.servers(host, &list);
            let Some(next) = drain::next_page(&path, &list) else {
                return Ok(());
            };
            let mut page = self.read(Store::Nova, &[next]).await?;
            list = page.pop().unwrap_or_default();
        }
        Ok(())
    }

    /// Nova's message for the failure of the last migration of a server; empty without a message.
    async fn reason(&mut self, server: &str, kind: &str) -> Result<String, Failed> {
        let path = format!("/v2.1/servers/{server}/os-instance-actions");
        let actions = self.read(Store::Nova, &[path]).await?;
        let path = actions
            .first()
            .and_then(|list| drain::details_of(server, kind, list));
        let Some(path) = path else {
            return Ok(String::new());
        };
        let action = self.read(Store::Nova, &[path]).await?;
        let why = action.first().and_then(drain::detail_of);
        Ok(why.unwrap_or_default())
    }

    /// Reads lists of one API at once.
    async fn read(&mut self, store: Store, paths: &[String]) -> Result<Vec<Value>, Failed> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let token = self.log_in().await.map_err(Failed::Because)?;
        let sent: Vec<Sent<'_>> = paths
            .iter()
            .map(|path| Sent {
                method: &Method::GET,
                path,
                login: Some((TOKEN, token.expose())),
                body: None,
            })
            .collect();
        let mut port = self.port(store).map_err(Failed::Because)?;
        let answers = port.send_all(&sent).await.into_iter().zip(paths);
        let read = answers.map(|(answer, path)| {
            let doing = format!("reading {}", path.split('?').next().unwrap_or(path));
            let answer = answer.map_err(|why| Failed::Because(unanswered(store, &doing, &why)))?;
            match answer.status {
                StatusCode::UNAUTHORIZED => Err(Failed::Unauthorized),
                // A server that was deleted meanwhile has no actions. A list that is missing is no empty list.
                StatusCode::NOT_FOUND if path.contains("/os-instance-actions") => Ok(Value::Null),
                status if status.is_success() => {
                    serde_json::from_slice(&answer.body).map_err(|_| {
                        Failed::Because(unanswered(store, &doing, "the answer is not JSON"))
                    })
                }
                _ => Err(Failed::Because(refused(store, &answer, &doing))),
            }
        });
        read.collect()
    }

    /// Sends the [`Write`]s of a [`Turn`], all writes to one API at once. The [`Memory`] keeps refusals for single servers.
    async fn send(&mut self, writes: &[Write], memory: &mut Memory) -> Result<(), String> {
        for group in writes.chunk_by(|one, two| one.store == two.store) {
            let Some(store) = group.first().map(|it| it.store) else {
                continue;
            };
            let token = self.log_in().await?;
            let mut prepared = Vec::with_capacity(group.len());
            for write in group {
                let method = Method::from_bytes(write.method.as_bytes());
                let method = method.map_err(|error| error.to_string())?;
                prepared.push((method, write.body.as_ref().map(Value::to_string)));
            }
            let sent: Vec<Sent<'_>> = group
                .iter()
                .zip(&prepared)
                .map(|(write, (method, body))| Sent {
                    method,
                    path: &write.path,
                    login: Some((TOKEN, token.expose())),
                    body: body.as_deref(),
                })
                .collect();
            let answers = self.port(store)?.send_all(&sent).await;
            for (write, answer) in group.iter().zip(answers) {
                tracing::debug!("{}: {}", self.look.cloud.name, write.doing);
                heed(write, answer, memory)?;
            }
        }
        Ok(())
    }

    fn port(&self, store: Store) -> Result<Port<'a>, String> {
        match store {
            Store::Nova => {
                let (program, port, version) = NOVA;
                Ok(self.look.port(program, port)?.with_version(version))
            }
            Store::Neutron => self.look.port(NEUTRON.0, NEUTRON.1),
        }
    }

    async fn log_in(&mut self) -> Result<Password, String> {
        if let Some(token) = &self.token {
            return Ok(token.clone());
        }
        let token = self.look.token().await?;
        Ok(self.token.insert(token).clone())
    }
}

/// Judges the [`Answer`] to a [`Write`].
fn heed(write: &Write, answer: Result<Answer, String>, memory: &mut Memory) -> Result<(), String> {
    let is_gone = |answer: &Answer| answer.status == StatusCode::NOT_FOUND;
    match (answer, &write.server) {
        (Ok(answer), Some(server)) if answer.status.is_success() || is_gone(&answer) => {
            memory.refusals.remove(server);
            Ok(())
        }
        (Ok(answer), Some(server)) => {
            memory.refused(server, refused(write.store, &answer, &write.doing));
            Ok(())
        }
        (Ok(answer), None) if answer.status.is_success() => Ok(()),
        (Ok(answer), None) if write.method == "DELETE" && is_gone(&answer) => Ok(()),
        (Ok(answer), None) => Err(refused(write.store, &answer, &write.doing)),
        (Err(why), _) => Err(unanswered(write.store, &write.doing, &why)),
    }
}

/// Reason for a missing list.
enum Failed {
    /// Rejected token.
    Unauthorized,
    /// Other reason.
    Because(String),
}

impl Failed {
    fn words(self) -> String {
        match self {
            Self::Unauthorized => "Nova does not accept the token of the controller".to_owned(),
            Self::Because(why) => why,
        }
    }
}

fn name(store: Store) -> &'static str {
    match store {
        Store::Nova => "Nova",
        Store::Neutron => "Neutron",
    }
}

fn unanswered(store: Store, doing: &str, why: &str) -> String {
    format!("{}: {doing}: {why}", name(store))
}

/// Message of an unsuccessful [`Answer`]. APIs wrap messages in an object with the name of the error.
fn refused(store: Store, answer: &Answer, doing: &str) -> String {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let errors = body.as_object().into_iter().flatten();
    let mut words = errors.filter_map(|(_, error)| error["message"].as_str());
    let words = words.next_back().unwrap_or_default();
    let colon = if words.is_empty() { "" } else { ": " };
    let status = answer.status.as_u16();
    format!(
        "{}: {doing}: answered with {status}{colon}{words}",
        name(store)
    )
}
