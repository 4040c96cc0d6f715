//! Volumes, files and variables of the Pods of a namespace.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::cloud::{Bootstrap, Host};
use crate::json::{Error, Json};
use crate::nodes::object::{holds, items, text};

/// Objects of a namespace.
pub(super) struct Namespace {
    pods: Vec<Value>,
    jobs: Vec<Value>,
    claims: Vec<Value>,
    secrets: Vec<Value>,
}

impl Namespace {
    pub(super) async fn read(client: &Json, name: &str) -> Result<Self, Error> {
        let list = |group: &str, kind: &str| format!("/{group}/namespaces/{name}/{kind}");
        Ok(Self {
            pods: client.list(&list("api/v1", "pods")).await?,
            jobs: client.list(&list("apis/batch/v1", "jobs")).await?,
            claims: client
                .list(&list("api/v1", "persistentvolumeclaims"))
                .await?,
            secrets: client.list(&list("api/v1", "secrets")).await?,
        })
    }

    /// Returns the uid of the volume of a Pod, or of the Pod itself without a volume.
    pub(super) fn volume(&self, pod: &Value) -> String {
        let volumes = items(&pod["spec"]["volumes"]);
        let mut names = volumes.filter_map(|it| it["persistentVolumeClaim"]["claimName"].as_str());
        let claim = names.next().and_then(|name| named(&self.claims, name));
        text(&claim.unwrap_or(pod)["metadata"]["uid"]).to_owned()
    }

    /// Returns the Pod of a container.
    pub(super) fn pod_of(&self, container: &str) -> Option<&Value> {
        let mut pods = self.pods.iter();
        pods.find(|pod| pod["spec"]["containers"][0]["name"] == container)
    }

    /// Returns the options in the Secrets mounted by a Pod, each a line `name = value`.
    pub(super) fn options(&self, pod: &Value) -> BTreeMap<String, String> {
        let volumes = items(&pod["spec"]["volumes"]);
        let names = volumes.filter_map(|it| it["secret"]["secretName"].as_str());
        let secrets = names.filter_map(|name| named(&self.secrets, name));
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

    /// Returns the hypervisors with guests: one on each node with a Pod of nova-compute, by the name of the node.
    pub(super) fn computes(&self) -> Vec<Host> {
        let computes = self.pods.iter().filter(|pod| {
            let container = &pod["spec"]["containers"][0];
            let mut variables = items(&container["env"]);
            container["name"] == "nova-compute"
                && variables.any(|it| it["name"] == "OS_DEFAULT__HOST")
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

    /// Returns the last completed [`Bootstrap`] of Keystone, with the uid of its Job.
    pub(super) fn bootstrap(&self) -> Option<(String, Bootstrap)> {
        let jobs = self.jobs.iter().filter(|job| holds(job, "Complete"));
        let mut found = jobs.filter_map(|job| {
            let container = &job["spec"]["template"]["spec"]["containers"][0];
            let mut variables = items(&container["env"]);
            let variable = variables.find(|it| it["name"] == "OS_BOOTSTRAP_PASSWORD")?;
            let from = &variable["valueFrom"]["secretKeyRef"];
            let secret = named(&self.secrets, text(&from["name"]))?;
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
}

fn named<'a>(objects: &'a [Value], name: &str) -> Option<&'a Value> {
    objects.iter().find(|it| it["metadata"]["name"] == name)
}

fn decoded(secret: &Value, key: &str) -> Option<String> {
    let bytes = STANDARD.decode(secret["data"][key].as_str()?).ok()?;
    String::from_utf8(bytes).ok()
}
