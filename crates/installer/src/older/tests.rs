use super::*;

fn words(text: &str) -> Vec<String> {
    text.split(',').map(str::to_owned).collect()
}

fn versions(definition: &CustomResourceDefinition) -> Vec<(&str, bool)> {
    let versions = definition.spec.versions.iter();
    versions.map(|it| (it.name.as_str(), it.served)).collect()
}

#[test]
fn only_known_versions_are_served_and_never_without_those_of_today() {
    let error = |text: &str| Older::named(&words(text)).unwrap_err().to_string();
    assert!(error("v1alpha3,v1beta1,v1beta2").contains("v1alpha3: there is no such version"));
    assert!(error("v1alpha7,v1beta2").contains("lacks v1beta1"));
    assert_eq!(Older::named(&[]).unwrap(), Older::default());
    assert_eq!(
        Older::named(&words("v1beta1,v1beta2")).unwrap(),
        Older::default()
    );
}

#[test]
fn versions_that_are_served_or_stored_in_the_cluster_stay() {
    let mut there = api::crds::of(&[api::infra::GROUP]);
    let mut first = Older::named(&words("v1alpha6,v1beta1,v1beta2")).unwrap();
    first.add(&mut there);
    for definition in &mut there {
        let stored = serde_json::json!({"storedVersions": ["v1alpha5", "v1beta2"]});
        definition.status = serde_json::from_value(stored).unwrap();
    }
    let mut wanted = api::crds::of(&[api::infra::GROUP]);
    first = Older::default().and(&there, |_| true);
    first.add(&mut wanted);
    let cluster = wanted
        .iter()
        .find(|it| it.spec.names.kind == "OpenStackCluster")
        .unwrap();
    let all = [
        ("v1alpha5", false),
        ("v1alpha6", true),
        ("v1beta1", true),
        ("v1beta2", true),
    ];
    assert_eq!(versions(cluster), all);
    // Another program served them.
    let mut wanted = api::crds::of(&[api::infra::GROUP]);
    Older::default().and(&there, |_| false).add(&mut wanted);
    let cluster = wanted
        .iter()
        .find(|it| it.spec.names.kind == "OpenStackCluster")
        .unwrap();
    assert_eq!(
        versions(cluster),
        [("v1alpha5", false), ("v1beta1", true), ("v1beta2", true)]
    );
}
