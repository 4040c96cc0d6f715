use serde_json::json;

use super::*;

#[test]
fn the_suites_kinds_are_converted_defaulted_and_validated() {
    let object = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "OpenStackCluster",
        "metadata": {"name": "demo", "namespace": "default"},
        "spec": {"identityRef": {"name": "secret", "cloudName": "cloud"}},
    });
    let to = "infrastructure.cluster.x-k8s.io/v1beta2";
    let mut object = Rules.convert(object, to).unwrap();
    assert_eq!(object["apiVersion"], to);
    Rules.default(&mut object, None);
    assert!(Rules.validate(&object, None, false).is_ok());

    object["spec"]["managedSubnets"] = json!([{"cidr": "not a range"}]);
    let errors = Rules.validate(&object, None, false).unwrap_err();
    assert!(
        errors[0].path.starts_with("spec.managedSubnets"),
        "{}",
        errors[0].path
    );
}

#[test]
fn definitions_with_several_versions_name_a_conversion_and_no_webhook() {
    for definition in api::crds::all().into_iter().map(converted) {
        let several = definition.spec.versions.len() > 1;
        let conversion = definition
            .spec
            .conversion
            .map(|one| (one.strategy, one.webhook));
        let expected = several.then(|| ("Webhook".to_owned(), None));
        assert_eq!(conversion, expected, "{:?}", definition.metadata.name);
    }
}
