//! `AdmissionReview`: the request to a hook, and validation of the answer.

use apimachinery::schema::go_quote;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::rules::{Attributes, Gvk, Invocation};
use crate::error::ApiError;

/// Answer of a hook.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answered {
    pub(super) allowed: bool,
    /// JSON patch, or null.
    pub(super) patch: Value,
    /// `Status`, or null.
    pub(super) result: Value,
    pub(super) warnings: Vec<String>,
}

/// Review for a hook.
pub(super) fn request(
    attributes: &Attributes<'_>,
    invocation: &Invocation,
    version: &str,
    uid: &str,
    object: Value,
    old: Value,
) -> Value {
    let mut request = common(attributes, invocation);
    request["uid"] = Value::from(uid);
    request["object"] = object;
    request["oldObject"] = old;
    json!({
        "kind": "AdmissionReview", "apiVersion": format!("admission.k8s.io/{version}"), "request": request,
    })
}

/// Request for match conditions, including empty fields.
pub(super) fn condition_request(attributes: &Attributes<'_>, invocation: &Invocation) -> Value {
    let mut request = common(attributes, invocation);
    for field in ["name", "namespace", "subResource", "requestSubResource"] {
        if request[field].is_null() {
            request[field] = Value::from("");
        }
    }
    let user = &mut request["userInfo"];
    for (field, empty) in [
        ("uid", json!("")),
        ("groups", json!([])),
        ("extra", json!({})),
    ] {
        if user[field].is_null() {
            user[field] = empty;
        }
    }
    request
}

fn common(attributes: &Attributes<'_>, invocation: &Invocation) -> Value {
    let plural = attributes.call.resource.plural.as_str();
    let gvr = |group: &str, version: &str| json!({"group": group, "version": version, "resource": plural});
    let gvk = |kind: &Gvk| json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
    let mut request = json!({
        "kind": gvk(&invocation.kind),
        "resource": gvr(&invocation.group, &invocation.version),
        "requestKind": gvk(&attributes.kind),
        "requestResource": gvr(&attributes.call.resource.group, &attributes.call.version),
        "operation": attributes.operation.as_str(),
        "userInfo": attributes.call.user,
        "dryRun": attributes.dry_run,
        "options": attributes.options,
    });
    for (field, value) in [
        ("name", &attributes.name),
        ("namespace", &attributes.namespace),
        ("subResource", &attributes.subresource),
        ("requestSubResource", &attributes.subresource),
    ] {
        if !value.is_empty() {
            request[field] = Value::from(value.as_str());
        }
    }
    request
}

/// Validates an answer as kube-apiserver does (`VerifyAdmissionResponse`).
pub(super) fn verify(
    review: &Value,
    version: &str,
    uid: &str,
    mutating: bool,
) -> Result<Answered, String> {
    let response = &review["response"];
    if !response.is_object() {
        return Err("webhook response was absent".to_owned());
    }
    let patch = match response["patch"].as_str() {
        None => Vec::new(),
        Some(text) => STANDARD
            .decode(text)
            .map_err(|error| format!("response.patch is not valid base64: {error}"))?,
    };
    let kind = &response["patchType"];
    if version == "v1" {
        let given = response["uid"].as_str().unwrap_or_default();
        if given != uid {
            return Err(format!(
                "expected response.uid={}, got {}",
                go_quote(uid),
                go_quote(given)
            ));
        }
        let named = (review["apiVersion"].as_str(), review["kind"].as_str());
        if named != (Some("admission.k8s.io/v1"), Some("AdmissionReview")) {
            return Err(format!(
                "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {}, Kind={}",
                named.0.unwrap_or_default(),
                named.1.unwrap_or_default()
            ));
        }
        check_patch(!patch.is_empty(), kind, mutating)?;
    }
    let patch = if mutating && !patch.is_empty() {
        serde_json::from_slice(&patch)
            .ok()
            .filter(Value::is_array)
            .ok_or("received undecodable patch in webhook response")?
    } else {
        Value::Null
    };
    let warnings = response["warnings"].as_array().into_iter().flatten();
    Ok(Answered {
        allowed: response["allowed"] == true,
        patch,
        result: if response["status"].is_object() {
            response["status"].clone()
        } else {
            Value::Null
        },
        warnings: warnings
            .filter_map(|warning| warning.as_str().map(str::to_owned))
            .collect(),
    })
}

fn check_patch(patched: bool, kind: &Value, mutating: bool) -> Result<(), String> {
    let problem = match (mutating, patched, kind) {
        (true, true, Value::Null) => "webhook returned response.patch but not response.patchType",
        (true, false, kind) if !kind.is_null() => {
            "webhook returned response.patchType but not response.patch"
        }
        (true, _, Value::String(kind)) if kind.is_empty() => {
            "webhook returned invalid response.patchType of \"\""
        }
        (true, true, kind) if *kind != "JSONPatch" => {
            return Err(format!(
                "unsupported patch type {}",
                go_quote(kind.as_str().unwrap_or_default())
            ));
        }
        (false, true, _) => "validating webhook may not return response.patch",
        (false, _, kind) if !kind.is_null() => {
            "validating webhook may not return response.patchType"
        }
        _ => return Ok(()),
    };
    Err(problem.to_owned())
}

/// Error for a denial (`ToStatusErr`).
pub(super) fn denial(hook: &str, result: &Value) -> ApiError {
    let by = format!("admission webhook {} denied the request", go_quote(hook));
    let text = |field: &str| result[field].as_str().filter(|text| !text.is_empty());
    let message = match (text("message"), text("reason")) {
        (Some(message), _) => format!("{by}: {message}"),
        (None, Some(reason)) => format!("{by}: {reason}"),
        (None, None) => format!("{by} without explanation"),
    };
    let code = result["code"]
        .as_u64()
        .and_then(|code| u16::try_from(code).ok())
        .filter(|code| *code >= 400)
        .unwrap_or(400);
    let status = text("status").filter(|status| *status != "Success");
    let mut whole = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {},
        "status": status.unwrap_or("Failure"), "message": message, "code": code,
    });
    for field in ["metadata", "reason", "details"] {
        if let Some(given) = result.get(field).filter(|given| !given.is_null()) {
            whole[field] = given.clone();
        }
    }
    ApiError::whole(code, whole)
}

#[cfg(test)]
mod tests;
