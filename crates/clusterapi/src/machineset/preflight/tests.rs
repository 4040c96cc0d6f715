use api::kube::api::TypeMeta;
use serde_json::json;

use super::*;

fn control_plane(wanted: &str, runs: Option<&str>) -> DynamicObject {
    let types = TypeMeta {
        api_version: "x/v1".to_owned(),
        kind: "KubeadmControlPlane".to_owned(),
    };
    let status = match runs {
        Some(version) => json!({ "versions": [{ "version": version }] }),
        None => json!({}),
    };
    DynamicObject {
        types: Some(types),
        metadata: Default::default(),
        data: json!({ "spec": { "version": wanted }, "status": status }),
    }
}

fn set(version: &str, skip: &str) -> MachineSet {
    let mut set = MachineSet::new("md", Default::default());
    set.spec.template.spec.version = Some(version.to_owned());
    set.metadata.annotations = Some([(SKIP.to_owned(), skip.to_owned())].into());
    set.spec.template.spec.bootstrap.config_ref = Some(api::core::v1beta2::ContractReference::new(
        "b",
        "KubeadmConfigTemplate",
        "md",
    ));
    set
}

#[test]
fn machines_wait_for_a_control_plane_that_is_upgraded_or_of_another_version() {
    let cases = [
        ("v1.34.1", "", control_plane("v1.34.1", Some("v1.34.1")), 0),
        // No control plane version yet: machines may be created, and wait for their bootstrap data.
        ("v1.34.1", "", control_plane("v1.34.1", None), 0),
        ("v1.34.1", "", control_plane("v1.34.2", Some("v1.34.1")), 1),
        ("v1.35.0", "", control_plane("v1.34.2", Some("v1.34.2")), 1),
        // Both are being upgraded: the control plane comes first.
        ("v1.35.0", "", control_plane("v1.35.0", Some("v1.34.2")), 1),
        ("v1.36.0", "", control_plane("v1.35.0", Some("v1.34.2")), 2),
        ("v1.33.0", "", control_plane("v1.34.2", Some("v1.34.2")), 1),
        (
            "v1.33.0",
            "KubeadmVersionSkew",
            control_plane("v1.34.2", Some("v1.34.2")),
            0,
        ),
        (
            "v1.29.0",
            "All",
            control_plane("v1.34.2", Some("v1.34.1")),
            0,
        ),
    ];
    for (version, skip, control_plane, expected) in cases {
        let problems = problems(&set(version, skip), Some(&control_plane));
        assert_eq!(problems.len(), expected, "{version}: {problems:?}");
    }
    assert!(problems(&set("v1.34.1", ""), None).is_empty());
}
