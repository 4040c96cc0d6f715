//! Guards: a Pod on each compute node, with a PodDisruptionBudget against evictions.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::turn::Answer;
use super::{Observed, items, text};
use crate::cloud::Cloud;
use crate::held::{Credentials, PART_OF, UID, digest};
use crate::image;
use crate::service::fake;

/// Kind of the budgets.
pub const BUDGET: &str = "PodDisruptionBudget";
/// Name of the program, and prefix of the names of Pods and budgets.
const GUARD: &str = "compute-guard";
/// Label of a guard: hash of the name of the node, since names may be too long for labels.
const LABEL: &str = "ferrostack.dev/guard";
/// Annotation: name of the node.
const NODE: &str = "ferrostack.dev/node";
/// Annotation: id of the compute service in Nova.
const SERVICE: &str = "ferrostack.dev/compute-service";
/// Annotation: time of the cordon or of the deletion of the node.
const SINCE: &str = "ferrostack.dev/cordoned-since";
/// A shell as the first process ends by a signal only if it asks for it.
const SLEEP: &str = "trap 'exit 0' TERM; sleep infinity & wait";

/// Compute node, or deleted node with a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the node, and of the host in Nova.
    pub node: String,
    /// [`Standing`] in the cluster.
    pub standing: Standing,
    /// Recorded time of the cordon or of the deletion.
    pub since: Option<String>,
    /// Recorded id of the compute service.
    pub service: Option<String>,
    /// True if nova-compute is ready on the node.
    pub is_ready: bool,
    /// True if the guard may be evicted.
    pub is_open: bool,
}

/// State of a node in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Schedulable compute node.
    InService,
    /// Cordoned compute node.
    Cordoned,
    /// Node with a guard that is not wanted: no compute node any more, or in a cloud without guards.
    Unwanted,
    /// Deleted Node object.
    Gone,
}

/// Write to a guard.
#[derive(Clone, Debug, PartialEq)]
pub struct GuardWrite {
    /// `Pod` or [`BUDGET`].
    pub kind: &'static str,
    /// Name of the object.
    pub name: String,
    /// [`Verb`] of the write.
    pub verb: Verb,
}

/// Request for an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Verb {
    /// Creates an object.
    Create(Json),
    /// Sends a merge patch with the observed version as precondition.
    Patch(Json),
    /// Deletes the object with a uid.
    Delete(String),
}

fn key(node: &str) -> String {
    digest(&[node])
}

fn name(node: &str) -> String {
    format!("{GUARD}-{}", key(node))
}

/// True if an object belongs to a guard of the cloud.
fn is_ours(object: &Json, uid: &str) -> bool {
    let labels = &object["metadata"]["labels"];
    labels[UID] == uid && labels["app.kubernetes.io/name"] == GUARD
}

fn budget_of<'a>(observed: Observed<'a>, uid: &str, node: &str) -> Option<&'a Json> {
    let mut budgets = observed.budgets.iter();
    budgets.find(|it| is_ours(it, uid) && it["metadata"]["annotations"][NODE] == node)
}

/// [`Place`]s of a [`Cloud`]: compute nodes, and nodes with a record.
pub fn places(cloud: &Cloud, held: &Credentials, observed: Observed<'_>) -> Vec<Place> {
    let labels = &cloud.parameters.nodes.compute;
    let is_guarded = cloud.parameters.drain().is_some();
    let is_compute = |node: &Json| {
        let there = &node["metadata"]["labels"];
        is_guarded && labels.iter().all(|(label, value)| there[label] == *value)
    };
    let mut found = BTreeMap::new();
    for node in observed.nodes.iter().filter(|it| is_compute(it)) {
        let standing = match node["spec"]["unschedulable"] == true {
            true => Standing::Cordoned,
            false => Standing::InService,
        };
        found.insert(text(&node["metadata"]["name"]), standing);
    }
    let exists = |name: &str| {
        let mut nodes = observed.nodes.iter();
        nodes.any(|it| it["metadata"]["name"] == name)
    };
    let ours = observed.budgets.iter().filter(|it| is_ours(it, held.uid()));
    for budget in ours {
        let node = text(&budget["metadata"]["annotations"][NODE]);
        let standing = match exists(node) {
            true => Standing::Unwanted,
            false => Standing::Gone,
        };
        found.entry(node).or_insert(standing);
    }
    let place = |(node, standing): (&str, Standing)| {
        let budget = budget_of(observed, held.uid(), node);
        let annotation = |name: &str| {
            let found = &budget?["metadata"]["annotations"][name];
            found.as_str().map(str::to_owned)
        };
        Place {
            node: node.to_owned(),
            standing,
            since: annotation(SINCE),
            service: annotation(SERVICE),
            is_ready: observed
                .pods
                .iter()
                .any(|pod| is_compute_pod(pod, held, node)),
            is_open: budget.is_some_and(|it| it["spec"]["minAvailable"] == 0),
        }
    };
    found.into_iter().map(place).collect()
}

/// True for a ready Pod of nova-compute on a node.
fn is_compute_pod(pod: &Json, held: &Credentials, node: &str) -> bool {
    let labels = &pod["metadata"]["labels"];
    let mut conditions = items(&pod["status"]["conditions"]);
    labels["app.kubernetes.io/name"] == fake::COMPUTE
        && labels[UID] == held.uid()
        && pod["spec"]["nodeName"] == node
        && conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
}

/// [`GuardWrite`]s for the [`Answer`]s of Nova, by the name of a node. Also returns conflicts: foreign objects with the name
/// of a guard.
pub fn guards(
    cloud: &Cloud,
    held: &Credentials,
    owner: &Json,
    observed: Observed<'_>,
    (answers, now): (&BTreeMap<String, Answer>, &str),
) -> (Vec<GuardWrite>, Vec<String>) {
    let guards = Guards {
        cloud,
        held,
        owner,
        observed,
        now,
    };
    let (mut writes, mut conflicts) = (Vec::new(), Vec::new());
    for place in places(cloud, held, observed) {
        let answer = answers.get(&place.node).cloned().unwrap_or_default();
        match guards.of(&place, &answer) {
            Ok(found) => writes.extend(found),
            Err(why) => conflicts.push(why),
        }
    }
    (writes, conflicts)
}

/// Deletions of all guards, at the end of a cloud.
pub fn left(uid: &str, observed: Observed<'_>) -> Vec<GuardWrite> {
    let of = |kind: &'static str, all: &[Json]| {
        let ours = all.iter().filter(|it| is_ours(it, uid));
        ours.filter_map(|it| delete(kind, it)).collect::<Vec<_>>()
    };
    let mut writes = of(BUDGET, observed.budgets);
    writes.extend(of("Pod", observed.pods));
    writes
}

/// True if a cloud has guards, including guards in deletion.
pub fn are_left(uid: &str, observed: Observed<'_>) -> bool {
    let mut all = observed.budgets.iter().chain(observed.pods);
    all.any(|it| is_ours(it, uid))
}

fn delete(kind: &'static str, object: &Json) -> Option<GuardWrite> {
    let metadata = &object["metadata"];
    metadata["deletionTimestamp"].is_null().then(|| GuardWrite {
        kind,
        name: text(&metadata["name"]).to_owned(),
        verb: Verb::Delete(text(&metadata["uid"]).to_owned()),
    })
}

struct Guards<'a> {
    cloud: &'a Cloud,
    held: &'a Credentials,
    /// Owner reference to the object of the cloud.
    owner: &'a Json,
    observed: Observed<'a>,
    now: &'a str,
}

impl Guards<'_> {
    /// [`GuardWrite`]s for a [`Place`], or the conflict.
    fn of(&self, place: &Place, answer: &Answer) -> Result<Vec<GuardWrite>, String> {
        let name = name(&place.node);
        let named = |all: &[Json], kind: &str| {
            let found = all
                .iter()
                .find(|it| it["metadata"]["name"] == name.as_str());
            match found {
                Some(it) if !is_ours(it, self.held.uid()) => Err(format!(
                    "{kind} {name} is not of this cloud, and node {} has no guard: delete it, or give it another name",
                    place.node
                )),
                found => Ok(found.cloned()),
            }
        };
        let budget = named(self.observed.budgets, BUDGET)?;
        let pod = named(self.observed.pods, "Pod")?;
        let mut writes = Vec::new();
        match place.standing {
            Standing::InService | Standing::Cordoned => {
                writes.extend(self.budget(place, answer, budget.as_ref()));
                // A guard that nothing holds back is useless: the budget comes first.
                if budget.is_some() {
                    writes.extend(self.pod(place, answer, pod.as_ref()));
                }
            }
            Standing::Unwanted | Standing::Gone => {
                let gone = place.standing == Standing::Gone;
                let is_over = answer.is_over || !gone && place.since.is_none();
                writes.extend(pod.as_ref().and_then(|it| delete("Pod", it)));
                if let Some(budget) = &budget {
                    match is_over {
                        true => writes.extend(delete(BUDGET, budget)),
                        false => writes.extend(self.record(place, answer, budget)),
                    }
                }
            }
        }
        Ok(writes)
    }

    /// True if the guard may go.
    fn is_open(place: &Place, answer: &Answer) -> bool {
        place.standing == Standing::Cordoned && answer.is_empty.unwrap_or(place.is_open)
    }

    fn budget(&self, place: &Place, answer: &Answer, there: Option<&Json>) -> Option<GuardWrite> {
        let Some(there) = there else {
            let spec = json!({
                "minAvailable": 1,
                "selector": {"matchLabels": self.selector(&place.node)},
            });
            let metadata = self.metadata(&place.node);
            let object = json!({
                "apiVersion": "policy/v1", "kind": BUDGET, "metadata": metadata, "spec": spec,
            });
            return Some(GuardWrite {
                kind: BUDGET,
                name: name(&place.node),
                verb: Verb::Create(object),
            });
        };
        self.record(place, answer, there)
    }

    /// Patch of budget and annotations, if they differ.
    fn record(&self, place: &Place, answer: &Answer, there: &Json) -> Option<GuardWrite> {
        let since = match place.standing {
            Standing::Cordoned | Standing::Gone => Some(place.since.as_deref().unwrap_or(self.now)),
            // Until it is enabled again in Nova it has to be known that it was cordoned.
            Standing::InService | Standing::Unwanted if !answer.is_over => place.since.as_deref(),
            Standing::InService | Standing::Unwanted => None,
        };
        let service = answer.service.as_deref().or(place.service.as_deref());
        let wanted = i64::from(!Self::is_open(place, answer));
        let annotations = &there["metadata"]["annotations"];
        let is_same = annotations[SINCE].as_str() == since
            && annotations[SERVICE].as_str() == service
            && there["spec"]["minAvailable"] == wanted;
        (!is_same).then(|| GuardWrite {
            kind: BUDGET,
            name: name(&place.node),
            verb: Verb::Patch(json!({
                "metadata": {
                    "uid": there["metadata"]["uid"],
                    "resourceVersion": there["metadata"]["resourceVersion"],
                    "annotations": {SINCE: since, SERVICE: service},
                },
                "spec": {"minAvailable": wanted},
            })),
        })
    }

    fn pod(&self, place: &Place, answer: &Answer, there: Option<&Json>) -> Option<GuardWrite> {
        let image = self.cloud.parameters.release.image();
        let Some(there) = there else {
            return (!Self::is_open(place, answer)).then(|| GuardWrite {
                kind: "Pod",
                name: name(&place.node),
                verb: Verb::Create(self.guard(&place.node, image)),
            });
        };
        let has_ended = matches!(text(&there["status"]["phase"]), "Succeeded" | "Failed");
        let is_old = there["spec"]["containers"][0]["image"] != image;
        let is_replaced = has_ended || is_old && place.standing == Standing::InService;
        is_replaced.then(|| delete("Pod", there)).flatten()
    }

    fn selector(&self, node: &str) -> Json {
        json!({"app.kubernetes.io/name": GUARD, UID: self.held.uid(), LABEL: key(node)})
    }

    fn metadata(&self, node: &str) -> Json {
        let mut labels = self.selector(node);
        labels[PART_OF] = self.cloud.name.as_str().into();
        labels["app.kubernetes.io/managed-by"] = "ferrostack".into();
        json!({
            "name": name(node), "namespace": self.cloud.namespace, "labels": labels,
            "annotations": {NODE: node}, "ownerReferences": [self.owner],
        })
    }

    /// Pod of a guard, bound to the node without the scheduler, which skips cordoned nodes.
    fn guard(&self, node: &str, image: &str) -> Json {
        let user = image::user("nova");
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": self.metadata(node),
            "spec": {
                "nodeName": node,
                "automountServiceAccountToken": false,
                "enableServiceLinks": false,
                "terminationGracePeriodSeconds": 5,
                "tolerations": [{"operator": "Exists"}],
                "securityContext": {
                    "runAsNonRoot": true, "runAsUser": user, "runAsGroup": user,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [{
                    "name": GUARD, "image": image, "imagePullPolicy": "IfNotPresent",
                    "command": ["/bin/sh", "-c", SLEEP],
                    "resources": {
                        "requests": {"cpu": "1m", "memory": "4Mi"}, "limits": {"memory": "32Mi"},
                    },
                    "securityContext": {
                        "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                        "capabilities": {"drop": ["ALL"]},
                    },
                }],
            },
        })
    }
}
