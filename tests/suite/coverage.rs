//! What the program asked of a simulated cloud must be in the scenario that is played on a real one as well
//! (tests/openstack/scenario): otherwise nobody would know that the real one answers the same. What the real one does not have,
//! such as backups, is listed there.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use simulator::cloud::{Cloud, Options};

/// Service, method and route, as `/_simulator/requests` tells them.
type Operation = (String, String, String);

/// Fails if an operation that this cloud was asked for is not in the scenario.
pub(crate) fn of_cloud(cloud: &Cloud) {
    let called = cloud.requests().into_iter();
    let called = called.map(|one| (one.service, one.method, one.route));
    all_in_the_scenario(&cloud.operations(), called);
}

/// The same for the cloud of another process.
pub(crate) async fn of_url(url: &str) {
    let reply = reqwest::get(format!("{url}/_simulator/requests")).await;
    let reply: Value = reply.unwrap().json().await.unwrap();
    let called = reply["requests"].as_array().unwrap().iter().map(|one| {
        let text = |field: &str| one[field].as_str().unwrap().to_owned();
        (text("service"), text("method"), text("route"))
    });
    let known = Cloud::open(Options::default()).await.unwrap().operations();
    all_in_the_scenario(&known, called);
}

fn all_in_the_scenario(known: &[Operation], called: impl Iterator<Item = Operation>) {
    let (scenario, absent) = (scenario(known), absent());
    let is_absent = |one: &Operation| {
        let mut absent = absent.iter();
        absent.any(|(method, service, route)| {
            (&one.1, &one.0) == (method, service) && one.2.starts_with(route.as_str())
        })
    };
    let missing = called.filter(|one| !scenario.contains(one) && !is_absent(one));
    let missing: Vec<Operation> = missing.collect();
    assert!(
        missing.is_empty(),
        "asked of the simulated cloud, and not in tests/openstack/scenario: {missing:?}"
    );
}

/// What the real cloud does not have, as method, service and the beginning of a route.
fn absent() -> Vec<(String, String, String)> {
    let list = include_str!("../openstack/scenario/not-on-the-real-cloud.txt");
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    let parts = lines.filter_map(|line| {
        let mut words = line.split_whitespace().map(str::to_owned);
        Some((
            words.next()?,
            words.next()?,
            words.next().unwrap_or_default(),
        ))
    });
    parts.collect()
}

/// The operations of the scenario.
fn scenario(known: &[Operation]) -> BTreeSet<Operation> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/openstack/scenario");
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let steps: Vec<Value> =
            serde_saphyr::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for step in steps {
            let words: Vec<&str> = step["do"].as_str().unwrap().splitn(3, ' ').collect();
            let [method, service, path] = words.as_slice() else {
                panic!("METHOD service path: {step}");
            };
            let path = path.split('?').next().unwrap_or_default();
            found.extend(operation(known, service, method, path));
        }
    }
    found
}

/// The operation that a request comes to: a literal segment wins over a parameter.
fn operation(known: &[Operation], service: &str, method: &str, path: &str) -> Option<Operation> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let fits = |route: &str| {
        let wanted: Vec<&str> = route.split('/').filter(|part| !part.is_empty()).collect();
        wanted.len() == parts.len()
            && wanted
                .iter()
                .zip(&parts)
                .all(|(wanted, part)| wanted.starts_with('{') || wanted == part)
    };
    let mut found: Vec<&Operation> = known
        .iter()
        .filter(|one| one.0 == service && one.1 == method && fits(&one.2))
        .collect();
    found.sort_by_key(|one| one.2.matches('{').count());
    found.first().map(|one| (*one).clone())
}
