use etcd::messages::{self, AlarmMember, AlarmType, ResponseHeader, StatusResponse};

use super::addition::peer_url;
use super::connections::advice;
use super::query::{Answer, combined};
use super::removal::{Nodes, in_order, orphan};
use super::{Member, View, count, without_quorum};
use crate::control_plane::quorum::Members;

fn listed(id: u64, name: &str) -> messages::Member {
    messages::Member {
        id,
        name: name.to_owned(),
        peer_urls: vec![format!("https://10.6.0.{id}:2380")],
        ..messages::Member::default()
    }
}

fn answer(id: u64, leader: u64, list: &[messages::Member]) -> Result<Answer, String> {
    let header = ResponseHeader {
        member_id: id,
        ..ResponseHeader::default()
    };
    Ok(Answer {
        status: StatusResponse {
            header: Some(header),
            leader,
            ..StatusResponse::default()
        },
        members: Ok(list.to_vec()),
        known: Vec::new(),
        alarms: Vec::new(),
    })
}

fn on(name: &str, answer: Result<Answer, String>) -> (String, Result<Answer, String>) {
    (name.to_owned(), answer)
}

fn problems(view: &View) -> Vec<&str> {
    let members = view.members().unwrap().iter();
    members
        .map(|member| member.problem.as_deref().unwrap_or(""))
        .collect()
}

#[test]
fn members_that_all_answer_are_well_and_one_leads() {
    let list = [listed(1, "a"), listed(2, "b"), listed(3, "c")];
    let view = combined(vec![
        on("a", answer(1, 2, &list)),
        on("b", answer(2, 2, &list)),
        on("c", answer(3, 2, &list)),
    ]);
    assert!(view.is_settled());
    assert_eq!(problems(&view), ["", "", ""]);
    let members = view.members().unwrap();
    assert!(members[1].leads && !members[0].leads);
    assert_eq!(members[0].host, "10.6.0.1");
}

#[test]
fn one_list_is_enough_and_every_trouble_has_its_words() {
    let mut learner = listed(5, "e");
    learner.is_learner = true;
    let list = [
        listed(1, "a"),
        listed(2, "b"),
        listed(3, "c"),
        listed(4, ""),
        learner,
        listed(6, "f"),
    ];
    let mut alarmed = answer(1, 1, &list).unwrap();
    alarmed.alarms.push(AlarmMember {
        member_id: 2,
        alarm: AlarmType::Nospace as i32,
    });
    // The errors of every member include the alarms of all.
    let of_another = "memberID:2 alarm:NOSPACE ".to_owned();
    alarmed.status.errors.push(of_another.clone());
    let mut second = answer(2, 1, &list).unwrap();
    second.status.errors.push(of_another);
    let refusing = Answer {
        members: Err("etcdserver: rpc not supported for learner".to_owned()),
        ..answer(5, 1, &[]).unwrap()
    };
    let mut leaderless = answer(6, 0, &[]).unwrap();
    leaderless
        .status
        .errors
        .push("etcdserver: no leader".to_owned());
    let view = combined(vec![
        on("e", Ok(refusing)),
        on("a", Ok(alarmed)),
        on("b", Ok(second)),
        on("c", Err("no answer within 5 s".to_owned())),
        on("f", Ok(leaderless)),
    ]);
    assert_eq!(
        problems(&view),
        [
            "",
            "etcd reports alarms: NOSPACE",
            "it does not answer: no answer within 5 s",
            "the member 4 has never started",
            "",
            "etcdserver: no leader",
        ]
    );
    assert!(!view.is_settled());
    let expected = Members {
        voters: 5,
        unhealthy: 4,
        learners: 1,
    };
    assert_eq!(count(view.members().unwrap()), expected);
}

#[test]
fn a_member_that_was_removed_and_one_without_a_pod_are_not_taken_for_well() {
    let list = [listed(1, "a"), listed(2, "b"), listed(3, "c")];
    let view = combined(vec![
        on("a", answer(1, 1, &list)),
        on("b", answer(9, 1, &list)),
    ]);
    let problems = problems(&view);
    assert!(problems[1].starts_with("Pod etcd-b runs the member 9"));
    assert_eq!(problems[2], "there is no Pod etcd-c to ask");
}

#[test]
fn without_a_list_nothing_is_known_and_every_reason_is_named() {
    let silent = Answer {
        members: Err("etcdserver: request timed out".to_owned()),
        ..answer(1, 0, &[]).unwrap()
    };
    let view = combined(vec![
        on("a", Ok(silent)),
        on("b", Err("no answer within 5 s".to_owned())),
    ]);
    let why = "no etcd member lists the members: etcd-a: etcdserver: request timed out; \
               etcd-b: no answer within 5 s";
    assert_eq!(view, View::Unknown(why.to_owned()));
    assert!(matches!(combined(Vec::new()), View::Unknown(why) if why.contains("no Pod")));
}

/// The answer of a member without a leader.
fn leaderless(id: u64, list: &[messages::Member]) -> Result<Answer, String> {
    let mut answer = answer(id, 0, &[])?;
    answer.members = Err("etcdserver: request timed out".to_owned());
    answer.known = list.to_vec();
    answer
        .status
        .errors
        .push("etcdserver: no leader".to_owned());
    Ok(answer)
}

#[test]
fn without_a_quorum_the_members_are_those_that_the_remaining_ones_know() {
    let list = [listed(1, "a"), listed(2, "b"), listed(3, "c")];
    let silent = || Err("no answer within 5 s".to_owned());
    let view = combined(vec![on("a", leaderless(1, &list)), on("b", silent())]);
    let View::NoQuorum(members) = &view else {
        panic!("{view:?}");
    };
    let problems: Vec<_> = members
        .iter()
        .map(|member| member.problem.as_deref().unwrap_or(""))
        .collect();
    let words = [
        "",
        "it does not answer: no answer within 5 s",
        "there is no Pod etcd-c to ask",
    ];
    assert_eq!(problems, words);
    assert_eq!(members[2].host, "10.6.0.3");
    assert!(!view.is_settled() && view.members().is_none() && view.on("a").is_none());
    assert_eq!(
        without_quorum(members),
        "etcd has lost its quorum: 1 of 3 voting members answers, and 2 are needed"
    );
}

#[test]
fn an_election_is_no_loss_of_the_quorum() {
    let list = [listed(1, "a"), listed(2, "b"), listed(3, "c")];
    let silent = || Err("no answer within 5 s".to_owned());
    // Two of three will elect a leader.
    let electing = combined(vec![
        on("a", leaderless(1, &list)),
        on("b", leaderless(2, &list)),
        on("c", silent()),
    ]);
    assert!(matches!(electing, View::Unknown(_)), "{electing:?}");
    // One that follows a leader is slow, and the others are only out of reach.
    let mut slow = leaderless(1, &list).unwrap();
    slow.status.leader = 2;
    let slow = combined(vec![on("a", Ok(slow)), on("b", silent())]);
    assert!(matches!(slow, View::Unknown(_)), "{slow:?}");
    // An older etcd may not answer without a quorum.
    let silent = combined(vec![on("a", leaderless(1, &[])), on("b", silent())]);
    assert!(matches!(silent, View::Unknown(_)), "{silent:?}");
}

fn member(id: u64, name: &str) -> Member {
    Member {
        id,
        name: name.to_owned(),
        host: format!("10.6.0.{id}"),
        ..Member::default()
    }
}

fn ill(id: u64, name: &str) -> Member {
    Member {
        problem: Some("ill".to_owned()),
        ..member(id, name)
    }
}

#[test]
fn leadership_stays_or_goes_to_the_first_that_works() {
    let names = |names: &[&str]| {
        names
            .iter()
            .map(|&name| name.to_owned())
            .collect::<Vec<_>>()
    };
    let mut members = vec![member(1, "a"), ill(2, "b"), member(3, "c"), member(4, "d")];
    members[3].learner = true;
    let to = |members: &[Member], id, preferred: &[&str]| {
        let others = in_order(members, id, &names(preferred));
        others.first().map(|member| member.name.clone())
    };
    assert_eq!(to(&members, 1, &["d", "b", "c"]).as_deref(), Some("c"));
    assert_eq!(to(&members, 3, &[]).as_deref(), Some("a"));
    members[0].leads = true;
    assert_eq!(to(&members, 2, &["c"]).as_deref(), Some("a"));
    assert_eq!(to(&[member(1, "a"), ill(2, "b")], 1, &["b"]), None);
}

#[test]
fn only_what_runs_nowhere_and_can_be_missed_is_left_over() {
    let known = |names: &[&str], addresses: &[&str]| Nodes {
        names: names.iter().map(|&name| name.to_owned()).collect(),
        addresses: addresses.iter().map(|&it| it.to_owned()).collect(),
    };
    let id = |members: &[Member], nodes: &Nodes| orphan(members, nodes).map(|it| it.id);
    let three = [member(1, "a"), member(2, "b"), ill(3, "c")];
    assert_eq!(id(&three, &known(&["a", "b", "c"], &[])), None);
    assert_eq!(id(&three, &known(&["a", "b"], &[])), Some(3));
    // A healthy member is kept, even without a Node.
    assert_eq!(id(&three, &known(&["a", "c"], &[])), None);
    // Its removal would leave one healthy member of two.
    let weak = [member(1, "a"), ill(2, "b"), ill(3, "c")];
    assert_eq!(id(&weak, &known(&["a", "b"], &[])), None);
    let mut begun = ill(4, "");
    begun.learner = true;
    let four = [member(1, "a"), member(2, "b"), member(3, "c"), begun];
    let names = ["a", "b", "c"];
    assert_eq!(id(&four, &known(&names, &["10.6.0.4"])), None);
    assert_eq!(id(&four, &known(&names, &["10.6.0.5"])), Some(4));
}

#[test]
fn a_node_without_addresses_leads_to_the_cloud_controller_manager() {
    let words = "error dialing backend: no preferred addresses found; known addresses: []";
    assert!(
        advice(words, "cp-0").contains("Node cp-0 has no addresses: a cloud controller manager")
    );
    assert_eq!(advice("connection refused", "cp-0"), "");
}

#[test]
fn the_peer_url_of_a_member_is_that_of_kubeadm() {
    assert_eq!(peer_url("10.6.0.4"), "https://10.6.0.4:2380");
    assert_eq!(peer_url("2001:db8::4"), "https://[2001:db8::4]:2380");
}
