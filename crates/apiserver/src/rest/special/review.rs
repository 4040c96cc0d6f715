//! TokenReview and reviews of access.

use apimachinery::selector::FieldSelector;
use serde_json::{Value, json};

use super::strings;
use crate::auth;
use crate::auth::rules::{self, Attributes};
use crate::call::Call;
use crate::error::ApiError;
use crate::user::UserInfo;

/// Rejects reviews without attributes.
pub(super) fn check(call: &Call, spec: &Value) -> Result<(), ApiError> {
    let kind = call.resource.kind.as_str();
    if kind == "TokenReview" && spec["token"].as_str().is_none_or(str::is_empty) {
        let message = "token is required for TokenReview in authentication";
        return Err(ApiError::bad_request(message));
    }
    let asks = spec["resourceAttributes"].is_object() || spec["nonResourceAttributes"].is_object();
    if kind.ends_with("AccessReview") && !asks {
        let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        let error = apimachinery::schema::FieldError::invalid(
            "spec.resourceAttributes",
            &Value::Null,
            detail,
        );
        // The error names no kind, since internal types have none.
        return Err(ApiError::invalid("authorization.k8s.io", "", "", &[error]));
    }
    Ok(())
}

/// Reviews a token for the audiences of the request.
pub(super) async fn token(call: &Call, spec: &Value) -> Value {
    let token = spec["token"].as_str().unwrap_or_default();
    let authenticator = &call.core.authenticator;
    let mut audiences = strings(&spec["audiences"]);
    if audiences.is_empty() {
        audiences.push(authenticator.audience().to_owned());
    }
    match auth::bearer(&call.core, token, &audiences).await {
        Ok(mut bearer) => {
            bearer.user.groups.push("system:authenticated".to_owned());
            json!({"authenticated": true, "user": bearer.user, "audiences": bearer.audiences})
        }
        Err(why) => json!({"user": {}, "error": why}),
    }
}

/// Evaluates an access review: may the user send the request?
pub(super) async fn access(call: &Call, user: &UserInfo, spec: &Value) -> Value {
    let wanted = &spec["resourceAttributes"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let attributes = if wanted.is_object() {
        Attributes {
            verb: text(&wanted["verb"]),
            group: text(&wanted["group"]),
            resource: text(&wanted["resource"]),
            subresource: text(&wanted["subresource"]),
            namespace: text(&wanted["namespace"]),
            name: text(&wanted["name"]),
            fields: selected(&wanted["fieldSelector"]),
            path: String::new(),
        }
    } else {
        let wanted = &spec["nonResourceAttributes"];
        Attributes {
            verb: text(&wanted["verb"]),
            path: text(&wanted["path"]),
            ..Attributes::default()
        }
    };
    match rules::review(&call.core, user, &attributes).await {
        Ok(()) => json!({"allowed": true}),
        Err(denied) if denied.reason.is_empty() => json!({"allowed": false}),
        Err(denied) => json!({"allowed": false, "reason": denied.reason}),
    }
}

/// Required fields of a selector, given as a query or a list of requirements.
fn selected(selector: &Value) -> FieldSelector {
    if let Some(raw) = selector["rawSelector"].as_str() {
        return FieldSelector::parse(raw).unwrap_or_default();
    }
    let requirements = selector["requirements"].as_array().into_iter().flatten();
    let terms: Vec<String> = requirements
        .filter_map(|requirement| {
            let key = requirement["key"].as_str()?;
            match (
                requirement["operator"].as_str()?,
                strings(&requirement["values"]).as_slice(),
            ) {
                ("In", [value]) => Some(format!("{key}={value}")),
                _ => None,
            }
        })
        .collect();
    FieldSelector::parse(&terms.join(",")).unwrap_or_default()
}
