//! The controller and a real RabbitMQ, started for the test, as a check of the simulated one.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use api::openstack::conditions::Type;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testbed::{Fuse, eventually};

use crate::real::{Processes, account, asked, free_port};
use crate::world::{World, looked};

/// Where Debian has it. `FERROSTACK_RABBITMQ` names another one.
pub(crate) const SERVER: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";
const EPMD: &str = "/usr/bin/epmd";

pub(crate) struct Rabbit {
    pub(crate) address: SocketAddr,
    /// The port of AMQP.
    pub(crate) broker: u16,
    login: String,
    _processes: Processes,
    _directory: tempfile::TempDir,
}

impl Rabbit {
    pub(crate) fn start(server: &str, password: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let [amqp, management, distribution, mapper] = [(); 4].map(|()| free_port());
        let options = format!(
            "listeners.tcp.1 = 127.0.0.1:{amqp}\nmanagement.tcp.ip = 127.0.0.1\nmanagement.tcp.port = {management}\n\
             default_user = ferrostack\ndefault_pass = {password}\nlog.file = false\nlog.console = true\n"
        );
        std::fs::create_dir(path("conf.d")).unwrap();
        std::fs::write(path("conf.d/10.conf"), options).unwrap();
        std::fs::write(path("plugins"), "[rabbitmq_management].\n").unwrap();
        let mut processes = Processes::default();
        let mapped = [
            ("ERL_EPMD_PORT", mapper.to_string()),
            ("ERL_EPMD_ADDRESS", "127.0.0.1".to_owned()),
        ];
        // Otherwise the server starts an epmd that outlives it.
        processes.start(Command::new(EPMD).envs(mapped.clone()));
        let mut command = Command::new(server);
        command.env("RABBITMQ_NODENAME", format!("test{management}@localhost"));
        command.env("RABBITMQ_DIST_PORT", distribution.to_string());
        command.env("RABBITMQ_CONF_ENV_FILE", "/dev/null");
        for (variable, name) in [
            ("HOME", ""),
            ("RABBITMQ_CONFIG_FILES", "conf.d"),
            ("RABBITMQ_ENABLED_PLUGINS_FILE", "plugins"),
            ("RABBITMQ_MNESIA_BASE", "mnesia"),
            ("RABBITMQ_LOG_BASE", "log"),
            ("RABBITMQ_PID_FILE", "pid"),
        ] {
            command.env(variable, path(name));
        }
        let loopback = "-kernel inet_dist_use_interface {127,0,0,1} +sbwt none +sbwtdcpu none";
        command.env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", loopback);
        processes.start(command.envs(mapped));
        Self {
            broker: amqp,
            address: SocketAddr::from(([127, 0, 0, 1], management)),
            login: STANDARD.encode(format!("ferrostack:{password}")),
            _processes: processes,
            _directory: directory,
        }
    }

    pub(crate) fn asked(&self, method: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
        self.asked_by(&self.login, method, path, body)
    }

    fn asked_by(
        &self,
        login: &str,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Option<(u16, Value)> {
        let login = format!("Basic {login}");
        let answer = asked(
            self.address,
            (method, path),
            ("authorization", &login),
            body,
        );
        answer.map(|(status, _, body)| (status, body))
    }

    /// Waits for the first answer.
    pub(crate) async fn answers(&self) {
        eventually("RabbitMQ", || async {
            let answer = self.asked("GET", "/api/overview", &Value::Null);
            let version = answer.map(|it| it.1["rabbitmq_version"].clone());
            version
                .filter(Value::is_string)
                .ok_or("it does not answer".to_owned())
        })
        .await;
    }

    fn changed(&self, method: &str, path: &str, body: &Value) {
        let answer = self.asked(method, path, body);
        assert!(
            answer.as_ref().is_some_and(|it| it.0 < 300),
            "{method} {path}: {answer:?}"
        );
    }

    /// Checks that nova may do everything in its virtual host, with the password of the services.
    fn serves(&self, password: &str) -> Result<(), String> {
        self.serves_user("nova", password)
    }

    /// Checks that a user may do everything in the virtual host of nova.
    pub(crate) fn serves_user(&self, user: &str, password: &str) -> Result<(), String> {
        let nova = STANDARD.encode(format!("{user}:{password}"));
        // RabbitMQ looks at the password first, and then finds that a service has no business in the management API.
        let known = self.asked_by(&nova, "GET", "/api/whoami", &Value::Null);
        let reason = known.as_ref().map(|it| &it.1["reason"]);
        let is_known = reason.is_some_and(|it| it == "Not management user");
        let path = format!("/api/permissions/nova/{user}");
        let rights = self.asked("GET", &path, &Value::Null);
        let all =
            json!({"user": user, "vhost": "nova", "configure": ".*", "write": ".*", "read": ".*"});
        let serves = is_known && rights == Some((200, all));
        serves.then_some(()).ok_or(format!("{known:?} {rights:?}"))
    }
}

// Requests to the real RabbitMQ block this thread, so the controller needs others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_rabbitmq_gets_the_accounts_keeps_them_and_drift_is_repaired() {
    let server = std::env::var("FERROSTACK_RABBITMQ").unwrap_or_else(|_| SERVER.to_owned());
    if !Path::new(&server).exists() {
        skipped::because(format!("no {server}: install rabbitmq-server"));
        return;
    }
    let world = World::open().await;
    world
        .programs
        .guard(Some(std::sync::Arc::new(|_, _| Box::pin(async { None }))));
    let running = world.running();
    world.create(json!({"release": "2026.1"})).await;
    world.condition(Type::AccountsWritten, "False").await;
    let rabbit = Rabbit::start(&server, &account(&world, "messaging-admin").await);
    rabbit.answers().await;
    world.programs.lead_to("rabbitmq", rabbit.address);
    world.programs.guard(None);
    world.ready().await;
    let password = account(&world, "messaging-nova").await;
    rabbit.serves(&password).unwrap();
    running.kill().await;

    let tags = rabbit
        .asked("GET", "/api/users/nova", &Value::Null)
        .unwrap()
        .1["tags"]
        .clone();
    for (method, path, body) in [
        (
            "PUT",
            "/api/users/nova",
            json!({"password": "other", "tags": tags}),
        ),
        ("DELETE", "/api/users/nova", Value::Null),
        ("DELETE", "/api/permissions/nova/nova", Value::Null),
        ("DELETE", "/api/vhosts/nova", Value::Null),
    ] {
        rabbit.changed(method, path, &body);
        rabbit.serves(&password).unwrap_err();
        let running = world.running();
        eventually("the repair", || async { rabbit.serves(&password) }).await;
        world.ready().await;
        running.kill().await;
    }

    // A second look finds the desired state: nothing is written, to either.
    let before = rabbit.asked("GET", "/api/users", &Value::Null);
    let fuse = Fuse::recorder();
    let running = looked(fuse.protect(&world.management.client)).await;
    running.kill().await;
    assert_eq!(rabbit.asked("GET", "/api/users", &Value::Null), before);
    assert_eq!(fuse.writes(), Vec::<String>::new());

    // Another one has taken the name.
    rabbit.changed(
        "PUT",
        "/api/vhosts/nova",
        &json!({"description": "of another"}),
    );
    let _running = world.running();
    let message = world.condition(Type::AccountsWritten, "False").await;
    assert!(
        message.contains("virtual host nova is there and is not of this cloud"),
        "{message}"
    );
}
