//! Resources that objects name and the cloud has not. Pure.

use std::collections::BTreeSet;

use provider::identity::Identity;
use serde_json::Value;

use super::judge::{Class, Finding};
use super::owners::Owners;
use super::thing::{Claim, Form, Thing};

/// Where an object of the provider names a resource.
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

/// The ids that an object names.
pub(super) fn ids(object: &Value) -> Vec<(Form, String)> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let fields = FIELDS.iter().filter_map(|(pointer, form)| {
        let id = text(pointer).filter(|id| !id.is_empty())?;
        Some((*form, id.to_owned()))
    });
    let mut ids: Vec<_> = fields.collect();
    let server = text("/spec/providerID").and_then(|it| it.strip_prefix("openstack://"));
    let server = server.and_then(|it| it.rsplit('/').next());
    ids.extend(server.map(|id| (Form::Server, id.to_owned())));
    ids
}

/// Findings for resources that objects name and the project has not. Only of clusters of which it has something: the others are in another cloud.
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
