//! `rebuild` of servers, as Nova Zed does it.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::cloud::{Latency, Timings};

const AT: &str = "2.93";

async fn images(client: &Client) -> [String; 2] {
    let mut ids = Vec::new();
    for name in ["ubuntu-24.04", "ubuntu-2404-kube-v1.34.2"] {
        let found = client.fetch(&format!("/image/v2/images?name={name}")).await;
        ids.push(id(&found[0]));
    }
    [ids[0].clone(), ids[1].clone()]
}

async fn act(client: &Client, version: &str, server: &str, body: Value) -> Got {
    let path = format!("/compute/v2.1/servers/{server}/action");
    let version = format!("compute {version}");
    let headers = [("openstack-api-version", version.as_str())];
    let body = json!({ "rebuild": body });
    client.send(Method::POST, &path, &headers, &body).await
}

async fn server(client: &Client, id: &str) -> Value {
    client.fetch(&format!("/compute/v2.1/servers/{id}")).await
}

async fn make(client: &Client, image: &str) -> String {
    let net = net(client, "10.6.0.0/24").await;
    let body = json!({"server": {"name": "a", "flavorRef": "2", "imageRef": image, "metadata": {"kept": "no"},
        "user_data": "b25l", "networks": [{"uuid": net.network}]}});
    id(&client.make("/compute/v2.1/servers", body).await)
}

#[tokio::test]
async fn a_rebuilt_server_keeps_id_addresses_and_host_and_has_other_image_user_data_and_metadata() {
    let (cloud, client) = demo().await;
    let [old, new] = images(&client).await;
    let id = make(&client, &old).await;
    let before = server(&client, &id).await;
    assert_eq!(before["status"], "ACTIVE");
    let was = cloud.world().borrow().instances[0].clone();
    let body = json!({"imageRef": new, "user_data": "dHdv", "metadata": {"generation": "2"}});
    let got = act(&client, AT, &id, body).await;
    assert_eq!(got.status, 202, "{}", got.text);
    let accepted = &got.body["server"];
    assert_eq!(accepted["status"], "REBUILD");
    assert_eq!(accepted["OS-EXT-STS:task_state"], "rebuilding");
    assert_eq!(accepted["metadata"], json!({"generation": "2"}));
    assert_eq!(accepted["image"]["id"], json!(new));
    assert!(accepted["adminPass"].is_string());
    let after = server(&client, &id).await;
    assert_eq!(after["status"], "ACTIVE");
    for same in ["id", "addresses", "hostId", "name", "tenant_id", "created"] {
        assert_eq!(before[same], after[same], "{same}");
    }
    let is = cloud.world().borrow().instances[0].clone();
    assert_eq!((was.disk + 1, was.boot + 1), (is.disk, is.boot));
    assert_eq!(is.user_data.as_deref(), Some(&b"two"[..]));
    assert_eq!(
        (was.image.as_str(), is.image.as_str()),
        ("ubuntu-24.04", "ubuntu-2404-kube-v1.34.2")
    );
}

#[tokio::test]
async fn refusals_of_a_rebuild_are_novas() {
    let (_cloud, client) = demo().await;
    let [old, new] = images(&client).await;
    let id = make(&client, &old).await;
    let rows = [
        (
            "2.56",
            json!({"imageRef": new, "user_data": "dHdv"}),
            400,
            "'user_data' was unexpected",
        ),
        (
            "2.57",
            json!({"imageRef": new, "personality": []}),
            400,
            "'personality' was unexpected",
        ),
        (
            "2.57",
            json!({"user_data": "dHdv"}),
            400,
            "'imageRef' is a required property",
        ),
        ("2.57", json!({"imageRef": "nope"}), 400, "is not a 'uuid'"),
        (
            "2.57",
            json!({"imageRef": id}),
            400,
            "Cannot find image for rebuild",
        ),
        (
            "2.57",
            json!({"imageRef": new, "user_data": "%%%"}),
            400,
            "base64",
        ),
        (
            "2.57",
            json!({"imageRef": new, "user_data": "A".repeat(65_540)}),
            400,
            "user_data",
        ),
        (
            "2.57",
            json!({"imageRef": new, "metadata": {"a": 1}}),
            400,
            "a",
        ),
        (
            "2.57",
            json!({"imageRef": new, "metadata": {"a/b": "1"}}),
            400,
            "a/b",
        ),
        (
            "2.57",
            json!({"imageRef": new, "key_name": "nope"}),
            400,
            "Invalid key_name",
        ),
        (
            "2.53",
            json!({"imageRef": new, "key_name": "nope"}),
            400,
            "'key_name' was unexpected",
        ),
        (
            "2.57",
            json!({"imageRef": new, "networks": []}),
            400,
            "'networks' was unexpected",
        ),
    ];
    for (version, body, status, message) in rows {
        let got = act(&client, version, &id, body.clone()).await;
        assert_eq!(got.status, status, "{body}: {}", got.text);
        assert!(got.text.contains(message), "{body}: {}", got.text);
    }
    assert_eq!(server(&client, &id).await["image"]["id"], json!(old));
}

#[tokio::test]
async fn a_server_in_the_midst_of_something_is_not_rebuilt() {
    let timings = Timings {
        server_create: Duration::from_secs(60),
        ..Timings::default()
    };
    let options = Options {
        latency: Latency::Custom(Box::new(timings)),
        ..Options::default()
    };
    let cloud = Cloud::open(options).await.unwrap();
    let client = Client::login(&cloud, "demo").await;
    let [old, new] = images(&client).await;
    let id = make(&client, &old).await;
    let body = json!({"imageRef": new});
    let got = act(&client, AT, &id, body.clone()).await;
    assert_eq!(got.status, 409, "{}", got.text);
    assert!(got.text.contains("task_state spawning"), "{}", got.text);
    cloud.advance_clock(Duration::from_secs(61));
    assert_eq!(act(&client, AT, &id, body.clone()).await.status, 202);
    assert_eq!(server(&client, &id).await["status"], "REBUILD");
    let got = act(&client, AT, &id, body).await;
    assert_eq!(got.status, 409, "{}", got.text);
    assert!(got.text.contains("task_state rebuilding"), "{}", got.text);
}

#[tokio::test]
async fn a_root_volume_gets_another_image_since_zed() {
    let (_cloud, client) = demo().await;
    let [old, new] = images(&client).await;
    let net = net(&client, "10.6.0.0/24").await;
    let body = json!({"server": {"name": "a", "flavorRef": "2", "networks": [{"uuid": net.network}],
        "block_device_mapping_v2": [{"boot_index": 0, "uuid": old, "source_type": "image",
            "destination_type": "volume", "volume_size": 20}]}});
    let id = id(&client.make("/compute/v2.1/servers", body).await);
    assert_eq!(server(&client, &id).await["status"], "ACTIVE");
    let got = act(&client, "2.92", &id, json!({"imageRef": new})).await;
    assert_eq!(got.status, 400, "{}", got.text);
    assert!(got.text.contains("volume-backed"), "{}", got.text);
    assert_eq!(
        act(&client, "2.92", &id, json!({"imageRef": old}))
            .await
            .status,
        202
    );
    assert_eq!(server(&client, &id).await["status"], "ACTIVE");
    let got = act(&client, AT, &id, json!({"imageRef": new})).await;
    assert_eq!(got.status, 202, "{}", got.text);
    assert_eq!(server(&client, &id).await["image"], "");
}

#[tokio::test]
async fn a_rebuild_that_fails_leaves_an_error_and_can_be_repeated() {
    let (_cloud, client) = demo().await;
    let [old, new] = images(&client).await;
    let id = make(&client, &old).await;
    assert_eq!(server(&client, &id).await["status"], "ACTIVE");
    let fault = json!({"name_prefix": "a", "message": "the image cannot be converted", "count": 1});
    let planted = client.post("/_simulator/server-faults", fault).await;
    assert!(planted.status < 300, "{}", planted.text);
    let body = json!({"imageRef": new, "metadata": {"generation": "2"}});
    assert_eq!(act(&client, AT, &id, body.clone()).await.status, 202);
    let failed = server(&client, &id).await;
    assert_eq!(failed["status"], "ERROR");
    assert_eq!(failed["fault"]["message"], "the image cannot be converted");
    assert_eq!(failed["metadata"], json!({"generation": "2"}));
    assert_eq!(act(&client, AT, &id, body).await.status, 202);
    let after = server(&client, &id).await;
    assert_eq!(
        (&after["status"], after.get("fault")),
        (&json!("ACTIVE"), None)
    );
}
