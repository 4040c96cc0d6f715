//! Validation of the group beyond schemas.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::Value;

use super::taints::reserved;
use super::topology;
use crate::change::{Change, FieldError};
use crate::in_place;
use crate::version::Version;

/// Maximum length of names used in label values and generated names.
const LONGEST_NAME: usize = 63;

pub(super) fn cluster(change: Change<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    name(change.object, &mut errors);
    for part in ["services", "pods"] {
        let path = format!("/spec/clusterNetwork/{part}/cidrBlocks");
        let blocks = change.object.pointer(&path).and_then(Value::as_array);
        let blocks = blocks.map(Vec::as_slice).unwrap_or_default();
        let field = format!("spec.clusterNetwork.{part}.cidrBlocks");
        let mut families = Vec::new();
        for (at, block) in blocks.iter().enumerate() {
            match block.as_str().unwrap_or_default().parse::<IpNet>() {
                Ok(range) => families.push(matches!(range.addr(), IpAddr::V6(_))),
                Err(_) => errors.push(FieldError::new(
                    format!("{field}[{at}]"),
                    format!("{block} is not a range such as 10.244.0.0/16"),
                )),
            }
        }
        let twice = families.iter().filter(|six| **six).count() > 1
            || families.iter().filter(|six| !**six).count() > 1;
        if twice {
            let message = "at most one range of each address family (IPv4, IPv6)";
            errors.push(FieldError::new(field, message));
        }
    }
    if is_set(change.object, "/spec/topology") {
        topology::validate(change, &mut errors);
    } else if change
        .changed_from
        .is_some_and(|old| is_set(old, "/spec/topology"))
    {
        let message =
            "cannot be removed: the objects of the cluster would have nobody to change them";
        errors.push(FieldError::new("spec.topology", message));
    }
    errors
}

/// True if a path has a value other than null.
pub(super) fn is_set(object: &Value, at: &str) -> bool {
    match object.pointer(at) {
        None | Some(Value::Null) => false,
        Some(Value::Array(items)) => !items.is_empty(),
        Some(_) => true,
    }
}

pub(super) fn machine(change: Change<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    unchanged(change, &mut errors);
    bootstrap(change.object, "/spec", "spec", &mut errors);
    let taints = change.object.pointer("/spec/taints");
    reserved(taints, "spec.taints", &mut errors);
    version(change.object, "/spec/version", "spec.version", &mut errors);
    errors
}

pub(super) fn set(change: Change<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    unchanged(change, &mut errors);
    group(change, &mut errors);
    errors
}

pub(super) fn deployment(change: Change<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    name(change.object, &mut errors);
    unchanged(change, &mut errors);
    group(change, &mut errors);
    in_place::check(change.object, &mut errors);
    let rolling = change
        .object
        .pointer("/spec/rollout/strategy/rollingUpdate");
    for field in ["maxSurge", "maxUnavailable"] {
        if let Some(value) = rolling.and_then(|rolling| rolling.get(field))
            && !is_int_or_percent(value)
        {
            errors.push(FieldError::new(
                format!("spec.rollout.strategy.rollingUpdate.{field}"),
                format!("{value} is neither a number of machines nor a percentage such as 25%"),
            ));
        }
    }
    if let Some(value) = change.object.pointer("/spec/remediation/maxInFlight")
        && !is_int_or_percent(value)
    {
        let message = format!("{value} is neither a number of machines nor a percentage");
        errors.push(FieldError::new("spec.remediation.maxInFlight", message));
    }
    errors
}

fn group(change: Change<'_>, errors: &mut Vec<FieldError>) {
    let object = change.object;
    let taints = object.pointer("/spec/template/spec/taints");
    reserved(taints, "spec.template.spec.taints", errors);
    if object
        .pointer("/spec/replicas")
        .and_then(Value::as_i64)
        .is_some_and(|count| count < 0)
    {
        errors.push(FieldError::new("spec.replicas", "cannot be negative"));
    }
    let labels = object.pointer("/spec/template/metadata/labels");
    let wanted = object
        .pointer("/spec/selector/matchLabels")
        .and_then(Value::as_object);
    for (key, value) in wanted.into_iter().flatten() {
        if labels.and_then(|labels| labels.get(key)) != Some(value) {
            errors.push(FieldError::new(
                "spec.template.metadata.labels",
                format!(
                    "must match spec.selector, which asks for {key}={}",
                    plain(value)
                ),
            ));
        }
    }
    let (outer, inner) = (
        text(object, "/spec/clusterName"),
        text(object, "/spec/template/spec/clusterName"),
    );
    if let (Some(outer), Some(inner)) = (outer, inner)
        && outer != inner
    {
        errors.push(FieldError::new(
            "spec.template.spec.clusterName",
            format!("must be {outer}, as spec.clusterName is"),
        ));
    }
    if let Some(template) = text(object, "/spec/machineNaming/template")
        && !template.contains(".random")
    {
        errors.push(FieldError::new(
            "spec.machineNaming.template",
            "must contain {{ .random }}: all machines would have the same name",
        ));
    }
    bootstrap(object, "/spec/template/spec", "spec.template.spec", errors);
    let path = "spec.template.spec.version";
    version(object, "/spec/template/spec/version", path, errors);
}

fn name(object: &Value, errors: &mut Vec<FieldError>) {
    let name = text(object, "/metadata/name").unwrap_or_default();
    if name.len() > LONGEST_NAME {
        errors.push(FieldError::new(
            "metadata.name",
            format!(
                "has {} characters; names and labels generated from it may have at most {LONGEST_NAME}",
                name.len()
            ),
        ));
    }
}

pub(super) fn unchanged(change: Change<'_>, errors: &mut Vec<FieldError>) {
    let Some(old) = change.changed_from else {
        return;
    };
    let (was, is) = (
        text(old, "/spec/clusterName"),
        text(change.object, "/spec/clusterName"),
    );
    if was != is {
        let was = was.unwrap_or_default();
        errors.push(FieldError::new(
            "spec.clusterName",
            format!("cannot be changed; it is {was}"),
        ));
    }
}

fn bootstrap(object: &Value, at: &str, path: &str, errors: &mut Vec<FieldError>) {
    let Some(bootstrap) = object.pointer(&format!("{at}/bootstrap")) else {
        return;
    };
    let has = |name: &str| bootstrap.get(name).is_some_and(|value| !value.is_null());
    if !has("configRef") && !has("dataSecretName") {
        errors.push(FieldError::new(
            format!("{path}.bootstrap"),
            "needs configRef (such as a KubeadmConfigTemplate) or dataSecretName",
        ));
    }
}

/// Validates a semantic version with a leading `v`, added by defaulting.
pub(super) fn version(object: &Value, at: &str, path: &str, errors: &mut Vec<FieldError>) {
    let Some(version) = text(object, at) else {
        return;
    };
    if !version.starts_with('v') || version.parse::<Version>().is_err() {
        let message = format!("{version} is not a version such as v1.34.1");
        errors.push(FieldError::new(path, message));
    }
}

pub(super) fn is_int_or_percent(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_i64().is_some_and(|number| number >= 0),
        Value::String(text) => {
            let digits = text.strip_suffix('%').unwrap_or_default();
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        }
        _ => false,
    }
}

pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer)?.as_str()
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
