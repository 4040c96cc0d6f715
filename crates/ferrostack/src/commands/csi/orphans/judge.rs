//! Judgement of resources: orphan or not, and deletable or not. Pure.

use std::time::Duration;

use csi::owner::{Owner, owner};
use k8s_openapi::jiff::Timestamp;
use k8s_openapi::jiff::civil::DateTime;
use k8s_openapi::jiff::tz::TimeZone;

use super::claimed::Claimed;
use super::thing::{Form, Thing};

/// Rules for the deletion.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// Name of the cluster.
    pub(crate) cluster: String,
    /// Minimum age.
    pub(crate) older_than: Duration,
    /// True if the name of the cluster suffices for a resource without a uid.
    pub(crate) without_uid: bool,
}

/// Judgement of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Resource of another cluster.
    Foreign,
    /// Resource named by an object.
    Held(String),
    /// Orphan kept for a reason.
    Kept(String),
    /// Deletable orphan.
    Orphan,
}

pub(crate) fn judge(thing: &Thing, claimed: &Claimed, rules: &Rules, now: Timestamp) -> Verdict {
    let owner = owner(&rules.cluster, &claimed.cluster_uid, &thing.metadata);
    if owner == Owner::Other || claimed.cluster_uid.is_empty() {
        return Verdict::Foreign;
    }
    if let Some(object) = claimed.holder(thing) {
        return Verdict::Held(object);
    }
    match reason(thing, rules, now) {
        Some(reason) => Verdict::Kept(reason),
        None if owner == Owner::Namesake && !rules.without_uid => Verdict::Kept(
            "another cluster may have the same name: it has no uid; if there is none, --without-uid"
                .to_owned(),
        ),
        None => Verdict::Orphan,
    }
}

/// Reason to keep a [`Thing`], for any owner.
fn reason(thing: &Thing, rules: &Rules, now: Timestamp) -> Option<String> {
    if let Some(used) = thing.used_by.first() {
        return Some(used.clone());
    }
    // Those in which Cinder lets a member delete.
    let deletable: &[&str] = match thing.form {
        Form::Volume => &[
            "available",
            "error",
            "error_restoring",
            "error_extending",
            "error_managing",
        ],
        Form::Snapshot | Form::Backup => &["available", "error"],
    };
    if !deletable.contains(&thing.status.as_str()) {
        return Some(format!("it is {}", thing.status));
    }
    match age(&thing.created_at, now) {
        None => Some("its age is not known".to_owned()),
        Some(age) if age < rules.older_than => Some("it is too young".to_owned()),
        Some(_) => None,
    }
}

/// Time since Cinder's `created_at`; `None` for an invalid time, or one in the future.
pub(crate) fn age(created_at: &str, now: Timestamp) -> Option<Duration> {
    let created = created(created_at)?;
    Duration::try_from(now.duration_since(created)).ok()
}

/// [`Timestamp`] of Cinder: UTC, without a zone.
pub(crate) fn created(text: &str) -> Option<Timestamp> {
    let text = text.trim_end_matches('Z').trim_end_matches("+00:00");
    let time: DateTime = text.parse().ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

#[cfg(test)]
mod tests;
