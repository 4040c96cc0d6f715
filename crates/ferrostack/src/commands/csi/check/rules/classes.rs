//! CSIDriver, and the classes of each kind.

mod later;

use std::collections::BTreeMap;

use csi_spec::context::ZONE;
use csi_spec::driver::NAME;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::ResourceExt as _;
use kube::api::DynamicObject;

use super::super::finding::Finding;
use super::super::observed::Observed;
use super::{known, list, seen};

/// Former in-tree driver of Kubernetes, whose classes and volumes are translated.
pub(super) const IN_TREE: &str = "kubernetes.io/cinder";
/// Prefix of parameters for the sidecars.
const PREFIX: &str = "csi.storage.k8s.io/";
const FILE_SYSTEM: &str = "csi.storage.k8s.io/fstype";
/// Parameters for the sidecars, without the prefix.
const OF_SIDECARS: &[&str] = &[
    "fstype",
    "provisioner-secret-name",
    "provisioner-secret-namespace",
    "controller-publish-secret-name",
    "controller-publish-secret-namespace",
    "controller-expand-secret-name",
    "controller-expand-secret-namespace",
    "controller-modify-secret-name",
    "controller-modify-secret-namespace",
    "node-stage-secret-name",
    "node-stage-secret-namespace",
    "node-publish-secret-name",
    "node-publish-secret-namespace",
    "node-expand-secret-name",
    "node-expand-secret-namespace",
    "snapshotter-secret-name",
    "snapshotter-secret-namespace",
    "snapshotter-list-secret-name",
    "snapshotter-list-secret-namespace",
];
const FILE_SYSTEMS: &[&str] = &["ext2", "ext3", "ext4", "xfs", "btrfs"];

/// Access modes of several nodes.
pub(super) const SHARED: &[&str] = &["ReadWriteMany", "ReadOnlyMany"];

type Parameters = BTreeMap<String, String>;

pub(super) fn findings(observed: &Observed) -> Vec<Finding> {
    let mut all = driver(observed);
    for class in &observed.cluster.classes {
        if class.provisioner == NAME || class.provisioner == IN_TREE {
            all.extend(storage_class(observed, class));
        }
    }
    for claim in &observed.cluster.claims {
        all.extend(shared_claim(observed, claim));
    }
    for class in &observed.cluster.snapshot_classes {
        if class.data["driver"] == NAME {
            all.extend(snapshot_class(observed, class));
        }
    }
    all.extend(later::findings(observed));
    all
}

fn driver(observed: &Observed) -> Vec<Finding> {
    let object = format!("CSIDriver/{NAME}");
    let Some(driver) = &observed.cluster.driver else {
        let message = "the cluster has no such object: kubelets and sidecars do not know what the driver can do";
        let advice = "apply the output of `ferrostack generate cinder-csi-plugin`";
        return vec![Finding::error(object, "", message, advice)];
    };
    let mut all = Vec::new();
    let modes = driver.spec.volume_lifecycle_modes.iter().flatten();
    if modes.into_iter().any(|mode| mode == "Ephemeral") {
        all.push(Finding::warning(
            &object,
            "spec.volumeLifecycleModes",
            "with `Ephemeral`, pods with inline volumes are admitted, and fail when they are mounted",
            "delete the object, and apply that of `ferrostack generate cinder-csi-plugin`: the field cannot be changed",
        ));
    }
    if driver.spec.attach_required == Some(false) {
        all.push(Finding::error(
            &object,
            "spec.attachRequired",
            "it is false: no volume is attached to a server",
            "delete the object, and apply that of `ferrostack generate cinder-csi-plugin`",
        ));
    }
    if driver.spec.fs_group_policy.as_deref() != Some("File") {
        all.push(Finding::warning(
            &object,
            "spec.fsGroupPolicy",
            "it is not `File`: volumes without a file system in their PersistentVolume, or for several nodes, get no fsGroup",
            "apply the object of `ferrostack generate cinder-csi-plugin`",
        ));
    }
    all
}

fn storage_class(observed: &Observed, class: &StorageClass) -> Vec<Finding> {
    let object = format!("StorageClass/{}", class.name_any());
    let parameters = class.parameters.clone().unwrap_or_default();
    let mut all = Vec::new();
    // The translation of the classes of the tree gives this key its prefix.
    let is_translated = |key: &str| class.provisioner == IN_TREE && key == "fstype";
    for (key, words) in csi::refused_of_storage_class(&parameters) {
        if !is_translated(&key) {
            all.push(refused(&object, &key, words));
        }
    }
    all.extend(of_sidecars(&object, &parameters, OF_SIDECARS));
    all.extend(named_type(observed, &object, &parameters));
    all.extend(zone(observed, &object, &parameters));
    let file_system = parameters.get(FILE_SYSTEM);
    if let Some(name) = file_system.filter(|name| !FILE_SYSTEMS.contains(&name.as_str())) {
        all.push(Finding::error(
            &object,
            format!("parameters.{FILE_SYSTEM}"),
            format!("nodes do not make the file system `{name}`"),
            format!("write one of {}", list(FILE_SYSTEMS.iter().copied())),
        ));
    }
    all.extend(binding(observed, &object, class));
    all.extend(topologies(observed, &object, class));
    all
}

/// [`Finding`] about a parameter refused by the driver.
fn refused(object: &str, key: &str, words: String) -> Finding {
    let advice = match key {
        "fstype" => format!("write it as `{FILE_SYSTEM}`"),
        _ => "create the class anew without it, or with a value that is known: parameters cannot be changed".to_owned(),
    };
    Finding::error(object, format!("parameters.{key}"), words, advice)
}

/// [`Finding`]s about keys unknown to all sidecars, and Secrets without a namespace or a name. `there_are` has the
/// known keys, without the prefix.
fn of_sidecars(object: &str, parameters: &Parameters, there_are: &[&str]) -> Vec<Finding> {
    let mut all = Vec::new();
    for key in parameters.keys() {
        let Some(rest) = key.strip_prefix(PREFIX) else {
            continue;
        };
        let field = format!("parameters.{key}");
        if !there_are.contains(&rest) {
            all.push(Finding::warning(
                object,
                field,
                "no sidecar reads this key",
                format!("correct it; there are: {}", list(there_are.iter().copied())),
            ));
            continue;
        }
        let (name, namespace) = ("-secret-name", "-secret-namespace");
        let other = match (rest.strip_suffix(name), rest.strip_suffix(namespace)) {
            (Some(what), _) => format!("{PREFIX}{what}{namespace}"),
            (_, Some(what)) => format!("{PREFIX}{what}{name}"),
            _ => continue,
        };
        if !parameters.contains_key(&other) {
            all.push(Finding::error(
                object,
                field,
                format!("without `{other}`, the sidecar refuses the class"),
                format!("add `{other}`"),
            ));
        }
    }
    all
}

/// The type of the volumes, by name or id.
fn named_type(observed: &Observed, object: &str, parameters: &Parameters) -> Option<Finding> {
    let wanted = parameters.get("type").filter(|it| !it.is_empty())?;
    let types = known(observed, |cloud| cloud.types.as_ref().ok())?;
    let is_there = types
        .iter()
        .any(|it| it.name == *wanted || it.id == *wanted);
    (!is_there).then(|| {
        Finding::error(
            object,
            "parameters.type",
            format!(
                "Cinder shows the project no type `{wanted}`; it shows {}",
                list(types.iter().map(|it| it.name.as_str()))
            ),
            "name a type that is there, or ask the operator of the cloud for access to it",
        )
    })
}

/// Reason why no node gets a file system with these access modes; none for a block volume.
pub(super) fn shared_writes(modes: Option<&Vec<String>>, mode: Option<&str>) -> Option<String> {
    let has = |wanted: &str| modes.into_iter().flatten().any(|it| it == wanted);
    let is_shared = has("ReadWriteMany") || has("ReadOnlyMany") && has("ReadWriteOnce");
    (is_shared && mode != Some("Block")).then(|| {
        let modes = list(modes.into_iter().flatten().map(String::as_str));
        format!("it has {modes}, and is a file system, which several nodes cannot change at once: it is refused")
    })
}

pub(super) const NOT_SHARED: &str = "use ReadWriteOnce or ReadOnlyMany alone, or `volumeMode: Block` for programs that share a disk";

/// Claim for several nodes that waits for an impossible volume.
fn shared_claim(observed: &Observed, claim: &PersistentVolumeClaim) -> Option<Finding> {
    let spec = claim.spec.as_ref()?;
    let mut modes = spec.access_modes.iter().flatten();
    let mode = modes.find(|mode| SHARED.contains(&mode.as_str()))?;
    let class = spec.storage_class_name.as_deref()?;
    let mut classes = observed.cluster.classes.iter();
    let class = classes.find(|it| it.name_any() == class && it.provisioner == NAME)?;
    let object = || {
        format!(
            "PersistentVolumeClaim/{} in {}",
            claim.name_any(),
            claim.namespace().unwrap_or_default()
        )
    };
    let refused = shared_writes(spec.access_modes.as_ref(), spec.volume_mode.as_deref());
    if let Some(what) = refused.filter(|_| spec.volume_name.is_none()) {
        return Some(Finding::error(
            object(),
            "spec.accessModes",
            what,
            NOT_SHARED,
        ));
    }
    let wanted = class.parameters.as_ref()?.get("type")?;
    let types = known(observed, |cloud| cloud.types.as_ref().ok())?;
    let mut named = types
        .iter()
        .filter(|it| it.name == *wanted || it.id == *wanted);
    let is_single = named.next().is_some_and(|it| !it.is_multiattach());
    (is_single && spec.volume_name.is_none()).then(|| {
        Finding::error(
            object(),
            "spec.accessModes",
            format!(
                "it has {mode}, and StorageClass {} makes volumes of type `{wanted}` without multiattach: it never gets one",
                class.name_any()
            ),
            "use a class whose type has multiattach, or ReadWriteOnce",
        )
    })
}

/// Zone of the volumes, which is a zone of Cinder.
fn zone(observed: &Observed, object: &str, parameters: &Parameters) -> Option<Finding> {
    let wanted = parameters.get("availability").filter(|it| !it.is_empty())?;
    let zones = known(observed, |cloud| cloud.cinder_zones.as_ref().ok())?;
    let is_there = zones.iter().any(|zone| zone.name == *wanted);
    (!is_there).then(|| {
        Finding::error(
            object,
            "parameters.availability",
            format!(
                "Cinder has no zone `{wanted}`; it has {}",
                list(zones.iter().map(|zone| zone.name.as_str()))
            ),
            "name a zone of Cinder, which need not be one of Nova",
        )
    })
}

/// Problem of immediate binding: volumes may be in a zone without pods.
fn binding(observed: &Observed, object: &str, class: &StorageClass) -> Option<Finding> {
    let is_immediate = class.volume_binding_mode.as_deref() != Some("WaitForFirstConsumer");
    let is_free = class.allowed_topologies.as_ref().is_none_or(Vec::is_empty)
        && class
            .parameters
            .as_ref()
            .is_none_or(|it| !it.contains_key("availability"));
    let zones = known(observed, |cloud| cloud.nova_zones.as_ref().ok())?;
    let several = zones.iter().filter(|zone| zone.state.available).count() > 1;
    let counts = observed.topology && !observed.storage.ignore_volume_az;
    (is_immediate && is_free && several && counts).then(|| {
        Finding::warning(
            object,
            "volumeBindingMode",
            format!(
                "it is Immediate: a volume is created in any of the zones {}, before it is known in which one its pod can run",
                list(zones.iter().map(|zone| zone.name.as_str()))
            ),
            "create the class anew with WaitForFirstConsumer: the field cannot be changed",
        )
    })
}

/// `allowedTopologies`: the label of nodes, and zones of Nova as labels.
fn topologies(observed: &Observed, object: &str, class: &StorageClass) -> Vec<Finding> {
    let zones = known(observed, |cloud| cloud.nova_zones.as_ref().ok());
    let labels = zones.map(|zones| {
        let labels = zones.iter().map(|zone| csi::zone::label(&zone.name));
        labels.collect::<Vec<_>>()
    });
    let terms = class.allowed_topologies.iter().flatten();
    let expressions = terms.flat_map(|term| term.match_label_expressions.iter().flatten());
    let mut all = Vec::new();
    for expression in expressions {
        let field = "allowedTopologies";
        if expression.key != ZONE {
            // The driver may have more of them, by --additional-topology.
            continue;
        }
        let unknown = expression.values.iter();
        let unknown = unknown.filter(|zone| labels.as_ref().is_some_and(|it| !it.contains(zone)));
        for zone in unknown {
            all.push(Finding::error(
                object,
                field,
                format!(
                    "Nova has no zone `{zone}`; it has {}",
                    list(labels.iter().flatten().map(String::as_str))
                ),
                "name a zone of Nova",
            ));
        }
    }
    all
}

fn snapshot_class(observed: &Observed, class: &DynamicObject) -> Vec<Finding> {
    let object = format!("VolumeSnapshotClass/{}", class.name_any());
    let parameters: Parameters =
        serde_json::from_value(class.data["parameters"].clone()).unwrap_or_default();
    let refusals = csi::refused_of_snapshot_class(&parameters).into_iter();
    let mut all: Vec<Finding> = refusals
        .map(|(key, words)| refused(&object, &key, words))
        .collect();
    all.extend(of_sidecars(&object, &parameters, OF_SIDECARS));
    if parameters.get("type").is_some_and(|it| it == "backup") {
        all.extend(zone(observed, &object, &parameters));
        let failures = seen(observed).filter_map(|(_, cloud)| cloud.backups.as_ref().err());
        all.extend(failures.map(|error| {
            Finding::error(
                &object,
                "parameters.type",
                error.cause("list the backups"),
                "use `snapshot`, or ask the operator of the cloud for a backup service",
            )
        }));
    }
    all
}
