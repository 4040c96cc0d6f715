//! Webhooks for a kube-apiserver: conversion, defaulting, validation of our kinds.
//!
//! The embedded API server calls the same functions of `api` in the process. Requests and answers are those of
//! apiextensions.k8s.io/v1 (ConversionReview) and admission.k8s.io/v1 (AdmissionReview). Objects for admission are in
//! the stored version: the configurations have `matchPolicy: Equivalent`.

use api::admission::{self, FieldError, Review};
use axum::extract::DefaultBodyLimit;
use axum::routing::post;
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::Client;
use serde_json::{Map, Value, json};

use self::json_patch::difference;

mod json_patch;
mod scale;

/// Path of the conversion webhook.
pub const CONVERT: &str = "/convert";
/// Path of the defaulting webhook.
pub const MUTATE: &str = "/mutate";
/// Path of the validating webhook.
pub const VALIDATE: &str = "/validate";

/// What judges a write: [`admission::validate`], or more than that.
pub type Judge = fn(Review<'_>) -> Result<(), Vec<FieldError>>;

/// The maximum size of a review in bytes: a conversion contains a whole page of a list.
const LARGEST: usize = 64 << 20;

/// The routes of all webhooks. A body that is not a review is answered with 400 or 422.
///
/// `client` reads the objects whose scale is validated, since a Scale has no fields of them but the number of replicas.
/// All other writes are judged by `judge`.
pub fn router(client: Client, judge: Judge) -> Router {
    let answer = |review: fn(&Value) -> Value| {
        post(move |Json(body): Json<Value>| async move { Json(review(&body)) })
    };
    let validated = post(move |Json(body): Json<Value>| {
        let client = client.clone();
        async move {
            Json(if scale::is_scale(&body) {
                scale::validate(&client, &body).await
            } else {
                validate_by(&body, judge)
            })
        }
    });
    Router::new()
        .route(CONVERT, answer(convert))
        .route(MUTATE, answer(mutate))
        .route(VALIDATE, validated)
        .layer(DefaultBodyLimit::max(LARGEST))
}

/// Answers a ConversionReview with all objects in the requested version, or with the error of one that cannot be
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
    let request = &review["request"];
    let mut defaulted = request["object"].clone();
    admission::default_object(&mut defaulted, present(&request["oldObject"]));
    let patch = difference(&request["object"], &defaulted);
    let mut response = json!({"uid": request["uid"], "allowed": true});
    if !patch.is_empty() {
        response["patchType"] = "JSONPatch".into();
        response["patch"] = STANDARD.encode(Value::from(patch).to_string()).into();
    }
    admission_review(response)
}

/// Answers an AdmissionReview with every violation of the object.
pub fn validate(review: &Value) -> Value {
    validate_by(review, admission::validate)
}

fn validate_by(review: &Value, judge: Judge) -> Value {
    let request = &review["request"];
    let verdict = judge(Review {
        object: &request["object"],
        old: present(&request["oldObject"]),
        dry_run: request["dryRun"].as_bool().unwrap_or_default(),
    });
    let mut response = json!({"uid": request["uid"], "allowed": verdict.is_ok()});
    if let Err(errors) = verdict {
        response["status"] = status(request, &errors);
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

/// The Status of an invalid object, as apimachinery formats it.
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
