use futures::stream;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;

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

async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
