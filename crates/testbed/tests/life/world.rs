//! Management cluster, cloud, guests and controllers.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use api::core::v1beta2::Machine;
use api::k8s_openapi::api::core::v1::Secret;
use clusterapi::remote::{ClusterKey, Connector, KubeconfigConnector};
use futures::FutureExt;
use futures::future::BoxFuture;
use ipnet::Ipv4Net;
use kube::{Api, Client, ResourceExt};
use openstack::transport::{InProcess, Limits, SharedTransport, Transport};
use openstack::{PoolOptions, Service, SessionOptions};
use secrecy::SecretString;
use serde_json::{Value, json};
use simulator::cloud::{self, Cloud};
use simulator::guest::{self, Guests};
use testbed::{Calls, Cut, Fuse, Management, NAMESPACE, Running, line};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Where the transport in the process finds the cloud.
const URL: &str = "http://cloud";
/// The third byte of the floating IPs of the next world of this process.
static NEXT_RANGE: AtomicU8 = AtomicU8::new(1);

/// Writes that kill the controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kills {
    /// Never.
    None,
    /// Each n-th write to an API server.
    Api(usize),
    /// Each n-th write to OpenStack.
    Cloud(u64),
}

/// The environment of a test.
pub(crate) struct World {
    management: Management,
    pub(crate) cloud: Cloud,
    pub(crate) guests: Guests,
    /// The resources of the cloud before the test.
    pub(crate) before: BTreeMap<String, BTreeMap<String, usize>>,
    kills: Kills,
    _end: DropGuard,
}

impl Deref for World {
    type Target = Management;

    fn deref(&self) -> &Management {
        &self.management
    }
}

/// Running controllers.
pub(crate) struct Controllers {
    running: Running,
    fuse: Fuse,
    cut: Cut,
    writes: Calls,
}

impl Controllers {
    /// Waits for the write at which the controllers are to be killed.
    async fn due(&self) {
        let cloud = async {
            while !self.writes.reached() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::select! {
            () = self.fuse.blown() => {}
            () = cloud => {}
        }
    }

    async fn kill(self) {
        self.cut.cut();
        self.running.kill().await;
    }
}

impl World {
    /// API server, cloud and guests, without controllers.
    pub(crate) async fn open(kills: Kills) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        // The process id keeps test processes apart, the counter the clouds of this one.
        let process = u8::try_from(std::process::id() % 40).unwrap();
        let range = NEXT_RANGE.fetch_add(1, Ordering::Relaxed);
        let options = cloud::Options {
            external_cidr: Ipv4Net::new(Ipv4Addr::new(127, 201 + process, range, 0), 24).unwrap(),
            images: vec!["node".to_owned()],
            quotas: ["instances", "cores", "ram", "port"]
                .map(|quota| (quota.to_owned(), -1))
                .into(),
            ..cloud::Options::default()
        };
        let cloud = Cloud::open(options).await.unwrap();
        let stop = CancellationToken::new();
        let guests = Guests::start(cloud.world(), guest::Options::default(), stop.clone());
        let management = Management::open(api::crds::all()).await;
        let before = cloud.resources();
        let world = Self {
            management,
            cloud,
            guests,
            before,
            kills,
            _end: stop.drop_guard(),
        };
        let clouds = world.cloud.clouds_yaml(URL);
        world
            .create(
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cloud"},
                "stringData": {"clouds.yaml": clouds}}),
            )
            .await;
        world
    }

    /// Starts the controllers.
    pub(crate) fn run(&self) -> Controllers {
        let (cut, never) = (Cut::default(), u64::MAX);
        let (fuse, nth) = match self.kills {
            Kills::None => (Fuse::recorder(), never),
            Kills::Api(nth) => (Fuse::at(nth), never),
            Kills::Cloud(nth) => (Fuse::recorder(), nth),
        };
        let (writes, at_write) = cut.at_call(nth);
        self.cloud.on_write(move |_| at_write());
        let router = Arc::new(InProcess::new(self.cloud.router(URL)));
        let session = SessionOptions {
            transport: Some(line(router, &cut)),
            ..SessionOptions::default()
        };
        let infrastructure = provider::Options {
            clouds: PoolOptions {
                session,
                ..PoolOptions::default()
            },
            ..provider::Options::default()
        };
        let core = clusterapi::Options {
            connector: Arc::new(Fused(fuse.clone())),
            ..clusterapi::Options::default()
        };
        let client = fuse.protect(&self.client);
        let running = Running::start(|shutdown| async move {
            tokio::join!(
                clusterapi::run(client.clone(), core, shutdown.clone()),
                provider::run(client, infrastructure, shutdown)
            );
        });
        Controllers {
            running,
            fuse,
            cut,
            writes,
        }
    }

    /// Runs the controllers, killed at each n-th write, until `rest`; adds the number of kills to `count`.
    pub(crate) async fn until<T>(
        &self,
        controllers: &mut Option<Controllers>,
        count: &mut usize,
        rest: impl Future<Output = T>,
    ) -> T {
        let mut rest = std::pin::pin!(rest);
        loop {
            let now = controllers.get_or_insert_with(|| self.run());
            tokio::select! {
                value = &mut rest => return value,
                () = now.due() => {}
            }
            if let Some(dead) = controllers.take() {
                dead.kill().await;
                *count += 1;
            }
        }
    }

    /// Returns a client of the workload cluster with the rights of an administrator.
    pub(crate) async fn workload(&self) -> Client {
        let secret = self.api::<Secret>().get("demo-kubeconfig").await.unwrap();
        let text = String::from_utf8(secret.data.unwrap()["value"].0.clone()).unwrap();
        let key = ClusterKey::new(NAMESPACE, "demo");
        KubeconfigConnector::default()
            .connect(&key, &text.into())
            .await
            .unwrap()
    }

    /// Sends a request about the server of a machine, as its owner.
    pub(crate) async fn ask_for(&self, machine: &Machine, path: &str, body: Value) {
        let id = machine.spec.provider_id.clone().unwrap();
        let server = id.rsplit('/').next().unwrap();
        let config = openstack::CloudConfig::parse(&self.cloud.clouds_yaml(URL), "simulated");
        let transport: SharedTransport = Arc::new(InProcess::new(self.cloud.router(URL)));
        let options = SessionOptions {
            transport: Some(transport),
            ..SessionOptions::default()
        };
        let session = openstack::Session::connect(config.unwrap(), &options).await;
        let base = session.unwrap().endpoint(Service::Compute).await.unwrap();
        let login = json!({"auth": {"identity": {"methods": ["password"], "password": {"user":
            {"name": "demo", "password": "secret", "domain": {"id": "default"}}}},
            "scope": {"project": {"name": "demo", "domain": {"id": "default"}}}}});
        let tokens = http::Request::post(format!("{URL}/identity/v3/auth/tokens"));
        let token = self.send(tokens, &login).await;
        let request = http::Request::post(format!("{base}/servers/{server}/{path}"))
            .header("x-auth-token", token.headers()["x-subject-token"].clone());
        self.send(request, &body).await;
    }

    /// Sends a request to the cloud, such as one of its operator.
    async fn send(
        &self,
        request: http::request::Builder,
        body: &Value,
    ) -> http::Response<bytes::Bytes> {
        let request = request.header("content-type", "application/json");
        let request = request.body(bytes::Bytes::from(body.to_string())).unwrap();
        let transport = InProcess::new(self.cloud.router(URL));
        let answer = transport
            .send(request, Limits::object(Duration::from_secs(60)))
            .await;
        let answer = answer.unwrap();
        assert!(answer.status().is_success(), "{answer:?}");
        answer
    }

    /// The guests of the next servers of this name have a fault.
    pub(crate) async fn guest_fault(&self, prefix: &str, fault: &str, count: u64) {
        let rule = json!({"name_prefix": prefix, "fault": fault, "count": count});
        let request = http::Request::post(format!("{URL}/_simulator/guest-faults"));
        self.send(request, &rule).await;
    }

    /// The Machines of the control plane, or the workers, sorted by name.
    pub(crate) async fn machines(&self, control_plane: bool) -> Vec<Machine> {
        let mut machines = self.list::<Machine>().await;
        machines.retain(|machine| machine.is_control_plane() == control_plane);
        machines.sort_by_key(ResourceExt::name_any);
        machines
    }

    /// The objects of a kind of the workload cluster.
    pub(crate) fn of<K>(client: &Client, namespace: &str) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    {
        Api::namespaced(client.clone(), namespace)
    }
}

/// Connects by kubeconfigs, with a fuse in front of the workload cluster.
struct Fused(Fuse);

impl std::fmt::Debug for Fused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fused")
    }
}

impl Connector for Fused {
    fn connect<'a>(
        &'a self,
        cluster: &'a ClusterKey,
        kubeconfig: &'a SecretString,
    ) -> BoxFuture<'a, Result<Client, String>> {
        async move {
            let client = KubeconfigConnector::default()
                .connect(cluster, kubeconfig)
                .await?;
            Ok(self.0.protect(&client))
        }
        .boxed()
    }
}
