//! Conversion of the status: v1beta1 is computed from v1beta2.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::machine::{ports_down, ports_up};
use crate::conversion::fields::{Done, Fields, rename, within};

/// Reason for v1beta1 conditions without one; `metav1.Condition` requires a reason.
const NO_REASON: &str = "NoReasonReported";
/// Type of the condition for the API server's address, in v1beta1 and in v1beta2.
const INGRESS: (&str, &str) = ("APIServerIngressReadyCondition", "APIServerIngressReady");
/// Load balancer in v1beta1 and in v1beta2.
const BALANCER: (&str, &str) = ("apiServerLoadBalancer", "apiServerManagedLoadBalancer");
/// Fields of v1beta1 no longer written.
const GONE: &[&str] = &["failureReason", "failureMessage"];

pub(super) fn cluster_up(fields: &mut Fields) -> Done {
    machine_up(fields)?;
    rename(fields, BALANCER.0, BALANCER.1);
    within(fields, &["bastion", "resolved"], |resolved| {
        ports_up(resolved);
        Ok(())
    })?;
    if let Some(Value::Object(zones)) = fields.get("failureDomains") {
        let mut names: Vec<_> = zones.keys().collect();
        names.sort();
        let named = |name: &String| {
            let mut zone = zones[name].as_object().cloned().unwrap_or_default();
            zone.insert("name".to_owned(), json!(name));
            Value::Object(zone)
        };
        let list = names.into_iter().map(named).collect();
        fields.insert("failureDomains".to_owned(), Value::Array(list));
    }
    Ok(())
}

pub(super) fn cluster_down(fields: &mut Fields) -> Done {
    machine_down(fields)?;
    rename(fields, BALANCER.1, BALANCER.0);
    within(fields, &["bastion", "resolved"], |resolved| {
        ports_down(resolved);
        Ok(())
    })?;
    if let Some(Value::Array(zones)) = fields.get_mut("failureDomains").map(Value::take) {
        let mut map = Map::new();
        for mut zone in zones {
            let name = zone.as_object_mut().and_then(|zone| zone.remove("name"));
            if let Some(Value::String(name)) = name {
                map.insert(name, zone);
            }
        }
        fields.insert("failureDomains".to_owned(), Value::Object(map));
    }
    Ok(())
}

pub(super) fn machine_up(fields: &mut Fields) -> Done {
    template_up(fields)?;
    let ready = fields.remove("ready") == Some(json!(true));
    if ready && !fields.contains_key("initialization") {
        fields.insert("initialization".to_owned(), json!({ "provisioned": true }));
    }
    for name in GONE {
        fields.remove(*name);
    }
    within(fields, &["resolved"], |resolved| {
        ports_up(resolved);
        Ok(())
    })
}

pub(super) fn machine_down(fields: &mut Fields) -> Done {
    let ready = ready(fields);
    fields.insert("ready".to_owned(), json!(ready));
    template_down(fields)?;
    within(fields, &["resolved"], |resolved| {
        ports_down(resolved);
        Ok(())
    })
}

/// Converts the status of a machine template: only the conditions differ.
pub(super) fn template_up(fields: &mut Fields) -> Done {
    let Some(Value::Array(old)) = fields.get_mut("conditions").map(Value::take) else {
        return Ok(());
    };
    // Conditions are a map by type in v1beta2; of duplicates in v1beta1 the last one wins.
    let mut known = HashSet::new();
    let mut new: Vec<Value> = Vec::new();
    for mut condition in old.into_iter().rev() {
        if let Some(condition) = condition.as_object_mut() {
            condition_up(condition);
        }
        let type_ = condition.get("type").map(Value::to_string);
        if type_.is_none_or(|type_| known.insert(type_)) {
            new.push(condition);
        }
    }
    new.reverse();
    fields.insert("conditions".to_owned(), Value::Array(new));
    Ok(())
}

pub(super) fn template_down(fields: &mut Fields) -> Done {
    crate::conversion::fields::each(fields, "conditions", condition_down);
    Ok(())
}

fn condition_up(condition: &mut Fields) {
    // The observed generation is not known; the current one would be a guess.
    condition.remove("severity");
    replace(condition, "type", INGRESS.0, INGRESS.1);
    replace(condition, "reason", "", NO_REASON);
    if condition.contains_key("status") {
        for (name, default) in [("reason", NO_REASON), ("message", "")] {
            condition
                .entry(name)
                .or_insert_with(|| Value::from(default));
        }
    }
}

fn condition_down(condition: &mut Fields) {
    condition.remove("observedGeneration");
    replace(condition, "type", INGRESS.1, INGRESS.0);
    // v1beta1 omits empty fields.
    for (name, empty) in [("reason", NO_REASON), ("message", "")] {
        if condition.get(name).and_then(Value::as_str) == Some(empty) {
            condition.remove(name);
        }
    }
}

fn replace(fields: &mut Fields, name: &str, from: &str, to: &str) {
    if let Some(value) = fields.get_mut(name)
        && value.as_str() == Some(from)
    {
        *value = json!(to);
    }
}

/// Field `ready` of v1beta1: the Ready condition or, if absent, the initial provisioning.
fn ready(fields: &Fields) -> bool {
    let conditions = fields.get("conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    match conditions.find(|condition| condition["type"] == "Ready") {
        Some(condition) => condition["status"] == "True",
        None => {
            let step = fields.get("initialization");
            step.and_then(|step| step.get("provisioned")) == Some(&json!(true))
        }
    }
}
