use serde_json::json;

use super::*;

#[tokio::test]
async fn a_fault_rule_hits_the_nth_matching_request_only() {
    let (_cloud, client) = demo().await;
    let rule = json!({"service": "network", "method": "POST", "route": "/v2.0/networks", "after": 1, "count": 1,
        "status": 503, "message": "busy", "retry_after": 7});
    assert_eq!(client.post("/_simulator/faults", rule).await.status, 201);
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(
            client
                .post("/network/v2.0/networks", json!({"network": {}}))
                .await
                .status,
        );
    }
    assert_eq!(statuses, [201, 503, 201]);
    assert_eq!(client.fetch("/_simulator/faults").await, json!([]));
}

#[tokio::test]
async fn a_fault_after_the_change_answers_wrongly_but_did_the_work() {
    let (_cloud, client) = demo().await;
    let rule = json!({"route": "/v2.0/networks", "method": "POST", "count": 1, "drop": true, "after_change": true});
    client.post("/_simulator/faults", rule).await;
    let got = client
        .post(
            "/network/v2.0/networks",
            json!({"network": {"name": "done"}}),
        )
        .await;
    assert_eq!(got.text, "");
    assert_eq!(
        client
            .fetch("/network/v2.0/networks?name=done")
            .await
            .as_array()
            .unwrap()
            .len(),
        1
    );
    client
        .post(
            "/_simulator/faults",
            json!({"service": "compute", "garbage": true}),
        )
        .await;
    let got = client.get("/compute/v2.1/servers").await;
    assert_eq!((got.status, got.body), (200, Value::Null));
}

#[tokio::test]
async fn malformed_rules_are_refused() {
    let (_cloud, client) = demo().await;
    for rule in [
        json!({"colour": 1}),
        json!({}),
        json!({"status": 200}),
        json!({"count": "x", "status": 500}),
        json!([]),
    ] {
        assert_eq!(client.post("/_simulator/faults", rule).await.status, 400);
    }
}

#[tokio::test]
async fn requests_are_counted_by_route_and_the_log_has_no_secret() {
    let (cloud, client) = demo().await;
    cloud.reset_requests();
    let created = client
        .make("/network/v2.0/networks", json!({"network": {}}))
        .await;
    client
        .get(&format!("/network/v2.0/networks/{}", id(&created)))
        .await;
    client.get("/network/v2.0/networks/nope").await;
    let counts = cloud.requests();
    let of = |method: &str, route: &str| {
        counts
            .iter()
            .find(|one| one.method == method && one.route == route)
            .map(|one| one.count)
    };
    assert_eq!(of("GET", "/v2.0/networks/{id}"), Some(2));
    assert_eq!(of("POST", "/v2.0/networks"), Some(1));
    Client::login(&cloud, "demo").await;
    // Errors quote the body, and the name of the object may be misspelt while the password is not.
    let misspelt = json!({"sever": {"adminPass": "secret"}});
    let got = client.post("/compute/v2.1/servers", misspelt).await;
    assert!(
        got.status == 400 && got.text.contains("secret"),
        "{}",
        got.text
    );
    let log = client.get("/_simulator/log?limit=50").await.text;
    assert!(
        log.contains("Network nope could not be found")
            && log.contains("Invalid input for field/attribute server")
            && !log.contains("secret")
            && !log.contains(&client.token)
    );
    assert_eq!(client.delete("/_simulator/requests").await.status, 204);
    assert_eq!(cloud.requests(), []);
}

#[tokio::test]
async fn write_hooks_see_each_write_before_and_after_it() {
    let (cloud, client) = demo().await;
    let seen = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
    let (before, after) = (seen.clone(), seen.clone());
    cloud.before_write(move |write| before.lock().push((write.number, write.status)));
    cloud.on_write(move |write| after.lock().push((write.number, write.status)));
    client.get("/network/v2.0/networks").await;
    Client::login(&cloud, "demo").await;
    client
        .post("/network/v2.0/networks", json!({"network": {}}))
        .await;
    client.delete("/network/v2.0/networks/nope").await;
    assert_eq!(
        *seen.lock(),
        [(1, None), (1, Some(201)), (2, None), (2, Some(404))]
    );
}

#[tokio::test]
async fn a_chosen_server_fails_to_build() {
    let (_cloud, client) = demo().await;
    let fault =
        json!({"name_prefix": "bad", "message": "Exceeded maximum number of retries.", "count": 1});
    assert_eq!(
        client.post("/_simulator/server-faults", fault).await.status,
        201
    );
    let image = client.fetch("/image/v2/images?name=ubuntu-24.04").await;
    let mut statuses = Vec::new();
    for name in ["good", "bad-1", "bad-2"] {
        let created = client.make("/compute/v2.1/servers", json!({"server": {"name": name, "flavorRef": "2", "imageRef": image[0]["id"], "networks": "none"}})).await;
        statuses.push(
            client
                .fetch(&format!("/compute/v2.1/servers/{}", id(&created)))
                .await["status"]
                .clone(),
        );
    }
    assert_eq!(statuses, [json!("ACTIVE"), json!("ERROR"), json!("ACTIVE")]);
}

#[tokio::test]
async fn a_rule_gives_the_next_servers_of_a_name_a_fault_of_their_guests() {
    let (cloud, client) = demo().await;
    let path = "/_simulator/guest-faults";
    for wrong in [
        json!({"fault": "sulks", "count": 1}),
        json!({"fault": "joins-late", "count": 1}),
        json!({"fault": "joins-late=soon", "count": 1}),
        json!({"fault": "never-joins=1", "count": 1}),
        json!({"fault": "never-joins"}),
        json!({"fault": "never-joins", "count": 1, "prefix": "x"}),
    ] {
        assert_eq!(
            client.post(path, wrong.clone()).await.status,
            400,
            "{wrong}"
        );
    }
    let rule = json!({"name_prefix": "bad", "fault": "joins-late=30", "count": 1});
    assert_eq!(client.post(path, rule.clone()).await.status, 201);
    assert_eq!(client.fetch(path).await, json!([rule]));
    let image = client.fetch("/image/v2/images?name=ubuntu-24.04").await;
    for name in ["good", "bad-1", "bad-2"] {
        client.make("/compute/v2.1/servers", json!({"server": {"name": name, "flavorRef": "2", "imageRef": image[0]["id"], "networks": "none"}})).await;
    }
    let mut world = cloud.world();
    // A server is a guest once it is ACTIVE.
    let built = world.wait_for(|it| it.instances.len() == 3).await.unwrap();
    let mut faults: Vec<_> = built
        .instances
        .iter()
        .map(|it| {
            (
                it.name.clone(),
                crate::data_plane::GuestFault::from_instance(it),
            )
        })
        .collect();
    faults.sort_by(|one, other| one.0.cmp(&other.0));
    let late = crate::data_plane::GuestFault::JoinsLate(std::time::Duration::from_secs(30));
    assert_eq!(
        faults,
        [
            ("bad-1".to_owned(), Some(late)),
            ("bad-2".to_owned(), None),
            ("good".to_owned(), None),
        ]
    );
    assert_eq!(client.fetch(path).await, json!([]));
}
