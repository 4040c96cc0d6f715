//! Objects of a workload cluster and their changes, as events of a watch.

use apiserver::{Followed, InProcess};
use futures::{Stream, StreamExt as _, stream};
use kube::Resource;
use kube::runtime::watcher::Event;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tracing::debug;

/// Returns the objects of a kind, in one namespace or in all, and their changes, until the server is closed.
pub(super) fn followed<K>(
    server: &InProcess,
    namespace: Option<&str>,
) -> impl Stream<Item = Event<K>> + Send + use<K>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Send + 'static,
{
    let found = server.follow(&K::group(&()), &K::plural(&()), namespace);
    let found = stream::iter(found).flatten();
    found.flat_map(|followed| {
        stream::iter(match followed {
            Followed::Listed(all) => {
                let listed = all.into_iter().filter_map(typed).map(Event::InitApply);
                let whole = std::iter::once(Event::Init).chain(listed);
                whole.chain([Event::InitDone]).collect()
            }
            Followed::Written(object) => one(object, Event::Apply),
            Followed::Deleted(object) => one(object, Event::Delete),
        })
    })
}

fn one<K: DeserializeOwned>(object: Value, event: fn(K) -> Event<K>) -> Vec<Event<K>> {
    typed(object).map(event).into_iter().collect()
}

/// Decodes the object; `None` if that fails, which the API server's schemas prevent.
fn typed<K: DeserializeOwned>(object: Value) -> Option<K> {
    let typed = serde_json::from_value(object);
    typed
        .inspect_err(|error| debug!("an object cannot be decoded: {error}"))
        .ok()
}
