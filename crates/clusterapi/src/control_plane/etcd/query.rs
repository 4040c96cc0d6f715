//! Queries all members concurrently.

use etcd::messages::{self, AlarmMember, AlarmType, StatusResponse};

use futures::FutureExt;

use super::{Connections, Member, Target, View, count};

/// Error in the status of a member without a leader.
const NO_LEADER: &str = "etcdserver: no leader";

/// Response of a member.
#[derive(Debug)]
pub(super) struct Answer {
    /// Status of the member.
    pub(super) status: StatusResponse,
    /// [`Member`] list. The request fails on a learner and on a member without a quorum.
    pub(super) members: Result<Vec<messages::Member>, String>,
    /// [`Member`]s known to this one, if the request for the list has failed.
    pub(super) known: Vec<messages::Member>,
    pub(super) alarms: Vec<AlarmMember>,
}

impl Connections {
    /// Queries all members.
    pub async fn query(&self, target: &Target<'_>) -> View {
        let asked = target.nodes.iter().map(|node| async move {
            let answer = self.with(target, node, |client| ask(client).boxed()).await;
            (node.clone(), answer)
        });
        combined(futures::future::join_all(asked).await)
    }
}

impl Connections {
    /// First voting [`Member`] that counts another one as disconnected, with the other one. etcd then rejects membership
    /// changes through the first one. Members that do not report connections are left out.
    pub async fn disconnected<'a>(
        &self,
        target: &Target<'_>,
        members: &'a [Member],
    ) -> Option<(&'a Member, &'a Member)> {
        let voters = || members.iter().filter(|member| !member.learner);
        let asked = voters().map(|member| async move {
            let peers = |client: etcd::Client| async move { client.peers().await }.boxed();
            (member, self.with(target, &member.name, peers).await)
        });
        let answers = futures::future::join_all(asked).await;
        answers.into_iter().find_map(|(member, peers)| {
            let peers = peers.ok()?;
            let missing = |other: &&Member| other.id != member.id && !peers.contains(&other.id);
            Some((member, voters().find(missing)?))
        })
    }
}

async fn ask(client: etcd::Client) -> Result<Answer, etcd::Error> {
    let (status, members, alarms) =
        tokio::join!(client.status(), client.members(), client.alarms());
    let status = status?;
    let known = match &members {
        Err(_) if status.leader == 0 => client.members_here().await.unwrap_or_default(),
        _ => Vec::new(),
    };
    Ok(Answer {
        status,
        members: members.map_err(|error| error.to_string()),
        known,
        alarms: alarms.unwrap_or_default(),
    })
}

/// Combines the responses of the members, by Node.
pub(super) fn combined(answers: Vec<(String, Result<Answer, String>)>) -> View {
    let list = answers.iter().find_map(|(_, answer)| {
        Some((
            answer.as_ref().ok()?,
            answer.as_ref().ok()?.members.as_ref().ok()?,
        ))
    });
    let Some((source, list)) = list else {
        return leaderless(&answers).unwrap_or_else(|| View::Unknown(nobody(&answers)));
    };
    let statuses = answers
        .iter()
        .filter_map(|(_, answer)| Some(&answer.as_ref().ok()?.status));
    // On disagreement, the highest Raft term has the current leader.
    let leader = statuses
        .max_by_key(|status| status.raft_term)
        .map_or(0, |status| status.leader);
    let members = list.iter().map(|member| {
        let answer = answers.iter().find(|(node, _)| *node == member.name);
        Member {
            leads: member.id == leader,
            problem: problem(member, answer.map(|(_, answer)| answer), &source.alarms),
            ..listed(member)
        }
    });
    View::Known(members.collect())
}

fn listed(member: &messages::Member) -> Member {
    let url = member.peer_urls.first();
    Member {
        id: member.id,
        name: member.name.clone(),
        host: url.map(|url| host(url).to_owned()).unwrap_or_default(),
        learner: member.is_learner,
        ..Member::default()
    }
}

/// Members known to a member without a leader. `None` if enough of them answer for an election, which takes a moment.
fn leaderless(answers: &[(String, Result<Answer, String>)]) -> Option<View> {
    let answered = || {
        answers
            .iter()
            .filter_map(|(_, answer)| answer.as_ref().ok())
    };
    if answered().any(|answer| answer.status.leader != 0) {
        return None;
    }
    let list = answered().map(|answer| &answer.known);
    let list = list.into_iter().find(|known| !known.is_empty())?;
    let members = list.iter().map(|member| {
        let answer = answers.iter().find(|(node, _)| *node == member.name);
        let problem = problem(member, answer.map(|(_, answer)| answer), &[]);
        Member {
            problem: problem.filter(|words| words != NO_LEADER),
            ..listed(member)
        }
    });
    let members: Vec<Member> = members.collect();
    (!count(&members).has_quorum()).then_some(View::NoQuorum(members))
}

/// Reason why no member has returned the list.
fn nobody(answers: &[(String, Result<Answer, String>)]) -> String {
    if answers.is_empty() {
        return "there is no Pod of etcd on any Node".to_owned();
    }
    let lines = answers.iter().map(|(node, answer)| {
        let why = match answer {
            Err(why) => why,
            Ok(answer) => answer.members.as_ref().err().map_or("", String::as_str),
        };
        format!("etcd-{node}: {why}")
    });
    format!(
        "no etcd member lists the members: {}",
        lines.collect::<Vec<_>>().join("; ")
    )
}

fn problem(
    member: &messages::Member,
    answer: Option<&Result<Answer, String>>,
    alarms: &[AlarmMember],
) -> Option<String> {
    let ours = alarms.iter().filter(|alarm| alarm.member_id == member.id);
    let raised: Vec<_> = ours
        .filter_map(|alarm| match alarm.alarm() {
            AlarmType::Nospace => Some("NOSPACE"),
            AlarmType::Corrupt => Some("CORRUPT"),
            AlarmType::None => None,
        })
        .collect();
    if !raised.is_empty() {
        return Some(format!("etcd reports alarms: {}", raised.join(", ")));
    }
    if member.name.is_empty() {
        return Some(format!("the member {:x} has never started", member.id));
    }
    let status = match answer {
        None => return Some(format!("there is no Pod etcd-{} to ask", member.name)),
        Some(Err(why)) => return Some(format!("it does not answer: {why}")),
        Some(Ok(answer)) => &answer.status,
    };
    let itself = status.header.as_ref().map_or(0, |header| header.member_id);
    if itself != member.id {
        return Some(format!(
            "Pod etcd-{} runs the member {itself:x}, which is not in the list; the list has {:x} under this name",
            member.name, member.id
        ));
    }
    // The errors of a member include the alarms of others.
    let errors: Vec<_> = status
        .errors
        .iter()
        .filter(|error| !error.starts_with("memberID:"))
        .map(String::as_str)
        .collect();
    (!errors.is_empty()).then(|| errors.join(", "))
}

/// Host of `https://10.6.0.4:2380`.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.rsplit_once(':').map_or(rest, |(host, _)| host);
    host.trim_matches(['[', ']'])
}
