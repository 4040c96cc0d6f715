//! Placement 1.39, as far as clients look: there is one provider for each availability zone.

use http::Method;
use serde_json::{Value, json};

use super::call::Reply;
use super::route::{Access, Routes};
use super::service::Service;

/// Placement's operations.
pub(crate) fn routes(routes: &mut Routes) {
    let mut table = routes.of(Service::Placement);
    table.on(Method::GET, "/resource_providers", Access::Admin, |call| {
        let all: Vec<Value> = call
            .settings
            .zones
            .iter()
            .map(|zone| {
                json!({"uuid": uuid::Uuid::from_u128(u128::from(zone.len() as u64)).to_string(),
                "name": format!("{zone}-cmp1"), "generation": 1, "links": []})
            })
            .collect();
        Ok(Reply::ok(json!({"resource_providers": all})))
    });
}
