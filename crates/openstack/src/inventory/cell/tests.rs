use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::super::What;
use super::{Cell, Difference};
use crate::network::Port;

fn port(id: &str, name: &str) -> Port {
    Port {
        id: id.into(),
        name: name.into(),
        ..Port::default()
    }
}

fn apply(cell: &Cell<Port>, mark: u64, items: Vec<Port>, known: bool) -> Vec<Difference<Port>> {
    let items = items.into_iter().map(Arc::new).collect();
    cell.apply(mark, items, known)
}

fn names(cell: &Cell<Port>) -> Vec<(String, String)> {
    cell.snapshot()
        .iter()
        .map(|port| (port.id.clone(), port.name.clone()))
        .collect()
}

fn one(id: &str, name: &str) -> Vec<(String, String)> {
    vec![(id.into(), name.into())]
}

#[test]
fn a_list_that_began_before_a_write_does_not_undo_it() {
    let cell = Cell::default();
    let mark = cell.begin();
    cell.fold(port("a", "new"));
    assert!(apply(&cell, mark, vec![], true).is_empty());
    assert_eq!(names(&cell), one("a", "new"));
    assert!(apply(&cell, mark, vec![port("a", "old")], true).is_empty());
    assert_eq!(names(&cell), one("a", "new"));
    let changes = apply(&cell, cell.begin(), vec![port("a", "seen")], true);
    assert_eq!(changes[0].0, ("a".into(), What::Changed));
    assert_eq!(names(&cell), one("a", "seen"));
}

#[test]
fn a_list_that_began_before_a_deletion_does_not_bring_the_object_back() {
    let cell = Cell::default();
    apply(&cell, cell.begin(), vec![port("a", "x")], false);
    let mark = cell.begin();
    cell.fold_gone("a");
    assert!(apply(&cell, mark, vec![port("a", "x")], true).is_empty());
    assert!(names(&cell).is_empty());
    let changes = apply(&cell, cell.begin(), vec![port("a", "x")], true);
    assert_eq!(
        changes[0].0,
        ("a".into(), What::Appeared),
        "the cloud has the last word"
    );
}

#[test]
fn a_change_of_a_known_object_counts_as_a_write() {
    let cell = Cell::default();
    apply(&cell, cell.begin(), vec![port("a", "x")], false);
    let mark = cell.begin();
    let before = cell.snapshot();
    assert!(
        cell.fold_with("a", |port| port.status = "BUILD".into()),
        "pending now"
    );
    assert!(!cell.fold_with("b", |_| ()), "unknown");
    apply(&cell, mark, vec![port("a", "x")], true);
    assert_eq!(cell.snapshot().get("a").unwrap().status, "BUILD");
    assert_eq!(
        before.get("a").unwrap().status,
        "",
        "snapshots do not change"
    );
}

#[test]
fn later_lists_send_changes_and_the_first_one_does_not() {
    let cell = Cell::default();
    assert!(
        apply(
            &cell,
            cell.begin(),
            vec![port("a", "x"), port("b", "x")],
            false
        )
        .is_empty()
    );
    let list = vec![port("b", "y"), port("c", "x"), port("c", "twice")];
    let changes = apply(&cell, cell.begin(), list, true);
    let what: BTreeMap<_, _> = changes.into_iter().map(|(change, _)| change).collect();
    let expected = [
        ("a", What::Gone),
        ("b", What::Changed),
        ("c", What::Appeared),
    ];
    assert_eq!(
        what,
        expected.map(|(id, what)| (id.to_owned(), what)).into()
    );
}

#[test]
fn another_order_of_a_list_is_not_a_change() {
    let cell = Cell::default();
    let with = |groups: [&str; 2]| Port {
        id: "a".into(),
        security_groups: groups.map(str::to_owned).into(),
        ..Port::default()
    };
    cell.fold(with(["y", "x"]));
    assert!(apply(&cell, cell.begin(), vec![with(["x", "y"])], true).is_empty());
    assert!(apply(&cell, cell.begin(), vec![with(["y", "x"])], true).is_empty());
}

/// Events in a cloud with three possible ports.
#[derive(Clone, Debug)]
enum Step {
    /// We create or change a port.
    Write(usize, u8),
    /// We delete one.
    Delete(usize),
    /// Somebody else creates, changes or deletes one.
    Foreign(usize, Option<u8>),
    /// A list begins, and the cloud computes its answer.
    Begin,
    /// The answer of the list arrives.
    Finish,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..3usize, any::<u8>()).prop_map(|(id, value)| Step::Write(id, value)),
        (0..3usize).prop_map(Step::Delete),
        (0..3usize, any::<Option<u8>>()).prop_map(|(id, value)| Step::Foreign(id, value)),
        Just(Step::Begin),
        Just(Step::Finish),
    ]
}

proptest! {
    /// In any order of events: our last write of an object is visible until a later list contradicts it, and a final
    /// list equals the state of the cloud.
    #[test]
    fn own_writes_are_visible_and_a_final_list_is_exact(steps in proptest::collection::vec(step(), 0..40)) {
        let cell = Cell::<Port>::default();
        let mut cloud: BTreeMap<String, Port> = BTreeMap::new();
        // Our last write of each port, until a later list has arrived.
        let mut written: BTreeMap<String, (Option<Port>, bool)> = BTreeMap::new();
        let mut list: Option<(u64, Vec<Port>)> = None;
        let make = |id: usize, value: u8| port(&id.to_string(), &value.to_string());
        for step in steps {
            match step {
                Step::Write(id, value) => {
                    let port = make(id, value);
                    cloud.insert(port.id.clone(), port.clone());
                    written.insert(port.id.clone(), (Some(port.clone()), false));
                    cell.fold(port);
                }
                Step::Delete(id) => {
                    cloud.remove(&id.to_string());
                    written.insert(id.to_string(), (None, false));
                    cell.fold_gone(&id.to_string());
                }
                Step::Foreign(id, Some(value)) => {
                    cloud.insert(id.to_string(), make(id, value));
                }
                Step::Foreign(id, None) => {
                    cloud.remove(&id.to_string());
                }
                Step::Begin => {
                    let mark = cell.begin();
                    list = Some((mark, cloud.values().cloned().collect()));
                    written.values_mut().for_each(|(_, listed)| *listed = true);
                }
                Step::Finish => {
                    if let Some((mark, items)) = list.take() {
                        apply(&cell, mark, items, true);
                        written.retain(|_, (_, listed)| !*listed);
                    }
                }
            }
            let table = cell.snapshot();
            for (id, (port, _)) in &written {
                prop_assert_eq!(table.get(id).map(|port| &**port), port.as_ref());
            }
        }
        apply(&cell, cell.begin(), cloud.values().cloned().collect(), true);
        let known: Vec<_> = cell.snapshot().iter().map(|port| Port::clone(port)).collect();
        prop_assert_eq!(known, cloud.into_values().collect::<Vec<_>>());
    }
}
