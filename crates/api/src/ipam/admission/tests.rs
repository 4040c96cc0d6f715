use serde_json::{Value, json};

use crate::admission::tests::paths;

fn object(kind: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "kind": kind,
        "metadata": { "name": "x", "namespace": "default" }, "spec": spec,
    })
}

fn address(address: &str, prefix: i64, gateway: &Value) -> Value {
    let pool = json!({ "apiGroup": "g.io", "kind": "Pool", "name": "p" });
    let mut spec = json!({
        "claimRef": { "name": "x" }, "poolRef": pool, "address": address, "prefix": prefix,
    });
    if !gateway.is_null() {
        spec["gateway"] = gateway.clone();
    }
    object("IPAddress", &spec)
}

#[test]
fn addresses_prefixes_and_gateways_are_checked() {
    let cases = [
        (address("10.0.0.7", 24, &json!("10.0.0.1")), vec![]),
        (address("fd00::7", 64, &json!("fd00::1")), vec![]),
        (address("10.0.0.7", 32, &json!(null)), vec![]),
        (address("10.0.0", 24, &json!(null)), vec!["spec.address"]),
        (address("10.0.0.7", 33, &json!(null)), vec!["spec.prefix"]),
        (address("fd00::7", 129, &json!(null)), vec!["spec.prefix"]),
        (address("10.0.0.7", -1, &json!(null)), vec!["spec.prefix"]),
        (address("10.0.0.7", 24, &json!("x")), vec!["spec.gateway"]),
        (
            address("10.0.0.7", 24, &json!("fd00::1")),
            vec!["spec.gateway"],
        ),
    ];
    for (object, expected) in cases {
        assert_eq!(paths(&object, None), expected, "{object}");
    }
}

#[test]
fn neither_kind_can_be_changed() {
    let old = address("10.0.0.7", 24, &json!(null));
    assert_eq!(
        paths(&address("10.0.0.8", 24, &json!(null)), Some(&old)),
        ["spec"]
    );
    let claim = |pool: &str| {
        let pool = json!({ "apiGroup": "g.io", "kind": "Pool", "name": pool });
        object("IPAddressClaim", &json!({ "poolRef": pool }))
    };
    assert_eq!(paths(&claim("b"), Some(&claim("a"))), ["spec"]);
    assert_eq!(paths(&claim("a"), Some(&claim("a"))), Vec::<String>::new());
}
