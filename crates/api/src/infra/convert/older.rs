//! Versions before v1beta1, as tables of [`Move`]s from each to its successor.
//!
//! `cargo xtask codegen` generates docs/guides/versions.md from the tables.

mod filters;
mod machine;
mod network;

use serde_json::{Value, json};

use self::filters::{NETWORK_4, ROUTER_IP_6, SUBNET_4};
use crate::conversion::moves::Move::{self, Formed, Inside, Joint, New, Old, Renamed, Set, Text};
use crate::conversion::moves::rows;
use crate::conversion::{Older, Row};

/// Versions, oldest first.
pub(crate) const VERSIONS: [&str; 4] = crate::crds::OLDER_VERSIONS;

/// True for an `apiVersion` of this group among the [`VERSIONS`].
pub(super) fn is_older(api_version: &Value) -> bool {
    let version = api_version.as_str().and_then(|text| text.split_once('/'));
    version.is_some_and(|(_, version)| VERSIONS.contains(&version))
}

const fn step(
    version: &'static str,
    spec: &'static [Move],
    status: Option<&'static [Move]>,
) -> Older {
    Older {
        version,
        spec,
        status,
    }
}

/// Steps of OpenStackCluster.
pub(super) static CLUSTER: [Older; 4] = [
    step(VERSIONS[0], CLUSTER_4, Some(CLUSTER_STATUS_4)),
    step(VERSIONS[1], CLUSTER_5, Some(CLUSTER_STATUS_5)),
    step(VERSIONS[2], CLUSTER_6, Some(CLUSTER_STATUS_6)),
    step(VERSIONS[3], CLUSTER_7, Some(CLUSTER_STATUS_7)),
];

/// Steps of OpenStackClusterTemplate.
pub(super) static CLUSTER_TEMPLATE: [Older; 4] = [
    step(VERSIONS[0], &[Inside("template.spec", CLUSTER_4)], None),
    step(VERSIONS[1], &[Inside("template.spec", CLUSTER_5)], None),
    step(VERSIONS[2], &[Inside("template.spec", CLUSTER_6)], None),
    step(VERSIONS[3], &[Inside("template.spec", CLUSTER_7)], None),
];

/// Steps of OpenStackMachine.
pub(super) static MACHINE: [Older; 4] = [
    step(VERSIONS[0], machine::SPEC_4, Some(MACHINE_STATUS_4)),
    step(VERSIONS[1], machine::SPEC_5, Some(&[])),
    step(VERSIONS[2], machine::SPEC_6, Some(&[])),
    step(VERSIONS[3], machine::SPEC_7, Some(MACHINE_STATUS_7)),
];

/// Steps of OpenStackMachineTemplate.
pub(super) static MACHINE_TEMPLATE: [Older; 4] = [
    step(
        VERSIONS[0],
        &[Inside("template.spec", machine::SPEC_4)],
        None,
    ),
    step(
        VERSIONS[1],
        &[Inside("template.spec", machine::SPEC_5)],
        None,
    ),
    step(
        VERSIONS[2],
        &[Inside("template.spec", machine::SPEC_6)],
        None,
    ),
    step(
        VERSIONS[3],
        &[Inside("template.spec", machine::SPEC_7)],
        None,
    ),
];

/// [`Row`]s for a step of OpenStackCluster and OpenStackMachine: spec, then status.
pub(crate) fn documented(version: usize) -> Vec<(&'static str, Vec<Row>)> {
    let of = |kind: &'static str, steps: &'static [Older]| {
        let step = steps.get(version)?;
        let mut all = rows(step.spec, "spec");
        // The server of a bastion has the fields of a machine.
        let is_of_machine = |path: &str| {
            let path = path.strip_prefix("spec.bastion.");
            let inner = path.and_then(|path| {
                path.strip_prefix("instance.")
                    .or(path.strip_prefix("spec."))
            });
            inner.is_some_and(|name| name != "floatingIP")
        };
        all.retain(|row| !is_of_machine(&row.old) && !is_of_machine(&row.new));
        all.extend(rows(step.status.unwrap_or_default(), "status"));
        Some((kind, all))
    };
    let kinds = [
        of("OpenStackCluster", &CLUSTER),
        of("OpenStackMachine", &MACHINE),
    ];
    kinds.into_iter().flatten().collect()
}

const CLUSTER_4: &[Move] = &[
    New("apiServerLoadBalancer"),
    Renamed(
        "managedAPIServerLoadBalancer",
        "apiServerLoadBalancer.enabled",
    ),
    Renamed(
        "apiServerLoadBalancerAdditionalPorts",
        "apiServerLoadBalancer.additionalPorts",
    ),
    Inside("network", NETWORK_4),
    Inside("subnet", SUBNET_4),
    Inside("externalRouterIPs[].subnet.filter", SUBNET_4),
    Inside("bastion.instance", machine::SPEC_4),
];

const CLUSTER_5: &[Move] = &[
    New("controlPlaneOmitAvailabilityZone"),
    New("apiServerLoadBalancer.provider"),
    Set("controlPlaneAvailabilityZones"),
    Set("dnsNameservers"),
    Set("tags"),
    Inside("bastion.instance", machine::SPEC_5),
];

const CLUSTER_6: &[Move] = &[
    New("networkMtu"),
    New("router"),
    Inside("externalRouterIPs[]", ROUTER_IP_6),
    Inside("bastion.instance", machine::SPEC_6),
];

const CLUSTER_7: &[Move] = &[
    New("disableExternalNetwork"),
    New("primarySubnet"),
    New("failureDomainSubnets"),
    New("apiServerLoadBalancer.availabilityZoneSubnets"),
    New("apiServerLoadBalancer.allowCrossAZLoadBalancerMembers"),
    Joint {
        old: "cloudName, identityRef",
        new: "identityRef",
        how: "identityRef.kind is identityRef.type, if it is one",
        up: network::identity_up,
        down: network::identity_down,
    },
    New("externalNetwork"),
    Formed {
        old: "externalNetworkId",
        new: "externalNetwork.id",
        how: "absent if empty",
        up: filters::given,
        down: filters::given,
    },
    Formed {
        old: "network",
        new: "network",
        how: filters::PARAM,
        up: filters::network_up,
        down: filters::network_down,
    },
    Formed {
        old: "router",
        new: "router",
        how: filters::PARAM,
        up: filters::network_up,
        down: filters::network_down,
    },
    Formed {
        old: "subnet",
        new: "subnets",
        how: "a list of one; of several, v1alpha7 has the first",
        up: network::subnets_up,
        down: network::subnets_down,
    },
    Inside(
        "externalRouterIPs[]",
        &[Formed {
            old: "subnet",
            new: "subnet",
            how: filters::PARAM,
            up: filters::subnet_up,
            down: filters::subnet_down,
        }],
    ),
    Joint {
        old: "nodeCidr, dnsNameservers",
        new: "managedSubnets[]",
        how: "a list of one; dnsNameservers without nodeCidr have no effect",
        up: network::managed_subnets_up,
        down: network::managed_subnets_down,
    },
    Joint {
        old: "managedSecurityGroups, allowAllInClusterTraffic",
        new: "managedSecurityGroups",
        how: "with rules for Calico in allNodesSecurityGroupRules, which were implied, unless all traffic is allowed",
        up: network::security_groups_up,
        down: network::security_groups_down,
    },
    Renamed("networkMtu", "networkMTU"),
    Joint {
        old: "apiServerLoadBalancer",
        new: "apiServerLoadBalancer",
        how: "absent if nothing is set; enabled is false if it is absent",
        up: network::balancer_up,
        down: network::balancer_down,
    },
    Renamed(
        "apiServerLoadBalancer.allowedCidrs",
        "apiServerLoadBalancer.allowedCIDRs",
    ),
    Text("apiServerFixedIP"),
    Text("apiServerFloatingIP"),
    Inside(
        "bastion",
        &[
            Joint {
                old: "enabled",
                new: "enabled",
                how: "false if it is absent",
                up: |bastion| {
                    bastion.entry("enabled").or_insert(json!(false));
                },
                down: |_| {},
            },
            Text("availabilityZone"),
            Text("instance.floatingIP"),
            Renamed("instance.floatingIP", "floatingIP"),
            Renamed("instance", "spec"),
            Inside("spec", machine::SPEC_7),
        ],
    ),
];

const CLUSTER_STATUS_4: &[Move] = &[
    New("network.router.ips"),
    New("network.apiServerLoadBalancer.allowedCIDRs"),
];

const CLUSTER_STATUS_5: &[Move] = &[New("network.apiServerLoadBalancer.tags")];

const CLUSTER_STATUS_6: &[Move] = &[
    Renamed("network.router", "router"),
    Renamed("network.apiServerLoadBalancer", "apiServerLoadBalancer"),
    Old("network.port"),
    Formed {
        old: "network.subnet",
        new: "network.subnets",
        how: "a list of one; of several, v1alpha6 has the first",
        up: |subnet| Some(json!([subnet])),
        down: network::first,
    },
    Old("externalNetwork.router"),
    Old("externalNetwork.apiServerLoadBalancer"),
    Old("externalNetwork.port"),
    Old("externalNetwork.subnet"),
    Inside(
        "bastion",
        &[
            Old("configDrive"),
            Old("failureDomain"),
            Old("flavor"),
            Old("image"),
            Old("imageUUID"),
            Old("metadata"),
            Old("networks"),
            Old("rootVolume"),
            Old("securigyGroups"),
            Old("serverGroupID"),
            Old("subnet"),
            Old("tags"),
            Old("trunk"),
            Old("userData"),
        ],
    ),
];

const CLUSTER_STATUS_7: &[Move] = &[
    New("conditions"),
    New("initialization"),
    New("apiServerLoadBalancer.loadBalancerNetwork"),
    New("apiServerLoadBalancer.availabilityZone"),
    New("apiServerLoadBalancer.operatingStatus"),
    New("apiServerLoadBalancers"),
    New("bastion.resolved"),
    New("bastion.resources"),
    Old("bastionSecurityGroup.rules"),
    Old("controlPlaneSecurityGroup.rules"),
    Old("workerSecurityGroup.rules"),
];

const MACHINE_STATUS_4: &[Move] = &[
    Renamed("errorReason", "failureReason"),
    Renamed("errorMessage", "failureMessage"),
];

const MACHINE_STATUS_7: &[Move] = &[
    New("initialization"),
    New("instanceID"),
    New("failureDomain"),
    New("resolved"),
    New("resources"),
];

#[cfg(test)]
mod tests;
