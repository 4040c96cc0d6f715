//! Scale subresource: `autoscaling/v1 Scale`, for built-in and custom resources with replicas.

use apimachinery::kinds::Scale;
use apimachinery::patch;
use apimachinery::schema::{FieldError, go_plain};
use serde_json::{Value, json};

use super::meta;
use super::write::{Change, change_object};
use crate::call::{Answer, Call, Warnings};
use crate::error::ApiError;
use crate::request::decode;
use crate::view::Kind;

/// Answers a get of the scale.
pub(crate) fn get(call: &Call) -> Result<Answer, ApiError> {
    let scale = of(call)?;
    let key = call.resource.key(&call.namespace, call.name());
    let object = call
        .core
        .store
        .get(&call.resource.collection, &key)
        .ok_or_else(|| call.not_found())?;
    let kind = Kind {
        core: &call.core,
        resource: &call.resource,
    };
    let value = kind.value(&object, &call.version().api_version)?;
    if call.resource.is_custom() && get_path(&value, &scale.spec).is_none() {
        return Err(without_replicas(scale));
    }
    Ok(Answer::Value(200, of_object(scale, &value)))
}

/// Answers a put or a patch of the scale. Only the number of replicas of the object changes.
pub(crate) async fn update(
    call: &Call,
    is_patch: bool,
    warnings: &mut Warnings,
) -> Result<Answer, ApiError> {
    let scale = of(call)?.clone();
    let dry_run = call.dry_run("UpdateOptions")?;
    let media = call
        .content_type()
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_owned();
    let body = if is_patch {
        decode::yaml(&call.body)?.value
    } else {
        call.decode()?.value
    };
    let change = Change {
        dry_run,
        ..Change::default()
    };
    let answer = change_object(call, change, warnings, |live| {
        let mut wanted = of_object(&scale, live);
        if !is_patch {
            wanted = body.clone();
        } else if media == "application/json-patch+json" {
            wanted = patch::json(&wanted, &body)?;
        } else {
            meta::of(&mut wanted).remove("resourceVersion");
            patch::merge(&mut wanted, &body)?;
        }
        let replicas = &wanted["spec"]["replicas"];
        let count = if replicas.is_null() {
            Some(0)
        } else {
            replicas.as_i64()
        };
        // For custom objects, `rules` reports a negative number.
        let may_be = |count: &i64| *count >= 0 || call.resource.is_custom();
        let Some(count) = count.filter(may_be) else {
            let detail = "must be greater than or equal to 0";
            let error = FieldError::invalid("spec.replicas", replicas, detail);
            return Err(ApiError::invalid(
                "autoscaling",
                "Scale",
                call.name(),
                &[error],
            ));
        };
        let mut new = live.clone();
        match wanted["metadata"].get("resourceVersion") {
            Some(revision) => {
                meta::of(&mut new).insert("resourceVersion".to_owned(), revision.clone())
            }
            None => meta::of(&mut new).remove("resourceVersion"),
        };
        set(&mut new, &scale.spec, Value::from(count));
        Ok(new)
    })
    .await?;
    let value = match answer {
        Answer::Bytes(_, bytes) => serde_json::from_slice(&bytes).map_err(ApiError::internal)?,
        Answer::Value(_, value) => value,
        Answer::Stream(_) => Value::Null,
    };
    Ok(Answer::Value(200, of_object(&scale, &value)))
}

/// 500 for a custom object without the field of `specReplicasPath`.
fn without_replicas(scale: &Scale) -> ApiError {
    ApiError::internal(format!(
        "the spec replicas field \"{}\" does not exist",
        scale.spec
    ))
}

/// Validates the fields of a custom object that its [`Scale`] refers to (`ValidateScaleSpec`, `ValidateScaleStatus`).
pub(super) fn rules(scale: &Scale, object: &Value, subresource: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if subresource != "status" {
        errors.extend(number_rule(object, &scale.spec));
    }
    errors.extend(number_rule(object, &scale.status));
    if let Some(path) = scale.selector.as_deref() {
        let found = reach(object, path).and_then(|found| match found {
            None | Some(Value::String(_)) => Ok(()),
            Some(other) => Err(misplaced(path, other, "string")),
        });
        errors.extend(
            found
                .err()
                .map(|why| FieldError::invalid(path, &json!(""), why)),
        );
    }
    errors
}

fn number_rule(object: &Value, path: &str) -> Option<FieldError> {
    let rejected = |number: i64, why: &str| Some(FieldError::invalid(path, &json!(number), why));
    let found = match reach(object, path) {
        Ok(None) => return None,
        Ok(Some(found)) => found,
        Err(why) => return rejected(0, &why),
    };
    match found.as_i64() {
        None => rejected(0, &misplaced(path, found, "int64")),
        Some(number) if number < 0 => rejected(number, "should be a non-negative integer"),
        Some(number) if number > i64::from(i32::MAX) => {
            rejected(number, "should be less than or equal to 2147483647")
        }
        Some(_) => None,
    }
}

/// Field at a path. Fails where the path leads through a value other than an object (`NestedFieldNoCopy`).
fn reach<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, String> {
    let mut at = object;
    let mut walked = String::new();
    for part in path.trim_start_matches('.').split('.') {
        walked = format!("{walked}.{part}");
        at = match at {
            Value::Null => return Ok(None),
            Value::Object(fields) => match fields.get(part) {
                Some(found) => found,
                None => return Ok(None),
            },
            other => return Err(misplaced(&walked, other, "map[string]interface{}")),
        };
    }
    Ok(Some(at))
}

fn misplaced(path: &str, found: &Value, wanted: &str) -> String {
    let kind = match found {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    let found = go_plain(found);
    format!("{path} accessor error: {found} is of the type {kind}, expected {wanted}")
}

fn of(call: &Call) -> Result<&Scale, ApiError> {
    call.version()
        .scale
        .as_ref()
        .ok_or_else(ApiError::unknown_resource)
}

/// [`Scale`] of an object.
pub(super) fn of_object(scale: &Scale, object: &Value) -> Value {
    let metadata = &object["metadata"];
    let mut kept = json!({});
    for field in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        if let Some(value) = metadata.get(field) {
            kept[field] = value.clone();
        }
    }
    let mut spec = json!({});
    if let Some(replicas) = get_path(object, &scale.spec) {
        spec["replicas"] = replicas.clone();
    }
    let replicas = get_path(object, &scale.status)
        .cloned()
        .unwrap_or_else(|| Value::from(0));
    let mut status = json!({"replicas": replicas});
    if let Some(selector) = scale
        .selector
        .as_deref()
        .and_then(|path| get_path(object, path))
    {
        status["selector"] = Value::from(selector_text(selector));
    }
    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": kept, "spec": spec, "status": status})
}

/// Selector as text: custom resources store a text, built-in kinds an object.
fn selector_text(selector: &Value) -> String {
    if let Some(text) = selector.as_str() {
        return text.to_owned();
    }
    let labels = selector["matchLabels"]
        .as_object()
        .or_else(|| selector.as_object());
    let pairs = labels.into_iter().flatten();
    let pairs = pairs.filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)));
    pairs.collect::<Vec<_>>().join(",")
}

fn get_path<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.')
        .filter(|part| !part.is_empty())
        .try_fold(object, |value, part| value.get(part))
}

pub(super) fn set(object: &mut Value, path: &str, value: Value) {
    let mut at = object;
    for part in path.split('.').filter(|part| !part.is_empty()) {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[part];
    }
    *at = value;
}
