//! Operator API under `/_simulator/`: counts, log, resources, faults, clock.
//!
//! Without authentication within a process; on a socket, [`guard`](super::guard) checks every request first.

use std::str::FromStr;
use std::time::Duration;

use http::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Cloud;
use super::call::{Answer, Reply};
use super::dispatch::Incoming;
use super::document;
use super::fault::Fault;
use super::identity::{Consent, OidcAccounts};
use super::injection::Rule;
use super::kind::Kind;
use super::settings::{Changeable, GuestFaultRule, ServerFault, VolumeFault};
use crate::data_plane::GuestFault;

/// Keys that a posted fault rule may have.
const RULE_KEYS: [&str; 14] = [
    "service",
    "method",
    "route",
    "project",
    "after",
    "count",
    "probability",
    "after_change",
    "status",
    "message",
    "retry_after",
    "delay_ms",
    "drop",
    "garbage",
];

/// New status of a volume, a snapshot or a backup.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StatusChange {
    status: String,
}

/// Answers a request of the operator.
pub(crate) fn answer(cloud: &Cloud, incoming: &Incoming<'_>, body: &[u8]) -> Answer {
    let inner = &cloud.inner;
    let path: Vec<&str> = incoming
        .path
        .split('/')
        .filter(|part| !part.is_empty())
        .collect();
    match (incoming.method.as_str(), path.as_slice()) {
        ("GET", ["requests"]) => Ok(Reply::ok(
            json!({"requests": cloud.requests(), "writes": cloud.writes()}),
        )),
        ("DELETE", ["requests"]) => {
            cloud.reset_requests();
            Ok(Reply::empty(204))
        }
        ("GET", ["resources"]) => Ok(Reply::ok(json!({"resources": cloud.resources()}))),
        ("GET", ["log"]) => {
            let limit = incoming.query.limit().map_err(Fault::bad)?.unwrap_or(100);
            Ok(Reply::ok(json!({"log": inner.journal.last(limit)})))
        }
        ("GET", ["faults"]) => Ok(Reply::ok(json!({"faults": inner.injections.list()}))),
        ("POST", ["faults"]) => {
            let rule = inner.injections.add(rule(body)?);
            Ok(Reply::with(201, json!({"fault": rule})))
        }
        ("DELETE", ["faults"]) => {
            inner.injections.remove(None);
            Ok(Reply::empty(204))
        }
        ("DELETE", ["faults", id]) => {
            let id = id
                .parse()
                .map_err(|_| Fault::missing("no such fault rule"))?;
            inner.injections.remove(Some(id));
            Ok(Reply::empty(204))
        }
        ("POST", ["server-faults"]) => {
            let fault: ServerFault = serde_json::from_slice(body)
                .map_err(|error| Fault::bad(format!("the server fault is malformed: {error}")))?;
            inner.settings.server_faults.lock().push(fault.clone());
            Ok(Reply::with(201, json!({"server_fault": fault})))
        }
        ("POST", ["migration-faults"]) => {
            let fault: ServerFault = serde_json::from_slice(body).map_err(|error| {
                Fault::bad(format!("the migration fault is malformed: {error}"))
            })?;
            inner.settings.migration_faults.lock().push(fault.clone());
            Ok(Reply::with(201, json!({"migration_fault": fault})))
        }
        ("POST", ["guest-faults"]) => {
            let rule: GuestFaultRule = serde_json::from_slice(body)
                .map_err(|error| Fault::bad(format!("the guest fault is malformed: {error}")))?;
            GuestFault::from_str(&rule.fault).map_err(|error| Fault::bad(error.to_string()))?;
            inner.settings.guest_faults.lock().push(rule.clone());
            Ok(Reply::with(201, json!({"guest_fault": rule})))
        }
        ("GET", ["guest-faults"]) => {
            let mut rules = inner.settings.guest_faults.lock().clone();
            rules.retain(|rule| rule.count > 0);
            Ok(Reply::ok(json!({"guest_faults": rules})))
        }
        ("DELETE", ["guest-faults"]) => {
            inner.settings.guest_faults.lock().clear();
            Ok(Reply::empty(204))
        }
        ("POST", ["volume-faults"]) => {
            let fault: VolumeFault = serde_json::from_slice(body)
                .map_err(|error| Fault::bad(format!("the volume fault is malformed: {error}")))?;
            inner.settings.volume_faults.lock().push(fault.clone());
            Ok(Reply::with(201, json!({"volume_fault": fault})))
        }
        ("GET", ["volume-faults"]) => {
            let rules = inner.settings.volume_faults.lock().clone();
            Ok(Reply::ok(json!({"volume_faults": rules})))
        }
        ("DELETE", ["volume-faults"]) => {
            inner.settings.volume_faults.lock().clear();
            Ok(Reply::empty(204))
        }
        ("POST", [what @ ("volumes" | "snapshots" | "backups"), id, "status"]) => {
            let kind = match *what {
                "volumes" => Kind::Volume,
                "snapshots" => Kind::Snapshot,
                _ => Kind::Backup,
            };
            let wanted: StatusChange = serde_json::from_slice(body)
                .map_err(|error| Fault::bad(format!("the status is malformed: {error}")))?;
            match cloud.set_volume_status(kind, id, &wanted.status) {
                Ok(true) => Ok(Reply::empty(204)),
                Ok(false) => Err(Fault::missing(format!("{what} has no {id}"))),
                Err(error) => Err(Fault::new(500, "Store", error.to_string())),
            }
        }
        ("POST", ["servers", id, "error"]) => {
            let body: Value = serde_json::from_slice(body).unwrap_or_default();
            let message = body
                .get("message")
                .and_then(Value::as_str)
                .unwrap_or("failed on purpose");
            match cloud.fail_server(id, message) {
                Ok(true) => Ok(Reply::empty(204)),
                Ok(false) => Err(Fault::missing("no such server")),
                Err(error) => Err(Fault::new(500, "Store", error.to_string())),
            }
        }
        ("POST", ["oidc"]) => {
            let known: OidcAccounts = serde_json::from_slice(body)
                .map_err(|error| Fault::bad(format!("the provider is malformed: {error}")))?;
            inner.settings.oidc.lock().set(known);
            Ok(Reply::empty(204))
        }
        ("POST", ["oidc", "devices"]) => {
            let consent: Consent = serde_json::from_slice(body)
                .map_err(|error| Fault::bad(format!("the consent is malformed: {error}")))?;
            match inner.settings.oidc.lock().consent(&consent) {
                true => Ok(Reply::empty(204)),
                false => Err(Fault::missing("no device has this code")),
            }
        }
        ("GET", ["settings"]) => Ok(Reply::ok(json!(*inner.settings.changeable.read()))),
        ("POST", ["settings"]) => settings(cloud, body),
        ("GET", ["clock"]) => Ok(Reply::ok(json!({"now": inner.clock.now().to_string()}))),
        ("POST", ["clock"]) => {
            let body: Value = serde_json::from_slice(body).unwrap_or_default();
            let seconds = body.get("advance_seconds").and_then(Value::as_f64);
            let by = seconds
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .filter(|by| by.as_secs() < 10 * 366 * 86_400)
                .ok_or_else(|| {
                    Fault::bad("advance_seconds must be a number of seconds, 0 to ten years")
                })?;
            cloud.advance_clock(by);
            Ok(Reply::ok(json!({"now": inner.clock.now().to_string()})))
        }
        _ if incoming.method == Method::GET => Err(Fault::missing(
            "there are requests, resources, log, faults, guest-faults, volume-faults, settings and clock",
        )),
        _ => Err(Fault::missing("no such operation")),
    }
}

/// Changes the settings in the body.
fn settings(cloud: &Cloud, body: &[u8]) -> Answer {
    let malformed = |error| Fault::bad(format!("the settings are malformed: {error}"));
    let given: Map<String, Value> = serde_json::from_slice(body).map_err(malformed)?;
    let mut current = cloud.inner.settings.changeable.write();
    let mut wanted = document::doc(json!(*current));
    wanted.extend(given);
    let mut wanted: Changeable =
        serde_json::from_value(Value::Object(wanted)).map_err(malformed)?;
    wanted.reclaim_instance_interval = wanted.reclaim_instance_interval.min(10 * 366 * 86_400);
    *current = wanted;
    Ok(Reply::ok(json!(*current)))
}

fn rule(body: &[u8]) -> Result<Rule, Fault> {
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| Fault::bad(format!("the fault rule is not JSON: {error}")))?;
    let keys = value.as_object().into_iter().flat_map(|map| map.keys());
    if let Some(unknown) = keys
        .into_iter()
        .find(|key| !RULE_KEYS.contains(&key.as_str()))
    {
        return Err(Fault::bad(format!(
            "unknown field {unknown}; known are {}",
            RULE_KEYS.join(", ")
        )));
    }
    let rule: Rule = serde_json::from_value(value)
        .map_err(|error| Fault::bad(format!("the fault rule is malformed: {error}")))?;
    if rule
        .action
        .status
        .is_some_and(|status| !(400..600).contains(&status))
    {
        return Err(Fault::bad("status must be between 400 and 599"));
    }
    if !rule.action.replaces() && rule.action.delay_ms == 0 {
        return Err(Fault::bad(
            "the rule does nothing: give status, drop, garbage or delay_ms",
        ));
    }
    Ok(rule)
}
