use serde_json::json;

use super::*;

async fn volume(client: &Client, size: i64) -> String {
    let path = format!("/volume/v3/{}/volumes", client.project);
    let created = client
        .make(&path, json!({"volume": {"size": size, "name": "v"}}))
        .await;
    id(&created)
}

#[tokio::test]
async fn a_volume_is_backed_up_and_restored_to_a_new_one() {
    let (cloud, client) = demo().await;
    let path = format!("/volume/v3/{}/backups", client.project);
    let source = volume(&client, 2).await;
    let created = client
        .make(&path, json!({"backup": {"volume_id": source, "name": "b"}}))
        .await;
    let one = format!("{path}/{}", id(&created));
    let found = client.fetch(&one).await;
    assert_eq!(found["status"], "available");
    assert_eq!(found["size"], 2);
    assert_eq!(found["has_dependent_backups"], false);
    let volumes = format!("/volume/v3/{}/volumes", client.project);
    let after = client.fetch(&format!("{volumes}/{source}")).await;
    assert_eq!(after["status"], "available");
    let got = client
        .post(&format!("{one}/restore"), json!({"restore": {}}))
        .await;
    assert_eq!(got.status, 202, "{}", got.text);
    let target = got.body["restore"]["volume_id"].as_str().unwrap();
    let restored = client.fetch(&format!("{volumes}/{target}")).await;
    assert_eq!(
        (&restored["status"], &restored["size"]),
        (&json!("available"), &json!(2))
    );
    assert_eq!(cloud.resources()["demo"]["backup"], 1);
    assert_eq!(client.delete(&one).await.status, 202);
    assert_eq!(client.get(&one).await.status, 404);
}

#[tokio::test]
async fn an_incremental_backup_keeps_the_one_it_builds_on() {
    let (_cloud, client) = demo().await;
    let path = format!("/volume/v3/{}/backups", client.project);
    let source = volume(&client, 1).await;
    let body = json!({"backup": {"volume_id": source, "incremental": true}});
    assert_eq!(client.post(&path, body.clone()).await.status, 400);
    let full = client
        .make(&path, json!({"backup": {"volume_id": source}}))
        .await;
    let part = client.make(&path, body).await;
    let [full, part] = [full, part].map(|created| format!("{path}/{}", id(&created)));
    assert_eq!(client.fetch(&full).await["has_dependent_backups"], true);
    assert_eq!(client.delete(&full).await.status, 400);
    assert_eq!(client.delete(&part).await.status, 202);
    assert_eq!(client.delete(&full).await.status, 202);
}

#[tokio::test]
async fn backups_are_refused_as_cinder_refuses_them() {
    let (_cloud, client) = demo().await;
    let path = format!("/volume/v3/{}/backups", client.project);
    let (small, large) = (volume(&client, 1).await, volume(&client, 2).await);
    for (body, status) in [
        (json!({"backup": {"volume_id": "nope"}}), 404),
        (
            json!({"backup": {"volume_id": small, "snapshot_id": "nope"}}),
            404,
        ),
        (json!({}), 400),
    ] {
        assert_eq!(
            client.post(&path, body.clone()).await.status,
            status,
            "{body}"
        );
    }
    let created = client
        .make(&path, json!({"backup": {"volume_id": large}}))
        .await;
    let restore = format!("{path}/{}/restore", id(&created));
    for (volume, status) in [(small.as_str(), 400), ("nope", 404), (large.as_str(), 202)] {
        let got = client
            .post(&restore, json!({"restore": {"volume_id": volume}}))
            .await;
        assert_eq!(got.status, status, "{volume}: {}", got.text);
    }
}
