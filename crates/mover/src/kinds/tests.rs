use super::*;

fn kind(versions: &[&str], contract: &str) -> Kind {
    Kind {
        group: "cluster.x-k8s.io".to_owned(),
        versions: versions.iter().map(|text| (*text).to_owned()).collect(),
        contract: Some(contract.to_owned()),
        ..Kind::clone(&Kind::core("Machine", "machines"))
    }
}

#[test]
fn versions_have_the_order_of_kubernetes() {
    let order = [
        "v1alpha3", "v1alpha4", "v1beta1", "v1beta2", "v1", "v2alpha1", "v2",
    ];
    let ranks: Vec<_> = order.iter().map(|version| rank(version)).collect();
    assert!(
        ranks.is_sorted() && ranks.iter().all(Option::is_some),
        "{ranks:?}"
    );
    for word in ["", "provider", "v", "vx", "v1gamma1", "cluster-name"] {
        assert_eq!(rank(word), None, "{word}");
    }
}

#[test]
fn the_kinds_of_the_suite_are_found_with_the_stored_version_first() {
    let kinds: Vec<Kind> = api::crds::all().iter().filter_map(of_definition).collect();
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name.as_str()).collect();
    for name in [
        "Cluster",
        "Machine",
        "KubeadmConfig",
        "KubeadmControlPlane",
        "OpenStackMachineTemplate",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
    // Cluster-scoped, and therefore not part of any namespace.
    assert!(!names.contains(&"OpenStackClusterIdentity"));
    let machines = kinds
        .iter()
        .find(|kind| kind.is("OpenStackMachine"))
        .unwrap();
    assert_eq!(machines.stored(), "v1beta2");
    assert_eq!(machines.contract.as_deref(), Some("v1beta2"));
    assert!(machines.has_status);
}

#[test]
fn a_target_that_is_older_or_lacks_a_kind_is_refused_with_the_kind() {
    let ours = kind(&["v1beta2", "v1beta1"], "v1beta2");
    let with = |other: Kind| agree(&ours, "v1beta2", &[Arc::new(other)]).map(str::to_owned);
    assert_eq!(
        with(kind(&["v1beta2"], "v1beta2")),
        Ok("v1beta2".to_owned())
    );
    assert_eq!(
        with(kind(&["v1", "v1beta2"], "v1")),
        Ok("v1beta2".to_owned())
    );
    let older = with(kind(&["v1beta1"], "v1beta1")).unwrap_err();
    assert!(
        older.contains("Machine of cluster.x-k8s.io in v1beta1 only"),
        "{older}"
    );
    let older = with(kind(&["v1beta2"], "v1beta1")).unwrap_err();
    assert!(older.contains("the older contract v1beta1"), "{older}");
    let none = agree(&ours, "v1beta2", &[]).unwrap_err();
    assert!(none.contains("does not know the kind Machine"), "{none}");
}
