//! The keys of the chart, 2.36.0.

use super::super::SIDECARS;
use crate::chart_values::Keys;
use crate::chart_values::Takes::{self, Amount, Documents, Flags, List, Map, Switch, Text, Whole};

const NAMES: &str = "the names are those of the Go manifests, so that the driver takes their place";
const NO_PROBE: &str = "there is no livenessprobe: the driver serves /healthz itself";
const NO_REGISTRAR: &str = "there is no node-driver-registrar: the driver registers itself";
const FERROSTACK: &str = "the image is that of ferrostack, which --image names";
const NO_SIDECARS: &str = "the pods of the nodes have no sidecars";

/// Keys common to all sidecars.
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
const NAMES_OF_OBJECTS: &[(&str, Takes)] = &[("nameOverride", Text), ("fullnameOverride", Text)];
const IMAGE: &[(&str, Takes)] = &[
    ("csi.plugin.image.repository", Text),
    ("csi.plugin.image.tag", Text),
];
const OF_SIDECARS_OF_NODES: &[(&str, Takes)] = &[("csi.plugin.nodePlugin.securityContext", Map)];

/// All keys.
pub(super) fn all() -> Keys {
    let mut keys = Keys::default();
    for (sidecar, _) in SIDECARS {
        keys = keys.applied(of_part(sidecar, OF_SIDECAR));
    }
    for half in ["plugin.nodePlugin", "plugin.controllerPlugin"] {
        keys = keys.applied(of_part(half, OF_PODS));
    }
    keys.applied(APPLIED.iter().copied())
        .without_effect(NO_PROBE, of_part("livenessprobe", OF_SIDECAR))
        .without_effect(NO_REGISTRAR, of_part("nodeDriverRegistrar", OF_SIDECAR))
        .without_effect(NAMES, NAMES_OF_OBJECTS.iter().copied())
        .without_effect(FERROSTACK, IMAGE.iter().copied())
        .without_effect(NO_SIDECARS, OF_SIDECARS_OF_NODES.iter().copied())
}

/// Keys below the key of a part of the chart.
fn of_part(part: &str, keys: &[(&str, Takes)]) -> impl Iterator<Item = (String, Takes)> {
    keys.iter()
        .map(move |(name, takes)| (format!("csi.{part}.{name}"), *takes))
}
