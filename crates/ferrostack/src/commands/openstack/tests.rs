use std::io::Write as _;

use clap::Parser;

use super::*;
use crate::cli::{Cli, Command, OpenStack};

fn run(arguments: &[&str], file: Option<&str>) -> Result<Printed, String> {
    let mut written = tempfile::Builder::new()
        .prefix("cloud")
        .suffix(".yaml")
        .tempfile()
        .unwrap();
    let mut line = vec!["ferrostack", "openstack", "config"];
    line.extend(arguments);
    if let Some(text) = file {
        written.write_all(text.as_bytes()).unwrap();
        line.extend(["-f", written.path().to_str().unwrap()]);
    }
    let Command::OpenStack(OpenStack::Config(args)) = Cli::parse_from(line).command else {
        panic!("another command");
    };
    let name = written.path().display().to_string();
    config(&args).map_err(|error| format!("{error:#}").replace(&name, "cloud.yaml"))
}

#[test]
fn every_file_is_printed_and_no_password() {
    let printed = run(&[], None).unwrap();
    for name in [
        "/etc/keystone/keystone.conf (",
        "/etc/nova/nova.conf.d/50-secret.conf",
    ] {
        assert!(printed.text.contains(name), "{name}");
    }
    assert!(printed.text.contains("release 2026.1"));
    assert!(
        printed
            .text
            .contains("connection = mysql+pymysql://nova:********@mariadb:3306/nova?charset=utf8")
    );
    let zed = run(&["keystone", "--release", "zed"], None).unwrap().text;
    assert!(
        zed.starts_with(
            "# /etc/keystone/keystone.conf (keystone 22.0.2, release zed)\n[DEFAULT]\n"
        ),
        "{zed}"
    );
    assert!(!zed.contains("nova"));
}

#[test]
fn errors_name_file_line_field_and_what_to_do() {
    let file = "release: \"2026.1\"\nservices:\n  neutron:\n    config:\n      oslo_messaging_rabbit:\n        rabbit_quorum_queues: true\n";
    assert_eq!(
        run(&[], Some(file)).unwrap_err(),
        "the parameters are rejected:\n  cloud.yaml:6: services.neutron.config.oslo_messaging_rabbit.rabbit_quorum_queues: \
         [oslo_messaging_rabbit] of neutron 2026.1 has no option rabbit_quorum_queues; did you mean rabbit_quorum_queue?"
    );
    for (file, message) in [
        (
            "release: 2026.1\n",
            "cloud.yaml:1: release: 2026.1 is a number; write it in quotes: \"2026.1\"",
        ),
        (
            "release: zed\nreplicas: 3\n",
            "cloud.yaml:2: replicas: this field is not built yet",
        ),
        (
            "release: zed\n---\nrelease: zed\n",
            "cloud.yaml:3: a second document begins here; one is expected",
        ),
        ("a: [\n", "malformed YAML"),
    ] {
        let error = run(&[], Some(file)).unwrap_err();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn what_a_later_release_lacks_is_a_warning() {
    let file = "apiVersion: ferrostack.dev/v1alpha1\nkind: OpenStack\nmetadata: {name: cloud}\nspec:\n  release: zed\n  \
                services:\n    nova:\n      config:\n        DEFAULT: {quota_cores: 4}\n";
    let printed = run(&["nova"], Some(file)).unwrap();
    let [age, warning] = printed.warnings.as_slice() else {
        panic!("{:?}", printed.warnings);
    };
    assert!(
        age.contains("spec.release: zed is out of maintenance"),
        "{age}"
    );
    assert!(
        warning.ends_with(":9: spec.services.nova.config.DEFAULT.quota_cores: this is an earlier name; it is [quota] cores now"),
        "{warning}"
    );
    assert!(printed.text.contains("[quota]\ncores = 4\n"));
}

#[test]
fn an_option_is_explained_with_its_value_and_the_reason() {
    let text = run(&["neutron", "--explain", "rabbit_quorum_queue"], None)
        .unwrap()
        .text;
    assert_eq!(
        text,
        "[oslo_messaging_rabbit] rabbit_quorum_queue (neutron 28.0.2, release 2026.1)\n  \
         takes    true or false\n  default  false\n  value    true (the type of a queue cannot change later, and quorum \
         queues grow to three brokers)\n    Use quorum queues in RabbitMQ (x-queue-type: quorum). The quorum queue is a \
         modern queue type for RabbitMQ implementing a durable, replicated FIFO queue based on the Raft consensus algorithm. \
         It is available as of RabbitMQ 3.8.0. If set this option will conflict with the HA queues (``rabbit_ha_queues``) aka \
         mirrored queues, in other words the HA queues should be disabled. Quorum queues are also durable by default so the \
         amqp_durable_queues option is ignored when this option is enabled.\n"
    );
    let json = run(
        &["nova", "--explain", "scheduler.workers", "-o", "json"],
        None,
    )
    .unwrap()
    .text;
    let parsed: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(parsed[0]["section"], "scheduler");
    assert_eq!(parsed[0]["value"], "2");
    let description = parsed[0]["description"].as_str().unwrap();
    assert!(description.contains("workers"), "{description}");
    assert_eq!(
        run(&["nova", "--explain", "scheduler.worker"], None).unwrap_err(),
        "nova 33.0.2, release 2026.1 has no option scheduler.worker; did you mean scheduler.workers?"
    );
}
