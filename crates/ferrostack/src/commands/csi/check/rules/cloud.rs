//! Cloud: login, lists, zones, quota.

use csi::zone::{self, ZoneMap};
use openstack::{Error, ErrorKind};

use super::super::finding::Finding;
use super::super::observed::{Cloud, Observed};
use super::{list, section};

pub(super) fn findings(observed: &Observed) -> Vec<Finding> {
    let mut all = Vec::new();
    for (name, cloud) in &observed.clouds {
        match cloud {
            Ok(cloud) => {
                all.extend(unread(name, cloud));
                if observed.topology && !observed.storage.ignore_volume_az {
                    all.extend(zones(observed, name, cloud));
                }
            }
            Err(error) => all.push(Finding::error(
                "cloud.conf",
                section(name),
                error.cause("log in"),
                advice(error),
            )),
        }
    }
    all
}

/// Advice about a failed request.
fn advice(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::Unauthenticated => "correct the credentials, or create new ones",
        ErrorKind::Denied => "give the user a role that may do this, such as member",
        ErrorKind::Unreachable => "check auth-url, the network and the CA",
        ErrorKind::Absent => "check the region, and whether the cloud has this service",
        _ => "ask the operator of the cloud, or try again",
    }
}

/// Lists missing in the response of a [`Cloud`].
fn unread(name: &str, cloud: &Cloud) -> Vec<Finding> {
    let failures = [
        ("list the zones of Nova", cloud.nova_zones.as_ref().err()),
        (
            "list the zones of Cinder",
            cloud.cinder_zones.as_ref().err(),
        ),
        ("list the types of volumes", cloud.types.as_ref().err()),
        ("read the quota of volumes", cloud.limits.as_ref().err()),
        ("list the volumes", cloud.volumes.as_ref().err()),
        ("list the servers", cloud.servers.as_ref().err()),
    ];
    let failed = failures.into_iter();
    let failed = failed.filter_map(|(doing, error)| Some((doing, error?)));
    failed
        .map(|(doing, error)| {
            Finding::error(
                "cloud.conf",
                section(name),
                error.cause(doing),
                advice(error),
            )
        })
        .collect()
}

/// Zones of Nova against those of Cinder, by the map.
fn zones(observed: &Observed, name: &str, cloud: &Cloud) -> Vec<Finding> {
    let (Ok(nova), Ok(cinder)) = (&cloud.nova_zones, &cloud.cinder_zones) else {
        return Vec::new();
    };
    let map = ZoneMap(observed.storage.zone_map.clone());
    let field = "[BlockStorage] zone-map";
    let all = list(cinder.iter().map(|zone| zone.name.as_str()));
    let mut findings = Vec::new();
    for zone in nova.iter().filter(|zone| zone.state.available) {
        // As the driver does it, which has the label of the zone.
        let mapped = map.of_cinder(&zone::label(&zone.name));
        let meant = zone::meant(&mapped, cinder.iter().map(|it| it.name.as_str()));
        let target = cinder.iter().find(|it| Some(it.name.as_str()) == meant);
        match target {
            Some(target) if !target.state.available => findings.push(Finding::warning(
                "cloud.conf",
                field,
                format!(
                    "Cinder says that its zone `{mapped}` is not available, which holds the volumes for Nova's zone `{}`",
                    zone.name
                ),
                "ask the operator of the cloud",
            )),
            Some(_) => {}
            None => findings.push(Finding::error(
                "cloud.conf",
                field,
                format!(
                    "Nova's zone `{}` has no zone of Cinder in {}: Cinder has {all}, and not `{mapped}`",
                    zone.name,
                    section(name)
                ),
                format!(
                    "write `zone-map = {}=ZONE` with a zone of Cinder whose volumes servers of that zone can attach, or \
                     `ignore-volume-az = true` if they can attach all",
                    zone.name
                ),
            )),
        }
    }
    findings.extend(unknown(
        observed,
        nova.iter().map(|zone| zone.name.as_str()),
    ));
    findings
}

/// Zones of the map missing in Nova. With several clouds, another one may have the zone.
fn unknown<'a>(observed: &Observed, nova: impl Iterator<Item = &'a str>) -> Vec<Finding> {
    if observed.clouds.len() > 1 {
        return Vec::new();
    }
    let nova: Vec<&str> = nova.collect();
    let keys = observed.storage.zone_map.keys();
    let has = |key: &String| {
        let key = zone::label(key);
        nova.iter().any(|zone| zone::label(zone) == key)
    };
    let unknown = keys.filter(|key| !has(key));
    unknown
        .map(|key| {
            Finding::warning(
                "cloud.conf",
                "[BlockStorage] zone-map",
                format!(
                    "Nova has no zone `{key}`; it has {}",
                    list(nova.iter().copied())
                ),
                "remove the pair, or correct the name",
            )
        })
        .collect()
}
