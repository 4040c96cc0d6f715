//! Pool members, singly and in a batch.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value, json};

use super::ovn;
use super::part::{self, fresh};
use super::pools::POOL;
use super::status;
use crate::cloud::attribute::{Attribute, Preset, Shape, attribute, fixed};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::collection::Collection;
use crate::cloud::document::{Doc, Fields, doc as to_doc};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::query;
use crate::cloud::route::{Access, Table};
use crate::cloud::state::State;

const ATTRIBUTES: &[Attribute] = &[
    attribute("name", Shape::Text(255), Preset::Text("")).editable(),
    attribute("address", Shape::Address, Preset::Required),
    attribute("protocol_port", Shape::Number(1, 65_535), Preset::Required),
    attribute("weight", Shape::Number(0, 256), Preset::Number(1)).editable(),
    attribute("backup", Shape::Flag, Preset::Flag(false)).editable(),
    attribute("subnet_id", Shape::Id, Preset::Null),
    attribute("monitor_address", Shape::Address, Preset::Null).editable(),
    attribute("monitor_port", Shape::Number(1, 65_535), Preset::Null).editable(),
    attribute("admin_state_up", Shape::Flag, Preset::Flag(true)).editable(),
    attribute("tags", Shape::Texts, Preset::EmptyList).editable(),
    fixed("provisioning_status"),
    fixed("operating_status"),
    fixed("pool_id"),
];

/// Octavia's members.
pub(crate) static MEMBER: Collection = Collection {
    kind: Kind::Member,
    one: "member",
    many: "members",
    attributes: ATTRIBUTES,
    across_projects: false,
    visible,
    present: |_, _, doc| {
        doc.remove("loadbalancer_id");
        doc.remove("pool_id");
    },
    missing,
};

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .get("/v2.0/lbaas/pools/{pool_id}/members", |call| {
            POOL.find(call, call.parameter("pool_id"))?;
            MEMBER.list(call)
        })
        .post("/v2.0/lbaas/pools/{pool_id}/members", create)
        .on(
            Method::PUT,
            "/v2.0/lbaas/pools/{pool_id}/members",
            Access::Member,
            batch,
        )
        .get("/v2.0/lbaas/pools/{pool_id}/members/{id}", |call| {
            MEMBER.get(call)
        })
        .put("/v2.0/lbaas/pools/{pool_id}/members/{id}", |call| {
            let id = call.parameter("id").to_owned();
            let pool = POOL.find_writable(call, call.parameter("pool_id"))?;
            ovn::member(call.state, &pool, &call.wrapped("member")?, false)?;
            part::update(call, &MEMBER, &id)
        })
        .delete("/v2.0/lbaas/pools/{pool_id}/members/{id}", |call| {
            let id = call.parameter("id").to_owned();
            part::remove(call, &MEMBER, &id)
        });
}

/// Members of a pool by address and port, unique within the pool: a pool has up to thousands of members, and one
/// request may name all of them.
pub(crate) struct Places(BTreeMap<(String, i64), String>);

impl Places {
    pub(crate) fn new(state: &State, pool: &Doc) -> Self {
        let members = state.by(Kind::Member, "pool_id", pool.text("id"));
        let places = members
            .iter()
            .map(|member| (place(member), member.text("id").to_owned()));
        Self(places.collect())
    }
}

fn place(member: &Doc) -> (String, i64) {
    let port = member.number("protocol_port");
    (member.text("address").to_owned(), port)
}

/// Adds a member to a pool whose members have these [`Places`].
pub(crate) fn create_in(
    call: &mut Call<'_>,
    (pool, places): (&Doc, &mut Places),
    given: &Doc,
) -> Result<Doc, Fault> {
    let mut doc = fresh(call, ATTRIBUTES, given, ("member", "Member"))?;
    if doc.given("subnet_id")
        && call
            .state
            .get(Kind::Subnet, doc.text("subnet_id"))
            .is_none()
    {
        return Err(Fault::bad(format!(
            "Subnet {} not found.",
            doc.text("subnet_id")
        )));
    }
    ovn::member(call.state, pool, &doc, true)?;
    let (address, port) = place(&doc);
    if places.0.contains_key(&(address.clone(), port)) {
        return Err(Fault::conflict(format!(
            "Another member on this pool is already using ip {address} on protocol_port {port}",
        )));
    }
    doc.set("pool_id", pool.text("id"));
    doc.set("loadbalancer_id", pool.text("loadbalancer_id"));
    doc.set("project_id", pool.text("project_id"));
    doc.set("operating_status", "NO_MONITOR");
    places.0.insert((address, port), doc.text("id").to_owned());
    call.state.put(Kind::Member, doc.clone());
    Ok(doc)
}

fn create(call: &mut Call<'_>) -> Answer {
    let id = call.parameter("pool_id");
    if call.state.get(Kind::Pool, id).is_none() {
        // The path is resolved before Octavia's errors apply.
        let body = json!({"code": 404, "title": "Bad Request", "description": format!("Pool {id} not found.")});
        return Ok(Reply::with(404, body));
    }
    let pool = POOL.find_writable(call, call.parameter("pool_id"))?;
    let given = call.wrapped("member")?;
    let balancer = pool.text("loadbalancer_id").to_owned();
    status::mutable(call, &balancer)?;
    let mut places = Places::new(call.state, &pool);
    let doc = create_in(call, (&pool, &mut places), &given)?;
    status::lock(call, &balancer);
    Ok(Reply::with(201, json!({"member": MEMBER.show(call, &doc)})))
}

/// PUT of all members, identified by address and port. With `additive_only`, none is removed.
fn batch(call: &mut Call<'_>) -> Answer {
    let pool = POOL.find_writable(call, call.parameter("pool_id"))?;
    let Some(Value::Array(wanted)) = call.body.get("members").cloned() else {
        return Err(Fault::bad("Missing argument: \"members\""));
    };
    let balancer = pool.text("loadbalancer_id").to_owned();
    status::mutable(call, &balancer)?;
    let additive = call.query.get("additive_only").and_then(query::truth) == Some(true);
    let mut places = Places::new(call.state, &pool);
    let existing = places.0.clone();
    let mut unnamed = existing.clone();
    for member in wanted {
        let member = to_doc(member);
        let Some(current) = existing.get(&place(&member)) else {
            create_in(call, (&pool, &mut places), &member)?;
            continue;
        };
        let mut changes = member.clone();
        for key in ["address", "protocol_port", "subnet_id", "project_id"] {
            changes.remove(key);
        }
        let checked = crate::cloud::attribute::check(
            ATTRIBUTES,
            &changes,
            crate::cloud::attribute::Verb::Update,
            call.who.admin(),
            call.service,
        )?;
        ovn::member(call.state, &pool, &checked, false)?;
        part::apply(call, Kind::Member, current, &checked);
        unnamed.remove(&place(&member));
    }
    if !additive {
        for id in unnamed.values() {
            status::doom(call.state, Kind::Member, id);
        }
    }
    status::lock(call, &balancer);
    Ok(Reply::empty(202))
}

/// True if the member is in the pool of the path.
fn visible(call: &Call<'_>, doc: &Doc) -> bool {
    let pool = call.parameter("pool_id");
    call.may_access(doc) && (pool.is_empty() || doc.text("pool_id") == pool)
}

fn missing(id: &str) -> Fault {
    Fault::missing(format!("Member {id} not found."))
}
