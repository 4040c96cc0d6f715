use proptest::prelude::*;
use serde_json::{Value, json};

use crate::bootstrap::v1beta2::KubeadmConfigSpec;
use crate::conversion::stash;
use crate::convert::convert;

const OLD: &str = "bootstrap.cluster.x-k8s.io/v1beta1";
const NEW: &str = "bootstrap.cluster.x-k8s.io/v1beta2";

fn config(version: &str, spec: Value) -> Value {
    json!({"apiVersion": version, "kind": "KubeadmConfig", "metadata": {"name": "c"}, "spec": spec})
}

#[test]
fn arguments_become_a_list_and_durations_seconds() {
    let old = config(
        OLD,
        json!({
            "files": [],
            "useExperimentalRetryJoin": true,
            "clusterConfiguration": {
                "apiVersion": "kubeadm.k8s.io/v1beta3",
                "clusterName": "demo",
                "networking": {"podSubnet": "10.0.0.0/8"},
                "apiServer": {
                    "extraArgs": {"v": "2", "cloud-provider": "external"},
                    "timeoutForControlPlane": "20m",
                },
                "etcd": {"local": {"extraArgs": {"quota-backend-bytes": "8589934592"}}},
            },
            "initConfiguration": {
                "bootstrapTokens": [{"token": "abcdef.0123456789abcdef", "ttl": "24h0m0s"}],
                "nodeRegistration": {"taints": [], "kubeletExtraArgs": {"cloud-provider": "external"}},
            },
            "joinConfiguration": {"discovery": {"timeout": "5m0s"}},
            "diskSetup": {"partitions": [
                {"device": "/dev/vdb", "layout": true},
                {"device": "/dev/vdc", "layout": true, "diskLayout": [{"percentage": 100}]},
            ]},
        }),
    );
    let new = convert(old.clone(), NEW).unwrap();
    let args =
        json!([{"name": "cloud-provider", "value": "external"}, {"name": "v", "value": "2"}]);
    assert_eq!(
        new["spec"],
        json!({
            "clusterConfiguration": {
                "apiServer": {"extraArgs": args},
                "etcd": {"local": {"extraArgs": [{"name": "quota-backend-bytes", "value": "8589934592"}]}},
            },
            "initConfiguration": {
                "bootstrapTokens": [{"token": "abcdef.0123456789abcdef", "ttlSeconds": 86400}],
                "nodeRegistration": {
                    "taints": [],
                    "kubeletExtraArgs": [{"name": "cloud-provider", "value": "external"}],
                },
                "timeouts": {"controlPlaneComponentHealthCheckSeconds": 1200},
            },
            "joinConfiguration": {"timeouts": {
                "tlsBootstrapSeconds": 300,
                "controlPlaneComponentHealthCheckSeconds": 1200,
            }},
            "diskSetup": {"partitions": [
                {"device": "/dev/vdb", "layout": true},
                {"device": "/dev/vdc", "diskLayout": [{"percentage": 100}]},
            ]},
        })
    );
    serde_json::from_value::<KubeadmConfigSpec>(new["spec"].clone()).unwrap();
    assert_eq!(
        convert(new, OLD).unwrap(),
        old,
        "the way back loses nothing"
    );
}

#[test]
fn duplicate_arguments_survive_a_visit_to_v1beta1() {
    let args = json!([{"name": "a", "value": "1"}, {"name": "a", "value": "2"}, {"name": "b", "value": ""}]);
    let new = config(
        NEW,
        json!({"clusterConfiguration": {"scheduler": {"extraArgs": args}}}),
    );
    let old = convert(new.clone(), OLD).unwrap();
    assert_eq!(
        old["spec"]["clusterConfiguration"]["scheduler"]["extraArgs"],
        json!({"a": "2", "b": ""})
    );
    assert_eq!(convert(old, NEW).unwrap(), new);
}

#[test]
fn an_edit_in_the_other_version_wins_over_the_stash() {
    let new = config(
        NEW,
        json!({"joinConfiguration": {"timeouts": {"discoverySeconds": 7, "tlsBootstrapSeconds": 60}}}),
    );
    let mut old = convert(new, OLD).unwrap();
    old["spec"]["joinConfiguration"]["discovery"]["timeout"] = json!("2m0s");
    let back = convert(old, NEW).unwrap();
    assert_eq!(
        back["spec"]["joinConfiguration"]["timeouts"],
        json!({"tlsBootstrapSeconds": 120, "discoverySeconds": 7})
    );
    assert_eq!(back["metadata"].get("annotations"), None);
}

#[test]
fn status_moves_between_the_contracts() {
    let mut old = config(OLD, json!({}));
    old["status"] = json!({
        "ready": true,
        "dataSecretName": "c",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        "v1beta2": {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    });
    let new = convert(old.clone(), NEW).unwrap();
    assert_eq!(
        new["status"]["initialization"],
        json!({"dataSecretCreated": true})
    );
    assert_eq!(new["status"]["conditions"][0]["reason"], "Ready");
    assert_eq!(
        new["status"]["deprecated"]["v1beta1"]["conditions"][0]["type"],
        "Ready"
    );
    assert_eq!(convert(new, OLD).unwrap(), old);
}

#[test]
fn what_is_no_duration_is_refused_with_its_field() {
    let old = config(
        OLD,
        json!({"clusterConfiguration": {"apiServer": {"timeoutForControlPlane": "soon"}}}),
    );
    let error = convert(old, NEW).unwrap_err().to_string();
    assert!(
        error.contains("spec.clusterConfiguration.apiServer.timeoutForControlPlane"),
        "{error}"
    );
    assert!(error.contains("soon"), "{error}");
}

#[test]
fn a_broken_stash_is_ignored() {
    let mut old = config(OLD, json!({"verbosity": 3}));
    old["metadata"]["annotations"] = json!({stash::ANNOTATION: "{", "mine": "stays"});
    let new = convert(old, NEW).unwrap();
    assert_eq!(new["metadata"]["annotations"], json!({"mine": "stays"}));
    assert_eq!(new["spec"], json!({"verbosity": 3}));
}

/// The kubeadm documents of upstream's templates; skipped if they are not available.
#[test]
fn upstream_templates_convert_validate_and_come_back() {
    let root = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/upstream/templates"
    );
    if !std::path::Path::new(root).is_dir() {
        skipped::because(format_args!("no released templates at {root}"));
        return;
    }
    let mut seen = 0;
    for release in ["capo-v0.12.0", "capo-v0.14.0", "capo-v0.15.0-beta.0"] {
        let Ok(files) = std::fs::read_dir(format!("{root}/{release}")) else {
            continue;
        };
        for file in files.map(|file| file.unwrap().path()) {
            for document in documents(&std::fs::read_to_string(&file).unwrap()) {
                seen += usize::from(check(&document));
            }
        }
    }
    assert!(
        seen > 10 || std::fs::metadata(root).is_err(),
        "only {seen} documents"
    );
}

fn documents(text: &str) -> Vec<Value> {
    let mut plain = text
        .replace("$${", "%")
        .replace("${KUBERNETES_VERSION}", "v1.34.1");
    while let Some(start) = plain.find("${") {
        let end = plain[start..].find('}').unwrap() + start;
        plain.replace_range(start..=end, "3");
    }
    plain
        .split("\n---\n")
        .filter_map(|document| serde_saphyr::from_str::<Value>(document).ok())
        .collect()
}

/// Checks a document if it is one of ours.
fn check(document: &Value) -> bool {
    let version = document["apiVersion"].as_str().unwrap_or_default();
    let kind = document["kind"].as_str().unwrap_or_default();
    let group = version.split('/').next().unwrap_or_default();
    if ![crate::bootstrap::GROUP, crate::controlplane::GROUP].contains(&group) {
        return false;
    }
    let hub = convert(document.clone(), &format!("{group}/v1beta2")).unwrap();
    let mut stored = hub.clone();
    crate::admission::default_object(&mut stored, None);
    let review = crate::admission::Review {
        object: &stored,
        old: None,
        dry_run: false,
    };
    // `replicas` in these templates is a variable, which is replaced by 3.
    assert_eq!(crate::admission::validate(review), Ok(()), "{kind}");
    match kind {
        "KubeadmControlPlane" => {
            serde_json::from_value::<crate::controlplane::v1beta2::KubeadmControlPlane>(stored)
                .map(drop)
        }
        "KubeadmConfigTemplate" => {
            serde_json::from_value::<crate::bootstrap::v1beta2::KubeadmConfigTemplate>(stored)
                .map(drop)
        }
        _ => Ok(()),
    }
    .unwrap();
    assert_eq!(
        convert(hub, version).unwrap(),
        *document,
        "{kind} comes back"
    );
    true
}

fn arg() -> impl Strategy<Value = Value> {
    ("[a-c]{1,2}", "[0-9]{0,2}").prop_map(|(name, value)| json!({"name": name, "value": value}))
}

fn hub_spec() -> impl Strategy<Value = Value> {
    let args = || proptest::collection::vec(arg(), 1..4);
    let seconds = || proptest::option::of(0..100_000i32);
    (
        proptest::option::of(args()),
        proptest::option::of(args()),
        seconds(),
        seconds(),
        seconds(),
        seconds(),
        proptest::option::of(proptest::collection::vec("[a-z ]{1,9}", 1..3)),
        proptest::option::of(any::<bool>()),
    )
        .prop_map(|(server, kubelet, health, tls, discovery, ttl, commands, taints)| {
            let mut spec = json!({});
            if let Some(args) = server {
                spec["clusterConfiguration"]["apiServer"]["extraArgs"] = json!(args);
            }
            if let Some(args) = kubelet {
                spec["joinConfiguration"]["nodeRegistration"]["kubeletExtraArgs"] = json!(args);
            }
            if let Some(seconds) = health {
                spec["initConfiguration"]["timeouts"]["controlPlaneComponentHealthCheckSeconds"] =
                    json!(seconds);
            }
            if let Some(seconds) = tls {
                spec["joinConfiguration"]["timeouts"]["tlsBootstrapSeconds"] = json!(seconds);
            }
            if let Some(seconds) = discovery {
                spec["joinConfiguration"]["timeouts"]["discoverySeconds"] = json!(seconds);
            }
            if let Some(seconds) = ttl {
                spec["initConfiguration"]["bootstrapTokens"] =
                    json!([{"token": "abcdef.0123456789abcdef", "ttlSeconds": seconds}]);
            }
            if let Some(commands) = commands {
                spec["preKubeadmCommands"] = json!(commands);
            }
            if let Some(empty) = taints {
                let taint = json!([{"key": "k", "effect": "NoSchedule"}]);
                spec["initConfiguration"]["nodeRegistration"]["taints"] =
                    if empty { json!([]) } else { taint };
            }
            spec
        })
}

/// A spec in v1beta1, including fields that v1beta2 does not have.
fn old_spec() -> impl Strategy<Value = Value> {
    let duration = || prop_oneof!["[0-9]{1,3}m", "[0-9]{1,2}h[0-9]{1,2}m[0-9]{1,2}s", "1500ms"];
    (
        proptest::option::of(duration()),
        proptest::option::of(duration()),
        any::<[bool; 5]>(),
        proptest::collection::btree_map("[a-z]{1,3}", "[a-z]{0,3}", 0..3),
    )
        .prop_map(|(server, join, [empty, typed, retry, layout, bare], args)| {
            let mut spec = json!({});
            if let Some(text) = server {
                spec["clusterConfiguration"]["apiServer"]["timeoutForControlPlane"] = json!(text);
            }
            if let Some(text) = join {
                spec["joinConfiguration"]["discovery"]["timeout"] = json!(text);
            }
            spec["clusterConfiguration"]["controllerManager"]["extraArgs"] = json!(args);
            if empty {
                spec["files"] = json!([]);
                spec["ntp"] = json!({});
            }
            if typed {
                spec["initConfiguration"]["kind"] = json!("InitConfiguration");
                spec["clusterConfiguration"]["networking"]["dnsDomain"] = json!("a.b");
            }
            if retry {
                spec["useExperimentalRetryJoin"] = json!(true);
            }
            if layout {
                spec["diskSetup"]["partitions"] =
                    json!([{"device": "d", "layout": false, "diskLayout": [{"percentage": 5}]}]);
            }
            if bare {
                spec["joinConfiguration"]["controlPlane"] = json!({});
            }
            spec
        })
}

proptest! {
    #[test]
    fn v1beta2_visits_v1beta1_without_loss(spec in hub_spec()) {
        let object = config(NEW, spec);
        let there = convert(object.clone(), OLD).unwrap();
        prop_assert_eq!(convert(there, NEW).unwrap(), object);
    }

    #[test]
    fn v1beta1_visits_v1beta2_without_loss(spec in old_spec()) {
        let object = config(OLD, spec);
        let there = convert(object.clone(), NEW).unwrap();
        serde_json::from_value::<KubeadmConfigSpec>(there["spec"].clone()).unwrap();
        prop_assert_eq!(convert(there, OLD).unwrap(), object);
    }
}
