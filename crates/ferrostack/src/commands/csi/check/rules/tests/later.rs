//! Mistakes in VolumeAttributesClasses and VolumeGroupSnapshotClasses.

use serde_json::{Value, json};

use super::super::super::finding::Level;
use super::super::super::observed::Observed;
use super::{Case, attributes_class, cloud, group_class, object, refused};

fn set_attributes_class(observed: &mut Observed, parameters: Value) {
    observed.cluster.attributes_classes = vec![object(attributes_class(parameters))];
}

fn set_group_class(observed: &mut Observed, parameters: Value) {
    observed.cluster.group_snapshot_classes = vec![object(group_class(parameters))];
}

pub(super) const CASES: &[Case] = &[
    (
        |it| set_attributes_class(it, json!({"iops": "3000"})),
        Level::Error,
        "VolumeAttributesClass/gold",
        "parameters.iops",
        "`iops` of the VolumeAttributesClass is unknown",
        "create the class anew",
    ),
    (
        |it| set_attributes_class(it, json!({"migration-policy": "always"})),
        Level::Error,
        "VolumeAttributesClass/gold",
        "parameters.migration-policy",
        "is never or on-demand, not `always`",
        "parameters cannot be changed",
    ),
    (
        |it| set_attributes_class(it, json!({"metadata/readonly": "True"})),
        Level::Error,
        "VolumeAttributesClass/gold",
        "parameters.metadata/readonly",
        "that Cinder or this driver sets",
        "create the class anew",
    ),
    (
        |it| set_attributes_class(it, json!({"type": "sdd"})),
        Level::Error,
        "VolumeAttributesClass/gold",
        "parameters.type",
        "Cinder shows the project no type `sdd`",
        "name a type that is there",
    ),
    (
        |it| set_group_class(it, json!({"group-type": "together", "consistency": "yes"})),
        Level::Error,
        "VolumeGroupSnapshotClass/shop",
        "parameters.consistency",
        "is verified or declared, not `yes`",
        "create the class anew",
    ),
    (
        |it| {
            set_group_class(
                it,
                json!({"group-type": "together", "force-create": "true"}),
            )
        },
        Level::Error,
        "VolumeGroupSnapshotClass/shop",
        "parameters.force-create",
        "`force-create` of the VolumeGroupSnapshotClass is unknown",
        "create the class anew",
    ),
    (
        |it| set_group_class(it, json!({"group-type": "gone"})),
        Level::Error,
        "VolumeGroupSnapshotClass/shop",
        "parameters.group-type",
        "there is no group type gone",
        "that is there and consistent",
    ),
    (
        |it| {
            set_group_class(
                it,
                json!({"group-type": "apart", "consistency": "declared"}),
            )
        },
        Level::Error,
        "VolumeGroupSnapshotClass/shop",
        "parameters.group-type",
        "are taken one after another",
        "that is there and consistent",
    ),
    (
        |it| set_group_class(it, json!({"group-type": "hidden"})),
        Level::Error,
        "VolumeGroupSnapshotClass/shop",
        "parameters.group-type",
        "say so by `consistency: declared`",
        "create the class anew",
    ),
    (
        |it| set_group_class(it, json!({})),
        Level::Warning,
        "VolumeGroupSnapshotClass/shop",
        "parameters.group-type",
        "name a `group-type`",
        "unless somebody else groups",
    ),
    (
        |it| {
            let key = "csi.storage.k8s.io/snapshotter-secret-name";
            set_group_class(it, json!({"group-type": "together", (key): "x"}));
        },
        Level::Warning,
        "VolumeGroupSnapshotClass/shop",
        "parameters.csi.storage.k8s.io/snapshotter-secret-name",
        "no sidecar reads this key",
        "group-snapshotter-secret-name",
    ),
    (
        |it| cloud(it).group_types = refused(),
        Level::Error,
        "VolumeGroupSnapshotClass/shop",
        "parameters.group-type",
        "Policy doesn't allow it (list the group types",
        "ask the operator",
    ),
];
