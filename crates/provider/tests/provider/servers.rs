//! Servers that need neither a Machine nor a Cluster.

use std::collections::BTreeMap;

use api::infra::v1alpha1::{OpenStackFloatingIPPool, OpenStackServer};
use kube::ResourceExt;
use openstack::Service;
use serde_json::{Value, json};
use simulator::cloud::Options as CloudOptions;

use crate::lives::{Life, each_fails_once, failures, killed_at};
use crate::world::{MINUTE, World, eventually, listed};

const V1ALPHA1: &str = "infrastructure.cluster.x-k8s.io/v1alpha1";
const MACHINE_ID: &str = "infrastructure.cluster.x-k8s.io/ferrostack-machine-id";

fn server(spec: Value) -> Value {
    let mut object = json!({"apiVersion": V1ALPHA1, "kind": "OpenStackServer",
        "metadata": {"name": "alone"},
        "spec": {"identityRef": {"name": "demo-cloud-config", "cloudName": "simulated"},
            "flavor": "m1.small", "image": {"filter": {"name": "ubuntu-24.04"}}, "sshKeyName": "",
            "ports": [{"network": {"filter": {"name": "private"}}}]}});
    for (name, value) in spec.as_object().unwrap() {
        object["spec"][name] = value.clone();
    }
    object
}

async fn network(world: &World, method: &str, path: &str, body: Value) -> Value {
    world.request(Service::Network, method, path, body).await
}

/// A network of the user, with a router to the outside.
async fn private(world: &World) {
    let id = |object: &Value, name: &str| object[name]["id"].clone();
    let outside = network(world, "GET", "/networks?router:external=true", Value::Null).await;
    let outside = &outside["networks"][0]["id"];
    let inside = network(
        world,
        "POST",
        "/networks",
        json!({"network": {"name": "private"}}),
    )
    .await;
    let subnet = json!({"subnet": {"network_id": id(&inside, "network"), "ip_version": 4,
        "cidr": "10.9.0.0/24", "name": "private"}});
    let subnet = network(world, "POST", "/subnets", subnet).await;
    let router = json!({"router": {"name": "r", "external_gateway_info": {"network_id": outside}}});
    let router = network(world, "POST", "/routers", router).await;
    let path = format!(
        "/routers/{}/add_router_interface",
        id(&router, "router").as_str().unwrap()
    );
    let interface = json!({"subnet_id": id(&subnet, "subnet")});
    network(world, "PUT", &path, interface).await;
}

async fn ready(world: &World) -> OpenStackServer {
    eventually("the server", || async {
        let object = world.api::<OpenStackServer>().get("alone").await.unwrap();
        let status = object.status.clone().unwrap_or_default();
        match status.ready {
            true => Ok(object),
            false => Err(listed(&status.conditions)),
        }
    })
    .await
}

async fn says(world: &World, type_: &str, words: &str) -> String {
    eventually(&format!("{type_}: {words}"), || async {
        let object = world.api::<OpenStackServer>().get("alone").await.unwrap();
        let status = object.status.unwrap_or_default();
        let found = api::conditions::find(&status.conditions, type_);
        let found = found.filter(|it| it.message.contains(words));
        found
            .map(|it| it.reason.clone())
            .ok_or(listed(&status.conditions))
    })
    .await
}

/// What is there of a server with everything that one may have.
async fn full(world: &World) {
    world
        .create(
            json!({"apiVersion": V1ALPHA1, "kind": "OpenStackFloatingIPPool",
            "metadata": {"name": "public"},
            "spec": {"identityRef": {"name": "demo-cloud-config", "cloudName": "simulated"},
                "reclaimPolicy": "Delete"}}),
        )
        .await;
    world
        .create(server(
            json!({"trunk": true, "tags": ["t"], "rootVolume": {"sizeGiB": 20},
            "floatingIPPoolRef": {"apiGroup": "infrastructure.cluster.x-k8s.io",
                "kind": "OpenStackFloatingIPPool", "name": "public"}}),
        ))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_without_a_cluster_comes_up_with_its_user_data_and_goes() {
    let world = World::start().await;
    private(&world).await;
    let before = world.cloud.resources();
    world
        .create(server(
            json!({"userDataRef": {"name": "u"}, "availabilityZone": "nova"}),
        ))
        .await;
    says(
        &world,
        "InstanceReady",
        "Secret u with the bootstrap data has no key value",
    )
    .await;
    assert_eq!(world.count("server"), 0);
    world
        .create(
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "u"},
            "stringData": {"value": "#cloud-config\n"}}),
        )
        .await;
    let object = ready(&world).await;
    let status = object.status.unwrap();
    assert_eq!(status.instance_state.as_deref(), Some("ACTIVE"));
    assert!(
        status
            .addresses
            .iter()
            .any(|it| it.address.starts_with("10.9.0."))
    );
    assert!(status.resolved.unwrap().flavor_id.is_some());
    assert_eq!(status.resources.unwrap().ports.len(), 1);
    for type_ in ["InstanceReady", "OpenStackAuthenticationSucceeded", "Ready"] {
        assert!(
            api::conditions::is_true(&status.conditions, type_),
            "{type_}"
        );
    }
    let writes = world.writes();
    world.poke::<OpenStackServer>("alone").await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.writes(), writes);
    world.delete::<OpenStackServer>("alone").await;
    world.gone::<OpenStackServer>("alone").await;
    assert_eq!(world.cloud.resources(), before);
}

#[tokio::test(start_paused = true)]
async fn a_server_has_volumes_trunks_and_the_address_of_a_pool() {
    let world = World::start().await;
    private(&world).await;
    let before = world.cloud.resources();
    full(&world).await;
    let status = ready(&world).await.status.unwrap();
    assert!(status.addresses.iter().any(|it| it.type_ == "ExternalIP"));
    assert!(api::conditions::is_true(
        &status.conditions,
        "FloatingAddressFromPoolReady"
    ));
    let count = |kind| world.count(kind);
    assert_eq!(
        (count("volume"), count("trunk"), count("floatingip")),
        (1, 1, 1)
    );
    world.delete::<OpenStackServer>("alone").await;
    world.gone::<OpenStackServer>("alone").await;
    world.delete::<OpenStackFloatingIPPool>("public").await;
    world.gone::<OpenStackFloatingIPPool>("public").await;
    assert_eq!(world.cloud.resources(), before);
}

#[tokio::test(start_paused = true)]
async fn what_a_server_refers_to_in_vain_is_a_condition() {
    let world = World::start().await;
    private(&world).await;
    world.create(server(json!({"flavor": "m1.huge"}))).await;
    let reason = says(&world, "InstanceReady", "flavor `m1.huge` does not exist").await;
    assert_eq!(reason, "DependencyFailed");
    world.delete::<OpenStackServer>("alone").await;
    world.gone::<OpenStackServer>("alone").await;
    world.create(server(json!({"ports": [{}]}))).await;
    says(
        &world,
        "InstanceReady",
        "give network or fixedIPs for every port",
    )
    .await;
    assert_eq!(world.count("server"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_somebody_deleted_is_not_created_again() {
    let world = World::start().await;
    private(&world).await;
    world.create(server(json!({}))).await;
    let id = ready(&world).await.status.unwrap().instance_id.unwrap();
    let path = format!("/servers/{id}");
    world
        .request(Service::Compute, "DELETE", &path, Value::Null)
        .await;
    let reason = says(&world, "InstanceReady", "was deleted by somebody else").await;
    assert_eq!(reason, "InstanceDeleted");
    assert!(
        !world
            .api::<OpenStackServer>()
            .get("alone")
            .await
            .unwrap()
            .status
            .unwrap()
            .ready
    );
    world.delete::<OpenStackServer>("alone").await;
    world.gone::<OpenStackServer>("alone").await;
    assert_eq!(world.count("server"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_lost_its_annotation_finds_it_and_a_copy_does_not_act() {
    let mut world = World::start().await;
    private(&world).await;
    world.create(server(json!({}))).await;
    let before = ready(&world).await;
    world.kill().await;
    world.replace::<OpenStackServer>("alone").await;
    world.run();
    let object = eventually("the annotation", || async {
        let object = world.api::<OpenStackServer>().get("alone").await.unwrap();
        let same = object.annotations().get(MACHINE_ID) == before.annotations().get(MACHINE_ID);
        match same {
            true => Ok(object),
            false => Err(format!("{:?}", object.metadata)),
        }
    })
    .await;
    ready(&world).await;
    assert_eq!(world.count("server"), 1);
    let mut copy = server(json!({}));
    copy["metadata"] = json!({"name": "copy", "annotations": object.annotations()});
    world.create(copy).await;
    let reason = says(&world, "Ready", "copy").await;
    assert_eq!(reason, "IdentityShared");
    assert_eq!(world.count("server"), 1);
}

#[tokio::test(start_paused = true)]
async fn what_another_provider_made_for_a_machine_is_left_alone() {
    let world = World::start().await;
    private(&world).await;
    let before = world.cloud.resources();
    let mut object = server(json!({}));
    object["metadata"]["ownerReferences"] = json!([{"kind": "OpenStackMachine", "name": "m",
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "uid": "u"}]);
    world.create(object).await;
    says(
        &world,
        "InstanceReady",
        "nother provider has created this for OpenStackMachine m",
    )
    .await;
    assert_eq!(world.cloud.resources(), before);
}

#[tokio::test(start_paused = true)]
async fn the_api_refuses_what_the_go_provider_refuses_of_a_server() {
    let world = World::open(CloudOptions::default()).await;
    let device =
        |name: &str, storage: Value| json!({"name": name, "sizeGiB": 1, "storage": storage});
    let volume = |zone: Value| json!({"type": "Volume", "volume": {"availabilityZone": zone}});
    let devices = |all: Value| json!({"additionalBlockDevices": all});
    let hint = |value: Value| json!({"schedulerHintAdditionalProperties": [{"name": "h", "value": value}]});
    let root = |zone: Value| json!({"rootVolume": {"sizeGiB": 1, "availabilityZone": zone}});
    let metadata =
        |key: String, value: String| json!({"serverMetadata": [{"key": key, "value": value}]});
    let long = "x".repeat(256);
    let refused = [
        json!({"flavor": null}),
        json!({"flavor": ""}),
        json!({"flavor": null, "flavorID": ""}),
        json!({"image": {}}),
        json!({"image": {"filter": {"name": "a"}, "id": "00000000-0000-0000-0000-000000000001"}}),
        json!({"ports": null}),
        json!({"sshKeyName": null}),
        json!({"identityRef": null}),
        json!({"identityRef": {"name": "n", "cloudName": "c", "type": "Other"}}),
        json!({"rootVolume": {"sizeGiB": 0}}),
        root(json!({})),
        root(json!({"from": "Machine", "name": "a"})),
        root(json!({"name": "a b"})),
        devices(json!([
            device("a", json!({"type": "Local"})),
            device("a", json!({"type": "Local"}))
        ])),
        devices(json!([device("a", json!({"type": "Tape"}))])),
        devices(json!([device("a", volume(json!({"from": "Name"})))])),
        devices(json!([device(
            "a",
            volume(json!({"from": "Machine", "name": "a"}))
        )])),
        hint(json!({"type": "Bool", "number": 1})),
        hint(json!({"type": "Number", "bool": true})),
        hint(json!({"type": "String", "string": ""})),
        metadata(long.clone(), "v".to_owned()),
        metadata("k".to_owned(), long),
        json!({"serverGroup": {}}),
        json!({"floatingIPPoolRef": {"kind": "k"}}),
        json!({"ports": [{"network": {}}]}),
    ];
    let servers = world.api::<OpenStackServer>();
    let create = |object: Value| {
        let kind = kube::api::ApiResource::erase::<OpenStackServer>(&());
        let api = kube::Api::<kube::api::DynamicObject>::namespaced_with(
            world.client.clone(),
            "default",
            &kind,
        );
        async move {
            let object = serde_json::from_value(object).unwrap();
            api.create(&Default::default(), &object).await.map(drop)
        }
    };
    for spec in refused {
        let mut object = server(spec.clone());
        let fields = object["spec"].as_object_mut().unwrap();
        fields.retain(|_, value| !value.is_null());
        let error = create(object).await.expect_err(&spec.to_string());
        assert!(error.to_string().contains("spec"), "{spec}: {error}");
    }
    let allowed = [
        json!({"flavorID": "f"}),
        root(json!({"name": "a"})),
        root(json!({"from": "Machine"})),
        devices(json!([
            device("a", json!({"type": "Local"})),
            device("b", volume(json!({"from": "Machine"})))
        ])),
        hint(json!({"type": "Number", "number": 7})),
    ];
    for spec in allowed {
        create(server(spec)).await.unwrap();
        let change = json!({"spec": {"flavor": "other"}});
        let patch = kube::api::Patch::Merge(&change);
        let error = servers.patch("alone", &Default::default(), &patch).await;
        assert!(error.unwrap_err().to_string().contains("spec.flavor"));
        world.delete::<OpenStackServer>("alone").await;
    }
}

/// The life of a server with everything that one may have.
struct OfServer;

impl Life for OfServer {
    const STAGES: &'static [&'static str] = &["created", "deleted", "without a pool"];

    async fn begin(world: &World, stage: &str) {
        match stage {
            "created" => full(world).await,
            "deleted" => world.delete::<OpenStackServer>("alone").await,
            _ => world.delete::<OpenStackFloatingIPPool>("public").await,
        }
    }

    async fn end(world: &World, stage: &str) {
        match stage {
            "created" => drop(ready(world).await),
            "deleted" => world.gone::<OpenStackServer>("alone").await,
            _ => world.gone::<OpenStackFloatingIPPool>("public").await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn killed_at_any_write_a_server_ends_the_same() {
    let mut world = World::open(CloudOptions::default()).await;
    world.run();
    private(&world).await;
    let (before, mut expected) = (world.cloud.resources(), None);
    for nth in 1.. {
        let look = |world: &World, stage| {
            if stage == "created" {
                let there = world.cloud.resources();
                let known = expected.get_or_insert_with(|| there.clone());
                assert_eq!(there, *known, "killed at write {nth}");
            }
        };
        let was_cut = killed_at::<OfServer>(&mut world, nth, look).await;
        assert_eq!(world.cloud.resources(), before, "killed at write {nth}");
        world.run();
        if !was_cut {
            assert!(nth > 12, "only {nth} writes");
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_every_kind_of_write_fails_once_ends_the_same() {
    const WRITES: [(&str, &str, &str); 9] = [
        ("compute", "POST", "/v2.1/servers"),
        ("compute", "DELETE", "/v2.1/servers/*"),
        ("network", "POST", "/v2.0/ports"),
        ("network", "PUT", "/v2.0/*"),
        ("network", "DELETE", "/v2.0/ports/*"),
        ("network", "POST", "/v2.0/trunks"),
        ("network", "DELETE", "/v2.0/trunks/*"),
        ("network", "POST", "/v2.0/floatingips"),
        ("network", "PUT", "/v2.0/floatingips/*"),
    ];
    for action in failures() {
        let world = World::start().await;
        private(&world).await;
        let before = world.cloud.resources();
        each_fails_once(&world, &WRITES, &action).await;
        for stage in OfServer::STAGES {
            OfServer::begin(&world, stage).await;
            OfServer::end(&world, stage).await;
            if *stage == "created" {
                eventually("one of each", || async {
                    let count = |kind| world.count(kind);
                    let there = (count("server"), count("trunk"), count("volume"));
                    (there == (1, 1, 1))
                        .then_some(())
                        .ok_or(format!("{action}: {there:?}"))
                })
                .await;
            }
        }
        let left: BTreeMap<_, _> = world.cloud.resources();
        assert_eq!(left, before, "{action}");
    }
}
