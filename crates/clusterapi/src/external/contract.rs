//! Fields of a provider's object, as defined by its contract.

use std::collections::BTreeMap;

use api::conditions::Type;
use api::core::v1beta2::{ApiEndpoint, FailureDomain, MachineAddress};
use api::k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use api::kube::ResourceExt;
use api::kube::api::DynamicObject;
use serde::Deserialize;
use serde_json::Value;

use super::Contract;

/// Condition of a provider's object, with the fields of the contract.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Seen {
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Reason in CamelCase.
    pub reason: String,
    /// The message.
    pub message: String,
}

/// Latest supported [`Contract`] of `crd`, and the version to use: the last (highest) one in the contract label.
pub fn version_of(crd: &CustomResourceDefinition) -> Option<(String, Contract)> {
    let contracts = [
        ("v1beta2", Contract::V1Beta2),
        ("v1beta1", Contract::V1Beta1),
    ];
    contracts.into_iter().find_map(|(name, contract)| {
        let versions = crd.labels().get(&format!("cluster.x-k8s.io/{name}"))?;
        let version = versions.rsplit('_').find(|version| !version.is_empty())?;
        Some((version.to_owned(), contract))
    })
}

/// True for a provisioned infrastructure object.
pub fn provisioned(object: &DynamicObject, contract: Contract) -> bool {
    initialized(object, contract, "provisioned", "ready")
}

/// True if the Secret of a bootstrap object has been created.
pub fn data_secret_created(object: &DynamicObject, contract: Contract) -> bool {
    initialized(object, contract, "dataSecretCreated", "ready")
}

/// True if a control plane has been initialized.
pub fn control_plane_initialized(object: &DynamicObject, contract: Contract) -> bool {
    initialized(object, contract, "controlPlaneInitialized", "initialized")
}

/// Non-empty string at the JSON pointer `path`.
pub fn text<'a>(object: &'a DynamicObject, path: &str) -> Option<&'a str> {
    object
        .data
        .pointer(path)?
        .as_str()
        .filter(|text| !text.is_empty())
}

/// Number at the JSON pointer `path`.
pub fn number(object: &DynamicObject, path: &str) -> Option<i32> {
    object
        .data
        .pointer(path)?
        .as_i64()
        .and_then(|number| i32::try_from(number).ok())
}

/// `spec.controlPlaneEndpoint`, if host and port are both set.
pub fn endpoint(object: &DynamicObject) -> Option<ApiEndpoint> {
    let value = object.data.pointer("/spec/controlPlaneEndpoint")?;
    ApiEndpoint::deserialize(value)
        .ok()
        .filter(ApiEndpoint::is_complete)
}

/// `status.addresses`, without addresses of unknown types.
pub fn addresses(object: &DynamicObject) -> Vec<MachineAddress> {
    let list = object
        .data
        .pointer("/status/addresses")
        .and_then(Value::as_array);
    let list = list.map(Vec::as_slice).unwrap_or_default();
    list.iter()
        .filter_map(|value| MachineAddress::deserialize(value).ok())
        .collect()
}

/// `status.failureDomains`, sorted by name: a list in v1beta2, a map in v1beta1.
pub fn failure_domains(object: &DynamicObject) -> Vec<FailureDomain> {
    let mut domains = match object.data.pointer("/status/failureDomains") {
        Some(Value::Array(list)) => list
            .iter()
            .filter_map(|value| FailureDomain::deserialize(value).ok())
            .collect(),
        Some(Value::Object(map)) => map
            .iter()
            .map(|(name, value)| domain(name, value))
            .collect(),
        _ => Vec::new(),
    };
    domains.sort_by(|a, b| a.name.cmp(&b.name));
    domains
}

/// Condition of a type, in the format of either contract.
pub fn condition(object: &DynamicObject, type_: Type) -> Option<Seen> {
    let list = object.data.pointer("/status/conditions")?.as_array()?;
    let is_it = |value: &&Value| value.get("type").and_then(Value::as_str) == Some(type_.as_str());
    list.iter()
        .find(is_it)
        .and_then(|value| Seen::deserialize(value).ok())
}

fn domain(name: &str, value: &Value) -> FailureDomain {
    let attributes = value
        .get("attributes")
        .and_then(|attributes| BTreeMap::<String, String>::deserialize(attributes).ok());
    FailureDomain {
        name: name.to_owned(),
        control_plane: value.get("controlPlane").and_then(Value::as_bool),
        attributes,
    }
}

fn initialized(object: &DynamicObject, contract: Contract, new: &str, old: &str) -> bool {
    let flag = |path: String| object.data.pointer(&path).and_then(Value::as_bool) == Some(true);
    match contract {
        Contract::V1Beta2 => flag(format!("/status/initialization/{new}")),
        Contract::V1Beta1 => flag(format!("/status/{old}")),
    }
}
