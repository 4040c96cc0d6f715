//! What `up` prints once everything is ready: how to reach it.

use serde_json::{Value, json};

use crate::data_dir::DataDir;
use crate::simulated;

/// The values in the printed lines.
pub(super) struct Welcome<'a> {
    /// How the user calls this program.
    pub(super) program: &'a str,
    pub(super) data: &'a DataDir,
    /// URL of the simulated cloud, if there is one.
    pub(super) simulator: Option<&'a str>,
}

impl Welcome<'_> {
    /// For people: a heading, and commands to copy.
    pub(super) fn lines(&self, clusters: &[&str], seconds: f64) -> Vec<String> {
        let file = |name: &str| self.data.file(name).display().to_string();
        let (program, kubeconfig) = (self.program, file("kubeconfig"));
        let mut lines = vec![
            String::new(),
            format!("Ready after {seconds:.1} s: {}", clusters.join(", ")),
            String::new(),
            format!("  Management API    kubectl --kubeconfig {kubeconfig} get clusters,machines"),
        ];
        // One cluster shows the way to all of them.
        if let Some(first) = clusters.first() {
            lines.extend([
                format!(
                    "  Workload cluster  {program} get kubeconfig {first} > {first}.kubeconfig"
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
        lines
    }

    /// For machines: one event with the field `ready`.
    pub(super) fn event(&self, clusters: &[&str], seconds: f64) -> Value {
        json!({
            "elapsedSeconds": seconds,
            "ready": clusters,
            "kubeconfig": self.data.file("kubeconfig").display().to_string(),
            "simulatedOpenStack": self.simulator,
        })
    }
}
