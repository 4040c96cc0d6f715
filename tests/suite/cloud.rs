//! A simulated cloud with guests inside the test's process, so that it outlives the program under test.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};

use ipnet::Ipv4Net;
use serde_json::json;
use simulator::cloud::{self, Cloud};
use simulator::guest::{self, Guests};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::cloud_managers;

/// Floating IPs of each cloud of this test process come from a range of its own.
static NEXT_RANGE: AtomicU8 = AtomicU8::new(1);

/// The image that the tests' clusters boot.
pub(crate) const IMAGE: &str = "suite-node";
/// The same with Ignition in place of cloud-init.
pub(crate) const FLATCAR: &str = "suite-flatcar";

/// A cloud that is served until it is dropped.
pub(crate) struct TestCloud {
    pub(crate) cloud: Cloud,
    pub(crate) url: String,
    clouds_file: std::path::PathBuf,
    shutdown: CancellationToken,
}

impl TestCloud {
    /// Starts a cloud and writes its clouds.yaml below `home`.
    pub(crate) async fn start(home: &Path) -> Self {
        Self::with(home, BTreeMap::new(), guest::Options::default()).await
    }

    /// The same with quotas that differ from the defaults, and guests of another patience.
    pub(crate) async fn with(
        home: &Path,
        quotas: BTreeMap<String, i64>,
        guests: guest::Options,
    ) -> Self {
        Self::serve(home, quotas, Some(guests), &[IMAGE]).await
    }

    /// A cloud with these images, whose servers run nothing.
    pub(crate) async fn of_images(home: &Path, images: &[&str]) -> Self {
        Self::serve(home, BTreeMap::new(), None, images).await
    }

    /// A cloud whose servers run nothing.
    pub(crate) async fn without_guests(home: &Path) -> Self {
        Self::of_images(home, &[IMAGE]).await
    }

    /// A cloud whose only image is one of Flatcar.
    pub(crate) async fn of_flatcar(home: &Path) -> Self {
        let guests = Some(guest::Options::default());
        Self::serve(home, BTreeMap::new(), guests, &[FLATCAR]).await
    }

    async fn serve(
        home: &Path,
        quotas: BTreeMap<String, i64>,
        guests: Option<guest::Options>,
        images: &[&str],
    ) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        // The process id keeps test processes apart, the counter the clouds of this one.
        let range = NEXT_RANGE.fetch_add(1, Ordering::Relaxed);
        let process = u8::try_from(std::process::id() % 60).unwrap();
        let first = Ipv4Addr::new(127, 1 + process, range, 0);
        let options = cloud::Options {
            external_cidr: Ipv4Net::new(first, 24).unwrap(),
            images: images.iter().map(|name| (*name).to_owned()).collect(),
            quotas,
            ..cloud::Options::default()
        };
        let cloud = Cloud::open(options).await.unwrap();
        let shutdown = CancellationToken::new();
        if let Some(guests) = guests {
            let guests = Guests::start(cloud.world(), guests, shutdown.clone());
            cloud.set_console(move |server| guests.console(server));
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = cloud.router(&url);
        let stop = shutdown.clone();
        tokio::spawn(async move {
            axum::serve(listener, router)
                .with_graceful_shutdown(async move { stop.cancelled().await })
                .await
        });
        let clouds_file = home.join("clouds.yaml");
        std::fs::write(&clouds_file, cloud.clouds_yaml(&url)).unwrap();
        tokio::spawn(cloud_managers::run(
            home.to_owned(),
            clouds_file.clone(),
            shutdown.clone(),
        ));
        Self {
            cloud,
            url,
            clouds_file,
            shutdown,
        }
    }

    /// Stops the cloud and its guests; connections to them are refused from now on.
    pub(crate) fn stop(&mut self) {
        self.shutdown.cancel();
    }

    /// Makes a user with this password, a member of project demo, whose credentials the clouds.yaml has from now on.
    pub(crate) async fn log_in_as_new_user(&self, name: &str, password: &str) {
        let keystone = format!("{}/identity/v3", self.url);
        let client = reqwest::Client::new();
        let domain = json!({"name": "Default"});
        let login = json!({"auth": {
            "identity": {"methods": ["password"], "password": {
                "user": {"name": "admin", "domain": domain, "password": "secret"}}},
            "scope": {"project": {"name": "admin", "domain": domain}},
        }});
        let reply = client
            .post(format!("{keystone}/auth/tokens"))
            .json(&login)
            .send()
            .await
            .unwrap();
        let token = reply.headers()["x-subject-token"]
            .to_str()
            .unwrap()
            .to_owned();
        let find = async |kind: &str, name: &str| -> String {
            let url = format!("{keystone}/{kind}?name={name}");
            let reply = client
                .get(url)
                .header("x-auth-token", &token)
                .send()
                .await
                .unwrap();
            let found: serde_json::Value = reply.json().await.unwrap();
            found[kind][0]["id"].as_str().unwrap().to_owned()
        };
        let (project, role) = (
            find("projects", "demo").await,
            find("roles", "member").await,
        );
        let user =
            json!({"user": {"name": name, "password": password, "default_project_id": project}});
        let create = client
            .post(format!("{keystone}/users"))
            .header("x-auth-token", &token);
        let created: serde_json::Value = create
            .json(&user)
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap();
        let user = created["user"]["id"].as_str().unwrap();
        let grant = format!("{keystone}/projects/{project}/users/{user}/roles/{role}");
        let granted = client
            .put(grant)
            .header("x-auth-token", &token)
            .send()
            .await
            .unwrap();
        assert!(granted.status().is_success(), "{granted:?}");
        let clouds = std::fs::read_to_string(&self.clouds_file).unwrap();
        let clouds = clouds
            .replacen("username: demo", &format!("username: {name}"), 1)
            .replacen("password: secret", &format!("password: {password}"), 1);
        std::fs::write(&self.clouds_file, clouds).unwrap();
    }

    /// Switches off a server, as when its machine dies.
    pub(crate) async fn stop_server(&self, id: &str) {
        let client = reqwest::Client::new();
        let domain = json!({"name": "Default"});
        let login = json!({"auth": {
            "identity": {"methods": ["password"], "password": {
                "user": {"name": "demo", "domain": domain, "password": "secret"}}},
            "scope": {"project": {"name": "demo", "domain": domain}},
        }});
        let tokens = client.post(format!("{}/identity/v3/auth/tokens", self.url));
        let reply = tokens.json(&login).send().await.unwrap();
        let token = reply.headers()["x-subject-token"].clone();
        let action = format!("{}/compute/v2.1/servers/{id}/action", self.url);
        let action = client.post(action).header("x-auth-token", token);
        let reply = action.json(&json!({"os-stop": null})).send().await.unwrap();
        assert!(reply.status().is_success(), "{reply:?}");
    }

    /// The id of the external network.
    pub(crate) async fn external_network(&self) -> String {
        let clouds = std::fs::read_to_string(&self.clouds_file).unwrap();
        let config = openstack::config::CloudConfig::parse(&clouds, "simulated").unwrap();
        let session = openstack::session::Session::connect(config, &Default::default())
            .await
            .unwrap();
        session
            .network()
            .networks(&[("router:external", "true")])
            .await
            .unwrap()
            .remove(0)
            .id
    }

    /// What `up --cloud simulated` needs in its environment.
    pub(crate) fn variables(&self) -> Vec<(&str, &str)> {
        vec![
            ("OS_CLIENT_CONFIG_FILE", self.clouds_file.to_str().unwrap()),
            ("KUBERNETES_VERSION", "v1.34.2"),
            ("OPENSTACK_IMAGE_NAME", IMAGE),
            ("OPENSTACK_CONTROL_PLANE_MACHINE_FLAVOR", "m1.medium"),
            ("OPENSTACK_NODE_MACHINE_FLAVOR", "m1.small"),
            ("OPENSTACK_SSH_KEY_NAME", ""),
            ("OPENSTACK_DNS_NAMESERVERS", "9.9.9.9"),
        ]
    }
}

impl Drop for TestCloud {
    fn drop(&mut self) {
        self.shutdown.cancel();
        if !std::thread::panicking() {
            crate::coverage::of_cloud(&self.cloud);
        }
    }
}
