//! Writes of one text to existing resources: descriptions, and the tags of servers.

use serde_json::json;

use super::{Inventory, Observed};
use crate::call::Call;
use crate::compute::Server;
use crate::error::Result;
use crate::loadbalancer::LoadBalancer;
use crate::network::{FloatingIp, Network, Port, Router, SecurityGroup, Subnet};
use crate::service::Service;
use crate::volume::Volume;

/// Resource whose description can be changed alone.
pub trait Described: Observed {
    #[doc(hidden)]
    const SERVICE: Service;
    #[doc(hidden)]
    const ROUTE: &str;
    #[doc(hidden)]
    const MEMBER: &str;
    #[doc(hidden)]
    fn put_description(&mut self, text: String);
}

macro_rules! described {
    ($($type:ty: $service:ident, $route:literal, $member:literal;)*) => {
        $(impl Described for $type {
            const SERVICE: Service = Service::$service;
            const ROUTE: &str = $route;
            const MEMBER: &str = $member;
            fn put_description(&mut self, text: String) {
                self.description = text;
            }
        })*
    };
}

described! {
    Network: Network, "/networks/{id}", "network";
    Subnet: Network, "/subnets/{id}", "subnet";
    Port: Network, "/ports/{id}", "port";
    Router: Network, "/routers/{id}", "router";
    SecurityGroup: Network, "/security-groups/{id}", "security_group";
    Volume: Volume, "/volumes/{id}", "volume";
}

impl Described for LoadBalancer {
    const SERVICE: Service = Service::LoadBalancer;
    const ROUTE: &str = "/lbaas/loadbalancers/{id}";
    const MEMBER: &str = "loadbalancer";
    fn put_description(&mut self, text: String) {
        self.description = text;
        "PENDING_UPDATE".clone_into(&mut self.provisioning_status);
    }
}

impl Inventory {
    /// Changes the description of a resource, for example `inventory.set_description::<Router>(id, text)`. A load
    /// balancer is immutable afterwards until it is ready again.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn set_description<T: Described>(&self, id: &str, text: &str) -> Result<()> {
        let call =
            Call::put(T::SERVICE, T::ROUTE, &[id]).body(T::MEMBER, &json!({"description": text}));
        self.session().done(call).await?;
        self.fold_with::<T>(id, |item| item.put_description(text.to_owned()));
        Ok(())
    }

    /// Changes the description of a floating IP without moving it: the request repeats port and address of `known`,
    /// because Neutron associates the floating IP again in each change, and rejects a port with several addresses
    /// without one of them.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn describe_floating_ip(&self, known: &FloatingIp, text: &str) -> Result<()> {
        let mut body = json!({"description": text});
        if let (Some(port), Some(address)) = (&known.port_id, &known.fixed_ip_address) {
            body["port_id"] = json!(port);
            body["fixed_ip_address"] = json!(address);
        }
        let call = Call::put(Service::Network, "/floatingips/{id}", &[&known.id]);
        self.session().done(call.body("floatingip", &body)).await?;
        self.fold_with::<FloatingIp>(&known.id, |ip| ip.description = text.to_owned());
        Ok(())
    }

    /// Sets the tags of a server, replacing all.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn set_server_tags(&self, id: &str, tags: &[String]) -> Result<()> {
        self.session().compute().set_tags(id, tags).await?;
        self.fold_with::<Server>(id, |server| server.tags = tags.to_vec());
        Ok(())
    }
}
