//! A set comes to have its replicas, also when the controller is cut off between any two machines.

use std::collections::BTreeSet;

use converging::System;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

#[derive(Clone, Debug)]
struct Machines {
    wanted: i32,
    order: DeletionOrder,
    machines: Vec<Arc<Machine>>,
    next: i64,
}

#[derive(Debug)]
enum Step {
    Create,
    Delete(String),
}

impl System for Machines {
    type Step = Step;
    type State = BTreeSet<String>;

    fn plan(&self) -> Vec<Step> {
        match plan(self.wanted, self.order, &self.machines) {
            Scale::Keep => Vec::new(),
            Scale::Up(count) => (0..count).map(|_| Step::Create).collect(),
            Scale::Down(names) => names.into_iter().map(Step::Delete).collect(),
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Create => {
                self.next += 1;
                let new = machine_aged(&format!("new-{}", self.next), 1000 + self.next);
                self.machines.push(Arc::new(new));
                let wanted = usize::try_from(self.wanted).unwrap();
                assert!(self.machines.len() <= wanted, "more than the replicas");
            }
            Step::Delete(name) => {
                let mut machines = self.machines.iter_mut();
                let known = machines.find(|it| it.name_any() == name).unwrap();
                assert!(!known.is_deleting(), "deleted twice");
                Arc::make_mut(known).metadata.deletion_timestamp =
                    Some(Time(Timestamp::UNIX_EPOCH));
            }
        }
    }

    /// The oldest of the machines that are being deleted is gone.
    fn pass(&mut self) -> bool {
        let going = self.machines.iter().position(|it| it.is_deleting());
        going.map(|at| self.machines.remove(at)).is_some()
    }

    fn state(&self) -> BTreeSet<String> {
        self.machines.iter().map(|it| it.name_any()).collect()
    }
}

prop_compose! {
    fn any_machine()(created in 0..9_i64, state in select(vec!["", "", "", "marked", "sick", "without a Node", "deleting"])) -> Machine {
        let mut machine = machine_aged("m", created);
        match state {
            "marked" => {
                let mark = BTreeMap::from([(DELETE_MACHINE_ANNOTATION.to_owned(), String::new())]);
                machine.metadata.annotations = Some(mark);
            }
            "sick" => {
                let verdict = Verdict::new(Type::NodeHealthy, Status::False, Reason::NodeNotHealthy);
                let list = &mut machine.status.as_mut().unwrap().conditions;
                conditions::set(list, verdict, None, Timestamp::UNIX_EPOCH);
            }
            "without a Node" => machine.status.as_mut().unwrap().node_ref = None,
            "deleting" => machine.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH)),
            _ => {}
        }
        machine
    }
}

/// The replicas are there, and none was deleted before one that is to go first.
fn check_end(before: &Machines, end: &Machines) {
    assert_eq!(i32::try_from(end.machines.len()), Ok(end.wanted));
    assert!(end.machines.iter().all(|it| !it.is_deleting()));
    let there = end.state();
    let stayed = |it: &&Arc<Machine>| !it.is_deleting() && there.contains(&it.name_any());
    let left = |it: &&Arc<Machine>| !it.is_deleting() && !there.contains(&it.name_any());
    let most = before
        .machines
        .iter()
        .filter(stayed)
        .map(|it| eagerness(it))
        .max();
    let least = before
        .machines
        .iter()
        .filter(left)
        .map(|it| eagerness(it))
        .min();
    assert!(least.is_none_or(|least| most.is_none_or(|most| most <= least)));
}

proptest! {
    #[test]
    fn from_any_state_and_each_cut_a_set_comes_to_have_its_replicas(
        machines in proptest::collection::vec(any_machine(), 0..7),
        (wanted, later) in (0..7_i32, 0..7_i32),
        order in select(vec![DeletionOrder::Random, DeletionOrder::Newest, DeletionOrder::Oldest]),
    ) {
        let named = machines.into_iter().enumerate().map(|(at, mut machine)| {
            machine.metadata.name = Some(format!("old-{at}"));
            machine.metadata.uid = Some(format!("uid-{at}"));
            Arc::new(machine)
        });
        let machines = Machines { wanted, order, machines: named.collect(), next: 0 };
        let mut end = converging::check(&machines);
        check_end(&machines, &end);
        end.wanted = later;
        let before = end.clone();
        check_end(&before, &converging::check(&before));
    }
}
