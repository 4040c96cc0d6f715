//! Record of a machine's failed servers for want of room, and the place of the next one.

use std::borrow::Cow;
use std::time::Duration;

use api::infra::v1beta2::{FlavorFilter, FlavorParam, OpenStackMachine, OpenStackMachineSpec};
use kube::ResourceExt;
use openstack::compute::Server;
use serde::{Deserialize, Serialize};

/// Annotation of an OpenStackMachine, set by users: further failure domains for its server, separated by commas.
pub const RETRY_ZONES_ANNOTATION: &str = "ferrostack.dev/retry-failure-domains";
/// Annotation of an OpenStackMachine, set by users: further flavors for its server by name, separated by commas.
pub const RETRY_FLAVORS_ANNOTATION: &str = "ferrostack.dev/retry-flavors";
/// Annotation of an OpenStackMachine: record of its failed servers.
pub const FAILED_SERVERS_ANNOTATION: &str = "ferrostack.dev/failed-servers";
/// Pause before the first failed server is replaced; doubled each time.
const FIRST: Duration = Duration::from_secs(30);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(600);
/// The number of doublings up to the longest pause.
const DOUBLINGS: u32 = 5;
/// Maximum number of places in each list.
const MOST: usize = 16;
/// Words in Nova's faults about a lack of room: of the scheduler, of the conductor, and of quotas.
const NO_ROOM: [&str; 6] = [
    "no valid host",
    "not enough hosts",
    "exceeded max scheduling attempts",
    "exceeded maximum number of retries",
    "insufficient compute resources",
    "quota exceeded",
];

/// Record of a machine's failed servers, in an annotation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Failed {
    /// Number of failed servers.
    pub(crate) failed: u32,
    /// The place of the next server.
    place: usize,
    /// Id of the last failed server.
    server: String,
}

impl Failed {
    /// Record; an empty one if unreadable.
    pub(crate) fn from_object(object: &OpenStackMachine) -> Self {
        let text = object.annotations().get(FAILED_SERVERS_ANNOTATION);
        let text = text.filter(|text| text.len() < 1024);
        text.and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default()
    }

    /// True for the last recorded server.
    pub(crate) fn is(&self, server: &str) -> bool {
        !self.server.is_empty() && self.server == server
    }

    /// The record with this server.
    pub(crate) fn with(&self, server: &str) -> Self {
        match self.is(server) {
            true => self.clone(),
            false => Self {
                failed: self.failed.saturating_add(1),
                place: self.place.saturating_add(1),
                server: server.to_owned(),
            },
        }
    }

    /// Record after Nova has refused a server for want of quota, which is the same in all zones: the next server has
    /// the next flavor. `None` without a list of flavors.
    pub(crate) fn refused(object: &OpenStackMachine, zone: Option<String>) -> Option<Self> {
        listed(object, RETRY_FLAVORS_ANNOTATION).next()?;
        let known = Self::from_object(object);
        let place = known.place.saturating_add(zones(object, zone).len());
        Some(Self { place, ..known })
    }

    /// Time that the last server stays.
    pub(crate) fn pause(&self) -> Duration {
        let doublings = self.failed.saturating_sub(1).min(DOUBLINGS);
        (FIRST * 2_u32.pow(doublings)).min(LONGEST)
    }
}

/// Zone and flavor of the next server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placement {
    /// The zone.
    pub(crate) zone: Option<String>,
    /// Field with the zone, for messages.
    pub(crate) zone_field: &'static str,
    /// Flavor by name; `None` for the spec's.
    flavor: Option<String>,
}

impl Placement {
    /// Place of the next server of a machine with the failure domain `zone`: first all zones, then all zones with the
    /// next flavor, and so on, and then all again.
    pub(crate) fn new(object: &OpenStackMachine, zone: Option<String>, failed: &Failed) -> Self {
        let (zones, mut flavors) = (zones(object, zone), vec![None]);
        flavors.extend(listed(object, RETRY_FLAVORS_ANNOTATION).map(Some));
        let of = |index: usize, count: usize| index.checked_rem(count).unwrap_or_default();
        let at_zone = of(failed.place, zones.len());
        let at_flavor = of(
            failed.place.checked_div(zones.len()).unwrap_or_default(),
            flavors.len(),
        );
        Self {
            zone: zones.into_iter().nth(at_zone).flatten(),
            zone_field: match at_zone {
                0 => "failureDomain",
                _ => RETRY_ZONES_ANNOTATION,
            },
            flavor: flavors.into_iter().nth(at_flavor).flatten(),
        }
    }

    /// Field with the flavor, for messages.
    pub(crate) fn flavor_field(&self) -> &'static str {
        match &self.flavor {
            None => "flavor",
            Some(_) => RETRY_FLAVORS_ANNOTATION,
        }
    }

    /// [`OpenStackMachineSpec`] with the flavor of this place.
    pub(crate) fn spec<'a>(&self, spec: &'a OpenStackMachineSpec) -> Cow<'a, OpenStackMachineSpec> {
        match &self.flavor {
            None => Cow::Borrowed(spec),
            Some(name) => Cow::Owned(OpenStackMachineSpec {
                flavor: FlavorParam::Filter(FlavorFilter {
                    name: Some(name.clone()),
                }),
                ..spec.clone()
            }),
        }
    }

    /// Place in words; empty for the place of the spec.
    pub(crate) fn words(&self) -> String {
        let zone = self.zone.as_ref().map(|zone| format!(" in zone {zone}"));
        let flavor = self.flavor.as_ref();
        let flavor = flavor.map(|flavor| format!(" with flavor {flavor}"));
        format!("{}{}", zone.unwrap_or_default(), flavor.unwrap_or_default())
    }
}

/// Failure domain of the machine, and the others of the list.
fn zones(object: &OpenStackMachine, zone: Option<String>) -> Vec<Option<String>> {
    let mut zones = vec![zone];
    for other in listed(object, RETRY_ZONES_ANNOTATION).map(Some) {
        if !zones.contains(&other) {
            zones.push(other);
        }
    }
    zones
}

/// The names in an annotation, separated by commas.
fn listed(object: &OpenStackMachine, annotation: &str) -> impl Iterator<Item = String> {
    let text = object.annotations().get(annotation);
    let names = text.into_iter().flat_map(|text| text.split(','));
    let names = names.map(str::trim).filter(|name| !name.is_empty());
    names.take(MOST).map(str::to_owned)
}

/// True for a [`Server`] for which Nova had no room, never used by this machine.
pub(crate) fn is_without_room(object: &OpenStackMachine, server: &Server) -> bool {
    let fault = server.fault.as_ref();
    let words = fault.map(|fault| fault.message.to_ascii_lowercase());
    let status = object.status.as_ref();
    let initialization = status.and_then(|status| status.initialization.as_ref());
    let was_provisioned = initialization.and_then(|it| it.provisioned) == Some(true);
    server.status == "ERROR"
        && object.spec.provider_id.is_none()
        && !was_provisioned
        && words.is_some_and(|words| NO_ROOM.iter().any(|known| words.contains(known)))
}

#[cfg(test)]
mod tests;
