//! Objects that decide the admission of other objects.

use kube::api::DynamicObject;
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Client, Error};
use serde_json::{Value, json};

use super::{Judge, admission_review};
use crate::client::Api;

/// Reads the object of [`Judge::beside`] for a review: `None` if not needed, `Some(None)` if not found.
pub(super) async fn read(
    client: &Client,
    judge: Judge,
    review: &Value,
) -> kube::Result<Option<Option<Value>>> {
    let Some(place) = (judge.beside)(&review["request"]["object"]) else {
        return Ok(None);
    };
    let (group, version) = place
        .api_version
        .split_once('/')
        .unwrap_or(("", place.api_version));
    let gvk = GroupVersionKind::gvk(group, version, place.kind);
    let resource = ApiResource::from_gvk_with_plural(&gvk, place.plural);
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), &place.namespace, &resource);
    let found = api.get_opt(&place.name).await?;
    let found = found.map(serde_json::to_value).transpose();
    found.map(Some).map_err(Error::SerdeError)
}

/// Returns the answer to a review whose other object cannot be read.
pub(super) fn unread(review: &Value, source: &Error) -> Value {
    let request = &review["request"];
    let message = format!("reading what the object is validated by: {source}");
    admission_review(json!({
        "uid": request["uid"],
        "allowed": false,
        "status": {"status": "Failure", "code": 500, "reason": "InternalError", "message": message},
    }))
}
