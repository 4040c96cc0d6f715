use super::*;
use crate::environment::Environment;

const CLOUDS: &str = "clouds:\n  mine:\n    auth: {auth_url: http://127.0.0.1:1/v3, username: a, password: hidden, project_name: p}\n";

fn config() -> CloudConfig {
    CloudConfig::parse(CLOUDS, "mine").unwrap()
}

fn source(variables: &[(&str, &str)]) -> Source {
    let options = ClusterOptions::default();
    Source::new("x", &options, None, &Environment::with(variables), (1, 0)).unwrap()
}

#[test]
fn credentials_are_those_of_one_file() {
    let mut from_cloud = source(&[("OPENSTACK_CLOUD", "other")]);
    take_credentials(&mut from_cloud, &config());
    assert_eq!(from_cloud.value("OPENSTACK_CLOUD"), Some("mine"));
    let mut given = source(&[
        ("OPENSTACK_CLOUD", "other"),
        ("OPENSTACK_CLOUD_YAML_B64", "e30K"),
    ]);
    take_credentials(&mut given, &config());
    assert_eq!(given.value("OPENSTACK_CLOUD"), Some("other"));
    assert_eq!(given.value("OPENSTACK_CLOUD_YAML_B64"), Some("e30K"));
}

#[test]
fn choices_are_listed_with_the_variable_and_the_flag() {
    let choice = |what, values: &[&str]| Choices {
        what,
        why: format!("there are {}", values.len()),
        values: values
            .iter()
            .map(|value| ((*value).to_owned(), "named so".to_owned()))
            .collect(),
    };
    let many: Vec<String> = (0..14).map(|number| format!("i{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let open = [
        (
            "KUBERNETES_VERSION",
            choice("Kubernetes version", &["v1.34.2", "v1.33.0"]),
        ),
        ("OPENSTACK_IMAGE_NAME", choice("image", &many)),
        ("OPENSTACK_FAILURE_DOMAIN", choice("zone", &[])),
    ];
    let text = undecided("mine", &open);
    assert!(
        text.starts_with(
            "cloud `mine` leaves a choice: set these variables, or answer in a terminal\n"
        ),
        "{text}"
    );
    for line in [
        "KUBERNETES_VERSION (or --kubernetes-version): Kubernetes version; there are 2",
        "  v1.34.2  named so",
        "OPENSTACK_IMAGE_NAME: image; there are 14",
        "  … 2 more",
        "OPENSTACK_FAILURE_DOMAIN: zone; there are 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}

#[test]
fn the_command_to_repeat_has_every_value_and_no_secret() {
    let options = ClusterOptions {
        worker_machine_count: Some(2),
        flavor: Some("without-lb".to_owned()),
        ..ClusterOptions::default()
    };
    let environment = Environment::with(&[("OPENSTACK_IMAGE_NAME", "my image")]);
    let mut source = Source::new("x", &options, None, &environment, (1, 0)).unwrap();
    take_credentials(&mut source, &config());
    source.set("KUBERNETES_VERSION", "v1.34.2", Origin::Answer);
    source.set(
        "OPENSTACK_SSH_KEY_NAME",
        "",
        Origin::Cloud("mine".to_owned()),
    );
    let line = to_repeat(
        &source,
        &options,
        "ferrostack generate cluster x",
        " --cloud mine",
    );
    assert_eq!(
        line,
        "OPENSTACK_IMAGE_NAME='my image' OPENSTACK_SSH_KEY_NAME='' ferrostack generate cluster x --cloud mine \
         --kubernetes-version v1.34.2 --worker-machine-count 2 --flavor without-lb"
    );
}

#[test]
fn nobody_is_asked_for_what_the_template_has_a_fitting_default_for() {
    let options = ClusterOptions {
        flavor: Some("topology".to_owned()),
        ..ClusterOptions::default()
    };
    let source = Source::new("x", &options, None, &Environment::with(&[]), (1, 0)).unwrap();
    let choices = |values: &[&str]| Choices {
        what: "value",
        why: String::new(),
        values: values
            .iter()
            .map(|value| ((*value).to_owned(), String::new()))
            .collect(),
    };
    let fits = |variable: &str, values: &[&str]| default_fits(&source, variable, &choices(values));
    assert!(fits(
        "OPENSTACK_EXTERNAL_NETWORK_NAME",
        &["public", "other"]
    ));
    assert!(!fits("OPENSTACK_EXTERNAL_NETWORK_NAME", &["a", "b"]));
    assert!(!fits("OPENSTACK_EXTERNAL_NETWORK_NAME", &[]));
    assert!(fits("OPENSTACK_SSH_KEY_NAME", &["k1", "k2", ""]));
    assert!(fits("OPENSTACK_DNS_NAMESERVERS", &[]));
    assert!(!fits("OPENSTACK_IMAGE_NAME", &["a"]));
}
