use std::time::Duration;

use serde_json::json;

use super::*;
use crate::cloud::{Latency, OpenError, Timings};

/// Much longer than the end of a cloud takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_reopened_cloud_is_the_same_and_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let timings = Timings {
        server_create: Duration::from_secs(60),
        ..Timings::default()
    };
    let options = Options {
        store: Some(directory.path().join("cloud.sqlite")),
        latency: Latency::Custom(Box::new(timings)),
        ..Options::default()
    };
    let cloud = Cloud::open(options.clone()).await.unwrap();
    let client = Client::login(&cloud, "demo").await;
    let net = net(&client, "10.6.0.0/24").await;
    let image = client.fetch("/image/v2/images?name=ubuntu-24.04").await;
    let server = client
        .make(
            "/compute/v2.1/servers",
            json!({"server": {"name": "a", "flavorRef": "2", "imageRef": image[0]["id"],
        "networks": [{"uuid": net.network}]}}),
        )
        .await;
    let path = format!("/compute/v2.1/servers/{}", id(&server));
    assert_eq!(client.fetch(&path).await["status"], "BUILD");
    let before = cloud.resources();
    let networks = client.fetch("/network/v2.0/networks").await;
    let token = client.token.clone();
    drop(client);
    drop(cloud);

    let cloud = reopen(&options).await;
    assert_eq!(cloud.resources(), before);
    let client = Client {
        router: cloud.router(BASE),
        token,
        project: String::new(),
        user: String::new(),
    };
    assert_eq!(client.fetch("/network/v2.0/networks").await, networks);
    assert_eq!(
        client.fetch(&path).await["status"],
        "BUILD",
        "the token is still good, too"
    );
    cloud.advance_clock(Duration::from_secs(61));
    assert_eq!(client.fetch(&path).await["status"], "ACTIVE");
    let other = client
        .make(
            "/network/v2.0/ports",
            json!({"port": {"network_id": net.network}}),
        )
        .await;
    assert_eq!(
        other["fixed_ips"][0]["ip_address"], "10.6.0.4",
        "addresses in use are remembered"
    );
}

#[tokio::test]
async fn a_refused_request_stores_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        store: Some(directory.path().join("cloud.sqlite")),
        ..Options::default()
    };
    let cloud = Cloud::open(options.clone()).await.unwrap();
    let client = Client::login(&cloud, "demo").await;
    let before = cloud.resources();
    let external = client
        .fetch("/network/v2.0/networks?router:external=true")
        .await;
    // The gateway port is created before the unknown attribute of the second router is detected.
    let routers = json!({"routers": [{"external_gateway_info": {"network_id": external[0]["id"]}}, {"nonsense": 1}]});
    assert_eq!(
        client.post("/network/v2.0/routers", routers).await.status,
        400
    );
    assert_eq!(cloud.resources(), before);
    drop((client, cloud));
    assert_eq!(reopen(&options).await.resources(), before);
}

#[tokio::test]
async fn one_store_serves_one_cloud_and_no_future_format() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cloud.sqlite");
    let options = Options {
        store: Some(path.clone()),
        ..Options::default()
    };
    let cloud = Cloud::open(options.clone()).await.unwrap();
    assert!(matches!(
        Cloud::open(options.clone()).await,
        Err(OpenError::Store { .. })
    ));
    drop(cloud);
    drop(reopen(&options).await);
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.busy_timeout(PATIENCE).unwrap();
    connection
        .execute_batch("PRAGMA user_version = 99")
        .unwrap();
    drop(connection);
    assert!(matches!(
        Cloud::open(options).await,
        Err(OpenError::Newer { found: 99, .. })
    ));
}

#[tokio::test]
async fn equal_seeds_give_equal_ids() {
    let networks = |cloud: Cloud| async move {
        let client = Client::login(&cloud, "demo").await;
        client
            .make("/network/v2.0/networks", json!({"network": {}}))
            .await["id"]
            .clone()
    };
    let first = networks(cloud().await).await;
    let same = networks(cloud().await).await;
    let other = networks(
        Cloud::open(Options {
            seed: 2,
            ..Options::default()
        })
        .await
        .unwrap(),
    )
    .await;
    assert_eq!(first, same);
    assert_ne!(first, other);
}

/// Opens the store after the last clone and its task have ended, which takes a moment.
async fn reopen(options: &Options) -> Cloud {
    let begun = std::time::Instant::now();
    loop {
        match Cloud::open(options.clone()).await {
            Ok(cloud) => return cloud,
            Err(OpenError::Store { .. }) if begun.elapsed() < PATIENCE => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}
