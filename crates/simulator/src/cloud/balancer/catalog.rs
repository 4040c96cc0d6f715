//! Providers and quotas of Octavia.

use http::Method;
use serde_json::{Value, json};

use super::profiles;
use crate::cloud::call::{Call, Reply};
use crate::cloud::document::Doc;
use crate::cloud::fault::Fault;
use crate::cloud::quota;
use crate::cloud::route::{Access, Table};
use crate::cloud::service::Service;

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .get("/v2.0/lbaas/providers", |call| {
            Ok(Reply::ok(
                json!({"providers": described(&profiles::providers(call))}),
            ))
        })
        .on(
            Method::GET,
            "/v2.0/lbaas/providers/{provider}/flavor_capabilities",
            Access::Admin,
            |call| {
                profiles::enabled(call, call.parameter("provider"))?;
                Ok(Reply::ok(
                    json!({"flavor_capabilities": described(&profiles::FLAVOR_OPTIONS)}),
                ))
            },
        )
        .on(
            Method::GET,
            "/v2.0/lbaas/providers/{provider}/availability_zone_capabilities",
            Access::Admin,
            |call| {
                profiles::enabled(call, call.parameter("provider"))?;
                Ok(Reply::ok(
                    json!({"availability_zone_capabilities": described(&profiles::ZONE_OPTIONS)}),
                ))
            },
        )
        .on(
            Method::GET,
            "/v2.0/lbaas/quotas/defaults",
            Access::Admin,
            |call| {
                let all: Doc = quota::limits(Service::LoadBalancer)
                    .iter()
                    .map(|limit| (limit.name.to_owned(), json!(limit.default(call.settings))))
                    .collect();
                Ok(Reply::ok(json!({"quota": all})))
            },
        )
        .get("/v2.0/lbaas/quotas/{project}", |call| {
            let project = call.parameter("project").to_owned();
            if project != call.who.project_id && !call.who.admin() {
                return Err(Fault::forbidden(
                    "Policy does not allow this request to be performed.",
                ));
            }
            Ok(Reply::ok(json!({"quota": quota_of(call, &project)})))
        })
        .on(
            Method::PUT,
            "/v2.0/lbaas/quotas/{project}",
            Access::Admin,
            |call| {
                let project = call.parameter("project").to_owned();
                let wanted: Doc = call
                    .wrapped("quota")?
                    .into_iter()
                    .map(|(name, value)| match name.as_str() {
                        "loadbalancer" => ("load_balancer".to_owned(), value),
                        "healthmonitor" => ("health_monitor".to_owned(), value),
                        _ => (name, value),
                    })
                    .collect();
                if let Some(unknown) =
                    quota::change(call, Service::LoadBalancer, &project, &wanted).first()
                {
                    return Err(Fault::bad(format!(
                        "Unknown attribute for argument: {unknown}"
                    )));
                }
                Ok(Reply::with(202, json!({"quota": quota_of(call, &project)})))
            },
        )
        .on(
            Method::DELETE,
            "/v2.0/lbaas/quotas/{project}",
            Access::Admin,
            |call| {
                let project = call.parameter("project").to_owned();
                quota::reset(call, Service::LoadBalancer, &project);
                Ok(Reply::empty(202))
            },
        );
}

fn described(all: &[(&str, &str)]) -> Vec<Value> {
    let one =
        |(name, description): &(&str, &str)| json!({"name": name, "description": description});
    all.iter().map(one).collect()
}

fn quota_of(call: &Call<'_>, project: &str) -> Doc {
    quota::set_of(call, Service::LoadBalancer, project)
}
