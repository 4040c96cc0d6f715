//! Check for objects that the controllers cannot decode.
//!
//! kube-apiserver 1.34 does not enforce `format: int32` in the schema of a CustomResourceDefinition. Schemas alone
//! therefore accept numbers beyond the range of our types.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::FieldError;
use crate::decode::decoded;
use crate::{addons, bootstrap, controlplane, core, infra, ipam, openstack};

/// Decoding error in the spec of `object`; `None` if valid, or for a kind of another project.
pub(crate) fn problem(object: &Value) -> Option<FieldError> {
    let (group, version) = object.get("apiVersion")?.as_str()?.split_once('/')?;
    let kind = object.get("kind")?.as_str()?;
    let is_alpha = matches!(group, openstack::GROUP | infra::GROUP) && version == "v1alpha1";
    if version != "v1beta2" && !is_alpha {
        return None;
    }
    let decode = match (group, kind) {
        (core::GROUP, "Cluster") => spec::<core::v1beta2::ClusterSpec>,
        (core::GROUP, "Machine") => spec::<core::v1beta2::MachineSpec>,
        (core::GROUP, "MachineSet") => spec::<core::v1beta2::MachineSetSpec>,
        (core::GROUP, "MachineDeployment") => spec::<core::v1beta2::MachineDeploymentSpec>,
        (core::GROUP, "MachineHealthCheck") => spec::<core::v1beta2::MachineHealthCheckSpec>,
        (core::GROUP, "ClusterClass") => spec::<core::v1beta2::ClusterClassSpec>,
        (core::GROUP, "MachineDrainRule") => spec::<core::v1beta2::MachineDrainRuleSpec>,
        (addons::GROUP, "ClusterResourceSet") => spec::<addons::v1beta2::ClusterResourceSetSpec>,
        (addons::GROUP, "ClusterResourceSetBinding") => {
            spec::<addons::v1beta2::ClusterResourceSetBindingSpec>
        }
        (ipam::GROUP, "IPAddressClaim") => spec::<ipam::v1beta2::IPAddressClaimSpec>,
        (ipam::GROUP, "IPAddress") => spec::<ipam::v1beta2::IPAddressSpec>,
        (bootstrap::GROUP, "KubeadmConfig") => spec::<bootstrap::v1beta2::KubeadmConfigSpec>,
        (bootstrap::GROUP, "KubeadmConfigTemplate") => {
            spec::<bootstrap::v1beta2::KubeadmConfigTemplateSpec>
        }
        (controlplane::GROUP, "KubeadmControlPlane") => {
            spec::<controlplane::v1beta2::KubeadmControlPlaneSpec>
        }
        (controlplane::GROUP, "KubeadmControlPlaneTemplate") => {
            spec::<controlplane::v1beta2::KubeadmControlPlaneTemplateSpec>
        }
        (infra::GROUP, "OpenStackCluster") => spec::<infra::v1beta2::OpenStackClusterSpec>,
        (infra::GROUP, "OpenStackClusterTemplate") => {
            spec::<infra::v1beta2::OpenStackClusterTemplateSpec>
        }
        (infra::GROUP, "OpenStackMachine") => spec::<infra::v1beta2::OpenStackMachineSpec>,
        (infra::GROUP, "OpenStackMachineTemplate") => {
            spec::<infra::v1beta2::OpenStackMachineTemplateSpec>
        }
        (infra::GROUP, "OpenStackFloatingIPPool") => {
            spec::<infra::v1alpha1::OpenStackFloatingIPPoolSpec>
        }
        (infra::GROUP, "OpenStackServer") => spec::<infra::v1alpha1::OpenStackServerSpec>,
        (openstack::GROUP, "OpenStack") => spec::<openstack::v1alpha1::OpenStackSpec>,
        (openstack::GROUP, "OpenStackOperation") => {
            spec::<openstack::operation::OpenStackOperationSpec>
        }
        _ => return None,
    };
    decode(object)
}

fn spec<S: DeserializeOwned>(object: &Value) -> Option<FieldError> {
    let none = Value::Object(Map::new());
    let spec = object.get("spec").unwrap_or(&none);
    let error = decoded::<S>(spec).err()?;
    let path = match error.path().as_str() {
        "." => "spec".to_owned(),
        inner => format!("spec.{inner}"),
    };
    Some(FieldError::new(path, worded(error.message())))
}

/// Message of serde, with a range of numbers in place of a Rust type.
fn worded(message: &str) -> String {
    let ranges = [
        (", expected i32", i64::from(i32::MIN), i64::from(i32::MAX)),
        (", expected i64", i64::MIN, i64::MAX),
        (", expected u8", 0, i64::from(u8::MAX)),
        (", expected u16", 0, i64::from(u16::MAX)),
        (", expected u32", 0, i64::from(u32::MAX)),
    ];
    let range = ranges.iter().find_map(|(text, from, to)| {
        let rest = message.strip_suffix(text)?;
        Some(format!("{rest}, expected an integer from {from} to {to}"))
    });
    range.unwrap_or_else(|| message.to_owned())
}
