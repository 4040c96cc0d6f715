//! States of volumes and snapshots, the refusals in each, and the messages about failures.

use serde_json::json;

use super::*;
use crate::machine::Servers as _;

#[tokio::test]
async fn creation_growth_change_of_type_and_deletion_take_their_time() {
    let (cloud, client, _) = slow_volumes().await;
    let volume = client.new_volume(json!({"size": 1})).await;
    assert_eq!(client.status(&volume).await, "creating");
    let path = format!("volumes/{volume}");
    let got = client
        .cinder("3.0", Method::DELETE, &path, Value::Null)
        .await;
    assert_eq!(got.status, 400, "{}", got.text);
    let grow = json!({"os-extend": {"new_size": 3}});
    let (status, text) = client.act(&volume, grow.clone()).await;
    assert_eq!(status, 400);
    assert!(text.contains("to extend, currently creating"), "{text}");
    cloud.advance_clock(STEP);
    assert_eq!(client.act(&volume, grow).await.0, 202);
    let now = client.volume(&volume).await;
    assert_eq!(
        (&now["status"], &now["size"]),
        (&json!("extending"), &json!(1))
    );
    cloud.advance_clock(STEP);
    let now = client.volume(&volume).await;
    assert_eq!(
        (&now["status"], &now["size"]),
        (&json!("available"), &json!(3))
    );
    let retype = json!({"os-retype": {"new_type": "fast", "migration_policy": "never"}});
    assert_eq!(client.act(&volume, retype.clone()).await.0, 202);
    assert_eq!(client.status(&volume).await, "retyping");
    cloud.advance_clock(STEP);
    let now = client.volume(&volume).await;
    assert_eq!(
        (&now["status"], &now["volume_type"]),
        (&json!("available"), &json!("fast"))
    );
    let (status, text) = client.act(&volume, retype).await;
    assert_eq!(status, 400);
    assert!(
        text.contains("requested type has to be different"),
        "{text}"
    );
    let got = client
        .cinder("3.0", Method::DELETE, &path, Value::Null)
        .await;
    assert_eq!(got.status, 202);
    assert_eq!(client.status(&volume).await, "deleting");
    cloud.advance_clock(STEP);
    assert_eq!(client.status(&volume).await, "-");
}

#[tokio::test]
async fn a_volume_in_use_grows_from_3_42_on() {
    let (_cloud, client) = demo().await;
    let server = client.server("a").await;
    let volume = client.new_volume(json!({"size": 1})).await;
    assert_eq!(client.attach(&server, &volume).await.status, 200);
    let grow = json!({"os-extend": {"new_size": 2}});
    let path = format!("volumes/{volume}/action");
    let old = client
        .cinder("3.41", Method::POST, &path, grow.clone())
        .await;
    assert_eq!(old.status, 400, "{}", old.text);
    let new = client.cinder("3.42", Method::POST, &path, grow).await;
    assert_eq!(new.status, 202, "{}", new.text);
    let now = client.volume(&volume).await;
    assert_eq!(
        (&now["status"], &now["size"]),
        (&json!("in-use"), &json!(2))
    );
}

#[tokio::test]
async fn a_server_sees_a_volume_grow_after_the_event_that_cinder_sends_nova() {
    let (cloud, client, _) = slow_volumes().await;
    let server = client.server("a").await;
    let volume = client.new_volume(json!({"size": 1})).await;
    cloud.advance_clock(STEP);
    assert_eq!(client.attach(&server, &volume).await.status, 200);
    for expected in ["attaching", "in-use"] {
        cloud.advance_clock(STEP);
        assert_eq!(client.status(&volume).await, expected);
    }
    let seen = || cloud.machine(&server).unwrap().volumes[0].size_gib;
    assert_eq!(seen(), 1);
    let grow = json!({"os-extend": {"new_size": 2}});
    let path = format!("volumes/{volume}/action");
    let got = client.cinder("3.42", Method::POST, &path, grow).await;
    assert_eq!(got.status, 202, "{}", got.text);
    assert_eq!(client.status(&volume).await, "extending");
    cloud.advance_clock(STEP);
    // Cinder is ready, and the hypervisor is not yet.
    let now = client.volume(&volume).await;
    assert_eq!(
        (&now["status"], &now["size"]),
        (&json!("in-use"), &json!(2))
    );
    assert_eq!(seen(), 1);
    cloud.advance_clock(STEP);
    assert_eq!(client.status(&volume).await, "in-use");
    assert_eq!(seen(), 2);
    let path = format!("/compute/v2.1/servers/{server}/os-instance-actions");
    let actions = client.get(&path).await;
    assert_eq!(
        actions.body["instanceActions"][0]["action"],
        "extend_volume"
    );
}

#[tokio::test]
async fn what_fails_says_why_in_a_message() {
    let (_cloud, client) = demo().await;
    client.trouble("create-fails").await;
    let volume = client.new_volume(json!({"size": 1, "name": "v"})).await;
    assert_eq!(client.status(&volume).await, "error");
    let messages = client.messages(&volume).await;
    let why = "schedule allocate volume:Could not find any available weighted backend.";
    assert_eq!(messages, [why]);
    let before = client
        .cinder("3.2", Method::GET, "messages", Value::Null)
        .await;
    assert_eq!(before.status, 404);
    // Filters are for 3.5: before, the whole list is answered.
    let path = format!("messages?resource_uuid={}", client.project);
    let all = client.cinder("3.3", Method::GET, &path, Value::Null).await;
    let one = &all.body["messages"][0];
    assert_eq!(one["resource_uuid"], volume.as_str());
    assert_eq!(one["event_id"], "VOLUME_VOLUME_001_003");
    assert_eq!(one["message_level"], "ERROR");
    // A volume without a back end goes at once; its message stays until deleted.
    let path = format!("volumes/{volume}");
    assert_eq!(
        client
            .cinder("3.0", Method::DELETE, &path, Value::Null)
            .await
            .status,
        202
    );
    assert_eq!(client.status(&volume).await, "-");
    let path = format!("messages/{}", id(one));
    assert_eq!(
        client
            .cinder("3.3", Method::DELETE, &path, Value::Null)
            .await
            .status,
        204
    );
    assert_eq!(
        client
            .cinder("3.3", Method::GET, &path, Value::Null)
            .await
            .status,
        404
    );

    let volume = client.new_volume(json!({"size": 1})).await;
    client.trouble("extend-fails").await;
    let grow = json!({"os-extend": {"new_size": 2}});
    assert_eq!(client.act(&volume, grow).await.0, 202);
    let now = client.volume(&volume).await;
    assert_eq!(
        (&now["status"], &now["size"]),
        (&json!("error_extending"), &json!(1))
    );
    let messages = client.messages(&volume).await;
    assert_eq!(
        messages,
        ["extend volume:Volume Driver failed to extend volume."]
    );
    let path = format!("/_simulator/volumes/{volume}/status");
    let error = client.post(&path, json!({"status": "error"})).await;
    assert_eq!(error.status, 204, "{}", error.text);
    assert_eq!(client.messages(&volume).await.len(), 2);
    for (path, body) in [
        (
            "/_simulator/volumes/nothing/status",
            json!({"status": "error"}),
        ),
        (
            "/_simulator/volume-faults",
            json!({"fault": "nothing", "count": 1}),
        ),
        (
            "/_simulator/settings",
            json!({"max_disk_devices_to_attach": "many"}),
        ),
    ] {
        let got = client.post(path, body).await;
        assert!(matches!(got.status, 400 | 404), "{path}: {}", got.text);
    }
    // Such a volume can be deleted; the next one cannot.
    client.trouble("delete-fails").await;
    let path = format!("volumes/{volume}");
    assert_eq!(
        client
            .cinder("3.0", Method::DELETE, &path, Value::Null)
            .await
            .status,
        202
    );
    assert_eq!(client.status(&volume).await, "error_deleting");
    assert_eq!(
        client
            .cinder("3.0", Method::DELETE, &path, Value::Null)
            .await
            .status,
        400
    );
}

#[tokio::test]
async fn a_change_of_type_that_fails_leaves_the_volume_as_it_was() {
    let (cloud, client) = demo().await;
    let admin = Client::login(&cloud, "admin").await;
    let other = json!({"volume_type": {"name": "other", "extra_specs": {"volume_backend_name": "elsewhere"}}});
    admin
        .make(&format!("/volume/v3/{}/types", admin.project), other)
        .await;
    let volume = client
        .new_volume(json!({"size": 1, "volume_type": "fast"}))
        .await;
    let retype = async |kind: &str, policy: Value| {
        let action = json!({"os-retype": {"new_type": kind, "migration_policy": policy}});
        let (status, text) = client.act(&volume, action).await;
        let now = client.volume(&volume).await;
        (status, text, now["volume_type"].clone())
    };
    client.trouble("retype-fails").await;
    assert_eq!(retype("standard", json!("never")).await.2, "fast");
    assert_eq!(client.status(&volume).await, "available");
    // A type of another back end needs the leave to move.
    assert_eq!(retype("other", Value::Null).await.2, "fast");
    assert_eq!(retype("other", json!("on-demand")).await.2, "other");
    assert_eq!(retype("other", json!("always")).await.0, 400);
    // A volume with snapshots is not moved.
    let body = json!({"snapshot": {"volume_id": volume, "name": "s"}});
    let path = format!("/volume/v3/{}/snapshots", client.project);
    client.make(&path, body).await;
    let (status, _, kind) = retype("fast", json!("on-demand")).await;
    assert_eq!((status, kind), (202, json!("other")));
    assert_eq!(client.status(&volume).await, "available");
    assert_eq!(retype("nothing", json!("never")).await.0, 404);
    let server = client.server("a").await;
    assert_eq!(client.attach(&server, &volume).await.status, 200);
    let (status, text, _) = retype("shared", json!("on-demand")).await;
    assert_eq!(status, 400);
    assert!(
        text.contains("retypes affecting multiattach are only allowed on available"),
        "{text}"
    );
}

#[tokio::test]
async fn administrators_alone_reset_a_status() {
    let (cloud, client) = demo().await;
    let admin = Client::login(&cloud, "admin").await;
    let volume = client.new_volume(json!({"size": 1})).await;
    let to = |status: &str| json!({"os-reset_status": {"status": status}});
    let (status, text) = client.act(&volume, to("error")).await;
    assert_eq!(status, 403);
    assert!(
        text.contains("volume_extension:volume_admin_actions:reset_status"),
        "{text}"
    );
    for (wanted, status) in [("error_managing", 202), ("deleting", 400), ("in-use", 400)] {
        assert_eq!(admin.act(&volume, to(wanted)).await.0, status, "{wanted}");
    }
    assert_eq!(client.status(&volume).await, "error_managing");
    let path = format!("volumes/{volume}");
    let got = client
        .cinder("3.0", Method::DELETE, &path, Value::Null)
        .await;
    assert_eq!(got.status, 202);
    for action in ["os-force_detach", "os-force_delete"] {
        let (status, _) = client.act(&volume, json!({action: {}})).await;
        assert!(matches!(status, 403 | 404), "{action}: {status}");
    }
}

#[tokio::test]
async fn a_volume_with_snapshots_stays_unless_they_go_too() {
    let (_cloud, client) = demo().await;
    let volume = client.new_volume(json!({"size": 1})).await;
    let body = json!({"snapshot": {"volume_id": volume, "name": "s"}});
    let path = format!("/volume/v3/{}/snapshots", client.project);
    let snapshot = id(&client.make(&path, body).await);
    let one = format!("volumes/{volume}");
    let got = client
        .cinder("3.0", Method::DELETE, &one, Value::Null)
        .await;
    assert_eq!(got.status, 400);
    let words = "Volume status must be available or error or error_restoring or error_extending or error_managing and \
        must not be migrating, attached, belong to a group, have snapshots, awaiting a transfer, or be disassociated \
        from snapshots after volume transfer.";
    assert!(got.text.contains(words), "{}", got.text);
    let cascade = format!("{one}?cascade=true");
    let got = client
        .cinder("3.0", Method::DELETE, &cascade, Value::Null)
        .await;
    assert_eq!(got.status, 202, "{}", got.text);
    assert_eq!(client.status(&volume).await, "-");
    assert_eq!(client.get(&format!("{path}/{snapshot}")).await.status, 404);
}

#[tokio::test]
async fn snapshots_have_states_and_stay_while_volumes_depend_on_them() {
    let (cloud, client, admin) = slow_volumes().await;
    let volume = client.new_volume(json!({"size": 1})).await;
    let path = format!("/volume/v3/{}/snapshots", client.project);
    let body = json!({"snapshot": {"volume_id": volume, "name": "s"}});
    let early = client.post(&path, body.clone()).await;
    assert_eq!(early.status, 400);
    assert!(
        early.text.contains("but current status is: creating."),
        "{}",
        early.text
    );
    cloud.advance_clock(STEP);
    let one = format!("{path}/{}", id(&client.make(&path, body).await));
    let status = async || {
        client.fetch(&one).await["status"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(status().await, "creating");
    let got = client.delete(&one).await;
    assert_eq!(got.status, 400);
    let words = "Snapshot status must be available or error and must not be part of a group.";
    assert!(got.text.contains(words), "{}", got.text);
    cloud.advance_clock(STEP);
    assert_eq!(status().await, "available");
    let snapshot = client.fetch(&one).await;
    let copy = client
        .new_volume(json!({"snapshot_id": snapshot["id"]}))
        .await;
    cloud.advance_clock(STEP);
    // The driver finds the dependant only after the request was accepted.
    assert_eq!(client.delete(&one).await.status, 202);
    assert_eq!(status().await, "deleting");
    cloud.advance_clock(STEP);
    assert_eq!(status().await, "available");
    let messages = client.messages(&id(&snapshot)).await;
    assert_eq!(messages, ["delete snapshot:Snapshot is busy."]);
    let gone = format!("volumes/{copy}");
    assert_eq!(
        client
            .cinder("3.0", Method::DELETE, &gone, Value::Null)
            .await
            .status,
        202
    );
    cloud.advance_clock(STEP);
    assert_eq!(client.status(&copy).await, "-");
    // A snapshot that cannot be deleted at all needs an administrator.
    client.trouble("snapshot-delete-fails").await;
    assert_eq!(client.delete(&one).await.status, 202);
    cloud.advance_clock(STEP);
    assert_eq!(status().await, "error_deleting");
    assert_eq!(client.delete(&one).await.status, 400);
    let reset = json!({"os-reset_status": {"status": "available"}});
    let action = format!("snapshots/{}/action", id(&snapshot));
    let got = client
        .cinder("3.0", Method::POST, &action, reset.clone())
        .await;
    assert_eq!(got.status, 403);
    let got = admin.cinder("3.0", Method::POST, &action, reset).await;
    assert_eq!(got.status, 202, "{}", got.text);
    assert_eq!(client.delete(&one).await.status, 202);
    cloud.advance_clock(STEP);
    assert_eq!(client.get(&one).await.status, 404);
}

#[tokio::test]
async fn a_snapshot_that_fails_is_in_error() {
    let (_cloud, client) = demo().await;
    let volume = client.new_volume(json!({"size": 1})).await;
    client.trouble("snapshot-fails").await;
    let path = format!("/volume/v3/{}/snapshots", client.project);
    let body = json!({"snapshot": {"volume_id": volume}});
    let snapshot = id(&client.make(&path, body).await);
    let one = format!("{path}/{snapshot}");
    assert_eq!(client.fetch(&one).await["status"], "error");
    let messages = client.messages(&snapshot).await;
    assert_eq!(messages, ["create snapshot:Snapshot failed to create."]);
    let got = client
        .cinder(
            "3.60",
            Method::POST,
            "volumes",
            json!({"volume": {"snapshot_id": snapshot}}),
        )
        .await;
    assert_eq!(got.status, 400);
    let words = "Originating snapshot status must be one of 'available' values";
    assert!(got.text.contains(words), "{}", got.text);
    assert_eq!(client.delete(&one).await.status, 202);
    assert_eq!(client.get(&one).await.status, 404);
}

#[tokio::test]
async fn a_snapshot_of_a_volume_in_use_needs_force_before_3_66_and_refuses_its_opposite_from_then_on()
 {
    let (_cloud, client) = demo().await;
    let server = client.server("a").await;
    let volume = client.new_volume(json!({"size": 1})).await;
    assert_eq!(client.attach(&server, &volume).await.status, 200);
    for (version, force, status) in [
        ("3.65", Value::Null, 400),
        ("3.65", json!(false), 400),
        ("3.65", json!(true), 202),
        ("3.66", Value::Null, 202),
        ("3.66", json!(false), 400),
        ("3.66", json!("True"), 202),
    ] {
        let mut body = json!({"snapshot": {"volume_id": volume}});
        if !force.is_null() {
            body["snapshot"]["force"] = force.clone();
        }
        let got = client
            .cinder(version, Method::POST, "snapshots", body)
            .await;
        assert_eq!(got.status, status, "{version} {force}: {}", got.text);
    }
}

#[tokio::test]
async fn a_backup_of_a_snapshot_leaves_the_volume_alone() {
    let (cloud, client, _) = slow_volumes().await;
    let [one, other] = [
        client.new_volume(json!({"size": 2})).await,
        client.new_volume(json!({"size": 1})).await,
    ];
    cloud.advance_clock(STEP);
    let snapshots = format!("/volume/v3/{}/snapshots", client.project);
    let body = json!({"snapshot": {"volume_id": one}});
    let snapshot = id(&client.make(&snapshots, body).await);
    let backup = json!({"backup": {"volume_id": one, "snapshot_id": snapshot, "name": "b"}});
    let post = async |body: &Value| {
        client
            .cinder("3.60", Method::POST, "backups", body.clone())
            .await
    };
    assert_eq!(post(&backup).await.status, 400, "the snapshot is creating");
    cloud.advance_clock(STEP);
    let of_other = json!({"backup": {"volume_id": other, "snapshot_id": snapshot}});
    assert_eq!(post(&of_other).await.status, 400);
    client.trouble("backup-fails").await;
    let got = post(&backup).await;
    assert_eq!(got.status, 202, "{}", got.text);
    let path = format!("{snapshots}/{snapshot}");
    assert_eq!(client.fetch(&path).await["status"], "backing-up");
    assert_eq!(client.status(&one).await, "available");
    cloud.advance_clock(STEP);
    assert_eq!(client.fetch(&path).await["status"], "available");
    let failed = id(&got.body["backup"]);
    let path = format!("/volume/v3/{}/backups/{failed}", client.project);
    assert_eq!(client.fetch(&path).await["status"], "error");
    let messages = client.messages(&failed).await;
    assert_eq!(
        messages,
        ["create backup:Backup driver failed to create backup."]
    );
}

#[tokio::test]
async fn volumes_are_listed_a_thousand_at_a_time_and_by_what_a_member_may_ask_for() {
    let (_cloud, client) = demo().await;
    for name in ["a", "b", "c"] {
        client.new_volume(json!({"size": 1, "name": name})).await;
    }
    let names = async |version: &str, query: &str| -> (u16, Vec<String>) {
        let path = format!("volumes/detail?{query}");
        let got = client
            .cinder(version, Method::GET, &path, Value::Null)
            .await;
        let all = got.body["volumes"].as_array().cloned().unwrap_or_default();
        let names = all
            .iter()
            .map(|one| one["name"].as_str().unwrap().to_owned());
        (got.status, names.collect())
    };
    assert_eq!(names("3.60", "name=a").await, (200, vec!["a".to_owned()]));
    assert_eq!(names("3.30", "volume_type=fast").await.0, 200);
    assert_eq!(names("3.31", "volume_type=fast").await.0, 400);
    for (list, known, unknown) in [
        ("snapshots", "volume_id=x", "id=x"),
        ("backups", "status=error", "id=x"),
        ("attachments", "instance_id=x", "attachment_id=x"),
        ("messages", "resource_uuid=x", "project_id=x"),
        ("groups", "name=x", "status=error"),
        ("group_snapshots", "group_id=x", "id=x"),
    ] {
        for (query, status) in [(known, 200), (unknown, 400)] {
            let path = format!("{list}?{query}");
            let got = client.cinder("3.60", Method::GET, &path, Value::Null).await;
            assert_eq!(got.status, status, "{path}: {}", got.text);
        }
    }
    assert_eq!(
        names("3.60", "limit=1&sort=name:asc&offset=1").await.1,
        ["b"]
    );
    assert_eq!(
        names("3.60", "created_at=gt:2999-01-01T00:00:00")
            .await
            .1
            .len(),
        0
    );
    assert_eq!(
        names("3.60", "created_at=lt:2999-01-01T00:00:00")
            .await
            .1
            .len(),
        3
    );
    assert_eq!(
        names("3.60", "created_at=about:2999-01-01T00:00:00")
            .await
            .0,
        400
    );
}

#[tokio::test]
async fn metadata_have_plain_keys_and_short_values() {
    let (_cloud, client) = demo().await;
    let volume = client.new_volume(json!({"size": 1})).await;
    let path = format!("volumes/{volume}/metadata");
    let long = "x".repeat(256);
    for (key, value, status) in [
        ("a/b c:d.e_f-1", json!("größe"), 200),
        ("größe", json!("x"), 400),
        ("a=b", json!("x"), 400),
        ("", json!("x"), 400),
        (long.as_str(), json!("x"), 400),
        ("a", json!(long), 400),
        ("a", json!(1), 400),
    ] {
        let body = json!({"metadata": {key: value}});
        let got = client.cinder("3.0", Method::POST, &path, body).await;
        assert_eq!(got.status, status, "{key}: {}", got.text);
    }
}
