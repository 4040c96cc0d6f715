//! Proxies in the environment, and what the log shows of what goes over connections.

use std::path::Path;
use std::process::Stdio;

use api::k8s_openapi::api::core::v1::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::api::{Api, ListParams};

use crate::process::{self, eventually, ferrostack, run, texts};

/// A proxy that nobody answers at.
const NOBODY: &str = "http://127.0.0.1:9";

#[tokio::test]
async fn a_proxy_in_the_environment_does_not_stand_before_what_runs_on_this_machine() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let data = data.to_str().unwrap();
    let proxies = [
        ("HTTPS_PROXY", NOBODY),
        ("http_proxy", NOBODY),
        ("ALL_PROXY", NOBODY),
    ];
    let up = ferrostack(home.path()).envs(proxies);
    let args = [
        "up",
        "--data-dir",
        data,
        "--exit-when-ready",
        "--timeout",
        "5m",
    ];
    let output = up.args(args).output().await;
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
}

#[tokio::test]
async fn a_proxy_is_used_for_other_machines_and_not_for_those_of_no_proxy() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("kubeconfig");
    let text = "apiVersion: v1\nkind: Config\ncurrent-context: x\n\
        clusters: [{name: c, cluster: {server: \"https://api.invalid:6443\"}}]\n\
        users: [{name: u, user: {token: t}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n";
    std::fs::write(&file, text).unwrap();
    let args = ["get", "clusters", "--kubeconfig", file.to_str().unwrap()];
    let asked = async |no_proxy: &'static str| {
        let command =
            ferrostack(home.path()).envs([("HTTPS_PROXY", NOBODY), ("NO_PROXY", no_proxy)]);
        texts(&command.args(args).output().await).1
    };
    let through = asked("").await;
    assert!(
        through.to_lowercase().contains("connection refused"),
        "{through}"
    );
    let directly = asked("10.0.0.0/8,.invalid").await;
    assert!(directly.contains("failed to lookup address"), "{directly}");
}

/// Starts a simulated cloud that logs all that it can to `log`.
fn tracing(home: &Path, data: &str, log: &Path) -> tokio::process::Child {
    let log = std::fs::File::create(log).unwrap();
    let mut command = tokio::process::Command::new(process::PROGRAM);
    command.env_clear().env("HOME", home).kill_on_drop(true);
    let args = ["openstack", "up", "--data-dir", data, "--log", "trace"];
    let command = command.args(args).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(log).spawn().unwrap()
}

#[tokio::test]
async fn no_password_of_a_cloud_is_in_its_log_at_any_level() {
    let home = tempfile::tempdir().unwrap();
    let (path, file) = (home.path().join("cluster"), home.path().join("log"));
    let data = path.to_str().unwrap();
    let mut up = tracing(home.path(), data, &file);
    eventually("the cloud is ready", || async {
        let status = run(home.path(), &["openstack", "status", "--data-dir", data]).await;
        texts(&status)
            .0
            .starts_with("cloud cloud, release 2026.1: ready\n")
            .then_some(())
    })
    .await;
    let client = process::client(&path.join("kubeconfig")).await;
    let secrets: Api<Secret> = Api::namespaced(client, "openstack");
    let secrets = secrets.list(&ListParams::default()).await.unwrap();
    up.kill().await.unwrap();
    let log = std::fs::read(&file).unwrap();
    let log = String::from_utf8_lossy(&log);
    assert!(log.lines().count() > 100);
    let mut passwords = 0;
    for secret in secrets {
        for (key, value) in secret.data.unwrap_or_default() {
            let Ok(value) = String::from_utf8(value.0) else {
                continue;
            };
            // Passwords and keys of one line; configuration has more, and names what is no secret.
            if value.contains(['\n', ' ', '/', ':']) || value.len() < 16 {
                continue;
            }
            passwords += 1;
            let hex = |upper: bool| -> String {
                let digits = value.bytes().map(|byte| match upper {
                    true => format!("{byte:02X}"),
                    false => format!("{byte:02x}"),
                });
                digits.collect()
            };
            for form in [
                value.clone(),
                STANDARD.encode(&value),
                hex(false),
                hex(true),
            ] {
                assert!(!log.contains(&form), "the value of {key} is in the log");
            }
        }
    }
    assert!(passwords > 5, "{passwords}");
}
