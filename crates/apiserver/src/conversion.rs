//! Conversion of custom objects by webhook (`spec.conversion.strategy: Webhook` with a `clientConfig`).
//!
//! Callers of conversions are not asynchronous, so [`resolve`] runs them: a conversion without a cached result is
//! recorded and fails, then the webhook is called, and the caller runs again. Results are cached by the JSON of the
//! object.
//!
//! Source of the rules and messages: `apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::kinds::Conversion;
use apimachinery::names::{label_key_problems, label_value_problems};
use apimachinery::schema::{FieldError, go_quote};
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::error::ApiError;
use crate::webhook::{self, Caller, Target};

/// Timeout of conversion webhooks in client-go.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of cached conversions; a larger cache is cleared.
const CACHED: usize = 8192;

/// Object in another version if the result is cached. Otherwise fails, and records the conversion for [`resolve`].
pub(crate) fn convert(
    converter: Converter<'_>,
    webhook: &Arc<Conversion>,
    object: Value,
    to: &str,
) -> Result<Value, ApiError> {
    let key = key(webhook, &object, to);
    let result = SCOPE.with_borrow(|scope| scope.as_ref()?.results.get(&key).cloned());
    let result = result.or_else(|| converter.conversions.0.lock().get(&key).cloned());
    if let Some(result) = result {
        return Ok((*result).clone());
    }
    SCOPE.with_borrow_mut(|scope| {
        if let Some(scope) = scope
            && !scope.missing.iter().any(|missing| missing.key == key)
        {
            scope.missing.push(Missing {
                key,
                webhook: Arc::clone(webhook),
                object,
                to: to.to_owned(),
            });
        }
    });
    Err(ApiError::internal("a conversion is not available yet"))
}

fn key(webhook: &Conversion, object: &Value, to: &str) -> Key {
    let mut digest = Sha256::new();
    digest.update(webhook.id.to_le_bytes());
    digest.update(to.as_bytes());
    digest.update([0]);
    digest.update(object.to_string().as_bytes());
    digest.finalize().into()
}

type Key = [u8; 32];

/// Cache of conversions.
#[derive(Debug, Default)]
pub(crate) struct Conversions(Mutex<HashMap<Key, Arc<Value>>>);

/// Conversions by webhook.
#[derive(Clone, Copy)]
pub(crate) struct Converter<'a> {
    pub(crate) conversions: &'a Conversions,
    pub(crate) caller: Caller<'a>,
}

#[derive(Default)]
struct Scope {
    results: HashMap<Key, Arc<Value>>,
    missing: Vec<Missing>,
}

struct Missing {
    key: Key,
    webhook: Arc<Conversion>,
    object: Value,
    to: String,
}

thread_local! {
    static SCOPE: RefCell<Option<Scope>> = const { RefCell::new(None) };
}

/// Runs `work` again until all necessary conversions are cached.
pub(crate) async fn resolve<T>(
    converter: Converter<'_>,
    mut work: impl FnMut() -> Result<T, ApiError>,
) -> Result<T, ApiError> {
    let mut results = HashMap::new();
    loop {
        let (result, scope) = run(results, &mut work);
        if scope.missing.is_empty() {
            return result;
        }
        results = scope.results;
        for (key, converted) in make(converter, scope.missing).await? {
            results.insert(key, converted);
        }
    }
}

fn run<T>(results: HashMap<Key, Arc<Value>>, work: &mut impl FnMut() -> T) -> (T, Scope) {
    let scope = Scope {
        results,
        missing: Vec::new(),
    };
    let outer = SCOPE.replace(Some(scope));
    let result = work();
    let scope = SCOPE.replace(outer).unwrap_or_default();
    (result, scope)
}

/// Calls the webhooks: once for all objects with the same webhook and version.
async fn make(
    converter: Converter<'_>,
    mut missing: Vec<Missing>,
) -> Result<Vec<(Key, Arc<Value>)>, ApiError> {
    let mut all = Vec::new();
    while let Some(first) = missing.first() {
        let (id, to) = (first.webhook.id, first.to.clone());
        let webhook = Arc::clone(&first.webhook);
        let (together, rest): (Vec<Missing>, Vec<Missing>) = missing
            .into_iter()
            .partition(|missing| missing.webhook.id == id && missing.to == to);
        missing = rest;
        let objects: Vec<&Value> = together.iter().map(|missing| &missing.object).collect();
        let converted = ask(converter.caller, &webhook, &objects, &to)
            .await
            .map_err(|message| ApiError::new(500, "", message))?;
        let converted = together
            .iter()
            .zip(converted)
            .map(|(missing, value)| (missing.key, Arc::new(value)));
        all.extend(converted);
    }
    let mut cache = converter.conversions.0.lock();
    if cache.len() + all.len() > CACHED {
        cache.clear();
    }
    if all.len() <= CACHED {
        cache.extend(all.iter().cloned());
    }
    Ok(all)
}

async fn ask(
    caller: Caller<'_>,
    webhook: &Conversion,
    objects: &[&Value],
    to: &str,
) -> Result<Vec<Value>, String> {
    let kind = objects.first().map_or_else(String::new, |object| {
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        format!("{}, Kind={}", text("apiVersion"), text("kind"))
    });
    let mut versions = webhook.review_versions.iter();
    let version = versions
        .find(|version| matches!(version.as_str(), "v1" | "v1beta1"))
        .ok_or("no supported conversion review versions")?;
    let uid = uuid::Uuid::new_v4().to_string();
    let review = json!({
        "kind": "ConversionReview", "apiVersion": format!("apiextensions.k8s.io/{version}"),
        "request": {"uid": uid, "desiredAPIVersion": to, "objects": objects},
    });
    let failed = |why: String| format!("conversion webhook for {kind} failed: {why}");
    let target = Target::read(&webhook.client_config)
        .ok_or_else(|| failed("it has neither a URL nor a Service".to_owned()))?;
    let answer = webhook::post(caller, &target, &review, TIMEOUT)
        .await
        .map_err(|error| failed(error.to_string()))?;
    let converted = unpack(&answer, version, &uid).map_err(failed)?;
    if converted.len() != objects.len() {
        return Err(format!(
            "conversion webhook for {kind} returned {} objects, expected {}",
            converted.len(),
            objects.len()
        ));
    }
    let pairs = objects.iter().zip(converted);
    pairs
        .map(|(object, converted)| {
            checked(object, converted, to)
                .map_err(|why| format!("conversion webhook for {kind} returned invalid {why}"))
        })
        .collect()
}

/// Converted objects of an answer (`getConvertedObjectsFromResponse`).
fn unpack(review: &Value, version: &str, uid: &str) -> Result<Vec<Value>, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let response = &review["response"];
    if version == "v1" {
        let named = (text(&review["apiVersion"]), text(&review["kind"]));
        if named.0 != "apiextensions.k8s.io/v1" || named.1 != "ConversionReview" {
            return Err(format!(
                "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got {}, Kind={}",
                named.0, named.1
            ));
        }
    }
    if !response.is_object() {
        return Err("no response provided".to_owned());
    }
    let given = text(&response["uid"]);
    if version == "v1" && given != uid {
        return Err(format!(
            "expected response.uid={}, got {}",
            go_quote(uid),
            go_quote(&given)
        ));
    }
    let result = &response["result"];
    if result["status"] != "Success" {
        let message = text(&result["message"]);
        return Err(if message.is_empty() {
            format!(
                "response.result.status was '{}', not 'Success'",
                text(&result["status"])
            )
        } else {
            message
        });
    }
    let objects = response["convertedObjects"].as_array();
    Ok(objects.cloned().unwrap_or_default())
}

/// Validates a converted object, and restores the metadata except labels and annotations.
fn checked(object: &Value, mut converted: Value, to: &str) -> Result<Value, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let got = text(&converted["apiVersion"]);
    if got != to {
        return Err(format!(
            "object at index 0: invalid groupVersion (expected {to}, received {got})"
        ));
    }
    if converted["kind"] != object["kind"] {
        return Err(format!(
            "object at index 0: invalid kind (expected {}, received {})",
            text(&object["kind"]),
            text(&converted["kind"])
        ));
    }
    for (field, name) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (was, is) = (&object["metadata"][field], &converted["metadata"][field]);
        if text(was) != text(is) {
            return Err(format!(
                "object: must have the same {name}: {} != {}",
                text(was),
                text(is)
            ));
        }
    }
    let changed = converted["metadata"].take();
    if !changed.is_object() {
        return Err("metadata: missing metadata in converted object".to_owned());
    }
    let mut kept = object["metadata"].clone();
    for field in ["labels", "annotations"] {
        let given = &changed[field];
        if let Some(problem) = violation(field, given, &object["metadata"][field]) {
            return Err(format!("metadata: {problem}"));
        }
        if let Some(kept) = kept.as_object_mut() {
            if given.is_null() {
                kept.remove(field);
            } else {
                kept.insert(field.to_owned(), given.clone());
            }
        }
    }
    converted["metadata"] = kept;
    Ok(converted)
}

/// Violation in the labels or annotations of a converted object.
fn violation(field: &str, given: &Value, before: &Value) -> Option<String> {
    if given.is_null() || given == before {
        return None;
    }
    let Some(entries) = given.as_object() else {
        return Some(format!("invalid metadata.{field} in converted object"));
    };
    entries.iter().find_map(|(key, value)| {
        let Some(text) = value.as_str() else {
            return Some(format!(
                "metadata.{field}[{key}] must be a string in converted object"
            ));
        };
        let mut problems = label_key_problems(key);
        let mut value = Value::from(key.as_str());
        if problems.is_empty() && field == "labels" {
            problems = label_value_problems(text);
            value = Value::from(text);
        }
        let problem = problems.into_iter().next()?;
        let path = format!("metadata.{}", field.trim_end_matches('s'));
        let path = if field == "labels" {
            "metadata.labels"
        } else {
            path.as_str()
        };
        Some(FieldError::invalid(path, &value, problem).to_string())
    })
}

/// Validates the conversion of a definition. `hooked`: true if the hooks of the process may convert instead of a
/// webhook.
pub(crate) fn check(crd: &Value, hooked: bool) -> Vec<FieldError> {
    let conversion = &crd["spec"]["conversion"];
    let mut errors = Vec::new();
    let strategy = conversion["strategy"].as_str().unwrap_or_default();
    if !matches!(strategy, "" | "None" | "Webhook") {
        let known = ["None", "Webhook"].map(str::to_owned);
        let value = &conversion["strategy"];
        errors.push(FieldError::not_supported(
            "spec.conversion.strategy",
            value,
            &known,
        ));
    }
    let webhook = &conversion["webhook"];
    // kube-apiserver's errors have the paths of its internal version.
    let client = "spec.conversion.webhookClientConfig";
    let reviews = "spec.conversion.conversionReviewVersions";
    if strategy != "Webhook" {
        let detail = "should not be set when strategy is not set to Webhook";
        if !webhook["clientConfig"].is_null() {
            errors.push(FieldError::forbidden(client, detail));
        }
        if webhook["conversionReviewVersions"]
            .as_array()
            .is_some_and(|list| !list.is_empty())
        {
            errors.push(FieldError::forbidden(reviews, detail));
        }
        return errors;
    }
    if webhook.is_null() && hooked {
        return errors;
    }
    if webhook["clientConfig"].is_null() {
        let detail = "required when strategy is set to Webhook";
        errors.push(FieldError::required(client, detail));
    } else {
        webhook::check_client_config(&webhook["clientConfig"], client, &mut errors);
    }
    let versions = webhook["conversionReviewVersions"].as_array();
    let versions = versions.map_or(&[][..], Vec::as_slice);
    if versions.is_empty() {
        errors.push(FieldError::required(reviews, ""));
    } else if !versions.iter().any(|one| one == "v1" || one == "v1beta1") {
        let detail = "must include at least one of v1, v1beta1";
        let value = &webhook["conversionReviewVersions"];
        errors.push(FieldError::invalid(reviews, value, detail));
    }
    errors
}

#[cfg(test)]
mod tests;
