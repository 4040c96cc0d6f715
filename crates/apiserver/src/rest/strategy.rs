//! Strategies and admission plugins of kube-apiserver for built-in kinds, beyond the defaults of their types
//! (`kinds/shape`): fields set or restored before storage, and the validation that clients rely on.

mod nodes;
mod pods;
mod priority;
mod rollout;
mod volumes;
mod workloads;

use apimachinery::crd;
use apimachinery::kinds::Resource;
use apimachinery::schema::{FieldError, json_type};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::meta;
use crate::call::Call;
use crate::error::ApiError;
use crate::services;

pub(crate) use volumes::{CLAIM_PROTECTION, NOT_READY, VOLUME_PROTECTION};

use workloads::{job, pod, pod_rules, workload, workload_rules};

/// Fills in defaults and restores immutable fields.
pub(crate) fn prepare(
    call: &Call,
    new: &mut Value,
    live: Option<&Value>,
    subresource: &str,
    now: Timestamp,
) -> Result<(), ApiError> {
    let resource = &call.resource;
    let shape = resource.shape(&call.version);
    check_shape(call, new)?;
    drop_nulls(new);
    if let Some(shape) = shape {
        shape.default(new)?;
        shape.write(new);
    }
    if live.is_none() && resource.stored_version().status && !resource.is_crd() {
        reset_status(&resource.kind, new);
    }
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Namespace") => namespace(new, live, subresource),
        ("", "Secret") => secret(call, new)?,
        ("", "Pod") => {
            if live.is_none() {
                priority::admit(call, new)?;
            }
            pod(new, live.is_none());
            if live.is_none() {
                pods::mount(new);
            }
        }
        ("", "Service") => service(call, new, live)?,
        ("", "Node") if live.is_none() => volumes::taint(new),
        ("", "PersistentVolume") => volumes::volume(new, live, now),
        ("", "PersistentVolumeClaim") => {
            volumes::same_source(new);
            if live.is_none() {
                volumes::protect(new, CLAIM_PROTECTION);
            }
        }
        ("apps", kind) => workload(kind, new, live),
        ("batch", "Job") => job(new, live.is_none()),
        ("certificates.k8s.io", _) if live.is_none() => csr(call, new),
        ("apiextensions.k8s.io", _) => definition(call, new, live, subresource)?,
        _ => {}
    }
    drop_nulls(new);
    // kube-apiserver fills in the defaults again at each read from storage.
    if let Some(shape) = shape {
        shape.default(new)?;
    }
    if resource.is_crd() && live.is_none() {
        new["status"]["conditions"] = Value::Null;
    }
    if let Some(shape) = shape {
        shape.write(new);
    }
    Ok(())
}

/// Removes fields of a new object that were set by admission or storage, neither by the sender nor by a default of
/// the type: the sender is not recorded as their manager.
pub(super) fn remove_server_fields(resource: &Resource, sent: &Value, new: &mut Value) {
    let fields: &[&str] = match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Namespace") => {
            // The default of the name label is computed before the name is generated.
            if meta::is_generated(sent) {
                meta::of(new).remove("labels");
                if let Some(labels) = sent["metadata"].get("labels") {
                    meta::of(new).insert("labels".to_owned(), labels.clone());
                }
            }
            &["finalizers"]
        }
        ("", "Node") => &["taints"],
        ("", "PersistentVolume" | "PersistentVolumeClaim") => {
            meta::of(new).remove("finalizers");
            if let Some(given) = sent["metadata"].get("finalizers") {
                meta::of(new).insert("finalizers".to_owned(), given.clone());
            }
            if resource.kind == "PersistentVolume" {
                return;
            }
            &["dataSource", "dataSourceRef"]
        }
        ("", "Pod") => {
            pods::unmount(new);
            &[
                "preemptionPolicy",
                "priority",
                "serviceAccount",
                "serviceAccountName",
                "tolerations",
            ]
        }
        ("", "Service") => {
            let ports = new["spec"].get_mut("ports").and_then(Value::as_array_mut);
            for (index, port) in ports.into_iter().flatten().enumerate() {
                if sent["spec"]["ports"][index]["nodePort"].is_null()
                    && let Some(port) = port.as_object_mut()
                {
                    port.remove("nodePort");
                }
            }
            &[
                "clusterIP",
                "clusterIPs",
                "healthCheckNodePort",
                "ipFamilies",
                "ipFamilyPolicy",
            ]
        }
        ("batch", "Job") => {
            for metadata in ["/metadata", "/spec/template/metadata"] {
                let metadata = new.pointer_mut(metadata).and_then(Value::as_object_mut);
                let Some(metadata) = metadata else { continue };
                if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
                    labels.retain(|name, _| {
                        !matches!(
                            name.trim_start_matches("batch.kubernetes.io/"),
                            "controller-uid" | "job-name"
                        )
                    });
                    if labels.is_empty() {
                        metadata.remove("labels");
                    }
                }
            }
            &["selector"]
        }
        _ => return,
    };
    // `serviceAccount` and `serviceAccountName` are copied from each other.
    let account = ["serviceAccount", "serviceAccountName"];
    let given = |name: &str| match account.contains(&name) {
        true => account.iter().any(|name| !sent["spec"][*name].is_null()),
        false => !sent["spec"][name].is_null(),
    };
    if let Some(spec) = new["spec"].as_object_mut() {
        spec.retain(|name, _| !fields.contains(&name.as_str()) || given(name));
    }
}

/// Same for a changed object; fields removed by storage return as sent.
pub(super) fn restore_sent_fields(resource: &Resource, sent: &Value, new: &mut Value) {
    if resource.group.is_empty() && resource.kind == "Service" {
        services::restore_sent(&mut new["spec"], &sent["spec"]);
    }
}

/// Validates a built-in object.
pub(crate) fn validate(resource: &Resource, new: &Value, live: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match resource.kind.as_str() {
        "Secret" => secret_rules(new, live, &mut errors),
        "ConfigMap" => config_map_rules(new, live, &mut errors),
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" => {
            workload_rules(resource, new, live, &mut errors);
        }
        "Pod" => {
            pod_rules("spec", &new["spec"], &mut errors);
            if let Some(live) = live {
                errors.extend(pods::unchangeable(new, live));
            }
        }
        "Service" => {
            errors.extend(services::problems(new, live));
        }
        "Node" => {
            errors.extend(nodes::ranges(new));
            if let Some(live) = live {
                errors.extend(nodes::unchangeable(new, live));
            }
        }
        "CustomResourceDefinition" => errors.extend(match live {
            Some(live) if live["spec"] == new["spec"] => crd::rules::check_status(new, live),
            live => crd::rules::check(new, live),
        }),
        "Lease" => {
            if let Some(duration) = new["spec"]["leaseDurationSeconds"].as_i64()
                && duration <= 0
            {
                let value = &new["spec"]["leaseDurationSeconds"];
                let detail = "must be greater than 0";
                errors.push(FieldError::invalid(
                    "spec.leaseDurationSeconds",
                    value,
                    detail,
                ));
            }
        }
        _ => {}
    }
    errors
}

/// Checks that `spec`, `status` and `data` are objects, a precondition of later code.
fn check_shape(call: &Call, object: &Value) -> Result<(), ApiError> {
    for field in ["spec", "status", "data", "stringData", "template"] {
        let Some(value) = object.get(field) else {
            continue;
        };
        if !value.is_object() && !value.is_null() {
            let kind = &call.resource.kind;
            return Err(ApiError::bad_request(format!(
                "{kind} in version \"{}\" cannot be handled as a {kind}: json: cannot unmarshal {} into Go struct field {kind}.{field}",
                call.version,
                json_type(value)
            )));
        }
    }
    Ok(())
}

fn reset_status(kind: &str, new: &mut Value) {
    let status = match kind {
        "Pod" => json!({"phase": "Pending"}),
        "Namespace" => json!({"phase": "Active"}),
        "PersistentVolume" | "PersistentVolumeClaim" => json!({"phase": "Pending"}),
        "Service" => json!({"loadBalancer": {}}),
        // A kubelet registers its Node together with the status.
        "Node" => return,
        _ => json!({}),
    };
    top_set(new, "status", status);
}

fn namespace(new: &mut Value, live: Option<&Value>, subresource: &str) {
    if let Some(name) = new["metadata"]["name"].as_str().map(str::to_owned) {
        let metadata = meta::of(new);
        let labels = metadata.entry("labels").or_insert_with(|| json!({}));
        if let Some(labels) = labels.as_object_mut() {
            labels.insert("kubernetes.io/metadata.name".to_owned(), Value::from(name));
        }
    }
    match live {
        None => top_set(new, "spec", json!({"finalizers": ["kubernetes"]})),
        // Only the finalize subresource changes the finalizers of a namespace.
        Some(live) if subresource != "finalize" => {
            if let Some(spec) = live.get("spec") {
                top_set(new, "spec", spec.clone());
            }
        }
        Some(_) => {}
    }
}

fn secret(call: &Call, new: &mut Value) -> Result<(), ApiError> {
    let Some(fields) = new.as_object_mut() else {
        return Ok(());
    };
    if let Some(Value::Object(texts)) = fields.remove("stringData") {
        let data = fields.entry("data").or_insert_with(|| json!({}));
        if !data.is_object() {
            *data = json!({});
        }
        for (key, text) in texts {
            let Some(text) = text.as_str() else {
                return Err(unreadable(
                    call,
                    &format!(
                        "json: cannot unmarshal {} into Go struct field Secret.stringData of type string",
                        json_type(&text)
                    ),
                ));
            };
            data[key] = Value::from(STANDARD.encode(text));
        }
    }
    for value in fields
        .get("data")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::values)
    {
        let decodes = match value {
            Value::Null => true,
            Value::String(text) => STANDARD.decode(text.replace(['\n', '\r'], "")).is_ok(),
            _ => false,
        };
        if !decodes {
            return Err(unreadable(call, "illegal base64 data at input byte 0"));
        }
    }
    Ok(())
}

fn unreadable(call: &Call, why: &str) -> ApiError {
    let kind = &call.resource.kind;
    ApiError::bad_request(format!(
        "{kind} in version \"{}\" cannot be handled as a {kind}: {why}",
        call.version
    ))
}

fn secret_rules(new: &Value, live: Option<&Value>, errors: &mut Vec<FieldError>) {
    data_keys(&new["data"], errors);
    let Some(live) = live else { return };
    if new["type"] != live["type"] {
        errors.push(FieldError::invalid(
            "type",
            &new["type"],
            "field is immutable",
        ));
    }
    immutable(new, live, &["data"], errors);
}

fn config_map_rules(new: &Value, live: Option<&Value>, errors: &mut Vec<FieldError>) {
    data_keys(&new["data"], errors);
    for (key, value) in new["data"].as_object().into_iter().flatten() {
        if !value.is_string() && !value.is_null() {
            errors.push(FieldError::type_invalid(
                format!("data[{key}]"),
                value,
                "must be a string",
            ));
        }
    }
    if let Some(live) = live {
        immutable(new, live, &["data", "binaryData"], errors);
    }
}

fn immutable(new: &Value, live: &Value, fields: &[&str], errors: &mut Vec<FieldError>) {
    if live["immutable"] != true {
        return;
    }
    let detail = "field is immutable when `immutable` is set";
    if new["immutable"] != true {
        errors.push(FieldError::forbidden("immutable", detail));
    }
    for field in fields {
        if new[*field] != live[*field] {
            errors.push(FieldError::forbidden(*field, detail));
        }
    }
}

fn data_keys(data: &Value, errors: &mut Vec<FieldError>) {
    for key in data.as_object().into_iter().flat_map(Map::keys) {
        let fits = !key.is_empty()
            && key.len() <= 253
            && key != "."
            && !key.starts_with("..")
            && key
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
        if !fits {
            let detail = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
            errors.push(FieldError::invalid(
                format!("data[{key}]"),
                &Value::from(key.as_str()),
                detail,
            ));
        }
    }
}

fn service(call: &Call, new: &mut Value, live: Option<&Value>) -> Result<(), ApiError> {
    if let Some(live) = live {
        services::drop_dependent(&mut new["spec"], &live["spec"]);
        services::carry_addresses(&mut new["spec"], &live["spec"]);
    }
    let external = new["spec"]["type"] == "ExternalName";
    if !external {
        if let Some(address) = live
            .map(|live| &live["spec"]["clusterIP"])
            .filter(|ip| ip.is_string())
        {
            default(new, "spec", "clusterIP", address.clone());
        } else if new["spec"]["clusterIP"].as_str().is_none_or(str::is_empty) {
            let address = services::choose_address(&call.reservations, &call.core.store)?;
            new["spec"]["clusterIP"] = Value::from(address);
        } else {
            services::claim_address(&call.reservations, &call.core.store, new)?;
        }
        let address = new["spec"]["clusterIP"].clone();
        // The endpoints of a headless service without a selector are managed by the user, who may give them any
        // addresses.
        let selects = |spec: &Value| {
            spec["selector"]
                .as_object()
                .is_some_and(|all| !all.is_empty())
        };
        let (families, policy) = if address == "None" && !selects(&new["spec"]) {
            (json!(["IPv4", "IPv6"]), "RequireDualStack")
        } else {
            (json!(["IPv4"]), "SingleStack")
        };
        default(new, "spec", "clusterIPs", json!([address]));
        default(new, "spec", "ipFamilies", families);
        default(new, "spec", "ipFamilyPolicy", json!(policy));
        services::node_ports(&call.reservations, &call.core.store, new, live)?;
    }
    Ok(())
}

fn csr(call: &Call, new: &mut Value) {
    if !new["spec"].is_object() {
        return;
    }
    new["spec"]["username"] = Value::from(call.user.name.as_str());
    new["spec"]["groups"] = json!(call.user.groups);
    if !call.user.extra.is_empty() {
        new["spec"]["extra"] = json!(call.user.extra);
    }
}

/// An update of a definition keeps its status, and an update of its status replaces the status.
fn definition(
    call: &Call,
    new: &mut Value,
    live: Option<&Value>,
    subresource: &str,
) -> Result<(), ApiError> {
    if subresource != "status" {
        crd::prepare(new, live);
        return Ok(());
    }
    let mut status = new.get("status").cloned().unwrap_or_else(|| json!({}));
    crd::read_status(&mut status).map_err(|why| {
        let patch = call
            .content_type()
            .is_some_and(|form| form.contains("patch"));
        super::admit::undecodable(call, new, &why, patch)
    })?;
    top_set(new, "status", status);
    Ok(())
}

/// Sets a default in a part of an object, such as `spec`; a missing part is created.
fn default(object: &mut Value, part: &str, field: &str, value: Value) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    let part = fields.entry(part).or_insert_with(|| json!({}));
    if let Some(part) = part.as_object_mut()
        && part.get(field).is_none_or(Value::is_null)
        && !value.is_null()
    {
        part.insert(field.to_owned(), value);
    }
}

fn top_set(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
}

/// Removes nulls: built-in kinds are Go structs, without a difference between null and absent.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}
