//! Whether the scenario has every built-in kind.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::scenario::Step;
use crate::side::Side;

/// The collections of built-in kinds, such as `apps/v1 deployments`, in which no step creates an object.
pub(crate) async fn missing(side: &Side, steps: &[Step]) -> Vec<String> {
    let created: BTreeSet<String> = steps.iter().filter_map(created).collect();
    let mut missing = Vec::new();
    for root in ["api", "apis"] {
        let url = format!("{}/{root}", side.url);
        let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let request = side.admin.get(url).header("accept", accept);
        let groups: Value = request.send().await.unwrap().json().await.unwrap();
        for group in groups["items"].as_array().unwrap() {
            for version in group["versions"].as_array().unwrap() {
                let name = group["metadata"]["name"].as_str().unwrap_or_default();
                let at = format!("{name}/{}", version["version"].as_str().unwrap());
                let resources = version["resources"].as_array().unwrap().iter();
                let all = resources
                    // What cannot be listed is answered and not stored.
                    .filter(|one| one["verbs"].as_array().unwrap().contains(&"list".into()))
                    .map(|one| format!("{at} {}", one["resource"].as_str().unwrap()));
                missing.extend(all.filter(|one| !created.contains(one)));
            }
        }
    }
    missing
}

/// The collection that a step posts to: `/v1 pods`.
fn created(step: &Step) -> Option<String> {
    let path = step.request.strip_prefix("POST /")?;
    let path = path.split('?').next()?;
    let parts: Vec<&str> = path.split('/').collect();
    let (at, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] => (format!("/{version}"), rest),
        ["apis", group, version, rest @ ..] => (format!("{group}/{version}"), rest),
        _ => return None,
    };
    match rest {
        ["namespaces", _, resource] | [resource] => Some(format!("{at} {resource}")),
        _ => None,
    }
}
