use serde_json::json;

use super::*;

#[test]
fn the_spec_alone_and_the_object_are_the_same_file() {
    let spec = json!({"release": "2025.1", "services": {"nova": {"config": {"DEFAULT": {"debug": true}}}}});
    let object = json!({"apiVersion": "ferrostack.dev/v1alpha1", "kind": "OpenStack",
        "metadata": {"name": "cloud"}, "spec": spec});
    let (alone, prefix) = Parameters::read(&spec).unwrap();
    assert_eq!(prefix, "");
    let (whole, prefix) = Parameters::read(&object).unwrap();
    assert_eq!(prefix, "spec");
    assert_eq!(alone, whole);
    let (wrapped, prefix) = Parameters::read(&json!({"spec": spec})).unwrap();
    assert_eq!(prefix, "spec");
    assert_eq!(alone, wrapped);
    // Beside other fields it is none of a spec.
    let beside = json!({"spec": spec, "release": "zed"});
    let error = Parameters::read(&beside).unwrap_err().to_string();
    assert!(error.starts_with("spec: unknown field `spec`"), "{error}");
    assert_eq!(alone.region, "RegionOne");
    let smallest = Parameters::read(&json!({"release": "zed"})).unwrap().0;
    assert_eq!(smallest, Parameters::from_release(Release::Zed));
}

#[test]
fn what_is_wrong_is_named_with_its_field() {
    for (document, message) in [
        (json!({}), "missing field `release`"),
        (
            json!({"release": "yoga"}),
            "release: there is no release `yoga` here; there are: zed, 2025.1, 2026.1",
        ),
        (
            json!({"release": 2025.1}),
            "release: 2025.1 is a number; write it in quotes: \"2025.1\"",
        ),
        (
            json!({"release": "zed", "network": {"mtu": 9}}),
            "network.mtu: 9 is not from 1280 to 65535",
        ),
        (
            json!({"release": "zed", "region": "a\n[x]"}),
            "region: it has to be 1 to 64 letters, digits, `.`, `-` or `_`",
        ),
        (
            json!({"release": "zed", "network": {"physical": [{"name": "a"}, {"name": "b", "vlans": "1:5000"}]}}),
            "network.physical[1].vlans: it has to be two numbers from 1 to 4094, such as 100:199",
        ),
        (
            json!({"release": "zed", "replicas": 3}),
            "replicas: this field is not built yet",
        ),
        (
            json!({"release": "zed", "compute": {"driver": "Libvirt"}}),
            "compute.driver: Libvirt needs release 2026.1: the images of other releases have no libvirt",
        ),
        (
            json!({"release": "zed", "compute": {"driver": "Xen"}}),
            "compute.driver: unknown variant `Xen`, expected `Fake` or `Libvirt`",
        ),
        (
            json!({"release": "zed", "compute": {"driver": "Fake", "groups": []}}),
            "compute.groups: this field is not built yet",
        ),
        (
            json!({"release": "zed", "compute": {"driver": "Fake", "fake": {"hypervisors": 0}}}),
            "compute.fake.hypervisors: 0 is not from 1 to 100",
        ),
        (
            json!({"release": "zed", "compute": {"driver": "Fake", "fake": {"zones": ["a", "b", "c"]}}}),
            "compute.fake.zones[2]: there is no hypervisor for this zone",
        ),
        (
            json!({"release": "zed", "compute": {"driver": "Fake", "fake": {"zones": ["a", "a"]}}}),
            "compute.fake.zones[1]: it is there twice",
        ),
        (
            json!({"release": "zed", "compute": {"driver": "Fake", "fake": {"zones": ["a:b"]}}}),
            "compute.fake.zones[0]: it has to be 1 to 64 letters, digits, `.`, `-` or `_`",
        ),
        (
            json!({"release": "zed", "compute": {"driver": "Fake", "fake": {"zones": ["internal"]}}}),
            "compute.fake.zones[0]: Nova has this zone itself, for hosts without one and for its own programs",
        ),
        (
            json!({"release": "2025.1", "network": {"physical": [{"name": "public"}, {"name": "public", "vlans": "1:10"}]}}),
            "network.physical[1].name: it is there twice",
        ),
        (
            json!({"release": "2025.1", "services": {"nova": {"resources": {"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}}}}),
            "services.nova.resources.requests.memory: it is above the limit, and no Pod may request more",
        ),
        (
            json!({"release": "2025.1", "services": {"nova": {"resources": {"requests": {"cpu": "1500m"}, "limits": {"cpu": "1"}}}}}),
            "services.nova.resources.requests.cpu: it is above the limit, and no Pod may request more",
        ),
        (
            json!({"release": "zed", "exposure": {"mode": "Edge", "host": "224.0.0.1"}}),
            "exposure.host: it has to be the IPv4 address of a host, or a domain name",
        ),
        (
            json!({"release": "zed", "exposure": {"mode": "Edge", "host": "192.0.2.1", "addresses": ["255.255.255.255"]}}),
            "exposure.addresses[0]: it has to be the IPv4 address of a node",
        ),
        (
            json!({"release": "zed", "exposure": {"mode": "Gateway"}}),
            "exposure.mode: Gateway is not built yet; there are Edge and None",
        ),
        (
            json!({"release": "zed", "exposure": {"mode": "Edge"}}),
            "exposure.host: it has to be the IPv4 address of a host, or a domain name",
        ),
        (
            json!({"release": "zed", "exposure": {"mode": "Edge", "host": "cloud.test"}}),
            "exposure.addresses: it needs the addresses of nodes to which the name of exposure.host leads",
        ),
        (
            json!({"release": "zed", "nodes": {"control": {"a b": "c"}}}),
            "nodes.control.a b: it is not a label of nodes, such as openstack-control-plane: enabled",
        ),
        (
            json!({"release": "zed", "services": {"nova": {"resources": {"requests": {"memory": "1024Mi"}}}}}),
            "services.nova.resources.requests.memory: it is not a quantity in the shortest form: 100m, 2, 512Mi, 1Gi",
        ),
        (
            json!({"release": "zed", "nodes": {"control": {"a b/c": "d"}}}),
            "nodes.control.a b/c: it is not a label of nodes, such as openstack-control-plane: enabled",
        ),
        (
            json!({"release": "zed", "services": {"nova": {"resources": {"limits": {"memory": "1024Gi"}}}}}),
            "services.nova.resources.limits.memory: it is not a quantity in the shortest form: 100m, 2, 512Mi, 1Gi",
        ),
        (
            json!({"release": "zed", "services": {"nova": {"resources": {"limits": {"memory": "1000G"}}}}}),
            "services.nova.resources.limits.memory: it is not a quantity in the shortest form: 100m, 2, 512Mi, 1Gi",
        ),
        (
            json!({"release": "zed", "services": {"nova": {"resources": {"requests": {"memory": "0Mi"}}}}}),
            "services.nova.resources.requests.memory: it is not a quantity in the shortest form: 100m, 2, 512Mi, 1Gi",
        ),
        (
            json!({"release": "zed", "storage": {"class": "-"}}),
            "storage.class: it is not the name of a storage class",
        ),
        (
            json!({"release": "2026.1", "services": {"horizon": {"api": {"processes": 0}}}}),
            "services.horizon.api.processes: it is not from 1 to 64",
        ),
        (
            json!({"release": "2026.1", "services": {"neutron": {"api": {"threads": 2}}}}),
            "services.neutron.api.threads: Neutron is served by processes alone, says its documentation: ask for processes",
        ),
        (
            json!({"release": "2025.1", "services": {"nova": {"api": {"threads": 2}}}}),
            "services.nova.api.threads: programs of this release replace threads by eventlet's, which uWSGI has not: ask for processes",
        ),
        (
            json!({"release": "zed", "services": {"horizon": {"resources": {"limits": {"cpu": "a lot"}}}}}),
            "services.horizon.resources.limits.cpu: it is not a quantity in the shortest form: 100m, 2, 512Mi, 1Gi",
        ),
        (
            json!({"release": "zed", "storage": {"class": "Fast"}}),
            "storage.class: it is not the name of a storage class",
        ),
        (
            json!({"release": "zed", "exposure": {"mode": "Edge", "host": "127.1.0.1"}}),
            "exposure.addresses: it needs the addresses of nodes to which the name of exposure.host leads",
        ),
        (
            json!({"release": "zed", "exposure": {"mode": "Edge", "host": "127.1.0.1", "addresses": ["127.1.0.1"]}}),
            "exposure.addresses[0]: it has to be the IPv4 address of a node",
        ),
        (
            json!({"release": "zed", "exposure": {"mode": "Edge", "host": "192.0.2.1", "addresses": ["a"]}}),
            "exposure.addresses[0]: it has to be the IPv4 address of a node",
        ),
        (
            json!({"release": "zed", "exposure": {"mode": "Edge", "host": "192.0.2.1", "tls": {"secretName": "A b"}}}),
            "exposure.tls.secretName: it is not the name of a Secret",
        ),
        (
            json!({"release": "zed", "services": {"horizon": {"replicas": 2}}}),
            "services.horizon.replicas: this field is not built yet",
        ),
        (
            json!({"release": "zed", "services": {"horizon": {"config": []}}}),
            "services.horizon.config: invalid type: sequence, expected a map",
        ),
        (
            json!({"release": "zed", "services": {"searchlight": {}}}),
            "services.searchlight: the project was retired in 2021",
        ),
        (
            json!({"release": "zed", "regoin": "x"}),
            "regoin: unknown field `regoin`, expected one of `release`, `region`, `nodes`, `storage`, `network`, `compute`, `exposure`, `services`, `backup`, `rotation`, `paused`",
        ),
        (
            json!({"apiVersion": "v1", "kind": "OpenStack"}),
            "apiVersion: it has to be ferrostack.dev/v1alpha1",
        ),
        (
            json!({"apiVersion": "ferrostack.dev/v1alpha1", "kind": "OpenStack", "spec": {"release": "zed", "replicas": 1}}),
            "spec.replicas: this field is not built yet",
        ),
        (
            json!({"release": "zed", "network": {"mtu": "large"}}),
            "network.mtu: invalid type: string \"large\", expected a whole number",
        ),
        (
            json!({"release": "zed", "services": {"nova": {"config": {"DEFAULT": 1}}}}),
            "services.nova.config.DEFAULT: invalid type: integer `1`, expected a map",
        ),
    ] {
        let error = Parameters::read(&document).unwrap_err();
        assert_eq!(error.to_string(), message, "{document}");
    }
}
