//! Duplicates: two replicas of the driver may create an object for one request at the same moment, each before it sees
//! the object of the other. The younger duplicate is deleted before any call answers with it.

use std::sync::Arc;

use openstack::volume::{Backup, GroupSnapshot, Snapshot, Volume, VolumeGroup};

use crate::time;

/// Maximum age difference of duplicates, in seconds.
const AT_ONCE: i64 = 300;

/// Object that may have a duplicate.
pub(super) trait Twin {
    fn id(&self) -> &str;
    fn created_at(&self) -> &str;
}

macro_rules! twins {
    ($($type:ty),*) => {
        $(impl Twin for $type {
            fn id(&self) -> &str {
                &self.id
            }
            fn created_at(&self) -> &str {
                &self.created_at
            }
        })*
    };
}

twins!(Backup, GroupSnapshot, Snapshot, Volume, VolumeGroup);

/// Our objects, oldest first: the same order for each replica.
pub(super) fn in_order<T: Twin>(named: &[Arc<T>], is_ours: impl Fn(&T) -> bool) -> Vec<&T> {
    let mut ours: Vec<&T> = named.iter().map(|it| &**it).collect();
    ours.retain(|it| is_ours(it));
    ours.sort_by(|a, b| (a.created_at(), a.id()).cmp(&(b.created_at(), b.id())));
    ours
}

/// First object that `is_same` as the oldest, and at most [`AT_ONCE`] younger.
pub(super) fn find<'a, T: Twin>(ours: &[&'a T], is_same: impl Fn(&T, &T) -> bool) -> Option<&'a T> {
    let (first, rest) = ours.split_first()?;
    let mut rest = rest.iter().copied();
    rest.find(|it| is_soon(first.created_at(), it.created_at()) && is_same(first, it))
}

/// True if both times are at most [`AT_ONCE`] apart; false if one cannot be parsed.
pub(super) fn is_soon(one: &str, other: &str) -> bool {
    match (time::read(one), time::read(other)) {
        (Some(one), Some(other)) => one.seconds.abs_diff(other.seconds) <= AT_ONCE.unsigned_abs(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_double_is_the_younger_one_of_the_same_minutes() {
        let at = |id: &str, created_at: &str| {
            Arc::new(Snapshot {
                id: id.to_owned(),
                created_at: created_at.to_owned(),
                ..Snapshot::default()
            })
        };
        let (first, soon) = ("2026-11-28T12:00:00", "2026-11-28T12:05:00");
        for (named, expected) in [
            (vec![at("a", soon), at("b", first)], Some("a")),
            (vec![at("b", first), at("a", first)], Some("b")),
            (vec![at("a", first), at("b", "2026-11-28T12:05:01")], None),
            (vec![at("a", first), at("b", "")], None),
            (vec![at("a", first)], None),
            (Vec::new(), None),
        ] {
            let ours = in_order(&named, |_| true);
            let double = find(&ours, |_, _| true);
            assert_eq!(double.map(|it| it.id.as_str()), expected, "{named:?}");
            assert!(find(&ours, |_, _| false).is_none());
        }
    }
}
