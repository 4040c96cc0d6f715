//! How the kubelet asks programs.

use super::*;

#[test]
fn what_hangs_and_accepts_connections_is_not_ready_and_is_restarted() {
    for release in Release::ALL {
        let graph = desired(&cloud(&full(release)), &held());
        let all = pods(&graph);
        for (name, action) in [
            (
                "edge",
                json!({"httpGet": {"port": "dashboard", "path": "/.edge", "scheme": "HTTPS"}}),
            ),
            (
                "rabbitmq",
                json!({"httpGet": {"port": "management", "path": "/"}}),
            ),
            ("memcached", json!({"exec": {}})),
            ("mariadb", json!({"exec": {}})),
            ("ovn-northd", json!({"exec": {}})),
        ] {
            let (_, pod) = all.iter().find(|(it, _)| it == name).unwrap();
            let container = &pod["spec"]["containers"][0];
            for (key, wanted) in action.as_object().unwrap() {
                let found = &container["livenessProbe"][key];
                let is_same = wanted.as_object().unwrap().is_empty() || found == wanted;
                assert!(
                    found.is_object() && is_same,
                    "{release}: {name}: {container}"
                );
            }
            if name != "mariadb" {
                let ready = &container["readinessProbe"];
                assert!(
                    ready.get("tcpSocket").is_none(),
                    "{release}: {name}: {ready}"
                );
            }
        }
    }
}

#[test]
fn an_api_that_is_slow_stays_behind_its_address_which_has_no_other() {
    for release in Release::ALL {
        let graph = desired(&cloud(&full(release)), &held());
        for (name, pod) in pods(&graph) {
            let container = &pod["spec"]["containers"][0];
            let ready = &container["readinessProbe"];
            let is_api = name.ends_with("-api") || name == "horizon" || name == "nova-metadata";
            if is_api {
                assert_eq!(ready["failureThreshold"], 60, "{release}: {name}: {ready}");
                // Until it has started it gets no requests.
                assert!(container["startupProbe"].is_object(), "{release}: {name}");
            }
            if ["mariadb", "rabbitmq", "nova-conductor"].contains(&name.as_str()) {
                assert_eq!(ready["failureThreshold"], 6, "{release}: {name}: {ready}");
            }
        }
    }
}
