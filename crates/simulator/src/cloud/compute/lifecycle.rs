//! Transitions of servers: build, deletion, reboot, failure.

use std::time::Duration;

use serde_json::{Value, json};

use super::volume_flow::NotYet;
use super::{hosts, migrations, rebuild, servers, volume_flow};
use crate::cloud::call::Call;
use crate::cloud::clock::{naive_micros, zulu};
use crate::cloud::document::{Doc, Fields};
use crate::cloud::kind::Kind;
use crate::cloud::latency::Transition;
use crate::cloud::network;
use crate::cloud::settings::Settings;
use crate::cloud::state::State;
use crate::data_plane::GUEST_FAULT;

/// Maximum number of deleted servers in lists with `changes-since`.
const REMEMBERED: usize = 2000;
/// Time until another look at a server whose volume is being created.
const AGAIN: Duration = Duration::from_millis(1);

/// Applies a due transition.
pub(crate) fn transition(state: &mut State, settings: &Settings, action: &str, id: &str) {
    match action {
        "spawn" => spawn(state, settings, id),
        "gone" => gone(state, settings, id),
        "buried" => buried(state, id),
        "running" => settle(state, id, "ACTIVE"),
        "stopped" => settle(state, id, "SHUTOFF"),
        "rebuilt" => rebuild::end(state, settings, id),
        "migrates" => migrations::begin(state, id),
        "moved" | "evacuated" => migrations::end(state, settings, action, id),
        "softened" => soften(state, settings, id),
        "reclaimed" => reclaim(state, settings, id),
        "connect-volume" | "plug-volume" | "release-volume" | "forget-volume"
        | "give-up-volume" | "grow-volume" => {
            volume_flow::transition(state, settings, action, id);
        }
        _ => tracing::warn!(action, "unknown server transition dropped"),
    }
}

/// Deletes a server. If the cloud reclaims deleted servers later, a running one becomes SOFT_DELETED; a second deletion
/// removes it.
pub(crate) fn delete(call: &mut Call<'_>, doc: &Doc) {
    let id = doc.text("id");
    let ran = doc.given("_launched_at") && doc.text("_task").is_empty();
    let aside = doc.text("status") == "SOFT_DELETED";
    if reclaim_interval(call.settings).is_zero() || !ran || aside {
        begin_delete(call, id);
        return;
    }
    let delay = call.settings.latency.transition(Transition::ServerAction);
    servers::change(call, id, |doc| doc.set("_task", "soft-deleting"));
    call.state.schedule(delay, "softened", Kind::Server, id);
}

/// Accepts a deletion; the server is removed by a later transition.
pub(crate) fn begin_delete(call: &mut Call<'_>, id: &str) {
    let delay = call.settings.latency.transition(Transition::ServerAction);
    let already = call
        .state
        .get(Kind::Server, id)
        .is_some_and(|doc| doc.text("_task") == "deleting" || doc.text("status") == "DELETED");
    if already {
        return;
    }
    servers::change(call, id, |doc| doc.set("_task", "deleting"));
    call.state.schedule(delay, "gone", Kind::Server, id);
}

/// Sets a server to ERROR with a fault, as a failed build or an administrator would.
pub(crate) fn fail(state: &mut State, id: &str, code: i64, message: &str) -> bool {
    let now = zulu(state.now());
    state.edit(Kind::Server, id, |doc| {
        doc.set("status", "ERROR");
        doc.set("_task", "");
        doc.set("updated", now.clone());
        doc.set(
            "fault",
            json!({"code": code, "created": now, "message": message}),
        );
    })
}

/// Records that the machine of an ACTIVE server is off, as Nova does on a comparison of power states.
pub(crate) fn switched_off(state: &mut State, id: &str) {
    let runs = state
        .get(Kind::Server, id)
        .is_some_and(|doc| doc.text("status") == "ACTIVE" && doc.text("_task").is_empty());
    if runs {
        settle(state, id, "SHUTOFF");
    }
}

fn spawn(state: &mut State, settings: &Settings, id: &str) {
    let Some(doc) = state.get(Kind::Server, id) else {
        return;
    };
    if doc.text("status") != "BUILD" || doc.text("_task") == "deleting" {
        return;
    }
    if let Some(message) = settings.server_fault(doc.text("name")) {
        fail(state, id, 500, &message);
        return;
    }
    if let Some(fault) = settings.guest_fault(doc.text("name")) {
        state.edit(Kind::Server, id, |doc| {
            let mut metadata = doc.object("metadata");
            metadata.insert(GUEST_FAULT.to_owned(), fault.into());
            doc.set("metadata", metadata);
        });
    }
    let Some(host) = schedule_host(state, &doc) else {
        fail(
            state,
            id,
            500,
            "No valid host was found. There are not enough hosts available.",
        );
        return;
    };
    match volume_flow::attach_all(state, &doc, &host) {
        Ok(()) => {}
        Err(NotYet::Creating) => {
            let delay = settings.latency.transition(Transition::Volume);
            return state.schedule(delay.max(AGAIN), "spawn", Kind::Server, id);
        }
        Err(NotYet::Failed(volume, status)) => {
            let message = format!(
                "Build of instance {id} aborted: Volume {volume} did not finish being created even after we waited 0 \
                 seconds or 1 attempts. And its status is {status}."
            );
            fail(state, id, 500, &message);
            return;
        }
    }
    for port in state.by(Kind::Port, "device_id", id) {
        let owner = format!("compute:{}", doc.text("_zone"));
        network::bind(state, port.text("id"), id, &owner, &host, true);
        for trunk in state.by(Kind::Trunk, "port_id", port.text("id")) {
            state.edit(Kind::Trunk, trunk.text("id"), |trunk| {
                trunk.set("status", "ACTIVE")
            });
        }
    }
    let (now, launched) = (zulu(state.now()), naive_micros(state.now()));
    state.edit(Kind::Server, id, |doc| {
        doc.set("status", "ACTIVE");
        doc.set("_task", "");
        doc.set("_host", host);
        doc.set("_launched_at", launched);
        doc.set("updated", now);
    });
}

/// Hosts per availability zone.
const HOSTS: u64 = 8;

/// Returns a host in the server's zone that fits the server group.
pub(super) fn schedule_host(state: &State, doc: &Doc) -> Option<String> {
    let zone = doc.text("_zone");
    let first = u64::from_str_radix(doc.text("id").get(..8)?, 16).ok()? % HOSTS;
    let group = state.get(Kind::ServerGroup, doc.text("_group"));
    let policy = group.as_ref().map_or("", |group| group.text("_policy"));
    let mates: Vec<String> = group
        .iter()
        .flat_map(|group| group.texts("members"))
        .filter(|member| *member != doc.text("id"))
        .filter_map(|member| state.get(Kind::Server, member))
        .map(|mate| mate.text("_host").to_owned())
        .filter(|host| !host.is_empty())
        .collect();
    let all: Vec<String> = match hosts::takers(state, doc.text("_host")) {
        Some(hosts) => hosts,
        None => (1..=HOSTS)
            .map(|number| format!("{zone}-cmp{number}"))
            .filter(|host| host != doc.text("_host"))
            .collect(),
    };
    let count = u64::try_from(all.len()).unwrap_or_default().max(1);
    let first = usize::try_from(first % count).unwrap_or_default();
    let mut hosts = all.iter().cycle().skip(first).take(all.len()).cloned();
    match policy {
        "anti-affinity" => hosts.find(|host| !mates.contains(host)),
        "soft-anti-affinity" => {
            hosts.min_by_key(|host| mates.iter().filter(|mate| *mate == host).count())
        }
        "affinity" => match mates.first() {
            Some(host) if all.contains(host) => Some(host.clone()),
            Some(_) => None,
            None => hosts.next(),
        },
        "soft-affinity" => mates.first().cloned().or_else(|| hosts.next()),
        _ => hosts.next(),
    }
}

/// Releases ports and volumes before the server disappears, like Nova; meanwhile the status is DELETED.
fn gone(state: &mut State, settings: &Settings, id: &str) {
    let Some(doc) = state.get(Kind::Server, id) else {
        return;
    };
    for port in state.by(Kind::Port, "device_id", id) {
        if doc
            .texts("_own_ports")
            .any(|created| created == port.text("id"))
        {
            network::remove_port(state, port.text("id"));
        } else {
            network::release(state, port.text("id"));
        }
    }
    volume_flow::release_all(state, settings, &doc);
    if let Some(group) = state.get(Kind::ServerGroup, doc.text("_group")) {
        state.edit(Kind::ServerGroup, group.text("id"), |group| {
            let left: Vec<Value> = group
                .list("members")
                .iter()
                .filter(|member| *member != id)
                .cloned()
                .collect();
            group.set("members", left);
        });
    }
    let (now, ended) = (zulu(state.now()), naive_micros(state.now()));
    state.edit(Kind::Server, id, |doc| {
        doc.set("status", "DELETED");
        doc.set("_task", "");
        doc.set("_volumes", json!([]));
        doc.set("_terminated_at", ended);
        doc.set("updated", now);
    });
    let rest = settings.latency.transition(Transition::ServerAction) / 4;
    state.schedule(rest, "buried", Kind::Server, id);
}

fn reclaim_interval(settings: &Settings) -> Duration {
    Duration::from_secs(settings.changeable.read().reclaim_instance_interval)
}

fn soften(state: &mut State, settings: &Settings, id: &str) {
    let interval = reclaim_interval(settings);
    let now = state.now();
    let until = now.as_millisecond() + i64::try_from(interval.as_millis()).unwrap_or(i64::MAX / 2);
    let softened = state.edit(Kind::Server, id, |doc| {
        if doc.text("_task") == "soft-deleting" {
            doc.set("status", "SOFT_DELETED");
            doc.set("_task", "");
            doc.set("_reclaim_ms", until);
            doc.set("updated", zulu(now));
        }
    });
    if softened {
        state.schedule(interval, "reclaimed", Kind::Server, id);
    }
}

fn reclaim(state: &mut State, settings: &Settings, id: &str) {
    let due = state.get(Kind::Server, id).is_some_and(|doc| {
        // A server that was restored and deleted again has a later deadline.
        doc.text("status") == "SOFT_DELETED"
            && doc.number("_reclaim_ms") <= state.now().as_millisecond()
    });
    if due {
        gone(state, settings, id);
    }
}

fn buried(state: &mut State, id: &str) {
    if let Some(doc) = state.remove(Kind::Server, id) {
        remember(state, &doc);
    }
}

fn remember(state: &mut State, doc: &Doc) {
    let mut doc = doc.clone();
    doc.set("status", "DELETED");
    doc.set("_task", "");
    doc.set("updated", zulu(state.now()));
    doc.set("_terminated_at", naive_micros(state.now()));
    doc.set(
        "_key",
        format!("{:016}-{}", state.now().as_millisecond(), doc.text("id")),
    );
    for heavy in ["_user_data", "_volumes", "_own_ports"] {
        doc.remove(heavy);
    }
    state.put(Kind::DeletedServer, doc);
    if state.count(Kind::DeletedServer) > REMEMBERED
        && let Some((oldest, _)) = state.first(Kind::DeletedServer)
    {
        state.remove(Kind::DeletedServer, &oldest);
    }
}

fn settle(state: &mut State, id: &str, status: &str) {
    let now = zulu(state.now());
    state.edit(Kind::Server, id, |doc| {
        if doc.text("_task") != "deleting" {
            doc.set("status", status);
            doc.set("_task", "");
            doc.set("updated", now);
        }
    });
}
