//! `manager` on an API server that knows none of our kinds but by their definitions, and calls its webhooks.

use std::net::SocketAddr;
use std::path::Path;

use apiserver::{ApiServer, Options, UserInfo};
use base64::Engine as _;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::cloud::TestCloud;
use crate::process::{Running, eventually, ferrostack, run, texts};

const NAMESPACE: &str = "ferrostack-system";

/// An API server on a socket, with an administrator's kubeconfig in `home`.
pub(crate) struct Cluster {
    server: ApiServer,
    pub(crate) client: Client,
    stop: CancellationToken,
}

impl Cluster {
    pub(crate) async fn serve(home: &Path) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let administrator = UserInfo {
            name: "administrator".to_owned(),
            uid: String::new(),
            groups: vec!["system:masters".to_owned()],
            extra: Default::default(),
        };
        let options = Options {
            tokens: vec![(
                "token-of-the-administrator".to_owned().into(),
                administrator,
            )],
            ..Options::default()
        };
        let server = ApiServer::open(options).await.unwrap();
        let identity = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let certificate = identity.cert.pem();
        let tls =
            apiserver::server_config(&certificate, &identity.signing_key.serialize_pem(), None)
                .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        let (serving, stopped) = (server.clone(), stop.clone());
        tokio::spawn(async move { serving.serve(listener, tls, stopped).await });
        let authority = base64::engine::general_purpose::STANDARD.encode(certificate);
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": url, "certificate-authority-data": authority}}],
            "users": [{"name": "u", "user": {"token": "token-of-the-administrator"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": NAMESPACE}}],
        });
        std::fs::write(home.join("kubeconfig"), kubeconfig.to_string()).unwrap();
        let client = Client::new(server.in_process(), "default");
        Self {
            server,
            client,
            stop,
        }
    }

    /// Applies an object; the error is that of the API server.
    async fn apply(&self, object: &Value) -> kube::Result<DynamicObject> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let version = text(&object["apiVersion"]);
        let (group, version) = version.split_once('/').unwrap_or(("", &version));
        let kind = GroupVersionKind::gvk(group, version, &text(&object["kind"]));
        let resource = ApiResource::from_gvk(&kind);
        let client = self.client.clone();
        let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(client, namespace, &resource),
            None => Api::all_with(client, &resource),
        };
        let params = PatchParams::apply("suite").force();
        let name = text(&object["metadata"]["name"]);
        api.patch(&name, &params, &Patch::Apply(object)).await
    }

    pub(crate) async fn close(self) {
        self.stop.cancel();
        self.server.close().await;
    }
}

/// A running `ferrostack manager`, and the address of its metrics.
struct Manager {
    _running: Running,
    metrics: String,
}

impl Manager {
    async fn start(home: &Path) -> Self {
        let webhooks = free_address().await;
        let mut running = ferrostack(home)
            .args(["--log", "info", "manager", "--health-addr", "0"])
            .args([
                "--diagnostics-address",
                "127.0.0.1:0",
                "--insecure-diagnostics",
            ])
            .args(["--webhook-addr", &webhooks.to_string()])
            .args(["--webhook-url", &format!("https://{webhooks}")])
            .env("KUBECONFIG", home.join("kubeconfig"))
            .start();
        let is_address = |line: &str| line.starts_with("metrics at ");
        let line = running.line("with the address of the metrics", is_address);
        let url = line.await.replacen("metrics at ", "", 1);
        let leads = running.line("that it leads", |line| line.starts_with("leading"));
        leads.await;
        Self {
            _running: running,
            metrics: format!("{url}/metrics"),
        }
    }

    async fn metrics(&self) -> String {
        let reply = reqwest::get(&self.metrics).await.unwrap();
        reply.text().await.unwrap()
    }
}

/// An address that nothing else uses until the manager does.
async fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metrics_of_a_manager_have_its_requests_to_openstack() {
    let home = tempfile::tempdir().unwrap();
    let cloud = TestCloud::without_guests(home.path()).await;
    let cluster = Cluster::serve(home.path()).await;
    let output = run(home.path(), &["generate", "manager"]).await;
    let (manifests, errors) = texts(&output);
    assert!(output.status.success(), "{errors}");
    let manifests: Vec<Value> = serde_saphyr::from_multiple(&manifests).unwrap();
    for object in &manifests {
        let applied = cluster.apply(object).await;
        applied.unwrap_or_else(|error| panic!("{error}: {object}"));
    }
    let manager = Manager::start(home.path()).await;
    let before = manager.metrics().await;
    assert!(
        !before.contains("ferrostack_openstack_requests_total{"),
        "{before}"
    );

    let clouds = std::fs::read_to_string(home.path().join("clouds.yaml")).unwrap();
    let group = "infrastructure.cluster.x-k8s.io";
    let objects = [
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cloud", "namespace": "default"},
            "stringData": {"clouds.yaml": clouds}}),
        json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": "demo", "namespace": "default"},
            "spec": {"infrastructureRef": {"apiGroup": group, "kind": "OpenStackCluster", "name": "demo"}}}),
        json!({"apiVersion": format!("{group}/v1beta2"), "kind": "OpenStackCluster",
            "metadata": {"name": "demo", "namespace": "default"},
            "spec": {"identityRef": {"name": "cloud", "cloudName": "simulated"},
                "managedSubnets": [{"cidr": "10.6.0.0/24"}],
                "apiServer": {"managedLoadBalancer": {}}}}),
    ];
    for object in &objects {
        // The manager registers its webhooks after it began to lead.
        eventually("an object to be accepted", || async {
            cluster.apply(object).await.ok()
        })
        .await;
    }
    // Reads and writes, of the controllers' clients and not of the test's.
    for counted in [
        "ferrostack_openstack_requests_total{service=\"identity\",method=\"POST\"",
        "ferrostack_openstack_requests_total{service=\"network\",method=\"GET\"",
        "ferrostack_openstack_requests_total{service=\"network\",method=\"POST\"",
        "controller_runtime_reconcile_total{controller=\"openstackcluster\"",
    ] {
        eventually(counted, || async {
            let text = manager.metrics().await;
            text.contains(counted).then_some(())
        })
        .await;
    }
    drop(manager);
    cluster.close().await;
    drop(cloud);
}
