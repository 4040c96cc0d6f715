use std::fs;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::conversion::stash;
use crate::convert::convert;
use crate::infra::v1beta2 as two;

const ONE: &str = "infrastructure.cluster.x-k8s.io/v1beta1";
const TWO: &str = "infrastructure.cluster.x-k8s.io/v1beta2";

fn word() -> impl Strategy<Value = String> {
    "[a-z]{1,6}"
}

fn maybe<T: std::fmt::Debug>(inner: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    proptest::option::of(inner)
}

fn some<T: std::fmt::Debug>(inner: impl Strategy<Value = T>) -> impl Strategy<Value = Vec<T>> {
    proptest::collection::vec(inner, 0..3)
}

fn network() -> impl Strategy<Value = two::NetworkParam> {
    prop_oneof![
        word().prop_map(two::Param::Id),
        (maybe(word()), some(word())).prop_map(|(name, tags)| two::Param::Filter(
            two::NetworkFilter {
                name,
                tags,
                ..Default::default()
            }
        )),
    ]
}

fn subnet() -> impl Strategy<Value = two::SubnetParam> {
    prop_oneof![
        word().prop_map(two::Param::Id),
        (maybe(word()), maybe(4..7)).prop_map(|(cidr, ip_version)| two::Param::Filter(
            two::SubnetFilter {
                cidr,
                ip_version,
                ..Default::default()
            }
        )),
    ]
}

fn identity() -> impl Strategy<Value = two::IdentityRef> {
    (word(), word(), maybe(word()), any::<bool>()).prop_map(|(name, cloud_name, region, secret)| {
        let type_ = if secret {
            two::IdentityType::Secret
        } else {
            two::IdentityType::ClusterIdentity
        };
        two::IdentityRef {
            type_,
            name,
            cloud_name,
            region,
        }
    })
}

fn fields() -> impl Strategy<Value = two::ResolvedPortFields> {
    (
        maybe(any::<bool>()),
        maybe(word()),
        maybe(word()),
        maybe(any::<bool>()),
        some(word()),
    )
        .prop_map(|(security, vnic_type, mac_address, trusted_vf, pairs)| {
            two::ResolvedPortFields {
                vnic_type,
                mac_address,
                enable_port_security: security,
                profile: trusted_vf.map(|t| two::BindingProfile {
                    trusted_vf: Some(t),
                    ovs_hw_offload: None,
                }),
                allowed_address_pairs: pairs
                    .into_iter()
                    .map(|ip_address| two::AddressPair {
                        ip_address,
                        mac_address: None,
                    })
                    .collect(),
                ..Default::default()
            }
        })
}

fn port() -> impl Strategy<Value = two::PortOpts> {
    (
        maybe(network()),
        maybe(subnet()),
        some(network()),
        some(word()),
        maybe(any::<bool>()),
        fields(),
    )
        .prop_map(
            |(network, subnet, security_groups, tags, trunk, fields)| two::PortOpts {
                network,
                fixed_ips: vec![two::FixedIp {
                    subnet,
                    ip_address: None,
                }],
                security_groups,
                tags,
                trunk,
                fields,
                ..Default::default()
            },
        )
}

fn machine() -> impl Strategy<Value = two::OpenStackMachineSpec> {
    let flavor = prop_oneof![
        word().prop_map(two::FlavorParam::Id),
        word().prop_map(|n| two::FlavorParam::Filter(two::FlavorFilter { name: Some(n) })),
    ];
    let image = prop_oneof![
        word().prop_map(two::ImageParam::Id),
        word().prop_map(|name| two::ImageParam::ImageRef(two::ImageRef { name })),
    ];
    let rest = (
        maybe(identity()),
        maybe(any::<bool>()),
        maybe(1..9),
        some(word()),
    );
    (
        flavor,
        image,
        some(port()),
        maybe(word()),
        maybe(word()),
        rest,
    )
        .prop_map(
            |(
                flavor,
                image,
                ports,
                provider_id,
                ssh_key_name,
                (identity_ref, config_drive, gib, tags),
            )| {
                two::OpenStackMachineSpec {
                    provider_id,
                    flavor,
                    image,
                    ssh_key_name,
                    ports,
                    security_groups: Vec::new(),
                    trunk: None,
                    tags,
                    server_metadata: vec![two::ServerMetadata {
                        key: "k".into(),
                        value: "v".into(),
                    }],
                    config_drive,
                    root_volume: gib.map(|size_gib| two::RootVolume {
                        size_gib,
                        type_: None,
                        availability_zone: Some(two::VolumeAvailabilityZone::default()),
                    }),
                    additional_block_devices: Vec::new(),
                    server_group: None,
                    identity_ref,
                    floating_ip_pool_ref: None,
                    scheduler_hint_additional_properties: Vec::new(),
                }
            },
        )
}

fn api_server() -> impl Strategy<Value = two::ApiServer> {
    let balancer = (any::<bool>(), some(1..9), some(word()), maybe(subnet())).prop_map(
        |(enabled, additional_ports, allowed_cidrs, subnet)| two::LoadBalancer {
            enabled,
            additional_ports,
            allowed_cidrs,
            allow_cross_az_members: subnet.is_some().then_some(true),
            availability_zone_subnets: subnet
                .iter()
                .map(|subnet| two::AvailabilityZoneSubnet {
                    availability_zone: "az1".to_owned(),
                    subnet: subnet.clone(),
                })
                .collect(),
            subnets: subnet.into_iter().collect(),
            ..Default::default()
        },
    );
    (
        maybe(1..9),
        maybe(word()),
        maybe(word()),
        maybe(any::<bool>()),
        maybe(balancer),
    )
        .prop_map(
            |(port, fixed_ip, floating_ip, enable_floating_ip, managed_load_balancer)| {
                two::ApiServer {
                    port,
                    fixed_ip,
                    floating_ip,
                    enable_floating_ip,
                    managed_load_balancer,
                }
            },
        )
}

fn cluster() -> impl Strategy<Value = two::OpenStackClusterSpec> {
    let managed = (
        maybe(word()),
        maybe(1000..1500),
        maybe(any::<bool>()),
        maybe(subnet()),
    );
    let groups = (some(word()), some(word()), any::<bool>()).prop_map(|(all, workers, open)| {
        let rule = |name: String| two::SecurityGroupRule {
            name,
            description: None,
            direction: two::Direction::Ingress,
            ether_type: Some(two::EtherType::IPv4),
            port_range_min: Some(1),
            port_range_max: None,
            protocol: None,
            remote_group_id: None,
            remote_ip_prefix: None,
            remote_managed_groups: vec![two::ManagedGroup::ControlPlane],
        };
        two::ManagedSecurityGroups {
            cluster_nodes_security_group_rules: all.into_iter().map(rule).collect(),
            control_plane_nodes_security_group_rules: Vec::new(),
            worker_nodes_security_group_rules: workers.into_iter().map(rule).collect(),
            allow_all_in_cluster_traffic: open,
            default_rules: Vec::new(),
        }
    });
    let bastion = (any::<bool>(), maybe(machine()), maybe(word())).prop_map(
        |(enabled, spec, floating_ip)| two::Bastion {
            enabled,
            spec,
            availability_zone: None,
            floating_ip,
        },
    );
    let rest = (
        maybe(network()),
        maybe(any::<bool>()),
        maybe(bastion),
        maybe(groups),
        identity(),
    );
    (
        managed,
        maybe(api_server()),
        rest,
        maybe(word()),
        some(word()),
    )
        .prop_map(
            |((cidr, mtu, security, router), api_server, rest, host, tags)| {
                let (network, external, bastion, managed_security_groups, identity_ref) = rest;
                let managed_network = two::ManagedNetwork {
                    mtu,
                    enable_port_security: security,
                };
                two::OpenStackClusterSpec {
                    managed_subnets: cidr
                        .map(|cidr| two::SubnetSpec {
                            cidr,
                            ..Default::default()
                        })
                        .into_iter()
                        .collect(),
                    managed_network: (managed_network != Default::default())
                        .then_some(managed_network),
                    managed_router: router.map(|subnet| two::ManagedRouter {
                        external_ips: vec![two::ExternalRouterIp {
                            fixed_ip: None,
                            subnet,
                        }],
                    }),
                    network,
                    subnets: Vec::new(),
                    primary_subnet: None,
                    failure_domain_subnets: Vec::new(),
                    router: None,
                    external_network: None,
                    enable_external_network: external,
                    api_server,
                    managed_security_groups,
                    tags,
                    control_plane_endpoint: host.map(|host| two::ControlPlaneEndpoint {
                        host: Some(host),
                        port: Some(6443),
                    }),
                    control_plane_availability_zones: Vec::new(),
                    control_plane_omit_availability_zone: None,
                    bastion,
                    identity_ref,
                }
            },
        )
}

fn object(version: &str, kind: &str, spec: Value) -> Value {
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": spec})
}

fn there_and_back(object: &Value, version: &str, other: &str) {
    let there = convert(object.clone(), other).unwrap();
    assert_eq!(there["apiVersion"], other);
    assert_eq!(&convert(there, version).unwrap(), object);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_cluster_survives_both_directions(spec in cluster()) {
        let spec = serde_json::to_value(spec).unwrap();
        there_and_back(&object(TWO, "OpenStackCluster", spec.clone()), TWO, ONE);
        let old = convert(object(TWO, "OpenStackCluster", spec), ONE).unwrap();
        let old = object(ONE, "OpenStackCluster", old["spec"].clone());
        there_and_back(&old, ONE, TWO);
    }

    #[test]
    fn a_machine_survives_both_directions(spec in machine(), name in maybe(word())) {
        let new = serde_json::to_value(&spec).unwrap();
        there_and_back(&object(TWO, "OpenStackMachine", new.clone()), TWO, ONE);
        let mut old = convert(object(TWO, "OpenStackMachine", new.clone()), ONE).unwrap()["spec"].clone();
        // Both the name and the id of a flavor: only the id has an equivalent.
        if let Some(name) = name.filter(|_| old.get("flavor").is_none()) {
            old["flavor"] = json!(name);
        }
        there_and_back(&object(ONE, "OpenStackMachine", old.clone()), ONE, TWO);
        there_and_back(&object(ONE, "OpenStackMachineTemplate", json!({"template": {"spec": old}})), ONE, TWO);
    }

    #[test]
    fn a_cluster_template_survives_both_directions(spec in cluster(), label in maybe(word())) {
        let spec = serde_json::to_value(spec).unwrap();
        let mut template = json!({"spec": spec});
        if let Some(label) = label {
            template["metadata"] = json!({"labels": {"a": label}});
        }
        there_and_back(&object(TWO, "OpenStackClusterTemplate", json!({"template": template})), TWO, ONE);
    }

    #[test]
    fn no_stash_makes_conversion_panic(stash in ".{0,60}") {
        let mut object = object(TWO, "OpenStackMachine", json!({"flavor": {"id": "f"}, "image": {"id": "i"}}));
        object["metadata"]["annotations"] = json!({stash::ANNOTATION: stash});
        let _ = convert(object, ONE);
    }
}

fn flavored() -> Value {
    object(
        ONE,
        "OpenStackMachine",
        json!({"flavor": "m1", "flavorID": "7", "image": {"id": "i"}}),
    )
}

#[test]
fn the_controllers_provider_id_does_not_spoil_the_stash() {
    let mut new = convert(flavored(), TWO).unwrap();
    assert_eq!(new["spec"]["flavor"], json!({"id": "7"}));
    new["spec"]["providerID"] = json!("openstack:///1");
    let old = convert(new, ONE).unwrap();
    assert_eq!(old["spec"]["flavor"], "m1");
    assert_eq!(old["spec"]["providerID"], "openstack:///1");
    assert_eq!(old["metadata"].get("annotations"), None);
}

#[test]
fn an_edit_in_the_other_version_beats_the_stash() {
    let mut new = convert(flavored(), TWO).unwrap();
    new["spec"]["flavor"] = json!({"id": "8"});
    let old = convert(new, ONE).unwrap();
    assert_eq!(old["spec"], json!({"flavorID": "8", "image": {"id": "i"}}));
}

#[test]
fn status_is_converted_afresh_and_never_stashed() {
    let condition = json!({"type": "APIServerIngressReadyCondition", "status": "True",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let mut old = flavored();
    old["status"] = json!({"ready": true, "conditions": [condition], "failureReason": "x"});
    let new = convert(old, TWO).unwrap();
    assert_eq!(new["status"]["initialization"]["provisioned"], true);
    assert_eq!(
        new["status"]["conditions"][0]["type"],
        "APIServerIngressReady"
    );
    assert_eq!(new["status"]["conditions"][0]["reason"], "NoReasonReported");
    let text = new["metadata"]["annotations"].to_string();
    assert!(!text.contains("failureReason"), "{text}");
    let old = convert(new, ONE).unwrap();
    assert_eq!(old["status"]["ready"], true);
    assert_eq!(old["status"].get("failureReason"), None);
}

#[test]
fn cluster_fields_move_as_the_reference_says() {
    let old = object(
        ONE,
        "OpenStackCluster",
        json!({
            "identityRef": {"name": "s", "cloudName": "c"},
            "networkMTU": 1400, "disablePortSecurity": true, "disableExternalNetwork": true,
            "disableAPIServerFloatingIP": true, "apiServerPort": 8443, "apiServerFixedIP": "10.0.0.9",
            "apiServerLoadBalancer": {"enabled": true, "additionalPorts": [8132]},
            "externalRouterIPs": [{"subnet": {"id": "s"}}],
            "managedSecurityGroups": {"allNodesSecurityGroupRules": [{"name": "n", "direction": "ingress"}]},
        }),
    );
    let new = convert(old, TWO).unwrap();
    assert_eq!(
        new["spec"],
        json!({
            "identityRef": {"name": "s", "cloudName": "c"},
            "managedNetwork": {"mtu": 1400, "enablePortSecurity": false},
            "enableExternalNetwork": false,
            "apiServer": {"enableFloatingIP": false, "port": 8443, "fixedIP": "10.0.0.9",
                "managedLoadBalancer": {"enabled": true, "additionalPorts": [8132]}},
            "managedRouter": {"externalIPs": [{"subnet": {"id": "s"}}]},
            "managedSecurityGroups": {
                "clusterNodesSecurityGroupRules": [{"name": "n", "direction": "ingress"}]},
        })
    );
}

#[test]
fn a_malformed_object_is_named_with_its_version() {
    let bad = object(ONE, "OpenStackMachine", json!(5));
    let error = convert(bad, TWO).unwrap_err().to_string();
    assert!(
        error.starts_with("OpenStackMachine in infrastructure.cluster.x-k8s.io/v1beta1: spec is "),
        "{error}"
    );
}

/// The OpenStack documents of the released templates; empty if they are not available.
pub(in crate::infra) fn released_documents() -> Vec<Value> {
    let mut found = Vec::new();
    for release in ["capo-v0.12.0", "capo-v0.14.0", "capo-v0.15.0-beta.0"] {
        for file in ["cluster-template.yaml", "cluster-template-without-lb.yaml"] {
            let path = format!(
                "{}/../../../shared/upstream/templates/{release}/{file}",
                env!("CARGO_MANIFEST_DIR")
            );
            let Ok(text) = fs::read_to_string(path) else {
                continue;
            };
            let text = text
                .replace("${CLUSTER_NAME}", "demo")
                .replace("${OPENSTACK_DNS_NAMESERVERS}", "8.8.8.8");
            let text = text.replace(
                "${OPENSTACK_EXTERNAL_NETWORK_ID}",
                "6c90b532-7ba0-418a-a276-5ae55060b5b0",
            );
            for document in text.split("\n---\n") {
                let value: Value = serde_saphyr::from_str(document).unwrap();
                if value["apiVersion"]
                    .as_str()
                    .unwrap_or_default()
                    .starts_with("infrastructure.")
                {
                    found.push(value);
                }
            }
        }
    }
    if found.is_empty() {
        skipped::because("no released templates beside the workspace");
    }
    found
}

#[test]
fn released_templates_become_v1beta2() {
    for document in released_documents() {
        let new = convert(document.clone(), TWO).unwrap();
        let kind = document["kind"].as_str().unwrap();
        let spec = new["spec"].clone();
        match kind {
            "OpenStackCluster" => {
                let spec: two::OpenStackClusterSpec = serde_json::from_value(spec).unwrap();
                let rules = spec
                    .managed_security_groups
                    .unwrap()
                    .cluster_nodes_security_group_rules;
                assert_eq!(rules.len(), 2, "{document}");
            }
            _ => {
                let spec: two::OpenStackMachineTemplateSpec = serde_json::from_value(spec).unwrap();
                assert!(matches!(
                    spec.template.spec.flavor,
                    two::FlavorParam::Filter(_)
                ));
            }
        }
        if document["apiVersion"] == ONE {
            assert_eq!(
                new["metadata"].get("annotations"),
                None,
                "nothing was lost: {new}"
            );
        }
    }
}

#[test]
fn the_generation_of_a_condition_survives_a_client_of_v1beta1() {
    let condition = |name: &str, generation: i64| {
        json!({"type": name, "status": "True", "reason": "Ok", "message": "", "observedGeneration": generation,
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let mut new = object(TWO, "OpenStackMachine", json!({}));
    new["status"] =
        json!({"conditions": [condition("Ready", 3), condition("APIServerIngressReady", 4)]});
    let mut old = convert(new.clone(), ONE).unwrap();
    let conditions = old["status"]["conditions"].to_string();
    assert!(!conditions.contains("observedGeneration"), "{conditions}");
    let mut back = convert(old.clone(), TWO).unwrap();
    assert_eq!(back["status"]["conditions"], new["status"]["conditions"]);
    // The client changes one condition, whose generation is then unknown, and adds one in front.
    old["status"]["conditions"][0]["status"] = json!("False");
    let other =
        json!({"type": "Other", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    old["status"]["conditions"]
        .as_array_mut()
        .unwrap()
        .insert(0, other);
    back = convert(old, TWO).unwrap();
    let generations: Vec<_> = back["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|condition| condition.get("observedGeneration").cloned())
        .collect();
    assert_eq!(generations, [None, None, Some(json!(4))]);
}

#[test]
fn an_empty_load_balancer_survives_server_side_apply_from_v1beta1_to_v1beta2() {
    // The object that kube-apiserver converts when a manager that applied `apiServerLoadBalancer: {}` in v1beta1
    // applies `managedLoadBalancer: {}` in v1beta2: no manager owns the default, so it is removed, which leaves a null.
    let pruned = object(
        TWO,
        "OpenStackCluster",
        json!({"apiServer": {"managedLoadBalancer": null}}),
    );
    let old = convert(pruned, ONE).unwrap();
    assert_eq!(old["spec"], json!({"apiServerLoadBalancer": null}));
}
