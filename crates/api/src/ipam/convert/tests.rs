use serde_json::{Value, json};

use crate::convert::convert;
use crate::ipam::v1beta2::{IPAddress, IPAddressClaim};

const OLD: &str = "ipam.cluster.x-k8s.io/v1beta1";
const NEW: &str = "ipam.cluster.x-k8s.io/v1beta2";

fn object(version: &str, kind: &str, spec: &Value) -> Value {
    json!({ "apiVersion": version, "kind": kind, "metadata": { "name": "x" }, "spec": spec })
}

fn pool() -> Value {
    json!({ "apiGroup": "ipam.example.net", "kind": "Pool", "name": "p" })
}

#[test]
fn a_claim_keeps_its_pool_and_its_answer() {
    let spec = json!({ "clusterName": "demo", "poolRef": pool() });
    let mut old = object(OLD, "IPAddressClaim", &spec);
    old["status"] = json!({ "addressRef": { "name": "x" } });
    let new = convert(old.clone(), NEW).unwrap();
    assert_eq!((&new["spec"], &new["status"]), (&spec, &old["status"]));
    let typed: IPAddressClaim = serde_json::from_value(new.clone()).unwrap();
    assert_eq!(serde_json::to_value(typed.spec).unwrap(), spec);
    assert_eq!(typed.status.unwrap().address_ref.unwrap().name, "x");
    assert_eq!(convert(new, OLD).unwrap(), old);
}

#[test]
fn conditions_of_a_claim_move() {
    let mut new = object(NEW, "IPAddressClaim", &json!({ "poolRef": pool() }));
    new["status"] = json!({ "conditions": [{
        "type": "Ready", "status": "True", "reason": "Allocated", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]});
    let old = convert(new.clone(), OLD).unwrap();
    assert_eq!(old["status"]["v1beta2"], new["status"]);
    assert_eq!(convert(old, NEW).unwrap()["status"], new["status"]);
}

#[test]
fn an_address_is_the_same_in_both_versions() {
    let spec = json!({
        "claimRef": { "name": "x" }, "poolRef": pool(),
        "address": "10.0.0.7", "prefix": 24, "gateway": "10.0.0.1",
    });
    let old = object(OLD, "IPAddress", &spec);
    let new = convert(old.clone(), NEW).unwrap();
    let typed: IPAddress = serde_json::from_value(new.clone()).unwrap();
    assert_eq!(serde_json::to_value(typed.spec).unwrap(), spec);
    assert_eq!(convert(new, OLD).unwrap(), old);
}
