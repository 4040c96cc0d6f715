use serde_json::{Value, json};

use crate::kinds::shape::of;

/// The value at a pointer of an object with its defaults.
fn defaulted(kind: (&str, &str), mut object: Value, pointer: &str) -> Value {
    of(kind.0, "v1", kind.1)
        .unwrap()
        .default(&mut object)
        .unwrap();
    object.pointer(pointer).cloned().unwrap_or_default()
}

#[test]
fn a_half_filled_update_strategy_is_completed() {
    let quarter = json!({"maxUnavailable": "25%", "maxSurge": "25%"});
    let one = json!({"maxUnavailable": 1, "maxSurge": 0});
    let rolling = |details: &Value| json!({"type": "RollingUpdate", "rollingUpdate": details});
    for (kind, field, given, expected) in [
        ("Deployment", "strategy", json!({}), rolling(&quarter)),
        (
            "Deployment",
            "strategy",
            json!({"type": "RollingUpdate"}),
            rolling(&quarter),
        ),
        (
            "Deployment",
            "strategy",
            json!({"rollingUpdate": {}}),
            rolling(&quarter),
        ),
        (
            "Deployment",
            "strategy",
            json!({"rollingUpdate": {"maxSurge": 3}}),
            rolling(&json!({"maxUnavailable": "25%", "maxSurge": 3})),
        ),
        (
            "Deployment",
            "strategy",
            json!({"type": "Recreate"}),
            json!({"type": "Recreate"}),
        ),
        (
            "DaemonSet",
            "updateStrategy",
            json!({"type": "RollingUpdate"}),
            rolling(&one),
        ),
        (
            "DaemonSet",
            "updateStrategy",
            json!({"rollingUpdate": {"maxUnavailable": 2}}),
            rolling(&json!({"maxUnavailable": 2, "maxSurge": 0})),
        ),
        (
            "DaemonSet",
            "updateStrategy",
            json!({"type": "OnDelete"}),
            json!({"type": "OnDelete"}),
        ),
        (
            "DaemonSet",
            "updateStrategy",
            json!({"type": "OnDelete", "rollingUpdate": {}}),
            json!({"type": "OnDelete", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}}),
        ),
        (
            "StatefulSet",
            "updateStrategy",
            json!({}),
            rolling(&json!({"partition": 0})),
        ),
        (
            "StatefulSet",
            "updateStrategy",
            json!({"rollingUpdate": {}}),
            rolling(&json!({"partition": 0})),
        ),
        (
            "StatefulSet",
            "updateStrategy",
            json!({"type": "RollingUpdate"}),
            json!({"type": "RollingUpdate"}),
        ),
    ] {
        let object = json!({"spec": {field: given}});
        let found = defaulted(("apps", kind), object, &format!("/spec/{field}"));
        assert_eq!(found, expected, "{kind} {given}");
    }
    let whole = defaulted(("apps", "Deployment"), json!({}), "/spec/strategy");
    assert_eq!(whole, rolling(&quarter));
}

#[test]
fn templates_of_pods_are_completed_wherever_they_are() {
    let template = json!({"spec": {
        "serviceAccountName": "a",
        "containers": [{"name": "c", "image": "i", "livenessProbe": {"grpc": {"port": 1}}}],
        "volumes": [{"name": "v"}, {"name": "w", "rbd": {"image": "i", "monitors": ["m"]}}],
    }});
    let cron = json!({"spec": {"jobTemplate": {"spec": {"template": template}}}});
    let spec = defaulted(
        ("batch", "CronJob"),
        cron,
        "/spec/jobTemplate/spec/template/spec",
    );
    let set = json!({"spec": {"template": template}});
    assert_eq!(
        spec,
        defaulted(("apps", "DaemonSet"), set, "/spec/template/spec")
    );
    assert_eq!(spec["serviceAccount"], "a");
    assert_eq!(spec["volumes"][0], json!({"name": "v", "emptyDir": {}}));
    assert_eq!(spec["volumes"][1]["rbd"]["keyring"], "/etc/ceph/keyring");
    let container = &spec["containers"][0];
    assert_eq!(container["imagePullPolicy"], "Always");
    assert_eq!(container["livenessProbe"]["grpc"]["service"], "");
    assert_eq!(container["livenessProbe"]["periodSeconds"], 10);
}

#[test]
fn a_pod_requests_what_limits_it_and_opens_its_ports_on_its_host() {
    let pod = json!({"spec": {"hostNetwork": true, "containers": [{
        "name": "c", "ports": [{"containerPort": 80}],
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100u"}},
    }]}});
    let container = defaulted(("", "Pod"), pod, "/spec/containers/0");
    let port = json!({"containerPort": 80, "hostPort": 80, "protocol": "TCP"});
    assert_eq!(container["ports"][0], port);
    let requests = json!({"cpu": "1m", "memory": "1Gi"});
    assert_eq!(container["resources"]["requests"], requests);
}

#[test]
fn a_pod_with_pod_level_limits_requests_the_sum_of_its_containers() {
    let container = |cpu: &str| json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
    let pod = json!({"spec": {
        "resources": {"limits": {"cpu": "2", "memory": "1Gi"}},
        "containers": [container("250m"), container("0.25")],
        "initContainers": [container("900m"), container("100m")],
    }});
    let requests = defaulted(("", "Pod"), pod, "/spec/resources/requests");
    assert_eq!(requests, json!({"cpu": "900m", "memory": "1Gi"}));
}

#[test]
fn a_service_is_completed_by_its_type() {
    let service = |spec: Value| defaulted(("", "Service"), json!({"spec": spec}), "/spec");
    let plain = service(json!({"ports": [{"port": 80}]}));
    let port = json!({"port": 80, "targetPort": 80, "protocol": "TCP"});
    let expected = json!({
        "type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster", "ports": [port],
    });
    assert_eq!(plain, expected);
    let external = service(json!({"externalIPs": ["192.0.2.1"]}));
    assert_eq!(external["externalTrafficPolicy"], "Cluster");
    let sticky = service(json!({"sessionAffinity": "ClientIP"}));
    assert_eq!(
        sticky["sessionAffinityConfig"],
        json!({"clientIP": {"timeoutSeconds": 10800}})
    );
    let named = service(json!({"type": "ExternalName", "externalName": "example.com"}));
    assert!(named.get("internalTrafficPolicy").is_none());
    let balanced = service(json!({"type": "LoadBalancer"}));
    assert_eq!(balanced["allocateLoadBalancerNodePorts"], true);
}

#[test]
fn a_job_is_completed_and_the_template_of_a_cron_job_is_not() {
    let job = |spec: Value| defaulted(("batch", "Job"), json!({"spec": spec}), "/spec");
    let plain = job(json!({}));
    assert_eq!(
        (&plain["completions"], &plain["parallelism"]),
        (&json!(1), &json!(1))
    );
    let queue = job(json!({"parallelism": 2}));
    assert!(queue.get("completions").is_none());
    let indexed = job(json!({"backoffLimitPerIndex": 1, "podFailurePolicy": {"rules": []}}));
    assert_eq!(indexed["backoffLimit"], i32::MAX);
    assert_eq!(indexed["podReplacementPolicy"], "Failed");
    let cron = defaulted(("batch", "CronJob"), json!({}), "/spec/jobTemplate/spec");
    assert!(cron.get("backoffLimit").is_none());
}

#[test]
fn only_persistent_volumes_themselves_have_a_default_reclaim_policy() {
    let volume = defaulted(("", "PersistentVolume"), json!({}), "/spec");
    assert_eq!(volume["persistentVolumeReclaimPolicy"], "Retain");
    let inline = json!({"spec": {"source": {"inlineVolumeSpec": {"hostPath": {"path": "/"}}}}});
    let inline = defaulted(
        ("storage.k8s.io", "VolumeAttachment"),
        inline,
        "/spec/source/inlineVolumeSpec",
    );
    assert_eq!(inline, json!({"hostPath": {"path": "/", "type": ""}}));
}
