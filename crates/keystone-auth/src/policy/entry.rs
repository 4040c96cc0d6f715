//! Entries of a policy, decoded like in Go's encoding/json: keys of objects in any case, null for absent values, and
//! a repeated key adds to the first.

use super::{Findings, PROJECTS, ROLES};
use crate::document::{Key, Node, Value};

/// Entry of the list.
#[derive(Debug, Default)]
pub(super) struct Entry {
    pub(super) offset: usize,
    pub(super) users: Option<Permissions>,
    pub(super) matches: Option<Vec<Match>>,
    pub(super) resource: Option<Resource>,
    pub(super) nonresource: Option<Path>,
    pub(super) resources: Option<Permissions>,
    pub(super) nonresources: Option<Permissions>,
}

/// Object of lists of strings, in the order of the text.
pub(super) type Permissions = Vec<(Key, Vec<String>)>;

/// `resource` of version 1.
#[derive(Debug, Default)]
pub(super) struct Resource {
    pub(super) offset: usize,
    pub(super) verbs: Vec<String>,
    pub(super) resources: Vec<String>,
    /// The API group.
    pub(super) version: Option<String>,
    pub(super) namespace: Option<String>,
}

/// `nonresource` of version 1.
#[derive(Debug, Default)]
pub(super) struct Path {
    pub(super) offset: usize,
    pub(super) verbs: Vec<String>,
    pub(super) path: Option<String>,
}

/// Element of `match` of version 1.
#[derive(Debug, Default)]
pub(super) struct Match {
    pub(super) offset: usize,
    pub(super) kind: String,
    pub(super) values: Vec<String>,
}

/// [`Entry`]s of a document. A wrong type is an error, and an ignored part in Go is a doubt.
pub(super) fn entries(document: &Node, findings: &mut Findings) -> Vec<Entry> {
    let items = match &document.value {
        Value::Array(items) => items.as_slice(),
        Value::Null => {
            findings.doubt(
                document.offset,
                "there is no policy: write a list of entries",
            );
            &[]
        }
        other => {
            let message = format!("a policy is a list of entries, not {}", other.kind());
            findings.error(document.offset, message);
            &[]
        }
    };
    items
        .iter()
        .filter_map(|item| entry(item, findings))
        .collect()
}

fn entry(node: &Node, findings: &mut Findings) -> Option<Entry> {
    if node.value == Value::Null {
        findings.error(node.offset, "an entry is an object, not null");
        return None;
    }
    let mut entry = Entry {
        offset: node.offset,
        ..Entry::default()
    };
    let names = [
        "resource",
        "nonresource",
        "match",
        "resource_permissions",
        "nonresource_permissions",
        "users",
    ];
    for (name, value) in fields(node, "an entry", &names, findings) {
        match name {
            "resource" => entry.resource = resource(value, entry.resource.take(), findings),
            "nonresource" => entry.nonresource = path(value, entry.nonresource.take(), findings),
            "match" => entry.matches = matches(value, findings),
            "resource_permissions" => permissions(value, name, &mut entry.resources, findings),
            "nonresource_permissions" => {
                permissions(value, name, &mut entry.nonresources, findings)
            }
            _ => permissions(value, name, &mut entry.users, findings),
        }
    }
    for (key, _) in entry.users.iter().flatten() {
        if key.name != ROLES && key.name != PROJECTS {
            let message = format!(
                "`users` has no `{}`: there are roles and projects",
                key.name
            );
            findings.doubt(key.offset, message);
        }
    }
    Some(entry)
}

fn resource(node: &Node, before: Option<Resource>, findings: &mut Findings) -> Option<Resource> {
    if node.value == Value::Null {
        return None;
    }
    let mut resource = before.unwrap_or_default();
    resource.offset = node.offset;
    let names = ["verbs", "resources", "version", "namespace"];
    for (name, value) in fields(node, "`resource`", &names, findings) {
        match name {
            "verbs" => resource.verbs = strings(value, name, findings),
            "resources" => resource.resources = strings(value, name, findings),
            "version" => resource.version = text(value, name, findings),
            _ => resource.namespace = text(value, name, findings),
        }
    }
    Some(resource)
}

fn path(node: &Node, before: Option<Path>, findings: &mut Findings) -> Option<Path> {
    if node.value == Value::Null {
        return None;
    }
    let mut path = before.unwrap_or_default();
    path.offset = node.offset;
    for (name, value) in fields(node, "`nonresource`", &["verbs", "path"], findings) {
        match name {
            "verbs" => path.verbs = strings(value, name, findings),
            _ => path.path = text(value, name, findings),
        }
    }
    Some(path)
}

fn matches(node: &Node, findings: &mut Findings) -> Option<Vec<Match>> {
    let items = items(node, "match", findings)?;
    let one = |node: &Node| {
        let mut found = Match {
            offset: node.offset,
            ..Match::default()
        };
        if node.value == Value::Null {
            return found;
        }
        for (name, value) in fields(node, "an element of `match`", &["type", "values"], findings) {
            match name {
                "type" => found.kind = text(value, name, findings).unwrap_or_default(),
                _ => found.values = strings(value, name, findings),
            }
        }
        found
    };
    Some(items.iter().map(one).collect())
}

fn permissions(node: &Node, name: &str, into: &mut Option<Permissions>, findings: &mut Findings) {
    let members = match &node.value {
        Value::Object(members) => members,
        Value::Null => {
            *into = None;
            return;
        }
        other => return findings.error(node.offset, not(name, "an object", other)),
    };
    let all = into.get_or_insert_default();
    for (key, value) in members {
        let list = strings(value, &key.name, findings);
        match all.iter_mut().find(|(before, _)| before.name == key.name) {
            Some((_, before)) => {
                let message = format!("`{}` is there twice, and the last one counts", key.name);
                findings.doubt(key.offset, message);
                *before = list;
            }
            None => all.push((key.clone(), list)),
        }
    }
}

/// Members with one of the names, by name.
fn fields<'a>(
    node: &'a Node,
    what: &str,
    names: &[&'static str],
    findings: &mut Findings,
) -> Vec<(&'static str, &'a Node)> {
    let Value::Object(members) = &node.value else {
        let message = format!("{what} is an object, not {}", node.value.kind());
        findings.error(node.offset, message);
        return Vec::new();
    };
    let mut found: Vec<(&'static str, &Node)> = Vec::new();
    for (key, value) in members {
        let known = names
            .iter()
            .find(|name| name.eq_ignore_ascii_case(&key.name));
        let Some(name) = known else {
            let message = format!(
                "{what} has no key `{}`: there are {}",
                key.name,
                names.join(", ")
            );
            findings.doubt(key.offset, message);
            continue;
        };
        if *name != key.name {
            findings.doubt(key.offset, format!("`{}` is written `{name}`", key.name));
        }
        if found.iter().any(|(before, _)| before == name) {
            findings.doubt(key.offset, format!("`{name}` is there twice"));
        }
        found.push((name, value));
    }
    found
}

fn strings(node: &Node, name: &str, findings: &mut Findings) -> Vec<String> {
    let Some(items) = items(node, name, findings) else {
        return Vec::new();
    };
    let one = |item: &Node| text(item, name, findings).unwrap_or_default();
    items.iter().map(one).collect()
}

fn items<'a>(node: &'a Node, name: &str, findings: &mut Findings) -> Option<&'a [Node]> {
    match &node.value {
        Value::Array(items) => Some(items),
        Value::Null => None,
        other => {
            findings.error(node.offset, not(name, "a list", other));
            None
        }
    }
}

fn text(node: &Node, name: &str, findings: &mut Findings) -> Option<String> {
    match &node.value {
        Value::String(text) => Some(text.clone()),
        Value::Null => None,
        other => {
            findings.error(node.offset, not(name, "a string", other));
            None
        }
    }
}

fn not(name: &str, expected: &str, found: &Value) -> String {
    format!("`{name}` wants {expected}, not {}", found.kind())
}
