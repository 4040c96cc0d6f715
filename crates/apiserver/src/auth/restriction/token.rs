//! Service account tokens for nodes: for pods of the node, with audiences declared by the pods.

use apimachinery::value::{items, text};
use serde_json::Value;

use super::Write;
use crate::auth::rules::{self, Attributes};
use crate::error::ApiError;

/// Rejects a TokenRequest of a node for a pod of another node.
pub(super) fn admit(write: &Write<'_>) -> Result<(), ApiError> {
    let spec = &write.object["spec"];
    let bound = &spec["boundObjectRef"];
    let name = text(&bound["name"]);
    if bound["apiVersion"] != "v1" || bound["kind"] != "Pod" || name.is_empty() {
        return write.forbid("node requested token not bound to a pod");
    }
    let uid = text(&bound["uid"]);
    if uid.is_empty() {
        return write.forbid("node requested token with a pod binding without a uid");
    }
    let pod = write.stored("pods", &write.call.namespace, name)?;
    if pod["metadata"]["uid"] != uid {
        return write.forbid(format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
        ));
    }
    if pod["spec"]["nodeName"] != write.node {
        return write.forbid("node requested token bound to a pod scheduled on a different node");
    }
    let audiences = spec["audiences"].as_array();
    let audience = match audiences.map(Vec::as_slice).unwrap_or_default() {
        [] => "",
        [one] => text(one),
        _ => return write.forbid("node may only request 0 or 1 audiences"),
    };
    let named = is_named(write, &pod, audience);
    if named == Ok(true) {
        return Ok(());
    }
    if let Err(why) = named {
        return write.forbid(format!("error validating audience {audience:?}: {why}"));
    }
    if is_allowed(write, audience) {
        return Ok(());
    }
    write.forbid(format!(
        "audience {audience:?} not found in pod spec volume, {} is not authorized to request tokens for this audience",
        write.call.user.name
    ))
}

/// True if a volume of the pod, or a CSI driver, declares the audience. The error names the unchecked volumes.
fn is_named(write: &Write<'_>, pod: &Value, audience: &str) -> Result<bool, String> {
    let mut problems = Vec::new();
    for volume in items(&pod["spec"]["volumes"]) {
        let mut sources = items(&volume["projected"]["sources"]);
        let projected = sources.any(|source| {
            let token = &source["serviceAccountToken"];
            token.is_object() && text(&token["audience"]) == audience
        });
        if projected {
            return Ok(true);
        }
        let served = match driver(write, pod, volume) {
            Ok(None) => Ok(false),
            Ok(Some(driver)) => serves(write, &driver, audience),
            Err(error) => Err(error.message),
        };
        match served {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(problem) => problems.push(problem),
        }
    }
    match problems.as_slice() {
        [] => Ok(false),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}

/// CSI driver of a volume.
fn driver(write: &Write<'_>, pod: &Value, volume: &Value) -> Result<Option<String>, ApiError> {
    let claim = match volume["persistentVolumeClaim"]["claimName"].as_str() {
        Some(claim) => claim.to_owned(),
        None if volume["ephemeral"].is_object() => {
            let (pod, volume) = (text(&pod["metadata"]["name"]), text(&volume["name"]));
            format!("{pod}-{volume}")
        }
        None => return Ok(volume["csi"]["driver"].as_str().map(str::to_owned)),
    };
    let namespace = &write.call.namespace;
    let claim = write.stored("persistentvolumeclaims", namespace, &claim)?;
    let name = text(&claim["spec"]["volumeName"]);
    let volume = write.stored("persistentvolumes", "", name)?;
    Ok(volume["spec"]["csi"]["driver"].as_str().map(str::to_owned))
}

fn serves(write: &Write<'_>, driver: &str, audience: &str) -> Result<bool, String> {
    let store = &write.call.core.store;
    let found = store.get("storage.k8s.io/csidrivers", driver);
    let found = found.ok_or_else(|| format!("csidriver.storage.k8s.io {driver:?} not found"))?;
    let found = found.value();
    let mut requests = items(&found["spec"]["tokenRequests"]);
    Ok(requests.any(|request| text(&request["audience"]) == audience))
}

/// True if the node may request tokens for an audience without a declaration in a pod.
fn is_allowed(write: &Write<'_>, audience: &str) -> bool {
    let wanted = Attributes {
        verb: "request-serviceaccounts-token-audience".to_owned(),
        resource: audience.to_owned(),
        namespace: write.call.namespace.clone(),
        name: write.call.name().to_owned(),
        ..Attributes::default()
    };
    rules::decide(&write.call.core, &write.call.user, &wanted).is_ok()
}
