//! Services, servers, migrations and agents in Nova and Neutron.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::{items, text};

/// Content of Nova and Neutron: input of [`turn`](super::turn()).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fleet {
    pub(super) services: Vec<Service>,
    pub(super) servers: BTreeMap<String, Vec<Server>>,
    pub(super) migrations: BTreeMap<String, Vec<Migration>>,
    pub(super) agents: BTreeMap<String, Vec<Agent>>,
}

/// Compute service in Nova.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Service {
    pub(super) id: String,
    pub(super) host: String,
    pub(super) is_enabled: bool,
    pub(super) is_up: bool,
    pub(super) reason: String,
}

/// Server on a host.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Server {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) flavor: String,
    pub(super) status: String,
    pub(super) task: String,
}

/// Migration of a server from a host or to it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Migration {
    pub(super) id: i64,
    pub(super) server: String,
    pub(super) kind: String,
    source: String,
    destination: String,
    status: String,
    /// True if the record has changed since the cordon.
    is_recent: bool,
}

/// Statuses of migrations that have ended. The server of a resize is on its new host once it is `finished`.
const ENDED: [&str; 8] = [
    "completed",
    "done",
    "error",
    "failed",
    "cancelled",
    "confirmed",
    "reverted",
    "finished",
];

/// Agent of a host in Neutron.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Agent {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) host: String,
    pub(super) is_alive: bool,
}

impl Fleet {
    /// Adds the list of the compute services.
    pub fn services(&mut self, list: &Json) {
        let service = |it: &Json| Service {
            id: text(&it["id"]).to_owned(),
            host: text(&it["host"]).to_owned(),
            is_enabled: it["status"] == "enabled",
            is_up: it["state"] == "up" && it["forced_down"] != true,
            reason: text(&it["disabled_reason"]).to_owned(),
        };
        self.services = items(&list["services"]).map(service).collect();
    }

    /// Adds a page of the servers of a host.
    pub fn servers(&mut self, host: &str, list: &Json) {
        let server = |it: &Json| Server {
            id: text(&it["id"]).to_owned(),
            name: text(&it["name"]).to_owned(),
            flavor: text(&it["flavor"]["original_name"]).to_owned(),
            status: text(&it["status"]).to_owned(),
            task: text(&it["OS-EXT-STS:task_state"]).to_owned(),
        };
        let all = self.servers.entry(host.to_owned()).or_default();
        all.extend(items(&list["servers"]).map(server));
    }

    /// Adds the migrations from a host and to it, the newest first. `since`: time of the cordon; a migration from before
    /// the cordon is no attempt of the drain, but may bring a server.
    pub fn migrations(&mut self, host: &str, since: &str, list: &Json) {
        // Nova's times have no zone, and may have microseconds.
        let since = since.trim_end_matches('Z');
        let migration = |it: &Json| Migration {
            id: it["id"].as_i64().unwrap_or_default(),
            server: text(&it["instance_uuid"]).to_owned(),
            kind: text(&it["migration_type"]).to_owned(),
            source: text(&it["source_compute"]).to_owned(),
            destination: text(&it["dest_compute"]).to_owned(),
            status: text(&it["status"]).to_owned(),
            is_recent: it["updated_at"].as_str().or(it["created_at"].as_str()) >= Some(since),
        };
        let all = items(&list["migrations"]).map(migration).collect();
        self.migrations.insert(host.to_owned(), all);
    }

    /// Adds the agents of a host in Neutron.
    pub fn agents(&mut self, host: &str, list: &Json) {
        let agent = |it: &Json| Agent {
            id: text(&it["id"]).to_owned(),
            kind: text(&it["agent_type"]).to_owned(),
            host: text(&it["host"]).to_owned(),
            is_alive: it["alive"] == true,
        };
        let all = items(&list["agents"]).map(agent);
        self.agents
            .insert(host.to_owned(), all.filter(|it| it.host == host).collect());
    }

    /// [`Service`] of a place: by the recorded id, or by the name of the host without a record.
    pub(super) fn service(&self, host: &str, id: Option<&str>) -> Option<&Service> {
        let mut services = self.services.iter();
        match id {
            Some(id) => services.find(|it| it.id == id && it.host == host),
            None => services.find(|it| it.host == host),
        }
    }

    /// True if a nova-compute of a host reports to Nova, by whichever service.
    pub(super) fn reports(&self, host: &str) -> bool {
        self.services.iter().any(|it| it.host == host && it.is_up)
    }

    /// Failed [`Migration`]s of a server away from a host, newest first.
    pub(super) fn failures<'a>(
        &'a self,
        host: &'a str,
        server: &'a str,
    ) -> impl Iterator<Item = &'a Migration> {
        let all = self.migrations.get(host).into_iter().flatten();
        let failed = |it: &Migration| matches!(it.status.as_str(), "error" | "failed");
        let all = all.filter(|it| it.is_recent);
        all.filter(move |it| it.server == server && it.source == host && failed(it))
    }

    /// Number of servers on the way to a host.
    pub(super) fn coming(&self, host: &str) -> usize {
        let all = self.migrations.get(host).into_iter().flatten();
        let comes = |it: &&Migration| {
            it.destination == host && it.source != host && !ENDED.contains(&it.status.as_str())
        };
        all.filter(comes).count()
    }
}

/// Path of the next page of a list of servers; `None` after the last page.
pub fn next_page(path: &str, list: &Json) -> Option<String> {
    items(&list["servers_links"]).find(|it| it["rel"] == "next")?;
    let last = items(&list["servers"]).last()?;
    let path = path.split("&marker=").next().unwrap_or(path);
    Some(format!("{path}&marker={}", text(&last["id"])))
}

/// Path of the details of the newest action of a kind in a list of actions on a server.
pub fn details_of(server: &str, kind: &str, list: &Json) -> Option<String> {
    let wanted = if kind == "evacuation" {
        "evacuate"
    } else {
        kind
    };
    let mut actions = items(&list["instanceActions"]);
    let found = actions.find(|it| it["action"] == wanted)?;
    let request = text(&found["request_id"]);
    Some(format!(
        "/v2.1/servers/{server}/os-instance-actions/{request}"
    ))
}

/// Nova's message for the failure of an action.
pub fn detail_of(action: &Json) -> Option<String> {
    let events = items(&action["instanceAction"]["events"]);
    let failed = events.filter(|it| it["result"] == "Error");
    let words = failed.filter_map(|it| it["details"].as_str());
    words.last().map(str::to_owned)
}
