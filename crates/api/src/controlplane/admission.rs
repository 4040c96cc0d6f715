//! Defaulting and validation of the control plane kinds, beyond schemas.
//!
//! Rules of the upstream webhooks (Cluster API 1.15, KubeadmControlPlane), for objects in v1beta2.

mod immutable;

use serde_json::{Value, json};

use super::GROUP;
use crate::bootstrap::admission::{at, kind_of, spec_problems};
use crate::change::{Change, FieldError};
use crate::core::admission::reserved_taints;
use crate::in_place;
use crate::names::ETCD_SURVIVOR_ANNOTATION;
use crate::version::Version;

/// Default validity of kubeadm's certificates, in days.
const VALIDITY_DAYS: i64 = 365;

/// Sets the defaults of Cluster API's webhooks.
pub(crate) fn default_object(object: &mut Value, _old: Option<&Value>) {
    match kind_of(object, GROUP) {
        Some("KubeadmControlPlane") => {
            let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) else {
                return;
            };
            if spec.get("replicas").is_none_or(Value::is_null) {
                spec["replicas"] = json!(1);
            }
            let version = spec
                .get("version")
                .and_then(Value::as_str)
                .unwrap_or_default();
            if version.starts_with(|c: char| c.is_ascii_digit()) {
                spec["version"] = json!(format!("v{version}"));
            }
            rollout(spec);
        }
        Some("KubeadmControlPlaneTemplate") => {
            if let Some(spec) = object
                .pointer_mut("/spec/template/spec")
                .filter(|s| s.is_object())
            {
                rollout(spec);
            }
        }
        _ => {}
    }
}

/// Sets the default rollout: one machine more than replicas.
fn rollout(spec: &mut Value) {
    if spec.get("rollout").is_none_or(Value::is_null) {
        spec["rollout"] = json!({});
    }
    let Some(rollout) = spec.get_mut("rollout").filter(|r| r.is_object()) else {
        return;
    };
    if rollout.get("strategy").is_none_or(Value::is_null) {
        rollout["strategy"] = json!({"type": "RollingUpdate"});
    }
    let Some(strategy) = rollout.get_mut("strategy").and_then(Value::as_object_mut) else {
        return;
    };
    let rolling = strategy
        .get("type")
        .is_none_or(|type_| type_ == "RollingUpdate");
    if rolling {
        let update = strategy.entry("rollingUpdate").or_insert_with(|| json!({}));
        if update.get("maxSurge").is_none_or(Value::is_null) && update.is_object() {
            update["maxSurge"] = json!(1);
        }
    }
}

/// Errors of an object of this group.
pub(crate) fn validate(change: Change<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match kind_of(change.object, GROUP) {
        Some("KubeadmControlPlane") => control_plane(change, &mut errors),
        Some("KubeadmControlPlaneTemplate") => template(change, &mut errors),
        _ => {}
    }
    errors
}

fn control_plane(change: Change<'_>, errors: &mut Vec<FieldError>) {
    survivor(change.object, errors);
    in_place::check(change.object, errors);
    let Some(spec) = change.object.get("spec") else {
        return;
    };
    replicas(spec, errors);
    version(spec, errors);
    surge(spec, "spec", errors);
    naming(spec, "spec", errors);
    before_expiry(spec, "spec", errors);
    taints(spec, "spec", errors);
    if let Some(config) = spec.get("kubeadmConfigSpec") {
        spec_problems(config, "spec.kubeadmConfigSpec", errors);
        etcd(config, errors);
    }
    if let Some(old) = change.changed_from.and_then(|old| old.get("spec")) {
        immutable::changes(old, spec, errors);
        downgrade(old, spec, errors);
    }
}

fn template(change: Change<'_>, errors: &mut Vec<FieldError>) {
    let path = "spec.template.spec";
    if let Some(spec) = at(change.object, path) {
        surge(spec, path, errors);
        naming(spec, path, errors);
        before_expiry(spec, path, errors);
        taints(spec, path, errors);
        if let Some(config) = spec.get("kubeadmConfigSpec") {
            spec_problems(config, &format!("{path}.kubeadmConfigSpec"), errors);
        }
    }
    let dry_run = change.dry_run
        && change
            .object
            .pointer("/metadata/annotations")
            .is_some_and(|a| a.get("topology.cluster.x-k8s.io/dry-run").is_some());
    // Updates without a change of the spec never get here.
    if change.changed_from.is_some() && !dry_run {
        let text = "a template cannot be changed; create a new one and refer to it";
        errors.push(FieldError::new("spec.template", text));
    }
}

fn replicas(spec: &Value, errors: &mut Vec<FieldError>) {
    let replicas = spec.get("replicas").and_then(Value::as_i64).unwrap_or(1);
    let external = at(spec, "kubeadmConfigSpec.clusterConfiguration.etcd.external").is_some();
    if replicas <= 0 {
        errors.push(FieldError::new("spec.replicas", "must be at least 1"));
    } else if replicas % 2 == 0 && !external {
        errors.push(FieldError::new(
            "spec.replicas",
            format!("{replicas} is even: etcd on the machines needs an odd number of members"),
        ));
    }
}

fn version(spec: &Value, errors: &mut Vec<FieldError>) {
    let version = spec
        .get("version")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if numbers(version).is_none() {
        errors.push(FieldError::new(
            "spec.version",
            format!("`{version}` is not a Kubernetes version such as v1.34.2"),
        ));
    }
}

/// Major, minor and patch number of a semantic version, with or without `v`.
fn numbers(version: &str) -> Option<(u64, u64, u64)> {
    version
        .parse()
        .ok()
        .map(|version: Version| version.numbers())
}

/// Rejects a rollout before expiry with at least as many days as the validity of a new certificate: a new machine would be
/// due at once, and machines would be replaced without end.
fn before_expiry(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let days = |field: &str| at(spec, field).and_then(Value::as_i64);
    let validity = days("kubeadmConfigSpec.clusterConfiguration.certificateValidityPeriodDays");
    let validity = validity.unwrap_or(VALIDITY_DAYS);
    let before = days("rollout.before.certificatesExpiryDays");
    if before.is_some_and(|before| before >= validity) {
        let message = format!(
            "must be less than {validity}, the days for which the certificates of a new machine are valid \
             (clusterConfiguration.certificateValidityPeriodDays): machines would be replaced without end"
        );
        let field = format!("{path}.rollout.before.certificatesExpiryDays");
        errors.push(FieldError::new(field, message));
    }
}

/// Rejects an invalid name of a Machine. A name without a Machine is reported by a condition.
fn survivor(object: &Value, errors: &mut Vec<FieldError>) {
    let annotations = at(object, "metadata.annotations");
    let Some(value) = annotations.and_then(|all| all.get(ETCD_SURVIVOR_ANNOTATION)) else {
        return;
    };
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let label = |label: &str| {
        let bytes = label.as_bytes();
        let ends = [bytes.first(), bytes.last()];
        ends.into_iter()
            .all(|end| end.is_some_and(|end| alphanumeric(*end)))
            && bytes
                .iter()
                .all(|byte| alphanumeric(*byte) || *byte == b'-')
    };
    let name = value.as_str().unwrap_or_default();
    if name.len() > 253 || !name.split('.').all(label) {
        let field = format!("metadata.annotations[{ETCD_SURVIVOR_ANNOTATION}]");
        let message = "must be the name of the Machine whose etcd was restarted alone";
        errors.push(FieldError::new(field, message));
    }
}

/// Rejects taints managed by other controllers.
fn taints(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    const FIELD: &str = "machineTemplate.spec.taints";
    reserved_taints(at(spec, FIELD), &format!("{path}.{FIELD}"), errors);
}

/// Rejects downgrades, and upgrades of more than one minor version: limits of kubeadm.
fn downgrade(old: &Value, new: &Value, errors: &mut Vec<FieldError>) {
    let of = |spec: &Value| {
        spec.get("version")
            .and_then(Value::as_str)
            .and_then(numbers)
    };
    let (Some(from), Some(to)) = (of(old), of(new)) else {
        return;
    };
    if (to.0, to.1) < (from.0, from.1) {
        errors.push(FieldError::new(
            "spec.version",
            format!(
                "cannot go back from v{}.{}.{} to v{}.{}.{}: kubeadm does not downgrade by a minor version",
                from.0, from.1, from.2, to.0, to.1, to.2
            ),
        ));
    }
    if from.0 == to.0 && to.1 > from.1 + 1 {
        errors.push(FieldError::new(
            "spec.version",
            format!(
                "cannot go from v{}.{}.{} to v{}.{}.{}: minor versions cannot be skipped",
                from.0, from.1, from.2, to.0, to.1, to.2
            ),
        ));
    }
}

fn surge(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(surge) = at(spec, "rollout.strategy.rollingUpdate.maxSurge") else {
        return;
    };
    let number = match surge {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    let field = format!("{path}.rollout.strategy.rollingUpdate.maxSurge");
    match number {
        Some(0) => {
            // Templates have no replicas; the topology sets the number.
            let few = spec
                .get("replicas")
                .and_then(Value::as_i64)
                .is_some_and(|count| count < 3);
            if few {
                let text =
                    "0 needs at least 3 replicas, or the control plane would be gone meanwhile";
                errors.push(FieldError::new(field, text));
            }
        }
        Some(1) => {}
        _ => errors.push(FieldError::new(field, format!("{surge} must be 0 or 1"))),
    }
}

fn naming(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(template) = at(spec, "machineNaming.template").and_then(Value::as_str) else {
        return;
    };
    let field = || format!("{path}.machineNaming.template");
    let squeezed: String = template.chars().filter(|c| !c.is_whitespace()).collect();
    if !squeezed.contains("{{.random}}") {
        let text = "must contain {{ .random }}, or all machines would have one name";
        errors.push(FieldError::new(field(), text));
    }
    let mut rest = squeezed.as_str();
    while let Some((_, tail)) = rest.split_once("{{") {
        let (name, after) = tail.split_once("}}").unwrap_or((tail, ""));
        if !matches!(
            name,
            ".random" | ".cluster.name" | ".kubeadmControlPlane.name"
        ) {
            let text = format!(
                "{{{{ {name} }}}} is not known: use .cluster.name, .kubeadmControlPlane.name and .random"
            );
            errors.push(FieldError::new(field(), text));
        }
        rest = after;
    }
}

fn etcd(config: &Value, errors: &mut Vec<FieldError>) {
    let Some(etcd) = at(config, "clusterConfiguration.etcd") else {
        return;
    };
    if etcd.get("local").is_some() && etcd.get("external").is_some() {
        errors.push(FieldError::new(
            "spec.kubeadmConfigSpec.clusterConfiguration.etcd",
            "only one of local and external may be set",
        ));
    }
}

#[cfg(test)]
mod tests;
