//! Conversion of the topology of a Cluster.

use serde_json::{Value, json};

use super::{strategy_down, strategy_up, timeouts_down, timeouts_up};
use crate::conversion::duration;
use crate::conversion::fields::{
    Done, Fields, nested, not_a_duration, put, rename, seconds_of, take, within,
};

/// From v1beta1 to v1beta2.
pub(super) fn up(fields: &mut Fields) -> Done {
    // In v1beta2 a field of the control plane and of each deployment.
    fields.remove("rolloutAfter");
    put(fields, &["classRef", "name"], "class");
    put(fields, &["classRef", "namespace"], "classNamespace");
    undefined(fields, "variables");
    within(fields, &["controlPlane"], part_up)?;
    each(fields, "machineDeployments", deployment_up)?;
    each(fields, "machinePools", part_up)
}

/// From v1beta2 to v1beta1.
pub(super) fn down(fields: &mut Fields) -> Done {
    let namespace = take(fields, &["classRef", "namespace"]);
    fields.extend(namespace.map(|name| ("classNamespace".to_owned(), name)));
    let class = take(fields, &["classRef", "name"]);
    fields.extend(class.map(|name| ("class".to_owned(), name)));
    within(fields, &["controlPlane"], part_down)?;
    each(fields, "machineDeployments", deployment_down)?;
    each(fields, "machinePools", part_down)
}

fn each(fields: &mut Fields, name: &str, turn: fn(&mut Fields) -> Done) -> Done {
    let workers = fields
        .get_mut("workers")
        .and_then(|workers| workers.get_mut(name));
    for item in workers.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(item) = item.as_object_mut() {
            turn(item).map_err(|problem| format!("workers.{name}: {problem}"))?;
        }
    }
    Ok(())
}

pub(super) fn part_up(fields: &mut Fields) -> Done {
    timeouts_up(fields)?;
    if let Some(Value::Object(variables)) = fields.get_mut("variables") {
        undefined(variables, "overrides");
    }
    health_up(fields)
}

pub(super) fn part_down(fields: &mut Fields) -> Done {
    timeouts_down(fields);
    health_down(fields);
    Ok(())
}

pub(super) fn deployment_up(fields: &mut Fields) -> Done {
    part_up(fields)?;
    strategy_up(fields);
    if let Some(most) = take(fields, &["remediation", "maxInFlight"]) {
        let remediation = nested(fields, &["healthCheck", "remediation"]);
        remediation.insert("maxInFlight".to_owned(), most);
    }
    fields.remove("remediation");
    Ok(())
}

pub(super) fn deployment_down(fields: &mut Fields) -> Done {
    if let Some(most) = take(fields, &["healthCheck", "remediation", "maxInFlight"]) {
        nested(fields, &["remediation"]).insert("maxInFlight".to_owned(), most);
    }
    timeouts_down(fields);
    strategy_down(fields);
    health_down(fields);
    Ok(())
}

fn health_up(fields: &mut Fields) -> Done {
    let Some(Value::Object(mut old)) = fields.remove("machineHealthCheck") else {
        return Ok(());
    };
    rename(&mut old, "enable", "enabled");
    checks_up(&mut old)?;
    fields.insert("healthCheck".to_owned(), Value::Object(old));
    Ok(())
}

/// Health checks: of a topology, and in the spec of a MachineHealthCheck.
pub(super) fn checks_up(old: &mut Fields) -> Done {
    if let Some(timeout) = old.remove("nodeStartupTimeout") {
        let seconds =
            seconds_of(&timeout).ok_or_else(|| not_a_duration("nodeStartupTimeout", &timeout))?;
        nested(old, &["checks"]).insert("nodeStartupTimeoutSeconds".to_owned(), json!(seconds));
    }
    for (from, to) in [
        ("unhealthyConditions", "unhealthyNodeConditions"),
        ("unhealthyMachineConditions", "unhealthyMachineConditions"),
    ] {
        if let Some(mut list) = old.remove(from) {
            for item in list.as_array_mut().into_iter().flatten() {
                let Some(item) = item.as_object_mut() else {
                    continue;
                };
                let timeout = item.remove("timeout").unwrap_or_else(|| json!("0s"));
                let seconds =
                    seconds_of(&timeout).ok_or_else(|| not_a_duration("timeout", &timeout))?;
                item.insert("timeoutSeconds".to_owned(), json!(seconds));
            }
            nested(old, &["checks"]).insert(to.to_owned(), list);
        }
    }
    let trigger = ["remediation", "triggerIf"];
    for (from, to) in [
        ("maxUnhealthy", "unhealthyLessThanOrEqualTo"),
        ("unhealthyRange", "unhealthyInRange"),
    ] {
        put(old, &[trigger[0], trigger[1], to], from);
    }
    if let Some(Value::Object(mut template)) = old.remove("remediationTemplate") {
        template.retain(|name, _| ["apiVersion", "kind", "name"].contains(&name.as_str()));
        nested(old, &["remediation"]).insert("templateRef".to_owned(), Value::Object(template));
    }
    Ok(())
}

fn health_down(fields: &mut Fields) {
    let Some(Value::Object(mut new)) = fields.remove("healthCheck") else {
        return;
    };
    rename(&mut new, "enabled", "enable");
    checks_down(&mut new);
    if !new.is_empty() {
        fields.insert("machineHealthCheck".to_owned(), Value::Object(new));
    }
}

pub(super) fn checks_down(new: &mut Fields) {
    let startup = take(new, &["checks", "nodeStartupTimeoutSeconds"]);
    if let Some(seconds) = startup.as_ref().and_then(Value::as_i64) {
        new.insert(
            "nodeStartupTimeout".to_owned(),
            json!(duration::text(seconds)),
        );
    }
    for (from, to) in [
        ("unhealthyNodeConditions", "unhealthyConditions"),
        ("unhealthyMachineConditions", "unhealthyMachineConditions"),
    ] {
        if let Some(mut list) = take(new, &["checks", from]) {
            for item in list.as_array_mut().into_iter().flatten() {
                let Some(item) = item.as_object_mut() else {
                    continue;
                };
                let seconds = item
                    .remove("timeoutSeconds")
                    .as_ref()
                    .and_then(Value::as_i64);
                let text = duration::text(seconds.unwrap_or(0));
                item.insert("timeout".to_owned(), json!(text));
            }
            new.insert(to.to_owned(), list);
        }
    }
    for (from, to) in [
        ("unhealthyLessThanOrEqualTo", "maxUnhealthy"),
        ("unhealthyInRange", "unhealthyRange"),
    ] {
        let value = take(new, &["remediation", "triggerIf", from]);
        new.extend(value.map(|value| (to.to_owned(), value)));
    }
    let template = take(new, &["remediation", "templateRef"]);
    new.extend(template.map(|template| ("remediationTemplate".to_owned(), template)));
    // Objects that are now empty have no equivalent in v1beta1; the stash restores them.
    new.remove("checks");
    new.remove("remediation");
}

/// Removes `definitionFrom` of variables, absent in v1beta2.
fn undefined(fields: &mut Fields, name: &str) {
    let list = fields.get_mut(name).and_then(Value::as_array_mut);
    for variable in list.into_iter().flatten().filter_map(Value::as_object_mut) {
        variable.remove("definitionFrom");
    }
}
