//! Volume types: specs, access, and the effects of encryption.

use serde_json::json;

use super::*;

async fn new_type(admin: &Client, fields: Value) -> String {
    let body = json!({"volume_type": fields});
    let got = admin.cinder("3.0", Method::POST, "types", body).await;
    assert_eq!(got.status, 200, "{}", got.text);
    id(&got.body["volume_type"])
}

#[tokio::test]
async fn members_see_the_specs_that_matter_to_them() {
    let (cloud, client) = demo().await;
    let admin = Client::login(&cloud, "admin").await;
    let specs = json!({"multiattach": "<is> True", "volume_backend_name": "ceph", "RESKEY:availability_zones": "az1,az2"});
    let kind = new_type(&admin, json!({"name": "t", "extra_specs": specs})).await;
    let path = format!("types/{kind}/extra_specs");
    for (who, count) in [(&client, 2), (&admin, 3)] {
        let got = who.cinder("3.0", Method::GET, &path, Value::Null).await;
        assert_eq!(got.body["extra_specs"].as_object().unwrap().len(), count);
        let got = who
            .cinder("3.0", Method::GET, &format!("types/{kind}"), Value::Null)
            .await;
        let found = got.body["volume_type"]["extra_specs"]
            .as_object()
            .unwrap()
            .len();
        assert_eq!(found, count);
    }
    let one = format!("{path}/multiattach");
    let got = client.cinder("3.0", Method::GET, &one, Value::Null).await;
    assert_eq!(got.body, json!({"multiattach": "<is> True"}));
    let got = client
        .cinder(
            "3.0",
            Method::POST,
            &path,
            json!({"extra_specs": {"a": "b"}}),
        )
        .await;
    assert_eq!(got.status, 403);
    let got = admin
        .cinder(
            "3.0",
            Method::POST,
            &path,
            json!({"extra_specs": {"a": "b"}}),
        )
        .await;
    assert_eq!(got.status, 200, "{}", got.text);
    // The type is offered in two of three zones.
    let volume = json!({"volume": {"size": 1, "volume_type": "t", "availability_zone": "nova"}});
    let got = client.cinder("3.0", Method::POST, "volumes", volume).await;
    assert_eq!(got.status, 400, "{}", got.text);
    let volume = client
        .new_volume(json!({"size": 1, "volume_type": "t"}))
        .await;
    assert_eq!(client.volume(&volume).await["availability_zone"], "az1");
    // The type is in use now.
    for (method, path) in [
        (Method::DELETE, one),
        (Method::DELETE, format!("types/{kind}")),
    ] {
        let got = admin.cinder("3.0", method, &path, Value::Null).await;
        assert_eq!(got.status, 400, "{path}: {}", got.text);
    }
}

#[tokio::test]
async fn a_private_type_is_for_the_projects_that_have_access() {
    let (cloud, client) = demo().await;
    let admin = Client::login(&cloud, "admin").await;
    let private = json!({"name": "t", "os-volume-type-access:is_public": false});
    let kind = new_type(&admin, private).await;
    let names = async || {
        let got = client
            .cinder("3.0", Method::GET, "types", Value::Null)
            .await;
        let all = got.body["volume_types"].as_array().unwrap().clone();
        all.iter().any(|one| one["name"] == "t")
    };
    let create = async || {
        let body = json!({"volume": {"size": 1, "volume_type": "t"}});
        client
            .cinder("3.0", Method::POST, "volumes", body)
            .await
            .status
    };
    assert!(!names().await);
    assert_eq!(create().await, 404);
    let action = format!("types/{kind}/action");
    let change = async |name: &str| {
        let body = json!({name: {"project": client.project}});
        admin
            .cinder("3.0", Method::POST, &action, body)
            .await
            .status
    };
    assert_eq!(change("removeProjectAccess").await, 404);
    assert_eq!(change("addProjectAccess").await, 202);
    assert_eq!(change("addProjectAccess").await, 409);
    let path = format!("types/{kind}/os-volume-type-access");
    let got = admin.cinder("3.0", Method::GET, &path, Value::Null).await;
    assert_eq!(
        got.body["volume_type_access"][0]["project_id"],
        client.project.as_str()
    );
    assert!(names().await);
    assert_eq!(create().await, 202);
    assert_eq!(change("removeProjectAccess").await, 202);
    assert_eq!(create().await, 404);
}

#[tokio::test]
async fn volumes_of_an_encrypted_type_are_encrypted() {
    let (cloud, client) = demo().await;
    let admin = Client::login(&cloud, "admin").await;
    let kind = new_type(&admin, json!({"name": "t"})).await;
    let path = format!("types/{kind}/encryption");
    let settings = json!({"encryption": {"provider": "luks", "cipher": "aes-xts-plain64", "key_size": 256,
        "control_location": "front-end"}});
    let got = client
        .cinder("3.0", Method::POST, &path, settings.clone())
        .await;
    assert_eq!(got.status, 403);
    let got = admin
        .cinder("3.0", Method::POST, &path, settings.clone())
        .await;
    assert_eq!(got.status, 200, "{}", got.text);
    let again = admin.cinder("3.0", Method::POST, &path, settings).await;
    assert_eq!(again.status, 400, "{}", again.text);
    let plain = client.new_volume(json!({"size": 1})).await;
    let secret = client
        .new_volume(json!({"size": 1, "volume_type": "t"}))
        .await;
    assert_eq!(client.volume(&plain).await["encrypted"], false);
    let doc = client.volume(&secret).await;
    assert_eq!(doc["encrypted"], true);
    assert!(doc["encryption_key_id"].is_string());
    // The type marks each of its volumes as encrypted.
    let standard = json!({"encryption": {"provider": "luks", "control_location": "front-end"}});
    let got = admin
        .cinder(
            "3.0",
            Method::POST,
            "types/__DEFAULT__/encryption",
            standard,
        )
        .await;
    assert_eq!(got.status, 400, "{}", got.text);
    assert!(got.text.contains("Volume type in use"), "{}", got.text);
    let settings = admin.cinder("3.0", Method::GET, &path, Value::Null).await;
    let id = settings.body["encryption_id"].as_str().unwrap().to_owned();
    let one = format!("{path}/{id}");
    let got = admin.cinder("3.0", Method::DELETE, &one, Value::Null).await;
    assert_eq!(got.status, 400, "{}", got.text);
    // A copy stays as its source is.
    let copy = json!({"volume": {"source_volid": secret, "volume_type": "fast"}});
    let got = client.cinder("3.0", Method::POST, "volumes", copy).await;
    assert_eq!(got.status, 400, "{}", got.text);
    assert!(
        got.text.contains("requested type is not compatible"),
        "{}",
        got.text
    );
    let copy = client.new_volume(json!({"source_volid": secret})).await;
    assert_eq!(client.volume(&copy).await["encrypted"], true);
    // A change of type takes the mark away.
    let retype = json!({"os-retype": {"new_type": "standard", "migration_policy": "on-demand"}});
    assert_eq!(client.act(&copy, retype).await.0, 202);
    assert_eq!(client.volume(&copy).await["volume_type"], "standard");
    assert_eq!(client.volume(&copy).await["encrypted"], false);
}
