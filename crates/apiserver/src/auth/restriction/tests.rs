use super::*;

#[test]
fn a_node_may_label_itself_as_kubelets_do_and_not_as_administrators_do() {
    for allowed in [
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
        "kubelet.kubernetes.io/x",
        "a.node.kubernetes.io/x",
        "node.kubernetes.io/instance-type",
        "example.org/role",
        "role",
        "notkubernetes.io/x",
    ] {
        assert!(!is_forbidden(allowed), "{allowed}");
    }
    for forbidden in [
        "node-role.kubernetes.io/control-plane",
        "node-restriction.kubernetes.io/team",
        "a.node-restriction.kubernetes.io/team",
        "kubernetes.io/role",
        "k8s.io/x",
        "a.k8s.io/x",
    ] {
        assert!(is_forbidden(forbidden), "{forbidden}");
    }
    let (old, new) = (
        json!({"k8s.io/a": "1", "b": "1"}),
        json!({"k8s.io/a": "2", "b": "2"}),
    );
    assert_eq!(forbidden_labels(&new, &old), ["k8s.io/a"]);
    assert!(forbidden_labels(&old, &old).is_empty());
}

#[test]
fn the_common_name_is_read_from_a_certificate_request() {
    let mut params = rcgen::CertificateParams::default();
    let name = &mut params.distinguished_name;
    name.push(rcgen::DnType::CommonName, "system:node:n1");
    let key = rcgen::KeyPair::generate().unwrap();
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    let found = common_name(&STANDARD.encode(pem));
    assert_eq!(found.as_deref(), Some("system:node:n1"));
    assert_eq!(common_name("bm9uZQ=="), None);
}
