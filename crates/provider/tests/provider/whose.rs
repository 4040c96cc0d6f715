//! The table who × what: an object of another namespace of the same project names what belongs to a cluster, in every field
//! and status that can hold it. It is created, reconciled and deleted, and what belongs to the cluster stays as it is.

#[path = "whose/cells.rs"]
mod cells;

#[path = "whose/fields.rs"]
mod fields;

use std::collections::BTreeMap;
use std::time::Duration;

use api::core::v1beta2::Machine;
use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{Api, ResourceExt};
use openstack::Service;
use provider::cluster::FINALIZER as OF_CLUSTER;
use provider::identity::{CLUSTER_ID, MACHINE_ID};
use provider::machine::FINALIZER as OF_MACHINE;
use serde::Serialize;
use serde_json::{Value, json};
use testbed::Kind;

use crate::balancers::octavia;
use crate::ownership::{OTHER, delete, make, raw, release, second_tenant};
use crate::world::{World, eventually, listed};

/// Everything in the project, by kind and id.
type Project = BTreeMap<(String, String), Value>;

/// What belongs to cluster `demo` of namespace `default`, by what is named of it.
struct Owner {
    world: World,
    /// The project before anybody names anything.
    before: Project,
    server: String,
    port: String,
    address: String,
    hardware: String,
    trunk: String,
    ip: String,
    group: String,
    balancer: String,
    vip: String,
    network: String,
    subnet: String,
    router: String,
    server_group: String,
    of_cluster: String,
    of_machine: String,
}

/// When a cell's fields are written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    /// Before the first reconcile.
    First,
    /// Once the object is ready, and has an identity and resources of its own.
    Late,
}

/// What the object reports.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Answer {
    /// It is ready.
    Ready,
    /// A condition with these words.
    Says(&'static str),
}

use Answer::{Ready, Says};
use When::{First, Late};

/// A cell: what is named, in which field, by which content of the object.
struct Cell {
    what: &'static str,
    field: &'static str,
    name: &'static str,
    when: When,
    object: Value,
    answer: Answer,
}

fn cell(what: &'static str, field: &'static str, object: Value, answer: Answer) -> Cell {
    Cell {
        what,
        field,
        name: "thief",
        when: First,
        object,
        answer,
    }
}

/// The same, written once the object is ready.
fn late(what: &'static str, field: &'static str, object: Value) -> Cell {
    Cell {
        when: Late,
        ..cell(what, field, object, Ready)
    }
}

/// Merges `patch` into `object`; lists are replaced.
fn merge(object: &mut Value, patch: &Value) {
    match (object.is_object(), patch.as_object()) {
        (true, Some(fields)) => {
            for (name, value) in fields {
                merge(&mut object[name.as_str()], value);
            }
        }
        _ => *object = patch.clone(),
    }
}

async fn list(world: &World, service: Service, path: &str, member: &str) -> Vec<Value> {
    let answer = world.request(service, "GET", path, json!({})).await;
    let items = answer[member].as_array().expect(path);
    items.clone()
}

/// Everything in the project as its services show it.
async fn project(world: &World) -> Project {
    use Service::{Compute, LoadBalancer, Network, Volume};
    let lists = [
        (Network, "/networks", "networks"),
        (Network, "/subnets", "subnets"),
        (Network, "/routers", "routers"),
        (Network, "/ports", "ports"),
        (Network, "/security-groups", "security_groups"),
        (Network, "/floatingips", "floatingips"),
        (Network, "/trunks", "trunks"),
        (Compute, "/servers/detail", "servers"),
        (Compute, "/os-server-groups", "server_groups"),
        (Compute, "/os-keypairs", "keypairs"),
        (Volume, "/volumes/detail", "volumes"),
        (LoadBalancer, "/lbaas/loadbalancers", "loadbalancers"),
        (LoadBalancer, "/lbaas/listeners", "listeners"),
        (LoadBalancer, "/lbaas/pools", "pools"),
        (LoadBalancer, "/lbaas/healthmonitors", "healthmonitors"),
    ];
    let mut all = Project::new();
    for (service, path, member) in lists {
        for item in list(world, service, path, member).await {
            let id = item["id"].as_str().or(item["keypair"]["name"].as_str());
            let id = id.expect(path).to_owned();
            if member == "pools" {
                let path = format!("/lbaas/pools/{id}/members");
                let members = list(world, LoadBalancer, &path, "members").await;
                all.insert(("members".to_owned(), id.clone()), json!(members));
            }
            all.insert((member.to_owned(), id), item);
        }
    }
    all
}

/// Cluster `demo` with a control plane machine that has all there is, and a second tenant with a cluster of its own.
async fn owner() -> Owner {
    let world = World::start().await;
    octavia(&world, &["az1"]).await;
    let compute = Service::Compute;
    let group = json!({"server_group": {"name": "demo-group", "policy": "soft-anti-affinity"}});
    let group = world
        .request(compute, "POST", "/os-server-groups", group)
        .await;
    let key = json!({"keypair": {"name": "demo-key", "type": "ssh", "public_key":
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHV3yLSBgxcb6LSR4eUEkEXpmYnZ6NyTTvTwcQIbbqVZ demo"}});
    world.request(compute, "POST", "/os-keypairs", key).await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    let spec = json!({"sshKeyName": "demo-key", "serverGroup": {"filter": {"name": "demo-group"}},
        "rootVolume": {"sizeGiB": 10},
        "additionalBlockDevices": [{"name": "data", "sizeGiB": 5, "storage": {"type": "Volume"}}]});
    world.machine("cp-0", true, spec).await;
    let machine = world.machine_ready("cp-0").await;
    eventually("a member of the load balancer", || async {
        let listeners = world.cloud.world().borrow().listeners.clone();
        let has_members = listeners.iter().any(|listener| listener.members.len() == 1);
        has_members.then_some(()).ok_or("none".to_owned())
    })
    .await;
    let cluster = world.cluster_ready().await;
    let (network, router) = {
        let status = cluster.status.clone().unwrap();
        (status.network.unwrap(), status.router.unwrap())
    };
    let subport = json!({"port": {"network_id": network.id, "name": "demo-trunk"}});
    let parent = world
        .request(Service::Network, "POST", "/ports", subport)
        .await;
    let trunk = json!({"trunk": {"port_id": parent["port"]["id"], "name": "demo-trunk"}});
    let trunk = world
        .request(Service::Network, "POST", "/trunks", trunk)
        .await;
    other_tenant(&world).await;
    let before = settled(&world).await;
    let of_kind = |kind: &str, holds: &dyn Fn(&Value) -> bool| {
        let mut all = before.iter();
        let found = all.find(|((member, _), item)| member == kind && holds(item));
        found.map(|(_, item)| item.clone()).expect(kind)
    };
    let server = machine.status.clone().unwrap().instance_id.unwrap();
    let port = of_kind("ports", &|item| item["device_id"] == json!(server));
    let balancer = cluster.status.clone().unwrap();
    let balancer = balancer.api_server_managed_load_balancer.unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    Owner {
        server,
        port: text(&port["id"]),
        address: text(&port["fixed_ips"][0]["ip_address"]),
        hardware: text(&port["mac_address"]),
        trunk: text(&trunk["trunk"]["id"]),
        ip: cluster
            .spec
            .control_plane_endpoint
            .clone()
            .unwrap()
            .host
            .unwrap(),
        group: cluster
            .status
            .clone()
            .unwrap()
            .control_plane_security_group
            .unwrap()
            .id,
        balancer: balancer.id,
        vip: balancer.internal_ip.unwrap(),
        subnet: network.subnets[0].id.clone(),
        network: network.id,
        router: router.id,
        server_group: text(&group["server_group"]["id"]),
        of_cluster: cluster.annotations()[CLUSTER_ID].clone(),
        of_machine: machine.annotations()[MACHINE_ID].clone(),
        before,
        world,
    }
}

/// Another tenant with credentials of the same project and a ready cluster `theirs`.
async fn other_tenant(world: &World) {
    second_tenant(world).await;
    make(world, json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "boot", "namespace": OTHER},
        "stringData": {"value": "#cloud-config\n"}})).await;
    for name in ["theirs", "thief"] {
        make(world, json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": name, "namespace": OTHER}, "spec": {"infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackCluster", "name": name}}})).await;
    }
    let spec = json!({"managedSubnets": [{"cidr": "10.8.0.0/24"}], "managedSecurityGroups": {},
        "apiServer": {"enableFloatingIP": false}, "controlPlaneEndpoint": {"host": "192.0.2.1", "port": 6443}});
    make(world, cluster("theirs", spec)).await;
    reports::<OpenStackCluster>(world, "theirs", Ready).await;
}

fn cluster(name: &str, spec: Value) -> Value {
    let mut object = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "OpenStackCluster",
        "metadata": {"name": name, "namespace": OTHER, "labels": {"cluster.x-k8s.io/cluster-name": name}},
        "spec": {"identityRef": {"name": "stolen", "cloudName": "simulated"}}});
    merge(&mut object["spec"], &spec);
    object
}

fn machine(name: &str) -> Value {
    json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "OpenStackMachine",
        "metadata": {"name": name, "namespace": OTHER, "labels": {"cluster.x-k8s.io/cluster-name": "theirs"}},
        "spec": {"flavor": {"filter": {"name": "m1.small"}}, "image": {"filter": {"name": "ubuntu-24.04"}},
            "identityRef": {"name": "stolen", "cloudName": "simulated"}}})
}

/// Makes a Machine of a cluster of the second tenant, and returns its OpenStackMachine.
async fn joining(world: &World, name: &str, cluster: &str) -> Value {
    let labels = json!({"cluster.x-k8s.io/cluster-name": cluster});
    make(world, json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {"name": name, "namespace": OTHER, "labels": labels},
        "spec": {"clusterName": cluster, "bootstrap": {"dataSecretName": "boot"}, "infrastructureRef": {
            "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackMachine", "name": name}}})).await;
    let parent = raw::<Machine>(world, OTHER, name).await;
    let mut object = machine(name);
    object["metadata"]["labels"] = labels;
    object["metadata"]["ownerReferences"] = json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "name": name, "uid": parent["metadata"]["uid"], "controller": true}]);
    object
}

/// The project once nothing in it changes any more.
async fn settled(world: &World) -> Project {
    let mut last = project(world).await;
    for _ in 0..100 {
        // Several lists of the cloud.
        tokio::time::sleep(Duration::from_secs(30)).await;
        let now = project(world).await;
        if now == last {
            return now;
        }
        last = now;
    }
    panic!("the project does not come to rest");
}

/// The conditions that tell about the present generation of an object; none once it is gone.
async fn conditions<K: Kind + Serialize>(world: &World, name: &str) -> Vec<Condition> {
    let api = Api::<K>::namespaced(world.client.clone(), OTHER);
    let value = serde_json::to_value(api.get_opt(name).await.unwrap()).unwrap();
    let conditions = value["status"]["conditions"].clone();
    let mut conditions: Vec<Condition> = serde_json::from_value(conditions).unwrap_or_default();
    let generation = value["metadata"]["generation"].as_i64();
    conditions.retain(|condition| condition.observed_generation == generation);
    conditions
}

/// Waits until an object of the second tenant reports what is expected.
async fn reports<K: Kind + Serialize>(world: &World, name: &str, answer: Answer) {
    eventually(&format!("{name}: {answer:?}"), || async {
        let conditions = conditions::<K>(world, name).await;
        let holds = match answer {
            Ready => api::conditions::is_true(&conditions, "Ready"),
            Says(words) => conditions
                .iter()
                .any(|condition| condition.status == "False" && condition.message.contains(words)),
        };
        holds.then_some(()).ok_or_else(|| listed(&conditions))
    })
    .await;
}

/// Deletes an object of the second tenant. One that waits because it cannot prove what is its own is released by hand.
async fn remove<K: Kind + Serialize>(world: &World, name: &str) {
    delete::<K>(world, OTHER, name).await;
    let api = Api::<K>::namespaced(world.client.clone(), OTHER);
    let is_gone = eventually(&format!("{name} to go"), || async {
        if api.get_opt(name).await.unwrap().is_none() {
            return Ok(true);
        }
        let conditions = conditions::<K>(world, name).await;
        let deleting = api::conditions::find(&conditions, "Deleting");
        let reason = deleting.map(|condition| condition.reason.as_str());
        match reason {
            Some("IdentityUnknown" | "IdentityShared") => Ok(false),
            _ => Err(listed(&conditions)),
        }
    })
    .await;
    if !is_gone {
        release::<K>(world, OTHER, name).await;
    }
}

impl Owner {
    /// What is different from before in what was there; of what others may add to, without the additions.
    fn changed(&self, now: &Project) -> Vec<String> {
        let comparable = |(member, _): &(String, String), item: &Value| {
            let mut item = item.clone();
            if member == "server_groups" {
                // Nova lists the members of a group: it belongs to no cluster.
                item["members"] = Value::Null;
            }
            item
        };
        let mut changed = Vec::new();
        for (key, item) in &self.before {
            let now = now.get(key).map(|item| comparable(key, item));
            if now != Some(comparable(key, item)) {
                changed.push(format!("{key:?}: {item} is now {now:?}"));
            }
        }
        // A port on a router or load balancer of the owner changes what that connects.
        let devices = [&self.router, &self.balancer, &self.server];
        for (key, item) in now {
            let device = item["device_id"].as_str().unwrap_or_default();
            if !self.before.contains_key(key) && devices.iter().any(|id| *id == device) {
                changed.push(format!("{key:?}: {item} is new"));
            }
        }
        changed
    }

    /// Tries a cell with this object of kind `K`; `change` is a change of its spec that it accepts once it is ready.
    async fn tries<K: Kind + Serialize>(
        &self,
        who: &str,
        cell: &Cell,
        object: Value,
        change: Value,
    ) {
        let world = &self.world;
        let place = format!("{who} × {}: {}", cell.what, cell.field);
        let mut object = object;
        let mut answer = cell.answer;
        if cell.when == First {
            merge(&mut object, &cell.object);
        }
        // Nothing is done before the status is there, too.
        object["metadata"]["annotations"]["cluster.x-k8s.io/paused"] = json!("");
        make(world, object).await;
        let api = Api::<K>::namespaced(world.client.clone(), OTHER);
        let patch = async |patch: Value| {
            let patch = kube::api::Patch::Merge(&patch);
            let patched = api.patch(cell.name, &Default::default(), &patch).await;
            patched.unwrap();
        };
        let unpaused = json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": null}}});
        patch(unpaused).await;
        if cell.when == Late {
            reports::<K>(world, cell.name, Ready).await;
            let status = json!({"status": cell.object["status"]});
            let status = kube::api::Patch::Merge(&status);
            let patched = api
                .patch_status(cell.name, &Default::default(), &status)
                .await;
            patched.unwrap();
            // The condition tells that this generation was reconciled.
            patch(change).await;
            answer = Ready;
        }
        reports::<K>(world, cell.name, answer).await;
        let changed = self.changed(&project(world).await);
        assert!(changed.is_empty(), "{place}, reconciled: {changed:#?}");
        remove::<K>(world, cell.name).await;
        let now = project(world).await;
        let changed = self.changed(&now);
        assert!(changed.is_empty(), "{place}, deleted: {changed:#?}");
        assert_eq!(now, self.before, "{place}, deleted");
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_of_another_tenant_changes_nothing_that_it_names() {
    let owner = owner().await;
    for cell in owner.of_machines() {
        let name = cell.name;
        let mut object = joining(&owner.world, name, "theirs").await;
        if cell.when == Late {
            object["spec"]["ports"] = json!([{}]);
        }
        let change =
            json!({"spec": {"ports": [{"allowedAddressPairs": [{"ipAddress": "10.8.0.77"}]}]}});
        owner
            .tries::<OpenStackMachine>("machine", &cell, object, change)
            .await;
        delete::<Machine>(&owner.world, OTHER, name).await;
    }
    owner.world.machine_ready("cp-0").await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_of_another_tenant_changes_nothing_that_it_names() {
    let owner = owner().await;
    for cell in owner.of_clusters() {
        let object = cluster(cell.name, cell.object["spec"].clone());
        let change = json!({"spec": {"apiServer": {"managedLoadBalancer": {"allowedCIDRs": ["192.0.2.0/24"]}}}});
        owner
            .tries::<OpenStackCluster>("cluster", &cell, object, change)
            .await;
    }
    owner.world.cluster_ready().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_cluster_deletes_nothing_that_it_names() {
    let owner = owner().await;
    let world = &owner.world;
    let both = json!({CLUSTER_ID: owner.of_cluster, MACHINE_ID: owner.of_machine});
    let cells = owner
        .of_machines()
        .into_iter()
        .map(|cell| (cell, json!({})));
    let annotated = cell("server", "annotations", json!({}), Ready);
    for (cell, annotations) in cells.chain([(annotated, both)]) {
        let mut object = machine(cell.name);
        merge(&mut object, &cell.object);
        // As somebody writes it who wants the provider to delete what the object names.
        object["metadata"]["finalizers"] = json!([OF_MACHINE]);
        object["metadata"]["annotations"] = annotations;
        object["metadata"]["labels"] = json!({"cluster.x-k8s.io/cluster-name": "nobodys"});
        make(world, object).await;
        remove::<OpenStackMachine>(world, cell.name).await;
        assert_eq!(
            project(world).await,
            owner.before,
            "{}: {}",
            cell.what,
            cell.field
        );
    }
    for cell in owner.of_clusters() {
        let mut object = cluster(cell.name, cell.object["spec"].clone());
        object["status"] = cell.object["status"].clone();
        object["metadata"]["finalizers"] = json!([OF_CLUSTER]);
        object["metadata"]["labels"] = json!({"cluster.x-k8s.io/cluster-name": "nobodys"});
        make(world, object).await;
        remove::<OpenStackCluster>(world, cell.name).await;
        assert_eq!(
            project(world).await,
            owner.before,
            "{}: {}",
            cell.what,
            cell.field
        );
    }
    owner.world.machine_ready("cp-0").await;
    owner.world.cluster_ready().await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_in_whose_network_another_one_lives_waits_for_it_and_keeps_its_router() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    let status = world.cluster_ready().await.status.unwrap();
    other_tenant(&world).await;
    let (network, router) = (status.network.unwrap(), status.router.unwrap());
    let group = status.worker_security_group.unwrap().id;
    let spec = json!({"network": {"id": network.id}, "managedSecurityGroups": {},
        "apiServer": {"managedLoadBalancer": {}}});
    make(&world, cluster("thief", spec)).await;
    reports::<OpenStackCluster>(&world, "thief", Ready).await;
    let mut lodger = joining(&world, "lodger", "thief").await;
    lodger["spec"]["securityGroups"] = json!([{"id": group}]);
    make(&world, lodger).await;
    reports::<OpenStackMachine>(&world, "lodger", Ready).await;
    let thief = raw::<OpenStackCluster>(&world, OTHER, "thief").await;
    let identity = thief["metadata"]["annotations"][CLUSTER_ID]
        .as_str()
        .unwrap();
    let is_needed = |((_, id), item): &(&(String, String), &Value)| {
        let text = item.to_string();
        text.contains(identity)
            || [&network.id, &router.id].contains(&id)
            || item["device_id"] == json!(router.id)
    };
    let needed = |project: &Project| {
        let items = project.iter().filter(is_needed);
        items
            .map(|(key, item)| (key.clone(), item.clone()))
            .collect::<Project>()
    };
    let before = needed(&settled(&world).await);

    world.delete::<OpenStackCluster>("demo").await;
    let words = format!("of the cluster with identity {identity} is in the network");
    let condition = world.cluster_says("Deleting", &words).await;
    assert!(
        condition.message.ends_with("delete that cluster"),
        "{}",
        condition.message
    );
    let now = settled(&world).await;
    assert_eq!(needed(&now), before);
    let group = ("security_groups".to_owned(), group);
    assert!(now.contains_key(&group), "its machine is in it");
    reports::<OpenStackCluster>(&world, "thief", Ready).await;

    // Then its machine alone holds the network and the group.
    let session = world.session().await;
    let project_id = session.project_id().await.unwrap();
    let balancers = session
        .load_balancer()
        .load_balancers(&project_id)
        .await
        .unwrap();
    assert_eq!(balancers.len(), 1, "that of demo is gone");
    delete::<OpenStackCluster>(&world, OTHER, "thief").await;
    let machines = "aiting for 1 machines to be deleted: lodger";
    eventually("the machine first", || async {
        let text = listed(&conditions::<OpenStackCluster>(&world, "thief").await);
        text.contains(machines).then_some(()).ok_or(text)
    })
    .await;
    remove::<OpenStackMachine>(&world, "lodger").await;
    delete::<Machine>(&world, OTHER, "lodger").await;
    let api = Api::<OpenStackCluster>::namespaced(world.client.clone(), OTHER);
    eventually("the other cluster to go", || async {
        let left = api.get_opt("thief").await.unwrap();
        left.map_or(Ok(()), |_| Err("it is there".to_owned()))
    })
    .await;
    world.poke::<OpenStackCluster>("demo").await;
    world.gone::<OpenStackCluster>("demo").await;
    assert!(needed(&project(&world).await).is_empty());
}
