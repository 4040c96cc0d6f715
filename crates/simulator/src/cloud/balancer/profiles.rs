//! Profiles of flavors and of availability zones: options of a provider under a name.
//!
//! The rules are Octavia 11's: `api/v2/controllers/{flavor,availability_zone}_profiles.py`, the schemas of the amphora
//! provider, and the status codes of its errors (an unknown option is a 501).

use http::Method;
use serde_json::{Value, json};

use super::ovn;
use crate::cloud::attribute::{Attribute, Preset, Shape, Verb, attribute, check, fixed};
use crate::cloud::call::{Answer, Call, Reply, Who};
use crate::cloud::collection::Collection;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::{Access, Table};
use crate::cloud::service::Service;
use crate::cloud::state::State;

/// Enabled providers with their descriptions.
const PROVIDERS: [(&str, &str); 3] = [
    ("amphora", "The Octavia Amphora driver."),
    ("octavia", "Deprecated alias of the Octavia Amphora driver."),
    (ovn::NAME, "Octavia OVN driver."),
];

/// The enabled providers with their descriptions.
pub(crate) fn providers(call: &Call<'_>) -> Vec<(&'static str, &'static str)> {
    let settings = call.settings.changeable.read();
    let enabled = &settings.enabled_provider_drivers;
    let is_enabled = |(name, _): &(&str, &str)| enabled.iter().any(|known| known == name);
    PROVIDERS.into_iter().filter(is_enabled).collect()
}

const FLAVOR_ATTRIBUTES: &[Attribute] = &[
    attribute("name", Shape::Text(255), Preset::Required)
        .editable()
        .nullable(),
    attribute("provider_name", Shape::Text(255), Preset::Required)
        .editable()
        .nullable(),
    attribute("flavor_data", Shape::Text(4096), Preset::Required)
        .editable()
        .nullable(),
    fixed("id"),
];

const ZONE_ATTRIBUTES: &[Attribute] = &[
    attribute("name", Shape::Text(255), Preset::Required)
        .editable()
        .nullable(),
    attribute("provider_name", Shape::Text(255), Preset::Required)
        .editable()
        .nullable(),
    attribute(
        "availability_zone_data",
        Shape::Text(4096),
        Preset::Required,
    )
    .editable()
    .nullable(),
    fixed("id"),
];

/// Options of the amphora provider in a flavor profile, with the provider's descriptions.
pub(crate) const FLAVOR_OPTIONS: [(&str, &str); 3] = [
    (
        "loadbalancer_topology",
        "The load balancer topology. One of: SINGLE - One amphora per load balancer. ACTIVE_STANDBY - Two amphora per load balancer.",
    ),
    ("compute_flavor", "The compute driver flavor ID."),
    ("amp_image_tag", "The amphora image tag."),
];

/// Options of the amphora provider in a zone profile.
pub(crate) const ZONE_OPTIONS: [(&str, &str); 3] = [
    ("compute_zone", "The compute availability zone."),
    (
        "management_network",
        "The management network ID for the amphora.",
    ),
    (
        "valid_vip_networks",
        "List of network IDs that are allowed for VIP use. This overrides/replaces the list of allowed networks configured in `octavia.conf`.",
    ),
];

/// One of the two kinds of profile.
pub(crate) struct Profiles {
    pub(crate) collection: Collection,
    /// Field with the provider's options, as JSON in a string.
    data: &'static str,
    options: &'static [(&'static str, &'static str)],
    /// [`Kind`] with a reference to these profiles, and the field of the reference.
    user: Kind,
    reference: &'static str,
    /// Name in errors.
    title: &'static str,
}

/// Profiles of flavors.
pub(crate) static FLAVOR_PROFILE: Profiles = Profiles {
    collection: Collection {
        kind: Kind::BalancerFlavorProfile,
        one: "flavorprofile",
        many: "flavorprofiles",
        attributes: FLAVOR_ATTRIBUTES,
        across_projects: true,
        visible: anyone,
        present: as_it_is,
        missing: no_flavor_profile,
    },
    data: "flavor_data",
    options: &FLAVOR_OPTIONS,
    user: Kind::BalancerFlavor,
    reference: "flavor_profile_id",
    title: "Flavor profile",
};

/// Profiles of availability zones.
pub(crate) static ZONE_PROFILE: Profiles = Profiles {
    collection: Collection {
        kind: Kind::BalancerZoneProfile,
        one: "availability_zone_profile",
        many: "availability_zone_profiles",
        attributes: ZONE_ATTRIBUTES,
        across_projects: true,
        visible: anyone,
        present: as_it_is,
        missing: no_zone_profile,
    },
    data: "availability_zone_data",
    options: &ZONE_OPTIONS,
    user: Kind::BalancerZone,
    reference: "availability_zone_profile_id",
    title: "Availability Zone Profile",
};

/// Registers the operations, for administrators only.
pub(crate) fn routes(table: &mut Table<'_>) {
    kind(
        table,
        &FLAVOR_PROFILE,
        "/v2.0/lbaas/flavorprofiles",
        "/v2.0/lbaas/flavorprofiles/{id}",
    );
    kind(
        table,
        &ZONE_PROFILE,
        "/v2.0/lbaas/availabilityzoneprofiles",
        "/v2.0/lbaas/availabilityzoneprofiles/{id}",
    );
}

fn kind(table: &mut Table<'_>, profiles: &'static Profiles, all: &'static str, one: &'static str) {
    table
        .on(Method::GET, all, Access::Admin, |call| {
            profiles.collection.list(call)
        })
        .on(Method::POST, all, Access::Admin, |call| {
            create(call, profiles)
        })
        .on(Method::GET, one, Access::Admin, |call| {
            profiles.collection.get(call)
        })
        .on(Method::PUT, one, Access::Admin, |call| {
            update(call, profiles)
        })
        .on(Method::DELETE, one, Access::Admin, |call| {
            delete(call, profiles)
        });
}

fn create(call: &mut Call<'_>, profiles: &Profiles) -> Answer {
    let given = call.wrapped(profiles.collection.one)?;
    let mut doc = check(
        profiles.collection.attributes,
        &given,
        Verb::Create,
        true,
        Service::LoadBalancer,
    )?;
    let options = options(&doc, profiles)?;
    provider_takes(call, profiles, doc.text("provider_name"), &options)?;
    doc.set("id", call.state.new_id());
    call.state.put(profiles.collection.kind, doc.clone());
    Ok(Reply::with(
        201,
        json!({profiles.collection.one: profiles.collection.show(call, &doc)}),
    ))
}

fn update(call: &mut Call<'_>, profiles: &Profiles) -> Answer {
    let id = call.parameter("id").to_owned();
    let given = call.wrapped(profiles.collection.one)?;
    let changes = check(
        profiles.collection.attributes,
        &given,
        Verb::Update,
        true,
        Service::LoadBalancer,
    )?;
    for name in ["name", "provider_name", profiles.data] {
        if changes.get(name).is_some_and(Value::is_null) {
            return Err(Fault::bad(format!("None is not a valid option for {name}")));
        }
    }
    let matters = [profiles.data, "provider_name"];
    if matters.iter().any(|name| changes.contains_key(*name)) && used(call.state, profiles, &id) {
        return Err(in_use(profiles.title, &id));
    }
    let old = profiles.collection.find(call, &id)?;
    if changes.contains_key(profiles.data) {
        let options = options(&changes, profiles)?;
        let provider = match changes.text("provider_name") {
            "" => old.text("provider_name"),
            name => name,
        };
        provider_takes(call, profiles, provider, &options)?;
    }
    call.state
        .edit(profiles.collection.kind, &id, |doc| doc.extend(changes));
    profiles.collection.get(call)
}

fn delete(call: &mut Call<'_>, profiles: &Profiles) -> Answer {
    let id = call.parameter("id").to_owned();
    if used(call.state, profiles, &id) {
        return Err(in_use(profiles.title, &id));
    }
    profiles.collection.find(call, &id)?;
    call.state.remove(profiles.collection.kind, &id);
    Ok(Reply::empty(204))
}

fn used(state: &State, profiles: &Profiles, id: &str) -> bool {
    state.count_by(profiles.user, profiles.reference, id) > 0
}

/// Returns Octavia's [`Fault`] for a resource that another one refers to.
pub(crate) fn in_use(what: &str, id: &str) -> Fault {
    Fault::conflict(format!("{what} {id} is in use and cannot be modified."))
}

/// Returns the options of a profile, parsed from the string sent by the client.
fn options(doc: &Doc, profiles: &Profiles) -> Result<Value, Fault> {
    let text = doc.text(profiles.data);
    serde_json::from_str(text).map_err(|_| {
        Fault::bad(format!(
            "{text} is not a valid option for {}",
            profiles.data
        ))
    })
}

/// Returns a [`Fault`] for a provider that is not enabled.
pub(crate) fn enabled(call: &Call<'_>, provider: &str) -> Result<(), Fault> {
    if providers(call).iter().any(|(name, _)| *name == provider) {
        return Ok(());
    }
    Err(Fault::bad(format!("Provider '{provider}' is not enabled.")))
}

/// Rejects options that the provider rejects: unknown options (501), and references to unknown resources, which Octavia
/// treats as a failure of the provider (500).
fn provider_takes(
    call: &Call<'_>,
    profiles: &Profiles,
    provider: &str,
    options: &Value,
) -> Result<(), Fault> {
    enabled(call, provider)?;
    if provider == ovn::NAME {
        return Err(ovn::action(
            "This provider does not support validating flavors and availability zones.",
        ));
    }
    let unsupported = |why: String| {
        let text = format!("Provider '{provider}' does not support a requested option: {why}");
        Err(Fault::new(501, "NotImplemented", text))
    };
    let Value::Object(options) = options else {
        return unsupported(format!("{options} is not of type 'object'"));
    };
    let mut unknown = options
        .keys()
        .filter(|name| !profiles.options.iter().any(|(known, _)| known == name));
    if let Some(name) = unknown.next() {
        return unsupported(format!(
            "Additional properties are not allowed ('{name}' was unexpected)"
        ));
    }
    for (name, value) in options {
        let (fits, kind) = match name.as_str() {
            "valid_vip_networks" => (value.is_array(), "array"),
            _ => (value.is_string(), "string"),
        };
        if !fits {
            return unsupported(format!("{name} {value} is not of type '{kind}'"));
        }
    }
    let topology = options.text("loadbalancer_topology");
    if options.contains_key("loadbalancer_topology")
        && !["ACTIVE_STANDBY", "SINGLE"].contains(&topology)
    {
        return unsupported(format!(
            "loadbalancer_topology '{topology}' is not one of ['ACTIVE_STANDBY', 'SINGLE']"
        ));
    }
    match absent(call, options) {
        None => Ok(()),
        Some(what) => {
            let text = format!("Provider '{provider}' reports error: {what}");
            Err(Fault::new(500, "ProviderDriverError", text))
        }
    }
}

/// Returns the first unknown resource in the options.
fn absent(call: &Call<'_>, options: &Doc) -> Option<String> {
    let named = |field: &str| Some(options.text(field)).filter(|text| !text.is_empty());
    if let Some(flavor) =
        named("compute_flavor").filter(|id| call.state.get(Kind::Flavor, id).is_none())
    {
        return Some(format!("Nova flavor {flavor} not found."));
    }
    let tagged = |tag: &str| {
        call.state
            .all(Kind::Image)
            .any(|image| image.texts("tags").any(|existing| existing == tag))
    };
    if let Some(tag) = named("amp_image_tag").filter(|tag| !tagged(tag)) {
        return Some(format!(
            "Failed to find an image with tag {tag} due to: No Glance images are tagged with {tag} tag."
        ));
    }
    let zone =
        named("compute_zone").filter(|zone| !call.settings.zones.iter().any(|known| known == zone));
    if let Some(zone) = zone {
        return Some(format!("Nova availability zone {zone} not found."));
    }
    let networks = options
        .texts("valid_vip_networks")
        .chain(named("management_network"));
    let mut unknown = networks.filter(|id| call.state.get(Kind::Network, id).is_none());
    unknown
        .next()
        .map(|network| format!("Network not found (network id: {network})."))
}

fn anyone(_: &Call<'_>, _: &Doc) -> bool {
    true
}

fn as_it_is(_: &State, _: &Who, _: &mut Doc) {}

fn no_flavor_profile(id: &str) -> Fault {
    Fault::missing(format!("Flavor profile {id} not found."))
}

fn no_zone_profile(id: &str) -> Fault {
    Fault::missing(format!("Availability Zone Profile {id} not found."))
}
