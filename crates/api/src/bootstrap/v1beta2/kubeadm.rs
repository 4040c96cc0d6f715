//! Configuration of kubeadm with Cluster API's names: types of kubeadm v1beta4, with durations in seconds.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EnvVarSource, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The part of kubeadm's configuration that concerns the whole cluster.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct ClusterConfiguration {
    /// etcd, local or external; local when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd: Option<Etcd>,
    /// `host:port` of the API server; filled in from the Cluster when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub control_plane_endpoint: Option<String>,
    /// The API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_server: Option<ApiServer>,
    /// The controller manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller_manager: Option<Component>,
    /// The scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<Component>,
    /// The cluster's DNS add-on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns: Option<Dns>,
    /// Directory of the certificates on the machines. Default: `/etc/kubernetes/pki`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub certificates_dir: Option<String>,
    /// The registry of the control plane's images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image_repository: Option<String>,
    /// kubeadm's feature gates.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub feature_gates: BTreeMap<String, bool>,
    /// Validity in days of the certificates that kubeadm issues (Kubernetes 1.31 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1095))]
    pub certificate_validity_period_days: Option<i32>,
    /// Validity in days of the cluster's CAs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 36500))]
    pub ca_certificate_validity_period_days: Option<i32>,
    /// The algorithm of the cluster's keys; `RSA-2048` when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption_algorithm: Option<EncryptionAlgorithm>,
}

/// The algorithm of a cluster's keys.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum EncryptionAlgorithm {
    /// ECDSA on the curve P-256.
    #[serde(rename = "ECDSA-P256")]
    EcdsaP256,
    /// ECDSA on the curve P-384.
    #[serde(rename = "ECDSA-P384")]
    EcdsaP384,
    /// RSA with 2048 bits.
    #[default]
    #[serde(rename = "RSA-2048")]
    Rsa2048,
    /// RSA with 3072 bits.
    #[serde(rename = "RSA-3072")]
    Rsa3072,
    /// RSA with 4096 bits.
    #[serde(rename = "RSA-4096")]
    Rsa4096,
}

/// One command line argument of a component.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arg {
    /// The name, without leading dashes.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// The value; may be empty.
    #[schemars(length(min = 0, max = 1024))]
    pub value: String,
}

/// One environment variable of a component, as in a Pod.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvVar {
    /// The variable's name.
    pub name: String,
    /// Value of the variable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Source of the value: an EnvVarSource of core/v1, handed to kubeadm as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::shape::EnvVarSource>")]
    pub value_from: Option<EnvVarSource>,
}

/// A host directory or file mounted into a component.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostPathMount {
    /// The volume's name in the Pod.
    #[schemars(length(min = 1, max = 512))]
    pub name: String,
    /// The path on the machine.
    #[schemars(length(min = 1, max = 512))]
    pub host_path: String,
    /// The path in the container.
    #[schemars(length(min = 1, max = 512))]
    pub mount_path: String,
    /// Mounts the volume read-only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Type of the path, as in a Pod's `hostPath.type`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_type: Option<String>,
}

/// Controller manager or scheduler of a [`ClusterConfiguration`].
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct Component {
    /// Command line arguments in addition to those of kubeadm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 100),
        extend(
            "x-kubernetes-list-type" = "map",
            "x-kubernetes-list-map-keys" = ["name", "value"],
            "x-kubernetes-validations" = [{
                "rule": "self.all(x, self.exists_one(y, x.name == y.name))",
                "message": "extraArgs name must be unique"
            }]
        )
    )]
    pub extra_args: Vec<Arg>,
    /// Host paths mounted in addition to those of kubeadm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub extra_volumes: Vec<HostPathMount>,
    /// Environment variables (Kubernetes 1.31 and later).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub extra_envs: Vec<EnvVar>,
}

/// The API server.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct ApiServer {
    /// Command line arguments in addition to those of kubeadm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 100),
        extend(
            "x-kubernetes-list-type" = "map",
            "x-kubernetes-list-map-keys" = ["name", "value"],
            "x-kubernetes-validations" = [{
                "rule": "self.all(x, self.exists_one(y, x.name == y.name))",
                "message": "extraArgs name must be unique"
            }]
        )
    )]
    pub extra_args: Vec<Arg>,
    /// Host paths mounted in addition to those of kubeadm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub extra_volumes: Vec<HostPathMount>,
    /// Environment variables (Kubernetes 1.31 and later).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub extra_envs: Vec<EnvVar>,
    /// Further names of the API server's certificate.
    #[serde(default, rename = "certSANs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 100),
        inner(length(min = 1, max = 253)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub cert_sans: Vec<String>,
}

/// The cluster's DNS add-on.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct Dns {
    /// The image's registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image_repository: Option<String>,
    /// The image's tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub image_tag: Option<String>,
}

/// etcd of a cluster, local or external ([`ClusterConfiguration::etcd`]).
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct Etcd {
    /// A member on every control plane machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<LocalEtcd>,
    /// An external etcd cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalEtcd>,
}

/// etcd with a member on every control plane machine ([`Etcd::local`]).
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct LocalEtcd {
    /// The image's registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image_repository: Option<String>,
    /// The image's tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub image_tag: Option<String>,
    /// The data directory on the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub data_dir: Option<String>,
    /// Command line arguments in addition to those of kubeadm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 100),
        extend(
            "x-kubernetes-list-type" = "map",
            "x-kubernetes-list-map-keys" = ["name", "value"],
            "x-kubernetes-validations" = [{
                "rule": "self.all(x, self.exists_one(y, x.name == y.name))",
                "message": "extraArgs name must be unique"
            }]
        )
    )]
    pub extra_args: Vec<Arg>,
    /// Environment variables (Kubernetes 1.31 and later).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub extra_envs: Vec<EnvVar>,
    /// Further names of the server certificate.
    #[serde(
        default,
        rename = "serverCertSANs",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(
        length(min = 1, max = 100),
        inner(length(min = 1, max = 253)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub server_cert_sans: Vec<String>,
    /// Further names of the peer certificate.
    #[serde(
        default,
        rename = "peerCertSANs",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(
        length(min = 1, max = 100),
        inner(length(min = 1, max = 253)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub peer_cert_sans: Vec<String>,
}

/// An external etcd cluster.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExternalEtcd {
    /// URLs of the members, such as `https://192.0.2.1:2379`.
    #[schemars(
        length(min = 1, max = 50),
        inner(length(min = 1, max = 512)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub endpoints: Vec<String>,
    /// The CA's certificate on the machines.
    #[schemars(length(min = 1, max = 512))]
    pub ca_file: String,
    /// The client certificate on the machines.
    #[schemars(length(min = 1, max = 512))]
    pub cert_file: String,
    /// The client key on the machines.
    #[schemars(length(min = 1, max = 512))]
    pub key_file: String,
}

/// Configuration for `kubeadm init`: first control plane machine of a cluster.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct InitConfiguration {
    /// Bootstrap tokens that kubeadm creates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub bootstrap_tokens: Vec<BootstrapToken>,
    /// Registration of the Node: name, taints, and flags of the kubelet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_registration: Option<NodeRegistration>,
    /// Address and port on which this machine's API server listens.
    #[serde(
        default,
        rename = "localAPIEndpoint",
        skip_serializing_if = "Option::is_none"
    )]
    pub local_api_endpoint: Option<LocalApiEndpoint>,
    /// Phases of kubeadm to skip.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 50),
        inner(length(min = 1, max = 256)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub skip_phases: Vec<String>,
    /// Patches of what kubeadm writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patches: Option<Patches>,
    /// Timeouts of kubeadm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<Timeouts>,
}

/// Configuration for `kubeadm join`: all further machines.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct JoinConfiguration {
    /// Registration of the Node: name, taints, and flags of the kubelet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_registration: Option<NodeRegistration>,
    /// The CA's certificate on the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub ca_cert_path: Option<String>,
    /// Discovery of the cluster: its endpoint, and the proof of its identity. Filled in when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery: Option<Discovery>,
    /// Set on control plane machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<JoinControlPlane>,
    /// Phases of kubeadm to skip.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 50),
        inner(length(min = 1, max = 256)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub skip_phases: Vec<String>,
    /// Patches of what kubeadm writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patches: Option<Patches>,
    /// Timeouts of kubeadm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<Timeouts>,
}

/// Timeouts of kubeadm, in seconds (Kubernetes 1.31 and later), in [`InitConfiguration`] and [`JoinConfiguration`].
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct Timeouts {
    /// For a component of the control plane to become healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub control_plane_component_health_check_seconds: Option<i32>,
    /// For the kubelet to become healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub kubelet_health_check_seconds: Option<i32>,
    /// For one call to the API server.
    #[serde(
        default,
        rename = "kubernetesAPICallSeconds",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 0))]
    pub kubernetes_api_call_seconds: Option<i32>,
    /// For one call to etcd.
    #[serde(
        default,
        rename = "etcdAPICallSeconds",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 0))]
    pub etcd_api_call_seconds: Option<i32>,
    /// For the kubelet's TLS bootstrap.
    #[serde(
        default,
        rename = "tlsBootstrapSeconds",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 0))]
    pub tls_bootstrap_seconds: Option<i32>,
    /// For the cluster to be found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub discovery_seconds: Option<i32>,
}

/// Patches of what kubeadm writes.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct Patches {
    /// The directory on the machine that contains them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub directory: Option<String>,
}

/// Registration of a Node, in [`InitConfiguration`] and [`JoinConfiguration`].
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct NodeRegistration {
    /// The Node's name; the machine's host name when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
    /// The container runtime's socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub cri_socket: Option<String>,
    /// The Node's taints; unset means kubeadm's default, an empty list means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    #[schemars(with = "Option<Vec<crate::shape::Taint>>")]
    pub taints: Option<Vec<Taint>>,
    /// Command line arguments of the kubelet in addition to those of kubeadm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 100),
        extend(
            "x-kubernetes-list-type" = "map",
            "x-kubernetes-list-map-keys" = ["name", "value"],
            "x-kubernetes-validations" = [{
                "rule": "self.all(x, self.exists_one(y, x.name == y.name))",
                "message": "kubeletExtraArgs name must be unique"
            }]
        )
    )]
    pub kubelet_extra_args: Vec<Arg>,
    /// Preflight errors that kubeadm only warns of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 50),
        inner(length(min = 1, max = 512)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub ignore_preflight_errors: Vec<String>,
    /// Policy of kubeadm for pulling images, such as `IfNotPresent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<ImagePullPolicy>,
    /// Lets kubeadm pull one image at a time (Kubernetes 1.31 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_serial: Option<bool>,
}

/// Policy of kubeadm for pulling images, such as `IfNotPresent`.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImagePullPolicy {
    /// Every time.
    Always,
    /// Only what is missing.
    IfNotPresent,
    /// Not at all.
    Never,
}

/// A bootstrap token that `kubeadm init` creates.
#[derive(JsonSchema, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BootstrapToken {
    /// `<6 characters>.<16 characters>`; a secret.
    #[schemars(length(min = 1, max = 23))]
    pub token: String,
    /// Purpose, for readers, such as `token of the CI`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub description: Option<String>,
    /// For how many seconds it is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ttl_seconds: Option<i32>,
    /// Until when it is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::shape::Time>")]
    pub expires: Option<Time>,
    /// Permitted uses, such as `signing` and `authentication`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 100),
        inner(length(min = 1, max = 256)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub usages: Vec<String>,
    /// The groups that its bearer belongs to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 100),
        inner(length(min = 1, max = 256)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub groups: Vec<String>,
}

impl std::fmt::Debug for BootstrapToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BootstrapToken")
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}

/// Address and port of one machine's API server ([`InitConfiguration::local_api_endpoint`]).
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct LocalApiEndpoint {
    /// The address that it announces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 39))]
    pub advertise_address: Option<String>,
    /// Port of the API server, such as 6443.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub bind_port: Option<i32>,
}

/// Control plane part of a [`JoinConfiguration`].
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JoinControlPlane {
    /// Address and port on which this machine's API server listens.
    #[serde(
        default,
        rename = "localAPIEndpoint",
        skip_serializing_if = "Option::is_none"
    )]
    pub local_api_endpoint: Option<LocalApiEndpoint>,
}

/// Discovery of the cluster by a joining machine, with proof of the cluster's identity
/// ([`JoinConfiguration::discovery`]).
#[derive(JsonSchema, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct Discovery {
    /// By a bootstrap token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap_token: Option<BootstrapTokenDiscovery>,
    /// By a kubeconfig file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileDiscovery>,
    /// The token of the TLS bootstrap; a secret.
    #[serde(
        default,
        rename = "tlsBootstrapToken",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(min = 1, max = 512))]
    pub tls_bootstrap_token: Option<String>,
}

impl std::fmt::Debug for Discovery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Discovery")
            .field("bootstrap_token", &self.bootstrap_token)
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

/// Discovery by a bootstrap token ([`Discovery::bootstrap_token`]).
#[derive(JsonSchema, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct BootstrapTokenDiscovery {
    /// The token; a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub token: Option<String>,
    /// `host:port` of the API server.
    #[serde(
        default,
        rename = "apiServerEndpoint",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(min = 1, max = 512))]
    pub api_server_endpoint: Option<String>,
    /// `sha256:<hex>` of the SubjectPublicKeyInfo of CAs that are trusted.
    #[serde(
        default,
        rename = "caCertHashes",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(
        length(min = 1, max = 100),
        inner(length(min = 1, max = 512)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub ca_cert_hashes: Vec<String>,
    /// Trust any CA.
    #[serde(
        default,
        rename = "unsafeSkipCAVerification",
        skip_serializing_if = "Option::is_none"
    )]
    pub unsafe_skip_ca_verification: Option<bool>,
}

impl std::fmt::Debug for BootstrapTokenDiscovery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BootstrapTokenDiscovery")
            .field("api_server_endpoint", &self.api_server_endpoint)
            .field("ca_cert_hashes", &self.ca_cert_hashes)
            .finish_non_exhaustive()
    }
}

/// Discovery by a kubeconfig file ([`Discovery::file`]).
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileDiscovery {
    /// The file on the machine.
    #[schemars(length(min = 1, max = 512))]
    pub kube_config_path: String,
    /// The content of the file, if the bootstrap data is to write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_config: Option<FileDiscoveryKubeConfig>,
}

/// Parts of a kubeconfig for [`FileDiscovery`].
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileDiscoveryKubeConfig {
    /// The cluster; filled in from the Cluster when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<KubeConfigCluster>,
    /// The user.
    pub user: KubeConfigUser,
}

/// Cluster of a [`FileDiscoveryKubeConfig`].
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct KubeConfigCluster {
    /// `https://host:port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub server: Option<String>,
    /// The name on the server's certificate.
    #[serde(
        default,
        rename = "tlsServerName",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(min = 1, max = 512))]
    pub tls_server_name: Option<String>,
    /// Trust any certificate.
    #[serde(
        default,
        rename = "insecureSkipTLSVerify",
        skip_serializing_if = "Option::is_none"
    )]
    pub insecure_skip_tls_verify: Option<bool>,
    /// The CA's certificate, PEM in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 51200), extend("format" = "byte"))]
    pub certificate_authority_data: Option<String>,
    /// A proxy on the way.
    #[serde(default, rename = "proxyURL", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub proxy_url: Option<String>,
}

/// User of a [`FileDiscoveryKubeConfig`]: either auth provider or exec plugin.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct KubeConfigUser {
    /// An auth provider plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_provider: Option<KubeConfigAuthProvider>,
    /// A command that prints credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<KubeConfigExec>,
}

/// Auth provider plugin of a [`KubeConfigUser`].
#[derive(JsonSchema, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeConfigAuthProvider {
    /// Name.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// Settings of the provider; may hold secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
}

impl std::fmt::Debug for KubeConfigAuthProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KubeConfigAuthProvider")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A command that prints credentials.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeConfigExec {
    /// The command.
    #[schemars(length(min = 1, max = 1024))]
    pub command: String,
    /// Arguments of the command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 100),
        inner(length(min = 1, max = 512)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub args: Vec<String>,
    /// Environment of the command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub env: Vec<KubeConfigExecEnv>,
    /// The version of ExecCredential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub api_version: Option<String>,
    /// Passes cluster information to the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provide_cluster_info: Option<bool>,
}

/// An environment variable of a credential command.
#[derive(JsonSchema, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KubeConfigExecEnv {
    /// The variable's name.
    #[schemars(length(min = 1, max = 512))]
    pub name: String,
    /// Value of the variable; may be a secret.
    #[schemars(length(min = 1, max = 512))]
    pub value: String,
}

impl std::fmt::Debug for KubeConfigExecEnv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KubeConfigExecEnv")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
