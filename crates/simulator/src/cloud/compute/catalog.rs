//! Availability zones, and what administrators see of hosts and services.

use http::Method;
use serde_json::{Value, json};

use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::kind::Kind;
use crate::cloud::route::{Access, Table};

/// The operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .get("/v2.1/os-availability-zone", zones)
        .on(
            Method::GET,
            "/v2.1/os-availability-zone/detail",
            Access::Admin,
            zones,
        )
        .get("/v2.1/extensions", |_| {
            Ok(Reply::ok(json!({"extensions": []})))
        })
        .on(Method::GET, "/v2.1/os-services", Access::Admin, |call| {
            let all: Vec<Value> = call
                .settings
                .zones
                .iter()
                .map(|zone| {
                    json!({"id": zone, "binary": "nova-compute", "host": format!("{zone}-cmp1"),
                    "zone": zone, "status": "enabled", "state": "up", "disabled_reason": null,
                    "forced_down": false, "updated_at": null})
                })
                .collect();
            Ok(Reply::ok(json!({"services": all})))
        })
        .on(
            Method::GET,
            "/v2.1/os-hypervisors",
            Access::Admin,
            hypervisors,
        )
        .on(
            Method::GET,
            "/v2.1/os-hypervisors/detail",
            Access::Admin,
            hypervisors,
        );
}

fn zones(call: &mut Call<'_>) -> Answer {
    let all: Vec<Value> = call
        .settings
        .zones
        .iter()
        .map(|zone| json!({"zoneName": zone, "zoneState": {"available": true}, "hosts": null}))
        .collect();
    Ok(Reply::ok(json!({"availabilityZoneInfo": all})))
}

fn hypervisors(call: &mut Call<'_>) -> Answer {
    let running = call.state.count(Kind::Server);
    let all: Vec<Value> = call
        .settings
        .zones
        .iter()
        .map(|zone| {
            json!({"id": zone, "hypervisor_hostname": format!("{zone}-cmp1"), "state": "up",
            "status": "enabled", "hypervisor_type": "simulated", "running_vms": running})
        })
        .collect();
    Ok(Reply::ok(json!({"hypervisors": all})))
}
