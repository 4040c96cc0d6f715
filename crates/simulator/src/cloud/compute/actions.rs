//! POST /servers/{id}/action

use serde_json::{Value, json};

use super::condition::allowed;
use super::{history, lifecycle, migrations, passed_on, rebuild, servers};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::latency::Transition;
use crate::cloud::network;

/// Performs and records the action in the body.
pub(crate) fn act(call: &mut Call<'_>) -> Answer {
    let named = |call: &Call<'_>| call.body.as_object()?.keys().next().cloned();
    let action = named(call).unwrap_or_default();
    let reply = carry_out(call)?;
    let remembered = match action.as_str() {
        "os-start" => "start",
        "os-stop" => "stop",
        "reboot" | "rebuild" | "lock" | "unlock" | "evacuate" => &action,
        _ => return Ok(reply),
    };
    let id = call.parameter("server_id").to_owned();
    history::note(call, &id, remembered);
    Ok(reply)
}

fn carry_out(call: &mut Call<'_>) -> Answer {
    let doc = servers::find(call)?;
    let id = doc.text("id").to_owned();
    let body = call.body.as_object().cloned().unwrap_or_default();
    let Some((action, argument)) = body.into_iter().next() else {
        return Err(Fault::bad("Malformed request body"));
    };
    if doc.flag("_locked")
        && !call.who.admin()
        && !matches!(action.as_str(), "unlock" | "os-getConsoleOutput")
    {
        return Err(Fault::conflict(format!("Instance {id} is locked")));
    }
    match action.as_str() {
        "os-start" => {
            allowed(&doc, "start", &["SHUTOFF"])?;
            later(call, &id, "powering-on", "running", true)
        }
        "os-stop" => {
            allowed(&doc, "stop", &["ACTIVE", "ERROR"])?;
            later(call, &id, "powering-off", "stopped", false)
        }
        "reboot" => reboot(call, &doc, &argument),
        "rebuild" => rebuild::begin(call, &doc, &argument),
        "os-getConsoleOutput" => console(call, &id, &argument),
        "os-getVNCConsole" => Err(Fault::conflict("Unavailable console type novnc.")),
        "lock" | "unlock" => {
            servers::change(call, &id, |doc| doc.set("_locked", action == "lock"));
            Ok(Reply::empty(202))
        }
        "addFixedIp" | "removeFixedIp" | "addFloatingIp" | "removeFloatingIp" => {
            passed_on::act(call, &doc, &action, &argument)
        }
        "addSecurityGroup" | "removeSecurityGroup" => group(call, &id, &action, &argument),
        "restore" => {
            allowed(&doc, "restore", &["SOFT_DELETED"])?;
            later(call, &id, "restoring", "running", true)
        }
        "forceDelete" => {
            lifecycle::begin_delete(call, &id);
            Ok(Reply::empty(202))
        }
        "os-migrateLive" => migrations::live(call, &doc, &argument),
        "evacuate" => migrations::evacuate(call, &doc, &argument),
        "os-resetState" if call.who.admin() => {
            let active = argument.get("state").and_then(Value::as_str) == Some("active");
            servers::change(call, &id, |doc| {
                doc.set("status", if active { "ACTIVE" } else { "ERROR" });
                doc.set("_task", "");
                doc.remove("fault");
            });
            Ok(Reply::empty(202))
        }
        "os-resetState" => Err(Fault::forbidden(
            "Policy doesn't allow os_compute_api:os-admin-actions:reset_state to be performed.",
        )),
        _ => Err(Fault::bad(format!("There is no such action: {action}"))),
    }
}

fn reboot(call: &mut Call<'_>, doc: &Doc, argument: &Value) -> Answer {
    let id = doc.text("id");
    let kind = argument
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_ascii_uppercase();
    let (status, task) = match kind.as_str() {
        "SOFT" => ("REBOOT", "rebooting"),
        "HARD" => ("HARD_REBOOT", "rebooting_hard"),
        _ => {
            return Err(Fault::bad(format!(
                "Invalid input for field/attribute type. Value: {kind}. '{kind}' is not one of \
                 ['HARD', 'Hard', 'hard', 'SOFT', 'Soft', 'soft']"
            )));
        }
    };
    allowed(
        doc,
        "reboot",
        if kind == "HARD" {
            &["ACTIVE", "SHUTOFF", "ERROR"]
        } else {
            &["ACTIVE"]
        },
    )?;
    servers::change(call, id, |doc| doc.set("status", status));
    later(call, id, task, "running", true)
}

fn later(call: &mut Call<'_>, id: &str, task: &str, transition: &str, boots: bool) -> Answer {
    let delay = call.settings.latency.transition(Transition::ServerAction);
    servers::change(call, id, |doc| {
        doc.set("_task", task);
        if boots {
            doc.set("_boot", doc.number("_boot") + 1);
        }
    });
    call.state.schedule(delay, transition, Kind::Server, id);
    Ok(Reply::empty(202))
}

fn console(call: &Call<'_>, id: &str, argument: &Value) -> Answer {
    let whole = call
        .settings
        .console
        .read()
        .clone()
        .map_or_else(String::new, |console| console(id));
    let wanted = match argument.get("length") {
        None | Some(Value::Null) => None,
        Some(value) => {
            let number = value
                .as_str()
                .map_or_else(|| value.as_i64(), |text| text.parse().ok());
            Some(number.ok_or_else(|| {
                Fault::bad(format!(
                    "Invalid input for field/attribute length. Value: {value}. {value} does not match '^-?[0-9]+$'"
                ))
            })?)
        }
    };
    let lines: Vec<&str> = whole.lines().collect();
    let skip = match wanted.and_then(|wanted| usize::try_from(wanted).ok()) {
        Some(wanted) => lines.len().saturating_sub(wanted),
        None => 0,
    };
    Ok(Reply::ok(json!({"output": lines[skip..].join("\n")})))
}

fn group(call: &mut Call<'_>, id: &str, action: &str, argument: &Value) -> Answer {
    let name = argument
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let project = call.who.project_id.clone();
    let found = call.accessible(Kind::SecurityGroup, name).or_else(|| {
        let named = call.state.by(Kind::SecurityGroup, "name", name);
        named
            .into_iter()
            .find(|group| group.text("project_id") == project)
    });
    let group = found.ok_or_else(|| {
        Fault::missing(format!(
            "Security group {name} not found for project {project}."
        ))
    })?;
    let group = group.text("id");
    for port in call.state.by(Kind::Port, "device_id", id) {
        let mut groups: Vec<String> = port.texts("security_groups").map(str::to_owned).collect();
        groups.retain(|existing| existing != group);
        if action == "addSecurityGroup" {
            groups.push(group.to_owned());
        }
        network::change_port(call.state, port.text("id"), |doc| {
            doc.set("security_groups", groups)
        });
    }
    Ok(Reply::empty(202))
}
