//! Upgrade of CoreDNS after the upgrade of all machines.
//!
//! ```text
//!   look    Deployment and ConfigMap `coredns` → the wanted image, the migrated Corefile
//!   apply   kubeadm-config · RBAC · backup · Deployment to the backup · Corefile · Deployment to image and Corefile
//! ```
//!
//! CoreDNS reloads a changed Corefile, so the former release reads the backup while the Corefile changes. Each step
//! can be interrupted and repeated: the migration starts from the Corefile in use by the Deployment.

mod corefile;
mod image;
mod migration;

use std::collections::BTreeMap;

use api::bootstrap::v1beta2::ClusterConfiguration;
use api::k8s_openapi::api::apps::v1::Deployment;
use api::k8s_openapi::api::core::v1::ConfigMap;
use api::k8s_openapi::api::rbac::v1::ClusterRole;
use api::kube::api::{Patch, PatchParams};
use api::kube::{Client, ResourceExt};
use api::version::Version;
use operator::client::Api;
use serde_json::{Value, json};

use self::image::Image;
use super::observe::Observation;
use super::{ControlPlaneError, Scope, Subject, error, rollout};

/// Annotation of a control plane that excludes CoreDNS from upgrades.
pub(super) const SKIP: &str = "controlplane.cluster.x-k8s.io/skip-coredns";
/// Name of the Deployment, its container and the ConfigMap.
const NAME: &str = "coredns";
/// Name of the Deployment's volume with the Corefile.
const VOLUME: &str = "config-volume";
/// Keys of the ConfigMap.
const COREFILE: &str = "Corefile";
const BACKUP: &str = "Corefile-backup";
/// Name of the ClusterRole.
const ROLE: &str = "system:coredns";

/// State of CoreDNS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum CoreDns {
    /// Not read: machines are created or deleted, or nothing has changed since CoreDNS was in order.
    #[default]
    NotRead,
    /// Excluded by the annotation [`SKIP`].
    Skipped,
    /// CoreDNS is up to date, or absent.
    InOrder,
    /// CoreDNS is to be upgraded.
    Outdated(Upgrade),
    /// CoreDNS cannot be upgraded, for this reason.
    Blocked(String),
}

/// An upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Upgrade {
    image: String,
    /// Key of the Corefile in use by the Deployment.
    key: String,
    /// Content of the Corefile in use.
    before: String,
    /// Corefile for the new image.
    after: String,
    /// Content of the ConfigMap.
    stored: BTreeMap<String, String>,
}

/// Write of an upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Write<'a> {
    /// Sets keys of the ConfigMap.
    Map(Vec<(&'static str, &'a str)>),
    /// Sets the image, and the key of the ConfigMap with the Corefile.
    Deployment(Option<&'a str>, &'static str),
}

impl Upgrade {
    /// Remaining [`Write`]s. The Deployment reads the backup while the Corefile changes.
    fn writes(&self) -> Vec<Write<'_>> {
        let (before, after) = (self.before.as_str(), self.after.as_str());
        let has = |key: &str, text: &str| self.stored.get(key).is_some_and(|known| known == text);
        let mut writes = Vec::new();
        if !has(BACKUP, before) {
            writes.push(Write::Map(vec![(BACKUP, before)]));
        }
        if after != before && self.key != BACKUP {
            writes.push(Write::Deployment(None, BACKUP));
        }
        if !has(COREFILE, after) {
            writes.push(Write::Map(vec![(COREFILE, after)]));
        }
        writes.push(Write::Deployment(Some(&self.image), COREFILE));
        writes
    }
}

/// Reads the state of CoreDNS once the control plane has settled at a version.
pub(super) async fn observe(scope: &Scope, subject: &Subject, seen: &Observation) -> CoreDns {
    if subject.plane.annotations().contains_key(SKIP) {
        return CoreDns::Skipped;
    }
    let Some(workload) = rollout::settled(seen) else {
        return CoreDns::NotRead;
    };
    let input = input(subject);
    if scope.coredns.get(&subject.plane).as_ref() == Some(&input) {
        return CoreDns::NotRead;
    }
    let state = read(&workload.client, subject).await;
    let state = state.unwrap_or_else(|problem| CoreDns::Blocked(operator::words::chain(&problem)));
    if state == CoreDns::InOrder {
        scope.coredns.insert(&subject.plane, input);
    }
    state
}

/// Input of the state of CoreDNS from the control plane.
fn input(subject: &Subject) -> String {
    let configuration = configuration(subject);
    let repository = configuration.image_repository;
    json!([subject.plane.spec.version, repository, configuration.dns]).to_string()
}

fn configuration(subject: &Subject) -> ClusterConfiguration {
    let spec = subject.plane.spec.kubeadm_config_spec.as_ref();
    let configuration = spec.and_then(|spec| spec.cluster_configuration.clone());
    configuration.unwrap_or_default()
}

async fn read(client: &Client, subject: &Subject) -> Result<CoreDns, ControlPlaneError> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "kube-system");
    let found = deployments.get_opt(NAME).await;
    let found = found.map_err(error::remotely("reading deployment kube-system/coredns"))?;
    let Some(deployment) = found else {
        return Ok(CoreDns::InOrder);
    };
    let version: Version = subject.plane.spec.version.parse()?;
    match change(&deployment, &configuration(subject), &version) {
        Ok(None) => Ok(CoreDns::InOrder),
        Ok(Some(change)) => {
            let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
            let map = maps.get_opt(NAME).await;
            let map = map.map_err(error::remotely("reading configmap kube-system/coredns"))?;
            Ok(upgrade(change, &map.unwrap_or_default()))
        }
        Err(problem) => Ok(CoreDns::Blocked(problem.to_string())),
    }
}

/// Running image, wanted image, and the key of the Corefile in use.
struct Change<'a> {
    from: Image,
    to: Image,
    key: &'a str,
}

/// Change of `deployment`; `None` without a difference, or if kubeadm has not deployed it.
fn change<'a>(
    deployment: &'a Deployment,
    configuration: &ClusterConfiguration,
    version: &Version,
) -> Result<Option<Change<'a>>, image::NoVersion> {
    let Some((current, key)) = running(deployment) else {
        return Ok(None);
    };
    let images = image::wanted(current, configuration, version)?;
    let change = images.map(|(from, to)| Change { from, to, key });
    Ok(change.filter(|it| it.from.text != it.to.text || it.key != COREFILE))
}

/// [`Upgrade`] with the migrated Corefile.
fn upgrade(change: Change<'_>, map: &ConfigMap) -> CoreDns {
    let Change { from, to, key } = change;
    let stored = map.data.clone().unwrap_or_default();
    let Some(before) = stored.get(key).cloned() else {
        return CoreDns::Blocked(format!("configmap kube-system/coredns has no key {key}"));
    };
    match migration::migrate(&before, from.release, to.release) {
        Ok(after) => CoreDns::Outdated(Upgrade {
            image: to.text,
            key: key.to_owned(),
            before,
            after,
            stored,
        }),
        Err(problem) => CoreDns::Blocked(problem.to_string()),
    }
}

/// Image, and key of the ConfigMap with the Corefile. `None` if not deployed as by kubeadm.
fn running(deployment: &Deployment) -> Option<(&str, &str)> {
    let pod = deployment.spec.template.spec.as_ref()?;
    let mut containers = pod.containers.iter();
    let container = containers.find(|container| container.name == NAME)?;
    let mut volumes = pod.volumes.iter().flatten();
    let volume = volumes.find(|volume| volume.name == VOLUME)?;
    let items = volume
        .config_map
        .as_ref()?
        .items
        .as_deref()
        .unwrap_or_default();
    let item = items.iter().find(|item| item.path == COREFILE)?;
    Some((container.image.as_deref()?, &item.key))
}

/// Performs the [`Upgrade`] of CoreDNS, if any.
pub(super) async fn apply(
    scope: &Scope,
    subject: &Subject,
    seen: &Observation,
) -> Result<(), ControlPlaneError> {
    let (CoreDns::Outdated(upgrade), Some(workload)) = (&seen.coredns, &seen.workload) else {
        return Ok(());
    };
    // `kubeadm upgrade` and later machines read this configuration.
    rollout::before_first_machine(subject, seen).await?;
    let client = &workload.client;
    allow_endpoint_slices(client).await?;
    for write in upgrade.writes() {
        match write {
            Write::Map(data) => write_map(client, &data).await?,
            Write::Deployment(image, key) => write_deployment(client, image, key).await?,
        }
    }
    scope.coredns.insert(&subject.plane, input(subject));
    Ok(())
}

async fn write_map(client: &Client, data: &[(&str, &str)]) -> Result<(), ControlPlaneError> {
    let data: BTreeMap<_, _> = data.iter().copied().collect();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    let patch = Patch::Merge(json!({ "data": data }));
    let written = maps.patch(NAME, &PatchParams::default(), &patch).await;
    written
        .map(drop)
        .map_err(error::remotely("writing configmap kube-system/coredns"))
}

/// Sets the image, and the key of the ConfigMap with the Corefile.
async fn write_deployment(
    client: &Client,
    image: Option<&str>,
    key: &str,
) -> Result<(), ControlPlaneError> {
    let items = json!([{"key": key, "path": COREFILE}]);
    let mut pod =
        json!({"volumes": [{"name": VOLUME, "configMap": {"name": NAME, "items": items}}]});
    if let Some(image) = image {
        pod["containers"] = json!([{"name": NAME, "image": image}]);
    }
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "kube-system");
    let patch = Patch::Strategic(json!({"spec": {"template": {"spec": pod}}}));
    let written = deployments
        .patch(NAME, &PatchParams::default(), &patch)
        .await;
    written
        .map(drop)
        .map_err(error::remotely("writing deployment kube-system/coredns"))
}

/// Lets CoreDNS list and watch EndpointSlices, needed since 1.8.1.
async fn allow_endpoint_slices(client: &Client) -> Result<(), ControlPlaneError> {
    let roles: Api<ClusterRole> = Api::all(client.clone());
    let role = roles.get_opt(ROLE).await;
    let role = role.map_err(error::remotely("reading clusterrole system:coredns"))?;
    let Some(rules) = role.as_ref().and_then(rules_with_endpoint_slices) else {
        return Ok(());
    };
    let version = role.and_then(|role| role.metadata.resource_version);
    let patch = Patch::Merge(json!({"metadata": {"resourceVersion": version}, "rules": rules}));
    let written = roles.patch(ROLE, &PatchParams::default(), &patch).await;
    written
        .map(drop)
        .map_err(error::remotely("writing clusterrole system:coredns"))
}

/// Rules with the one for EndpointSlices; `None` if the role has such a rule.
fn rules_with_endpoint_slices(role: &ClusterRole) -> Option<Vec<Value>> {
    let rules = role.rules.as_deref().unwrap_or_default();
    let slices = |resources: &Option<Vec<String>>| {
        resources
            .iter()
            .flatten()
            .any(|it| it == "endpointslices" || it == "*")
    };
    if rules.iter().any(|rule| slices(&rule.resources)) {
        return None;
    }
    let wanted = json!({"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]});
    Some(
        rules
            .iter()
            .map(|rule| json!(rule))
            .chain([wanted])
            .collect(),
    )
}

#[cfg(test)]
mod tests;
