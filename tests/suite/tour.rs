//! The commands of docs/simulated-cluster.md, run as they are written there.

use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

use crate::process::{LIMIT, kubectl, texts};

#[tokio::test(flavor = "multi_thread")]
async fn the_tour_of_the_simulated_cluster_works_as_it_is_written() {
    let Some(kubectl) = kubectl() else { return };
    if !Path::new("/usr/bin/openstack").exists() {
        skipped::because("no openstack client; install python3-openstackclient");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/simulated-cluster.md");
    let page = std::fs::read_to_string(page).unwrap();
    let commands: Vec<&str> = page
        .split("```sh\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    for step in [
        "quota set",
        "server delete",
        "kubectl scale",
        "patch kubeadmcontrolplane",
    ] {
        assert!(
            commands.iter().any(|block| block.contains(step)),
            "a step with `{step}`"
        );
    }
    let programs = home.path().join("bin");
    std::fs::create_dir(&programs).unwrap();
    for (name, program) in [
        ("ferrostack", Path::new(env!("CARGO_BIN_EXE_ferrostack"))),
        ("kubectl", kubectl.as_path()),
    ] {
        std::os::unix::fs::symlink(program.canonicalize().unwrap(), programs.join(name)).unwrap();
    }
    let run = async |script: &str| {
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", script])
            .env_clear()
            .env("HOME", home.path())
            .env("PATH", format!("{}:/usr/bin:/bin", programs.display()))
            .current_dir(home.path())
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        tokio::time::timeout(LIMIT, output).await.unwrap().unwrap()
    };
    let output = run(&commands.concat()).await;
    let (out, err) = texts(&output);
    if !output.status.success() {
        run("ferrostack down").await;
    }
    assert!(output.status.success(), "{out}\n{err}");
    for expected in [
        "Cluster/demo",
        "daemonset.apps/kube-proxy condition met",
        "deployment.apps/coredns condition met",
        "FailedScheduling",
        "quota of instances: 4 of 4 used",
        "deleted by somebody else",
        "Server Version: v1.34.3",
        "cluster demo is gone",
        "stopped; ",
    ] {
        assert!(out.contains(expected), "{expected}: {out}");
    }
}
