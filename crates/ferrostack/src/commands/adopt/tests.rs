use std::cell::RefCell;
use std::sync::Arc;

use clap::Parser as _;
use openstack::inventory::InventoryOptions;
use openstack::transport::{InProcess, SharedTransport};
use openstack::{PoolOptions, Session, SessionOptions};
use serde_json::Value;
use simulator::cloud::{Cloud, Options};
use testbed::{Capo, Management, Running};

use super::*;
use crate::cli::{Cli, Command};

const URL: &str = "http://cloud";
const INFRA: &str = "infrastructure.cluster.x-k8s.io";

/// Cluster `demo` with machine `cp-0`, both of the Go provider.
struct World {
    cloud: Cloud,
    management: Management,
}

impl World {
    async fn open() -> Self {
        let world = Self {
            cloud: Cloud::open(Options::default()).await.unwrap(),
            management: Management::open(api::crds::all()).await,
        };
        world.objects().await;
        let session = world.session().await;
        Capo::new(&session, &world.management.client, "demo")
            .build()
            .await;
        world
    }

    async fn objects(&self) {
        let create = async |object: Value| self.management.create(object).await;
        let labels = json!({CLUSTER_NAME_LABEL: "demo", "cluster.x-k8s.io/control-plane": ""});
        create(
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "demo-cloud-config"},
            "stringData": {"clouds.yaml": self.cloud.clouds_yaml(URL)}}),
        )
        .await;
        let reference = json!({"apiGroup": INFRA, "kind": "OpenStackCluster", "name": "demo"});
        create(json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "demo"},
            "spec": {"infrastructureRef": reference}}))
        .await;
        let cluster = self.management.api::<Cluster>().get("demo").await.unwrap();
        let owner = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "demo",
            "uid": cluster.uid(), "controller": true});
        create(json!({"apiVersion": format!("{INFRA}/v1beta2"), "kind": "OpenStackCluster",
            "metadata": {"name": "demo", "labels": labels, "ownerReferences": [owner]},
            "spec": {"identityRef": {"name": "demo-cloud-config", "cloudName": "simulated"},
                "apiServer": {"managedLoadBalancer": {}}, "managedSubnets": [{"cidr": "10.6.0.0/24"}],
                "managedSecurityGroups": {}}}))
        .await;
        create(json!({"apiVersion": format!("{INFRA}/v1beta2"), "kind": "OpenStackMachine",
            "metadata": {"name": "cp-0", "labels": labels},
            "spec": {"flavor": {"filter": {"name": "m1.small"}}, "image": {"filter": {"name": "ubuntu-24.04"}}}}))
        .await;
    }

    fn options(&self) -> SessionOptions {
        let transport: SharedTransport = Arc::new(InProcess::new(self.cloud.router(URL)));
        SessionOptions {
            transport: Some(transport),
            ..SessionOptions::default()
        }
    }

    async fn session(&self) -> Session {
        let config = CloudConfig::parse(&self.cloud.clouds_yaml(URL), "simulated").unwrap();
        Session::connect(config, &self.options()).await.unwrap()
    }

    fn run(&self) -> Running {
        let options = provider::Options {
            clouds: PoolOptions {
                session: self.options(),
                ..PoolOptions::default()
            },
            ..provider::Options::default()
        };
        let client = self.management.client.clone();
        Running::start(|shutdown| provider::run(client, options, shutdown))
    }

    /// Runs the command; returns its error, and what it printed.
    async fn adopt(&self, given: &[&str]) -> (Result<(), String>, String) {
        let words = ["ferrostack", "adopt", "cluster"].into_iter();
        let words = words.chain(given.iter().copied());
        let Command::Adopt(Adopt::Cluster(args)) = Cli::try_parse_from(words).unwrap().command
        else {
            panic!("another command");
        };
        let printed = RefCell::new(String::new());
        let print = |text: &str| {
            printed.borrow_mut().push_str(text);
            Ok(())
        };
        let open = async |config: CloudConfig| {
            let session = Session::connect(config, &self.options()).await?;
            let options = InventoryOptions {
                background: false,
                ..InventoryOptions::default()
            };
            Ok(Inventory::new(session, options))
        };
        let done = adopted(&args, &self.management.client, open, print).await;
        (done.map_err(|it| it.to_string()), printed.into_inner())
    }

    /// Changes of resources that are there. The provider goes on at once, with rules and members.
    fn marks(&self) -> u64 {
        let counts = self.cloud.requests().into_iter();
        let marks = counts.filter(|it| it.method == "PUT" && !it.route.contains("/members"));
        marks.map(|it| it.count).sum()
    }

    fn writes(&self) -> u64 {
        let counts = self.cloud.requests().into_iter();
        let writes = counts.filter(|it| it.service != "identity" && it.method != "GET");
        writes.map(|it| it.count).sum()
    }
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_shows_the_resources_with_their_evidence_and_writes_nothing() {
    let world = World::open().await;
    let before = world.writes();
    let (done, text) = world.adopt(&["demo", "--dry-run"]).await;
    assert_eq!(done, Ok(()));
    let first = "cluster demo: 9 resources of cluster-api-provider-openstack, 9 to be marked";
    assert!(text.starts_with(first), "{text}");
    let name = "k8s-clusterapi-cluster-default-demo";
    let network = text
        .lines()
        .find(|line| line.starts_with("network "))
        .unwrap();
    let evidence = format!("the status of OpenStackCluster/demo names it; its name is {name}");
    assert!(network.contains(&evidence), "{text}");
    let (_, text) = world.adopt(&["demo", "--dry-run", "-o", "json"]).await;
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["adopted"], false);
    let mut resources = document["resources"].as_array().unwrap().iter();
    let server = resources.find(|it| it["resource"] == "server").unwrap();
    assert_eq!(server["object"], "OpenStackMachine/cp-0");
    assert_eq!(server["tags"].as_array().unwrap().len(), 2, "{server}");
    assert_eq!(world.writes(), before);
    let infra = world
        .management
        .api::<OpenStackCluster>()
        .get("demo")
        .await
        .unwrap();
    assert!(!adoption::is_wanted(&infra));
}

#[tokio::test(start_paused = true)]
async fn the_command_waits_until_the_provider_has_taken_the_cluster_over() {
    let world = World::open().await;
    let running = world.run();
    let before = world.marks();
    let (done, _) = world.adopt(&["demo"]).await;
    assert_eq!(done, Ok(()));
    assert_eq!(world.marks() - before, 9);
    let (done, text) = world.adopt(&["demo"]).await;
    assert_eq!(done, Ok(()));
    assert!(
        text.contains("already: nothing is to be taken over"),
        "{text}"
    );
    running.kill().await;
}

#[tokio::test(start_paused = true)]
async fn without_a_provider_the_command_ends_and_the_annotation_stays() {
    let world = World::open().await;
    let (done, _) = world.adopt(&["demo", "--timeout", "5s"]).await;
    assert!(done.unwrap_err().contains("is not taken over after 5 s"));
    let infra = world
        .management
        .api::<OpenStackCluster>()
        .get("demo")
        .await
        .unwrap();
    assert!(adoption::is_wanted(&infra));
}

#[tokio::test(start_paused = true)]
async fn conflicts_paused_clusters_and_unknown_names_are_refused_before_anything_is_asked() {
    let world = World::open().await;
    let paused = json!({"spec": {"paused": true}});
    world.management.merge::<Cluster>("demo", paused).await;
    let (done, _) = world.adopt(&["demo"]).await;
    assert!(done.unwrap_err().contains("Cluster/demo is paused"));
    let machine = world
        .management
        .api::<OpenStackMachine>()
        .get("cp-0")
        .await
        .unwrap();
    let server = machine.status.unwrap().instance_id.unwrap();
    world
        .session()
        .await
        .compute()
        .delete_server(&server)
        .await
        .unwrap();
    let infra = world
        .management
        .api::<OpenStackCluster>()
        .get("demo")
        .await
        .unwrap();
    let network = infra.status.unwrap().network.unwrap().id;
    let missing = json!({"status": {"network": {"id": "6f6f6f6f-0000-4000-8000-000000000000"}}});
    let patch = Patch::Merge(&missing);
    let api = world.management.api::<OpenStackCluster>();
    api.patch_status("demo", &Default::default(), &patch)
        .await
        .unwrap();
    let (done, text) = world.adopt(&["demo"]).await;
    assert!(done.unwrap_err().starts_with("nothing is taken over: "));
    assert!(
        text.contains("not clear: network 6f6f6f6f"),
        "{network}: {text}"
    );
    let (done, _) = world.adopt(&["other"]).await;
    assert!(done.unwrap_err().contains("other"));
    let infra = api.get("demo").await.unwrap();
    assert!(!adoption::is_wanted(&infra));
}
