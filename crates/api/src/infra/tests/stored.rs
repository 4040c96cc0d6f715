use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::convert::convert;
use crate::infra::{GROUP, v1beta1 as one, v1beta2 as two};

/// Decodes the object in both versions.
fn read<A: DeserializeOwned, B: DeserializeOwned>(
    kind: &str,
    spec: &Value,
    status: &Value,
) -> (A, B) {
    let object = json!({"apiVersion": format!("{GROUP}/v1beta2"), "kind": kind,
        "metadata": {"name": "x"}, "spec": spec, "status": status});
    let older = convert(object.clone(), &format!("{GROUP}/v1beta1")).unwrap();
    let older = serde_json::from_value(older).unwrap_or_else(|error| panic!("v1beta1: {error}"));
    let newer = serde_json::from_value(object).unwrap_or_else(|error| panic!("v1beta2: {error}"));
    (older, newer)
}

#[test]
fn objects_whose_empty_texts_and_zeros_the_go_provider_dropped_are_read() {
    let port = json!({"network": {}, "fixedIPs": [{"subnet": {}}], "valueSpecs": [{"name": "a", "key": "b"}, {}],
        "allowedAddressPairs": [{}], "securityGroups": [{"filter": {}}]});
    let spec = json!({
        "flavor": {}, "image": {"imageRef": {}}, "serverMetadata": [{"key": "role"}], "rootVolume": {},
        "additionalBlockDevices": [{"storage": {"type": "Volume"}}], "identityRef": {}, "ports": [port],
        "floatingIPPoolRef": {}, "schedulerHintAdditionalProperties": [{"value": {"type": "Bool", "bool": true}}],
    });
    let status = json!({
        "addresses": [{}], "resources": {"ports": [{}]},
        "resolved": {"ports": [{"fixedIPs": [{}], "valueSpecs": [{}]}]},
    });
    let (_, machine): (one::OpenStackMachine, two::OpenStackMachine) =
        read("OpenStackMachine", &spec, &status);
    assert_eq!(machine.spec.server_metadata[0].key, "role");
    assert_eq!(machine.spec.server_metadata[0].value, "");
    let written = serde_json::to_value(&machine.spec).unwrap();
    assert_eq!(
        written["serverMetadata"], spec["serverMetadata"],
        "written as it was"
    );
    let template = json!({"template": {"spec": spec}});
    let _: (one::OpenStackMachineTemplate, two::OpenStackMachineTemplate) =
        read("OpenStackMachineTemplate", &template, &json!({}));

    let rules = json!([{"direction": "ingress"}]);
    let spec = json!({
        "bastion": {"spec": spec, "floatingIP": ""}, "controlPlaneEndpoint": {},
        "managedSubnets": [{"allocationPools": [{}]}], "managedRouter": {"externalIPs": [{}]},
        "managedSecurityGroups": {"clusterNodesSecurityGroupRules": rules},
    });
    let network = json!({"subnets": [{}]});
    let status = json!({
        "network": network, "externalNetwork": {}, "router": {}, "failureDomains": [{"name": "a"}],
        "apiServerManagedLoadBalancer": {"loadBalancerNetwork": network}, "workerSecurityGroup": {},
        "bastion": {"resolved": {"ports": [{}]}},
    });
    let (_, cluster): (one::OpenStackCluster, two::OpenStackCluster) =
        read("OpenStackCluster", &spec, &status);
    assert_eq!(cluster.spec.identity_ref, two::IdentityRef::default());
    let template = json!({"template": {"spec": spec}});
    let _: (one::OpenStackClusterTemplate, two::OpenStackClusterTemplate) =
        read("OpenStackClusterTemplate", &template, &Value::Null);
}

#[test]
fn an_optional_value_that_is_empty_is_read_as_none() {
    let spec = json!({"identityRef": {"name": "s", "cloudName": "c", "region": ""},
        "apiServer": {"port": 0, "fixedIP": "", "floatingIP": "",
            "managedLoadBalancer": {"provider": "", "monitor": {"delay": 0}}}});
    let spec: two::OpenStackClusterSpec = serde_json::from_value(spec).unwrap();
    assert_eq!(spec.identity_ref.region, None);
    let server = spec.api_server.unwrap();
    let balancer = server.managed_load_balancer.clone().unwrap();
    assert_eq!(balancer.monitor, Some(two::LoadBalancerMonitor::default()));
    assert_eq!(balancer.provider, None);
    let nothing = two::ApiServer {
        managed_load_balancer: None,
        ..server
    };
    assert_eq!(nothing, two::ApiServer::default());
}
