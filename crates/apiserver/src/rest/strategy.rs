//! What built-in kinds need before they are stored: the defaults and rules that clients rely on.
//!
//! Not the whole of Kubernetes' defaulting: what kubectl, the Cluster API controllers and simulated
//! nodes read back.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Call, meta};
use crate::crd;
use crate::error::ApiError;
use crate::kinds::Resource;
use crate::schema::FieldError;

/// Fills in defaults, and keeps what clients may not change.
pub(crate) fn prepare(
    call: &Call,
    new: &mut Value,
    live: Option<&Value>,
    subresource: &str,
    now: Timestamp,
) -> Result<(), ApiError> {
    let resource = &call.resource;
    check_shape(call, new)?;
    if live.is_none() && resource.stored_version().status && !resource.is_crd() {
        reset_status(&resource.kind, new);
    }
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Namespace") => namespace(new, live, subresource),
        ("", "Secret") => secret(call, new)?,
        ("", "Pod") => pod(new),
        ("", "Service") => service(call, new, live),
        ("", "Node") if live.is_none() => default(new, "spec", "podCIDR", Value::Null),
        ("", "Event") | ("events.k8s.io", "Event") => {}
        ("", "PersistentVolumeClaim") => default(new, "spec", "volumeMode", json!("Filesystem")),
        ("", "PersistentVolume") => {
            default(new, "spec", "volumeMode", json!("Filesystem"));
            default(
                new,
                "spec",
                "persistentVolumeReclaimPolicy",
                json!("Retain"),
            );
        }
        ("apps", kind) => workload(kind, new),
        ("batch", "Job") => job(new),
        ("storage.k8s.io", "StorageClass") => {
            top(new, "reclaimPolicy", json!("Delete"));
            top(new, "volumeBindingMode", json!("Immediate"));
        }
        ("certificates.k8s.io", _) if live.is_none() => csr(call, new),
        ("apiextensions.k8s.io", _) => definition(call, new, live, subresource, now)?,
        _ => {}
    }
    drop_nulls(new);
    Ok(())
}

/// What is wrong with a built-in object.
pub(crate) fn validate(resource: &Resource, new: &Value, live: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match resource.kind.as_str() {
        "Secret" => secret_rules(new, live, &mut errors),
        "ConfigMap" => config_map_rules(new, live, &mut errors),
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" => {
            workload_rules(resource, new, live, &mut errors);
        }
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

/// `spec`, `status` and `data` are objects wherever built-in kinds have them; so the rest may rely on it.
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

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn reset_status(kind: &str, new: &mut Value) {
    let status = match kind {
        "Pod" => json!({"phase": "Pending", "qosClass": "BestEffort"}),
        "Namespace" => json!({"phase": "Active"}),
        "PersistentVolume" | "PersistentVolumeClaim" => json!({"phase": "Pending"}),
        "Service" => json!({"loadBalancer": {}}),
        // A kubelet registers its node with its status, and kube-apiserver keeps it.
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
        // Only the finalize subresource changes these.
        Some(live) if subresource != "finalize" => {
            if let Some(spec) = live.get("spec") {
                top_set(new, "spec", spec.clone());
            }
        }
        Some(_) => {}
    }
}

fn secret(call: &Call, new: &mut Value) -> Result<(), ApiError> {
    top(new, "type", json!("Opaque"));
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

fn pod(new: &mut Value) {
    pod_spec(&mut new["spec"]);
    default(new, "spec", "serviceAccountName", json!("default"));
    let account = new["spec"]["serviceAccountName"].clone();
    default(new, "spec", "serviceAccount", account);
    default(new, "spec", "enableServiceLinks", json!(true));
    default(new, "spec", "priority", json!(0));
    default(
        new,
        "spec",
        "preemptionPolicy",
        json!("PreemptLowerPriority"),
    );
}

fn pod_spec(spec: &mut Value) {
    let Some(spec) = spec.as_object_mut() else {
        return;
    };
    for (field, value) in [
        ("restartPolicy", json!("Always")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("dnsPolicy", json!("ClusterFirst")),
        ("securityContext", json!({})),
        ("schedulerName", json!("default-scheduler")),
    ] {
        spec.entry(field).or_insert(value);
    }
    for list in ["initContainers", "containers"] {
        for container in spec
            .get_mut(list)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            container_defaults(container);
        }
    }
}

fn container_defaults(container: &mut Value) {
    let Some(fields) = container.as_object_mut() else {
        return;
    };
    let image = fields
        .get("image")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let tag = image.rsplit('/').next().unwrap_or_default();
    let latest = !tag.contains('@') && (tag.ends_with(":latest") || !tag.contains(':'));
    let pull = if latest { "Always" } else { "IfNotPresent" };
    for (field, value) in [
        ("terminationMessagePath", json!("/dev/termination-log")),
        ("terminationMessagePolicy", json!("File")),
        ("imagePullPolicy", json!(pull)),
        ("resources", json!({})),
    ] {
        fields.entry(field).or_insert(value);
    }
    for port in fields
        .get_mut("ports")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if let Some(port) = port.as_object_mut() {
            port.entry("protocol").or_insert(json!("TCP"));
        }
    }
}

fn workload(kind: &str, new: &mut Value) {
    let replicated = matches!(kind, "Deployment" | "ReplicaSet" | "StatefulSet");
    if replicated {
        default(new, "spec", "replicas", json!(1));
    }
    if matches!(kind, "Deployment" | "StatefulSet" | "DaemonSet") {
        default(new, "spec", "revisionHistoryLimit", json!(10));
    }
    match kind {
        "Deployment" => {
            default(new, "spec", "progressDeadlineSeconds", json!(600));
            let rolling = json!({
                "type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
            });
            default(new, "spec", "strategy", rolling);
        }
        "StatefulSet" => {
            default(new, "spec", "podManagementPolicy", json!("OrderedReady"));
            let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}});
            default(new, "spec", "updateStrategy", rolling);
        }
        "DaemonSet" => {
            let rolling = json!({
                "type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0},
            });
            default(new, "spec", "updateStrategy", rolling);
        }
        _ => {}
    }
    if new["spec"]["template"].is_object() && new["spec"]["template"]["spec"].is_object() {
        pod_spec(&mut new["spec"]["template"]["spec"]);
    }
}

fn workload_rules(
    resource: &Resource,
    new: &Value,
    live: Option<&Value>,
    errors: &mut Vec<FieldError>,
) {
    let selector = &new["spec"]["selector"];
    if selector.is_null() {
        errors.push(FieldError::required("spec.selector", ""));
        return;
    }
    if let Some(live) = live
        && live["spec"]["selector"] != *selector
        && resource.kind != "StatefulSet"
    {
        errors.push(FieldError::invalid(
            "spec.selector",
            selector,
            "field is immutable",
        ));
    }
    let labels = &new["spec"]["template"]["metadata"]["labels"];
    let wanted = selector["matchLabels"].as_object().into_iter().flatten();
    if wanted
        .into_iter()
        .any(|(key, value)| labels.get(key) != Some(value))
    {
        let detail = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid(
            "spec.template.metadata.labels",
            labels,
            detail,
        ));
    }
    if let Some(replicas) = new["spec"]["replicas"].as_i64()
        && replicas < 0
    {
        let value = &new["spec"]["replicas"];
        errors.push(FieldError::invalid(
            "spec.replicas",
            value,
            "must be greater than or equal to 0",
        ));
    }
}

fn job(new: &mut Value) {
    for (field, value) in [
        ("parallelism", json!(1)),
        ("completions", json!(1)),
        ("backoffLimit", json!(6)),
        ("completionMode", json!("NonIndexed")),
        ("suspend", json!(false)),
    ] {
        default(new, "spec", field, value);
    }
}

fn service(call: &Call, new: &mut Value, live: Option<&Value>) {
    default(new, "spec", "type", json!("ClusterIP"));
    default(new, "spec", "sessionAffinity", json!("None"));
    let external = new["spec"]["type"] == "ExternalName";
    if !external {
        if let Some(address) = live
            .map(|live| &live["spec"]["clusterIP"])
            .filter(|ip| ip.is_string())
        {
            default(new, "spec", "clusterIP", address.clone());
        } else if new["spec"]["clusterIP"].as_str().is_none_or(str::is_empty) {
            let address = crate::special::service_address(call);
            new["spec"]["clusterIP"] = Value::from(address);
        }
        let address = new["spec"]["clusterIP"].clone();
        default(new, "spec", "clusterIPs", json!([address]));
        default(new, "spec", "ipFamilies", json!(["IPv4"]));
        default(new, "spec", "ipFamilyPolicy", json!("SingleStack"));
        default(new, "spec", "internalTrafficPolicy", json!("Cluster"));
    }
    for port in new["spec"]
        .get_mut("ports")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if let Some(port) = port.as_object_mut() {
            port.entry("protocol").or_insert(json!("TCP"));
            if let Some(number) = port.get("port").cloned() {
                port.entry("targetPort").or_insert(number);
            }
        }
    }
}

fn csr(call: &Call, new: &mut Value) {
    if !new["spec"].is_object() {
        return;
    }
    new["spec"]["username"] = Value::from(call.user.name.as_str());
    new["spec"]["groups"] = json!(call.user.groups);
}

fn definition(
    call: &Call,
    new: &mut Value,
    live: Option<&Value>,
    subresource: &str,
    now: Timestamp,
) -> Result<(), ApiError> {
    if let Err(errors) = crd::compile(new) {
        let name = new["metadata"]["name"].as_str().unwrap_or_default();
        return Err(ApiError::invalid(
            call.group(),
            &call.resource.kind,
            name,
            &errors,
        ));
    }
    let errors = live.map_or_else(Vec::new, |live| crd::unchangeable(new, live));
    if !errors.is_empty() {
        let name = new["metadata"]["name"].as_str().unwrap_or_default();
        return Err(ApiError::invalid(
            call.group(),
            &call.resource.kind,
            name,
            &errors,
        ));
    }
    let stored = new["status"]["storedVersions"].take();
    crd::prepare(new, live, now);
    // Clients drop versions here once no object is stored in them any more.
    if subresource == "status" && stored.as_array().is_some_and(|list| !list.is_empty()) {
        new["status"]["storedVersions"] = stored;
    }
    Ok(())
}

/// An Event of one of its two groups as one of the other.
pub(crate) fn convert_event(mut event: Value, api_version: &str) -> Value {
    const NAMES: &[(&str, &str)] = &[
        ("involvedObject", "regarding"),
        ("message", "note"),
        ("reportingComponent", "reportingController"),
        ("source", "deprecatedSource"),
        ("firstTimestamp", "deprecatedFirstTimestamp"),
        ("lastTimestamp", "deprecatedLastTimestamp"),
        ("count", "deprecatedCount"),
    ];
    let Some(fields) = event.as_object_mut() else {
        return event;
    };
    for (core, new) in NAMES {
        let (from, to) = if api_version == "v1" {
            (*new, *core)
        } else {
            (*core, *new)
        };
        if let Some(value) = fields.remove(from) {
            fields.insert(to.to_owned(), value);
        }
    }
    fields.insert("apiVersion".to_owned(), Value::from(api_version));
    event
}

/// Sets a field of a part (`spec`) that is there or made, unless it is set.
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

fn top(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        let found = fields.entry(field).or_insert(Value::Null);
        if found.is_null() || *found == "" {
            *found = value;
        }
    }
}

fn top_set(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
}

/// Built-in kinds are Go structs, in which null and absent are the same.
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
