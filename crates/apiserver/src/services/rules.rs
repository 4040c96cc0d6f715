//! Validation of a Service, in the order and with the words of kube-apiserver (`ValidateService` and
//! `ValidateServiceUpdate` in `pkg/apis/core/validation`). IP families of dual-stack clusters are not validated:
//! there is one family here.

use std::collections::BTreeSet;
use std::net::IpAddr;

use apimachinery::names::{
    label as label_1123, label_key_problems, label_value_problems, subdomain, unqualified,
};
use apimachinery::schema::{FieldError, Reason, go_json};
use apimachinery::value::text;
use serde_json::{Value, json};

use super::dependent;

const POLICIES: [&str; 2] = ["Cluster", "Local"];
const DISTRIBUTIONS: [&str; 3] = ["PreferClose", "PreferSameZone", "PreferSameNode"];
const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];
const FAMILY_POLICIES: [&str; 3] = ["PreferDualStack", "RequireDualStack", "SingleStack"];
const PORTS: &str = "spec.ports";
const CLASS: &str = "spec.loadBalancerClass";
const RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
/// Port of the kubelet on every node.
const KUBELET: i64 = 10250;
const BAD_RANGE: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
const BAD_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

/// All violations of a Service. `live`: the Service before the update. An unchanged spec is not validated again.
pub(crate) fn problems(service: &Value, live: Option<&Value>) -> Vec<FieldError> {
    let (spec, old) = (&service["spec"], live.map(|live| &live["spec"]));
    let mut errors = Vec::new();
    if old == Some(spec) {
        return errors;
    }
    if let Some(old) = old {
        addresses_stay(spec, old, &mut errors);
        if spec["type"] == "LoadBalancer"
            && old["type"] == "LoadBalancer"
            && spec["loadBalancerClass"] != old["loadBalancerClass"]
        {
            let class = &spec["loadBalancerClass"];
            errors.push(FieldError::invalid(CLASS, class, "may not change once set"));
        }
    }
    of_type(spec, &mut errors);
    ports(spec, &mut errors);
    selector(spec, &mut errors);
    affinity(spec, &mut errors);
    addresses(spec, &mut errors);
    families(spec, &mut errors);
    node_ports(spec, &mut errors);
    same_ports(spec, &mut errors);
    balancer(service, &mut errors);
    dependent::problems(spec, old, &mut errors);
    one_of("internalTrafficPolicy", spec, &POLICIES, &mut errors);
    one_of("trafficDistribution", spec, &DISTRIBUTIONS, &mut errors);
    errors
}

/// Unknown word in a field of the spec; an absent field has a default, or needs no value.
fn one_of(field: &str, spec: &Value, known: &[&str], errors: &mut Vec<FieldError>) {
    let value = &spec[field];
    if !value.is_null() && !known.contains(&text(value)) {
        let known: Vec<String> = known.iter().map(|word| (*word).to_owned()).collect();
        errors.push(FieldError::not_supported(
            format!("spec.{field}"),
            value,
            &known,
        ));
    }
}

/// Violations in the selector, the labels of the Pods.
fn selector(spec: &Value, errors: &mut Vec<FieldError>) {
    const PATH: &str = "spec.selector";
    for (key, value) in spec["selector"].as_object().into_iter().flatten() {
        for problem in label_key_problems(key) {
            errors.push(FieldError::invalid(PATH, &json!(key), problem));
        }
        for problem in label_value_problems(text(value)) {
            errors.push(FieldError::invalid(PATH, value, problem));
        }
    }
}

/// IP families by name; no check against the families of the cluster.
fn families(spec: &Value, errors: &mut Vec<FieldError>) {
    if spec["type"] == "ExternalName" {
        return;
    }
    let mut seen = BTreeSet::new();
    for (at, family) in items(&spec["ipFamilies"]).iter().enumerate() {
        let path = format!("spec.ipFamilies[{at}]");
        if !FAMILIES.contains(&text(family)) {
            let known = FAMILIES.map(str::to_owned);
            errors.push(FieldError::not_supported(path, family, &known));
        } else if !seen.insert(text(family)) {
            errors.push(FieldError::duplicate(path, family));
        }
    }
    one_of("ipFamilyPolicy", spec, &FAMILY_POLICIES, errors);
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

/// Checks that a Service keeps its cluster IPs. A headless Service may stay headless, and a change from or to the
/// type ExternalName may change the addresses.
fn addresses_stay(spec: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    if spec["type"] == "ExternalName"
        || old["type"] == "ExternalName"
        || is_headless(spec) && is_headless(old)
    {
        return;
    }
    let (new, before) = (items(&spec["clusterIPs"]), items(&old["clusterIPs"]));
    let mut changed = |at: usize, detail: &str| {
        let path = format!("spec.clusterIPs[{at}]");
        errors.push(FieldError::invalid(path, &spec["clusterIPs"], detail));
    };
    if new.is_empty() && !before.is_empty() {
        changed(0, "primary clusterIP can not be unset");
    }
    for (at, _) in new
        .iter()
        .zip(before)
        .enumerate()
        .filter(|(_, (a, b))| a != b)
    {
        changed(at, "may not change once set");
    }
}

fn is_headless(spec: &Value) -> bool {
    spec["clusterIP"] == "None"
}

fn of_type(spec: &Value, errors: &mut Vec<FieldError>) {
    const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    let kind = text(&spec["type"]);
    if items(&spec["ports"]).is_empty() && !is_headless(spec) && kind != "ExternalName" {
        errors.push(FieldError::required(PORTS, ""));
    }
    match kind {
        "LoadBalancer" | "NodePort" => {
            let exposed = items(&spec["ports"]).iter().enumerate();
            for (at, port) in exposed.filter(|(_, port)| port["port"] == KUBELET) {
                if kind == "LoadBalancer" {
                    let detail = format!(
                        "may not expose port {KUBELET} externally since it is used by kubelet"
                    );
                    let path = format!("{PORTS}[{at}]");
                    errors.push(FieldError::invalid(path, &port["port"], detail));
                }
            }
            if is_headless(spec) {
                let detail = format!("may not be set to 'None' for {kind} services");
                errors.push(FieldError::invalid(
                    "spec.clusterIPs[0]",
                    &json!("None"),
                    detail,
                ));
            }
        }
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                if !spec[field].is_null() && spec[field] != json!([]) {
                    let detail = "may not be set for ExternalName services";
                    errors.push(FieldError::forbidden(format!("spec.{field}"), detail));
                }
            }
            let name = text(&spec["externalName"]);
            let name = name.strip_suffix('.').unwrap_or(name);
            if name.is_empty() {
                errors.push(FieldError::required("spec.externalName", ""));
            } else if let Some(problem) = subdomain(name) {
                errors.push(FieldError::invalid(
                    "spec.externalName",
                    &json!(name),
                    problem,
                ));
            }
        }
        "ClusterIP" => {}
        _ => {
            let known = TYPES.map(str::to_owned);
            errors.push(FieldError::not_supported(
                "spec.type",
                &spec["type"],
                &known,
            ));
        }
    }
}

fn ports(spec: &Value, errors: &mut Vec<FieldError>) {
    const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
    let ports = items(&spec["ports"]);
    let mut names = BTreeSet::new();
    for (at, port) in ports.iter().enumerate() {
        let path = |field: &str| format!("{PORTS}[{at}].{field}");
        let name = text(&port["name"]);
        if name.is_empty() {
            if ports.len() > 1 {
                errors.push(FieldError::required(path("name"), ""));
            }
        } else {
            if let Some(problem) = label_1123(name) {
                errors.push(FieldError::invalid(path("name"), &port["name"], problem));
            }
            if !names.insert(name) {
                errors.push(FieldError::duplicate(path("name"), &port["name"]));
            }
        }
        number(path("port"), &port["port"], errors);
        let protocol = text(&port["protocol"]);
        if protocol.is_empty() {
            errors.push(FieldError::required(path("protocol"), ""));
        } else if !PROTOCOLS.contains(&protocol) {
            let known = PROTOCOLS.map(str::to_owned);
            errors.push(FieldError::not_supported(
                path("protocol"),
                &port["protocol"],
                &known,
            ));
        }
        match &port["targetPort"] {
            target @ Value::Number(_) => number(path("targetPort"), target, errors),
            Value::String(name) => named(path("targetPort"), name, errors),
            _ => {}
        }
        if let Some(of) = port["appProtocol"].as_str() {
            for problem in unqualified(of) {
                errors.push(FieldError::invalid(
                    path("appProtocol"),
                    &port["appProtocol"],
                    problem,
                ));
            }
        }
    }
}

fn number(path: String, port: &Value, errors: &mut Vec<FieldError>) {
    let valid = |number: i64| (1..=65535).contains(&number);
    if !port.as_i64().is_some_and(valid) {
        let detail = "must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(path, port, detail));
    }
}

/// Name of a port of a container (`IsValidPortName`).
fn named(path: String, name: &str, errors: &mut Vec<FieldError>) {
    let mut refused = |detail: &str| {
        errors.push(FieldError::invalid(path.as_str(), &json!(name), detail));
    };
    if name.len() > 15 {
        refused("must be no more than 15 characters");
    }
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || !name.chars().all(plain) {
        refused("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !name.chars().any(|c| c.is_ascii_lowercase()) {
        refused("must contain at least one letter (a-z)");
    }
    if name.contains("--") {
        refused("must not contain consecutive hyphens");
    }
    if name.starts_with('-') || name.ends_with('-') {
        refused("must not begin or end with a hyphen");
    }
}

fn affinity(spec: &Value, errors: &mut Vec<FieldError>) {
    const KINDS: [&str; 2] = ["ClientIP", "None"];
    match text(&spec["sessionAffinity"]) {
        "ClientIP" => {
            let seconds = &spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"];
            let valid = |seconds: i64| (1..=86400).contains(&seconds);
            if !seconds.is_null() && !seconds.as_i64().is_some_and(valid) {
                let path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
                let detail = "must be greater than 0 and less than 86400";
                errors.push(FieldError::invalid(path, seconds, detail));
            }
        }
        "None" if spec["sessionAffinityConfig"].is_null() => {}
        "None" => {
            let detail = "must not be set when session affinity is None";
            errors.push(FieldError::forbidden("spec.sessionAffinityConfig", detail));
        }
        "" => errors.push(FieldError::required("spec.sessionAffinity", "")),
        _ => {
            let known = KINDS.map(str::to_owned);
            errors.push(FieldError::not_supported(
                "spec.sessionAffinity",
                &spec["sessionAffinity"],
                &known,
            ));
        }
    }
}

fn addresses(spec: &Value, errors: &mut Vec<FieldError>) {
    let listed = items(&spec["clusterIPs"]);
    if let Some(first) = listed.first()
        && *first != spec["clusterIP"]
    {
        let detail = "first value must match `clusterIP`";
        errors.push(FieldError::invalid(
            "spec.clusterIPs",
            &spec["clusterIPs"],
            detail,
        ));
    }
    let is_address = |value: &Value| address(text(value)).is_some();
    for (at, address) in listed.iter().enumerate().filter(|_| !is_headless(spec)) {
        if !is_address(address) {
            let path = format!("spec.clusterIPs[{at}]");
            errors.push(FieldError::invalid(path, address, BAD_ADDRESS));
        }
    }
    for (at, value) in items(&spec["externalIPs"]).iter().enumerate() {
        let path = format!("spec.externalIPs[{at}]");
        let Some(found) = address(text(value)) else {
            errors.push(FieldError::invalid(path, value, BAD_ADDRESS));
            continue;
        };
        let (loopback, link_local, multicast) = match found {
            IpAddr::V4(found) => (found.is_loopback(), found.is_link_local(), {
                found.octets()[..3] == [224, 0, 0]
            }),
            IpAddr::V6(found) => (found.is_loopback(), found.is_unicast_link_local(), {
                found.octets()[..2] == [0xff, 0x02]
            }),
        };
        for (is, detail) in [
            (found.is_unspecified(), "may not be unspecified"),
            (loopback, "may not be in the loopback range"),
            (link_local, "may not be in the link-local range"),
            (multicast, "may not be in the link-local multicast range"),
        ] {
            if is {
                let detail = match detail {
                    "may not be unspecified" => format!("{detail} ({})", text(value)),
                    "may not be in the loopback range" => {
                        format!("{detail} (127.0.0.0/8, ::1/128)")
                    }
                    "may not be in the link-local range" => {
                        format!("{detail} (169.254.0.0/16, fe80::/10)")
                    }
                    _ => format!("{detail} (224.0.0.0/24, ff02::/10)"),
                };
                errors.push(FieldError::invalid(path.as_str(), value, detail));
            }
        }
    }
}

fn node_ports(spec: &Value, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (at, port) in items(&spec["ports"]).iter().enumerate() {
        let Some(number) = port["nodePort"].as_i64().filter(|number| *number != 0) else {
            continue;
        };
        let path = format!("{PORTS}[{at}].nodePort");
        if spec["type"] == "ClusterIP" {
            let detail = "may not be used when `type` is 'ClusterIP'";
            errors.push(FieldError::forbidden(path.as_str(), detail));
        }
        if !seen.insert((text(&port["protocol"]), number)) {
            errors.push(FieldError::duplicate(path, &port["nodePort"]));
        }
    }
}

fn same_ports(spec: &Value, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (at, port) in items(&spec["ports"]).iter().enumerate() {
        let (protocol, number) = (text(&port["protocol"]), port["port"].as_i64());
        if !seen.insert((protocol, number)) {
            // The value is the key of a map of Go, printed whole.
            let message = format!(
                "Duplicate value: {{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{},\"TargetPort\":0,\"NodePort\":0}}",
                go_json(&json!(protocol)),
                number.unwrap_or_default(),
            );
            errors.push(FieldError {
                path: format!("{PORTS}[{at}]"),
                message,
                reason: Reason::Duplicate,
            });
        }
    }
}

/// Violations in the fields of the type LoadBalancer.
fn balancer(service: &Value, errors: &mut Vec<FieldError>) {
    const ONLY: &str = "may only be used when `type` is 'LoadBalancer'";
    let spec = &service["spec"];
    let balanced = spec["type"] == "LoadBalancer";
    let annotation = service["metadata"]["annotations"][RANGES].as_str();
    let ranges = items(&spec["loadBalancerSourceRanges"]);
    if !ranges.is_empty() {
        const PATH: &str = "spec.LoadBalancerSourceRanges";
        if !balanced {
            errors.push(FieldError::forbidden(PATH, ONLY));
        }
        for (at, range) in ranges.iter().enumerate() {
            source_range(format!("{PATH}[{at}]"), text(range), errors);
        }
    } else if let Some(list) = annotation {
        let path = format!("metadata.annotations[{RANGES}]");
        if !balanced {
            errors.push(FieldError::forbidden(path.as_str(), ONLY));
        }
        if !list.trim().is_empty() {
            for range in list.split(',') {
                source_range(path.clone(), range, errors);
            }
        }
    }
    let allocate = &spec["allocateLoadBalancerNodePorts"];
    let path = "spec.allocateLoadBalancerNodePorts";
    if !allocate.is_null() && !balanced {
        errors.push(FieldError::forbidden(path, ONLY));
    } else if allocate.is_null() && balanced {
        errors.push(FieldError::required(path, ""));
    }
    match spec["loadBalancerClass"].as_str() {
        None => {}
        Some(_) if !balanced => errors.push(FieldError::forbidden(CLASS, ONLY)),
        Some(class) => {
            for problem in unqualified(class) {
                errors.push(FieldError::invalid(CLASS, &json!(class), problem));
            }
        }
    }
}

fn source_range(path: String, range: &str, errors: &mut Vec<FieldError>) {
    let range = range.trim();
    let valid = range.split_once('/').is_some_and(|(start, length)| {
        let most = match address(start) {
            Some(IpAddr::V4(_)) => 32,
            Some(IpAddr::V6(_)) => 128,
            None => return false,
        };
        let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
        digits && length.parse::<u32>().is_ok_and(|length| length <= most)
    });
    if !valid {
        errors.push(FieldError::invalid(path, &json!(range), BAD_RANGE));
    }
}

/// IP address as read by Go before 1.17: numbers of IPv4 may have leading zeros.
fn address(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        return text.parse().ok();
    }
    let parts: Vec<&str> = text.split('.').collect();
    let number = |part: &&str| {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| part.parse::<u8>().ok()).flatten()
    };
    let numbers: Vec<u8> = parts.iter().filter_map(number).collect();
    let all: [u8; 4] = numbers.try_into().ok()?;
    (parts.len() == 4).then(|| IpAddr::from(all))
}

#[cfg(test)]
mod tests;
