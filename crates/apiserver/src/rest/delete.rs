//! delete and deletecollection.

use std::sync::Arc;

use apimachinery::crd;
use apimachinery::kinds::Resource;
use apimachinery::schema::FieldError;
use apimachinery::time::seconds;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::read::{Selection, object_answer};
use super::write::{commit, failed_write, is_finished};
use super::{kept, meta};
use crate::admission::{self, Operation};
use crate::auth::restriction;
use crate::call::{Answer, Call, Warnings};
use crate::conversion;
use crate::core::Core;
use crate::error::ApiError;
use crate::request::query::Query;
use crate::store::{Object, WriteError};
use crate::view::Kind;

/// Finalizer of foreground deletion: dependents are deleted first.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer of a deletion that first removes the object from the owner references of dependents.
pub(crate) const ORPHAN: &str = "orphan";

/// The propagation policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// Options of a deletion.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) grace: Option<i64>,
    pub(crate) propagation: Option<Propagation>,
    pub(crate) uid: Option<String>,
    pub(crate) revision: Option<String>,
    pub(crate) dry_run: bool,
    /// `DeleteOptions` for admission hooks.
    pub(crate) given: Value,
}

/// Outcome of a deletion.
pub(crate) enum Deleted {
    /// The object is removed from the store.
    Gone(Value),
    /// The [`Object`] has a deletion timestamp and waits for finalizers or the end of a grace period.
    Waiting(Arc<Object>),
}

pub(crate) async fn delete(call: &Call, warnings: &mut Warnings) -> Result<Answer, ApiError> {
    let mut options = options(call)?;
    if options.propagation.is_none() && preserves_dependents(&call.resource) {
        options.propagation = Some(Propagation::Orphan);
        if call.resource.kind == "Job" {
            warnings.0.push("child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning".to_owned());
        }
    }
    let key = call.resource.key(&call.namespace, call.name());
    let asked = Some(Asked { call, warnings });
    match delete_asked(&call.core, &call.resource, &key, &options, asked).await? {
        Deleted::Gone(object) if returns_object(call) => {
            super::read::value_answer(call, 200, object)
        }
        Deleted::Gone(object) => Ok(Answer::Value(200, success(call, &object))),
        Deleted::Waiting(object) => {
            conversion::resolve(call.core.converter(), || object_answer(call, 200, &object)).await
        }
    }
}

/// True for kinds with the object as answer to a deletion (`ReturnDeletedObject`).
fn returns_object(call: &Call) -> bool {
    let plural = call.resource.plural.as_str();
    match call.group() {
        "" => matches!(
            plural,
            "pods"
                | "serviceaccounts"
                | "services"
                | "resourcequotas"
                | "persistentvolumes"
                | "persistentvolumeclaims"
                | "podtemplates"
        ),
        "apiextensions.k8s.io" => true,
        "storage.k8s.io" => matches!(
            plural,
            "csidrivers" | "csinodes" | "storageclasses" | "volumeattachments"
        ),
        _ => false,
    }
}

/// True for kinds with orphaned dependents by default, for compatibility with old clients.
fn preserves_dependents(resource: &Resource) -> bool {
    matches!(resource.kind.as_str(), "Job" | "ReplicationController") && !resource.is_custom()
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

/// Answers a deletecollection with the selected objects.
pub(crate) async fn delete_collection(
    call: &Call,
    warnings: &mut Warnings,
) -> Result<Answer, ApiError> {
    if call.resource.namespaced && call.namespace.is_empty()
        || &*call.resource.collection == "/namespaces"
    {
        return Err(ApiError::method_not_allowed());
    }
    let options = options(call)?;
    let selection = Selection::from_call(call)?;
    let objects: Vec<Arc<Object>> = {
        let state = call.core.store.read();
        let all = state.range(&call.resource.collection, &selection.prefix, None);
        all.filter(|object| selection.matches(object))
            .cloned()
            .collect()
    };
    let answer = super::read::list(call).await?;
    for object in objects {
        let asked = Some(Asked { call, warnings });
        match delete_asked(&call.core, &call.resource, &object.key, &options, asked).await {
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
    let propagation = match text("propagationPolicy").as_deref() {
        None => orphan_dependents(&body, query),
        Some("Background") => Some(Propagation::Background),
        Some("Foreground") => Some(Propagation::Foreground),
        Some("Orphan") => Some(Propagation::Orphan),
        Some(other) => {
            let known = ["Foreground", "Background", "Orphan", "nil"].map(str::to_owned);
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
    let given = given(&body, query);
    let precondition = |name: &str| body["preconditions"][name].as_str().map(str::to_owned);
    Ok(DeleteOptions {
        grace,
        propagation,
        uid: precondition("uid"),
        revision: precondition("resourceVersion"),
        dry_run: in_body || query.dry_run("DeleteOptions")?,
        given,
    })
}

/// `DeleteOptions` of the body, or of the [`Query`] when the body is empty.
fn given(body: &Value, query: &Query) -> Value {
    let mut given = if body.is_object() {
        body.clone()
    } else {
        json!({})
    };
    given["kind"] = Value::from("DeleteOptions");
    given["apiVersion"] = Value::from("meta.k8s.io/v1");
    if !body.is_null() {
        return given;
    }
    if let Ok(Some(grace)) = query.number("gracePeriodSeconds") {
        given["gracePeriodSeconds"] = Value::from(grace);
    }
    if let Some(policy) = query.get("propagationPolicy") {
        given["propagationPolicy"] = Value::from(policy);
    }
    let dry: Vec<&str> = query.all("dryRun").collect();
    if !dry.is_empty() {
        given["dryRun"] = json!(dry);
    }
    given
}

/// `orphanDependents`, the predecessor of `propagationPolicy`.
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

/// Deletes an object, or sets the deletion timestamp if finalizers or a grace period come first.
pub(crate) async fn delete_object(
    core: &Core,
    resource: &Resource,
    key: &Arc<str>,
    options: &DeleteOptions,
) -> Result<Deleted, ApiError> {
    delete_asked(core, resource, key, options, None).await
}

/// Deletion requested by a client; admission hooks may deny the request.
struct Asked<'a> {
    call: &'a Call,
    warnings: &'a mut Warnings,
}

async fn delete_asked(
    core: &Core,
    resource: &Resource,
    key: &Arc<str>,
    options: &DeleteOptions,
    mut asked: Option<Asked<'_>>,
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
        if let Some(Asked { call, warnings }) = &mut asked {
            let kind = Kind { core, resource };
            let api_version = &call.version().api_version;
            let requested = kind.converted(current.value(), api_version).await?;
            restriction::admit(call, Operation::Delete, None, Some(&requested))?;
            kept::admit(call, None, Some(&requested))?;
            let (given, dry_run) = (&options.given, options.dry_run);
            admission::of_deletion(call, given, dry_run, &requested, warnings).await?;
            hooked(core, resource, name, &current)?;
        }
        let old = current.value();
        let new = marked(resource, &old, options, Timestamp::now());
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
        // Watchers receive the object as it was before the deletion, unless a MODIFIED event with the deletion
        // timestamp came first.
        let announced = current.facts.deleting || &*resource.collection == "/pods";
        let last = if gone && !announced { &old } else { &new };
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
            Err(error) => return Err(failed_write(error)),
        }
    }
}

/// Asks the hooks of the process whether an [`Object`] of a custom kind can be deleted.
fn hooked(core: &Core, resource: &Resource, name: &str, current: &Object) -> Result<(), ApiError> {
    if !resource.is_custom() {
        return Ok(());
    }
    let (hooks, object) = (&core.options.hooks, current.value());
    let Some(kind) = hooks.referrers(&object) else {
        return Ok(());
    };
    let referrers: Vec<Value> = {
        let collection = format!("{}/{}", kind.group, kind.plural);
        let state = core.store.read();
        let all = state.range(&collection, "", None);
        all.map(|object| object.value()).collect()
    };
    let verdict = hooks.delete(&object, &referrers);
    verdict.map_err(|why| ApiError::forbidden(&resource.group, &resource.plural, name, &why))
}

fn check_preconditions(
    resource: &Resource,
    name: &str,
    current: &Object,
    options: &DeleteOptions,
) -> Result<(), ApiError> {
    let conflict = |field: &str, wanted: &str, has: &str, then: &str| {
        let why = format!(
            "the {field} in the precondition ({wanted}) does not match the {field} in record ({has}). The object might have been {then}"
        );
        Err(ApiError::conflict(
            &resource.group,
            &resource.kind,
            name,
            &why,
        ))
    };
    if let Some(uid) = options.uid.as_deref()
        && *uid != *current.facts.uid
    {
        let then = "deleted and then recreated";
        return conflict("UID", uid, &current.facts.uid, then);
    }
    if let Some(revision) = options.revision.as_deref()
        && *revision != current.revision.to_string()
    {
        let has = current.revision.to_string();
        return conflict("ResourceVersion", revision, &has, "modified");
    }
    Ok(())
}

/// Object with deletion timestamp, grace period, and the finalizers of the [`Propagation`] policy.
fn marked(resource: &Resource, old: &Value, options: &DeleteOptions, now: Timestamp) -> Value {
    let mut new = old.clone();
    let mut finalizers: Vec<String> = old["metadata"]["finalizers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect();
    if let Some(propagation) = options.propagation {
        finalizers.retain(|name| name != FOREGROUND && name != ORPHAN);
        match propagation {
            Propagation::Foreground => finalizers.push(FOREGROUND.to_owned()),
            Propagation::Orphan => finalizers.push(ORPHAN.to_owned()),
            Propagation::Background => {}
        }
    }
    let deleting = !old["metadata"]["deletionTimestamp"].is_null();
    if resource.is_crd() && !deleting && !finalizers.iter().any(|name| name == crd::FINALIZER) {
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
        // Namespaces have no graceful deletion.
        if &*resource.collection != "/namespaces" {
            metadata.insert("deletionGracePeriodSeconds".to_owned(), Value::from(grace));
        }
        if let Some(generation) = metadata.get("generation").and_then(Value::as_i64) {
            metadata.insert("generation".to_owned(), Value::from(generation + 1));
        }
    } else if before.is_some_and(|before| grace < before) {
        metadata.insert("deletionGracePeriodSeconds".to_owned(), Value::from(grace));
    }
    if resource.is_crd() && !deleting {
        crd::terminate(&mut new, now);
    }
    new
}

/// Grace period in seconds. Only running pods bound to a node have one.
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
