//! L7 policies and rules.

use serde_json::json;

use super::part::{self, fresh, owner_only, references};
use super::{listeners, ovn, status};
use crate::cloud::attribute::{Attribute, Preset, Shape, attribute, fixed};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::collection::Collection;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::Table;

const ACTIONS: &[&str] = &[
    "REJECT",
    "REDIRECT_TO_POOL",
    "REDIRECT_TO_URL",
    "REDIRECT_PREFIX",
];

const POLICY_ATTRIBUTES: &[Attribute] = &[
    attribute("name", Shape::Text(255), Preset::Text("")).editable(),
    attribute("description", Shape::Text(255), Preset::Text("")).editable(),
    attribute("action", Shape::OneOf(ACTIONS), Preset::Required).editable(),
    attribute("listener_id", Shape::Id, Preset::Required),
    attribute("redirect_pool_id", Shape::Id, Preset::Null).editable(),
    attribute("redirect_url", Shape::Text(255), Preset::Null).editable(),
    attribute("redirect_prefix", Shape::Text(255), Preset::Null).editable(),
    attribute("redirect_http_code", Shape::Number(301, 308), Preset::Null).editable(),
    attribute(
        "position",
        Shape::Number(1, 2_147_483_647),
        Preset::Number(1),
    )
    .editable(),
    attribute("admin_state_up", Shape::Flag, Preset::Flag(true)).editable(),
    attribute("tags", Shape::Texts, Preset::EmptyList).editable(),
    fixed("provisioning_status"),
];

const RULE_ATTRIBUTES: &[Attribute] = &[
    attribute("type", Shape::Text(32), Preset::Required).editable(),
    attribute("compare_type", Shape::Text(32), Preset::Required).editable(),
    attribute("value", Shape::Text(255), Preset::Required).editable(),
    attribute("key", Shape::Text(255), Preset::Null).editable(),
    attribute("invert", Shape::Flag, Preset::Flag(false)).editable(),
    attribute("admin_state_up", Shape::Flag, Preset::Flag(true)).editable(),
    attribute("tags", Shape::Texts, Preset::EmptyList).editable(),
    fixed("provisioning_status"),
];

static POLICY: Collection = Collection {
    kind: Kind::L7Policy,
    one: "l7policy",
    many: "l7policies",
    attributes: POLICY_ATTRIBUTES,
    across_projects: false,
    visible: owner_only,
    present: |state, _, doc| {
        doc.remove("loadbalancer_id");
        let id = doc.text("id").to_owned();
        doc.set("rules", references(state, Kind::L7Rule, "l7policy_id", &id));
    },
    missing: |id| Fault::missing(format!("L7Policy {id} not found.")),
};

static RULE: Collection = Collection {
    kind: Kind::L7Rule,
    one: "rule",
    many: "rules",
    attributes: RULE_ATTRIBUTES,
    across_projects: false,
    visible: |call, doc| {
        call.may_access(doc) && doc.text("l7policy_id") == call.parameter("policy_id")
    },
    present: |_, _, doc| {
        doc.remove("loadbalancer_id");
        doc.remove("l7policy_id");
    },
    missing: |id| Fault::missing(format!("L7Rule {id} not found.")),
};

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .get("/v2.0/lbaas/l7policies", |call| POLICY.list(call))
        .post("/v2.0/lbaas/l7policies", create_policy)
        .get("/v2.0/lbaas/l7policies/{id}", |call| POLICY.get(call))
        .put("/v2.0/lbaas/l7policies/{id}", |call| {
            let id = call.parameter("id").to_owned();
            part::update(call, &POLICY, &id)
        })
        .delete("/v2.0/lbaas/l7policies/{id}", |call| {
            let id = call.parameter("id").to_owned();
            part::remove(call, &POLICY, &id)
        })
        .get("/v2.0/lbaas/l7policies/{policy_id}/rules", |call| {
            RULE.list(call)
        })
        .post("/v2.0/lbaas/l7policies/{policy_id}/rules", create_rule)
        .get("/v2.0/lbaas/l7policies/{policy_id}/rules/{id}", |call| {
            RULE.get(call)
        })
        .delete("/v2.0/lbaas/l7policies/{policy_id}/rules/{id}", |call| {
            let id = call.parameter("id").to_owned();
            part::remove(call, &RULE, &id)
        });
}

fn create_policy(call: &mut Call<'_>) -> Answer {
    let given = call.wrapped("l7policy")?;
    part::sound(call, POLICY_ATTRIBUTES, &given)?;
    let listener = listeners::LISTENER.find_writable(call, given.text("listener_id"))?;
    let balancer = listener.text("loadbalancer_id").to_owned();
    status::mutable(call, &balancer)?;
    if ovn::serves(call.state, &balancer) {
        return Err(ovn::action(
            "This provider does not support creating l7policies.",
        ));
    }
    let mut doc = fresh(call, POLICY_ATTRIBUTES, &given, ("l7policy", "L7 Policy"))?;
    doc.set("loadbalancer_id", balancer.clone());
    add(call, Kind::L7Policy, &doc, &balancer);
    Ok(Reply::with(
        201,
        json!({"l7policy": POLICY.show(call, &doc)}),
    ))
}

fn create_rule(call: &mut Call<'_>) -> Answer {
    let given = call.wrapped("rule")?;
    part::sound(call, RULE_ATTRIBUTES, &given)?;
    let policy = POLICY.find_writable(call, call.parameter("policy_id"))?;
    let balancer = policy.text("loadbalancer_id").to_owned();
    status::mutable(call, &balancer)?;
    let mut doc = fresh(call, RULE_ATTRIBUTES, &given, ("l7rule", "L7 Rule"))?;
    doc.set("loadbalancer_id", balancer.clone());
    doc.set("l7policy_id", policy.text("id"));
    add(call, Kind::L7Rule, &doc, &balancer);
    Ok(Reply::with(201, json!({"rule": RULE.show(call, &doc)})))
}

fn add(call: &mut Call<'_>, kind: Kind, doc: &Doc, balancer: &str) {
    call.state.put(kind, doc.clone());
    status::lock(call, balancer);
}
