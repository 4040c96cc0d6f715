//! RabbitMQ: messages between the processes of a service. One broker on one volume.

use super::definition::{
    Address, Callers, Definition, File, Probe, Run, Stateful, Variable, Volume, Workload, command,
};
use crate::held::Credentials;

const USER: &str = "rabbitmq";
const PORTS: &[(&str, u16)] = &[("amqp", PORT), ("management", 15672)];
const VOLUME: &str = "rabbitmq-data";
/// Probe of the broker's virtual machine by HTTP: a probe of the AMQP port would log a warning each time.
const PAGE: Probe = Probe::Http("management", "/");
/// Port of the broker.
pub(super) const PORT: u16 = 5672;

const OPTIONS: &str = "listeners.tcp.default = 5672
management.tcp.port = 15672
default_user = ferrostack
vm_memory_high_watermark.absolute = 1GB
disk_free_limit.absolute = 200MB
log.file = false
log.console = true
log.console.level = warning
";

/// [`Definition`] of RabbitMQ.
pub(super) fn definition(held: &Credentials) -> Definition {
    Definition {
        name: "rabbitmq",
        addresses: vec![
            Address {
                name: "rabbitmq",
                workload: "rabbitmq",
                ports: PORTS,
                replicas: false,
                callers: Callers::Readers,
            },
            Address {
                name: "rabbitmq-nodes",
                workload: "rabbitmq",
                ports: &[("amqp", PORT)],
                replicas: true,
                callers: Callers::Readers,
            },
        ],
        volumes: vec![Volume {
            name: VOLUME,
            size: "5Gi",
        }],
        workloads: vec![broker(held)],
        ..Definition::default()
    }
}

fn broker(held: &Credentials) -> Workload {
    let text = |text: &str| Variable::Text(text.to_owned());
    // The account of the controller. The broker takes it when its volume is empty.
    let admin = format!(
        "default_pass = {}\n",
        held.password("messaging-admin").expose()
    );
    Workload {
        name: "rabbitmq",
        stateful: Some(Stateful::one("rabbitmq-nodes")),
        run: Run {
            command: command(&["/usr/lib/rabbitmq/bin/rabbitmq-server"]),
            user: USER,
            files: vec![
                File::public(
                    "rabbitmq",
                    "/etc/rabbitmq/conf.d/10-ferrostack.conf",
                    OPTIONS.to_owned(),
                ),
                File::public(
                    "rabbitmq-plugins",
                    "/etc/rabbitmq/enabled_plugins",
                    "[rabbitmq_management].\n".to_owned(),
                ),
                File::secret(
                    "rabbitmq-secret",
                    "/etc/rabbitmq/conf.d/50-secret.conf",
                    admin,
                ),
            ],
            keys: vec![],
            claims: vec![],
            // Erlang's cookie is in HOME. It rejects one that a group can read, which volumes of a group give it.
            scratch: vec!["/tmp", "/home/rabbitmq", "/var/log/rabbitmq"],
            volumes: vec![(VOLUME, "/var/lib/rabbitmq")],
            environment: vec![
                ("HOME", text("/home/rabbitmq")),
                ("POD_NAME", Variable::Field("metadata.name")),
                ("POD_NAMESPACE", Variable::Field("metadata.namespace")),
                ("RABBITMQ_USE_LONGNAME", text("true")),
                // The data on the volume are of the node of this name.
                (
                    "RABBITMQ_NODENAME",
                    text("rabbit@$(POD_NAME).rabbitmq-nodes.$(POD_NAMESPACE).svc"),
                ),
                ("RABBITMQ_CONFIG_FILES", text("/etc/rabbitmq/conf.d")),
                ("RABBITMQ_CONF_ENV_FILE", text("/dev/null")),
                (
                    "RABBITMQ_ENABLED_PLUGINS_FILE",
                    text("/etc/rabbitmq/enabled_plugins"),
                ),
                ("RABBITMQ_MNESIA_BASE", text("/var/lib/rabbitmq/mnesia")),
                ("RABBITMQ_LOG_BASE", text("/var/log/rabbitmq")),
                // The schedulers would spin while idle.
                (
                    "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
                    text("+sbwt none +sbwtdcpu none +sbwtdio none"),
                ),
            ],
            host: None,
        },
        ports: PORTS,
        ready: PAGE,
        alive: Some(PAGE),
        needs: vec![],
    }
}
