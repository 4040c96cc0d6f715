use serde_json::json;

use super::*;

fn route(destination: &str, hop: &str) -> Value {
    json!({"destination": destination, "nexthop": hop})
}

fn verdict(got: &Got) -> (u16, String) {
    let kind = got.body["NeutronError"]["type"].as_str();
    (got.status, kind.unwrap_or_default().to_owned())
}

#[tokio::test]
async fn routes_are_rejected_as_by_neutron_and_change_nothing() {
    let (_cloud, client) = demo().await;
    let net = net(&client, "10.6.0.0/24").await;
    let path = format!("/network/v2.0/routers/{}", net.router);
    let fine = route("10.244.1.0/24", "10.6.0.9");
    let many: Vec<Value> = (0..31)
        .map(|number| route(&format!("10.244.{number}.0/24"), "10.6.0.9"))
        .collect();
    let rows = [
        (
            json!([route("10.244.1.0/24", "10.7.0.9")]),
            "InvalidRoutes",
            "not connected",
        ),
        (
            json!([route("10.244.1.0/24", "10.6.0.1")]),
            "InvalidRoutes",
            "used by router",
        ),
        (
            json!([route("10.244.1.7/24", "10.6.0.9")]),
            "HTTPBadRequest",
            "'10.244.1.0/24' is recommended",
        ),
        (
            json!([route("10.244.1.0/24", "x")]),
            "HTTPBadRequest",
            "not a valid IP address",
        ),
        (
            json!([{"destination": "10.244.1.0/24"}]),
            "HTTPBadRequest",
            "Invalid data format",
        ),
        (json!([fine, fine]), "HTTPBadRequest", "Duplicate hostroute"),
        (json!(many), "RoutesExhausted", "exceeds the maximum 30"),
    ];
    for (routes, kind, words) in rows {
        let body = json!({"router": {"routes": routes}});
        for path in [path.clone(), format!("{path}/add_extraroutes")] {
            let got = client.put(&path, body.clone()).await;
            assert_eq!(verdict(&got), (400, kind.to_owned()), "{path} {body}");
            assert!(got.text.contains(words), "{}", got.text);
        }
    }
    assert_eq!(client.fetch(&path).await["routes"], json!([]));
    let most = json!({"router": {"routes": many[..30]}});
    assert_eq!(client.put(&path, most).await.status, 200);
}

#[tokio::test]
async fn routes_are_added_and_removed_without_touching_the_others() {
    let (_cloud, client) = demo().await;
    let net = net(&client, "10.6.0.0/24").await;
    let path = format!("/network/v2.0/routers/{}", net.router);
    let (a, b) = (
        route("10.244.1.0/24", "10.6.0.9"),
        route("10.244.1.0/24", "10.6.0.8"),
    );
    let change = async |verb: &str, route: &Value| {
        let body = json!({"router": {"routes": [route]}});
        let got = client
            .put(&format!("{path}/{verb}_extraroutes"), body)
            .await;
        assert_eq!(got.status, 200, "{}", got.text);
        (
            got.body["router"]["routes"].clone(),
            got.body["router"]["revision_number"].as_i64().unwrap(),
        )
    };
    let (routes, _) = change("add", &a).await;
    assert_eq!(routes, json!([a]));
    let (routes, revision) = change("add", &b).await;
    assert_eq!(routes, json!([a, b]));
    // Adding an existing route or removing an absent one changes nothing.
    assert_eq!(change("add", &b).await, (json!([a, b]), revision));
    let other = route("10.244.9.0/24", "10.6.0.8");
    assert_eq!(change("remove", &other).await, (json!([a, b]), revision));
    assert_eq!(change("remove", &a).await.0, json!([b]));

    let body = json!({"router": {"routes": []}});
    let old = [("if-match", "revision_number=1")];
    let got = client.send(Method::PUT, &path, &old, &body).await;
    assert_eq!(
        verdict(&got),
        (412, "RevisionNumberConstraintFailed".to_owned())
    );
}

#[tokio::test]
async fn address_pairs_are_ranges_without_duplicates_and_need_port_security() {
    let (_cloud, client) = demo().await;
    let net = net(&client, "10.6.0.0/24").await;
    let port = json!({"port": {"network_id": net.network}});
    let port = client.make("/network/v2.0/ports", port).await;
    let path = format!("/network/v2.0/ports/{}", id(&port));
    let pair = |range: &str| json!({"ip_address": range});
    let many: Vec<Value> = (0..11).map(|n| pair(&format!("10.244.{n}.0/24"))).collect();
    for (pairs, kind) in [
        (json!([pair("x")]), "HTTPBadRequest"),
        (
            json!([pair("10.244.1.0/24"), {"ip_address": "10.244.1.0/24", "mac_address": port["mac_address"]}]),
            "DuplicateAddressPairInRequest",
        ),
        (json!(many), "AllowedAddressPairExhausted"),
    ] {
        let body = json!({"port": {"allowed_address_pairs": pairs}});
        let got = client.put(&path, body).await;
        assert_eq!(verdict(&got), (400, kind.to_owned()), "{pairs}");
    }
    let body = json!({"port": {"allowed_address_pairs": [pair("10.244.1.0/24")]}});
    let got = client.put(&path, body.clone()).await;
    // A pair without a hardware address has that of the port.
    assert_eq!(
        got.body["port"]["allowed_address_pairs"],
        json!([{"ip_address": "10.244.1.0/24", "mac_address": port["mac_address"]}])
    );
    let insecure = json!({"port": {"port_security_enabled": false, "security_groups": [], "allowed_address_pairs": []}});
    assert_eq!(client.put(&path, insecure).await.status, 200);
    let got = client.put(&path, body).await;
    assert_eq!(
        verdict(&got),
        (409, "AddressPairAndPortSecurityRequired".to_owned())
    );
}
