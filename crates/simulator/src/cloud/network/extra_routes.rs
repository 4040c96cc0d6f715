//! Routes of routers: format, next hops and number.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Value, json};

use super::ports::ROUTER_GATEWAY;
use super::resource::touch;
use super::routers::ROUTER;
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::Fields;
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;

/// Neutron's `max_routes`: a limit of each router. Newer releases have a quota of this name.
pub(crate) const LIMIT: (&str, i64) = ("router_route", 30);

/// `add_extraroutes` and `remove_extraroutes`. Adding an existing route and removing an absent one are no errors.
pub(crate) fn change(call: &mut Call<'_>, add: bool) -> Answer {
    let router = ROUTER
        .collection
        .find_writable(call, call.parameter("id"))?;
    let given = call.wrapped("router")?;
    let given = given.list("routes");
    format(given)?;
    let mut routes = router.list("routes").to_vec();
    for route in given {
        if !add {
            routes.retain(|existing| existing != route);
        } else if !routes.contains(route) {
            routes.push(route.clone());
        }
    }
    check(call, router.text("id"), &routes)?;
    let mut doc = (*router).clone();
    if routes != router.list("routes") {
        doc.set("routes", routes);
        touch(&mut doc, call.state);
        call.state.put(Kind::Router, doc.clone());
    }
    let mut view = ROUTER.collection.show(call, &doc);
    // Neutron does not filter these answers, so members see fields of administrators.
    let ports = call.state.by(Kind::Port, "device_id", doc.text("id"));
    let gateway = ports
        .iter()
        .find(|port| port.text("device_owner") == ROUTER_GATEWAY);
    let gateway = gateway.map_or(Value::Null, |port| json!(port.text("id")));
    view.set("gw_port_id", gateway);
    view.set("distributed", false);
    view.set("ha", false);
    view.set("ha_vr_id", 0);
    Ok(Reply::ok(json!({"router": view})))
}

/// Checks all routes wanted for a router.
pub(crate) fn check(call: &Call<'_>, router: &str, routes: &[Value]) -> Result<(), Fault> {
    format(routes)?;
    let (name, default) = LIMIT;
    let quotas = &call.settings.quotas;
    let limit = quotas.get(name).copied().unwrap_or(default);
    if limit >= 0 && i64::try_from(routes.len()).is_ok_and(|count| count > limit) {
        let message = format!(
            "Unable to complete operation for {router}. The number of routes exceeds the maximum {limit}."
        );
        return Err(Fault::new(400, "RoutesExhausted", message));
    }
    if routes.is_empty() {
        return Ok(());
    }
    let ports = call.state.by(Kind::Port, "device_id", router);
    let fixed: Vec<&Value> = ports
        .iter()
        .flat_map(|port| port.list("fixed_ips"))
        .collect();
    let text = |fixed: &Value, key: &str| fixed[key].as_str().unwrap_or_default().to_owned();
    let addresses: BTreeSet<IpAddr> = fixed
        .iter()
        .filter_map(|fixed| text(fixed, "ip_address").parse().ok())
        .collect();
    let nets: BTreeSet<IpNet> = fixed
        .iter()
        .filter_map(|fixed| call.state.get(Kind::Subnet, &text(fixed, "subnet_id")))
        .filter_map(|subnet| subnet.text("cidr").parse().ok())
        .collect();
    for route in routes {
        let invalid = |why: &str| {
            let message = format!("Invalid format for routes: {}, {why}", json!(routes));
            Fault::new(400, "InvalidRoutes", message)
        };
        let hop = text(route, "nexthop").parse::<IpAddr>().ok();
        if !hop.is_some_and(|hop| nets.iter().any(|net| net.contains(&hop))) {
            return Err(invalid("the nexthop is not connected with router"));
        }
        if hop.is_some_and(|hop| addresses.contains(&hop)) {
            return Err(invalid("the nexthop is used by router"));
        }
    }
    Ok(())
}

/// Checks the form of routes: destination and nexthop and nothing else, and no route twice.
fn format(routes: &[Value]) -> Result<(), Fault> {
    let bad = |why: String| Fault::bad(format!("Invalid input for routes. Reason: {why}."));
    let mut seen = BTreeSet::new();
    for route in routes {
        let fields = route.as_object().filter(|fields| {
            fields.len() == 2
                && fields.contains_key("destination")
                && fields.contains_key("nexthop")
        });
        let Some(fields) = fields else {
            return Err(bad(format!("Invalid data format for hostroute: '{route}'")));
        };
        let (destination, hop) = (fields.text("destination"), fields.text("nexthop"));
        subnet(destination).map_err(bad)?;
        if hop.parse::<IpAddr>().is_err() {
            return Err(bad(format!("'{hop}' is not a valid IP address")));
        }
        if !seen.insert((destination, hop)) {
            return Err(bad(format!("Duplicate hostroute '{route}'")));
        }
    }
    Ok(())
}

/// Checks that a text is an address range without bits beyond the prefix.
fn subnet(text: &str) -> Result<(), String> {
    let invalid = || format!("'{text}' is not a valid IP subnet");
    let net = text.parse::<IpNet>().map_err(|_| invalid())?;
    match net == net.trunc() {
        true => Ok(()),
        false => Err(format!(
            "'{text}' isn't a recognized IP subnet cidr, '{}' is recommended",
            net.trunc()
        )),
    }
}
