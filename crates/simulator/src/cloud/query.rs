//! Query strings: filters, sorting, paging and field selection of all services.

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::{Value, json};

use super::document::{Doc, Fields};

/// Decoded query string, in order, with repetitions.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Decodes a raw query string. Undecodable bytes become the replacement character, as in webob.
    pub(crate) fn parse(raw: &str) -> Self {
        Self(
            form_urlencoded::parse(raw.as_bytes())
                .into_owned()
                .collect(),
        )
    }

    /// Returns the first value of a parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// Returns every value of a parameter.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// Returns every parameter name, once, in order.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in &self.0 {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }

    /// Returns `limit`: `None` if absent or 0; an error message if not a number.
    pub(crate) fn limit(&self) -> Result<Option<usize>, String> {
        match self.get("limit") {
            None | Some("") => Ok(None),
            Some(text) => match text.parse::<i64>() {
                Ok(limit) => match usize::try_from(limit) {
                    Ok(0) => Ok(None),
                    Ok(limit) => Ok(Some(limit)),
                    Err(_) => Err(text.to_owned()),
                },
                Err(_) => Err(text.to_owned()),
            },
        }
    }

    /// Returns the query string with `marker` replaced, for the link to another page.
    pub(crate) fn with_marker(&self, marker: &str, reverse: bool) -> String {
        let mut out = form_urlencoded::Serializer::new(String::new());
        for (name, value) in &self.0 {
            if name != "marker" && name != "page_reverse" {
                out.append_pair(name, value);
            }
        }
        out.append_pair("marker", marker);
        if reverse {
            out.append_pair("page_reverse", "True");
        }
        out.finish()
    }
}

/// True if a field has one of the requested values, compared as Neutron and Octavia do: booleans in any spelling, null
/// as the empty string, lists by membership, nested `fixed_ips` as `subnet_id=...`.
pub(crate) fn matches(value: Option<&Value>, wanted: &[&str]) -> bool {
    wanted.iter().any(|wanted| equals(value, wanted))
}

fn equals(value: Option<&Value>, wanted: &str) -> bool {
    match value {
        None | Some(Value::Null) => wanted.is_empty() || wanted.eq_ignore_ascii_case("none"),
        Some(Value::Bool(flag)) => truth(wanted) == Some(*flag),
        Some(Value::Number(number)) => number.to_string() == wanted,
        Some(Value::String(text)) => text == wanted,
        Some(Value::Array(list)) => list
            .iter()
            .any(|item| match (item, wanted.split_once('=')) {
                (Value::Object(item), Some((field, wanted))) => equals(item.get(field), wanted),
                (Value::Object(item), None) => item.text("id") == wanted,
                _ => equals(Some(item), wanted),
            }),
        Some(Value::Object(_)) => false,
    }
}

/// Parses a boolean in any spelling that oslo accepts.
pub(crate) fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "t" | "yes" | "y" | "on" => Some(true),
        "false" | "0" | "f" | "no" | "n" | "off" => Some(false),
        _ => None,
    }
}

/// Implements the four tag filters, `tags`, `tags-any`, `not-tags` and `not-tags-any`, each a comma separated list.
pub(crate) fn tags_match(doc: &Doc, query: &Query) -> bool {
    let has = |tag: &str| doc.texts("tags").any(|existing| existing == tag);
    let test = |name: &str, all: bool| {
        let tags: Vec<&str> = query.all(name).flat_map(|list| list.split(',')).collect();
        if tags.is_empty() {
            None
        } else if all {
            Some(tags.iter().all(|tag| has(tag)))
        } else {
            Some(tags.iter().any(|tag| has(tag)))
        }
    };
    test("tags", true) != Some(false)
        && test("tags-any", false) != Some(false)
        && test("not-tags", true) != Some(true)
        && test("not-tags-any", false) != Some(true)
}

/// Sorts by fields, then by id. Without fields, the order does not change.
pub(crate) fn sort(docs: &mut [Arc<Doc>], keys: &[(String, bool)]) {
    if keys.is_empty() {
        return;
    }
    docs.sort_by(|a, b| {
        keys.iter()
            .map(|(field, descending)| {
                let order = compare(a.get(field), b.get(field));
                if *descending { order.reverse() } else { order }
            })
            .find(|order| *order != Ordering::Equal)
            .unwrap_or_else(|| a.text("id").cmp(b.text("id")))
    });
}

fn compare(a: Option<&Value>, b: Option<&Value>) -> Ordering {
    match (a, b) {
        (Some(Value::Number(a)), Some(Value::Number(b))) => a
            .as_f64()
            .partial_cmp(&b.as_f64())
            .unwrap_or(Ordering::Equal),
        _ => plain(a).cmp(&plain(b)),
    }
}

fn plain(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// Parses `sort_key=a&sort_dir=desc` (Neutron, Nova) and `sort=a:desc,b` (Octavia, Glance, Cinder).
pub(crate) fn sort_keys(query: &Query) -> Vec<(String, bool)> {
    let mut directions = query.all("sort_dir");
    let separate = query.all("sort_key").map(|key| {
        let descending = directions
            .next()
            .is_some_and(|d| d.eq_ignore_ascii_case("desc"));
        (key.to_owned(), descending)
    });
    let mut keys: Vec<(String, bool)> = separate.collect();
    for part in query
        .all("sort")
        .flat_map(|list| list.split(','))
        .filter(|part| !part.is_empty())
    {
        match part.split_once(':') {
            Some((key, direction)) => keys.push((key.to_owned(), direction == "desc")),
            None => keys.push((part.to_owned(), false)),
        }
    }
    keys
}

/// One page of a list.
pub(crate) struct Page {
    pub(crate) docs: Vec<Arc<Doc>>,
    /// Marker of the next page, if there may be one.
    pub(crate) next: Option<String>,
    /// Marker of the page before, except on the first page.
    pub(crate) previous: Option<String>,
}

/// Returns the page after the marker. `None`: the marker is unknown.
pub(crate) fn page(
    mut docs: Vec<Arc<Doc>>,
    marker: Option<&str>,
    limit: Option<usize>,
    reverse: bool,
) -> Option<Page> {
    let position = match marker.filter(|marker| !marker.is_empty()) {
        Some(marker) => Some(docs.iter().position(|doc| doc.text("id") == marker)?),
        None => None,
    };
    if reverse {
        docs.truncate(position.unwrap_or(docs.len()));
        let skip = limit.map_or(0, |limit| docs.len().saturating_sub(limit));
        docs.drain(..skip);
    } else {
        docs.drain(..position.map_or(0, |position| position + 1));
        if let Some(limit) = limit {
            docs.truncate(limit);
        }
    }
    let full = limit.is_some_and(|limit| docs.len() >= limit);
    let id = |doc: Option<&Arc<Doc>>| doc.map(|doc| doc.text("id").to_owned());
    let next = if full || (reverse && !docs.is_empty()) {
        id(docs.last())
    } else {
        None
    };
    let previous = if position.is_some() && (!reverse || full) {
        id(docs.first())
    } else {
        None
    };
    Some(Page {
        docs,
        next,
        previous,
    })
}

/// Returns `[{rel: next}, {rel: previous}]`, which Neutron and Octavia put next to a list.
pub(crate) fn page_links(page: &Page, url: &str, query: &Query) -> Vec<Value> {
    let link = |marker: &Option<String>, rel: &str| {
        marker.as_ref().map(|marker| {
            let query = query.with_marker(marker, rel == "previous");
            json!({"rel": rel, "href": format!("{url}?{query}")})
        })
    };
    [link(&page.next, "next"), link(&page.previous, "previous")]
        .into_iter()
        .flatten()
        .collect()
}

/// Returns a [`Doc`] of the requested fields, or all. Octavia also accepts the names comma-separated.
pub(crate) fn only_fields(doc: Doc, query: &Query) -> Doc {
    let wanted: Vec<&str> = query
        .all("fields")
        .flat_map(|list| list.split(','))
        .filter(|f| !f.is_empty())
        .collect();
    if wanted.is_empty() {
        return doc;
    }
    doc.into_iter()
        .filter(|(name, _)| wanted.contains(&name.as_str()))
        .collect()
}

#[cfg(test)]
mod tests;
