//! kubeadm's configuration, in the API version for the kubeadm of the machine.
//!
//! The fields of the API follow kubeadm v1beta4, with durations in seconds. Conversion is to v1beta3 up to Kubernetes
//! 1.30, and to v1beta4 from 1.31 on. v1beta3 has no `timeouts` (two of them are elsewhere), no argument lists, no
//! environment variables and no certificate settings; unknown fields are omitted, as upstream.

use api::bootstrap::v1beta2::{
    ClusterConfiguration, InitConfiguration, JoinConfiguration, Timeouts,
};
use api::core::v1beta2::{Cluster, NetworkRanges};
use api::version::Version;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::cloudinit::yaml;

/// Feature gate for kubelets of joining control plane machines: they use their local API server.
pub(crate) const LOCAL_MODE: &str = "ControlPlaneKubeletLocalMode";

/// API version of kubeadm's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApiVersion {
    /// Kubernetes 1.22 to 1.30.
    V1Beta3,
    /// Kubernetes 1.31 and later.
    V1Beta4,
}

impl ApiVersion {
    /// API version for the kubeadm of this Kubernetes version.
    ///
    /// # Errors
    /// Before Kubernetes 1.22.
    pub fn from_version(version: &Version) -> Result<Self, UnsupportedVersion> {
        if *version < Version::new(1, 22, 0) {
            return Err(UnsupportedVersion {
                version: version.to_string(),
            });
        }
        let before = version.is_before_minor(1, 31);
        Ok(if before {
            ApiVersion::V1Beta3
        } else {
            ApiVersion::V1Beta4
        })
    }

    fn as_str(self) -> &'static str {
        match self {
            ApiVersion::V1Beta3 => "kubeadm.k8s.io/v1beta3",
            ApiVersion::V1Beta4 => "kubeadm.k8s.io/v1beta4",
        }
    }
}

/// Unsupported Kubernetes version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Kubernetes {version} cannot be bootstrapped: 1.22 is the oldest version supported")]
pub struct UnsupportedVersion {
    /// The version.
    pub version: String,
}

/// Fields of a ClusterConfiguration from the Cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterFacts {
    /// Name of the Cluster.
    pub cluster_name: String,
    /// `host:port`.
    pub control_plane_endpoint: String,
    /// Kubernetes version, with `v`.
    pub kubernetes_version: String,
    /// Domain of Services.
    pub dns_domain: Option<String>,
    /// Pod ranges, comma separated.
    pub pod_subnet: Option<String>,
    /// Service ranges, comma separated.
    pub service_subnet: Option<String>,
}

/// [`ClusterConfiguration`] of a cluster. `timeouts` are from the init configuration; v1beta3 has one of them here.
pub fn cluster_document(
    config: &ClusterConfiguration,
    facts: &ClusterFacts,
    timeouts: Option<&Timeouts>,
    version: ApiVersion,
) -> String {
    yaml::document(&cluster_configuration(config, facts, timeouts, version))
}

/// [`ClusterConfiguration`] as a value, also for the ConfigMap `kubeadm-config`.
pub fn cluster_configuration(
    config: &ClusterConfiguration,
    facts: &ClusterFacts,
    timeouts: Option<&Timeouts>,
    version: ApiVersion,
) -> Value {
    let mut fields = fields(config);
    head(&mut fields, version, "ClusterConfiguration");
    set(&mut fields, "clusterName", Some(&facts.cluster_name));
    set(
        &mut fields,
        "kubernetesVersion",
        Some(&facts.kubernetes_version),
    );
    if config.control_plane_endpoint.is_none() {
        set(
            &mut fields,
            "controlPlaneEndpoint",
            Some(&facts.control_plane_endpoint),
        );
    }
    let mut networking = Map::new();
    set(&mut networking, "dnsDomain", facts.dns_domain.as_ref());
    set(&mut networking, "podSubnet", facts.pod_subnet.as_ref());
    set(
        &mut networking,
        "serviceSubnet",
        facts.service_subnet.as_ref(),
    );
    if !networking.is_empty() {
        fields.insert("networking".to_owned(), Value::Object(networking));
    }
    days(
        &mut fields,
        "certificateValidityPeriodDays",
        "certificateValidityPeriod",
    );
    days(
        &mut fields,
        "caCertificateValidityPeriodDays",
        "caCertificateValidityPeriod",
    );
    if version == ApiVersion::V1Beta3 {
        for name in [
            "certificateValidityPeriod",
            "caCertificateValidityPeriod",
            "encryptionAlgorithm",
        ] {
            fields.remove(name);
        }
        let wait = timeouts.and_then(|t| t.control_plane_component_health_check_seconds);
        if let Some(seconds) = wait {
            let server = fields.entry("apiServer").or_insert_with(|| json!({}));
            server["timeoutForControlPlane"] = json!(duration(seconds));
        }
        for component in ["apiServer", "controllerManager", "scheduler"] {
            older_component(fields.get_mut(component));
        }
        older_component(
            fields
                .get_mut("etcd")
                .and_then(|etcd| etcd.get_mut("local")),
        );
    }
    Value::Object(fields)
}

/// [`InitConfiguration`] of the first machine.
pub fn init_document(config: &InitConfiguration, version: ApiVersion) -> String {
    let mut fields = fields(config);
    head(&mut fields, version, "InitConfiguration");
    common(&mut fields, version);
    let tokens = fields
        .get_mut("bootstrapTokens")
        .and_then(Value::as_array_mut);
    for token in tokens
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        seconds(token, "ttlSeconds", "ttl");
    }
    // Always set, for readers of the file; kubeadm's default is the same.
    fields
        .entry("localAPIEndpoint")
        .or_insert_with(|| json!({}));
    yaml::document(&Value::Object(fields))
}

/// [`JoinConfiguration`] of any other machine.
pub fn join_document(config: &JoinConfiguration, version: ApiVersion) -> String {
    let mut fields = fields(config);
    head(&mut fields, version, "JoinConfiguration");
    common(&mut fields, version);
    if let Some(discovery) = fields.get_mut("discovery") {
        let wait = config
            .timeouts
            .as_ref()
            .and_then(|t| t.tls_bootstrap_seconds);
        if let (ApiVersion::V1Beta3, Some(seconds)) = (version, wait) {
            discovery["timeout"] = json!(duration(seconds));
        }
        // The content of the kubeconfig is written to a separate file.
        if let Some(file) = discovery.get_mut("file").and_then(Value::as_object_mut) {
            file.remove("kubeConfig");
        }
    }
    if let Some(plane) = fields
        .get_mut("controlPlane")
        .and_then(Value::as_object_mut)
    {
        plane.entry("localAPIEndpoint").or_insert_with(|| json!({}));
    }
    yaml::document(&Value::Object(fields))
}

/// Fields of `cluster` for the ClusterConfiguration of machines with this Kubernetes version.
pub fn facts_of(cluster: &Cluster, version: &str) -> ClusterFacts {
    let network = cluster.spec.cluster_network.clone().unwrap_or_default();
    let joined = |ranges: Option<NetworkRanges>| ranges.map(|ranges| ranges.cidr_blocks.join(","));
    let endpoint = cluster.endpoint().map(|(host, port)| host_port(host, port));
    ClusterFacts {
        cluster_name: cluster.metadata.name.clone().unwrap_or_default(),
        control_plane_endpoint: endpoint.unwrap_or_default(),
        kubernetes_version: format!("v{}", version.trim_start_matches('v')),
        dns_domain: network.service_domain,
        pod_subnet: joined(network.pods),
        service_subnet: joined(network.services),
    }
}

/// `host:port`, with brackets around an IPv6 address.
pub fn host_port(host: &str, port: i32) -> String {
    let bare_ipv6 = host.contains(':') && !host.starts_with('[');
    if bare_ipv6 {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// Sets the feature gate `ControlPlaneKubeletLocalMode` where it exists and is not enabled by default, from 1.31 to
/// 1.35. A value of the user is kept.
pub fn with_local_mode(
    mut config: ClusterConfiguration,
    version: &Version,
) -> ClusterConfiguration {
    if !version.is_before_minor(1, 31) && version.is_before_minor(1, 36) {
        config
            .feature_gates
            .entry(LOCAL_MODE.to_owned())
            .or_insert(true);
    }
    config
}

/// Converts the common fields of init and join.
fn common(fields: &mut Map<String, Value>, version: ApiVersion) {
    let registration = fields
        .entry("nodeRegistration")
        .or_insert_with(|| json!({}));
    // Empty `taints` are kept: for kubeadm no field means its default taints, and an empty list means no taints.
    if version == ApiVersion::V1Beta3 {
        arguments(registration, "kubeletExtraArgs");
        if let Some(registration) = registration.as_object_mut() {
            registration.remove("imagePullSerial");
        }
    }
    let timeouts = fields.remove("timeouts");
    if let (ApiVersion::V1Beta4, Some(Value::Object(timeouts))) = (version, timeouts) {
        let renamed: Map<String, Value> = timeouts
            .into_iter()
            .map(|(name, value)| {
                let name = name.trim_end_matches("Seconds").to_owned();
                (name, json!(duration(number(&value))))
            })
            .collect();
        fields.insert("timeouts".to_owned(), Value::Object(renamed));
    }
}

/// Converts a component to v1beta3.
fn older_component(component: Option<&mut Value>) {
    let Some(component) = component else { return };
    arguments(component, "extraArgs");
    if let Some(component) = component.as_object_mut() {
        component.remove("extraEnvs");
    }
}

/// Converts an argument list to the map of v1beta3; of duplicates the last one is kept.
fn arguments(of: &mut Value, name: &str) {
    let Some(Value::Array(list)) = of.get(name) else {
        return;
    };
    let map: Map<String, Value> = list
        .iter()
        .filter_map(|arg| {
            Some((
                arg.get("name")?.as_str()?.to_owned(),
                arg.get("value")?.clone(),
            ))
        })
        .collect();
    of[name] = Value::Object(map);
}

fn fields(config: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(config) {
        Ok(Value::Object(fields)) => fields,
        // Structs of strings, numbers and lists always serialize to an object.
        _ => Map::new(),
    }
}

fn head(fields: &mut Map<String, Value>, version: ApiVersion, kind: &str) {
    fields.insert("apiVersion".to_owned(), json!(version.as_str()));
    fields.insert("kind".to_owned(), json!(kind));
}

fn set(fields: &mut Map<String, Value>, name: &str, value: Option<&String>) {
    if let Some(value) = value.filter(|value| !value.is_empty()) {
        fields.insert(name.to_owned(), json!(value));
    }
}

fn days(fields: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = fields.remove(from) {
        let seconds = i64::from(number(&value)).saturating_mul(86_400);
        fields.insert(to.to_owned(), json!(go_duration(seconds)));
    }
}

fn seconds(fields: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = fields.remove(from) {
        fields.insert(to.to_owned(), json!(duration(number(&value))));
    }
}

fn number(value: &Value) -> i32 {
    value
        .as_i64()
        .and_then(|number| i32::try_from(number).ok())
        .unwrap_or(0)
}

fn duration(seconds: i32) -> String {
    go_duration(i64::from(seconds))
}

/// Formats seconds as Go formats a duration: `1h0m5s`, `4m0s`, `30s`.
fn go_duration(seconds: i64) -> String {
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest}s"),
        (0, _) => format!("{minutes}m{rest}s"),
        _ => format!("{hours}h{minutes}m{rest}s"),
    }
}

#[cfg(test)]
mod tests;
