//! Events on Pods and workloads without a runner, as the reason in `kubectl describe`.

use apimachinery::time::seconds;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Collector, report};
use crate::namespaces;
use crate::rest::edit;
use crate::store::{Change, Object, ObjectKey};

/// Source of the Events.
const COMPONENT: &str = "ferrostack";
/// Maximum age of a Lease's renewal for a running scheduler or controller manager; both renew every 2 seconds.
const RENEWED: SignedDuration = SignedDuration::from_secs(60);
const WORKLOADS: [&str; 7] = [
    "/replicationcontrollers",
    "apps/daemonsets",
    "apps/deployments",
    "apps/replicasets",
    "apps/statefulsets",
    "batch/cronjobs",
    "batch/jobs",
];

impl Collector<'_> {
    /// Reports a new Pod or workload that nothing will run.
    pub(super) async fn not_run(&self, change: Change, place: &ObjectKey, object: &Object) {
        let Some(why) = &self.core.options.not_run else {
            return;
        };
        if change != Change::Added {
            return;
        }
        let object = object.value();
        let lease = match &*place.collection {
            "/pods" if is_waiting(&object) => "kube-system/kube-scheduler",
            collection if WORKLOADS.contains(&collection) && !is_controlled(&object) => {
                "kube-system/kube-controller-manager"
            }
            _ => return,
        };
        if self.is_renewed(lease, Timestamp::now()) {
            return;
        }
        let Some(message) = why(&object) else {
            return;
        };
        if &*place.collection == "/pods" {
            self.unschedulable(place, &message).await;
        }
        self.event(&object, &message).await;
    }

    /// True if the holder of the Lease runs.
    fn is_renewed(&self, key: &str, now: Timestamp) -> bool {
        let lease = self.core.store.get("coordination.k8s.io/leases", key);
        let renewed = lease.and_then(|lease| {
            let lease = lease.value();
            lease["spec"]["renewTime"]
                .as_str()?
                .parse::<Timestamp>()
                .ok()
        });
        renewed.is_some_and(|at| now.duration_since(at) < RENEWED)
    }

    /// Sets the condition PodScheduled, as the scheduler does for a Pod that fits on no node.
    async fn unschedulable(&self, place: &ObjectKey, message: &str) {
        let Some(resource) = self.resource(place) else {
            return;
        };
        let now = seconds(Timestamp::now());
        let done = edit(self.core, &resource, &place.key, |pod| {
            if !is_waiting(pod) || is_bound(pod) {
                return false;
            }
            let live = pod.clone();
            pod["status"]["conditions"] = json!([{
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
                "lastProbeTime": null, "lastTransitionTime": now,
            }]);
            self.record(&resource, &live, pod);
            true
        });
        report(done.await.map(drop));
    }

    async fn event(&self, object: &Value, message: &str) {
        let text = |pointer: &str| {
            let found = object.pointer(pointer).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let (namespace, uid) = (text("/metadata/namespace"), text("/metadata/uid"));
        // Unique for the object: a repeated write creates no second Event.
        let suffix: String = uid.chars().filter(|c| *c != '-').take(16).collect();
        let name = format!("{}.{suffix}", text("/metadata/name"));
        let reason = match text("/kind").as_str() {
            "Pod" if is_bound(object) => "NotStarted",
            "Pod" => "FailedScheduling",
            _ => "NoPodsCreated",
        };
        let now = seconds(Timestamp::now());
        let event = || {
            let mut event = namespaces::object("Event", &namespace, &name, json!({}));
            event["involvedObject"] = json!({
                "apiVersion": text("/apiVersion"), "kind": text("/kind"), "namespace": namespace,
                "name": text("/metadata/name"), "uid": uid,
                "resourceVersion": text("/metadata/resourceVersion"),
            });
            event["type"] = "Warning".into();
            event["reason"] = reason.into();
            event["message"] = message.into();
            event["count"] = 1.into();
            event["firstTimestamp"] = now.clone().into();
            event["lastTimestamp"] = now.clone().into();
            event["source"] = json!({"component": COMPONENT});
            event["reportingComponent"] = COMPONENT.into();
            event["reportingInstance"] = "".into();
            event["eventTime"] = Value::Null;
            event
        };
        let key = format!("{namespace}/{name}");
        let created = namespaces::create_missing(self.core, COMPONENT, "/events", &key, event);
        if let Err(error) = created.await {
            tracing::warn!(%error, "an event could not be written");
        }
    }
}

/// True if a Pod waits for the default scheduler, or for the kubelet of a node. Pods of nodes and of simulated
/// controllers have a controller, and are bound from the start.
fn is_waiting(pod: &Value) -> bool {
    let phase = &pod["status"]["phase"];
    let scheduler = &pod["spec"]["schedulerName"];
    let by_default = scheduler.is_null() || scheduler == "default-scheduler";
    let created_by_hand = if is_bound(pod) {
        !is_controlled(pod)
    } else {
        by_default
    };
    (phase.is_null() || phase == "Pending") && created_by_hand
}

fn is_bound(pod: &Value) -> bool {
    pod["spec"]["nodeName"]
        .as_str()
        .is_some_and(|node| !node.is_empty())
}

fn is_controlled(object: &Value) -> bool {
    let mut owners = object["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten();
    owners.any(|owner| owner["controller"] == true)
}
