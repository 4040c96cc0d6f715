//! Creation, update and deletion of all Neutron resources.

use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};

use crate::cloud::attribute::{Verb, check, python_list};
use crate::cloud::call::{Answer, Call, Reply, Who};
use crate::cloud::clock::zulu;
use crate::cloud::collection::Collection;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::quota;
use crate::cloud::route::{Access, Table};
use crate::cloud::service::Service;
use crate::cloud::state::State;

/// Resource with its particular operations.
pub(crate) struct Resource {
    pub(crate) collection: Collection,
    /// Name of the quota.
    pub(crate) quota: &'static str,
    /// Creates the resource from a validated body.
    pub(crate) create: fn(&mut Call<'_>, Doc) -> Result<Doc, Fault>,
    /// Applies a validated change to the resource.
    pub(crate) update: fn(&mut Call<'_>, &Doc, &mut Doc, &Doc) -> Result<(), Fault>,
    /// Removes the resource, or returns the reason for a refusal.
    pub(crate) delete: fn(&mut Call<'_>, &Doc) -> Result<(), Fault>,
    pub(crate) hooks: Hooks,
}

/// Rules of one kind about requests and answers.
pub(crate) struct Hooks {
    /// Judges the bodies of resources that one request creates.
    pub(crate) together: fn(&[Doc]) -> Result<(), Fault>,
    /// Gives the answer to an update its form.
    pub(crate) updated: fn(&mut Doc),
}

impl Hooks {
    /// No rules.
    pub(crate) const NONE: Self = Self {
        together: |_| Ok(()),
        updated: |_| (),
    };
}

/// Registers the five operations of a resource.
pub(crate) fn routes(
    table: &mut Table<'_>,
    many: &'static str,
    one: &'static str,
    what: &'static Resource,
) {
    table.on(Method::GET, many, Access::Reader, move |call| {
        what.collection.list(call)
    });
    table.on(Method::POST, many, Access::Member, move |call| {
        what.post(call)
    });
    table.on(Method::GET, one, Access::Reader, move |call| {
        what.collection.get(call)
    });
    table.on(Method::PUT, one, Access::Member, move |call| what.put(call));
    table.on(Method::DELETE, one, Access::Member, move |call| {
        what.remove(call)
    });
}

impl Resource {
    fn post(&self, call: &mut Call<'_>) -> Answer {
        let (one, many) = (self.collection.one, self.collection.many);
        if let Some(Value::Array(items)) = call.body.get(many) {
            let items: Vec<Doc> = items
                .iter()
                .map(|item| item.as_object().cloned())
                .collect::<Option<_>>()
                .ok_or_else(|| Fault::bad(format!("Invalid input for {many}")))?;
            if items.is_empty() {
                return Err(Fault::bad("Resources required"));
            }
            (self.hooks.together)(&items)?;
            let mut created = Vec::with_capacity(items.len());
            for item in items {
                created.push(self.create_one(call, item)?);
            }
            let views: Vec<Doc> = created
                .iter()
                .map(|doc| self.collection.show(call, doc))
                .collect();
            return Ok(Reply::with(201, json!({many: views})));
        }
        let item = call.wrapped(one)?;
        let doc = self.create_one(call, item)?;
        Ok(Reply::with(
            201,
            json!({one: self.collection.show(call, &doc)}),
        ))
    }

    fn create_one(&self, call: &mut Call<'_>, mut given: Doc) -> Result<Doc, Fault> {
        let project = project(call, &mut given)?;
        let admin = call.who.admin();
        let mut doc = check(
            self.collection.attributes,
            &given,
            Verb::Create,
            admin,
            Service::Network,
        )?;
        within_quota(call, self.quota, &project, 1)?;
        let id = call.state.new_id();
        stamp(&mut doc, id, &project, call.state);
        let created = (self.create)(call, doc)?;
        Ok(created)
    }

    fn put(&self, call: &mut Call<'_>) -> Answer {
        let one = self.collection.one;
        let given = call.wrapped(one)?;
        let old = self.collection.find_writable(call, call.parameter("id"))?;
        check_revision(call, &old)?;
        let admin = call.who.admin();
        let changes = check(
            self.collection.attributes,
            &given,
            Verb::Update,
            admin,
            Service::Network,
        )?;
        let mut new = (*old).clone();
        (self.update)(call, &old, &mut new, &changes)?;
        if new != *old {
            touch(&mut new, call.state);
            call.state.put(self.collection.kind, new.clone());
        }
        let mut answer = self.collection.show(call, &new);
        (self.hooks.updated)(&mut answer);
        Ok(Reply::ok(json!({one: answer})))
    }

    fn remove(&self, call: &mut Call<'_>) -> Answer {
        let doc = self.collection.find_writable(call, call.parameter("id"))?;
        check_revision(call, &doc)?;
        (self.delete)(call, &doc)?;
        Ok(Reply::empty(204))
    }
}

/// Rejects a creation that exceeds a quota, with Neutron's message.
pub(crate) fn within_quota(
    call: &Call<'_>,
    name: &str,
    project: &str,
    count: i64,
) -> Result<(), Fault> {
    let exceeded = quota::exceeded(call, Service::Network, project, &[(name, count)]);
    if exceeded.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = exceeded.iter().map(|one| one.name).collect();
    let message = format!("Quota exceeded for resources: {}.", python_list(&names));
    Err(Fault::new(409, "OverQuota", message))
}

/// Sets the standard fields of a new resource.
pub(crate) fn stamp(doc: &mut Doc, id: String, project: &str, state: &State) {
    let now = zulu(state.now());
    doc.set("id", id);
    doc.set("project_id", project);
    doc.set("created_at", now.clone());
    doc.set("updated_at", now);
    doc.set("revision_number", 1);
    doc.set("tags", json!([]));
    if !doc.contains_key("description") {
        doc.set("description", "");
    }
}

/// Records a change: time and revision.
pub(crate) fn touch(doc: &mut Doc, state: &State) {
    doc.set("updated_at", zulu(state.now()));
    doc.set("revision_number", doc.number("revision_number") + 1);
}

/// As [`touch`], for a stored resource with changed parts.
pub(crate) fn bump(state: &mut State, kind: Kind, id: &str) {
    let now = zulu(state.now());
    state.edit(kind, id, |doc| {
        doc.set("updated_at", now);
        doc.set("revision_number", doc.number("revision_number") + 1);
    });
}

/// Applies a change field by field.
pub(crate) fn merge(doc: &mut Doc, changes: &Doc) {
    for (name, value) in changes {
        doc.insert(name.clone(), value.clone());
    }
}

/// Adds `tenant_id` beside `project_id`, as Neutron does everywhere.
pub(crate) fn with_tenant(_: &State, _: &Who, doc: &mut Doc) {
    let project = doc.text("project_id").to_owned();
    doc.set("tenant_id", project);
}

/// True if the caller is the owner or an administrator.
pub(crate) fn owner_only(call: &Call<'_>, doc: &Doc) -> bool {
    call.may_access(doc)
}

/// Returns a resource that a body refers to, or the error of the resource's collection.
pub(crate) fn referenced(call: &Call<'_>, what: &Resource, id: &str) -> Result<Arc<Doc>, Fault> {
    what.collection.find(call, id)
}

/// Returns the project of a new resource: the caller's, unless an administrator sets another one.
fn project(call: &Call<'_>, given: &mut Doc) -> Result<String, Fault> {
    let wanted = [given.remove("project_id"), given.remove("tenant_id")];
    let default = &call.who.project_id;
    match wanted.iter().flatten().find_map(Value::as_str) {
        None => Ok(default.clone()),
        Some(wanted) if wanted == default || call.who.admin() => Ok(wanted.to_owned()),
        Some(_) => Err(Fault::bad(
            "Specifying 'project_id' or 'tenant_id' other than the authenticated project in \
             request requires admin privileges",
        )),
    }
}

/// Returns a [`Fault`] if `If-Match: revision_number=N` names another revision (extension revision-if-match).
pub(crate) fn check_revision(call: &Call<'_>, doc: &Doc) -> Result<(), Fault> {
    let Some(header) = call
        .headers
        .get("if-match")
        .and_then(|value| value.to_str().ok())
    else {
        return Ok(());
    };
    // A header of another form is ignored.
    let Some(wanted) = header
        .trim()
        .strip_prefix("revision_number=")
        .and_then(|number| number.trim().parse::<i64>().ok())
    else {
        return Ok(());
    };
    let current = doc.number("revision_number");
    if wanted == current {
        return Ok(());
    }
    let message = format!("Constrained to {wanted}, but current revision is {current}");
    Err(Fault::new(412, "RevisionNumberConstraintFailed", message))
}
