//! Cells of the less common kinds.

use jiff::Timestamp;
use serde_json::Value;

use super::cells::{NONE, joined, list, text_or};
use crate::time::age;
use crate::value::text;

const UNSET: &str = "<unset>";

/// Returns the source of an Event: `component, host`.
pub(super) fn event_source(event: &Value) -> Value {
    let source = match &event["source"] {
        Value::Object(_) => &event["source"],
        _ => &event["deprecatedSource"],
    };
    let either = |old: &Value, new: &str| {
        let old = text(old);
        if old.is_empty() {
            text(&event[new]).to_owned()
        } else {
            old.to_owned()
        }
    };
    let controller = if event["reportingComponent"].is_string() {
        "reportingComponent"
    } else {
        "reportingController"
    };
    let parts = [
        either(&source["component"], controller),
        either(&source["host"], "reportingInstance"),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    Value::from(parts.join(", "))
}

pub(super) fn event_subobject(event: &Value) -> Value {
    let old = text(&event["involvedObject"]["fieldPath"]);
    let new = text(&event["regarding"]["fieldPath"]);
    Value::from(if old.is_empty() { new } else { old })
}

pub(super) fn event_first_seen(event: &Value, now: Timestamp) -> Value {
    let times = [
        &event["firstTimestamp"],
        &event["deprecatedFirstTimestamp"],
        &event["eventTime"],
    ];
    let first = times.into_iter().find_map(Value::as_str);
    Value::from(first.map_or_else(|| "<unknown>".to_owned(), |first| age(first, now)))
}

pub(super) fn event_count(event: &Value) -> Value {
    let counts = [
        &event["series"]["count"],
        &event["count"],
        &event["deprecatedCount"],
    ];
    let count = counts.into_iter().find_map(Value::as_i64);
    Value::from(count.filter(|count| *count > 0).unwrap_or(1))
}

pub(super) fn volume_mode(object: &Value) -> Value {
    text_or(&object["spec"]["volumeMode"], UNSET)
}

pub(super) fn attributes_class(object: &Value) -> Value {
    text_or(&object["spec"]["volumeAttributesClassName"], UNSET)
}

pub(super) fn revision_controller(object: &Value) -> Value {
    let owners = list(&object["metadata"]["ownerReferences"]);
    let owner = owners.iter().find(|owner| owner["controller"] == true);
    let Some(owner) = owner else {
        return Value::from(NONE);
    };
    let kind = text(&owner["kind"]).to_lowercase();
    let group = text(&owner["apiVersion"])
        .split_once('/')
        .map(|(group, _)| group);
    let kind = group.map_or(kind.clone(), |group| format!("{kind}.{group}"));
    Value::from(format!("{kind}/{}", text(&owner["name"])))
}

pub(super) fn cron_containers(object: &Value) -> Value {
    of_containers(
        &object["spec"]["jobTemplate"]["spec"]["template"]["spec"],
        "name",
    )
}

pub(super) fn cron_images(object: &Value) -> Value {
    of_containers(
        &object["spec"]["jobTemplate"]["spec"]["template"]["spec"],
        "image",
    )
}

fn of_containers(pod: &Value, field: &str) -> Value {
    let containers = list(&pod["containers"]).iter();
    joined(containers.map(|container| text(&container[field]).to_owned()))
}

pub(super) fn cron_suspend(object: &Value) -> Value {
    Value::from(if object["spec"]["suspend"] == true {
        "True"
    } else {
        "False"
    })
}

pub(super) fn cron_active(object: &Value) -> Value {
    Value::from(list(&object["status"]["active"]).len())
}

pub(super) fn cron_last(object: &Value, now: Timestamp) -> Value {
    let last = object["status"]["lastScheduleTime"].as_str();
    Value::from(last.map_or_else(|| NONE.to_owned(), |last| age(last, now)))
}

pub(super) fn cron_selector(_: &Value) -> Value {
    Value::from(NONE)
}

pub(super) fn cron_zone(object: &Value) -> Value {
    text_or(&object["spec"]["timeZone"], NONE)
}

pub(super) fn slice_ports(slice: &Value) -> Value {
    let ports: Vec<String> = list(&slice["ports"])
        .iter()
        .map(|port| {
            port["port"]
                .as_i64()
                .map_or("*".to_owned(), |port| port.to_string())
        })
        .collect();
    Value::from(if ports.is_empty() {
        "<unset>".to_owned()
    } else {
        few(&ports)
    })
}

pub(super) fn slice_endpoints(slice: &Value) -> Value {
    let all: Vec<String> = list(&slice["endpoints"])
        .iter()
        .flat_map(|endpoint| list(&endpoint["addresses"]))
        .map(|address| text(address).to_owned())
        .collect();
    Value::from(if all.is_empty() {
        "<unset>".to_owned()
    } else {
        few(&all)
    })
}

/// Returns the first three texts, and the number of the others.
fn few(all: &[String]) -> String {
    match all.len() {
        0..=3 => all.join(","),
        many => format!("{} + {} more...", all[..3].join(","), many - 3),
    }
}

pub(super) fn ingress_class(ingress: &Value) -> Value {
    text_or(&ingress["spec"]["ingressClassName"], NONE)
}

pub(super) fn ingress_hosts(ingress: &Value) -> Value {
    let rules = list(&ingress["spec"]["rules"]).iter();
    let hosts = rules.map(|rule| text(&rule["host"]).to_owned());
    let hosts: Vec<String> = hosts.filter(|host| !host.is_empty()).collect();
    Value::from(if hosts.is_empty() {
        "*".to_owned()
    } else {
        few(&hosts)
    })
}

pub(super) fn ingress_address(ingress: &Value) -> Value {
    let given = list(&ingress["status"]["loadBalancer"]["ingress"]).iter();
    let all = given.filter_map(|i| i["ip"].as_str().or_else(|| i["hostname"].as_str()));
    Value::from(all.collect::<Vec<_>>().join(","))
}

pub(super) fn ingress_ports(ingress: &Value) -> Value {
    let tls = !list(&ingress["spec"]["tls"]).is_empty();
    Value::from(if tls { "80, 443" } else { "80" })
}

pub(super) fn class_parameters(class: &Value) -> Value {
    let parameters = &class["spec"]["parameters"];
    if !parameters.is_object() {
        return Value::from(NONE);
    }
    let kind = text(&parameters["kind"]);
    let group = text(&parameters["apiGroup"]);
    let dot = if group.is_empty() { "" } else { "." };
    Value::from(format!("{kind}{dot}{group}/{}", text(&parameters["name"])))
}

pub(super) fn policy_selector(policy: &Value) -> Value {
    let labels = policy["spec"]["podSelector"]["matchLabels"].as_object();
    let pairs = labels.into_iter().flatten();
    joined(pairs.map(|(key, value)| format!("{key}={}", text(value))))
}

pub(super) fn users(binding: &Value) -> Value {
    subjects(binding, "User")
}

pub(super) fn groups(binding: &Value) -> Value {
    subjects(binding, "Group")
}

pub(super) fn accounts(binding: &Value) -> Value {
    subjects(binding, "ServiceAccount")
}

fn subjects(binding: &Value, kind: &str) -> Value {
    let all = list(&binding["subjects"]).iter();
    let names = all
        .filter(|subject| subject["kind"] == kind)
        .map(|subject| {
            let name = text(&subject["name"]);
            if kind == "ServiceAccount" {
                format!("{}/{name}", text(&subject["namespace"]))
            } else {
                name.to_owned()
            }
        });
    Value::from(names.collect::<Vec<_>>().join(", "))
}

pub(super) fn is_global_default(class: &Value) -> Value {
    Value::from(class["globalDefault"] == true)
}

pub(super) fn token_requests(driver: &Value) -> Value {
    let requests = list(&driver["spec"]["tokenRequests"]).iter();
    let audiences: Vec<&str> = requests.map(|request| text(&request["audience"])).collect();
    Value::from(if audiences.is_empty() {
        UNSET.to_owned()
    } else {
        audiences.join(",")
    })
}

pub(super) fn life_cycles(driver: &Value) -> Value {
    let modes = list(&driver["spec"]["volumeLifecycleModes"]).iter();
    Value::from(modes.map(text).collect::<Vec<_>>().join(","))
}

/// Returns the actual access modes of a claim, rather than the requested ones.
pub(super) fn bound_modes(claim: &Value) -> Value {
    let modes = list(&claim["status"]["accessModes"]).iter().map(text);
    let short = modes.map(|mode| match mode {
        "ReadWriteOnce" => "RWO",
        "ReadOnlyMany" => "ROX",
        "ReadWriteMany" => "RWX",
        "ReadWriteOncePod" => "RWOP",
        other => other,
    });
    Value::from(short.collect::<Vec<_>>().join(","))
}

pub(super) fn empty(_: &Value) -> Value {
    Value::from("")
}

pub(super) fn bound_volume(claim: &Value) -> Value {
    text_or(&claim["spec"]["volumeName"], "")
}

pub(super) fn bound_capacity(claim: &Value) -> Value {
    text_or(&claim["status"]["capacity"]["storage"], "")
}

pub(super) fn volume_reason(volume: &Value) -> Value {
    text_or(&volume["status"]["reason"], "")
}

pub(super) fn job_duration(_: &Value) -> Value {
    Value::from("")
}

pub(super) fn replicas_wanted(object: &Value) -> Value {
    Value::from(object["spec"]["replicas"].as_i64().unwrap_or(0))
}
