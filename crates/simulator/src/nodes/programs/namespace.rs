//! Volumes, files and variables of the Pods of a namespace.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::Value;

use crate::cloud::{Bootstrap, Host};
use crate::json::{Error, Json};
use crate::nodes::object::{holds, items, text};

/// Pods, claims and Jobs of a namespace. Each request of a controller is a new connection, so the lists are kept until
/// anything is written.
pub(super) struct Namespace {
    pub(super) pods: Listed,
    pub(super) claims: Listed,
    pub(super) jobs: Listed,
    /// Revision of the API server before the lists.
    revision: Value,
}

/// Objects of a kind.
pub(super) struct Listed(Vec<Value>);

impl Namespace {
    pub(super) async fn read(client: &Json, name: &str) -> Result<Self, Error> {
        Ok(Self {
            revision: revision(client, name).await?,
            pods: list(client, name, "api/v1", "pods").await?,
            claims: list(client, name, "api/v1", "persistentvolumeclaims").await?,
            jobs: list(client, name, "apis/batch/v1", "jobs").await?,
        })
    }

    /// True if nothing was written to the API server since the lists.
    pub(super) async fn is_current(&self, client: &Json, name: &str) -> Result<bool, Error> {
        Ok(revision(client, name).await? == self.revision)
    }
}

/// Returns the revision of the API server.
async fn revision(client: &Json, namespace: &str) -> Result<Value, Error> {
    let path = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims?limit=1");
    let list = client.send(Method::GET, &path, None, "").await?;
    Ok(list["metadata"]["resourceVersion"].clone())
}

/// Lists the Secrets, which have all files of a cloud.
pub(super) async fn secrets(client: &Json, namespace: &str) -> Result<Listed, Error> {
    list(client, namespace, "api/v1", "secrets").await
}

async fn list(client: &Json, namespace: &str, group: &str, kind: &str) -> Result<Listed, Error> {
    let path = format!("/{group}/namespaces/{namespace}/{kind}");
    client.list(&path).await.map(Listed)
}

/// Returns the uid of the volume of a Pod, or of the Pod itself without a volume.
pub(super) fn volume(pod: &Value, claims: &Listed) -> String {
    let volumes = items(&pod["spec"]["volumes"]);
    let mut names = volumes.filter_map(|it| it["persistentVolumeClaim"]["claimName"].as_str());
    let claim = names.next().and_then(|name| claims.named(name));
    text(&claim.unwrap_or(pod)["metadata"]["uid"]).to_owned()
}

/// Returns the options in the Secrets mounted by a Pod, each a line `name = value`.
pub(super) fn options(pod: &Value, secrets: &Listed) -> BTreeMap<String, String> {
    let volumes = items(&pod["spec"]["volumes"]);
    let names = volumes.filter_map(|it| it["secret"]["secretName"].as_str());
    let secrets = names.filter_map(|name| secrets.named(name));
    let texts = secrets.flat_map(|secret| {
        let data = secret["data"].as_object().into_iter().flatten();
        let texts = data.filter_map(|(key, _)| decoded(secret, key));
        texts.collect::<Vec<String>>()
    });
    let options = texts.flat_map(|text| {
        let options = text.lines().filter_map(|line| line.split_once(" = "));
        let owned = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
        owned.collect::<Vec<_>>()
    });
    options.collect()
}

/// Returns the Pod of a container.
pub(super) fn pod_of<'a>(container: &str, pods: &'a Listed) -> Option<&'a Value> {
    let mut pods = pods.0.iter();
    pods.find(|pod| pod["spec"]["containers"][0]["name"] == container)
}

/// Returns the hypervisors with guests: one on each node with a Pod of nova-compute, by the name of the node.
pub(super) fn computes(pods: &Listed) -> Vec<Host> {
    let computes = pods.0.iter().filter(|pod| {
        let container = &pod["spec"]["containers"][0];
        let mut variables = items(&container["env"]);
        container["name"] == "nova-compute" && variables.any(|it| it["name"] == "OS_DEFAULT__HOST")
    });
    let host = |pod: &Value| Host {
        name: text(&pod["spec"]["nodeName"]).to_owned(),
        is_up: holds(pod, "Ready"),
    };
    computes
        .map(host)
        .filter(|it| !it.name.is_empty())
        .collect()
}

/// Returns the uid of the last completed Job with a bootstrap of Keystone.
pub(super) fn bootstrap_job(jobs: &Listed) -> Option<&str> {
    let last = bootstraps(jobs).next_back();
    last.map(|(job, _)| text(&job["metadata"]["uid"]))
}

/// Returns the last completed [`Bootstrap`] of Keystone, with the uid of its Job.
pub(super) fn bootstrap(jobs: &Listed, secrets: &Listed) -> Option<(String, Bootstrap)> {
    let mut found = bootstraps(jobs).filter_map(|(job, from)| {
        let secret = secrets.named(text(&from["name"]))?;
        let container = &job["spec"]["template"]["spec"]["containers"][0];
        let words: Vec<&str> = items(&container["command"]).map(text).collect();
        let option = |name: &str| {
            let at = words.iter().position(|word| *word == name)?;
            words.get(at + 1).map(|it| (*it).to_owned())
        };
        let bootstrap = Bootstrap {
            password: decoded(secret, text(&from["key"]))?,
            region: option("--bootstrap-region-id")?,
            url: option("--bootstrap-public-url")?,
            service_role: !text(&container["image"]).ends_with(":zed"),
        };
        Some((text(&job["metadata"]["uid"]).to_owned(), bootstrap))
    });
    found.next_back()
}

/// Returns the completed Jobs with a bootstrap of Keystone, each with the reference to its password.
fn bootstraps(jobs: &Listed) -> impl DoubleEndedIterator<Item = (&Value, &Value)> {
    let complete = jobs.0.iter().filter(|job| holds(job, "Complete"));
    complete.filter_map(|job| {
        let container = &job["spec"]["template"]["spec"]["containers"][0];
        let mut variables = items(&container["env"]);
        let variable = variables.find(|it| it["name"] == "OS_BOOTSTRAP_PASSWORD")?;
        Some((job, &variable["valueFrom"]["secretKeyRef"]))
    })
}

impl Listed {
    fn named(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|it| it["metadata"]["name"] == name)
    }
}

fn decoded(secret: &Value, key: &str) -> Option<String> {
    let bytes = STANDARD.decode(secret["data"][key].as_str()?).ok()?;
    String::from_utf8(bytes).ok()
}
