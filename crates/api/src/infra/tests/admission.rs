use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::documented;
use crate::admission::{Review, validate};

const POOL: &str = "b5d5e5f0-7d4c-4d0e-8d6e-1d2f3a4b5c6d";

/// For each documented rule, an object that breaks only that rule.
fn examples() -> Vec<(&'static str, Value)> {
    let subnet = |fields: Value| {
        let mut subnet = json!({"cidr": "10.0.0.0/24"});
        for (name, value) in fields.as_object().unwrap() {
            subnet[name] = value.clone();
        }
        ("OpenStackCluster", json!({"managedSubnets": [subnet]}))
    };
    let pool = |start: &str, end: &str| json!({"allocationPools": [{"start": start, "end": end}]});
    let server = |fields: Value| ("OpenStackCluster", json!({"apiServer": fields}));
    let balancer = |fields: Value| server(json!({"managedLoadBalancer": fields}));
    let rule = |list: &str, fields: Value| {
        let mut rule = json!({"name": "n", "direction": "ingress"});
        for (name, value) in fields.as_object().unwrap() {
            rule[name] = value.clone();
        }
        (
            "OpenStackCluster",
            json!({"managedSecurityGroups": {list: [rule]}}),
        )
    };
    let machine = |fields: Value| {
        let mut spec = json!({"flavor": {"id": "f"}, "image": {"id": "i"}});
        for (name, value) in fields.as_object().unwrap() {
            spec[name] = value.clone();
        }
        spec
    };
    let port = |ports: Value| ("OpenStackMachine", machine(json!({"ports": ports})));
    let zones = json!([{"availabilityZone": "az1", "subnet": {"id": POOL}}]);
    let mut all = vec![
        subnet(json!({"cidr": "10.0.0.0"})),
        (
            "OpenStackCluster",
            json!({"managedSubnets": [{"cidr": "10.0.0.0/24"}],
                "failureDomainSubnets": [{"failureDomain": "az1", "subnets": [{"id": POOL}]}]}),
        ),
        subnet(json!({"prefixLength": 24})),
        subnet(json!({"ipVersion": 6})),
        (
            "OpenStackCluster",
            json!({"managedSubnets": [{"subnetPool": {"id": POOL},
                "allocationPools": [{"start": "10.0.0.3", "end": "10.0.0.9"}]}]}),
        ),
        subnet(json!({"ipv6RAMode": "slaac"})),
        subnet(json!({"ipv6AddressMode": "slaac"})),
        subnet(json!({"dnsNameservers": ["dns"]})),
        subnet(pool("x", "10.0.0.9")),
        subnet(pool("10.0.0.9", "10.0.0.3")),
        subnet(pool("10.0.0.9", "x")),
        subnet(pool("10.0.0.9", "10.0.1.9")),
        (
            "OpenStackCluster",
            json!({"managedSecurityGroups": {"defaultRules": [{"name": "APIServer", "cidrs": ["x"]}]}}),
        ),
        server(json!({"fixedIP": "10.0.0"})),
        server(json!({"floatingIP": "x"})),
        balancer(json!({"allowedCIDRs": ["x"]})),
        balancer(json!({"additionalPorts": [70000]})),
        balancer(json!({"allowCrossAZLoadBalancerMembers": true})),
        balancer(
            json!({"availabilityZoneSubnets": [{"availabilityZone": "a:b", "subnet": {"id": POOL}}]}),
        ),
        balancer(json!({"availabilityZone": "az1", "availabilityZoneSubnets": zones})),
        balancer(json!({"subnets": [{"id": POOL}], "availabilityZoneSubnets": zones})),
        (
            "OpenStackCluster",
            json!({"controlPlaneEndpoint": {"host": "192.0.2.1", "port": 6443},
                "apiServer": {"managedLoadBalancer": {"availabilityZoneSubnets": zones}}}),
        ),
        balancer(json!({"additionalPorts": [6443]})),
        (
            "OpenStackCluster",
            json!({"managedRouter": {"externalIPs": [{"fixedIP": "x", "subnet": {"id": "s"}}]}}),
        ),
        (
            "OpenStackCluster",
            json!({"bastion": {"spec": machine(json!({"providerID": "x"}))}}),
        ),
        (
            "OpenStackCluster",
            json!({"bastion": {"floatingIP": "192.0.2.1",
                "spec": machine(json!({"floatingIPPoolRef": {"kind": "k", "name": "n"}}))}}),
        ),
        (
            "OpenStackCluster",
            json!({"bastion": {"spec": machine(json!({"identityRef": {"name": "t", "cloudName": "c"}}))}}),
        ),
        (
            "OpenStackCluster",
            json!({"bastion": {"floatingIP": "192.0.2.1"}, "apiServer": {"floatingIP": "192.0.2.1"}}),
        ),
        ("OpenStackCluster", json!({"tags": ["a/b"]})),
        (
            "OpenStackFloatingIPPool",
            json!({"reclaimPolicy": "Delete", "preAllocatedFloatingIPs": ["2001:db8::1"]}),
        ),
        (
            "OpenStackFloatingIPPool",
            json!({"reclaimPolicy": "Delete", "preAllocatedFloatingIPs": ["192.0.2.1", "192.0.2.1"]}),
        ),
        (
            "OpenStackFloatingIPPool",
            json!({"reclaimPolicy": "Delete", "maxIPs": -1}),
        ),
        (
            "OpenStackMachine",
            machine(json!({"tags": ["a", "x".repeat(61)]})),
        ),
        (
            "OpenStackMachine",
            machine(
                json!({"securityGroups": [{"id": "g"}], "ports": [{"enablePortSecurity": false}]}),
            ),
        ),
        port(json!([{"nameSuffix": "1"}, {}])),
        port(json!([{"valueSpecs": [{"name": "n", "key": "description", "value": "v"}]}])),
        port(json!([{"valueSpecs": [
            {"name": "n", "key": "k", "value": "v"}, {"name": "m", "key": "k", "value": "v"}]}])),
        port(json!([{"fixedIPs": [{"ipAddress": "x"}]}])),
        port(json!([{"allowedAddressPairs": [{"ipAddress": "x"}]}])),
    ];
    for list in [
        "clusterNodesSecurityGroupRules",
        "controlPlaneNodesSecurityGroupRules",
        "workerNodesSecurityGroupRules",
    ] {
        all.push(rule(list, json!({"remoteIPPrefix": "10.0.0.0/33"})));
        all.push(rule(list, json!({"portRangeMin": 2, "portRangeMax": 1})));
        all.push(rule(list, json!({"remoteManagedGroups": ["bastion"]})));
    }
    for (kind, spec) in &mut all {
        if *kind != "OpenStackMachine" {
            spec["identityRef"] = json!({"name": "s", "cloudName": "c"});
        }
    }
    all
}

/// `spec.ports[2].tags[0]` is `spec.ports[].tags[]`.
fn without_indices(path: &str) -> String {
    let mut parts = path.split('[');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |path, part| {
        let rest = part.trim_start_matches(|letter: char| letter.is_ascii_digit());
        format!("{path}[{rest}")
    })
}

#[test]
fn what_admission_rejects_and_the_go_provider_accepts_is_documented() {
    let documented: BTreeSet<_> = documented("Admission")
        .into_iter()
        .map(|row| format!("{} {}", row[0], row[1]))
        .collect();
    let mut tried = BTreeSet::new();
    for (kind, spec) in examples() {
        let version = match kind {
            "OpenStackFloatingIPPool" => "infrastructure.cluster.x-k8s.io/v1alpha1",
            _ => "infrastructure.cluster.x-k8s.io/v1beta2",
        };
        let object =
            json!({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": spec});
        let review = Review {
            object: &object,
            old: None,
            dry_run: false,
        };
        let errors = validate(review).unwrap_err();
        assert_eq!(errors.len(), 1, "{object}: {errors:?}");
        let path = without_indices(&errors[0].path);
        let list = ["cluster", "controlPlane", "worker"]
            .map(|role| format!("{role}NodesSecurityGroupRules"));
        let path = list.iter().fold(path, |path, name| {
            path.replace(name, "*NodesSecurityGroupRules")
        });
        tried.insert(format!("{kind} {path}"));
    }
    assert_eq!(tried, documented);
}
