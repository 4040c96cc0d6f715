//! Programs started for a test, and requests to them.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;

use crate::world::World;

/// Processes that end with this value, the last one first.
#[derive(Default)]
pub(crate) struct Processes(Vec<Child>);

impl Processes {
    /// Starts a program without input and output.
    pub(crate) fn start(&mut self, command: &mut Command) {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null());
        // A group of its own, because some programs are scripts that start others.
        let command = command.stderr(Stdio::null()).process_group(0);
        self.0.push(command.spawn().unwrap());
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for process in self.0.iter_mut().rev() {
            let group = format!("-{}", process.id());
            let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
            let _ = process.wait();
        }
    }
}

pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// The status, headers and body of an answer; none while nobody listens.
pub(crate) fn asked(
    address: SocketAddr,
    (method, path): (&str, &str),
    header: (&str, &str),
    body: &Value,
) -> Option<(u16, String, Value)> {
    let mut stream = TcpStream::connect(address).ok()?;
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let ((name, value), length) = (header, body.len());
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\n{name}: {value}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(head.as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1)?.parse().ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let body = serde_json::from_str(body).unwrap_or_default();
    Some((status, head.to_owned(), body))
}

/// A password of the cloud.
pub(crate) async fn account(world: &World, key: &str) -> String {
    let secret: Secret = world
        .management
        .api()
        .get("openstack-accounts")
        .await
        .unwrap();
    String::from_utf8(secret.data.unwrap().remove(key).unwrap().0).unwrap()
}
