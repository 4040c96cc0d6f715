use futures::stream;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::{self, Event};

use super::*;

#[derive(Debug, thiserror::Error)]
#[error("it fails always")]
struct Always;

impl Retry for Always {
    fn when(&self) -> When {
        When::Backoff
    }
}

#[tokio::test]
async fn the_failures_of_a_deleted_object_are_forgotten() {
    let mut object = ConfigMap::default();
    object.metadata.name = Some("a".to_owned());
    let mut writer = Writer::<ConfigMap>::default();
    writer.apply_watcher_event(&Event::Init);
    writer.apply_watcher_event(&Event::InitApply(object.clone()));
    writer.apply_watcher_event(&Event::InitDone);
    let trigger = stream::iter([ObjectRef::from_obj(&object)]).chain(stream::pending());
    let controller =
        Controller::for_stream(stream::pending(), writer.as_reader()).reconcile_on(trigger);
    let shutdown = CancellationToken::new();
    let settings = Settings {
        name: "test",
        concurrency: 1,
        objects: Objects::default(),
        metrics: Metrics::default(),
        shutdown: shutdown.clone(),
    };
    let failures = Arc::new(Failures::default());
    let reconcile = |_: Arc<ConfigMap>, _: Arc<()>| async { Err::<Action, _>(Always) };
    let running = run_with(
        controller,
        reconcile,
        Arc::default(),
        settings,
        Arc::clone(&failures),
    );
    let running = tokio::spawn(running);
    until(|| !failures.is_empty()).await;
    writer.apply_watcher_event(&Event::Delete(object));
    until(|| failures.is_empty()).await;
    shutdown.cancel();
    running.await.unwrap();
}

/// The CRDs of several kinds change at one time: the API server ends their watches, and refuses the next ones until the
/// caches of these kinds are filled.
#[tokio::test(start_paused = true)]
async fn watches_that_are_refused_delay_no_reconcile_of_another_kind() {
    let mut object = ConfigMap::default();
    object.metadata.name = Some("a".to_owned());
    let mut writer = Writer::<ConfigMap>::default();
    writer.apply_watcher_event(&Event::Init);
    writer.apply_watcher_event(&Event::InitApply(object.clone()));
    writer.apply_watcher_event(&Event::InitDone);
    let expired = || stream::repeat_with(|| Err(watcher::Error::NoResourceVersion)).take(2);
    let ends = |kind| {
        let events = expired().chain(stream::pending::<watcher::Result<ConfigMap>>());
        crate::watch::restarted(events, kind)
    };
    let changes = stream::once(async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(object)
    });
    let controller = Controller::for_stream(changes.chain(stream::pending()), writer.as_reader());
    let mut controller = controller;
    for kind in [
        "machine",
        "cluster",
        "openstackcluster",
        "secret",
        "server",
        "pool",
    ] {
        controller = controller.watches_stream(ends(kind), |_| None::<ObjectRef<ConfigMap>>);
    }
    let started = tokio::time::Instant::now();
    let (reconciled, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let reconcile = move |_: Arc<ConfigMap>, _: Arc<()>| {
        let _ = reconciled.send(started.elapsed());
        async { Ok::<_, Always>(Action::await_change()) }
    };
    let shutdown = CancellationToken::new();
    let settings = Settings {
        name: "test",
        concurrency: 1,
        objects: Objects::default(),
        metrics: Metrics::default(),
        shutdown: shutdown.clone(),
    };
    let running = tokio::spawn(run(controller, reconcile, Arc::default(), settings));
    let after = seen.recv().await.unwrap();
    assert!(after < Duration::from_secs(2), "{after:?}");
    shutdown.cancel();
    running.await.unwrap();
}

async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn a_filter_selects_objects_by_the_value_of_their_label() {
    let labels = |pairs: &[(&str, &str)]| {
        let owned = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        owned.collect::<BTreeMap<String, String>>()
    };
    let of = |filter: Option<&str>| Objects {
        filter: filter.map(str::to_owned),
        ..Objects::default()
    };
    let ours = labels(&[("cluster.x-k8s.io/watch-filter", "mine")]);
    let theirs = labels(&[("cluster.x-k8s.io/watch-filter", "theirs")]);
    let cases = [
        (None, &ours, true),
        (None, &labels(&[]), true),
        (Some("mine"), &ours, true),
        (Some("mine"), &theirs, false),
        (Some("mine"), &labels(&[]), false),
        (Some("mine"), &labels(&[("other", "mine")]), false),
    ];
    for (filter, labels, expected) in cases {
        assert_eq!(
            of(filter).include(labels),
            expected,
            "{filter:?} {labels:?}"
        );
    }
}

#[test]
fn an_object_at_rest_is_looked_at_again_after_the_sync_period() {
    let objects = Objects {
        resync: Duration::from_secs(60),
        ..Objects::default()
    };
    let cases = [
        (
            Action::requeue(RESYNC),
            Action::requeue(Duration::from_secs(60)),
        ),
        (
            Action::requeue(Duration::from_secs(2)),
            Action::requeue(Duration::from_secs(2)),
        ),
        (Action::await_change(), Action::await_change()),
    ];
    for (given, expected) in cases {
        assert_eq!(objects.paced(given), expected);
    }
}

#[tokio::test]
async fn objects_without_the_label_of_the_filter_are_left_alone() {
    let mut writer = Writer::<ConfigMap>::default();
    writer.apply_watcher_event(&Event::Init);
    let mut references = Vec::new();
    for (name, filter) in [("theirs", None), ("ours", Some("mine"))] {
        let mut object = ConfigMap::default();
        object.metadata.name = Some(name.to_owned());
        object.metadata.labels =
            filter.map(|value: &str| [(WATCH_FILTER_LABEL.to_owned(), value.to_owned())].into());
        references.push(ObjectRef::from_obj(&object));
        writer.apply_watcher_event(&Event::InitApply(object));
    }
    writer.apply_watcher_event(&Event::InitDone);
    let trigger = stream::iter(references).chain(stream::pending());
    let controller =
        Controller::for_stream(stream::pending(), writer.as_reader()).reconcile_on(trigger);
    let shutdown = CancellationToken::new();
    let settings = Settings {
        name: "test",
        concurrency: 1,
        objects: Objects {
            filter: Some("mine".to_owned()),
            ..Objects::default()
        },
        metrics: Metrics::default(),
        shutdown: shutdown.clone(),
    };
    let seen = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let reconcile = |object: Arc<ConfigMap>, seen: Arc<parking_lot::Mutex<Vec<String>>>| async move {
        seen.lock().push(object.name_any());
        Ok::<_, Always>(Action::await_change())
    };
    let running = tokio::spawn(run(controller, reconcile, Arc::clone(&seen), settings));
    until(|| !seen.lock().is_empty()).await;
    shutdown.cancel();
    running.await.unwrap();
    assert_eq!(*seen.lock(), ["ours"]);
}
