//! Processors and memory of nodes, reserved by requests of Pods.

use serde_json::Value;

use super::cache::ObjectCache;
use super::object::{has_ended, items, text};

/// Counted resources.
const COUNTED: [&str; 2] = ["cpu", "memory"];

/// Returns the first resource of which a node has less left than a Pod requests.
pub(super) fn lacks(pod: &Value, node: &Value, world: &ObjectCache) -> Option<&'static str> {
    let name = text(&node["metadata"]["name"]);
    COUNTED.into_iter().find(|resource| {
        let wanted = requested(pod, resource);
        if wanted == 0.0 {
            return false;
        }
        let here = world.pods.iter();
        let here = here.filter(|it| text(&it["spec"]["nodeName"]) == name && !has_ended(it));
        let reserved: f64 = here.map(|it| requested(it, resource)).sum();
        reserved + wanted > amount(&node["status"]["allocatable"][*resource])
    })
}

/// True if a Pod requests processors or memory.
pub(super) fn is_reserved(pod: &Value) -> bool {
    COUNTED
        .iter()
        .any(|resource| requested(pod, resource) > 0.0)
}

/// Returns the sum of the requests of the containers; a limit alone is a request, too.
fn requested(pod: &Value, resource: &str) -> f64 {
    let containers = items(&pod["spec"]["containers"]);
    let of = |container: &Value| {
        let resources = &container["resources"];
        match &resources["requests"][resource] {
            Value::Null => amount(&resources["limits"][resource]),
            quantity => amount(quantity),
        }
    };
    containers.map(of).sum()
}

/// Parses a quantity of Kubernetes; 0 for an invalid one.
fn amount(quantity: &Value) -> f64 {
    let text = match quantity {
        Value::Number(number) => return number.as_f64().unwrap_or_default(),
        other => text(other),
    };
    let digits = text.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let factor = match text.get(digits.len()..).unwrap_or_default() {
        "m" => 1e-3,
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "Ki" => 1024.0,
        "Mi" => 1024.0 * 1024.0,
        "Gi" => 1024.0 * 1024.0 * 1024.0,
        "Ti" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return 0.0,
    };
    digits.parse::<f64>().unwrap_or_default() * factor
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quantities_and_requests_are_added_up() {
        for (quantity, expected) in [
            (json!("500m"), 0.5),
            (json!("2"), 2.0),
            (json!(3), 3.0),
            (json!("1.5Gi"), 1_610_612_736.0),
            (json!("128M"), 128e6),
            (json!("lots"), 0.0),
            (Value::Null, 0.0),
        ] {
            assert!((amount(&quantity) - expected).abs() < 1e-6, "{quantity}");
        }
        let pod = json!({"spec": {"containers": [
            {"resources": {"requests": {"cpu": "250m"}, "limits": {"cpu": "2"}}},
            {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}, {}]}});
        assert!((requested(&pod, "cpu") - 1.25).abs() < 1e-6);
        assert!((requested(&pod, "memory") - 1_073_741_824.0).abs() < 1.0);
    }
}
