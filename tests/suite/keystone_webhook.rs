//! `k8s-keystone-auth`, whose answers are tested in its crate: how it starts on what `generate` prints, and how it ends.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::Command;

use crate::process::{Checked, PROGRAM, run, texts};

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_by_the_name_of_the_go_one_is_ready_without_its_keystone_and_ends_on_sigterm() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    // Nobody answers at this address.
    let url = "http://127.0.0.1:1";
    let flags = ["generate", "keystone-auth", "--keystone-url", url];
    let (manifests, _) = texts(&run(home.path(), &flags).await);
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
    let webhook = Checked::of(Command::new(path("k8s-keystone-auth")))
        .arg("--listen=127.0.0.1:0")
        .arg("--health-address=127.0.0.1:0")
        .arg(format!("--keystone-url={url}"))
        .arg(flag("tls-cert-file", "tls.crt"))
        .arg(flag("tls-private-key-file", "tls.key"))
        .arg(flag("keystone-policy-file", "policies.json"))
        .arg("--policy-mode=strict");
    let mut webhook = webhook.start();
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
    let pid = i32::try_from(webhook.child.id().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    webhook.line("of the end", |line| line == "stopped").await;
    assert!(webhook.child.wait().await.unwrap().success());
}
