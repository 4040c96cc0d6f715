//! Lost passwords and keys of a cloud. New ones would lock the services out, so none are made.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::{ACCOUNTS, GENERATED, UID};
use crate::object::Password;

/// Passwords that cannot be set anew: their store took the passwords when empty.
const FINAL: [&str; 2] = ["identity-admin", "messaging-admin"];

/// True if the cloud of this uid has volumes: Secrets are made before volumes.
pub(super) fn has_data(objects: &[Json], uid: &str) -> bool {
    let mut objects = objects.iter();
    objects.any(|it| {
        it["kind"] == "PersistentVolumeClaim" && it["metadata"]["labels"][UID].as_str() == Some(uid)
    })
}

/// True if a Secret of this name exists, of any owner.
pub(super) fn is_there(objects: &[Json], name: &str) -> bool {
    let mut objects = objects.iter();
    objects.any(|it| it["kind"] == "Secret" && it["metadata"]["name"] == name)
}

/// Message for a Secret that was deleted although the cloud needs its content.
pub(super) fn whole(name: &str) -> String {
    format!(
        "Secret {name}, which was made for this cloud, is gone: restore it from a backup, or delete the cloud with its data"
    )
}

/// Generated keys of a Secret, missing or empty. A Secret without the annotation [`GENERATED`] once had all keys.
pub(super) fn keys(
    name: &str,
    keys: &[&str],
    secret: &Json,
    values: &BTreeMap<String, Password>,
) -> Vec<String> {
    let listed = secret["metadata"]["annotations"][GENERATED].as_str();
    let was_generated = |key: &str| listed.is_none_or(|all| all.split(',').any(|it| it == key));
    let is_lost = |key: &str| values.get(key).is_none_or(|it| it.expose().is_empty());
    let lost = keys.iter().filter(|key| was_generated(key) && is_lost(key));
    lost.map(|key| {
        let otherwise = match name == ACCOUNTS && !FINAL.contains(key) {
            true => "set another one there, which is passed on",
            false => "delete the cloud with its data",
        };
        format!("Secret {name} has lost its key {key}: restore it from a backup, or {otherwise}")
    })
    .collect()
}
