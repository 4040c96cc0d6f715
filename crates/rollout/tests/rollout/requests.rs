//! The requests of the controller to the API server.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::json;
use testbed::{Asked, Permission};

use crate::world::{MINUTE, World, start};

/// Requests, each with its number.
#[derive(Clone, Default)]
pub(crate) struct Counter {
    asked: Arc<Mutex<BTreeMap<Asked, usize>>>,
}

impl Counter {
    /// A client that counts.
    pub(crate) fn of(&self, client: &Client) -> Client {
        let (counter, inner) = (self.clone(), client.clone());
        let counted = tower::service_fn(move |request: http::Request<Body>| {
            let client = inner.clone();
            *counter.asked.lock().entry(asked(&request)).or_default() += 1;
            async move { client.send(request).await }
        });
        Client::new(counted, testbed::NAMESPACE)
    }

    pub(crate) fn all(&self) -> BTreeMap<Asked, usize> {
        self.asked.lock().clone()
    }

    pub(crate) fn total(&self) -> usize {
        self.asked.lock().values().sum()
    }

    /// Requests besides watches, which the controller begins anew every five minutes.
    pub(crate) fn besides_watches(&self) -> usize {
        let asked = self.asked.lock();
        let others = asked
            .iter()
            .filter(|((_, _, verb), _)| verb != "watch" && verb != "list");
        others.map(|(_, count)| count).sum()
    }

    /// Writes of objects and statuses.
    fn writes(&self) -> usize {
        let asked = self.asked.lock();
        let writes = asked.iter().filter(|((_, resource, verb), _)| {
            resource != "pods/portforward" && !["get", "list", "watch"].contains(&verb.as_str())
        });
        writes.map(|(_, count)| count).sum()
    }
}

/// Requests for objects by what RBAC sees of them, others by their path.
fn asked(request: &http::Request<Body>) -> Asked {
    match Permission::asked(request) {
        Some(permission) => permission.kind(),
        None => (
            String::new(),
            request.uri().path().to_owned(),
            "get".to_owned(),
        ),
    }
}

#[tokio::test(start_paused = true)]
async fn a_cloud_takes_at_most_two_requests_for_each_object_none_at_rest_and_no_write_again() {
    let compute = json!({"driver": "Fake", "fake": {"hypervisors": 2, "zones": ["az1", "az2"]}});
    let exposure = json!({"mode": "Edge", "host": "192.0.2.7"});
    let largest = json!({"release": "2026.1", "compute": compute, "exposure": exposure});
    for spec in [json!({"release": "2026.1"}), largest] {
        let world = World::open().await;
        let counter = Counter::default();
        let controller = start(counter.of(&world.management.client));
        world.create(spec).await;
        world.ready().await;
        let objects = world.owned().await.len();
        tokio::time::sleep(MINUTE).await;
        // Watches, and the forwarded ports of RabbitMQ and Keystone, are part of it.
        let (total, all) = (counter.total(), counter.all());
        assert!(
            total <= 2 * objects,
            "{total} requests for {objects} objects: {all:#?}"
        );
        tokio::time::sleep(MINUTE * 2).await;
        assert_eq!(counter.all(), all, "a cloud at rest");
        drop(controller);

        // Another controller finds everything as it should be.
        let counter = Counter::default();
        let _controller = start(counter.of(&world.management.client));
        tokio::time::sleep(MINUTE).await;
        assert!(counter.total() > 10, "it has looked");
        assert_eq!(counter.writes(), 0, "{:#?}", counter.all());
    }
}
