//! Questions in a terminal.

use std::path::Path;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use super::{Keystone, passcode, prepare, variables};
use crate::forms;
use crate::process::PROGRAM;

/// A terminal, in which `answers` are typed once the questions are there.
#[tokio::test(flavor = "multi_thread")]
async fn in_a_terminal_only_what_is_missing_is_asked_for() {
    if !Path::new("/usr/bin/script").exists() {
        skipped::because("no script; install bsdutils");
        return;
    }
    let keystone = Keystone::start().await;
    prepare(&keystone).await;
    let mut variables = keystone.demo();
    variables.remove("OS_PASSWORD");
    variables.insert("OS_USERNAME", "careful".to_owned());
    let answer = keystone.home.path().join("answer");
    let line = format!("{PROGRAM} client-keystone-auth > {}", answer.display());
    let mut command = Command::new("/usr/bin/script");
    command
        .env_clear()
        .env("HOME", keystone.home.path())
        .env("TERM", "dumb");
    command.envs(&variables).args(["-qefc", &line, "/dev/null"]);
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn().unwrap();
    let (mut keys, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut seen = String::new();
    for (question, typed) in [
        ("Password: ", "secret".to_owned()),
        ("One-time password of careful: ", passcode()),
    ] {
        while !seen.ends_with(question) {
            let mut piece = [0; 1024];
            let read = tokio::time::timeout(Duration::from_secs(60), screen.read(&mut piece));
            let count = read
                .await
                .unwrap_or_else(|_| panic!("no {question:?}: {seen}"))
                .unwrap();
            assert!(count > 0, "no {question:?}: {seen}");
            seen.push_str(&String::from_utf8_lossy(&piece[..count]));
        }
        keys.write_all(format!("{typed}\r").as_bytes())
            .await
            .unwrap();
        keys.flush().await.unwrap();
    }
    let ended = tokio::time::timeout(Duration::from_secs(60), child.wait()).await;
    assert!(ended.unwrap().unwrap().success(), "{seen}");
    forms::check("client-keystone-auth", &seen.replace('\r', ""));
    let text = std::fs::read_to_string(&answer).unwrap();
    let text: Value = serde_json::from_str(&text).unwrap();
    let described = keystone
        .described(text["status"]["token"].as_str().unwrap())
        .await;
    assert_eq!(described["user"]["name"], "careful");
    assert!(
        !seen.contains("secret"),
        "nobody sees what is typed: {seen}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_terminal_a_person_logs_in_with_a_browser() {
    if !Path::new("/usr/bin/script").exists() {
        skipped::because("no script; install bsdutils");
        return;
    }
    let keystone = Keystone::start().await;
    prepare(&keystone).await;
    let discovery = format!(
        "{}/identity/oidc/.well-known/openid-configuration",
        keystone.root
    );
    let answer = keystone.home.path().join("answer");
    let line = format!("{PROGRAM} client-keystone-auth > {}", answer.display());
    let mut command = Command::new("/usr/bin/script");
    command
        .env_clear()
        .env("HOME", keystone.home.path())
        .env("TERM", "dumb");
    command.envs(variables(&[
        ("OS_AUTH_URL", &keystone.url()),
        ("OS_AUTH_TYPE", "v3oidcdeviceauthz"),
        ("OS_IDENTITY_PROVIDER", "idp"),
        ("OS_PROTOCOL", "openid"),
        ("OS_CLIENT_ID", "kubectl"),
        ("OS_DISCOVERY_ENDPOINT", &discovery),
        ("OS_PROJECT_NAME", "demo"),
    ]));
    command.args(["-qefc", &line, "/dev/null"]);
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn().unwrap();
    let mut screen = child.stdout.take().unwrap();
    let mut seen = String::new();
    while !seen.contains("with the code") || !seen.ends_with('\n') {
        let mut piece = [0; 1024];
        let read = tokio::time::timeout(Duration::from_secs(60), screen.read(&mut piece));
        let count = read.await.unwrap().unwrap();
        assert!(count > 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&piece[..count]));
    }
    let code = seen
        .split("user_code=")
        .nth(1)
        .unwrap()
        .lines()
        .next()
        .unwrap();
    let consent = json!({"user_code": code.trim(), "account": "alice"});
    keystone
        .ask(Method::POST, "/_simulator/oidc/devices", consent)
        .await;
    let ended = tokio::time::timeout(Duration::from_secs(60), child.wait()).await;
    assert!(ended.unwrap().unwrap().success(), "{seen}");
    forms::check("client-keystone-auth", &seen.replace('\r', ""));
    let text: Value = serde_json::from_str(&std::fs::read_to_string(&answer).unwrap()).unwrap();
    let described = keystone
        .described(text["status"]["token"].as_str().unwrap())
        .await;
    assert_eq!(described["user"]["name"], "alice");
}
