//! List of extensions, and collections that are always empty.

use http::Method;
use serde_json::{Value, json};

use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::fault::webob;
use crate::cloud::route::{Access, Table};

/// Aliases of Neutron Zed with ML2/OVN. As there, the list lacks tag-ports-during-bulk-creation, extraroute-atomic (the
/// calls work nevertheless, and `Options::extensions` can list the alias), dvr, l3-ha and the agent schedulers.
const ALIASES: &[&str] = &[
    "address-group",
    "address-scope",
    "agent",
    "allowed-address-pairs",
    "auto-allocated-topology",
    "availability_zone",
    "binding",
    "binding-extended",
    "default-subnetpools",
    "dns-integration",
    "ext-gw-mode",
    "external-net",
    "extra_dhcp_opt",
    "extraroute",
    "filter-validation",
    "fip-port-details",
    "floating-ip-port-forwarding",
    "ip-substring-filtering",
    "mtu",
    "multi-provider",
    "net-mtu",
    "net-mtu-writable",
    "network-ip-availability",
    "network_availability_zone",
    "pagination",
    "port-security",
    "project-id",
    "provider",
    "quota-check-limit",
    "quota_details",
    "quotas",
    "rbac-policies",
    "revision-if-match",
    "router",
    "router_availability_zone",
    "security-group",
    "security-groups-normalized-cidr",
    "security-groups-remote-address-group",
    "security-groups-shared-filtering",
    "segment",
    "service-type",
    "sorting",
    "standard-attr-description",
    "standard-attr-fwaas-v2",
    "standard-attr-revisions",
    "standard-attr-segment",
    "standard-attr-tag",
    "standard-attr-timestamp",
    "stateful-security-group",
    "subnet-service-types",
    "subnet_allocation",
    "trunk",
    "trunk-details",
];

/// Collections without resources: path, key.
const EMPTY: &[(&str, &str)] = &[
    ("/v2.0/address-groups", "address_groups"),
    ("/v2.0/rbac-policies", "rbac_policies"),
    ("/v2.0/service-providers", "service_providers"),
    ("/v2.0/flavors", "flavors"),
    ("/v2.0/qos/policies", "policies"),
];

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .on(Method::GET, "/v2.0/extensions", Access::Reader, |call| {
            let all: Vec<Value> = aliases(call).map(extension).collect();
            Ok(Reply::ok(json!({"extensions": all})))
        })
        .on(Method::GET, "/v2.0/extensions/{alias}", Access::Reader, one)
        .on(
            Method::GET,
            "/v2.0/availability_zones",
            Access::Reader,
            zones,
        );
    for (path, key) in EMPTY {
        table.on(Method::GET, path, Access::Reader, move |_| {
            Ok(Reply::ok(json!({*key: []})))
        });
    }
}

/// Returns the aliases, with [`Options::extensions`](crate::cloud::Options::extensions).
fn aliases<'a>(call: &'a Call<'_>) -> impl Iterator<Item = &'a str> {
    let more = call.settings.extensions.iter().map(String::as_str);
    ALIASES.iter().copied().chain(more)
}

fn one(call: &mut Call<'_>) -> Answer {
    let alias = call.parameter("alias");
    if aliases(call).any(|known| known == alias) {
        return Ok(Reply::ok(json!({"extension": extension(alias)})));
    }
    let message = format!("Extension with alias {alias} does not exist");
    Ok(Reply::with(404, webob(404, "Not Found", &message)))
}

fn zones(_: &mut Call<'_>) -> Answer {
    let zones: Vec<Value> = ["network", "router"]
        .iter()
        .map(|resource| json!({"name": "nova", "resource": resource, "state": "available"}))
        .collect();
    Ok(Reply::ok(json!({"availability_zones": zones})))
}

fn extension(alias: &str) -> Value {
    json!({"alias": alias, "name": alias, "description": format!("The extension {alias}."), "links": [],
        "updated": "2016-01-01T10:00:00-00:00"})
}
