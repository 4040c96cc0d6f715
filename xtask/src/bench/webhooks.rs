//! `bench webhooks`: admission and conversion reviews of a manager over TLS.
//!
//! Manager and API server are separate processes; this program plays an API server that asks the manager. All three share
//! the processors of the machine.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde::Serialize;
use serde_json::{Value, json};

use super::apiserver::servers::{Kind, Server, rss};
use super::conversions;
use super::csi::{number, percentile};
use super::review_load::{Rate, Request, rate, request};
use super::{build, in_release, load, machine};
use crate::https::{Access, free};

/// Number of starts, for the median.
const STARTS: usize = 5;
/// Timeout of a start.
const PATIENCE: Duration = Duration::from_secs(60);
/// Numbers of concurrent reviews.
const AT_A_TIME: [usize; 2] = [1, 8];

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Measure this program instead of building the release one.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Seconds of each rate.
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    seconds: u64,
}

/// Results.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    machine: String,
    /// Load average of the last minute, before and after.
    load: (f64, f64),
    /// Median milliseconds from the start of the process to the first accepted review.
    start: f64,
    /// Resident megabytes after all reviews.
    rss: f64,
    kinds: Vec<Figures>,
}

/// Figures of one kind of review.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Figures {
    name: &'static str,
    /// Rates by [`AT_A_TIME`].
    rates: [Rate; 2],
}

/// Measures in a release build, which a debug build builds and runs, and prints a table or JSON.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    if cfg!(debug_assertions) {
        return in_release(root);
    }
    let binary = match &arguments.binary {
        Some(binary) => std::path::absolute(binary)?,
        None => build(root)?,
    };
    let lasting = Duration::from_secs(arguments.seconds);
    let runtime = tokio::runtime::Runtime::new()?;
    let report = runtime.block_on(measure(&binary, &root.join("target"), lasting))?;
    let text = match arguments.json {
        true => serde_json::to_string_pretty(&report)? + "\n",
        false => table(&report),
    };
    crate::print(&text)
}

async fn measure(binary: &Path, data: &Path, lasting: Duration) -> anyhow::Result<Report> {
    let before = load();
    let server = Server::start(&Kind::Embedded, data).await?;
    install(binary, &server).await?;
    let reviews = reviews();
    // The first start migrates and writes the configurations.
    Manager::start(binary, &server, &reviews[0].1).await?;
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        let manager = Manager::start(binary, &server, &reviews[0].1).await?;
        starts.push(manager.start.as_secs_f64() * 1e3);
    }
    let manager = Manager::start(binary, &server, &reviews[0].1).await?;
    let mut kinds = Vec::new();
    for (name, review) in &reviews {
        let ask = async |at_a_time: usize| {
            let lists = vec![vec![Request::clone(review)]; at_a_time];
            rate(&manager.access, lists, Some(lasting)).await
        };
        let rates = [ask(AT_A_TIME[0]).await?, ask(AT_A_TIME[1]).await?];
        let wrong = rates.iter().map(|rate| rate.wrong).sum::<u64>();
        ensure!(wrong == 0, "{name}: {wrong} reviews were refused");
        kinds.push(Figures { name, rates });
    }
    Ok(Report {
        machine: machine(),
        load: (before, load()),
        start: percentile(&mut starts, 0.5),
        rss: rss(manager.process.id())?,
        kinds,
    })
}

/// Creates the CustomResourceDefinitions and configurations of `generate manager`.
async fn install(binary: &Path, server: &Server) -> anyhow::Result<()> {
    let generated = Command::new(binary)
        .args(["generate", "manager", "--namespace", "ferrostack-system"])
        .output()?;
    ensure!(generated.status.success(), "generate manager failed");
    let manifests = String::from_utf8(generated.stdout)?;
    let mut client = server.access.connect().await?;
    for object in serde_saphyr::from_multiple::<Value>(&manifests)? {
        let path = match object["kind"].as_str() {
            Some("Namespace") => "/api/v1/namespaces",
            Some("CustomResourceDefinition") => {
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
            }
            _ => continue,
        };
        client.post(path, &object).await?;
    }
    Ok(())
}

/// Running `ferrostack manager`. Dropping ends the process.
struct Manager {
    access: Access,
    start: Duration,
    process: Child,
}

impl Manager {
    /// Starts a manager, and waits until it accepts `review`.
    async fn start(binary: &Path, server: &Server, review: &Request) -> anyhow::Result<Self> {
        let directory = server.directory();
        let address = free()?;
        for (from, to) in [("server.crt", "tls.crt"), ("server.key", "tls.key")] {
            std::fs::copy(directory.join(from), directory.join(to))?;
        }
        let kubeconfig = directory.join("kubeconfig");
        std::fs::write(
            &kubeconfig,
            kubeconfig_of(server.access.address, directory).to_string(),
        )?;
        let begun = Instant::now();
        let process = Command::new(binary)
            .arg("manager")
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .args(["--leader-elect=false", "--health-addr=0"])
            .arg(format!("--webhook-addr={address}"))
            .arg(format!("--webhook-url=https://{address}"))
            .arg("--webhook-cert-dir")
            .arg(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::from(std::fs::File::create(
                directory.join("manager.log"),
            )?))
            .spawn()
            .with_context(|| binary.display().to_string())?;
        let access = Access {
            address,
            tls: server.access.tls.clone(),
        };
        let mut manager = Self {
            access,
            start: Duration::ZERO,
            process,
        };
        while !manager.accepts(review).await {
            if let Some(status) = manager.process.try_wait()? {
                let log = std::fs::read_to_string(directory.join("manager.log"))?;
                bail!("the manager ended: {status}\n{log}");
            }
            ensure!(
                begun.elapsed() < PATIENCE,
                "no review is accepted after {PATIENCE:?}"
            );
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        manager.start = begun.elapsed();
        Ok(manager)
    }

    async fn accepts(&self, review: &Request) -> bool {
        let once = rate(&self.access, vec![vec![Request::clone(review)]], None).await;
        once.is_ok_and(|rate| rate.reviews == 1 && rate.wrong == 0)
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn kubeconfig_of(address: SocketAddr, directory: &Path) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "bench",
        "clusters": [{ "name": "bench", "cluster": {
            "server": format!("https://{address}"), "certificate-authority": directory.join("ca.crt"),
        } }],
        "users": [{ "name": "bench", "user": {
            "client-certificate": directory.join("admin.crt"), "client-key": directory.join("admin.key"),
        } }],
        "contexts": [{ "name": "bench", "context": { "cluster": "bench", "user": "bench" } }],
    })
}

/// One review of each webhook, all about a machine with networks, ports, a root volume and security groups.
fn reviews() -> Vec<(&'static str, Request)> {
    let older = conversions::object(1);
    let machine = api::convert::convert(older.clone(), conversions::STORED);
    let machine = machine.unwrap_or_else(|refused| json!({ "refused": format!("{refused:?}") }));
    let admission = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "1", "operation": "CREATE", "namespace": "default", "name": "machine-1",
            "kind": { "group": "infrastructure.cluster.x-k8s.io", "version": "v1beta2", "kind": "OpenStackMachine" },
            "resource": { "group": "infrastructure.cluster.x-k8s.io", "version": "v1beta2", "resource": "openstackmachines" },
            "userInfo": {}, "object": machine, "oldObject": null, "dryRun": false,
        },
    })
    .to_string();
    let conversion = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": { "uid": "1", "desiredAPIVersion": conversions::STORED, "objects": [older] },
    })
    .to_string();
    vec![
        ("validation", request("/validate", &admission)),
        ("defaults", request("/mutate", &admission)),
        ("conversion from v1alpha4", request("/convert", &conversion)),
    ]
}

fn table(report: &Report) -> String {
    let mut text = "| reviews over TLS | at a time | a second | median, ms | 99th percentile, ms |\n|---|---|---|---|---|\n".to_owned();
    for kind in &report.kinds {
        for (at_a_time, rate) in AT_A_TIME.iter().zip(&kind.rates) {
            text += &format!(
                "| {} | {at_a_time} | {} | {} | {} |\n",
                kind.name,
                number(rate.per_second),
                number(rate.median),
                number(rate.percentile_99)
            );
        }
    }
    let Report {
        machine,
        load,
        start,
        rss,
        ..
    } = report;
    text += &format!(
        "\nFirst review {start:.0} ms after the start of the process; {rss:.0} MB resident at the end.\n{machine}; load {:.1} before and {:.1} after\n",
        load.0, load.1
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Their objects are valid, and a manager accepts each.
    #[test]
    fn the_reviews_that_are_measured_are_whole() {
        for (name, review) in reviews() {
            let text = String::from_utf8(review.to_vec()).unwrap();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            assert!(
                head.contains(&format!("Content-Length: {}", body.len())),
                "{name}"
            );
            let review: Value = serde_json::from_str(body).unwrap();
            let request = &review["request"];
            let machine = [&request["object"], &request["objects"][0]];
            assert!(
                machine.iter().any(|it| it["kind"] == "OpenStackMachine"),
                "{name}: {body}"
            );
        }
    }
}
