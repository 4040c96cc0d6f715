use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::desired::tests::{cloud, full, held};
use crate::desired::{Graph, desired};
use crate::release::Release;

/// The Pods of all programs, by the name of their object.
fn pods(graph: &Graph) -> BTreeMap<String, Json> {
    let of = |(_, object): (_, &crate::object::Object)| {
        let pod = object.public().pointer("/spec/template/spec")?.clone();
        Some((object.reference().name.clone(), pod))
    };
    graph.objects().filter_map(of).collect()
}

fn has(pod: &Json, path: &str, wanted: &Json) -> bool {
    let items = pod.pointer(path).and_then(Json::as_array);
    items.is_some_and(|all| all.contains(wanted))
}

#[test]
fn it_is_ready_when_its_page_is_and_serves_the_files_of_the_image() {
    for release in Release::ALL {
        let graph = desired(&cloud(&full(release)), &held());
        let pods = pods(&graph);
        let pod = &pods["horizon"];
        let container = &pod["containers"][0];
        // Django rejects hosts that it does not know, and the kubelet would ask for an address.
        let page = json!({"port": "http", "path": "/auth/login/",
            "httpHeaders": [{"name": "Host", "value": "horizon"}]});
        assert_eq!(container["readinessProbe"]["httpGet"], page, "{release}");
        let map = json!("/static=/var/lib/openstack-dashboard/static");
        assert!(has(container, "/command", &map), "{container}");
        let mounts = container["volumeMounts"].as_array().unwrap().iter();
        let paths: Vec<&str> = mounts.map(|it| it["mountPath"].as_str().unwrap()).collect();
        let files = [
            "/etc/openstack-dashboard/local_settings.py",
            "/etc/openstack-dashboard/local_settings.d/50-secret.py",
            "/tmp",
        ];
        assert_eq!(paths, files, "{release}");
    }
}

#[test]
fn its_key_is_in_one_secret_that_no_other_pod_has() {
    for release in Release::ALL {
        let held = held();
        let graph = desired(&cloud(&full(release)), &held);
        let key = held.password("sessions-horizon");
        let with_key = graph.objects().filter(|(_, it)| {
            let file = crate::object::decoded(&it.exposed(), "50-secret.py");
            file.is_some_and(|it| it.expose().contains(key.expose()))
        });
        assert_eq!(with_key.count(), 1, "{release}");
        let readers = pods(&graph).into_iter().filter(|(_, pod)| {
            let mut volumes = pod["volumes"].as_array().unwrap().iter();
            volumes.any(|it| it["name"] == "horizon-secret")
        });
        let readers: Vec<String> = readers.map(|(name, _)| name).collect();
        assert_eq!(readers, ["horizon"], "{release}");
    }
}

#[test]
fn a_changed_setting_restarts_it_and_nothing_else() {
    let with = |config: Json| {
        let spec = json!({"release": "2025.1", "services": {"horizon": {"config": config}}});
        pods(&desired(&cloud(&spec), &held()))
    };
    let before = with(json!({}));
    let after = with(json!({"SITE_BRANDING": "Ours"}));
    let changed = after.iter().filter(|(name, pod)| before[*name] != **pod);
    let changed: Vec<&String> = changed.map(|(name, _)| name).collect();
    assert_eq!(changed, ["horizon"]);
}
