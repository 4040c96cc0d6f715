//! VolumeAttributesClasses and VolumeGroupSnapshotClasses: classes of existing volumes.

use csi_spec::driver::NAME;
use kube::ResourceExt as _;
use kube::api::DynamicObject;

use super::super::super::finding::Finding;
use super::super::super::observed::Observed;
use super::super::{known, seen};
use super::{Parameters, named_type, of_sidecars, refused};

/// Keys of a VolumeGroupSnapshotClass for the snapshotter, without the prefix.
const OF_SNAPSHOTTER: &[&str] = &[
    "group-snapshotter-secret-name",
    "group-snapshotter-secret-namespace",
    "group-snapshotter-get-secret-name",
    "group-snapshotter-get-secret-namespace",
];

pub(super) fn findings(observed: &Observed) -> Vec<Finding> {
    let cluster = &observed.cluster;
    let mut all = Vec::new();
    for class in &cluster.attributes_classes {
        if class.data["driverName"] == NAME {
            all.extend(attributes_class(observed, class));
        }
    }
    for class in &cluster.group_snapshot_classes {
        if class.data["driver"] == NAME {
            all.extend(group_snapshot_class(observed, class));
        }
    }
    all
}

fn parameters(class: &DynamicObject) -> Parameters {
    serde_json::from_value(class.data["parameters"].clone()).unwrap_or_default()
}

fn attributes_class(observed: &Observed, class: &DynamicObject) -> Vec<Finding> {
    let object = format!("VolumeAttributesClass/{}", class.name_any());
    let parameters = parameters(class);
    let refusals = csi::refused_of_attributes_class(&parameters).into_iter();
    let mut all: Vec<Finding> = refusals
        .map(|(key, words)| refused(&object, &key, words))
        .collect();
    all.extend(named_type(observed, &object, &parameters));
    all
}

fn group_snapshot_class(observed: &Observed, class: &DynamicObject) -> Vec<Finding> {
    let object = format!("VolumeGroupSnapshotClass/{}", class.name_any());
    let parameters = parameters(class);
    let refusals = csi::refused_of_group_snapshot_class(&parameters).into_iter();
    let mut all: Vec<Finding> = refusals
        .map(|(key, words)| refused(&object, &key, words))
        .collect();
    all.extend(of_sidecars(&object, &parameters, OF_SNAPSHOTTER));
    all.extend(group_type(observed, &object, &parameters));
    let failures = seen(observed).filter_map(|(_, cloud)| cloud.group_types.as_ref().err());
    all.extend(failures.map(|error| {
        Finding::error(
            &object,
            "parameters.group-type",
            error.cause("list the group types"),
            "ask the operator of the cloud for groups of volumes (Cinder 3.13), or delete the class",
        )
    }));
    all
}

/// Type of groups; the driver makes a group for volumes without one.
fn group_type(observed: &Observed, object: &str, parameters: &Parameters) -> Option<Finding> {
    let types = known(observed, |cloud| cloud.group_types.as_ref().ok())?;
    let words = csi::refused_group_type(parameters, types)?;
    let field = "parameters.group-type";
    let is_named = parameters
        .get("group-type")
        .is_some_and(|it| !it.is_empty());
    Some(match is_named {
        true => Finding::error(
            object,
            field,
            words,
            "create the class anew with a group type that is there and consistent: parameters cannot be changed",
        ),
        false => Finding::warning(
            object,
            field,
            words,
            "create the class anew with one, unless somebody else groups the volumes",
        ),
    })
}
