//! The rules as the reference states them, one entry after the other, on the text.

use serde_json::Value;

use crate::subject::{Attributes, ResourceAttributes, Subject};

pub(super) fn allows(policy: &Value, subject: &Subject, request: &Attributes) -> bool {
    let entries = policy.as_array().unwrap();
    subject.extra.is_some() && entries.iter().any(|entry| permits(entry, subject, request))
}

fn permits(entry: &Value, subject: &Subject, request: &Attributes) -> bool {
    if let Some(users) = entry["users"].as_object() {
        let list = |name: &str| users.get(name).map(strings).unwrap_or_default();
        let has_roles = list("roles")
            .iter()
            .all(|role| subject.roles().contains(role));
        let projects = list("projects");
        let mut members = subject.projects();
        if !has_roles || !members.any(|member| projects.iter().any(|it| it == member)) {
            return false;
        }
    }
    match request {
        Attributes::Resource(it) => match (&entry["resource_permissions"], &entry["resource"]) {
            (Value::Object(permissions), _) => permissions
                .iter()
                .any(|(key, verbs)| second(key, &strings(verbs), it)),
            (_, first) if first.is_object() => first_resource(first, it) && matches(entry, subject),
            _ => false,
        },
        Attributes::Path { verb, path } => {
            match (&entry["nonresource_permissions"], &entry["nonresource"]) {
                (Value::Object(permissions), _) => permissions
                    .iter()
                    .any(|(key, verbs)| key == path && admits(&strings(verbs), verb)),
                (_, first) if first.is_object() => {
                    let (verbs, pattern) =
                        (strings(&first["verbs"]), first["path"].as_str().unwrap());
                    let start = pattern.trim_end_matches('*');
                    let fits = pattern == path || pattern.ends_with('*') && path.starts_with(start);
                    !verbs.iter().any(String::is_empty)
                        && admits(&verbs, verb)
                        && fits
                        && matches(entry, subject)
                }
                _ => false,
            }
        }
    }
}

fn second(key: &str, verbs: &[String], it: &ResourceAttributes) -> bool {
    let halves: Vec<String> = key
        .split('/')
        .map(|half| half.trim().to_lowercase())
        .collect();
    let [namespace, resource] = halves.as_slice() else {
        return false;
    };
    let verbs: Vec<String> = verbs.iter().map(|verb| verb.to_lowercase()).collect();
    (namespace == "*" || !it.namespace.is_empty())
        && half(namespace, &it.namespace)
        && half(resource, &it.resource)
        && admits(&verbs, &it.verb)
}

fn half(definition: &str, name: &str) -> bool {
    if definition == name || definition == "*" || name.is_empty() {
        return true;
    }
    let closed = definition.find(']') == definition.len().checked_sub(1);
    let items = |text: &str| serde_json::from_str::<Vec<String>>(&text.replace('\'', "\"")).ok();
    let has = |items: &[String]| items.iter().any(|item| item == name || item == "*");
    match definition.strip_prefix('!') {
        Some(rest) if !rest.starts_with('[') => rest != name && rest != "*",
        Some(rest) if closed => items(rest).is_some_and(|items| !has(&items)),
        None if definition.starts_with('[') && closed => {
            items(definition).is_some_and(|items| has(&items))
        }
        _ => false,
    }
}

fn first_resource(first: &Value, it: &ResourceAttributes) -> bool {
    let is = |key: &str, value: &str| first[key] == "*" || first[key] == value;
    let resources = strings(&first["resources"]);
    let has = |name: String| resources.contains(&"*".to_owned()) || resources.contains(&name);
    let named = match it.subresource.as_str() {
        "" => has(it.resource.clone()),
        sub => has(format!("{}/*", it.resource)) || has(format!("{}/{sub}", it.resource)),
    };
    is("version", &it.group)
        && is("namespace", &it.namespace)
        && named
        && admits(&strings(&first["verbs"]), &it.verb)
}

fn matches(entry: &Value, subject: &Subject) -> bool {
    let all = entry["match"].as_array();
    all.into_iter().flatten().all(|one| {
        let values = strings(&one["values"]);
        let kind = one["type"].as_str().unwrap();
        let has = |value: &str| values.iter().any(|it| it == value);
        let known = ["user", "group", "project", "role"].contains(&kind);
        known
            && (has("*")
                || match kind {
                    "user" => has(&subject.name) || has(&subject.uid),
                    "group" => subject.groups.iter().any(|it| has(it)),
                    "project" => subject.projects().any(has),
                    _ => subject.roles().iter().any(|it| has(it)),
                })
    })
}

fn admits(verbs: &[String], verb: &str) -> bool {
    verbs.iter().any(|it| it == verb || it == "*")
}

fn strings(value: &Value) -> Vec<String> {
    let items = value.as_array().into_iter().flatten();
    items
        .map(|item| item.as_str().unwrap().to_owned())
        .collect()
}
