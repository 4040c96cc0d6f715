//! Updates inside the workload cluster for a new Kubernetes version. CoreDNS has a module of its own.

use api::controlplane::v1beta2::KubeadmControlPlane;
use api::k8s_openapi::api::apps::v1::DaemonSet;
use api::k8s_openapi::api::core::v1::ConfigMap;
use api::k8s_openapi::api::rbac::v1::{
    ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject as Member,
};
use api::kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use api::kube::{self, ResourceExt};
use api::version::Version;
use operator::client::Api;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::observe::{Observation, Reached};
use super::{ControlPlaneError, Duties, Scope, Subject, coredns, error};
use crate::cloudinit::yaml;
use crate::kubeadm::{self, ApiVersion};

/// Group of administrators, and name of its binding (kubeadm).
const ADMINISTRATORS: &str = "kubeadm:cluster-admins";
/// Role for the kubelet's configuration, and name of its binding (kubeadm).
const KUBELETS: &str = "kubeadm:kubelet-config";
/// Annotation that excludes kube-proxy from the update.
const SKIP_KUBE_PROXY: &str = "controlplane.cluster.x-k8s.io/skip-kube-proxy";

/// Prepares the workload cluster for the first machine of a new version.
pub(super) async fn before_first_machine(
    subject: &Subject,
    seen: &Observation,
) -> Result<(), ControlPlaneError> {
    let Some(workload) = seen.workload.as_ref().filter(|_| seen.facts.initialized) else {
        return Ok(());
    };
    administrators(subject, workload).await?;
    kubelets(workload).await?;
    kubeadm_config(subject, workload).await
}

/// Creates the binding of the administrators. From v1.29 on, kubeadm issues the administrator's certificate of a new
/// machine for the group of this binding, absent after a `kubeadm init` of an older version.
async fn administrators(subject: &Subject, workload: &Reached) -> Result<(), ControlPlaneError> {
    let version: Version = subject.plane.spec.version.parse()?;
    if version.is_before_minor(1, 29) {
        return Ok(());
    }
    let bindings: Api<ClusterRoleBinding> = Api::all(workload.client.clone());
    let (kind, binding) = ("clusterrolebinding", binding_of_administrators());
    ensure(&bindings, kind, ADMINISTRATORS, &binding).await
}

/// Creates the Role for the kubelet's configuration: kubeadm on a new machine reads it with the rights of the Node.
async fn kubelets(workload: &Reached) -> Result<(), ControlPlaneError> {
    let roles: Api<Role> = Api::namespaced(workload.client.clone(), "kube-system");
    let bindings: Api<RoleBinding> = Api::namespaced(workload.client.clone(), "kube-system");
    ensure(&roles, "role", KUBELETS, &role_of_kubelets()).await?;
    ensure(&bindings, "rolebinding", KUBELETS, &binding_of_kubelets()).await
}

/// Creates the object if the name is free.
async fn ensure<K>(
    api: &Api<K>,
    kind: &str,
    name: &str,
    object: &K,
) -> Result<(), ControlPlaneError>
where
    K: Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let reading = error::remotely(format!("reading {kind} {name}"));
    if api.get_opt(name).await.map_err(reading)?.is_some() {
        return Ok(());
    }
    match api.create(&PostParams::default(), object).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        Err(source) => Err(error::remotely(format!("creating {kind} {name}"))(source)),
    }
}

/// Binding as kubeadm creates it.
fn binding_of_administrators() -> ClusterRoleBinding {
    ClusterRoleBinding {
        metadata: named(ADMINISTRATORS),
        role_ref: refers_to("ClusterRole", "cluster-admin"),
        subjects: Some(vec![group(ADMINISTRATORS)]),
    }
}

/// [`Role`] as kubeadm creates it (`uploadconfig`).
fn role_of_kubelets() -> Role {
    Role {
        metadata: named(KUBELETS),
        rules: Some(vec![PolicyRule {
            api_groups: Some(vec![String::new()]),
            resources: Some(vec!["configmaps".to_owned()]),
            resource_names: Some(vec!["kubelet-config".to_owned()]),
            verbs: vec!["get".to_owned()],
            ..PolicyRule::default()
        }]),
    }
}

/// Binding of the Role to Nodes and to joining machines.
fn binding_of_kubelets() -> RoleBinding {
    let joining = "system:bootstrappers:kubeadm:default-node-token";
    RoleBinding {
        metadata: named(KUBELETS),
        role_ref: refers_to("Role", KUBELETS),
        subjects: Some(vec![group("system:nodes"), group(joining)]),
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";

fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    }
}

fn refers_to(kind: &str, name: &str) -> RoleRef {
    RoleRef {
        api_group: Some(RBAC.to_owned()),
        kind: kind.to_owned(),
        name: name.to_owned(),
    }
}

fn group(name: &str) -> Member {
    Member {
        api_group: Some(RBAC.to_owned()),
        kind: "Group".to_owned(),
        name: name.to_owned(),
        namespace: None,
    }
}

/// Updates `kubeadm-config`, the source of the cluster's configuration for `kubeadm join`.
async fn kubeadm_config(subject: &Subject, workload: &Reached) -> Result<(), ControlPlaneError> {
    let maps: Api<ConfigMap> = Api::namespaced(workload.client.clone(), "kube-system");
    let action = "reading configmap kube-system/kubeadm-config";
    let map = maps
        .get("kubeadm-config")
        .await
        .map_err(error::remotely(action))?;
    let text = map
        .data
        .as_ref()
        .and_then(|data| data.get("ClusterConfiguration"));
    let known: Option<Value> = text.and_then(|text| serde_saphyr::from_str(text).ok());
    let known = known
        .filter(Value::is_object)
        .ok_or(ControlPlaneError::KubeadmConfigMap)?;
    let wanted = merged(known.clone(), &configuration(subject)?);
    if wanted == known {
        return Ok(());
    }
    let patch = json!({
        "metadata": {"resourceVersion": map.resource_version()},
        "data": {"ClusterConfiguration": yaml::document(&wanted)},
    });
    let params = PatchParams::default();
    let patch = Patch::Merge(&patch);
    let written = maps.patch("kubeadm-config", &params, &patch);
    written.await.map_err(error::remotely(
        "writing configmap kube-system/kubeadm-config",
    ))?;
    Ok(())
}

/// Workload cluster, once all machines have the version of the control plane.
pub(super) fn settled(seen: &Observation) -> Option<&Reached> {
    let facts = &seen.facts;
    let settled = facts.initialized && facts.machines.len() == facts.replicas;
    let mut machines = facts.machines.iter();
    let settled = settled && machines.all(|m| m.outdated.is_empty() && m.node.is_some());
    seen.workload.as_ref().filter(|_| settled)
}

/// Updates the add-ons to the version of the control plane, after all machines.
pub(super) async fn add_ons(
    scope: &Scope,
    subject: &Subject,
    seen: &Observation,
    duties: &mut Duties,
) {
    duties.note(kube_proxy(scope, subject, seen).await);
    duties.note(coredns::apply(scope, subject, seen).await);
}

async fn kube_proxy(
    scope: &Scope,
    subject: &Subject,
    seen: &Observation,
) -> Result<(), ControlPlaneError> {
    let Some(workload) = settled(seen) else {
        return Ok(());
    };
    let version = &subject.plane.spec.version;
    let done = scope.kube_proxy.get(&subject.plane).as_ref() == Some(version);
    if done || subject.plane.annotations().contains_key(SKIP_KUBE_PROXY) {
        return Ok(());
    }
    let sets: Api<DaemonSet> = Api::namespaced(workload.client.clone(), "kube-system");
    let proxy = sets.get_opt("kube-proxy").await;
    let proxy = proxy.map_err(error::remotely("reading daemonset kube-system/kube-proxy"))?;
    if let Some(patch) = proxy
        .as_ref()
        .and_then(|proxy| proxy_patch(proxy, &subject.plane))
    {
        let params = PatchParams::default();
        let patch = Patch::Strategic(&patch);
        let written = sets.patch("kube-proxy", &params, &patch);
        written
            .await
            .map_err(error::remotely("writing daemonset kube-system/kube-proxy"))?;
    }
    scope.kube_proxy.insert(&subject.plane, version.clone());
    Ok(())
}

/// ClusterConfiguration of the spec.
fn configuration(subject: &Subject) -> Result<Value, ControlPlaneError> {
    let spec = &subject.plane.spec;
    let version: Version = spec.version.parse()?;
    let config = spec.kubeadm_config_spec.clone().unwrap_or_default();
    let cluster =
        kubeadm::with_local_mode(config.cluster_configuration.unwrap_or_default(), &version);
    let timeouts = config.init_configuration.and_then(|init| init.timeouts);
    let facts = kubeadm::facts_of(&subject.cluster, &spec.version);
    let api = ApiVersion::from_version(&version)?;
    Ok(kubeadm::cluster_configuration(
        &cluster,
        &facts,
        timeouts.as_ref(),
        api,
    ))
}

/// Takes the fields of a rollout from `wanted`; all others stay as kubeadm wrote them.
fn merged(mut known: Value, wanted: &Value) -> Value {
    let upgraded = known.get("apiVersion") != wanted.get("apiVersion");
    if upgraded {
        // The API versions have different fields, so the whole document is replaced.
        return wanted.clone();
    }
    for name in [
        "kubernetesVersion",
        "imageRepository",
        "featureGates",
        "apiServer",
        "controllerManager",
        "scheduler",
        "etcd",
        "dns",
        "certificateValidityPeriod",
        "caCertificateValidityPeriod",
        "encryptionAlgorithm",
    ] {
        if let Some(value) = wanted.get(name) {
            known[name] = value.clone();
        }
    }
    known
}

/// Patch that sets the tag of kube-proxy's image to the version of the control plane.
fn proxy_patch(proxy: &DaemonSet, plane: &KubeadmControlPlane) -> Option<Value> {
    let pod = proxy.spec.template.spec.as_ref()?;
    let container = pod
        .containers
        .iter()
        .find(|container| container.name == "kube-proxy")?;
    let image = with_tag(container.image.as_deref()?, &plane.spec.version)?;
    Some(json!({"spec": {"template": {"spec": {
        "containers": [{"name": "kube-proxy", "image": image}],
    }}}}))
}

/// `image` with the tag of `version` (with `_` for `+`, a character not allowed in tags, as kubeadm does). `None` for
/// an equal tag, or an image with a digest.
fn with_tag(image: &str, version: &str) -> Option<String> {
    if image.contains('@') {
        return None;
    }
    let tag = format!("v{}", version.trim_start_matches('v')).replace('+', "_");
    let path = image.rfind('/').map_or(0, |at| at + 1);
    let name = match image[path..].find(':') {
        Some(colon) => &image[..path + colon],
        None => image,
    };
    let wanted = format!("{name}:{tag}");
    (wanted != image).then_some(wanted)
}

#[cfg(test)]
mod tests;
