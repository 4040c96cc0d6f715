use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use crate::check::check;
use crate::desired::tests::{cloud, full, held};
use crate::desired::{Graph, databases, desired};
use crate::parameters::Parameters;
use crate::release::Release;

fn steps(graph: &Graph) -> Vec<&str> {
    graph.steps.iter().map(|it| it.name.as_str()).collect()
}

fn pod(graph: &Graph, name: &str) -> Json {
    let (_, object) = graph.objects().find(|(step, _)| step.name == name).unwrap();
    object.public()["spec"]["template"]["spec"].clone()
}

#[test]
fn a_cloud_without_load_balancers_has_nothing_of_octavia() {
    let mut spec = full(Release::Gazpacho);
    spec.as_object_mut().unwrap().remove("services");
    let graph = desired(&cloud(&spec), &held());
    assert!(!steps(&graph).iter().any(|it| it.contains("octavia")));
    let mut words = graph.objects().map(|(_, it)| it.public().to_string());
    assert!(!words.any(|it| it.contains("9876")));
}

#[test]
fn octavia_starts_after_the_programs_that_it_asks_and_before_the_edge() {
    let cloud = cloud(&full(Release::Gazpacho));
    let graph = desired(&cloud, &held());
    let steps = steps(&graph);
    let place = |name: &str| steps.iter().position(|it| *it == name).unwrap();
    assert!(place("octavia-api") < place("edge"));
    for name in ["octavia-schema", "ovn-nb", "ovn-sb", "neutron-api"] {
        assert!(place(name) < place("octavia-api"), "{name}");
    }
    // A backup has it.
    assert!(databases(&cloud, &held()).contains(&"octavia"));
}

#[test]
fn api_and_agent_are_one_program_whose_end_is_that_of_both() {
    let graph = desired(&cloud(&full(Release::Gazpacho)), &held());
    let pod = pod(&graph, "octavia-api");
    let container = &pod["containers"][0];
    let words: Vec<&str> = container["command"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_str().unwrap())
        .collect();
    assert_eq!(
        words[..3],
        ["/bin/bash", "/opt/ferrostack/balancers.sh", "uwsgi"]
    );
    let module = words.iter().position(|it| *it == "--module").unwrap();
    assert_eq!(words[module + 1], "balancers:application");
    let mounts = container["volumeMounts"].as_array().unwrap();
    let paths: BTreeSet<&str> = mounts
        .iter()
        .map(|it| it["mountPath"].as_str().unwrap())
        .collect();
    for path in [
        "/run/octavia",
        "/opt/ferrostack/balancers.sh",
        "/opt/ferrostack/balancers.py",
    ] {
        assert!(paths.contains(path), "{paths:?}");
    }
    // It asks both, and the agent asks the database.
    let asked = container["readinessProbe"]["exec"]["command"][2]
        .as_str()
        .unwrap();
    for word in ["/healthcheck", "/run/octavia/get.sock"] {
        assert!(asked.contains(word), "{asked}");
    }
}

#[test]
fn the_databases_of_ovn_let_octavia_in() {
    let graph = desired(&cloud(&full(Release::Gazpacho)), &held());
    for name in ["ovn-nb", "ovn-sb", "mariadb", "memcached"] {
        let mut policies = graph.objects().map(|(_, it)| it).filter(|it| {
            it.public()["spec"].get("policyTypes").is_some() && it.reference().name == name
        });
        let policy = policies.next().unwrap().public().to_string();
        assert!(policy.contains("\"octavia-api\""), "{name}: {policy}");
    }
}

#[test]
fn options_that_would_break_or_do_nothing_are_refused() {
    for (section, name, value, message) in [
        (
            "api_settings",
            "bind_port",
            json!(9877),
            "uWSGI listens in place of this program",
        ),
        (
            "api_settings",
            "default_provider_driver",
            json!("amphora"),
            "load balancers are made by OVN",
        ),
        (
            "driver_agent",
            "get_socket_path",
            json!("/tmp/get.sock"),
            "the provider looks for the sockets there",
        ),
        (
            "controller_worker",
            "workers",
            json!(4),
            "no such program is in the cloud",
        ),
        (
            "ovn",
            "ovn_nb_connection",
            json!(["tcp:192.0.2.1:6641"]),
            "load balancers are made by OVN",
        ),
        (
            "service_auth",
            "username",
            json!("admin"),
            "the account is made by the controller",
        ),
    ] {
        let document = json!({"release": "2026.1", "services": {"octavia": {"enabled": true,
            "config": {section: {name: value}}}}});
        let (parameters, _) = Parameters::read(&document).unwrap();
        let found = check(&parameters);
        let text: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert!(
            text.len() == 1 && text[0].contains(message),
            "[{section}] {name}: {text:?}"
        );
    }
}
