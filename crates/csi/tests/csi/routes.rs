//! Every request of the driver is one that fails in some test.

use std::collections::BTreeSet;

use crate::{faults, groups, modify};

/// Requests of the tests themselves, and of the cloud to itself.
const NOT_OF_THE_DRIVER: [&str; 6] = [
    "POST /v2.1/servers",
    "GET /v2.1/servers",
    "GET /v2.1/servers/{server_id}",
    "DELETE /v2.1/servers/{server_id}",
    "GET /v2.1/flavors",
    "GET /v2/images",
];

#[tokio::test(start_paused = true)]
async fn every_request_of_the_driver_is_one_that_fails_in_a_test() {
    let world = groups::open().await;
    let server = world.server("node-1").await;
    world.requests();
    faults::life(&world, &server).await.unwrap();
    faults::life_with_reads(&world, &server).await.unwrap();
    faults::life_with_a_lost_server(&world).await.unwrap();
    faults::backup_life(&world).await.unwrap();
    groups::life(&world).await.unwrap();
    modify::life(&world).await.unwrap();
    let of_faults = [
        &faults::OF_LIFE[..],
        &faults::OF_BACKUP_LIFE,
        &faults::OF_LOST_SERVER,
        &faults::BESIDE,
        &groups::OF_LIFE,
        &modify::OF_LIFE,
    ];
    let fail = of_faults.concat().into_iter();
    let fail: BTreeSet<String> = fail
        .map(|[_, method, route]| format!("{method} {route}"))
        .collect();
    let requests = world.requests();
    let seen = requests
        .keys()
        .filter(|it| !NOT_OF_THE_DRIVER.contains(&it.as_str()));
    let missing: Vec<&String> = seen.filter(|it| !fail.contains(*it)).collect();
    assert!(missing.is_empty(), "never faulted: {missing:?}");
}
