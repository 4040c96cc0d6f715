//! Load balancer for the second address family of a Service, if one load balancer cannot have both addresses.

use std::collections::BTreeSet;

use api::k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use openstack::loadbalancer::LoadBalancerCreate;
use parking_lot::Mutex;

use super::identity::Identity;
use super::vip::Family;
use super::{Octavia, Work, annotations};

/// Annotations for one load balancer, or for an address: settings of the first load balancer.
const OF_THE_FIRST: &[&str] = &[
    annotations::ID,
    annotations::ADDRESS,
    "loadbalancer.openstack.org/port-id",
];

/// Service as seen by the load balancer of the second family: with this family alone, and another identity.
#[derive(Clone, Debug)]
pub(crate) struct Second {
    pub(crate) service: Service,
    pub(crate) identity: Identity,
}

impl Second {
    pub(crate) fn new(service: &Service, identity: &Identity, family: Family) -> Self {
        Self {
            service: of_family(service, family),
            identity: identity.of_second(family),
        }
    }

    /// Parameters of a reconcile of this load balancer.
    pub(crate) fn work<'a>(&'a self, first: &Work<'a>) -> Work<'a> {
        Work {
            service: &self.service,
            identity: &self.identity,
            octavia: Octavia {
                has_additional_vips: false,
                ..first.octavia
            },
            ..*first
        }
    }
}

fn of_family(service: &Service, family: Family) -> Service {
    let mut second = service.clone();
    for name in OF_THE_FIRST {
        second.annotations_mut().remove(*name);
    }
    let spec = second.spec.get_or_insert_default();
    spec.ip_families = Some(vec![family.name().to_owned()]);
    spec.ip_family_policy = Some("SingleStack".to_owned());
    spec.load_balancer_ip = spec.load_balancer_ip.take().filter(|ip| family.has(ip));
    // A host name stands for the addresses of both.
    let has_name = annotations::has_hostname(second.annotations());
    let status = second.status.as_mut();
    let published = status.and_then(|status| status.load_balancer.as_mut()?.ingress.as_mut());
    if let Some(ingress) = published.filter(|_| !has_name) {
        ingress.drain(..ingress.len().min(1));
    }
    second
}

/// Drivers that gave no load balancer two addresses. Lost at a restart, which tries once again.
#[derive(Debug, Default)]
pub(crate) struct Drivers(Mutex<BTreeSet<String>>);

impl Drivers {
    /// True if the driver is known to lack additional addresses.
    pub(crate) fn lacks(&self, driver: &str) -> bool {
        self.0.lock().contains(driver)
    }

    /// Records the driver if it rejected the additional addresses of a load balancer. Returns true if so.
    pub(crate) fn learn(
        &self,
        driver: &str,
        tree: &LoadBalancerCreate,
        error: &openstack::Error,
    ) -> bool {
        // Octavia's answer for options that a driver does not have.
        let is_unsupported = error.status().is_some_and(|status| status.as_u16() == 501);
        let lacks = is_unsupported && !tree.additional_vips.is_empty();
        if lacks {
            self.0.lock().insert(driver.to_owned());
        }
        lacks
    }
}
