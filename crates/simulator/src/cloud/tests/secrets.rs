use serde_json::json;

use super::*;

fn path(reference: &Value) -> String {
    let url = reference.as_str().unwrap();
    url.strip_prefix(BASE).unwrap().to_owned()
}

#[tokio::test]
async fn a_secret_is_stored_shown_without_its_payload_and_read() {
    let (_cloud, client) = demo().await;
    let body = json!({"name": "s", "payload": "hush", "payload_content_type": "text/plain"});
    let got = client.post("/key-manager/v1/secrets", body).await;
    assert_eq!(got.status, 201, "{}", got.text);
    let one = path(&got.body["secret_ref"]);
    let found = client.get(&one).await;
    assert_eq!(found.body["name"], "s");
    assert_eq!(found.body["content_types"]["default"], "text/plain");
    assert!(!found.text.contains("hush"));
    assert_eq!(client.get(&format!("{one}/payload")).await.text, "hush");
    assert_eq!(
        client.get("/key-manager/v1/secrets?name=s").await.body["total"],
        1
    );
    assert_eq!(client.delete(&one).await.status, 204);
    let gone = client.get(&one).await;
    assert_eq!(gone.status, 404);
    assert_eq!(gone.body["code"], 404);
}

#[tokio::test]
async fn bytes_come_in_base64_and_go_out_as_they_are() {
    let (_cloud, client) = demo().await;
    let body = json!({"payload": "aGk=", "payload_content_type": "application/octet-stream",
        "payload_content_encoding": "base64"});
    let got = client.post("/key-manager/v1/secrets", body).await;
    let one = path(&got.body["secret_ref"]);
    assert_eq!(client.get(&format!("{one}/payload")).await.text, "hi");
    let wrong = [("accept", "text/plain")];
    let payload = format!("{one}/payload");
    let got = client
        .send(Method::GET, &payload, &wrong, &Value::Null)
        .await;
    assert_eq!(got.status, 406);
}

#[tokio::test]
async fn a_payload_can_follow_once() {
    let (_cloud, client) = demo().await;
    let got = client.post("/key-manager/v1/secrets", json!({})).await;
    let one = path(&got.body["secret_ref"]);
    assert_eq!(client.get(&format!("{one}/payload")).await.status, 404);
    let text = [("content-type", "text/plain")];
    for status in [204, 409] {
        let got = client.send(Method::PUT, &one, &text, &json!("later")).await;
        assert_eq!(got.status, status, "{}", got.text);
    }
}

#[tokio::test]
async fn another_projects_secrets_are_not_there() {
    let (cloud, client) = demo().await;
    let admin = Client::login(&cloud, "admin").await;
    let body = json!({"payload": "hush"});
    let got = admin.post("/key-manager/v1/secrets", body).await;
    let one = path(&got.body["secret_ref"]);
    assert_eq!(client.get(&one).await.status, 404);
    assert_eq!(client.get("/key-manager/v1/secrets").await.body["total"], 0);
}

#[tokio::test]
async fn a_certificate_container_refers_to_secrets_that_exist() {
    let (_cloud, client) = demo().await;
    let got = client
        .post("/key-manager/v1/secrets", json!({"payload": "pem"}))
        .await;
    let secret = got.body["secret_ref"].clone();
    for (kind, name, reference, status) in [
        ("certificate", "certificate", secret.clone(), 201),
        ("certificate", "private_key", secret.clone(), 400),
        ("certificate", "other", secret.clone(), 400),
        ("nonsense", "certificate", secret.clone(), 400),
        ("generic", "any", json!("http://simulated/nothing"), 404),
    ] {
        let body = json!({"type": kind, "secret_refs": [{"name": name, "secret_ref": reference}]});
        let got = client.post("/key-manager/v1/containers", body).await;
        assert_eq!(got.status, status, "{kind} {name}: {}", got.text);
    }
    let list = client.get("/key-manager/v1/containers").await;
    let one = path(&list.body["containers"][0]["container_ref"]);
    assert_eq!(client.get(&one).await.body["type"], "certificate");
    assert_eq!(client.delete(&one).await.status, 204);
}
