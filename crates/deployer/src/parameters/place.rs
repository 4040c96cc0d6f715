//! Nodes of programs, and resources on these nodes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Nodes of the cloud; all nodes if no labels are set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Nodes {
    /// Labels of the nodes for everything but hypervisors.
    pub control: BTreeMap<String, String>,
    /// Labels of the nodes for hypervisors.
    pub compute: BTreeMap<String, String>,
}

/// Requests and limits of each program of a service, as quantities of Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Resources {
    /// Reserved quantities.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, String>,
    /// Maximum quantities.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
}

impl Nodes {
    /// First label that no node can have, and the reason.
    pub(super) fn wrong(&self) -> Option<(String, &'static str)> {
        for (plane, labels) in [("control", &self.control), ("compute", &self.compute)] {
            for (key, value) in labels {
                let (prefix, name) = key.rsplit_once('/').unwrap_or(("a", key));
                if name.is_empty() || !is_label(name) || !is_label(value) || !is_domain(prefix) {
                    let problem =
                        "it is not a label of nodes, such as openstack-control-plane: enabled";
                    return Some((format!("nodes.{plane}.{key}"), problem));
                }
            }
        }
        None
    }
}

impl Resources {
    pub(crate) fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.limits.is_empty()
    }

    /// First quantity of a service that an API server would reject or write in another way, so that the object would
    /// never be as desired.
    pub(super) fn wrong(&self, service: &str) -> Option<(String, &'static str)> {
        for (kind, quantities) in [("requests", &self.requests), ("limits", &self.limits)] {
            if let Some((name, _)) = quantities.iter().find(|(_, it)| !is_quantity(it)) {
                let problem = "it is not a quantity in the shortest form: 100m, 2, 512Mi, 1Gi";
                let path = format!("services.{service}.resources.{kind}.{name}");
                return Some((path, problem));
            }
        }
        let above = |(name, request): &(&String, &String)| {
            let limit = self.limits.get(*name).and_then(|it| thousandths(it));
            limit.is_some_and(|limit| thousandths(request).is_some_and(|it| it > limit))
        };
        let (name, _) = self.requests.iter().find(above)?;
        let path = format!("services.{service}.resources.requests.{name}");
        Some((path, "it is above the limit, and no Pod may request more"))
    }
}

/// Value of a quantity, in thousandths.
pub(super) fn thousandths(text: &str) -> Option<u128> {
    let digits = text.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let factor: u128 = match text.get(digits.len()..)? {
        "m" => 1,
        "" => 1000,
        "k" => 1_000_000,
        "Ki" => 1_024_000,
        "M" => 1_000_000_000,
        "Mi" => 1_048_576_000,
        "G" => 1_000_000_000_000,
        "Gi" => 1_073_741_824_000,
        "T" => 1_000_000_000_000_000,
        "Ti" => 1_099_511_627_776_000,
        _ => return None,
    };
    Some(u128::from(digits.parse::<u64>().ok()?) * factor)
}

/// True for a whole number in canonical form: no larger suffix is possible.
fn is_quantity(text: &str) -> bool {
    let digits = text.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let Ok(number) = digits.parse::<u64>() else {
        return false;
    };
    let larger = match text.get(digits.len()..).unwrap_or_default() {
        "m" | "" | "k" | "M" => 1000,
        "G" | "T" => 1000,
        "Ki" | "Mi" | "Gi" | "Ti" => 1024,
        _ => return false,
    };
    // Nothing is `0`, whatever it is counted in.
    let is_short = match number {
        0 => digits.len() == text.len(),
        _ => number % larger != 0,
    };
    is_short && !(digits.starts_with(['0', '+']) && digits.len() > 1)
}

/// True for a valid name of an object, or prefix of a label: a DNS subdomain (RFC 1123).
pub(super) fn is_domain(text: &str) -> bool {
    let is_part = |part: &str| {
        let allowed = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
        !part.is_empty()
            && part.chars().all(allowed)
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_part)
}

/// True for a valid value of a label.
fn is_label(text: &str) -> bool {
    text.len() <= 63
        && text
            .chars()
            .all(|it| it.is_ascii_alphanumeric() || "-_.".contains(it))
        && !text.starts_with(['-', '_', '.'])
        && !text.ends_with(['-', '_', '.'])
}
