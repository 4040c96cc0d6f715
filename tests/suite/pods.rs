//! Pods of a workload cluster as kubectl reaches them: logs of what the machine did, and a port that leads to its API server.

use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::main_job::workload_client;
use crate::process::{Checked, Up, kubectl, texts};

struct Kubectl {
    program: PathBuf,
    home: PathBuf,
}

impl Kubectl {
    fn command(&self, args: &[&str]) -> Checked {
        let kubeconfig = self.home.join("workload.kubeconfig");
        let command = Checked::of(Command::new(&self.program)).arg("--kubeconfig");
        command.arg(kubeconfig).args(args).env("HOME", &self.home)
    }

    /// What a command that succeeds prints.
    async fn call(&self, args: &[&str]) -> String {
        let output = self.command(args).output().await;
        let (out, err) = texts(&output);
        assert!(output.status.success(), "kubectl {args:?}: {out}{err}");
        out
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_reads_logs_of_the_control_plane_and_reaches_its_api_server_through_a_pod() {
    let Some(program) = kubectl() else { return };
    let home = tempfile::tempdir().unwrap();
    let counts = [
        "--control-plane-machine-count",
        "1",
        "--worker-machine-count",
        "1",
    ];
    let mut up = Up::start(home.path(), &counts, &[]);
    up.ready().await;
    workload_client(home.path()).await;
    let kubectl = Kubectl {
        program,
        home: Path::new(home.path()).to_owned(),
    };
    let named = "--selector=component=kube-apiserver";
    let pods = ["-n", "kube-system", "get", "pods", named, "-o", "name"];
    let pod = kubectl.call(&pods).await.trim().to_owned();
    assert!(pod.starts_with("pod/kube-apiserver-"), "{pod}");

    let log = kubectl.call(&["-n", "kube-system", "logs", &pod]).await;
    assert!(log.starts_with("kernel: Linux version "), "{log}");
    assert!(
        log.contains("[kubelet-start] Starting the kubelet"),
        "{log}"
    );
    let tail = [
        "-n",
        "kube-system",
        "logs",
        &pod,
        "--tail=2",
        "--timestamps",
    ];
    let tail = kubectl.call(&tail).await;
    assert_eq!(tail.lines().count(), 2, "{tail}");
    for line in tail.lines() {
        let time = line.split(' ').next().unwrap_or_default();
        assert!(time.parse::<jiff::Timestamp>().is_ok(), "{line}");
    }

    let forward = [
        "-n",
        "kube-system",
        "port-forward",
        &pod,
        ":6443",
        "--address=127.0.0.1",
    ];
    let mut forward = kubectl.command(&forward).start();
    let says_where = |line: &str| line.starts_with("Forwarding from ");
    let line = forward.line("that says where", says_where).await;
    let at = line.trim_start_matches("Forwarding from ");
    let server = format!("--server=https://{}", at.split(' ').next().unwrap());
    let nodes = ["get", "nodes", "-o", "name"];
    let through = kubectl
        // The certificate has the names that kubeadm gives it, and 127.0.0.1 is none of them.
        .call(
            &[
                &[server.as_str(), "--tls-server-name=kubernetes"],
                &nodes[..],
            ]
            .concat(),
        )
        .await;
    assert_eq!(through, kubectl.call(&nodes).await);
    assert_eq!(through.lines().count(), 2);
    forward.child.kill().await.unwrap();
    up.stop().await;
}
