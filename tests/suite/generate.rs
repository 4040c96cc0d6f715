//! `generate cluster` with a cloud: what it fills in, what it asks, and the command that gives the same again.

use std::path::Path;
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::cloud::TestCloud;
use crate::forms;
use crate::process::{LIMIT, PROGRAM, ferrostack, texts};

const ARGS: [&str; 5] = ["generate", "cluster", "x", "--cloud", "simulated"];
/// No subnet of a new cloud has a name server that it could be taken from.
const NAMESERVER: (&str, &str) = ("OPENSTACK_DNS_NAMESERVERS", "9.9.9.9");

/// Runs the command where nobody answers questions.
async fn generate(home: &Path, args: &[&str]) -> (bool, String, String) {
    let output = ferrostack(home)
        .args(ARGS)
        .args(args)
        .env("OS_CLIENT_CONFIG_FILE", home.join("clouds.yaml"))
        .envs([NAMESERVER])
        .output()
        .await;
    let (out, errors) = texts(&output);
    (output.status.success(), out, errors)
}

/// Runs a command of a shell; `input` is typed into its terminal.
pub(crate) async fn shell(home: &Path, command: &str, input: Option<&str>) -> String {
    let mut process = match input {
        None => Command::new("/bin/sh"),
        Some(_) => Command::new("script"),
    };
    match input {
        None => process.args(["-c", command]),
        Some(_) => process.args(["-qec", command, "/dev/null"]),
    };
    let mut child = process
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .env("SHELL", "/bin/sh")
        .env("OS_CLIENT_CONFIG_FILE", home.join("clouds.yaml"))
        .envs([NAMESERVER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(input.unwrap_or_default().as_bytes())
        .await
        .unwrap();
    let output = tokio::time::timeout(LIMIT, child.wait_with_output());
    let output = output.await.unwrap().unwrap();
    drop(stdin);
    let (out, errors) = texts(&output);
    // A terminal writes a line break as two characters.
    let out = out.replace("\r\n", "\n");
    forms::check_screen(command, &out);
    forms::check_screen(command, &errors);
    assert!(output.status.success(), "{command}: {out}{errors}");
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_cloud_has_is_filled_in_and_can_be_repeated() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let cloud = TestCloud::start(home).await;
    let external = cloud.external_network().await;
    let version = ["--kubernetes-version", "v1.34.2"];
    let (success, manifests, notes) = generate(home, &version).await;
    assert!(success, "{notes}");
    for line in [
        "filled in from cloud simulated of ",
        "  the credentials, from clouds.yaml",
        "  OPENSTACK_IMAGE_NAME=ubuntu-2404-kube-v1.34.2  (the image with v1.34.2 in its name)",
        "  OPENSTACK_CONTROL_PLANE_MACHINE_FLAVOR=m1.medium  (the smallest with ",
        "  OPENSTACK_NODE_MACHINE_FLAVOR=m1.small  (the smallest with ",
        "  OPENSTACK_SSH_KEY_NAME=''  (you have no key pair",
    ] {
        let found = notes.lines().any(|notes| notes.starts_with(line));
        assert!(found, "{line}\n{notes}");
    }
    assert!(
        notes.contains(&format!("OPENSTACK_EXTERNAL_NETWORK_ID={external}  (")),
        "{notes}"
    );
    assert!(!notes.contains("secret"), "{notes}");
    assert!(manifests.contains(&external) && manifests.contains("kind: KubeadmControlPlane"));

    let repeat = notes.lines().last().unwrap();
    assert!(repeat.contains(" --kubernetes-version v1.34.2"), "{repeat}");
    assert_eq!(shell(home, repeat, None).await, manifests);

    // What the list says is where these values come from.
    let (_, list, notes) = generate(home, &["--list-variables"]).await;
    assert!(notes.is_empty(), "{notes}");
    for (name, text) in [
        (
            "OPENSTACK_NODE_MACHINE_FLAVOR",
            "m1.small  (cloud simulated)",
        ),
        ("OPENSTACK_DNS_NAMESERVERS", "9.9.9.9  (environment)"),
        ("KUBERNETES_VERSION", "v1.34.2  (cloud simulated)"),
    ] {
        let line = list.lines().find(|line| line.contains(name)).unwrap();
        assert!(line.ends_with(text), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_open_is_an_error_with_the_choices_or_a_question() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let _cloud = TestCloud::start(home).await;
    let output = ferrostack(home)
        .args(ARGS)
        .env("OS_CLIENT_CONFIG_FILE", home.join("clouds.yaml"))
        .output()
        .await;
    let (out, errors) = texts(&output);
    assert!(!output.status.success() && out.is_empty(), "{out}");
    assert!(
        errors.starts_with("error: cloud `simulated` leaves a choice: "),
        "{errors}"
    );
    let line = "OPENSTACK_DNS_NAMESERVERS: name server of the machines; no subnet has one";
    assert!(errors.contains(line), "{errors}");
    // Of versions the newest is taken, where nobody answers.
    assert!(!errors.contains("KUBERNETES_VERSION"), "{errors}");
    let (success, manifests, notes) = generate(home, &[]).await;
    assert!(success, "{notes}");
    assert!(manifests.contains("version: v1.34.2"), "{manifests}");
    let line = "  KUBERNETES_VERSION=v1.34.2  (the newest of 5 that images have; another one with --kubernetes-version)";
    assert!(notes.contains(line), "{notes}");

    if !Path::new("/usr/bin/script").exists() {
        skipped::because("no script (util-linux), which gives the command a terminal");
        return;
    }
    let command = format!("{PROGRAM} {} > {}/x.yaml", ARGS.join(" "), home.display());
    let screen = shell(home, &command, Some("2\n")).await;
    for text in [
        "Which Kubernetes version? there are 5 (KUBERNETES_VERSION)",
        "   2  v1.34.0",
        "OPENSTACK_IMAGE_NAME=ubuntu-2404-kube-v1.34.0",
        "KUBERNETES_VERSION=v1.34.0  (your answer)",
        "--kubernetes-version v1.34.0",
    ] {
        assert!(screen.contains(text), "{text}\n{screen}");
    }
    let manifests = std::fs::read_to_string(home.join("x.yaml")).unwrap();
    assert!(manifests.contains("version: v1.34.0"), "{manifests}");
}
