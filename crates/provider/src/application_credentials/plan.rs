//! Credentials of a program that are recorded, and those in Keystone, compared: the next step.
//!
//! A credential is created after its record, and recorded as usable after a login with it. It is revoked by its id if its
//! description has the mark of the cluster and it is not in the record, or if it is in the record and another one is in
//! use.

use api::k8s_openapi::jiff::{SignedDuration, Timestamp};
use openstack::identity::ApplicationCredential;

use super::record::{Entry, Owner, current};

/// Time that a former credential stays after its successor is in the workload cluster: kubelets bring a changed Secret
/// to their Pods within two minutes.
const GRACE: SignedDuration = SignedDuration::from_mins(10);

/// State of the cloud and of the world for a plan.
#[derive(Clone, Debug)]
pub(super) struct Seen<'a> {
    pub(super) now: Timestamp,
    /// End of the description of each credential of the program for this cluster.
    pub(super) mark: &'a str,
    pub(super) owner: Owner<'a>,
    /// True if the program shall have a credential.
    pub(super) is_wanted: bool,
    /// Name of the credential in the workload cluster, and since when.
    pub(super) in_use: Option<(&'a str, Timestamp)>,
}

/// The next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Record a new credential.
    Add,
    /// Create the recorded credential with this index.
    Create(usize),
    /// Try the created credential with this index, and record its id.
    Try(usize, String),
    /// Remove the credential with this index from the record.
    Forget(usize),
    /// Revoke the credential with this id.
    Revoke(String),
}

/// The next step for `entries`, with the credentials of the user in Keystone; `None` at the end.
pub(super) fn next(
    entries: &[Entry],
    existing: &[ApplicationCredential],
    seen: &Seen<'_>,
) -> Option<Step> {
    let stray = stray(entries, existing, seen.mark);
    stray
        .or_else(|| pending(entries, existing, seen))
        .or_else(|| vanished(entries, existing, seen))
        .or_else(|| match seen.is_wanted {
            true => rotated(entries, seen),
            false => revoked(entries.iter(), &seen.owner),
        })
}

/// A marked credential whose secret nobody has.
fn stray(entries: &[Entry], existing: &[ApplicationCredential], mark: &str) -> Option<Step> {
    let is_stray = |it: &&ApplicationCredential| {
        it.description.ends_with(mark) && !entries.iter().any(|entry| entry.name == it.name)
    };
    let found = existing.iter().find(is_stray)?;
    Some(Step::Revoke(found.id.clone()))
}

/// A recorded credential that is not known to be usable.
fn pending(entries: &[Entry], existing: &[ApplicationCredential], seen: &Seen<'_>) -> Option<Step> {
    let (at, entry) = entries.iter().enumerate().find(|(_, it)| it.id.is_none())?;
    let is_it =
        |it: &&ApplicationCredential| it.name == entry.name && it.description.ends_with(seen.mark);
    let found = existing.iter().find(is_it);
    let is_useless = !seen.is_wanted || seen.now >= entry.rotation() || differs(entry, &seen.owner);
    Some(match (found, is_useless) {
        (Some(found), true) => Step::Revoke(found.id.clone()),
        (None, true) => Step::Forget(at),
        (Some(found), false) => Step::Try(at, found.id.clone()),
        (None, false) => Step::Create(at),
    })
}

fn differs(entry: &Entry, owner: &Owner<'_>) -> bool {
    !entry.is_of(owner) || entry.rules != owner.rules
}

/// A recorded credential that is gone, or that another user had until it expired.
fn vanished(
    entries: &[Entry],
    existing: &[ApplicationCredential],
    seen: &Seen<'_>,
) -> Option<Step> {
    let is_gone = |entry: &Entry| match entry.user == seen.owner.user {
        true => {
            let id = entry.id.as_deref();
            !existing.iter().any(|it| Some(it.id.as_str()) == id)
        }
        false => entry.is_over(seen.now),
    };
    entries.iter().position(is_gone).map(Step::Forget)
}

/// The first of these credentials that the user can revoke.
fn revoked<'a>(mut entries: impl Iterator<Item = &'a Entry>, owner: &Owner<'_>) -> Option<Step> {
    let found = entries.find(|entry| entry.user == owner.user)?;
    found.id.clone().map(Step::Revoke)
}

/// A new credential in time, and the end of former ones.
fn rotated(entries: &[Entry], seen: &Seen<'_>) -> Option<Step> {
    let is_kept = |it: &Entry| !differs(it, &seen.owner) && seen.now < it.rotation();
    let Some(current) = current(entries, seen.now).filter(|it| is_kept(it)) else {
        return Some(Step::Add);
    };
    let end = seen.in_use.filter(|(name, _)| *name == current.name);
    let is_replaced = end.is_some_and(|(_, since)| seen.now >= graced(since));
    let former = entries
        .iter()
        .filter(|it| it.name != current.name && (is_replaced || it.is_over(seen.now)));
    revoked(former, &seen.owner)
}

fn graced(since: Timestamp) -> Timestamp {
    since.saturating_add(GRACE).unwrap_or(since)
}

/// Time of the next step without a change in Keystone; `None` for never.
pub(super) fn due(entries: &[Entry], seen: &Seen<'_>) -> Option<Timestamp> {
    let now = seen.now;
    if entries.iter().any(|it| it.id.is_none()) {
        return Some(now);
    }
    let over = |it: &Entry| it.expires_at.max(now);
    if !seen.is_wanted {
        let of_user = entries.iter().any(|it| it.user == seen.owner.user);
        return match of_user {
            true => Some(now),
            false => entries.iter().map(over).min(),
        };
    }
    let Some(current) = current(entries, now).filter(|it| !differs(it, &seen.owner)) else {
        return Some(now);
    };
    let in_use = seen.in_use.filter(|(name, _)| *name == current.name);
    let former = entries.iter().filter(|it| it.name != current.name);
    let ends = former.map(|it| match in_use.filter(|_| it.user == seen.owner.user) {
        Some((_, since)) => over(it).min(graced(since).max(now)),
        None => over(it),
    });
    ends.chain([current.rotation().max(now)]).min()
}

#[cfg(test)]
mod tests;
