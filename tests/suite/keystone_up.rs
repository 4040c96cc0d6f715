//! `up --keystone-auth`: users of the simulated cloud are users of its clusters, with kubectl and the exec plugin.

use std::path::Path;

use serde_json::Value;

use crate::main_job::workload_client;
use crate::process::{Checked, Up, ferrostack, kubectl, texts};

/// A kubeconfig for the API server of another one, whose user logs in with Keystone.
async fn kubeconfig(home: &Path, of: &Path, name: &str) -> String {
    let file = home.join(format!("{name}.keystone")).display().to_string();
    let output = ferrostack(home)
        .args(["generate", "kubeconfig", "--keystone", "--cache"])
        .args(["--os-cloud", "simulated", "--write-to", &file])
        .arg("--cluster-of")
        .arg(of)
        .env("OS_CLIENT_CONFIG_FILE", home.join("data/clouds.yaml"))
        .output()
        .await;
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{out}{err}");
    file
}

#[tokio::test(flavor = "multi_thread")]
async fn users_of_the_cloud_are_users_of_its_clusters() {
    let Some(kubectl) = kubectl() else { return };
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let small = [
        "--control-plane-machine-count",
        "1",
        "--worker-machine-count",
        "1",
    ];
    let mut up = Up::start(home, &[&["--keystone-auth"][..], &small].concat(), &[]);
    up.ready().await;
    workload_client(home).await;
    for name in ["data/kubeconfig", "workload.kubeconfig"] {
        let short = name.trim_end_matches("/kubeconfig");
        let config = kubeconfig(home, &home.join(name), short).await;
        let call = async |args: &[&str]| {
            let output = Checked::of(tokio::process::Command::new(&kubectl))
                .args(["--kubeconfig", &config])
                .args(args)
                .env("HOME", home)
                .env("OS_CLIENT_CONFIG_FILE", home.join("data/clouds.yaml"))
                .output()
                .await;
            let (out, err) = texts(&output);
            (output.status.success(), out, err)
        };
        let (_, out, err) = call(&["auth", "whoami", "-o", "json"]).await;
        let review: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
        let user = &review["status"]["userInfo"];
        assert_eq!(user["username"], "demo", "{user}");
        let project = &user["extra"]["alpha.kubernetes.io/identity/project/name"];
        assert_eq!(project[0], "demo", "{user}");
        // The policy that `generate keystone-auth` prints.
        let (done, _, err) = call(&["get", "pods", "-A"]).await;
        assert!(done, "{name}: {err}");
        for refused in ["secrets", "nodes"] {
            let (done, _, err) = call(&["get", refused]).await;
            assert!(
                !done && err.contains("is forbidden: User \"demo\""),
                "{name}: {err}"
            );
        }
        let (done, _, err) = call(&["get", "pods", "--token", "no-token-of-keystone"]).await;
        assert!(!done && err.contains("Unauthorized"), "{name}: {err}");
    }
    up.stop().await;
}
