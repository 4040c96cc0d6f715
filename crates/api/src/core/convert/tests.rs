use proptest::prelude::*;
use serde_json::{Value, json};

use crate::conversion::stash;
use crate::convert::convert;
use crate::core::v1beta2::{Cluster, Machine, MachineDeployment, MachineSet};

const OLD: &str = "cluster.x-k8s.io/v1beta1";
const NEW: &str = "cluster.x-k8s.io/v1beta2";

fn object(version: &str, kind: &str, spec: Value) -> Value {
    json!({ "apiVersion": version, "kind": kind, "metadata": { "name": "demo" }, "spec": spec })
}

fn old_reference(kind: &str) -> Value {
    json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": kind, "name": "demo" })
}

fn new_reference(kind: &str) -> Value {
    json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": kind, "name": "demo" })
}

#[test]
fn a_machine_deployment_finds_every_field_in_its_new_place() {
    let old = object(
        OLD,
        "MachineDeployment",
        json!({
            "clusterName": "demo",
            "replicas": 3,
            "selector": { "matchLabels": null },
            "minReadySeconds": 5,
            "revisionHistoryLimit": 1,
            "rolloutAfter": "2026-01-01T00:00:00Z",
            "machineNamingStrategy": { "template": "{{ .random }}" },
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": { "maxSurge": "25%", "maxUnavailable": 0, "deletePolicy": "Oldest" },
                "remediation": { "maxInFlight": 1 },
            },
            "template": { "spec": {
                "clusterName": "demo",
                "version": "v1.34.1",
                "failureDomain": "nova",
                "nodeDrainTimeout": "5m",
                "bootstrap": { "configRef": old_reference("KubeadmConfigTemplate") },
                "infrastructureRef": old_reference("OpenStackMachineTemplate"),
            }},
        }),
    );
    let new = convert(old.clone(), NEW).unwrap();
    assert_eq!(
        new["spec"],
        json!({
            "clusterName": "demo",
            "replicas": 3,
            "selector": {},
            "rollout": {
                "after": "2026-01-01T00:00:00Z",
                "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": { "maxSurge": "25%", "maxUnavailable": 0 },
                },
            },
            "deletion": { "order": "Oldest" },
            "remediation": { "maxInFlight": 1 },
            "machineNaming": { "template": "{{ .random }}" },
            "template": { "spec": {
                "clusterName": "demo",
                "version": "v1.34.1",
                "failureDomain": "nova",
                "minReadySeconds": 5,
                "deletion": { "nodeDrainTimeoutSeconds": 300 },
                "bootstrap": { "configRef": new_reference("KubeadmConfigTemplate") },
                "infrastructureRef": new_reference("OpenStackMachineTemplate"),
            }},
        })
    );
    serde_json::from_value::<MachineDeployment>(new.clone()).unwrap();
    let back = convert(new, OLD).unwrap();
    assert_eq!(
        back["spec"], old["spec"],
        "even `5m` and the null come back"
    );
    assert_eq!(back["metadata"], old["metadata"]);
}

#[test]
fn a_cluster_finds_every_field_in_its_new_place() {
    let health = json!({
        "enable": true, "maxUnhealthy": "40%", "nodeStartupTimeout": "10m0s",
        "unhealthyConditions": [{ "type": "Ready", "status": "False", "timeout": "5m0s" }],
    });
    let old = object(
        OLD,
        "Cluster",
        json!({
            "clusterNetwork": {
                "pods": { "cidrBlocks": ["192.168.0.0/16"] }, "serviceDomain": "cluster.local",
            },
            "controlPlaneEndpoint": { "host": "", "port": 0 },
            "infrastructureRef": old_reference("OpenStackCluster"),
            "topology": {
                "class": "small", "classNamespace": "shared", "version": "v1.34.1",
                "controlPlane": { "replicas": 3, "nodeDrainTimeout": "30s" },
                "variables": [{ "name": "a", "definitionFrom": "inline", "value": { "b": [] } }],
                "workers": { "machineDeployments": [{
                    "class": "worker", "name": "md-0", "machineHealthCheck": health,
                    "strategy": { "type": "OnDelete", "remediation": { "maxInFlight": 2 } },
                }]},
            },
        }),
    );
    let new = convert(old.clone(), NEW).unwrap();
    assert_eq!(
        new["spec"],
        json!({
            "clusterNetwork": {
                "pods": { "cidrBlocks": ["192.168.0.0/16"] }, "serviceDomain": "cluster.local",
            },
            "infrastructureRef": new_reference("OpenStackCluster"),
            "topology": {
                "classRef": { "name": "small", "namespace": "shared" }, "version": "v1.34.1",
                "controlPlane": { "replicas": 3, "deletion": { "nodeDrainTimeoutSeconds": 30 } },
                "variables": [{ "name": "a", "value": { "b": [] } }],
                "workers": { "machineDeployments": [{
                    "class": "worker", "name": "md-0",
                    "healthCheck": {
                        "enabled": true,
                        "checks": {
                            "nodeStartupTimeoutSeconds": 600,
                            "unhealthyNodeConditions":
                                [{ "type": "Ready", "status": "False", "timeoutSeconds": 300 }],
                        },
                        "remediation": {
                            "triggerIf": { "unhealthyLessThanOrEqualTo": "40%" }, "maxInFlight": 2,
                        },
                    },
                    "rollout": { "strategy": { "type": "OnDelete" } },
                }]},
            },
        })
    );
    serde_json::from_value::<Cluster>(new.clone()).unwrap();
    assert_eq!(convert(new, OLD).unwrap(), old);
}

#[test]
fn an_edit_in_the_other_version_wins_over_the_stash() {
    let spec = json!({
        "clusterName": "demo", "bootstrap": {}, "infrastructureRef": old_reference("Fake"),
        "nodeDrainTimeout": "90s",
    });
    let mut new = convert(object(OLD, "Machine", spec), NEW).unwrap();
    assert!(new["metadata"]["annotations"][stash::ANNOTATION].is_string());
    new["spec"]["deletion"]["nodeDrainTimeoutSeconds"] = json!(120);
    let old = convert(new, OLD).unwrap();
    assert_eq!(old["spec"]["nodeDrainTimeout"], "2m0s");
}

#[test]
fn the_version_of_a_reference_survives() {
    let mut reference = old_reference("Fake");
    reference["apiVersion"] = json!("infrastructure.cluster.x-k8s.io/v1alpha7");
    reference["namespace"] = json!("default");
    let spec = json!({ "clusterName": "demo", "bootstrap": {}, "infrastructureRef": reference });
    let old = object(OLD, "Machine", spec);
    let new = convert(old.clone(), NEW).unwrap();
    serde_json::from_value::<Machine>(new.clone()).unwrap();
    assert_eq!(new["spec"]["infrastructureRef"], new_reference("Fake"));
    assert_eq!(convert(new, OLD).unwrap(), old);
}

#[test]
fn readers_of_v1beta1_see_the_status_of_now() {
    let condition = |status: &str| {
        json!({ "type": "Ready", "status": status, "reason": "Why", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 2 })
    };
    let mut new = object(NEW, "MachineDeployment", json!({ "replicas": 3 }));
    new["status"] = json!({
        "replicas": 3, "readyReplicas": 2, "availableReplicas": 1, "upToDateReplicas": 3,
        "conditions": [condition("True")],
    });
    let mut old = convert(new.clone(), OLD).unwrap();
    assert_eq!(old["status"]["unavailableReplicas"], 2);
    assert_eq!(old["status"]["updatedReplicas"], 3);
    assert_eq!(
        old["status"]["conditions"][0].get("observedGeneration"),
        None
    );
    assert_eq!(convert(old.clone(), NEW).unwrap(), new);
    // Conditions that a v1beta1 client writes do not become conditions of v1beta2.
    old["status"]["conditions"][0]["status"] = json!("False");
    assert_eq!(convert(old, NEW).unwrap(), new);

    let mut machine = object(NEW, "Machine", json!({}));
    machine["status"] = json!({
        "initialization": { "infrastructureProvisioned": true }, "nodeRef": { "name": "n" },
        "phase": "Running",
    });
    let old = convert(machine.clone(), OLD).unwrap();
    assert_eq!(old["status"]["infrastructureReady"], true);
    assert_eq!(old["status"]["bootstrapReady"], false);
    assert_eq!(old["status"]["nodeRef"]["kind"], "Node");
    assert_eq!(convert(old, NEW).unwrap(), machine);
}

#[test]
fn nonsense_is_refused_and_never_panics() {
    let bad = object(OLD, "Machine", json!({ "nodeDrainTimeout": "soon" }));
    let error = convert(bad, NEW).unwrap_err().to_string();
    assert!(error.contains("nodeDrainTimeout"), "{error}");
    for spec in [
        json!(3),
        json!([]),
        json!({ "template": 1 }),
        json!({ "strategy": "x" }),
    ] {
        let _ = convert(object(OLD, "MachineDeployment", spec.clone()), NEW);
        let _ = convert(object(NEW, "MachineDeployment", spec), OLD);
    }
}

fn maybe(inner: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Option<Value>> {
    proptest::option::of(inner).boxed()
}

fn fields(pairs: Vec<(&'static str, BoxedStrategy<Option<Value>>)>) -> BoxedStrategy<Value> {
    let names: Vec<_> = pairs.iter().map(|(name, _)| *name).collect();
    let values: Vec<_> = pairs.into_iter().map(|(_, value)| value).collect();
    let build = move |values: Vec<Option<Value>>| {
        let pairs = names.iter().zip(values);
        let set = pairs.filter_map(|(name, value)| value.map(|value| ((*name).to_owned(), value)));
        Value::Object(set.collect())
    };
    values.prop_map(build).boxed()
}

fn text() -> impl Strategy<Value = Value> {
    "[a-z]{1,6}".prop_map(Value::from)
}

fn number() -> impl Strategy<Value = Value> {
    (0..9000_i32).prop_map(Value::from)
}

/// v1beta2 requires lists to be absent rather than empty.
fn list(inner: impl Strategy<Value = Value>, least: usize) -> impl Strategy<Value = Value> {
    proptest::collection::vec(inner, least..3).prop_map(Value::from)
}

fn span() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just("10m"),
        Just("1h0m0s"),
        Just("30s"),
        Just("1.5s"),
        Just("0")
    ]
    .prop_map(Value::from)
}

fn order() -> impl Strategy<Value = Value> {
    prop_oneof![Just("Random"), Just("Newest"), Just("Oldest")].prop_map(Value::from)
}

fn meta() -> BoxedStrategy<Value> {
    let labels = || fields(vec![("a", maybe(text())), ("b", maybe(text()))]);
    fields(vec![
        ("labels", maybe(labels())),
        ("annotations", maybe(labels())),
    ])
}

fn machine_spec(old: bool) -> BoxedStrategy<Value> {
    let reference = move || {
        if old {
            fields(vec![
                ("apiVersion", Just(Some(json!("g.io/v1beta1"))).boxed()),
                ("kind", Just(Some(json!("K"))).boxed()),
                ("name", text().prop_map(Some).boxed()),
                ("namespace", maybe(text())),
            ])
        } else {
            fields(vec![
                ("apiGroup", Just(Some(json!("g.io"))).boxed()),
                ("kind", Just(Some(json!("K"))).boxed()),
                ("name", text().prop_map(Some).boxed()),
            ])
        }
    };
    let gates = list(
        fields(vec![("conditionType", text().prop_map(Some).boxed())]),
        usize::from(!old),
    );
    let bootstrap = fields(vec![
        ("configRef", maybe(reference())),
        ("dataSecretName", maybe(text())),
    ]);
    let mut all = vec![
        ("clusterName", text().prop_map(Some).boxed()),
        ("bootstrap", bootstrap.prop_map(Some).boxed()),
        ("infrastructureRef", reference().prop_map(Some).boxed()),
        ("version", maybe(text())),
        ("providerID", maybe(text())),
        ("readinessGates", maybe(gates)),
    ];
    if old {
        all.extend(super::TIMEOUTS.map(|(name, _)| (name, maybe(span()))));
    } else {
        let deletion = super::TIMEOUTS
            .map(|(_, name)| (name, maybe(number())))
            .to_vec();
        all.push(("deletion", maybe(fields(deletion))));
        all.push(("minReadySeconds", maybe(number())));
    }
    fields(all)
}

fn deployment_spec(old: bool) -> BoxedStrategy<Value> {
    let template = fields(vec![
        ("metadata", maybe(meta())),
        ("spec", machine_spec(old).prop_map(Some).boxed()),
    ]);
    let remediation = || fields(vec![("maxInFlight", maybe(number()))]);
    let kind = || prop_oneof![Just("RollingUpdate"), Just("OnDelete")].prop_map(Value::from);
    let mut rolling = vec![
        ("maxSurge", maybe(number())),
        ("maxUnavailable", maybe(text())),
    ];
    let naming = || fields(vec![("template", maybe(text()))]);
    let mut all = vec![
        ("clusterName", text().prop_map(Some).boxed()),
        ("replicas", maybe(number())),
        ("template", template.prop_map(Some).boxed()),
        ("paused", maybe(any::<bool>().prop_map(Value::from))),
    ];
    if old {
        rolling.push(("deletePolicy", maybe(order())));
        let strategy = fields(vec![
            ("type", maybe(kind())),
            ("rollingUpdate", maybe(fields(rolling))),
            ("remediation", maybe(remediation())),
        ]);
        all.extend([
            ("strategy", maybe(strategy)),
            ("rolloutAfter", maybe(text())),
            ("minReadySeconds", maybe(number())),
            ("progressDeadlineSeconds", maybe(number())),
            ("machineNamingStrategy", maybe(naming())),
        ]);
    } else {
        let strategy = fields(vec![
            ("type", kind().prop_map(Some).boxed()),
            ("rollingUpdate", maybe(fields(rolling))),
        ]);
        let rollout = fields(vec![
            ("after", maybe(text())),
            ("strategy", maybe(strategy)),
        ]);
        all.extend([
            ("rollout", maybe(rollout)),
            ("deletion", maybe(fields(vec![("order", maybe(order()))]))),
            ("remediation", maybe(remediation())),
            ("machineNaming", maybe(naming())),
        ]);
    }
    fields(all)
}

fn set_spec(old: bool) -> BoxedStrategy<Value> {
    let template = fields(vec![("spec", machine_spec(old).prop_map(Some).boxed())]);
    let mut all = vec![
        ("template", template.prop_map(Some).boxed()),
        ("replicas", maybe(number())),
    ];
    if old {
        all.extend([
            ("deletePolicy", maybe(order())),
            ("minReadySeconds", maybe(number())),
        ]);
    } else {
        all.push(("deletion", maybe(fields(vec![("order", maybe(order()))]))));
    }
    fields(all)
}

fn new_cluster_spec() -> BoxedStrategy<Value> {
    let port = (1..9000_i32).prop_map(Value::from);
    let endpoint = fields(vec![
        ("host", text().prop_map(Some).boxed()),
        ("port", maybe(port)),
    ]);
    let deletion = || {
        let mut all = super::TIMEOUTS
            .map(|(_, name)| (name, maybe(number())))
            .to_vec();
        all.push(("order", maybe(order())));
        fields(all)
    };
    let trigger = fields(vec![
        ("unhealthyLessThanOrEqualTo", maybe(number())),
        ("unhealthyInRange", maybe(text())),
    ]);
    let checks = fields(vec![("nodeStartupTimeoutSeconds", maybe(number()))]);
    let remediation = fields(vec![
        ("maxInFlight", maybe(number())),
        ("triggerIf", maybe(trigger)),
    ]);
    let health = fields(vec![
        ("enabled", maybe(any::<bool>().prop_map(Value::from))),
        ("checks", maybe(checks)),
        ("remediation", maybe(remediation)),
    ]);
    let deployment = fields(vec![
        ("class", text().prop_map(Some).boxed()),
        ("name", text().prop_map(Some).boxed()),
        ("deletion", maybe(deletion())),
        ("healthCheck", maybe(health)),
        ("rollout", maybe(fields(vec![("after", maybe(text()))]))),
    ]);
    let class = fields(vec![
        ("name", text().prop_map(Some).boxed()),
        ("namespace", maybe(text())),
    ]);
    let topology = fields(vec![
        ("classRef", class.prop_map(Some).boxed()),
        ("version", text().prop_map(Some).boxed()),
        (
            "controlPlane",
            maybe(fields(vec![("replicas", maybe(number()))])),
        ),
        (
            "workers",
            maybe(fields(vec![(
                "machineDeployments",
                maybe(list(deployment, 1)),
            )])),
        ),
    ]);
    fields(vec![
        ("controlPlaneEndpoint", maybe(endpoint)),
        ("topology", maybe(topology)),
        ("paused", maybe(any::<bool>().prop_map(Value::from))),
    ])
}

proptest! {
    #[test]
    fn from_v1beta1_and_back_loses_nothing(
        machine in machine_spec(true), set in set_spec(true), deployment in deployment_spec(true),
    ) {
        for (kind, spec) in [("Machine", machine), ("MachineSet", set), ("MachineDeployment", deployment)] {
            let old = object(OLD, kind, spec);
            let new = convert(old.clone(), NEW).unwrap();
            prop_assert_eq!(convert(new, OLD).unwrap(), old);
        }
    }

    #[test]
    fn from_v1beta2_and_back_loses_nothing(
        machine in machine_spec(false), set in set_spec(false),
        deployment in deployment_spec(false), cluster in new_cluster_spec(),
    ) {
        let all = [
            ("Machine", machine), ("MachineSet", set), ("MachineDeployment", deployment),
            ("Cluster", cluster),
        ];
        for (kind, spec) in all {
            let new = object(NEW, kind, spec);
            let old = convert(new.clone(), OLD).unwrap();
            prop_assert_eq!(convert(old, NEW).unwrap(), new);
        }
    }

    #[test]
    fn what_comes_up_has_the_shape_of_v1beta2(deployment in deployment_spec(true)) {
        let mut new = convert(object(OLD, "MachineDeployment", deployment), NEW).unwrap();
        new["spec"]["selector"] = json!({});
        if let Some(rollout) = new["spec"].get_mut("rollout").and_then(Value::as_object_mut) {
            // The generated text is not a time.
            rollout.remove("after");
        }
        prop_assert!(serde_json::from_value::<MachineDeployment>(new.clone()).is_ok(), "{}", new);
    }
}

#[test]
fn a_machine_set_may_leave_its_template_out_in_v1beta1() {
    let old = object(
        OLD,
        "MachineSet",
        json!({ "clusterName": "demo", "selector": {} }),
    );
    let new = convert(old.clone(), NEW).unwrap();
    assert!(
        serde_json::from_value::<MachineSet>(new.clone()).is_err(),
        "the API server says so"
    );
    assert_eq!(convert(new, OLD).unwrap(), old);
}

#[test]
fn a_machine_health_check_has_its_checks_and_remediation_in_groups() {
    let old = object(
        OLD,
        "MachineHealthCheck",
        json!({
            "clusterName": "demo", "selector": { "matchLabels": { "a": "b" } },
            "nodeStartupTimeout": "20m0s", "maxUnhealthy": "40%", "unhealthyRange": "[3-5]",
            "unhealthyConditions": [{ "type": "Ready", "status": "Unknown", "timeout": "5m0s" }],
            "unhealthyMachineConditions": [{ "type": "X", "status": "False", "timeout": "1m0s" }],
            "remediationTemplate": { "apiVersion": "g.io/v1beta1", "kind": "FixTemplate", "name": "fix" },
        }),
    );
    let new = convert(old.clone(), NEW).unwrap();
    assert_eq!(
        new["spec"],
        json!({
            "clusterName": "demo", "selector": { "matchLabels": { "a": "b" } },
            "checks": {
                "nodeStartupTimeoutSeconds": 1200,
                "unhealthyNodeConditions":
                    [{ "type": "Ready", "status": "Unknown", "timeoutSeconds": 300 }],
                "unhealthyMachineConditions":
                    [{ "type": "X", "status": "False", "timeoutSeconds": 60 }],
            },
            "remediation": {
                "triggerIf": {
                    "unhealthyLessThanOrEqualTo": "40%", "unhealthyInRange": "[3-5]",
                },
                "templateRef": { "apiVersion": "g.io/v1beta1", "kind": "FixTemplate", "name": "fix" },
            },
        })
    );
    assert_eq!(convert(new.clone(), OLD).unwrap(), old);
    let spec = new["spec"].clone();
    let typed: crate::core::v1beta2::MachineHealthCheckSpec = serde_json::from_value(spec).unwrap();
    assert_eq!(serde_json::to_value(typed).unwrap(), new["spec"]);
    let wrong = object(
        OLD,
        "MachineHealthCheck",
        json!({ "nodeStartupTimeout": "soon" }),
    );
    let problem = convert(wrong, NEW).unwrap_err().to_string();
    assert!(problem.contains("spec.nodeStartupTimeout"), "{problem}");
}
