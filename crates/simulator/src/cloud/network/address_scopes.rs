//! Address scopes: ranges of addresses that are unique among the subnet pools of a scope.

use super::resource::{Hooks, Resource, merge, routes as standard, with_tenant};
use super::subnet_pools::{open_to, shared_by};
use crate::cloud::attribute::{Attribute, Preset, Shape, attribute, fixed};
use crate::cloud::call::{Call, Who};
use crate::cloud::collection::Collection;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::Table;
use crate::cloud::state::State;

const ATTRIBUTES: &[Attribute] = &[
    attribute("name", Shape::Text(255), Preset::Text("")).editable(),
    attribute("ip_version", Shape::Number(4, 6), Preset::Required),
    attribute("shared", Shape::Flag, Preset::Flag(false)).editable(),
    fixed("id"),
];

/// Neutron's address scopes.
pub(crate) static SCOPE: Resource = Resource {
    collection: Collection {
        kind: Kind::AddressScope,
        one: "address_scope",
        many: "address_scopes",
        attributes: ATTRIBUTES,
        across_projects: true,
        visible: open_to,
        present,
        missing,
    },
    quota: "address_scope",
    create,
    update,
    delete,
    hooks: Hooks::NONE,
};

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    standard(
        table,
        "/v2.0/address-scopes",
        "/v2.0/address-scopes/{id}",
        &SCOPE,
    );
}

fn create(call: &mut Call<'_>, doc: Doc) -> Result<Doc, Fault> {
    shared_by(call, &doc, "create_address_scope")?;
    if doc.number("ip_version") == 5 {
        return Err(Fault::bad(
            "Invalid input for ip_version. Reason: '5' is not in [4, 6].",
        ));
    }
    call.state.put(Kind::AddressScope, doc.clone());
    Ok(doc)
}

fn update(call: &mut Call<'_>, _: &Doc, new: &mut Doc, changes: &Doc) -> Result<(), Fault> {
    shared_by(call, changes, "update_address_scope")?;
    merge(new, changes);
    Ok(())
}

fn delete(call: &mut Call<'_>, doc: &Doc) -> Result<(), Fault> {
    let id = doc.text("id");
    if call
        .state
        .count_by(Kind::SubnetPool, "address_scope_id", id)
        > 0
    {
        return Err(Fault::new(
            409,
            "AddressScopeInUse",
            format!(
                "Unable to complete operation on address scope {id}. There are one or more subnet \
                 pools in use on the address scope."
            ),
        ));
    }
    call.state.remove(Kind::AddressScope, id);
    Ok(())
}

/// Address scopes have no standard attributes in Neutron.
fn present(state: &State, who: &Who, doc: &mut Doc) {
    with_tenant(state, who, doc);
    for name in [
        "created_at",
        "description",
        "revision_number",
        "tags",
        "updated_at",
    ] {
        doc.remove(name);
    }
}

fn missing(id: &str) -> Fault {
    Fault::new(
        404,
        "AddressScopeNotFound",
        format!("Address scope {id} could not be found."),
    )
}
