use super::*;

const BOUNDS: Bounds = Bounds {
    replicas: 3,
    surge: 1,
    unavailable: 1,
};

fn machine(name: &str) -> Seen {
    Seen {
        name: name.to_owned(),
        is_old: true,
        is_available: true,
        ..Seen::default()
    }
}

fn three() -> Vec<Seen> {
    ["a", "b", "c"].map(machine).to_vec()
}

fn prefer(machines: &[Seen]) -> Step {
    step(Strategy::Prefer, BOUNDS, machines)
}

fn require(machines: &[Seen]) -> Step {
    step(Strategy::Require, BOUNDS, machines)
}

#[test]
fn machines_are_updated_one_after_the_other() {
    let mut machines = three();
    assert_eq!(prefer(&machines), Step::Begin("a".to_owned()));
    machines[0] = Seen {
        is_old: false,
        is_updating: true,
        is_available: false,
        ..machine("a")
    };
    assert_eq!(prefer(&machines), Step::Wait);
    machines[0].is_updating = false;
    assert_eq!(prefer(&machines), Step::Wait, "a is not available again");
    machines[0].is_available = true;
    assert_eq!(prefer(&machines), Step::Begin("b".to_owned()));
    for machine in &mut machines {
        machine.is_old = false;
    }
    assert_eq!(prefer(&machines), Step::Finished);
}

#[test]
fn a_machine_that_is_unavailable_anyway_comes_first_and_needs_no_room() {
    let mut machines = three();
    machines[2].is_available = false;
    assert_eq!(prefer(&machines), Step::Begin("c".to_owned()));
    machines[2].is_deleting = true;
    assert_eq!(prefer(&machines), Step::Wait);
}

#[test]
fn what_cannot_be_done_in_place_is_never_begun_under_require_and_replaced_under_prefer() {
    let mut machines = three();
    for machine in &mut machines {
        machine.obstacles = vec!["spec.flavor differs".to_owned()];
    }
    let reasons = vec!["a: spec.flavor differs".to_owned()];
    assert_eq!(require(&machines), Step::Refused(reasons.clone()));
    assert_eq!(prefer(&machines), Step::Roll(reasons.clone()));
    assert!(refusal(&reasons).contains("a: spec.flavor differs"));
    // One of several: the others are updated, and this one is replaced alone.
    machines[1].obstacles.clear();
    machines[2].obstacles.clear();
    assert_eq!(require(&machines), Step::Begin("b".to_owned()));
    assert_eq!(prefer(&machines), Step::Replace("a".to_owned(), reasons));
}

#[test]
fn without_unavailable_machines_nothing_is_done_in_place() {
    let bounds = Bounds {
        unavailable: 0,
        ..BOUNDS
    };
    let Step::Refused(reasons) = step(Strategy::Require, bounds, &three()) else {
        panic!("begun");
    };
    assert!(reasons[0].contains("maxUnavailable"), "{reasons:?}");
    let rolled = step(Strategy::Prefer, bounds, &three());
    assert!(matches!(rolled, Step::Roll(_)));
}

#[test]
fn a_failed_update_ends_in_a_replacement_under_prefer_and_stops_under_require() {
    let mut machines = three();
    machines[0] = Seen {
        is_old: false,
        is_updating: true,
        is_available: false,
        failure: Some("server x is in ERROR".to_owned()),
        ..machine("a")
    };
    let reasons = vec!["a: server x is in ERROR".to_owned()];
    assert_eq!(
        prefer(&machines),
        Step::Replace("a".to_owned(), reasons.clone())
    );
    assert_eq!(require(&machines), Step::Refused(reasons));
}
