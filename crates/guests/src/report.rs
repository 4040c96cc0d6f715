//! Changes of the guests, as lines for users.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use openstack::compute::HostedServer;
use simulator::data_plane::{DataPlane, Instance};
use simulator::guest::Outside;

use super::observe::Observation;

/// Console lines of a machine that has become a node: from the bootstrap data, and from kubeadm.
const SUCCESS: [&str; 3] = [
    "bootstrap-success.complete",
    "This node has joined the cluster",
    "Your Kubernetes control-plane has initialized successfully",
];
/// Console lines after a failure of kubeadm: from simulated guests, and from cloud-init.
const FAILURE: [&str; 3] = [
    "bootstrap failed",
    "Failed to run module scripts-user",
    "Failed to run module scripts_user",
];

/// Differences between two [`DataPlane`]s: created and deleted servers, and targets of addresses.
pub(super) fn changes(before: &DataPlane, after: &DataPlane, outside: &Outside) -> Vec<String> {
    let (old, new) = (by_id(before), by_id(after));
    let mut lines = Vec::new();
    for (id, instance) in &new {
        match old.get(id) {
            None => lines.push(appears(instance)),
            Some(was) if was.running != instance.running => {
                let state = if instance.running { "on" } else { "off" };
                lines.push(format!("{}: switched {state}", instance.name));
            }
            Some(_) => {}
        }
    }
    for (id, instance) in &old {
        if !new.contains_key(id) {
            lines.push(format!("{}: gone", instance.name));
        }
    }
    let (old, new) = (roads(before, outside), roads(after, outside));
    for (from, to) in &new {
        if old.get(from) != Some(to) {
            lines.push(format!("{from} leads to {to}"));
        }
    }
    for from in old.keys().filter(|from| !new.contains_key(*from)) {
        lines.push(format!("{from} no longer leads anywhere"));
    }
    lines
}

/// Servers without user data, on which nothing runs.
#[derive(Debug, Default)]
pub(super) struct Idle {
    reported: BTreeSet<String>,
}

impl Idle {
    /// Servers in ACTIVE without user data, once each.
    pub(super) fn lines(&mut self, seen: &Observation) -> Vec<String> {
        let idle = seen
            .servers
            .iter()
            .filter(|it| it.user_data.is_none() && it.server.status == "ACTIVE");
        let mut lines = Vec::new();
        for HostedServer { server, .. } in idle {
            if self.reported.insert(server.id.clone()) {
                lines.push(format!(
                    "{}: nothing runs on it, as this user sees no user data (server {})",
                    server.name, server.id
                ));
            }
        }
        let there = |id: &String| seen.servers.iter().any(|it| it.server.id == *id);
        self.reported.retain(there);
        lines
    }
}

/// Guests whose first boot has been reported.
#[derive(Debug, Default)]
pub(super) struct Consoles {
    reported: BTreeSet<String>,
}

impl Consoles {
    /// The results of first boots, once for each guest.
    pub(super) fn outcomes(
        &mut self,
        world: &DataPlane,
        console: impl Fn(&str) -> String,
    ) -> Vec<String> {
        let present = by_id(world);
        self.reported.retain(|id| present.contains_key(id.as_str()));
        let mut lines = Vec::new();
        for (id, instance) in present {
            if self.reported.contains(id) {
                continue;
            }
            if let Some(outcome) = outcome(&console(id)) {
                lines.push(format!("{}: {outcome}", instance.name));
                self.reported.insert(id.to_owned());
            }
        }
        lines
    }
}

/// The result of the first boot, if the console shows its end.
fn outcome(console: &str) -> Option<String> {
    let shows = |words: &[&str]| words.iter().any(|words| console.contains(words));
    if shows(&SUCCESS) {
        return Some("is a node".to_owned());
    }
    if !shows(&FAILURE) {
        let finished = |line: &str| {
            line.contains("Cloud-init v.")
                && line.contains(" finished")
                && line.contains("Datasource")
        };
        return console
            .lines()
            .any(finished)
            .then(|| "booted; its user data does not make it a node".to_owned());
    }
    let why = console
        .lines()
        .rfind(|line| line.contains("error") || line.contains("Failed loading"))
        .map(|line| line.split_once("]: ").map_or(line, |(_, text)| text))
        .unwrap_or("its console shows no error");
    Some(format!("bootstrap failed: {why}"))
}

fn appears(instance: &Instance) -> String {
    let power = if instance.running { "boots" } else { "is off" };
    let fixed: Vec<String> = instance.fixed_ips.iter().map(IpAddr::to_string).collect();
    format!(
        "{}: {power} (server {}, zone {}, {})",
        instance.name,
        instance.id,
        instance.availability_zone,
        fixed.join(", ")
    )
}

fn by_id(world: &DataPlane) -> BTreeMap<&str, &Instance> {
    world
        .instances
        .iter()
        .map(|instance| (instance.id.as_str(), instance))
        .collect()
}

/// Targets of floating IPs of guests.
fn roads(world: &DataPlane, outside: &Outside) -> BTreeMap<String, String> {
    let mut roads = BTreeMap::new();
    for forward in &world.addresses {
        let note = if outside.contains(forward.floating) {
            ""
        } else {
            ", but nothing listens on it: it is not a loopback address and not in a --bind-range"
        };
        for instance in &world.instances {
            if instance.fixed_ips.contains(&forward.fixed) {
                let to = format!("{}{note}", instance.name);
                roads.insert(forward.floating.to_string(), to);
            }
        }
        for listener in world.listeners.iter().filter(|it| it.vip == forward.fixed) {
            let members: Vec<String> = listener
                .members
                .iter()
                .map(|member| member.at.to_string())
                .collect();
            let to = match members.as_slice() {
                [] => "a load balancer without members".to_owned(),
                _ => format!("a load balancer of {}", members.join(", ")),
            };
            roads.insert(
                format!("{}:{}", forward.floating, listener.port),
                format!("{to}{note}"),
            );
        }
    }
    roads
}

#[cfg(test)]
mod tests;
