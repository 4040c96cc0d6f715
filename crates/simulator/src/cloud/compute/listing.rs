//! Lists of servers.

use std::cmp::Reverse;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{pattern, servers, view};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::query;

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
    let mut found = candidates(call);
    let filter = Filter::read(call)?;
    if filter.any {
        found.retain(|doc| filter.takes(call, doc));
    }
    // Newest first, as Nova without a sort key.
    found.sort_by_cached_key(|doc| {
        (
            Reverse(doc.number("_created_ms")),
            Reverse(doc.text("id").to_owned()),
        )
    });
    let mut keys = query::sort_keys(&call.query);
    for (key, _) in &mut keys {
        if key == "display_name" {
            "name".clone_into(key);
        }
        if key == "created_at" {
            "_created_ms".clone_into(key);
        }
    }
    query::sort(&mut found, &keys);
    let marker = call.query.get("marker");
    let page = query::page(found, marker, Some(limit), false)
        .ok_or_else(|| Fault::bad(format!("marker [{}] not found", marker.unwrap_or_default())))?;
    let shown: Vec<Value> = page
        .docs
        .iter()
        .map(|doc| {
            if detail {
                view::detail(call, doc)
            } else {
                brief(call, doc)
            }
        })
        .collect();
    let mut body = json!({"servers": shown});
    if let Some(next) = &page.next {
        let query = call.query.with_marker(next, false);
        let href = format!("{}{}?{query}", call.root(), call.path);
        body["servers_links"] = json!([{"rel": "next", "href": href}]);
    }
    Ok(Reply::ok(body))
}

fn brief(call: &Call<'_>, doc: &Doc) -> Value {
    let id = doc.text("id");
    json!({"id": id, "name": doc.text("name"), "links": servers::links(call, "servers", id)})
}

fn candidates(call: &Call<'_>) -> Vec<Arc<Doc>> {
    let project = call
        .query
        .get("project_id")
        .or_else(|| call.query.get("tenant_id"));
    let gone = call.query.get("changes-since").is_some()
        || call.who.admin() && call.query.get("deleted").and_then(query::truth) == Some(true);
    let of = |kind| match (call.everyone(), project) {
        (true, None) => call.state.all(kind).cloned().collect(),
        (true, Some(project)) => call.state.by(kind, "project_id", project),
        (false, _) => call.state.by(kind, "project_id", &call.who.project_id),
    };
    let mut found: Vec<Arc<Doc>> = of(Kind::Server);
    if gone {
        found.extend(of(Kind::DeletedServer));
    }
    found
}

struct Filter {
    since: Option<String>,
    before: Option<String>,
    /// Whether there is anything to look at but paging and sorting.
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
            .any(|port| {
                port.list("fixed_ips")
                    .iter()
                    .filter_map(|fixed| fixed["ip_address"].as_str())
                    .any(|address| pattern::matches(wanted, address))
            })
    }
}

/// ISO 8601 in the form that servers carry.
fn normal_time(text: &str) -> Option<String> {
    let text = text.replace(' ', "+");
    let parsed = text
        .parse::<jiff::Timestamp>()
        .ok()
        .or_else(|| format!("{text}Z").parse::<jiff::Timestamp>().ok())
        .or_else(|| format!("{text}T00:00:00Z").parse::<jiff::Timestamp>().ok())?;
    Some(crate::cloud::clock::zulu(parsed))
}
