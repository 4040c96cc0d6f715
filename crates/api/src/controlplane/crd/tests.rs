use crate::controlplane::crd::all;

#[test]
fn both_versions_can_be_scaled() {
    let planes = &all()[0];
    for version in &planes.spec.versions {
        let scale = version
            .subresources
            .as_ref()
            .and_then(|s| s.scale.as_ref())
            .unwrap();
        assert_eq!(scale.spec_replicas_path, ".spec.replicas");
        assert_eq!(scale.status_replicas_path, ".status.replicas");
        assert_eq!(
            scale.label_selector_path.as_deref(),
            Some(".status.selector")
        );
    }
}
