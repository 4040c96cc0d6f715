//! Admission of deletions: an object that others refer to may not be deleted.

use api::admission::deletion::{Referrers, deletion, referrers};
use kube::api::{DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Client, Error};
use serde_json::{Value, json};

use super::{admission_review, beside};
use crate::client::Api;

/// True for the review of a deletion.
pub(super) fn is_deletion(review: &Value) -> bool {
    review["request"]["operation"] == "DELETE"
}

/// Answers an AdmissionReview of a deletion, after reading the objects that may refer to the deleted one.
pub(super) async fn validate(client: &Client, review: &Value) -> Value {
    let object = &review["request"]["oldObject"];
    let Some(kind) = referrers(object) else {
        return verdict(review, Ok(()));
    };
    match list(client, kind).await {
        Ok(found) => verdict(review, deletion(object, &found)),
        Err(source) => beside::unread(review, &source),
    }
}

async fn list(client: &Client, kind: Referrers) -> kube::Result<Vec<Value>> {
    let version = kind.api_version.split_once('/');
    let (group, version) = version.unwrap_or(("", kind.api_version));
    let gvk = GroupVersionKind::gvk(group, version, kind.kind);
    let resource = ApiResource::from_gvk_with_plural(&gvk, kind.plural);
    let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
    let found = api.list(&ListParams::default()).await?.items.into_iter();
    found
        .map(|it| serde_json::to_value(it).map_err(Error::SerdeError))
        .collect()
}

fn verdict(review: &Value, verdict: Result<(), String>) -> Value {
    let uid = &review["request"]["uid"];
    admission_review(match verdict {
        Ok(()) => json!({"uid": uid, "allowed": true}),
        Err(why) => json!({
            "uid": uid,
            "allowed": false,
            "status": {"status": "Failure", "code": 403, "reason": "Forbidden", "message": why},
        }),
    })
}
