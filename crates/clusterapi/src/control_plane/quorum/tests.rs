use proptest::prelude::*;

use super::{Members, quorum};

fn members(voters: usize, unhealthy: usize, learners: usize) -> Members {
    Members {
        voters,
        unhealthy,
        learners,
    }
}

#[test]
fn a_majority_is_needed() {
    for (voters, needed) in [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (7, 4)] {
        assert_eq!(quorum(voters), needed, "{voters}");
    }
}

#[test]
fn members_are_added_only_if_the_new_one_may_fail() {
    for (given, expected) in [
        (members(0, 0, 0), true),
        (members(1, 0, 0), true),
        (members(1, 1, 0), false),
        (members(2, 0, 0), true),
        (members(2, 1, 0), false),
        (members(3, 0, 0), true),
        (members(3, 1, 0), false),
        (members(5, 1, 0), true),
        (members(3, 0, 1), false),
        (members(1, 0, 1), false),
    ] {
        assert_eq!(given.can_add(), expected, "{given:?}");
    }
}

#[test]
fn members_are_removed_only_if_the_rest_has_a_quorum() {
    for (given, healthy, expected) in [
        (members(1, 0, 0), true, false),
        (members(2, 0, 0), true, true),
        (members(2, 1, 0), true, false),
        (members(2, 1, 0), false, true),
        (members(3, 0, 0), true, true),
        (members(3, 1, 0), true, false),
        (members(3, 1, 0), false, true),
        (members(3, 2, 0), false, false),
        (members(5, 1, 0), true, true),
        (members(3, 0, 1), true, false),
    ] {
        assert_eq!(given.can_remove(healthy), expected, "{given:?} {healthy}");
    }
}

proptest! {
    #[test]
    fn a_removal_that_is_allowed_leaves_a_quorum(voters in 0..9usize, ill in 0..9usize, healthy: bool) {
        let ill = ill.min(voters);
        // There must be a healthy or unhealthy member to remove.
        prop_assume!(if healthy { ill < voters } else { ill > 0 });
        let before = members(voters, ill, 0);
        if before.can_remove(healthy) {
            let after = members(voters - 1, ill - usize::from(!healthy), 0);
            prop_assert!(after.has_quorum());
        }
    }

    #[test]
    fn an_addition_that_is_allowed_survives_the_loss_of_the_new_member(voters in 2..9usize, ill in 0..9usize) {
        let ill = ill.min(voters);
        if members(voters, ill, 0).can_add() {
            prop_assert!(members(voters + 1, ill + 1, 0).has_quorum());
        }
    }
}
