//! Flavors and availability zones of load balancers, created by administrators from profiles, and their effects on load
//! balancers.

use http::Method;
use serde_json::{Value, json};

use super::ovn;
use super::profiles::{self, FLAVOR_PROFILE, ZONE_PROFILE, in_use};
use crate::cloud::attribute::{Attribute, Preset, Shape, Verb, attribute, check, fixed};
use crate::cloud::call::{Answer, Call, Reply, Who};
use crate::cloud::collection::Collection;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::{Access, Table};
use crate::cloud::service::Service;
use crate::cloud::state::State;

const FLAVOR_ATTRIBUTES: &[Attribute] = &[
    attribute("name", Shape::Text(255), Preset::Required).editable(),
    attribute("description", Shape::Text(255), Preset::Text(""))
        .editable()
        .nullable(),
    attribute("enabled", Shape::Flag, Preset::Flag(true)).editable(),
    attribute("flavor_profile_id", Shape::Id, Preset::Required),
    fixed("id"),
];

/// Attributes of a zone. The name is the id, and cannot be changed.
const ZONE_ATTRIBUTES: &[Attribute] = &[
    attribute("name", Shape::Text(255), Preset::Required),
    attribute("description", Shape::Text(255), Preset::Text(""))
        .editable()
        .nullable(),
    attribute("enabled", Shape::Flag, Preset::Flag(true)).editable(),
    attribute("availability_zone_profile_id", Shape::Id, Preset::Required),
];

/// Flavors or zones.
struct Offers {
    collection: Collection,
    profiles: &'static profiles::Profiles,
    /// Field with the profile.
    profile: &'static str,
    /// Field of load balancers with the flavor or zone.
    field: &'static str,
    /// Name of the record in errors about duplicate names and failed deletions.
    record: &'static str,
    title: &'static str,
}

static FLAVOR: Offers = Offers {
    collection: Collection {
        kind: Kind::BalancerFlavor,
        one: "flavor",
        many: "flavors",
        attributes: FLAVOR_ATTRIBUTES,
        across_projects: true,
        visible: anyone,
        present: as_it_is,
        missing: no_flavor,
    },
    profiles: &FLAVOR_PROFILE,
    profile: "flavor_profile_id",
    field: "flavor_id",
    record: "flavor",
    title: "Flavor",
};

static ZONE: Offers = Offers {
    collection: Collection {
        kind: Kind::BalancerZone,
        one: "availability_zone",
        many: "availability_zones",
        attributes: ZONE_ATTRIBUTES,
        across_projects: true,
        visible: anyone,
        present: without_id,
        missing: no_zone,
    },
    profiles: &ZONE_PROFILE,
    profile: "availability_zone_profile_id",
    field: "availability_zone",
    record: "availability zone",
    title: "Availability Zone",
};

/// Registers the operations: anyone reads, administrators write.
pub(crate) fn routes(table: &mut Table<'_>) {
    kind(
        table,
        &FLAVOR,
        "/v2.0/lbaas/flavors",
        "/v2.0/lbaas/flavors/{id}",
    );
    kind(
        table,
        &ZONE,
        "/v2.0/lbaas/availabilityzones",
        "/v2.0/lbaas/availabilityzones/{id}",
    );
}

fn kind(table: &mut Table<'_>, offers: &'static Offers, all: &'static str, one: &'static str) {
    table
        .get(all, |call| offers.collection.list(call))
        .get(one, |call| offers.collection.get(call))
        .on(Method::POST, all, Access::Admin, |call| {
            create(call, offers)
        })
        .on(Method::PUT, one, Access::Admin, |call| update(call, offers))
        .on(Method::DELETE, one, Access::Admin, |call| {
            delete(call, offers)
        });
}

fn create(call: &mut Call<'_>, offers: &Offers) -> Answer {
    let collection = &offers.collection;
    let given = call.wrapped(collection.one)?;
    let mut doc = check(
        collection.attributes,
        &given,
        Verb::Create,
        true,
        Service::LoadBalancer,
    )?;
    let name = doc.text("name").to_owned();
    if call.state.count_by(collection.kind, "name", &name) > 0 {
        return Err(Fault::conflict(format!(
            "A {} of {name} already exists.",
            offers.record
        )));
    }
    // Octavia does not validate this: users get the violated constraint of the database as an internal error.
    if call
        .state
        .get(offers.profiles.collection.kind, doc.text(offers.profile))
        .is_none()
    {
        return Err(Fault::new(
            500,
            "DBReferenceError",
            format!("there is no profile {}", doc.text(offers.profile)),
        ));
    }
    let id = match collection.kind {
        Kind::BalancerZone => name,
        _ => call.state.new_id(),
    };
    doc.set("id", id);
    call.state.put(collection.kind, doc.clone());
    Ok(Reply::with(
        201,
        json!({collection.one: collection.show(call, &doc)}),
    ))
}

fn update(call: &mut Call<'_>, offers: &Offers) -> Answer {
    let collection = &offers.collection;
    let id = call.parameter("id").to_owned();
    let given = call.wrapped(collection.one)?;
    let changes = check(
        collection.attributes,
        &given,
        Verb::Update,
        true,
        Service::LoadBalancer,
    )?;
    let old = collection.find(call, &id)?;
    let name = changes.text("name");
    if !name.is_empty()
        && name != old.text("name")
        && call.state.count_by(collection.kind, "name", name) > 0
    {
        // As above, a constraint of the database is violated.
        return Err(Fault::new(
            500,
            "DBDuplicateEntry",
            format!("there is another {} {name}", offers.record),
        ));
    }
    call.state
        .edit(collection.kind, &id, |doc| doc.extend(changes));
    collection.get(call)
}

fn delete(call: &mut Call<'_>, offers: &Offers) -> Answer {
    let id = call.parameter("id").to_owned();
    offers.collection.find(call, &id)?;
    if call
        .state
        .all(Kind::LoadBalancer)
        .any(|balancer| balancer.text(offers.field) == id)
    {
        return Err(in_use(offers.title, &id));
    }
    call.state.remove(offers.collection.kind, &id);
    Ok(Reply::empty(204))
}

/// Validates the flavor and the zone of a new load balancer, and sets the provider of the flavor.
pub(crate) fn choose(call: &Call<'_>, balancer: &mut Doc) -> Result<(), Fault> {
    let of_flavor = chosen(call, &FLAVOR, balancer, "Invalid flavor_id.")?;
    chosen(call, &ZONE, balancer, "Invalid availability zone.")?;
    let provider = of_flavor.map(|profile| profile.text("provider_name").to_owned());
    match (balancer.text("provider"), provider) {
        ("", None) => {
            let settings = call.settings.changeable.read();
            balancer.set("provider", settings.default_provider_driver.as_str());
        }
        ("", Some(provider)) => balancer.set("provider", provider),
        (asked, Some(provider)) if asked != provider => {
            let flavor = balancer.text("flavor_id");
            let text = format!("Flavor '{flavor}' is not compatible with provider '{asked}'");
            return Err(Fault::bad(text));
        }
        _ => {}
    }
    profiles::enabled(call, balancer.text("provider"))?;
    ovn::zone(balancer)
}

/// Returns a [`Fault`] for an address in a network outside of the load balancer's zone.
pub(crate) fn allowed_network(call: &Call<'_>, balancer: &Doc) -> Result<(), Fault> {
    let Some(profile) = chosen(call, &ZONE, balancer, "Invalid availability zone.")? else {
        return Ok(());
    };
    let options: Value =
        serde_json::from_str(profile.text("availability_zone_data")).unwrap_or_default();
    let valid = options["valid_vip_networks"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    if valid.is_empty()
        || valid
            .iter()
            .any(|network| network == balancer.text("vip_network_id"))
    {
        return Ok(());
    }
    Err(Fault::bad(
        "Validation failure: Supplied VIP network_id is not allowed by the configuration of this deployment.",
    ))
}

/// Returns the [`Doc`] of the profile of a load balancer's flavor or zone; `None` without one.
fn chosen(
    call: &Call<'_>,
    offers: &Offers,
    balancer: &Doc,
    unknown: &str,
) -> Result<Option<Doc>, Fault> {
    if !balancer.given(offers.field) {
        return Ok(None);
    }
    let name = balancer.text(offers.field);
    let offer = call
        .state
        .get(offers.collection.kind, name)
        .ok_or_else(|| Fault::bad(format!("Validation failure: {unknown}")))?;
    if !offer.flag("enabled") {
        let option = offers.collection.one;
        return Err(Fault::bad(format!(
            "The selected {option} is not allowed in this deployment: {name}"
        )));
    }
    let profile = call
        .state
        .get(offers.profiles.collection.kind, offer.text(offers.profile));
    Ok(profile.map(|profile| (*profile).clone()))
}

fn anyone(_: &Call<'_>, _: &Doc) -> bool {
    true
}

fn as_it_is(_: &State, _: &Who, _: &mut Doc) {}

fn without_id(_: &State, _: &Who, doc: &mut Doc) {
    doc.remove("id");
}

fn no_flavor(id: &str) -> Fault {
    Fault::missing(format!("Flavor {id} not found."))
}

fn no_zone(name: &str) -> Fault {
    Fault::missing(format!("Availability Zone {name} not found."))
}
