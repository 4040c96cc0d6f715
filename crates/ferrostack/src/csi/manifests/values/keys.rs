//! The keys of the chart, 2.36.0.

use super::super::SIDECARS;
use crate::chart_values::Key;
use crate::chart_values::Takes::{self, Amount, Documents, Flags, List, Map, Switch, Text, Whole};

const NAMES: &str = "the names are those of the Go manifests, so that the driver takes their place";
const NO_PROBE: &str = "there is no livenessprobe: the driver serves /healthz itself";
const NO_REGISTRAR: &str = "there is no node-driver-registrar: the driver registers itself";
const FERROSTACK: &str = "the image is that of ferrostack, which --image names";
const NO_SIDECARS: &str = "the pods of the nodes have no sidecars";

/// Keys of the parts that are the same for each sidecar.
const OF_SIDECAR: &[(&str, Takes)] = &[
    ("image.repository", Text),
    ("image.tag", Text),
    ("image.pullPolicy", Text),
    ("resources", Map),
    ("extraArgs", Flags),
    ("extraEnv", List),
];
/// Keys of both kinds of pods.
const OF_PODS: &[(&str, Takes)] = &[
    ("podAnnotations", Map),
    ("podLabels", Map),
    ("podSecurityContext", Map),
    ("affinity", Map),
    ("nodeSelector", Map),
    ("tolerations", List),
    ("extraArgs", Flags),
    ("hostAliases", List),
];
const APPLIED: &[(&str, Takes)] = &[
    ("extraLabels", Map),
    ("commonAnnotations", Map),
    ("timeout", Text),
    ("csi.provisioner.topology", Switch),
    ("csi.snapshotter.extraRbac", List),
    ("csi.resizer.extraRbac", List),
    ("csi.livenessprobe.failureThreshold", Whole),
    ("csi.livenessprobe.initialDelaySeconds", Whole),
    ("csi.livenessprobe.timeoutSeconds", Whole),
    ("csi.livenessprobe.periodSeconds", Whole),
    ("csi.plugin.image.pullPolicy", Text),
    ("csi.plugin.volumes", List),
    ("csi.plugin.volumeMounts", List),
    ("csi.plugin.nodePlugin.dnsPolicy", Text),
    ("csi.plugin.nodePlugin.kubeletDir", Text),
    ("csi.plugin.controllerPlugin.replicas", Whole),
    ("csi.plugin.controllerPlugin.strategy.type", Text),
    (
        "csi.plugin.controllerPlugin.strategy.rollingUpdate.maxUnavailable",
        Amount,
    ),
    (
        "csi.plugin.controllerPlugin.strategy.rollingUpdate.maxSurge",
        Amount,
    ),
    ("csi.plugin.controllerPlugin.securityContext", Map),
    ("csi.plugin.resources", Map),
    ("csi.plugin.httpEndpoint.enabled", Switch),
    ("csi.plugin.httpEndpoint.port", Whole),
    ("csi.plugin.podMonitor.enabled", Switch),
    ("csi.plugin.podMonitor.additionalLabels", Map),
    ("csi.plugin.extraArgs", Flags),
    ("csi.plugin.extraEnv", List),
    ("logVerbosityLevel", Whole),
    ("secret.enabled", Switch),
    ("secret.hostMount", Switch),
    ("secret.create", Switch),
    ("secret.filename", Text),
    ("secret.name", Text),
    ("secret.data", Map),
    ("storageClass.enabled", Switch),
    ("storageClass.delete.isDefault", Switch),
    ("storageClass.delete.allowVolumeExpansion", Switch),
    ("storageClass.retain.isDefault", Switch),
    ("storageClass.retain.allowVolumeExpansion", Switch),
    ("storageClass.custom", Documents),
    ("clusterID", Text),
    ("pvcAnnotations", Switch),
    ("priorityClassName", Text),
    ("imagePullSecrets", List),
];
const WITHOUT_EFFECT: &[(&str, Takes, &str)] = &[
    ("nameOverride", Text, NAMES),
    ("fullnameOverride", Text, NAMES),
    ("csi.plugin.image.repository", Text, FERROSTACK),
    ("csi.plugin.image.tag", Text, FERROSTACK),
    ("csi.plugin.nodePlugin.securityContext", Map, NO_SIDECARS),
];

/// All keys.
pub(super) fn all() -> Vec<Key> {
    let mut keys = Vec::new();
    let mut add = |path: String, takes, without_effect| {
        keys.push(Key {
            path,
            takes,
            without_effect,
        });
    };
    for (name, takes) in OF_SIDECAR {
        for (sidecar, _) in SIDECARS {
            add(format!("csi.{sidecar}.{name}"), *takes, None);
        }
        add(format!("csi.livenessprobe.{name}"), *takes, Some(NO_PROBE));
        let path = format!("csi.nodeDriverRegistrar.{name}");
        add(path, *takes, Some(NO_REGISTRAR));
    }
    for (name, takes) in OF_PODS {
        for half in ["nodePlugin", "controllerPlugin"] {
            add(format!("csi.plugin.{half}.{name}"), *takes, None);
        }
    }
    for (path, takes) in APPLIED {
        add((*path).to_owned(), *takes, None);
    }
    for (path, takes, why) in WITHOUT_EFFECT {
        add((*path).to_owned(), *takes, Some(*why));
    }
    keys
}
