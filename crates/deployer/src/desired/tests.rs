mod apis;
mod given;
pub(crate) mod nodes;
mod probes;

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::held::ACCOUNTS;
use crate::object::Password;
use crate::parameters::Parameters;
use crate::release::Release;

/// A cloud with these fields of its spec.
pub(crate) fn cloud(spec: &Json) -> Cloud {
    let document = json!({"apiVersion": "ferrostack.dev/v1alpha1", "kind": "OpenStack",
        "metadata": {"name": "cloud", "namespace": "openstack"}, "spec": spec});
    let (parameters, _) = Parameters::read(&document).unwrap();
    Cloud::new(&document, parameters).unwrap()
}

/// A spec with everything that a cloud of the release can have.
pub(crate) fn full(release: Release) -> Json {
    let mut spec = json!({
        "release": release.name(),
        "network": {"physical": [{"name": "public"}]},
        "compute": {"driver": "Fake", "fake": {"hypervisors": 3, "zones": ["az1", "az2"]}},
        "exposure": {"mode": "Edge", "host": "cloud.test", "addresses": ["192.0.2.7"]},
    });
    if release.has_volumes() {
        spec["storage"] = json!({"volumes": {"driver": "Fake"}});
    }
    if release.has_balancers() {
        spec["services"] = json!({"octavia": {"enabled": true}});
    }
    spec
}

/// What a cluster holds, with passwords that are easy to find.
pub(crate) fn held() -> Credentials {
    let mut next = 0_u8;
    Credentials::complete("cloud", &[], || {
        next = next.wrapping_mul(5).wrapping_add(17);
        next
    })
}

/// Specs of any release, with any of several options.
pub(crate) fn specs() -> impl Strategy<Value = Json> {
    let release = prop::sample::select(Release::ALL.map(Release::name).to_vec());
    let region = "[A-Za-z0-9._-]{1,12}";
    let options = prop::collection::btree_map(
        prop::sample::select(vec![
            ("nova", "scheduler", "workers"),
            ("nova", "filter_scheduler", "max_instances_per_host"),
            ("nova", "conductor", "workers"),
            ("nova", "DEFAULT", "reserved_host_memory_mb"),
            ("keystone", "token", "expiration"),
            ("neutron", "quotas", "quota_network"),
            ("glance", "DEFAULT", "image_member_quota"),
            ("placement", "DEFAULT", "debug"),
        ]),
        1..60_u32,
        0..6,
    );
    let computes = (0..5_u32, 0..3_usize);
    let hosts = vec!["", "192.0.2.7", "cloud.test"];
    let outside = prop::sample::select(hosts);
    let all = (release, region, 1280..9000_u32, computes, outside, options);
    all.prop_map(|(release, region, mtu, (hypervisors, zones), host, options)| {
        let mut spec =
            json!({"release": release, "region": region, "network": {"mtu": mtu}, "services": {}});
        if hypervisors > 0 {
            let zones = ["az1", "az2"]
                .into_iter()
                .take(zones.min(hypervisors as usize));
            let zones: Vec<&str> = zones.collect();
            spec["compute"] =
                json!({"driver": "Fake", "fake": {"hypervisors": hypervisors, "zones": zones}});
        }
        if !host.is_empty() {
            spec["exposure"] = json!({"mode": "Edge", "host": host, "addresses": ["192.0.2.7"]});
        }
        for ((service, section, option), value) in options {
            let value = match option {
                "debug" => json!(value % 2 == 0),
                _ => json!(value),
            };
            spec["services"][service]["config"][section][option] = value;
        }
        spec
    })
}

/// The templates of all Pods, with the name of their object.
fn pods(graph: &Graph) -> Vec<(String, Json)> {
    let template = |object: &Object| {
        let template = object.public().pointer("/spec/template")?.clone();
        Some((object.reference().name.clone(), template))
    };
    graph.objects().filter_map(|(_, it)| template(it)).collect()
}

fn items<'a>(object: &'a Json, path: &str) -> impl Iterator<Item = &'a Json> {
    object
        .pointer(path)
        .and_then(Json::as_array)
        .into_iter()
        .flatten()
}

fn text(object: &Json, path: &str) -> String {
    object
        .pointer(path)
        .and_then(Json::as_str)
        .unwrap()
        .to_owned()
}

/// Every reference that leads nowhere.
fn dangling(graph: &Graph) -> Vec<String> {
    let objects: BTreeMap<(ObjectKind, String), Json> = graph
        .objects()
        .map(|(_, it)| {
            let reference = it.reference();
            ((reference.kind, reference.name.clone()), it.exposed())
        })
        .collect();
    let data = |kind, name: &str| {
        objects
            .get(&(kind, name.to_owned()))
            .map(|it| it["data"].clone())
    };
    let mut problems = Vec::new();
    for (name, pod) in pods(graph) {
        let mut volumes = BTreeMap::new();
        for volume in items(&pod, "/spec/volumes") {
            let content = if let Some(map) = volume.pointer("/configMap/name") {
                data(ObjectKind::ConfigMap, map.as_str().unwrap())
            } else if let Some(secret) = volume.pointer("/secret/secretName") {
                data(ObjectKind::Secret, secret.as_str().unwrap())
            } else if let Some(claim) = volume.pointer("/persistentVolumeClaim/claimName") {
                data(ObjectKind::PersistentVolumeClaim, claim.as_str().unwrap())
            } else {
                Some(json!({}))
            };
            if content.is_none() {
                problems.push(format!("{name}: {volume}"));
            }
            let earlier = volumes.insert(text(volume, "/name"), content);
            assert!(
                earlier.is_none(),
                "{name}: two volumes have a name: {volume}"
            );
        }
        let container = &pod["spec"]["containers"][0];
        for mount in items(container, "/volumeMounts") {
            match volumes.get(&text(mount, "/name")) {
                None => problems.push(format!("{name}: {mount}")),
                Some(content) => {
                    if let (Some(key), Some(content)) = (mount["subPath"].as_str(), content)
                        && content.get(key).is_none()
                    {
                        problems.push(format!("{name}: {mount}"));
                    }
                }
            }
        }
        for variable in items(container, "/env") {
            if let Some(key) = variable.pointer("/valueFrom/secretKeyRef") {
                let found = data(ObjectKind::Secret, key["name"].as_str().unwrap());
                if found.is_none_or(|it| it.get(key["key"].as_str().unwrap()).is_none()) {
                    problems.push(format!("{name}: {variable}"));
                }
            }
        }
        let ports: Vec<String> = items(container, "/ports")
            .map(|it| text(it, "/name"))
            .collect();
        for probe in ["readinessProbe", "livenessProbe", "startupProbe"] {
            for action in ["httpGet", "tcpSocket"] {
                if let Some(port) = container.pointer(&format!("/{probe}/{action}/port"))
                    && !ports.contains(&port.as_str().unwrap().to_owned())
                {
                    problems.push(format!("{name}: {probe} {port}"));
                }
            }
        }
    }
    for ((kind, name), object) in &objects {
        if *kind == ObjectKind::StatefulSet {
            let service = text(object, "/spec/serviceName");
            if !objects.contains_key(&(ObjectKind::Service, service.clone())) {
                problems.push(format!("{name}: {service}"));
            }
        }
        if let Some(selector) = object.pointer("/spec/selector/matchLabels") {
            let labels = &object["spec"]["template"]["metadata"]["labels"];
            let matches = selector
                .as_object()
                .unwrap()
                .iter()
                .all(|(key, value)| labels[key] == *value);
            if !matches {
                problems.push(format!("{name} does not select its own Pods"));
            }
        }
        if *kind == ObjectKind::Service {
            let selected: Vec<Json> = pods(graph)
                .into_iter()
                .map(|(_, it)| it)
                .filter(|pod| {
                    let selector = object["spec"]["selector"].as_object().unwrap();
                    selector
                        .iter()
                        .all(|(key, value)| pod["metadata"]["labels"][key] == *value)
                })
                .collect();
            for port in items(object, "/spec/ports") {
                let serves = |pod: &Json| {
                    items(pod, "/spec/containers/0/ports")
                        .any(|it| it["name"] == port["targetPort"])
                };
                if selected.len() != 1 || !selected.iter().all(serves) {
                    problems.push(format!(
                        "Service {name}: {port} has {} Pods",
                        selected.len()
                    ));
                }
            }
        }
    }
    problems
}

/// `host:port` in configuration files and commands that are no Services, or that who reads them cannot resolve.
fn unknown_addresses(graph: &Graph) -> Vec<String> {
    let mut known = BTreeSet::new();
    let mut texts = Vec::new();
    for (_, pod) in pods(graph) {
        let words = items(&pod, "/spec/containers/0/command");
        texts.extend(words.map(|it| it.as_str().unwrap().to_owned()));
    }
    for (_, object) in graph.objects() {
        let reference = object.reference();
        if reference.kind == ObjectKind::Service {
            for port in items(object.public(), "/spec/ports") {
                let (name, port) = (&reference.name, &port["port"]);
                known.insert(format!("{name}:{port}"));
                // Public URLs have the name of the cloud, and only ports that the edge has.
                if name == "edge" {
                    known.insert(format!("cloud.test:{port}"));
                }
                // OVN's libraries do not know the search domains of the Pod.
                known.insert(format!("tcp:{name}.openstack.svc.cluster.local:{port}"));
            }
        }
        if object.public()["metadata"]["labels"]
            .get(CONFIGURES)
            .is_some()
        {
            let exposed = object.exposed();
            for key in exposed["data"].as_object().unwrap().keys() {
                let data = match reference.kind {
                    ObjectKind::Secret => {
                        crate::object::decoded(&exposed, key).map(|it| it.expose().to_owned())
                    }
                    _ => exposed["data"][key].as_str().map(str::to_owned),
                };
                texts.push(data.unwrap());
            }
        }
    }
    let words = texts
        .iter()
        .flat_map(|text| text.split(['/', '@', ',', ' ', '\n', '=', ';']));
    let mut unknown = Vec::new();
    for word in words {
        let address = word.strip_prefix("tcp:").unwrap_or(word);
        if let Some((host, port)) = address.split_once(':')
            && port.parse::<u16>().is_ok_and(|port| port > 1000)
            && host.starts_with(|it: char| it.is_ascii_lowercase())
            && !known.contains(word)
        {
            unknown.push(word.to_owned());
        }
    }
    unknown
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_same_input_gives_the_same_bytes_and_every_reference_resolves(spec in specs()) {
        let (cloud, held) = (cloud(&spec), held());
        let graph = desired(&cloud, &held);
        let bytes = |graph: &Graph| graph.objects().map(|(_, it)| it.exposed().to_string()).collect::<Vec<_>>();
        prop_assert_eq!(bytes(&graph), bytes(&desired(&cloud, &held)));
        prop_assert_eq!(dangling(&graph), Vec::<String>::new());
        prop_assert_eq!(unknown_addresses(&graph), Vec::<String>::new());
        prop_assert!(graph.objects().any(|(_, it)| it.exposed().to_string().contains("tcp:ovn-sb.")));
    }

    #[test]
    fn no_secret_is_outside_of_secrets(spec in specs()) {
        let held = held();
        let graph = desired(&cloud(&spec), &held);
        let canaries: Vec<Password> = SECRETS
            .iter()
            .flat_map(|(name, _)| held.secret(name).into_values())
            .collect();
        for (_, object) in graph.objects() {
            let public = object.public().to_string();
            let debug = format!("{object:?}");
            for canary in &canaries {
                prop_assert!(!public.contains(canary.expose()), "{}", object.reference());
                prop_assert!(!debug.contains(canary.expose()), "{}", object.reference());
            }
        }
    }
}

#[test]
fn every_account_of_a_configuration_has_a_password() {
    for release in Release::ALL {
        let held = held();
        let graph = desired(&cloud(&full(release)), &held);
        let passwords = held.secret(ACCOUNTS);
        let mut used = BTreeSet::new();
        for (_, object) in graph.objects() {
            let exposed = object.exposed();
            if object.public()["metadata"]["labels"]
                .get(CONFIGURES)
                .is_none()
                || object.reference().kind != ObjectKind::Secret
            {
                continue;
            }
            for key in exposed["data"].as_object().unwrap().keys() {
                let text = crate::object::decoded(&exposed, key).unwrap();
                let text = text.expose();
                assert!(
                    !text.contains(":@") && !text.contains("= \n") && !text.contains("''"),
                    "{text}"
                );
                let found = passwords
                    .iter()
                    .filter(|(_, it)| text.contains(it.expose()));
                used.extend(found.map(|(name, _)| name.clone()));
            }
        }
        // That of the administrator is in an environment variable; the others are what names and keys are made from.
        used.extend(["identity-admin", "names", "edge-authority"].map(str::to_owned));
        // They are made for every cloud, which may get volumes and load balancers later.
        let of_volumes =
            ["cache", "database", "identity", "messaging"].map(|it| format!("{it}-cinder"));
        used.extend(of_volumes.into_iter().filter(|_| !release.has_volumes()));
        let of_balancers = ["cache", "database", "identity"].map(|it| format!("{it}-octavia"));
        used.extend(
            of_balancers
                .into_iter()
                .filter(|_| !release.has_balancers()),
        );
        assert_eq!(used, passwords.into_keys().collect(), "{release}");
    }
}

#[test]
fn steps_come_after_those_that_they_need() {
    for release in Release::ALL {
        let graph = desired(&cloud(&full(release)), &held());
        let mut done = BTreeSet::new();
        for step in &graph.steps {
            for need in &step.needs {
                assert!(
                    done.contains(need.as_str()),
                    "{release}: {} needs {need}",
                    step.name
                );
            }
            assert!(
                done.insert(step.name.as_str()),
                "{release}: two steps {}",
                step.name
            );
        }
        for name in [
            "mariadb",
            "keystone-api",
            "nova-scheduler",
            "neutron-api",
            "identities",
            "credentials",
        ] {
            assert!(done.contains(name), "{release}: {name}");
        }
    }
}

#[test]
fn pods_have_no_rights_in_kubernetes_and_none_on_their_node() {
    for release in Release::ALL {
        let graph = desired(&cloud(&full(release)), &held());
        let all = pods(&graph);
        assert!(all.len() > 20, "{}", all.len());
        for (name, pod) in all {
            let spec = &pod["spec"];
            assert_eq!(spec["automountServiceAccountToken"], false, "{name}");
            assert_eq!(spec["securityContext"]["runAsNonRoot"], true, "{name}");
            assert!(spec.get("initContainers").is_none(), "{name}");
            assert!(spec.get("serviceAccountName").is_none(), "{name}");
            let containers = spec["containers"].as_array().unwrap();
            assert_eq!(containers.len(), 1, "{name}");
            let context = &containers[0]["securityContext"];
            assert_eq!(context["readOnlyRootFilesystem"], true, "{name}");
            assert_eq!(context["allowPrivilegeEscalation"], false, "{name}");
            assert_eq!(context["capabilities"]["drop"], json!(["ALL"]), "{name}");
            let runs_always = spec.get("restartPolicy").is_none();
            assert_eq!(
                containers[0].get("readinessProbe").is_some(),
                runs_always,
                "{name}"
            );
        }
    }
}

/// What a program without a port is connected to when it works, as its readiness asks.
const CONNECTED: [(&str, &[&str]); 10] = [
    ("cinder-scheduler", &["1628"]),
    ("cinder-volume", &["1628"]),
    ("nova-conductor", &["1628"]),
    // It is connected before it has its records, without which no host can be mapped.
    ("nova-compute", &["test -e /var/lib/nova/started", "1628"]),
    ("ovn-chassis", &["19F2"]),
    ("nova-scheduler", &["1628"]),
    // Connected to the broker alone, it would be ready while it does not reach OVN.
    ("neutron-rpc-server", &["1628", "19F1", "19F2"]),
    // It has no connection to the broker.
    ("neutron-periodic-workers", &["0CEA"]),
    ("neutron-ovn-maintenance-worker", &["19F1", "19F2"]),
    // Without its databases its status is that of a healthy standby.
    (
        "ovn-northd",
        &["nb", "sb", "connection-status", "connected"],
    ),
];

#[test]
fn a_program_without_a_port_is_ready_when_it_has_its_connections() {
    for release in Release::ALL {
        let graph = desired(&cloud(&full(release)), &held());
        for (name, pod) in pods(&graph) {
            let container = &pod["spec"]["containers"][0];
            let Some(probe) = container.get("readinessProbe") else {
                continue;
            };
            if container.get("ports").is_none() {
                let row = CONNECTED.iter().find(|row| row.0 == name);
                let words = row
                    .unwrap_or_else(|| panic!("{release}: {name} is not in the table"))
                    .1;
                let script = text(probe, "/exec/command/2");
                let lacking: Vec<&&str> =
                    words.iter().filter(|it| !script.contains(**it)).collect();
                assert!(
                    lacking.is_empty(),
                    "{release}: {name}: {lacking:?}: {script}"
                );
            }
        }
    }
}

#[test]
fn neutron_and_chassis_of_zed_get_addresses_of_ovn_and_no_other_pod_knows_services() {
    for release in Release::ALL {
        let graph = desired(&cloud(&full(release)), &held());
        for (name, pod) in pods(&graph) {
            let variables: Vec<&Json> = items(&pod, "/spec/containers/0/env")
                .filter(|it| it["name"].as_str().unwrap().starts_with("OS_OVN__"))
                .collect();
            let wanted = release == Release::Zed && name == "neutron-api";
            let links = wanted || release == Release::Zed && name == "ovn-chassis";
            assert_eq!(
                pod["spec"]["enableServiceLinks"], links,
                "{release}: {name}"
            );
            // Its Python library of Open vSwitch resolves no names.
            let expected = [
                json!({"name": "OS_OVN__OVN_NB_CONNECTION", "value": "tcp:$(OVN_NB_SERVICE_HOST):6641"}),
                json!({"name": "OS_OVN__OVN_SB_CONNECTION", "value": "tcp:$(OVN_SB_SERVICE_HOST):6642"}),
            ];
            let expected: Vec<&Json> = expected.iter().filter(|_| wanted).collect();
            assert_eq!(variables, expected, "{release}: {name}");
        }
    }
}

#[test]
fn no_record_of_nova_is_named_after_a_pod() {
    for release in Release::ALL {
        let graph = desired(&cloud(&full(release)), &held());
        // Those of the hypervisors have the names of their Pods, which a StatefulSet keeps.
        let files = graph
            .objects()
            .filter(|(_, it)| it.public()["metadata"]["labels"][CONFIGURES] != "nova-compute")
            .filter_map(|(_, it)| it.public()["data"]["nova.conf"].as_str());
        let hosts: BTreeSet<&str> = files
            .map(|text| {
                text.lines()
                    .find(|line| line.starts_with("host = "))
                    .unwrap()
            })
            .collect();
        assert_eq!(hosts, BTreeSet::from(["host = control"]), "{release}");
    }
}

#[test]
fn neutron_in_uwsgi_reads_our_file_alone() {
    let graph = desired(&cloud(&json!({"release": "2025.1"})), &held());
    let all = pods(&graph);
    let (_, pod) = all.iter().find(|(name, _)| name == "neutron-api").unwrap();
    let variables: Vec<&Json> = items(pod, "/spec/containers/0/env").collect();
    let command = pod["spec"]["containers"][0]["command"].to_string();
    assert!(
        command.contains("\"--ini\",\"/etc/neutron/uwsgi.ini\""),
        "{command}"
    );
    let ini = graph
        .objects()
        .find(|(_, it)| it.public()["data"].get("uwsgi.ini").is_some());
    // Without it, entries of ended processes stay in the ring of OVN's events.
    assert_eq!(
        ini.unwrap().1.public()["data"]["uwsgi.ini"],
        "[uwsgi]\nstart-time = %t\n"
    );
    // Debian's ml2_conf.ini would be read after it.
    assert_eq!(
        variables,
        [&json!({"name": "OS_NEUTRON_CONFIG_FILES", "value": "neutron.conf"})]
    );
}

#[test]
fn a_task_runs_again_when_what_it_does_changes_and_not_before() {
    let jobs = |spec: Json| -> BTreeSet<String> {
        let graph = desired(&cloud(&spec), &held());
        let jobs = graph.objects().map(|(_, it)| it.reference());
        let jobs = jobs.filter(|it| it.kind == ObjectKind::Job);
        jobs.map(|it| it.name.clone()).collect()
    };
    let zed = jobs(json!({"release": "zed"}));
    let debug = json!({"release": "zed", "services": {"keystone": {"config": {"DEFAULT": {"debug": true}}}}});
    let changed = jobs(debug);
    let new: Vec<&String> = changed.difference(&zed).collect();
    assert_eq!(new.len(), 2, "{new:?}");
    assert!(
        new.iter().all(|name| name.starts_with("keystone-")),
        "{new:?}"
    );
    // Another image migrates the schemas again, and leaves the volumes alone.
    let epoxy = jobs(json!({"release": "2025.1"}));
    let stays: Vec<&String> = epoxy.intersection(&zed).collect();
    for name in ["mariadb-install-", "ovn-nb-create-", "databases-"] {
        assert!(
            stays.iter().any(|it| it.starts_with(name)),
            "{name}: {stays:?}"
        );
    }
    assert!(!stays.iter().any(|it| it.contains("-schema-")), "{stays:?}");
}

#[test]
fn programs_run_on_the_nodes_of_their_plane_with_what_they_request() {
    let before = desired(&cloud(&full(Release::Epoxy)), &held());
    let mut spec = full(Release::Epoxy);
    let control = json!({"openstack-control-plane": "enabled"});
    let compute = json!({"openstack-compute-node": "enabled"});
    spec["nodes"] = json!({"control": control, "compute": compute});
    spec["storage"] = json!({"class": "fast"});
    let resources = json!({"requests": {"cpu": "100m"}, "limits": {"memory": "1Gi"}});
    spec["services"] = json!({"nova": {"resources": resources}});
    let graph = desired(&cloud(&spec), &held());
    for (name, pod) in pods(&graph) {
        let wanted = if name == "nova-compute" {
            &compute
        } else {
            &control
        };
        assert_eq!(pod["spec"]["nodeSelector"], *wanted, "{name}");
        let found = &pod["spec"]["containers"][0]["resources"];
        match name.starts_with("nova-") {
            true => assert_eq!(*found, resources, "{name}"),
            false => assert!(found.is_null(), "{name}"),
        }
    }
    let claims = |graph: &Graph| {
        let all = graph
            .objects()
            .filter(|(_, it)| it.reference().kind == ObjectKind::PersistentVolumeClaim);
        all.map(|(_, it)| it.public()["spec"]["storageClassName"].clone())
            .collect::<Vec<_>>()
    };
    assert!(claims(&graph).len() > 4 && claims(&graph).iter().all(|it| it == "fast"));
    assert!(claims(&before).iter().all(Json::is_null));
    // No task runs again, because it would do the same.
    let tasks = |graph: &Graph| {
        let all = graph
            .objects()
            .filter(|(_, it)| it.reference().kind == ObjectKind::Job);
        all.map(|(_, it)| it.reference().name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(tasks(&graph), tasks(&before));
}

#[test]
fn hypervisors_are_as_many_as_asked_for_and_their_zones_take_turns() {
    for release in Release::ALL {
        let held = held();
        let graph = desired(&cloud(&full(release)), &held);
        let step = |name: &str| graph.steps.iter().find(|it| it.name == name).unwrap();
        let words = |name: &str| {
            let object = step(name).objects[0].public();
            let words = items(object, "/spec/template/spec/containers/0/command");
            let words: Vec<String> = words.map(|it| it.as_str().unwrap().to_owned()).collect();
            words
        };
        let set = step("nova-compute").objects[0].public();
        assert_eq!(set["spec"]["replicas"], 3);
        assert_eq!(set["spec"]["podManagementPolicy"], "Parallel");
        let zones = [
            "nova-compute-0:az1",
            "nova-compute-1:az2",
            "nova-compute-2:az1",
        ];
        assert_eq!(words("nova-zones")[4..], zones);
        assert!(words("nova-zones")[2].ends_with(held.uid()));
        assert_eq!(words("ovn-chassis")[5], "public:br-public");
        assert_eq!(words("ovn-chassis")[6..], zones);
        let hosts = ["nova-compute-0", "nova-compute-1", "nova-compute-2"];
        assert_eq!(words("nova-hosts")[4..], hosts);
        // What has to have happened before.
        for (name, need) in [
            ("nova-compute", "nova-conductor"),
            ("nova-hosts", "nova-compute"),
            ("nova-zones", "nova-hosts"),
        ] {
            assert!(step(name).needs.contains(&need.to_owned()), "{name}");
        }
    }
}

#[test]
fn more_hypervisors_are_mapped_by_a_task_of_their_own() {
    let task = |hypervisors: u32| {
        let spec = json!({"release": "2025.1",
            "compute": {"driver": "Fake", "fake": {"hypervisors": hypervisors}}});
        let graph = desired(&cloud(&spec), &held());
        assert!(!graph.steps.iter().any(|it| it.name == "nova-zones"));
        let mut steps = graph.steps.into_iter();
        steps.find(|it| it.name == "nova-hosts").unwrap().objects[0]
            .reference()
            .name
            .clone()
    };
    assert_eq!(task(2), task(2));
    assert_ne!(task(2), task(3));
}

#[test]
fn a_hypervisor_has_no_account_in_a_database_and_a_name_of_its_own() {
    for release in Release::ALL {
        let graph = desired(&cloud(&full(release)), &held());
        let files = |kind: ObjectKind, name: &str, key: &str| -> String {
            let of = |object: &Object| {
                object.reference().kind == kind
                    && object.public()["metadata"]["labels"][CONFIGURES] == name
            };
            let (_, object) = graph.objects().find(|(_, it)| of(it)).unwrap();
            match kind {
                ObjectKind::Secret => crate::object::decoded(&object.exposed(), key)
                    .unwrap()
                    .expose()
                    .to_owned(),
                _ => object.public()["data"][key].as_str().unwrap().to_owned(),
            }
        };
        let compute = files(ObjectKind::ConfigMap, "nova-compute", "nova.conf");
        assert!(!compute.contains("\nhost = "), "{compute}");
        assert!(
            compute.contains("compute_driver = fake.Hypervisor"),
            "{compute}"
        );
        let secret = files(ObjectKind::Secret, "nova-compute-secret", "50-secret.conf");
        assert!(!secret.contains("mysql"), "{release}");
        assert!(secret.contains("rabbit://"), "{release}");
        let api = files(ObjectKind::ConfigMap, "nova-api", "nova.conf");
        assert!(!api.contains("compute_driver"), "{api}");
    }
}

/// The objects of the kind in a cloud with these fields beside its release, by their names.
fn objects(kind: ObjectKind, exposure: Json) -> BTreeMap<String, Json> {
    let spec = json!({"release": "2025.1", "exposure": exposure});
    let graph = desired(&cloud(&spec), &held());
    assert_eq!(graph.problems, Vec::<String>::new());
    let of_kind = graph.objects().map(|(_, it)| it);
    let of_kind = of_kind.filter(|it| it.reference().kind == kind);
    of_kind
        .map(|it| (it.reference().name.clone(), it.exposed()))
        .collect()
}

#[test]
fn the_edge_is_on_the_addresses_of_nodes_and_without_one_there_is_none() {
    let edge = json!({"mode": "Edge", "host": "192.0.2.7"});
    let services = objects(ObjectKind::Service, edge);
    assert_eq!(
        services["edge"]["spec"]["externalIPs"],
        json!(["192.0.2.7"])
    );
    let others = services.iter().filter(|(name, _)| *name != "edge");
    for (name, service) in others {
        assert!(service["spec"].get("externalIPs").is_none(), "{name}");
    }
    let services = objects(ObjectKind::Service, json!({"mode": "None"}));
    assert!(!services.contains_key("edge"));
}

#[test]
fn the_administrator_gets_a_file_that_trusts_the_authority_of_the_edge() {
    let credentials = |exposure| {
        let secret = objects(ObjectKind::Secret, exposure).remove("cloud-admin");
        let secret = secret.unwrap();
        let text = |key: &str| {
            let text = crate::object::decoded(&secret, key)?;
            Some(text.expose().to_owned())
        };
        (text("clouds.yaml").unwrap(), text("ca.crt"))
    };
    let (file, authority) = credentials(json!({"mode": "Edge", "host": "192.0.2.7"}));
    assert!(
        file.contains("auth_url: \"https://192.0.2.7:5000/v3\"\n"),
        "{file}"
    );
    assert!(file.contains("cacert: /etc/openstack/ca.crt\n"), "{file}");
    let password = held().password("identity-admin");
    assert!(file.contains(password.expose()), "{file}");
    assert!(
        authority
            .unwrap()
            .starts_with("-----BEGIN CERTIFICATE-----")
    );
    let (file, authority) = credentials(json!({"mode": "None"}));
    assert!(
        file.contains("auth_url: \"http://keystone:5000/v3\"\n"),
        "{file}"
    );
    assert!(!file.contains("cacert") && authority.is_none(), "{file}");
}
