//! One of the two clouds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::{Client, Method, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use simulator::cloud::{Cloud, Latency, Options, Timings};
use tokio::net::TcpListener;

use crate::root;

/// How long an operation of the simulated cloud takes, by its clock: longer than a request on any machine.
const OPERATION: Duration = Duration::from_secs(120);

/// A cloud with two accounts: `demo`, a member, and `admin`.
pub(crate) struct Side {
    client: Client,
    accounts: BTreeMap<&'static str, Account>,
    endpoints: BTreeMap<String, String>,
    /// The pause between two requests of a poll.
    pause: Duration,
    /// The cloud whose clock advances with each pause, if this is the simulated one.
    simulated: Option<Cloud>,
    /// The timeout of a poll.
    pub(crate) patience: Duration,
    /// The variables before the first step.
    pub(crate) variables: BTreeMap<String, Value>,
}

#[derive(Clone, Deserialize)]
struct Clouds {
    clouds: BTreeMap<String, Entry>,
}

#[derive(Clone, Deserialize)]
struct Entry {
    auth: Account,
    /// The certificate of the authority that the cloud's are verified by.
    cacert: Option<PathBuf>,
}

#[derive(Clone, Deserialize)]
struct Account {
    auth_url: String,
    #[serde(default)]
    username: String,
    #[serde(default)]
    password: String,
    #[serde(default)]
    project_name: String,
}

impl Side {
    /// The real cloud: the one of `FERROSTACK_REAL_CLOUDS`, or the one that tests/openstack/up has started.
    pub(crate) fn real() -> Result<Self, String> {
        let file = match std::env::var_os("FERROSTACK_REAL_CLOUDS") {
            Some(path) => PathBuf::from(path),
            None => root().join("target/openstack/clouds.yaml"),
        };
        Self::of_file(&file, "tests/openstack/up")
    }

    /// The cloud of `FERROSTACK_DEPLOYED_CLOUDS`, which `ferrostack openstack up` has made.
    pub(crate) fn deployed() -> Result<Self, String> {
        let file = std::env::var_os("FERROSTACK_DEPLOYED_CLOUDS")
            .ok_or("there is none; tests/deployer/run --scenario starts one")?;
        Self::of_file(&PathBuf::from(file), "tests/deployer/run --scenario")
    }

    fn of_file(file: &Path, starter: &str) -> Result<Self, String> {
        let text = std::fs::read_to_string(file)
            .map_err(|_| format!("there is none; {starter} starts one"))?;
        let clouds: Clouds = serde_saphyr::from_str(&text)
            .map_err(|error| format!("{}: {error}", file.display()))?;
        let account = |name: &str| clouds.clouds.get(name).map(|entry| entry.auth.clone());
        let (Some(demo), Some(admin)) = (account("demo"), account("admin")) else {
            return Err(format!("{} has no clouds demo and admin", file.display()));
        };
        let address = demo.auth_url.split('/').nth(2).unwrap_or_default();
        std::net::TcpStream::connect(address)
            .map_err(|_| format!("nothing listens on {address}; {starter} starts it"))?;
        let authority = clouds.clouds["demo"].cacert.as_ref();
        let authority = authority.map(|file| std::fs::read(file).unwrap());
        Ok(Self::of(
            demo,
            admin,
            authority.as_deref(),
            Duration::from_millis(250),
            // A load balancer takes a minute on a machine that compiles at the same time.
            Duration::from_secs(240),
        ))
    }

    /// A simulated cloud in this process, in which operations take so long that requests find intermediate states on any
    /// machine. Its clock advances with each [`Self::pause`].
    pub(crate) async fn simulated() -> (Self, Cloud) {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let timings = Timings {
            server_create: OPERATION,
            server_action: OPERATION,
            load_balancer_create: OPERATION,
            load_balancer_update: OPERATION,
            load_balancer_delete: OPERATION,
            volume: OPERATION,
            ..Timings::default()
        };
        let cloud = Cloud::open(Options {
            latency: Latency::Custom(Box::new(timings)),
            zones: ["az1", "az2"].map(str::to_owned).to_vec(),
            ..Options::default()
        });
        let cloud = cloud.await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = cloud.router(&url);
        // A separate thread: the test that starts it may end before the one that uses it.
        let listener = listener.into_std().unwrap();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                axum::serve(TcpListener::from_std(listener).unwrap(), router).await
            })
        });
        let clouds: Clouds = serde_saphyr::from_str(&cloud.clouds_yaml(&url)).unwrap();
        let account = |name: &str| clouds.clouds[name].auth.clone();
        let mut side = Self::of(
            account("simulated"),
            account("simulated-admin"),
            None,
            Duration::from_millis(2),
            Duration::from_secs(60),
        );
        side.simulated = Some(cloud.clone());
        (side.connect().await, cloud)
    }

    fn of(
        demo: Account,
        admin: Account,
        authority: Option<&[u8]>,
        pause: Duration,
        patience: Duration,
    ) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client = Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_secs(120));
        if let Some(pem) = authority {
            client = client.add_root_certificate(reqwest::Certificate::from_pem(pem).unwrap());
        }
        let client = client.build().unwrap();
        Self {
            client,
            accounts: BTreeMap::from([("demo", demo), ("admin", admin)]),
            endpoints: BTreeMap::new(),
            pause,
            simulated: None,
            patience,
            variables: BTreeMap::new(),
        }
    }

    /// Logs both accounts in and reads the catalog.
    pub(crate) async fn connect(mut self) -> Self {
        let run = uuid::Uuid::new_v4().simple().to_string()[..8].to_owned();
        self.variables.insert("run".to_owned(), json!(run));
        for (name, account) in self.accounts.clone() {
            let domain = json!({"name": "Default"});
            let login = json!({"auth": {
                "identity": {"methods": ["password"], "password": {
                    "user": {"name": account.username, "domain": domain, "password": account.password}}},
                "scope": {"project": {"name": account.project_name, "domain": domain}}}});
            let url = format!("{}/auth/tokens", account.auth_url);
            let reply = self.client.post(url).json(&login).send().await.unwrap();
            let token = reply.headers().get("x-subject-token");
            let token = token
                .unwrap_or_else(|| panic!("{name} cannot log in"))
                .to_str()
                .unwrap()
                .to_owned();
            let body: Value = reply.json().await.unwrap();
            let mut save =
                |what: &str, value: Value| self.variables.insert(format!("{name}_{what}"), value);
            save("token", json!(token));
            save("name", json!(account.username));
            save("password", json!(account.password));
            save("user", body["token"]["user"]["id"].clone());
            save("project", body["token"]["project"]["id"].clone());
            for service in body["token"]["catalog"].as_array().unwrap() {
                let public = service["endpoints"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .find(|one| one["interface"] == "public");
                let Some(url) = public.and_then(|one| one["url"].as_str()) else {
                    continue;
                };
                let kind = match service["type"].as_str().unwrap() {
                    "volumev3" | "block-storage" => "volume",
                    other => other,
                };
                self.endpoints.insert(kind.to_owned(), unversioned(url));
            }
        }
        self
    }

    /// Whether the catalog has a service.
    pub(crate) fn serves(&self, service: &str) -> bool {
        self.endpoints.contains_key(service)
    }

    pub(crate) fn is_simulated(&self) -> bool {
        self.simulated.is_some()
    }

    /// Waits between two requests of a poll.
    pub(crate) async fn pause(&self) {
        if let Some(cloud) = &self.simulated {
            cloud.advance_clock(OPERATION / 4);
        }
        tokio::time::sleep(self.pause).await;
    }

    /// Sends one request.
    pub(crate) async fn send(
        &self,
        (method, service, path): (&str, &str, &str),
        headers: &[(String, String)],
        body: Option<Vec<u8>>,
    ) -> reqwest::Result<Response> {
        let base = self
            .endpoints
            .get(service)
            .unwrap_or_else(|| panic!("no service {service}"));
        let mut request = self
            .client
            .request(
                Method::from_bytes(method.as_bytes()).unwrap(),
                format!("{base}{path}"),
            )
            .header("accept", "application/json");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if let Some(body) = body {
            request = request.body(body);
        }
        request.send().await
    }
}

/// The root URL of an endpoint, without version.
fn unversioned(url: &str) -> String {
    let end = ["/v2", "/v3"]
        .iter()
        .filter_map(|version| url.find(version))
        .min();
    url[..end.unwrap_or(url.len())]
        .trim_end_matches('/')
        .to_owned()
}
