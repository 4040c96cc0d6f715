//! Hypervisors as services of Nova: `os-services`, and the hosts of a deployed cloud.
//!
//! A cloud without hosts of its own shows one for each availability zone, and schedules to eight. A deployed cloud has the
//! hosts whose nova-compute has reported.

use http::Method;
use serde_json::{Value, json};

use super::{catalog, migrations};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::clock::{naive_micros, zulu};
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::{Access, Table};
use crate::cloud::state::State;

/// Longest reason of a disabled service, in characters.
const LONGEST: usize = 255;
/// Agents of OVN on each host, as Neutron tells them.
const AGENTS: [(&str, &str); 2] = [
    ("OVN Controller agent", "ovn-controller"),
    ("OVN Metadata agent", "neutron-ovn-metadata-agent"),
];

/// Host whose nova-compute has reported.
pub(crate) struct Host {
    /// Name in Nova.
    pub(crate) name: String,
    /// True if nova-compute runs.
    pub(crate) is_up: bool,
}

/// Registers the operations.
pub(super) fn routes(table: &mut Table<'_>) {
    table
        .on(Method::GET, "/v2.1/os-services", Access::Admin, list)
        .on(
            Method::PUT,
            "/v2.1/os-services/{service_id}",
            Access::Admin,
            update,
        )
        .on(
            Method::DELETE,
            "/v2.1/os-services/{service_id}",
            Access::Admin,
            delete,
        );
}

/// Records which hosts have reported: new ones are there and enabled, those left out are down.
pub(crate) fn register(state: &mut State, hosts: &[Host]) {
    let known: Vec<String> = state
        .all(Kind::ComputeHost)
        .map(|it| it.text("host").to_owned())
        .collect();
    for host in hosts.iter().filter(|it| !known.contains(&it.name)) {
        let id = state.new_id();
        let now = naive_micros(state.now());
        let mut doc = Doc::new();
        doc.set("id", id);
        doc.set("host", host.name.as_str());
        doc.set("status", "enabled");
        doc.set("state", state_of(host.is_up));
        doc.set("updated_at", now);
        state.put(Kind::ComputeHost, doc);
        add_agents(state, &host.name);
    }
    let all: Vec<(String, String, String)> = state
        .all(Kind::ComputeHost)
        .map(|it| [it.text("id"), it.text("host"), it.text("state")].map(str::to_owned))
        .map(|[id, host, state]| (id, host, state))
        .collect();
    for (id, name, was) in all {
        let is_up = hosts.iter().any(|it| it.name == name && it.is_up);
        if was != state_of(is_up) {
            state.edit(Kind::ComputeHost, &id, |doc| {
                doc.set("state", state_of(is_up));
            });
        }
    }
}

/// Puts a running server on a host.
pub(crate) fn put_server(state: &mut State, name: &str, host: &str) -> String {
    let (id, now) = (state.new_id(), zulu(state.now()));
    let mut doc = Doc::new();
    doc.set("id", id.as_str());
    doc.set("name", name);
    doc.set("status", "ACTIVE");
    doc.set("created", now.as_str());
    doc.set("updated", now);
    doc.set("_launched_at", naive_micros(state.now()));
    doc.set("_created_ms", state.now().as_millisecond());
    doc.set("_flavor_name", "m1.small");
    doc.set("_zone", "nova");
    doc.set("_host", host);
    state.put(Kind::Server, doc);
    id
}

fn add_agents(state: &mut State, host: &str) {
    let there = state
        .all(Kind::NetworkAgent)
        .any(|it| it.text("host") == host);
    if there {
        return;
    }
    for (kind, binary) in AGENTS {
        let mut doc = Doc::new();
        doc.set("id", state.new_id());
        doc.set("agent_type", kind);
        doc.set("binary", binary);
        doc.set("host", host);
        state.put(Kind::NetworkAgent, doc);
    }
}

fn state_of(is_up: bool) -> &'static str {
    if is_up { "up" } else { "down" }
}

/// True if the nova-compute of a host answers.
pub(super) fn is_up(state: &State, host: &str) -> bool {
    let mut all = state.all(Kind::ComputeHost);
    let found = all.find(|it| it.text("host") == host);
    found.is_none_or(|it| it.text("state") == "up" && !it.flag("forced_down"))
}

/// Hosts that the scheduler takes for a server, besides the one that the server is on; `None` in a cloud without hosts of
/// its own.
pub(super) fn takers(state: &State, besides: &str) -> Option<Vec<String>> {
    if state.count(Kind::ComputeHost) == 0 {
        return None;
    }
    let mut takers: Vec<String> = state
        .all(Kind::ComputeHost)
        .filter(|it| it.text("status") == "enabled" && it.text("state") == "up")
        .map(|it| it.text("host").to_owned())
        .filter(|host| host != besides)
        .collect();
    takers.sort();
    Some(takers)
}

fn list(call: &mut Call<'_>) -> Answer {
    let mut all: Vec<Value> = match call.state.count(Kind::ComputeHost) {
        0 => of_zones(call),
        _ => {
            let hosts = call.state.all(Kind::ComputeHost);
            hosts.map(|it| view_of(call, it)).collect()
        }
    };
    for field in ["host", "binary"] {
        if let Some(wanted) = call.query.get(field) {
            all.retain(|it| it[field] == wanted);
        }
    }
    Ok(Reply::ok(json!({"services": all})))
}

/// One service for each availability zone.
fn of_zones(call: &Call<'_>) -> Vec<Value> {
    let zones = call.settings.zones.iter().zip(1..);
    let service = |(zone, number): (&String, u32)| {
        let mut service = json!({"id": number, "binary": "nova-compute", "host": catalog::host(zone),
            "zone": zone, "status": "enabled", "state": "up", "disabled_reason": null,
            "updated_at": naive_micros(call.now())});
        if call.version >= 11 {
            service["forced_down"] = json!(false);
        }
        if call.version >= 53 {
            service["id"] = json!(catalog::id_of(zone));
        }
        service
    };
    zones.map(service).collect()
}

fn view_of(call: &Call<'_>, doc: &Doc) -> Value {
    let reason = Some(doc.text("disabled_reason")).filter(|it| !it.is_empty());
    let mut service = json!({"id": doc.text("id"), "binary": "nova-compute", "host": doc.text("host"),
        "zone": "nova", "status": doc.text("status"), "state": doc.text("state"),
        "disabled_reason": reason, "updated_at": doc.text("updated_at")});
    if call.version >= 11 {
        service["forced_down"] = json!(doc.flag("forced_down"));
    }
    service
}

/// Finds the service in the path.
fn find(call: &Call<'_>) -> Result<Doc, Fault> {
    let id = call.parameter("service_id");
    if call.version < 53 {
        return Err(Fault::missing("The resource could not be found."));
    }
    let found = call.state.get(Kind::ComputeHost, id);
    let found = found.ok_or_else(|| Fault::missing(format!("Service {id} could not be found.")))?;
    Ok((*found).clone())
}

fn update(call: &mut Call<'_>) -> Answer {
    let doc = find(call)?;
    let body = call.body.as_object().cloned().unwrap_or_default();
    let known = ["status", "disabled_reason", "forced_down"];
    if let Some(name) = body.keys().find(|it| !known.contains(&it.as_str())) {
        return Err(Fault::bad(format!(
            "Additional properties are not allowed ('{name}' was unexpected)"
        )));
    }
    let status = body.text("status");
    if body.contains_key("status") && !matches!(status, "enabled" | "disabled") {
        return Err(Fault::bad(format!(
            "Invalid input for field/attribute status. Value: {status}. '{status}' is not one of ['enabled', 'disabled']"
        )));
    }
    let reason = body.text("disabled_reason");
    if body.contains_key("disabled_reason") {
        if status != "disabled" {
            return Err(Fault::bad(
                "Specifying disabled_reason requires that status be 'disabled'.",
            ));
        }
        if reason.is_empty() || reason.chars().count() > LONGEST {
            return Err(Fault::bad(format!(
                "Invalid input for field/attribute disabled_reason. Value: {reason}."
            )));
        }
    }
    if !body.contains_key("status") && !body.contains_key("forced_down") {
        return Err(Fault::bad(
            "No updates were requested. Fields 'status' or 'forced_down' should be specified.",
        ));
    }
    let now = naive_micros(call.now());
    let id = doc.text("id").to_owned();
    call.state.edit(Kind::ComputeHost, &id, |doc| {
        if !status.is_empty() {
            doc.set("status", status);
            doc.set("disabled_reason", reason);
        }
        if let Some(Value::Bool(down)) = body.get("forced_down") {
            doc.set("forced_down", *down);
        }
        doc.set("updated_at", now);
    });
    let doc = find(call)?;
    Ok(Reply::ok(json!({"service": view_of(call, &doc)})))
}

fn delete(call: &mut Call<'_>) -> Answer {
    let doc = find(call)?;
    let host = doc.text("host");
    let hosts_servers = call
        .state
        .all(Kind::Server)
        .any(|it| it.text("_host") == host && it.text("status") != "DELETED");
    if hosts_servers {
        return Err(Fault::conflict(
            "Unable to delete compute service that is hosting instances. Migrate or delete the instances first.",
        ));
    }
    if migrations::are_running(call.state, host) {
        return Err(Fault::conflict(
            "Unable to delete compute service that has in-progress migrations. Complete the migrations or delete the instances first.",
        ));
    }
    call.state.remove(Kind::ComputeHost, doc.text("id"));
    Ok(Reply::empty(204))
}
