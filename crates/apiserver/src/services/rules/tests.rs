use serde_json::{Value, json};

use super::*;

fn service(spec: &Value) -> Value {
    let mut whole = json!({
        "type": "LoadBalancer", "clusterIP": "10.96.3.4", "clusterIPs": ["10.96.3.4"], "sessionAffinity": "None",
        "allocateLoadBalancerNodePorts": true, "externalTrafficPolicy": "Cluster",
        "ports": [{"name": "a", "port": 80, "protocol": "TCP", "targetPort": 80}],
    });
    for (name, value) in spec.as_object().unwrap() {
        whole[name] = value.clone();
    }
    json!({"metadata": {"name": "s"}, "spec": whole})
}

fn port(name: &str, protocol: &str, number: i64) -> Value {
    json!({"name": name, "port": number, "protocol": protocol, "targetPort": number})
}

#[track_caller]
fn refused(spec: &Value, expected: &[&str]) {
    let found: Vec<String> = problems(&service(spec), None)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(found, expected, "{spec}");
}

#[test]
fn a_service_that_kube_apiserver_refuses_is_refused_with_its_field() {
    refused(&json!({}), &[]);
    let dns = [port("a", "TCP", 53), port("b", "UDP", 53)];
    refused(&json!({ "ports": dns }), &[]);
    refused(
        &json!({"ports": [port("a", "TCP", 53), port("b", "TCP", 53)]}),
        &[
            "spec.ports[1]: Duplicate value: {\"Name\":\"\",\"Protocol\":\"TCP\",\"AppProtocol\":null,\"Port\":53,\"TargetPort\":0,\"NodePort\":0}",
        ],
    );
    refused(
        &json!({"ports": [port("a", "TCP", 1), port("a", "TCP", 2)]}),
        &["spec.ports[1].name: Duplicate value: \"a\""],
    );
    refused(
        &json!({"ports": [port("a", "TCP", 1), port("", "TCP", 2)]}),
        &["spec.ports[1].name: Required value"],
    );
    refused(
        &json!({"loadBalancerSourceRanges": [" 10.0.0.0/8 ", "300.1.1.1/8", "10.0.0.0/33"]}),
        &[
            "spec.LoadBalancerSourceRanges[1]: Invalid value: \"300.1.1.1/8\": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
            "spec.LoadBalancerSourceRanges[2]: Invalid value: \"10.0.0.0/33\": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
        ],
    );
    refused(
        &json!({"ports": [port("a", "TCP", 0), port("b", "ICMP", 1)]}),
        &[
            "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
            "spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive",
            "spec.ports[1].protocol: Unsupported value: \"ICMP\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
        ],
    );
    refused(
        &json!({"externalIPs": ["192.0.2.1", "127.0.0.1", "x"]}),
        &[
            "spec.externalIPs[1]: Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, ::1/128)",
            "spec.externalIPs[2]: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        ],
    );
    let inside = json!({"type": "ClusterIP", "allocateLoadBalancerNodePorts": null, "externalTrafficPolicy": null,
        "loadBalancerClass": "example.org/a"});
    refused(
        &inside,
        &["spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'"],
    );
}

#[test]
fn words_that_kube_apiserver_does_not_know_are_refused_with_those_that_it_knows() {
    refused(
        &json!({"externalTrafficPolicy": "Global"}),
        &[
            "spec.externalTrafficPolicy: Unsupported value: \"Global\": supported values: \"Cluster\", \"Local\"",
        ],
    );
    refused(
        &json!({"internalTrafficPolicy": "local"}),
        &[
            "spec.internalTrafficPolicy: Unsupported value: \"local\": supported values: \"Cluster\", \"Local\"",
        ],
    );
    refused(
        &json!({"trafficDistribution": "Random"}),
        &[
            "spec.trafficDistribution: Unsupported value: \"Random\": supported values: \"PreferClose\", \"PreferSameZone\", \"PreferSameNode\"",
        ],
    );
    refused(
        &json!({"ipFamilies": ["IPv4", "IPv4", "IPv5"], "ipFamilyPolicy": "Both"}),
        &[
            "spec.ipFamilies[1]: Duplicate value: \"IPv4\"",
            "spec.ipFamilies[2]: Unsupported value: \"IPv5\": supported values: \"IPv4\", \"IPv6\"",
            "spec.ipFamilyPolicy: Unsupported value: \"Both\": supported values: \"PreferDualStack\", \"RequireDualStack\", \"SingleStack\"",
        ],
    );
    for known in [
        json!({"trafficDistribution": "PreferSameNode", "internalTrafficPolicy": "Local"}),
        json!({"ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "selector": {"app.example.org/name": "web"}}),
    ] {
        refused(&known, &[]);
    }
    let local = json!({"externalTrafficPolicy": "Local", "healthCheckNodePort": 70_000});
    refused(
        &local,
        &["spec.healthCheckNodePort: Invalid value: 70000: must be between 1 and 65535, inclusive"],
    );
}

#[test]
fn a_selector_that_no_pod_can_match_is_refused() {
    let found = problems(
        &service(&json!({"selector": {"a b": "c", "d": "e f"}})),
        None,
    );
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].starts_with("spec.selector: Invalid value: \"a b\": name part must consist of"),
        "{found:?}"
    );
    assert!(
        found[1].starts_with("spec.selector: Invalid value: \"e f\": a valid label must be"),
        "{found:?}"
    );
}

#[test]
fn what_a_service_got_once_does_not_change() {
    let changed = |old: &Value, new: &Value| -> Vec<String> {
        let errors = problems(&service(new), Some(&service(old)));
        errors.iter().map(ToString::to_string).collect()
    };
    let (none, class) = (json!({}), json!({"loadBalancerClass": "example.org/a"}));
    let once = "may not change once set";
    for (old, new) in [
        (&none, &class),
        (&class, &json!({"loadBalancerClass": "example.org/b"})),
    ] {
        let found = changed(old, new);
        assert!(
            found.len() == 1
                && found[0].starts_with("spec.loadBalancerClass")
                && found[0].ends_with(once),
            "{found:?}"
        );
    }
    let other = json!({"clusterIP": "10.96.3.5", "clusterIPs": ["10.96.3.5"]});
    let address = "spec.clusterIPs[0]: Invalid value: [\"10.96.3.5\"]: may not change once set";
    assert_eq!(changed(&none, &other), [address]);
    let gone = json!({"clusterIP": "", "clusterIPs": []});
    assert!(changed(&none, &gone)[0].ends_with("primary clusterIP can not be unset"));
    // A Service from before the rule can be finalized and get a status.
    let wrong = json!({"ports": [port("", "TCP", 1), port("", "TCP", 1)]});
    assert_eq!(changed(&wrong, &wrong), [""; 0]);
    assert!(!changed(&none, &wrong).is_empty());
}
