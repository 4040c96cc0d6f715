//! `pods/NAME/eviction`: deletes a pod unless the deletion violates the PodDisruptionBudget.
//!
//! Source of the rules and messages: `pkg/registry/core/pod/storage/eviction.go` of kube-apiserver.

use std::sync::Arc;

use apimachinery::kinds::Resource;
use apimachinery::schema::FieldError;
use apimachinery::selector::LabelSelector;
use apimachinery::time::seconds;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{DeleteOptions, Propagation, delete_object, edit, failed_write};
use crate::call::{Answer, Call};
use crate::error::ApiError;
use crate::store::{Object, WriteError};

/// Maximum number of evictions not yet observed by the budget's controller; more are rejected.
const MOST_DISRUPTED: usize = 2000;
/// Maximum number of attempts after changes of the pod or the budget in the meantime.
const TRIES: usize = 20;

/// Answers the create of an Eviction.
pub(crate) async fn evict(call: &Call, body: &Value) -> Result<Answer, ApiError> {
    let asked = Asked::for_body(call, body)?;
    let key = call.resource.key(&call.namespace, call.name());
    let mut conflict = None;
    for _ in 0..TRIES {
        let pod = call
            .core
            .store
            .get(&call.resource.collection, &key)
            .ok_or_else(|| call.not_found())?;
        let value = pod.value();
        let phase = value["status"]["phase"].as_str().unwrap_or_default();
        let ended = matches!(phase, "Succeeded" | "Failed") || pod.facts.deleting;
        if !ended && phase != "Pending" {
            return evict_counted(call, &key, &pod, &value, &asked).await;
        }
        // A pending pod must not have started meanwhile: a running pod counts for its budget.
        let pinned = (!ended).then_some(pod.revision);
        match remove(call, &key, pinned, &asked).await {
            Ok(()) => return Ok(super::special::success()),
            Err(error) if error.code == 409 && asked.revision.is_none() => conflict = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(conflict.unwrap_or_else(|| ApiError::modified("", "pods", call.name())))
}

/// Evicts a running pod, which counts for its budget.
async fn evict_counted(
    call: &Call,
    key: &Arc<str>,
    pod: &Object,
    value: &Value,
    asked: &Asked,
) -> Result<Answer, ApiError> {
    let budget = budget_of(call, pod)?;
    let mut pinned = None;
    if let Some(budget) = &budget {
        if !is_ready(value) && spares_unready(&budget.object.value()) {
            pinned = Some(pod.revision);
        } else {
            spend(call, budget, asked.dry_run).await?;
        }
    }
    let removed = remove(call, key, pinned, asked).await;
    match (removed, budget) {
        (Ok(()), _) => Ok(super::special::success()),
        // The pod may have become ready.
        (Err(error), Some(budget))
            if error.code == 409 && pinned.is_some() && asked.revision.is_none() =>
        {
            Err(not_now(budget.object.name()))
        }
        (Err(error), _) => Err(error),
    }
}

/// Options of an Eviction.
struct Asked {
    grace: Option<i64>,
    propagation: Option<Propagation>,
    uid: Option<String>,
    revision: Option<String>,
    dry_run: bool,
    /// Value of `dryRun` other than `All`, rejected by the deletion.
    unknown: Option<Value>,
}

impl Asked {
    fn for_body(call: &Call, body: &Value) -> Result<Self, ApiError> {
        let options = &body["deleteOptions"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        if body["metadata"]["name"].as_str().unwrap_or_default() != call.name() {
            let why = "name in URL does not match name in Eviction object";
            return Err(ApiError::bad_request(why));
        }
        let potential = "ignoreStoreReadErrorWithClusterBreakingPotential";
        if options[potential] == true {
            let detail = "can not be set for pod eviction, try after removing the option";
            let path = format!("deleteOptions.{potential}");
            let error = FieldError::invalid(path, &Value::Bool(true), detail);
            return Err(ApiError::invalid(
                "policy",
                "Eviction",
                call.name(),
                &[error],
            ));
        }
        let in_query = call.dry_run("CreateOptions")?;
        let in_body = options["dryRun"]
            .as_array()
            .is_some_and(|list| !list.is_empty());
        if in_body && in_query && options["dryRun"] != json!(["All"]) {
            let list = options["dryRun"].as_array().into_iter().flatten();
            let list: Vec<&str> = list.filter_map(Value::as_str).collect();
            let why = format!(
                "Non-matching dry-run options in request and content: [All] and [{}]",
                list.join(" ")
            );
            return Err(ApiError::new(500, "", why));
        }
        let preconditions = &options["preconditions"];
        Ok(Self {
            grace: options["gracePeriodSeconds"].as_i64(),
            propagation: match options["propagationPolicy"].as_str() {
                Some("Foreground") => Some(Propagation::Foreground),
                Some("Orphan") => Some(Propagation::Orphan),
                Some("Background") => Some(Propagation::Background),
                _ => None,
            },
            uid: text(&preconditions["uid"]),
            revision: text(&preconditions["resourceVersion"]),
            dry_run: in_query || in_body,
            unknown: Some(options["dryRun"].clone())
                .filter(|list| in_body && *list != json!(["All"])),
        })
    }
}

/// True if the eviction of an unready pod spends no disruption, since enough other pods are healthy.
fn spares_unready(budget: &Value) -> bool {
    let number = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    let (healthy, desired) = (number("currentHealthy"), number("desiredHealthy"));
    let always = budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow";
    always || healthy >= desired && desired > 0
}

fn is_ready(pod: &Value) -> bool {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// A PodDisruptionBudget.
struct Budget {
    resource: Arc<Resource>,
    object: Arc<Object>,
}

/// Only [`Budget`] with a selector that matches a pod.
fn budget_of(call: &Call, pod: &Object) -> Result<Option<Budget>, ApiError> {
    let registry = call.core.store.registry();
    let Some(resource) = registry.find("policy", "poddisruptionbudgets") else {
        return Ok(None);
    };
    let labels = &pod.facts.labels;
    let mut found: Vec<Arc<Object>> = {
        let state = call.core.store.read();
        let prefix = format!("{}/", call.namespace);
        let all = state.range(&resource.collection, &prefix, None);
        let fits = |budget: &&Arc<Object>| {
            let selector = LabelSelector::from_object(&budget.value()["spec"]["selector"]);
            selector.is_ok_and(|selector| selector.matches(labels))
        };
        all.filter(fits).cloned().collect()
    };
    if found.len() > 1 {
        let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        return Err(ApiError::new(500, "", why));
    }
    Ok(found.pop().map(|object| Budget { resource, object }))
}

/// Spends one disruption of a [`Budget`], and records the pod in `disruptedPods` until the budget's controller
/// observes the deletion.
async fn spend(call: &Call, budget: &Budget, dry_run: bool) -> Result<(), ApiError> {
    let Budget { resource, object } = budget;
    check(&object.value())?;
    if dry_run {
        return Ok(());
    }
    let now = seconds(Timestamp::now());
    let refused = parking_lot::Mutex::new(None);
    let spent = edit(&call.core, resource, &object.key, |budget| {
        if let Err(error) = check(budget) {
            *refused.lock() = Some(error);
            return false;
        }
        let status = &mut budget["status"];
        let left = status["disruptionsAllowed"].as_i64().unwrap_or(0) - 1;
        status["disruptionsAllowed"] = Value::from(left);
        if left == 0 {
            exhausted(status, &now);
        }
        if !status["disruptedPods"].is_object() {
            status["disruptedPods"] = json!({});
        }
        status["disruptedPods"][call.name()] = Value::from(now.as_str());
        true
    });
    let spent = spent.await;
    if let Some(error) = refused.into_inner() {
        return Err(error);
    }
    match spent {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err(ApiError::not_found(
            "policy",
            "poddisruptionbudgets",
            object.name(),
        )),
        Err(WriteError::Conflict) => Err(not_now(object.name())),
        Err(error) => Err(failed_write(error)),
    }
}

/// Checks that a budget allows a disruption.
fn check(budget: &Value) -> Result<(), ApiError> {
    let (metadata, status) = (&budget["metadata"], &budget["status"]);
    let name = metadata["name"].as_str().unwrap_or_default();
    let number = |value: &Value| value.as_i64().unwrap_or(0);
    let forbidden = |why: &str| {
        Err(ApiError::forbidden(
            "policy",
            "poddisruptionbudget",
            name,
            why,
        ))
    };
    if number(&status["observedGeneration"]) < number(&metadata["generation"]) {
        return Err(not_now(name));
    }
    let allowed = number(&status["disruptionsAllowed"]);
    if allowed < 0 {
        return forbidden("pdb disruptions allowed is negative");
    }
    let disrupted = status["disruptedPods"]
        .as_object()
        .map_or(0, |pods| pods.len());
    if disrupted > MOST_DISRUPTED {
        return forbidden(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        );
    }
    if allowed == 0 {
        let why = format!(
            "The disruption budget {name} needs {} healthy pods and has {} currently",
            number(&status["desiredHealthy"]),
            number(&status["currentHealthy"])
        );
        return Err(rejected(why));
    }
    Ok(())
}

/// Sets the condition of a budget without further disruptions.
fn exhausted(status: &mut Value, now: &str) {
    let observed = status["observedGeneration"].clone();
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(conditions) = status["conditions"].as_array_mut() else {
        return;
    };
    let kind = "DisruptionAllowed";
    let found = conditions
        .iter()
        .position(|condition| condition["type"] == kind);
    let mut condition = json!({
        "type": kind, "status": "False", "reason": "InsufficientPods", "message": "",
        "lastTransitionTime": now,
    });
    if !observed.is_null() {
        condition["observedGeneration"] = observed;
    }
    match found.and_then(|at| conditions.get_mut(at)) {
        Some(old) => {
            if old["status"] == "False" {
                condition["lastTransitionTime"] = old["lastTransitionTime"].clone();
            }
            *old = condition;
        }
        None => conditions.push(condition),
    }
}

/// Deletes the pod after setting the condition `DisruptionTarget`. `pinned`: required revision of the pod.
async fn remove(
    call: &Call,
    key: &Arc<str>,
    pinned: Option<u64>,
    asked: &Asked,
) -> Result<(), ApiError> {
    if let Some(unknown) = &asked.unknown {
        let known = ["All".to_owned()];
        let error = FieldError::not_supported("dryRun", unknown, &known);
        let kind = "DeleteOptions";
        return Err(ApiError::invalid("meta.k8s.io", kind, "", &[error]));
    }
    let pinned = pinned.map(|revision| revision.to_string());
    let mut options = DeleteOptions {
        grace: asked.grace,
        propagation: asked.propagation,
        uid: asked.uid.clone(),
        revision: asked.revision.clone().or(pinned),
        dry_run: asked.dry_run,
        ..DeleteOptions::default()
    };
    if !asked.dry_run {
        let marked = mark(call, key, &options).await?;
        options.revision = options.revision.map(|_| marked.revision.to_string());
    }
    let deleted = delete_object(&call.core, &call.resource, key, &options).await;
    deleted.map(|_| ())
}

/// Sets the condition of the pod unless uid or revision differ from the request.
async fn mark(
    call: &Call,
    key: &Arc<str>,
    options: &DeleteOptions,
) -> Result<Arc<Object>, ApiError> {
    let now = seconds(Timestamp::now());
    let refused = parking_lot::Mutex::new(None);
    let marked = edit(&call.core, &call.resource, key, |pod| {
        *refused.lock() = preconditions(call, &pod["metadata"], options).err();
        refused.lock().is_none() && disrupted(pod, &now)
    });
    let marked = marked.await;
    if let Some(error) = refused.into_inner() {
        return Err(error);
    }
    match marked {
        Ok(Some(pod)) => Ok(pod),
        Ok(None) => Err(call.not_found()),
        Err(WriteError::Conflict) => Err(ApiError::modified("", "pods", call.name())),
        Err(error) => Err(failed_write(error)),
    }
}

fn preconditions(call: &Call, metadata: &Value, options: &DeleteOptions) -> Result<(), ApiError> {
    let check = |field: &str, wanted: &Option<String>, has: &Value, then: &str| {
        let has = has.as_str().unwrap_or_default();
        match wanted.as_deref() {
            Some(wanted) if !wanted.is_empty() && wanted != has => {
                let why = format!(
                    "the {field} in the precondition ({wanted}) does not match the {field} in record ({has}). The object might have been {then}"
                );
                Err(ApiError::conflict("", "Pod", call.name(), &why))
            }
            _ => Ok(()),
        }
    };
    let recreated = "deleted and then recreated";
    check("UID", &options.uid, &metadata["uid"], recreated)?;
    let revision = &metadata["resourceVersion"];
    check("ResourceVersion", &options.revision, revision, "modified")
}

/// Sets the condition `DisruptionTarget`. Returns false if the condition is set already.
fn disrupted(pod: &mut Value, now: &str) -> bool {
    if !pod["status"].is_object() {
        pod["status"] = json!({});
    }
    if !pod["status"]["conditions"].is_array() {
        pod["status"]["conditions"] = json!([]);
    }
    let Some(conditions) = pod["status"]["conditions"].as_array_mut() else {
        return false;
    };
    let kind = "DisruptionTarget";
    let condition = json!({
        "type": kind, "status": "True", "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": now,
    });
    let found = conditions
        .iter_mut()
        .find(|condition| condition["type"] == kind);
    match found {
        Some(old) if old["status"] == "True" && old["reason"] == "EvictionByEvictionAPI" => false,
        Some(old) => {
            *old = condition;
            true
        }
        None => {
            conditions.push(condition);
            true
        }
    }
}

/// 429: the budget allows no disruption. Without `Retry-After`, since the time of the next disruption is unknown.
fn rejected(why: String) -> ApiError {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    let cause = json!({"reason": "DisruptionBudget", "message": why});
    ApiError::too_many_requests(message, cause)
}

/// 429 with `Retry-After` of ten seconds.
fn not_now(budget: &str) -> ApiError {
    let mut error = rejected(format!(
        "The disruption budget {budget} is still being processed by the server."
    ));
    if let Some(details) = &mut error.details {
        details["retryAfterSeconds"] = Value::from(10);
    }
    error
}
