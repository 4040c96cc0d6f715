use super::*;

const OFFICIAL: &str = "registry.k8s.io/coredns/coredns";

fn deployment(tag: &str, key: &str) -> Deployment {
    serde_json::from_value(json!({"spec": {"selector": {}, "template": {"spec": {
        "containers": [{"name": NAME, "image": format!("{OFFICIAL}:{tag}")}],
        "volumes": [{"name": VOLUME, "configMap": {"name": NAME, "items": [{"key": key, "path": COREFILE}]}}],
    }}}}))
    .unwrap()
}

fn map(data: Value) -> ConfigMap {
    serde_json::from_value(json!({ "data": data })).unwrap()
}

fn state(deployment: &Deployment, map: &ConfigMap, version: &str) -> CoreDns {
    let configuration = ClusterConfiguration::default();
    match change(deployment, &configuration, &version.parse().unwrap()) {
        Ok(None) => CoreDns::InOrder,
        Ok(Some(change)) => upgrade(change, map),
        Err(problem) => CoreDns::Blocked(problem.to_string()),
    }
}

const OLD: &str = ". {\n    kubernetes {\n        upstream\n    }\n}\n";
const NEW: &str = ". {\n    kubernetes {\n    }\n}\n";

#[test]
fn an_upgrade_that_was_interrupted_goes_on_from_the_corefile_that_is_read() {
    let image = format!("{OFFICIAL}:v1.8.4");
    let all = [
        Write::Map(vec![(BACKUP, OLD)]),
        Write::Deployment(None, BACKUP),
        Write::Map(vec![(COREFILE, NEW)]),
        Write::Deployment(Some(&image), COREFILE),
    ];
    let states = [
        (COREFILE, json!({COREFILE: OLD})),
        (COREFILE, json!({COREFILE: OLD, BACKUP: OLD})),
        (BACKUP, json!({COREFILE: OLD, BACKUP: OLD})),
        (BACKUP, json!({COREFILE: NEW, BACKUP: OLD})),
    ];
    for (done, (key, data)) in states.into_iter().enumerate() {
        let found = state(&deployment("v1.6.7", key), &map(data.clone()), "v1.22.0");
        let CoreDns::Outdated(upgrade) = found else {
            panic!("{key} {data}: {found:?}");
        };
        assert_eq!(upgrade.writes(), all[done..], "{key} {data}");
    }
    let done = map(json!({COREFILE: NEW, BACKUP: OLD}));
    let found = state(&deployment("v1.8.4", COREFILE), &done, "v1.22.0");
    assert_eq!(found, CoreDns::InOrder);
}

#[test]
fn a_corefile_that_stays_needs_no_detour() {
    let found = state(
        &deployment("v1.12.1", COREFILE),
        &map(json!({COREFILE: NEW})),
        "v1.35.0",
    );
    let CoreDns::Outdated(upgrade) = found else {
        panic!("{found:?}");
    };
    let image = format!("{OFFICIAL}:v1.13.1");
    let expected = [
        Write::Map(vec![(BACKUP, NEW)]),
        Write::Deployment(Some(&image), COREFILE),
    ];
    assert_eq!(upgrade.writes(), expected);
}

#[test]
fn what_kubeadm_has_not_deployed_is_left_alone() {
    let mut other = deployment("v1.6.7", COREFILE);
    let pod = other.spec.template.spec.as_mut().unwrap();
    pod.volumes = None;
    let data = map(json!({COREFILE: OLD}));
    assert_eq!(state(&other, &data, "v1.35.0"), CoreDns::InOrder);
}

#[test]
fn what_cannot_be_upgraded_is_blocked_with_the_reason() {
    let data = || map(json!({COREFILE: OLD}));
    for (deployment, map, words) in [
        (deployment("latest", COREFILE), data(), "`latest`"),
        (
            deployment("v1.6.7", BACKUP),
            data(),
            "no key Corefile-backup",
        ),
        (
            deployment("v1.6.7", COREFILE),
            map(json!({COREFILE: "}"})),
            "line 1",
        ),
        (
            deployment("v1.2.0", COREFILE),
            data(),
            "CoreDNS 1.2.0 is not known here",
        ),
    ] {
        match state(&deployment, &map, "v1.35.0") {
            CoreDns::Blocked(why) => assert!(why.contains(words), "{why}"),
            other => panic!("{words}: {other:?}"),
        }
    }
}

#[test]
fn endpoint_slices_are_allowed_once() {
    let role = |rules: Value| -> ClusterRole {
        serde_json::from_value(json!({ "metadata": {}, "rules": rules })).unwrap()
    };
    let core = json!({"apiGroups": [""], "resources": ["endpoints"], "verbs": ["list"]});
    let rules = rules_with_endpoint_slices(&role(json!([core]))).unwrap();
    assert_eq!(rules.len(), 2);
    assert_eq!(rules[0], core);
    assert_eq!(rules_with_endpoint_slices(&role(json!(rules))), None);
}
