//! Validation of the objects of a bound token: the account, and a pod, a Secret or a Node.

use std::sync::Arc;

use apimachinery::value::text;
use jiff::Timestamp;
use serde_json::Value;

use crate::store::{Object, Store};
use crate::user::UserInfo;

const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
const POD_UID: &str = "authentication.kubernetes.io/pod-uid";
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
const NODE_UID: &str = "authentication.kubernetes.io/node-uid";
const INVALIDATED: &str = "service account token has been invalidated";

/// User of the claims.
///
/// `deleted_before`: time in seconds; objects with an earlier deletion timestamp count as deleted.
///
/// # Errors
/// The claim that is no longer valid.
pub(super) fn user(store: &Store, claims: &Value, deleted_before: i64) -> Result<UserInfo, String> {
    let about = &claims["kubernetes.io"];
    let namespace = text(&about["namespace"]);
    let (name, uid) = (
        text(&about["serviceaccount"]["name"]),
        text(&about["serviceaccount"]["uid"]),
    );
    let key = |name: &str| format!("{namespace}/{name}");
    let account = store.get("/serviceaccounts", &key(name));
    let account = account.ok_or_else(|| format!("serviceaccounts {name:?} not found"))?;
    if *account.facts.uid != *uid {
        return Err(format!(
            "service account UID ({}) does not match claim ({uid})",
            account.facts.uid
        ));
    }
    if is_gone(&account, deleted_before) {
        return Err(format!(
            "service account {namespace}/{name} has been deleted"
        ));
    }
    let check = |kind: &'static str, object: Option<Arc<Object>>| match object {
        None => Err(INVALIDATED.to_owned()),
        Some(object) if *object.facts.uid != *text(&about[kind]["uid"]) => Err(format!(
            "{kind} UID ({}) does not match service account {kind} ref claim ({})",
            object.facts.uid,
            text(&about[kind]["uid"])
        )),
        Some(object) if is_gone(&object, deleted_before) => Err(INVALIDATED.to_owned()),
        Some(_) => Ok(()),
    };
    let named = |kind: &str| about[kind].is_object().then(|| text(&about[kind]["name"]));
    if let Some(secret) = named("secret") {
        check("secret", store.get("/secrets", &key(secret)))?;
    }
    if let Some(pod) = named("pod") {
        check("pod", store.get("/pods", &key(pod)))?;
    } else if let Some(node) = named("node") {
        // The Node in a token that is bound to a pod is informational.
        check("node", store.get("/nodes", node))?;
    }
    let mut user = UserInfo {
        name: format!("system:serviceaccount:{namespace}:{name}"),
        uid: uid.to_owned(),
        groups: vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
        ],
        ..UserInfo::default()
    };
    let extra = [
        (POD_NAME, text(&about["pod"]["name"])),
        (POD_UID, text(&about["pod"]["uid"])),
        (NODE_NAME, text(&about["node"]["name"])),
        (NODE_UID, text(&about["node"]["uid"])),
    ];
    for (key, value) in extra.into_iter().filter(|(_, value)| !value.is_empty()) {
        user.extra.insert(key.to_owned(), vec![value.to_owned()]);
    }
    Ok(user)
}

/// True after the deletion timestamp has passed; until then, an [`Object`] being deleted still counts.
fn is_gone(object: &Object, deleted_before: i64) -> bool {
    if !object.facts.deleting {
        return false;
    }
    let value = object.value();
    let at = text(&value["metadata"]["deletionTimestamp"]);
    let at = at.parse::<Timestamp>();
    at.is_ok_and(|at| at.as_second() < deleted_before)
}
