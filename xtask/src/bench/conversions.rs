//! `bench conversions`: a list of objects of the oldest version, from JSON to JSON of the stored version and back.
//!
//! The measured code is the function behind the conversion webhook, in a release build of this program.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};
use serde::Serialize;
use serde_json::{Value, json};

use super::machine;

/// Number of objects in the list.
const OBJECTS: usize = 1000;
/// Number of conversions, for the median.
const TIMES: usize = 9;
const OLDEST: &str = "infrastructure.cluster.x-k8s.io/v1alpha4";
const STORED: &str = "infrastructure.cluster.x-k8s.io/v1beta2";

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    machine: String,
    objects: usize,
    bytes: usize,
    /// From the oldest version to the stored one.
    up_milliseconds: f64,
    /// Back, with the preserved fields.
    down_milliseconds: f64,
}

/// Measures; a debug build runs a release build that measures.
pub(crate) fn run(root: &Path, json: bool) -> anyhow::Result<()> {
    if cfg!(debug_assertions) {
        let mut command = Command::new("cargo");
        command.args(["run", "--release", "--quiet", "--package", "xtask", "--"]);
        command.args(["bench", "conversions"]);
        if json {
            command.arg("--json");
        }
        let status = command.current_dir(root).status().context("cargo run")?;
        if !status.success() {
            bail!("the release build failed");
        }
        return Ok(());
    }
    let report = measured(OBJECTS)?;
    if json {
        crate::report(&serde_json::to_string_pretty(&report)?);
    } else {
        crate::report(&table(&report));
    }
    Ok(())
}

fn measured(objects: usize) -> anyhow::Result<Report> {
    let list: Vec<Value> = (0..objects).map(object).collect();
    let text = serde_json::to_string(&list)?;
    // The schemas are read once per process.
    let there = converted(&text, STORED)?.0;
    let mut up = Vec::new();
    let mut down = Vec::new();
    for _ in 0..TIMES {
        up.push(converted(&text, STORED)?.1);
        down.push(converted(&there, OLDEST)?.1);
    }
    Ok(Report {
        machine: machine(),
        objects,
        bytes: text.len(),
        up_milliseconds: median(&mut up),
        down_milliseconds: median(&mut down),
    })
}

/// List in a version, and the milliseconds of its conversion.
fn converted(text: &str, version: &str) -> anyhow::Result<(String, f64)> {
    let started = Instant::now();
    let list: Vec<Value> = serde_json::from_str(text)?;
    let list = list
        .into_iter()
        .map(|it| api::convert::convert(it, version));
    let list: Vec<Value> = list.collect::<Result<_, _>>()?;
    let text = serde_json::to_string(&list)?;
    Ok((text, started.elapsed().as_secs_f64() * 1e3))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Machine with networks, a port, a root volume and security groups, as in templates of v1alpha4.
fn object(number: usize) -> Value {
    json!({
        "apiVersion": OLDEST, "kind": "OpenStackMachine",
        "metadata": {"name": format!("machine-{number}"), "namespace": "default",
            "labels": {"cluster.x-k8s.io/cluster-name": "demo"}},
        "spec": {
            "cloudName": "openstack", "identityRef": {"kind": "Secret", "name": "demo-cloud-config"},
            "flavor": "m1.medium", "image": "ubuntu-2204-kube", "sshKeyName": "key", "instanceID": number.to_string(),
            "networks": [{"filter": {"name": "nodes", "tags": "a,b"}, "subnets": [{"filter": {"name": "nodes"}}]}],
            "ports": [{"networkId": "7f3c", "tenantId": "p", "fixedIPs": [{"subnetId": "9a1b"}],
                "profile": {"capabilities": "[\"switchdev\"]"}}],
            "rootVolume": {"diskSize": 25, "sourceUUID": "4c2d"},
            "securityGroups": [{"name": "default"}, {"filter": {"tags": "c", "limit": 1}}],
            "serverMetadata": {"role": "worker"}, "tags": ["a", "b"], "trunk": true,
        },
        "status": {"ready": true, "instanceState": "ACTIVE", "addresses": [{"type": "InternalIP", "address": "10.6.0.9"}]},
    })
}

fn table(report: &Report) -> String {
    format!(
        "{}\n\n  {} objects of v1alpha4, {} KiB of JSON\n  to v1beta2          {:>8.1} ms\n  back                {:>8.1} ms",
        report.machine,
        report.objects,
        report.bytes / 1024,
        report.up_milliseconds,
        report.down_milliseconds
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_objects_that_are_measured_come_back() {
        let before = object(3);
        let there = api::convert::convert(before.clone(), STORED).unwrap();
        assert!(there["spec"]["ports"].as_array().unwrap().len() == 2);
        let back = api::convert::convert(there, OLDEST).unwrap();
        assert_eq!(back["spec"], before["spec"]);
        assert_eq!(measured(2).unwrap().objects, 2);
    }
}
