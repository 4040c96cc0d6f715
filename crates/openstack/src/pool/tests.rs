use std::time::Duration;

use axum::Router;
use futures::future::join_all;

use super::{CloudPool, PoolOptions};
use crate::tests::testing::{self, Keystone};

fn pool(keystone: &Keystone, idle: Duration) -> CloudPool {
    CloudPool::new(PoolOptions {
        session: testing::options(keystone, Router::new()),
        background: false,
        idle,
        ..PoolOptions::default()
    })
}

const LONG: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn many_askers_for_one_credential_cause_one_login() {
    let keystone = Keystone::default();
    let pool = pool(&keystone, LONG);
    let config = testing::config("secret");
    let clouds = join_all((0..20).map(|_| pool.get(&config))).await;
    assert!(clouds.iter().all(Result::is_ok));
    assert_eq!((keystone.logins(), pool.len()), (1, 1));
}

#[tokio::test]
async fn credentials_that_differ_in_any_field_share_nothing() {
    let keystone = Keystone::default();
    let pool = pool(&keystone, LONG);
    let config = testing::config("secret");
    let first = pool.get(&config).await.unwrap();
    for other in [
        testing::config("other"),
        config.clone().with_region(Some("two")),
        config.clone().with_ca(Some("PEM")),
    ] {
        let second = pool.get(&other).await.unwrap();
        assert_ne!(first.inventory.scope(), second.inventory.scope());
    }
    assert_eq!((keystone.logins(), pool.len()), (4, 4));
}

#[tokio::test]
async fn a_rejected_credential_is_tried_again_by_the_next_request() {
    let keystone = Keystone::default();
    let pool = pool(&keystone, LONG);
    assert!(pool.get(&testing::config("wrong")).await.is_err());
    assert!(pool.get(&testing::config("wrong")).await.is_err());
    assert_eq!(keystone.logins(), 2);
}

#[tokio::test]
async fn a_cloud_is_dropped_when_it_is_idle_and_has_no_users() {
    let pool = pool(&Keystone::default(), Duration::ZERO);
    let held = pool.get(&testing::config("held")).await.unwrap();
    drop(pool.get(&testing::config("unused")).await.unwrap());
    drop(pool.get(&testing::config("new")).await.unwrap());
    assert_eq!(pool.len(), 2, "held and new");
    let again = pool.get(&testing::config("held")).await.unwrap();
    assert_eq!(again.inventory.scope(), held.inventory.scope());
}
