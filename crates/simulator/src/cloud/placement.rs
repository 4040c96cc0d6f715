//! Placement 1.39, as far as clients use the service: one resource provider for each availability zone.

use http::Method;
use serde_json::{Value, json};

use super::call::Reply;
use super::route::{Access, Routes};
use super::service::Service;

/// Registers Placement's operations.
pub(crate) fn routes(routes: &mut Routes) {
    let mut table = routes.of(Service::Placement);
    table.on(Method::GET, "/resource_providers", Access::Admin, |call| {
        let all: Vec<Value> = call
            .settings
            .zones
            .iter()
            .map(|zone| {
                let uuid = uuid::Uuid::from_u128(u128::from(zone.len() as u64)).to_string();
                let links: Vec<Value> = ["self", "inventories", "usages", "aggregates", "traits", "allocations"]
                    .iter()
                    .map(|rel| {
                        let tail = if *rel == "self" { String::new() } else { format!("/{rel}") };
                        json!({"rel": rel, "href": format!("/resource_providers/{uuid}{tail}")})
                    })
                    .collect();
                json!({"uuid": uuid, "name": format!("{zone}-cmp1"), "generation": 1, "parent_provider_uuid": null,
                    "root_provider_uuid": uuid, "links": links})
            })
            .collect();
        Ok(Reply::ok(json!({"resource_providers": all})))
    });
}
