//! Groups of volumes, their types and their snapshots.

use serde_json::json;

use super::*;

/// A cloud with a group type and a group for volumes of the type `fast`; returns the group's id.
async fn group() -> (Cloud, Client, Client, String) {
    let (cloud, client, admin) = slow_volumes().await;
    let body = json!({"group_type": {"name": "consistent",
        "group_specs": {"consistent_group_snapshot_enabled": "<is> True"}}});
    let got = client
        .cinder("3.11", Method::POST, "group_types", body.clone())
        .await;
    assert_eq!(got.status, 403, "{}", got.text);
    let got = admin
        .cinder("3.10", Method::POST, "group_types", body.clone())
        .await;
    assert_eq!(got.status, 404, "{}", got.text);
    let got = admin
        .cinder("3.11", Method::POST, "group_types", body)
        .await;
    assert_eq!(got.status, 202, "{}", got.text);
    let body =
        json!({"group": {"name": "g", "group_type": "consistent", "volume_types": ["fast"]}});
    let got = client
        .cinder("3.12", Method::POST, "groups", body.clone())
        .await;
    assert_eq!(got.status, 404, "{}", got.text);
    let got = client.cinder("3.13", Method::POST, "groups", body).await;
    assert_eq!(got.status, 202, "{}", got.text);
    let group = id(&got.body["group"]);
    (cloud, client, admin, group)
}

async fn show(client: &Client, group: &str) -> Value {
    let path = format!("groups/{group}?list_volume=true");
    let got = client.cinder("3.25", Method::GET, &path, Value::Null).await;
    got.body["group"].clone()
}

#[tokio::test]
async fn members_see_group_types_without_their_specs() {
    let (_cloud, client, admin, _) = group().await;
    for (who, specs) in [(&client, false), (&admin, true)] {
        let got = who
            .cinder("3.11", Method::GET, "group_types", Value::Null)
            .await;
        let one = &got.body["group_types"][0];
        assert_eq!(one["name"], "consistent");
        assert_eq!(one.get("group_specs").is_some(), specs);
    }
    let got = admin
        .cinder("3.11", Method::GET, "group_types", Value::Null)
        .await;
    let path = format!("group_types/{}", id(&got.body["group_types"][0]));
    let got = admin
        .cinder("3.11", Method::DELETE, &path, Value::Null)
        .await;
    assert_eq!(got.status, 400, "{}", got.text);
}

#[tokio::test]
async fn a_volume_is_created_in_a_group_joins_one_and_leaves_it() {
    let (cloud, client, _, group) = group().await;
    assert_eq!(show(&client, &group).await["status"], "creating");
    cloud.advance_clock(STEP);
    assert_eq!(show(&client, &group).await["status"], "available");
    for (fields, words) in [
        (
            json!({"size": 1, "group_id": group}),
            "volume_type must be provided when creating a volume in a group.",
        ),
        (
            json!({"size": 1, "group_id": group, "volume_type": "standard"}),
            "(requested type must be supported by this group)",
        ),
    ] {
        let got = client
            .cinder("3.13", Method::POST, "volumes", json!({"volume": fields}))
            .await;
        assert_eq!(got.status, 400, "{}", got.text);
        assert!(got.text.contains(words), "{}", got.text);
    }
    let inside = client
        .new_volume(json!({"size": 1, "group_id": group, "volume_type": "fast"}))
        .await;
    let beside = json!({"volume": {"size": 1, "volume_type": "fast"},
        "OS-SCH-HNT:scheduler_hints": {"same_host": inside}});
    let got = client.cinder("3.60", Method::POST, "volumes", beside).await;
    let outside = id(&got.body["volume"]);
    assert_eq!(client.volume(&inside).await["group_id"], group.as_str());
    let path = format!("groups/{group}");
    let put = async |fields: Value| {
        client
            .cinder("3.13", Method::PUT, &path, json!({"group": fields}))
            .await
    };
    let early = put(json!({"add_volumes": outside})).await;
    assert_eq!(early.status, 400, "{}", early.text);
    assert!(
        early.text.contains("is in an invalid state: creating"),
        "{}",
        early.text
    );
    cloud.advance_clock(STEP);
    assert_eq!(put(json!({"add_volumes": outside})).await.status, 202);
    assert_eq!(show(&client, &group).await["status"], "updating");
    assert_eq!(put(json!({"remove_volumes": inside})).await.status, 400);
    cloud.advance_clock(STEP);
    let now = show(&client, &group).await;
    assert_eq!(now["volumes"].as_array().unwrap().len(), 2);
    // A volume of a group is neither deleted nor made one of another type.
    let one = format!("volumes/{inside}");
    assert_eq!(
        client
            .cinder("3.0", Method::DELETE, &one, Value::Null)
            .await
            .status,
        400
    );
    let retype = json!({"os-retype": {"new_type": "standard"}});
    assert_eq!(client.act(&inside, retype).await.0, 400);
    assert_eq!(put(json!({"remove_volumes": inside})).await.status, 202);
    cloud.advance_clock(STEP);
    assert_eq!(client.volume(&inside).await["group_id"], Value::Null);
    let delete = async |with_volumes: bool| {
        let action = format!("groups/{group}/action");
        let body = json!({"delete": {"delete-volumes": with_volumes}});
        client
            .cinder("3.13", Method::POST, &action, body)
            .await
            .status
    };
    assert_eq!(delete(false).await, 400);
    assert_eq!(delete(true).await, 202);
    assert_eq!(client.status(&outside).await, "deleting");
    cloud.advance_clock(STEP);
    assert_eq!(client.status(&outside).await, "-");
    assert_eq!(client.status(&inside).await, "available");
    assert_eq!(show(&client, &group).await, Value::Null);
}

#[tokio::test]
async fn a_snapshot_of_a_group_has_one_of_each_volume_which_go_together() {
    let (cloud, client, _, group) = group().await;
    cloud.advance_clock(STEP);
    let mut volumes = Vec::new();
    for _ in 0..2 {
        let fields = json!({"size": 1, "group_id": group, "volume_type": "fast"});
        volumes.push(client.new_volume(fields).await);
    }
    let body = json!({"group_snapshot": {"group_id": group, "name": "s"}});
    let post = async |version: &str| {
        client
            .cinder(version, Method::POST, "group_snapshots", body.clone())
            .await
    };
    assert_eq!(post("3.13").await.status, 404);
    let early = post("3.14").await;
    assert_eq!(early.status, 400, "{}", early.text);
    let list = async || {
        let got = client
            .cinder("3.14", Method::GET, "snapshots/detail", Value::Null)
            .await;
        got.body["snapshots"].as_array().unwrap().clone()
    };
    assert_eq!(list().await.len(), 0, "all or none");
    cloud.advance_clock(STEP);
    let got = post("3.14").await;
    assert_eq!(got.status, 202, "{}", got.text);
    let one = format!("group_snapshots/{}", id(&got.body["group_snapshot"]));
    let parts = list().await;
    assert_eq!(parts.len(), 2);
    assert_eq!(
        parts[0]["group_snapshot_id"],
        got.body["group_snapshot"]["id"]
    );
    let status = async || {
        let got = client.cinder("3.14", Method::GET, &one, Value::Null).await;
        got.body["group_snapshot"]["status"]
            .as_str()
            .unwrap_or("-")
            .to_owned()
    };
    assert_eq!(status().await, "creating");
    cloud.advance_clock(STEP);
    assert_eq!(status().await, "available");
    assert!(
        list()
            .await
            .iter()
            .all(|part| part["status"] == "available")
    );
    let part = format!("snapshots/{}", id(&parts[0]));
    let got = client
        .cinder("3.14", Method::DELETE, &part, Value::Null)
        .await;
    assert_eq!(got.status, 400, "{}", got.text);
    let action = format!("groups/{group}/action");
    let delete = json!({"delete": {"delete-volumes": true}});
    let got = client.cinder("3.14", Method::POST, &action, delete).await;
    assert_eq!(got.status, 400, "{}", got.text);
    let restored = client
        .new_volume(json!({"snapshot_id": id(&parts[0]), "volume_type": "fast"}))
        .await;
    cloud.advance_clock(STEP);
    assert_eq!(client.status(&restored).await, "available");
    let got = client
        .cinder("3.14", Method::DELETE, &one, Value::Null)
        .await;
    assert_eq!(got.status, 202, "{}", got.text);
    assert_eq!(status().await, "deleting");
    cloud.advance_clock(STEP);
    assert_eq!(status().await, "-");
    assert_eq!(list().await.len(), 0);
}

#[tokio::test]
async fn a_group_is_on_the_back_end_of_its_types_and_changes_only_when_available() {
    let (cloud, client, admin, _) = group().await;
    for name in ["ceph", "nfs"] {
        let kind =
            json!({"volume_type": {"name": name, "extra_specs": {"volume_backend_name": name}}});
        let path = format!("/volume/v3/{}/types", admin.project);
        admin.make(&path, kind).await;
    }
    let new = async |types: &[&str]| {
        let body =
            json!({"group": {"name": "g", "group_type": "consistent", "volume_types": types}});
        let got = client.cinder("3.13", Method::POST, "groups", body).await;
        id(&got.body["group"])
    };
    let (one, both) = (new(&["ceph"]).await, new(&["ceph", "nfs"]).await);
    let volume = client
        .new_volume(json!({"size": 1, "volume_type": "ceph"}))
        .await;
    let other = client
        .new_volume(json!({"size": 1, "volume_type": "fast"}))
        .await;
    let put = async |group: &str, fields: Value| {
        let path = format!("groups/{group}");
        client
            .cinder("3.13", Method::PUT, &path, json!({"group": fields}))
            .await
    };
    let early = put(&one, json!({"name": "h"})).await;
    assert_eq!(early.status, 400, "{}", early.text);
    assert!(
        early.text.contains("current status is: creating"),
        "{}",
        early.text
    );
    cloud.advance_clock(STEP);
    assert_eq!(show(&client, &one).await["status"], "available");
    assert_eq!(show(&client, &both).await["status"], "error");
    assert_eq!(put(&one, json!({"add_volumes": volume})).await.status, 202);
    cloud.advance_clock(STEP);
    // For its group, a volume is still there after the move to another type's back end.
    let retype = json!({"os-retype": {"new_type": "ceph", "migration_policy": "on-demand"}});
    assert_eq!(client.act(&other, retype).await.0, 202);
    cloud.advance_clock(STEP);
    assert_eq!(put(&one, json!({"add_volumes": other})).await.status, 202);
}
