//! Nova's limits and quotas.

use http::Method;
use serde_json::{Value, json};

use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::quota;
use crate::cloud::route::{Access, Table};
use crate::cloud::service::Service;

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .get("/v2.1/limits", limits)
        .get("/v2.1/os-quota-sets/{project}", |call| {
            let project = project(call)?;
            let set = quota::set_of(call, Service::Compute, &project);
            Ok(Reply::ok(wrap(call, &project, set)))
        })
        .get("/v2.1/os-quota-sets/{project}/detail", |call| {
            let project = project(call)?;
            let set = quota::details(call, Service::Compute, &project, "in_use");
            Ok(Reply::ok(detailed(wrap(call, &project, set))))
        })
        .get("/v2.1/os-quota-sets/{project}/defaults", |call| {
            let project = call.parameter("project").to_owned();
            let set = quota::limits(Service::Compute)
                .iter()
                .map(|limit| (limit.name.to_owned(), json!(limit.default(call.settings))))
                .collect();
            Ok(Reply::ok(wrap(call, &project, set)))
        })
        .on(Method::PUT, "/v2.1/os-quota-sets/{project}", Access::Admin, |call| {
            let project = call.parameter("project").to_owned();
            let wanted = call.wrapped("quota_set")?;
            if let Some(unknown) = quota::change(call, Service::Compute, &project, &wanted).first() {
                return Err(Fault::bad(format!(
                    "Invalid input for field/attribute quota_set. Additional properties are not \
                     allowed ('{unknown}' was unexpected)"
                )));
            }
            let set = quota::set_of(call, Service::Compute, &project);
            let mut body = wrap(call, &project, set);
            if let Some(set) = body["quota_set"].as_object_mut() {
                set.remove("id");
            }
            Ok(Reply::ok(body))
        })
        .on(Method::DELETE, "/v2.1/os-quota-sets/{project}", Access::Admin, |call| {
            let project = call.parameter("project").to_owned();
            quota::reset(call, Service::Compute, &project);
            Ok(Reply::empty(202))
        });
}

fn limits(call: &mut Call<'_>) -> Answer {
    let project = match call.query.get("tenant_id") {
        Some(other) if call.who.admin() => other.to_owned(),
        _ => call.who.project_id.clone(),
    };
    let set = quota::set_of(call, Service::Compute, &project);
    let usage = call.state.usage(&project);
    let count = |kind| call.state.count_by(kind, "project_id", &project);
    let mut absolute = json!({
        "maxTotalInstances": set.number("instances"),
        "maxTotalCores": set.number("cores"),
        "maxTotalRAMSize": set.number("ram"),
        "maxTotalKeypairs": set.number("key_pairs"),
        "maxServerMeta": set.number("metadata_items"),
        "maxServerGroups": set.number("server_groups"),
        "maxServerGroupMembers": set.number("server_group_members"),
        "totalInstancesUsed": count(Kind::Server),
        "totalCoresUsed": usage.cores,
        "totalRAMUsed": usage.ram,
        "totalServerGroupsUsed": count(Kind::ServerGroup),
    });
    if call.version < 39 {
        absolute["maxImageMeta"] = json!(128);
    }
    if call.version < 36 {
        absolute["maxSecurityGroups"] = json!(-1);
        absolute["maxSecurityGroupRules"] = json!(-1);
        absolute["maxTotalFloatingIps"] = json!(-1);
        absolute["totalFloatingIpsUsed"] = json!(0);
        absolute["totalSecurityGroupsUsed"] = json!(0);
    }
    if call.version < 57 {
        absolute["maxPersonality"] = json!(5);
        absolute["maxPersonalitySize"] = json!(10_240);
    }
    Ok(Reply::ok(
        json!({"limits": {"rate": [], "absolute": absolute}}),
    ))
}

fn wrap(call: &Call<'_>, project: &str, mut set: Doc) -> Value {
    set.set("id", project);
    let old: &[&str] = if call.version < 36 {
        &[
            "fixed_ips",
            "floating_ips",
            "security_groups",
            "security_group_rules",
        ]
    } else {
        &[]
    };
    for name in old {
        set.set(name, -1);
    }
    if call.version < 57 {
        for (name, limit) in [
            ("injected_files", 5),
            ("injected_file_content_bytes", 10_240),
            ("injected_file_path_bytes", 255),
        ] {
            set.set(name, limit);
        }
    }
    json!({"quota_set": set})
}

/// Returns every limit with its use, which is 0 for resources that Nova no longer counts.
fn detailed(mut set: Value) -> Value {
    for value in set["quota_set"]
        .as_object_mut()
        .into_iter()
        .flat_map(Doc::values_mut)
    {
        if value.is_number() {
            *value = json!({"limit": value, "in_use": 0, "reserved": 0});
        }
    }
    set
}

fn project(call: &Call<'_>) -> Result<String, Fault> {
    let project = call.parameter("project");
    if project == call.who.project_id || call.who.admin() {
        return Ok(project.to_owned());
    }
    Err(Fault::forbidden(
        "Policy doesn't allow os_compute_api:os-quota-sets:show to be performed.",
    ))
}
