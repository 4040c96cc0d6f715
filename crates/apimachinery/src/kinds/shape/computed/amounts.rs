//! The requests of a pod with pod-level resources (`PodLevelResources`).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Fields, part};
use crate::kinds::shape::quantity::Quantity;

type Amounts = BTreeMap<String, Quantity>;

/// Sets missing requests of a pod with pod-level limits: to the sum over the containers, or else to the limits of the
/// pod.
pub(super) fn of_pod(spec: &mut Fields) {
    let limits = spec
        .get("resources")
        .and_then(|resources| resources["limits"].as_object())
        .filter(|limits| !limits.is_empty())
        .cloned();
    let Some(limits) = limits else { return };
    let mut requests = together(spec);
    requests.retain(|resource, _| matches!(resource.as_str(), "cpu" | "memory"));
    let Some(given) = part(spec, "resources").and_then(|all| part(all, "requests")) else {
        return;
    };
    for (resource, amount) in requests {
        given
            .entry(resource)
            .or_insert_with(|| json!(amount.to_string()));
    }
    for (resource, amount) in limits {
        if matches!(resource.as_str(), "cpu" | "memory") || resource.starts_with("hugepages-") {
            given.entry(resource).or_insert(amount);
        }
    }
}

/// Returns the sum of the requests of containers that run at the same time, or the request of an init container if
/// greater.
fn together(spec: &Fields) -> Amounts {
    let list = |name: &str| spec.get(name).and_then(Value::as_array);
    let mut running = Amounts::new();
    for container in list("containers").into_iter().flatten() {
        add(&mut running, &requests(container));
    }
    let (mut beside, mut most) = (Amounts::new(), Amounts::new());
    for container in list("initContainers").into_iter().flatten() {
        let mut now = requests(container);
        if container["restartPolicy"] == "Always" {
            add(&mut running, &now);
            add(&mut beside, &now);
            now.clone_from(&beside);
        } else {
            add(&mut now, &beside);
        }
        raise(&mut most, &now);
    }
    raise(&mut running, &most);
    running
}

fn requests(container: &Value) -> Amounts {
    let requests = container["resources"]["requests"].as_object();
    let amounts = requests.into_iter().flatten().filter_map(|(name, amount)| {
        let amount = Quantity::parse(amount.as_str()?)?;
        Some((name.clone(), amount))
    });
    amounts.collect()
}

fn add(to: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = to.get(name).map_or(*amount, |before| before.plus(*amount));
        to.insert(name.clone(), sum);
    }
}

fn raise(to: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        if to.get(name).is_none_or(|before| before.is_below(*amount)) {
            to.insert(name.clone(), *amount);
        }
    }
}
