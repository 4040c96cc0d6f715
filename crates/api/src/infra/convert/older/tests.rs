use serde_json::{Value, json};

use crate::convert::{convert, warnings};
use crate::infra::GROUP;

fn object(kind: &str, version: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/{version}"), "kind": kind,
        "metadata": {"name": "a", "namespace": "n"}, "spec": spec})
}

fn to(object: &Value, version: &str) -> Value {
    convert(object.clone(), &format!("{GROUP}/{version}")).unwrap()
}

/// The spec in v1beta2, after it was converted back to what it was.
fn hub(kind: &str, version: &str, spec: Value) -> Value {
    let old = object(kind, version, spec);
    let new = to(&old, "v1beta2");
    assert_eq!(to(&new, version)["spec"], old["spec"], "there and back");
    new["spec"].clone()
}

#[test]
fn a_machine_of_the_oldest_version_has_all_its_fields_in_the_newest() {
    let spec = json!({
        "cloudName": "openstack", "identityRef": {"kind": "Secret", "name": "creds"},
        "flavor": "m1", "image": "ubuntu", "floatingIP": "192.0.2.1", "instanceID": "i",
        "networks": [
            {"uuid": "net-1", "subnets": [{"uuid": "sub-1"}, {"filter": {"name": "s", "tenantId": "t", "marker": "m"}}]},
            {"filter": {"name": "other", "tags": "x,y,,x", "status": "ACTIVE"}, "fixedIP": "10.0.0.1"},
        ],
        "ports": [{"networkId": "net-2", "hostId": "h", "nameSuffix": "", "tenantId": "t", "securityGroups": ["g"],
            "fixedIPs": [{"subnetId": "sub-2", "ipAddress": "10.0.0.2"}],
            "profile": {"capabilities": "[\"switchdev\"]", "trusted": "true", "other": "1"},
            "disablePortSecurity": true}],
        "rootVolume": {"diskSize": 25, "deviceType": "disk", "sourceType": "image", "sourceUUID": "img"},
        "securityGroups": [{"uuid": "sg-1"}, {"name": "sg", "filter": {"tenantId": "t", "tags": "a", "limit": 3}}],
        "serverGroupID": "sg", "serverMetadata": {"role": "node"}, "subnet": "s", "tags": ["a", "b", "a"], "trunk": true,
    });
    let new = hub("OpenStackMachine", "v1alpha4", spec);
    assert_eq!(
        new,
        json!({
            "identityRef": {"name": "creds", "cloudName": "openstack"},
            "flavor": {"filter": {"name": "m1"}}, "image": {"id": "img"},
            "ports": [
                {"network": {"id": "net-1"}, "fixedIPs": [{"subnet": {"id": "sub-1"}}]},
                {"network": {"id": "net-1"}, "fixedIPs": [{"subnet": {"filter": {"name": "s", "projectID": "t"}}}]},
                {"network": {"filter": {"name": "other", "tags": ["x", "y"]}}},
                {"network": {"id": "net-2"}, "hostID": "h", "securityGroups": [{"id": "g"}],
                    "fixedIPs": [{"subnet": {"id": "sub-2"}, "ipAddress": "10.0.0.2"}],
                    "profile": {"ovsHWOffload": true, "trustedVF": true}, "enablePortSecurity": false},
            ],
            "rootVolume": {"sizeGiB": 25, "availabilityZone": {"from": "Machine"}},
            "securityGroups": [{"id": "sg-1"}, {"filter": {"name": "sg", "projectID": "t", "tags": ["a"]}}],
            "serverGroup": {"id": "sg"}, "serverMetadata": [{"key": "role", "value": "node"}],
            "tags": ["a", "b"], "trunk": true,
        })
    );
}

#[test]
fn a_cluster_of_the_oldest_version_has_all_its_fields_in_the_newest() {
    let spec = json!({
        "cloudName": "openstack", "identityRef": {"kind": "Secret", "name": "creds"},
        "managedAPIServerLoadBalancer": true, "apiServerLoadBalancerAdditionalPorts": [2222], "apiServerPort": 6443,
        "nodeCidr": "10.6.0.0/24", "dnsNameservers": ["192.0.2.53"], "externalNetworkId": "ext",
        "managedSecurityGroups": true, "disablePortSecurity": true, "tags": ["t"],
        "network": {"name": "n", "shared": true}, "subnet": {"id": "s", "name": "also"},
        "externalRouterIPs": [{"fixedIP": "192.0.2.9", "subnet": {"uuid": "u"}}],
        "bastion": {"enabled": true, "availabilityZone": "az",
            "instance": {"flavor": "m1", "image": "img", "floatingIP": "192.0.2.8"}},
    });
    let new = hub("OpenStackCluster", "v1alpha4", spec);
    let rule = |name: &str, protocol: &str| {
        json!({"name": name, "description": format!("Created by cluster-api-provider-openstack - {name}"),
            "direction": "ingress", "etherType": "IPv4", "protocol": protocol,
            "remoteManagedGroups": ["controlplane", "worker"]})
    };
    let mut bgp = rule("BGP (calico)", "tcp");
    bgp["portRangeMin"] = json!(179);
    bgp["portRangeMax"] = json!(179);
    assert_eq!(
        new,
        json!({
            "identityRef": {"name": "creds", "cloudName": "openstack"},
            "apiServer": {"port": 6443, "managedLoadBalancer": {"enabled": true, "additionalPorts": [2222]}},
            "managedSubnets": [{"cidr": "10.6.0.0/24", "dnsNameservers": ["192.0.2.53"]}],
            "externalNetwork": {"id": "ext"},
            "managedSecurityGroups": {"clusterNodesSecurityGroupRules": [bgp, rule("IP-in-IP (calico)", "4")]},
            "managedNetwork": {"enablePortSecurity": false}, "tags": ["t"],
            "network": {"filter": {"name": "n"}}, "subnets": [{"id": "s"}],
            "managedRouter": {"externalIPs": [{"fixedIP": "192.0.2.9", "subnet": {"id": "u"}}]},
            "bastion": {"enabled": true, "availabilityZone": "az", "floatingIP": "192.0.2.8",
                "spec": {"flavor": {"filter": {"name": "m1"}}, "image": {"filter": {"name": "img"}}}},
        })
    );
}

#[test]
fn what_an_absent_field_meant_is_written_where_it_means_something_else_now() {
    let cluster = |spec| hub("OpenStackCluster", "v1alpha7", spec);
    assert_eq!(
        cluster(json!({"bastion": {}, "apiServerLoadBalancer": {"additionalPorts": [1]}})),
        json!({"bastion": {"enabled": false},
            "apiServer": {"managedLoadBalancer": {"enabled": false, "additionalPorts": [1]}}})
    );
    assert_eq!(
        cluster(
            json!({"apiServerLoadBalancer": {"enabled": false}, "managedSecurityGroups": false,
            "allowAllInClusterTraffic": true, "network": {}, "router": {}, "subnet": {}, "dnsNameservers": ["x"]})
        ),
        json!({})
    );
    assert_eq!(
        cluster(json!({"managedSecurityGroups": true, "allowAllInClusterTraffic": true})),
        json!({"managedSecurityGroups": {"allowAllInClusterTraffic": true}})
    );
    let machine = |spec| hub("OpenStackMachine", "v1alpha7", spec);
    let volume = |zone: Value| json!([{"name": "d", "sizeGiB": 1, "storage": {"type": "Volume", "volume": zone}}]);
    let from = |zone: Value| json!({ "availabilityZone": zone });
    assert_eq!(
        machine(json!({"additionalBlockDevices": volume(json!({"availabilityZone": ""}))}))["additionalBlockDevices"],
        volume(from(json!({"from": "Machine"})))
    );
    assert_eq!(
        machine(json!({"additionalBlockDevices": volume(json!({"availabilityZone": "z"}))}))["additionalBlockDevices"],
        volume(from(json!({"from": "Name", "name": "z"})))
    );
    assert_eq!(
        machine(
            json!({"rootVolume": {"diskSize": 0, "volumeType": "ssd"}, "cloudName": "c", "image": "",
            "serverGroupID": "", "ports": [{"macAddress": "", "vnicType": "direct"}]})
        ),
        json!({"ports": [{"vnicType": "direct"}]})
    );
}

#[test]
fn metadata_is_cut_to_what_nova_takes_and_comes_back_whole() {
    let long = "k".repeat(300);
    let new = hub(
        "OpenStackMachine",
        "v1alpha7",
        json!({"serverMetadata": {long.clone(): "v".repeat(256), format!("{long}2"): "w"}}),
    );
    let cut = json!([{"key": "k".repeat(255), "value": "v".repeat(255)}]);
    assert_eq!(new["serverMetadata"], cut);
}

#[test]
fn the_id_of_a_server_moves_between_spec_and_status() {
    let old = object("OpenStackMachine", "v1alpha6", json!({"instanceID": "i"}));
    let new = to(&old, "v1beta2");
    assert_eq!(new["status"]["instanceID"], "i");
    assert_eq!(new["spec"].get("instanceID"), None);
    assert_eq!(to(&new, "v1alpha6")["spec"], old["spec"]);
    let mut replaced = new;
    replaced["status"]["instanceID"] = json!("j");
    assert_eq!(to(&replaced, "v1alpha6")["spec"]["instanceID"], "j");
    assert_eq!(to(&replaced, "v1beta1")["status"]["instanceID"], "j");
}

#[test]
fn status_moves_and_is_never_kept() {
    let mut old = object("OpenStackCluster", "v1alpha6", json!({}));
    old["status"] = json!({"ready": true,
        "network": {"id": "n", "name": "n", "router": {"id": "r", "name": "r"}, "port": {},
            "subnet": {"id": "s", "name": "s", "cidr": "10.6.0.0/24"}, "apiServerLoadBalancer": {"id": "l", "name": "l"}},
        "bastion": {"id": "b", "name": "b", "flavor": "m1", "networks": [], "ip": "10.6.0.9"},
        "workerSecurityGroup": {"id": "w", "name": "w", "rules": []}});
    let new = to(&old, "v1beta2");
    assert_eq!(
        new["status"],
        json!({"initialization": {"provisioned": true}, "network": {"id": "n", "name": "n",
                "subnets": [{"id": "s", "name": "s", "cidr": "10.6.0.0/24"}]},
            "router": {"id": "r", "name": "r"}, "apiServerManagedLoadBalancer": {"id": "l", "name": "l"},
            "bastion": {"id": "b", "name": "b", "ip": "10.6.0.9"}, "workerSecurityGroup": {"id": "w", "name": "w"}})
    );
    assert_eq!(new["metadata"].get("annotations"), None);
    let back = to(&new, "v1alpha6");
    assert_eq!(back["status"]["ready"], true);
    assert_eq!(back["status"]["network"]["router"]["id"], "r");
    assert_eq!(back["status"]["network"]["subnet"]["id"], "s");
    let mut template = object(
        "OpenStackMachineTemplate",
        "v1beta2",
        json!({"template": {"spec": {}}}),
    );
    template["status"] = json!({"capacity": {"cpu": "1"}});
    assert_eq!(to(&template, "v1alpha7").get("status"), None);
}

#[test]
fn an_edit_in_a_list_wins_and_the_elements_beside_it_keep_what_they_had() {
    let spec = json!({"flavor": "m1", "ports": [
        {"networkId": "a", "tenantId": "x"}, {"networkId": "b", "tenantId": "y"}, {"networkId": "c", "tenantId": "z"}]});
    let mut new = to(&object("OpenStackMachine", "v1alpha4", spec), "v1beta2");
    let ports = new["spec"]["ports"].as_array_mut().unwrap();
    // Moved, removed, inserted, changed.
    ports.remove(1);
    ports.swap(0, 1);
    ports.insert(0, json!({"network": {"id": "new"}}));
    ports[2]["trunk"] = json!(true);
    let old = to(&new, "v1alpha4");
    assert_eq!(
        old["spec"]["ports"],
        json!([{"networkId": "new"}, {"networkId": "c", "tenantId": "z"}, {"networkId": "a", "trunk": true}])
    );
    assert_eq!(to(&old, "v1beta2")["spec"], new["spec"]);
}

#[test]
fn networks_that_became_ports_are_not_there_twice_after_an_edit() {
    let spec = json!({"networks": [{"uuid": "n"}], "ports": [{"network": {"id": "p"}}]});
    let mut new = to(&object("OpenStackMachine", "v1alpha6", spec), "v1beta2");
    new["spec"]["ports"][0]["trunk"] = json!(true);
    let old = to(&new, "v1alpha6");
    assert_eq!(
        old["spec"],
        json!({"ports": [{"network": {"id": "n"}, "trunk": true}, {"network": {"id": "p"}}]})
    );
    assert_eq!(to(&old, "v1beta2")["spec"], new["spec"]);
}

#[test]
fn a_filter_that_was_changed_does_not_get_fields_of_the_one_before() {
    let spec = json!({"network": {"id": "x", "name": "of-x"}, "cloudName": "c", "identityRef": {"kind": "Secret", "name": "s"}});
    let mut new = to(&object("OpenStackCluster", "v1alpha7", spec), "v1beta2");
    new["spec"]["network"] = json!({"id": "y"});
    assert_eq!(to(&new, "v1alpha7")["spec"]["network"], json!({"id": "y"}));
    new["spec"]["identityRef"]["region"] = json!("r");
    let mut old = to(&new, "v1alpha7");
    old["spec"]["identityRef"]["name"] = json!("other");
    let again = to(&old, "v1beta2");
    assert_eq!(
        again["spec"]["identityRef"],
        json!({"name": "other", "cloudName": "c"})
    );
}

#[test]
fn v1alpha8_of_the_book_is_v1beta1() {
    let spec = json!({"flavor": "m1", "image": {"id": "i"}});
    let book = object("OpenStackMachine", "v1alpha8", spec.clone());
    assert_eq!(
        to(&book, "v1beta2")["spec"]["flavor"],
        json!({"filter": {"name": "m1"}})
    );
    assert_eq!(
        to(&book, "v1beta1"),
        object("OpenStackMachine", "v1beta1", spec)
    );
}

#[test]
fn unknown_versions_and_malformed_objects_are_refused_with_the_reason() {
    let error = |object: Value, to: &str| {
        let desired = format!("{GROUP}/{to}");
        convert(object, &desired).unwrap_err().to_string()
    };
    let machine = |version: &str, spec: Value| object("OpenStackMachine", version, spec);
    assert_eq!(
        error(machine("v1alpha3", json!({})), "v1beta2"),
        format!("OpenStackMachine cannot be converted from {GROUP}/v1alpha3 to {GROUP}/v1beta2")
    );
    assert!(error(machine("v1alpha4", json!({})), "v1").contains("cannot be converted"));
    assert!(
        error(object("OpenStackServer", "v1alpha1", json!({})), "v1beta2")
            .contains("cannot be converted")
    );
    assert_eq!(
        error(
            machine("v1alpha4", json!({"networks": [{"filter": 3}]})),
            "v1beta2"
        ),
        format!("OpenStackMachine in {GROUP}/v1alpha4: spec.networks[0].filter is not an object")
    );
    assert!(error(machine("v1alpha4", json!(3)), "v1beta2").ends_with("spec is not an object"));
}

#[test]
fn a_forged_stash_brings_back_nothing_that_the_schema_refuses() {
    let annotation = crate::conversion::stash::ANNOTATION;
    let mut new = object(
        "OpenStackMachine",
        "v1beta2",
        json!({"flavor": {"filter": {"name": "m1"}}, "image": {"id": "i"}}),
    );
    let forge = |version: &str, lost: Value| json!({annotation: json!({"version": version, "lost": lost}).to_string()});
    new["metadata"]["annotations"] = forge(
        "v1alpha7",
        json!({"/spec/evil": {"d": 1}, "/spec/trunk": {"d": "yes"}, "/spec/ports": {"d": [{"evil": 1}]},
            "/metadata/finalizers": {"d": ["x"]}, "/kind": {"d": "Other"}, "/status/ready": {"d": true},
            "/spec/sshKeyName": {"d": "kept"}, "/spec/subnet": {"d": "of another version"}, "": {"d": {}}, "/": {"d": 1}}),
    );
    let old = to(&new, "v1alpha7");
    assert_eq!(old["kind"], "OpenStackMachine");
    assert_eq!(old["metadata"].get("finalizers"), None);
    assert_eq!(
        old["spec"],
        json!({"flavor": "m1", "imageUUID": "i", "sshKeyName": "kept"})
    );
    assert_eq!(
        to(&old, "v1beta2")["spec"],
        new["spec"],
        "the stored object is what it was"
    );
    // Of two members that exclude each other, the stash does not add the other one.
    let mut old = object(
        "OpenStackMachine",
        "v1alpha7",
        json!({"flavor": "m1", "imageUUID": "i"}),
    );
    old["metadata"]["annotations"] = forge(
        "v1beta2",
        json!({"/spec/image/filter": {"d": {"name": "x"}}, "/spec/tags": {"d": [1]}}),
    );
    assert_eq!(to(&old, "v1beta2")["spec"]["image"], json!({"id": "i"}));
    for broken in [
        "",
        "{",
        "[]",
        "3",
        "{\"version\":\"v1alpha7\",\"lost\":3}",
        "{\"version\":\"v1alpha7\",\"lost\":{\"/spec/x\":3}}",
    ] {
        new["metadata"]["annotations"] = json!({ annotation: broken });
        assert_eq!(
            to(&new, "v1alpha7")["spec"],
            json!({"flavor": "m1", "imageUUID": "i"}),
            "{broken}"
        );
    }
}

#[test]
fn what_the_stored_version_does_not_have_is_a_warning_with_field_and_object() {
    let spec = json!({"flavor": "m1", "image": "u", "imageUUID": "i", "floatingIP": "192.0.2.1", "networks": [{"filter": {"name": "n"}}, {"uuid": "u"}],
        "ports": [{"tenantId": "t"}, {"trunk": true}], "serverMetadata": {"a": "b"}});
    let old = object("OpenStackMachine", "v1alpha6", spec);
    let new = to(&old, "v1beta2");
    let found = warnings(&new, None);
    let has = |text: &str| {
        found
            .iter()
            .any(|line| line.starts_with(&format!("OpenStackMachine n/a: {text}")))
    };
    assert!(
        has("spec.floatingIP of v1alpha6 has no effect"),
        "{found:#?}"
    );
    assert!(has("spec.image of v1alpha6 has no effect"), "{found:#?}");
    assert!(
        has("spec.networks[0].filter is that of a port now"),
        "{found:#?}"
    );
    assert_eq!(found.len(), 3, "{found:#?}");
    assert_eq!(warnings(&new, Some(&new)), [""; 0]);
    assert_eq!(
        warnings(&object("OpenStackMachine", "v1beta2", json!({})), None),
        [""; 0]
    );
    let old = to(
        &object(
            "OpenStackMachine",
            "v1beta2",
            json!({"floatingIPPoolRef": {"kind": "a", "name": "b"}}),
        ),
        "v1alpha6",
    );
    assert_eq!(warnings(&old, None), [""; 0]);
}

#[test]
fn a_long_list_is_converted_there_and_back() {
    let ports: Vec<Value> = (0..3000)
        .map(|n| json!({"nameSuffix": n.to_string(), "tenantId": "t", "tags": ["a", "a"], "fixedIPs": [{"subnetId": "s"}]}))
        .collect();
    let tags: Vec<String> = (0..3000).map(|n| n.to_string()).collect();
    let old = object(
        "OpenStackMachine",
        "v1alpha4",
        json!({"ports": ports, "tags": tags}),
    );
    let new = to(&old, "v1beta2");
    assert_eq!(to(&new, "v1alpha4")["spec"], old["spec"]);
}
