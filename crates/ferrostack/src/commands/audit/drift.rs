//! Missing resources whose ids are in objects. Pure.

use std::collections::BTreeSet;

use provider::identity::Identity;
use serde_json::Value;

use super::judge::{Class, Finding};
use super::owners::Owners;
use super::thing::{Claim, Form, Thing};

/// Fields of the provider's objects with ids of resources.
const FIELDS: [(&str, Form); 6] = [
    ("/status/network/id", Form::Network),
    ("/status/router/id", Form::Router),
    ("/status/apiServerLoadBalancer/id", Form::LoadBalancer),
    (
        "/status/apiServerManagedLoadBalancer/id",
        Form::LoadBalancer,
    ),
    ("/status/controlPlaneSecurityGroup/id", Form::SecurityGroup),
    ("/status/workerSecurityGroup/id", Form::SecurityGroup),
];

/// Ids in an object, each with the [`Form`] of the resource.
pub(super) fn ids(object: &Value) -> Vec<(Form, String)> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let fields = FIELDS.iter().filter_map(|(pointer, form)| {
        let id = text(pointer).filter(|id| !id.is_empty())?;
        Some((*form, id.to_owned()))
    });
    let mut ids: Vec<_> = fields.collect();
    let of_zones = object.pointer("/status/apiServerLoadBalancers");
    let of_zones = of_zones.and_then(Value::as_array).into_iter().flatten();
    let of_zones = of_zones.filter_map(|balancer| balancer["id"].as_str());
    ids.extend(of_zones.map(|id| (Form::LoadBalancer, id.to_owned())));
    let server = text("/spec/providerID").and_then(|it| it.strip_prefix("openstack://"));
    let server = server.and_then(|it| it.rsplit('/').next());
    ids.extend(server.map(|id| (Form::Server, id.to_owned())));
    ids
}

/// [`Finding`]s for resources in objects but not in the project. Only for clusters with resources in the project:
/// others are in another cloud.
pub(super) fn findings(things: &[Thing], seen: &BTreeSet<String>, owners: &Owners) -> Vec<Finding> {
    let here: BTreeSet<Identity> = things
        .iter()
        .filter_map(|thing| match &thing.claim {
            Claim::Provider(mark) => Some(mark.cluster),
            _ => None,
        })
        .collect();
    let mut found = Vec::new();
    for named in &owners.named {
        if named.cluster.is_none_or(|it| !here.contains(&it)) {
            continue;
        }
        let missing = named.ids.iter().filter(|(_, id)| !seen.contains(id));
        found.extend(missing.map(|(form, id)| Finding {
            class: Class::Drift,
            form: *form,
            id: id.clone(),
            name: String::new(),
            reason: format!("{} names it, and the project has it not", named.object),
            kept: None,
        }));
    }
    found
}
