//! The keys of the chart, 2.36.0.

use crate::chart_values::Keys;
use crate::chart_values::Takes::{self, Flags, List, Map, Switch, Text, Whole};

/// Sections of cloud.conf: keys below `cloudConfig`, and names in the file.
pub(super) const SECTIONS: [(&str, &str); 6] = [
    ("global", "Global"),
    ("networking", "Networking"),
    ("loadBalancer", "LoadBalancer"),
    ("blockStorage", "BlockStorage"),
    ("metadata", "Metadata"),
    ("route", "Route"),
];

const NAMES: &str = "the names are those of the Go manifests";
const FERROSTACK: &str = "the image is that of ferrostack, which --image names";
const LOOPBACK: &str = "/metrics needs no login here, and is served on a loopback address alone";

const APPLIED: &[(&str, Takes)] = &[
    ("commonAnnotations", Map),
    ("imagePullSecrets", List),
    ("extraInitContainers", List),
    ("extraEnv", List),
    ("resources", Map),
    ("livenessProbe", Map),
    ("readinessProbe", Map),
    ("dnsPolicy", Text),
    ("nodeSelector", Map),
    ("tolerations", List),
    ("podAnnotations", Map),
    ("podLabels", Map),
    ("podSecurityContext", Map),
    ("enabledControllers", List),
    ("controllerExtraArgs", Flags),
    ("secret.enabled", Switch),
    ("secret.create", Switch),
    ("secret.name", Text),
    ("logVerbosityLevel", Whole),
    ("hostAliases", List),
    ("priorityClassName", Text),
    ("extraVolumes", List),
    ("extraVolumeMounts", List),
    ("cluster.name", Text),
    ("clusterRoleName", Text),
    ("serviceAccountName", Text),
];
const NAMES_OF_OBJECTS: &[(&str, Takes)] = &[("nameOverride", Text)];
const IMAGE: &[(&str, Takes)] = &[("image.repository", Text), ("image.tag", Text)];
const MONITOR: &[(&str, Takes)] = &[
    ("serviceMonitor.enabled", Switch),
    ("serviceMonitor.additionalLabels", Map),
];

/// All keys.
pub(super) fn all() -> Keys {
    let sections = SECTIONS.map(|(section, _)| (format!("cloudConfig.{section}"), Map));
    Keys::default()
        .applied(APPLIED.iter().copied())
        .applied(sections)
        .without_effect(NAMES, NAMES_OF_OBJECTS.iter().copied())
        .without_effect(FERROSTACK, IMAGE.iter().copied())
        .without_effect(LOOPBACK, MONITOR.iter().copied())
}
