//! Neutron's quotas.

use http::Method;
use serde_json::json;

use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::quota;
use crate::cloud::route::{Access, Table};
use crate::cloud::service::Service;

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .on(Method::GET, "/v2.0/quotas/{project}", Access::Reader, show)
        .on(
            Method::GET,
            "/v2.0/quotas/{project}/default",
            Access::Reader,
            defaults,
        )
        .on(
            Method::GET,
            "/v2.0/quotas/{project}/details.json",
            Access::Reader,
            details,
        )
        .on(
            Method::GET,
            "/v2.0/quotas/{project}/details",
            Access::Reader,
            details,
        )
        .on(Method::PUT, "/v2.0/quotas/{project}", Access::Admin, change)
        .on(
            Method::DELETE,
            "/v2.0/quotas/{project}",
            Access::Admin,
            reset,
        );
}

fn show(call: &mut Call<'_>) -> Answer {
    let project = project(call)?;
    Ok(Reply::ok(
        json!({"quota": quota::set_of(call, Service::Network, &project)}),
    ))
}

fn defaults(call: &mut Call<'_>) -> Answer {
    project(call)?;
    let limits: Doc = quota::limits(Service::Network)
        .iter()
        .map(|limit| (limit.name.to_owned(), json!(limit.default(call.settings))))
        .collect();
    Ok(Reply::ok(json!({"quota": limits})))
}

fn details(call: &mut Call<'_>) -> Answer {
    let project = project(call)?;
    Ok(Reply::ok(
        json!({"quota": quota::details(call, Service::Network, &project, "used")}),
    ))
}

fn change(call: &mut Call<'_>) -> Answer {
    let project = call.parameter("project").to_owned();
    let wanted = call.wrapped("quota")?;
    // Sent by the openstack client without --force.
    let below = match wanted.flag("check_limit") {
        true => quota::below_use(call, Service::Network, &project, &wanted),
        false => Vec::new(),
    };
    if let Some(below) = below.first() {
        return Err(Fault::bad(format!(
            "Quota limit {} for {} must be greater than or equal to already used {}",
            below.limit, below.name, below.used
        )));
    }
    if let Some(unknown) = quota::change(call, Service::Network, &project, &wanted).first() {
        return Err(Fault::bad(format!("Unrecognized attribute(s) '{unknown}'")));
    }
    Ok(Reply::ok(
        json!({"quota": quota::set_of(call, Service::Network, &project)}),
    ))
}

fn reset(call: &mut Call<'_>) -> Answer {
    let project = call.parameter("project").to_owned();
    quota::reset(call, Service::Network, &project);
    Ok(Reply::empty(204))
}

fn project(call: &Call<'_>) -> Result<String, Fault> {
    let project = call.parameter("project");
    if project == call.who.project_id || call.who.admin() {
        return Ok(project.to_owned());
    }
    Err(Fault::new(
        403,
        "AdminRequired",
        "User does not have admin privileges: Only admin can view or configure quota for other projects.",
    ))
}
