//! The identity that marks a load balancer.
//!
//! Names, tags and descriptions are those of the Go manager, so that a cluster can switch back to it. Since these are
//! the same for two clusters with the same name, our load balancers also have the uids of the cluster and of the
//! Service.

use api::k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;

/// The limit of Octavia, which rejects longer names.
const LONGEST: usize = 255;
const CLUSTER_TAG: &str = "ferrostack-cluster=";
const SERVICE_TAG: &str = "ferrostack-service=";

/// The names and tags of a Service's load balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The name of the load balancer, and the Go manager's tag on all of its parts.
    pub(crate) name: String,
    /// `namespace/name` of the Service.
    pub(crate) service: String,
    cluster_name: String,
    cluster_uid: String,
    service_uid: String,
}

impl Identity {
    pub(crate) fn of(service: &Service, cluster_name: &str, cluster_uid: &str) -> Self {
        let (namespace, name) = (service.namespace().unwrap_or_default(), service.name_any());
        Self {
            name: cut(format!("kube_service_{cluster_name}_{namespace}_{name}")),
            service: format!("{namespace}/{name}"),
            cluster_name: cluster_name.to_owned(),
            cluster_uid: cluster_uid.to_owned(),
            service_uid: service.uid().unwrap_or_default(),
        }
    }

    /// The description of the load balancer, which is also part of that of its floating IP.
    pub(crate) fn description(&self) -> String {
        format!(
            "Kubernetes external service {} from cluster {}",
            self.service, self.cluster_name
        )
    }

    /// Starts with the description of the Go manager, which deletes floating IPs that have this prefix.
    pub(crate) fn floating_ip_description(&self) -> String {
        format!(
            "Floating IP for {} ({})",
            self.description(),
            self.service_tag()
        )
    }

    /// Whether a floating IP was created for this Service, according to its uid.
    pub(crate) fn owns_floating_ip(&self, description: &str) -> bool {
        description.ends_with(&format!("({})", self.service_tag()))
    }

    /// Whether a floating IP on the port of our load balancer was created by a manager: this one or the Go one.
    pub(crate) fn is_managed_floating_ip(description: &str) -> bool {
        description.starts_with("Floating IP for Kubernetes external service ")
    }

    pub(crate) fn cluster_tag(&self) -> String {
        format!("{CLUSTER_TAG}{}", self.cluster_uid)
    }

    pub(crate) fn service_tag(&self) -> String {
        format!("{SERVICE_TAG}{}", self.service_uid)
    }

    /// The tags of the load balancer.
    pub(crate) fn tags(&self) -> Vec<String> {
        vec![self.name.clone(), self.cluster_tag(), self.service_tag()]
    }

    /// Whether the tags are those of this Service in this cluster.
    pub(crate) fn owns(&self, tags: &[String]) -> bool {
        tags.contains(&self.cluster_tag()) && tags.contains(&self.service_tag())
    }

    /// Whether name and tags are those of the Go manager for this Service, without tags of another cluster or Service.
    pub(crate) fn is_legacy(&self, name: &str, tags: &[String]) -> bool {
        let marked = |tag: &String| tag.starts_with(CLUSTER_TAG) || tag.starts_with(SERVICE_TAG);
        name == self.name && tags.contains(&self.name) && !tags.iter().any(marked)
    }

    /// The name of a part: `listener`, `pool` or `monitor` for the port with this index.
    pub(crate) fn part(&self, what: &str, index: usize) -> String {
        cut(format!("{what}_{index}_{}", self.name))
    }
}

/// Truncates to [`LONGEST`] bytes, as the Go manager does.
fn cut(mut name: String) -> String {
    let end = (0..=LONGEST.min(name.len()))
        .rev()
        .find(|end| name.is_char_boundary(*end));
    name.truncate(end.unwrap_or(0));
    name
}
