//! Floating IP of a server from a pool: its claim, the answer, and the port of the address.
//!
//! The pool may be of any provider of IPAddressClaims. Neutron would move a floating IP from any port, so the address
//! is associated only while free, and without any mark but the pool's.

use std::fmt::Debug;
use std::sync::Arc;

use api::conditions::{Reason, Type};
use api::infra::v1beta2::FloatingIpPoolRef;
use api::ipam::v1beta2::{IPAddress, IPAddressClaim, IPAddressClaimSpec, PoolReference};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use api::names::CLUSTER_NAME_LABEL;
use kube::api::{DeleteParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt};
use openstack::network::{FloatingIp, FloatingIpUpdate, Port};
use openstack::{Kind, View};
use operator::client::Api;
use operator::finalizer;

use crate::context::{Context, Error, namespace};
use crate::identity::{Identity, Mark};
use crate::names::POOL_KIND as KIND;
use crate::problem::Problem;
use crate::resolve::NotFound;
use crate::words;

/// Finalizer of claims, equal to the Go provider's: a claim goes after the server with its address.
pub const CLAIM_FINALIZER: &str = "openstackmachine.infrastructure.cluster.x-k8s.io/ip-claim";

/// Address given by a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The address.
    pub address: String,
    /// [`Identity`] of the pool, if a pool of this provider.
    pub pool: Option<Identity>,
}

/// Object that claims an address.
pub(crate) struct Claimant<'a, K> {
    pub(crate) object: &'a K,
    /// The name of the server.
    pub(crate) server: &'a str,
    /// The name of the Cluster.
    pub(crate) cluster: Option<&'a str>,
}

impl<K> Claimant<'_, K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    /// Address given by the pool; otherwise the reason to wait. A missing claim is created.
    ///
    /// # Errors
    /// A reference to no pool, a foreign claim, and errors of the API server.
    pub(crate) async fn claimed(
        &self,
        ctx: &Context,
        reference: &FloatingIpPoolRef,
    ) -> Result<Result<Given, String>, Error> {
        let pool = pool(reference)?;
        let (claims, name) = (self.claims(ctx), self.name());
        let found = claims.get_opt(&name).await;
        let found = found.map_err(Error::kubernetes("reading the IPAddressClaim"))?;
        let wait = format!("waiting for an address of {} {}", pool.kind, pool.name);
        let Some(claim) = found else {
            let created = claims
                .create(&PostParams::default(), &self.claim(pool))
                .await;
            created.map_err(Error::kubernetes("creating the IPAddressClaim"))?;
            return Ok(Err(wait));
        };
        if !self.owns(&claim) || claim.spec.pool_ref != pool {
            let text = format!(
                "IPAddressClaim {name} is not the one of this {}: delete it, and another one is created",
                K::kind(&())
            );
            return Err(problem(Reason::FloatingIPError, text).into());
        }
        let status = claim.status.unwrap_or_default();
        let Some(answer) = status.address_ref else {
            let ready = api::conditions::find(&status.conditions, Type::Ready);
            let why = ready.filter(|ready| ready.status == "False" && !ready.message.is_empty());
            return Ok(Err(match why {
                Some(why) => format!("{wait}: {}", why.message),
                None => wait,
            }));
        };
        let addresses = Api::<IPAddress>::namespaced(ctx.client.clone(), &namespace(self.object));
        let found = addresses.get_opt(&answer.name).await;
        let found = found.map_err(Error::kubernetes("reading the IPAddress"))?;
        let Some(found) = found.filter(|found| found.spec.claim_ref.name == name) else {
            return Ok(Err(format!("waiting for IPAddress {}", answer.name)));
        };
        let is_ours = pool.kind == KIND && pool.api_group == api::infra::GROUP;
        let pool = match is_ours {
            true => (ctx.claims.pools).identity_of(&namespace(self.object), &pool.name)?,
            false => None,
        };
        Ok(Ok(Given {
            address: found.spec.address,
            pool,
        }))
    }

    /// Gives the address back, if any: the server must be gone.
    ///
    /// # Errors
    /// Errors of the API server.
    pub(crate) async fn give_back(&self, ctx: &Context) -> Result<(), Error> {
        let (claims, name) = (self.claims(ctx), self.name());
        let found = claims.get_opt(&name).await;
        let found = found.map_err(Error::kubernetes("reading the IPAddressClaim"))?;
        let Some(claim) = found.filter(|claim| self.owns(claim)) else {
            return Ok(());
        };
        let freed = finalizer::remove(&claims, &claim, CLAIM_FINALIZER).await;
        freed.map_err(Error::kubernetes("releasing the IPAddressClaim"))?;
        match claims.delete(&name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            deleted => deleted.map_err(Error::kubernetes("deleting the IPAddressClaim")),
        }
    }

    fn claims(&self, ctx: &Context) -> Api<IPAddressClaim> {
        Api::namespaced(ctx.client.clone(), &namespace(self.object))
    }

    /// Name of the claim, equal to the Go provider's.
    fn name(&self) -> String {
        format!("{}-floating-ip-address", self.server)
    }

    /// True if the object owns the claim; a move recreates the object with another uid.
    fn owns(&self, claim: &IPAddressClaim) -> bool {
        let name = self.object.name_any();
        let mut owners = claim.owner_references().iter();
        owners.any(|owner| owner.kind == K::kind(&()) && owner.name == name)
    }

    fn claim(&self, pool: PoolReference) -> IPAddressClaim {
        let spec = IPAddressClaimSpec {
            cluster_name: self.cluster.map(str::to_owned),
            pool_ref: pool,
        };
        let mut claim = IPAddressClaim::new(&self.name(), spec);
        claim.metadata.finalizers = Some(vec![CLAIM_FINALIZER.to_owned()]);
        claim.metadata.owner_references = Some(vec![owned_by(self.object)]);
        let label = |name: &str| (CLUSTER_NAME_LABEL.to_owned(), name.to_owned());
        claim.metadata.labels = self.cluster.map(|name| [label(name)].into());
        claim
    }
}

/// [`OwnerReference`] for objects owned and controlled by `object`.
pub(crate) fn owned_by<K: Resource<DynamicType = ()>>(object: &K) -> OwnerReference {
    OwnerReference {
        controller: Some(true),
        ..object.owner_ref(&()).unwrap_or_default()
    }
}

/// [`PoolReference`] in a spec. The Go type may leave the group out.
fn pool(reference: &FloatingIpPoolRef) -> Result<PoolReference, Problem> {
    let group = match (&reference.api_group, reference.kind.as_str()) {
        (Some(group), _) => group.clone(),
        (None, KIND) => api::infra::GROUP.to_owned(),
        (None, kind) => {
            let text = format!("floatingIPPoolRef: give the apiGroup of {kind}");
            return Err(problem(Reason::InvalidMachineSpec, text));
        }
    };
    Ok(PoolReference {
        api_group: group,
        kind: reference.kind.clone(),
        name: reference.name.clone(),
    })
}

fn problem(reason: Reason, text: String) -> Problem {
    Problem::new(Type::FloatingAddressFromPoolReady, reason, text)
}

impl Given {
    /// True if the address is at one of `ports`.
    pub fn is_at(&self, ports: &[Arc<Port>], view: &View) -> bool {
        let at = found(view, &self.address).and_then(|ip| ip.port_id.as_ref());
        at.is_some_and(|id| ports.iter().any(|port| port.id == *id))
    }

    /// Checks that the address may be associated with one of `ports`.
    ///
    /// # Errors
    /// If there is no such floating IP, or another owner has it.
    pub(crate) fn check(&self, ports: &[Arc<Port>], view: &View) -> Result<(), Problem> {
        let address = &self.address;
        let no = |why: String| {
            let text = format!("floatingIPPoolRef: floating IP {address} {why}");
            let found = NotFound::among(Kind::FloatingIps, text);
            Err(found.problem(Type::FloatingAddressFromPoolReady, Reason::FloatingIPError))
        };
        let Some(ip) = found(view, address) else {
            return no("of the pool is not in the project of the server".to_owned());
        };
        if let Some(mark) = Mark::from_item(&**ip) {
            return no(format!(
                "was created for the cluster with identity {}",
                mark.cluster
            ));
        }
        if let Some(id) = Identity::of_pool(&**ip).filter(|id| self.pool != Some(*id)) {
            return no(format!("was allocated by the pool with identity {id}"));
        }
        match &ip.port_id {
            Some(id) if !ports.iter().any(|port| port.id == *id) => {
                let at = words::port(id, view.ports.get(id).map(AsRef::as_ref));
                no(format!(
                    "is on {at} (if nobody needs it there: openstack floating ip unset --port {})",
                    ip.id
                ))
            }
            _ => Ok(()),
        }
    }
}

/// [`FloatingIp`] with this address, and its association with the first of `ports` that a router connects to its
/// network; `None` if no port has a free IPv4 address.
pub fn association(
    address: &str,
    ports: &[Arc<Port>],
    view: &View,
) -> Option<(String, FloatingIpUpdate)> {
    let ip = found(view, address)?;
    let mut ports: Vec<_> = ports.iter().collect();
    ports.sort_by(|a, b| a.name.cmp(&b.name));
    let mut places = Vec::new();
    for port in ports {
        let others = view.floating_ips.of_parent(&port.id).iter();
        let taken: Vec<_> = others
            .filter(|other| other.id != ip.id)
            .filter_map(|other| other.fixed_ip_address.as_ref())
            .collect();
        let free = port
            .fixed_ips
            .iter()
            .filter(|fixed| !fixed.ip_address.contains(':') && !taken.contains(&&fixed.ip_address));
        places.extend(free.map(|fixed| (port, fixed)));
    }
    let network = &ip.floating_network_id;
    let routed = places
        .iter()
        .find(|(_, fixed)| is_routed(&fixed.subnet_id, network, view));
    let (port, fixed) = routed.or_else(|| places.first())?;
    let change = FloatingIpUpdate {
        port_id: Some(port.id.clone()),
        fixed_ip_address: Some(fixed.ip_address.clone()),
    };
    Some((ip.id.clone(), change))
}

/// True if a router of the project connects the subnet to the external network.
fn is_routed(subnet: &str, network: &str, view: &View) -> bool {
    view.ports.iter().any(|port| {
        let router = view.routers.get(&port.device_id);
        let gateway = router.and_then(|router| router.external_gateway_info.as_ref());
        gateway.is_some_and(|gateway| gateway.network_id == network)
            && port.fixed_ips.iter().any(|fixed| fixed.subnet_id == subnet)
    })
}

fn found<'v>(view: &'v View, address: &str) -> Option<&'v Arc<FloatingIp>> {
    view.floating_ips.named(address).first()
}

#[cfg(test)]
mod tests;
