//! kube-proxy and CoreDNS, as created by kubeadm's add-on phases.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::super::kubeadm::Init;
use super::kubeadm::{binding, config_map, rbac_object};
use super::node::CONTROL_PLANE;
use super::{Manifest, REGISTRY, SERVICE_SUBNET, image, version};

const APPS: &str = "/apis/apps/v1/namespaces/kube-system";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const CORE: &str = "/api/v1/namespaces/kube-system";

/// Tags of kubeadm's CoreDNS images from a minor version 1.x of Kubernetes on, newest first.
const COREDNS: [(u64, &str); 8] = [
    (35, "v1.13.1"),
    (34, "v1.12.1"),
    (33, "v1.12.0"),
    (31, "v1.11.3"),
    (29, "v1.11.1"),
    (27, "v1.10.1"),
    (25, "v1.9.3"),
    (0, "v1.8.6"),
];

/// Returns the [`Manifest`]s of the add-ons outside of `skipPhases`.
pub(crate) fn manifests(init: &Init) -> Vec<Manifest> {
    let skipped = |phase: &str| {
        init.skip_phases
            .iter()
            .any(|skipped| skipped == phase || skipped == "addon")
    };
    let mut all = Vec::new();
    if !skipped("addon/kube-proxy") {
        all.extend(kube_proxy(init));
    }
    if !skipped("addon/coredns") {
        all.extend(coredns(init));
    }
    all
}

/// Returns the address `index` of a service subnet, such as `10.96.0.1` for index 1 of `10.96.0.0/12`.
pub(crate) fn service_address(subnet: &str, index: u128) -> Option<IpAddr> {
    let first = subnet.split(',').next()?.trim();
    match first.parse::<ipnet::IpNet>().ok()? {
        ipnet::IpNet::V4(net) => {
            let index = u32::try_from(index).ok()?;
            let address = u32::from(net.network()).checked_add(index)?;
            let address = std::net::Ipv4Addr::from(address);
            net.contains(&address).then_some(address.into())
        }
        ipnet::IpNet::V6(net) => {
            let address = u128::from(net.network()).checked_add(index)?;
            let address = std::net::Ipv6Addr::from(address);
            net.contains(&address).then_some(address.into())
        }
    }
}

fn kube_proxy(init: &Init) -> Vec<Manifest> {
    let labels = json!({"k8s-app": "kube-proxy"});
    let containers = json!([{
        "name": "kube-proxy",
        "image": image(&init.cluster, "kube-proxy", &version(&init.cluster)),
        "imagePullPolicy": "IfNotPresent",
        "command": ["/usr/local/bin/kube-proxy", "--config=/var/lib/kube-proxy/config.conf", "--hostname-override=$(NODE_NAME)"],
    }]);
    vec![
        service_account("kube-proxy"),
        of_cluster("kubeadm:node-proxier", "system:node-proxier", "kube-proxy"),
        config_map(
            "kube-system",
            "kube-proxy",
            json!({"config.conf": "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"}),
        ),
        Manifest::new(
            format!("{APPS}/daemonsets"),
            json!({
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "metadata": {"name": "kube-proxy", "namespace": "kube-system", "labels": labels},
                "spec": {
                    "selector": {"matchLabels": labels},
                    "updateStrategy": {"type": "RollingUpdate"},
                    "template": {
                        "metadata": {"labels": labels},
                        "spec": {
                            "containers": containers,
                            "hostNetwork": true,
                            "priorityClassName": "system-node-critical",
                            "serviceAccountName": "kube-proxy",
                            "nodeSelector": {"kubernetes.io/os": "linux"},
                            "tolerations": [{"operator": "Exists"}],
                        },
                    },
                },
            }),
        ),
    ]
}

fn coredns(init: &Init) -> Vec<Manifest> {
    let labels = json!({"k8s-app": "kube-dns"});
    let dns = &init.cluster.dns;
    let default = coredns_tag(&version(&init.cluster));
    let tag = dns.image_tag.as_deref().unwrap_or(default);
    // Only the registry of the project has the image in a folder of its own.
    let image = match (&dns.image_repository, &init.cluster.image_repository) {
        (Some(own), _) => format!("{own}/coredns:{tag}"),
        (None, Some(mirror)) if mirror != REGISTRY => format!("{mirror}/coredns:{tag}"),
        _ => format!("{REGISTRY}/coredns/coredns:{tag}"),
    };
    let networking = &init.cluster.networking;
    let domain = networking.dns_domain.as_deref().unwrap_or("cluster.local");
    let subnet = networking
        .service_subnet
        .as_deref()
        .unwrap_or(SERVICE_SUBNET);
    let corefile = format!(
        ".:53 {{\n    errors\n    health {{\n       lameduck 5s\n    }}\n    ready\n    kubernetes {domain} in-addr.arpa ip6.arpa {{\n       pods insecure\n       fallthrough in-addr.arpa ip6.arpa\n       ttl 30\n    }}\n    prometheus :9153\n    forward . /etc/resolv.conf {{\n       max_concurrent 1000\n    }}\n    cache 30\n    loop\n    reload\n    loadbalance\n}}\n"
    );
    let mut all = vec![
        service_account("coredns"),
        rbac_object(
            format!("{RBAC}/clusterroles"),
            "ClusterRole",
            None,
            "system:coredns",
            &json!({"rules": [
                {"apiGroups": [""], "resources": ["endpoints", "services", "pods", "namespaces"], "verbs": ["list", "watch"]},
                {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
            ]}),
        ),
        of_cluster("system:coredns", "system:coredns", "coredns"),
        config_map("kube-system", "coredns", json!({"Corefile": corefile})),
        Manifest::new(
            format!("{APPS}/deployments"),
            coredns_deployment(&labels, &image),
        ),
    ];
    if let Some(address) = service_address(subnet, 10) {
        all.push(Manifest::new(
            format!("{CORE}/services"),
            dns_service(&labels, address),
        ));
    }
    all
}

/// Returns the tag of kubeadm's CoreDNS image for a version of Kubernetes such as `v1.34.1`.
fn coredns_tag(version: &str) -> &'static str {
    let minor = version
        .split('.')
        .nth(1)
        .and_then(|minor| minor.parse().ok());
    let minor: u64 = minor.unwrap_or(u64::MAX);
    let known = COREDNS.iter().find(|(since, _)| *since <= minor);
    known.map_or("v1.8.6", |(_, tag)| tag)
}

/// Returns the [`Manifest`] that binds a ClusterRole to a service account of kube-system.
fn of_cluster(name: &str, role: &str, account: &str) -> Manifest {
    binding(
        format!("{RBAC}/clusterrolebindings"),
        "ClusterRoleBinding",
        None,
        name,
        ("ClusterRole", role),
        &json!([{"kind": "ServiceAccount", "name": account, "namespace": "kube-system"}]),
    )
}

fn coredns_deployment(labels: &Value, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "coredns", "namespace": "kube-system", "labels": labels},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [{
                        "name": "coredns",
                        "image": image,
                        "imagePullPolicy": "IfNotPresent",
                        "args": ["-conf", "/etc/coredns/Corefile"],
                        "volumeMounts": [{"name": "config-volume", "mountPath": "/etc/coredns", "readOnly": true}],
                    }],
                    "priorityClassName": "system-cluster-critical",
                    "serviceAccountName": "coredns",
                    "nodeSelector": {"kubernetes.io/os": "linux"},
                    "tolerations": [
                        {"key": "CriticalAddonsOnly", "operator": "Exists"},
                        {"key": CONTROL_PLANE, "effect": "NoSchedule"},
                    ],
                    "volumes": [{
                        "name": "config-volume",
                        "configMap": {"name": "coredns", "items": [{"key": "Corefile", "path": "Corefile"}]},
                    }],
                },
            },
        },
    })
}

fn dns_service(labels: &Value, address: IpAddr) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kube-dns", "namespace": "kube-system", "labels": labels},
        "spec": {
            "clusterIP": address,
            "selector": labels,
            "ports": [
                {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 53},
                {"name": "dns-tcp", "port": 53, "protocol": "TCP", "targetPort": 53},
                {"name": "metrics", "port": 9153, "protocol": "TCP", "targetPort": 9153},
            ],
        },
    })
}

fn service_account(name: &str) -> Manifest {
    Manifest::new(
        format!("{CORE}/serviceaccounts"),
        json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": "kube-system"},
        }),
    )
}
