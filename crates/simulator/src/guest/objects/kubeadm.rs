//! Objects created by `kubeadm init`, except nodes, pods and add-ons.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::super::kubeadm::{Init, Token};
use super::addons::service_address;
use super::{Manifest, SERVICE_SUBNET};

/// Collection of ConfigMaps in `kube-system`.
pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/kube-system/configmaps";
/// Collection of ConfigMaps in `kube-public`.
pub(crate) const PUBLIC: &str = "/api/v1/namespaces/kube-public/configmaps";
/// Collection of Secrets in `kube-system`.
pub(crate) const SECRETS: &str = "/api/v1/namespaces/kube-system/secrets";
/// Group of the users of kubeadm's bootstrap tokens.
pub(crate) const TOKEN_GROUP: &str = "system:bootstrappers:kubeadm:default-node-token";

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Returns the kubeconfig in `cluster-info`: only the CA and the address of the API server.
pub(crate) fn cluster_info_kubeconfig(ca_pem: &str, endpoint: &str) -> String {
    format!(
        "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: {}\n    server: https://{endpoint}\n  name: \"\"\ncontexts: null\ncurrent-context: \"\"\nkind: Config\npreferences: {{}}\nusers: null\n",
        STANDARD.encode(ca_pem)
    )
}

/// Returns the [`Manifest`]s of namespaces, ConfigMaps, RBAC and tokens, in the order of creation.
pub(crate) fn manifests(init: &Init, ca_pem: &str, endpoint: &str) -> Vec<Manifest> {
    let mut all: Vec<Manifest> = ["kube-system", "kube-public", "kube-node-lease", "default"]
        .into_iter()
        .map(|name| {
            Manifest::new(
                "/api/v1/namespaces",
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
            )
        })
        .collect();
    all.push(config_map(
        "kube-public",
        "cluster-info",
        json!({"kubeconfig": cluster_info_kubeconfig(ca_pem, endpoint)}),
    ));
    all.push(config_map(
        "kube-system",
        "kubelet-config",
        json!({"kubelet": kubelet_configuration(init)}),
    ));
    all.extend(init.tokens.iter().map(token_secret));
    all.extend(rbac());
    all.extend(kubernetes_service(init));
    all
}

/// Returns the Service `kubernetes`, created by kube-apiserver.
fn kubernetes_service(init: &Init) -> Option<Manifest> {
    let subnet = init
        .cluster
        .networking
        .service_subnet
        .as_deref()
        .unwrap_or(SERVICE_SUBNET);
    let address = service_address(subnet, 1)?;
    Some(Manifest::new(
        "/api/v1/namespaces/default/services",
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": "kubernetes",
                "namespace": "default",
                "labels": {"component": "apiserver", "provider": "kubernetes"},
            },
            "spec": {
                "clusterIP": address,
                "ports": [
                    {"name": "https", "port": 443, "protocol": "TCP", "targetPort": init.bind_port},
                ],
            },
        }),
    ))
}

/// Returns the ConfigMap `kubeadm-config`. Created last: the ConfigMap marks the cluster as initialized.
pub(crate) fn kubeadm_config(init: &Init) -> Manifest {
    config_map(
        "kube-system",
        "kubeadm-config",
        json!({"ClusterConfiguration": yaml(&cluster_configuration(init))}),
    )
}

/// Returns the ClusterConfiguration with kubeadm's defaults, as stored in the cluster.
fn cluster_configuration(init: &Init) -> Value {
    let mut document = init.document.clone();
    let Some(fields) = document.as_object_mut() else {
        return document;
    };
    for (key, value) in [
        ("apiServer", json!({})),
        ("certificatesDir", json!("/etc/kubernetes/pki")),
        ("clusterName", json!("kubernetes")),
        ("controllerManager", json!({})),
        ("dns", json!({})),
        ("etcd", json!({"local": {"dataDir": "/var/lib/etcd"}})),
        ("imageRepository", json!(super::REGISTRY)),
        ("networking", json!({})),
        ("scheduler", json!({})),
    ] {
        let empty = |value: &Value| value.is_null() || value == &json!({}) || value == &json!("");
        match fields.get(key) {
            Some(given) if !empty(given) => {}
            _ => {
                fields.insert(key.to_owned(), value);
            }
        }
    }
    if let Some(networking) = fields.get_mut("networking").and_then(Value::as_object_mut) {
        networking
            .entry("dnsDomain")
            .or_insert_with(|| "cluster.local".into());
        networking
            .entry("serviceSubnet")
            .or_insert_with(|| SERVICE_SUBNET.into());
    }
    document
}

fn kubelet_configuration(init: &Init) -> String {
    let domain = init
        .cluster
        .networking
        .dns_domain
        .as_deref()
        .unwrap_or("cluster.local");
    yaml(&json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": "/etc/kubernetes/pki/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "systemd",
        "clusterDomain": domain,
        "rotateCertificates": true,
        "staticPodPath": "/etc/kubernetes/manifests",
    }))
}

/// Returns the [`Manifest`] of the Secret of a bootstrap token of kubeadm, here without an expiry.
fn token_secret(token: &Token) -> Manifest {
    let name = format!("bootstrap-token-{}", token.id);
    let encode = |text: &str| STANDARD.encode(text);
    Manifest::new(
        SECRETS,
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": "kube-system"},
            "type": "bootstrap.kubernetes.io/token",
            "data": {
                "token-id": encode(&token.id),
                "token-secret": encode(token.secret.expose_secret()),
                "usage-bootstrap-authentication": encode("true"),
                "usage-bootstrap-signing": encode("true"),
                "auth-extra-groups": encode(TOKEN_GROUP),
            },
        }),
    )
}

fn rbac() -> Vec<Manifest> {
    let read_config = |name: &str| json!([{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [name], "verbs": ["get"]}]);
    let group = |name: &str| json!({"kind": "Group", "name": name, "apiGroup": "rbac.authorization.k8s.io"});
    let joiners = || json!([group(TOKEN_GROUP), group("system:nodes")]);
    let anonymous = || json!([{"kind": "User", "name": "system:anonymous", "apiGroup": "rbac.authorization.k8s.io"}]);
    let mut all = Vec::new();
    for (namespace, name, rules, subjects) in [
        (
            "kube-system",
            "kubeadm:nodes-kubeadm-config",
            read_config("kubeadm-config"),
            joiners(),
        ),
        (
            "kube-system",
            "kubeadm:kubelet-config",
            read_config("kubelet-config"),
            joiners(),
        ),
        (
            "kube-system",
            "kube-proxy",
            read_config("kube-proxy"),
            json!([group(TOKEN_GROUP)]),
        ),
        (
            "kube-public",
            "kubeadm:bootstrap-signer-clusterinfo",
            read_config("cluster-info"),
            anonymous(),
        ),
    ] {
        let base = format!("{RBAC}/namespaces/{namespace}");
        all.push(rbac_object(
            format!("{base}/roles"),
            "Role",
            Some(namespace),
            name,
            &json!({"rules": rules}),
        ));
        all.push(binding(
            format!("{base}/rolebindings"),
            "RoleBinding",
            Some(namespace),
            name,
            ("Role", name),
            &subjects,
        ));
    }
    let get_nodes =
        json!({"rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]});
    all.push(rbac_object(
        format!("{RBAC}/clusterroles"),
        "ClusterRole",
        None,
        "kubeadm:get-nodes",
        &get_nodes,
    ));
    for (name, role, subject) in [
        ("kubeadm:get-nodes", "kubeadm:get-nodes", TOKEN_GROUP),
        (
            "kubeadm:kubelet-bootstrap",
            "system:node-bootstrapper",
            TOKEN_GROUP,
        ),
        (
            "kubeadm:node-autoapprove-bootstrap",
            "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
            TOKEN_GROUP,
        ),
        (
            "kubeadm:node-autoapprove-certificate-rotation",
            "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
            "system:nodes",
        ),
        (
            "kubeadm:cluster-admins",
            "cluster-admin",
            "kubeadm:cluster-admins",
        ),
    ] {
        let subjects = json!([group(subject)]);
        all.push(binding(
            format!("{RBAC}/clusterrolebindings"),
            "ClusterRoleBinding",
            None,
            name,
            ("ClusterRole", role),
            &subjects,
        ));
    }
    all
}

pub(super) fn binding(
    collection: String,
    kind: &str,
    namespace: Option<&str>,
    name: &str,
    (role_kind, role): (&str, &str),
    subjects: &Value,
) -> Manifest {
    let rest = json!({
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role},
        "subjects": subjects,
    });
    rbac_object(collection, kind, namespace, name, &rest)
}

pub(super) fn rbac_object(
    collection: String,
    kind: &str,
    namespace: Option<&str>,
    name: &str,
    rest: &Value,
) -> Manifest {
    let mut body = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
    });
    if let Some(namespace) = namespace {
        body["metadata"]["namespace"] = namespace.into();
    }
    if let (Some(fields), Some(rest)) = (body.as_object_mut(), rest.as_object()) {
        fields.extend(rest.clone());
    }
    Manifest::new(collection, body)
}

pub(super) fn config_map(namespace: &str, name: &str, data: Value) -> Manifest {
    Manifest::new(
        format!("/api/v1/namespaces/{namespace}/configmaps"),
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": namespace},
            "data": data,
        }),
    )
}

/// Returns a value as YAML. Falls back to JSON, which is YAML, too.
fn yaml(value: &Value) -> String {
    serde_saphyr::to_string(value).unwrap_or_else(|_| value.to_string())
}
