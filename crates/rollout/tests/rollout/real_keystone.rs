//! The controller and a real Keystone on SQLite, which is started for the test: it judges what the simulated one accepts.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use rollout::ACCOUNTS_WRITTEN;
use serde_json::{Value, json};
use testbed::eventually;

use crate::real::{Processes, account, asked, free_port};
use crate::world::World;

/// Where Debian has its programs. `FERROSTACK_KEYSTONE` names another directory.
const PROGRAMS: &str = "/usr/bin";

struct Keystone {
    address: SocketAddr,
    password: String,
    _processes: Processes,
    _directory: tempfile::TempDir,
}

impl Keystone {
    fn start(programs: &Path, password: &str, region: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().display();
        // The least that bcrypt takes.
        let options = format!(
            "[database]\nconnection = sqlite:///{root}/keystone.db\n[token]\nprovider = fernet\n\
             [identity]\npassword_hash_rounds = 4\n[cache]\nenabled = false\n\
             [fernet_tokens]\nkey_repository = {root}/keys\n[fernet_receipts]\nkey_repository = {root}/keys\n\
             [credential]\nkey_repository = {root}/keys\n"
        );
        // Where its programs look below HOME.
        let configuration = directory.path().join(".keystone");
        std::fs::create_dir(&configuration).unwrap();
        std::fs::write(configuration.join("keystone.conf"), options).unwrap();
        std::fs::create_dir(directory.path().join("keys")).unwrap();
        for (name, byte) in [("0", 1), ("1", 2)] {
            let key = URL_SAFE.encode([byte; 32]);
            std::fs::write(directory.path().join("keys").join(name), key).unwrap();
        }
        let port = free_port();
        let program = |name: &str| {
            let mut command = Command::new(programs.join(name));
            command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
            command.env("HOME", directory.path());
            command.env("OS_KEYSTONE_CONFIG_DIR", &configuration);
            command.current_dir(directory.path());
            command
        };
        let url = "http://keystone:5000/v3";
        let mut bootstrap = program("keystone-manage");
        bootstrap.args(["bootstrap", "--bootstrap-region-id", region]);
        for option in ["admin", "internal", "public"] {
            bootstrap.args([format!("--bootstrap-{option}-url").as_str(), url]);
        }
        bootstrap.env("OS_BOOTSTRAP_PASSWORD", password);
        let mut schema = program("keystone-manage");
        for command in [schema.arg("db_sync"), &mut bootstrap] {
            let ended = command.stdin(Stdio::null()).output().unwrap();
            let words = String::from_utf8_lossy(&ended.stderr).into_owned();
            assert!(ended.status.success(), "{words}");
        }
        let mut processes = Processes::default();
        let at = ["--host", "127.0.0.1", "--port", &port.to_string()].map(str::to_owned);
        processes.start(program("keystone-wsgi-public").args(at));
        Self {
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            password: password.to_owned(),
            _processes: processes,
            _directory: directory,
        }
    }

    fn login(&self, user: &str, password: &str, project: &str) -> Option<(u16, String)> {
        let domain = json!({"id": "default"});
        let user = json!({"name": user, "domain": domain, "password": password});
        let body = json!({"auth": {"identity": {"methods": ["password"], "password": {"user": user}},
            "scope": {"project": {"name": project, "domain": domain}}}});
        let answer = asked(
            self.address,
            ("POST", "/v3/auth/tokens"),
            ("accept", "*/*"),
            &body,
        )?;
        let mut headers = answer.1.lines().filter_map(|line| line.split_once(": "));
        let token = headers.find(|(name, _)| name.eq_ignore_ascii_case("x-subject-token"));
        Some((
            answer.0,
            token.map(|it| it.1.to_owned()).unwrap_or_default(),
        ))
    }

    fn asked(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let (_, token) = self.login("admin", &self.password, "admin").unwrap();
        let header = ("x-auth-token", token.as_str());
        let answer = asked(self.address, (method, path), header, body).unwrap();
        (answer.0, answer.2)
    }

    fn list(&self, kind: &str) -> Vec<Value> {
        let mut answer = self.asked("GET", &format!("/v3/{kind}"), &Value::Null).1;
        serde_json::from_value(answer[kind].take()).unwrap()
    }

    fn changed(&self, method: &str, path: &str, body: &Value) {
        let (status, answer) = self.asked(method, path, body);
        assert!(status < 300, "{method} {path}: {status} {answer}");
    }

    /// The id of the user, service, project or role of this name.
    fn id(&self, kind: &str, name: &str) -> String {
        let all = self.list(kind);
        let found = all.iter().find(|it| it["name"] == name).unwrap();
        found["id"].as_str().unwrap().to_owned()
    }

    /// Whether nova logs in, and its endpoints are in the catalogue.
    fn serves(&self, password: &str) -> Result<(), String> {
        let login = self.login("nova", password, "service").map(|it| it.0);
        let endpoints = self.list("endpoints");
        let right = endpoints
            .iter()
            .filter(|it| it["enabled"] == true && it["url"] == "http://nova:8774/v2.1");
        let roles = self.list("role_assignments").len();
        let found = (login, right.count(), endpoints.len(), roles);
        // With those of bootstrap: three endpoints, and a role each in the project and in the system.
        (found == (Some(201), 3, 15, 10))
            .then_some(())
            .ok_or(format!("{found:?}"))
    }
}

// Requests to the real one block this thread, so that the controller needs others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_keystone_gets_the_accounts_keeps_them_and_drift_is_repaired() {
    let programs = std::env::var("FERROSTACK_KEYSTONE").unwrap_or_else(|_| PROGRAMS.to_owned());
    let programs = Path::new(&programs);
    if !programs.join("keystone-wsgi-public").exists() {
        skipped::because("no keystone-wsgi-public: install python3-keystone");
        return;
    }
    let world = World::open().await;
    world
        .programs
        .guard(Some(std::sync::Arc::new(|_, _| Box::pin(async { None }))));
    let running = world.running();
    world.create(json!({"release": "zed"})).await;
    world.condition(ACCOUNTS_WRITTEN, "False").await;
    let keystone = Keystone::start(
        programs,
        &account(&world, "identity-admin").await,
        "RegionOne",
    );
    eventually("Keystone", || async {
        let login = keystone.login("admin", &keystone.password, "admin");
        login
            .filter(|it| it.0 == 201)
            .map(drop)
            .ok_or("no login".to_owned())
    })
    .await;
    world.programs.lead_to("keystone-api", keystone.address);
    world.programs.guard(None);
    world.ready().await;
    let password = account(&world, "identity-nova").await;
    keystone.serves(&password).unwrap();
    running.kill().await;

    let user = || format!("/v3/users/{}", keystone.id("users", "nova"));
    let role = |name: &str| {
        let [project, role] = [
            keystone.id("projects", "service"),
            keystone.id("roles", name),
        ];
        format!("/v3/projects/{project}{}/roles/{role}", &user()[3..])
    };
    let endpoint = || {
        let mut all = keystone.list("endpoints").into_iter();
        let found = all.find(|it| it["url"] == "http://nova:8774/v2.1").unwrap();
        format!("/v3/endpoints/{}", found["id"].as_str().unwrap())
    };
    for (method, path, body) in [
        (
            "PATCH",
            user(),
            json!({"user": {"password": "other-password"}}),
        ),
        ("PATCH", user(), json!({"user": {"enabled": false}})),
        ("DELETE", role("service"), Value::Null),
        ("PUT", role("member"), Value::Null),
        (
            "PATCH",
            endpoint(),
            json!({"endpoint": {"url": "http://other/v3"}}),
        ),
        ("PATCH", endpoint(), json!({"endpoint": {"enabled": false}})),
        (
            "DELETE",
            format!("/v3/services/{}", keystone.id("services", "nova")),
            Value::Null,
        ),
        ("DELETE", user(), Value::Null),
    ] {
        keystone.changed(method, &path, &body);
        keystone.serves(&password).unwrap_err();
        let running = world.running();
        eventually("the repair", || async { keystone.serves(&password) }).await;
        world.ready().await;
        running.kill().await;
    }

    // One of another has the name.
    keystone.changed(
        "PATCH",
        &user(),
        &json!({"user": {"description": "of another"}}),
    );
    let _running = world.running();
    let message = world.condition(ACCOUNTS_WRITTEN, "False").await;
    assert!(
        message.contains("user nova is there and is not of this cloud"),
        "{message}"
    );
}
