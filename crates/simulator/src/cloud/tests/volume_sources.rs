//! New volumes: sources and sizes, zones and back ends, and refusals.

use serde_json::json;

use super::*;

async fn refused(client: &Client, version: &str, volume: Value, words: &str) {
    let got = client
        .cinder(version, Method::POST, "volumes", json!({"volume": volume}))
        .await;
    assert_eq!(got.status, 400, "{words}: {}", got.text);
    assert!(got.text.contains(words), "{words}: {}", got.text);
}

#[tokio::test]
async fn a_copy_is_at_least_as_large_as_its_source_and_has_its_nature() {
    let (_cloud, client) = demo().await;
    let image = id(&client.fetch("/image/v2/images?name=ubuntu-24.04").await[0]);
    let source = client
        .new_volume(json!({"size": 2, "imageRef": image, "volume_type": "fast", "availability_zone": "az1"}))
        .await;
    let snapshots = format!("/volume/v3/{}/snapshots", client.project);
    let snapshot = id(&client
        .make(&snapshots, json!({"snapshot": {"volume_id": source}}))
        .await);
    let backups = format!("/volume/v3/{}/backups", client.project);
    let backup = id(&client
        .make(&backups, json!({"backup": {"volume_id": source}}))
        .await);
    for (field, of, words) in [
        (
            "source_volid",
            &source,
            "cannot be smaller than original volume size  2GB. They must be >= original volume size.",
        ),
        (
            "snapshot_id",
            &snapshot,
            "cannot be smaller than the snapshot size 2GB. They must be >= original snapshot size.",
        ),
        (
            "backup_id",
            &backup,
            "cannot be smaller than the backup size 2GB. It must be >= backup size.",
        ),
    ] {
        refused(&client, "3.47", json!({"size": 1, field: of}), words).await;
        for (size, becomes) in [(Value::Null, 2), (json!(3), 3)] {
            let copy = client.new_volume(json!({"size": size, field: of})).await;
            let doc = client.volume(&copy).await;
            assert_eq!(doc["status"], "available", "{field}");
            assert_eq!(doc["size"], becomes, "{field}");
            assert_eq!(doc["bootable"], "true", "{field}");
            assert_eq!(
                doc["volume_image_metadata"]["image_id"],
                image.as_str(),
                "{field}"
            );
            if field != "backup_id" {
                assert_eq!(doc[field], of.as_str());
                assert_eq!(doc["volume_type"], "fast");
                assert_eq!(doc["availability_zone"], "az1");
            }
        }
        let path = format!("{backups}/{backup}");
        assert_eq!(client.fetch(&path).await["status"], "available");
    }
    // Before 3.47 a backup is not heard of.
    refused(
        &client,
        "3.46",
        json!({"backup_id": backup}),
        "must be an integer and greater than 0",
    )
    .await;
    let both = json!({"source_volid": source, "snapshot_id": snapshot});
    refused(&client, "3.60", both, "May specify only one of").await;
    let zone = json!({"snapshot_id": snapshot, "availability_zone": "az2"});
    refused(
        &client,
        "3.60",
        zone,
        "must be in the same availability zone as the snapshot",
    )
    .await;
}

#[tokio::test]
async fn a_volume_of_an_image_holds_it() {
    let (_cloud, client) = demo().await;
    let image =
        json!({"name": "large", "disk_format": "raw", "container_format": "bare", "min_disk": 5});
    let got = client.post("/image/v2/images", image).await;
    assert_eq!(got.status, 201, "{}", got.text);
    let image = id(&got.body);
    let volume = json!({"size": 4, "imageRef": image});
    refused(&client, "3.60", volume.clone(), "is not active").await;
    let path = format!("/image/v2/images/{image}/file");
    let headers = [("content-type", "application/octet-stream")];
    let got = client.raw(Method::PUT, &path, &headers, vec![0; 16]).await;
    assert_eq!(got.status, 204, "{}", got.text);
    let words = "Volume size 4GB cannot be smaller than the image minDisk size 5GB.";
    refused(&client, "3.60", volume, words).await;
    let volume = client
        .new_volume(json!({"size": 5, "imageRef": image}))
        .await;
    assert_eq!(client.volume(&volume).await["bootable"], "true");
}

#[tokio::test]
async fn unknown_fields_are_refused_from_3_53_on() {
    let (_cloud, client) = demo().await;
    let volume = json!({"size": 1, "colour": "red"});
    let body = json!({"volume": volume});
    let old = client.cinder("3.52", Method::POST, "volumes", body).await;
    assert_eq!(old.status, 202, "{}", old.text);
    refused(&client, "3.53", volume, "('colour' was unexpected)").await;
    let beside = json!({"volume": {"size": 1}, "colour": "red"});
    let got = client.cinder("3.0", Method::POST, "volumes", beside).await;
    assert_eq!(got.status, 400, "{}", got.text);
    let long = "x".repeat(256);
    for volume in [
        json!({"size": 1, "name": long}),
        json!({"size": 1, "name": 7}),
        json!({"size": 1, "metadata": {"a": long}}),
        json!({"size": 1, "metadata": {"a": 1}}),
        json!({"size": 1, "metadata": []}),
        json!({"size": 1.5}),
        json!({"size": -1}),
        json!({"size": 9_000_000_000i64}),
        json!({"size": 1, "multiattach": true}),
    ] {
        refused(&client, "3.0", volume, "").await;
    }
    let volume = client.new_volume(json!({"size": "2"})).await;
    assert_eq!(client.volume(&volume).await["size"], 2);
    let path = format!("volumes/{volume}");
    let nothing = json!({"volume": {}});
    let got = client.cinder("3.53", Method::PUT, &path, nothing).await;
    assert_eq!(got.status, 400, "{}", got.text);
    let unknown = json!({"volume": {"size": 3}});
    let got = client.cinder("3.0", Method::PUT, &path, unknown).await;
    assert_eq!(got.status, 400, "{}", got.text);
}

#[tokio::test]
async fn volumes_have_zones_of_their_own() {
    let options = Options {
        volume_zones: ["ssd", "hdd"].map(str::to_owned).to_vec(),
        ..Options::default()
    };
    let cloud = Cloud::open(options).await.unwrap();
    let client = Client::login(&cloud, "demo").await;
    let path = format!("/volume/v3/{}/os-availability-zone", client.project);
    let zones = client.fetch(&path).await;
    let available = json!({"available": true});
    assert_eq!(
        zones,
        json!([{"zoneName": "ssd", "zoneState": available}, {"zoneName": "hdd", "zoneState": available}])
    );
    let nova = client.fetch("/compute/v2.1/os-availability-zone").await;
    assert_eq!(nova[0]["zoneName"], "nova");
    let volume = client.new_volume(json!({"size": 1})).await;
    assert_eq!(client.volume(&volume).await["availability_zone"], "ssd");
    let wrong = json!({"size": 1, "availability_zone": "nova"});
    refused(
        &client,
        "3.60",
        wrong,
        "Availability zone 'nova' is invalid.",
    )
    .await;
    // A server's new volumes are in Cinder's default zone.
    let image = id(&client.fetch("/image/v2/images?name=ubuntu-24.04").await[0]);
    let server = json!({"server": {"name": "s", "flavorRef": "1", "networks": "none",
        "block_device_mapping_v2": [{"boot_index": 0, "source_type": "image", "uuid": image,
            "destination_type": "volume", "volume_size": 1}]}});
    let server = id(&client.make("/compute/v2.1/servers", server).await);
    let found = client
        .fetch(&format!("/compute/v2.1/servers/{server}"))
        .await;
    assert_eq!(found["status"], "ACTIVE");
}

#[tokio::test]
async fn hints_keep_volumes_together_and_apart() {
    let (cloud, client) = demo().await;
    let admin = Client::login(&cloud, "admin").await;
    let with = async |hints: Value| {
        let body = json!({"volume": {"size": 1}, "OS-SCH-HNT:scheduler_hints": hints});
        let got = client.cinder("3.60", Method::POST, "volumes", body).await;
        assert_eq!(got.status, 202, "{}", got.text);
        id(&got.body["volume"])
    };
    let host = async |volume: &str| {
        let doc = admin.volume(volume).await;
        doc["os-vol-host-attr:host"].as_str().map(str::to_owned)
    };
    let first = client.new_volume(json!({"size": 1})).await;
    let beside = with(json!({"same_host": first})).await;
    assert_eq!(host(&beside).await, host(&first).await);
    let mut apart = vec![first.clone()];
    for _ in 0..2 {
        let next = with(json!({"different_host": apart})).await;
        for other in &apart {
            assert_ne!(host(&next).await, host(other).await);
        }
        apart.push(next);
    }
    // There are three back ends.
    let none = with(json!({"different_host": apart})).await;
    assert_eq!(client.status(&none).await, "error");
    assert_eq!(host(&none).await, None);
    assert_eq!(client.messages(&none).await.len(), 1);
    let body =
        json!({"volume": {"size": 1}, "OS-SCH-HNT:scheduler_hints": {"same_host": "a name"}});
    let got = client.cinder("3.60", Method::POST, "volumes", body).await;
    assert_eq!(got.status, 400, "{}", got.text);
}

#[tokio::test]
async fn quotas_are_enforced_and_reported_by_type_and_for_snapshots() {
    let (cloud, client) = demo().await;
    let admin = Client::login(&cloud, "admin").await;
    let quotas = format!("os-quota-sets/{}", client.project);
    let set = async |wanted: Value| {
        let got = admin
            .cinder("3.0", Method::PUT, &quotas, json!({"quota_set": wanted}))
            .await;
        assert_eq!(got.status, 200, "{}", got.text);
    };
    let too_much = async |volume: Value, words: &str| {
        let got = client
            .cinder("3.60", Method::POST, "volumes", json!({"volume": volume}))
            .await;
        assert_eq!(got.status, 413, "{}", got.text);
        assert!(got.text.contains(words), "{words}: {}", got.text);
    };
    set(json!({"per_volume_gigabytes": 4, "gigabytes_fast": 5, "volumes_shared": 0})).await;
    let words = "Requested volume size 5G is larger than maximum allowed limit 4G.";
    too_much(json!({"size": 5}), words).await;
    let words = "Maximum number of volumes allowed (0) exceeded for quota 'volumes_shared'.";
    too_much(json!({"size": 1, "volume_type": "shared"}), words).await;
    let fast = client
        .new_volume(json!({"size": 3, "volume_type": "fast"}))
        .await;
    let words = "Requested volume or snapshot exceeds allowed gigabytes_fast quota. Requested 3G, quota is 5G and 3G \
        has been consumed.";
    too_much(json!({"size": 3, "volume_type": "fast"}), words).await;
    let (status, text) = client
        .act(&fast, json!({"os-extend": {"new_size": 5}}))
        .await;
    assert_eq!(status, 413, "{text}");
    // Snapshots count, too, in number and size.
    let snapshot = json!({"snapshot": {"volume_id": fast}});
    let got = client
        .cinder("3.60", Method::POST, "snapshots", snapshot.clone())
        .await;
    assert_eq!(got.status, 413, "{}", got.text);
    set(json!({"gigabytes_fast": -1, "snapshots": 1})).await;
    let got = client
        .cinder("3.60", Method::POST, "snapshots", snapshot.clone())
        .await;
    assert_eq!(got.status, 202, "{}", got.text);
    let got = client
        .cinder("3.60", Method::POST, "snapshots", snapshot)
        .await;
    assert_eq!(got.status, 413, "{}", got.text);
    assert!(
        got.text
            .contains("Maximum number of snapshots allowed (1) exceeded")
    );
    let path = format!("{quotas}?usage=true");
    let got = client.cinder("3.0", Method::GET, &path, Value::Null).await;
    let used = &got.body["quota_set"];
    let in_use = |name: &str| used[name]["in_use"].as_i64();
    assert_eq!(in_use("gigabytes_fast"), Some(6));
    assert_eq!(in_use("volumes_fast"), Some(1));
    assert_eq!(in_use("snapshots_fast"), Some(1));
    assert_eq!(in_use("gigabytes"), Some(6));
    assert_eq!(used["volumes_shared"]["limit"], 0);
    let limits = client
        .fetch(&format!("/volume/v3/{}/limits", client.project))
        .await;
    assert_eq!(limits["absolute"]["totalGigabytesUsed"], 6);
    assert_eq!(limits["absolute"]["maxTotalSnapshots"], 1);
    let unknown = json!({"quota_set": {"volumes_nothing": 1}});
    let got = admin.cinder("3.0", Method::PUT, &quotas, unknown).await;
    assert_eq!(got.status, 400, "{}", got.text);
}

#[tokio::test]
async fn what_a_volume_grows_by_is_taken_from_the_quota_at_once() {
    let (cloud, client, admin) = slow_volumes().await;
    let quotas = format!("os-quota-sets/{}", client.project);
    let body = json!({"quota_set": {"gigabytes": 5}});
    assert_eq!(
        admin.cinder("3.0", Method::PUT, &quotas, body).await.status,
        200
    );
    let [one, two] = [
        client.new_volume(json!({"size": 1})).await,
        client.new_volume(json!({"size": 1})).await,
    ];
    cloud.advance_clock(STEP);
    let grow = json!({"os-extend": {"new_size": 3}});
    assert_eq!(client.act(&one, grow.clone()).await.0, 202);
    let (status, text) = client.act(&two, grow).await;
    assert_eq!(status, 413);
    let words = "Requested 2G, quota is 5G and 4G has been consumed.";
    assert!(text.contains(words), "{text}");
}
