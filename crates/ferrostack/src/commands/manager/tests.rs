//! Managers of some providers, each with nothing but what its role allows.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use api::core::v1beta2::Cluster;
use apiserver::ApiServer;
use installer::manifests;
use ipnet::Ipv4Net;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use operator::client::Api;
use serde_json::{Value, json};
use simulator::cloud::{self, Cloud};
use simulator::guest::{self, Guests};
use testbed::{Asked, Guard};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::DropGuard;

use super::*;

mod migration;

const NAMESPACE: &str = "default";
/// A bound for broken programs, not a measurement.
const LIMIT: Duration = Duration::from_secs(300);

/// A management cluster without controllers, beside a simulated cloud.
struct World {
    client: Client,
    clouds: String,
    external: String,
    cloud: Cloud,
    stop: CancellationToken,
    _end: DropGuard,
}

impl World {
    /// `range` is the third byte of the cloud's floating IPs.
    async fn open(range: u8) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let options = apiserver::Options {
            hooks: Arc::new(::management::Rules),
            ..apiserver::Options::default()
        };
        let server = ApiServer::open(options).await.unwrap();
        let client = Client::new(server.in_process(), NAMESPACE);
        let definitions = Api::all(client.clone());
        for definition in api::crds::all() {
            let definition = ::management::converted(definition);
            definitions
                .create(&PostParams::default(), &definition)
                .await
                .unwrap();
        }
        let stop = CancellationToken::new();
        // The process id keeps test processes apart.
        let process = u8::try_from(std::process::id() % 60).unwrap();
        let options = cloud::Options {
            external_cidr: Ipv4Net::new(Ipv4Addr::new(127, 140 + process, range, 0), 24).unwrap(),
            images: vec!["node".to_owned()],
            ..cloud::Options::default()
        };
        let cloud = Cloud::open(options).await.unwrap();
        Guests::start(cloud.world(), guest::Options::default(), stop.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (router, clouds) = (cloud.router(&url), cloud.clouds_yaml(&url));
        tokio::spawn(async move { axum::serve(listener, router).await });
        let config = openstack::config::CloudConfig::parse(&clouds, "simulated").unwrap();
        let options = openstack::session::SessionOptions::default();
        let session = openstack::session::Session::connect(config, &options).await;
        let network = session.unwrap();
        let network = network.network();
        let external = network.networks(&[("router:external", "true")]).await;
        let external = external.unwrap().remove(0).id;
        Self {
            client,
            clouds,
            external,
            cloud,
            _end: stop.clone().drop_guard(),
            stop,
        }
    }

    /// Runs the controllers of a provider behind the role that its manifests have.
    fn run(&self, provider: Provider, running: &mut JoinSet<()>) -> Guard {
        let subset = Subset::new([provider], false);
        let guard = role(&subset);
        let client = guard.of(&self.client);
        let core = clusterapi::Options {
            providers: subset.providers().clone(),
            ..clusterapi::Options::default()
        };
        let (core, infrastructure) = match provider {
            Provider::Infrastructure => (None, Some(provider::Options::default())),
            _ => (Some(core), None),
        };
        let controllers = controllers(&client, core, infrastructure, &self.stop);
        running.spawn(async move { while_running(controllers).await });
        guard
    }

    async fn apply(&self, object: Value) -> DynamicObject {
        let (api, name) = self.of(&object);
        let params = PatchParams::apply("test").force();
        let applied = api.patch(&name, &params, &Patch::Apply(&object)).await;
        applied.unwrap_or_else(|error| panic!("{error}: {object}"))
    }

    async fn status(&self, object: &DynamicObject, status: Value) {
        let (api, name) = self.of(&json!(object));
        let patch = Patch::Merge(json!({"status": status}));
        api.patch_status(&name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    async fn get(&self, object: &DynamicObject) -> Option<DynamicObject> {
        let (api, name) = self.of(&json!(object));
        api.get_opt(&name).await.unwrap()
    }

    fn of(&self, object: &Value) -> (Api<DynamicObject>, String) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let version = text(&object["apiVersion"]);
        let (group, version) = version.split_once('/').unwrap_or(("", &version));
        let gvk = GroupVersionKind::gvk(group, version, &text(&object["kind"]));
        let resource = ApiResource::from_gvk(&gvk);
        let api = Api::namespaced_with(self.client.clone(), NAMESPACE, &resource);
        (api, text(&object["metadata"]["name"]))
    }

    /// Waits until `object` is gone, or `holds`.
    async fn until(
        &self,
        what: &str,
        object: &DynamicObject,
        holds: impl Fn(Option<&Value>) -> bool,
    ) {
        let waiting = async {
            loop {
                let now = self.get(object).await.map(|it| json!(it));
                if holds(now.as_ref()) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        if tokio::time::timeout(LIMIT, waiting).await.is_err() {
            let now = self.get(object).await.map(|it| json!(it));
            panic!("{what}: {:#}", now.unwrap_or_default());
        }
    }

    fn credentials(&self) -> Value {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cloud"},
            "stringData": {"clouds.yaml": self.clouds}})
    }

    fn infrastructure(&self) -> Value {
        json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "OpenStackCluster",
            "metadata": {"name": "x"},
            "spec": {"identityRef": {"name": "cloud", "cloudName": "simulated"},
                "externalNetwork": {"id": self.external},
                "managedSecurityGroups": {},
                "managedSubnets": [{"cidr": "10.6.0.0/24"}],
                "apiServer": {"managedLoadBalancer": {"enabled": true}}}})
    }
}

async fn while_running(mut controllers: JoinSet<()>) {
    while controllers.join_next().await.is_some() {}
}

fn flag(object: Option<&Value>, path: &str) -> bool {
    object.and_then(|it| it.pointer(path)) == Some(&Value::Bool(true))
}

fn is_true(object: Option<&Value>, condition: &str) -> bool {
    let conditions = object.and_then(|it| it["status"]["conditions"].as_array());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it["type"] == condition && it["status"] == "True")
}

fn machine_template() -> Value {
    json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "OpenStackMachineTemplate",
        "metadata": {"name": "x"},
        "spec": {"template": {"spec": {"flavor": {"filter": {"name": "m1.medium"}}, "image": {"filter": {"name": "node"}}}}}})
}

/// A cluster of one machine and one worker, whose kubelets need no cloud controller manager.
fn cluster() -> Vec<Value> {
    let registration = json!({"nodeRegistration": {"name": "{{ local_hostname }}",
        "kubeletExtraArgs": [{"name": "provider-id", "value": "openstack:///'{{ instance_id }}'"}]}});
    let infrastructure = json!({"apiGroup": "infrastructure.cluster.x-k8s.io",
        "kind": "OpenStackMachineTemplate", "name": "x"});
    vec![
        json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "x"},
            "spec": {
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackCluster", "name": "x"},
                "controlPlaneRef": {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "x"}}}),
        machine_template(),
        json!({"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane",
            "metadata": {"name": "x"},
            "spec": {"replicas": 1, "version": "v1.34.2",
                "kubeadmConfigSpec": {"initConfiguration": registration, "joinConfiguration": registration},
                "machineTemplate": {"spec": {"infrastructureRef": infrastructure}}}}),
        json!({"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfigTemplate",
            "metadata": {"name": "x"}, "spec": {"template": {"spec": {"joinConfiguration": registration}}}}),
        json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment", "metadata": {"name": "x"},
            "spec": {"clusterName": "x", "replicas": 1,
                "template": {"spec": {"clusterName": "x", "version": "v1.34.2",
                    "bootstrap": {"configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io",
                        "kind": "KubeadmConfigTemplate", "name": "x"}},
                    "infrastructureRef": infrastructure}}}}),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manager_of_each_provider_builds_its_part_of_a_cluster_with_its_own_role() {
    let world = World::open(1).await;
    let mut running = JoinSet::new();
    let guards = Provider::ALL.map(|it| (it, world.run(it, &mut running)));
    world.apply(world.credentials()).await;
    world.apply(world.infrastructure()).await;
    let mut applied = Vec::new();
    for object in cluster() {
        applied.push(world.apply(object).await);
    }
    let (cluster, deployment) = (&applied[0], &applied[4]);
    for object in [cluster, deployment] {
        let what = object.metadata.name.clone().unwrap_or_default();
        world
            .until(&what, object, |now| is_true(now, "Available"))
            .await;
    }
    let clusters: Api<Cluster> = Api::namespaced(world.client.clone(), NAMESPACE);
    clusters
        .delete("x", &DeleteParams::default())
        .await
        .unwrap();
    world
        .until("the deletion", cluster, |now| now.is_none())
        .await;
    assert!(world.cloud.world().borrow().instances.is_empty());
    for (provider, guard) in &guards {
        let forbidden = guard.forbidden();
        assert!(forbidden.is_empty(), "{provider}: {forbidden:#?}");
        let unexpected: Vec<Asked> = guard.writes().into_keys().collect();
        let mut unexpected = unexpected;
        unexpected.retain(|it| !expected(*provider, it));
        assert!(unexpected.is_empty(), "{provider}: {unexpected:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manager_of_each_provider_may_create_and_replace_the_certificate_of_its_webhooks() {
    let world = World::open(3).await;
    for provider in Provider::ALL {
        let subset = Subset::new([provider], false);
        let guard = Guard::new(&rendered(&subset));
        let client = guard.of(&world.client);
        let open = async |url| {
            let source = Source::open(&client, &subset, NAMESPACE, url, None).await;
            source.unwrap_or_else(|error| panic!("{provider}: {error:#}"))
        };
        let first = open(None).await.authorities().await.unwrap();
        let again = open(None).await;
        assert_eq!(again.authorities().await.unwrap(), first);
        // One that is reached by another name needs another certificate.
        let moved = open(Some("https://elsewhere:9443")).await;
        for _ in 0..2 {
            let step = moved.advance(true).await;
            let step = step.unwrap_or_else(|error| panic!("{provider}: {error:#}"));
            assert!(step.is_some(), "{provider}");
        }
        assert_ne!(moved.authorities().await.unwrap(), first);
        assert!(guard.forbidden().is_empty(), "{:?}", guard.forbidden());
    }
}

/// The manifests of a subset, for the namespace of the tests.
fn rendered(subset: &Subset) -> String {
    manifests::render(subset, NAMESPACE, None, None).unwrap()
}

/// The ClusterRole in the manifests of a subset, without the Role for the manager's own namespace.
fn role(subset: &Subset) -> Guard {
    Guard::of_kinds(&rendered(subset), &["ClusterRole"])
}

/// True if a provider writes this in the life of a cluster: objects of its own groups, events, and what is listed here.
fn expected(provider: Provider, (group, resource, _): &Asked) -> bool {
    let others: &[&str] = match provider {
        // What it creates from templates, and becomes an owner of.
        Provider::Core => &[
            "kubeadmconfigs",
            "kubeadmconfigtemplates",
            "kubeadmcontrolplanes",
            "openstackclusters",
            "openstackmachines",
            "openstackmachinetemplates",
        ],
        Provider::Bootstrap => &["secrets", "configmaps"],
        Provider::ControlPlane => &[
            "secrets",
            "machines",
            "machines/status",
            "kubeadmconfigs",
            "openstackmachines",
            "openstackmachinetemplates",
        ],
        Provider::Infrastructure => &[],
    };
    resource == "events"
        || provider.groups().contains(&group.as_str())
        || others.contains(&resource.as_str())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_infrastructure_provider_does_its_part_for_the_core_controllers_of_another_program() {
    let world = World::open(2).await;
    let mut running = JoinSet::new();
    let guard = world.run(Provider::Infrastructure, &mut running);
    // What the Go controllers write, in their order: owner references, then what they read of the contract.
    world.apply(world.credentials()).await;
    let mut manifest = cluster().remove(0);
    manifest["spec"]
        .as_object_mut()
        .unwrap()
        .remove("controlPlaneRef");
    let cluster = world.apply(manifest).await;
    let owner = |object: &DynamicObject| {
        let types = object.types.clone().unwrap();
        json!([{"apiVersion": types.api_version, "kind": types.kind, "name": "x", "controller": true,
            "blockOwnerDeletion": true, "uid": object.metadata.uid}])
    };
    let labels =
        json!({"cluster.x-k8s.io/cluster-name": "x", "cluster.x-k8s.io/control-plane": ""});
    let mut manifest = world.infrastructure();
    manifest["metadata"]["ownerReferences"] = owner(&cluster);
    manifest["metadata"]["labels"] = json!({"cluster.x-k8s.io/cluster-name": "x"});
    let infrastructure = world.apply(manifest).await;
    world
        .until("the infrastructure", &infrastructure, |now| {
            flag(now, "/status/initialization/provisioned") && is_true(now, "Ready")
        })
        .await;
    let provisioned = world.get(&infrastructure).await.unwrap();
    let endpoint = &provisioned.data["spec"]["controlPlaneEndpoint"];
    let patch = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "x"}, "spec": {"controlPlaneEndpoint": endpoint,
        "infrastructureRef": cluster.data["spec"]["infrastructureRef"]}});
    world.apply(patch).await;
    world
        .status(
            &cluster,
            json!({"initialization": {"infrastructureProvisioned": true}}),
        )
        .await;

    let user_data = json!({"apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
        "metadata": {"name": "x-data"}, "stringData": {"value": "#cloud-config\n", "format": "cloud-config"}});
    world.apply(user_data).await;
    let machine = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {"name": "x", "labels": labels},
        "spec": {"clusterName": "x", "version": "v1.34.2", "bootstrap": {"dataSecretName": "x-data"},
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackMachine", "name": "x"}}});
    let machine = world.apply(machine).await;
    let mut spec = machine_template()["spec"]["template"]["spec"].clone();
    spec["identityRef"] = json!({"name": "cloud", "cloudName": "simulated"});
    let manifest = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "OpenStackMachine",
        "metadata": {"name": "x", "labels": labels, "ownerReferences": owner(&machine)}, "spec": spec});
    let server = world.apply(manifest).await;
    world
        .until("the server", &server, |now| {
            let id = now.and_then(|it| it["spec"]["providerID"].as_str());
            flag(now, "/status/initialization/provisioned")
                && id.is_some_and(|it| it.starts_with("openstack://"))
        })
        .await;

    for object in [&server, &infrastructure] {
        let (api, name) = world.of(&json!(object));
        api.delete(&name, &DeleteParams::default()).await.unwrap();
        world
            .until("the deletion", object, |now| now.is_none())
            .await;
    }
    assert!(world.cloud.world().borrow().instances.is_empty());
    assert!(guard.forbidden().is_empty(), "{:#?}", guard.forbidden());
    let writes: BTreeMap<Asked, usize> = guard.writes();
    let groups: BTreeSet<&str> = writes.keys().map(|it| it.0.as_str()).collect();
    let ours = "infrastructure.cluster.x-k8s.io";
    assert_eq!(
        groups,
        BTreeSet::from(["events.k8s.io", ours]),
        "{writes:#?}"
    );
}

#[test]
fn the_file_of_authorities_is_read_within_a_limit_and_must_have_a_certificate() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ca.pem");
    let refused = |text: &[u8]| {
        std::fs::write(&path, text).unwrap();
        authorities(&path).unwrap_err().to_string()
    };
    assert!(refused(b"no certificate").contains("has no certificate in PEM"));
    assert!(refused(&vec![b'-'; (1 << 20) + 1]).contains("has more than 1048576 bytes"));
    assert!(refused(b"\xff").contains("cannot be read"));
    let text = "-----BEGIN CERTIFICATE-----\n";
    std::fs::write(&path, text).unwrap();
    assert_eq!(authorities(&path).unwrap(), text);
    assert!(authorities(Path::new("/nowhere")).is_err());
}
