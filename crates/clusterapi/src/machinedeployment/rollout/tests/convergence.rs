//! A rollout comes to an end from any state within its bounds, also when the controller is cut off between the changes of two
//! MachineSets.

use converging::System;

use super::*;

/// MachineSet of the current template, former ones, oldest first, and their machines.
#[derive(Clone, Debug, PartialEq)]
struct Rollout {
    bounds: Bounds,
    is_rolling: bool,
    new: Set,
    old: Vec<Set>,
    /// Maximum number of desired machines, and minimum number of available ones.
    ceiling: i32,
    floor: i32,
}

impl Rollout {
    fn sum(&self, of: fn(&Set) -> i32) -> i32 {
        of(&self.new) + self.old.iter().map(of).sum::<i32>()
    }
}

impl System for Rollout {
    type Step = (String, i32);
    type State = Self;

    /// Changes in the order of `apply`: former sets first.
    fn plan(&self) -> Vec<Self::Step> {
        let steps = match self.is_rolling {
            true => step(self.bounds, &self.new, &self.old),
            false => on_delete(self.bounds, &self.new, &self.old),
        };
        let sets = self.old.iter().chain([&self.new]);
        let changed = sets.filter_map(|set| Some((set.name.clone(), *steps.get(&set.name)?)));
        changed.collect()
    }

    fn take(&mut self, (name, wanted): Self::Step) {
        for set in self.old.iter_mut().chain([&mut self.new]) {
            if set.name == name {
                assert_ne!(set.wanted, wanted, "written twice");
                set.wanted = wanted;
            }
        }
        assert!(self.sum(|set| set.wanted) <= self.ceiling, "too many");
        assert!(
            !self.is_rolling || self.sum(Set::staying) >= self.floor,
            "too few"
        );
    }

    /// One machine of each set comes, becomes available, or goes. With OnDelete, former sets create none.
    fn pass(&mut self) -> bool {
        let before = self.clone();
        for (at, set) in [&mut self.new].into_iter().chain(&mut self.old).enumerate() {
            if set.there > set.wanted {
                set.there -= 1;
                set.available = set.available.min(set.there);
            } else if set.there < set.wanted && (self.is_rolling || at == 0) {
                set.there += 1;
            } else if set.available < set.there {
                set.available += 1;
            }
        }
        *self != before
    }

    fn state(&self) -> Self {
        self.clone()
    }
}

/// Desired, existing and available machines of a set.
fn numbers() -> impl Strategy<Value = (i32, i32, i32)> {
    (0..5_i32, 0..5_i32, 0..5_i32)
        .prop_map(|(wanted, there, available)| (wanted, there, available.min(there)))
}

prop_compose! {
    fn rollout()(
        (replicas, surge, unavailable) in (0..8_i32, 0..4_i32, 0..4_i32),
        is_rolling in any::<bool>(),
        new in numbers(),
        old in proptest::collection::vec(numbers(), 0..3),
    ) -> Rollout {
        let of = |name: String, (wanted, there, available): (i32, i32, i32)| set(&name, wanted, there, available);
        let old = old.into_iter().enumerate().map(|(at, it)| of(format!("o{at}"), it));
        let unavailable = if surge == 0 { unavailable.max(1) } else { unavailable };
        let bounds = allow(replicas, surge, unavailable.min(replicas));
        let (new, old) = (of("n".to_owned(), new), old.collect());
        bounded(Rollout { bounds, is_rolling, new, old, ceiling: 0, floor: 0 })
    }
}

fn bounded(mut rollout: Rollout) -> Rollout {
    let bounds = rollout.bounds;
    let there = rollout.sum(|set| set.wanted.max(set.there));
    rollout.ceiling = (bounds.replicas + bounds.surge).max(there);
    rollout.floor = (bounds.replicas - bounds.unavailable).min(rollout.sum(Set::staying));
    rollout
}

fn check_end(end: &Rollout) {
    assert_eq!(end.sum(|set| set.wanted), end.bounds.replicas, "{end:?}");
    assert_eq!(end.sum(|set| set.available), end.bounds.replicas, "{end:?}");
    assert!(!end.is_rolling || end.old.iter().all(|set| set.wanted == 0 && set.there == 0));
}

proptest! {
    #[test]
    fn from_any_state_and_each_cut_a_rollout_comes_to_its_end(rollout in rollout(), replicas in 0..8_i32) {
        let mut end = converging::check(&rollout);
        check_end(&end);
        // Another template and another number.
        let former = std::mem::replace(&mut end.new, set("n2", 0, 0, 0));
        end.old.push(former);
        end.bounds.replicas = replicas;
        end.bounds.unavailable = end.bounds.unavailable.min(replicas);
        if end.bounds.surge == 0 && end.bounds.unavailable == 0 {
            end.bounds.surge = 1;
        }
        check_end(&converging::check(&bounded(end)));
    }
}
