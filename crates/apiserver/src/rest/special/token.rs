//! TokenRequest: a token of a service account, for audiences, and bound to a pod, a Secret or a Node.
//!
//! Source of the rules and messages: `pkg/registry/core/serviceaccount/storage/token.go` of kube-apiserver.

use apimachinery::schema::FieldError;
use apimachinery::time::seconds;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{record, strings};
use crate::authenticator::service_account::{Lifetime, Reference, Subject};
use crate::call::{Answer, Call};
use crate::error::ApiError;

const API_VERSION: &str = "authentication.k8s.io/v1";
const GROUP: &str = "authentication.k8s.io";
const SHORTEST: i64 = 600;
const LONGEST: i64 = 1 << 32;
/// Lifetime requested by kubelets for the default token of a pod. Such tokens are extended to a year for clients that
/// do not reload them.
const WATCHED: i64 = 3607;
const YEAR: i64 = 365 * 24 * 3600;

/// Answers the create of a TokenRequest.
pub(super) fn request(call: &Call, body: &Value) -> Result<Answer, ApiError> {
    let account = named_account(call, body)?;
    let spec = &body["spec"];
    let seconds_asked = spec["expirationSeconds"].as_i64().unwrap_or(3600);
    check_lifetime(seconds_asked)?;
    let authenticator = &call.core.authenticator;
    let mut audiences = strings(&spec["audiences"]);
    if audiences.is_empty() {
        audiences.push(authenticator.audience().to_owned());
    }
    let subject = bound(call, &account, &spec["boundObjectRef"])?;
    let for_server = audiences
        .iter()
        .all(|audience| audience == authenticator.audience());
    let watched = subject.pod.is_some() && seconds_asked == WATCHED && for_server;
    let lifetime = Lifetime {
        seconds: if watched { YEAR } else { seconds_asked },
        warn_after: watched.then_some(seconds_asked),
    };
    let now = Timestamp::now();
    let token = authenticator
        .signer
        .token(&subject, &audiences, lifetime, now)
        .ok_or_else(|| {
            ApiError::internal("failed to generate token: there is no key to sign it with")
        })?;
    let until = now
        .checked_add(SignedDuration::from_secs(seconds_asked))
        .unwrap_or(now);
    let mut asked = json!({"kind": "TokenRequest", "apiVersion": API_VERSION, "spec": spec});
    record(call, &mut asked, API_VERSION, "token");
    Ok(Answer::Value(
        201,
        json!({
            "kind": "TokenRequest", "apiVersion": API_VERSION,
            "metadata": {
                "name": call.name(), "namespace": call.namespace, "creationTimestamp": seconds(now),
                "uid": account.uid, "managedFields": asked["metadata"]["managedFields"],
            },
            "spec": {
                "audiences": audiences, "expirationSeconds": seconds_asked,
                "boundObjectRef": spec["boundObjectRef"],
            },
            "status": {"token": token, "expirationTimestamp": seconds(until)},
        }),
    ))
}

/// Account in the path. Metadata in the body must match.
fn named_account(call: &Call, body: &Value) -> Result<Reference, ApiError> {
    let metadata = &body["metadata"];
    let sent = |field: &str| metadata[field].as_str().unwrap_or_default();
    let (namespace, name) = (sent("namespace"), sent("name"));
    if !namespace.is_empty() && namespace != call.namespace {
        let why =
            "the namespace of the provided object does not match the namespace sent on the request";
        return Err(ApiError::bad_request(why));
    }
    if !name.is_empty() && name != call.name() {
        let detail = "must match the service account name if specified";
        let error = FieldError::invalid("metadata.name", &metadata["name"], detail);
        return Err(ApiError::invalid(
            GROUP,
            "TokenRequest",
            call.name(),
            &[error],
        ));
    }
    let account = stored(call, "serviceaccounts", call.name())?;
    match sent("uid") {
        uid if uid.is_empty() || uid == account.uid => Ok(account),
        uid => {
            let why = format!(
                "the UID in the token request ({uid}) does not match the UID of the service account ({})",
                account.uid
            );
            Err(ApiError::conflict(GROUP, "TokenRequest", call.name(), &why))
        }
    }
}

fn check_lifetime(seconds: i64) -> Result<(), ApiError> {
    let detail = match seconds {
        ..SHORTEST => "may not specify a duration less than 10 minutes",
        SHORTEST..=LONGEST => return Ok(()),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    let error = FieldError::invalid("spec.expirationSeconds", &Value::from(seconds), detail);
    Err(ApiError::invalid(GROUP, "TokenRequest", "", &[error]))
}

/// [`Subject`] of the token: the account, and the existing object of `boundObjectRef`.
fn bound(call: &Call, account: &Reference, reference: &Value) -> Result<Subject, ApiError> {
    let mut subject = Subject {
        namespace: call.namespace.clone(),
        account: account.clone(),
        pod: None,
        secret: None,
        node: None,
    };
    if !reference.is_object() {
        return Ok(subject);
    }
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let (api_version, kind, name) = (text("apiVersion"), text("kind"), text("name"));
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let found = match (group, kind) {
        ("", "Pod") => {
            let pod = object(call, "pods", name)?;
            let runs_as = pod["spec"]["serviceAccountName"]
                .as_str()
                .unwrap_or_default();
            if runs_as != call.name() {
                return Err(ApiError::bad_request(format!(
                    "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
                    call.name()
                )));
            }
            subject.node = node_of(call, &pod);
            subject.pod.insert(named(&pod))
        }
        ("", "Node") => subject.node.insert(stored(call, "nodes", name)?),
        ("", "Secret") => subject.secret.insert(stored(call, "secrets", name)?),
        _ => {
            return Err(ApiError::bad_request(format!(
                "cannot bind token to object of type {group}/{version}, Kind={kind}"
            )));
        }
    };
    match text("uid") {
        uid if uid.is_empty() || uid == found.uid => Ok(subject),
        uid => {
            let why = format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
            );
            Err(ApiError::conflict(group, kind, name, &why))
        }
    }
}

/// Node of a bound pod; if the Node does not exist, the [`Reference`] has a name only.
fn node_of(call: &Call, pod: &Value) -> Option<Reference> {
    let name = pod["spec"]["nodeName"]
        .as_str()
        .filter(|name| !name.is_empty())?;
    Some(stored(call, "nodes", name).unwrap_or_else(|_| Reference {
        name: name.to_owned(),
        uid: String::new(),
    }))
}

fn stored(call: &Call, plural: &str, name: &str) -> Result<Reference, ApiError> {
    object(call, plural, name).map(|object| named(&object))
}

fn object(call: &Call, plural: &str, name: &str) -> Result<Value, ApiError> {
    let missing = || ApiError::not_found("", plural, name);
    let store = &call.core.store;
    let resource = store.registry().find("", plural).ok_or_else(missing)?;
    let key = resource.key(&call.namespace, name);
    let object = store.get(&resource.collection, &key).ok_or_else(missing)?;
    Ok(object.value())
}

fn named(object: &Value) -> Reference {
    let text = |field: &str| {
        object["metadata"][field]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    Reference {
        name: text("name"),
        uid: text("uid"),
    }
}
