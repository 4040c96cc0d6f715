//! References of the pods of a node.

use std::sync::Arc;

use apimachinery::value::{items, text};
use serde_json::Value;

use crate::auth::restriction::MIRROR;
use crate::core::Core;
use crate::store::Object;

/// Kinds of objects that a node may read because its pods refer to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Pod,
    Account,
    Secret,
    ConfigMap,
    Claim,
    Volume,
    Attachment,
}

/// True if an object is related to a node: a pod bound to the node, or an object that such a pod refers to.
pub(crate) fn is_related(core: &Core, node: &str, kind: Kind, namespace: &str, name: &str) -> bool {
    let names = |pod: &Value, found: fn(&Value) -> Vec<&str>| found(pod).contains(&name);
    match kind {
        Kind::Pod => {
            let pod = core.store.get("/pods", &format!("{namespace}/{name}"));
            pod.is_some_and(|pod| pod.value()["spec"]["nodeName"] == node)
        }
        Kind::Attachment => {
            let attachment = core.store.get("storage.k8s.io/volumeattachments", name);
            attachment.is_some_and(|attachment| attachment.value()["spec"]["nodeName"] == node)
        }
        Kind::Account => any_pod(core, node, namespace, |pod| {
            pod["spec"]["serviceAccountName"] == name
        }),
        Kind::ConfigMap => any_pod(core, node, namespace, |pod| names(pod, config_maps)),
        Kind::Claim => any_pod(core, node, namespace, |pod| {
            claims(pod).iter().any(|claim| claim == name)
        }),
        Kind::Secret => {
            any_pod(core, node, namespace, |pod| names(pod, secrets))
                || any_volume_with_secret(core, node, namespace, name)
        }
        Kind::Volume => {
            let volume = core.store.get("/persistentvolumes", name);
            volume.is_some_and(|volume| is_claimed(core, node, &volume.value()))
        }
    }
}

/// True if a pod of a namespace, bound to the node, satisfies a condition. Mirror pods are ignored, since nodes
/// create mirror pods.
fn any_pod(core: &Core, node: &str, namespace: &str, condition: impl Fn(&Value) -> bool) -> bool {
    if namespace.is_empty() {
        return false;
    }
    let prefix = format!("{namespace}/");
    let pods: Vec<Arc<Object>> = {
        let state = core.store.read();
        state.range("/pods", &prefix, None).cloned().collect()
    };
    pods.iter().any(|pod| {
        let pod = pod.value();
        pod["spec"]["nodeName"] == node
            && pod["metadata"]["annotations"][MIRROR].is_null()
            && condition(&pod)
    })
}

/// True if a pod of the node claims a volume.
fn is_claimed(core: &Core, node: &str, volume: &Value) -> bool {
    let claim = &volume["spec"]["claimRef"];
    let (namespace, name) = (text(&claim["namespace"]), text(&claim["name"]));
    is_related(core, node, Kind::Claim, namespace, name)
}

fn any_volume_with_secret(core: &Core, node: &str, namespace: &str, name: &str) -> bool {
    let volumes: Vec<Arc<Object>> = {
        let state = core.store.read();
        state
            .range("/persistentvolumes", "", None)
            .cloned()
            .collect()
    };
    volumes.iter().any(|volume| {
        let volume = volume.value();
        volume_secrets(&volume).contains(&(namespace, name)) && is_claimed(core, node, &volume)
    })
}

/// Sources of volumes whose `secretRef` names a Secret.
const WITH_SECRET: [&str; 7] = [
    "cephfs",
    "cinder",
    "flexVolume",
    "rbd",
    "scaleIO",
    "iscsi",
    "storageos",
];

/// Secrets that a kubelet reads to mount a volume, with namespaces (`VisitPVSecretNames`).
fn volume_secrets(volume: &Value) -> Vec<(&str, &str)> {
    let spec = &volume["spec"];
    let claimed = text(&spec["claimRef"]["namespace"]);
    let pick = |namespace| match text(namespace) {
        "" => claimed,
        namespace => namespace,
    };
    let mut found = vec![(
        pick(&spec["azureFile"]["secretNamespace"]),
        text(&spec["azureFile"]["secretName"]),
    )];
    for source in WITH_SECRET {
        let secret = &spec[source]["secretRef"];
        found.push((pick(&secret["namespace"]), text(&secret["name"])));
    }
    for field in [
        "nodePublishSecretRef",
        "nodeStageSecretRef",
        "nodeExpandSecretRef",
    ] {
        let secret = &spec["csi"][field];
        found.push((text(&secret["namespace"]), text(&secret["name"])));
    }
    found
}

/// Secrets that a pod refers to (`VisitPodSecretNames`).
fn secrets(pod: &Value) -> Vec<&str> {
    let spec = &pod["spec"];
    let mut found: Vec<&str> = items(&spec["imagePullSecrets"])
        .map(|secret| text(&secret["name"]))
        .collect();
    found.extend(of_environments(spec, "secretRef", "secretKeyRef"));
    for volume in items(&spec["volumes"]) {
        found.push(text(&volume["azureFile"]["secretName"]));
        found.push(text(&volume["secret"]["secretName"]));
        found.push(text(&volume["csi"]["nodePublishSecretRef"]["name"]));
        for source in WITH_SECRET {
            found.push(text(&volume[source]["secretRef"]["name"]));
        }
        let sources = items(&volume["projected"]["sources"]);
        found.extend(sources.map(|source| text(&source["secret"]["name"])));
    }
    found.retain(|name| !name.is_empty());
    found
}

/// ConfigMaps that a pod refers to (`VisitPodConfigmapNames`).
fn config_maps(pod: &Value) -> Vec<&str> {
    let spec = &pod["spec"];
    let mut found = of_environments(spec, "configMapRef", "configMapKeyRef");
    for volume in items(&spec["volumes"]) {
        found.push(text(&volume["configMap"]["name"]));
        let sources = items(&volume["projected"]["sources"]);
        found.extend(sources.map(|source| text(&source["configMap"]["name"])));
    }
    found.retain(|name| !name.is_empty());
    found
}

/// PersistentVolumeClaims of a pod, including claims from templates.
fn claims(pod: &Value) -> Vec<String> {
    let name = text(&pod["metadata"]["name"]);
    let mut found = Vec::new();
    for volume in items(&pod["spec"]["volumes"]) {
        if let Some(claim) = volume["persistentVolumeClaim"]["claimName"].as_str() {
            found.push(claim.to_owned());
        } else if volume["ephemeral"].is_object() {
            found.push(format!("{name}-{}", text(&volume["name"])));
        }
    }
    found
}

/// Kind of the first API object that a pod refers to, if any, in the words of kube-apiserver's rejection of such a
/// pod (`HasAPIObjectReference`).
pub(crate) fn any(pod: &Value) -> Option<&'static str> {
    let spec = &pod["spec"];
    if !text(&spec["serviceAccountName"]).is_empty() {
        return Some("serviceaccounts");
    }
    if !secrets(pod).is_empty() {
        return Some("secrets");
    }
    if !config_maps(pod).is_empty() {
        return Some("configmaps");
    }
    if items(&spec["resourceClaims"]).next().is_some() {
        return Some("resourceclaims");
    }
    items(&spec["volumes"]).find_map(|volume| {
        let refers = [
            ("configMap", "configmaps (via configmap volumes)"),
            ("secret", "secrets (via secret volumes)"),
            ("csi", "csidrivers (via CSI volumes)"),
            ("glusterfs", "endpoints (via glusterFS volumes)"),
            ("persistentVolumeClaim", "persistentvolumeclaims"),
            (
                "ephemeral",
                "persistentvolumeclaims (via ephemeral volumes)",
            ),
            ("azureFile", "secrets (via azureFile volumes)"),
        ];
        let mut refers = refers
            .into_iter()
            .filter(|(source, _)| volume[*source].is_object());
        refers.next().map(|(_, kind)| kind).or_else(|| {
            items(&volume["projected"]["sources"]).find_map(|source| {
                let refers = [
                    ("configMap", "configmaps (via projected volumes)"),
                    ("secret", "secrets (via projected volumes)"),
                    (
                        "serviceAccountToken",
                        "serviceaccounts (via projected volumes)",
                    ),
                    ("clusterTrustBundle", "clustertrustbundles"),
                    ("podCertificate", "podcertificates"),
                ];
                let mut refers = refers
                    .into_iter()
                    .filter(|(name, _)| source[*name].is_object());
                refers.next().map(|(_, kind)| kind)
            })
        })
    })
}

/// Secrets or ConfigMaps in the environments of all containers.
fn of_environments<'a>(spec: &'a Value, whole: &str, key: &str) -> Vec<&'a str> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let mut found = Vec::new();
    for container in lists.iter().flat_map(|list| items(&spec[*list])) {
        let whole = items(&container["envFrom"]).map(|from| text(&from[whole]["name"]));
        found.extend(whole);
        let keys = items(&container["env"]).map(|env| text(&env["valueFrom"][key]["name"]));
        found.extend(keys);
    }
    found
}
