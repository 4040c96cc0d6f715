use serde_json::json;

use super::*;

fn annotated(text: &str) -> OpenStackCluster {
    let object = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "OpenStackCluster",
        "metadata": {"name": "demo", "annotations": {SERVER_GROUPS_ANNOTATION: text}},
        "spec": {"identityRef": {"name": "s", "cloudName": "c"}}});
    serde_json::from_value(object).unwrap()
}

#[test]
fn each_role_has_a_policy_of_its_own() {
    let read = |text: &str| policies(&annotated(text)).unwrap();
    assert_eq!(read(""), Policies::new());
    let both = "control-plane=anti-affinity, worker=soft-anti-affinity";
    let wanted = Policies::from([
        (ManagedGroup::ControlPlane, Policy::AntiAffinity),
        (ManagedGroup::Worker, Policy::SoftAntiAffinity),
    ]);
    assert_eq!(read(both), wanted);
    for wrong in [
        "anti-affinity",
        "bastion=anti-affinity",
        "worker=affinity",
        "worker=",
        "worker=anti-affinity,worker=soft-anti-affinity",
    ] {
        let problem = policies(&annotated(wrong)).unwrap_err();
        assert!(problem.starts_with(SERVER_GROUPS_ANNOTATION), "{problem}");
    }
}

#[test]
fn the_longest_name_keeps_its_mark() {
    let long = "x".repeat(63);
    let id = Identity::new();
    let name = name(
        &Names::new(&long, &long),
        id,
        ManagedGroup::ControlPlane,
        Policy::SoftAntiAffinity,
    );
    assert!(name.len() <= 255, "{name}");
    assert!(name.contains(&format!("{long}-{long} ")), "{name}");
    assert_eq!(Mark::in_description(&name), Some(Mark::cluster(id)));
}
