mod convergence;

use proptest::prelude::*;

use super::*;

fn set(name: &str, wanted: i32, there: i32, available: i32) -> Set {
    Set {
        name: name.to_owned(),
        wanted,
        there,
        available,
    }
}

const fn allow(replicas: i32, surge: i32, unavailable: i32) -> Bounds {
    Bounds {
        replicas,
        surge,
        unavailable,
    }
}

#[test]
fn percentages_of_surge_round_up_and_of_unavailable_down() {
    let percent = |text: &str| IntOrString::String(text.to_owned());
    assert_eq!(scaled(&percent("25%"), 3, true), 1);
    assert_eq!(scaled(&percent("25%"), 3, false), 0);
    assert_eq!(scaled(&percent("100%"), 3, true), 3);
    assert_eq!(scaled(&IntOrString::Int(2), 3, true), 2);
    assert_eq!(scaled(&percent("nonsense"), 3, true), 0);
}

#[test]
fn one_step_of_a_rolling_update() {
    let cases = [
        // A new deployment creates all its machines at once.
        (allow(3, 1, 0), set("n", 0, 0, 0), vec![], vec![("n", 3)]),
        // A rollout starts with one more machine.
        (
            allow(3, 1, 0),
            set("n", 0, 0, 0),
            vec![set("o", 3, 3, 3)],
            vec![("n", 1)],
        ),
        // The new machine is not available yet: wait.
        (
            allow(3, 1, 0),
            set("n", 1, 1, 0),
            vec![set("o", 3, 3, 3)],
            vec![],
        ),
        // The new machine is available: one old machine is deleted.
        (
            allow(3, 1, 0),
            set("n", 1, 1, 1),
            vec![set("o", 3, 3, 3)],
            vec![("o", 2)],
        ),
        // The old machine is not gone yet: no other new one is created.
        (
            allow(3, 1, 0),
            set("n", 1, 1, 1),
            vec![set("o", 2, 3, 3)],
            vec![],
        ),
        (
            allow(3, 1, 0),
            set("n", 1, 1, 1),
            vec![set("o", 2, 2, 2)],
            vec![("n", 2)],
        ),
        // Without surge, an old machine is deleted first.
        (
            allow(3, 0, 1),
            set("n", 0, 0, 0),
            vec![set("o", 3, 3, 3)],
            vec![("o", 2)],
        ),
        // Unavailable old machines are deleted before available ones, independent of their age.
        (
            allow(3, 1, 0),
            set("n", 0, 0, 0),
            vec![set("o", 3, 3, 3), set("p", 1, 1, 0)],
            vec![("p", 0)],
        ),
        // A machine being deleted, although still available, does not let an old one go.
        (
            allow(3, 0, 2),
            set("n", 0, 1, 1),
            vec![set("o", 1, 1, 1)],
            vec![("n", 1)],
        ),
        // Scaling down without a rollout.
        (allow(2, 1, 0), set("n", 5, 5, 5), vec![], vec![("n", 2)]),
        (
            allow(0, 1, 0),
            set("n", 3, 3, 3),
            vec![set("o", 1, 1, 1)],
            vec![("n", 0), ("o", 0)],
        ),
    ];
    for (bounds, new, old, expected) in cases {
        let expected: BTreeMap<_, _> = expected
            .into_iter()
            .map(|(name, wanted)| (name.to_owned(), wanted))
            .collect();
        assert_eq!(
            step(bounds, &new, &old),
            expected,
            "{bounds:?} {new:?} {old:?}"
        );
    }
}

#[test]
fn on_delete_takes_fewer_replicas_from_the_old_sets_and_replaces_what_was_deleted() {
    let cases = [
        // Nothing was deleted, and nothing is replaced.
        (2, set("n", 0, 0, 0), vec![set("o", 2, 2, 2)], vec![]),
        // A machine was deleted: the new set replaces it.
        (
            2,
            set("n", 0, 0, 0),
            vec![set("o", 2, 1, 1)],
            vec![("n", 1), ("o", 1)],
        ),
        // Fewer replicas: the new set keeps its machine.
        (
            2,
            set("n", 1, 1, 1),
            vec![set("o", 2, 2, 2)],
            vec![("o", 1)],
        ),
        // The oldest set loses its machines first.
        (
            2,
            set("n", 0, 0, 0),
            vec![set("o", 2, 2, 2), set("p", 1, 1, 1)],
            vec![("o", 1)],
        ),
        // Fewer than the new set has.
        (
            1,
            set("n", 2, 2, 2),
            vec![set("o", 1, 1, 1)],
            vec![("n", 1), ("o", 0)],
        ),
        // More replicas are of the new template.
        (
            4,
            set("n", 1, 1, 1),
            vec![set("o", 2, 2, 2)],
            vec![("n", 2)],
        ),
    ];
    for (replicas, new, old, expected) in cases {
        let expected: BTreeMap<_, _> = expected
            .into_iter()
            .map(|(name, wanted)| (name.to_owned(), wanted))
            .collect();
        let steps = on_delete(allow(replicas, 0, 0), &new, &old);
        assert_eq!(steps, expected, "{replicas} {new:?} {old:?}");
    }
}

/// Machines appear, become available and disappear, each in its own time.
fn live(sets: &mut [Set], pace: &[bool]) {
    for (at, set) in sets.iter_mut().enumerate() {
        let go = pace.get(at).copied().unwrap_or(true);
        if set.there > set.wanted && go {
            set.there -= 1;
            set.available = set.available.min(set.there);
        } else if set.there < set.wanted {
            set.there += 1;
        } else if set.available < set.wanted && go {
            set.available += 1;
        }
    }
}

proptest! {
    #[test]
    fn a_rolling_update_keeps_its_bounds_and_comes_to_an_end(
        replicas in 0..8_i32, surge in 0..4_i32, unavailable in 0..4_i32,
        olds in proptest::collection::vec((0..5_i32, 0..5_i32), 0..3),
        paces in proptest::collection::vec(proptest::collection::vec(any::<bool>(), 4), 40),
    ) {
        let unavailable = if surge == 0 { unavailable.max(1) } else { unavailable };
        let bounds = allow(replicas, surge, unavailable.min(replicas));
        let mut sets = vec![set("n", 0, 0, 0)];
        sets.extend(olds.iter().enumerate().map(|(at, (there, available))| {
            set(&format!("o{at}"), *there, *there, (*available).min(*there))
        }));
        let sum = |sets: &[Set], of: fn(&Set) -> i32| sets.iter().map(of).sum::<i32>();
        let ceiling = (replicas + surge).max(sum(&sets, |set| set.there));
        let floor = (replicas - bounds.unavailable).min(sum(&sets, Set::staying));
        let mut quiet = 0;
        for round in 0..400 {
            let changes = step(bounds, &sets[0], &sets[1..]);
            quiet = if changes.is_empty() { quiet + 1 } else { 0 };
            for set in &mut sets {
                if let Some(wanted) = changes.get(&set.name) {
                    set.wanted = *wanted;
                }
            }
            prop_assert!(sum(&sets, |set| set.wanted) <= ceiling);
            prop_assert!(sum(&sets, Set::staying) >= floor);
            live(&mut sets, paces.get(round).map_or(&[][..], Vec::as_slice));
        }
        prop_assert!(quiet > 0);
        prop_assert_eq!(sets[0].wanted, replicas);
        prop_assert!(sets[1..].iter().all(|set| set.wanted == 0));
    }
}
