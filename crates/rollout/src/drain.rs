//! Servers of cordoned and deleted compute nodes: guards in the cluster, requests to Nova and Neutron.
//!
//! ```text
//!   fleet    requests to Nova and Neutron
//!   guards   writes of Pods and PodDisruptionBudgets
//! ```
//!
//! The decisions are in [`deployer::drain`]. No reconcile waits for a migration: a [`Look`] asks, starts the allowed number
//! of migrations, and sets the time of the next look. The [`Entry`] of a cloud only has the pace and reasons of failures.

mod fleet;
mod guards;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use api::openstack::v1alpha1::OpenStack;
use deployer::drain::{self, Answer, Memory, Observed, Place, Standing, Summary, Turn};
use k8s_openapi::jiff::Timestamp;
use kube::runtime::controller::Action;
use kube::{Resource as _, ResourceExt as _};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use self::fleet::Apis;
pub(crate) use self::guards::left as guards_left;
use crate::accounts;
use crate::problem::Problem;
use crate::schedules::Clock;
use crate::view::Seen;

/// Pause after a look with changes.
const FIRST: Duration = Duration::from_millis(500);
/// Longest pause while servers remain.
const LONGEST: Duration = Duration::from_secs(10);
/// Pause while a node is cordoned and empty.
const SETTLED: Duration = Duration::from_secs(60);
/// Time without a server after which the guard may go: the scheduler may have chosen the host for a server before its
/// compute service was disabled, and Nova tells the host of a server once the host has begun to build it.
const ARRIVING: Duration = Duration::from_secs(10);
/// Pause of a server after a failure.
const REST: Duration = Duration::from_secs(30);

/// [`Entry`] of each cloud, by namespace.
#[derive(Default)]
pub(crate) struct Drains {
    known: Mutex<HashMap<String, Entry>>,
}

/// Inputs of [`Drains::look`].
pub(crate) struct Look<'a> {
    pub(crate) accounts: &'a accounts::Look<'a>,
    pub(crate) owner: &'a OpenStack,
    pub(crate) seen: &'a Seen,
    pub(crate) clock: &'a Clock,
}

/// Result of [`Drains::look`].
#[derive(Default)]
pub(crate) struct Drained {
    /// Condition; `None` without guarded compute nodes.
    pub(crate) summary: Option<Summary>,
}

#[derive(Default)]
struct Entry {
    /// Places of the last look at Nova; a change ends the pause.
    of: Vec<(String, Standing, bool)>,
    answers: BTreeMap<String, Answer>,
    summary: Option<Summary>,
    memory: Memory,
    resting: BTreeMap<String, Instant>,
    /// Start of the time without a server, by the name of the node.
    empty: BTreeMap<String, Instant>,
    token: fleet::Token,
    again: Option<Instant>,
    pause: Duration,
}

impl Drains {
    /// Looks at the compute nodes of a cloud, and sends the possible requests. `next`: result of the reconcile without
    /// drains.
    pub(crate) async fn look(
        &self,
        look: &Look<'_>,
        next: Result<Action, Problem>,
    ) -> (Drained, Result<Action, Problem>) {
        let namespace = look.accounts.cloud.namespace.clone();
        let Some(nodes) = &look.seen.nodes else {
            let summary = drain::is_guarded(look.accounts.cloud).then(|| {
                Summary::unanswered(
                    "nodes cannot be listed: the ClusterRole ferrostack-manager-nodes allows it"
                        .to_owned(),
                )
            });
            return (Drained { summary }, next);
        };
        let observed = look.seen.observed(nodes);
        let places = drain::places(look.accounts.cloud, look.accounts.held, observed);
        if places.is_empty() {
            self.forget(&namespace);
            return (Drained::default(), next);
        }
        let mut entry = self.known.lock().remove(&namespace).unwrap_or_default();
        entry.ask(look, &places).await;
        let now = look.clock.now();
        let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let answers = (&entry.answers, now.as_str());
        let (cloud, held) = (look.accounts.cloud, look.accounts.held);
        let owner = owner(look.owner);
        let (writes, conflicts) = drain::guards(cloud, held, &owner, observed, answers);
        let summary = match conflicts.is_empty() {
            true => entry.summary.clone(),
            false => Some(Summary::conflict(conflicts.join("; "))),
        };
        let summary = summary.unwrap_or_else(|| Summary::from_stories(&[]));
        let drained = Drained {
            summary: Some(summary),
        };
        let written = guards::write(look.accounts.client, &namespace, &writes).await;
        let next = match (written, next) {
            (Err(problem), _) | (Ok(()), Err(problem)) => Err(problem),
            (Ok(()), Ok(next)) => Ok(entry.next().map_or(next, Action::requeue)),
        };
        self.known.lock().insert(namespace, entry);
        (drained, next)
    }

    /// Forgets a cloud.
    pub(crate) fn forget(&self, namespace: &str) {
        self.known.lock().remove(namespace);
    }
}

impl Entry {
    /// Asks Nova after the pause, and sends the requests of the [`Turn`].
    async fn ask(&mut self, look: &Look<'_>, places: &[Place]) {
        let asked: Vec<&Place> = places
            .iter()
            .filter(|it| drain::needs_answers(it))
            .collect();
        let of: Vec<_> = asked
            .iter()
            .map(|it| (it.node.clone(), it.standing, it.since.is_some()))
            .collect();
        if of.is_empty() {
            let token = std::mem::take(&mut self.token);
            *self = Self {
                token,
                ..Self::default()
            };
            return;
        }
        let now = Instant::now();
        if self.of == of && self.again.is_some_and(|again| now < again) {
            return;
        }
        self.resting.retain(|_, until| now < *until);
        self.memory.resting = self.resting.keys().cloned().collect();
        self.memory.late = late(look, &asked);
        let mut apis = Apis::new(look.accounts, std::mem::take(&mut self.token));
        let done = apis.turn(places, &mut self.memory).await;
        self.token = apis.token();
        let is_new = self.of != of;
        self.of = of;
        self.learn(look, done, is_new);
    }

    fn learn(&mut self, look: &Look<'_>, done: Result<Turn, String>, is_new: bool) {
        let now = Instant::now();
        let (summary, settled) = match done {
            Ok(turn) => {
                let fresh = self.memory.fresh.drain(..);
                self.resting
                    .extend(fresh.map(|server| (server, now + REST)));
                self.answers = turn.answers;
                let is_quiet = self.arrived(now) && turn.writes.is_empty();
                let mut summary = Summary::from_stories(&turn.stories);
                summary.message = look.accounts.held.masked(&summary.message);
                (summary, is_quiet)
            }
            Err(why) => {
                // Parts of the turn may have happened: no guard goes by an older answer.
                self.answers.clear();
                self.empty.clear();
                (Summary::unanswered(look.accounts.held.masked(&why)), false)
            }
        };
        let is_rest = settled && summary.is_true;
        let is_same = !is_new && self.summary.as_ref() == Some(&summary);
        self.pause = match (is_rest, is_same) {
            (true, _) => SETTLED,
            (false, true) => (self.pause * 2).clamp(FIRST, LONGEST),
            (false, false) => FIRST,
        };
        self.summary = Some(summary);
        self.again = Some(now + self.pause);
    }

    /// Takes back that a node is empty before [`ARRIVING`] is over. True if nothing was taken back.
    fn arrived(&mut self, now: Instant) -> bool {
        let mut is_over = true;
        for (node, answer) in &mut self.answers {
            if answer.is_empty != Some(true) {
                self.empty.remove(node);
                continue;
            }
            let first = *self.empty.entry(node.clone()).or_insert(now);
            if now.saturating_duration_since(first) < ARRIVING {
                // The guard stays as it is.
                answer.is_empty = None;
                is_over = false;
            }
        }
        let (empty, answers) = (&mut self.empty, &self.answers);
        empty.retain(|node, _| answers.contains_key(node));
        is_over
    }

    /// Time until the next look at Nova.
    fn next(&self) -> Option<Duration> {
        let again = self.again?;
        Some(again.saturating_duration_since(Instant::now()))
    }
}

/// Nodes past the timeout for migrations.
fn late(look: &Look<'_>, asked: &[&Place]) -> std::collections::BTreeSet<String> {
    let Some(limit) = drain::timeout(look.accounts.cloud) else {
        return std::collections::BTreeSet::new();
    };
    let now = look.clock.now().as_second();
    let is_late = |place: &&&Place| {
        let since: Option<Timestamp> = place.since.as_deref().and_then(|it| it.parse().ok());
        since.is_some_and(|since| {
            u64::try_from(now - since.as_second()).is_ok_and(|passed| passed >= limit)
        })
    };
    let late = asked.iter().filter(is_late);
    late.map(|it| it.node.clone()).collect()
}

/// Owner reference from guards to the object of a cloud.
fn owner(object: &OpenStack) -> Value {
    json!({
        "apiVersion": OpenStack::api_version(&()), "kind": OpenStack::kind(&()),
        "name": object.name_any(), "uid": object.metadata.uid, "controller": true,
        "blockOwnerDeletion": false,
    })
}

impl Seen {
    /// [`Observed`] objects of drains.
    pub(crate) fn observed<'a>(&'a self, nodes: &'a [Value]) -> Observed<'a> {
        Observed {
            nodes,
            pods: &self.pods,
            budgets: &self.budgets,
        }
    }
}
