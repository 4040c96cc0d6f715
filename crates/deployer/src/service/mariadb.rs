//! MariaDB: databases of all services. One replica on one volume.

use super::connections;
use super::definition::{
    Address, Callers, Definition, File, Probe, Run, Stateful, Task, Volume, Workload, command,
};
use super::mark::Marked;
use crate::held::Credentials;
use crate::held::halves::Login;
use crate::parameters::Parameters;

const USER: &str = "mysql";
const PORTS: &[(&str, u16)] = &[("mysql", PORT)];
/// Port of the server.
pub(super) const PORT: u16 = 3306;
const DATA: &str = "/var/lib/mysql";
const VOLUME: &str = "mariadb-data";

/// Options of the server. Services rely on transactions that may change rows changed by others meanwhile: with snapshot
/// isolation, the default since 11.6, two first logins of a user in a day end in error 1020. Older servers without the
/// option skip the line (`loose`).
const OPTIONS: &str = "[mariadbd]
datadir = /var/lib/mysql/data
socket = /run/mysqld/mysqld.sock
pid-file = /run/mysqld/mariadbd.pid
tmpdir = /tmp
init-file = /etc/mysql/init.sql
bind-address = 0.0.0.0
port = 3306
skip-name-resolve
character-set-server = utf8mb3
loose-innodb-snapshot-isolation = OFF
max-allowed-packet = 64M
innodb-buffer-pool-size = 256M
";

/// Command to make the directory of the database.
const INSTALL: &str = "mariadb-install-db --no-defaults --datadir=/var/lib/mysql/new \
--auth-root-authentication-method=socket --auth-root-socket-user=mysql --skip-test-db";

/// [`Definition`] of MariaDB; `databases` are the databases of all services, each with the account that has all rights.
pub(super) fn definition(
    parameters: &Parameters,
    held: &Credentials,
    databases: &[(&'static str, &'static str)],
) -> Definition {
    Definition {
        name: "mariadb",
        addresses: vec![Address {
            name: "mariadb",
            workload: "mariadb",
            ports: PORTS,
            replicas: false,
            callers: Callers::Readers,
        }],
        volumes: vec![Volume {
            name: VOLUME,
            size: "10Gi",
        }],
        tasks: vec![install(held), accounts(held, databases)],
        workloads: vec![server(parameters, held)],
        ..Definition::default()
    }
}

fn install(held: &Credentials) -> Task {
    let database = Marked {
        volume: VOLUME,
        directory: DATA,
        data: "data",
        make: INSTALL,
    };
    Task {
        name: "mariadb-install",
        run: Run {
            command: database.command(held.uid()),
            user: USER,
            scratch: vec!["/tmp"],
            volumes: vec![(VOLUME, DATA)],
            ..Run::default()
        },
        needs: vec![],
        // The server has the volume by then.
        repeat: false,
    }
}

fn server(parameters: &Parameters, held: &Credentials) -> Workload {
    // Run at each start, before the first connection: the account has this password, whatever the volume holds.
    let admin = account("ferrostack", held.password("database-admin").expose())
        + "GRANT ALL ON *.* TO 'ferrostack'@'%' WITH GRANT OPTION;\n";
    let options = format!(
        "{OPTIONS}max-connections = {}\n",
        connections::most(parameters)
    );
    Workload {
        name: "mariadb",
        stateful: Some(Stateful::one("mariadb")),
        run: Run {
            command: command(&["mariadbd", "--defaults-file=/etc/mysql/ferrostack.cnf"]),
            user: USER,
            files: vec![
                File::public("mariadb", "/etc/mysql/ferrostack.cnf", options),
                File::secret("mariadb-init", "/etc/mysql/init.sql", admin),
            ],
            scratch: vec!["/tmp", "/run/mysqld"],
            volumes: vec![(VOLUME, DATA)],
            ..Run::default()
        },
        ports: PORTS,
        ready: Probe::Tcp("mysql"),
        alive: Some(Probe::Command(&[
            "mariadb-admin",
            "--no-defaults",
            "--socket=/run/mysqld/mysqld.sock",
            "ping",
        ])),
        needs: vec!["mariadb-install"],
    }
}

/// Command with a wait: a node may learn the server's address seconds after the server is ready, and rejects
/// connections until then. The second program reports other problems.
const ACCOUNTS: &str = "mariadb-admin --defaults-file=/etc/accounts/client.cnf --connect-timeout=5 --wait=3 ping >/dev/null 2>&1; \
    exec mariadb --defaults-file=/etc/accounts/client.cnf '--execute=source /etc/accounts/databases.sql'";

/// Login of the administrator, as a [`File`] for MariaDB's clients.
pub(super) fn client(held: &Credentials) -> File {
    let text = format!(
        "[client]\nhost = mariadb\nuser = ferrostack\npassword = {}\n",
        held.password("database-admin").expose()
    );
    File::secret("databases-client", "/etc/accounts/client.cnf", text)
}

/// [`Task`] that makes databases and accounts of the services.
fn accounts(held: &Credentials, databases: &[(&'static str, &'static str)]) -> Task {
    let mut sql = String::new();
    for (service, database) in databases {
        sql += &format!("CREATE DATABASE IF NOT EXISTS `{database}` CHARACTER SET utf8mb3;\n");
        for Login { user, password } in held.logins("database", service) {
            sql += &account(&user, password.expose());
            sql += &format!("GRANT ALL ON `{database}`.* TO '{user}'@'%';\n");
        }
    }
    let dropped = held.dropped().into_iter();
    for (_, Login { user, .. }) in dropped.filter(|(it, _)| it.starts_with("database-")) {
        // Connections outlive their account.
        sql += &format!("DROP USER IF EXISTS '{user}'@'%';\nKILL USER '{user}'@'%';\n");
    }
    Task {
        name: "databases",
        run: Run {
            command: command(&["/bin/sh", "-c", ACCOUNTS]),
            user: USER,
            files: vec![
                client(held),
                File::secret("databases", "/etc/accounts/databases.sql", sql),
            ],
            scratch: vec!["/tmp"],
            ..Run::default()
        },
        needs: vec!["mariadb"],
        repeat: false,
    }
}

/// SQL for an account with this password. Passwords have letters and digits only.
fn account(name: &str, password: &str) -> String {
    format!(
        "CREATE USER IF NOT EXISTS '{name}'@'%';\nALTER USER '{name}'@'%' IDENTIFIED BY '{password}';\n"
    )
}
