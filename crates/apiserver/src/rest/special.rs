//! Creates of objects without storage: reviews, tokens, bindings.

mod review;
mod token;

use apimachinery::kinds::{Origin, shape};
use apimachinery::patch::managed::{self, Writer};
use apimachinery::patch::{Types, Versions};
use apimachinery::time::seconds;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{edit, failed_write};
use crate::admission::{self, Gvk, Operation};
use crate::auth::restriction;
use crate::call::{Answer, Call, Warnings};
use crate::error::ApiError;
use crate::store::WriteError;
use crate::user::UserInfo;

/// [`Answer`] to the create of a virtual kind; `None` for a stored kind.
pub(crate) async fn virtual_create(
    call: &Call,
    object: &Value,
    warnings: &mut Warnings,
) -> Result<Option<Answer>, ApiError> {
    if !matches!(call.resource.origin, Origin::BuiltIn(traits) if traits.virtual_) {
        return Ok(None);
    }
    let mut object = object.clone();
    let name = object["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let kind = Gvk::new(call.group(), &call.version, &call.resource.kind);
    admission::of_created(call, kind, &name, &mut object, warnings).await?;
    let object = &object;
    review::check(call, &object["spec"])?;
    let mut object = object.clone();
    record(call, &mut object, &call.version().api_version, "");
    let spec = &object["spec"];
    let status = match call.resource.kind.as_str() {
        "SelfSubjectReview" => json!({"userInfo": call.user}),
        "TokenReview" => review::token(call, spec).await,
        "SelfSubjectAccessReview" => review::access(call, &call.user, spec).await,
        "SubjectAccessReview" | "LocalSubjectAccessReview" => {
            let user = UserInfo {
                name: spec["user"].as_str().unwrap_or_default().to_owned(),
                uid: spec["uid"].as_str().unwrap_or_default().to_owned(),
                groups: strings(&spec["groups"]),
                extra: serde_json::from_value(spec["extra"].clone()).unwrap_or_default(),
            };
            review::access(call, &user, spec).await
        }
        "SelfSubjectRulesReview" => {
            let all = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
            let admin = call.user.is_in("system:masters");
            let rules = if admin { all } else { json!([]) };
            json!({"resourceRules": rules, "nonResourceRules": [], "incomplete": !admin})
        }
        "Binding" => {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            return bind(call, name, &object).await.map(Some);
        }
        _ => return Err(ApiError::method_not_allowed()),
    };
    super::complete_unstored(&mut object, &status);
    if call.resource.kind == "SelfSubjectReview" {
        object["metadata"]["creationTimestamp"] = Value::from(seconds(Timestamp::now()));
    }
    Ok(Some(Answer::Value(201, object)))
}

/// [`Answer`] to a POST to a subresource.
pub(crate) async fn subresource(
    call: &Call,
    subresource: &str,
    warnings: &mut Warnings,
) -> Result<Answer, ApiError> {
    let mut body = call.decode()?.value;
    let kind = match subresource {
        "token" => Gvk::new("authentication.k8s.io", "v1", "TokenRequest"),
        "eviction" => Gvk::new("policy", "v1", "Eviction"),
        _ => Gvk::new("", "v1", "Binding"),
    };
    restriction::admit(call, Operation::Create, Some(&body), None)?;
    admission::of_created(call, kind, call.name(), &mut body, warnings).await?;
    match subresource {
        "token" => token::request(call, &body),
        "eviction" => super::eviction::evict(call, &body).await,
        "binding" => bind(call, call.name(), &body).await,
        _ => Err(ApiError::unknown_resource()),
    }
}

/// Sets the managers of the object in the answer, as for all creates.
fn record(call: &Call, object: &mut Value, api_version: &str, subresource: &str) {
    let (manager, time) = (call.manager(), seconds(Timestamp::now()));
    let writer = Writer {
        manager: &manager,
        subresource,
        api_version,
        time: &time,
    };
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    let asked = Asked {
        group,
        version,
        kind: &kind,
    };
    // A failure to record managers never fails a write.
    let _ = managed::update(None, object, writer, &asked);
}

/// Kind and version of the request: a virtual kind has one version.
struct Asked<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

impl Versions for Asked<'_> {
    fn types(&self, _: &str) -> Option<Types<'_>> {
        Some(Types::BuiltIn {
            group: self.group,
            kind: self.kind,
        })
    }

    fn convert(&self, object: &Value, _: &str) -> Result<Value, String> {
        Ok(object.clone())
    }

    fn blank(&self, _: &str) -> Option<Value> {
        shape::of(self.group, self.version, self.kind).map(shape::Struct::zero)
    }
}

/// Binds a pod to a node.
async fn bind(call: &Call, name: &str, body: &Value) -> Result<Answer, ApiError> {
    let pods = call
        .core
        .store
        .registry()
        .find("", "pods")
        .ok_or_else(ApiError::unknown_resource)?;
    let key = pods.key(&call.namespace, name);
    let node = body["target"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    if node.is_empty() {
        return Err(ApiError::bad_request("target.name: Required value"));
    }
    let bound = edit(&call.core, &pods, &key, |pod| {
        let free = pod["spec"]["nodeName"].as_str().is_none_or(str::is_empty);
        if free && pod["spec"].is_object() {
            pod["spec"]["nodeName"] = Value::from(node.as_str());
        }
        free
    });
    match bound.await {
        Ok(Some(pod)) if pod.value()["spec"]["nodeName"] == node.as_str() => Ok(success()),
        Ok(Some(pod)) => {
            let why = format!(
                "pod {name} is already assigned to node {:?}",
                pod.value()["spec"]["nodeName"].as_str().unwrap_or_default()
            );
            Err(ApiError::conflict("", "pods/binding", name, &why))
        }
        Ok(None) => Err(ApiError::not_found("", "pods", name)),
        Err(WriteError::Conflict) => Err(ApiError::modified("", "pods", name)),
        Err(error) => Err(failed_write(error)),
    }
}

pub(crate) fn success() -> Answer {
    Answer::Value(
        201,
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
    )
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}
