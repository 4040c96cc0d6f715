//! delete and deletecollection.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::read::{Selection, shown};
use super::write::{commit, is_finished, unstored};
use super::{Answer, Call, meta};
use crate::crd::{self, seconds};
use crate::error::ApiError;
use crate::http::query::Query;
use crate::kinds::Resource;
use crate::schema::FieldError;
use crate::server::Core;
use crate::store::{Object, WriteError};

/// The finalizer of a deletion that waits for dependents.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of a deletion that lets dependents go first.
pub(crate) const ORPHAN: &str = "orphan";

/// What becomes of dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// How to delete.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) grace: Option<i64>,
    pub(crate) propagation: Option<Propagation>,
    pub(crate) uid: Option<String>,
    pub(crate) revision: Option<String>,
    pub(crate) dry_run: bool,
}

/// What a deletion did.
pub(crate) enum Deleted {
    /// The object is gone.
    Gone(Value),
    /// The object waits for finalizers or for its time to end.
    Waiting(Arc<Object>),
}

/// Answers a delete.
pub(crate) async fn delete(call: &Call) -> Result<Answer, ApiError> {
    let options = options(call)?;
    let key = call.resource.key(&call.namespace, call.name());
    match delete_object(&call.core, &call.resource, &key, &options).await? {
        Deleted::Gone(object) => Ok(Answer::Value(200, success(call, &object))),
        Deleted::Waiting(object) => shown(call, 200, &object),
    }
}

fn success(call: &Call, object: &Value) -> Value {
    let mut details = json!({
        "name": call.name(), "kind": call.resource.plural, "uid": object["metadata"]["uid"],
    });
    if !call.group().is_empty() {
        details["group"] = Value::from(call.group());
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

/// Answers a deletecollection with what was there.
pub(crate) async fn delete_collection(call: &Call) -> Result<Answer, ApiError> {
    if call.resource.namespaced && call.namespace.is_empty()
        || &*call.resource.collection == "/namespaces"
    {
        return Err(ApiError::method_not_allowed());
    }
    let options = options(call)?;
    let selection = Selection::of(call)?;
    let objects: Vec<Arc<Object>> = {
        let state = call.core.store.read();
        let all = state.range(&call.resource.collection, &selection.prefix, None);
        all.filter(|object| selection.matches(object))
            .cloned()
            .collect()
    };
    let answer = super::read::list(call)?;
    for object in objects {
        match delete_object(&call.core, &call.resource, &object.key, &options).await {
            Err(error) if error.code != 404 => return Err(error),
            _ => {}
        }
    }
    Ok(answer)
}

fn options(call: &Call) -> Result<DeleteOptions, ApiError> {
    let body = if call.body.is_empty() {
        Value::Null
    } else {
        call.decode()?.value
    };
    let query = &call.query;
    let text = |name: &str| {
        body[name]
            .as_str()
            .map(str::to_owned)
            .or_else(|| query.get(name).map(str::to_owned))
    };
    let known = ["Background", "Foreground", "Orphan"];
    let propagation = match text("propagationPolicy").as_deref() {
        None => orphan_dependents(&body, query),
        Some("Background") => Some(Propagation::Background),
        Some("Foreground") => Some(Propagation::Foreground),
        Some("Orphan") => Some(Propagation::Orphan),
        Some(other) => {
            let known = known.map(str::to_owned);
            let error = FieldError::not_supported("propagationPolicy", &Value::from(other), &known);
            return Err(ApiError::invalid(
                "meta.k8s.io",
                "DeleteOptions",
                "",
                &[error],
            ));
        }
    };
    let grace = match body["gracePeriodSeconds"].as_i64() {
        Some(grace) => Some(grace),
        None => query
            .number("gracePeriodSeconds")?
            .and_then(|grace| i64::try_from(grace).ok()),
    };
    let in_body = body["dryRun"]
        .as_array()
        .is_some_and(|list| list.iter().any(|item| item == "All"));
    let precondition = |name: &str| body["preconditions"][name].as_str().map(str::to_owned);
    Ok(DeleteOptions {
        grace,
        propagation,
        uid: precondition("uid"),
        revision: precondition("resourceVersion"),
        dry_run: in_body || query.dry_run("DeleteOptions")?,
    })
}

/// `orphanDependents`, which `propagationPolicy` replaced.
fn orphan_dependents(body: &Value, query: &Query) -> Option<Propagation> {
    let given = body["orphanDependents"].as_bool().or_else(|| {
        query
            .get("orphanDependents")
            .map(|_| query.flag("orphanDependents"))
    })?;
    Some(if given {
        Propagation::Orphan
    } else {
        Propagation::Background
    })
}

/// Deletes an object, or marks it as deleted when something has to happen first.
pub(crate) async fn delete_object(
    core: &Core,
    resource: &Resource,
    key: &Arc<str>,
    options: &DeleteOptions,
) -> Result<Deleted, ApiError> {
    loop {
        let name = key.rsplit('/').next().unwrap_or_default();
        let current = core
            .store
            .get(&resource.collection, key)
            .ok_or_else(|| ApiError::not_found(&resource.group, &resource.plural, name))?;
        check_preconditions(resource, name, &current, options)?;
        if &*resource.collection == "/namespaces"
            && matches!(name, "default" | "kube-system" | "kube-public")
        {
            let why = "this namespace may not be deleted";
            return Err(ApiError::forbidden(
                &resource.group,
                &resource.plural,
                name,
                why,
            ));
        }
        let old = current.value();
        let new = marked(core, resource, &old, options, Timestamp::now());
        let gone = is_finished(resource, &new);
        if options.dry_run {
            return Ok(if gone {
                Deleted::Gone(old)
            } else {
                Deleted::Waiting(current)
            });
        }
        if !gone && new == old {
            return Ok(Deleted::Waiting(current));
        }
        // What watchers of the deletion see is the object as it was, unless the deletion was announced before.
        let last = if gone && !current.facts.deleting {
            &old
        } else {
            &new
        };
        match commit(
            core,
            resource,
            Arc::clone(key),
            current.revision,
            last,
            gone,
        )
        .await
        {
            Ok(object) if gone => return Ok(Deleted::Gone(object.value())),
            Ok(object) => return Ok(Deleted::Waiting(object)),
            Err(WriteError::Conflict) => {}
            Err(WriteError::Failed(problem)) => return Err(unstored(&problem)),
        }
    }
}

fn check_preconditions(
    resource: &Resource,
    name: &str,
    current: &Object,
    options: &DeleteOptions,
) -> Result<(), ApiError> {
    let conflict = |field: &str, wanted: &str, has: &str| {
        let why = format!(
            "Precondition failed: {field} in precondition: {wanted}, {field} in object meta: {has}"
        );
        Err(ApiError::conflict(
            &resource.group,
            &resource.plural,
            name,
            &why,
        ))
    };
    if let Some(uid) = options.uid.as_deref()
        && *uid != *current.facts.uid
    {
        return conflict("UID", uid, &current.facts.uid);
    }
    if let Some(revision) = options.revision.as_deref()
        && *revision != current.revision.to_string()
    {
        return conflict("ResourceVersion", revision, &current.revision.to_string());
    }
    Ok(())
}

/// The object with its deletion marked: time, grace, and the finalizers of the propagation policy.
fn marked(
    core: &Core,
    resource: &Resource,
    old: &Value,
    options: &DeleteOptions,
    now: Timestamp,
) -> Value {
    let mut new = old.clone();
    let uid = old["metadata"]["uid"].as_str().unwrap_or_default();
    let mut finalizers: Vec<String> = old["metadata"]["finalizers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect();
    if let Some(propagation) = options.propagation {
        finalizers.retain(|name| name != FOREGROUND && name != ORPHAN);
        let has_dependents = core.store.read().dependents(uid).next().is_some();
        match propagation {
            Propagation::Foreground if has_dependents => finalizers.push(FOREGROUND.to_owned()),
            Propagation::Orphan if has_dependents => finalizers.push(ORPHAN.to_owned()),
            _ => {}
        }
    }
    let deleting = !old["metadata"]["deletionTimestamp"].is_null();
    if resource.is_crd() && !deleting && has_objects(core, old) {
        finalizers.push(crd::FINALIZER.to_owned());
    }
    let grace = grace(resource, old, options);
    if &*resource.collection == "/namespaces" && new["spec"]["finalizers"].is_array() {
        new["status"]["phase"] = Value::from("Terminating");
    }
    let metadata = meta::of(&mut new);
    if finalizers.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".to_owned(), Value::from(finalizers));
    }
    let before = metadata
        .get("deletionGracePeriodSeconds")
        .and_then(Value::as_i64);
    if !deleting {
        let at = now
            .checked_add(SignedDuration::from_secs(grace))
            .unwrap_or(now);
        metadata.insert("deletionTimestamp".to_owned(), Value::from(seconds(at)));
        metadata.insert("deletionGracePeriodSeconds".to_owned(), Value::from(grace));
        if let Some(generation) = metadata.get("generation").and_then(Value::as_i64) {
            metadata.insert("generation".to_owned(), Value::from(generation + 1));
        }
    } else if before.is_some_and(|before| grace < before) {
        metadata.insert("deletionGracePeriodSeconds".to_owned(), Value::from(grace));
    }
    if resource.is_crd() && !is_finished(resource, &new) {
        let old = new.clone();
        crd::prepare(&mut new, Some(&old), now);
    }
    new
}

fn has_objects(core: &Core, crd: &Value) -> bool {
    let group = crd["spec"]["group"].as_str().unwrap_or_default();
    let plural = crd["spec"]["names"]["plural"].as_str().unwrap_or_default();
    core.store
        .read()
        .range(&format!("{group}/{plural}"), "", None)
        .next()
        .is_some()
}

/// How long an object is given to end. Only pods on a node are.
fn grace(resource: &Resource, object: &Value, options: &DeleteOptions) -> i64 {
    let on_node = object["spec"]["nodeName"]
        .as_str()
        .is_some_and(|node| !node.is_empty());
    let ended = matches!(
        object["status"]["phase"].as_str(),
        Some("Succeeded" | "Failed")
    );
    if &*resource.collection != "/pods" || !on_node || ended {
        return 0;
    }
    let default = object["spec"]["terminationGracePeriodSeconds"]
        .as_i64()
        .unwrap_or(30);
    options.grace.unwrap_or(default).max(0)
}
