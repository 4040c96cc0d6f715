mod later;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PersistentVolume;
use openstack::compute::AvailabilityZone;
use openstack::volume::{
    GroupType, Volume, VolumeAttachment, VolumeLimits, VolumeQuota, VolumeType,
};
use openstack::{Error, ErrorKind};
use serde_json::{Value, json};

use super::super::finding::Level;
use super::super::observed::{Named, Read};
use super::*;

const HANDLE: &str = "8e9ed23f-1e9f-4a0c-8f0c-1d3a0c3b0a11";
const SERVER: &str = "5d5b9e2c-6f2e-4f5a-9a55-3c0a5b7f2f01";

fn object<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn zones(names: &[&str]) -> Vec<AvailabilityZone> {
    let zone = |name: &&str| object(json!({"zoneName": name, "zoneState": {"available": true}}));
    names.iter().map(zone).collect()
}

fn driver() -> Value {
    json!({"metadata": {"name": "cinder.csi.openstack.org"},
        "spec": {"attachRequired": true, "fsGroupPolicy": "File", "volumeLifecycleModes": ["Persistent"]}})
}

fn class(parameters: Value) -> Value {
    json!({"metadata": {"name": "fast"}, "provisioner": "cinder.csi.openstack.org",
        "volumeBindingMode": "WaitForFirstConsumer", "parameters": parameters})
}

fn snapshot_class(parameters: Value) -> Value {
    json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass",
        "metadata": {"name": "daily"}, "driver": "cinder.csi.openstack.org", "parameters": parameters})
}

fn attributes_class(parameters: Value) -> Value {
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttributesClass", "metadata": {"name": "gold"},
        "driverName": "cinder.csi.openstack.org", "parameters": parameters})
}

fn group_class(parameters: Value) -> Value {
    json!({"apiVersion": "groupsnapshot.storage.k8s.io/v1", "kind": "VolumeGroupSnapshotClass",
        "metadata": {"name": "shop"}, "driver": "cinder.csi.openstack.org", "parameters": parameters})
}

fn volume() -> Value {
    json!({"metadata": {"name": "pvc-1", "annotations":
            {"pv.kubernetes.io/provisioned-by": "cinder.csi.openstack.org"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Delete",
            "csi": {"driver": "cinder.csi.openstack.org", "volumeHandle": HANDLE},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions":
                [{"key": "topology.cinder.csi.openstack.org/zone", "operator": "In", "values": ["az1"]}]}]}}}})
}

fn in_tree(annotations: Value) -> Value {
    json!({"metadata": {"name": "old", "annotations": annotations},
        "spec": {"accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Delete",
            "cinder": {"volumeID": HANDLE, "fsType": "ext4"}}})
}

fn group_type(name: &str, consistent: Option<&str>) -> GroupType {
    let key = "consistent_group_snapshot_enabled".to_owned();
    GroupType {
        name: name.to_owned(),
        group_specs: consistent.map(|it| [(key, it.to_owned())].into()),
        ..GroupType::default()
    }
}

/// A cluster and a cloud with nothing wrong.
fn sound() -> Observed {
    let cloud = Cloud {
        nova_zones: Ok(zones(&["az1", "az2"])),
        cinder_zones: Ok(zones(&["az1", "az2"])),
        types: Ok(vec![VolumeType {
            id: "t".to_owned(),
            name: "ssd".to_owned(),
            ..VolumeType::default()
        }]),
        limits: Ok(VolumeLimits::default()),
        quotas: Ok(BTreeMap::new()),
        volumes: Ok(vec![Volume {
            id: HANDLE.to_owned(),
            status: "in-use".to_owned(),
            availability_zone: "az1".to_owned(),
            volume_type: "ssd".to_owned(),
            attachments: vec![VolumeAttachment {
                server_id: SERVER.to_owned(),
                attachment_id: "a".to_owned(),
                ..VolumeAttachment::default()
            }],
            ..Volume::default()
        }]),
        servers: Ok(vec![SERVER.to_owned()]),
        backups: Ok(Vec::new()),
        group_types: Ok(vec![
            group_type("together", Some("<is> True")),
            group_type("apart", Some("<is> False")),
            group_type("hidden", None),
        ]),
    };
    let mut observed = Observed {
        topology: true,
        ..Observed::default()
    };
    observed.clouds.insert(String::new(), Ok(cloud));
    let cluster = &mut observed.cluster;
    cluster.driver = Some(object(driver()));
    cluster.classes = vec![object(class(json!({"type": "ssd", "format": "blkid"})))];
    cluster.snapshot_classes = vec![object(snapshot_class(json!({"type": "backup"})))];
    cluster.attributes_classes = vec![object(attributes_class(
        json!({"type": "ssd", "migration-policy": "never", "metadata/tier": "gold"}),
    ))];
    let parameters = json!({"group-type": "hidden", "consistency": "declared"});
    cluster.group_snapshot_classes = vec![object(group_class(parameters))];
    cluster.volumes = vec![object(volume())];
    cluster.attachments = vec![object(json!({"metadata": {"name": "csi-1"},
        "spec": {"attacher": "cinder.csi.openstack.org", "nodeName": "n", "source": {}}}))];
    cluster.nodes = vec![object(json!({"metadata": {"name": "n",
        "labels": {"topology.cinder.csi.openstack.org/zone": "az2"}}}))];
    observed
}

fn cloud(observed: &mut Observed) -> &mut Cloud {
    observed.clouds.get_mut("").unwrap().as_mut().unwrap()
}

fn refused<T>() -> Read<T> {
    Err(Error::new(ErrorKind::Denied, "Policy doesn't allow it"))
}

fn set_class(observed: &mut Observed, parameters: Value) {
    observed.cluster.classes = vec![object(class(parameters))];
}

fn set_quota(observed: &mut Observed, name: &str, limit: i64, in_use: i64) {
    let quota = VolumeQuota {
        limit,
        in_use,
        reserved: 0,
    };
    cloud(observed).quotas = Ok([(name.to_owned(), quota)].into());
}

/// A class with a Secret, as it is found.
fn set_secret(observed: &mut Observed, found: Named) {
    let key = |what: &str| format!("csi.storage.k8s.io/provisioner-secret-{what}");
    set_class(
        observed,
        json!({(key("name")): "s", (key("namespace")): "n"}),
    );
    let secret = ("n".to_owned(), "s".to_owned());
    observed.cluster.secrets = [(secret, found)].into();
}

#[test]
fn quotas_of_what_no_class_names_and_secrets_made_for_each_claim_are_left_out() {
    let mut observed = sound();
    set_quota(&mut observed, "volumes_other", 0, 0);
    assert_eq!(findings(&observed), []);
    set_quota(&mut observed, "snapshots", 0, 0);
    observed.cluster.snapshot_classes.clear();
    assert_eq!(findings(&observed).len(), 1, "of the snapshots of groups");
    observed.cluster.group_snapshot_classes.clear();
    assert_eq!(findings(&observed), []);
    set_secret(&mut observed, Named::Found(None));
    assert_eq!(findings(&observed), []);
    let key = |what: &str| format!("csi.storage.k8s.io/node-stage-secret-{what}");
    let parameters = json!({(key("name")): "${pvc.name}", (key("namespace")): "n"});
    set_class(&mut observed, parameters);
    assert!(secrets(&observed.cluster).is_empty());
}

fn set_volume(observed: &mut Observed, pointer: &str, value: Value) {
    let mut changed = volume();
    *changed.pointer_mut(pointer).unwrap() = value;
    observed.cluster.volumes = vec![object::<PersistentVolume>(changed)];
}

fn set_driver(observed: &mut Observed, pointer: &str, value: Value) {
    let mut changed = driver();
    *changed.pointer_mut(pointer).unwrap() = value;
    observed.cluster.driver = Some(object(changed));
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    assert_eq!(findings(&sound()), []);
    // The zones of Cinder do not matter where volumes can be used in all of Nova's.
    let mut observed = sound();
    cloud(&mut observed).cinder_zones = Ok(zones(&["nova"]));
    observed.storage.ignore_volume_az = true;
    assert_eq!(findings(&observed), []);
    observed.storage.ignore_volume_az = false;
    let pair = |nova: &str| (nova.to_owned(), "nova".to_owned());
    observed.storage.zone_map = [pair("az1"), pair("az2")].into();
    cloud(&mut observed).volumes.as_mut().unwrap()[0].availability_zone = "nova".to_owned();
    assert_eq!(findings(&observed), []);
    // Of a translated volume, either annotation is enough.
    let by = "pv.kubernetes.io/provisioned-by";
    for annotations in [
        json!({by: "cinder.csi.openstack.org"}),
        json!({by: "kubernetes.io/cinder", "pv.kubernetes.io/migrated-to": "cinder.csi.openstack.org"}),
    ] {
        let mut observed = sound();
        observed.cluster.volumes = vec![object(in_tree(annotations))];
        assert_eq!(findings(&observed), []);
    }
}

/// How something is broken, and the finding: level, object, field, words of the message, words of the advice.
type Case = (
    fn(&mut Observed),
    Level,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

const CASES: &[Case] = &[
    (
        |it| {
            it.conf = vec![cloud_conf::Finding {
                severity: Severity::Warning,
                file: String::new(),
                line: 3,
                section: "BlockStorage".to_owned(),
                key: "bs-version".to_owned(),
                message: "no effect".to_owned(),
            }];
        },
        Level::Warning,
        "cloud.conf",
        "[BlockStorage] bs-version",
        "no effect",
        "change line 3 of the file",
    ),
    (
        |it| {
            let error = Error::new(ErrorKind::Unauthenticated, "The request requires a login");
            it.clouds.insert("two".to_owned(), Err(error));
        },
        Level::Error,
        "cloud.conf",
        "[Global \"two\"]",
        "The request requires a login",
        "credentials",
    ),
    (
        |it| cloud(it).types = refused(),
        Level::Error,
        "cloud.conf",
        "[Global]",
        "Policy doesn't allow it (list the types of volumes",
        "a role",
    ),
    (
        |it| cloud(it).cinder_zones = Ok(zones(&["az1", "ceph"])),
        Level::Error,
        "cloud.conf",
        "[BlockStorage] zone-map",
        "Nova's zone `az2` has no zone of Cinder in [Global]: Cinder has az1, ceph, and not `az2`",
        "write `zone-map = az2=ZONE`",
    ),
    (
        |it| {
            let pair = ("az2".to_owned(), "gone".to_owned());
            it.storage.zone_map = [pair].into();
        },
        Level::Error,
        "cloud.conf",
        "[BlockStorage] zone-map",
        "and not `gone`",
        "write `zone-map = az2=ZONE`",
    ),
    (
        |it| {
            let pair = ("az9".to_owned(), "az2".to_owned());
            it.storage.zone_map = [pair].into();
        },
        Level::Warning,
        "cloud.conf",
        "[BlockStorage] zone-map",
        "Nova has no zone `az9`; it has az1, az2",
        "correct the name",
    ),
    (
        |it| {
            let zones = cloud(it).cinder_zones.as_mut().unwrap();
            zones[1].state.available = false;
        },
        Level::Warning,
        "cloud.conf",
        "[BlockStorage] zone-map",
        "its zone `az2` is not available",
        "operator",
    ),
    (
        |it| {
            cloud(it).limits = Ok(VolumeLimits {
                max_total_volumes: 10,
                total_volumes_used: 10,
                ..VolumeLimits::default()
            });
        },
        Level::Error,
        "quota of the project",
        "[Global]",
        "10 of 10 volumes are in use",
        "ferrostack csi orphans",
    ),
    (
        |it| {
            cloud(it).limits = Ok(VolumeLimits {
                max_total_volume_gigabytes: 1000,
                total_gigabytes_used: 901,
                ..VolumeLimits::default()
            });
        },
        Level::Warning,
        "quota of the project",
        "[Global]",
        "901 of 1000 GiB of volumes are in use",
        "ask for more",
    ),
    (
        |it| set_quota(it, "snapshots", 10, 10),
        Level::Error,
        "quota of the project",
        "[Global]",
        "10 of 10 snapshots are in use",
        "ask for more",
    ),
    (
        |it| set_quota(it, "gigabytes_ssd", 100, 95),
        Level::Warning,
        "quota of the project",
        "[Global]",
        "95 of 100 GiB of volumes and snapshots of the type `ssd` are in use",
        "ask for more",
    ),
    (
        |it| set_secret(it, Named::Absent),
        Level::Error,
        "StorageClass/fast",
        "parameters.csi.storage.k8s.io/provisioner-secret-name",
        "there is no Secret s in n",
        "create it",
    ),
    (
        |it| set_secret(it, Named::Hidden("forbidden".to_owned())),
        Level::Warning,
        "StorageClass/fast",
        "parameters.csi.storage.k8s.io/provisioner-secret-name",
        "the Secret s in n is not shown: forbidden",
        "a user that may get it",
    ),
    (
        |it| set_secret(it, Named::Found(Some("two".to_owned()))),
        Level::Error,
        "StorageClass/fast",
        "parameters.csi.storage.k8s.io/provisioner-secret-name",
        "is `two`, and cloud.conf has [Global], without a name",
        "correct the key",
    ),
    (
        |it| {
            let volumes = cloud(it).volumes.as_mut().unwrap();
            let mark = "cinder.csi.openstack.org/cluster".to_owned();
            volumes.push(Volume {
                id: "other".to_owned(),
                name: "pvc-9".to_owned(),
                metadata: [(mark, "kubernetes".to_owned())].into(),
                attachments: vec![VolumeAttachment {
                    server_id: "gone".to_owned(),
                    attachment_id: "b".to_owned(),
                    ..VolumeAttachment::default()
                }],
                ..Volume::default()
            });
        },
        Level::Warning,
        "volume pvc-9",
        "",
        "attached to server gone, which Nova does not list; no PersistentVolume of this cluster names it",
        "volume attachment delete b`, if no other cluster has it",
    ),
    (
        |it| it.cluster.driver = None,
        Level::Error,
        "CSIDriver/cinder.csi.openstack.org",
        "",
        "the cluster has no such object",
        "ferrostack generate cinder-csi-plugin",
    ),
    (
        |it| {
            set_driver(
                it,
                "/spec/volumeLifecycleModes",
                json!(["Persistent", "Ephemeral"]),
            )
        },
        Level::Warning,
        "CSIDriver/cinder.csi.openstack.org",
        "spec.volumeLifecycleModes",
        "fail when they are mounted",
        "delete the object",
    ),
    (
        |it| set_driver(it, "/spec/attachRequired", json!(false)),
        Level::Error,
        "CSIDriver/cinder.csi.openstack.org",
        "spec.attachRequired",
        "no volume is attached",
        "delete the object",
    ),
    (
        |it| set_driver(it, "/spec/fsGroupPolicy", json!("ReadWriteOnceWithFSType")),
        Level::Warning,
        "CSIDriver/cinder.csi.openstack.org",
        "spec.fsGroupPolicy",
        "it is not `File`",
        "apply the object",
    ),
    (
        |it| set_class(it, json!({"type": "sdd"})),
        Level::Error,
        "StorageClass/fast",
        "parameters.type",
        "Cinder shows the project no type `sdd`; it shows ssd",
        "name a type that is there",
    ),
    (
        |it| set_class(it, json!({"availability": "az3"})),
        Level::Error,
        "StorageClass/fast",
        "parameters.availability",
        "Cinder has no zone `az3`; it has az1, az2",
        "name a zone of Cinder",
    ),
    (
        |it| set_class(it, json!({"format": "never"})),
        Level::Error,
        "StorageClass/fast",
        "parameters.format",
        "is one of blank, first-attach, blkid, not `never`",
        "parameters cannot be changed",
    ),
    (
        |it| set_class(it, json!({"iops": "3000"})),
        Level::Error,
        "StorageClass/fast",
        "parameters.iops",
        "the parameter `iops` of the StorageClass is unknown; there are: type, availability, format",
        "create the class anew",
    ),
    (
        |it| set_class(it, json!({"fstype": "xfs"})),
        Level::Error,
        "StorageClass/fast",
        "parameters.fstype",
        "is unknown",
        "write it as `csi.storage.k8s.io/fstype`",
    ),
    (
        |it| set_class(it, json!({"csi.storage.k8s.io/fstype": "zfs"})),
        Level::Error,
        "StorageClass/fast",
        "parameters.csi.storage.k8s.io/fstype",
        "nodes do not make the file system `zfs`",
        "write one of btrfs, ext2",
    ),
    (
        |it| set_class(it, json!({"csi.storage.k8s.io/fsType": "xfs"})),
        Level::Warning,
        "StorageClass/fast",
        "parameters.csi.storage.k8s.io/fsType",
        "no sidecar reads this key",
        ", fstype, node-",
    ),
    (
        |it| {
            set_class(
                it,
                json!({"csi.storage.k8s.io/provisioner-secret-name": "x"}),
            )
        },
        Level::Error,
        "StorageClass/fast",
        "parameters.csi.storage.k8s.io/provisioner-secret-name",
        "the sidecar refuses the class",
        "add `csi.storage.k8s.io/provisioner-secret-namespace`",
    ),
    (
        |it| {
            it.cluster.claims = vec![
                object(json!({"metadata": {"name": "share", "namespace": "shop"},
                    "spec": {"accessModes": ["ReadWriteMany"], "volumeMode": "Block", "storageClassName": "fast"}})),
                // These have what they ask for.
                object(json!({"metadata": {"name": "one", "namespace": "shop"},
                    "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}})),
                object(json!({"metadata": {"name": "bound", "namespace": "shop"},
                    "spec": {"accessModes": ["ReadWriteMany"], "storageClassName": "fast", "volumeName": "pvc-1"}})),
            ];
        },
        Level::Error,
        "PersistentVolumeClaim/share in shop",
        "spec.accessModes",
        "StorageClass fast makes volumes of type `ssd` without multiattach",
        "a class whose type has multiattach",
    ),
    (
        |it| it.cluster.classes[0].volume_binding_mode = Some("Immediate".to_owned()),
        Level::Warning,
        "StorageClass/fast",
        "volumeBindingMode",
        "in any of the zones az1, az2",
        "WaitForFirstConsumer",
    ),
    (
        |it| {
            let mut changed = class(json!({}));
            changed["allowedTopologies"] = json!([{"matchLabelExpressions":
                [{"key": "topology.cinder.csi.openstack.org/zone", "values": ["az1", "az7"]}]}]);
            it.cluster.classes = vec![object(changed)];
        },
        Level::Error,
        "StorageClass/fast",
        "allowedTopologies",
        "Nova has no zone `az7`; it has az1, az2",
        "name a zone of Nova",
    ),
    (
        |it| it.cluster.snapshot_classes = vec![object(snapshot_class(json!({"type": "copy"})))],
        Level::Error,
        "VolumeSnapshotClass/daily",
        "parameters.type",
        "is snapshot or backup, not `copy`",
        "create the class anew",
    ),
    (
        |it| cloud(it).backups = Err(Error::new(ErrorKind::Absent, "no cinder-backup")),
        Level::Error,
        "VolumeSnapshotClass/daily",
        "parameters.type",
        "no cinder-backup (list the backups",
        "use `snapshot`",
    ),
    (
        |it| set_volume(it, "/spec/csi/volumeHandle", json!("gone")),
        Level::Error,
        "PersistentVolume/pvc-1",
        "spec.csi.volumeHandle",
        "Cinder lists no volume gone in the project",
        "the data are not there",
    ),
    (
        |it| cloud(it).volumes.as_mut().unwrap()[0].status = "error_extending".to_owned(),
        Level::Error,
        "PersistentVolume/pvc-1",
        "spec.csi.volumeHandle",
        "is `error_extending`",
        "openstack volume message list",
    ),
    (
        |it| set_volume(it, "/spec/accessModes", json!(["ReadOnlyMany"])),
        Level::Error,
        "PersistentVolume/pvc-1",
        "spec.accessModes",
        "of type `ssd` without multiattach",
        "for a new volume",
    ),
    (
        |it| {
            let modes = json!(["ReadWriteOnce", "ReadOnlyMany"]);
            set_volume(it, "/spec/accessModes", modes);
            cloud(it).volumes.as_mut().unwrap()[0].multiattach = true;
        },
        Level::Error,
        "PersistentVolume/pvc-1",
        "spec.accessModes",
        "it has ReadOnlyMany, ReadWriteOnce, and is a file system",
        "volumeMode: Block",
    ),
    (
        |it| {
            it.cluster.claims = vec![object(
                json!({"metadata": {"name": "share", "namespace": "shop"},
                "spec": {"accessModes": ["ReadWriteMany"], "storageClassName": "fast"}}),
            )];
        },
        Level::Error,
        "PersistentVolumeClaim/share in shop",
        "spec.accessModes",
        "it has ReadWriteMany, and is a file system",
        "volumeMode: Block",
    ),
    (
        |it| {
            cloud(it).volumes.as_mut().unwrap()[0].availability_zone = "az2".to_owned();
        },
        Level::Warning,
        "PersistentVolume/pvc-1",
        "spec.nodeAffinity",
        "it asks for nodes in az1, and the volume is in Cinder's zone `az2`, for nodes in az2",
        "correct zone-map",
    ),
    (
        |it| {
            let mut other = volume();
            other["metadata"]["name"] = json!("pvc-2");
            it.cluster.volumes.push(object(other));
        },
        Level::Error,
        "PersistentVolume/pvc-1",
        "spec",
        "PersistentVolume/pvc-2 names the same volume",
        "delete one of them",
    ),
    (
        |it| cloud(it).servers = Ok(Vec::new()),
        Level::Error,
        "PersistentVolume/pvc-1",
        "",
        "attached to server 5d5b9e2c-6f2e-4f5a-9a55-3c0a5b7f2f01, which Nova does not list",
        "volume attachment delete a",
    ),
    (
        |it| it.cluster.attachments[0].spec.node_name = "gone".to_owned(),
        Level::Warning,
        "VolumeAttachment/csi-1",
        "spec.nodeName",
        "the cluster has no node gone",
        "csi-attacher",
    ),
    (
        |it| {
            let labels = it.cluster.nodes[0].metadata.labels.as_mut().unwrap();
            labels.insert(
                "topology.cinder.csi.openstack.org/zone".to_owned(),
                "old".to_owned(),
            );
        },
        Level::Warning,
        "Node/n",
        "metadata.labels[topology.cinder.csi.openstack.org/zone]",
        "Nova has no zone `old`",
        "restart the driver's pod",
    ),
    (
        |it| {
            let annotations = json!({"pv.kubernetes.io/provisioned-by": "kubernetes.io/cinder"});
            it.cluster.volumes = vec![object(in_tree(annotations))];
        },
        Level::Error,
        "PersistentVolume/old",
        "metadata.annotations[pv.kubernetes.io/provisioned-by]",
        "it is `kubernetes.io/cinder`, without pv.kubernetes.io/migrated-to",
        "kubectl annotate pv old pv.kubernetes.io/provisioned-by=cinder.csi.openstack.org --overwrite",
    ),
    (
        |it| it.cluster.volumes = vec![object(in_tree(json!({})))],
        Level::Error,
        "PersistentVolume/old",
        "metadata.annotations[pv.kubernetes.io/provisioned-by]",
        "it is missing",
        "kubectl annotate pv old",
    ),
    (
        |it| {
            let by = json!({"pv.kubernetes.io/provisioned-by": "cinder.csi.openstack.org"});
            let mut changed = in_tree(by);
            changed["spec"]["cinder"]["fsType"] = json!("");
            it.cluster.volumes = vec![object(changed)];
        },
        Level::Warning,
        "PersistentVolume/old",
        "spec.cinder.fsType",
        "gets no fsGroup",
        "fsGroupPolicy File",
    ),
];

#[test]
fn each_mistake_is_found_alone_with_its_place_and_with_what_to_do() {
    for (index, (broken, level, object, field, message, advice)) in
        CASES.iter().chain(later::CASES).enumerate()
    {
        let mut observed = sound();
        broken(&mut observed);
        let found = findings(&observed);
        let [finding] = found.as_slice() else {
            panic!("{index} {object} {field}: {found:#?}");
        };
        assert_eq!(finding.level, *level, "{finding:?}");
        assert_eq!((&*finding.object, &*finding.field), (*object, *field));
        assert!(finding.message.contains(message), "{finding:?}");
        assert!(finding.advice.contains(advice), "{finding:?}");
    }
}

#[test]
fn a_cloud_that_does_not_answer_makes_no_volume_missing() {
    let mut observed = sound();
    cloud(&mut observed).volumes = refused();
    set_volume(&mut observed, "/spec/csi/volumeHandle", json!("elsewhere"));
    let found = findings(&observed);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].field, "[Global]");
    // Nor does one of several clouds.
    let mut observed = sound();
    let error = Error::new(ErrorKind::Unreachable, "no route");
    observed.clouds.insert("two".to_owned(), Err(error));
    set_volume(&mut observed, "/spec/csi/volumeHandle", json!("elsewhere"));
    assert_eq!(findings(&observed).len(), 1);
}
