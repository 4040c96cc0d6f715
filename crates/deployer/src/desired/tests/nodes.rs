//! Programs on compute nodes, beside guests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;

/// A spec with hypervisors with guests.
pub(crate) fn guests() -> Json {
    json!({
        "release": "2026.1",
        "nodes": {"compute": {"openstack-compute-node": "enabled"}},
        "network": {"physical": [{"name": "public", "interface": "eth1"}, {"name": "inner"}]},
        "compute": {"driver": "Libvirt", "libvirt": {"reservedCpus": 1, "reservedMemoryMib": 512}},
        "exposure": {"mode": "Edge", "host": "cloud.test", "addresses": ["192.0.2.7"]},
    })
}

/// Each program on compute nodes: whether it has all rights, its capabilities, whether it is in the network of the node, and
/// whether it sees its processes.
const PROGRAMS: [(&str, bool, &[&str], bool, bool); 6] = [
    ("libvirt", true, &[], true, true),
    ("neutron-ovn-agent", true, &[], true, false),
    (
        "nova-compute",
        false,
        &[
            "CHOWN",
            "DAC_OVERRIDE",
            "DAC_READ_SEARCH",
            "FOWNER",
            "NET_ADMIN",
        ],
        false,
        false,
    ),
    ("openvswitch", false, &["NET_ADMIN", "NET_RAW"], true, false),
    ("openvswitch-db", false, &[], false, false),
    ("ovn-controller", false, &[], false, false),
];

fn daemons(graph: &Graph) -> BTreeMap<String, Json> {
    let objects = graph.objects().map(|(_, it)| it);
    let daemons = objects.filter(|it| it.reference().kind == ObjectKind::DaemonSet);
    let named = |it: &Object| (it.reference().name.clone(), it.public()["spec"].clone());
    daemons.map(named).collect()
}

#[test]
fn programs_beside_guests_are_on_compute_nodes_and_restart_when_their_pod_is_deleted() {
    let graph = desired(&cloud(&guests()), &held());
    let daemons = daemons(&graph);
    let names: Vec<&str> = daemons.keys().map(String::as_str).collect();
    assert_eq!(names, PROGRAMS.map(|it| it.0));
    for (name, spec) in daemons {
        assert_eq!(spec["updateStrategy"]["type"], "OnDelete", "{name}");
        assert!(spec.get("replicas").is_none(), "{name}");
        let pod = &spec["template"]["spec"];
        let labels = json!({"openstack-compute-node": "enabled"});
        assert_eq!(pod["nodeSelector"], labels, "{name}");
        let container = &pod["containers"][0];
        assert!(container["readinessProbe"]["exec"].is_object(), "{name}");
        assert!(container.get("livenessProbe").is_none(), "{name}");
    }
}

#[test]
fn rights_on_a_node_are_those_that_are_listed() {
    let graph = desired(&cloud(&guests()), &held());
    let daemons = daemons(&graph);
    for (name, all, capabilities, network, processes) in PROGRAMS {
        let pod = &daemons[name]["template"]["spec"];
        assert_eq!(pod["automountServiceAccountToken"], false, "{name}");
        assert_eq!(pod["hostNetwork"] == true, network, "{name}");
        assert_eq!(pod["hostPID"] == true, processes, "{name}");
        let context = &pod["containers"][0]["securityContext"];
        assert_eq!(context["readOnlyRootFilesystem"], true, "{name}");
        assert_eq!(context["privileged"] == true, all, "{name}");
        if !all {
            assert_eq!(context["allowPrivilegeEscalation"], false, "{name}");
            assert_eq!(context["capabilities"]["drop"], json!(["ALL"]), "{name}");
            let added: Vec<&str> = items(context, "/capabilities/add")
                .map(|it| it.as_str().unwrap())
                .collect();
            assert_eq!(added, capabilities, "{name}");
        }
    }
    // Nothing else has any.
    for (name, pod) in pods(&graph) {
        if !daemons.contains_key(&name) {
            assert_eq!(
                pod["spec"]["securityContext"]["runAsNonRoot"], true,
                "{name}"
            );
            assert!(!pod.to_string().contains("hostPath"), "{name}");
        }
    }
}

#[test]
fn directories_of_nodes_are_those_of_the_cloud() {
    let held = held();
    let graph = desired(&cloud(&guests()), &held);
    for (name, spec) in daemons(&graph) {
        for volume in items(&spec, "/template/spec/volumes") {
            let Some(path) = volume.pointer("/hostPath/path") else {
                continue;
            };
            let path = path.as_str().unwrap();
            let is_ours = path.split('/').any(|part| part == held.uid());
            let known = ["/dev/net/tun", "/sys/fs/cgroup"].contains(&path);
            assert!(is_ours || known, "{name}: {path}");
        }
    }
}

#[test]
fn everything_refers_to_what_is_there_and_no_secret_is_outside_of_secrets() {
    let (cloud, held) = (cloud(&guests()), held());
    let graph = desired(&cloud, &held);
    assert_eq!(graph.problems, Vec::<String>::new());
    assert_eq!(dangling(&graph), Vec::<String>::new());
    assert_eq!(unknown_addresses(&graph), Vec::<String>::new());
    let secrets: Vec<Password> = SECRETS
        .iter()
        .flat_map(|(name, _)| held.secret(name).into_values())
        .collect();
    for (_, object) in graph.objects() {
        let public = object.public().to_string();
        let leaks = secrets.iter().any(|it| public.contains(it.expose()));
        assert!(!leaks, "{}", object.reference());
    }
}

#[test]
fn the_key_of_migrations_is_in_one_secret_that_libvirt_alone_has() {
    let (cloud, held) = (cloud(&guests()), held());
    let graph = desired(&cloud, &held);
    let (_, key) = crate::certificate::of_migrations(&cloud, &held).unwrap();
    let lines = key.expose().lines().filter(|it| !it.starts_with('-'));
    let lines: Vec<&str> = lines.filter(|it| it.len() > 8).collect();
    assert!(!lines.is_empty());
    for (_, object) in graph.objects() {
        let (public, debug) = (object.public().to_string(), format!("{object:?}"));
        let leaks = lines
            .iter()
            .any(|it| public.contains(it) || debug.contains(it));
        assert!(!leaks, "{}", object.reference());
    }
    let whole = STANDARD.encode(key.expose());
    let with_key = graph.objects().map(|(_, it)| it);
    let with_key = with_key.filter(|it| it.exposed().to_string().contains(&whole));
    let names: Vec<&str> = with_key.map(|it| it.reference().name.as_str()).collect();
    let [name] = names.as_slice() else {
        panic!("{names:?}");
    };
    let mounts = graph.objects().filter_map(|(_, it)| {
        let pod = &it.public()["spec"]["template"]["spec"];
        let has_it = pod["volumes"].to_string().contains(&format!("\"{name}\""));
        has_it.then(|| it.reference().name.clone())
    });
    assert_eq!(mounts.collect::<Vec<_>>(), ["libvirt"]);
}

#[test]
fn a_compute_knows_no_database_and_its_node_by_variables() {
    let graph = desired(&cloud(&guests()), &held());
    let texts = |name: &str| {
        let objects = graph.objects().map(|(_, it)| it.exposed());
        let ours = objects.filter(|it| it["metadata"]["labels"][CONFIGURES] == name);
        ours.map(|it| it["data"].to_string()).collect::<String>()
    };
    let compute = texts("nova-compute");
    assert!(compute.contains("compute_driver = libvirt.LibvirtDriver"));
    assert!(compute.contains("reserved_host_cpus = 1"), "{compute}");
    assert!(compute.contains("reserved_host_memory_mb = 512"));
    for text in [compute.as_str(), &texts("nova-compute-secret")] {
        assert!(!text.contains("[database]") && !text.contains("[api_database]"));
    }
    assert!(!texts("nova-api").contains("[libvirt]"));
    let daemons = daemons(&graph);
    let container = &daemons["nova-compute"]["template"]["spec"]["containers"][0];
    let host = items(container, "/env").find(|it| it["name"] == "OS_DEFAULT__HOST");
    let field = &host.unwrap()["valueFrom"]["fieldRef"]["fieldPath"];
    assert_eq!(field, "spec.nodeName");
    let command = &daemons["openvswitch"]["template"]["spec"]["containers"][0]["command"];
    let expected = json!([
        "/bin/sh",
        "/opt/ferrostack/openvswitch.sh",
        "Auto",
        "tcp:ovn-sb.openstack.svc.cluster.local:6642",
        "public=eth1",
        "inner="
    ]);
    assert_eq!(*command, expected);
}

/// A program on nodes may start another one that no command names.
#[test]
fn programs_of_ours_that_a_program_on_nodes_starts_are_in_its_container() {
    let graph = desired(&cloud(&guests()), &held());
    let daemons = daemons(&graph);
    let mut started = Vec::new();
    for (_, object) in graph.objects() {
        let object = object.exposed();
        let configures = &object["metadata"]["labels"][CONFIGURES];
        let Some(spec) = configures.as_str().and_then(|it| {
            let name = it.strip_suffix("-program").unwrap_or(it);
            daemons.get(name)
        }) else {
            continue;
        };
        let container = &spec["template"]["spec"]["containers"][0];
        let texts = object["data"].as_object().into_iter().flatten();
        let words =
            texts.flat_map(|(_, text)| text.as_str().unwrap_or_default().split_whitespace());
        for path in words.filter(|it| it.starts_with("/opt/ferrostack/")) {
            let mounted = items(container, "/volumeMounts").any(|it| it["mountPath"] == path);
            assert!(mounted, "{configures}: {path}");
            started.push(path.to_owned());
        }
    }
    assert!(
        started.iter().any(|it| it.ends_with("/nova-compute.py")),
        "{started:?}"
    );
}

/// Disks of guests are copied to no other node, so that a resize must not need one.
#[test]
fn a_server_is_resized_on_its_node() {
    let graph = desired(&cloud(&guests()), &held());
    for program in ["nova-api", "nova-conductor", "nova-compute"] {
        let objects = graph.objects().map(|(_, it)| it.exposed());
        let mut ours = objects.filter(|it| it["metadata"]["labels"][CONFIGURES] == program);
        let here = |it: Json| {
            it["data"]
                .to_string()
                .contains("allow_resize_to_same_host = true")
        };
        assert!(ours.any(here), "{program}");
    }
}
