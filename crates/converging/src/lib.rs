//! For tests alone: the two properties of every plan.
//!
//! A plan that was applied and is planned again is empty. A plan that is cut off after any step and planned again leads
//! to the same end state, with nothing created twice and nothing left over.
//!
//! A test brings a [`System`]: a model of the API that the steps of a plan change, with the rules of the real one.

#![allow(clippy::panic)]

use std::fmt::Debug;

/// Limit on the number of plans, more than any test needs.
const MOST: usize = 1000;

/// State that a plan reads and its steps change.
pub trait System: Clone {
    /// Request of the controller.
    type Step: Debug;
    /// State for comparison at the end: everything in the world, without ids, times and other values that differ from
    /// run to run.
    type State: PartialEq + Debug;

    /// Returns the steps of a reconcile now, in order.
    fn plan(&self) -> Vec<Self::Step>;

    /// Executes a step of the last plan. Panics where the real API would reject it.
    fn take(&mut self, step: Self::Step);

    /// Continues work outside of the controller, for example pending changes. Returns true if anything changed.
    fn pass(&mut self) -> bool {
        false
    }

    /// Returns the state for comparison.
    fn state(&self) -> Self::State;
}

/// Plans and applies until no step remains and [`System::pass`] changes nothing. Returns the number of steps.
///
/// # Panics
/// The plans do not come to an end, or a step is rejected.
pub fn settle<W: System>(world: &mut W) -> usize {
    run(world, usize::MAX)
}

/// As [`settle`], but ends after this many steps. Returns the number of steps taken.
///
/// # Panics
/// As [`settle`].
pub fn cut_off<W: System>(world: &mut W, steps: usize) -> usize {
    run(world, steps)
}

/// Checks both properties from this state: with a cut after each step, and with a new plan for each step. Returns the
/// end state.
///
/// # Panics
/// A property does not hold.
pub fn check<W: System>(world: &W) -> W {
    let mut end = world.clone();
    let steps = settle(&mut end);
    (1..steps).for_each(|cut| check_cut(world, cut, &end));
    let mut again = world.clone();
    for _ in 0..MOST {
        if cut_off(&mut again, 1) == 0 {
            break;
        }
    }
    settle(&mut again);
    same(&again, &end, "planned again after each step");
    end
}

/// As [`check`] with a few cuts, for worlds with slow plans: each number of `cuts` selects one step.
///
/// # Panics
/// As [`check`].
pub fn check_at<W: System>(world: &W, cuts: &[usize]) -> W {
    let mut end = world.clone();
    let steps = settle(&mut end);
    for cut in cuts.iter().filter(|_| steps > 1) {
        check_cut(world, 1 + cut % (steps - 1), &end);
    }
    end
}

fn check_cut<W: System>(world: &W, cut: usize, end: &W) {
    // The controller is back before anything goes on, or after it.
    for later in [false, true] {
        let mut again = world.clone();
        cut_off(&mut again, cut);
        if later {
            again.pass();
        }
        settle(&mut again);
        same(&again, end, &format!("cut off after {cut} steps"));
    }
}

fn same<W: System>(found: &W, expected: &W, how: &str) {
    let (found, expected) = (found.state(), expected.state());
    assert!(
        found == expected,
        "{how}, the end is another one:\n{found:#?}\nwithout a cut:\n{expected:#?}"
    );
}

fn run<W: System>(world: &mut W, budget: usize) -> usize {
    let mut taken = 0;
    for _ in 0..MOST {
        let plan = world.plan();
        let is_empty = plan.is_empty();
        for step in plan {
            if taken == budget {
                return taken;
            }
            world.take(step);
            taken += 1;
        }
        if taken == budget {
            return taken;
        }
        if !world.pass() && is_empty {
            return taken;
        }
    }
    panic!(
        "no end after {MOST} plans; the next one: {:?}",
        world.plan()
    );
}

#[cfg(test)]
mod tests;
