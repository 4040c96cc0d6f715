//! Webhook as a process, and its client.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Method;
use serde_json::{Value, json};

use super::world::World;
use crate::https::{Access, Client, free};
use crate::memory;

/// Timeout of a start, and of an answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum number of searches for a port: another process may take the port before its use.
const PORTS: usize = 5;

/// Program, with the webhook and the plugin under comparison.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// Name in messages: `Go` or `here`.
    pub(crate) name: &'static str,
    webhook: (PathBuf, Option<&'static str>),
    plugin: (PathBuf, Option<&'static str>),
}

impl Program {
    /// The Go programs in a directory.
    pub(crate) fn go(directory: &Path) -> anyhow::Result<Self> {
        let directory = std::path::absolute(directory)?;
        Ok(Self {
            name: "Go",
            webhook: (directory.join("k8s-keystone-auth"), None),
            plugin: (directory.join("client-keystone-auth"), None),
        })
    }

    /// Both parts of `ferrostack`.
    pub(crate) fn here(binary: &Path) -> anyhow::Result<Self> {
        let binary = std::path::absolute(binary)?;
        Ok(Self {
            name: "here",
            webhook: (binary.clone(), Some("k8s-keystone-auth")),
            plugin: (binary, Some("client-keystone-auth")),
        })
    }

    /// [`Command`] for the exec plugin, without arguments, with an empty environment.
    pub(crate) fn plugin(&self) -> Command {
        let mut command = command(&self.plugin);
        command.env_clear();
        command
    }
}

fn command((path, argument): &(PathBuf, Option<&'static str>)) -> Command {
    let mut command = Command::new(path);
    command.args(argument.iter());
    command
}

/// Running webhook. Dropping ends the process.
pub(crate) struct Webhook {
    child: Child,
    access: Access,
    /// Time from the start of the process to its first answer.
    pub(crate) start: Duration,
}

impl Webhook {
    /// Starts a webhook with a policy, and further arguments. `name` is for its log. `None` if the process exits early.
    pub(crate) async fn start(
        program: &Program,
        world: &World,
        name: &str,
        policy: Option<&Path>,
        further: &[&str],
    ) -> anyhow::Result<Option<Self>> {
        let log = world.directory().join(format!("{name}.log"));
        for _ in 0..PORTS {
            let access = Access {
                address: address()?,
                tls: Arc::clone(world.tls()),
            };
            let file = std::fs::File::create(&log)?;
            let begun = Instant::now();
            let child = command(&program.webhook)
                .arg(format!("--listen={}", access.address))
                .arg("--tls-cert-file=server.crt")
                .arg("--tls-private-key-file=server.key")
                .arg(format!("--keystone-url={}", world.keystone()))
                .args(policy.map(|it| format!("--keystone-policy-file={}", it.display())))
                .args(further)
                .current_dir(world.directory())
                .stdin(Stdio::null())
                .stdout(file.try_clone()?)
                .stderr(file)
                .spawn()
                .with_context(|| format!("{:?}", program.webhook))?;
            let mut webhook = Self {
                child,
                access,
                start: Duration::ZERO,
            };
            if webhook.wait(begun).await? {
                return Ok(Some(webhook));
            }
            let words = std::fs::read(&log)?;
            let words = String::from_utf8_lossy(&words).to_lowercase();
            if !words.contains("address already in use") {
                return Ok(None);
            }
        }
        bail!("no free port for {name}")
    }

    /// Waits for the first answer; false if the process exits before.
    async fn wait(&mut self, begun: Instant) -> anyhow::Result<bool> {
        while begun.elapsed() < PATIENCE {
            if let Ok(mut client) = self.client().await
                && client.send(Method::GET, "/", Bytes::new()).await.is_ok()
            {
                self.start = begun.elapsed();
                return Ok(true);
            }
            if self.child.try_wait()?.is_some() {
                return Ok(false);
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        bail!("the webhook does not answer")
    }

    /// Opens a connection.
    pub(crate) async fn client(&self) -> anyhow::Result<Client> {
        self.access.connect().await
    }

    /// Address of the webhook.
    pub(crate) fn access(&self) -> &Access {
        &self.access
    }

    /// Resident memory of the process, and its part without a file behind it, in megabytes.
    pub(crate) fn memory(&self) -> anyhow::Result<(f64, f64)> {
        memory::resident(self.child.id())
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        // Without effect if the process has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Free address, given to one webhook alone. With two webhooks on one address, answers of the first would pass for
/// answers of the second.
fn address() -> anyhow::Result<SocketAddr> {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    loop {
        let address = free()?;
        let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
        if given.insert(address.port()) {
            return Ok(address);
        }
    }
}

/// Sends a request. Answer: status as `code`, or `closed`, and body as `answer`; and the message, if any.
pub(crate) async fn ask(
    client: &mut Option<Client>,
    webhook: &Webhook,
    body: &[u8],
) -> anyhow::Result<(Value, String)> {
    let connection = match client.take() {
        Some(connection) => connection,
        None => webhook.client().await?,
    };
    let sent = tokio::time::timeout(PATIENCE, send(connection, body)).await?;
    let Ok((connection, status, bytes)) = sent else {
        return Ok((json!({"code": "closed"}), String::new()));
    };
    *client = Some(connection);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let answer = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    let words = match (&answer, answer["message"].as_str()) {
        (Value::Null, _) => text,
        (_, Some(message)) => message.to_owned(),
        _ => answer["status"]["error"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
    };
    Ok((json!({"code": status.to_string(), "answer": answer}), words))
}

async fn send(mut connection: Client, body: &[u8]) -> anyhow::Result<(Client, u16, Bytes)> {
    let body = Bytes::copy_from_slice(body);
    let response = connection.send(Method::POST, "/webhook", body).await?;
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await?.to_bytes();
    Ok((connection, status, bytes))
}
