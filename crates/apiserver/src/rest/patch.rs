//! patch, in its four types.

use apimachinery::patch::{self, Applier};
use apimachinery::time::seconds;
use serde_json::{Value, json};

use super::admit::FieldValidation;
use super::meta;
use super::write::{Change, change_object, check_type, create_object};
use crate::call::{Answer, Call, Warnings};
use crate::conversion;
use crate::error::ApiError;
use crate::request::decode;
use crate::view::Kind;

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// Answers a patch of an object, or of its status.
pub(crate) async fn patch(call: &Call, warnings: &mut Warnings) -> Result<Answer, ApiError> {
    let dry_run = call.dry_run("PatchOptions")?;
    FieldValidation::from_call(call)?;
    let media = call.content_type().unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim();
    if media == APPLY {
        return apply(call, dry_run, warnings).await;
    }
    let accepted = match media {
        JSON | MERGE => true,
        STRATEGIC => !call.resource.is_custom(),
        _ => false,
    };
    if !accepted {
        let custom = call.resource.is_custom() && media == STRATEGIC;
        return Err(unsupported(custom));
    }
    if call.query.get("force").is_some() {
        let detail = "may not be specified for non-apply patch";
        let error = apimachinery::schema::FieldError::forbidden("force", detail);
        return Err(ApiError::invalid(
            "meta.k8s.io",
            "PatchOptions",
            "",
            &[error],
        ));
    }
    let decoded = decode::json(&call.body).map_err(|error| match (error.code, media) {
        (400, JSON | MERGE) => {
            ApiError::bad_request(format!("error decoding patch: {}", error.message))
        }
        _ => error,
    })?;
    let body = &decoded.value;
    if media == MERGE && !body.is_object() && !body.is_null() {
        return Err(ApiError::bad_request(format!(
            "error decoding patch: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            apimachinery::schema::json_type(body)
        )));
    }
    let gvk = (
        call.group(),
        call.version.as_str(),
        call.resource.kind.as_str(),
    );
    let change = Change {
        duplicates: decoded.duplicates.clone(),
        dry_run,
        ..Change::default()
    };
    change_object(call, change, warnings, |live| {
        // A `resourceVersion` in the patch is a precondition. The one of the live object is removed, so that it does
        // not count as a precondition.
        let mut start = live.clone();
        let revision = meta::of(&mut start).remove("resourceVersion");
        let mut patched = match media {
            JSON => {
                if let Some(revision) = revision.clone() {
                    meta::of(&mut start).insert("resourceVersion".to_owned(), revision);
                }
                patch::json(&start, body)?
            }
            MERGE => {
                patch::merge(&mut start, body)?;
                start
            }
            _ => patch::strategic(&start, body, gvk)?,
        };
        if let Some(error) = other_version(call, &patched) {
            return Err(error);
        }
        check_type(call, &mut patched)?;
        if call.resource.is_custom() {
            let wrong = |why: String| super::admit::undecodable(call, &patched, &why, true);
            meta::readable(&patched).map_err(wrong)?;
        }
        if patched["metadata"]["name"] != live["metadata"]["name"] {
            return Err(renamed(call, &patched));
        }
        // A JSON patch that neither tests nor sets the revision has no precondition.
        if media == JSON
            && !tests_revision(body)
            && patched["metadata"].get("resourceVersion") == revision.as_ref()
        {
            meta::of(&mut patched).remove("resourceVersion");
        }
        Ok(patched)
    })
    .await
}

/// 415 for a patch of an unknown type.
fn unsupported(strategic_of_custom: bool) -> ApiError {
    if strategic_of_custom {
        return ApiError::unsupported_media_type(&[JSON, MERGE, APPLY].join(", "));
    }
    let mut error = ApiError::new(415, "UnsupportedMediaType", "415: Unsupported Media Type");
    error.details = Some(Box::new(json!({})));
    error
}

/// 422 for a patch that changes the `apiVersion` of a custom object to another version of its kind.
fn other_version(call: &Call, patched: &Value) -> Option<ApiError> {
    let (resource, version) = (&*call.resource, call.version());
    let there = |name: &Value| {
        let mut versions = resource.versions.iter();
        versions.any(|version| *name == version.api_version.as_str())
    };
    let now = &patched["apiVersion"];
    if !resource.is_custom() || *now == version.api_version.as_str() || !there(now) {
        return None;
    }
    let detail = format!("must be {}", version.api_version);
    let error = apimachinery::schema::FieldError::invalid("apiVersion", now, detail);
    let name = call.name();
    Some(ApiError::invalid(
        &resource.group,
        &resource.kind,
        name,
        &[error],
    ))
}

fn renamed(call: &Call, patched: &Value) -> ApiError {
    let name = patched["metadata"]["name"].as_str().unwrap_or_default();
    ApiError::bad_request(format!(
        "the name of the object ({name}) does not match the name on the URL ({})",
        call.name()
    ))
}

/// True if a JSON patch tests or sets the revision.
fn tests_revision(operations: &Value) -> bool {
    let operations = operations.as_array().into_iter().flatten();
    let mut operations = operations.filter_map(|operation| operation["path"].as_str());
    operations.any(|path| path == "/metadata/resourceVersion")
}

async fn apply(call: &Call, dry_run: bool, warnings: &mut Warnings) -> Result<Answer, ApiError> {
    let Some(manager) = call.query.get("fieldManager") else {
        let error = apimachinery::schema::FieldError::required(
            "fieldManager",
            "is required for apply patch",
        );
        return Err(ApiError::invalid(
            "meta.k8s.io",
            "PatchOptions",
            "",
            &[error],
        ));
    };
    let decoded = decode::yaml(&call.body).map_err(|error| match error.code {
        400 => ApiError::bad_request(format!(
            "error decoding YAML: error converting YAML to JSON: {}",
            error.message
        )),
        _ => error,
    })?;
    let mut config = decoded.value;
    check_type(call, &mut config)?;
    let given = config["metadata"]["name"].as_str().unwrap_or_default();
    if given.is_empty() {
        meta::of(&mut config).insert("name".to_owned(), Value::from(call.name()));
    } else if given != call.name() {
        return Err(renamed(call, &config));
    }
    let force = call.query.flag("force");
    let time = seconds(jiff::Timestamp::now());
    let applier = Applier {
        manager,
        force,
        subresource: call.subresource.as_deref().unwrap_or(""),
        api_version: &call.version().api_version,
        time: &time,
    };
    let kind = Kind {
        core: &call.core,
        resource: &call.resource,
    };
    let change = Change {
        duplicates: decoded.duplicates.clone(),
        dry_run,
        applied: true,
        ..Change::default()
    };
    // At most twice: an object that another request creates meanwhile exists in the second round.
    for _ in 0..2 {
        let changed = change_object(call, change.clone(), warnings, |live| {
            let mut applied = patch::apply(live, &config, applier, &kind)?;
            let given = config["metadata"].get("resourceVersion").cloned();
            match given {
                Some(revision) => {
                    meta::of(&mut applied).insert("resourceVersion".to_owned(), revision)
                }
                None => meta::of(&mut applied).remove("resourceVersion"),
            };
            Ok(applied)
        })
        .await;
        match changed {
            Err(error) if error.code == 404 && call.subresource.is_none() => {}
            other => return other,
        }
        let empty = json!({
            "apiVersion": config["apiVersion"], "kind": config["kind"],
            "metadata": {"name": call.name()},
        });
        let new = conversion::resolve(call.core.converter(), || {
            Ok(patch::apply(&empty, &config, applier, &kind)?)
        })
        .await?;
        let duplicates = decoded.duplicates.clone();
        match create_object(call, new, duplicates, dry_run, true, warnings).await {
            Err(error) if error.reason == "AlreadyExists" => {}
            other => return other,
        }
    }
    Err(ApiError::modified(
        call.group(),
        &call.resource.plural,
        call.name(),
    ))
}
