//! What two replicas have made at once for one request: each has looked, and created before it saw what the other did. The
//! younger one goes, before anybody answers with it.

use std::sync::Arc;

use openstack::volume::{Backup, GroupSnapshot, Snapshot, Volume, VolumeGroup};

use crate::time;

/// The seconds between two objects of one request.
const AT_ONCE: i64 = 300;

/// What can be there twice.
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

/// Those that are ours, the oldest first: each replica has them in the same order.
pub(super) fn in_order<T: Twin>(named: &[Arc<T>], is_ours: impl Fn(&T) -> bool) -> Vec<&T> {
    let mut ours: Vec<&T> = named.iter().map(|it| &**it).collect();
    ours.retain(|it| is_ours(it));
    ours.sort_by(|a, b| (a.created_at(), a.id()).cmp(&(b.created_at(), b.id())));
    ours
}

/// The first one that `is_same` as the oldest, and hardly younger.
pub(super) fn find<'a, T: Twin>(ours: &[&'a T], is_same: impl Fn(&T, &T) -> bool) -> Option<&'a T> {
    let (first, rest) = ours.split_first()?;
    let mut rest = rest.iter().copied();
    rest.find(|it| is_soon(first.created_at(), it.created_at()) && is_same(first, it))
}

/// True if two were made at most [`AT_ONCE`] apart; not so if either time cannot be read.
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
