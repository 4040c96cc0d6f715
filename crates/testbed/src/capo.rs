//! State left by cluster-api-provider-openstack in cloud and management cluster for a cluster with machines: names,
//! descriptions, tags, rules, statuses and finalizers, as of release 0.15, written from facts about the Go provider and
//! without running it.

use std::time::Duration;

use api::infra::v1alpha1::OpenStackServer;
use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use kube::api::{ListParams, Patch, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource, ResourceExt};
use openstack::Session;
use openstack::compute::{BlockDevice, ServerCreate, ServerNetwork};
use openstack::image::ImageQuery;
use openstack::loadbalancer::{
    ListenerCreate, LoadBalancerCreate, MemberCreate, MonitorCreate, PoolCreate,
};
use openstack::network::{
    ExternalGateway, FixedIp, FloatingIpCreate, NetworkCreate, PortCreate, RouterCreate,
    RuleCreate, SecurityGroupCreate, SubnetCreate, TrunkCreate,
};
use openstack::volume::VolumeCreate;
use serde_json::{Value, json};

use crate::{Kind, NAMESPACE};

/// Writer of the state of a cluster, in place of the Go provider.
#[allow(missing_debug_implementations)]
pub struct Capo<'a> {
    /// Session of another user of the project.
    pub session: &'a Session,
    /// Client of the management cluster.
    pub client: &'a Client,
    /// Name of the Cluster and of its [`OpenStackCluster`].
    pub cluster: &'a str,
    /// Ids of the API server's load balancer and pool, once created.
    pool: Option<(String, String)>,
    /// Credentials of the cluster, which its servers have, too.
    identity: Value,
    network: String,
    subnet: String,
    groups: Vec<(&'static str, String)>,
}

impl<'a> Capo<'a> {
    /// Creates a writer for one cluster.
    pub fn new(session: &'a Session, client: &'a Client, cluster: &'a str) -> Self {
        Self {
            session,
            client,
            cluster,
            pool: None,
            identity: Value::Null,
            network: String::new(),
            subnet: String::new(),
            groups: Vec::new(),
        }
    }

    fn api<K: Kind + Resource<Scope = NamespaceResourceScope>>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    fn full(&self) -> String {
        format!("{NAMESPACE}-{}", self.cluster)
    }

    fn name(&self) -> String {
        format!("k8s-clusterapi-cluster-{}", self.full())
    }

    fn description(&self) -> Option<String> {
        let name = self.full();
        Some(format!(
            "Created by cluster-api-provider-openstack cluster {name}"
        ))
    }

    /// Creates everything for [`OpenStackCluster`], [`OpenStackMachine`]s and bastion.
    pub async fn build(&mut self) {
        let object = self
            .api::<OpenStackCluster>()
            .get(self.cluster)
            .await
            .unwrap();
        self.identity = json!(object.spec.identity_ref);
        let status = self.infrastructure(&object).await;
        self.store::<OpenStackCluster>(
            self.cluster,
            "openstackcluster.infrastructure.cluster.x-k8s.io",
            json!({"status": status}),
        )
        .await;
        let label = ListParams::default()
            .labels(&format!("cluster.x-k8s.io/cluster-name={}", self.cluster));
        let machines = self.api::<OpenStackMachine>().list(&label).await.unwrap();
        for machine in machines {
            self.machine(&machine, &object.spec.tags).await;
        }
    }

    async fn infrastructure(&mut self, object: &OpenStackCluster) -> Value {
        let network = self.session.network();
        let spec = &object.spec;
        let outside = network
            .networks(&[("router:external", "true")])
            .await
            .unwrap();
        let outside = outside.first().unwrap().clone();
        let inside = NetworkCreate {
            name: self.name(),
            ..NetworkCreate::default()
        };
        let inside = network.create_network(&inside).await.unwrap();
        let given = spec.managed_subnets.first().unwrap();
        let subnet = SubnetCreate {
            name: self.name(),
            network_id: inside.id.clone(),
            cidr: given.cidr.clone(),
            ip_version: 4,
            description: self.description(),
            dns_nameservers: given.dns_nameservers.clone(),
            ..SubnetCreate::default()
        };
        let subnet = network.create_subnet(&subnet).await.unwrap();
        let router = RouterCreate {
            name: self.name(),
            description: self.description(),
            external_gateway_info: Some(ExternalGateway {
                network_id: outside.id.clone(),
                ..ExternalGateway::default()
            }),
        };
        let router = network.create_router(&router).await.unwrap();
        network
            .add_router_interface(&router.id, &subnet.id)
            .await
            .unwrap();
        (self.network, self.subnet) = (inside.id.clone(), subnet.id.clone());
        let has_bastion = spec.bastion.as_ref().is_some_and(|bastion| bastion.enabled);
        self.security_groups(&given.cidr, has_bastion).await;
        for (collection, id) in [
            ("networks", &inside.id),
            ("subnets", &subnet.id),
            ("routers", &router.id),
        ] {
            network.set_tags(collection, id, &spec.tags).await.unwrap();
        }
        for (_, id) in &self.groups {
            network
                .set_tags("security-groups", id, &spec.tags)
                .await
                .unwrap();
        }
        let group = |role: &str| {
            let (_, id) = self.groups.iter().find(|(known, _)| *known == role)?;
            Some(json!({"id": id, "name": self.group_name(role)}))
        };
        let mut status = json!({
            "initialization": {"provisioned": true},
            "network": {"id": inside.id, "name": inside.name, "tags": spec.tags,
                "subnets": [{"id": subnet.id, "name": subnet.name, "cidr": subnet.cidr}]},
            "externalNetwork": {"id": outside.id, "name": outside.name},
            "router": {"id": router.id, "name": router.name, "tags": spec.tags},
            "controlPlaneSecurityGroup": group("controlplane"),
            "workerSecurityGroup": group("worker"),
            "conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        });
        if has_bastion {
            status["bastionSecurityGroup"] = json!(group("bastion"));
        }
        let balancer = spec
            .api_server
            .as_ref()
            .and_then(|it| it.managed_load_balancer.as_ref());
        if balancer.is_some_and(|balancer| balancer.enabled) {
            let (balancer, host) = self.balancer(&outside.id, &spec.tags).await;
            status["apiServerManagedLoadBalancer"] = balancer;
            let endpoint = json!({"spec": {"controlPlaneEndpoint": {"host": host, "port": 6443}}});
            self.merge::<OpenStackCluster>(self.cluster, endpoint).await;
        }
        if let Some(bastion) = spec.bastion.as_ref().filter(|_| has_bastion) {
            status["bastion"] = self
                .bastion(object, bastion.spec.as_ref().unwrap(), &outside.id)
                .await;
        }
        status
    }

    fn group_name(&self, role: &str) -> String {
        format!("k8s-cluster-{}-secgroup-{role}", self.full())
    }

    async fn security_groups(&mut self, cidr: &str, has_bastion: bool) {
        let network = self.session.network();
        for role in ["controlplane", "worker", "bastion"] {
            if role == "bastion" && !has_bastion {
                continue;
            }
            let group = SecurityGroupCreate {
                name: self.group_name(role),
                description: "Cluster API managed group".to_owned(),
                stateful: None,
            };
            // The Go provider wants the same rules for egress as Neutron's default, so they stay.
            let group = network.create_security_group(&group).await.unwrap();
            self.groups.push((role, group.id));
        }
        let id = |role: &str| {
            self.groups
                .iter()
                .find(|(known, _)| *known == role)
                .map(|(_, id)| id.clone())
        };
        let (plane, worker) = (id("controlplane"), id("worker"));
        let rule = |group: &Option<String>,
                    protocol: &str,
                    ports: (i64, i64),
                    remote: Option<String>,
                    text: &str| RuleCreate {
            security_group_id: group.clone().unwrap(),
            direction: "ingress".to_owned(),
            ethertype: Some("IPv4".to_owned()),
            protocol: Some(protocol.to_owned()),
            port_range_min: (ports.0 > 0).then_some(ports.0),
            port_range_max: (ports.1 > 0).then_some(ports.1),
            remote_group_id: remote,
            description: Some(text.to_owned()),
            ..RuleCreate::default()
        };
        let mut rules = vec![
            rule(&plane, "tcp", (6443, 6443), None, "Kubernetes API"),
            rule(&plane, "tcp", (2379, 2380), plane.clone(), "Etcd"),
        ];
        for group in [&plane, &worker] {
            for remote in [&plane, &worker] {
                rules.push(rule(
                    group,
                    "tcp",
                    (10250, 10250),
                    remote.clone(),
                    "Kubelet API",
                ));
                // Of the spec: BGP and IP-in-IP of Calico.
                rules.push(rule(group, "tcp", (179, 179), remote.clone(), ""));
                rules.push(rule(group, "4", (0, 0), remote.clone(), ""));
            }
        }
        for protocol in ["tcp", "udp"] {
            for remote in [&plane, &worker] {
                let text = "Node Port Services";
                rules.push(rule(
                    &worker,
                    protocol,
                    (30000, 32767),
                    remote.clone(),
                    text,
                ));
            }
            rules.push(RuleCreate {
                remote_ip_prefix: Some(cidr.to_owned()),
                ..rule(
                    &worker,
                    protocol,
                    (30000, 32767),
                    None,
                    "Node Port Services",
                )
            });
        }
        if let bastion @ Some(_) = id("bastion") {
            for group in [&plane, &worker] {
                rules.push(rule(group, "tcp", (22, 22), bastion.clone(), "SSH"));
            }
            rules.push(rule(&bastion, "tcp", (22, 22), None, "SSH"));
        }
        for rule in rules {
            network.create_rules(&[rule]).await.unwrap();
        }
    }

    async fn active(&self, balancer: &str) {
        crate::eventually("the load balancer", || async {
            let known = self
                .session
                .load_balancer()
                .load_balancer(balancer)
                .await
                .unwrap();
            match known.provisioning_status.as_str() {
                "ACTIVE" => Ok(()),
                other => Err(other.to_owned()),
            }
        })
        .await;
    }

    /// Creates load balancer and floating IP; returns the status of the load balancer, and the host of the endpoint.
    async fn balancer(&mut self, outside: &str, tags: &[String]) -> (Value, String) {
        let octavia = self.session.load_balancer();
        let name = format!("{}-kubeapi", self.name());
        let balancer = LoadBalancerCreate {
            name: name.clone(),
            description: self.description(),
            vip_subnet_id: Some(self.subnet.clone()),
            vip_network_id: Some(self.network.clone()),
            tags: tags.to_vec(),
            ..LoadBalancerCreate::default()
        };
        let balancer = octavia.create_load_balancer(&balancer).await.unwrap();
        self.active(&balancer.id).await;
        let part = format!("{name}-6443");
        let listener = ListenerCreate {
            name: part.clone(),
            protocol: "TCP".to_owned(),
            protocol_port: 6443,
            loadbalancer_id: Some(balancer.id.clone()),
            tags: tags.to_vec(),
            ..ListenerCreate::default()
        };
        let listener = octavia.create_listener(&listener).await.unwrap();
        self.active(&balancer.id).await;
        let pool = PoolCreate {
            name: part.clone(),
            protocol: "TCP".to_owned(),
            lb_algorithm: "ROUND_ROBIN".to_owned(),
            listener_id: Some(listener.id.clone()),
            tags: tags.to_vec(),
            ..PoolCreate::default()
        };
        let pool = octavia.create_pool(&pool).await.unwrap();
        self.active(&balancer.id).await;
        let monitor = MonitorCreate {
            name: part,
            kind: "TCP".to_owned(),
            delay: 10,
            timeout: 5,
            max_retries: 5,
            max_retries_down: 3,
            pool_id: Some(pool.id.clone()),
            ..MonitorCreate::default()
        };
        octavia.create_monitor(&monitor).await.unwrap();
        self.active(&balancer.id).await;
        self.pool = Some((balancer.id.clone(), pool.id));
        let ip = FloatingIpCreate {
            floating_network_id: outside.to_owned(),
            port_id: Some(balancer.vip_port_id.clone()),
            description: self.description(),
            ..FloatingIpCreate::default()
        };
        let ip = self
            .session
            .network()
            .create_floating_ip(&ip)
            .await
            .unwrap();
        self.session
            .network()
            .set_tags("floatingips", &ip.id, tags)
            .await
            .unwrap();
        let host = ip.floating_ip_address;
        let status = json!({"name": name, "id": balancer.id, "ip": host,
            "internalIP": balancer.vip_address, "tags": tags});
        (status, host)
    }

    async fn bastion(
        &self,
        object: &OpenStackCluster,
        spec: &api::infra::v1beta2::OpenStackMachineSpec,
        outside: &str,
    ) -> Value {
        let name = format!("{}-bastion", self.cluster);
        let owner = object.owner_ref(&()).unwrap();
        let server = self
            .server(&name, spec, "bastion", &object.spec.tags, json!(owner))
            .await;
        let ip = FloatingIpCreate {
            floating_network_id: outside.to_owned(),
            port_id: server.ports.first().cloned(),
            description: self.description(),
            ..FloatingIpCreate::default()
        };
        let network = self.session.network();
        let ip = network.create_floating_ip(&ip).await.unwrap();
        network
            .set_tags("floatingips", &ip.id, &object.spec.tags)
            .await
            .unwrap();
        json!({"id": server.id, "name": name, "state": "ACTIVE", "ip": server.address,
            "floatingIP": ip.floating_ip_address})
    }

    async fn machine(&self, machine: &OpenStackMachine, cluster_tags: &[String]) {
        let name = machine.name_any();
        let label = "cluster.x-k8s.io/control-plane";
        let is_plane = machine.labels().contains_key(label);
        let role = if is_plane { "controlplane" } else { "worker" };
        let owner = json!(machine.owner_ref(&()).unwrap());
        let server = self
            .server(&name, &machine.spec, role, cluster_tags, owner)
            .await;
        let patch = json!({"spec": {"providerID": format!("openstack:///{}", server.id)}});
        self.merge::<OpenStackMachine>(&name, patch).await;
        let status = json!({"initialization": {"provisioned": true}, "instanceID": server.id,
            "addresses": [{"type": "InternalIP", "address": server.address}],
            "conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]});
        self.store::<OpenStackMachine>(
            &name,
            "openstackmachine.infrastructure.cluster.x-k8s.io",
            json!({"status": status}),
        )
        .await;
        if let (true, Some((balancer, pool))) = (is_plane, &self.pool) {
            let member = MemberCreate {
                name: format!("{}-kubeapi-6443-{name}", self.name()),
                address: server.address.clone(),
                protocol_port: 6443,
                tags: cluster_tags.to_vec(),
                ..MemberCreate::default()
            };
            self.session
                .load_balancer()
                .create_member(pool, &member)
                .await
                .unwrap();
            self.active(balancer).await;
        }
    }

    /// Creates port, trunk, volumes and server, and an [`OpenStackServer`] with the ids.
    async fn server(
        &self,
        name: &str,
        spec: &api::infra::v1beta2::OpenStackMachineSpec,
        role: &str,
        cluster_tags: &[String],
        mut owner: Value,
    ) -> NewServer {
        let network = self.session.network();
        let (_, group) = self
            .groups
            .iter()
            .find(|(known, _)| *known == role)
            .unwrap();
        let mut tags = spec.tags.clone();
        tags.extend(
            cluster_tags
                .iter()
                .filter(|tag| !spec.tags.contains(tag))
                .cloned(),
        );
        let description = format!(
            "Created by cluster-api-provider-openstack cluster {}",
            self.cluster
        );
        let port = PortCreate {
            name: format!("{name}-0"),
            network_id: self.network.clone(),
            description: Some(description.clone()),
            fixed_ips: vec![FixedIp {
                subnet_id: self.subnet.clone(),
                ..FixedIp::default()
            }],
            security_groups: Some(vec![group.clone()]),
            ..PortCreate::default()
        };
        let port = network.create_port(&port).await.unwrap();
        network.set_tags("ports", &port.id, &tags).await.unwrap();
        if spec.trunk == Some(true) {
            let trunk = TrunkCreate {
                name: format!("{name}-0"),
                port_id: port.id.clone(),
                description: Some(description),
                ..TrunkCreate::default()
            };
            let trunk = network.create_trunk(&trunk).await.unwrap();
            network.set_tags("trunks", &trunk.id, &tags).await.unwrap();
        }
        let images = self
            .session
            .image()
            .list(&ImageQuery::default())
            .await
            .unwrap();
        let image = images
            .iter()
            .find(|image| image.name == "ubuntu-24.04")
            .unwrap()
            .id
            .clone();
        let flavors = self.session.compute().flavors().await.unwrap();
        let flavor = flavors
            .iter()
            .find(|flavor| flavor.name == "m1.small")
            .unwrap()
            .id
            .clone();
        let mut disks = Vec::new();
        if let Some(root) = &spec.root_volume {
            let volume = VolumeCreate {
                name: format!("{name}-root"),
                size: i64::from(root.size_gib),
                description: Some(format!("Root volume for {name}")),
                image_id: Some(image.clone()),
                ..VolumeCreate::default()
            };
            let volume = self.session.volume().create(&volume).await.unwrap();
            self.available(&volume.id).await;
            disks.push(BlockDevice {
                source_type: "volume".to_owned(),
                destination_type: "volume".to_owned(),
                uuid: Some(volume.id),
                boot_index: Some(0),
                delete_on_termination: true,
                ..BlockDevice::default()
            });
        }
        let server = ServerCreate {
            name: name.to_owned(),
            flavor_id: flavor.clone(),
            image_id: spec.root_volume.is_none().then(|| image.clone()),
            networks: vec![ServerNetwork::port(port.id.clone())],
            block_devices: disks,
            tags,
            ..ServerCreate::default()
        };
        let server = self.session.compute().create_server(&server).await.unwrap();
        self.running(&server.id).await;
        owner["controller"] = Value::Null;
        owner["blockOwnerDeletion"] = Value::Null;
        let object = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "OpenStackServer",
            "metadata": {"name": name, "labels": {"cluster.x-k8s.io/cluster-name": self.cluster},
                "finalizers": ["openstackserver.infrastructure.cluster.x-k8s.io"],
                "ownerReferences": [owner]},
            "spec": {"identityRef": self.identity,
                "flavor": "m1.small", "image": {"filter": {"name": "ubuntu-24.04"}}, "sshKeyName": "",
                "ports": [{"network": {"id": self.network}, "securityGroups": [{"id": group}]}]}});
        let object = serde_json::from_value(object).unwrap();
        let servers = self.api::<OpenStackServer>();
        servers
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
        let status = json!({"status": {"ready": true, "instanceID": server.id, "instanceState": "ACTIVE",
            "resolved": {"imageID": image, "flavorID": flavor},
            "resources": {"ports": [{"id": port.id}]}}});
        servers
            .patch_status(name, &Default::default(), &Patch::Merge(&status))
            .await
            .unwrap();
        NewServer {
            id: server.id,
            address: port.fixed_ips.first().unwrap().ip_address.clone(),
            ports: vec![port.id],
        }
    }

    async fn available(&self, volume: &str) {
        crate::eventually("the volume", || async {
            let known = self.session.volume().get(volume).await.unwrap();
            match known.status.as_str() {
                "available" => Ok(()),
                other => Err(other.to_owned()),
            }
        })
        .await;
    }

    async fn running(&self, server: &str) {
        crate::eventually("the server", || async {
            let known = self.session.compute().server(server).await.unwrap();
            match known.status.as_str() {
                "ACTIVE" => Ok(()),
                other => Err(other.to_owned()),
            }
        })
        .await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }

    async fn merge<K: Kind>(&self, name: &str, patch: Value) {
        let api = self.api::<K>();
        api.patch(name, &Default::default(), &Patch::Merge(&patch))
            .await
            .unwrap();
    }

    /// Stores the finalizer and the status of an object.
    async fn store<K: Kind>(&self, name: &str, finalizer: &str, status: Value) {
        self.merge::<K>(name, json!({"metadata": {"finalizers": [finalizer]}}))
            .await;
        let api = self.api::<K>();
        api.patch_status(name, &Default::default(), &Patch::Merge(&status))
            .await
            .unwrap();
    }
}

/// New server.
struct NewServer {
    id: String,
    address: String,
    ports: Vec<String>,
}
