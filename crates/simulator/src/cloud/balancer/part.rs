//! Operations common to load balancers and all their parts.

use serde_json::{Value, json};

use crate::cloud::attribute::{Attribute, Verb, check};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::clock::naive;
use crate::cloud::collection::Collection;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::quota;
use crate::cloud::service::Service;
use crate::cloud::state::State;

use super::status;

/// Returns the [`Fault`] for parts inside a part: Octavia documents a pool inside a listener, and members and a monitor
/// inside a pool, but creates such parts with a load balancer only. Elsewhere they reach the database unchanged
/// (`create_listener` and `create_pool` of octavia/db/prepare.py, as of Zed), which fails with this text.
pub(crate) fn not_in_a_tree() -> Fault {
    let message = "'dict' object has no attribute '_sa_instance_state'";
    Fault::new(500, "InternalServerError", message)
}

/// Validates the body of a creation, and returns a [`Doc`] with the standard fields.
pub(crate) fn fresh(
    call: &mut Call<'_>,
    table: &[Attribute],
    given: &Doc,
    limit: (&str, &str),
) -> Result<Doc, Fault> {
    let mut given = given.clone();
    let project = [given.remove("project_id"), given.remove("tenant_id")]
        .into_iter()
        .flatten()
        .find_map(|value| value.as_str().map(str::to_owned))
        .filter(|project| !project.is_empty())
        .unwrap_or_else(|| call.who.project_id.clone());
    if project != call.who.project_id && !call.who.admin() {
        return Err(Fault::forbidden(
            "Policy does not allow this request to be performed.",
        ));
    }
    let mut doc = check(
        table,
        &given,
        Verb::Create,
        call.who.admin(),
        Service::LoadBalancer,
    )?;
    let (name, label) = limit;
    if !quota::exceeded(call, Service::LoadBalancer, &project, &[(name, 1)]).is_empty() {
        return Err(Fault::forbidden(format!(
            "Quota has been met for resources: {label}"
        )));
    }
    doc.set("id", call.state.new_id());
    doc.set("project_id", project);
    doc.set("provisioning_status", "PENDING_CREATE");
    doc.set("operating_status", "OFFLINE");
    doc.set("created_at", naive(call.now()));
    doc.set("updated_at", Value::Null);
    if !doc.given("tags") {
        doc.set("tags", json!([]));
    }
    Ok(doc)
}

/// Returns a [`Fault`] for an invalid body: Octavia validates the body before checking for locks.
pub(crate) fn sound(call: &Call<'_>, table: &[Attribute], given: &Doc) -> Result<(), Fault> {
    let mut given = given.clone();
    given.remove("project_id");
    given.remove("tenant_id");
    let admin = call.who.admin();
    check(table, &given, Verb::Create, admin, Service::LoadBalancer).map(|_| ())
}

/// PUT of a part: validates, locks the load balancer, applies.
pub(crate) fn update(call: &mut Call<'_>, collection: &Collection, id: &str) -> Answer {
    let given = call.wrapped(collection.one)?;
    let old = collection.find_writable(call, id)?;
    let balancer = balancer_of(&old).to_owned();
    let changes = check(
        collection.attributes,
        &given,
        Verb::Update,
        call.who.admin(),
        Service::LoadBalancer,
    )?;
    status::mutable(call, &balancer)?;
    let doc = apply(call, collection.kind, id, &changes);
    status::lock(call, &balancer);
    Ok(Reply::ok(
        json!({collection.one: collection.show(call, &doc)}),
    ))
}

/// Applies validated changes to a part, marks the part pending, and returns its [`Doc`].
pub(crate) fn apply(call: &mut Call<'_>, kind: Kind, id: &str, changes: &Doc) -> Doc {
    let now = naive(call.now());
    call.state.edit(kind, id, |doc| {
        for (name, value) in changes {
            doc.insert(name.clone(), value.clone());
        }
        doc.set("provisioning_status", "PENDING_UPDATE");
        doc.set("updated_at", now);
    });
    call.state
        .get(kind, id)
        .map(|doc| (*doc).clone())
        .unwrap_or_default()
}

/// DELETE of a part. The part is removed once the load balancer is unlocked.
pub(crate) fn remove(call: &mut Call<'_>, collection: &Collection, id: &str) -> Answer {
    let old = collection.find_writable(call, id)?;
    let balancer = balancer_of(&old).to_owned();
    status::mutable(call, &balancer)?;
    status::doom(call.state, collection.kind, id);
    status::lock(call, &balancer);
    Ok(Reply::empty(204))
}

/// Returns the id of the load balancer of a part, or of the load balancer itself.
pub(crate) fn balancer_of(doc: &Doc) -> &str {
    match doc.text("loadbalancer_id") {
        "" => doc.text("id"),
        id => id,
    }
}

/// Returns `[{id}, ...]` of the parts of a [`Kind`] whose field has a value.
pub(crate) fn references(state: &State, kind: Kind, field: &'static str, value: &str) -> Value {
    if value.is_empty() {
        return json!([]);
    }
    state
        .by(kind, field, value)
        .iter()
        .map(|doc| json!({"id": doc.text("id")}))
        .collect()
}

/// True if the caller is the owner or an administrator.
pub(crate) fn owner_only(call: &Call<'_>, doc: &Doc) -> bool {
    call.may_access(doc)
}
