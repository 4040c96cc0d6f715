use serde_json::json;

use super::{binding_of_administrators, binding_of_kubelets, merged, role_of_kubelets, with_tag};

#[test]
fn images_get_the_tag_of_the_version() {
    for (image, version, expected) in [
        (
            "registry.k8s.io/kube-proxy:v1.33.0",
            "v1.34.1",
            Some("registry.k8s.io/kube-proxy:v1.34.1"),
        ),
        ("registry.k8s.io/kube-proxy:v1.34.1", "v1.34.1", None),
        (
            "registry:5000/kube-proxy",
            "1.34.1",
            Some("registry:5000/kube-proxy:v1.34.1"),
        ),
        (
            "registry:5000/kube-proxy:v1",
            "v1.34.1+k3s1",
            Some("registry:5000/kube-proxy:v1.34.1_k3s1"),
        ),
        ("registry.k8s.io/kube-proxy@sha256:00", "v1.34.1", None),
    ] {
        assert_eq!(with_tag(image, version).as_deref(), expected, "{image}");
    }
}

#[test]
fn the_cluster_configuration_keeps_what_a_rollout_does_not_change() {
    let known = json!({"apiVersion": "v1", "kubernetesVersion": "v1.33.0", "clusterName": "demo", "networking": {"podSubnet": "x"}});
    let wanted = json!({"apiVersion": "v1", "kubernetesVersion": "v1.34.1", "clusterName": "other", "featureGates": {"X": true}});
    assert_eq!(
        merged(known.clone(), &wanted),
        json!({"apiVersion": "v1", "kubernetesVersion": "v1.34.1", "clusterName": "demo", "networking": {"podSubnet": "x"}, "featureGates": {"X": true}})
    );
    let newer = json!({"apiVersion": "v2", "kubernetesVersion": "v1.34.1"});
    assert_eq!(merged(known, &newer), newer);
}

#[test]
fn administrators_are_bound_as_kubeadm_binds_them() {
    let binding = json!(binding_of_administrators());
    let group = "rbac.authorization.k8s.io";
    let expected = json!({
        "apiVersion": format!("{group}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "kubeadm:cluster-admins"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": group, "kind": "Group", "name": "kubeadm:cluster-admins"}],
    });
    assert_eq!(binding, expected);
}

#[test]
fn kubelets_may_read_their_configuration_as_kubeadm_allows_it() {
    let group = "rbac.authorization.k8s.io";
    let role = json!({
        "apiVersion": format!("{group}/v1"),
        "kind": "Role",
        "metadata": {"name": "kubeadm:kubelet-config"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["kubelet-config"], "verbs": ["get"]}],
    });
    assert_eq!(json!(role_of_kubelets()), role);
    let member = |name: &str| json!({"apiGroup": group, "kind": "Group", "name": name});
    let binding = json!({
        "apiVersion": format!("{group}/v1"),
        "kind": "RoleBinding",
        "metadata": {"name": "kubeadm:kubelet-config"},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "kubeadm:kubelet-config"},
        "subjects": [member("system:nodes"), member("system:bootstrappers:kubeadm:default-node-token")],
    });
    assert_eq!(json!(binding_of_kubelets()), binding);
}
