use serde_json::json;

use super::*;

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
    let made = client
        .make(
            &path,
            json!({"volume": {"size": 1, "name": "v", "volume_type": "ssd"}}),
        )
        .await;
    let one = format!("{path}/{}", id(&made));
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
