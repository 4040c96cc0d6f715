//! Stores of watches that may not have listed their kind yet.
//!
//! kube's [`Store::wait_until_ready`] remembers the last waker alone (`DelayedInit` polls one `oneshot::Receiver`, as
//! of kube 5): if several tasks wait for one store, one continues and the others wait for ever. A controller does not
//! reconcile their objects again either, since such a reconcile counts as running.

use std::future::pending;
use std::hash::Hash;
use std::time::Duration;

use futures::FutureExt;
use kube::runtime::reflector::{Lookup, Store};
use tokio::time::sleep;

/// Pauses between two polls of a store: the first one and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(200));

/// Waits until the watch behind `store` has listed its kind. Any number of tasks may wait. Returns false if the watch
/// ends first, as at shutdown.
pub async fn listed<K>(store: &Store<K>) -> bool
where
    K: Lookup + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    let (mut pause, longest) = PAUSES;
    loop {
        match known(store) {
            Some(listed) => return listed,
            None => sleep(pause).await,
        }
        pause = longest.min(pause * 2);
    }
}

/// Polls `running` until `store` is listed, even without a wake-up: kube's controllers wait for their stores, too, and
/// may have lost the waker to a later task.
pub(crate) async fn polled_until_listed<K>(store: Store<K>, running: impl Future<Output = ()>)
where
    K: Lookup + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    let polls = async {
        listed(&store).await;
        // Once more, since the kind may have been listed after `running` was polled.
        sleep(PAUSES.0).await;
        pending::<()>().await;
    };
    tokio::select! {
        () = running => {}
        () = polls => {}
    }
}

/// True once the watch behind `store` has listed the kind.
pub fn is_listed<K>(store: &Store<K>) -> bool
where
    K: Lookup + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    known(store) == Some(true)
}

/// Returns `None` while the answer is not known.
fn known<K>(store: &Store<K>) -> Option<bool>
where
    K: Lookup + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    store
        .wait_until_ready()
        .now_or_never()
        .map(|listed| listed.is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    use api::k8s_openapi::api::core::v1::Node;
    use futures::future::join_all;
    use kube::runtime::reflector::store::Writer;
    use kube::runtime::watcher::Event;

    #[tokio::test(start_paused = true)]
    async fn all_that_wait_for_a_store_continue_when_its_kind_is_listed() {
        let mut writer = Writer::<Node>::default();
        let store = writer.as_reader();
        let waiting = (0..3).map(|_| {
            let store = store.clone();
            tokio::spawn(async move { listed(&store).await })
        });
        let waiting: Vec<_> = waiting.collect();
        sleep(PAUSES.0).await;
        assert!(!is_listed(&store));
        writer.apply_watcher_event(&Event::Init);
        writer.apply_watcher_event(&Event::InitDone);
        let all = tokio::time::timeout(Duration::from_secs(60), join_all(waiting));
        for waited in all.await.unwrap() {
            assert!(waited.unwrap());
        }
        assert!(is_listed(&store));
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_as_kube_does_continues_although_others_have_asked_since() {
        let mut writer = Writer::<Node>::default();
        let store = writer.as_reader();
        let waiting = store.clone();
        let running = async move { waiting.wait_until_ready().await.unwrap() };
        let running = tokio::spawn(polled_until_listed(store.clone(), running));
        sleep(PAUSES.1).await;
        assert!(!is_listed(&store));
        writer.apply_watcher_event(&Event::Init);
        writer.apply_watcher_event(&Event::InitDone);
        let ended = tokio::time::timeout(Duration::from_secs(60), running).await;
        ended.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_ends_before_it_has_listed_is_not_waited_for() {
        let writer = Writer::<Node>::default();
        let store = writer.as_reader();
        let waiting = tokio::spawn(async move { listed(&store).await });
        sleep(PAUSES.0).await;
        drop(writer);
        assert!(!waiting.await.unwrap());
    }
}
