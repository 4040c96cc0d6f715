//! The plan of the load balancers of availability zones: see [`cluster::zonal`](crate::cluster::zonal).

use super::{Plan, Step, endpoint, surplus};
use crate::cluster::desired::Desired;
use crate::cluster::observed::Observed;

/// Adds the steps for the load balancers of all zones.
pub(super) fn plan(desired: &Desired, observed: &Observed, plan: &mut Plan) {
    let former = observed.in_zone(None);
    match former.balancers.is_empty() {
        false => {
            endpoint(desired, &former, plan);
            surplus::balancers(&former, plan);
        }
        true => forget(&former, plan),
    }
    for own in &desired.zones {
        let mut of_zone = Plan::default();
        let seen = observed.in_zone(Some(&own.zone));
        endpoint(&desired.in_zone(own), &seen, &mut of_zone);
        surplus::balancers(&seen, &mut of_zone);
        let wrapped = |step| Step::InZone(own.zone.clone(), Box::new(step));
        plan.steps.extend(of_zone.steps.into_iter().map(wrapped));
        plan.waits.extend(of_zone.waits);
    }
    let is_gone = |description: &str, key: &str| {
        let zone = observed.zone(description, key);
        zone.is_some_and(|zone| desired.zone(zone).is_none())
    };
    let mut gone = observed.clone();
    gone.balancers.retain(|it| is_gone(&it.description, &it.id));
    let ips = &mut gone.floating_ips;
    ips.retain(|it| is_gone(&it.description, &it.floating_ip_address));
    for balancer in &gone.balancers {
        surplus::balancer(balancer, plan);
    }
    forget(&gone, plan);
}

/// Deletes floating IPs without a load balancer.
fn forget(observed: &Observed, plan: &mut Plan) {
    let ips = observed.floating_ips.iter();
    let steps = ips.map(|ip| Step::DeleteFloatingIp(ip.id.clone()));
    plan.steps.extend(steps);
}
