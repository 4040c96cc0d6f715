use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::routing::get;
use axum::{Json, Router};
use clap::Parser;
use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use super::*;
use crate::pki;

/// More than anything here takes.
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    args: KeystoneWebhook,
}

/// Arguments of a webhook under test, with these flags.
pub(super) fn args(flags: &[&str]) -> KeystoneWebhook {
    let words = [
        "k",
        "--tls-cert-file=a",
        "--tls-private-key-file=b",
        "--keystone-url=http://k",
    ];
    Command::try_parse_from(words.iter().chain(flags))
        .unwrap()
        .args
}

/// A webhook that runs on files in a directory of its own.
struct Running {
    directory: tempfile::TempDir,
    authority: String,
    lines: Arc<Mutex<Vec<String>>>,
    stop: CancellationToken,
    ended: JoinHandle<anyhow::Result<()>>,
}

const POLICY_OF_DEMO: &str =
    r#"[{"users": {"projects": ["demo"]}, "resource_permissions": {"*/pods": ["get"]}}]"#;

/// Starts it; HERE in a flag is the directory.
async fn start(flags: &[&str]) -> Running {
    // Another test may have been first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let directory = tempfile::tempdir().unwrap();
    let authority = issue(&directory);
    std::fs::write(directory.path().join("policies.json"), POLICY_OF_DEMO).unwrap();
    let here = directory.path().display().to_string();
    let keystone = keystone().await;
    let words = [
        "k8s-keystone-auth",
        "--listen=127.0.0.1:0",
        "--health-address=127.0.0.1:0",
    ];
    let files = [
        "--tls-cert-file=HERE/tls.crt",
        "--tls-private-key-file=HERE/tls.key",
        &format!("--keystone-url=http://{keystone}/identity"),
    ];
    let words = words
        .iter()
        .chain(&files)
        .chain(flags)
        .map(|word| word.replace("HERE", &here));
    let args = Command::try_parse_from(words).unwrap().args;
    let (lines, stop) = (Arc::new(Mutex::new(Vec::new())), CancellationToken::new());
    let (printed, stopped) = (Arc::clone(&lines), stop.clone());
    let ended = tokio::spawn(async move {
        let say = move |line: &str| printed.lock().push(line.to_owned());
        run(&args, &Environment::default(), stopped, say).await
    });
    Running {
        directory,
        authority,
        lines,
        stop,
        ended,
    }
}

/// A new certificate in the directory, and its authority.
fn issue(directory: &tempfile::TempDir) -> String {
    let (authority, identity) = pki::self_issued("test", vec!["localhost".to_owned()]).unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("tls.crt"), identity.certificate).unwrap();
    std::fs::write(path("tls.key"), identity.key.expose_secret()).unwrap();
    authority
}

/// A Keystone that knows one token, and by a service user with the password `one` or `two` another one.
async fn keystone() -> std::net::SocketAddr {
    let answer = async |request: Request| {
        let text = |name: &str| {
            let value = request.headers().get(name);
            value.map_or("", |it| it.to_str().unwrap()).to_owned()
        };
        let (asker, subject) = (text("x-auth-token"), text("x-subject-token"));
        let token = json!({"user": {"id": "u1", "name": "alice", "domain": {"id": "default", "name": "Default"}},
            "project": {"id": "p1", "name": "demo"}, "roles": [{"name": "dev"}], "expires_at": "2999-01-01T00:00:00Z"});
        let is_known = subject == "secret-token" || subject == format!("for-{asker}");
        match is_known {
            true => Ok(Json(json!({"token": token}))),
            false => {
                let error = json!({"code": 404, "title": "Not Found", "message": "no token"});
                Err((http::StatusCode::NOT_FOUND, Json(json!({"error": error}))))
            }
        }
    };
    let login = async |Json(body): Json<Value>| {
        let password = &body["auth"]["identity"]["password"]["user"]["password"];
        let name = format!("service-{}", password.as_str().unwrap());
        let token = json!({"user": {"id": "s"}, "catalog": [], "expires_at": "2999-01-01T00:00:00Z", "issued_at": "2026-01-01T00:00:00Z"});
        let headers = [("x-subject-token", name)];
        (
            http::StatusCode::CREATED,
            headers,
            Json(json!({"token": token})),
        )
    };
    let groups = async || Json(json!({"groups": [{"id": "g1", "name": "ops"}]}));
    let router = Router::new()
        .route("/identity/v3/auth/tokens", get(answer).post(login))
        .route("/identity/v3/users/u1/groups", get(groups));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

impl Running {
    /// The rest of the line that begins with this, once it is there.
    async fn line(&self, start: &str) -> String {
        let found = async {
            loop {
                let line = self
                    .lines
                    .lock()
                    .iter()
                    .find_map(|line| line.strip_prefix(start).map(str::to_owned));
                match line {
                    Some(line) => return line,
                    None => tokio::task::yield_now().await,
                }
            }
        };
        tokio::time::timeout(LIMIT, found).await.unwrap()
    }

    /// The answer to a review, over TLS by an authority and, if there is one, a certificate of the client.
    async fn review(
        &self,
        authority: &str,
        client: Option<&pki::Identity>,
        body: &Value,
    ) -> Result<Value, String> {
        let address = self.line("reviews at https://").await;
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap())
            .unwrap();
        let config = ClientConfig::builder().with_root_certificates(roots);
        let config = match client {
            None => config.with_no_client_auth(),
            Some(it) => {
                let chain = CertificateDer::pem_slice_iter(it.certificate.as_bytes())
                    .map(Result::unwrap)
                    .collect();
                let key = PrivateKeyDer::from_pem_slice(it.key.expose_secret().as_bytes()).unwrap();
                config.with_client_auth_cert(chain, key).unwrap()
            }
        };
        let words = |error: std::io::Error| error.to_string();
        let stream = TcpStream::connect(address).await.map_err(words)?;
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
            .map_err(words)?;
        let body = body.to_string();
        let request = format!(
            "POST /webhook HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.map_err(words)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.map_err(words)?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (_, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
        serde_json::from_str(body).map_err(|_| answer.clone())
    }

    async fn token(&self, token: &str) -> Value {
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
        self.review(&self.authority, None, &body).await.unwrap()["status"].clone()
    }

    /// True if alice may get this resource.
    async fn allows(&self, resource: &str) -> Value {
        let extra = json!({"alpha.kubernetes.io/identity/project/name": ["demo"]});
        let attributes = json!({"verb": "get", "resource": resource, "namespace": "n"});
        let spec = json!({"user": "alice", "extra": extra, "resourceAttributes": attributes});
        let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec});
        self.review(&self.authority, None, &body).await.unwrap()["status"]["allowed"].clone()
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let address = self.line("health and metrics at http://").await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        (answer[9..12].parse().unwrap(), answer)
    }

    async fn failure(self) -> String {
        let ended = tokio::time::timeout(LIMIT, self.ended).await.unwrap();
        let here = self.directory.path().display().to_string();
        format!("{:#}", ended.unwrap().unwrap_err()).replace(&here, "HERE")
    }
}

/// Waits until this holds. The files are looked at every two seconds.
pub(super) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(LIMIT, waiting).await;
    assert!(waited.is_ok(), "{what}");
}

#[tokio::test]
async fn a_webhook_with_files_alone_answers_over_tls_until_it_is_stopped() {
    let running = start(&["--keystone-policy-file=HERE/policies.json", "--vmodule=a=1"]).await;
    let status = running.token("secret-token").await;
    assert_eq!(status["user"]["username"], "alice", "{status}");
    assert_eq!(status["user"]["groups"], json!(["ops", "p1"]));
    assert_eq!(running.token("other").await["authenticated"], false);
    assert_eq!(
        (
            running.allows("pods").await,
            running.allows("secrets").await
        ),
        (json!(true), json!(false))
    );
    for path in ["/healthz", "/readyz"] {
        assert_eq!(running.get(path).await.0, 200);
    }
    let (_, metrics) = running.get("/metrics").await;
    assert!(
        metrics.contains(
            "ferrostack_keystone_auth_reviews_total{review=\"token\",answer=\"refused\"} 1"
        ),
        "{metrics}"
    );
    assert!(!metrics.contains("secret-token"));
    running.line("--vmodule has no effect").await;
    running.stop.cancel();
    running.ended.await.unwrap().unwrap();
}

#[tokio::test]
async fn policy_and_certificate_are_replaced_while_it_runs_and_what_is_broken_is_not() {
    let mut running = start(&["--keystone-policy-file=HERE/policies.json"]).await;
    let policies = running.directory.path().join("policies.json");
    assert_eq!(running.allows("pods").await, true);
    std::fs::write(&policies, "[{").unwrap();
    let unusable = "ferrostack_keystone_auth_unusable{file=\"the policy\"} 1";
    eventually("the broken policy is counted", async || {
        running.get("/metrics").await.1.contains(unusable)
    })
    .await;
    assert_eq!(running.allows("pods").await, true);
    std::fs::write(&policies, POLICY_OF_DEMO.replace("pods", "secrets")).unwrap();
    eventually("the policy is replaced", async || {
        running.allows("secrets").await == true
    })
    .await;
    assert_eq!(running.allows("pods").await, false);
    let authority = issue(&running.directory);
    let body = json!({});
    let accepted = async || running.review(&authority, None, &body).await.is_ok();
    eventually("the certificate is replaced", accepted).await;
    running.authority = authority;
    assert_eq!(running.allows("secrets").await, true);
}

#[tokio::test]
async fn the_service_user_of_a_cloud_conf_asks_about_tokens_and_may_be_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cloud.conf");
    let write = |password: &str| {
        let text = format!(
            "[Global]\nauth-url=http://elsewhere\nuser-id=s\npassword={password}\ntenant-id=p\ntls-insecure=true\n"
        );
        let new = directory.path().join("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, &file).unwrap();
    };
    write("one");
    let flags = [
        &*format!("--cloud-config={}", file.display()),
        "--groups=token",
    ];
    let running = start(&flags).await;
    let status = running.token("for-service-one").await;
    assert_eq!(status["user"]["username"], "alice", "{status}");
    assert_eq!(status["user"]["groups"], json!(["p1"]));
    let refused = running.token("for-nobody").await;
    let words = refused["error"].as_str().unwrap();
    assert!(words.contains("unknown, expired or revoked"), "{words}");
    running.line("--cloud-config: auth-url has no effect").await;
    running
        .line("--cloud-config: tls-insecure has no effect")
        .await;
    std::fs::write(&file, "[Global\n").unwrap();
    let unusable = "ferrostack_keystone_auth_unusable{file=\"the service user\"} 1";
    eventually("the broken file is counted", async || {
        running.get("/metrics").await.1.contains(unusable)
    })
    .await;
    write("two");
    eventually("the service user is replaced", async || {
        !running.get("/metrics").await.1.contains(unusable)
    })
    .await;
    let status = running.token("for-service-two").await;
    assert_eq!(status["authenticated"], true, "{status}");
}

/// An authority, and certificates of it for localhost.
fn servers(count: usize) -> (String, Vec<[String; 2]>) {
    let (mut params, key) = (
        rcgen::CertificateParams::default(),
        rcgen::KeyPair::generate().unwrap(),
    );
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = rcgen::Issuer::new(params, key);
    let servers = (0..count).map(|_| {
        let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap().pem();
        [certificate, key.serialize_pem()]
    });
    (authority, servers.collect())
}

#[tokio::test]
async fn certificate_and_policy_are_replaced_a_hundred_times_under_load_and_no_review_fails() {
    // Another test may have been first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let url = format!("--keystone-url=http://{}/identity", keystone().await);
    let words = ["k", "--tls-cert-file=a", "--tls-private-key-file=b", &*url];
    let args = Command::try_parse_from(words).unwrap().args;
    let (metrics, environment) = (Metrics::default(), Environment::default());
    let (http, _) = super::keystone(&args, &environment, &metrics, &|_: &str| {}).unwrap();
    let webhook = Arc::new(webhook(&args, &http, &metrics));
    let policy = |more: &str| {
        let text = POLICY_OF_DEMO.replace("]}}]", &format!("], \"*/{more}\": [\"list\"]}}}}]"));
        Policy::compile(&text, keystone_auth::policy::Mode::Strict)
            .unwrap()
            .policy
    };
    webhook.set_policy(policy("nodes"));
    let (authority, servers) = servers(5);
    let certificates = tls::Certificates::default();
    let mut apply = certificates.replacing();
    apply(&servers[0]).unwrap();
    let (lines, stop) = (Arc::new(Mutex::new(Vec::new())), CancellationToken::new());
    let printed = Arc::clone(&lines);
    let router = webhook::router(Arc::clone(&webhook), &["/webhook".to_owned()]);
    let address = "127.0.0.1:0".parse().unwrap();
    let say = move |line: &str| printed.lock().push(line.to_owned());
    serve::tls_by(
        "reviews",
        address,
        certificates.current(),
        router,
        &stop,
        &say,
    )
    .await
    .unwrap();
    let running = Running {
        directory: tempfile::tempdir().unwrap(),
        authority,
        lines,
        stop,
        ended: tokio::spawn(async { Ok(()) }),
    };
    let (reviews, done) = (std::cell::Cell::new(0_usize), std::cell::Cell::new(false));
    let load = futures::future::join_all((0..8).map(|_| async {
        while !done.get() {
            assert_eq!(running.token("secret-token").await["authenticated"], true);
            assert_eq!(running.allows("pods").await, true);
            reviews.set(reviews.get() + 2);
        }
    }));
    let changes = async {
        for count in 0..100 {
            let before = reviews.get();
            apply(&servers[count % servers.len()]).unwrap();
            webhook.set_policy(policy(&format!("kind{count}")));
            // A half, and the key of another, change nothing.
            let [certificate, key] = servers[count % servers.len()].clone();
            let [_, other] = servers[(count + 1) % servers.len()].clone();
            let half = certificate[..certificate.len() / 2].to_owned();
            assert!(apply(&[half, key]).is_err());
            let error = apply(&[certificate, other]).unwrap_err();
            assert!(error.contains("the certificate and the key"), "{error}");
            while reviews.get() == before {
                tokio::task::yield_now().await;
            }
        }
        done.set(true);
    };
    let all = async { tokio::join!(load, changes) };
    tokio::time::timeout(LIMIT, all).await.unwrap();
    assert!(reviews.get() >= 200);
    running.stop.cancel();
}

/// An authority, and a certificate of it for this purpose.
fn client(purpose: rcgen::ExtendedKeyUsagePurpose) -> (String, pki::Identity) {
    let (mut params, key) = (
        rcgen::CertificateParams::default(),
        rcgen::KeyPair::generate().unwrap(),
    );
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = rcgen::Issuer::new(params, key);
    let (mut params, key) = (
        rcgen::CertificateParams::default(),
        rcgen::KeyPair::generate().unwrap(),
    );
    params.extended_key_usages = vec![purpose];
    let identity = pki::Identity {
        certificate: params.signed_by(&key, &issuer).unwrap().pem(),
        key: key.serialize_pem().into(),
    };
    (authority, identity)
}

#[tokio::test]
async fn clients_present_a_certificate_if_they_have_to() {
    let purpose = rcgen::ExtendedKeyUsagePurpose::ClientAuth;
    let ((authority, accepted), (_, other)) = (client(purpose.clone()), client(purpose));
    let (_, of_a_server) = client(rcgen::ExtendedKeyUsagePurpose::ServerAuth);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("clients.crt");
    std::fs::write(&file, authority).unwrap();
    let running = start(&[&format!("--client-ca-file={}", file.display())]).await;
    let body = json!({});
    for client in [None, Some(&other), Some(&of_a_server)] {
        let answer = running.review(&running.authority, client, &body).await;
        assert!(answer.is_err(), "{answer:?}");
    }
    let answer = running
        .review(&running.authority, Some(&accepted), &body)
        .await;
    assert_eq!(answer.unwrap()["reason"], "BadRequest");
    running
        .line("there is no policy: --keystone-policy-file or")
        .await;
}

#[tokio::test]
async fn what_is_wrong_at_the_start_ends_it_and_is_named() {
    for (flags, words) in [
        (
            &["--keystone-policy-file=HERE/none"][..],
            "--keystone-policy-file: HERE/none: No such file",
        ),
        (
            &["--keystone-policy-file=HERE/tls.crt"],
            "--keystone-policy-file: HERE/tls.crt: line 1, column 1: ",
        ),
        (
            &[
                "--policy-mode=strict",
                "--keystone-policy-file=HERE/tls.crt",
            ],
            "line 1, column 1: ",
        ),
        (
            &["--sync-config-file=HERE/tls.crt"],
            "--sync-config-file: HERE/tls.crt: ",
        ),
        (
            &["--cloud-config=HERE/none"],
            "--cloud-config: cannot read HERE/none: No such file",
        ),
        (
            &["--cloud-config=HERE/tls.crt"],
            "--cloud-config: HERE/tls.crt: ",
        ),
        (
            &["--keystone-ca-file=HERE/none"],
            "--keystone-ca-file: cannot read HERE/none",
        ),
        (
            &["--keystone-ca-file=HERE/policies.json"],
            "--keystone-ca-file",
        ),
        (
            &["--client-ca-file=HERE/policies.json"],
            "--client-ca-file: there is no certificate",
        ),
    ] {
        let failure = start(flags).await.failure().await;
        assert!(failure.contains(words), "{flags:?}: {failure}");
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tls.crt").display().to_string();
    let flags = [
        "--tls-cert-file",
        &path,
        "--tls-private-key-file",
        &path,
        "--keystone-url",
        "nowhere",
    ];
    let args = Command::try_parse_from(["k"].into_iter().chain(flags))
        .unwrap()
        .args;
    let error = run(
        &args,
        &Environment::default(),
        CancellationToken::new(),
        |_| {},
    )
    .await
    .unwrap_err();
    assert!(
        format!("{error:#}").starts_with("--keystone-url: the URL of Keystone is no"),
        "{error:#}"
    );
}
