use super::*;

fn machine(control_plane: bool) -> Machine {
    let mut machine = Machine::new("m", Default::default());
    if control_plane {
        let label = (api::names::CONTROL_PLANE_LABEL.to_owned(), String::new());
        machine.metadata.labels = Some([label].into());
    }
    machine
}

#[test]
fn a_node_is_emptied_only_when_somebody_is_left_to_gain_from_it() {
    let living = Cluster::new("demo", Default::default());
    let mut dying = living.clone();
    dying.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    let cases = [
        ("worker", machine(false), &living, false, 0, true),
        (
            "whole cluster goes",
            machine(false),
            &dying,
            false,
            3,
            false,
        ),
        ("control plane goes", machine(true), &living, true, 2, false),
        (
            "last control plane machine",
            machine(true),
            &living,
            false,
            0,
            false,
        ),
        ("one of several", machine(true), &living, false, 2, true),
    ];
    for (what, machine, cluster, goes, others, expected) in cases {
        assert_eq!(
            is_worth_it(&machine, cluster, goes, others),
            expected,
            "{what}"
        );
    }
}

#[test]
fn hooks_are_annotations_below_their_prefix() {
    let mut machine = machine(false);
    let set = |machine: &mut Machine, name: &str| {
        machine.metadata.annotations = Some([(name.to_owned(), String::new())].into());
    };
    assert_eq!(hooks(&machine, PRE_DRAIN), None);
    set(
        &mut machine,
        "pre-drain.delete.hook.machine.cluster.x-k8s.io/a",
    );
    assert!(hooks(&machine, PRE_DRAIN).unwrap().contains("x-k8s.io/a"));
    assert_eq!(hooks(&machine, PRE_TERMINATE), None);
    set(
        &mut machine,
        "pre-drain.delete.hook.machine.cluster.x-k8s.iox/a",
    );
    assert_eq!(hooks(&machine, PRE_DRAIN), None);
}

#[test]
fn a_node_is_not_looked_at_again_after_the_hooks_that_followed_its_drain() {
    let mut machine = machine(true);
    assert!(!was_emptied(&machine));
    times(&mut machine).node_drain_start_time = Some(Time(Timestamp::UNIX_EPOCH));
    assert!(!was_emptied(&machine), "there was no hook");
    times(&mut machine).wait_for_pre_terminate_hook_start_time = Some(Time(Timestamp::UNIX_EPOCH));
    assert!(was_emptied(&machine));
    let hook = format!("{PRE_TERMINATE}/kcp-cleanup");
    machine.metadata.annotations = Some([(hook, String::new())].into());
    assert!(!was_emptied(&machine), "the hook is still there");
}

#[test]
fn what_has_begun_keeps_its_time() {
    let at = |second| Timestamp::from_second(second).unwrap();
    let mut time = None;
    assert_eq!(began(&mut time, at(5)), at(5));
    assert_eq!(began(&mut time, at(9)), at(5));
    assert_eq!(poll(at(0), at(5)), POLL_FIRST);
    assert_eq!(poll(at(0), at(50)), POLL);
}
