use std::cell::RefCell;
use std::sync::Arc;

use apiserver::ApiServer;
use clap::Parser as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt;
use kube::api::PostParams;
use openstack::inventory::InventoryOptions;
use openstack::transport::{InProcess, SharedTransport};
use openstack::{Session, SessionOptions};
use serde_json::{Value, json};
use simulator::cloud::{Cloud, Options};

use super::*;
use crate::cli::{Cli, Command};

const URL: &str = "http://cloud";

/// A management cluster and a cloud.
struct World {
    cloud: Cloud,
    client: Client,
    dir: tempfile::TempDir,
}

impl World {
    async fn open() -> Self {
        let options = apiserver::Options {
            hooks: Arc::new(management::Rules),
            ..apiserver::Options::default()
        };
        let server = ApiServer::open(options).await.unwrap();
        let client = Client::new(server.in_process(), "default");
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        for definition in api::crds::all().into_iter().map(management::converted) {
            api.create(&PostParams::default(), &definition)
                .await
                .unwrap();
        }
        Self {
            cloud: Cloud::open(Options::default()).await.unwrap(),
            client,
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn file(&self, objects: &[Value]) -> String {
        let path = self.dir.path().join("cluster.yaml");
        let parts: Vec<String> = objects.iter().map(Value::to_string).collect();
        std::fs::write(&path, parts.join("\n---\n")).unwrap();
        path.display().to_string()
    }

    /// Runs the command; returns its exit status, or its error, and what it printed.
    async fn plan(&self, words: &[&str]) -> (Result<ExitCode, String>, String) {
        let words = ["ferrostack", "plan"]
            .into_iter()
            .chain(words.iter().copied());
        let Command::Plan(args) = Cli::try_parse_from(words).unwrap().command else {
            panic!("another command");
        };
        let printed = RefCell::new(String::new());
        let print = |text: &str| {
            printed.borrow_mut().push_str(text);
            Ok(())
        };
        let open = async |config: CloudConfig| Ok(self.inventory(config).await);
        let done = planned(&args, &self.client, open, print).await;
        (done.map_err(|it| it.to_string()), printed.into_inner())
    }

    async fn inventory(&self, config: CloudConfig) -> Inventory {
        let transport: SharedTransport = Arc::new(InProcess::new(self.cloud.router(URL)));
        let options = SessionOptions {
            transport: Some(transport),
            ..SessionOptions::default()
        };
        let session = Session::connect(config, &options).await.unwrap();
        let options = InventoryOptions {
            background: false,
            ..InventoryOptions::default()
        };
        Inventory::new(session, options)
    }

    async fn view(&self) -> Arc<View> {
        let config = CloudConfig::parse(&self.cloud.clouds_yaml(URL), "simulated").unwrap();
        view(&self.inventory(config).await).await.unwrap()
    }

    fn writes(&self) -> u64 {
        let counts = self.cloud.requests().into_iter();
        let writes = counts.filter(|it| it.service != "identity" && it.method != "GET");
        writes.map(|it| it.count).sum()
    }

    fn secret(&self) -> Value {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "demo-cloud-config"},
            "stringData": {"clouds.yaml": self.cloud.clouds_yaml(URL)}})
    }
}

/// A cluster of 3 + 2 machines.
fn manifest(flavor: &str) -> Vec<Value> {
    const INFRA: &str = "infrastructure.cluster.x-k8s.io";
    let infra = format!("{INFRA}/v1beta2");
    let reference = |group: &str, kind: &str, name: &str| json!({"apiGroup": group, "kind": kind, "name": name});
    let template = |name: &str| {
        json!({"apiVersion": infra, "kind": "OpenStackMachineTemplate", "metadata": {"name": name},
            "spec": {"template": {"spec": {"flavor": {"filter": {"name": flavor}},
                "image": {"filter": {"name": "ubuntu-24.04"}},
                "rootVolume": {"sizeGiB": 20}}}}})
    };
    vec![
        json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "demo"},
            "spec": {"infrastructureRef": reference(INFRA, "OpenStackCluster", "demo"),
                "controlPlaneRef": reference("controlplane.cluster.x-k8s.io", "KubeadmControlPlane", "demo-cp")}}),
        json!({"apiVersion": infra, "kind": "OpenStackCluster", "metadata": {"name": "demo"},
            "spec": {"identityRef": {"name": "demo-cloud-config", "cloudName": "simulated"},
                "apiServer": {"managedLoadBalancer": {}}, "managedSecurityGroups": {},
                "managedSubnets": [{"cidr": "10.6.0.0/24", "dnsNameservers": ["9.9.9.9"]}]}}),
        template("demo-cp"),
        template("demo-md"),
        json!({"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane",
            "metadata": {"name": "demo-cp"}, "spec": {"replicas": 3, "version": "v1.34.2",
                "machineTemplate": {"spec": {"infrastructureRef": reference(INFRA, "OpenStackMachineTemplate", "demo-cp")}},
                "kubeadmConfigSpec": {"ntp": {"enabled": true}}}}),
        json!({"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfigTemplate",
            "metadata": {"name": "demo-md"}, "spec": {"template": {"spec": {"ntp": {"enabled": true}}}}}),
        json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment", "metadata": {"name": "demo-md"},
            "spec": {"clusterName": "demo", "replicas": 2, "selector": {"matchLabels": {}}, "template": {"spec": {"clusterName": "demo", "version": "v1.34.2",
                "bootstrap": {"configRef": reference("bootstrap.cluster.x-k8s.io", "KubeadmConfigTemplate", "demo-md")},
                "infrastructureRef": reference(INFRA, "OpenStackMachineTemplate", "demo-md")}}}}),
    ]
}

fn changes(document: &Value) -> Vec<String> {
    let all = document["clusters"][0]["changes"]
        .as_array()
        .unwrap()
        .iter();
    let text = |change: &Value, field: &str| change[field].as_str().unwrap_or_default().to_owned();
    all.map(|it| {
        format!(
            "{} {} {}",
            text(it, "object"),
            text(it, "step"),
            text(it, "name")
        )
    })
    .collect()
}

#[tokio::test]
async fn a_new_cluster_is_planned_in_the_order_of_its_writes_without_a_write() {
    let world = World::open().await;
    let mut objects = manifest("m1.small");
    objects.push(world.secret());
    let file = world.file(&objects);
    let (done, text) = world.plan(&["-f", &file, "-o", "json"]).await;
    assert_eq!(done, Ok(ExitCode::from(2)), "{text}");
    assert_eq!(world.writes(), 0);
    let document: Value = serde_json::from_str(&text).unwrap();
    let all = changes(&document);
    let at = |words: &str| {
        let found = all.iter().position(|it| it.starts_with(words));
        found.unwrap_or_else(|| panic!("{words}: {all:#?}"))
    };
    let order = [
        "OpenStackCluster/demo create the network k8s-clusterapi-cluster-default-demo",
        "OpenStackCluster/demo create the subnet",
        "OpenStackCluster/demo create the router",
        "OpenStackCluster/demo create the load balancer",
        "OpenStackMachine/demo-cp-(1) create a volume demo-cp-(1)-root",
        "OpenStackMachine/demo-cp-(1) create a port",
        "OpenStackMachine/demo-cp-(1) create the server",
        "OpenStackMachine/demo-md-(2) create the server",
    ];
    let places: Vec<_> = order.iter().map(|words| at(words)).collect();
    assert!(places.is_sorted(), "{places:?}: {all:#?}");
    let servers = all.iter().filter(|it| it.contains("create the server"));
    assert_eq!(servers.count(), 5);
    let quota = document["clusters"][0]["quota"].as_array().unwrap();
    let needed = |resource: &str| {
        let mut found = quota.iter().filter(|it| it["resource"] == resource);
        found.next().map(|it| it["needed"].clone())
    };
    assert_eq!(needed("compute/instances"), Some(json!(5)));
    assert_eq!(needed("block-storage/gigabytes"), Some(json!(100)));
    // Five of machines, one of the router, one of the load balancer.
    assert_eq!(needed("network/port"), Some(json!(7)));
    assert_eq!(needed("network/floatingip"), Some(json!(1)));
    assert_eq!(needed("load-balancer/loadbalancer"), Some(json!(1)));
    assert_eq!(needed("addresses of 10.6.0.0/24"), Some(json!(8)));
    assert!(quota.iter().all(|it| it["enough"] == true), "{quota:#?}");
}

#[tokio::test]
async fn what_cannot_be_built_is_an_error_that_the_plan_explains() {
    let world = World::open().await;
    let mut objects = manifest("m1.huge");
    objects.push(world.secret());
    let file = world.file(&objects);
    let (done, text) = world.plan(&["-f", &file]).await;
    assert!(done.unwrap_err().contains("not everything can be planned"));
    assert!(text.contains("flavor `m1.huge` does not exist"), "{text}");
    assert!(text.contains("create the network"), "{text}");
    let (done, _) = world.plan(&["cluster", "demo"]).await;
    assert!(done.unwrap_err().contains("demo"));
}

#[tokio::test]
async fn machines_that_exist_stay_leave_or_are_replaced_with_what_differs() {
    let world = World::open().await;
    let key = |object: &Value| {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (text(&object["kind"]), text(&object["metadata"]["name"]))
    };
    let all = manifest("m1.small").into_iter().map(|mut object| {
        object["metadata"]["namespace"] = json!("default");
        if object["kind"] == "MachineDeployment" {
            object["spec"]["replicas"] = json!(3);
            object["spec"]["selector"] = json!({});
        }
        (key(&object), object)
    });
    let objects: Objects = all.collect();
    let (mut machines, mut servers) = (Vec::new(), Vec::new());
    for (name, template, version) in [
        ("a", "demo-md", "v1.34.2"),
        ("b", "demo-md", "v1.34.2"),
        ("c", "demo-old", "v1.34.2"),
        ("d", "demo-md", "v1.33.0"),
    ] {
        let labels = json!({"cluster.x-k8s.io/cluster-name": "demo",
            "cluster.x-k8s.io/deployment-name": "demo-md"});
        let machine = json!({"metadata": {"name": name, "namespace": "default", "labels": labels},
            "spec": {"clusterName": "demo", "version": version, "bootstrap": {},
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io",
                    "kind": "OpenStackMachine", "name": name}}});
        machines.push(serde_json::from_value(machine).unwrap());
        let template = json!({"cluster.x-k8s.io/cloned-from-name": template});
        let server = json!({"metadata": {"name": name, "namespace": "default", "annotations": template},
            "spec": {"flavor": {"filter": {"name": "m1.small"}}, "image": {"filter": {"name": "i"}},
                "providerID": format!("openstack:///{name}")},
            "status": {"instanceID": name}});
        servers.push(serde_json::from_value(server).unwrap());
    }
    let cluster = objects::Cluster::new(&objects, "demo", machines, servers).unwrap();
    let pool = &cluster.pools[1];
    let why: Vec<_> = pool.outdated.iter().map(|(_, why)| why.as_str()).collect();
    assert_eq!(
        why,
        ["template demo-old → demo-md", "version v1.33.0 → v1.34.2"]
    );
    let view = world.view().await;
    let found = forecast::forecast(&cluster, &view);
    assert_eq!(found.problems, Vec::<String>::new());
    let replaced: Vec<_> = found
        .changes
        .iter()
        .filter(|it| it.action.as_str() == "replace")
        .map(|it| it.object.as_str())
        .collect();
    // The other one leaves without a successor: there are four, and three are wanted.
    assert_eq!(replaced, ["OpenStackMachine/d"]);
    let of_workers = found
        .changes
        .iter()
        .filter(|it| it.object.contains("demo-md"));
    assert_eq!(of_workers.count(), 0);
    let instances = found
        .room
        .iter()
        .find(|it| it.resource == "compute/instances");
    assert_eq!(
        instances.unwrap().needed,
        4,
        "three, and one more at a time"
    );
}

#[test]
fn a_machine_of_the_control_plane_without_an_owner_is_a_member_of_the_load_balancer() {
    let objects = manifest("m1.small").into_iter().filter_map(|mut object| {
        object["metadata"]["namespace"] = json!("default");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        if object["kind"] == "Cluster" {
            object["spec"]["controlPlaneRef"] = Value::Null;
        }
        let key = (text(&object["kind"]), text(&object["metadata"]["name"]));
        (key.0 != "KubeadmControlPlane").then_some((key, object))
    });
    let objects: Objects = objects.collect();
    let machine = |name: &str, role: &str| {
        let machine = json!({"metadata": {"name": name, "namespace": "default", "labels": {role: ""}},
            "spec": {"clusterName": "demo", "bootstrap": {},
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io",
                    "kind": "OpenStackMachine", "name": name}}});
        let server = json!({"metadata": {"name": name, "namespace": "default"},
            "spec": {"flavor": {"filter": {"name": "m1.small"}}, "image": {"filter": {"name": "i"}}}});
        let server = serde_json::from_value(server).unwrap();
        (serde_json::from_value(machine).unwrap(), server)
    };
    let all = [
        machine("alone", "cluster.x-k8s.io/control-plane"),
        machine("worker", "worker"),
    ];
    let (machines, servers) = all.into_iter().unzip();
    let cluster = objects::Cluster::new(&objects, "demo", machines, servers).unwrap();
    let serving: Vec<_> = cluster.serving.iter().map(ResourceExt::name_any).collect();
    assert_eq!(serving, ["alone"]);
}
