use serde_json::json;

use super::*;
use crate::desired::desired;
use crate::desired::tests::{cloud, held};
use crate::object::ObjectKind;
use crate::plan::plan;

/// A cloud whose steps are ready up to one, the Pod of which is what a test says.
struct World {
    graph: Graph,
    objects: Vec<Json>,
    pods: Vec<Json>,
    nodes: Vec<Json>,
    classes: Option<Vec<String>>,
    reported: Reported,
}

const SINCE: &str = "2026-01-01T00:00:10Z";

fn ready(kind: ObjectKind) -> Json {
    match kind {
        ObjectKind::Job => json!({"conditions": [{"type": "Complete", "status": "True"}]}),
        ObjectKind::StatefulSet => json!({"updatedReplicas": 1, "readyReplicas": 1}),
        ObjectKind::Deployment => {
            json!({"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1})
        }
        _ => Json::Null,
    }
}

fn node(name: &str, status: &str, labels: Json) -> Json {
    json!({"metadata": {"name": name, "labels": labels}, "status": {"conditions": [
        {"type": "Ready", "status": status, "lastTransitionTime": SINCE, "message": "words"}]}})
}

impl World {
    /// With everything ready before this step, and nothing of what comes after it.
    fn until(step: &str) -> Self {
        let graph = desired(&cloud(&json!({"release": "2025.1"})), &held());
        let at = graph.steps.iter().position(|it| it.name == step).unwrap();
        let mut objects = Vec::new();
        for (rank, each) in graph.steps.iter().enumerate().take(at + 1) {
            for object in &each.objects {
                let mut there = object.exposed();
                there["metadata"]["uid"] = object.reference().to_string().into();
                if rank < at {
                    there["status"] = ready(object.reference().kind);
                }
                objects.push(there);
            }
        }
        let accounts = graph
            .steps
            .iter()
            .take(at)
            .filter(|it| it.accounts.is_some());
        let accounts = accounts.map(|it| (it.name.clone(), Written::All)).collect();
        Self {
            graph,
            objects,
            pods: vec![],
            nodes: vec![node("node-0", "True", json!({}))],
            classes: None,
            reported: Reported {
                accounts,
                ..Reported::default()
            },
        }
    }

    /// With a Pod of the last object.
    fn with_pod(mut self, step: &str, spec: Json, status: Json) -> Self {
        let owner = self.objects.last().unwrap();
        let mut pod = json!({
            "metadata": {"name": format!("{step}-0"), "creationTimestamp": SINCE,
                "labels": {"ferrostack.dev/cloud-uid": self.graph.uid, "app.kubernetes.io/name": step},
                "ownerReferences": [{"uid": owner["metadata"]["uid"]}]},
            "spec": {"nodeName": "node-0", "containers": [{"name": step, "image": "i:1"}]},
            "status": status,
        });
        for (field, value) in spec.as_object().into_iter().flatten() {
            pod["spec"][field] = value.clone();
        }
        self.pods.push(pod);
        self
    }

    /// With this spec of the claim of MariaDB.
    fn claim(&mut self) -> &mut Json {
        let mut objects = self.objects.iter_mut();
        let claim = objects.find(|it| it["metadata"]["name"] == "mariadb-data");
        &mut claim.unwrap()["spec"]
    }

    /// With this status of the claim of MariaDB.
    fn set_claim(&mut self, status: Json) {
        let mut objects = self.objects.iter_mut();
        let claim = objects.find(|it| it["metadata"]["name"] == "mariadb-data");
        claim.unwrap()["status"] = status;
    }

    fn why(&self, object: Option<&str>) -> Result<Why, String> {
        let plan = plan(&self.graph, &self.objects);
        let situation = Situation {
            graph: &self.graph,
            plan: &plan,
            objects: &self.objects,
            pods: &self.pods,
            nodes: &self.nodes,
            classes: self.classes.as_deref(),
            reported: &self.reported,
        };
        why(&situation, object)
    }

    fn cause(&self, object: &str) -> Cause {
        let why = self.why(Some(object)).unwrap();
        let [cause] = why.causes.as_slice() else {
            panic!("{why:#?}");
        };
        cause.clone()
    }
}

fn container(state: Json, last: Json) -> Json {
    json!({"containerStatuses": [
        {"ready": false, "restartCount": 3, "state": state, "lastState": last}]})
}

fn waiting(reason: &str, message: &str) -> Json {
    container(
        json!({"waiting": {"reason": reason, "message": message}}),
        json!({}),
    )
}

fn terminated(log: &str) -> Json {
    json!({"terminated": {"exitCode": 3, "message": log, "finishedAt": SINCE}})
}

fn unplaced(words: &str) -> Json {
    json!({"conditions": [{"type": "PodScheduled", "status": "False", "message": words,
        "lastTransitionTime": SINCE}]})
}

#[test]
fn each_fault_of_a_pod_is_a_cause_with_its_time_and_what_to_do() {
    use Reason::*;
    let loops = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}});
    for (spec, status, reason, problem, detail, since) in [
        (
            json!({}),
            container(loops, terminated("starting\n\nno such store\n")),
            Crashing,
            "crashes",
            "exit status 3: starting | no such store (started again 3 times)",
            true,
        ),
        (
            json!({}),
            waiting("ErrImageNeverPull", "not present"),
            ImageMissing,
            "cannot start",
            "image i:1 is not on node node-0 (ErrImageNeverPull)",
            false,
        ),
        (
            json!({}),
            waiting("ImagePullBackOff", "back-off"),
            ImageMissing,
            "cannot start",
            "image i:1 is not on node node-0 (ImagePullBackOff)",
            false,
        ),
        (
            json!({}),
            waiting("CreateContainerConfigError", "secret \"x\" not found"),
            Incomplete,
            "cannot start",
            "CreateContainerConfigError: secret \"x\" not found",
            false,
        ),
        (
            json!({"volumes": [{"secret": {"secretName": "gone"}}]}),
            waiting("ContainerCreating", ""),
            Incomplete,
            "cannot start",
            "Secret gone does not exist",
            false,
        ),
        (
            json!({"nodeName": null, "nodeSelector": {"plane": "control"}}),
            unplaced("0/1 nodes are available"),
            NoNode,
            "has a Pod on no node",
            "no ready node has the label plane=control",
            true,
        ),
        (
            json!({"nodeName": null}),
            unplaced("0/1 nodes are available: too many pods"),
            NoNode,
            "has a Pod on no node",
            "0/1 nodes are available: too many pods",
            true,
        ),
        (
            json!({}),
            container(json!({"running": {"startedAt": SINCE}}), json!({})),
            Busy,
            "has updated 0 of 1 replicas",
            "Pod glance-api-0 does not pass its probe",
            true,
        ),
    ] {
        let world = World::until("glance-api").with_pod("glance-api", spec, status);
        let cause = world.cause("glance-api");
        assert_eq!(
            (
                cause.reason,
                cause.problem.as_str(),
                cause.detail.as_deref()
            ),
            (reason, problem, Some(detail))
        );
        assert_eq!(cause.of, "glance-api");
        assert_eq!(cause.since.is_some(), since, "{cause:?}");
        let advised = matches!(reason, ImageMissing) || detail.contains("label");
        assert_eq!(cause.advice.is_some(), advised, "{cause:?}");
    }
}

#[test]
fn a_cluster_without_a_default_storage_class_is_told_with_what_to_do() {
    let unscheduled = json!({"conditions": [{"type": "PodScheduled", "status": "False",
        "message": "pod has unbound immediate PersistentVolumeClaims", "lastTransitionTime": SINCE}]});
    let spec = json!({"volumes": [{"persistentVolumeClaim": {"claimName": "mariadb-data"}}]});
    let mut world = World::until("mariadb-install").with_pod("mariadb-install", spec, unscheduled);
    world.set_claim(json!({"phase": "Pending"}));
    let cause = world.cause("mariadb");
    assert_eq!(cause.reason, Reason::NoNode);
    let why = "claim mariadb-data has no storage class, and the cluster has no default one";
    assert_eq!(cause.detail.as_deref(), Some(why));
    assert!(cause.advice.unwrap().contains("is-default-class=true"));
    // The condition says it, too.
    let plan = plan(&world.graph, &world.objects);
    let progress = super::super::progress(
        &world.graph,
        &plan,
        &world.objects,
        &world.pods,
        &BTreeMap::new(),
    );
    let mut states = progress.steps.iter();
    let (_, state) = states.find(|(name, _)| name == "mariadb-install").unwrap();
    assert!(state.message().contains(why), "{state:?}");
    // A class that is not there, and one that makes no volume.
    world.claim()["storageClassName"] = "absent".into();
    world.classes = Some(vec!["fast".to_owned(), "slow".to_owned()]);
    let cause = world.cause("mariadb");
    assert_eq!(
        cause.detail.as_deref(),
        Some(
            "there is no storage class absent, which claim mariadb-data is to have; there are: fast, slow"
        )
    );
    assert!(cause.advice.unwrap().contains("storage.class"));
    world.claim()["storageClassName"] = "slow".into();
    let cause = world.cause("mariadb");
    assert_eq!(
        cause.detail.as_deref(),
        Some("claim mariadb-data waits for a volume of storage class slow")
    );
    // With a volume it is the scheduler who knows.
    world.set_claim(json!({"phase": "Bound"}));
    let cause = world.cause("mariadb");
    assert_eq!(
        cause.detail.as_deref(),
        Some("pod has unbound immediate PersistentVolumeClaims")
    );
}

#[test]
fn what_waits_for_a_failing_task_names_the_task_by_whatever_is_asked() {
    let status = container(terminated("(1045) Access denied"), json!({}));
    let mut world = World::until("nova-api-schema").with_pod("nova-api-schema", json!({}), status);
    let job = world.objects.last().unwrap()["metadata"]["name"].clone();
    let job = job.as_str().unwrap().to_owned();
    for asked in [
        "nova-conductor",
        "deployment/nova-conductor",
        "nova-api-schema",
        "nova-api-schema-0",
        &format!("job/{job}"),
    ] {
        let cause = world.cause(asked);
        assert_eq!(cause.of, format!("task {job}"), "{asked}");
        assert_eq!(
            (cause.reason, cause.problem.as_str()),
            (Reason::TaskFailed, "fails")
        );
        assert_eq!(
            cause.detail.as_deref(),
            Some("exit status 3: (1045) Access denied")
        );
        assert_eq!(cause.since.as_deref(), Some(SINCE));
        assert!(
            cause.waiting.iter().any(|it| it == "nova-conductor"),
            "{cause:?}"
        );
    }
    // For good.
    let failed = json!({"conditions": [{"type": "Failed", "status": "True"}]});
    world.objects.last_mut().unwrap()["status"] = failed;
    let cause = world.cause("nova-conductor");
    assert_eq!(cause.problem, "has failed");
    assert!(
        cause
            .advice
            .unwrap()
            .contains(&format!("delete job {job}` runs it again"))
    );
    world.pods.clear();
    let cause = world.cause("nova-conductor");
    assert_eq!(
        cause.detail.as_deref(),
        Some("its Pods are gone, and their logs")
    );

    let error = world.why(Some("nova-conducter")).unwrap_err();
    assert!(error.contains("did you mean nova-conductor? "), "{error}");
}

#[test]
fn a_service_is_asked_about_by_its_name() {
    let world = World::until("glance-api");
    let why = world.why(Some("glance")).unwrap();
    assert_eq!(why.object, "glance");
    assert_eq!(why.causes.len(), 1, "{why:#?}");
    // Of another service nothing is wrong yet.
    let keystone = world.why(Some("keystone")).unwrap();
    assert_eq!(
        (keystone.object.as_str(), keystone.causes.len()),
        ("keystone", 0)
    );
}

#[test]
fn a_program_that_ran_for_days_is_not_ready_since_it_lost_that() {
    let mut status = container(json!({"running": {"startedAt": SINCE}}), json!({}));
    let later = "2026-12-24T00:00:00Z";
    status["conditions"] =
        json!([{"type": "Ready", "status": "False", "lastTransitionTime": later}]);
    let world = World::until("glance-api").with_pod("glance-api", json!({}), status);
    let cause = world.cause("glance-api");
    assert_eq!(
        (cause.reason, cause.since.as_deref()),
        (Reason::Busy, Some(later))
    );
}

#[test]
fn a_node_that_is_gone_is_one_cause_of_everything_on_it() {
    let running = container(json!({"running": {"startedAt": SINCE}}), json!({}));
    let mut world = World::until("glance-api").with_pod("glance-api", json!({}), running);
    world.nodes = vec![node("node-0", "Unknown", json!({}))];
    // One that was ready is on it, too.
    let memcached = world
        .objects
        .iter_mut()
        .find(|it| it["metadata"]["name"] == "memcached" && it["kind"] == "StatefulSet");
    memcached.unwrap()["status"]["readyReplicas"] = 0.into();
    let mut pod = world.pods[0].clone();
    pod["metadata"]["labels"]["app.kubernetes.io/name"] = "memcached".into();
    world.pods.push(pod);
    let why = world.why(None).unwrap();
    let gone: Vec<&Cause> = why
        .causes
        .iter()
        .filter(|it| it.of == "node node-0")
        .collect();
    let [cause] = gone.as_slice() else {
        panic!("{why:#?}");
    };
    assert_eq!(
        (cause.reason, cause.since.as_deref()),
        (Reason::NodeGone, Some(SINCE))
    );
    for step in ["memcached", "glance-api"] {
        assert!(
            cause.waiting.iter().any(|it| it == step),
            "{step}: {cause:?}"
        );
    }
    assert_eq!(
        world.why(Some("node-0")).unwrap().causes[0].of,
        "node node-0"
    );
    world.nodes = vec![node("node-0", "True", json!({}))];
    assert_eq!(world.why(Some("node/node-0")).unwrap().causes, []);
}

#[test]
fn what_the_controller_reports_is_a_cause_and_a_ready_cloud_has_none() {
    let last = World::until("credentials");
    assert_eq!(last.why(None).unwrap().causes, []);
    let mut world = World::until("credentials");
    let accounts = Written::Not("RabbitMQ: no answer".to_owned());
    world
        .reported
        .accounts
        .insert("broker-accounts".to_owned(), accounts);
    let cause = world.cause("broker-accounts");
    assert_eq!(cause.reason, Reason::AccountsNotWritten);
    assert_eq!(cause.detail.as_deref(), Some("RabbitMQ: no answer"));

    world.reported.stopped = Some("it is paused".to_owned());
    let why = world.why(None).unwrap();
    assert_eq!(why.causes[0].reason, Reason::Stopped);
    assert_eq!(why.causes[0].waiting.len(), world.graph.steps.len());

    let mut world = World::until("mariadb");
    world.objects.clear();
    world.reported.rejection = Some("creating Secret x: quota".to_owned());
    let cause = world.cause("nova-api");
    assert_eq!(
        (cause.of.as_str(), cause.reason),
        ("secrets", Reason::NotWritten)
    );
    assert_eq!(cause.detail.as_deref(), Some("creating Secret x: quota"));
}
