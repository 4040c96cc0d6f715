//! Simulated cloud in a separate process, and a client with a persistent connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::memory;

/// Password of all users of the cloud.
pub(crate) const PASSWORD: &str = "secret";

/// Running `ferrostack simulate`. Dropping ends the process.
pub(crate) struct Simulator {
    child: Child,
    address: String,
    token: String,
    project: String,
}

/// Connection as a user, by default demo.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    address: String,
    token: String,
    project: String,
}

impl Simulator {
    pub(crate) fn start(binary: &Path) -> anyhow::Result<Self> {
        Self::start_with(binary, &[])
    }

    /// Starts a cloud with further arguments of `ferrostack simulate`.
    pub(crate) fn start_with(binary: &Path, arguments: &[&str]) -> anyhow::Result<Self> {
        let mut child = Command::new(binary)
            .args([
                "simulate",
                "--listen",
                "127.0.0.1:0",
                "--password",
                PASSWORD,
            ])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| binary.display().to_string())?;
        let out = child.stdout.take().context("the output of the process")?;
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        let address = line
            .trim()
            .rsplit_once("http://")
            .map(|(_, address)| address.to_owned())
            .with_context(|| format!("the simulator says `{}`", line.trim()))?;
        let mut simulator = Self {
            child,
            address,
            token: String::new(),
            project: String::new(),
        };
        (simulator.token, simulator.project) = simulator.client()?.log_in("demo")?;
        Ok(simulator)
    }

    /// Base URL, `http://HOST:PORT`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Opens a connection as demo.
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        Ok(Client {
            stream: connect(&self.address)?,
            address: self.address.clone(),
            token: self.token.clone(),
            project: self.project.clone(),
        })
    }

    /// Opens a connection as another user, in the project with the user's name.
    pub(crate) fn client_of(&self, user: &str) -> anyhow::Result<Client> {
        let mut client = self.client()?;
        (client.token, client.project) = client.log_in(user)?;
        Ok(client)
    }

    /// Resident memory now, in megabytes.
    pub(crate) fn rss_megabytes(&self) -> anyhow::Result<f64> {
        Ok(memory::resident(self.child.id())?.0)
    }

    /// Terminates the process, and waits for its end.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Client {
    pub(crate) fn get(&mut self, path: &str) -> anyhow::Result<Vec<u8>> {
        self.call("GET", path, None)
    }

    /// Sends a POST or PUT; returns the object under the only key of the answer.
    pub(crate) fn make(&mut self, method: &str, path: &str, body: &Value) -> anyhow::Result<Value> {
        let reply: Value = serde_json::from_slice(&self.call(method, path, Some(body))?)?;
        let Value::Object(map) = reply else {
            bail!("{method} {path}: the reply is no object");
        };
        Ok(map
            .into_iter()
            .next()
            .map(|(_, one)| one)
            .unwrap_or_default())
    }

    /// Sends any request; returns the body of a successful answer.
    pub(crate) fn call(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Vec<u8>> {
        let (status, _, reply) = self.exchange(method, path, body)?;
        if !(200..300).contains(&status) {
            bail!(
                "{method} {path}: {status} {}",
                String::from_utf8_lossy(&reply)
            );
        }
        Ok(reply)
    }

    /// Id of the user's project.
    pub(crate) fn project(&self) -> String {
        self.project.clone()
    }

    /// Token of a user, and id of the project with the user's name.
    fn log_in(&mut self, user: &str) -> anyhow::Result<(String, String)> {
        let body = json!({"auth": {
            "identity": {"methods": ["password"], "password": {"user": {
                "name": user, "domain": {"name": "Default"}, "password": PASSWORD}}},
            "scope": {"project": {"name": user, "domain": {"name": "Default"}}}}});
        let (status, token, reply) =
            self.exchange("POST", "/identity/v3/auth/tokens", Some(&body))?;
        let token = token
            .with_context(|| format!("login: {status} {}", String::from_utf8_lossy(&reply)))?;
        let answer: Value = serde_json::from_slice(&reply)?;
        let project = answer["token"]["project"]["id"].as_str();
        Ok((
            token,
            project.context("the project of the token")?.to_owned(),
        ))
    }

    /// Sends a request; returns the first line of the answer.
    fn send(&mut self, request: &str) -> std::io::Result<String> {
        let mut line = String::new();
        self.stream.get_mut().write_all(request.as_bytes())?;
        self.stream.read_line(&mut line)?;
        Ok(line)
    }

    /// Keystone's description of another token than the client's.
    pub(crate) fn subject(&mut self, token: &str) -> anyhow::Result<Value> {
        let header = format!("X-Subject-Token: {token}\r\n");
        let path = "/identity/v3/auth/tokens";
        let (status, _, reply) = self.exchange_with("GET", path, None, &header)?;
        if status != 200 {
            bail!("a token: {status} {}", String::from_utf8_lossy(&reply));
        }
        Ok(serde_json::from_slice(&reply)?)
    }

    /// Sends a request; returns status, token if any, and body.
    pub(crate) fn exchange(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<(u16, Option<String>, Vec<u8>)> {
        self.exchange_with(method, path, body, "")
    }

    /// [`Self::exchange`] with further headers, each with its line end.
    fn exchange_with(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        headers: &str,
    ) -> anyhow::Result<(u16, Option<String>, Vec<u8>)> {
        let body = body.map(Value::to_string).unwrap_or_default();
        // Cinder refuses the version of another service.
        let version = match path.starts_with("/compute/") {
            true => "OpenStack-API-Version: compute 2.60\r\n",
            false => "",
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nX-Auth-Token: {}\r\nAuthorization: Basic {}\r\n\
             {version}{headers}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            self.token,
            // Credentials for the interface of the operator.
            STANDARD.encode(format!("admin:{PASSWORD}")),
            body.len()
        );
        let line = match self.send(&request) {
            Ok(line) if !line.is_empty() => line,
            // The server closes idle connections.
            _ => {
                self.stream = connect(&self.address)?;
                self.send(&request)?
            }
        };
        let status: u16 = line
            .split_whitespace()
            .nth(1)
            .context("an HTTP status")?
            .parse()?;
        let (mut length, mut token, mut line) = (0, None, String::new());
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                break;
            };
            match name {
                "content-length" => length = value.parse()?,
                "x-subject-token" => token = Some(value.to_owned()),
                _ => {}
            }
        }
        let mut reply = vec![0; length];
        self.stream.read_exact(&mut reply)?;
        Ok((status, token, reply))
    }
}

fn connect(address: &str) -> std::io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    Ok(BufReader::new(stream))
}
