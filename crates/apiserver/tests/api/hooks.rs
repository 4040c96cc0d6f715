//! Hooks: conversion, defaults and validation by the owner of custom kinds.

use std::sync::Arc;

use apiserver::{ApiServer, FieldError, Hooks, Options};
use serde_json::{Value, json};

use crate::support::*;

/// In v1beta1 the color was called `colour` (here: kept in `spec.size` tens), and blue is not allowed.
struct Paint;

impl Hooks for Paint {
    fn convert(&self, mut object: Value, to: &str) -> Result<Value, String> {
        let size = object["spec"]["size"]
            .as_i64()
            .ok_or("spec.size is missing")?;
        object["spec"]["size"] = if to.ends_with("/v1") {
            json!(size * 10)
        } else {
            json!(size / 10)
        };
        object["apiVersion"] = json!(to);
        Ok(object)
    }

    fn default(&self, object: &mut Value, _old: Option<&Value>) {
        if object["spec"]["color"].is_null() {
            object["spec"]["color"] = json!("green");
        }
    }

    fn validate(
        &self,
        object: &Value,
        old: Option<&Value>,
        _dry: bool,
    ) -> Result<(), Vec<FieldError>> {
        assert_eq!(object["apiVersion"], "example.org/v1");
        if old.is_some_and(|old| old["spec"]["color"] != object["spec"]["color"]) {
            let message = "Forbidden: is immutable".to_owned();
            return Err(vec![FieldError {
                path: "spec.color".to_owned(),
                message,
            }]);
        }
        Ok(())
    }
}

async fn painted() -> ApiServer {
    let server = ApiServer::open(Options {
        hooks: Arc::new(Paint),
        ..Options::default()
    })
    .await
    .unwrap();
    let mut crd = widgets();
    crd["spec"]["conversion"] = json!({"strategy": "Webhook"});
    let (code, created) = post(&server, CRDS, &crd).await;
    assert_eq!(code, 201, "{created}");
    server
}

#[tokio::test]
async fn an_old_version_is_stored_as_the_new_one_and_read_as_both() {
    let server = painted().await;
    let old = WIDGETS.replace("/v1/", "/v1beta1/");
    let mut object = widget("a");
    object["apiVersion"] = json!("example.org/v1beta1");
    object["spec"] = json!({"size": 2});
    let (code, created) = post(&server, &old, &object).await;
    assert_eq!(
        (code, &created["spec"]),
        (201, &json!({"size": 2, "color": "green"})),
        "{created}"
    );
    let (_, new) = get(&server, &format!("{WIDGETS}/a")).await;
    assert_eq!(new["spec"], json!({"size": 20, "color": "green"}));
    assert_eq!(new["metadata"]["generation"], 1);
    let (_, same) = patch(
        &server,
        &format!("{old}/a"),
        MERGE,
        &json!({"spec": {"size": 2}}),
    )
    .await;
    assert_eq!(
        same["metadata"]["resourceVersion"],
        new["metadata"]["resourceVersion"]
    );
}

#[tokio::test]
async fn what_a_hook_refuses_is_invalid_with_its_field() {
    let server = painted().await;
    post(&server, WIDGETS, &widget("a")).await;
    let (code, status) = patch(
        &server,
        &format!("{WIDGETS}/a"),
        MERGE,
        &json!({"spec": {"color": "green"}}),
    )
    .await;
    assert_eq!(code, 422);
    assert_eq!(
        status["message"],
        "Widget.example.org \"a\" is invalid: spec.color: Forbidden: is immutable"
    );
    assert_eq!(status["details"]["causes"][0]["field"], "spec.color");
}
