//! Lists and single resources of Neutron and Octavia: filtering, sorting, paging and presentation.

use std::sync::Arc;

use serde_json::{Value, json};

use super::attribute::Attribute;
use super::call::{Answer, Call, Reply, Who};
use super::document::{Doc, Fields, public_fields};
use super::fault::Fault;
use super::kind::Kind;
use super::query;
use super::service::Service;
use super::state::State;

/// Collection of one service.
pub(crate) struct Collection {
    pub(crate) kind: Kind,
    /// Key around one resource, such as `network`.
    pub(crate) one: &'static str,
    /// Key around a list, also the last path segment, such as `networks`.
    pub(crate) many: &'static str,
    pub(crate) attributes: &'static [Attribute],
    /// True if resources of other projects may be visible, so that lists consider all projects.
    pub(crate) across_projects: bool,
    /// Returns true if the caller may see the resource.
    pub(crate) visible: fn(&Call<'_>, &Doc) -> bool,
    /// Adds and removes fields that depend on other resources and on the caller.
    pub(crate) present: fn(&State, &Who, &mut Doc),
    /// Error for an unknown id of the service.
    pub(crate) missing: fn(&str) -> Fault,
}

/// Query parameters that are not filters.
const RESERVED: [&str; 13] = [
    "limit",
    "marker",
    "page_reverse",
    "sort_key",
    "sort_dir",
    "sort",
    "fields",
    "tags",
    "tags-any",
    "not-tags",
    "not-tags-any",
    "all_projects",
    "all_tenants",
];

/// Fields of every resource outside of its attribute table.
const STANDARD: [&str; 8] = [
    "id",
    "tenant_id",
    "project_id",
    "created_at",
    "updated_at",
    "revision_number",
    "status",
    "description",
];

impl Collection {
    /// GET of the list.
    pub(crate) fn list(&self, call: &Call<'_>) -> Answer {
        let limit = match call.query.limit() {
            Ok(limit) => limit,
            Err(text) => return self.bad_limit(call, &text),
        };
        for (key, _) in query::sort_keys(&call.query) {
            if !self.filterable(&key) {
                return Err(Fault::bad(format!(
                    "[{key}] is invalid attribute for sort_keys"
                )));
            }
        }
        let mut found = self.filtered(call)?;
        query::sort(&mut found, &query::sort_keys(&call.query));
        let reverse = call.query.get("page_reverse").and_then(query::truth) == Some(true);
        let marker = call.query.get("marker");
        let page = query::page(found, marker, limit, reverse)
            .ok_or_else(|| (self.missing)(marker.unwrap_or_default()))?;
        let docs: Vec<Value> = page
            .docs
            .iter()
            .map(|doc| Value::Object(query::only_fields(self.show(call, doc), &call.query)))
            .collect();
        let mut body = Doc::new();
        body.set(self.many, docs);
        if limit.is_some() || call.service == Service::LoadBalancer {
            let url = format!("{}{}", call.root(), call.path);
            body.set(
                &format!("{}_links", self.links()),
                query::page_links(&page, &url, &call.query),
            );
        }
        Ok(Reply::ok(Value::Object(body)))
    }

    /// Returns the prefix of `_links`: the singular for Octavia's profiles, otherwise the plural.
    fn links(&self) -> &'static str {
        match self.many.ends_with("profiles") {
            true => self.one,
            false => self.many,
        }
    }

    /// GET of one.
    pub(crate) fn get(&self, call: &Call<'_>) -> Answer {
        let doc = self.find(call, call.parameter("id"))?;
        let doc = query::only_fields(self.show(call, &doc), &call.query);
        Ok(Reply::ok(json!({self.one: doc})))
    }

    /// Returns the [`Doc`] of a visible resource, or the service's 404.
    pub(crate) fn find(&self, call: &Call<'_>, id: &str) -> Result<Arc<Doc>, Fault> {
        let found = call.state.get(self.kind, id);
        if call.service == Service::LoadBalancer
            && !self.across_projects
            && found.as_ref().is_some_and(|doc| !call.may_access(doc))
        {
            return Err(Fault::forbidden(
                "Policy does not allow this request to be performed.",
            ));
        }
        found
            .filter(|doc| (self.visible)(call, doc))
            .ok_or_else(|| (self.missing)(id))
    }

    /// Returns the [`Doc`] of a visible resource that the caller may also change; shared resources of others are not
    /// writable.
    pub(crate) fn find_writable(&self, call: &Call<'_>, id: &str) -> Result<Arc<Doc>, Fault> {
        let doc = self.find(call, id)?;
        if call.may_access(&doc) {
            return Ok(doc);
        }
        let rule = format!("rule:update_{} is disallowed by policy", self.one);
        Err(Fault::forbidden(rule))
    }

    /// Returns the [`Doc`] of the resource as shown to the caller.
    pub(crate) fn show(&self, call: &Call<'_>, doc: &Doc) -> Doc {
        let mut out = public_fields(doc);
        (self.present)(call.state, &call.who, &mut out);
        if call.service == Service::LoadBalancer && out.contains_key("project_id") {
            let project = out.text("project_id").to_owned();
            out.set("tenant_id", project);
        }
        out
    }

    fn bad_limit(&self, call: &Call<'_>, text: &str) -> Answer {
        if call.service == Service::LoadBalancer {
            let description = format!("Request limit '{text}' is not a valid value");
            return Ok(Reply::with(
                400,
                json!({"code": 400, "title": "Bad Request", "description": description}),
            ));
        }
        let message =
            format!("Bad limit request: invalid literal for int() with base 10: '{text}'.");
        Err(Fault::new(400, "BadRequest", message))
    }

    fn filtered(&self, call: &Call<'_>) -> Result<Vec<Arc<Doc>>, Fault> {
        let mut filters: Vec<(&str, Vec<&str>)> = Vec::new();
        for name in call.query.names() {
            if RESERVED.contains(&name) {
                continue;
            }
            let field = match name {
                "tenant_id" => "project_id",
                // Octavia accepts both spellings.
                "load_balancer_id" => "loadbalancer_id",
                other => other,
            };
            if !self.filterable(field) {
                return Err(match call.service {
                    Service::Network => {
                        Fault::bad(format!("{name} is invalid attribute for filtering"))
                    }
                    _ => Fault::bad(format!("Unknown argument: \"{name}\"")),
                });
            }
            filters.push((field, call.query.all(name).collect()));
        }
        let mut found = self.candidates(call, &filters);
        found.retain(|doc| {
            (self.visible)(call, doc)
                && filters
                    .iter()
                    .all(|(field, wanted)| query::matches(doc.get(*field), wanted))
                && query::tags_match(doc, &call.query)
        });
        Ok(found)
    }

    /// Returns the smallest set of [`Doc`]s from an index that contains all matches.
    fn candidates(&self, call: &Call<'_>, filters: &[(&str, Vec<&str>)]) -> Vec<Arc<Doc>> {
        let state = &*call.state;
        if let Some((_, ids)) = filters.iter().find(|(field, _)| *field == "id") {
            return sorted(
                ids.iter()
                    .filter_map(|id| state.get(self.kind, id))
                    .collect(),
            );
        }
        // The index by project is the coarsest, so it comes last.
        let indexed = self.kind.indexed().iter().rev();
        for field in indexed.filter(|field| **field != "project_id") {
            let wanted = filters.iter().find(|(name, _)| name == field);
            if let Some((_, values)) = wanted.filter(|(_, values)| !values.contains(&"")) {
                return sorted(
                    values
                        .iter()
                        .flat_map(|value| state.by(self.kind, field, value))
                        .collect(),
                );
            }
        }
        if self.across_projects || call.who.admin() {
            return state.all(self.kind).cloned().collect();
        }
        state.by(self.kind, "project_id", &call.who.project_id)
    }

    fn filterable(&self, name: &str) -> bool {
        STANDARD.contains(&name) || self.attributes.iter().any(|known| known.name == name)
    }
}

fn sorted(mut docs: Vec<Arc<Doc>>) -> Vec<Arc<Doc>> {
    docs.sort_by_cached_key(|doc| doc.text("id").to_owned());
    docs.dedup_by(|a, b| a.text("id") == b.text("id"));
    docs
}
