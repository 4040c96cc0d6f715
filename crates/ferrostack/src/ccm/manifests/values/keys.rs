//! The keys of the chart, 2.36.0.

use crate::chart_values::Key;
use crate::chart_values::Takes::{self, Flags, List, Map, Switch, Text, Whole};

/// The sections of cloud.conf: their keys below `cloudConfig`, and their names in the file.
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
const WITHOUT_EFFECT: &[(&str, Takes, &str)] = &[
    ("nameOverride", Text, NAMES),
    ("image.repository", Text, FERROSTACK),
    ("image.tag", Text, FERROSTACK),
    ("serviceMonitor.enabled", Switch, LOOPBACK),
    ("serviceMonitor.additionalLabels", Map, LOOPBACK),
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
    for (path, takes) in APPLIED {
        add((*path).to_owned(), *takes, None);
    }
    for (section, _) in SECTIONS {
        add(format!("cloudConfig.{section}"), Map, None);
    }
    for (path, takes, why) in WITHOUT_EFFECT {
        add((*path).to_owned(), *takes, Some(*why));
    }
    keys
}
