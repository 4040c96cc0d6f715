//! Availability zones, and the hosts and services visible to administrators.

use http::Method;
use serde_json::{Value, json};

use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::clock::naive_micros;
use crate::cloud::identity_hash;
use crate::cloud::route::{Access, Table};

/// Registers the operations.
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
            Ok(Reply::ok(json!({"extensions": extensions()})))
        })
        .on(Method::GET, "/v2.1/os-hypervisors", Access::Admin, |call| {
            hypervisors(call, false)
        })
        .on(
            Method::GET,
            "/v2.1/os-hypervisors/detail",
            Access::Admin,
            |call| hypervisors(call, true),
        );
}

fn zones(call: &mut Call<'_>) -> Answer {
    let mut all: Vec<Value> = call
        .settings
        .zones
        .iter()
        .map(|zone| {
            let hosts = if call.path.ends_with("/detail") {
                let service = json!({"available": true, "active": true, "updated_at": naive_micros(call.now())});
                json!({host(zone): {"nova-compute": service}})
            } else {
                Value::Null
            };
            json!({"zoneName": zone, "zoneState": {"available": true}, "hosts": hosts})
        })
        .collect();
    if call.path.ends_with("/detail") {
        // The zone of services that are not hypervisors in Nova.
        let service =
            json!({"available": true, "active": true, "updated_at": naive_micros(call.now())});
        all.insert(
            0,
            json!({"zoneName": "internal", "zoneState": {"available": true},
            "hosts": {"controller": {"nova-conductor": service, "nova-scheduler": service}}}),
        );
    }
    Ok(Reply::ok(json!({"availabilityZoneInfo": all})))
}

fn hypervisors(call: &mut Call<'_>, detail: bool) -> Answer {
    let all: Vec<Value> = call
        .settings
        .zones
        .iter()
        .map(|zone| {
            let mut one = json!({"id": id_of(zone), "hypervisor_hostname": host(zone), "state": "up", "status": "enabled"});
            if detail {
                one["hypervisor_type"] = json!("simulated");
                one["hypervisor_version"] = json!(1000);
                one["host_ip"] = json!("127.0.0.1");
                one["uptime"] = Value::Null;
                one["service"] = json!({"id": id_of(zone), "host": host(zone), "disabled_reason": null});
            }
            one
        })
        .collect();
    Ok(Reply::ok(json!({"hypervisors": all})))
}

/// Returns the only host of a zone.
pub(super) fn host(zone: &str) -> String {
    format!("{zone}-cmp1")
}

/// Returns an id derived from the name of a zone.
pub(super) fn id_of(zone: &str) -> String {
    let hash = identity_hash(zone);
    let part = |from: usize, to: usize| hash.get(from..to).unwrap_or_default();
    let parts = [
        part(0, 8),
        part(8, 12),
        part(12, 16),
        part(16, 20),
        part(20, 32),
    ];
    parts.join("-")
}

/// Returns alias, name and description of each of Nova's extensions. All of them are part of every Nova since 2.1.
fn extensions() -> Vec<Value> {
    let all: Vec<[String; 3]> =
        serde_json::from_str(include_str!("extensions.json")).unwrap_or_default();
    let extension = |[alias, name, description]: [String; 3]| {
        json!({"alias": alias, "name": name, "description": description, "links": [],
            "namespace": "http://docs.openstack.org/compute/ext/fake_xml",
            "updated": "2014-12-03T00:00:00Z"})
    };
    all.into_iter().map(extension).collect()
}
