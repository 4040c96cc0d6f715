//! KubeadmConfigs in comparable form: without additions of the serialization, the bootstrap controller, or a default.
//! The rules are from the Go control plane provider (controlplane/kubeadm/pkg/filters.go,
//! `PrepareKubeadmConfigsForDiff`), so that machines created by either provider are up to date for the other.

use api::bootstrap::v1beta2::KubeadmConfigSpec;
use serde_json::{Value, json};

/// Fields without a replacement of machines. DNS is changed in the cluster; the others matter at the join only, or
/// never change.
const LEFT_OUT: [(&str, &str); 5] = [
    ("/joinConfiguration", "discovery"),
    ("/clusterConfiguration", "dns"),
    ("/clusterConfiguration", "controlPlaneEndpoint"),
    (
        "/initConfiguration/timeouts",
        "controlPlaneComponentHealthCheckSeconds",
    ),
    (
        "/joinConfiguration/timeouts",
        "controlPlaneComponentHealthCheckSeconds",
    ),
];

/// Values equal to an absent field.
const DEFAULTS: [(&str, &str, &str); 3] = [
    ("", "format", "cloud-config"),
    (
        "/initConfiguration/nodeRegistration",
        "imagePullPolicy",
        "IfNotPresent",
    ),
    (
        "/joinConfiguration/nodeRegistration",
        "imagePullPolicy",
        "IfNotPresent",
    ),
];

/// True for the config of the first machine. An init configuration has no mark of its own, and by conversion a config
/// for it can have timeouts of a join.
pub(super) fn is_init(spec: &KubeadmConfigSpec) -> bool {
    spec.join_configuration.as_ref().is_none_or(|join| {
        let registration = join.node_registration.as_ref();
        join.control_plane.is_none()
            && registration.is_none_or(|registration| registration.kubelet_extra_args.is_empty())
    })
}

/// Config without the fields that make no other machine.
pub(super) fn comparable(spec: &KubeadmConfigSpec) -> Value {
    let mut value = serde_json::to_value(spec).unwrap_or_default();
    for (parent, field) in LEFT_OUT {
        remove_if(&mut value, parent, field, |_| true);
    }
    for (parent, field, default) in DEFAULTS {
        remove_if(&mut value, parent, field, |value| value == default);
    }
    // kubeadm sets the gate at its first start in any case, and Go writes the gate into its configs.
    let gates = "/clusterConfiguration/featureGates";
    remove_if(&mut value, gates, crate::kubeadm::LOCAL_MODE, |value| {
        *value == json!(true)
    });
    if !is_init(spec) {
        value["joinConfiguration"]["controlPlane"]["joins"] = json!(true);
    }
    remove_empty(&mut value);
    value
}

/// Config of the first machine, in the form of joining machines. The CA's path can be set for a join only.
pub(super) fn as_join(mut spec: KubeadmConfigSpec) -> KubeadmConfigSpec {
    let init = spec.init_configuration.take().unwrap_or_default();
    let join = spec.join_configuration.get_or_insert_default();
    join.timeouts = init.timeouts;
    join.patches = init.patches;
    join.skip_phases = init.skip_phases;
    join.node_registration = init.node_registration;
    let control_plane = join.control_plane.get_or_insert_default();
    control_plane.local_api_endpoint = init.local_api_endpoint;
    spec
}

/// Same without the CA's path.
pub(super) fn without_ca_path(mut spec: KubeadmConfigSpec) -> KubeadmConfigSpec {
    if let Some(join) = &mut spec.join_configuration {
        join.ca_cert_path = None;
    }
    spec
}

fn remove_if(value: &mut Value, parent: &str, field: &str, condition: impl Fn(&Value) -> bool) {
    let parent = value.pointer_mut(parent).and_then(Value::as_object_mut);
    if let Some(parent) = parent
        && parent.get(field).is_some_and(condition)
    {
        parent.remove(field);
    }
}

/// Removes empty values, except taints: an empty list differs from the default taints.
fn remove_empty(value: &mut Value) {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(remove_empty);
            map.retain(|field, value| field == "taints" || !is_empty(value));
        }
        Value::Array(list) => list.iter_mut().for_each(remove_empty),
        _ => {}
    }
}
