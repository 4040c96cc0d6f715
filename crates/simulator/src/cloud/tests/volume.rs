use serde_json::json;

use super::*;

#[tokio::test]
async fn cinder_refuses_a_version_of_another_service_alone() {
    let (_cloud, client) = demo().await;
    let path = format!("/volume/v3/{}/volumes", client.project);
    let both = "compute 2.60, volume 3.27";
    for (version, status, answered) in [
        ("compute 2.60", 400, None),
        (both, 200, Some("volume 3.27")),
    ] {
        let headers = [("openstack-api-version", version)];
        let got = client
            .send(Method::GET, &path, &headers, &Value::Null)
            .await;
        assert_eq!(got.status, status, "{version}: {}", got.text);
        let answer = got.headers.get("openstack-api-version");
        assert_eq!(answer.map(|it| it.to_str().unwrap()), answered);
    }
}

#[tokio::test]
async fn volumes_are_made_listed_extended_and_deleted() {
    let (cloud, client) = demo().await;
    let before = cloud.resources();
    let path = format!("/volume/v3/{}/volumes", client.project);
    for (body, status) in [
        (json!({"volume": {}}), 400),
        (json!({"volume": {"size": 0}}), 400),
        (json!({"volume": {"size": 1, "volume_type": "nope"}}), 404),
        (
            json!({"volume": {"size": 1, "availability_zone": "nope"}}),
            400,
        ),
    ] {
        let got = client.post(&path, body).await;
        assert_eq!(got.status, status, "{}", got.text);
    }
    let created = client
        .make(
            &path,
            json!({"volume": {"size": 1, "name": "v", "volume_type": "fast"}}),
        )
        .await;
    let one = format!("{path}/{}", id(&created));
    assert_eq!(client.fetch(&one).await["status"], "available");
    assert_eq!(
        client
            .fetch(&format!("{path}/detail?name=v&status=available"))
            .await
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        client
            .post(
                &format!("{one}/action"),
                json!({"os-extend": {"new_size": 3}})
            )
            .await
            .status,
        202
    );
    let limits = client
        .fetch(&format!("/volume/v3/{}/limits", client.project))
        .await;
    assert_eq!(limits["absolute"]["totalGigabytesUsed"], 3);
    assert_eq!(client.delete(&one).await.status, 202);
    assert_eq!(client.get(&one).await.status, 404);
    assert_eq!(cloud.resources(), before);
}

#[tokio::test]
async fn cinder_tells_attachments_and_reserves_volumes() {
    let (_cloud, client) = demo().await;
    let volume = |rest: &str| format!("/volume/v3/{}/{rest}", client.project);
    let created = client
        .make(&volume("volumes"), json!({"volume": {"size": 1}}))
        .await;
    let headers = [("openstack-api-version", "volume 3.27")];
    let send = async |method: Method, rest: &str, body: Value| {
        client.send(method, &volume(rest), &headers, &body).await
    };
    let old = client.get(&volume("attachments")).await;
    assert_eq!(old.status, 404, "{}", old.text);
    let body =
        json!({"attachment": {"volume_uuid": created["id"], "instance_uuid": created["id"]}});
    let got = send(Method::POST, "attachments", body.clone()).await;
    assert_eq!(got.status, 200, "{}", got.text);
    let one = format!("attachments/{}", id(&got.body["attachment"]));
    let another =
        json!({"attachment": {"volume_uuid": created["id"], "instance_uuid": client.project}});
    let got = send(Method::POST, "attachments", another).await;
    assert_eq!(got.status, 400, "reserved for another: {}", got.text);
    let got = send(Method::POST, "attachments", body).await;
    assert_eq!(got.status, 200, "reserved again: {}", got.text);
    let again = format!("attachments/{}", id(&got.body["attachment"]));
    assert_eq!(send(Method::DELETE, &again, Value::Null).await.status, 200);
    let listed = send(Method::GET, "attachments?status=reserved", Value::Null).await;
    assert_eq!(listed.body["attachments"][0]["volume_id"], created["id"]);
    let found = send(Method::GET, &one, Value::Null).await;
    assert_eq!(found.body["attachment"]["status"], "reserved");
    assert_eq!(send(Method::DELETE, &one, Value::Null).await.status, 200);
    assert_eq!(send(Method::GET, &one, Value::Null).await.status, 404);
    let server = json!({"server": {"name": "s", "flavorRef": "1", "networks": "none",
        "block_device_mapping_v2": [{"boot_index": 0, "source_type": "volume",
            "destination_type": "volume", "uuid": created["id"]}]}});
    let server = id(&client.make("/compute/v2.1/servers", server).await);
    let at = format!("attachments/detail?instance_id={server}");
    let listed = send(Method::GET, &at, Value::Null).await;
    let one = format!("attachments/{}", id(&listed.body["attachments"][0]));
    let refused = send(Method::DELETE, &one, Value::Null).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
}

#[tokio::test]
async fn an_attachment_that_a_client_makes_itself_is_in_use_and_ends() {
    let (_cloud, client) = demo().await;
    let volume = |rest: &str| format!("/volume/v3/{}/{rest}", client.project);
    let created = client
        .make(&volume("volumes"), json!({"volume": {"size": 1}}))
        .await;
    let headers = [("openstack-api-version", "volume 3.44")];
    let send = async |method: Method, rest: &str, body: Value| {
        client.send(method, &volume(rest), &headers, &body).await
    };
    let found = format!("volumes/{}", id(&created));
    let body =
        json!({"attachment": {"volume_uuid": created["id"], "instance_uuid": created["id"]}});
    let got = send(Method::POST, "attachments", body).await;
    let one = format!("attachments/{}", id(&got.body["attachment"]));
    let empty = send(Method::PUT, &one, json!({"attachment": {"connector": {}}})).await;
    assert_eq!(empty.status, 400, "{}", empty.text);
    let connector = json!({"attachment": {"connector": {"host": "h", "mountpoint": "/dev/vdb"}}});
    assert_eq!(send(Method::PUT, &one, connector).await.status, 200);
    let got = send(Method::GET, &one, Value::Null).await;
    assert_eq!(got.body["attachment"]["status"], "attaching");
    let action = format!("{one}/action");
    let done = json!({"os-complete": {}});
    assert_eq!(send(Method::POST, &action, done).await.status, 204);
    let got = client.fetch(&volume(&found)).await;
    assert_eq!(got["status"], "in-use");
    assert_eq!(got["attachments"][0]["device"], "/dev/vdb");
    assert_eq!(send(Method::DELETE, &one, Value::Null).await.status, 200);
    let got = client.fetch(&volume(&found)).await;
    assert_eq!(got["status"], "available");
    assert_eq!(got["attachments"], json!([]));
}

#[tokio::test]
async fn only_a_volume_of_a_shared_type_is_attached_to_two_servers() {
    let (_cloud, client) = demo().await;
    let mut servers = Vec::new();
    for name in ["a", "b"] {
        let image = id(&client.fetch("/image/v2/images?name=ubuntu-24.04").await[0]);
        let server = json!({"server": {"name": name, "flavorRef": "1", "imageRef": image, "networks": "none"}});
        servers.push(id(&client.make("/compute/v2.1/servers", server).await));
    }
    let volumes = format!("/volume/v3/{}/volumes", client.project);
    for (kind, version, second) in [
        ("standard", "2.60", 400),
        ("shared", "2.60", 200),
        ("shared", "2.59", 400),
    ] {
        let created = client
            .make(
                &volumes,
                json!({"volume": {"size": 1, "volume_type": kind}}),
            )
            .await;
        let version = format!("compute {version}");
        let attach = async |server: &str| {
            let path = format!("/compute/v2.1/servers/{server}/os-volume_attachments");
            let headers = [("openstack-api-version", version.as_str())];
            let body = json!({"volumeAttachment": {"volumeId": created["id"]}});
            client.send(Method::POST, &path, &headers, &body).await
        };
        let first = attach(&servers[0]).await.status;
        assert_eq!(first, if version.ends_with("59") { 400 } else { 200 });
        assert_eq!(attach(&servers[1]).await.status, second, "{kind} {version}");
    }
}

#[tokio::test]
async fn a_volume_made_with_null_as_metadata_has_none() {
    let (_cloud, client) = demo().await;
    let path = format!("/volume/v3/{}/volumes", client.project);
    let body = json!({"volume": {"size": 1, "metadata": null}});
    let volume = client.make(&path, body).await;
    assert_eq!(volume["metadata"], json!({}));
}
