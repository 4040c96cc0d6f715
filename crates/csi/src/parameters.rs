//! Validation of the parameters of classes, before an object of the class is requested.

use std::collections::BTreeMap;

use csi_spec::volume_capability::access_mode::Mode;
use csi_spec::volume_capability::{AccessMode, AccessType, MountVolume};
use csi_spec::{
    CreateSnapshotRequest, CreateVolumeGroupSnapshotRequest, CreateVolumeRequest, VolumeCapability,
};
use grpc::Status;
use openstack::volume::GroupType;

use crate::Options;
use crate::attributes::Attributes;
use crate::plan;
use crate::request::{NewGroupSnapshot, NewSnapshot, NewVolume};

/// Invalid parameters of a StorageClass: pairs of key and message of the driver.
#[must_use]
pub fn refused_of_storage_class(parameters: &BTreeMap<String, String>) -> Vec<(String, String)> {
    refused(parameters, |parameters| {
        let capability = VolumeCapability {
            access_mode: Some(AccessMode {
                mode: Mode::SingleNodeWriter.into(),
            }),
            access_type: Some(AccessType::Mount(MountVolume::default())),
        };
        let request = CreateVolumeRequest {
            name: "volume".to_owned(),
            volume_capabilities: vec![capability],
            parameters,
            ..CreateVolumeRequest::default()
        };
        NewVolume::read(&request, &Options::default()).map(drop)
    })
}

/// Invalid parameters of a VolumeSnapshotClass: pairs of key and message of the driver.
#[must_use]
pub fn refused_of_snapshot_class(parameters: &BTreeMap<String, String>) -> Vec<(String, String)> {
    refused(parameters, |parameters| {
        let request = CreateSnapshotRequest {
            name: "snapshot".to_owned(),
            source_volume_id: "volume".to_owned(),
            parameters,
            ..CreateSnapshotRequest::default()
        };
        NewSnapshot::read(&request, &Options::default()).map(drop)
    })
}

/// Invalid parameters of a VolumeAttributesClass: pairs of key and message of the driver.
#[must_use]
pub fn refused_of_attributes_class(parameters: &BTreeMap<String, String>) -> Vec<(String, String)> {
    refused(parameters, |it| Attributes::read(&it).map(drop))
}

/// Invalid parameters of a VolumeGroupSnapshotClass: pairs of key and message of the driver.
#[must_use]
pub fn refused_of_group_snapshot_class(
    parameters: &BTreeMap<String, String>,
) -> Vec<(String, String)> {
    refused(parameters, |it| group_snapshot(&it).map(drop))
}

/// Reason why the driver makes no groups for a VolumeGroupSnapshotClass, by the [`GroupType`]s that the project sees:
/// no type is named, the type is absent, or nothing shows that its snapshots are consistent. `None` also for invalid
/// parameters.
#[must_use]
pub fn refused_group_type<'a>(
    parameters: &BTreeMap<String, String>,
    types: impl IntoIterator<Item = &'a GroupType>,
) -> Option<String> {
    let wanted = group_snapshot(parameters).ok()?;
    let refused = plan::group_type(&wanted, types).err()?;
    Some(refused.message)
}

fn group_snapshot(parameters: &BTreeMap<String, String>) -> Result<NewGroupSnapshot, Status> {
    NewGroupSnapshot::read(&CreateVolumeGroupSnapshotRequest {
        name: "snapshot".to_owned(),
        source_volume_ids: vec!["volume".to_owned()],
        parameters: parameters.clone(),
        ..CreateVolumeGroupSnapshotRequest::default()
    })
}

/// Parses each parameter alone, but together with a valid `type`, since others may depend on the type.
fn refused(
    parameters: &BTreeMap<String, String>,
    read: impl Fn(BTreeMap<String, String>) -> Result<(), Status>,
) -> Vec<(String, String)> {
    let of_type = parameters.get_key_value("type");
    let of_type: BTreeMap<_, _> = of_type
        .map(|(key, value)| (key.clone(), value.clone()))
        .into_iter()
        .collect();
    let beside = match read(of_type.clone()) {
        Ok(()) => of_type,
        Err(_) => BTreeMap::new(),
    };
    let refusal = |(key, value): (&String, &String)| {
        let mut alone = beside.clone();
        alone.insert(key.clone(), value.clone());
        read(alone)
            .err()
            .map(|status| (key.clone(), status.message))
    };
    parameters.iter().filter_map(refusal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(refused: Vec<(String, String)>) -> Vec<String> {
        refused.into_iter().map(|(key, _)| key).collect()
    }

    fn parameters(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn all_that_the_driver_refuses_is_found_at_once() {
        let class = parameters(&[
            ("type", "fast"),
            ("format", "always"),
            ("fstype", "ext4"),
            ("csi.storage.k8s.io/fstype", "ext4"),
        ]);
        let refused = refused_of_storage_class(&class);
        assert!(refused[0].1.contains("is one of blank"), "{refused:?}");
        assert_eq!(keys(refused), ["format", "fstype"]);
        let class = parameters(&[("type", "copy"), ("force-create", "yes"), ("x", "y")]);
        assert_eq!(
            keys(refused_of_snapshot_class(&class)),
            ["force-create", "type", "x"]
        );
        let mut class = parameters(&[
            ("type", "backup"),
            ("force-create", "true"),
            ("availability", "az1"),
        ]);
        assert!(refused_of_snapshot_class(&class).is_empty());
        for of_snapshots in ["snapshot", ""] {
            class.insert("type".to_owned(), of_snapshots.to_owned());
            let refused = refused_of_snapshot_class(&class);
            assert!(refused[0].1.contains("no `type: backup`"), "{refused:?}");
            assert_eq!(keys(refused), ["availability"]);
        }
        let class = parameters(&[
            ("type", "fast"),
            ("migration-policy", "always"),
            ("metadata/readonly", "True"),
            ("iops", "1"),
        ]);
        assert_eq!(
            keys(refused_of_attributes_class(&class)),
            ["iops", "metadata/readonly", "migration-policy"]
        );
        let class = parameters(&[
            ("group-type", "together"),
            ("consistency", "yes"),
            ("type", "x"),
        ]);
        assert_eq!(
            keys(refused_of_group_snapshot_class(&class)),
            ["consistency", "type"]
        );
    }

    #[test]
    fn a_group_type_is_refused_before_a_group_is_asked_for() {
        let group_type = |name: &str, specs: Option<&str>| GroupType {
            id: format!("id-of-{name}"),
            name: name.to_owned(),
            group_specs: specs.map(|it| {
                let key = "consistent_group_snapshot_enabled".to_owned();
                [(key, it.to_owned())].into()
            }),
        };
        let types = [
            group_type("together", Some("<is> True")),
            group_type("apart", Some("<is> False")),
            group_type("hidden", None),
        ];
        let refused = |pairs: &[(&str, &str)]| refused_group_type(&parameters(pairs), &types);
        for (pairs, words) in [
            (&[][..], "name a `group-type`"),
            (&[("group-type", "no")], "there is no group type no"),
            (&[("group-type", "apart")], "taken one after another"),
            (&[("group-type", "hidden")], "`consistency: declared`"),
        ] {
            let words_of = refused(pairs).unwrap();
            assert!(words_of.contains(words), "{words_of}");
        }
        assert_eq!(refused(&[("group-type", "together")]), None);
        assert_eq!(refused(&[("group-type", "id-of-together")]), None);
        let declared = [("group-type", "hidden"), ("consistency", "declared")];
        assert_eq!(refused(&declared), None);
        // An error in the class is reported for the parameter.
        assert_eq!(refused(&[("consistency", "yes")]), None);
    }
}
