use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

/// Wanted names. An existing name is marked after it has existed for a while.
#[derive(Clone, Debug, Default)]
struct Names {
    wanted: Vec<&'static str>,
    there: Vec<(&'static str, bool)>,
    flaw: Option<Flaw>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Flaw {
    /// The plan does not look at what is there.
    Blind,
    /// The plan deletes nothing.
    LeavesOver,
    /// After a cut, the plan creates nothing besides the remains of the first plan.
    GivesUp,
}

#[derive(Debug)]
enum Step {
    Create(&'static str),
    Delete(&'static str),
}

impl System for Names {
    type Step = Step;
    type State = Vec<(&'static str, bool)>;

    fn plan(&self) -> Vec<Step> {
        let is_there = |name: &str| self.there.iter().any(|(known, _)| *known == name);
        let gives_up = self.flaw == Some(Flaw::GivesUp) && is_there(self.wanted[0]);
        let missing = self
            .wanted
            .iter()
            .filter(|name| !is_there(name) && !gives_up);
        let surplus = self.there.iter().map(|(name, _)| *name);
        let surplus = surplus.filter(|name| !self.wanted.contains(name));
        match self.flaw {
            Some(Flaw::Blind) => self.wanted.iter().map(|name| Step::Create(name)).collect(),
            Some(Flaw::LeavesOver) => missing.map(|name| Step::Create(name)).collect(),
            _ => missing
                .map(|name| Step::Create(name))
                .chain(surplus.map(Step::Delete))
                .collect(),
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Create(name) => {
                assert!(!self.there.iter().any(|(known, _)| *known == name), "taken");
                self.there.push((name, false));
            }
            Step::Delete(name) => self.there.retain(|(known, _)| *known != name),
        }
    }

    fn pass(&mut self) -> bool {
        let fresh = self.there.iter_mut().find(|(_, marked)| !marked);
        fresh.map(|(_, marked)| *marked = true).is_some()
    }

    fn state(&self) -> Self::State {
        let mut all = self.there.clone();
        all.sort_unstable();
        all
    }
}

fn names(flaw: Option<Flaw>) -> Names {
    Names {
        wanted: vec!["a", "b", "c"],
        there: vec![("b", true), ("d", false)],
        flaw,
    }
}

fn fails(world: &Names) -> String {
    let failed = catch_unwind(AssertUnwindSafe(|| check(world)));
    let panic = failed.map(|end| end.state()).unwrap_err();
    let words = panic.downcast_ref::<String>().cloned();
    words.unwrap_or_else(|| (*panic.downcast_ref::<&str>().unwrap()).to_owned())
}

#[test]
fn a_plan_without_flaws_comes_to_the_same_end_from_each_cut() {
    let end = check(&names(None));
    assert_eq!(end.state(), [("a", true), ("b", true), ("c", true)]);
    assert!(end.plan().is_empty());
    let mut cut = names(None);
    assert_eq!(cut_off(&mut cut, 2), 2);
    assert_eq!(
        cut.state(),
        [("a", false), ("b", true), ("c", false), ("d", false)]
    );
}

#[test]
fn a_plan_with_a_flaw_fails() {
    assert!(fails(&names(Some(Flaw::Blind))).contains("taken"));
    assert!(fails(&names(Some(Flaw::GivesUp))).contains("cut off after 1 steps"));
    // The plans end, and the test sees the remains.
    let end = check(&names(Some(Flaw::LeavesOver)));
    assert_eq!(end.state().len(), 4);
}
