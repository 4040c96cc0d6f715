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

/// The operations.
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
            by_type(call, &mut set, usage);
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
                if let Some(unknown) =
                    quota::change(call, Service::Volume, &target, &wanted).first()
                {
                    return Err(Fault::bad(format!("Bad key(s) in quota set: {unknown}")));
                }
                let mut set = quota::set_of(call, Service::Volume, &target);
                by_type(call, &mut set, false);
                Ok(Reply::ok(json!({"quota_set": set})))
            },
        );
}

/// The limits of each volume type: unlimited.
fn by_type(call: &Call<'_>, set: &mut Doc, usage: bool) {
    let none = if usage {
        json!({"limit": -1, "in_use": 0, "reserved": 0})
    } else {
        json!(-1)
    };
    for kind in call.state.all(Kind::VolumeType) {
        for what in ["volumes", "gigabytes", "snapshots"] {
            set.set(&format!("{what}_{}", kind.text("name")), none.clone());
        }
    }
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
