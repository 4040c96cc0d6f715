//! Interrupted moves, and failing requests.

use std::collections::HashSet;
use std::sync::Arc;

use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use testbed::Fuse;

use crate::world::{World, options};

/// A `ferrostack move` is killed at its second write: the first one is the record.
const WRITES: usize = 2;
const MOST_KILLS: usize = 1000;

/// Work of a process until it is killed at a write.
async fn until_killed<T>(fuse: &Fuse, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        () = fuse.blown() => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_is_killed_at_each_write_ends_like_one_that_was_not() {
    let mut world = World::with_cluster(1, 1).await;
    let (resources, ids, writes) = (world.resources(), world.here.ids().await, world.written());
    let objects = world.here.objects().await.len();
    let mut kills = 0;
    loop {
        let fuse = Fuse::at(WRITES);
        let here = fuse.protect(&world.here.management.client);
        let there = fuse.protect(&world.there.management.client);
        let options = options();
        let ended = until_killed(&fuse, mover::to_cluster(&here, &there, &options, &|_| {})).await;
        let both = world.here.is_active().await && world.there.is_active().await;
        assert!(!both, "two active owners after kill {kills}");
        match ended {
            Some(Ok(_)) => break,
            // The last write was the end of the record.
            Some(Err(error)) if error.to_string().contains("nothing to move") => break,
            Some(Err(error)) => panic!("{error}"),
            None => kills += 1,
        }
        assert!(kills < MOST_KILLS, "no end: {:?}", fuse.writes());
    }
    // Each object is created there, deleted here, and loses its mark.
    assert!(kills >= 3 * objects, "{kills} kills, {objects} objects");
    assert_eq!(world.here.objects().await.len(), 0);
    world.there.available(2).await;
    assert_eq!(world.there.ids().await, ids);
    assert_eq!(world.resources(), resources);
    assert_eq!(world.written(), writes);

    // The undo is tested, too: after a kill at each write of a move, with a kill at each write of the undo.
    world.turn();
    for nth in [2, 3, 4, 20, 45, 60] {
        let fuse = Fuse::at(nth);
        let here = fuse.protect(&world.here.management.client);
        let there = fuse.protect(&world.there.management.client);
        let options = options();
        let ended = until_killed(&fuse, mover::to_cluster(&here, &there, &options, &|_| {})).await;
        assert!(
            ended.is_none(),
            "write {nth}: {:?}",
            ended.map(|result| result.map(drop))
        );
        undone(&world).await;
        assert_eq!(world.there.objects().await.len(), 0, "write {nth}");
        world.here.available(2).await;
    }
    assert_eq!(world.resources(), resources);
    assert_eq!(world.written(), writes);
}

/// Undoes a move, killed at each write.
async fn undone(world: &World) {
    for kills in 0.. {
        let fuse = Fuse::at(WRITES);
        let here = fuse.protect(&world.here.management.client);
        let there = fuse.protect(&world.there.management.client);
        let options = options();
        let ended = until_killed(
            &fuse,
            mover::roll_back(&here, Some(&there), &options, &|_| {}),
        )
        .await;
        assert!(!(world.here.is_active().await && world.there.is_active().await));
        match ended {
            Some(Ok(())) => return,
            // The last write was the end of the record.
            Some(Err(error)) if kills > 0 && error.to_string().contains("was cut off") => return,
            Some(Err(error)) => panic!("{error}"),
            None => assert!(kills < MOST_KILLS),
        }
    }
}

/// Fails each request once: the first of a kind before it is executed, the second after, and so on.
#[derive(Clone, Default)]
struct Faults(Arc<Mutex<HashSet<String>>>);

impl Faults {
    fn protect(&self, client: &Client) -> Client {
        let (faults, inner) = (self.clone(), client.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (faults, client) = (faults.clone(), inner.clone());
            async move {
                let query = if request.method() == Method::GET {
                    request.uri().query().unwrap_or_default()
                } else {
                    ""
                };
                let key = format!("{} {}?{query}", request.method(), request.uri().path());
                let (is_new, before) = {
                    let mut seen = faults.0.lock();
                    (seen.insert(key), seen.len().is_multiple_of(2))
                };
                if !is_new {
                    return client.send(request).await;
                }
                if !before {
                    let _lost = client.send(request).await;
                }
                let why = std::io::Error::new(std::io::ErrorKind::ConnectionReset, "reset");
                Err(kube::Error::Service(Box::new(why)))
            }
        });
        Client::new(service, client.default_namespace())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_request_may_fail_once_and_answers_may_be_lost() {
    let world = World::with_cluster(1, 1).await;
    let (ids, writes) = (world.here.ids().await, world.written());
    let (one, other) = (Faults::default(), Faults::default());
    let here = one.protect(&world.here.management.client);
    let there = other.protect(&world.there.management.client);
    mover::to_cluster(&here, &there, &options(), &|_| {})
        .await
        .unwrap();
    assert!(one.0.lock().len() > 50 && other.0.lock().len() > 50);
    assert_eq!(world.here.objects().await.len(), 0);
    world.there.available(2).await;
    assert_eq!((world.there.ids().await, world.written()), (ids, writes));
    world.deleted_without_a_trace().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_fails_for_good_or_an_interrupt_leaves_the_source_as_it_was() {
    let mut world = World::with_cluster(1, 1).await;
    let before = world.here.objects().await;

    // Nobody is there who would look after the cluster.
    world.there.stop().await;
    let hasty = mover::Options {
        confirm_within: std::time::Duration::from_secs(3),
        ..options()
    };
    let error = world.go(&hasty).await.unwrap_err().to_string();
    assert!(
        error.contains("Cluster/demo: no controller has confirmed that it is there and paused"),
        "{error}"
    );
    assert!(error.contains("Nothing has moved"), "{error}");
    assert_eq!(world.there.objects().await.len(), 0);
    world.here.available(2).await;

    // The same on this side.
    let cloud = world.cloud.clone();
    world.there.run(&cloud);
    world.here.stop().await;
    let error = world.go(&hasty).await.unwrap_err().to_string();
    assert!(
        error.contains("its controller has not confirmed that it is paused"),
        "{error}"
    );
    assert!(world.here.is_active().await);
    world.here.run(&cloud);
    world.here.available(2).await;

    let interrupted = options();
    interrupted.stop.cancel();
    let error = world.go(&interrupted).await.unwrap_err().to_string();
    assert!(
        error.starts_with("interrupted\nNothing has moved"),
        "{error}"
    );
    let after = world.here.objects().await;
    assert_eq!(
        after.keys().collect::<Vec<_>>(),
        before.keys().collect::<Vec<_>>()
    );
    let annotations = |object: &serde_json::Value| {
        let found = object["metadata"]["annotations"].as_object().cloned();
        found.unwrap_or_default()
    };
    for (name, object) in &after {
        assert_eq!(annotations(object), annotations(&before[name]), "{name}");
        assert_eq!(object["spec"], before[name]["spec"], "{name}");
    }
    assert_eq!(world.there.objects().await.len(), 0);
}
