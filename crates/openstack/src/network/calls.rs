//! The requests to Neutron.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::create::{
    FloatingIpCreate, FloatingIpUpdate, NetworkCreate, NetworkUpdate, PortCreate, PortUpdate,
    RouterCreate, RouterUpdate, RuleCreate, SecurityGroupCreate, SecurityGroupUpdate, SubnetCreate,
    SubnetUpdate, TrunkCreate,
};
use super::resource::{
    AddressPair, Extension, ExtraRoute, FloatingIp, Network, NetworkQuotas, Port, Router,
    SecurityGroup, SecurityGroupRule, SubPort, Subnet, SubnetPool, Trunk,
};
use crate::call::Call;
use crate::error::Result;
use crate::service::Service;
use crate::session::Session;

/// Calls to Neutron.
#[derive(Clone, Debug)]
pub struct Networking {
    session: Session,
}

/// Filter of a list: (field, value) pairs as Neutron takes them, for example `("name", "x")`.
pub type Filter<'a> = &'a [(&'a str, &'a str)];

/// Body of a change of routes.
#[derive(Serialize)]
struct Routes<'a> {
    routes: &'a [ExtraRoute],
}

impl Session {
    /// Returns the calls to Neutron.
    pub fn network(&self) -> Networking {
        Networking::new(self.clone())
    }
}

impl Networking {
    fn new(session: Session) -> Self {
        Self { session }
    }

    /// Lists the networks: the project's own, shared and external ones.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn networks(&self, filter: Filter<'_>) -> Result<Vec<Network>> {
        self.list("/networks", "networks", filter, Network::FIELDS)
            .await
    }

    /// Returns one network.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn network(&self, id: &str) -> Result<Network> {
        self.session
            .one(
                Call::get(Service::Network, "/networks/{id}", &[id]),
                "network",
            )
            .await
    }

    /// Creates a network.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn create_network(&self, network: &NetworkCreate) -> Result<Network> {
        self.create("/networks", "network", network).await
    }

    /// Changes a network.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn update_network(&self, id: &str, change: &NetworkUpdate) -> Result<Network> {
        self.update("/networks/{id}", id, "network", change).await
    }

    /// Deletes a network. Ports other than the ones for DHCP must not remain.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn delete_network(&self, id: &str) -> Result<()> {
        self.session
            .done(Call::delete(Service::Network, "/networks/{id}", &[id]))
            .await
    }

    /// Lists the subnets of all networks visible to the project.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn subnets(&self, filter: Filter<'_>) -> Result<Vec<Subnet>> {
        self.list("/subnets", "subnets", filter, Subnet::FIELDS)
            .await
    }

    /// Returns one subnet.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn subnet(&self, id: &str) -> Result<Subnet> {
        self.session
            .one(
                Call::get(Service::Network, "/subnets/{id}", &[id]),
                "subnet",
            )
            .await
    }

    /// Creates a subnet.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn create_subnet(&self, subnet: &SubnetCreate) -> Result<Subnet> {
        self.create("/subnets", "subnet", subnet).await
    }

    /// Changes a subnet.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn update_subnet(&self, id: &str, change: &SubnetUpdate) -> Result<Subnet> {
        self.update("/subnets/{id}", id, "subnet", change).await
    }

    /// Deletes a subnet.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn delete_subnet(&self, id: &str) -> Result<()> {
        self.session
            .done(Call::delete(Service::Network, "/subnets/{id}", &[id]))
            .await
    }

    /// Lists the subnet pools: those of the project, and shared ones.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn subnet_pools(&self, filter: Filter<'_>) -> Result<Vec<SubnetPool>> {
        self.list("/subnetpools", "subnetpools", filter, SubnetPool::FIELDS)
            .await
    }

    /// Lists the ports.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn ports(&self, filter: Filter<'_>) -> Result<Vec<Port>> {
        self.list("/ports", "ports", filter, Port::FIELDS).await
    }

    /// Returns one port.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn port(&self, id: &str) -> Result<Port> {
        self.session
            .one(Call::get(Service::Network, "/ports/{id}", &[id]), "port")
            .await
    }

    /// Creates a port.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn create_port(&self, port: &PortCreate) -> Result<Port> {
        self.create("/ports", "port", port).await
    }

    /// Creates ports in one atomic request.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn create_ports(&self, ports: &[PortCreate]) -> Result<Vec<Port>> {
        self.create_all("/ports", "ports", ports).await
    }

    /// Changes a port.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn update_port(&self, id: &str, change: &PortUpdate) -> Result<Port> {
        self.update("/ports/{id}", id, "port", change).await
    }

    /// Adds ranges to the allowed address pairs of a port, and removes ranges. The port is read first and changed only
    /// at the same revision, so that a concurrent change by others causes an error instead of being undone. Pairs with
    /// a hardware address other than the port's stay.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn set_port_pairs(
        &self,
        id: &str,
        add: &[String],
        remove: &[String],
    ) -> Result<Port> {
        let pairs = |ranges: &[String]| {
            let pair = |range: &String| AddressPair {
                ip_address: range.clone(),
                mac_address: None,
            };
            ranges.iter().map(pair).collect::<Vec<_>>()
        };
        self.change_port_pairs(id, &pairs(add), &pairs(remove))
            .await
    }

    /// As [`set_port_pairs`](Self::set_port_pairs), with pairs; a pair without a hardware address gets the one of the
    /// port.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn change_port_pairs(
        &self,
        id: &str,
        add: &[AddressPair],
        remove: &[AddressPair],
    ) -> Result<Port> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Revised {
            revision_number: Option<i64>,
            mac_address: String,
            allowed_address_pairs: Vec<AddressPair>,
        }
        let call = Call::get(Service::Network, "/ports/{id}", &[id]);
        let known: Revised = self.session.one(call, "port").await?;
        let mac = &known.mac_address;
        let mut pairs = known.allowed_address_pairs;
        let hardware = |pair: &AddressPair| {
            let address = pair.mac_address.as_ref().unwrap_or(mac);
            address.to_ascii_lowercase()
        };
        let same = |one: &AddressPair, two: &AddressPair| {
            one.ip_address == two.ip_address && hardware(one) == hardware(two)
        };
        pairs.retain(|pair| !remove.iter().any(|other| same(pair, other)));
        for new in add {
            if !pairs.iter().any(|pair| same(pair, new)) {
                pairs.push(new.clone());
            }
        }
        let change = PortUpdate {
            allowed_address_pairs: Some(pairs),
            ..PortUpdate::default()
        };
        let mut call = Call::put(Service::Network, "/ports/{id}", &[id]).body("port", &change);
        call.revision = known.revision_number;
        self.session.one(call, "port").await
    }

    /// Adds a security group to a port, or removes it. The port is read first and changed only at the same revision, so
    /// that a concurrent change by others causes an error instead of being undone.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn set_port_group(&self, id: &str, group: &str, has: bool) -> Result<Port> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Revised {
            revision_number: Option<i64>,
            security_groups: Vec<String>,
        }
        let call = Call::get(Service::Network, "/ports/{id}", &[id]);
        let known: Revised = self.session.one(call, "port").await?;
        let mut groups = known.security_groups;
        groups.retain(|known| known != group);
        if has {
            groups.push(group.to_owned());
        }
        let change = PortUpdate {
            security_groups: Some(groups),
            ..PortUpdate::default()
        };
        let mut call = Call::put(Service::Network, "/ports/{id}", &[id]).body("port", &change);
        call.revision = known.revision_number;
        self.session.one(call, "port").await
    }

    /// Deletes a port.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn delete_port(&self, id: &str) -> Result<()> {
        self.session
            .done(Call::delete(Service::Network, "/ports/{id}", &[id]))
            .await
    }

    /// Lists the routers.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn routers(&self, filter: Filter<'_>) -> Result<Vec<Router>> {
        self.list("/routers", "routers", filter, Router::FIELDS)
            .await
    }

    /// Returns one router.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn router(&self, id: &str) -> Result<Router> {
        self.session
            .one(
                Call::get(Service::Network, "/routers/{id}", &[id]),
                "router",
            )
            .await
    }

    /// Creates a router.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn create_router(&self, router: &RouterCreate) -> Result<Router> {
        self.create("/routers", "router", router).await
    }

    /// Changes a router.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn update_router(&self, id: &str, change: &RouterUpdate) -> Result<Router> {
        self.update("/routers/{id}", id, "router", change).await
    }

    /// Adds routes to a router in one request (extension `extraroute-atomic`). Existing routes stay.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn add_routes(&self, id: &str, routes: &[ExtraRoute]) -> Result<Router> {
        let call = Call::put(Service::Network, "/routers/{id}/add_extraroutes", &[id]);
        self.session
            .one(call.body("router", &Routes { routes }), "router")
            .await
    }

    /// Removes routes from a router in one request (extension `extraroute-atomic`). Succeeds for absent routes.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn remove_routes(&self, id: &str, routes: &[ExtraRoute]) -> Result<Router> {
        let call = Call::put(Service::Network, "/routers/{id}/remove_extraroutes", &[id]);
        self.session
            .one(call.body("router", &Routes { routes }), "router")
            .await
    }

    /// Adds and removes routes of a router without the extension `extraroute-atomic`. The router is read first and
    /// changed only at the same revision, so that a concurrent change by others causes an error instead of being
    /// undone.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn change_routes(
        &self,
        id: &str,
        add: &[ExtraRoute],
        remove: &[ExtraRoute],
    ) -> Result<Router> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Revised {
            revision_number: Option<i64>,
            routes: Vec<ExtraRoute>,
        }
        let call = Call::get(Service::Network, "/routers/{id}", &[id]);
        let known: Revised = self.session.one(call, "router").await?;
        let mut routes = known.routes;
        routes.retain(|route| !remove.contains(route));
        for route in add {
            if !routes.contains(route) {
                routes.push(route.clone());
            }
        }
        let body = Routes { routes: &routes };
        let mut call = Call::put(Service::Network, "/routers/{id}", &[id]).body("router", &body);
        call.revision = known.revision_number;
        self.session.one(call, "router").await
    }

    /// Deletes a router without interfaces.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn delete_router(&self, id: &str) -> Result<()> {
        self.session
            .done(Call::delete(Service::Network, "/routers/{id}", &[id]))
            .await
    }

    /// Connects a router to a subnet; returns the id of the interface's port.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn add_router_interface(&self, router: &str, subnet: &str) -> Result<String> {
        self.router_interface("/routers/{id}/add_router_interface", router, subnet)
            .await
    }

    /// Disconnects a router from a subnet; returns the id of the deleted port.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn remove_router_interface(&self, router: &str, subnet: &str) -> Result<String> {
        self.router_interface("/routers/{id}/remove_router_interface", router, subnet)
            .await
    }

    /// Lists the security groups with their rules.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn security_groups(&self, filter: Filter<'_>) -> Result<Vec<SecurityGroup>> {
        self.list(
            "/security-groups",
            "security_groups",
            filter,
            SecurityGroup::FIELDS,
        )
        .await
    }

    /// Returns one security group.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn security_group(&self, id: &str) -> Result<SecurityGroup> {
        self.session
            .one(
                Call::get(Service::Network, "/security-groups/{id}", &[id]),
                "security_group",
            )
            .await
    }

    /// Creates a security group. Neutron adds two rules: all egress over IPv4 and IPv6.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn create_security_group(
        &self,
        security_group: &SecurityGroupCreate,
    ) -> Result<SecurityGroup> {
        self.create("/security-groups", "security_group", security_group)
            .await
    }

    /// Changes a security group.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn update_security_group(
        &self,
        id: &str,
        change: &SecurityGroupUpdate,
    ) -> Result<SecurityGroup> {
        self.update("/security-groups/{id}", id, "security_group", change)
            .await
    }

    /// Deletes a security group. Fails while ports use the group.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn delete_security_group(&self, id: &str) -> Result<()> {
        self.session
            .done(Call::delete(
                Service::Network,
                "/security-groups/{id}",
                &[id],
            ))
            .await
    }

    /// Creates rules in one atomic request.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn create_rules(&self, rules: &[RuleCreate]) -> Result<Vec<SecurityGroupRule>> {
        self.create_all("/security-group-rules", "security_group_rules", rules)
            .await
    }

    /// Deletes a rule.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn delete_rule(&self, id: &str) -> Result<()> {
        self.session
            .done(Call::delete(
                Service::Network,
                "/security-group-rules/{id}",
                &[id],
            ))
            .await
    }

    /// Lists the floating IPs.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn floating_ips(&self, filter: Filter<'_>) -> Result<Vec<FloatingIp>> {
        self.list("/floatingips", "floatingips", filter, FloatingIp::FIELDS)
            .await
    }

    /// Returns one floating IP.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn floating_ip(&self, id: &str) -> Result<FloatingIp> {
        self.session
            .one(
                Call::get(Service::Network, "/floatingips/{id}", &[id]),
                "floatingip",
            )
            .await
    }

    /// Creates a floating IP, and associates it with a port if the request names one.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn create_floating_ip(&self, floating_ip: &FloatingIpCreate) -> Result<FloatingIp> {
        self.create("/floatingips", "floatingip", floating_ip).await
    }

    /// Associates a floating IP with a port, or ends the association.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn update_floating_ip(
        &self,
        id: &str,
        change: &FloatingIpUpdate,
    ) -> Result<FloatingIp> {
        self.update("/floatingips/{id}", id, "floatingip", change)
            .await
    }

    /// Deletes a floating IP.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn delete_floating_ip(&self, id: &str) -> Result<()> {
        self.session
            .done(Call::delete(Service::Network, "/floatingips/{id}", &[id]))
            .await
    }

    /// Lists the trunks.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn trunks(&self, filter: Filter<'_>) -> Result<Vec<Trunk>> {
        self.list("/trunks", "trunks", filter, &[]).await
    }

    /// Creates a trunk.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn create_trunk(&self, trunk: &TrunkCreate) -> Result<Trunk> {
        self.create("/trunks", "trunk", trunk).await
    }

    /// Removes ports from a trunk.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn remove_subports(&self, trunk: &str, ports: &[&str]) -> Result<Trunk> {
        let ports: Vec<_> = ports.iter().map(|port| json!({"port_id": port})).collect();
        self.subports("/trunks/{id}/remove_subports", trunk, &ports)
            .await
    }

    /// Adds ports to a trunk.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn add_subports(&self, trunk: &str, ports: &[SubPort]) -> Result<Trunk> {
        self.subports("/trunks/{id}/add_subports", trunk, ports)
            .await
    }

    /// Deletes a trunk with its subports; the ports stay.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn delete_trunk(&self, id: &str) -> Result<()> {
        self.session
            .done(Call::delete(Service::Network, "/trunks/{id}", &[id]))
            .await
    }

    /// Sets the tags of a resource, replacing all (extension `standard-attr-tag`). `collection` is
    /// the plural of the resource's URL: `networks`, `ports`, `security-groups`, `floatingips`, ...
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn set_tags(
        &self,
        collection: &str,
        id: &str,
        tags: &[String],
    ) -> Result<Vec<String>> {
        let call = Call::put(
            Service::Network,
            "/{collection}/{id}/tags",
            &[collection, id],
        )
        .body("tags", &tags);
        self.session.one(call, "tags").await
    }

    /// Returns the extensions of the cloud's Neutron.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn extensions(&self) -> Result<Vec<Extension>> {
        let call = Call::get(Service::Network, "/extensions", &[]);
        self.session.one(call, "extensions").await
    }

    /// Returns limit, use and reservations of a project by resource.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn quotas(&self, project: &str) -> Result<NetworkQuotas> {
        let call = Call::get(
            Service::Network,
            "/quotas/{project}/details.json",
            &[project],
        );
        self.session.one(call, "quota").await
    }

    async fn list<T: DeserializeOwned + Send>(
        &self,
        route: &'static str,
        key: &str,
        filter: Filter<'_>,
        fields: &[&str],
    ) -> Result<Vec<T>> {
        let mut call = Call::list(Service::Network, route, &[]).fields(fields);
        for (name, value) in filter {
            call = call.query(name, *value);
        }
        self.session.list(call, key).await
    }

    async fn create<T: DeserializeOwned>(
        &self,
        route: &'static str,
        key: &str,
        body: &impl Serialize,
    ) -> Result<T> {
        self.session
            .one(
                Call::post(Service::Network, route, &[]).body(key, body),
                key,
            )
            .await
    }

    async fn create_all<T: DeserializeOwned, C: Serialize>(
        &self,
        route: &'static str,
        key: &str,
        body: &[C],
    ) -> Result<Vec<T>> {
        if body.is_empty() {
            return Ok(Vec::new());
        }
        self.session
            .one(
                Call::post(Service::Network, route, &[]).body(key, &body),
                key,
            )
            .await
    }

    async fn update<T: DeserializeOwned>(
        &self,
        route: &'static str,
        id: &str,
        key: &str,
        body: &impl Serialize,
    ) -> Result<T> {
        self.session
            .one(
                Call::put(Service::Network, route, &[id]).body(key, body),
                key,
            )
            .await
    }

    async fn router_interface(
        &self,
        route: &'static str,
        router: &str,
        subnet: &str,
    ) -> Result<String> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Interface {
            port_id: String,
        }
        let call = Call::put(Service::Network, route, &[router]).body("subnet_id", &subnet);
        Ok(self.session.one::<Interface>(call, "").await?.port_id)
    }

    async fn subports(
        &self,
        route: &'static str,
        trunk: &str,
        ports: &[impl Serialize],
    ) -> Result<Trunk> {
        let call = Call::put(Service::Network, route, &[trunk]).body("sub_ports", &ports);
        self.session.one(call, "").await
    }
}
