use tempfile::tempdir;

use super::*;

fn place(name: &str) -> MemberHost {
    MemberHost {
        machine: format!("{name}-id"),
        name: name.to_owned(),
        host: format!("10.6.0.{}", name.len()),
    }
}

/// Cluster of running members, with the tokens that power off their machines.
fn cluster<const N: usize>(names: [&str; N]) -> (Etcd, [CancellationToken; N]) {
    let etcd = Etcd::open(None).unwrap();
    let machines = names.map(|name| {
        let power = CancellationToken::new();
        join(&etcd, name, &power).unwrap();
        power
    });
    (etcd, machines)
}

fn join(etcd: &Etcd, name: &str, power: &CancellationToken) -> Result<(), String> {
    let place = place(name);
    if etcd.members().is_empty() {
        etcd.found(&place);
        return etcd.run(&place.machine, power).map(drop);
    }
    etcd.check()?;
    let words = |status: Status| status.message;
    etcd.add_learner(&place).map_err(words)?;
    etcd.run(&place.machine, power)?;
    etcd.start(&place);
    etcd.promote(&place.machine).map_err(words)
}

fn names(etcd: &Etcd) -> Vec<String> {
    etcd.members().into_iter().map(|it| it.name).collect()
}

fn leader(etcd: &Etcd) -> Option<String> {
    let leader = etcd.members().into_iter().find(|member| member.leads);
    leader.map(|member| member.name)
}

fn remove(etcd: &Etcd, name: &str, asked: &str) -> Result<(), String> {
    let removed = etcd.change(|state| {
        let of = |name: &str| state.of(&place(name).machine).map_or(0, |it| it.id);
        let (id, asked) = (of(name), of(asked));
        state.remove(id, asked)
    });
    removed.map_err(|status| status.message)
}

#[test]
fn a_member_outlives_its_machine_and_stands_in_the_way_of_the_next() {
    let (etcd, [_a, _bb, ccc]) = cluster(["a", "bb", "ccc"]);
    ccc.cancel();
    assert_eq!(names(&etcd), ["a", "bb", "ccc"]);
    etcd.takes_writes().unwrap();
    let power = CancellationToken::new();
    let refused = join(&etcd, "dddd", &power).unwrap_err();
    let words = "etcd cluster is not healthy: failed to dial endpoint https://10.6.0.3:2379";
    assert!(refused.starts_with(words), "{refused}");
    let refused = etcd.add_learner(&place("dddd")).unwrap_err();
    assert_eq!(refused.message, "etcdserver: unhealthy cluster");
    remove(&etcd, "ccc", "a").unwrap();
    join(&etcd, "dddd", &power).unwrap();
    assert_eq!(names(&etcd), ["a", "bb", "dddd"]);
}

#[test]
fn without_a_majority_nothing_is_written_until_one_comes_back() {
    let (etcd, [a, bb, _ccc]) = cluster(["a", "bb", "ccc"]);
    assert_eq!(leader(&etcd).as_deref(), Some("a"));
    a.cancel();
    assert!(etcd.takes_writes().is_ok());
    assert_eq!(leader(&etcd).as_deref(), Some("bb"), "another is elected");
    bb.cancel();
    let refused = etcd.takes_writes().unwrap_err();
    assert_eq!(refused, "etcdserver: request timed out");
    assert_eq!(leader(&etcd), None);
    assert_eq!(remove(&etcd, "a", "ccc").unwrap_err(), refused);
    let power = CancellationToken::new();
    etcd.run(&place("a").machine, &power).unwrap();
    etcd.takes_writes().unwrap();
}

#[test]
fn one_that_is_restarted_alone_goes_on_and_the_others_can_never_come_back() {
    let (etcd, [a, bb, ccc]) = cluster(["a", "bb", "ccc"]);
    a.cancel();
    bb.cancel();
    etcd.takes_writes().unwrap_err();
    let refused = etcd.force_new_cluster(&place("a").machine).unwrap_err();
    assert_eq!(refused, "etcd does not run on this machine");
    etcd.force_new_cluster(&place("ccc").machine).unwrap();
    etcd.takes_writes().unwrap();
    assert_eq!(names(&etcd), ["ccc"]);
    let term = etcd.term();
    etcd.force_new_cluster(&place("ccc").machine).unwrap();
    assert_eq!(etcd.term(), term, "nothing is left to drop");
    let power = CancellationToken::new();
    let ended = etcd.run(&place("a").machine, &power).unwrap_err();
    assert!(ended.contains("permanently removed"), "{ended}");
    for name in ["dddd", "eeeee"] {
        join(&etcd, name, &power).unwrap();
    }
    assert_eq!(names(&etcd), ["ccc", "dddd", "eeeee"]);
    assert!(!ccc.is_cancelled());
}

#[test]
fn one_that_is_restarted_alone_although_the_others_work_ends_them() {
    let (etcd, [_a, _bb]) = cluster(["a", "bb"]);
    let power = CancellationToken::new();
    let other = etcd.run(&place("a").machine, &power).unwrap();
    etcd.force_new_cluster(&place("bb").machine).unwrap();
    assert!(other.is_cancelled() && !power.is_cancelled());
    assert_eq!(names(&etcd), ["bb"]);
}

#[test]
fn what_would_cost_the_majority_is_refused() {
    let (etcd, [_a, bb]) = cluster(["a", "bb"]);
    bb.cancel();
    etcd.takes_writes().unwrap_err();
    let (etcd, [_a, _bb, ccc]) = cluster(["a", "bb", "ccc"]);
    ccc.cancel();
    let refused = remove(&etcd, "a", "bb").unwrap_err();
    assert_eq!(refused, "etcdserver: unhealthy cluster");
    remove(&etcd, "ccc", "bb").unwrap();
    remove(&etcd, "a", "bb").unwrap();
    assert_eq!(names(&etcd), ["bb"]);
}

/// How many of ten attempts of `kubeadm join` to add a member are rejected.
fn rejected(etcd: &Etcd, name: &str) -> usize {
    let attempts = (0..10).map_while(|_| etcd.add_learner(&place(name)).err());
    attempts
        .inspect(|refused| assert_eq!(refused.message, "etcdserver: unhealthy cluster"))
        .count()
}

#[test]
fn of_two_members_kubeadm_asks_the_same_one_to_add_each_time_and_of_three_all() {
    let (etcd, [_a, _bb]) = cluster(["a", "bb"]);
    let [a, bb] = ["a", "bb"].map(|name| place(name).machine);
    etcd.part(&bb, &a, true);
    // The names lead to one member and to the other.
    let outcomes = ["ccc", "ccd"].map(|name| {
        let refused = rejected(&etcd, name);
        if refused == 0 {
            remove_learner(&etcd);
        }
        refused
    });
    assert_eq!(outcomes.iter().sum::<usize>(), 10, "{outcomes:?}");
    etcd.part(&bb, &a, false);
    assert_eq!(rejected(&etcd, "ccc") + rejected(&etcd, "ccc"), 0);
    remove_learner(&etcd);

    let (etcd, [_a, _bb, _ccc]) = cluster(["a", "bb", "ccc"]);
    etcd.part(&bb, &a, true);
    for name in ["dddd", "ddde", "dddf"] {
        assert!(rejected(&etcd, name) <= 1, "the next attempt asks another");
        remove_learner(&etcd);
    }
}

/// Removes the members that have not started.
fn remove_learner(etcd: &Etcd) {
    let removed = etcd.change(|state| {
        let asked = state.endpoints()[0];
        let new = state.members().filter(|member| !member.is_started());
        for id in new.map(|member| member.id).collect::<Vec<_>>() {
            state.remove(id, asked)?;
        }
        Ok(())
    });
    removed.unwrap();
}

#[test]
fn a_member_that_counts_another_as_disconnected_rejects_a_removal_and_another_does_not() {
    let (etcd, [_a, bb, _ccc]) = cluster(["a", "bb", "ccc"]);
    etcd.part(&place("a").machine, &place("bb").machine, true);
    let refused = remove(&etcd, "ccc", "a").unwrap_err();
    assert_eq!(refused, "etcdserver: unhealthy cluster");
    remove(&etcd, "ccc", "bb").unwrap();
    // With a new connection it counts as connected again.
    etcd.run(&place("bb").machine, &bb).unwrap();
    assert_eq!(rejected(&etcd, "dddd"), 0);
}

#[test]
fn a_learner_does_not_vote_and_there_is_only_one() {
    let (etcd, [_a]) = cluster(["a"]);
    etcd.add_learner(&place("bb")).unwrap();
    etcd.add_learner(&place("bb")).unwrap();
    assert_eq!(names(&etcd), ["a", ""]);
    etcd.takes_writes().unwrap();
    let second = etcd.add_learner(&place("ccc")).unwrap_err();
    let words = "etcdserver: too many learner members in cluster";
    assert_eq!(second.message, words);
    let early = etcd.promote(&place("bb").machine).unwrap_err();
    assert!(early.message.contains("in sync with leader"), "{early}");
}

#[test]
fn a_removed_member_ends_and_does_not_come_back() {
    let (etcd, [_a, _bb]) = cluster(["a", "bb"]);
    let power = CancellationToken::new();
    let member = etcd.run(&place("bb").machine, &power).unwrap();
    remove(&etcd, "bb", "a").unwrap();
    assert!(member.is_cancelled() && !power.is_cancelled());
    let ended = etcd.run(&place("bb").machine, &power).unwrap_err();
    assert!(ended.contains("permanently removed"), "{ended}");
}

#[test]
fn members_and_leader_survive_the_process() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("etcd.json");
    let etcd = Etcd::open(Some(path.clone())).unwrap();
    let power = CancellationToken::new();
    join(&etcd, "a", &power).unwrap();
    join(&etcd, "bb", &power).unwrap();
    drop(etcd);
    let etcd = Etcd::open(Some(path.clone())).unwrap();
    assert_eq!(names(&etcd), ["a", "bb"]);
    etcd.takes_writes().unwrap_err();
    for name in ["a", "bb"] {
        etcd.adopt(&place(name));
        etcd.run(&place(name).machine, &power).unwrap();
    }
    etcd.takes_writes().unwrap();
    assert_eq!(names(&etcd), ["a", "bb"]);
    std::fs::write(&path, "{").unwrap();
    assert!(Etcd::open(Some(path)).is_err());
}

#[test]
fn members_from_before_the_list_was_kept_are_adopted() {
    let etcd = Etcd::open(None).unwrap();
    let power = CancellationToken::new();
    for name in ["a", "bb"] {
        etcd.adopt(&place(name));
        etcd.run(&place(name).machine, &power).unwrap();
    }
    assert_eq!(names(&etcd), ["a", "bb"]);
    etcd.takes_writes().unwrap();
}

#[test]
fn kubeadm_adds_no_member_whose_peer_url_is_in_the_list() {
    let (etcd, [_a, _bb]) = cluster(["a", "bb"]);
    let [a, bb, ccc] = ["a", "bb", "ccc"].map(place);
    etcd.part(&bb.machine, &a.machine, true);
    etcd.send_additions_to(&bb.machine);
    let refused = etcd.add_learner(&ccc).unwrap_err();
    assert_eq!(refused.message, "etcdserver: unhealthy cluster");
    // Through the API of the member that accepts the addition.
    let added = etcd.change(|state| {
        let asked = state.of(&a.machine).map_or(0, |it| it.id);
        state.add(&ccc.peer_url(), true, asked, None)
    });
    added.unwrap();
    etcd.add_learner(&ccc).unwrap();
    let power = CancellationToken::new();
    etcd.run(&ccc.machine, &power).unwrap();
    etcd.start(&ccc);
    etcd.promote(&ccc.machine).unwrap();
    assert_eq!(names(&etcd), ["a", "bb", "ccc"]);
}
