//! Availability zones: Nova's, reported by nodes as topology, and Cinder's, with the volumes.

use std::collections::BTreeMap;

pub use csi_spec::zone::label;
use csi_spec::{Topology, TopologyRequirement, context};

/// Zone of Cinder for each zone of Nova, by Nova's names. An unlisted zone has the same name in both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneMap(pub BTreeMap<String, String>);

impl ZoneMap {
    /// Zone of Cinder for the label of a zone of Nova.
    #[must_use]
    pub fn of_cinder(&self, nova: &str) -> String {
        let found = self.0.iter().find(|(name, _)| label(name) == nova);
        found.map_or(nova, |(_, cinder)| cinder).to_owned()
    }

    /// Labels of the zones of Nova whose servers can attach a volume in a zone of Cinder: the mapped ones, and the zone
    /// of the same name unless it is mapped to another.
    #[must_use]
    pub fn of_nova(&self, cinder: &str) -> Vec<String> {
        let mapped = self.0.iter().filter(|(_, other)| other.as_str() == cinder);
        let mut zones: Vec<String> = mapped.map(|(nova, _)| label(nova)).collect();
        let same = label(cinder);
        let is_mapped = self.0.keys().any(|nova| label(nova) == same);
        if zones.is_empty() || !is_mapped {
            zones.push(same);
        }
        zones
    }

    /// Entries of the map with a zone that Cinder lacks. Empty if the cloud shows no zones, since then nothing is
    /// known.
    pub(crate) fn absent<'a>(&'a self, there: &[&str]) -> Vec<(&'a str, &'a str)> {
        let all = self.0.iter().map(|(nova, cinder)| (&**nova, &**cinder));
        let is_absent = |(_, cinder): &(&str, &str)| meant(cinder, there.iter().copied()).is_none();
        all.filter(|pair| !there.is_empty() && is_absent(pair))
            .collect()
    }
}

/// True if `wanted` is the name of the zone, or its label.
#[must_use]
pub fn is_zone(wanted: &str, zone: &str) -> bool {
    wanted == zone || label(zone) == wanted
}

/// Zone in a list by its name or label.
pub fn meant<'a>(wanted: &str, zones: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let exact = zones.clone().find(|zone| *zone == wanted);
    exact.or_else(|| zones.into_iter().find(|zone| is_zone(wanted, zone)))
}

/// Zones of a [`TopologyRequirement`], as labels, preferred ones first.
pub(crate) fn required(requirement: Option<&TopologyRequirement>) -> Vec<String> {
    let Some(requirement) = requirement else {
        return Vec::new();
    };
    let mut zones = Vec::new();
    for topology in requirement.preferred.iter().chain(&requirement.requisite) {
        if let Some(zone) = topology.segments.get(context::ZONE)
            && !zones.contains(zone)
        {
            zones.push(zone.clone());
        }
    }
    zones
}

/// [`Topology`] of a zone.
pub(crate) fn topology(zone: &str) -> Topology {
    Topology {
        segments: BTreeMap::from([(context::ZONE.to_owned(), zone.to_owned())]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_a_label_on_both_sides() {
        for (zone, expected) in [
            ("nova", "nova"),
            ("AZ 1", "AZ-1"),
            ("-a_b.c-", "a_b.c"),
            ("zürich/1", "z-rich-1"),
            ("AZ / 1", "AZ-1"),
            ("", ""),
            ("ü", ""),
        ] {
            assert_eq!(label(zone), expected);
        }
        assert_eq!(label(&"x".repeat(100)).len(), 63);
    }

    #[test]
    fn a_label_means_the_zone_of_that_name_or_else_of_that_label() {
        let meant = |wanted, zones: &[&'static str]| meant(wanted, zones.iter().copied());
        assert_eq!(meant("AZ-1", &["AZ 1", "AZ-1"]), Some("AZ-1"));
        assert_eq!(meant("AZ-1", &["nova", "AZ / 1"]), Some("AZ / 1"));
        assert_eq!(meant("AZ / 1", &["AZ / 1"]), Some("AZ / 1"));
        assert_eq!(meant("AZ / 1", &["AZ-1", "AZ 1"]), None);
    }

    #[test]
    fn zones_of_nova_and_cinder_are_mapped_both_ways() {
        let pair = |nova: &str, cinder: &str| (nova.to_owned(), cinder.to_owned());
        let map = ZoneMap(BTreeMap::from([
            pair("az 1", "ceph"),
            pair("az2", "ceph"),
            pair("az3", "az4"),
        ]));
        assert_eq!(map.of_cinder("az-1"), "ceph");
        assert_eq!(map.of_cinder("other"), "other");
        assert_eq!(map.of_nova("ceph"), ["az-1", "az2", "ceph"]);
        assert_eq!(map.of_nova("az4"), ["az3", "az4"]);
        assert_eq!(map.of_nova("other"), ["other"]);
        // Servers of a zone that is not mapped attach what is in the zone of its name, whichever others are mapped to it.
        let map = ZoneMap(BTreeMap::from([pair("az2", "az1")]));
        assert_eq!(map.of_nova("az1"), ["az2", "az1"]);
        let map = ZoneMap(BTreeMap::from([pair("az2", "az1"), pair("az1", "ceph")]));
        assert_eq!(map.of_nova("az1"), ["az2"]);
    }

    #[test]
    fn zones_that_cinder_lacks_are_named_with_those_of_nova() {
        let pair = |nova: &str, cinder: &str| (nova.to_owned(), cinder.to_owned());
        let map = ZoneMap(BTreeMap::from([pair("az 1", "ceph"), pair("az2", "az1")]));
        assert_eq!(map.absent(&["az1", "nova"]), [("az 1", "ceph")]);
        assert_eq!(map.absent(&["az1", "ceph"]), []);
        assert_eq!(map.absent(&[]), []);
        let map = ZoneMap(BTreeMap::from([pair("az1", "AZ-1")]));
        assert_eq!(map.absent(&["AZ 1"]), [], "its label");
    }

    #[test]
    fn preferred_zones_come_first_and_once() {
        let of = |zones: &[&str]| zones.iter().map(|it| topology(it)).collect::<Vec<_>>();
        let requirement = TopologyRequirement {
            requisite: of(&["a", "b", "c"]),
            preferred: of(&["b"]),
        };
        assert_eq!(required(Some(&requirement)), ["b", "a", "c"]);
        assert!(required(None).is_empty());
    }
}
