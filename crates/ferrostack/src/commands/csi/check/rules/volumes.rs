//! PersistentVolumes and volumes, attachments and servers, nodes and zones.

use std::collections::BTreeMap;

use csi::owner;
use csi::zone::{self, ZoneMap};
use csi_spec::context::ZONE;
use csi_spec::driver::NAME;
use k8s_openapi::api::core::v1::PersistentVolume;
use kube::ResourceExt as _;
use openstack::volume::Volume;

use super::super::finding::Finding;
use super::super::observed::{Cloud, Observed};
use super::classes::{IN_TREE, NOT_SHARED, SHARED, shared_writes};
use super::{known, list, seen};

const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
const MIGRATED_TO: &str = "pv.kubernetes.io/migrated-to";

pub(super) fn findings(observed: &Observed) -> Vec<Finding> {
    let mut all = Vec::new();
    let mut named: BTreeMap<&str, Vec<&PersistentVolume>> = BTreeMap::new();
    for volume in &observed.cluster.volumes {
        if let Some(handle) = handle(volume) {
            named.entry(handle).or_default().push(volume);
            all.extend(annotation(volume));
            all.extend(file_system(volume));
            all.extend(in_cloud(observed, volume, handle));
        }
    }
    for (handle, volumes) in &named {
        all.extend(shared(handle, volumes));
    }
    for (_, cloud) in seen(observed) {
        all.extend(lost_servers(&named, cloud));
    }
    all.extend(lost_nodes(observed));
    all.extend(node_zones(observed));
    all
}

/// Volume of a PersistentVolume, of this driver or of the former in-tree one.
pub(in crate::commands::csi) fn handle(volume: &PersistentVolume) -> Option<&str> {
    let spec = volume.spec.as_ref()?;
    let ours = spec.csi.as_ref().filter(|csi| csi.driver == NAME);
    let ours = ours.map(|csi| csi.volume_handle.as_str());
    ours.or_else(|| Some(spec.cinder.as_ref()?.volume_id.as_str()))
}

fn object(volume: &PersistentVolume) -> String {
    format!("PersistentVolume/{}", volume.name_any())
}

fn is_in_tree(volume: &PersistentVolume) -> bool {
    volume.spec.as_ref().is_some_and(|it| it.cinder.is_some())
}

/// Missing annotation: without the name of this driver, a volume is not deleted with its PersistentVolume.
fn annotation(volume: &PersistentVolume) -> Option<Finding> {
    let spec = volume.spec.as_ref()?;
    let is_deleted = spec.persistent_volume_reclaim_policy.as_deref() == Some("Delete");
    let annotation = |key: &str| volume.annotations().get(key).map(String::as_str);
    let by = annotation(PROVISIONED_BY);
    let fits = by == Some(NAME) || (by == Some(IN_TREE) && annotation(MIGRATED_TO) == Some(NAME));
    if !is_deleted || fits || (!is_in_tree(volume) && by.is_none()) {
        return None;
    }
    let message = match by {
        None => {
            "it is missing: the object would go, and the volume would stay in Cinder".to_owned()
        }
        Some(by) => format!(
            "it is `{by}`, without {MIGRATED_TO}: the object would go, and the volume would stay in Cinder"
        ),
    };
    Some(Finding::error(
        object(volume),
        format!("metadata.annotations[{PROVISIONED_BY}]"),
        message,
        format!(
            "kubectl annotate pv {} {PROVISIONED_BY}={NAME} --overwrite",
            volume.name_any()
        ),
    ))
}

/// Missing file system: without one in the PersistentVolume, the kubelet does not apply fsGroup to an in-tree volume.
fn file_system(volume: &PersistentVolume) -> Option<Finding> {
    let spec = volume.spec.as_ref()?;
    let is_missing = spec.cinder.as_ref()?.fs_type.as_deref().unwrap_or_default() == "";
    let is_block = spec.volume_mode.as_deref() == Some("Block");
    (is_missing && !is_block).then(|| {
        Finding::warning(
            object(volume),
            "spec.cinder.fsType",
            "it is missing: with fsGroupPolicy ReadWriteOnceWithFSType, the volume gets no fsGroup",
            "set fsGroupPolicy File in the CSIDriver",
        )
    })
}

fn in_cloud(observed: &Observed, volume: &PersistentVolume, handle: &str) -> Vec<Finding> {
    let Some(all) = known(observed, |cloud| cloud.volumes.as_ref().ok()) else {
        return Vec::new();
    };
    let field = match is_in_tree(volume) {
        true => "spec.cinder.volumeID",
        false => "spec.csi.volumeHandle",
    };
    let Some(found) = all.iter().find(|it| it.id == handle) else {
        return vec![Finding::error(
            object(volume),
            field,
            format!("Cinder lists no volume {handle} in the project"),
            "delete claim and PersistentVolume, or correct the project in cloud.conf: the data are not there",
        )];
    };
    let mut findings = Vec::new();
    if found.status.starts_with("error") {
        findings.push(Finding::error(
            object(volume),
            field,
            format!("Cinder says that volume {handle} is `{}`", found.status),
            format!("`openstack volume message list` has the reason; ask the operator of the cloud to reset {handle}"),
        ));
    }
    findings.extend(multiattach(volume, found));
    findings.extend(zone(observed, volume, found));
    findings
}

/// Impossible sharing: several nodes can have a volume only if the type allows sharing, and a file system only without
/// writers.
fn multiattach(volume: &PersistentVolume, found: &Volume) -> Option<Finding> {
    let spec = volume.spec.as_ref()?;
    let modes = spec.access_modes.as_ref()?;
    if let Some(what) = shared_writes(Some(modes), spec.volume_mode.as_deref()) {
        return Some(Finding::error(
            object(volume),
            "spec.accessModes",
            what,
            NOT_SHARED,
        ));
    }
    let mode = modes.iter().find(|mode| SHARED.contains(&mode.as_str()))?;
    (!found.multiattach).then(|| {
        Finding::error(
            object(volume),
            "spec.accessModes",
            format!(
                "it has {mode}, and the volume is of type `{}` without multiattach: a second node never gets it",
                found.volume_type
            ),
            "use a type with multiattach, whose extra specs have `multiattach: <is> True`, for a new volume",
        )
    })
}

/// Zones of the [`PersistentVolume`] compared with its volume's zone.
fn zone(observed: &Observed, volume: &PersistentVolume, found: &Volume) -> Option<Finding> {
    if observed.storage.ignore_volume_az || !observed.topology {
        return None;
    }
    let affinity = volume.spec.as_ref()?.node_affinity.as_ref()?;
    let terms = affinity.required.as_ref()?.node_selector_terms.iter();
    let expressions = terms.flat_map(|term| term.match_expressions.iter().flatten());
    let zones = expressions.filter(|it| it.key == ZONE || it.key == "topology.kubernetes.io/zone");
    let zones: Vec<&str> = zones
        .flat_map(|it| it.values.iter().flatten())
        .map(String::as_str)
        .collect();
    let map = ZoneMap(observed.storage.zone_map.clone());
    let fitting = map.of_nova(&found.availability_zone);
    let fits = zones.is_empty() || zones.iter().any(|it| fitting.iter().any(|zone| zone == it));
    (!fits).then(|| {
        Finding::warning(
            object(volume),
            "spec.nodeAffinity",
            format!(
                "it asks for nodes in {}, and the volume is in Cinder's zone `{}`, for nodes in {}",
                list(zones.iter().copied()),
                found.availability_zone,
                list(fitting.iter().map(String::as_str))
            ),
            "correct zone-map in cloud.conf, or move the volume: the field cannot be changed",
        )
    })
}

/// Several PersistentVolumes of one volume.
fn shared(handle: &str, volumes: &[&PersistentVolume]) -> Option<Finding> {
    let [first, second, ..] = volumes else {
        return None;
    };
    Some(Finding::error(
        object(first),
        "spec",
        format!(
            "{} names the same volume {handle}: one of the two deletes, or mounts, what the other has",
            object(second)
        ),
        "delete one of them, with the reclaim policy Retain",
    ))
}

/// Attachments in Cinder of servers unknown to Nova: of volumes with a PersistentVolume, and of others made by the
/// driver.
fn lost_servers(named: &BTreeMap<&str, Vec<&PersistentVolume>>, cloud: &Cloud) -> Vec<Finding> {
    let (Ok(volumes), Ok(servers)) = (&cloud.volumes, &cloud.servers) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for volume in volumes {
        let of_cluster = named.get(volume.id.as_str()).and_then(|it| it.first());
        if of_cluster.is_none() && !owner::is_marked(&volume.metadata) {
            continue;
        }
        let lost = volume.attachments.iter();
        let lost = lost.filter(|it| !it.server_id.is_empty() && !servers.contains(&it.server_id));
        for attachment in lost {
            let message = format!(
                "Cinder has volume {} attached to server {}, which Nova does not list",
                volume.id, attachment.server_id
            );
            let command = format!(
                "`openstack --os-volume-api-version 3.27 volume attachment delete {}`",
                attachment.attachment_id
            );
            all.push(match of_cluster {
                Some(of_cluster) => Finding::error(
                    object(of_cluster),
                    "",
                    message,
                    format!(
                        "delete the VolumeAttachment of that node, upon which the driver deletes the attachment; or {command}"
                    ),
                ),
                None => Finding::warning(
                    format!("volume {}", volume.name),
                    "",
                    format!("{message}; no PersistentVolume of this cluster names it"),
                    format!("{command}, if no other cluster has it"),
                ),
            });
        }
    }
    all
}

/// VolumeAttachments of nodes missing in the cluster.
fn lost_nodes(observed: &Observed) -> Vec<Finding> {
    let nodes = &observed.cluster.nodes;
    let ours = observed.cluster.attachments.iter();
    let ours = ours.filter(|it| it.spec.attacher == NAME);
    let lost = ours.filter(|it| {
        let mut nodes = nodes.iter();
        !nodes.any(|node| node.name_any() == it.spec.node_name)
    });
    lost.map(|attachment| {
        Finding::warning(
            format!("VolumeAttachment/{}", attachment.name_any()),
            "spec.nodeName",
            format!("the cluster has no node {}", attachment.spec.node_name),
            "wait six minutes for kube-controller-manager to detach the volume; if it stays, see the log of csi-attacher",
        )
    })
    .collect()
}

/// Zones reported by nodes but missing in Nova.
fn node_zones(observed: &Observed) -> Vec<Finding> {
    let zones = known(observed, |cloud| cloud.nova_zones.as_ref().ok());
    let Some(zones) = zones.filter(|_| observed.topology) else {
        return Vec::new();
    };
    let labels: Vec<String> = zones.iter().map(|it| zone::label(&it.name)).collect();
    let nodes = observed.cluster.nodes.iter();
    let labelled = nodes.filter_map(|node| Some((node, node.labels().get(ZONE)?)));
    let unknown = labelled.filter(|(_, zone)| !labels.contains(zone));
    unknown
        .map(|(node, zone)| {
            Finding::warning(
                format!("Node/{}", node.name_any()),
                format!("metadata.labels[{ZONE}]"),
                format!(
                    "Nova has no zone `{zone}`; it has {}",
                    list(labels.iter().map(String::as_str))
                ),
                "restart the driver's pod on the node, which reports its zone again",
            )
        })
        .collect()
}
