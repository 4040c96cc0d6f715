//! A server in a process of its own, which can be killed, and a client of it over TLS.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use apiserver::{ApiServer, Options, Store, Synchronous, server_config};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Variable with the directory of the child's files.
const CHILD: &str = "APISERVER_TEST_SITE";

pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A directory with certificates and the database of one server.
pub(crate) struct Site {
    pub(crate) directory: tempfile::TempDir,
    ca: String,
    admin: String,
    other: String,
}

impl Site {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "ca");
        let key = KeyPair::generate().unwrap();
        let ca = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        let serving_key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()])
            .unwrap()
            .signed_by(&serving_key, &issuer)
            .unwrap();
        let put = |name: &str, text: &str| std::fs::write(directory.path().join(name), text);
        put("ca.crt", &ca).unwrap();
        put("server.crt", &certificate.pem()).unwrap();
        put("server.key", &serving_key.serialize_pem()).unwrap();
        std::fs::create_dir(directory.path().join("data")).unwrap();
        let identity = |group: &str| {
            let key = KeyPair::generate().unwrap();
            let mut params = CertificateParams::default();
            params.distinguished_name.push(DnType::CommonName, "client");
            params
                .distinguished_name
                .push(DnType::OrganizationName, group);
            params.signed_by(&key, &issuer).unwrap().pem() + &key.serialize_pem()
        };
        Self {
            ca,
            admin: identity("system:masters"),
            other: identity("dev"),
            directory,
        }
    }

    /// The directory of the database.
    pub(crate) fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.data().join("objects.db")
    }

    /// Starts the server, through a shell that runs `before` first. The error is the output of a server that does not
    /// start.
    pub(crate) fn start(&self, before: &str) -> Result<Child, String> {
        let mut process = self.command(before).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let first_line = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let at = line.find("server: ")?;
            Some(line[at + 8..].to_owned())
        });
        // Read on, so that the pipe never fills.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let first_line = first_line.unwrap_or_else(|| "the process ended".to_owned());
        let Some(address) = first_line.strip_prefix("listening on ") else {
            let _ = process.wait();
            return Err(first_line);
        };
        Ok(Child {
            url: format!("https://{address}"),
            process,
        })
    }

    /// Starts the server and kills it after `delay`, at any stage.
    pub(crate) async fn start_and_kill(&self, delay: std::time::Duration) {
        let mut process = self.command("").spawn().unwrap();
        tokio::time::sleep(delay).await;
        process.kill().unwrap();
        process.wait().unwrap();
    }

    fn command(&self, before: &str) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("{before}\nexec \"$0\" \"$@\"")])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "site::the_server_that_tests_kill", "--nocapture"])
            .env(CHILD, self.directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        command
    }

    pub(crate) fn client(&self, child: &Child) -> Client {
        self.connect(child, &self.admin)
    }

    /// A client that is nobody in particular.
    pub(crate) fn stranger(&self, child: &Child) -> Client {
        self.connect(child, &self.other)
    }

    fn connect(&self, child: &Child, identity: &str) -> Client {
        // Another test may have been faster; either way it is there.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .tls_certs_only([reqwest::Certificate::from_pem(self.ca.as_bytes()).unwrap()])
            .identity(reqwest::Identity::from_pem(identity.as_bytes()).unwrap())
            .build()
            .unwrap();
        Client {
            http,
            url: child.url.clone(),
        }
    }
}

/// Running server, killed when dropped.
pub(crate) struct Child {
    process: std::process::Child,
    url: String,
}

impl Child {
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// As `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A client of a server that may go at any moment: then there is no answer.
#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    url: String,
}

impl Client {
    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Option<(u16, Value)> {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = self.http.request(method, format!("{}{path}", self.url));
        if !body.is_null() {
            request = request
                .header("content-type", "application/json")
                .body(body.to_string());
        }
        let response = request.send().await.ok()?;
        let code = response.status().as_u16();
        // An answer counts once all of it is there.
        let bytes = response.bytes().await.ok()?;
        Some((code, serde_json::from_slice(&bytes).ok()?))
    }

    pub(crate) async fn get(&self, path: &str) -> Option<(u16, Value)> {
        self.call("GET", path, &Value::Null).await
    }

    /// A response that goes on.
    pub(crate) async fn stream(&self, method: &str, path: &str) -> Option<reqwest::Response> {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let request = self.http.request(method, format!("{}{path}", self.url));
        request.send().await.ok()
    }
}

pub(crate) fn map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"v": value}})
}

pub(crate) fn revision(object: &Value) -> u64 {
    let text = object["metadata"]["resourceVersion"].as_str();
    text.unwrap_or_else(|| panic!("no revision in {object}"))
        .parse()
        .unwrap()
}

/// An error with all its causes.
pub(crate) fn story(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(found) = cause {
        text.push_str(&format!(": {found}"));
        cause = found.source();
    }
    text
}

/// Not a test of its own: the process that the other tests start and kill.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_that_tests_kill() {
    let Some(directory) = std::env::var_os(CHILD) else {
        return;
    };
    // The end of the input means that the parent is gone.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let directory = Path::new(&directory);
    let read = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap();
    let ca = read("ca.crt");
    let options = Options {
        store: Store::Sqlite {
            path: directory.join("data/objects.db"),
            synchronous: Synchronous::Full,
        },
        client_ca: Some(ca.clone()),
        ..Options::default()
    };
    let server = match ApiServer::open(options).await {
        Ok(server) => server,
        Err(error) => {
            println!("server: refused: {}", story(&error));
            return;
        }
    };
    let tls = server_config(&read("server.crt"), &read("server.key"), Some(&ca)).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("server: listening on {}", listener.local_addr().unwrap());
    server
        .serve(listener, Arc::clone(&tls), CancellationToken::new())
        .await;
}
