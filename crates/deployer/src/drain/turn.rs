//! One look at Nova: [`lists`] to request, and the [`Turn`] that follows from the [`Fleet`].

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::fleet::{Fleet, Server, Service};
use super::guard::{Place, Standing};
use super::story::{Halted, Story};
use crate::cloud::Cloud;
use crate::held::Credentials;
use crate::parameters::DrainMode;

/// Number of attempts to move a server.
const TRIES: usize = 3;
/// Number of failures whose reasons are asked for in one look.
const REASONS: usize = 4;
/// Number of servers in a page: Nova has 5 s for an answer.
const PAGE: usize = 100;

/// Nova's answer about a [`Place`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// True if the host has no server and takes none; `None` without an answer.
    pub is_empty: Option<bool>,
    /// Id of the compute service.
    pub service: Option<String>,
    /// True if nothing is left to do: the service is enabled, or the records of a deleted node are gone.
    pub is_over: bool,
}

/// API of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Store {
    /// Nova.
    Nova,
    /// Neutron.
    Neutron,
}

/// Requested list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Compute services.
    Services,
    /// Servers of a host.
    Servers(String),
    /// Migrations from a host and to it, with the time of the cordon.
    Migrations(String, String),
    /// Agents of a host.
    Agents(String),
}

impl Asked {
    /// True if an answer has the list.
    pub fn is_answered(&self, answer: &Json) -> bool {
        let key = match self {
            Self::Services => "services",
            Self::Servers(_) => "servers",
            Self::Migrations(..) => "migrations",
            Self::Agents(_) => "agents",
        };
        answer[key].is_array()
    }
}

/// Request that changes Nova or Neutron.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// API of the request.
    pub store: Store,
    /// HTTP method.
    pub method: &'static str,
    /// Path with the query.
    pub path: String,
    /// Body as JSON.
    pub body: Option<Json>,
    /// Purpose in words.
    pub doing: String,
    /// Id of the server to move; a refusal is told and does not stop other requests.
    pub server: Option<String>,
}

/// Result of [`turn`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn {
    /// [`Write`]s in order.
    pub writes: Vec<Write>,
    /// [`Answer`]s by the name of the node.
    pub answers: BTreeMap<String, Answer>,
    /// [`Story`] of each node out of service.
    pub stories: Vec<Story>,
    /// Failed migrations without a known reason: server, kind and id.
    pub unknown: Vec<(String, String, i64)>,
}

/// Memory between looks.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Reasons of failed migrations, by id.
    pub reasons: BTreeMap<i64, String>,
    /// Refusals of Nova, by the id of the server.
    pub refusals: BTreeMap<String, String>,
    /// Servers in a pause after a failure.
    pub resting: BTreeSet<String>,
    /// Nodes past the timeout.
    pub late: BTreeSet<String>,
    /// Servers with a failure in the last look.
    pub fresh: Vec<String>,
}

impl Memory {
    /// Remembers the reason of a failed migration.
    pub fn failed(&mut self, server: String, migration: i64, why: String) {
        self.reasons.insert(migration, why);
        self.resting.insert(server.clone());
        self.fresh.push(server);
    }

    /// Remembers a refusal of Nova to move a server.
    pub fn refused(&mut self, server: &str, why: String) {
        self.refusals.insert(server.to_owned(), why);
        self.fresh.push(server.to_owned());
    }
}

/// True if a [`Place`] requires a request to Nova.
pub fn needs_answers(place: &Place) -> bool {
    match place.standing {
        // What it says is recorded before anything is done.
        Standing::Cordoned | Standing::Gone => place.since.is_some(),
        Standing::InService => place.since.is_some() || place.service.is_none() && place.is_ready,
        Standing::Unwanted => place.since.is_some(),
    }
}

/// [`Asked`] lists with API and path.
pub fn lists(places: &[Place]) -> Vec<(Asked, Store, String)> {
    let asked: Vec<&Place> = places.iter().filter(|it| needs_answers(it)).collect();
    if asked.is_empty() {
        return Vec::new();
    }
    let services = "/v2.1/os-services?binary=nova-compute".to_owned();
    let mut lists = vec![(Asked::Services, Store::Nova, services)];
    for place in asked {
        let (host, since) = (escaped(&place.node), place.since.as_deref());
        if !matches!(place.standing, Standing::Cordoned | Standing::Gone) {
            continue;
        }
        let path = format!("/v2.1/servers/detail?all_tenants=1&host={host}&limit={PAGE}");
        lists.push((Asked::Servers(place.node.clone()), Store::Nova, path));
        // Migrations from before the cordon as well: one that waits for its turn brings a server later.
        let path = format!("/v2.1/os-migrations?host={host}&limit=1000");
        let asked = Asked::Migrations(place.node.clone(), since.unwrap_or_default().to_owned());
        lists.push((asked, Store::Nova, path));
        if place.standing == Standing::Gone {
            let path = format!("/v2.0/agents?host={host}");
            lists.push((Asked::Agents(place.node.clone()), Store::Neutron, path));
        }
    }
    lists
}

/// Text, escaped for a query.
fn escaped(text: &str) -> String {
    let kept = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let bytes = text.bytes().map(|byte| match kept(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    bytes.collect()
}

/// Requests and stories that follow from a [`Fleet`].
pub fn turn(
    cloud: &Cloud,
    held: &Credentials,
    places: &[Place],
    fleet: &Fleet,
    memory: &Memory,
) -> Turn {
    let mut turn = Turn::default();
    let drain = match &cloud.parameters.compute {
        Some(compute) => compute.drain.clone(),
        None => crate::parameters::Drain::default(),
    };
    let scene = Scene {
        mode: drain.mode,
        at_once: usize::try_from(drain.at_once.0).unwrap_or(1),
        evacuates: drain.evacuate,
        reason: format!("ferrostack {}: its node is cordoned", held.uid()),
        fleet,
        memory,
    };
    for place in places.iter().filter(|it| needs_answers(it)) {
        scene.place(place, &mut turn);
    }
    turn.unknown.truncate(REASONS);
    turn
}

struct Scene<'a> {
    mode: DrainMode,
    at_once: usize,
    evacuates: bool,
    /// Reason of our disabled services.
    reason: String,
    fleet: &'a Fleet,
    memory: &'a Memory,
}

impl Scene<'_> {
    fn place(&self, place: &Place, turn: &mut Turn) {
        let service = self.fleet.service(&place.node, place.service.as_deref());
        let mut answer = Answer {
            service: service.map(|it| it.id.clone()),
            ..Answer::default()
        };
        match place.standing {
            Standing::InService | Standing::Unwanted => {
                let again = service.filter(|it| !it.is_enabled && it.reason == self.reason);
                answer.is_over = again.is_none();
                turn.writes.extend(again.map(enable));
            }
            Standing::Cordoned => {
                let story = self.cordoned(place, service, turn);
                answer.is_empty = Some(story.is_empty());
                turn.stories.push(story);
            }
            Standing::Gone => {
                let story = self.gone(place, service, turn, &mut answer);
                turn.stories.push(story);
            }
        }
        turn.answers.insert(place.node.clone(), answer);
    }

    fn cordoned(&self, place: &Place, service: Option<&Service>, turn: &mut Turn) -> Story {
        let mut story = self.story(place, "live-migration", turn);
        match service {
            Some(service) if service.is_enabled => {
                turn.writes.push(disable(service, &self.reason));
                story.halted = Some(Halted::Because(
                    "its compute service is disabled".to_owned(),
                ));
                return story;
            }
            // A node on which nova-compute has never run has no server.
            None => return story,
            Some(_) => {}
        }
        if story.left == 0 {
            return story;
        }
        if self.mode == DrainMode::Wait {
            story.halted = Some(Halted::ByMode);
            story.stuck.clear();
        } else if self.memory.late.contains(&place.node) {
            story.halted = Some(Halted::ByTime);
        } else {
            let body = json!({"os-migrateLive": {"host": null, "block_migration": "auto"}});
            self.start(place, story.moving, &body, turn);
        }
        story
    }

    /// Removes the records of a deleted node without servers.
    fn gone(
        &self,
        place: &Place,
        service: Option<&Service>,
        turn: &mut Turn,
        answer: &mut Answer,
    ) -> Story {
        let mut story = self.story(place, "evacuation", turn);
        // A service is recorded while its node is there, or never.
        answer.service = None;
        if self.fleet.reports(&place.node) {
            let why = "its nova-compute reports to Nova: end it, or bring the node back";
            story.halted = Some(Halted::Because(why.to_owned()));
            story.stuck.clear();
            return story;
        }
        if place.service.is_none() {
            // Its service was never known to be ours.
            answer.is_over = true;
            return story;
        }
        if story.left > 0 {
            if self.evacuates {
                self.start(place, story.moving, &json!({"evacuate": {}}), turn);
            } else {
                story.stuck = self.names(&place.node);
                let why = "migrate or delete them, bring the node back, or set compute.drain.evacuate once its machine is off, by which they are built anew without their disks";
                story.halted = Some(Halted::Because(why.to_owned()));
            }
            return story;
        }
        if story.coming > 0 {
            let why = "Nova keeps its service until these migrations have ended";
            story.halted = Some(Halted::Because(why.to_owned()));
            return story;
        }
        let agents = self.fleet.agents.get(&place.node).into_iter().flatten();
        if agents.clone().any(|it| it.is_alive) {
            let why = "its ovn-controller reports to Neutron: end it, or bring the node back";
            story.halted = Some(Halted::Because(why.to_owned()));
            return story;
        }
        let agents = agents.map(|it| Write {
            store: Store::Neutron,
            method: "DELETE",
            path: format!("/v2.0/agents/{}", it.id),
            body: None,
            doing: format!("deleting the {} of {}", it.kind, place.node),
            server: None,
        });
        let service = service.map(|it| Write {
            store: Store::Nova,
            method: "DELETE",
            path: format!("/v2.1/os-services/{}", it.id),
            body: None,
            doing: format!("deleting the compute service of {}", place.node),
            server: None,
        });
        // The service last: with it Nova forgets the host.
        let writes: Vec<Write> = agents.chain(service).collect();
        answer.is_over = writes.is_empty();
        turn.writes.extend(writes);
        story
    }

    fn names(&self, node: &str) -> Vec<String> {
        let servers = self.fleet.servers.get(node).into_iter().flatten();
        servers
            .map(|it| format!("{} ({})", it.name, it.id))
            .collect()
    }

    /// Counts the servers of a [`Place`], and finds the ones without a way to another node.
    fn story(&self, place: &Place, kind: &str, turn: &mut Turn) -> Story {
        let servers = self.fleet.servers.get(&place.node);
        let servers: Vec<&Server> = servers.into_iter().flatten().collect();
        let moving = servers.iter().filter(|it| moves(it)).count();
        let mut stuck = Vec::new();
        for server in &servers {
            let mut failures = self.fleet.failures(&place.node, &server.id);
            if let Some(last) = failures.next().filter(|it| it.kind == kind)
                && !self.memory.reasons.contains_key(&last.id)
            {
                let unknown = (server.id.clone(), kind.to_owned(), last.id);
                turn.unknown.push(unknown);
            }
            if let Some(why) = self.obstacle(&place.node, server, kind) {
                stuck.push(format!(
                    "{} ({}, flavor {}): {why}",
                    server.name, server.id, server.flavor
                ));
            }
        }
        Story {
            node: place.node.clone(),
            standing: place.standing,
            left: servers.len(),
            moving,
            coming: self.fleet.coming(&place.node),
            stuck,
            halted: None,
        }
    }

    /// Reason against the migration of a [`Server`].
    fn obstacle(&self, node: &str, server: &Server, kind: &str) -> Option<String> {
        if moves(server) {
            return None;
        }
        if let Some(why) = unfit(server, kind) {
            return Some(why.to_owned());
        }
        if let Some(why) = self.memory.refusals.get(&server.id) {
            return Some(why.clone());
        }
        let mut failures = self.fleet.failures(node, &server.id);
        let last = failures.next()?;
        let tries = 1 + failures.count();
        let why = self.memory.reasons.get(&last.id).map_or("", String::as_str);
        let why = if why.is_empty() {
            "the migration failed"
        } else {
            why
        };
        let then = match tries < TRIES {
            true => "tried again",
            false => "not tried again until the node is cordoned anew",
        };
        Some(format!("{why} ({tries} of {TRIES} attempts, {then})"))
    }

    /// Starts migrations up to the allowed number.
    fn start(&self, place: &Place, moving: usize, body: &Json, turn: &mut Turn) {
        let servers = self.fleet.servers.get(&place.node);
        let servers = servers.into_iter().flatten();
        let kind = match body["evacuate"].is_object() {
            true => "evacuation",
            false => "live-migration",
        };
        let fit = servers.filter(|it| {
            it.task.is_empty()
                && !moves(it)
                && unfit(it, kind).is_none()
                && !self.memory.resting.contains(&it.id)
                && self.fleet.failures(&place.node, &it.id).count() < TRIES
        });
        let free = self.at_once.saturating_sub(moving);
        turn.writes.extend(fit.take(free).map(|server| Write {
            store: Store::Nova,
            method: "POST",
            path: format!("/v2.1/servers/{}/action", server.id),
            body: Some(body.clone()),
            doing: format!("moving {} away from {}", server.name, place.node),
            server: Some(server.id.clone()),
        }));
    }
}

/// True if a [`Server`] is on the way to another host.
fn moves(server: &Server) -> bool {
    matches!(server.status.as_str(), "MIGRATING" | "REBUILD")
        || server.task.contains("migrat")
        || server.task == "deleting"
        || server.task.starts_with("rebuild")
}

/// Reason against a migration in the state of a [`Server`].
fn unfit(server: &Server, kind: &str) -> Option<&'static str> {
    let evacuates = kind == "evacuation";
    Some(match server.status.as_str() {
        "ACTIVE" => return None,
        "PAUSED" if !evacuates => return None,
        "SHUTOFF" | "ERROR" if evacuates => return None,
        "SHUTOFF" => "SHUTOFF: only running servers are migrated. Start or delete it",
        "VERIFY_RESIZE" => "VERIFY_RESIZE: confirm or revert its resize",
        "ERROR" => "ERROR: reset its state or delete it",
        "BUILD" | "REBOOT" | "HARD_REBOOT" | "RESIZE" | "REBUILD" | "REVERT_RESIZE" => {
            return Some("something else is done with it, which has to end before");
        }
        "SUSPENDED" => "SUSPENDED: resume or delete it",
        "RESCUE" => "RESCUE: unrescue or delete it",
        _ => "servers in its state are not migrated: make it ACTIVE, or delete it",
    })
}

fn disable(service: &Service, reason: &str) -> Write {
    Write {
        store: Store::Nova,
        method: "PUT",
        path: format!("/v2.1/os-services/{}", service.id),
        body: Some(json!({"status": "disabled", "disabled_reason": reason})),
        doing: format!("disabling the compute service of {}", service.host),
        server: None,
    }
}

fn enable(service: &Service) -> Write {
    Write {
        body: Some(json!({"status": "enabled"})),
        doing: format!("enabling the compute service of {}", service.host),
        ..disable(service, "")
    }
}
