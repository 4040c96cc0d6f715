//! Every text of a schema that can name something in the cloud is in the table, or here with the reason why not.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Cell, owner};

/// Why fields are not in the table, and those fields, with all that is in them.
type Exception = (&'static str, &'static [&'static str]);

const OF_MACHINES: &[Exception] = &[
    (
        "of the cloud, not of a cluster",
        &[
            "spec.flavor",
            "spec.image",
            "spec.rootVolume.type",
            "spec.rootVolume.availabilityZone",
            "spec.additionalBlockDevices.storage.volume",
            "spec.ports.hostID",
        ],
    ),
    ("of the namespace of the object", &["spec.identityRef"]),
    (
        "a floating IP of the cloud is used only while it is free and of that pool, or of none: tests/provider/pools.rs",
        &["spec.floatingIPPoolRef"],
    ),
    (
        "attributes of the port that is created; those that the provider sets are refused",
        &["spec.ports.valueSpecs"],
    ),
    (
        "of the port or server that is created, after whose text its own mark is written",
        &[
            "spec.ports.description",
            "spec.ports.nameSuffix",
            "spec.ports.vnicType",
            "spec.serverMetadata",
        ],
    ),
    (
        "with ipAddress, which is in the table",
        &["spec.ports.allowedAddressPairs.macAddress"],
    ),
    (
        "written only",
        &[
            "status.addresses",
            "status.conditions",
            "status.failureDomain",
            "status.instanceState",
            "status.resolved.flavorID",
            "status.resolved.imageID",
            "status.resolved.ports.fixedIPs",
            "status.resolved.ports.hostID",
            "status.resolved.ports.macAddress",
            "status.resolved.ports.securityGroups",
            "status.resolved.ports.tags",
            "status.resolved.ports.valueSpecs",
            "status.resolved.ports.vnicType",
        ],
    ),
    (
        "compared with the pairs of its own port",
        &["status.resolved.ports.allowedAddressPairs.macAddress"],
    ),
];

const OF_CLUSTERS: &[Exception] = &[
    (
        "of the cloud, not of a cluster",
        &[
            "spec.apiServer.managedLoadBalancer.availabilityZone",
            "spec.apiServer.managedLoadBalancer.flavor",
            "spec.apiServer.managedLoadBalancer.provider",
            "spec.controlPlaneAvailabilityZones",
        ],
    ),
    ("of the namespace of the object", &["spec.identityRef"]),
    (
        "ranges of a subnet, listener or rule that is created",
        &[
            "spec.apiServer.managedLoadBalancer.allowedCIDRs",
            "spec.managedSecurityGroups.clusterNodesSecurityGroupRules.remoteIPPrefix",
            "spec.managedSecurityGroups.defaultRules.cidrs",
            "spec.managedSubnets.allocationPools",
            "spec.managedSubnets.dnsNameservers",
        ],
    ),
    (
        "pools have no mark, and a range out of one does not change it",
        &["spec.managedSubnets.subnetPool"],
    ),
    (
        "of a rule that is created",
        &[
            "spec.managedSecurityGroups.clusterNodesSecurityGroupRules.description",
            "spec.managedSecurityGroups.clusterNodesSecurityGroupRules.protocol",
        ],
    ),
    (
        "as clusterNodesSecurityGroupRules, which are in the table",
        &[
            "spec.managedSecurityGroups.controlPlaneNodesSecurityGroupRules",
            "spec.managedSecurityGroups.workerNodesSecurityGroupRules",
        ],
    ),
    (
        "of a bastion as of a machine, by the same code: in the table of machines, or excepted there",
        &[
            "spec.bastion.availabilityZone",
            "spec.bastion.spec.additionalBlockDevices",
            "spec.bastion.spec.floatingIPPoolRef",
            "spec.bastion.spec.ports",
            "spec.bastion.spec.rootVolume",
            "spec.bastion.spec.schedulerHintAdditionalProperties",
            "spec.bastion.spec.serverMetadata",
        ],
    ),
    (
        "refused: the controller's, the cluster's, or for machines",
        &[
            "spec.bastion.spec.identityRef",
            "spec.bastion.spec.providerID",
        ],
    ),
    (
        "never read: what is there of a bastion has its mark",
        &[
            "status.bastion.ip",
            "status.bastion.resolved",
            "status.bastion.state",
        ],
    ),
    (
        "written only",
        &[
            "status.apiServerLoadBalancers.allowedCIDRs",
            "status.apiServerLoadBalancers.loadBalancerNetwork",
            "status.apiServerLoadBalancers.operatingStatus",
            "status.apiServerLoadBalancers.tags",
            "status.apiServerManagedLoadBalancer.allowedCIDRs",
            "status.apiServerManagedLoadBalancer.availabilityZone",
            "status.apiServerManagedLoadBalancer.loadBalancerNetwork",
            "status.apiServerManagedLoadBalancer.operatingStatus",
            "status.apiServerManagedLoadBalancer.tags",
            "status.conditions",
            "status.externalNetwork",
            "status.failureDomains",
            "status.network.subnets.tags",
            "status.network.tags",
            "status.router.ips",
            "status.router.tags",
        ],
    ),
];

#[tokio::test(start_paused = true)]
async fn every_field_that_can_name_something_is_in_the_table_or_has_a_reason_why_not() {
    let owner = owner().await;
    let kinds = [
        ("OpenStackMachine", owner.of_machines(), OF_MACHINES),
        ("OpenStackCluster", owner.of_clusters(), OF_CLUSTERS),
    ];
    for (kind, cells, exceptions) in kinds {
        let names = texts(kind);
        assert!(names.contains("spec.tags"), "{kind}: {names:?}");
        let tried = tried(&cells);
        let left = names.into_iter().filter(|name| {
            let mut tried = tried.iter();
            !tried.any(|place| is_in(place, name))
        });
        let mut left: BTreeSet<_> = left.collect();
        for (reason, fields) in exceptions {
            for field in *fields {
                let before = left.len();
                left.retain(|name| !is_in(name, field));
                assert_ne!(
                    before,
                    left.len(),
                    "{kind}: {field} ({reason}) is in the table, or no field"
                );
            }
        }
        assert!(
            left.is_empty(),
            "{kind}: add a cell to the table, or a reason why none is needed, for {left:#?}"
        );
    }
}

/// Whether `place` is `field` or in it.
fn is_in(place: &str, field: &str) -> bool {
    let rest = place.strip_prefix(field);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The fields of the stored version that hold free text. A reference, by id or filter, is one field.
fn texts(kind: &str) -> BTreeSet<String> {
    let all = api::infra::crd::crds();
    let crd = all.iter().find(|crd| crd.spec.names.kind == kind).unwrap();
    let version = crd.spec.versions.iter().find(|version| version.storage);
    let schema = serde_json::to_value(version.unwrap().schema.as_ref().unwrap()).unwrap();
    let properties = &schema["openAPIV3Schema"]["properties"];
    let mut found = BTreeSet::new();
    for part in ["spec", "status"] {
        walk(&properties[part], part, &mut found);
    }
    found
}

fn walk(schema: &Value, place: &str, found: &mut BTreeSet<String>) {
    if schema["items"].is_object() {
        return walk(&schema["items"], place, found);
    }
    let is_reference = |fields: &serde_json::Map<String, Value>| {
        fields.contains_key("id") && fields.contains_key("filter")
    };
    match schema["properties"].as_object() {
        Some(fields) if !is_reference(fields) => {
            for (name, schema) in fields {
                walk(schema, &format!("{place}.{name}"), found);
            }
        }
        Some(_) => drop(found.insert(place.to_owned())),
        None => {
            let can_name = schema["type"] != "integer" && schema["type"] != "boolean";
            if can_name && schema["enum"].is_null() {
                found.insert(place.to_owned());
            }
        }
    }
}

/// The fields that the cells of a table write.
fn tried(cells: &[Cell]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for cell in cells {
        written(&cell.object, "", &mut found);
    }
    found
}

fn written(value: &Value, place: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let dot = if place.is_empty() { "" } else { "." };
                written(value, &format!("{place}{dot}{name}"), found);
            }
        }
        Value::Array(items) => {
            for item in items {
                written(item, place, found);
            }
        }
        _ => drop(found.insert(place.to_owned())),
    }
}
