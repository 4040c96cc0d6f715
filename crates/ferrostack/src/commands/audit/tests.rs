use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use apiserver::ApiServer;
use clap::Parser as _;
use clusterapi::remote::{ClusterKey, Connector};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use openstack::transport::{InProcess, Limits, SharedTransport};
use openstack::{CloudConfig, Service, SessionOptions};
use operator::client::Api;
use secrecy::SecretString;
use serde_json::{Value, json};
use simulator::cloud::{Cloud, Options};

use provider::identity::Identity;

use super::*;
use crate::cli::{Cli, Command};
use crate::commands::csi::orphans::Claimed;

const URL: &str = "http://cloud";
/// Identities of a cluster and a machine that are there, and of those that are not.
const CLUSTER: &str = "aaaaaaaa-0000-4000-8000-000000000001";
const MACHINE: &str = "aaaaaaaa-0000-4000-8000-000000000002";
const NO_CLUSTER: &str = "bbbbbbbb-0000-4000-8000-000000000001";
const POOL: &str = "cccccccc-0000-4000-8000-00000000000f";
const NO_MACHINE: &str = "bbbbbbbb-0000-4000-8000-000000000002";
/// The uid of a Service that is not there.
const NO_SERVICE: &str = "bbbbbbbb-0000-4000-8000-000000000003";

/// A management cluster with one cluster, the API server of that, and a cloud.
struct World {
    cloud: Cloud,
    transport: SharedTransport,
    token: http::HeaderValue,
    session: Session,
    client: Client,
    workload: Client,
    /// The uid of the workload cluster.
    uid: String,
    answers: bool,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("World")
    }
}

impl Connector for World {
    fn connect<'a>(
        &'a self,
        _: &'a ClusterKey,
        _: &'a SecretString,
    ) -> BoxFuture<'a, Result<Client, String>> {
        let answer = match self.answers {
            true => Ok(self.workload.clone()),
            false => Err("connection refused".to_owned()),
        };
        async move { answer }.boxed()
    }
}

async fn server(definitions: Vec<CustomResourceDefinition>) -> Client {
    let options = apiserver::Options {
        hooks: Arc::new(management::Rules),
        ..apiserver::Options::default()
    };
    let server = ApiServer::open(options).await.unwrap();
    let client = Client::new(server.in_process(), "default");
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in definitions.into_iter().map(management::converted) {
        api.create(&PostParams::default(), &definition)
            .await
            .unwrap();
    }
    client
}

async fn create(client: &Client, object: Value) -> DynamicObject {
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let types = object.types.clone().unwrap();
    let (group, version) = types
        .api_version
        .split_once('/')
        .unwrap_or(("", &types.api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &types.kind));
    let api: Api<DynamicObject> = match types.kind.as_str() {
        "PersistentVolume" => Api::all_with(client.clone(), &resource),
        _ => Api::namespaced_with(client.clone(), "default", &resource),
    };
    let status = object.data["status"].clone();
    let created = api.create(&PostParams::default(), &object).await.unwrap();
    if status.is_object() {
        let name = created.metadata.name.clone().unwrap();
        let patch = Patch::Merge(json!({"status": status}));
        api.patch_status(&name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }
    created
}

impl World {
    async fn open() -> Self {
        let cloud = Cloud::open(Options::default()).await.unwrap();
        let transport: SharedTransport = Arc::new(InProcess::new(cloud.router(URL)));
        let config = CloudConfig::parse(&cloud.clouds_yaml(URL), "simulated").unwrap();
        let options = SessionOptions {
            transport: Some(Arc::clone(&transport)),
            ..SessionOptions::default()
        };
        let session = Session::connect(config, &options).await.unwrap();
        let login = json!({"auth": {"identity": {"methods": ["password"], "password": {"user":
            {"name": "demo", "password": "secret", "domain": {"id": "default"}}}},
            "scope": {"project": {"name": "demo", "domain": {"id": "default"}}}}});
        let request = http::Request::post(format!("{URL}/identity/v3/auth/tokens"))
            .header("content-type", "application/json")
            .body(bytes::Bytes::from(login.to_string()));
        let limits = Limits::object(Duration::from_secs(60));
        let answer = transport.send(request.unwrap(), limits).await.unwrap();
        let (client, workload) = (server(api::crds::all()).await, server(Vec::new()).await);
        let uid = Claimed::read(&workload).await.unwrap().cluster_uid;
        let world = Self {
            token: answer.headers()["x-subject-token"].clone(),
            cloud,
            transport,
            session,
            client,
            workload,
            uid,
            answers: true,
        };
        world.objects().await;
        world
    }

    /// Cluster `demo` with a machine, and its kubeconfig.
    async fn objects(&self) {
        let label = json!({"cluster.x-k8s.io/cluster-name": "demo"});
        let group = "infrastructure.cluster.x-k8s.io";
        for object in [
            json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "demo",
                "annotations": {"ferrostack.dev/workload-cluster-uid": self.uid}},
                "spec": {"infrastructureRef": {"apiGroup": group, "kind": "OpenStackCluster", "name": "demo"}}}),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "demo-kubeconfig"}, "stringData": {"value": "text"}}),
            json!({"apiVersion": format!("{group}/v1beta2"), "kind": "OpenStackCluster", "metadata": {"name": "demo",
                "labels": label, "annotations": {format!("{group}/ferrostack-cluster-id"): CLUSTER}},
                "spec": {"identityRef": {"name": "secret", "cloudName": "simulated"}}}),
            json!({"apiVersion": format!("{group}/v1beta2"), "kind": "OpenStackMachine", "metadata": {"name": "demo-0",
                "labels": label, "annotations": {format!("{group}/ferrostack-machine-id"): MACHINE}},
                "spec": {"flavor": {"filter": {"name": "m1.small"}}, "image": {"filter": {"name": "ubuntu-24.04"}}}}),
        ] {
            create(&self.client, object).await;
        }
    }

    /// A POST of another user in the project; returns what was created.
    async fn post(&self, service: Service, path: &str, body: Value) -> Value {
        let base = self.session.endpoint(service).await.unwrap();
        let request = http::Request::post(format!("{base}{path}"))
            .header("content-type", "application/json")
            .header("openstack-api-version", "compute 2.79, volume 3.0")
            .header("x-auth-token", self.token.clone())
            .body(bytes::Bytes::from(body.to_string()));
        let limits = Limits::object(Duration::from_secs(60));
        let answer = self.transport.send(request.unwrap(), limits).await.unwrap();
        assert!(answer.status().is_success(), "{path} {body}: {answer:?}");
        let answer: Value = serde_json::from_slice(answer.body()).unwrap();
        let parts = answer.as_object().unwrap();
        parts.values().next().unwrap().clone()
    }

    async fn network(&self, path: &str, what: &str, body: Value) -> String {
        id(&self.post(Service::Network, path, json!({what: body})).await)
    }

    async fn volume(&self, name: &str, description: &str, metadata: Value) -> String {
        let body = json!({"volume": {"name": name, "description": description, "size": 1, "metadata": metadata}});
        id(&self.post(Service::Volume, "/volumes", body).await)
    }

    async fn balancer(&self, name: &str, description: &str, subnet: &str, tags: &[&str]) -> String {
        let body = json!({"loadbalancer": {"name": name, "description": description, "vip_subnet_id": subnet, "tags": tags}});
        id(&self
            .post(Service::LoadBalancer, "/lbaas/loadbalancers", body)
            .await)
    }

    async fn server(&self, name: &str, network: &str, tags: &[&str]) -> String {
        let (compute, image) = (self.session.compute(), self.session.image());
        let flavors = compute.flavors().await.unwrap();
        let images = image
            .list(&openstack::image::ImageQuery::default())
            .await
            .unwrap();
        let body = json!({"server": {"name": name, "flavorRef": flavors[0].id, "imageRef": images[0].id,
            "networks": [{"uuid": network}], "tags": tags}});
        id(&self.post(Service::Compute, "/servers", body).await)
    }

    async fn floating_ip(&self, description: &str) -> String {
        let networks = self.session.network().networks(&[]).await.unwrap();
        let external = networks.iter().find(|network| network.external).unwrap();
        let body = json!({"floating_network_id": external.id, "description": description});
        self.network("/floatingips", "floatingip", body).await
    }

    /// Output of the command, and its exit status.
    async fn audit(&self, flags: &[&str]) -> anyhow::Result<(String, ExitCode)> {
        let mut words = vec!["ferrostack", "audit", "--cloud", "simulated"];
        words.extend(flags);
        let Command::Audit(mut args) = Cli::try_parse_from(words)?.command else {
            panic!("another command");
        };
        args.older_than = Duration::ZERO;
        let options = InventoryOptions {
            background: false,
            ..InventoryOptions::default()
        };
        let inventory = Inventory::new(self.session.clone(), options);
        let printed = RefCell::new(String::new());
        let print = |text: &str| {
            printed.borrow_mut().push_str(text);
            Ok(())
        };
        let nobody = async |question: String| panic!("{question}");
        let place = Sources {
            client: &self.client,
            inventory: &inventory,
            connector: self,
        };
        let code = of_project(&args, place, &Environment::default(), print, nobody).await;
        code.map(|code| (printed.take(), code))
            .map_err(|error| error.context(printed.take()))
    }

    /// The ids of the findings of a sort.
    async fn found(&self, flags: &[&str], class: &str) -> BTreeSet<String> {
        let mut all = vec!["-o", "json"];
        all.extend(flags);
        let (text, _) = self.audit(&all).await.unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        let findings = document["findings"].as_array().unwrap().iter();
        findings.filter(|it| it["class"] == class).map(id).collect()
    }
}

fn id(object: &Value) -> String {
    object["id"].as_str().unwrap().to_owned()
}

/// A hundred resources of others, and of what is there: some with names and texts that are almost ours. Returns a network and
/// a subnet of them.
async fn others(world: &World) -> (String, String) {
    let mark = format!("[{CLUSTER}]");
    let body = json!({"name": "shop", "description": "of the shop"});
    let shop = world.network("/networks", "network", body).await;
    let body = json!({"network_id": shop, "ip_version": 4, "cidr": "192.168.0.0/16"});
    let subnet = world.network("/subnets", "subnet", body).await;
    for index in 0..10 {
        let text = ["", "[not a mark]", "k8s", &mark][index % 4];
        let body = json!({"name": format!("net-{index}"), "description": text});
        world.network("/networks", "network", body).await;
        let body = json!({"name": format!("router-{index}"), "description": text});
        world.network("/routers", "router", body).await;
        let body = json!({"name": format!("group-{index}"), "description": text});
        world
            .network("/security-groups", "security_group", body)
            .await;
        let body =
            json!({"name": format!("port-{index}"), "network_id": shop, "description": text});
        world.network("/ports", "port", body).await;
        world.floating_ip(text).await;
        world
            .volume(&format!("pvc-{index}"), text, json!({"of": "the shop"}))
            .await;
        world
            .volume(
                &format!("data-{index}"),
                text,
                json!({"cinder.csi.openstack.org/cluster-uid": "x"}),
            )
            .await;
        world
            .balancer(&format!("lb-{index}"), text, &subnet, &["web"])
            .await;
        world.server(&format!("vm-{index}"), &shop, &["shop"]).await;
    }
    // What has an owner: of the machine, of a Service and of a PersistentVolume.
    let of_machine = format!("[{CLUSTER}/{MACHINE}]");
    let body = json!({"name": "demo-0", "network_id": shop, "description": of_machine});
    world.network("/ports", "port", body).await;
    let tags = [
        format!("ferrostack:cluster={CLUSTER}"),
        format!("ferrostack:machine={MACHINE}"),
    ];
    world.server("demo-0", &shop, &[&tags[0], &tags[1]]).await;
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"ports": [{"port": 80}]}});
    let service = create(&world.workload, service).await.metadata.uid.unwrap();
    for family in ["", "-IPv6"] {
        let tags = [
            format!("ferrostack-cluster={}", world.uid),
            format!("ferrostack-service={service}{family}"),
        ];
        world
            .balancer(
                "kube_service_kubernetes_default_web",
                "",
                &subnet,
                &[&tags[0], &tags[1]],
            )
            .await;
    }
    world
        .floating_ip(&format!("Floating IP for x (ferrostack-service={service})"))
        .await;
    let volume = world.volume("pvc-web", "", csi(world)).await;
    create(
        &world.workload,
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pvc-web"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "cinder.csi.openstack.org", "volumeHandle": volume}}}),
    )
    .await;
    (shop, subnet)
}

fn csi(world: &World) -> Value {
    json!({"cinder.csi.openstack.org/cluster": "kubernetes", "cinder.csi.openstack.org/cluster-uid": world.uid})
}

/// Leaks whose owner is certainly gone: of a machine, of a Service and of a claim of a cluster that is there.
async fn certain(world: &World, shop: &str, subnet: &str) -> BTreeSet<String> {
    let mark = format!("[{CLUSTER}/{NO_MACHINE}]");
    let tags = [
        format!("ferrostack:cluster={CLUSTER}"),
        format!("ferrostack:machine={NO_MACHINE}"),
    ];
    let body = json!({"name": "demo-1", "network_id": shop, "description": mark});
    let port = world.network("/ports", "port", body).await;
    let body = json!({"name": "demo-1", "port_id": port, "description": mark});
    let (ours, service) = (
        format!("ferrostack-cluster={}", world.uid),
        format!("ferrostack-service={NO_SERVICE}"),
    );
    let group = json!({"name": "lb-sg-x", "description": format!("x ({ours}) ({service})")});
    let text = format!(
        "Floating IP for Kubernetes external service default/x from cluster kubernetes ({service})"
    );
    let lost = world.volume("pvc-lost", "", csi(world)).await;
    let snapshot =
        json!({"snapshot": {"name": "snapshot-lost", "volume_id": lost, "metadata": csi(world)}});
    [
        world.network("/trunks", "trunk", body).await,
        port,
        world.server("demo-1", shop, &[&tags[0], &tags[1]]).await,
        world.volume("demo-1-root", &mark, json!({})).await,
        world
            .balancer(
                "kube_service_kubernetes_default_x",
                "",
                subnet,
                &[&ours, &service],
            )
            .await,
        world
            .network("/security-groups", "security_group", group)
            .await,
        // Without room for the uid of the cluster.
        world.floating_ip(&text).await,
        id(&world.post(Service::Volume, "/snapshots", snapshot).await),
        lost,
    ]
    .into()
}

/// Leaks of a cluster that no object is: it may be in another management cluster.
async fn elsewhere(world: &World) -> BTreeSet<String> {
    let mark = format!("k8s [{NO_CLUSTER}]");
    let body = json!({"name": "n", "description": mark});
    let network = world.network("/networks", "network", body.clone()).await;
    let subnet =
        json!({"network_id": network, "ip_version": 4, "cidr": "10.9.0.0/24", "description": mark});
    let subnet = world.network("/subnets", "subnet", subnet).await;
    let router = world.network("/routers", "router", body.clone()).await;
    let interface = json!({"subnet_id": subnet});
    let path = format!("/routers/{router}/add_router_interface");
    let base = world.session.network();
    base.add_router_interface(&router, &subnet)
        .await
        .unwrap_or_else(|error| panic!("{path} {interface}: {error}"));
    [
        world
            .network("/security-groups", "security_group", body)
            .await,
        world.balancer("api", &mark, &subnet, &[]).await,
        world.floating_ip(&mark).await,
        network,
        subnet,
        router,
    ]
    .into()
}

/// Leaks that are only named as ours.
async fn unmarked(world: &World, subnet: &str) -> BTreeSet<String> {
    let group = json!({"name": "k8s-cluster-default-old-secgroup-worker"});
    let network = json!({"name": "k8s-clusterapi-cluster-default-old"});
    let go = json!({"cinder.csi.openstack.org/cluster": "kubernetes"});
    [
        world
            .network("/security-groups", "security_group", group)
            .await,
        world.network("/networks", "network", network).await,
        world.volume("pvc-go", "", go).await,
        world
            .balancer("kube_service_kubernetes_default_go", "", subnet, &[])
            .await,
        world
            .floating_ip(
                "Floating IP for Kubernetes external service default/go from cluster kubernetes",
            )
            .await,
    ]
    .into()
}

// The clock of the cloud is that of the process, by which volumes have an age.
#[tokio::test]
async fn twenty_leaks_among_a_hundred_resources_are_found_and_deleted_and_nothing_else_is() {
    let world = World::open().await;
    let (shop, subnet) = others(&world).await;
    let (text, code) = world.audit(&[]).await.unwrap();
    assert_eq!(
        (text.as_str(), code),
        ("Nothing is found.\n", ExitCode::SUCCESS)
    );
    let before = world.cloud.resources();
    assert!(before["demo"].values().sum::<usize>() > 100, "{before:?}");

    let unmarked = unmarked(&world, &subnet).await;
    let kept = world.cloud.resources();
    let certain = certain(&world, &shop, &subnet).await;
    let elsewhere = elsewhere(&world).await;
    assert_eq!(certain.len() + elsewhere.len() + unmarked.len(), 20);
    let all: BTreeSet<String> = certain.union(&elsewhere).cloned().collect();
    assert_eq!(world.found(&[], "orphan").await, all);
    assert_eq!(world.found(&[], "unmarked").await, unmarked);
    assert_eq!(world.found(&[], "drift").await, BTreeSet::new());
    let (text, code) = world.audit(&[]).await.unwrap();
    assert_eq!(code, ExitCode::from(FOUND));
    let sum = "20 findings: 15 without an owner, of which 9 can be deleted; 5 without a mark; 0 missing\n";
    assert!(text.ends_with(sum), "{text}");

    let error = world.audit(&["--delete"]).await.unwrap_err();
    assert!(format!("{error:#}").contains("give --yes"), "{error:#}");
    let (text, code) = world.audit(&["--delete", "--yes"]).await.unwrap();
    assert_eq!(code, ExitCode::from(FOUND), "{text}");
    assert_eq!(world.found(&[], "orphan").await, elsewhere);
    let (text, _) = world
        .audit(&["--delete", "--yes", "--alone"])
        .await
        .unwrap();
    assert_eq!(text.matches(": deleted\n").count(), 6, "{text}");
    assert_eq!(world.cloud.resources(), kept);
    assert_eq!(world.found(&[], "unmarked").await, unmarked);
}

#[tokio::test(start_paused = true)]
async fn what_a_cluster_that_does_not_answer_has_is_not_judged_and_that_is_told() {
    let mut world = World::open().await;
    let (shop, subnet) = others(&world).await;
    world.answers = false;
    let certain = certain(&world, &shop, &subnet).await;
    // Those of the machine.
    assert_eq!(
        world
            .found(&[], "orphan")
            .await
            .intersection(&certain)
            .count(),
        4
    );
    let (text, _) = world.audit(&["--delete", "--yes"]).await.unwrap();
    assert!(
        text.contains("cluster default/demo have is not judged: connection refused"),
        "{text}"
    );
    assert_eq!(text.matches(": deleted\n").count(), 4, "{text}");
}

#[tokio::test(start_paused = true)]
async fn what_objects_name_and_the_project_has_not_is_drift() {
    let world = World::open().await;
    let body = json!({"name": "n", "description": format!("x [{CLUSTER}]")});
    let network = world.network("/networks", "network", body).await;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(
        "infrastructure.cluster.x-k8s.io",
        "v1beta2",
        "OpenStackCluster",
    ));
    let api: Api<DynamicObject> = Api::namespaced_with(world.client.clone(), "default", &resource);
    let status = json!({"status": {"network": {"id": network, "name": "n"}, "router": {"id": "gone", "name": "r"}}});
    api.patch_status("demo", &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
    assert_eq!(world.found(&[], "drift").await, ["gone".to_owned()].into());
}

#[tokio::test(start_paused = true)]
async fn what_others_use_is_kept() {
    let world = World::open().await;
    let mark = format!("x [{NO_CLUSTER}]");
    let network = world
        .network(
            "/networks",
            "network",
            json!({"name": "n", "description": mark}),
        )
        .await;
    let body = json!({"network_id": network, "ip_version": 4, "cidr": "10.9.0.0/24"});
    world.network("/subnets", "subnet", body).await;
    let group = world
        .network(
            "/security-groups",
            "security_group",
            json!({"name": "g", "description": mark}),
        )
        .await;
    let body = json!({"name": "of a user", "network_id": network, "security_groups": [group]});
    world.network("/ports", "port", body).await;
    let (text, code) = world
        .audit(&["--delete", "--yes", "--alone"])
        .await
        .unwrap();
    assert_eq!(code, ExitCode::from(FOUND));
    assert_eq!(text.matches("of others uses it").count(), 2, "{text}");
    assert_eq!(text.matches(": deleted").count(), 0, "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_address_of_a_pool_that_is_gone_is_shown_and_kept() {
    let world = World::open().await;
    let pool = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "OpenStackFloatingIPPool",
        "metadata": {"name": "there", "namespace": "default",
            "annotations": {"infrastructure.cluster.x-k8s.io/ferrostack-pool-id": POOL}},
        "spec": {"identityRef": {"name": "cloud", "cloudName": "simulated"}, "reclaimPolicy": "Retain"}});
    create(&world.client, pool).await;
    let described = |id: &str| Identity::parse(id).unwrap().pool_description("a pool");
    world.floating_ip(&described(POOL)).await;
    let left = world.floating_ip(&described(NO_CLUSTER)).await;
    assert_eq!(world.found(&[], "orphan").await, [left].into());
    let flags = ["--delete", "--yes", "--alone"];
    let (text, code) = world.audit(&flags).await.unwrap();
    assert_eq!(code, ExitCode::from(FOUND));
    assert!(text.contains("its pool may have retained it"), "{text}");
    assert_eq!(text.matches(": deleted").count(), 0, "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_audit_costs_one_list_for_each_kind_whatever_there_is() {
    let world = World::open().await;
    let count = || {
        world
            .cloud
            .requests()
            .iter()
            .map(|it| it.count)
            .sum::<u64>()
    };
    world.audit(&[]).await.unwrap();
    world.cloud.reset_requests();
    world.audit(&[]).await.unwrap();
    let empty = count();
    others(&world).await;
    world.cloud.reset_requests();
    world.audit(&[]).await.unwrap();
    assert!(empty <= 13, "{empty}");
    assert_eq!(count(), empty);
}

#[test]
fn the_finalizer_finds_volumes_by_the_metadata_that_the_driver_writes() {
    use openstack::inventory::Table;
    use openstack::volume::Volume;
    use provider::cluster::leftovers::Leftovers;

    let mut volume = Volume {
        id: "v".to_owned(),
        ..Volume::default()
    };
    let key = csi::owner::CLUSTER_UID;
    volume.metadata.insert(key.to_owned(), "uid".to_owned());
    let name = key.trim_end_matches("-uid").to_owned();
    volume.metadata.insert(name, "kubernetes".to_owned());
    assert!(csi::owner::is_marked(&volume.metadata));
    let view = View {
        volumes: Arc::new(Table::from_items(vec![volume])),
        ..View::default()
    };
    assert_eq!(Leftovers::for_uid(&view, "uid").volumes.len(), 1);
    assert_eq!(Leftovers::for_uid(&view, "other").volumes.len(), 0);
}
