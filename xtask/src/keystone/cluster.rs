//! Cluster to which a webhook writes.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::world::World;
use crate::cluster::{kubeconfig, serve};
use crate::https::{Access, Client};

/// Time without changes after which the writes that follow an answer are complete.
const QUIET: Duration = Duration::from_secs(2);
/// Timeout of these writes.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Cluster {
    access: Access,
    /// Flags of a webhook for the cluster.
    pub(super) flags: Vec<String>,
    _directory: tempfile::TempDir,
    _serving: DropGuard,
}

impl Cluster {
    /// Opens an empty cluster, and writes a file with the configuration.
    pub(super) async fn open(world: &World, sync: &Value) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir_in(world.directory())?;
        let stop = CancellationToken::new();
        let access = serve(directory.path(), stop.clone()).await?;
        let file = |name: &str| directory.path().join(name);
        std::fs::write(file("kubeconfig"), kubeconfig(&access))?;
        let text = match sync {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        std::fs::write(file("sync.yaml"), text)?;
        let flags = vec![
            format!("--kubeconfig={}", file("kubeconfig").display()),
            format!("--sync-config-file={}", file("sync.yaml").display()),
        ];
        Ok(Self {
            access,
            flags,
            _directory: directory,
            _serving: stop.drop_guard(),
        })
    }

    /// Namespaces and RoleBindings once complete, without the namespaces of every cluster.
    pub(super) async fn left(&self) -> anyhow::Result<Value> {
        let (begun, mut client) = (Instant::now(), self.access.connect().await?);
        let (mut last, mut since) = (Value::Null, Instant::now());
        while begun.elapsed() < PATIENCE {
            let now = written(&mut client).await?;
            if now != last {
                (last, since) = (now, Instant::now());
            } else if since.elapsed() >= QUIET {
                return Ok(last);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        bail!("what is written to the cluster has no end")
    }
}

async fn written(client: &mut Client) -> anyhow::Result<Value> {
    let namespaces = list(client, "/api/v1/namespaces").await?;
    let name = |it: &Value| it["metadata"]["name"].as_str().map(str::to_owned);
    let mut found = Map::new();
    let is_of_all = |name: &String| name == "default" || name.starts_with("kube-");
    let names = namespaces.iter().filter_map(name);
    for namespace in names.filter(|it| !is_of_all(it)) {
        found.insert(namespace, json!({"is": "there"}));
    }
    let path = "/apis/rbac.authorization.k8s.io/v1/rolebindings";
    for binding in list(client, path).await? {
        let namespace = binding["metadata"]["namespace"].as_str();
        let namespace = namespace.context("a namespace")?;
        let role = format!(
            "{} {}",
            binding["roleRef"]["kind"], binding["roleRef"]["name"]
        );
        let name = name(&binding).context("a name")?;
        found[namespace][name] = json!({"role": role, "subjects": binding["subjects"]});
    }
    Ok(Value::Object(found))
}

async fn list(client: &mut Client, path: &str) -> anyhow::Result<Vec<Value>> {
    let answer: Value = serde_json::from_slice(&client.get(path).await?)?;
    Ok(answer["items"].as_array().cloned().unwrap_or_default())
}
