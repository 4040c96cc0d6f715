//! `k8s-keystone-auth`, whose answers are tested in its crate: how it starts on what `generate` prints, and how it ends.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;

use crate::process::{Checked, PROGRAM, Running, run, texts};

/// A webhook by the name of the Go one, on what `generate` prints, whose Keystone is nowhere; its working directory is the home.
async fn start(home: &Path) -> Running {
    let path = |name: &str| home.join(name);
    // Nobody answers at this address.
    let url = "http://127.0.0.1:1";
    let flags = ["generate", "keystone-auth", "--keystone-url", url];
    let (manifests, _) = texts(&run(home, &flags).await);
    let objects: Vec<Value> = serde_saphyr::from_multiple(&manifests).unwrap();
    let data = |kind: &str, key: &str| {
        let found = objects.iter().find(|it| it["kind"] == kind).unwrap();
        found["data"][key].as_str().unwrap().to_owned()
    };
    for name in ["tls.crt", "tls.key"] {
        let bytes = STANDARD.decode(data("Secret", name)).unwrap();
        std::fs::write(path(name), bytes).unwrap();
    }
    std::fs::write(path("policies.json"), data("ConfigMap", "policies")).unwrap();
    std::os::unix::fs::symlink(PROGRAM, path("k8s-keystone-auth")).unwrap();
    let flag = |name: &str, file: &str| format!("--{name}={}", path(file).display());
    let mut command = Command::new(path("k8s-keystone-auth"));
    command.current_dir(home);
    let webhook = Checked::of(command)
        .arg("--listen=127.0.0.1:0")
        .arg("--health-address=127.0.0.1:0")
        .arg(format!("--keystone-url={url}"))
        .arg(flag("tls-cert-file", "tls.crt"))
        .arg(flag("tls-private-key-file", "tls.key"))
        .arg(flag("keystone-policy-file", "policies.json"))
        .arg("--policy-mode=strict");
    webhook.start()
}

fn pid(running: &Running) -> Pid {
    let pid = i32::try_from(running.child.id().unwrap()).unwrap();
    Pid::from_raw(pid).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_by_the_name_of_the_go_one_is_ready_without_its_keystone_and_ends_on_sigterm() {
    let home = tempfile::tempdir().unwrap();
    let mut webhook = start(home.path()).await;
    let health = "health and metrics at http://";
    let line = webhook
        .line("of health", |line| line.starts_with(health))
        .await;
    webhook.line("of the start", |line| line == "ready").await;
    let mut stream = TcpStream::connect(line.trim_start_matches(health))
        .await
        .unwrap();
    let request = "GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    kill_process(pid(&webhook), Signal::TERM).unwrap();
    webhook.line("of the end", |line| line == "stopped").await;
    assert!(webhook.child.wait().await.unwrap().success());
}

/// Lets a process crash that may write core dumps, and says whether it did.
async fn crashed(mut running: Running) -> bool {
    let without_limit = Rlimit {
        current: None,
        maximum: None,
    };
    prlimit(Some(pid(&running)), Resource::Core, without_limit).unwrap();
    kill_process(pid(&running), Signal::ABORT).unwrap();
    let ended = running.child.wait().await.unwrap();
    assert_eq!(ended.signal(), Some(Signal::ABORT.as_raw()));
    ended.core_dumped()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_of_a_process_that_has_tokens_leaves_no_core_dump() {
    let home = tempfile::tempdir().unwrap();
    let mut webhook = start(home.path()).await;
    webhook.line("of the start", |line| line == "ready").await;
    assert!(!crashed(webhook).await);
    // The plugin waits for a Keystone that accepts its connection, and never answers.
    let keystone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = keystone.local_addr().unwrap();
    let path = home.path().join("client-keystone-auth");
    std::os::unix::fs::symlink(PROGRAM, &path).unwrap();
    let mut command = Command::new(&path);
    command.current_dir(home.path()).env_clear();
    let plugin = Checked::of(command)
        .env("OS_AUTH_URL", format!("http://{address}/v3"))
        .env("OS_TOKEN", "gAAAAsecret")
        .env("OS_PROJECT_ID", "p")
        .start();
    let _connection = keystone.accept().await.unwrap();
    assert!(!crashed(plugin).await);
}
