//! Simulated cloud, API server, and the manager between both.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use hyper::Method;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Cost, IDLE, LIMIT, QUIET, Requests};
use crate::bench::apiserver::servers::rss;
use crate::cluster::{kubeconfig, serve};
use crate::https::Client as ApiClient;
use crate::simulated::{Client, PASSWORD, Simulator};

const NODES: &str = "/api/v1/nodes";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const MEMBERS: &str = "/v2.0/lbaas/pools/{pool_id}/members";
/// Number of ports in one request.
const BULK: usize = 100;

/// Environment of a measurement.
pub(super) struct World {
    /// Ended on drop.
    _cloud: Simulator,
    client: Client,
    api: ApiClient,
    binary: PathBuf,
    /// Path of the manager of Go; `None` to measure ours.
    go: Option<PathBuf>,
    directory: tempfile::TempDir,
    manager: Option<Child>,
    network: String,
    flavor: String,
    image: String,
    stop: CancellationToken,
}

impl World {
    /// Opens a cloud with a network and a router to the external one, and an empty cluster.
    pub(super) async fn open(binary: &Path, go: Option<&Path>) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let stop = CancellationToken::new();
        let access = serve(directory.path(), stop.clone()).await?;
        let cloud = Simulator::start(binary)?;
        let mut client = cloud.client()?;
        let network = network(&mut client)?;
        let flavors: Value = serde_json::from_slice(&client.get("/compute/v2.1/flavors")?)?;
        let images: Value = serde_json::from_slice(&client.get("/image/v2/images?limit=1")?)?;
        let url = cloud.url();
        let conf = format!(
            "[Global]\nauth-url = {url}/identity/v3\nusername = demo\npassword = {PASSWORD}\ntenant-name = demo\n\
             domain-name = Default\n"
        );
        std::fs::write(directory.path().join("cloud.conf"), conf)?;
        std::fs::write(directory.path().join("kubeconfig"), kubeconfig(&access))?;
        Ok(Self {
            api: access.connect().await?,
            flavor: text(&flavors["flavors"][0], "id")?,
            image: text(&images["images"][0], "id")?,
            binary: binary.to_owned(),
            go: go.map(Path::to_owned),
            manager: None,
            _cloud: cloud,
            client,
            directory,
            network,
            stop,
        })
    }

    /// Starts the manager.
    pub(super) fn start(&mut self) -> anyhow::Result<()> {
        let mut command = match &self.go {
            None => {
                let mut command = Command::new(&self.binary);
                command.arg("cloud-controller-manager");
                command
            }
            Some(go) => {
                let mut command = Command::new(go);
                command.args([
                    "--cloud-provider=openstack",
                    "--configure-cloud-routes=false",
                ]);
                command
            }
        };
        let child = command
            .args(["--leader-elect=false", "--secure-port=0"])
            .args(["--cloud-config", "cloud.conf", "--kubeconfig", "kubeconfig"])
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(self.directory.path().join("log"))?)
            .spawn()
            .with_context(|| {
                self.go
                    .as_ref()
                    .unwrap_or(&self.binary)
                    .display()
                    .to_string()
            })?;
        self.manager = Some(child);
        Ok(())
    }

    fn end(&mut self) -> anyhow::Result<()> {
        let Some(mut manager) = self.manager.take() else {
            return Ok(());
        };
        let pid = rustix::process::Pid::from_child(&manager);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        manager.wait()?;
        Ok(())
    }

    /// Ends everything.
    pub(super) fn close(mut self) -> anyhow::Result<()> {
        self.end()
    }

    pub(super) fn rss_megabytes(&self) -> anyhow::Result<f64> {
        rss(self.manager.as_ref().context("the manager")?.id())
    }

    /// Creates servers, and Nodes with the same names, which have no address and wait for the manager.
    pub(super) async fn add_nodes(&mut self, first: usize, count: usize) -> anyhow::Result<()> {
        let numbers: Vec<usize> = (first..first + count).collect();
        for batch in numbers.chunks(BULK) {
            let port = json!({"network_id": self.network});
            let ports = json!({"ports": vec![port; batch.len()]});
            let ports = self.client.make("POST", "/network/v2.0/ports", &ports)?;
            for (number, port) in batch.iter().zip(ports.as_array().context("ports")?) {
                let body = json!({"server": {"name": name(*number), "flavorRef": self.flavor,
                    "imageRef": self.image, "networks": [{"port": port["id"]}]}});
                self.client.make("POST", "/compute/v2.1/servers", &body)?;
            }
        }
        for number in numbers {
            self.api.post(NODES, &node(&name(number))).await?;
        }
        Ok(())
    }

    /// Waits until all Nodes are initialised; `None` after [`LIMIT`](super::LIMIT).
    pub(super) async fn until_initialised(&mut self, count: usize) -> anyhow::Result<Option<Cost>> {
        self.reset()?;
        let done = |list: &[Value]| {
            let is_done = |node: &&Value| node["spec"]["providerID"].is_string();
            list.iter().filter(is_done).count() >= count
        };
        self.until(NODES, done).await
    }

    /// Creates Services, and waits until all are published.
    pub(super) async fn create(
        &mut self,
        services: usize,
        ports: usize,
    ) -> anyhow::Result<Option<Cost>> {
        self.quiet(LIMIT).await?;
        self.reset()?;
        for number in 0..services {
            self.api.post(SERVICES, &service(number, ports)).await?;
        }
        const ADDRESS: &str = "loadbalancer.openstack.org/load-balancer-address";
        let done = |list: &[Value]| {
            let of_ours = list
                .iter()
                .filter(|one| one["spec"]["type"] == "LoadBalancer");
            of_ours
                .filter(|one| one["metadata"]["annotations"][ADDRESS].is_string())
                .count()
                >= services
        };
        self.until(SERVICES, done).await
    }

    /// Adds a node, and waits until the node is a member of all pools.
    pub(super) async fn one_more(
        &mut self,
        nodes: usize,
        pools: usize,
    ) -> anyhow::Result<Option<Cost>> {
        self.quiet(LIMIT).await?;
        self.reset()?;
        self.add_nodes(nodes, 1).await?;
        let preparation = self.requests()?.writes;
        let begun = Instant::now();
        loop {
            let now = self.requests()?;
            if now.sets >= u64::try_from(pools)? {
                let mut requests = now.counted();
                // The port and the server of the node.
                requests.writes -= preparation;
                requests.all -= preparation;
                let seconds = begun.elapsed().as_secs_f64();
                return Ok(Some(Cost { seconds, requests }));
            }
            if begun.elapsed() > LIMIT {
                return Ok(None);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Ends the manager, and starts a new one.
    pub(super) async fn restart(&mut self) -> anyhow::Result<Option<Cost>> {
        self.quiet(LIMIT).await?;
        self.end()?;
        self.reset()?;
        let begun = Instant::now();
        self.start()?;
        // A new process logs in first, after some time.
        while self.requests()?.looks == 0 {
            if begun.elapsed() > LIMIT {
                return Ok(None);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let Some(last) = self.quiet(LIMIT).await? else {
            return Ok(None);
        };
        Ok(Some(Cost {
            seconds: (last - begun).as_secs_f64(),
            requests: self.requests()?.counted(),
        }))
    }

    /// Deletes the Services and the further node; false if not done in time.
    pub(super) async fn clear(&mut self, nodes: usize) -> anyhow::Result<bool> {
        for service in self.list(SERVICES).await? {
            if service["spec"]["type"] == "LoadBalancer" {
                let path = format!("{SERVICES}/{}", text(&service["metadata"], "name")?);
                self.api.call(Method::DELETE, &path, Vec::new()).await?;
            }
        }
        let done = |list: &[Value]| list.iter().all(|one| one["spec"]["type"] != "LoadBalancer");
        let gone = self.until(SERVICES, done).await?.is_some();
        let name = name(nodes);
        let path = format!("{NODES}/{name}");
        self.api.call(Method::DELETE, &path, Vec::new()).await?;
        let path = format!("/compute/v2.1/servers?name=^{name}$");
        let servers: Value = serde_json::from_slice(&self.client.get(&path)?)?;
        let id = text(&servers["servers"][0], "id")?;
        let path = format!("/compute/v2.1/servers/{id}");
        self.client.call("DELETE", &path, None)?;
        Ok(gone)
    }

    /// Counts requests for ten minutes without changes.
    pub(super) async fn idle(&mut self) -> anyhow::Result<Requests> {
        self.quiet(LIMIT).await?;
        self.reset()?;
        tokio::time::sleep(IDLE).await;
        Ok(self.requests()?.counted())
    }

    /// Waits until a list of the API server satisfies the condition.
    async fn until(
        &mut self,
        path: &str,
        done: impl Fn(&[Value]) -> bool,
    ) -> anyhow::Result<Option<Cost>> {
        let begun = Instant::now();
        while !done(&self.list(path).await?) {
            if begun.elapsed() > LIMIT {
                return Ok(None);
            }
            self.check()?;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(Some(Cost {
            seconds: begun.elapsed().as_secs_f64(),
            requests: self.requests()?.counted(),
        }))
    }

    /// Waits until no request has come for a while; returns the time of the last request.
    async fn quiet(&mut self, limit: Duration) -> anyhow::Result<Option<Instant>> {
        let begun = Instant::now();
        let (mut known, mut last) = (self.requests()?.all, Instant::now());
        while last.elapsed() < QUIET {
            if begun.elapsed() > limit {
                return Ok(None);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            let now = self.requests()?.all;
            if now != known {
                (known, last) = (now, Instant::now());
            }
        }
        Ok(Some(last))
    }

    /// Fails if the manager process has ended.
    fn check(&mut self) -> anyhow::Result<()> {
        let ended = self.manager.as_mut().map(Child::try_wait).transpose()?;
        if let Some(status) = ended.flatten() {
            let log = std::fs::read_to_string(self.directory.path().join("log"));
            let log = log.unwrap_or_default();
            let last: Vec<&str> = log.lines().rev().take(5).collect();
            bail!("the manager ended: {status}\n{}", last.join("\n"));
        }
        Ok(())
    }

    async fn list(&mut self, path: &str) -> anyhow::Result<Vec<Value>> {
        let mut answer: Value = serde_json::from_slice(&self.api.get(path).await?)?;
        Ok(serde_json::from_value(answer["items"].take())?)
    }

    fn reset(&mut self) -> anyhow::Result<()> {
        self.client.call("DELETE", "/_simulator/requests", None)?;
        Ok(())
    }

    fn requests(&mut self) -> anyhow::Result<Counts> {
        let answer: Value = serde_json::from_slice(&self.client.get("/_simulator/requests")?)?;
        let mut counts = Counts::default();
        for entry in answer["requests"].as_array().into_iter().flatten() {
            let count = entry["count"].as_u64().unwrap_or(0);
            let is_read = entry["method"] == "GET";
            counts.all += count;
            // Logins change nothing.
            if !is_read && entry["service"] != "identity" {
                counts.writes += count;
            }
            if is_read && entry["service"] == "load-balancer" {
                counts.looks += count;
            }
            if entry["route"] == MEMBERS {
                let of = if is_read {
                    &mut counts.members
                } else {
                    &mut counts.sets
                };
                *of += count;
            }
        }
        Ok(counts)
    }
}

/// Counts of the simulated cloud.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    all: u64,
    writes: u64,
    members: u64,
    /// Writes of all members of a pool.
    sets: u64,
    /// Reads of load balancers and their parts.
    looks: u64,
}

impl Counts {
    const fn counted(self) -> Requests {
        Requests {
            all: self.all,
            writes: self.writes,
            members: self.members,
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(mut manager) = self.manager.take() {
            let _ = manager.kill();
            let _ = manager.wait();
        }
    }
}

/// A network for servers, with a router to the external one.
fn network(client: &mut Client) -> anyhow::Result<String> {
    let body = json!({"network": {"name": "bench"}});
    let id = text(&client.make("POST", "/network/v2.0/networks", &body)?, "id")?;
    let body = json!({"subnet": {"network_id": id, "ip_version": 4, "cidr": "10.0.0.0/16"}});
    let subnet = client.make("POST", "/network/v2.0/subnets", &body)?;
    let path = "/network/v2.0/networks?router:external=true";
    let external: Value = serde_json::from_slice(&client.get(path)?)?;
    let gateway = json!({"network_id": external["networks"][0]["id"]});
    let body = json!({"router": {"name": "bench", "external_gateway_info": gateway}});
    let router = text(&client.make("POST", "/network/v2.0/routers", &body)?, "id")?;
    let path = format!("/network/v2.0/routers/{router}/add_router_interface");
    client.call("PUT", &path, Some(&json!({"subnet_id": subnet["id"]})))?;
    Ok(id)
}

fn name(number: usize) -> String {
    format!("node-{number:04}")
}

/// A Node as a kubelet registers it, but ready.
fn node(name: &str) -> Value {
    let time = "2026-01-01T00:00:00Z";
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"taints": [
        {"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"}]},
        "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Bench", "message": "",
            "lastTransitionTime": time, "lastHeartbeatTime": time}]}})
}

fn service(number: usize, ports: usize) -> Value {
    let port = |index: usize| json!({"name": format!("p{index}"), "protocol": "TCP", "port": 8000 + index});
    let ports: Vec<Value> = (0..ports).map(port).collect();
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": format!("service-{number:03}")},
        "spec": {"type": "LoadBalancer", "selector": {"app": "bench"}, "ports": ports}})
}

fn text(value: &Value, field: &str) -> anyhow::Result<String> {
    let found = value[field].as_str().map(str::to_owned);
    found.with_context(|| format!("no `{field}` in {value}"))
}
