//! Parts of specs, for clusters and machines.

use api::infra::v1beta2::OpenStackClusterSpec;

/// Load balancer in the spec, if enabled.
pub fn balancer_spec(spec: &OpenStackClusterSpec) -> Option<&api::infra::v1beta2::LoadBalancer> {
    spec.api_server
        .as_ref()
        .and_then(|api_server| api_server.managed_load_balancer.as_ref())
        .filter(|balancer| balancer.enabled)
}
