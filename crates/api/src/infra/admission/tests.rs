use proptest::prelude::*;
use serde_json::{Value, json};

use crate::admission::{Review, validate};
use crate::infra::convert::tests::released_documents;

const TWO: &str = "infrastructure.cluster.x-k8s.io/v1beta2";

const POOL: &str = "b5d5e5f0-7d4c-4d0e-8d6e-1d2f3a4b5c6d";

fn cluster(spec: Value) -> Value {
    let mut object = json!({"apiVersion": TWO, "kind": "OpenStackCluster", "metadata": {"name": "c"},
        "spec": {"identityRef": {"type": "Secret", "name": "s", "cloudName": "c"}}});
    for (name, value) in spec.as_object().unwrap() {
        object["spec"][name] = value.clone();
    }
    object
}

fn machine(spec: Value) -> Value {
    let mut object = json!({"apiVersion": TWO, "kind": "OpenStackMachine", "metadata": {"name": "m"},
        "spec": {"flavor": {"filter": {"name": "f"}}, "image": {"filter": {"name": "i"}}}});
    for (name, value) in spec.as_object().unwrap() {
        object["spec"][name] = value.clone();
    }
    object
}

fn problems(object: &Value, old: Option<&Value>) -> Vec<String> {
    match validate(Review {
        object,
        old,
        dry_run: false,
    }) {
        Ok(()) => Vec::new(),
        Err(errors) => errors.iter().map(|error| error.path.clone()).collect(),
    }
}

/// Paths of the errors when a cluster's spec changes from `before` to `after`.
fn changing(before: Value, after: Value) -> Vec<String> {
    changing_with(Value::Null, before, after)
}

fn changing_with(status: Value, before: Value, after: Value) -> Vec<String> {
    let mut old = cluster(before);
    old["status"] = status;
    problems(&cluster(after), Some(&old))
}

fn zones(names: &[&str], subnet: &str) -> Value {
    let zone = |name: &&str| json!({"availabilityZone": name, "subnet": {"id": subnet}});
    let all: Vec<_> = names.iter().map(zone).collect();
    json!({"availabilityZoneSubnets": all})
}

#[test]
fn zones_of_load_balancers_come_and_go_but_for_the_last_one_and_keep_their_subnets() {
    let balancer = |value: Value| json!({"apiServer": {"managedLoadBalancer": value}});
    let one = balancer(zones(&["az1"], POOL));
    let path = "spec.apiServer.managedLoadBalancer.availabilityZoneSubnets";
    assert_eq!(changing(one.clone(), balancer(json!({}))), [path]);
    let moved = balancer(zones(&["az1"], "0f52c9a1-4a51-4c43-8a51-4e38a2b21a73"));
    assert_eq!(changing(one, moved), [path]);
}

#[test]
fn mutable_fields_of_a_cluster_change_freely() {
    let groups = |rules: Value| {
        json!({"managedSecurityGroups": {"allowAllInClusterTraffic": false,
        "clusterNodesSecurityGroupRules": rules}})
    };
    let balancer = |value: Value| json!({"apiServer": {"managedLoadBalancer": value}});
    let none: Vec<String> = Vec::new();
    for (before, after) in [
        (json!({}), json!({"primarySubnet": {"id": "a"}})),
        (
            json!({}),
            json!({"failureDomainSubnets": [{"failureDomain": "az1", "subnets": [{"id": POOL}]}]}),
        ),
        (balancer(json!({})), balancer(zones(&["az1", "az2"], POOL))),
        (
            balancer(zones(&["az1", "az2"], POOL)),
            balancer(zones(&["az2"], POOL)),
        ),
        (
            json!({"managedSubnets": [{"cidr": "10.0.0.0/24"}]}),
            json!({"managedSubnets": [{"cidr": "10.0.0.0/24", "dnsNameservers": ["8.8.8.8"]}]}),
        ),
        (
            json!({"managedSubnets": [{"cidr": "10.0.0.0/24"}]}),
            json!({"managedSubnets": [{"cidr": "10.0.0.0/24", "dnsNameservers": ["8.8.8.8"]}, {"cidr": "fd00::/64"}]}),
        ),
        (
            json!({"managedSubnets": [{"cidr": "fd00::/64"}]}),
            json!({"managedSubnets": [{"cidr": "fd00::/64"}, {"subnetPool": {"id": POOL}, "prefixLength": 26}]}),
        ),
        (
            json!({"subnets": [{"id": POOL}]}),
            json!({"subnets": [{"id": POOL}, {"filter": {"name": "six"}}]}),
        ),
        (
            balancer(json!({"enabled": true})),
            balancer(
                json!({"enabled": true, "allowedCIDRs": ["10.0.0.0/8"], "monitor": {"delay": 3}}),
            ),
        ),
        (
            groups(json!([])),
            groups(json!([{"name": "n", "direction": "ingress"}])),
        ),
        (json!({}), groups(json!([]))),
        (
            json!({}),
            json!({"controlPlaneAvailabilityZones": ["a"], "controlPlaneOmitAvailabilityZone": true}),
        ),
        (
            json!({}),
            json!({"controlPlaneEndpoint": {"host": "1.2.3.4", "port": 6443}}),
        ),
        (json!({}), json!({"bastion": {"enabled": false}})),
        (json!({"bastion": {"enabled": false}}), json!({})),
        (json!({}), json!({"apiServer": {}})),
        (
            json!({"apiServer": {"enableFloatingIP": false}}),
            json!({"apiServer": {"enableFloatingIP": false, "port": 443, "fixedIP": "10.0.0.9"}}),
        ),
    ] {
        assert_eq!(
            changing(before.clone(), after.clone()),
            none,
            "{before} -> {after}"
        );
    }
}

#[test]
fn immutable_fields_of_a_cluster_are_named() {
    let table = [
        (json!({}), json!({"tags": ["a"]}), "spec.tags"),
        (
            json!({"managedSubnets": [{"cidr": "10.0.0.0/24"}]}),
            json!({}),
            "spec.managedSubnets",
        ),
        (
            json!({"managedSubnets": [{"cidr": "10.0.0.0/24"}]}),
            json!({"managedSubnets": [{"cidr": "10.1.0.0/24"}]}),
            "spec.managedSubnets[0].cidr",
        ),
        (
            json!({"managedSubnets": [{"cidr": "10.0.0.0/24"}, {"cidr": "fd00::/64"}]}),
            json!({"managedSubnets": [{"cidr": "10.0.0.0/24"}]}),
            "spec.managedSubnets",
        ),
        (
            json!({"managedSubnets": [{"cidr": "10.0.0.0/24"}]}),
            json!({"managedSubnets": [{"cidr": "10.0.0.0/24"}, {"cidr": "10.1.0.0/24"}]}),
            "spec.managedSubnets[1].cidr",
        ),
        (
            json!({"managedSubnets": [{"cidr": "10.0.0.0/24"}]}),
            json!({"managedSubnets": [{"cidr": "10.2.0.0/24"}, {"cidr": "fd00::/64"}]}),
            "spec.managedSubnets[0].cidr",
        ),
        (
            json!({}),
            json!({"managedSubnets": [{"cidr": "10.0.0.0/24"}]}),
            "spec.managedSubnets",
        ),
        (
            json!({"managedSubnets": [{"subnetPool": {"id": POOL}}]}),
            json!({"managedSubnets": [{"subnetPool": {"id": POOL}, "prefixLength": 26}]}),
            "spec.managedSubnets[0].prefixLength",
        ),
        (
            json!({"managedSubnets": [{"subnetPool": {"filter": {"name": "a"}}}]}),
            json!({"managedSubnets": [{"subnetPool": {"filter": {"name": "b"}}}]}),
            "spec.managedSubnets[0].subnetPool.filter.name",
        ),
        (
            json!({}),
            json!({"subnets": [{"id": POOL}]}),
            "spec.subnets",
        ),
        (
            json!({"subnets": [{"id": POOL}, {"filter": {"name": "six"}}]}),
            json!({"subnets": [{"id": POOL}]}),
            "spec.subnets",
        ),
        (
            json!({}),
            json!({"managedNetwork": {"mtu": 1400}}),
            "spec.managedNetwork.mtu",
        ),
        (json!({}), json!({"network": {"id": "x"}}), "spec.network"),
        (
            json!({}),
            json!({"externalNetwork": {"id": "x"}}),
            "spec.externalNetwork.id",
        ),
        (
            json!({}),
            json!({"apiServer": {"port": 443}}),
            "spec.apiServer.port",
        ),
        (
            json!({"apiServer": {"enableFloatingIP": false, "port": 1}}),
            json!({"apiServer": {"enableFloatingIP": false, "port": 2}}),
            "spec.apiServer.port",
        ),
        (
            json!({}),
            json!({"apiServer": {"enableFloatingIP": false}}),
            "spec.apiServer.enableFloatingIP",
        ),
        (
            json!({}),
            json!({"apiServer": {"floatingIP": "1.2.3.4"}}),
            "spec.apiServer.floatingIP",
        ),
        (
            json!({}),
            json!({"apiServer": {"managedLoadBalancer": {"enabled": false}}}),
            "spec.apiServer.managedLoadBalancer.enabled",
        ),
        (
            json!({"managedSecurityGroups": {"allowAllInClusterTraffic": true}}),
            json!({}),
            "spec.managedSecurityGroups",
        ),
        (
            json!({"controlPlaneEndpoint": {"host": "a", "port": 1}}),
            json!({"controlPlaneEndpoint": {"host": "b", "port": 1}}),
            "spec.controlPlaneEndpoint",
        ),
        (
            json!({"bastion": {"enabled": true}}),
            json!({}),
            "spec.bastion",
        ),
    ];
    for (before, after, path) in table {
        assert_eq!(
            changing(before.clone(), after.clone()),
            [path],
            "{before} -> {after}"
        );
    }
}

#[test]
fn what_status_shows_may_be_pinned_in_the_spec() {
    let status = json!({"network": {"id": "n", "name": "net", "subnets": [{"id": "s", "name": "sub", "cidr": "10.0.0.0/24"}]},
        "apiServerManagedLoadBalancer": {"ip": "1.2.3.4", "id": "l", "name": "l"}});
    let by_name =
        json!({"network": {"filter": {"name": "net"}}, "subnets": [{"filter": {"name": "sub"}}]});
    let none: Vec<String> = Vec::new();
    let by_id = json!({"network": {"id": "n"}, "subnets": [{"id": "s"}]});
    assert_eq!(changing_with(status.clone(), by_name.clone(), by_id), none);
    let wrong = json!({"network": {"id": "m"}, "subnets": [{"id": "t"}]});
    assert_eq!(
        changing_with(status.clone(), by_name, wrong),
        ["spec.network", "spec.subnets[0]"]
    );
    let pinned = json!({"apiServer": {"floatingIP": "1.2.3.4"}});
    assert_eq!(changing_with(status, json!({}), pinned), none);
}

/// The spec of a cluster with a bastion that has these fields.
fn bastion(fields: Value) -> Value {
    let mut spec =
        json!({"flavor": {"id": "f"}, "image": {"id": "00000000-0000-0000-0000-000000000001"}});
    for (name, value) in fields.as_object().unwrap() {
        spec[name] = value.clone();
    }
    json!({"bastion": {"enabled": true, "spec": spec}})
}

#[test]
fn formats_are_checked_with_the_exact_path() {
    let rule = json!({"name": "n", "direction": "ingress", "remoteGroupID": "g", "remoteIPPrefix": "10.0.0.0/33"});
    let table = [
        (
            json!({"managedSubnets": [{"cidr": "10.0.0.0"}]}),
            "spec.managedSubnets[0].cidr",
        ),
        (
            json!({"managedSubnets": [{"cidr": "10.0.0.0/24"}, {"cidr": "10.1.0.0/24"}]}),
            "spec.managedSubnets[1].cidr",
        ),
        (
            json!({"managedSubnets": [{}]}),
            "spec.managedSubnets[0].cidr",
        ),
        (
            json!({"managedSubnets": [{"subnetPool": {"id": POOL}}, {"subnetPool": {"id": POOL}, "ipVersion": 4}]}),
            "spec.managedSubnets[1].ipVersion",
        ),
        (
            json!({"managedSubnets": [{"subnetPool": {"id": POOL}, "ipVersion": 6}, {"cidr": "fd00::/64"}]}),
            "spec.managedSubnets[1].cidr",
        ),
        (
            json!({"managedSubnets": [{"subnetPool": {"id": POOL}, "prefixLength": 31}]}),
            "spec.managedSubnets[0].prefixLength",
        ),
        (
            json!({"managedSubnets": [{"subnetPool": {"id": POOL}, "prefixLength": 127, "ipVersion": 6}]}),
            "spec.managedSubnets[0].prefixLength",
        ),
        (
            json!({"managedSubnets": [{"subnetPool": {"id": POOL}, "cidr": "10.0.0.0/24", "prefixLength": 24}]}),
            "spec.managedSubnets[0].prefixLength",
        ),
        (
            json!({"managedSubnets": [{"subnetPool": {"id": POOL}, "cidr": "10.0.0.0/24", "ipVersion": 6}]}),
            "spec.managedSubnets[0].ipVersion",
        ),
        (
            json!({"managedSubnets": [{"subnetPool": {"id": POOL}, "ipv6RAMode": "slaac"}]}),
            "spec.managedSubnets[0].ipv6RAMode",
        ),
        (
            json!({"managedSubnets": [{"subnetPool": {"id": POOL}, "ipVersion": 6, "prefixLength": 56, "ipv6RAMode": "slaac"}]}),
            "spec.managedSubnets[0].ipv6RAMode",
        ),
        (
            json!({"managedSubnets": [{"cidr": "10.0.0.0/24", "ipv6RAMode": "slaac"}]}),
            "spec.managedSubnets[0].ipv6RAMode",
        ),
        (
            json!({"managedSubnets": [{"cidr": "fd00::/48", "ipv6AddressMode": "slaac"}]}),
            "spec.managedSubnets[0].ipv6AddressMode",
        ),
        (
            json!({"managedSubnets": [{"cidr": "fd00::/64", "ipv6RAMode": "slaac", "ipv6AddressMode": "dhcpv6-stateful"}]}),
            "spec.managedSubnets[0].ipv6AddressMode",
        ),
        (
            json!({"managedSubnets": [{"cidr": "10.0.0.0/24", "dnsNameservers": ["dns"]}]}),
            "spec.managedSubnets[0].dnsNameservers[0]",
        ),
        (
            json!({"managedSubnets": [{"cidr": "10.0.0.0/24", "allocationPools": [{"start": "10.0.0.9", "end": "10.0.1.9"}]}]}),
            "spec.managedSubnets[0].allocationPools[0].end",
        ),
        (
            json!({"managedSubnets": [{"cidr": "10.0.0.0/24", "allocationPools": [{"start": "10.0.0.9", "end": "10.0.0.3"}]}]}),
            "spec.managedSubnets[0].allocationPools[0].start",
        ),
        (
            json!({"apiServer": {"fixedIP": "10.0.0"}}),
            "spec.apiServer.fixedIP",
        ),
        (
            json!({"apiServer": {"floatingIP": "x"}}),
            "spec.apiServer.floatingIP",
        ),
        (
            json!({"apiServer": {"managedLoadBalancer": {"allowedCIDRs": ["10.0.0.1", "x"]}}}),
            "spec.apiServer.managedLoadBalancer.allowedCIDRs[1]",
        ),
        (
            json!({"apiServer": {"managedLoadBalancer": {"additionalPorts": [6443]}}}),
            "spec.apiServer.managedLoadBalancer.additionalPorts[0]",
        ),
        (
            json!({"managedRouter": {"externalIPs": [{"fixedIP": "x", "subnet": {"id": "s"}}]}}),
            "spec.managedRouter.externalIPs[0].fixedIP",
        ),
        (
            json!({"apiServer": {"floatingIP": "192.0.2.7"}, "bastion": {"enabled": false, "floatingIP": "192.0.2.7"}}),
            "spec.bastion.floatingIP",
        ),
        (
            bastion(json!({"providerID": "openstack:///1"})),
            "spec.bastion.spec.providerID",
        ),
        (
            json!({"bastion": {"enabled": true, "floatingIP": "192.0.2.8", "spec": {
                "flavor": {"filter": {"name": "f"}}, "image": {"filter": {"name": "i"}},
                "floatingIPPoolRef": {"kind": "Pool", "name": "p"}}}}),
            "spec.bastion.spec.floatingIPPoolRef",
        ),
        (
            bastion(json!({"identityRef": {"name": "other", "cloudName": "c"}})),
            "spec.bastion.spec.identityRef",
        ),
        (
            bastion(json!({"ports": [{"fixedIPs": [{"ipAddress": "x"}]}]})),
            "spec.bastion.spec.ports[0].fixedIPs[0].ipAddress",
        ),
        (
            json!({"managedSecurityGroups": {"workerNodesSecurityGroupRules": [
                {"name": "n", "direction": "ingress", "remoteManagedGroups": ["worker", "bastion"]}]}}),
            "spec.managedSecurityGroups.workerNodesSecurityGroupRules[0].remoteManagedGroups",
        ),
    ];
    for (spec, path) in table {
        assert_eq!(problems(&cluster(spec.clone()), None), [path], "{spec}");
    }
    let rules = json!({"managedSecurityGroups": {"workerNodesSecurityGroupRules": [rule]}});
    let at = "spec.managedSecurityGroups.workerNodesSecurityGroupRules[0]";
    assert_eq!(
        problems(&cluster(rules), None),
        [at.to_owned(), format!("{at}.remoteIPPrefix")]
    );
}

#[test]
fn a_machine_is_immutable_but_for_three_fields() {
    let port = |pairs: Value, tags: Value| json!({"ports": [{"allowedAddressPairs": pairs, "tags": tags}]});
    let old = machine(port(json!([]), json!(["a"])));
    let pair = json!([{"ipAddress": "10.0.0.0/24"}]);
    let none: Vec<String> = Vec::new();
    assert_eq!(
        problems(&machine(port(pair, json!(["a"]))), Some(&old)),
        none
    );
    assert_eq!(
        problems(&machine(port(json!([]), json!(["b"]))), Some(&old)),
        ["spec.ports[0].tags[0]"]
    );
    let old = machine(json!({}));
    let set =
        json!({"providerID": "openstack:///1", "identityRef": {"name": "a", "cloudName": "b"}});
    assert_eq!(problems(&machine(set), Some(&old)), none);
    assert_eq!(
        problems(&machine(json!({"flavor": {"id": "8"}})), Some(&old)),
        ["spec.flavor.filter.name", "spec.flavor.id"]
    );
}

#[test]
fn a_machines_devices_and_ports_are_checked() {
    let device = json!({"name": "root", "sizeGiB": 1, "storage": {"type": "Local"}});
    let table = [
        (
            json!({"rootVolume": {"sizeGiB": 1}, "additionalBlockDevices": [device]}),
            "spec.additionalBlockDevices[0].name",
        ),
        (
            json!({"ports": [{"enablePortSecurity": false, "securityGroups": [{"id": "g"}]}]}),
            "spec.ports[0].securityGroups",
        ),
        (
            json!({"ports": [{"nameSuffix": "1"}, {}]}),
            "spec.ports[1].nameSuffix",
        ),
        (
            json!({"ports": [{"fixedIPs": [{"ipAddress": "x"}]}]}),
            "spec.ports[0].fixedIPs[0].ipAddress",
        ),
        (
            json!({"ports": [{"allowedAddressPairs": [{"ipAddress": "x"}]}]}),
            "spec.ports[0].allowedAddressPairs[0].ipAddress",
        ),
    ];
    for (spec, path) in table {
        assert_eq!(problems(&machine(spec.clone()), None), [path], "{spec}");
    }
}

#[test]
fn a_dry_run_of_a_cluster_class_may_change_a_template() {
    let template = |flavor: &str| {
        let spec = machine(json!({"flavor": {"id": flavor}}))["spec"].clone();
        json!({"apiVersion": TWO, "kind": "OpenStackMachineTemplate",
            "metadata": {"annotations": {super::TOPOLOGY_DRY_RUN: ""}}, "spec": {"template": {"spec": spec}}})
    };
    let (old, new) = (template("a"), template("b"));
    assert_eq!(problems(&new, Some(&old)), ["spec.template.spec.flavor.id"]);
    assert_eq!(
        validate(Review {
            object: &new,
            old: Some(&old),
            dry_run: true
        }),
        Ok(())
    );
    let mut given = template("a");
    given["spec"]["template"]["spec"]["providerID"] = json!("openstack:///1");
    assert_eq!(problems(&given, None), ["spec.template.spec.providerID"]);
}

#[test]
fn a_cluster_templates_metadata_is_mutable_and_its_spec_is_not() {
    let template = |label: &str, tag: &str| {
        let spec = cluster(json!({"tags": [tag]}))["spec"].clone();
        json!({"apiVersion": TWO, "kind": "OpenStackClusterTemplate",
            "spec": {"template": {"metadata": {"labels": {"l": label}}, "spec": spec}}})
    };
    let none: Vec<String> = Vec::new();
    assert_eq!(
        problems(&template("b", "t"), Some(&template("a", "t"))),
        none
    );
    assert_eq!(
        problems(&template("a", "u"), Some(&template("a", "t"))),
        ["spec.template.spec.tags[0]"]
    );
}

#[test]
fn an_object_that_broke_a_rule_before_there_was_one_can_be_finalized() {
    let old = cluster(json!({"apiServer": {"fixedIP": "x"}}));
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!([]);
    assert_eq!(problems(&new, Some(&old)), Vec::<String>::new());
}

#[test]
fn released_templates_are_valid() {
    for document in released_documents() {
        let new = crate::convert::convert(document, TWO).unwrap();
        assert_eq!(problems(&new, None), Vec::<String>::new(), "{new}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_validation_panic(cidr in ".{0,12}", ip in ".{0,12}", port in any::<i32>()) {
        let spec = json!({"managedSubnets": [{"cidr": cidr, "dnsNameservers": [ip]}], "apiServer": {"port": port, "fixedIP": ip}});
        let object = cluster(spec);
        problems(&object, None);
        problems(&object, Some(&cluster(json!({}))));
    }
}
