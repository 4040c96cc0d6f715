//! Validation of `/scale` by the rules for the replicas of the object.

use kube::api::DynamicObject;
use kube::discovery::ApiResource;
use kube::{Client, Error};
use serde_json::{Value, json};

use super::admission_review;
use crate::client::Api;

/// True for a review of the `/scale` of an object.
pub(super) fn is_scale(review: &Value) -> bool {
    review["request"]["subResource"] == "scale"
}

/// Answers an AdmissionReview of a Scale: validates the object with its `spec.replicas` changed.
pub(super) async fn validate(client: &Client, review: &Value) -> Value {
    match read(client, &review["request"]).await {
        Ok(object) => super::validate(&of_object(review, &object)),
        Err(source) => admission_review(unread(&review["request"], &source)),
    }
}

/// Returns the review of an update of `object`, made from a review of the Scale.
pub(super) fn of_object(review: &Value, object: &Value) -> Value {
    let mut scaled = object.clone();
    scaled["spec"]["replicas"] = review["request"]["object"]["spec"]["replicas"].clone();
    let mut review = review.clone();
    let request = &mut review["request"];
    let (group, version) = split(object["apiVersion"].as_str().unwrap_or_default());
    request["kind"] = json!({"group": group, "version": version, "kind": object["kind"]});
    request["object"] = scaled;
    request["oldObject"] = object.clone();
    review
}

/// Splits an `apiVersion` into group and version.
fn split(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

async fn read(client: &Client, request: &Value) -> kube::Result<Value> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of = &request["resource"];
    let (group, version) = (text(&of["group"]), text(&of["version"]));
    let resource = ApiResource {
        api_version: format!("{group}/{version}"),
        group,
        version,
        // The path depends on the plural only.
        kind: String::new(),
        plural: text(&of["resource"]),
    };
    let namespace = text(&request["namespace"]);
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), &namespace, &resource);
    let object = api.get(&text(&request["name"])).await?;
    serde_json::to_value(object).map_err(Error::SerdeError)
}

fn unread(request: &Value, source: &Error) -> Value {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let message = format!(
        "reading {} {}/{} to validate its scale: {source}",
        text(&request["resource"]["resource"]),
        text(&request["namespace"]),
        text(&request["name"]),
    );
    json!({
        "uid": request["uid"],
        "allowed": false,
        "status": {"status": "Failure", "code": 500, "reason": "InternalError", "message": message},
    })
}
