//! Scheduler hints from the annotations of claims.

use std::collections::BTreeMap;
use std::sync::Arc;

use csi::{Claims, Options};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use grpc::Code;
use parking_lot::Mutex;
use serde_json::json;
use simulator::cloud::Options as CloudOptions;

use crate::faults::until_final;
use crate::world::{World, new_volume, options, pairs, refused};

const AFFINITY: &str = "cinder.csi.openstack.org/affinity";
const ANTI_AFFINITY: &str = "cinder.csi.openstack.org/anti-affinity";

type Read = Result<Option<BTreeMap<String, String>>, String>;

/// The one claim, `default/data-db-0`.
#[derive(Debug)]
struct Claim(Mutex<Read>);

impl Claims for Claim {
    fn annotations<'a>(&'a self, namespace: &'a str, name: &'a str) -> BoxFuture<'a, Read> {
        assert_eq!((namespace, name), ("default", "data-db-0"));
        let read = self.0.lock().clone();
        async move { read }.boxed()
    }
}

impl Claim {
    fn annotate(&self, annotations: &[(&str, &str)]) {
        *self.0.lock() = Ok(Some(pairs(annotations)));
    }
}

async fn open() -> (World, Arc<Claim>) {
    let claim = Arc::new(Claim(Mutex::new(Ok(Some(BTreeMap::new())))));
    let claims: Arc<dyn Claims> = claim.clone();
    let options = Options {
        claims: Some(claims),
        ..options()
    };
    (
        World::open_on(CloudOptions::default(), options).await,
        claim,
    )
}

/// The back end of a volume, as an administrator sees it.
async fn host(world: &World, id: &str) -> String {
    let all = world
        .administrate("GET", "/volumes/detail?all_tenants=1", json!(null))
        .await;
    let all = all["volumes"].as_array().unwrap().clone();
    let found = all.iter().find(|it| it["id"] == id).unwrap();
    found["os-vol-host-attr:host"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_volume_is_beside_one_that_its_claim_names_or_apart_from_it() {
    let (world, claim) = open().await;
    let first = world.volume("pvc-1", 1).await;
    assert!(first.volume_context.is_empty());
    let first = first.volume_id;
    let place = host(&world, &first).await;
    for (index, named) in ["pvc-1", first.as_str()].into_iter().enumerate() {
        claim.annotate(&[(AFFINITY, named)]);
        let name = format!("beside-{index}");
        let beside = world.volume(&name, 1).await;
        assert_eq!(host(&world, &beside.volume_id).await, place);
        assert_eq!(beside.volume_context["affinity"], first);
        claim.annotate(&[(ANTI_AFFINITY, &format!(" {named} ,{first}, "))]);
        let name = format!("apart-{index}");
        let apart = world.volume(&name, 1).await;
        assert_ne!(host(&world, &apart.volume_id).await, place);
        assert_eq!(apart.volume_context["anti-affinity"], first);
        // A repeated answer has the same context.
        assert_eq!(world.volume(&name, 1).await, apart);
    }
}

#[tokio::test(start_paused = true)]
async fn hints_that_no_back_end_fits_end_in_no_volume() {
    let (world, claim) = open().await;
    let first = world.volume("pvc-1", 1).await.volume_id;
    claim.annotate(&[(AFFINITY, &first), (ANTI_AFFINITY, &first)]);
    refused(
        until_final(async || world.create(new_volume("pvc-2", 1)).await).await,
        Code::ResourceExhausted,
        "Could not find any available weighted backend",
    );
    assert_eq!(world.all("volumes").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn volumes_that_are_not_there_or_not_one_are_told() {
    let (world, claim) = open().await;
    world.volume("pvc-1", 1).await;
    for _ in 0..2 {
        let body = json!({"volume": {"name": "twins", "size": 1}});
        world
            .request("POST", &world.volumes("/volumes"), body)
            .await;
    }
    for (named, words) in [
        ("pvc-1,absent", "there is no volume absent"),
        ("twins", "2 volumes have the name twins: name one by its id"),
    ] {
        for key in [AFFINITY, ANTI_AFFINITY] {
            claim.annotate(&[(key, named)]);
            refused(
                world.create(new_volume("pvc-2", 1)).await,
                Code::InvalidArgument,
                &format!("annotation {key} of the claim: {words}"),
            );
        }
    }
    assert_eq!(world.all("volumes").await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_cannot_be_read_is_no_final_code_and_one_that_is_gone_no_hint() {
    let (world, claim) = open().await;
    *claim.0.lock() = Err("connection refused".to_owned());
    world.requests();
    refused(
        world.create(new_volume("pvc-1", 1)).await,
        Code::Unavailable,
        "claim default/data-db-0 cannot be read: connection refused",
    );
    assert!(!world.requests().keys().any(|it| it.starts_with("POST")));
    // A volume begun for a deleted claim is found, and can be deleted.
    *claim.0.lock() = Ok(None);
    let id = world.volume("pvc-1", 1).await.volume_id;
    world.delete(&id).await.unwrap();
    // Without the sidecar's parameters, there is no claim to read.
    *claim.0.lock() = Err("not asked".to_owned());
    let mut request = new_volume("pvc-2", 1);
    request.parameters.clear();
    world.create(request).await.unwrap();
}
