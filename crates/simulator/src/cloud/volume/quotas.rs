//! Cinder's limits and quotas.

use http::Method;
use serde_json::{Value, json};

use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::query;
use crate::cloud::quota;
use crate::cloud::route::{Access, Table};
use crate::cloud::service::Service;

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .get("/v3/{project}/limits", limits)
        .get("/v3/{project}/os-quota-sets/{target}", |call| {
            let target = call.parameter("target").to_owned();
            let usage = call.query.get("usage").and_then(query::truth) == Some(true);
            let mut set = if usage {
                quota::details(call, Service::Volume, &target, "in_use")
            } else {
                quota::set_of(call, Service::Volume, &target)
            };
            by_type(call, &target, &mut set, usage);
            set.set("id", target);
            Ok(Reply::ok(json!({"quota_set": set})))
        })
        .on(
            Method::PUT,
            "/v3/{project}/os-quota-sets/{target}",
            Access::Admin,
            |call| {
                let target = call.parameter("target").to_owned();
                let wanted = call.wrapped("quota_set")?;
                let mut others = quota::change(call, Service::Volume, &target, &wanted);
                let of_types = names_of_types(call);
                for name in &of_types {
                    if let Some(most) = wanted.get(name).and_then(Value::as_i64) {
                        quota::set_named(call, Service::Volume, &target, name, most);
                    }
                }
                others.retain(|name| !of_types.contains(name));
                if let Some(unknown) = others.first() {
                    return Err(Fault::bad(format!("Bad key(s) in quota set: {unknown}")));
                }
                let mut set = quota::set_of(call, Service::Volume, &target);
                by_type(call, &target, &mut set, false);
                Ok(Reply::ok(json!({"quota_set": set})))
            },
        );
}

/// Resources with a limit for each type.
const BY_TYPE: [&str; 3] = ["volumes", "gigabytes", "snapshots"];

fn names_of_types(call: &Call<'_>) -> Vec<String> {
    let types = call.state.all(Kind::VolumeType);
    types
        .flat_map(|kind| BY_TYPE.map(|what| format!("{what}_{}", kind.text("name"))))
        .collect()
}

/// Adds the limits of each volume type.
fn by_type(call: &Call<'_>, project: &str, set: &mut Doc, usage: bool) {
    for kind in call.state.all(Kind::VolumeType) {
        for what in BY_TYPE {
            let name = format!("{what}_{}", kind.text("name"));
            let most = quota::named(call, Service::Volume, project, &name);
            let value = match usage {
                true => {
                    let used = used_of_type(call, project, what, kind.text("name"));
                    json!({"limit": most, "in_use": used, "reserved": 0})
                }
                false => json!(most),
            };
            set.set(&name, value);
        }
    }
}

fn used_of_type(call: &Call<'_>, project: &str, what: &str, kind: &str) -> i64 {
    let volumes = call.state.by(Kind::Volume, "project_id", project);
    let snapshots = call.state.by(Kind::Snapshot, "project_id", project);
    let volumes = volumes.iter().filter(|doc| doc.text("volume_type") == kind);
    let snapshots = snapshots
        .iter()
        .filter(|doc| doc.text("_volume_type") == kind);
    let size = |doc: &std::sync::Arc<Doc>| doc.number("size") + doc.number("_grows");
    match what {
        "volumes" => i64::try_from(volumes.count()).unwrap_or(i64::MAX),
        "snapshots" => i64::try_from(snapshots.count()).unwrap_or(i64::MAX),
        _ => volumes.chain(snapshots).map(size).sum(),
    }
}

/// Quota that would be exceeded.
struct Over {
    name: String,
    requested: i64,
    used: i64,
    most: i64,
}

/// Returns the first quota, by name, that the amounts exceed: of the project, and of the volume type.
fn over(
    call: &Call<'_>,
    project: &str,
    kind: &str,
    wanted: &[(&'static str, i64)],
) -> Option<Over> {
    let general = quota::exceeded(call, Service::Volume, project, wanted);
    let general = general.into_iter().map(|one| Over {
        name: one.name.to_owned(),
        requested: one.requested,
        used: one.used,
        most: one.limit,
    });
    over_type(call, project, kind, wanted)
        .into_iter()
        .chain(general)
        .min_by(|a, b| a.name.cmp(&b.name))
}

fn over_type(
    call: &Call<'_>,
    project: &str,
    kind: &str,
    wanted: &[(&'static str, i64)],
) -> Vec<Over> {
    let limited = wanted.iter().filter_map(|(what, requested)| {
        let name = format!("{what}_{kind}");
        let most = quota::named(call, Service::Volume, project, &name);
        // Most types have no limit, and then nothing is counted.
        if most < 0 || *requested <= 0 {
            return None;
        }
        let used = used_of_type(call, project, what, kind);
        let requested = *requested;
        (used + requested > most).then_some(Over {
            name,
            requested,
            used,
            most,
        })
    });
    limited.collect()
}

impl Over {
    fn fault(&self) -> Fault {
        let (name, most) = (&self.name, self.most);
        let (kind, text) = match name.split('_').next().unwrap_or_default() {
            "volumes" => (
                "VolumeLimitExceeded",
                format!("Maximum number of volumes allowed ({most}) exceeded for quota '{name}'."),
            ),
            "snapshots" => (
                "SnapshotLimitExceeded",
                format!("Maximum number of snapshots allowed ({most}) exceeded"),
            ),
            "groups" => (
                "GroupLimitExceeded",
                format!("Maximum number of groups allowed ({most}) exceeded"),
            ),
            _ => (
                "VolumeSizeExceedsAvailableQuota",
                format!(
                    "Requested volume or snapshot exceeds allowed {name} quota. Requested {}G, quota is {most}G and {}G \
                     has been consumed.",
                    self.requested, self.used
                ),
            ),
        };
        Fault::new(413, kind, format!("{kind}: {text}"))
    }
}

fn refuse(over: Option<Over>) -> Result<(), Fault> {
    over.map_or(Ok(()), |over| Err(over.fault()))
}

/// Returns a [`Fault`] for a volume above the maximum size of one volume.
fn check_size(call: &Call<'_>, project: &str, size: i64) -> Result<(), Fault> {
    let most = quota::named(call, Service::Volume, project, "per_volume_gigabytes");
    if most < 0 || size <= most {
        return Ok(());
    }
    Err(Fault::new(
        413,
        "VolumeSizeExceedsLimit",
        format!(
            "VolumeSizeExceedsLimit: Requested volume size {size}G is larger than maximum allowed limit {most}G."
        ),
    ))
}

/// Returns a [`Fault`] for a new volume beyond the quotas.
pub(super) fn check_volume(
    call: &Call<'_>,
    project: &str,
    kind: &str,
    size: i64,
) -> Result<(), Fault> {
    check_size(call, project, size)?;
    let wanted = [("volumes", 1), ("gigabytes", size)];
    refuse(over(call, project, kind, &wanted))
}

/// Returns a [`Fault`] for the growth of a volume beyond the quotas.
pub(super) fn check_growth(call: &Call<'_>, volume: &Doc, size: i64) -> Result<(), Fault> {
    let project = volume.text("project_id");
    check_size(call, project, size)?;
    let wanted = [("gigabytes", size - volume.number("size"))];
    refuse(over(call, project, volume.text("volume_type"), &wanted))
}

/// Returns a [`Fault`] for a change of type beyond the quotas.
pub(super) fn check_type(call: &Call<'_>, volume: &Doc, kind: &str) -> Result<(), Fault> {
    if volume.text("volume_type") == kind {
        return Ok(());
    }
    let wanted = [("volumes", 1), ("gigabytes", volume.number("size"))];
    let over = over_type(call, volume.text("project_id"), kind, &wanted);
    refuse(over.into_iter().min_by(|a, b| a.name.cmp(&b.name)))
}

/// Returns a [`Fault`] for a snapshot beyond the quotas.
pub(super) fn check_snapshot(call: &Call<'_>, volume: &Doc) -> Result<(), Fault> {
    let project = call.who.project_id.clone();
    let wanted = [("snapshots", 1), ("gigabytes", volume.number("size"))];
    refuse(over(call, &project, volume.text("volume_type"), &wanted))
}

/// Returns a [`Fault`] for a new group beyond the quotas.
pub(super) fn check_group(call: &Call<'_>) -> Result<(), Fault> {
    let project = call.who.project_id.clone();
    refuse(over(call, &project, "", &[("groups", 1)]))
}

fn limits(call: &mut Call<'_>) -> Answer {
    let project = call.who.project_id.clone();
    let set = quota::set_of(call, Service::Volume, &project);
    let count = |kind| call.state.count_by(kind, "project_id", &project);
    let absolute: Value = json!({
        "maxTotalVolumes": set.number("volumes"),
        "maxTotalSnapshots": set.number("snapshots"),
        "maxTotalVolumeGigabytes": set.number("gigabytes"),
        "maxTotalBackups": set.number("backups"),
        "maxTotalBackupGigabytes": set.number("backup_gigabytes"),
        "totalVolumesUsed": count(Kind::Volume),
        "totalSnapshotsUsed": count(Kind::Snapshot),
        "totalGigabytesUsed": call.state.usage(&project).gigabytes,
        "totalBackupsUsed": count(Kind::Backup),
        "totalBackupGigabytesUsed": call.state.by(Kind::Backup, "project_id", &project)
            .iter().map(|doc| doc.number("size")).sum::<i64>(),
    });
    Ok(Reply::ok(
        json!({"limits": {"rate": [], "absolute": absolute}}),
    ))
}
