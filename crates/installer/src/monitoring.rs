//! Manifests for Prometheus and Grafana to watch the managers.

use anyhow::Context;
use serde_json::{Value, json};

use crate::subset::Subset;
use crate::{manifests, names};

/// Permission, Service and ServiceMonitor, and the alerts, with the names of a manager of all providers.
const FILES: [&str; 2] = [
    include_str!("../../../config/monitoring/monitor.yaml"),
    include_str!("../../../config/monitoring/rules.yaml"),
];
/// The dashboard of Grafana.
const DASHBOARD: &str = include_str!("../../../config/monitoring/dashboard.json");

/// Manifests for a [`Subset`], as one YAML stream.
///
/// # Errors
/// If the namespace has an invalid name.
pub fn render(subset: &Subset, namespace: &str) -> anyhow::Result<String> {
    manifest::check_namespace(namespace)?;
    let mut documents = FILES.map(str::to_owned).to_vec();
    documents.push(dashboard()?);
    let text = documents.join("---\n");
    let text = manifests::renamed(&text, |name| subset.named(name));
    Ok(text.replace(names::NAMESPACE, namespace))
}

/// ConfigMap with the dashboard, for Grafana's sidecar.
fn dashboard() -> anyhow::Result<String> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).context("the dashboard")?;
    let text = terminal::json(&dashboard)?;
    Ok(terminal::yaml(
        &json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "ferrostack-manager-dashboard", "namespace": names::NAMESPACE,
            "labels": {"grafana_dashboard": "1"}},
        "data": {"ferrostack-managers.json": text}}),
    )?)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::time::Duration;

    use api::providers::Provider;

    use super::*;

    fn documents(subset: &Subset) -> Vec<Value> {
        serde_saphyr::from_multiple(&render(subset, "of-managers").unwrap()).unwrap()
    }

    /// The series of a manager, each with its labels, from its own text.
    fn series() -> BTreeMap<String, BTreeSet<String>> {
        let metrics = operator::metrics::Metrics::default();
        metrics.observe("cluster", Duration::from_millis(1), true);
        metrics.undecodable("cluster", "Cluster", 1);
        let text = metrics.text();
        let mut found = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, rest) = line.split_once('{').unwrap();
            let labels = rest.split('}').next().unwrap().split("\",");
            let labels = labels.map(|it| it.split('=').next().unwrap().to_owned());
            found
                .entry(name.to_owned())
                .or_insert_with(BTreeSet::new)
                .extend(labels);
        }
        // As crates/openstack/src/metrics.rs registers them, held by its own test and by tests/suite/manager.rs.
        let requests = ["service", "method", "route", "status", "poll"];
        let times = ["service", "method", "le"];
        let owned = |labels: &[&str]| labels.iter().map(|it| (*it).to_owned()).collect();
        found.insert(
            "ferrostack_openstack_requests_total".to_owned(),
            owned(&requests),
        );
        let name = "ferrostack_openstack_request_duration_seconds_bucket";
        found.insert(name.to_owned(), owned(&times));
        found
    }

    /// The names of series in a query, and the labels that it selects or groups by.
    fn parts(query: &str) -> (BTreeSet<String>, BTreeSet<String>) {
        let (mut names, mut labels) = (BTreeSet::new(), BTreeSet::new());
        let words = query.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        names.extend(
            words
                .filter(|it| it.starts_with("ferrostack_") || it.starts_with("controller_runtime_"))
                .map(str::to_owned),
        );
        for grouped in query.split("by (").skip(1) {
            let list = grouped.split(')').next().unwrap();
            labels.extend(list.split(", ").map(str::to_owned));
        }
        for selected in query.split('{').skip(1) {
            let list = selected.split('}').next().unwrap();
            labels.extend(
                list.split("\",")
                    .map(|it| it.split(['=', '!', '~']).next().unwrap().trim().to_owned()),
            );
        }
        (names, labels)
    }

    #[test]
    fn every_query_of_alerts_and_dashboard_is_about_series_that_a_manager_has() {
        let all = documents(&Subset::all());
        let of_kind = |kind: &str| all.iter().find(|it| it["kind"] == kind).unwrap();
        let mut queries = Vec::new();
        for rule in of_kind("PrometheusRule")["spec"]["groups"][0]["rules"]
            .as_array()
            .unwrap()
        {
            queries.push(rule["expr"].as_str().unwrap().to_owned());
            assert!(rule["annotations"]["summary"].is_string(), "{rule}");
        }
        let alerts = queries.len();
        let text = of_kind("ConfigMap")["data"]["ferrostack-managers.json"]
            .as_str()
            .unwrap();
        let dashboard: Value = serde_json::from_str(text).unwrap();
        for panel in dashboard["panels"].as_array().unwrap() {
            for target in panel["targets"].as_array().unwrap() {
                queries.push(target["expr"].as_str().unwrap().to_owned());
            }
        }
        assert!(alerts == 3 && queries.len() > 10, "{queries:?}");
        let series = series();
        for query in queries {
            let (names, labels) = parts(&query);
            assert!(!names.is_empty(), "{query}");
            for name in names {
                let known = series
                    .get(&name)
                    .unwrap_or_else(|| panic!("there is no {name}: {query}"));
                assert!(labels.is_subset(known), "{labels:?} {known:?}: {query}");
            }
        }
    }

    #[test]
    fn the_monitor_finds_the_port_of_the_managers_that_it_is_for() {
        for (providers, suffix) in [
            (Vec::new(), ""),
            (vec![Provider::Infrastructure], "-infrastructure"),
        ] {
            let subset = Subset::new(providers, false);
            let all = documents(&subset);
            let of_kind = |kind: &str| all.iter().find(|it| it["kind"] == kind).unwrap();
            let name = format!("ferrostack-manager{suffix}");
            let service = of_kind("Service");
            assert_eq!(service["metadata"]["name"], format!("{name}-metrics"));
            assert_eq!(service["metadata"]["namespace"], "of-managers");
            let label = "app.kubernetes.io/name";
            assert_eq!(service["metadata"]["labels"][label], name);
            assert_eq!(service["spec"]["selector"][label], name);
            let monitor = &of_kind("ServiceMonitor")["spec"];
            assert_eq!(monitor["selector"]["matchLabels"][label], name);
            assert_eq!(
                monitor["endpoints"][0]["port"],
                service["spec"]["ports"][0]["name"]
            );
            let manifests = manifests::render(&subset, "of-managers", Some("a:1"), None).unwrap();
            let manifests: Vec<Value> = serde_saphyr::from_multiple(&manifests).unwrap();
            let deployment = manifests
                .iter()
                .find(|it| it["kind"] == "Deployment")
                .unwrap();
            let template = &deployment["spec"]["template"];
            assert_eq!(template["metadata"]["labels"][label], name);
            let ports = template["spec"]["containers"][0]["ports"]
                .as_array()
                .unwrap();
            let port = ports
                .iter()
                .find(|it| it["name"] == service["spec"]["ports"][0]["targetPort"]);
            assert_eq!(
                port.unwrap()["containerPort"],
                service["spec"]["ports"][0]["port"]
            );
        }
    }
}
