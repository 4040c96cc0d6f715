use proptest::prelude::*;

use super::*;

fn share(name: &str, wanted: i32, desired: i32, surge: i32) -> Share {
    Share {
        name: name.to_owned(),
        wanted,
        desired: Some(desired),
        most: Some(desired + surge),
    }
}

fn bounds(replicas: i32, surge: i32) -> Bounds {
    Bounds {
        replicas,
        surge,
        unavailable: 0,
    }
}

fn changes(bounds: Bounds, sets: &[Share]) -> Vec<(String, i32)> {
    spread(bounds, sets).into_iter().collect()
}

fn named(changes: &[(&str, i32)]) -> Vec<(String, i32)> {
    let owned = changes
        .iter()
        .map(|(name, wanted)| ((*name).to_owned(), *wanted));
    owned.collect()
}

#[test]
fn a_set_that_is_alone_is_scaled_itself() {
    let alone = [share("new", 0, 3, 1), share("old", 3, 3, 1)];
    assert_eq!(changes(bounds(5, 1), &alone), named(&[("old", 5)]));
    assert_eq!(changes(bounds(3, 1), &alone), []);
    let empty = [share("new", 0, 0, 1), share("old", 0, 0, 1)];
    assert_eq!(changes(bounds(2, 1), &empty), named(&[("new", 2)]));
    assert_eq!(changes(bounds(2, 1), &[]), []);
}

#[test]
fn several_sets_keep_their_proportion() {
    // 10 replicas with a surge of 1: 4 new, 7 old.
    let sets = [share("new", 4, 10, 1), share("old", 7, 10, 1)];
    assert_eq!(changes(bounds(10, 1), &sets), [], "not scaled");
    assert_eq!(
        changes(bounds(21, 1), &sets),
        named(&[("new", 8), ("old", 14)])
    );
    assert_eq!(
        changes(bounds(0, 1), &sets),
        named(&[("new", 0), ("old", 0)])
    );
    // Of two sets with equal size, the newer gets the additional machine, and the older loses one.
    let even = [share("new", 3, 5, 1), share("old", 3, 5, 1)];
    assert_eq!(changes(bounds(6, 1), &even), named(&[("new", 4)]));
    assert_eq!(changes(bounds(4, 1), &even), named(&[("old", 2)]));
}

proptest! {
    #[test]
    fn all_machines_are_given_out_and_none_twice(
        sizes in proptest::collection::vec(1..20i32, 2..5),
        replicas in 0..60i32,
        surge in 0..4i32,
    ) {
        let total: i32 = sizes.iter().sum();
        let sets: Vec<Share> = sizes.iter().enumerate()
            .map(|(n, wanted)| share(&format!("set{n}"), *wanted, total - surge.min(total), surge)).collect();
        prop_assume!(replicas != total - surge.min(total));
        let changed = spread(bounds(replicas, surge), &sets);
        let after: i32 = sets.iter().map(|set| changed.get(&set.name).copied().unwrap_or(set.wanted)).sum();
        prop_assert_eq!(after, if replicas == 0 { 0 } else { replicas + surge });
        prop_assert!(changed.values().all(|wanted| *wanted >= 0));
    }
}
