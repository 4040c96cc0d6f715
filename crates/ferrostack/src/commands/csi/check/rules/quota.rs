//! Quotas of the project: overall, of snapshots, and of the types in classes.

use std::collections::BTreeSet;

use csi_spec::driver::NAME;

use super::super::finding::Finding;
use super::super::observed::{Cloud, Observed};
use super::{section, seen};

/// Remaining part of a quota, in percent, that causes a warning.
const LITTLE: i64 = 10;
/// Limits of each type: the quota, and words.
const OF_TYPES: [(&str, &str); 3] = [
    ("volumes", "volumes"),
    ("gigabytes", "GiB of volumes and snapshots"),
    ("snapshots", "snapshots"),
];

pub(super) fn findings(observed: &Observed) -> Vec<Finding> {
    let mut all = Vec::new();
    for (name, cloud) in seen(observed) {
        all.extend(of_volumes(name, cloud));
        all.extend(of_snapshots(observed, name, cloud));
        all.extend(of_types(observed, name, cloud));
    }
    all
}

fn of_volumes(name: &str, cloud: &Cloud) -> Vec<Finding> {
    let Ok(limits) = &cloud.limits else {
        return Vec::new();
    };
    let all = [
        (
            "volumes",
            limits.max_total_volumes,
            limits.total_volumes_used,
        ),
        (
            "GiB of volumes",
            limits.max_total_volume_gigabytes,
            limits.total_gigabytes_used,
        ),
    ];
    let findings = all
        .into_iter()
        .filter_map(|(what, most, used)| little(name, what, most, used));
    findings.collect()
}

fn of_snapshots(observed: &Observed, name: &str, cloud: &Cloud) -> Option<Finding> {
    let cluster = &observed.cluster;
    let classes = cluster.snapshot_classes.iter();
    let mut classes = classes.chain(&cluster.group_snapshot_classes);
    let is_used = classes.any(|class| class.data["driver"] == NAME);
    let quota = cloud
        .quotas
        .as_ref()
        .ok()?
        .get("snapshots")
        .filter(|_| is_used)?;
    little(
        name,
        "snapshots",
        quota.limit,
        quota.in_use.saturating_add(quota.reserved),
    )
}

fn of_types(observed: &Observed, name: &str, cloud: &Cloud) -> Vec<Finding> {
    let (Ok(quotas), Ok(types)) = (&cloud.quotas, &cloud.types) else {
        return Vec::new();
    };
    let classes = observed
        .cluster
        .classes
        .iter()
        .filter(|class| class.provisioner == NAME);
    let wanted = classes.filter_map(|class| class.parameters.as_ref()?.get("type"));
    let changed = observed.cluster.attributes_classes.iter();
    let changed = changed.filter(|class| class.data["driverName"] == NAME);
    let changed = changed.filter_map(|class| class.data["parameters"]["type"].as_str());
    let wanted: BTreeSet<&str> = wanted.map(String::as_str).chain(changed).collect();
    let is_wanted = |names: [&str; 2]| names.iter().any(|it| wanted.contains(it));
    let types = types.iter().filter(|it| is_wanted([&it.name, &it.id]));
    let mut all = Vec::new();
    for kind in types.map(|it| it.name.as_str()) {
        for (what, words) in OF_TYPES {
            if let Some(quota) = quotas.get(&format!("{what}_{kind}")) {
                let used = quota.in_use.saturating_add(quota.reserved);
                all.extend(little(
                    name,
                    &format!("{words} of the type `{kind}`"),
                    quota.limit,
                    used,
                ));
            }
        }
    }
    all
}

/// [`Finding`] about an exhausted or nearly exhausted quota.
fn little(name: &str, what: &str, most: i64, used: i64) -> Option<Finding> {
    if most < 0 {
        return None;
    }
    let left = most.saturating_sub(used).max(0);
    let message = format!("{used} of {most} {what} are in use");
    let advice =
        "delete what is not needed (`ferrostack csi orphans` lists candidates), or ask for more";
    let object = "quota of the project";
    if left == 0 {
        return Some(Finding::error(object, section(name), message, advice));
    }
    let is_little = left.saturating_mul(100) < most.saturating_mul(LITTLE);
    is_little.then(|| Finding::warning(object, section(name), message, advice))
}
