//! Output of `up` once everything is ready: commands to connect.

use std::path::Path;

use serde_json::{Value, json};

use crate::connect::{self, quoted};
use crate::endpoints::resume;
use crate::environment::Environment;
use crate::simulated;

/// Values in the printed lines.
pub(crate) struct Welcome<'a> {
    pub(crate) environment: &'a Environment,
    /// The data directory, absolute.
    pub(crate) data: &'a Path,
    /// The URL of the simulated cloud, if there is one.
    pub(crate) simulator: Option<&'a str>,
    /// True if `up` exits after this output.
    pub(crate) exits: bool,
}

/// Namespace and name of a cluster.
pub(crate) type Name<'a> = (&'a str, &'a str);

impl Welcome<'_> {
    /// For users: a heading, and commands to copy.
    pub(crate) fn lines(&self, clusters: &[Name<'_>], seconds: f64) -> Vec<String> {
        let names: Vec<&str> = clusters.iter().map(|(_, name)| *name).collect();
        let mut lines = vec![
            String::new(),
            format!("Ready after {seconds:.1} s: {}", names.join(", ")),
            String::new(),
        ];
        if self.exits {
            lines.push(format!(
                "  Nothing runs now. Go on with: {}",
                resume(self.environment, self.data)
            ));
        } else {
            lines.extend(self.commands(clusters));
        }
        lines
    }

    /// For users without a cluster: the command that creates one, and those that connect.
    pub(crate) fn first_steps(&self) -> Vec<String> {
        let program = &self.environment.program;
        let data_dir = connect::data_dir_flag(self.environment, self.data);
        let mut lines = vec![
            format!(
                "There is no cluster. Create one: {program} generate cluster NAME{data_dir} | {program} apply{data_dir} -f -"
            ),
            String::new(),
        ];
        lines.extend(self.commands(&[]));
        lines
    }

    /// Commands to connect to the running services.
    pub(crate) fn commands(&self, clusters: &[Name<'_>]) -> Vec<String> {
        let file = |name: &str| quoted(&self.data.join(name));
        let program = &self.environment.program;
        let data_dir = connect::data_dir_flag(self.environment, self.data);
        let all = match clusters
            .iter()
            .all(|(namespace, _)| *namespace == "default")
        {
            true => "",
            false => " -A",
        };
        let mut lines = vec![format!(
            "  Management API    kubectl --kubeconfig {} get clusters,machines{all}",
            file("kubeconfig")
        )];
        // Commands for the first cluster only; those for the others are analogous.
        if let Some((namespace, first)) = clusters.first() {
            let namespace = match *namespace {
                "default" => String::new(),
                other => format!(" -n {other}"),
            };
            lines.extend([
                format!(
                    "  Workload cluster  {program} get kubeconfig {first}{namespace}{data_dir} --write-to {first}.kubeconfig"
                ),
                format!("                    kubectl --kubeconfig {first}.kubeconfig get nodes"),
            ]);
        }
        if self.simulator.is_some() {
            lines.push(format!(
                "  OpenStack         OS_CLIENT_CONFIG_FILE={} openstack --os-cloud {} server list",
                file("clouds.yaml"),
                simulated::CLOUD
            ));
        }
        match self.environment.columns() {
            Some(width) => fitted(lines, width),
            None => lines,
        }
    }

    /// For machines: one event with the field `ready`.
    pub(crate) fn event(&self, clusters: &[Name<'_>], seconds: f64) -> Value {
        let names: Vec<&str> = clusters.iter().map(|(_, name)| *name).collect();
        json!({
            "elapsedSeconds": seconds,
            "ready": names,
            "kubeconfig": self.data.join("kubeconfig").display().to_string(),
            "simulatedOpenStack": self.simulator,
        })
    }
}

/// The width of a label with its margins.
const LABEL: usize = 20;

/// Puts each label on a line of its own if a command does not fit beside it: a terminal would break the command below the labels.
fn fitted(lines: Vec<String>, width: usize) -> Vec<String> {
    if lines.iter().all(|line| terminal::width(line) <= width) {
        return lines;
    }
    let mut fitted = Vec::new();
    for line in lines {
        let (label, command) = line.split_at_checked(LABEL).unwrap_or((line.as_str(), ""));
        if !label.trim().is_empty() {
            fitted.push(label.trim_end().to_owned());
        }
        fitted.push(format!("    {command}"));
    }
    fitted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_does_not_fit_beside_its_label_is_below() {
        let lines = || {
            vec![
                "  Workload cluster  get kubeconfig".to_owned(),
                format!("{:20}get nodes", ""),
            ]
        };
        assert_eq!(fitted(lines(), 34), lines());
        assert_eq!(
            fitted(lines(), 33),
            ["  Workload cluster", "    get kubeconfig", "    get nodes"]
        );
    }

    fn environment() -> Environment {
        let mut environment = Environment::with(&[("HOME", "/home/me")]);
        environment.program = "/opt/ferrostack".to_owned();
        environment
    }

    fn welcome(environment: &Environment, exits: bool) -> Welcome<'_> {
        Welcome {
            environment,
            data: Path::new("/my data"),
            simulator: Some("http://127.0.0.1:1"),
            exits,
        }
    }

    #[test]
    fn commands_carry_the_data_directory_and_the_namespace() {
        let text = welcome(&environment(), false)
            .lines(&[("foo", "demo")], 2.0)
            .join("\n");
        for line in [
            "Ready after 2.0 s: demo",
            "kubectl --kubeconfig '/my data/kubeconfig' get clusters,machines -A",
            "/opt/ferrostack get kubeconfig demo -n foo --data-dir '/my data' --write-to demo.kubeconfig",
            "OS_CLIENT_CONFIG_FILE='/my data/clouds.yaml' openstack",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }

    #[test]
    fn the_data_directory_is_named_only_where_it_is_not_the_default_one() {
        let environment = environment();
        let data = Path::new("/home/me/.local/share/ferrostack");
        let text = |environment: &Environment| {
            let welcome = Welcome {
                data,
                ..welcome(environment, false)
            };
            welcome.lines(&[("default", "demo")], 2.0).join("\n")
        };
        let default = text(&environment);
        assert!(!default.contains("--data-dir"), "{default}");
        let command = "/opt/ferrostack get kubeconfig demo --write-to demo.kubeconfig";
        assert!(default.contains(command), "{default}");
        // The variable names another one.
        let variables = [("HOME", "/home/me"), ("FERROSTACK_DATA_DIR", "/other")];
        let environment = Environment::with(&variables);
        let other = text(&environment);
        assert!(other.contains("--data-dir /home/me/.local"), "{other}");
    }

    #[test]
    fn without_a_cluster_the_first_command_creates_one() {
        let environment = environment();
        let text = welcome(&environment, false).first_steps().join("\n");
        let command = "/opt/ferrostack generate cluster NAME --data-dir '/my data' | /opt/ferrostack apply --data-dir '/my data' -f -";
        assert!(text.contains(command), "{text}");
        assert!(!text.contains("get kubeconfig"), "{text}");
    }

    #[test]
    fn what_exits_prints_no_command_that_needs_it() {
        let environment = environment();
        let text = welcome(&environment, true)
            .lines(&[("default", "demo")], 2.0)
            .join("\n");
        assert!(!text.contains("kubectl"), "{text}");
        assert!(
            text.contains("Go on with: /opt/ferrostack up --data-dir '/my data'"),
            "{text}"
        );
    }

    #[test]
    fn what_exits_goes_on_with_the_cloud_and_the_guest_runner_that_it_was_used_with() {
        let environment = environment();
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path();
        for (endpoints, flags) in [
            (r#"{"openstack": "mine"}"#, "--cloud mine"),
            (
                r#"{"cloud": "127.0.0.1:1", "guestRunner": "/opt/a runner"}"#,
                "--guest-runner '/opt/a runner'",
            ),
        ] {
            std::fs::write(data.join("endpoints.json"), endpoints).unwrap();
            let welcome = Welcome {
                data,
                ..welcome(&environment, true)
            };
            let text = welcome.lines(&[("default", "demo")], 2.0).join("\n");
            let command = format!(
                "Go on with: /opt/ferrostack up {flags} --data-dir {}",
                data.display()
            );
            assert!(text.contains(&command), "{command}\n{text}");
        }
    }
}
