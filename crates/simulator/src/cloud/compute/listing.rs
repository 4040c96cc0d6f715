//! Lists of servers.

use std::cmp::Reverse;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{pattern, servers, view};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::network;
use crate::cloud::query;
use crate::cloud::rendered::Variant;

/// Nova's `max_limit`.
const LONGEST: usize = 1000;

/// GET /servers and /servers/detail
pub(crate) fn list(call: &mut Call<'_>, detail: bool) -> Answer {
    let limit = call.query.limit().map_err(|text| {
        Fault::bad(format!(
            "Invalid input for query parameters limit. Value: {text}. '{text}' does not match '^[0-9]*$'"
        ))
    })?;
    let limit = limit.unwrap_or(LONGEST).min(LONGEST);
    allowed(call)?;
    let filter = Filter::read(call)?;
    let marker = call.query.get("marker");
    let mut keys = query::sort_keys(&call.query);
    // Nova sorts by other keys stably, so that among equals the newest come first.
    let mut found = if keys.is_empty() {
        candidates(call, &filter, marker, limit + 1)
    } else {
        candidates(call, &filter, None, usize::MAX)
    };
    for (key, _) in &mut keys {
        if key == "display_name" {
            "name".clone_into(key);
        }
        if key == "created_at" {
            "_created_ms".clone_into(key);
        }
    }
    query::sort(&mut found, &keys);
    let page = query::page(found, marker, Some(limit), false)
        .ok_or_else(|| Fault::bad(format!("marker [{}] not found", marker.unwrap_or_default())))?;
    let next = page.next.as_ref().map(|next| {
        let query = call.query.with_marker(next, false);
        let href = format!("{}{}?{query}", call.root(), call.path);
        json!([{"rel": "next", "href": href}])
    });
    let servers = if detail {
        details(call, &page.docs)?
    } else {
        let brief: Vec<Value> = page.docs.iter().map(|doc| brief(call, doc)).collect();
        Value::Array(brief).to_string()
    };
    let links = next.map_or_else(String::new, |next| format!(",\"servers_links\":{next}"));
    let body = format!("{{\"servers\":{servers}{links}}}");
    Ok(Reply {
        status: 200,
        raw: Some(("application/json", body.into())),
        ..Reply::default()
    })
}

/// Returns the servers of a page as a JSON array. The description of a server is cached until the server changes.
fn details(call: &mut Call<'_>, page: &[Arc<Doc>]) -> Result<String, Fault> {
    let variant = call.state.rendered.variant(&Variant {
        version: call.version,
        admin: call.who.admin(),
        base: call.base.url().to_owned(),
    });
    let mut out = String::with_capacity(page.len() * 2048);
    out.push('[');
    for doc in page {
        if out.len() > 1 {
            out.push(',');
        }
        let id = doc.text("id");
        // A deleted server only has the cache key of its last state.
        let lives = doc.text("status") != "DELETED";
        if let Some(text) = call.state.rendered.get(id, variant).filter(|_| lives) {
            out.push_str(text);
            continue;
        }
        let mut servers = view::detail(call, doc);
        servers.server_groups = None;
        // Nova reads the faults of a list from the database of its own cell. Those of servers that never had a host are in
        // another one (cell0), and are told of one server alone.
        if doc.text("_host").is_empty() {
            servers.fault = None;
        }
        let text = serde_json::to_string(&servers).map_err(unwritable)?;
        out.push_str(&text);
        if lives {
            call.state.rendered.keep(id, variant, &text);
        }
    }
    out.push(']');
    Ok(out)
}

fn unwritable(error: serde_json::Error) -> Fault {
    Fault::new(500, "computeFault", error.to_string())
}

/// Returns a [`Fault`] for a query outside of Nova's schema: unknown sort keys, unknown filters from 2.75, servers of
/// other projects.
fn allowed(call: &Call<'_>) -> Result<(), Fault> {
    let all = call
        .query
        .get("all_tenants")
        .or_else(|| call.query.get("all_projects"));
    if all.is_some_and(|text| query::truth(text) != Some(false)) && !call.who.admin() {
        return Err(Fault::forbidden(
            "Policy doesn't allow os_compute_api:servers:detail:get_all_tenants to be performed.",
        ));
    }
    for (key, _) in query::sort_keys(&call.query) {
        if !SORTABLE.contains(&key.as_str()) && key != "uuid" {
            return Err(Fault::bad(format!(
                "Invalid input for query parameters sort_key. Value: {key}. '{key}' is not one of {SORTABLE:?}"
            )));
        }
    }
    let strict = call.version >= 75;
    let known = |name: &str| FILTERS.contains(&name) || SORTABLE.contains(&name);
    match call.query.names().iter().find(|name| !known(name)) {
        Some(name) if strict => Err(Fault::bad(format!(
            "Invalid input for query parameters {name}. '{name}' does not match any of the regexes: '^_'"
        ))),
        _ => Ok(()),
    }
}

/// Sort keys of Nova's `schemas/servers.py`, which are filters as well.
const SORTABLE: [&str; 26] = [
    "access_ip_v4",
    "access_ip_v6",
    "auto_disk_config",
    "availability_zone",
    "config_drive",
    "created_at",
    "display_description",
    "display_name",
    "host",
    "hostname",
    "image_ref",
    "instance_type_id",
    "kernel_id",
    "key_name",
    "launch_index",
    "launched_at",
    "locked_by",
    "node",
    "power_state",
    "progress",
    "project_id",
    "ramdisk_id",
    "root_device_name",
    "task_state",
    "updated_at",
    "vm_state",
];

/// Other query parameters of Nova, and `uuid`, which is a sort key, too.
const FILTERS: [&str; 31] = [
    "all_projects",
    "all_tenants",
    "changes-before",
    "changes-since",
    "deleted",
    "description",
    "flavor",
    "image",
    "instance_name",
    "ip",
    "ip6",
    "limit",
    "locked",
    "marker",
    "name",
    "not-tags",
    "not-tags-any",
    "reservation_id",
    "soft_deleted",
    "sort_dir",
    "sort_key",
    "status",
    "tags",
    "tags-any",
    "tenant_id",
    "terminated_at",
    "user_id",
    "uuid",
    "block_device_mapping",
    "metadata",
    "services",
];

fn brief(call: &Call<'_>, doc: &Doc) -> Value {
    let id = doc.text("id");
    json!({"id": id, "name": doc.text("name"), "links": servers::links(call, "servers", id)})
}

/// Returns the servers that match the [`Filter`], newest first: from the marker on, if the marker matches, and at most
/// `most`.
fn candidates(
    call: &Call<'_>,
    filter: &Filter,
    marker: Option<&str>,
    most: usize,
) -> Vec<Arc<Doc>> {
    let named = call
        .query
        .get("project_id")
        .or_else(|| call.query.get("tenant_id"));
    let project = match call.everyone() {
        true => named,
        false => Some(call.who.project_id.as_str()),
    };
    let aside =
        call.who.admin() && call.query.get("soft_deleted").and_then(query::truth) == Some(true);
    let wanted = |doc: &Arc<Doc>| {
        (aside || doc.text("status") != "SOFT_DELETED") && (!filter.any || filter.takes(call, doc))
    };
    let first = marker.and_then(|id| call.state.get(Kind::Server, id));
    let gone = call.query.get("changes-since").is_some()
        || call.who.admin() && call.query.get("deleted").and_then(query::truth) == Some(true);
    if !gone {
        let living = call.state.newest.from(project, first.as_deref());
        return living
            .filter(|doc| wanted(doc))
            .take(most)
            .cloned()
            .collect();
    }
    let deleted: Vec<Arc<Doc>> = match project {
        Some(project) => call.state.by(Kind::DeletedServer, "project_id", project),
        None => call.state.all(Kind::DeletedServer).cloned().collect(),
    };
    let living = call.state.newest.from(project, None).cloned();
    let mut found: Vec<Arc<Doc>> = living.chain(deleted).filter(wanted).collect();
    found.sort_by_cached_key(|doc| {
        let created = Reverse(doc.number("_created_ms"));
        (created, Reverse(doc.text("id").to_owned()))
    });
    found
}

struct Filter {
    since: Option<String>,
    before: Option<String>,
    /// True if the query has filters besides paging and sorting.
    any: bool,
}

impl Filter {
    fn read(call: &Call<'_>) -> Result<Self, Fault> {
        let time = |name: &str| {
            call.query.get(name).map(|text| normal_time(text).ok_or_else(|| {
                Fault::bad(format!(
                    "Invalid input for query parameters {name}. Value: {text}. '{text}' is not a 'date-time'"
                ))
            }))
        };
        let plain = [
            "limit",
            "marker",
            "all_tenants",
            "sort_key",
            "sort_dir",
            "project_id",
        ];
        Ok(Self {
            since: time("changes-since").transpose()?,
            before: time("changes-before").transpose()?,
            any: call.query.names().iter().any(|name| !plain.contains(name)),
        })
    }

    fn takes(&self, call: &Call<'_>, doc: &Doc) -> bool {
        let query = &call.query;
        let is = |name: &str, value: &str| {
            let mut wanted = query.all(name).peekable();
            wanted.peek().is_none() || wanted.any(|wanted| wanted == value)
        };
        let updated = doc.text("updated");
        query
            .get("name")
            .is_none_or(|name| pattern::matches(name, doc.text("name")))
            && query.get("status").is_none_or(|_| {
                query
                    .all("status")
                    .any(|status| status.eq_ignore_ascii_case(doc.text("status")))
            })
            && is("image", doc.text("_image"))
            && is("flavor", doc.text("_flavor"))
            && is("key_name", doc.text("_key_name"))
            && is("availability_zone", doc.text("_zone"))
            && is("user_id", doc.text("user_id"))
            && (!call.who.admin() || is("host", doc.text("_host")))
            && self.since.as_deref().is_none_or(|since| updated >= since)
            && self
                .before
                .as_deref()
                .is_none_or(|before| updated <= before)
            && (call.version < 26 || query::tags_match(doc, query))
            && self.has_address(call, doc)
    }

    fn has_address(&self, call: &Call<'_>, doc: &Doc) -> bool {
        let Some(wanted) = call.query.get("ip").or_else(|| call.query.get("ip6")) else {
            return true;
        };
        call.state
            .by(Kind::Port, "device_id", doc.text("id"))
            .iter()
            .any(|port| network::addresses(port).any(|address| pattern::matches(wanted, address)))
    }
}

/// Converts a time to the format of servers.
fn normal_time(text: &str) -> Option<String> {
    let text = text.replace(' ', "+");
    let parsed = text
        .parse::<jiff::Timestamp>()
        .ok()
        .or_else(|| format!("{text}Z").parse::<jiff::Timestamp>().ok())
        .or_else(|| format!("{text}T00:00:00Z").parse::<jiff::Timestamp>().ok())?;
    Some(crate::cloud::clock::zulu(parsed))
}
