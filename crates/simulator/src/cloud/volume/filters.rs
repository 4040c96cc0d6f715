//! Filters and pages of Cinder's lists.

use std::sync::Arc;

use jiff::civil::DateTime;
use serde_json::{Value, json};

use crate::cloud::call::{Call, Reply};
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::query;

/// Maximum number of elements of a page, as in Cinder's default.
const LARGEST_PAGE: usize = 1000;
/// First microversion that limits members to the filters allowed by the cloud.
const CHECKED: u32 = 31;
/// Parameters that are no filters.
const OTHERS: [&str; 8] = [
    "limit",
    "marker",
    "offset",
    "sort",
    "sort_key",
    "sort_dir",
    "with_count",
    "all_tenants",
];

/// Returns a [`Fault`] for filters that are not `known`, from 3.31 on.
pub(super) fn check(call: &Call<'_>, known: &[&str]) -> Result<(), Fault> {
    if call.version < CHECKED || call.who.admin() {
        return Ok(());
    }
    let mut unknown = call.query.names();
    unknown.retain(|name| !known.contains(name) && !OTHERS.contains(name));
    match unknown.is_empty() {
        true => Ok(()),
        false => Err(Fault::bad(format!(
            "Invalid filters {} are found in query options.",
            unknown.join(",")
        ))),
    }
}

/// True if a field of a resource has a value wanted by the parameter `name`.
pub(super) fn matches(call: &Call<'_>, doc: &Doc, name: &str, field: &str) -> bool {
    let wanted: Vec<&str> = call.query.all(name).collect();
    wanted.is_empty() || query::matches(doc.get(field), &wanted)
}

/// `metadata={'key': 'value'}`: a Python dictionary, or JSON.
pub(super) fn metadata_matches(call: &Call<'_>, doc: &Doc) -> bool {
    let Some(text) = call.query.get("metadata") else {
        return true;
    };
    let Ok(Value::Object(wanted)) = serde_json::from_str(&text.replace('\'', "\"")) else {
        return true;
    };
    let metadata = doc.object("metadata");
    wanted
        .iter()
        .all(|(key, value)| metadata.get(key) == Some(value))
}

/// `created_at=gt:2026-01-01T00:00:00,lt:...`
pub(super) fn time_matches(call: &Call<'_>, doc: &Doc, field: &str) -> Result<bool, Fault> {
    let Some(conditions) = call.query.get(field) else {
        return Ok(true);
    };
    let time: Option<DateTime> = doc.text(field).parse().ok();
    let mut all = true;
    for condition in conditions.split(',') {
        let (operator, wanted) = condition
            .split_once(':')
            .ok_or_else(|| Fault::bad(format!("Invalid {field} value")))?;
        let wanted: DateTime = wanted
            .trim_end_matches('Z')
            .parse()
            .map_err(|_| Fault::bad(format!("Invalid {wanted} value")))?;
        all &= time.is_some_and(|time| match operator {
            "gt" => time > wanted,
            "gte" => time >= wanted,
            "lt" => time < wanted,
            "lte" => time <= wanted,
            "neq" => time != wanted,
            _ => time == wanted,
        });
        if !["gt", "gte", "eq", "neq", "lt", "lte"].contains(&operator) {
            return Err(Fault::bad(format!("Invalid {operator} operator")));
        }
    }
    Ok(all)
}

/// Page of a list, with the URL of the next one.
pub(super) struct Listing {
    pub(super) docs: Vec<Arc<Doc>>,
    next: Option<String>,
}

impl Listing {
    /// Returns the views of the page's elements; the links are in `<singular of name>s_links`.
    pub(super) fn reply(&self, name: &str, views: Vec<Value>) -> Reply {
        let mut body = json!({name: views});
        if let Some(next) = &self.next {
            body[format!("{name}_links")] = json!([{"rel": "next", "href": next}]);
        }
        Reply::ok(body)
    }
}

/// Returns the [`Listing`] of the page of `found` that the query wants; all of `found` in a version without pages.
pub(super) fn page(
    call: &Call<'_>,
    mut found: Vec<Arc<Doc>>,
    name: &str,
    has_pages: bool,
) -> Result<Listing, Fault> {
    if !has_pages {
        return Ok(Listing {
            docs: found,
            next: None,
        });
    }
    let limit = call
        .query
        .limit()
        .map_err(|_| Fault::bad("limit param must be an integer"))?;
    let limit = limit.unwrap_or(LARGEST_PAGE).min(LARGEST_PAGE);
    if let Some(offset) = call.query.get("offset") {
        let offset: usize = offset
            .parse()
            .map_err(|_| Fault::bad("offset param must be an integer"))?;
        found.drain(..offset.min(found.len()));
    }
    let marker = call.query.get("marker");
    let page = query::page(found, marker, Some(limit), false).ok_or_else(|| {
        let mut kind = name.trim_end_matches('s').to_owned();
        kind[..1].make_ascii_uppercase();
        Fault::missing(format!(
            "{kind} {} could not be found.",
            marker.unwrap_or_default()
        ))
    })?;
    let next = page.next.as_ref().map(|next| {
        let query = call.query.with_marker(next, false);
        format!("{}{}?{query}", call.root(), call.path)
    });
    Ok(Listing {
        docs: page.docs,
        next,
    })
}
