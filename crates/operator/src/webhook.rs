//! Webhooks for a kube-apiserver: conversion, defaulting and validation of our CRDs.
//!
//! The embedded API server calls the same functions of `api` in the process. Requests and answers are
//! apiextensions.k8s.io/v1 (ConversionReview) and admission.k8s.io/v1 (AdmissionReview). Objects for admission are in
//! the stored version: the configurations have `matchPolicy: Equivalent`.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::admission::{self, FieldError, RelatedObject, Review};
use axum::extract::{DefaultBodyLimit, Request};
use axum::response::Response;
use axum::routing::post;
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::Client;
use serde_json::{Map, Value, json};

use self::json_patch::difference;
use self::room::Room;
use self::scope::Scope;

mod beside;
mod deletion;
mod json_patch;
mod room;
mod scale;
mod scope;

/// Path of the conversion webhook.
pub const CONVERT: &str = "/convert";
/// Path of the defaulting webhook.
pub const MUTATE: &str = "/mutate";
/// Path of the validating webhook.
pub const VALIDATE: &str = "/validate";

/// Admission of a write: [`admission::validate`] alone, or more.
#[derive(Clone, Copy, Debug)]
pub struct Judge {
    /// Accepts or rejects an object.
    pub validate: fn(Review<'_>) -> Result<(), Vec<FieldError>>,
    /// Names an object that further defaults and rules depend on, such as the class of a Cluster. The webhook reads
    /// that object first.
    pub beside: fn(&Value) -> Option<RelatedObject>,
    /// Fills in the defaults that depend on the object of [`Judge::beside`].
    pub default: fn(&mut Value, &Value),
    /// Accepts or rejects an object together with the one of [`Judge::beside`], `None` if that one does not exist;
    /// returns warnings.
    pub judge: fn(Review<'_>, Option<&Value>) -> Verdict,
}

/// Warnings, or all violations.
pub type Verdict = Result<Vec<String>, Vec<FieldError>>;

/// Returns the routes of all webhooks, for kinds of `groups`. Answers 400 to a body that is not JSON, 413 to an
/// oversized one, 408 to one that does not arrive in time, and 429 while too many other reviews are judged.
///
/// `client` reads the objects behind a Scale (a Scale has none of their fields but the number of replicas) and the
/// objects of [`Judge::beside`]. All other writes are judged by `judge`.
pub fn router(client: Client, judge: Judge, groups: BTreeSet<String>) -> Router {
    let (scope, room) = (Arc::new(Scope(groups)), Arc::new(Room::default()));
    let (served, here) = (Arc::clone(&scope), Arc::clone(&room));
    let converted = post(move |request: Request| {
        let (served, here) = (Arc::clone(&served), Arc::clone(&here));
        async move {
            let review = here.read(request).await?;
            let refused = served.refuses_conversion(review.body());
            Ok::<_, Response>(Json(refused.unwrap_or_else(|| convert(review.body()))))
        }
    });
    let (reader, served, here) = (client.clone(), Arc::clone(&scope), Arc::clone(&room));
    let mutated = post(move |request: Request| {
        let (client, served, here) = (reader.clone(), Arc::clone(&served), Arc::clone(&here));
        async move {
            let review = here.read(request).await?;
            Ok::<_, Response>(Json(match served.refuses_admission(review.body()) {
                Some(refused) => refused,
                None => defaults(&client, judge, review.body()).await,
            }))
        }
    });
    let validated = post(move |request: Request| {
        let (client, scope, room) = (client.clone(), Arc::clone(&scope), Arc::clone(&room));
        async move {
            let review = room.read(request).await?;
            Ok::<_, Response>(Json(match scope.refuses_admission(review.body()) {
                Some(refused) => refused,
                None => judgement(&client, judge, review.body()).await,
            }))
        }
    });
    // The room has its own limit.
    Router::new()
        .route(CONVERT, converted)
        .route(MUTATE, mutated)
        .route(VALIDATE, validated)
        .layer(DefaultBodyLimit::disable())
}

async fn defaults(client: &Client, judge: Judge, body: &Value) -> Value {
    match beside::read(client, judge, body).await {
        Ok(beside) => mutate_by(body, judge, beside.flatten().as_ref()),
        Err(source) => beside::unread(body, &source),
    }
}

async fn judgement(client: &Client, judge: Judge, body: &Value) -> Value {
    if scale::is_scale(body) {
        return scale::validate(client, body).await;
    }
    if deletion::is_deletion(body) {
        return deletion::validate(client, body).await;
    }
    match beside::read(client, judge, body).await {
        Ok(beside) => validate_by(body, judge, beside.as_ref()),
        Err(source) => beside::unread(body, &source),
    }
}

/// Answers a ConversionReview with all objects in the requested version, or with the error of an object that cannot be
/// converted.
pub fn convert(review: &Value) -> Value {
    let request = &review["request"];
    let desired = request["desiredAPIVersion"].as_str().unwrap_or_default();
    let none = Vec::new();
    let objects = request["objects"].as_array().unwrap_or(&none);
    let converted: Result<Vec<Value>, _> = objects
        .iter()
        .map(|object| api::convert::convert(object.clone(), desired))
        .collect();
    let response = match converted {
        Ok(objects) => json!({
            "uid": request["uid"],
            "convertedObjects": objects,
            "result": {"status": "Success"},
        }),
        Err(problem) => json!({
            "uid": request["uid"],
            "convertedObjects": [],
            "result": {"status": "Failure", "message": problem.to_string()},
        }),
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "response": response,
    })
}

/// Answers an AdmissionReview with the defaults that the object lacks.
pub fn mutate(review: &Value) -> Value {
    defaulted(review, |_| {})
}

fn mutate_by(review: &Value, judge: Judge, beside: Option<&Value>) -> Value {
    defaulted(review, |object| {
        if let Some(beside) = beside {
            (judge.default)(object, beside);
        }
    })
}

fn defaulted(review: &Value, more: impl FnOnce(&mut Value)) -> Value {
    let request = &review["request"];
    let mut defaulted = request["object"].clone();
    admission::default_object(&mut defaulted, present(&request["oldObject"]));
    more(&mut defaulted);
    let patch = difference(&request["object"], &defaulted);
    let mut response = json!({"uid": request["uid"], "allowed": true});
    if !patch.is_empty() {
        response["patchType"] = "JSONPatch".into();
        response["patch"] = STANDARD.encode(Value::from(patch).to_string()).into();
    }
    admission_review(response)
}

/// Answers an AdmissionReview with all violations of the object.
pub fn validate(review: &Value) -> Value {
    verdict(review, |review| {
        admission::validate(review).map(|()| Vec::new())
    })
}

/// Answers an AdmissionReview. `beside` is `None` if not needed, `Some(None)` if not found.
fn validate_by(review: &Value, judge: Judge, beside: Option<&Option<Value>>) -> Value {
    verdict(review, |review| {
        (judge.validate)(review)?;
        let mut warnings = api::convert::warnings(review.object, review.old);
        if let Some(beside) = beside {
            warnings.extend((judge.judge)(review, beside.as_ref())?);
        }
        Ok(warnings)
    })
}

fn verdict(review: &Value, judge: impl FnOnce(Review<'_>) -> Verdict) -> Value {
    let request = &review["request"];
    let verdict = judge(Review {
        object: &request["object"],
        old: present(&request["oldObject"]),
        dry_run: request["dryRun"].as_bool().unwrap_or_default(),
    });
    let mut response = json!({"uid": request["uid"], "allowed": verdict.is_ok()});
    match verdict {
        Ok(warnings) if warnings.is_empty() => {}
        Ok(warnings) => response["warnings"] = warnings.into(),
        Err(errors) => response["status"] = status(request, &errors),
    }
    admission_review(response)
}

fn admission_review(response: Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": response,
    })
}

/// Returns the Status of an invalid object, in the format of apimachinery.
fn status(request: &Value, errors: &[FieldError]) -> Value {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = text(&request["object"]["metadata"]["name"]);
    let (kind, group) = (
        text(&request["kind"]["kind"]),
        text(&request["kind"]["group"]),
    );
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let causes = errors.iter().map(|error| {
        json!({"reason": "FieldValueInvalid", "field": error.path, "message": error.message})
    });
    json!({
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": format!("{kind}.{group} \"{name}\" is invalid: {}", lines.join("; ")),
        "details": {
            "name": name,
            "group": group,
            "kind": kind,
            "causes": causes.collect::<Vec<_>>(),
        },
    })
}

fn present(value: &Value) -> Option<&Value> {
    value
        .as_object()
        .filter(|map: &&Map<_, _>| !map.is_empty())?;
    Some(value)
}

#[cfg(test)]
mod tests;
