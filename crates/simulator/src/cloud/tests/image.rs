use serde_json::json;

use super::*;

const PATCH: [(&str, &str); 1] = [(
    "content-type",
    "application/openstack-images-v2.1-json-patch",
)];

async fn image(client: &Client, name: &str) -> String {
    let body = json!({"name": name, "disk_format": "raw", "container_format": "bare"});
    let got = client.post("/image/v2/images", body).await;
    assert_eq!(got.status, 201, "{}", got.text);
    format!("/image/v2/images/{}", got.body["id"].as_str().unwrap())
}

#[tokio::test]
async fn an_image_is_changed_by_a_patch() {
    let (_cloud, client) = demo().await;
    let one = image(&client, "i").await;
    for (operation, status) in [
        (
            json!({"op": "add", "path": "/os_distro", "value": "debian"}),
            200,
        ),
        (
            json!({"op": "replace", "path": "/os_distro", "value": "ubuntu"}),
            200,
        ),
        (
            json!({"op": "replace", "path": "/tags", "value": ["a"]}),
            200,
        ),
        (
            json!({"op": "replace", "path": "/absent", "value": "x"}),
            409,
        ),
        (json!({"op": "remove", "path": "/absent"}), 409),
        (json!({"op": "remove", "path": "/name"}), 403),
        (
            json!({"op": "replace", "path": "/status", "value": "active"}),
            403,
        ),
        (
            json!({"op": "replace", "path": "/visibility", "value": "public"}),
            403,
        ),
        (
            json!({"op": "replace", "path": "/visibility", "value": "nobody"}),
            400,
        ),
        (
            json!({"op": "add", "path": "/min_disk", "value": "many"}),
            400,
        ),
        (json!({"op": "add", "path": "/_secret", "value": "x"}), 403),
        (json!({"op": "move", "path": "/name"}), 400),
        (json!({"op": "add", "path": "name", "value": "x"}), 400),
    ] {
        let body = json!([operation]);
        let got = client.send(Method::PATCH, &one, &PATCH, &body).await;
        assert_eq!(got.status, status, "{operation}: {}", got.text);
    }
    let found = client.get(&one).await.body;
    assert_eq!(found["os_distro"], "ubuntu");
    assert_eq!(found["tags"], json!(["a"]));
    let plain = client.send(Method::PATCH, &one, &[], &json!([])).await;
    assert_eq!(plain.status, 415);
}

#[tokio::test]
async fn a_shared_image_is_seen_by_members_and_listed_once_accepted() {
    let (cloud, client) = demo().await;
    let admin = Client::login(&cloud, "admin").await;
    let one = image(&admin, "shared").await;
    assert_eq!(client.get(&one).await.status, 404);
    let members = format!("{one}/members");
    let body = json!({"member": client.project});
    assert_eq!(admin.post(&members, body.clone()).await.status, 200);
    assert_eq!(admin.post(&members, body).await.status, 409);
    assert_eq!(client.get(&one).await.status, 200);
    let mine = "/image/v2/images?visibility=shared";
    assert_eq!(client.fetch(mine).await, json!([]));
    let member = format!("{members}/{}", client.project);
    let wrong = client.put(&member, json!({"status": "maybe"})).await;
    assert_eq!(wrong.status, 400);
    let got = client.put(&member, json!({"status": "accepted"})).await;
    assert_eq!(got.body["status"], "accepted", "{}", got.text);
    assert_eq!(client.fetch(mine).await.as_array().unwrap().len(), 1);
    assert_eq!(client.delete(&one).await.status, 403);
    assert_eq!(admin.delete(&member).await.status, 204);
    assert_eq!(client.get(&one).await.status, 404);
}

#[tokio::test]
async fn small_data_is_given_back() {
    let (_cloud, client) = demo().await;
    let one = image(&client, "i").await;
    let file = format!("{one}/file");
    assert_eq!(client.get(&file).await.status, 204);
    assert_eq!(client.put(&file, json!("data")).await.status, 204);
    assert_eq!(client.get(&file).await.text, "\"data\"");
    let found = client.get(&one).await.body;
    assert_eq!(
        (&found["status"], &found["size"]),
        (&json!("active"), &json!(6))
    );
    assert_eq!(found["os_hash_value"].as_str().unwrap().len(), 128);
    assert_eq!(client.put(&file, json!("more")).await.status, 409);
}
