//! A rotation with a real MariaDB and RabbitMQ: the SQL of the task of the databases is carried out by the one, the other is written by
//! the controller, and the program at the end of a rotation logs in at both.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use api::openstack::conditions::Type;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testbed::eventually;

use crate::operation::ending;
use crate::real::{Processes, account, free_port};
use crate::real_rabbitmq::{Rabbit, SERVER};
use crate::world::{World, full};

const PROGRAM: &str = "../deployer/src/operation/refused.py";

struct Maria {
    directory: tempfile::TempDir,
    port: u16,
    _processes: Processes,
}

impl Maria {
    /// A server with an administrator that has all rights. `None` without the program.
    fn start() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        let installed = Command::new("mariadb-install-db")
            .arg("--no-defaults")
            .arg(format!("--datadir={}", path("data")))
            .args(["--auth-root-authentication-method=socket", "--skip-test-db"])
            .output();
        installed.ok().filter(|it| it.status.success())?;
        let port = free_port();
        let mut processes = Processes::default();
        let mut command = Command::new("mariadbd");
        command.args(["--no-defaults", "--bind-address=127.0.0.1", "--user=root"]);
        command.args(["--skip-name-resolve", "--innodb-buffer-pool-size=32M"]);
        command.arg(format!("--datadir={}", path("data")));
        command.arg(format!("--socket={}", path("socket")));
        processes.start(command.arg(format!("--port={port}")));
        Some(Self {
            directory,
            port,
            _processes: processes,
        })
    }

    /// Carries out SQL as root.
    fn execute(&self, sql: &str) -> Output {
        let socket = self.directory.path().join("socket");
        let mut command = Command::new("mariadb");
        command.args(["--no-defaults", "--execute", sql]);
        let command = command.arg(format!("--socket={}", socket.display()));
        command.output().unwrap()
    }

    fn client(&self, (user, password): (&str, &str), sql: &str) -> Command {
        let mut command = Command::new("mariadb");
        command.args(["--no-defaults", "--host=127.0.0.1", "--protocol=tcp"]);
        command.args([format!("--port={}", self.port), format!("--user={user}")]);
        command.env("MYSQL_PWD", password);
        command.args(["nova_api", "--execute", sql]);
        command
    }

    /// True if a login is accepted, and has the rights of a service.
    fn serves(&self, login: (&str, &str)) -> bool {
        let sql = "CREATE TABLE IF NOT EXISTS it (id INT); INSERT INTO it VALUES (1)";
        self.client(login, sql).output().unwrap().status.success()
    }
}

/// True if the program finds every former login of this store refused.
fn refused(directory: &Path, former: &Value) -> Result<(), String> {
    let file = directory.join("etc/rotation/former.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, former.to_string()).unwrap();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join(PROGRAM);
    let done = Command::new("python3")
        .arg(program)
        .env("ROTATION_ROOT", directory)
        .output()
        .unwrap();
    let words = String::from_utf8(done.stderr).unwrap();
    done.status.success().then_some(()).ok_or(words)
}

impl World {
    /// Logins that the task at the end of a rotation tries.
    async fn former(&self) -> Value {
        let mut all = self.list("", "Secret").await.into_iter();
        let file = |it: &Value| it["metadata"]["labels"]["ferrostack.dev/configures"].clone();
        let secret = all.find(|it| file(it) == "rotation-check").unwrap();
        let text = secret["data"]["former.json"].as_str().unwrap();
        serde_json::from_slice(&STANDARD.decode(text).unwrap()).unwrap()
    }
}

// The real programs block this thread, so the controller needs others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_rotation_the_second_half_works_and_the_former_one_is_refused() {
    if !Path::new(SERVER).exists() {
        skipped::because(format!("no {SERVER}: install rabbitmq-server"));
        return;
    }
    let Some(maria) = Maria::start() else {
        skipped::because("no mariadb-install-db: install mariadb-server-core");
        return;
    };
    let world = World::open().await;
    let silent: simulator::nodes::Gate = std::sync::Arc::new(|_, _| Box::pin(async { None }));
    world.programs.guard(Some(silent));
    let _controller = world.running();
    world.create(full()).await;
    world.condition(Type::AccountsWritten, "False").await;
    let rabbit = Rabbit::start(SERVER, &account(&world, "messaging-admin").await);
    rabbit.answers().await;
    world.programs.lead_to("rabbitmq", rabbit.address);
    world.programs.guard(None);
    world.ready().await;
    eventually("MariaDB", || async {
        let done = maria.execute("SELECT 1");
        let words = String::from_utf8_lossy(&done.stderr).into_owned();
        done.status.success().then_some(()).ok_or(words)
    })
    .await;
    let carry_out = |sql: String| {
        let done = maria.execute(&sql);
        let words = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "MariaDB refuses it: {words}");
    };
    carry_out(world.sql().await);
    let before = world.accounts().await;
    let of_nova = (&*before["database-nova"], &*before["messaging-nova"]);
    assert!(maria.serves(("nova", of_nova.0)));
    rabbit.serves_user("nova", of_nova.1).unwrap();

    // In Make, both halves are there.
    world.faults.container_ends("databases", ending(1, "held"));
    world
        .faults
        .container_ends("rotation-check", ending(1, "held"));
    world
        .ask(
            "first",
            json!({"rotate": {"only": ["database", "messaging"]}}),
        )
        .await;
    world.operated("first", "Running", "held").await;
    carry_out(world.sql().await);
    let during = world.accounts().await;
    let next = (
        &*during["next.database-nova"],
        &*during["next.messaging-nova"],
    );
    for (user, password) in [("nova", of_nova.0), ("nova-b", next.0)] {
        assert!(maria.serves((user, password)), "{user} cannot log in");
    }
    eventually("both users in RabbitMQ", || async {
        rabbit.serves_user("nova-b", next.1)
    })
    .await;
    rabbit.serves_user("nova", of_nova.1).unwrap();
    let mut open = maria.client(("nova", of_nova.0), "SELECT SLEEP(60)");
    let open = open.stdout(Stdio::null()).stderr(Stdio::piped());
    let open = open.spawn().unwrap();
    world.tried_again("first", "databases").await;

    // In Verify, the second half alone.
    world
        .operated("first", "Running", "rotation-check: Job")
        .await;
    let mut former = world.former().await;
    former["addresses"]["database"] = format!("127.0.0.1:{}", maria.port).into();
    former["addresses"]["messaging"] = format!("127.0.0.1:{}", rabbit.broker).into();
    assert_eq!(former["logins"].as_array().unwrap().len(), 7, "logins");
    let words = refused(maria.directory.path(), &former).unwrap_err();
    assert!(
        words.contains("MariaDB: nova can still log in") && !words.contains("RabbitMQ"),
        "{words}"
    );
    carry_out(world.sql().await);
    refused(maria.directory.path(), &former).unwrap();
    assert!(!maria.serves(("nova", of_nova.0)));
    assert!(maria.serves(("nova-b", next.0)));
    let ended = open.wait_with_output().unwrap();
    let words = String::from_utf8(ended.stderr).unwrap();
    assert!(words.contains("Lost connection"), "{words}");
    rabbit.serves_user("nova-b", next.1).unwrap();
    rabbit.serves_user("nova", of_nova.1).unwrap_err();

    // What is accepted is found, and so is a store that is away.
    let mut wrong = former.clone();
    wrong["logins"] = json!([
        {"store": "messaging", "user": "nova-b", "password": next.1},
        {"store": "database", "user": "nova-b", "password": next.0}]);
    let words = refused(maria.directory.path(), &wrong).unwrap_err();
    assert!(
        words.contains("RabbitMQ: nova-b can still log in")
            && words.contains("MariaDB: nova-b can still log in")
            && !words.contains(next.0),
        "{words}"
    );
    let closed = format!("127.0.0.1:{}", free_port());
    for store in ["database", "messaging"] {
        wrong["addresses"][store] = closed.clone().into();
    }
    let words = refused(maria.directory.path(), &wrong).unwrap_err();
    let unknown = words.matches("it is not known").count();
    assert_eq!(unknown, 2, "{words}");
}
