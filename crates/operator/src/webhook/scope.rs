//! API groups with webhooks: a manager may run the controllers of some kinds only.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::admission_review;

/// Groups with webhooks.
#[derive(Clone, Debug)]
pub(super) struct Scope(pub(super) BTreeSet<String>);

impl Scope {
    /// Returns the answer to a ConversionReview for a version of another group.
    pub(super) fn refuses_conversion(&self, review: &Value) -> Option<Value> {
        let request = &review["request"];
        let desired = request["desiredAPIVersion"].as_str().unwrap_or_default();
        let refusal = self.refusal(desired.split_once('/').map_or("", |(group, _)| group))?;
        Some(json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "ConversionReview",
            "response": {
                "uid": request["uid"],
                "convertedObjects": [],
                "result": {"status": "Failure", "message": refusal},
            },
        }))
    }

    /// Returns the answer to an AdmissionReview for an object of another group. The group is the one of the resource:
    /// the kind of a `/scale` is in another group.
    pub(super) fn refuses_admission(&self, review: &Value) -> Option<Value> {
        let request = &review["request"];
        let refusal = self.refusal(request["resource"]["group"].as_str().unwrap_or_default())?;
        Some(admission_review(json!({
            "uid": request["uid"],
            "allowed": false,
            "status": {"status": "Failure", "code": 400, "reason": "BadRequest", "message": refusal},
        })))
    }

    fn refusal(&self, group: &str) -> Option<String> {
        (!self.0.contains(group)).then(|| {
            let served: Vec<&str> = self.0.iter().map(String::as_str).collect();
            format!(
                "this manager has no webhooks for the group {group}, only for {}: the webhook configuration or the definition leads to the wrong Service",
                served.join(", ")
            )
        })
    }
}
