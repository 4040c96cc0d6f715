//! `openstack up --on this-machine`: the image of the release, and a Kubernetes of one node, by the scripts of a
//! checkout. Only the node's network namespaces know the addresses of the node; the ports of the cloud are forwarded
//! from a loopback address of the host, used in the public URLs.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::connect::quoted_text;
use crate::environment::Environment;

/// Scripts that make the image of a release, and the node.
const IMAGE: &str = "images/build";
const NODE: &str = "tests/kubernetes/node";
/// Variable with the directory of the node's state, and its default.
const STATE: (&str, &str) = ("FERROSTACK_NODE_STATE", "target/node");

/// Address of the cloud on the host: unused by other programs with such ports, and no name with another address in a
/// Pod.
const HOST: &str = "127.1.0.1";
/// The address of the node (tests/kubernetes/nodes/machines.sh).
const ADDRESS: &str = "10.250.0.11";

/// Defaults for parameters of a cloud on this machine: servers become ACTIVE, external networks are possible, and
/// clients on the host reach the cloud.
pub(super) fn defaults() -> Value {
    json!({
        "network": {"physical": [{"name": "public"}]},
        "compute": {"driver": "Fake", "fake": {"hypervisors": 2}},
        "exposure": {"mode": "Edge", "host": HOST, "addresses": [ADDRESS]},
    })
}

/// Kubeconfig of the node of this machine.
///
/// # Errors
/// If there is no checkout.
pub(super) fn kubeconfig(environment: &Environment) -> anyhow::Result<PathBuf> {
    Ok(Machine::from_environment(environment)?.kubeconfig)
}

/// This machine with the scripts of a checkout.
struct Machine {
    checkout: PathBuf,
    /// Kubeconfig of the node.
    kubeconfig: PathBuf,
}

/// Makes the missing parts of the release's image and the node, and forwards the ports of the cloud for the default
/// host. Returns the kubeconfig of the node. `filled` has the fields set by defaults.
///
/// # Errors
/// Without a checkout or root, the steps to do instead. If a script fails, the name of the script.
pub(super) async fn prepared(
    spec: &Value,
    filled: &[String],
    environment: &Environment,
    note: &mut dyn FnMut(&str),
) -> anyhow::Result<PathBuf> {
    let machine = Machine::from_environment(environment)?;
    let commands = commands(spec)?;
    if !rustix::process::geteuid().is_root() {
        bail!(
            "{}",
            machine.by_hand(&commands, filled, &environment.program)
        );
    }
    if !filled.is_empty() {
        note(&format!("defaults on this machine: {}", filled.join(" ")));
    }
    for words in commands {
        note(&words.join(" "));
        machine.run(&words).await?;
    }
    Ok(machine.kubeconfig)
}

impl Machine {
    fn from_environment(environment: &Environment) -> anyhow::Result<Self> {
        let here = &environment.working_dir;
        let has_scripts = |it: &&Path| [IMAGE, NODE].iter().all(|path| it.join(path).is_file());
        let Some(checkout) = here.ancestors().find(has_scripts) else {
            bail!(
                "--on this-machine runs {IMAGE} and {NODE} of a checkout of Ferrostack, in which {} is not: change to one, or name a cluster with --kubeconfig or --context",
                here.display()
            );
        };
        let state = match environment.non_empty(STATE.0) {
            Some(state) => here.join(state),
            None => checkout.join(STATE.1),
        };
        Ok(Self {
            checkout: checkout.to_owned(),
            kubeconfig: state.join("kubeconfig"),
        })
    }

    /// Steps for a user who is not root.
    fn by_hand(&self, commands: &[Vec<String>], filled: &[String], program: &str) -> String {
        let mut words = format!(
            "--on this-machine needs root: nodes are namespaces, and images are made of packages. Run these in {}:",
            self.checkout.display()
        );
        for command in commands {
            let _ = write!(words, "\n  sudo {}", command.join(" "));
        }
        let _ = write!(
            words,
            "\nand then:\n  {program} openstack up --kubeconfig {}",
            quoted_text(&self.kubeconfig.display().to_string())
        );
        for field in filled {
            let _ = write!(words, " --set {}", quoted_text(field));
        }
        words
    }

    async fn run(&self, words: &[String]) -> anyhow::Result<()> {
        let (program, arguments) = words.split_first().context("there is no command")?;
        // It takes minutes and prints its steps, which are no part of the output that programs read.
        let done = Command::new(self.checkout.join(program))
            .args(arguments)
            .current_dir(&self.checkout)
            .stdin(Stdio::null())
            .stdout(Stdio::from(std::io::stderr()))
            .kill_on_drop(true)
            .status()
            .await;
        let status = done.with_context(|| format!("cannot run {program}"))?;
        if !status.success() {
            bail!("{} failed: {status}", words.join(" "));
        }
        Ok(())
    }
}

/// Commands for a cloud with these parameters, run in the directory of the checkout.
fn commands(spec: &Value) -> anyhow::Result<Vec<Vec<String>>> {
    let release = spec["release"].as_str();
    let release = release.context("the parameters have no release")?;
    let images = format!("target/images/openstack/{release}");
    let words = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    let mut commands = vec![
        words(&[IMAGE, "--release", release]),
        words(&[NODE, "up", "--images", &images]),
    ];
    if spec["exposure"]["host"] == HOST {
        let mut forward = words(&[NODE, "forward", HOST]);
        forward.extend(deployer::edge_ports().map(|port| port.to_string()));
        commands.push(forward);
    }
    Ok(commands)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A checkout whose scripts note that they ran.
    fn checkout(exit: i32) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for path in [IMAGE, NODE] {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let script =
                format!("#!/bin/sh\necho noise\necho \"${{0##*/}} $*\" >>log\nexit {exit}\n");
            std::fs::write(&path, script).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        directory
    }

    fn within(directory: &Path) -> Environment {
        let mut environment = Environment::with(&[]);
        environment.working_dir = directory.to_owned();
        environment
    }

    #[tokio::test]
    async fn image_and_node_are_made_one_after_the_other() {
        let directory = checkout(0);
        let deep = directory.path().join("images");
        let machine = Machine::from_environment(&within(&deep)).unwrap();
        let mut spec = defaults();
        spec["release"] = "zed".into();
        for words in commands(&spec).unwrap() {
            machine.run(&words).await.unwrap();
        }
        let log = std::fs::read_to_string(directory.path().join("log")).unwrap();
        assert_eq!(
            log,
            "build --release zed\nnode up --images target/images/openstack/zed\n\
             node forward 127.1.0.1 9876 5000 6080 443 8774 8778 9292 9696 8776\n"
        );
        spec["exposure"]["host"] = "cloud.test".into();
        assert_eq!(commands(&spec).unwrap().len(), 2);
        let state = directory.path().join("target/node/kubeconfig");
        assert_eq!(machine.kubeconfig, state);
    }

    #[tokio::test]
    async fn a_script_that_fails_is_named() {
        let directory = checkout(3);
        let machine = Machine::from_environment(&within(directory.path())).unwrap();
        let commands = commands(&json!({"release": "zed"})).unwrap();
        let error = machine.run(&commands[0]).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "images/build --release zed failed: exit status: 3"
        );
    }

    #[test]
    fn who_is_not_root_or_in_no_checkout_is_told_what_to_do() {
        let directory = checkout(0);
        let machine = Machine::from_environment(&within(directory.path())).unwrap();
        let commands = commands(&json!({"release": "2026.1"})).unwrap();
        let filled = [r#"compute={"driver":"Fake"}"#.to_owned()];
        let words = machine.by_hand(&commands, &filled, "ferrostack");
        assert!(
            words.ends_with(r#"kubeconfig --set 'compute={"driver":"Fake"}'"#),
            "{words}"
        );
        for line in [
            "\n  sudo images/build --release 2026.1\n",
            "\n  sudo tests/kubernetes/node up --images target/images/openstack/2026.1\n",
            "\n  ferrostack openstack up --kubeconfig /",
        ] {
            assert!(words.contains(line), "{words}");
        }
        let outside = tempfile::tempdir().unwrap();
        let error = Machine::from_environment(&within(outside.path()))
            .err()
            .unwrap();
        assert!(
            error
                .to_string()
                .contains("name a cluster with --kubeconfig"),
            "{error}"
        );
    }
}
