//! The cells of the table: what is named, in which field.

use serde_json::{Value, json};

use super::Answer::{Ready, Says};
use super::{Cell, Owner, cell, late, merge};

impl Owner {
    /// What a machine may write.
    pub(super) fn of_machines(&self) -> Vec<Cell> {
        let spec = |spec: Value| json!({"spec": spec});
        let port = |port: Value| json!({"spec": {"ports": [port]}});
        let status = |status: Value| json!({"status": status});
        let id = |id: &String| json!({"id": id});
        let named = |name: &str| json!({"filter": {"name": name}});
        let network = "k8s-clusterapi-cluster-default-demo";
        let group = "k8s-cluster-default-demo-secgroup-controlplane";
        let at = |address: &String| {
            json!({"network": id(&self.network),
            "fixedIPs": [{"subnet": id(&self.subnet), "ipAddress": address}]})
        };
        let marks = [
            format!("ferrostack:cluster={}", self.of_cluster),
            format!("ferrostack:machine={}", self.of_machine),
        ];
        let provider_id = spec(json!({"providerID": format!("openstack:///{}", self.server)}));
        let instance = status(json!({"instanceID": self.server}));
        let ports =
            status(json!({"resources": {"ports": [{"id": self.port}, {"id": self.trunk}]}}));
        let resolved = status(
            json!({"resolved": {"serverGroupID": self.server_group, "ports": [
            {"name": "cp-0-0", "description": "theirs", "networkID": self.network,
             "allowedAddressPairs": [{"ipAddress": self.address}]}]}}),
        );
        let hint = |name: &str, value: &String| {
            spec(json!({"schedulerHintAdditionalProperties": [
            {"name": name, "value": {"type": "String", "string": value}}]}))
        };
        let volumes = spec(
            json!({"rootVolume": {"sizeGiB": 10}, "additionalBlockDevices": [
            {"name": "data", "sizeGiB": 5, "storage": {"type": "Volume"}}]}),
        );
        let unknown = Says("annotation infrastructure");
        let like_theirs = |cell: Cell| Cell {
            name: "cp-0",
            ..cell
        };
        let of_other = Says("was created for the cluster with identity");
        vec![
            cell("server", "providerID", provider_id.clone(), unknown),
            like_theirs(cell(
                "server",
                "providerID and its name",
                provider_id,
                of_other,
            )),
            cell("server", "status.instanceID", instance.clone(), unknown),
            late("server", "status.instanceID, late", instance),
            cell(
                "server",
                "tags",
                spec(json!({"tags": marks})),
                Says("is found: remove it"),
            ),
            cell(
                "port",
                "ports.tags",
                port(json!({"tags": marks})),
                Says("is found: remove it"),
            ),
            cell(
                "server",
                "schedulerHint different_host",
                hint("different_host", &self.server),
                Ready,
            ),
            cell("port", "status.resources.ports", ports.clone(), unknown),
            late("port", "status.resources.ports, late", ports),
            late("port", "status.resolved.ports, late", resolved),
            cell(
                "port",
                "ports.fixedIPs.ipAddress",
                port(at(&self.address)),
                Says("create the ports"),
            ),
            cell(
                "port",
                "ports.macAddress",
                port(json!({"network": id(&self.network), "macAddress": self.hardware})),
                Says("create the ports"),
            ),
            cell(
                "port",
                "ports.allowedAddressPairs",
                port(json!({"allowedAddressPairs": [{"ipAddress": self.address}]})),
                Ready,
            ),
            like_theirs(cell("port", "the name of its machine", json!({}), Ready)),
            cell("trunk", "ports.trunk", port(json!({"trunk": true})), Ready),
            like_theirs(cell("volume", "the name of its machine", volumes, Ready)),
            cell(
                "security group",
                "securityGroups.id",
                spec(json!({"securityGroups": [id(&self.group)]})),
                Ready,
            ),
            cell(
                "security group",
                "ports.securityGroups",
                port(json!({"securityGroups": [named(group)]})),
                Ready,
            ),
            cell(
                "network",
                "ports.network.id",
                port(json!({"network": id(&self.network)})),
                Ready,
            ),
            cell(
                "network",
                "ports.network.filter",
                port(json!({"network": named(network)})),
                Ready,
            ),
            cell(
                "subnet",
                "ports.fixedIPs.subnet",
                port(json!({"fixedIPs": [{"subnet": id(&self.subnet)}]})),
                Ready,
            ),
            cell(
                "load balancer",
                "ports.fixedIPs.ipAddress",
                port(at(&self.vip)),
                Says("create the ports"),
            ),
            cell(
                "floating IP",
                "ports.allowedAddressPairs",
                port(json!({"allowedAddressPairs": [{"ipAddress": self.ip}]})),
                Ready,
            ),
            cell(
                "server group",
                "serverGroup.id",
                spec(json!({"serverGroup": id(&self.server_group)})),
                Ready,
            ),
            cell(
                "server group",
                "serverGroup.filter",
                spec(json!({"serverGroup": named("demo-group")})),
                Ready,
            ),
            cell(
                "server group",
                "schedulerHint group",
                hint("group", &self.server_group),
                Ready,
            ),
            cell(
                "key pair",
                "sshKeyName",
                spec(json!({"sshKeyName": "demo-key"})),
                Ready,
            ),
        ]
    }

    /// What a cluster may write.
    pub(super) fn of_clusters(&self) -> Vec<Cell> {
        let id = |id: &String| json!({"id": id});
        let named = |name: &str| json!({"filter": {"name": name}});
        let name = "k8s-clusterapi-cluster-default-demo";
        let managed = |spec: Value| {
            let mut object = json!({"spec": {"managedSubnets": [{"cidr": "10.9.0.0/24"}],
                "managedSecurityGroups": {}, "apiServer": {"managedLoadBalancer": {}}}});
            merge(&mut object["spec"], &spec);
            object
        };
        let inside = |spec: Value| {
            let mut object = json!({"spec": {"managedSecurityGroups": {}, "apiServer": {"managedLoadBalancer": {}}}});
            merge(&mut object["spec"], &spec);
            object
        };
        let balancer =
            |balancer: Value| managed(json!({"apiServer": {"managedLoadBalancer": balancer}}));
        let with = |status: Value| {
            let mut object = managed(json!({}));
            object["status"] = status;
            object
        };
        let rule = json!([{"name": "r", "direction": "ingress", "remoteGroupID": self.group}]);
        let external_ip = |address: &String, subnet: Value| {
            managed(json!({"managedRouter": {"externalIPs": [
            {"fixedIP": address, "subnet": subnet}]}}))
        };
        let public = json!({"filter": {"cidr": "127.30.0.0/24"}});
        let of_network = json!({"network": {"name": name, "id": self.network,
            "subnets": [{"name": name, "id": self.subnet, "cidr": "10.6.0.0/24"}]}});
        let of_router = json!({"router": {"name": name, "id": self.router}});
        let of_groups = json!({"controlPlaneSecurityGroup": {"name": "g", "id": self.group},
            "workerSecurityGroup": {"name": "g", "id": self.group},
            "bastionSecurityGroup": {"name": "g", "id": self.group}});
        let of_balancer = json!({"apiServerManagedLoadBalancer": {"name": "lb", "id": self.balancer,
            "ip": self.ip, "internalIP": self.vip}});
        let of_zones = json!({"apiServerLoadBalancers": [{"name": "lb", "id": self.balancer,
            "ip": self.ip, "internalIP": self.vip, "availabilityZone": "az1"}]});
        let of_bastion = json!({"bastion": {"id": self.server, "name": "cp-0", "sshKeyName": "demo-key",
            "floatingIP": self.ip, "resources": {"ports": [{"id": self.port}]}}});
        let marks = [format!("ferrostack:cluster={}", self.of_cluster)];
        let bastion = |fields: Value| {
            let mut bastion = json!({"enabled": true, "spec": {
                "flavor": {"filter": {"name": "m1.small"}}, "image": {"filter": {"name": "ubuntu-24.04"}},
                "sshKeyName": "demo-key",
                "serverGroup": id(&self.server_group), "securityGroups": [id(&self.group)]}});
            merge(&mut bastion, &fields);
            managed(json!({"bastion": bastion}))
        };
        let tagged = json!({"spec": {"tags": marks.clone()}});
        let unknown = Says("annotation infrastructure");
        let of_other = Says("was created for the cluster with identity");
        let mut all = vec![
            cell(
                "network",
                "network.id",
                inside(json!({"network": id(&self.network)})),
                Ready,
            ),
            cell(
                "network",
                "network.filter",
                inside(json!({"network": named(name)})),
                Ready,
            ),
            cell(
                "network",
                "managedLoadBalancer.network",
                balancer(json!({"network": id(&self.network)})),
                Ready,
            ),
            cell(
                "network",
                "externalNetwork",
                managed(json!({"externalNetwork": id(&self.network)})),
                Says("is not external"),
            ),
            cell(
                "subnet",
                "subnets",
                inside(json!({"subnets": [id(&self.subnet)]})),
                Ready,
            ),
            cell(
                "subnet",
                "primarySubnet",
                inside(json!({"network": id(&self.network), "primarySubnet": id(&self.subnet)})),
                Ready,
            ),
            cell(
                "subnet",
                "failureDomainSubnets",
                inside(
                    json!({"network": id(&self.network), "subnets": [id(&self.subnet)],
                    "failureDomainSubnets": [{"failureDomain": "nova", "subnets": [id(&self.subnet)]}]}),
                ),
                Ready,
            ),
            cell(
                "subnet",
                "managedLoadBalancer.availabilityZoneSubnets",
                inside(
                    json!({"network": id(&self.network), "subnets": [id(&self.subnet)],
                    "controlPlaneEndpoint": {"host": "api.example.com", "port": 6443},
                    "apiServer": {"managedLoadBalancer": {"availabilityZoneSubnets": [
                        {"availabilityZone": "az1", "subnet": id(&self.subnet)}]}}}),
                ),
                Ready,
            ),
            cell(
                "subnet",
                "managedLoadBalancer.subnets",
                balancer(json!({"subnets": [id(&self.subnet)]})),
                Ready,
            ),
            cell(
                "subnet",
                "managedRouter.externalIPs",
                external_ip(&"127.30.0.250".to_owned(), id(&self.subnet)),
                Says("is in network"),
            ),
            cell(
                "router",
                "router.id",
                managed(json!({"router": id(&self.router)})),
                of_other,
            ),
            cell(
                "router",
                "router.filter",
                managed(json!({"router": named(name)})),
                of_other,
            ),
            cell(
                "router",
                "router.id in the owner's network",
                inside(json!({"network": id(&self.network), "router": id(&self.router)})),
                Ready,
            ),
            cell(
                "floating IP",
                "apiServer.floatingIP",
                managed(json!({"apiServer": {"floatingIP": self.ip}})),
                of_other,
            ),
            cell(
                "floating IP",
                "controlPlaneEndpoint",
                managed(json!({"controlPlaneEndpoint": {"host": self.ip, "port": 6443}})),
                Ready,
            ),
            cell(
                "floating IP",
                "managedRouter.externalIPs",
                external_ip(&self.ip, public),
                Says("the project cannot see it"),
            ),
            cell(
                "load balancer",
                "apiServer.fixedIP",
                inside(json!({"network": id(&self.network),
                "apiServer": {"fixedIP": self.vip}})),
                Says("create the load balancer"),
            ),
            cell(
                "port",
                "apiServer.fixedIP",
                inside(json!({"network": id(&self.network),
                "apiServer": {"fixedIP": self.address}})),
                Says("create the load balancer"),
            ),
            cell(
                "security group",
                "rules.remoteGroupID",
                managed(json!({"managedSecurityGroups": {
                "clusterNodesSecurityGroupRules": rule}})),
                Ready,
            ),
            cell(
                "server",
                "tags",
                managed(json!({"tags": marks})),
                Says("is found: remove it"),
            ),
            cell("server", "bastion.spec", bastion(json!({})), Ready),
            cell(
                "server",
                "bastion.spec.tags",
                bastion(tagged),
                Says("is found: remove it"),
            ),
            cell(
                "floating IP",
                "bastion.floatingIP",
                bastion(json!({"floatingIP": self.ip})),
                of_other,
            ),
        ];
        for (what, field, status) in [
            ("network", "status.network", of_network.clone()),
            ("router", "status.router", of_router.clone()),
            (
                "security group",
                "status.controlPlaneSecurityGroup",
                of_groups.clone(),
            ),
            (
                "load balancer",
                "status.apiServerManagedLoadBalancer",
                of_balancer.clone(),
            ),
            ("load balancer", "status.apiServerLoadBalancers", of_zones),
        ] {
            all.push(cell(what, field, with(status.clone()), unknown));
            all.push(late(what, field, with(status)));
        }
        all.push(late("server", "status.bastion", with(of_bastion)));
        all
    }
}
