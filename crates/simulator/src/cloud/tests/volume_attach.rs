//! Volumes and servers: the states of an attachment, refusals, and remains.

use serde_json::json;

use super::*;

/// Returns the status of the volume and of its attachment, the number of attachments shown by the volume, and the
/// number of volumes listed by Nova.
async fn seen(client: &Client, server: &str, volume: &str) -> (String, String, usize, usize) {
    let doc = client.volume(volume).await;
    let attachments = client.attachments(volume).await;
    let status = attachments
        .first()
        .map_or("-", |one| one["status"].as_str().unwrap_or_default());
    (
        doc["status"].as_str().unwrap().to_owned(),
        status.to_owned(),
        doc["attachments"].as_array().unwrap().len(),
        client.listed(server).await.len(),
    )
}

fn state(
    status: &str,
    attachment: &str,
    complete: usize,
    listed: usize,
) -> (String, String, usize, usize) {
    (status.to_owned(), attachment.to_owned(), complete, listed)
}

async fn available(cloud: &Cloud, client: &Client, fields: Value) -> String {
    let volume = client.new_volume(fields).await;
    cloud.advance_clock(STEP);
    assert_eq!(client.status(&volume).await, "available");
    volume
}

#[tokio::test]
async fn a_volume_is_reserved_then_attaching_then_in_use_and_detaching_before_it_is_available() {
    let (cloud, client, _) = slow_volumes().await;
    let server = client.server("a").await;
    let volume = available(&cloud, &client, json!({"size": 1})).await;
    let got = client.attach(&server, &volume).await;
    assert_eq!(got.status, 200, "{}", got.text);
    assert_eq!(got.body["volumeAttachment"]["device"], "/dev/vdb");
    assert_eq!(got.body["volumeAttachment"]["id"], volume.as_str());
    let now = async || seen(&client, &server, &volume).await;
    // Nova lists a volume from the beginning.
    assert_eq!(now().await, state("reserved", "reserved", 0, 1));
    let reserved = client.attachments(&volume).await;
    assert_eq!(reserved[0]["connection_info"], json!({}));
    let listed = client.listed(&server).await;
    assert_eq!(listed[0]["attachment_id"], reserved[0]["id"]);
    assert_ne!(listed[0]["bdm_uuid"], reserved[0]["id"]);
    cloud.advance_clock(STEP / 2);
    assert_eq!(now().await, state("attaching", "attaching", 0, 1));
    cloud.advance_clock(STEP / 2);
    assert_eq!(now().await, state("in-use", "attached", 1, 1));
    let doc = client.volume(&volume).await;
    assert_eq!(doc["attachments"][0]["server_id"], server.as_str());
    assert_eq!(doc["attachments"][0]["attachment_id"], reserved[0]["id"]);

    assert_eq!(client.detach(&server, &volume).await.status, 202);
    assert_eq!(now().await, state("detaching", "attached", 1, 1));
    let again = client.detach(&server, &volume).await;
    assert_eq!(again.status, 400, "{}", again.text);
    assert!(again.text.contains("Volume status must be 'in-use'"));
    // Cinder releases the volume first; until Nova has forgotten it, no other server gets it.
    cloud.advance_clock(STEP);
    assert_eq!(now().await, state("available", "-", 0, 1));
    let early = client.attach(&server, &volume).await;
    assert_eq!(early.status, 400);
    assert!(early.text.contains("is already attached to instances"));
    cloud.advance_clock(STEP / 4);
    assert_eq!(now().await, state("available", "-", 0, 0));
    assert_eq!(client.detach(&server, &volume).await.status, 404);
}

#[tokio::test]
async fn without_latency_an_attachment_is_complete_by_the_next_request() {
    let (_cloud, client) = demo().await;
    let server = client.server("a").await;
    let volume = client.new_volume(json!({"size": 1})).await;
    assert_eq!(client.attach(&server, &volume).await.status, 200);
    let now = seen(&client, &server, &volume).await;
    assert_eq!(now, state("in-use", "attached", 1, 1));
    assert_eq!(client.detach(&server, &volume).await.status, 202);
    let now = seen(&client, &server, &volume).await;
    assert_eq!(now, state("available", "-", 0, 0));
}

#[tokio::test]
async fn nova_refuses_volumes_and_servers_that_are_not_ready() {
    let (cloud, client, _) = slow_volumes().await;
    let (one, two) = (client.server("a").await, client.server("b").await);
    let volume = client.new_volume(json!({"size": 1})).await;
    let refused = async |server: &str, volume: &str, status: u16, words: &str| {
        let got = client.attach(server, volume).await;
        assert_eq!(got.status, status, "{}", got.text);
        assert!(got.text.contains(words), "{words}: {}", got.text);
    };
    let creating =
        "status must be available or downloading to reserve, but the current status is creating.";
    refused(&one, &volume, 400, creating).await;
    refused("00000000-0000-4000-8000-000000000000", &volume, 404, "").await;
    let missing = "00000000-0000-4000-8000-000000000001";
    refused(&one, missing, 404, "could not be found").await;
    refused(&one, "no-uuid", 400, "is not a 'uuid'").await;
    cloud.advance_clock(STEP);
    assert_eq!(client.attach(&one, &volume).await.status, 200);
    refused(&one, &volume, 400, "is already attached to instances").await;
    refused(&two, &volume, 400, "is already attached to instances").await;
    let failed = client.new_volume(json!({"size": 1})).await;
    let got = client
        .post(
            &format!("/_simulator/volumes/{failed}/status"),
            json!({"status": "error"}),
        )
        .await;
    assert_eq!(got.status, 204, "{}", got.text);
    refused(&two, &failed, 400, "is in an error state").await;
    // The task of the server matters, too.
    let path = format!("/compute/v2.1/servers/{two}/action");
    let free = available(&cloud, &client, json!({"size": 1})).await;
    assert_eq!(client.post(&path, json!({"lock": null})).await.status, 202);
    refused(&two, &free, 409, "is locked").await;
    assert_eq!(
        client.post(&path, json!({"unlock": null})).await.status,
        202
    );
    let got = client
        .post(
            &format!("/_simulator/servers/{two}/error"),
            json!({"message": "broken"}),
        )
        .await;
    assert_eq!(got.status, 204, "{}", got.text);
    refused(&two, &free, 409, "while it is in vm_state error").await;
}

#[tokio::test]
async fn a_stopped_server_gets_and_loses_volumes() {
    let (_cloud, client) = demo().await;
    let server = client.server("a").await;
    let volume = client.new_volume(json!({"size": 1})).await;
    let path = format!("/compute/v2.1/servers/{server}/action");
    assert_eq!(
        client.post(&path, json!({"os-stop": null})).await.status,
        202
    );
    assert_eq!(client.attach(&server, &volume).await.status, 200);
    assert_eq!(client.status(&volume).await, "in-use");
    assert_eq!(client.detach(&server, &volume).await.status, 202);
    assert_eq!(client.status(&volume).await, "available");
}

#[tokio::test]
async fn a_shared_volume_goes_to_each_server_once() {
    let (cloud, client, _) = slow_volumes().await;
    let (one, two) = (client.server("a").await, client.server("b").await);
    let fields = json!({"size": 1, "volume_type": "shared"});
    let volume = available(&cloud, &client, fields).await;
    let attach = async |server: &str| {
        assert_eq!(client.attach(server, &volume).await.status, 200);
        assert_eq!(client.status(&volume).await, "reserved");
        for status in ["attaching", "in-use"] {
            cloud.advance_clock(STEP / 2);
            assert_eq!(client.status(&volume).await, status);
        }
    };
    attach(&one).await;
    let got = client.attach(&one, &volume).await;
    assert_eq!(got.status, 400);
    assert!(got.text.contains("already attached"), "{}", got.text);
    attach(&two).await;
    assert_eq!(
        client.volume(&volume).await["attachments"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(client.detach(&two, &volume).await.status, 202);
    assert_eq!(client.status(&volume).await, "detaching");
    cloud.advance_clock(STEP);
    assert_eq!(client.status(&volume).await, "in-use");
    let doc = client.volume(&volume).await;
    assert_eq!(doc["attachments"][0]["server_id"], one.as_str());
}

#[tokio::test]
async fn an_attachment_that_goes_wrong_leaves_what_it_leaves_on_a_real_cloud() {
    for (fault, status, attachment, listed) in [
        ("attach-fails", "available", "-", 0),
        ("attach-stays-reserved", "reserved", "reserved", 0),
        ("attach-stays-attaching", "attaching", "attaching", 1),
    ] {
        let (_cloud, client) = demo().await;
        let server = client.server("a").await;
        let volume = client.new_volume(json!({"size": 1})).await;
        client.trouble(fault).await;
        assert_eq!(client.attach(&server, &volume).await.status, 200);
        let now = seen(&client, &server, &volume).await;
        assert_eq!(now, state(status, attachment, 0, listed), "{fault}");
        let rules = client.fetch("/_simulator/volume-faults").await;
        assert_eq!(rules, json!([]), "{fault} is used up");
    }
}

#[tokio::test]
async fn a_detachment_that_goes_wrong_leaves_what_it_leaves_on_a_real_cloud() {
    for (fault, status, attachment, complete, listed) in [
        ("detach-fails", "in-use", "attached", 1, 1),
        ("detach-stays-detaching", "detaching", "attached", 1, 1),
        ("detach-leaves-reserved", "reserved", "reserved", 0, 0),
        ("detach-ends-in-error", "error_detaching", "attached", 1, 0),
    ] {
        let (_cloud, client) = demo().await;
        let server = client.server("a").await;
        let volume = client.new_volume(json!({"size": 1})).await;
        assert_eq!(client.attach(&server, &volume).await.status, 200);
        client.trouble(fault).await;
        assert_eq!(client.detach(&server, &volume).await.status, 202);
        let now = seen(&client, &server, &volume).await;
        assert_eq!(now, state(status, attachment, complete, listed), "{fault}");
    }
}

#[tokio::test]
async fn an_attachment_that_nova_uses_is_deleted_by_nova_alone() {
    let (_cloud, client) = demo().await;
    let server = client.server("a").await;
    let volume = client.new_volume(json!({"size": 1})).await;
    assert_eq!(client.attach(&server, &volume).await.status, 200);
    let attachments = client.attachments(&volume).await;
    let path = format!("attachments/{}", id(&attachments[0]));
    let delete = async || {
        client
            .cinder("3.27", Method::DELETE, &path, Value::Null)
            .await
    };
    let got = delete().await;
    assert_eq!(got.status, 409, "{}", got.text);
    let words = format!("Detach volume from instance {server} using the Compute API");
    assert!(got.text.contains(&words), "{}", got.text);
    // An attachment that has no connection is nobody's.
    client.trouble("detach-leaves-reserved").await;
    assert_eq!(client.detach(&server, &volume).await.status, 202);
    assert_eq!(client.status(&volume).await, "reserved");
    assert_eq!(delete().await.status, 200);
    assert_eq!(client.status(&volume).await, "available");
}

#[tokio::test]
async fn an_attachment_that_outlives_its_server_is_deleted_in_cinder() {
    let (_cloud, client) = demo().await;
    let server = client.server("a").await;
    let volume = client.new_volume(json!({"size": 1})).await;
    assert_eq!(client.attach(&server, &volume).await.status, 200);
    assert_eq!(client.status(&volume).await, "in-use");
    client.trouble("attachment-outlives-server").await;
    let path = format!("/compute/v2.1/servers/{server}");
    assert_eq!(client.delete(&path).await.status, 204);
    assert_eq!(client.get(&path).await.status, 404);
    let doc = client.volume(&volume).await;
    assert_eq!(doc["status"], "in-use");
    assert_eq!(doc["attachments"][0]["server_id"], server.as_str());
    let attachment = doc["attachments"][0]["attachment_id"].as_str().unwrap();
    let path = format!("attachments/{attachment}");
    let got = client
        .cinder("3.27", Method::DELETE, &path, Value::Null)
        .await;
    assert_eq!(got.status, 200, "{}", got.text);
    assert_eq!(client.status(&volume).await, "available");
}

#[tokio::test]
async fn a_deleted_server_releases_its_volumes_in_any_state() {
    let (cloud, client, _) = slow_volumes().await;
    let server = client.server("a").await;
    let volume = available(&cloud, &client, json!({"size": 1})).await;
    assert_eq!(client.attach(&server, &volume).await.status, 200);
    let path = format!("/compute/v2.1/servers/{server}");
    assert_eq!(client.delete(&path).await.status, 204);
    assert_eq!(client.status(&volume).await, "available");
    cloud.advance_clock(STEP * 3);
    assert_eq!(client.status(&volume).await, "available");
    assert_eq!(client.attachments(&volume).await, Vec::<Value>::new());
}

#[tokio::test]
async fn the_root_disk_is_not_detached() {
    let (_cloud, client) = demo().await;
    let image = id(&client.fetch("/image/v2/images?name=ubuntu-24.04").await[0]);
    let server = json!({"server": {"name": "s", "flavorRef": "1", "networks": "none",
        "block_device_mapping_v2": [{"boot_index": 0, "source_type": "image", "uuid": image,
            "destination_type": "volume", "volume_size": 1}]}});
    let server = id(&client.make("/compute/v2.1/servers", server).await);
    let listed = client.listed(&server).await;
    let volume = listed[0]["volumeId"].as_str().unwrap();
    let got = client.detach(&server, volume).await;
    assert_eq!(got.status, 400, "{}", got.text);
    assert!(got.text.contains("Cannot detach a root device volume"));
}

#[tokio::test]
async fn a_server_has_as_many_disks_as_nova_lets_it() {
    let (_cloud, client) = demo().await;
    let server = client.server("a").await;
    let limit = json!({"max_disk_devices_to_attach": 2});
    let got = client.post("/_simulator/settings", limit).await;
    assert_eq!(got.status, 200, "{}", got.text);
    assert_eq!(got.body["reclaim_instance_interval"], 0);
    let [one, two] = [
        client.new_volume(json!({"size": 1})).await,
        client.new_volume(json!({"size": 1})).await,
    ];
    assert_eq!(client.attach(&server, &one).await.status, 200);
    let got = client.attach(&server, &two).await;
    assert_eq!(got.status, 403, "{}", got.text);
    let words = "The maximum allowed number of disk devices (2) to attach to a single instance has been exceeded.";
    assert!(got.text.contains(words), "{}", got.text);
    assert_eq!(client.status(&two).await, "available");
}

#[tokio::test]
async fn devices_are_named_beyond_z() {
    let (_cloud, client) = demo().await;
    let server = client.server("a").await;
    let mut last = String::new();
    for _ in 0..26 {
        let volume = client.new_volume(json!({"size": 1})).await;
        let got = client.attach(&server, &volume).await;
        last = got.body["volumeAttachment"]["device"]
            .as_str()
            .unwrap()
            .to_owned();
    }
    assert_eq!(last, "/dev/vdaa");
}

#[tokio::test]
async fn zones_keep_volumes_from_servers_only_if_nova_is_set_so() {
    let (_cloud, client) = demo().await;
    let server = client.server("a").await;
    let volume = client
        .new_volume(json!({"size": 1, "availability_zone": "az2"}))
        .await;
    let strict = json!({"cross_az_attach": false});
    client.post("/_simulator/settings", strict).await;
    let got = client.attach(&server, &volume).await;
    assert_eq!(got.status, 400, "{}", got.text);
    assert!(got.text.contains("are not in the same availability_zone"));
    let lenient = json!({"cross_az_attach": true});
    client.post("/_simulator/settings", lenient).await;
    assert_eq!(client.attach(&server, &volume).await.status, 200);
}

#[tokio::test]
async fn attachments_have_pages_without_links() {
    let (_cloud, client) = demo().await;
    for _ in 0..3 {
        let volume = client.new_volume(json!({"size": 1})).await;
        let body = json!({"attachment": {"volume_uuid": volume, "instance_uuid": volume}});
        let got = client
            .cinder("3.27", Method::POST, "attachments", body)
            .await;
        assert_eq!(got.status, 200, "{}", got.text);
    }
    let page = async |query: &str| {
        let path = format!("attachments?{query}");
        let got = client.cinder("3.27", Method::GET, &path, Value::Null).await;
        assert_eq!(got.body.as_object().unwrap().len(), 1, "{}", got.text);
        got.body["attachments"].as_array().unwrap().clone()
    };
    let first = page("limit=2").await;
    let last = page(&format!("limit=2&marker={}", id(&first[1]))).await;
    assert_eq!((first.len(), last.len()), (2, 1));
    assert!(!first.contains(&last[0]));
}
