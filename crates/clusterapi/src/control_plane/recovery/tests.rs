use api::controlplane::v1beta2::KubeadmControlPlaneSpec;
use api::k8s_openapi::jiff::Timestamp;

use super::*;

const SILENT: &str = "it does not answer: no answer within 5 s";

/// Joined machine, with the address `10.6.0.N`, where N is the number of its name.
fn machine(name: &str) -> Candidate {
    Candidate {
        name: name.to_owned(),
        node: Some(format!("node-{name}")),
        addresses: vec![address(name)],
        joined: true,
        ..Candidate::default()
    }
}

fn address(name: &str) -> String {
    let number = name.bytes().next().unwrap_or_default() - b'a';
    format!("10.6.0.{number}")
}

fn member(of: &str) -> Member {
    Member {
        id: 1 + u64::from(of.as_bytes()[0]),
        name: format!("node-{of}"),
        host: address(of),
        ..Member::default()
    }
}

fn silent(of: &str) -> Member {
    Member {
        problem: Some(SILENT.to_owned()),
        ..member(of)
    }
}

fn three() -> Vec<Candidate> {
    ["a", "b", "c"].map(machine).to_vec()
}

fn alone() -> View {
    View::Known(vec![member("a")])
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn refusal(recovery: Recovery) -> String {
    match recovery {
        Recovery::Refused { why, .. } => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn while_each_machine_is_a_member_nothing_is_to_be_done() {
    let all = View::Known(["a", "b", "c"].map(member).to_vec());
    assert_eq!(decide(None, &three(), &all), Recovery::Nothing);
    let one_is_ill = View::Known(vec![member("a"), member("b"), silent("c")]);
    assert_eq!(decide(None, &three(), &one_is_ill), Recovery::Nothing);
    let unknown = View::Unknown("there is no Pod".to_owned());
    assert_eq!(decide(None, &three(), &unknown), Recovery::Unknown);
    assert_eq!(decide(None, &three(), &View::External), Recovery::Nothing);
    // A joining machine is no member yet, and a deleted one no longer.
    let mut machines = three();
    machines[1].joined = false;
    machines[2].deleting = true;
    assert_eq!(decide(None, &machines, &alone()), Recovery::Nothing);
    // A member before its first start has no name, but the address of its machine.
    let unnamed = Member {
        name: String::new(),
        ..silent("b")
    };
    let begun = View::Known(vec![member("a"), unnamed, member("c")]);
    assert_eq!(decide(None, &three(), &begun), Recovery::Nothing);
}

#[test]
fn a_lost_quorum_names_survivors_and_lost_machines_and_deletes_nothing() {
    let view = View::NoQuorum(vec![member("a"), silent("b"), silent("c")]);
    for named in [None, Some("a"), Some("b"), Some("x")] {
        let Recovery::Lost(loss) = decide(named, &three(), &view) else {
            panic!("{named:?}");
        };
        assert_eq!(loss.survivors, ["a"]);
        let lost = ["b", "c"].map(|name| (name.to_owned(), SILENT.to_owned()));
        assert_eq!(loss.lost, lost);
        let objection = match named {
            Some("b") => Some(format!("its etcd member does not work: {SILENT}")),
            Some("x") => Some("no Machine of this control plane has this name".to_owned()),
            _ => None,
        };
        assert_eq!(loss.objection, objection);
    }
}

#[test]
fn a_survivor_is_asked_for_once_etcd_has_a_quorum_without_machines_that_had_joined() {
    let expected = Recovery::NotNamed {
        outside: names(&["b", "c"]),
        members: names(&["a"]),
    };
    assert_eq!(decide(None, &three(), &alone()), expected);
}

#[test]
fn what_is_no_machine_with_a_member_that_works_is_refused_as_the_survivor() {
    let mut machines = three();
    let why =
        |named, machines: &[Candidate], view: &View| refusal(decide(Some(named), machines, view));
    let nobody = "no Machine of this control plane has this name";
    assert_eq!(why("x", &machines, &alone()), nobody);
    // The names of Nodes are not those of Machines.
    assert_eq!(why("node-a", &machines, &alone()), nobody);
    let no_member = "its etcd is not a member";
    assert_eq!(why("b", &machines, &alone()), no_member);
    let ill = View::Known(vec![member("a"), silent("b"), member("c")]);
    let words = format!("its etcd member does not work: {SILENT}");
    assert_eq!(why("b", &machines, &ill), words);
    let learner = Member {
        learner: true,
        ..member("b")
    };
    let learning = View::Known(vec![member("a"), learner]);
    assert_eq!(why("b", &machines, &learning), "its etcd is a learner");
    machines[0].deleting = true;
    assert_eq!(why("a", &machines, &alone()), "it is being deleted");
    let external = "etcd is external, and not managed here";
    assert_eq!(why("a", &machines, &View::External), external);
}

#[test]
fn with_a_survivor_the_machines_that_are_no_members_go_and_then_the_annotation() {
    let named = |machines: &[Candidate], view: &View| decide(Some("a"), machines, view);
    let deleting = |outside: &[&str], going: &[&str]| Recovery::Deleting {
        survivor: "a".to_owned(),
        outside: names(outside),
        going: names(going),
    };
    let mut machines = three();
    assert_eq!(named(&machines, &alone()), deleting(&["b", "c"], &[]));
    // A member is never deleted.
    let two = View::Known(vec![member("a"), member("b")]);
    assert_eq!(named(&machines, &two), deleting(&["c"], &[]));
    machines[1].deleting = true;
    assert_eq!(named(&machines, &alone()), deleting(&["c"], &["b"]));
    machines.remove(1);
    // A machine that joins stays.
    machines[1].joined = false;
    let done = Recovery::Done {
        survivor: "a".to_owned(),
    };
    assert_eq!(named(&machines, &alone()), done);
    assert_eq!(named(&machines[..1], &alone()), done);
}

#[test]
fn without_an_answer_of_etcd_the_machines_tell_and_nothing_is_deleted() {
    let unknown = View::Unknown("etcd-node-a: no answer within 5 s".to_owned());
    let mut machines = three();
    let waiting = decide(Some("a"), &machines, &unknown);
    assert!(matches!(waiting, Recovery::Unasked { .. }), "{waiting:?}");
    machines[1].gone = Some("server 4f1e was deleted".to_owned());
    assert_eq!(decide(None, &machines, &unknown), Recovery::Unknown);
    machines[2].deleting = true;
    let Recovery::Lost(loss) = decide(Some("c"), &machines, &unknown) else {
        panic!("two of three are gone");
    };
    assert_eq!(loss.survivors, ["a"]);
    assert_eq!(loss.objection.as_deref(), Some("it is being deleted"));
    // A machine that never joined was no member.
    machines[2].node = None;
    let words = "etcd cannot be asked, and of 2 machines that may be its members 1 work, where 2 are needed for a quorum";
    let Recovery::Lost(loss) = decide(None, &machines, &unknown) else {
        panic!("one of two is gone");
    };
    assert_eq!(loss.head, words);
    machines[0].gone = Some("SHUTOFF".to_owned());
    assert_eq!(decide(None, &machines, &unknown), Recovery::Unknown);
}

fn plane() -> KubeadmControlPlane {
    KubeadmControlPlane::new("demo", KubeadmControlPlaneSpec::default())
}

/// Conditions after this state, and the reason of its event.
fn reported(recovery: &Recovery, before: &[Condition]) -> (Vec<Condition>, Option<PendingEvent>) {
    let mut after = before.to_vec();
    if let Some(verdict) = recovery.verdict(&plane(), before) {
        conditions::set(&mut after, verdict, None, Timestamp::UNIX_EPOCH);
    }
    let news = news(before, &after);
    (after, news)
}

#[test]
fn the_condition_appears_with_a_loss_has_the_steps_and_stays() {
    let (none, news) = reported(&Recovery::Nothing, &[]);
    assert!(none.is_empty() && news.is_none());
    let view = View::NoQuorum(vec![member("a"), silent("b"), silent("c")]);
    let (lost, news) = reported(&decide(None, &three(), &view), &[]);
    assert_eq!(
        lost[0].message,
        "etcd has lost its quorum: 1 of 3 voting members answers, and 2 are needed; no machine is created or deleted meanwhile\n\
         * Machine a works\n\
         * Machine b is lost: it does not answer: no answer within 5 s\n\
         * Machine c is lost: it does not answer: no answer within 5 s\n\
         If enough of them come back, nothing has to be done. If they are gone for good (ferrostack docs recovery):\n\
         1. restart the etcd of Machine a alone, with --force-new-cluster, or restore a snapshot there\n\
         2. have the others deleted and replaced: kubectl annotate --overwrite kubeadmcontrolplane demo ferrostack.dev/etcd-survivor=a"
    );
    assert!(news.is_some());
    let (kept, news) = reported(&Recovery::Unknown, &lost);
    assert!(kept == lost && news.is_none());
    let (unnamed, news) = reported(&decide(None, &three(), &alone()), &lost);
    assert_eq!(
        unnamed[0].message,
        "Machines b, c have joined, and etcd, which has a quorum, does not list them as members\n\
         1. if they are lost, have them deleted and replaced (ferrostack docs recovery): \
         kubectl annotate --overwrite kubeadmcontrolplane demo ferrostack.dev/etcd-survivor=a"
    );
    assert!(news.is_some());
    let (refused, news) = reported(&decide(Some("b"), &three(), &alone()), &unnamed);
    assert!(
        refused[0]
            .message
            .contains("names b: its etcd is not a member"),
        "{refused:?}"
    );
    assert!(news.is_some());
    let (deleting, news) = reported(&decide(Some("a"), &three(), &alone()), &refused);
    assert!(
        deleting[0]
            .message
            .starts_with("Machines b, c are deleted, since Machine a"),
        "{deleting:?}"
    );
    assert!(news.is_some());
    let (recovered, news) = reported(&Recovery::Nothing, &deleting);
    assert!(conditions::is_true(&recovered, "EtcdRecovered") && news.is_some());
    let (again, news) = reported(&Recovery::Nothing, &recovered);
    assert!(again == recovered && news.is_none());
}

#[test]
fn a_survivor_that_is_named_before_it_was_restarted_is_not_asked_for_again() {
    let view = View::NoQuorum(vec![member("a"), silent("b"), silent("c")]);
    let message = |named| words::message(&decide(Some(named), &three(), &view), "demo");
    let named = message("a");
    assert!(
        named.ends_with(
            "The others are deleted after that, since Machine a is named as the survivor"
        ),
        "{named}"
    );
    let wrong = message("b");
    assert!(
        wrong.contains("1. restart the etcd of Machine a alone")
            && wrong.contains("(it names b: its"),
        "{wrong}"
    );
}
