use serde_json::json;

use super::*;
use crate::guest::kubeadm::{self as kubeadm_files, NodeRegistration};

fn init(extra: &str) -> kubeadm_files::Init {
    kubeadm_files::init(&format!(
        "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: 1.34.1\ncontrolPlaneEndpoint: 127.1.1.1\n{extra}"
    ))
    .unwrap()
}

fn machine(control_plane: bool) -> node::Machine {
    node::Machine {
        uuid: "11-22".to_owned(),
        name: "n-0".to_owned(),
        internal: vec!["10.6.0.10".parse().unwrap()],
        external: vec!["127.9.0.1".parse().unwrap()],
        version: "v1.34.1".to_owned(),
        vcpus: 2,
        memory_mib: 4096,
        disk_gib: 20,
        control_plane,
    }
}

fn registration(text: &str) -> NodeRegistration {
    serde_saphyr::from_str(text).unwrap()
}

const NOW: &str = "2026-01-01T00:00:00Z";

#[test]
fn a_control_plane_node_is_labelled_and_tainted_as_kubeadm_does() {
    let node = node::node(
        &machine(true),
        &registration("kubeletExtraArgs: [{name: provider-id, value: \"openstack:///'11-22'\"}]"),
        NOW,
    );
    assert_eq!(node["spec"]["providerID"], "openstack:///11-22");
    assert_eq!(
        node["spec"]["taints"],
        json!([{"key": node::CONTROL_PLANE, "effect": "NoSchedule"}])
    );
    assert_eq!(node::marks(&machine(true))[node::CONTROL_PLANE], "");
    assert_eq!(
        node["status"]["addresses"][0],
        json!({"type": "InternalIP", "address": "10.6.0.10"})
    );
    assert_eq!(node["status"]["nodeInfo"]["kubeletVersion"], "v1.34.1");
}

#[test]
fn the_socket_is_an_annotation_before_1_34_only() {
    let annotated = |version: &str| {
        let machine = node::Machine {
            version: version.to_owned(),
            ..machine(false)
        };
        let node = node::node(
            &machine,
            &registration("criSocket: unix:///run/a.sock"),
            NOW,
        );
        node["metadata"]["annotations"]["kubeadm.alpha.kubernetes.io/cri-socket"].clone()
    };
    assert_eq!(annotated("v1.33.4"), "unix:///run/a.sock");
    assert!(annotated("v1.34.0").is_null());
}

#[test]
fn add_ons_have_the_roles_that_kubeadm_gives_them() {
    let manifests = addons::manifests(&init(""));
    let named = |name: &str| {
        manifests
            .iter()
            .find(|it| it.body["metadata"]["name"] == name)
    };
    for (name, account) in [
        ("kubeadm:node-proxier", "kube-proxy"),
        ("system:coredns", "coredns"),
    ] {
        let bound = manifests.iter().any(|it| {
            it.body["kind"] == "ClusterRoleBinding"
                && it.body["metadata"]["name"] == name
                && it.body["subjects"][0]["name"] == account
        });
        assert!(bound, "{name}");
    }
    assert_eq!(named("system:coredns").unwrap().body["kind"], "ClusterRole");
}

#[test]
fn registered_taints_and_labels_replace_the_defaults() {
    let arguments =
        "kubeletExtraArgs: {node-labels: 'a=b,c=', register-with-taints: 'k=v:NoExecute'}\n";
    let node = node::node(
        &machine(true),
        &registration(&format!("{arguments}taints: []")),
        NOW,
    );
    assert_eq!(
        node["spec"]["taints"],
        json!([{"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": NOW}])
    );
    assert_eq!(node["metadata"]["labels"]["a"], "b");
    let node = node::node(&machine(false), &registration("{}"), NOW);
    assert_eq!(node["spec"], json!({}));
    assert!(node::marks(&machine(false)).is_empty());
}

#[test]
fn a_kubelet_with_labels_that_are_not_its_own_does_not_start() {
    let refused = |labels: &str| {
        let text = format!("kubeletExtraArgs: [{{name: node-labels, value: '{labels}'}}]");
        node::refused_labels(&registration(&text))
    };
    let allowed = "a=b,example.org/c=d,node.kubernetes.io/pool=x,x.kubelet.kubernetes.io/y=,topology.kubernetes.io/zone=z";
    assert_eq!(refused(allowed), None);
    let others =
        "node-role.kubernetes.io/worker=,node-restriction.kubernetes.io/pool=x,a=b,x.k8s.io/y=z";
    let named = refused(others).unwrap();
    assert!(
        named.ends_with(
            "[node-restriction.kubernetes.io/pool node-role.kubernetes.io/worker x.k8s.io/y]"
        ),
        "{named}"
    );
}

#[test]
fn with_an_external_cloud_provider_a_kubelet_reports_its_name_and_waits_for_the_rest() {
    let external = "{name: cloud-provider, value: external}";
    let node = |arguments: &str| {
        let text = format!("kubeletExtraArgs: [{arguments}]");
        node::node(&machine(true), &registration(&text), NOW)
    };
    let waiting = node(external);
    assert_eq!(
        waiting["spec"],
        json!({"taints": [
            {"key": node::CONTROL_PLANE, "effect": "NoSchedule"},
            {"key": node::UNINITIALIZED, "value": "true", "effect": "NoSchedule"},
        ]})
    );
    let hostname = json!({"type": "Hostname", "address": "n-0"});
    assert_eq!(waiting["status"]["addresses"], json!([hostname]));
    let provided = "alpha.kubernetes.io/provided-node-ip";
    assert!(waiting["metadata"]["annotations"][provided].is_null());

    let given = node(&format!("{external}, {{name: node-ip, value: 10.6.0.10}}"));
    let address = json!({"type": "InternalIP", "address": "10.6.0.10"});
    assert_eq!(given["status"]["addresses"], json!([address, hostname]));
    assert_eq!(given["metadata"]["annotations"][provided], "10.6.0.10");

    let named = node(&format!(
        "{external}, {{name: provider-id, value: \"openstack:///'11-22'\"}}"
    ));
    assert_eq!(named["spec"]["providerID"], "openstack:///11-22");
    let other = node("{name: cloud-provider, value: \"\"}");
    assert_eq!(other["status"]["addresses"].as_array().unwrap().len(), 3);
    assert_eq!(other["spec"]["taints"].as_array().unwrap().len(), 1);
}

#[test]
fn a_static_pod_has_no_address_while_its_node_has_none() {
    let pods = pods::mirror_pods(&init("").cluster, &machine(true), "", "uid", 6443, NOW);
    let status = &pods[0].body["status"];
    assert!(
        status["hostIP"].is_null() && status["podIP"].is_null(),
        "{status}"
    );
    assert_eq!(status["phase"], "Running");
}

#[test]
fn a_silent_node_recovers_to_what_it_was() {
    let healthy = node::status(&machine(false), &[], NOW)["conditions"]
        .as_array()
        .unwrap()
        .clone();
    let silent = node::silent(&healthy, NOW);
    assert!(node::is_ready(&healthy) && !node::is_ready(&silent));
    assert!(
        silent
            .iter()
            .all(|condition| condition["status"] == "Unknown")
    );
    assert_eq!(node::recovered(&silent, NOW), healthy);
    let taints = [json!({"key": "k", "effect": "NoSchedule"})];
    let unreachable = node::unreachable_taints(&taints, NOW);
    assert_eq!(unreachable.len(), 3);
    assert_eq!(node::unreachable_taints(&unreachable, NOW), unreachable);
    assert_eq!(node::reachable_taints(&unreachable), taints);
}

#[test]
fn a_control_plane_has_four_ready_mirror_pods_or_three_with_external_etcd() {
    let pods = |extra: &str| {
        pods::mirror_pods(
            &init(extra).cluster,
            &machine(true),
            "10.6.0.10",
            "uid",
            6443,
            NOW,
        )
    };
    let local = pods("etcd: {local: {imageTag: 3.5.0}}\n");
    let names: Vec<&str> = local.iter().map(Manifest::name).collect();
    assert_eq!(
        names,
        [
            "etcd-n-0",
            "kube-apiserver-n-0",
            "kube-controller-manager-n-0",
            "kube-scheduler-n-0"
        ]
    );
    let etcd = &local[0].body;
    assert_eq!(
        etcd["metadata"]["labels"],
        json!({"component": "etcd", "tier": "control-plane"})
    );
    assert_eq!(
        etcd["metadata"]["annotations"]["kubeadm.kubernetes.io/etcd.advertise-client-urls"],
        "https://10.6.0.10:2379"
    );
    assert!(etcd["metadata"]["annotations"]["kubernetes.io/config.mirror"].is_string());
    assert_eq!(
        etcd["spec"]["containers"][0]["image"],
        "registry.k8s.io/etcd:3.5.0"
    );
    assert_eq!(
        local[1].body["spec"]["containers"][0]["image"],
        "registry.k8s.io/kube-apiserver:v1.34.1"
    );
    assert_eq!(etcd["status"]["podIP"], "10.6.0.10");
    assert_eq!(
        pods::status(etcd, false, NOW)["conditions"][2]["status"],
        "False"
    );
    assert_eq!(
        pods("etcd: {external: {endpoints: [https://e:2379]}}\n").len(),
        3
    );
}

#[test]
fn kubeadm_config_is_completed_and_can_be_read_again() {
    let config = kubeadm::kubeadm_config(&init(
        "clusterName: demo\nnetworking: {podSubnet: 192.168.0.0/16}\n",
    ));
    let text = config.body["data"]["ClusterConfiguration"]
        .as_str()
        .unwrap();
    let stored: Value = serde_saphyr::from_str(text).unwrap();
    assert_eq!(stored["clusterName"], "demo");
    assert_eq!(stored["imageRepository"], "registry.k8s.io");
    assert_eq!(stored["networking"]["dnsDomain"], "cluster.local");
    assert_eq!(stored["networking"]["podSubnet"], "192.168.0.0/16");
    let read = kubeadm_files::stored(text).unwrap();
    assert_eq!(version(&read), "v1.34.1");
}

#[test]
fn add_ons_follow_the_configuration() {
    let image = |manifests: &[Manifest], kind: &str| {
        let found = manifests
            .iter()
            .find(|manifest| manifest.body["kind"] == kind)
            .unwrap();
        found.body["spec"]["template"]["spec"]["containers"][0]["image"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let all = addons::manifests(&init(
        "imageRepository: r.example\ndns: {imageTag: v1.9.9}\n",
    ));
    assert_eq!(image(&all, "DaemonSet"), "r.example/kube-proxy:v1.34.1");
    assert_eq!(image(&all, "Deployment"), "r.example/coredns:v1.9.9");
    for (config, expected) in [
        ("", "registry.k8s.io/coredns/coredns:v1.12.1"),
        ("imageRepository: r.example\n", "r.example/coredns:v1.12.1"),
        (
            "dns: {imageRepository: r.example/dns}\n",
            "r.example/dns/coredns:v1.12.1",
        ),
    ] {
        let all = addons::manifests(&init(config));
        assert_eq!(image(&all, "Deployment"), expected);
    }
    let skipped = init(
        "---\napiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nskipPhases: [addon/kube-proxy]\n",
    );
    assert!(
        addons::manifests(&skipped)
            .iter()
            .all(|manifest| manifest.name() != "kube-proxy")
    );
    for (subnet, index, expected) in [
        ("10.96.0.0/12", 1, Some("10.96.0.1")),
        ("10.96.0.0/12", 10, Some("10.96.0.10")),
        ("10.0.0.0/31", 10, None),
        ("fd00::/108,10.96.0.0/12", 10, Some("fd00::a")),
        ("nonsense", 1, None),
    ] {
        let expected = expected.map(|address| address.parse().unwrap());
        assert_eq!(addons::service_address(subnet, index), expected, "{subnet}");
    }
}
