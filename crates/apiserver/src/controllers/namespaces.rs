//! Deletion of namespaces (`pkg/controller/namespace/deletion` of Kubernetes), and restoration of the default objects
//! of namespaces (`pkg/controller/serviceaccount`, `pkg/controller/certificates/rootcacertpublisher`).

use std::sync::Arc;

use apimachinery::kinds::Resource;
use apimachinery::patch::managed::{self, Writer};
use apimachinery::time::seconds;
use jiff::Timestamp;
use serde_json::Value;

use super::conditions::Left;
use super::{Collector, report};
use crate::controlplane;
use crate::namespaces::{self, is_in_every_namespace};
use crate::rest::edit;
use crate::store::{Change, Object, ObjectKey};
use crate::view::Kind;

const PODS: &str = "/pods";

impl Collector<'_> {
    /// Deletes all [`Object`]s in a namespace, pods first, then removes the namespace's finalizer.
    pub(super) async fn namespace(&self, resource: &Resource, object: &Object) {
        let prefix = format!("{}/", object.key);
        if !self.purge(&PODS.into(), &prefix).await {
            // While there are pods, the namespace controller of Kubernetes counts nothing else.
            self.set_conditions(resource, object, Left::default()).await;
            return;
        }
        let mut empty = true;
        for collection in self.namespaced() {
            empty &= self.purge(&collection, &prefix).await;
        }
        if !empty {
            self.set_conditions(resource, object, self.left(&prefix))
                .await;
            return;
        }
        let done = edit(self.core, resource, &object.key, |namespace| {
            let finalizers = namespace.get_mut("spec").and_then(Value::as_object_mut);
            finalizers.is_some_and(|spec| spec.remove("finalizers").is_some())
        });
        report(done.await.map(drop));
    }

    /// Collections of namespaced resources.
    fn namespaced(&self) -> Vec<Arc<str>> {
        let populated: Vec<Arc<str>> = self.core.store.read().populated().cloned().collect();
        let registry = self.core.store.registry();
        let is_namespaced = |collection: &Arc<str>| {
            let (group, plural) = collection.split_once('/')?;
            Some(registry.find(group, plural)?.namespaced)
        };
        let namespaced = populated.into_iter();
        namespaced
            .filter(|collection| is_namespaced(collection).unwrap_or(false))
            .collect()
    }

    fn left(&self, prefix: &str) -> Left {
        let mut left = Left::default();
        for collection in self.namespaced() {
            let (group, plural) = collection.split_once('/').unwrap_or(("", &collection));
            let state = self.core.store.read();
            for object in state.range(&collection, prefix, None) {
                left.count(plural, group, &object.facts.finalizers);
            }
        }
        left
    }

    /// Sets the conditions for the remaining content.
    async fn set_conditions(&self, resource: &Resource, namespace: &Object, left: Left) {
        let now = Timestamp::now();
        let time = seconds(now);
        let done = edit(self.core, resource, &namespace.key, |namespace| {
            let before = namespace.clone();
            let conditions = left.conditions(&namespace["status"]["conditions"], &time);
            if namespace["status"]["conditions"] == conditions {
                return false;
            }
            namespace["status"]["conditions"] = conditions;
            let writer = Writer {
                manager: "kube-controller-manager",
                subresource: "status",
                api_version: "v1",
                time: &time,
            };
            let kind = Kind {
                core: self.core,
                resource,
            };
            // A failure to record managers never fails a write.
            let _ = managed::update(Some(&before), namespace, writer, &kind);
            true
        });
        report(done.await.map(drop));
    }

    /// Restores the default [`Object`]s of namespaces, and objects of the server itself, after a deletion or a change.
    pub(super) async fn restore(&self, change: Change, place: &ObjectKey, object: &Object) {
        if controlplane::is_kept(self.core, place) {
            if let Err(problem) = controlplane::keep(self.core).await {
                tracing::warn!(problem, key = %place.key, "an object of the server could not be restored");
            }
            return;
        }
        if !is_in_every_namespace(&place.collection, object.name()) {
            return;
        }
        let namespace = self.core.store.get("/namespaces", object.namespace());
        if namespace.is_none_or(|namespace| namespace.facts.deleting) {
            return;
        }
        if change == Change::Deleted {
            if let Err(problem) = namespaces::create_defaults(self.core, object.namespace()).await {
                tracing::warn!(
                    problem,
                    namespace = object.namespace(),
                    "what every namespace has could not be restored"
                );
            }
        } else if let Some(resource) = self.resource(place) {
            let done = edit(self.core, &resource, &place.key, |map| {
                let live = map.clone();
                let changed = namespaces::correct(self.core, map);
                if changed {
                    self.record(&resource, &live, map);
                }
                changed
            });
            report(done.await.map(drop));
        }
    }
}
