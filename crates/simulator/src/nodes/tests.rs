use apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::object::{Write, holds, items, text};
use super::*;
use crate::json::Json;

const NAMESPACE: &str = "/namespaces/default";

struct Cluster {
    api: Client,
    client: Json,
    faults: Faults,
    stop: CancellationToken,
}

impl Cluster {
    async fn start(nodes: &[&str]) -> Self {
        let server = ApiServer::open(apiserver::Options::default())
            .await
            .unwrap();
        let client = Client::new(server.in_process(), "default");
        let faults = Faults::default();
        let options = Options {
            nodes: nodes.iter().map(|it| (*it).to_owned()).collect(),
            faults: faults.clone(),
            ..Options::default()
        };
        let stop = CancellationToken::new();
        tokio::spawn(run(client.clone(), options, stop.clone()));
        Self {
            api: client.clone(),
            client: Json::new(client, "test"),
            faults,
            stop,
        }
    }

    async fn create(&self, collection: &str, body: Value) {
        let collection = collection.to_owned();
        self.client
            .write(&Write::Create { collection, body })
            .await
            .unwrap();
    }

    async fn patch(&self, path: &str, body: Value) {
        let path = path.to_owned();
        self.client
            .write(&Write::Patch { path, body })
            .await
            .unwrap();
    }

    async fn list(&self, collection: &str) -> Vec<Value> {
        self.client.list(collection).await.unwrap()
    }

    async fn pods(&self) -> Vec<Value> {
        self.list(&format!("/api/v1{NAMESPACE}/pods")).await
    }

    async fn until<T>(&self, what: &str, check: impl AsyncFn() -> Result<T, String>) -> T {
        let mut last = String::new();
        for _ in 0..600 {
            match check().await {
                Ok(value) => return value,
                Err(seen) => last = seen,
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("waited in vain for {what}: {last}")
    }

    /// Waits until a node is off, or on.
    async fn gone(&self, node: &str, gone: bool) {
        self.until("the faults", async || {
            let same = self.faults.is_gone(node) == gone;
            same.then_some(())
                .ok_or_else(|| format!("{node} is off: {}", !gone))
        })
        .await;
    }

    /// Waits until the only object of a collection has `wanted` in its status.
    async fn status(&self, collection: &str, wanted: Value) -> Value {
        self.until(&wanted.to_string(), async || {
            let object = self.list(collection).await.remove(0);
            let fields = wanted.as_object().unwrap();
            let same = fields
                .iter()
                .all(|(name, value)| object["status"][name] == *value);
            let current =
                object["status"]["observedGeneration"] == object["metadata"]["generation"];
            match same && (current || collection.contains("jobs")) {
                true => Ok(object),
                false => Err(object["status"].to_string()),
            }
        })
        .await
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn workload(version: &str, kind: &str, replicas: u32, pod: Value) -> Value {
    let labels = json!({"app": "web"});
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod}}})
}

fn pod() -> Value {
    json!({"containers": [{"name": "web", "image": "web:1",
        "readinessProbe": {"tcpSocket": {"port": 80}}}]})
}

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const STATEFUL_SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

#[tokio::test]
async fn a_deployment_rolls_without_a_moment_in_which_none_is_available() {
    let cluster = Cluster::start(&["a", "b"]).await;
    let mut object = workload("apps/v1", "Deployment", 1, pod());
    object["spec"]["strategy"] = json!({"type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    cluster.create(DEPLOYMENTS, object).await;
    let ready = json!({"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1});
    cluster.status(DEPLOYMENTS, ready.clone()).await;
    let before = cluster.pods().await.remove(0);
    let changed = json!({"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}});
    cluster.patch(&format!("{DEPLOYMENTS}/web"), changed).await;
    cluster
        .until("the new Pod", async || {
            let pods = cluster.pods().await;
            assert!(pods.iter().any(|it| holds(it, "Ready")), "{pods:#?}");
            let names: Vec<&str> = pods
                .iter()
                .map(|it| text(&it["metadata"]["name"]))
                .collect();
            let done = names.len() == 1 && names[0] != text(&before["metadata"]["name"]);
            done.then_some(()).ok_or(names.join(", "))
        })
        .await;
    cluster.status(DEPLOYMENTS, ready).await;
}

#[tokio::test]
async fn a_stateful_set_is_made_pod_by_pod() {
    let cluster = Cluster::start(&["a"]).await;
    cluster.faults.container_ends(
        "web",
        Some(Ending {
            status: 1,
            log: String::new(),
        }),
    );
    let mut object = workload("apps/v1", "StatefulSet", 2, pod());
    object["spec"]["serviceName"] = "web".into();
    cluster.create(STATEFUL_SETS, object).await;
    cluster
        .until("a crash", async || {
            let pods = cluster.pods().await;
            let crashed = pods.iter().any(|it| {
                let status = &it["status"]["containerStatuses"][0];
                status["restartCount"].as_u64() > Some(1)
            });
            crashed.then_some(()).ok_or(format!("{pods:?}"))
        })
        .await;
    assert_eq!(
        cluster.pods().await.len(),
        1,
        "the second waits for the first"
    );
    cluster.faults.container_ends("web", None);
    cluster
        .status(
            STATEFUL_SETS,
            json!({"readyReplicas": 2, "updatedReplicas": 2}),
        )
        .await;
    let names = cluster.pods().await;
    let names: Vec<&str> = names
        .iter()
        .map(|it| text(&it["metadata"]["name"]))
        .collect();
    assert_eq!(names, ["web-0", "web-1"]);
}

#[tokio::test]
async fn pods_of_a_parallel_stateful_set_do_not_wait_for_each_other() {
    let cluster = Cluster::start(&["a"]).await;
    let crash = Ending {
        status: 1,
        log: String::new(),
    };
    cluster.faults.container_ends("web", Some(crash));
    let mut object = workload("apps/v1", "StatefulSet", 2, pod());
    object["spec"]["serviceName"] = "web".into();
    object["spec"]["podManagementPolicy"] = "Parallel".into();
    cluster.create(STATEFUL_SETS, object).await;
    cluster
        .until("both Pods", async || {
            let pods = cluster.pods().await;
            (pods.len() == 2).then_some(()).ok_or(format!("{pods:?}"))
        })
        .await;
}

#[tokio::test]
async fn what_a_pod_mounts_has_to_exist() {
    let cluster = Cluster::start(&["a"]).await;
    let mut spec = pod();
    spec["volumes"] = json!([{"name": "keys", "secret": {"secretName": "keys"}}]);
    cluster
        .create(DEPLOYMENTS, workload("apps/v1", "Deployment", 1, spec))
        .await;
    let events = format!("/api/v1{NAMESPACE}/events");
    let event = cluster
        .until("an event", async || {
            let mut events = cluster.list(&events).await;
            events.retain(|it| it["reason"] == "FailedMount");
            events.pop().ok_or_else(|| "none".to_owned())
        })
        .await;
    let message = "MountVolume.SetUp failed for volume \"keys\" : secret \"keys\" not found";
    assert_eq!(event["message"], message);
    let pod = cluster.pods().await.remove(0);
    let reason = &pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"];
    assert_eq!(reason, "ContainerCreating");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}});
    cluster
        .create(&format!("/api/v1{NAMESPACE}/secrets"), secret)
        .await;
    cluster
        .status(DEPLOYMENTS, json!({"availableReplicas": 1}))
        .await;
}

fn job(limit: u32) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "task"},
        "spec": {"backoffLimit": limit, "template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "task", "image": "task:1",
                "terminationMessagePolicy": "FallbackToLogsOnError"}]}}}})
}

#[tokio::test]
async fn a_job_is_complete_when_its_pod_has_succeeded() {
    let cluster = Cluster::start(&["a"]).await;
    cluster.create(JOBS, job(0)).await;
    let job = cluster.status(JOBS, json!({"succeeded": 1})).await;
    assert!(holds(&job, "Complete"), "{job:#}");
    assert_eq!(cluster.pods().await[0]["status"]["phase"], "Succeeded");
}

#[tokio::test]
async fn a_job_fails_after_its_limit_and_its_pods_have_the_end_of_the_log() {
    let cluster = Cluster::start(&["a"]).await;
    let log = "one\ntwo".to_owned();
    cluster
        .faults
        .container_ends("task", Some(Ending { status: 7, log }));
    cluster.create(JOBS, job(1)).await;
    let job = cluster.status(JOBS, json!({"failed": 2})).await;
    assert!(holds(&job, "Failed"), "{job:#}");
    for pod in cluster.pods().await {
        let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
        assert_eq!(
            (&ended["exitCode"], &ended["message"]),
            (&json!(7), &json!("one\ntwo"))
        );
    }
}

#[tokio::test]
async fn a_missing_image_and_a_lost_node_are_in_the_status() {
    let cluster = Cluster::start(&["a"]).await;
    cluster.faults.image_is_missing("web:1", true);
    cluster
        .create(DEPLOYMENTS, workload("apps/v1", "Deployment", 1, pod()))
        .await;
    cluster
        .until("the back-off", async || {
            let pods = cluster.pods().await;
            let reason = pods.first().map(|it| {
                let waiting = &it["status"]["containerStatuses"][0]["state"]["waiting"];
                text(&waiting["reason"]).to_owned()
            });
            let missing = reason.as_deref() == Some("ImagePullBackOff");
            missing.then_some(()).ok_or(format!("{reason:?}"))
        })
        .await;
    cluster.faults.image_is_missing("web:1", false);
    cluster
        .status(DEPLOYMENTS, json!({"availableReplicas": 1}))
        .await;
    cluster.faults.node_is_gone("a", true);
    cluster
        .status(DEPLOYMENTS, json!({"unavailableReplicas": 1}))
        .await;
    let node = cluster.list("/api/v1/nodes").await.remove(0);
    let ready = items(&node["status"]["conditions"]).find(|it| it["type"] == "Ready");
    assert_eq!(ready.unwrap()["status"], "Unknown");
    cluster.faults.node_is_gone("a", false);
    cluster
        .status(DEPLOYMENTS, json!({"availableReplicas": 1}))
        .await;
}

#[tokio::test]
async fn a_daemon_set_has_a_pod_on_each_selected_node_and_a_claim_is_bound_by_its_first_pod() {
    let cluster = Cluster::start(&["a", "b"]).await;
    let mut claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let mut spec = pod();
    spec["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    cluster
        .create(DEPLOYMENTS, workload("apps/v1", "Deployment", 2, spec))
        .await;
    cluster
        .until("the missing claim to be named", async || {
            let pods = cluster.pods().await;
            let named = pods
                .iter()
                .any(|it| it["status"].to_string().contains("not found"));
            named.then_some(()).ok_or(format!("{pods:?}"))
        })
        .await;
    let claims = format!("/api/v1{NAMESPACE}/persistentvolumeclaims");
    claim["spec"]["storageClassName"] = "later".into();
    cluster.create(&claims, claim).await;
    cluster
        .until("no volume of a class that is not there", async || {
            let pods = cluster.pods().await;
            let waits = "pod has unbound immediate PersistentVolumeClaims";
            let all = pods
                .iter()
                .all(|it| it["status"].to_string().contains(waits));
            all.then_some(()).ok_or(format!("{pods:?}"))
        })
        .await;
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "later"},
        "provisioner": "example.org/none"});
    let classes = "/apis/storage.k8s.io/v1/storageclasses";
    cluster.create(classes, class).await;
    cluster
        .status(DEPLOYMENTS, json!({"availableReplicas": 2}))
        .await;
    let pods = cluster.pods().await;
    let nodes: Vec<&str> = pods
        .iter()
        .map(|it| text(&it["spec"]["nodeName"]))
        .collect();
    assert_eq!(nodes[0], nodes[1], "both are where the volume is");

    let mut set = workload("apps/v1", "DaemonSet", 1, pod());
    set["metadata"]["name"] = "agent".into();
    set["spec"].as_object_mut().unwrap().remove("replicas");
    set["spec"]["selector"]["matchLabels"] = json!({"app": "agent"});
    set["spec"]["template"]["metadata"]["labels"] = json!({"app": "agent"});
    let sets = "/apis/apps/v1/namespaces/default/daemonsets";
    cluster.create(sets, set).await;
    cluster
        .status(sets, json!({"numberReady": 2, "desiredNumberScheduled": 2}))
        .await;
}

#[tokio::test]
async fn faults_in_the_config_map_come_and_go_with_it() {
    let cluster = Cluster::start(&["a", "b"]).await;
    let client = cluster.api.clone();
    let follow = cluster.faults.clone().follow(client, cluster.stop.clone());
    tokio::spawn(follow);
    let maps = "/api/v1/namespaces/kube-system/configmaps";
    let with =
        |text: &str| json!({"metadata": {"name": faults::CONFIG_MAP}, "data": {faults::KEY: text}});
    cluster
        .create(
            maps,
            with(r#"{"nodes": ["a"], "images": ["web:1"], "containers": {"web": {"status": 3}}}"#),
        )
        .await;
    let path = format!("{maps}/{}", faults::CONFIG_MAP);
    cluster.gone("a", true).await;
    assert!(cluster.faults.lacks("web:1"));
    assert_eq!(cluster.faults.ending("web").unwrap().status, 3);
    // What is not understood changes nothing.
    cluster.patch(&path, with(r#"{"node": ["b"]}"#)).await;
    cluster.patch(&path, with(r#"{"nodes": ["b"]}"#)).await;
    cluster.gone("b", true).await;
    assert!(!cluster.faults.is_gone("a") && !cluster.faults.lacks("web:1"));
    let maps: Api<ConfigMap> = Api::namespaced(cluster.api.clone(), faults::NAMESPACE);
    maps.delete(faults::CONFIG_MAP, &DeleteParams::default())
        .await
        .unwrap();
    cluster.gone("b", false).await;
}

#[tokio::test]
async fn a_pod_that_requests_more_than_a_node_has_left_is_on_none() {
    let cluster = Cluster::start(&["a", "b"]).await;
    let mut spec = pod();
    spec["containers"][0]["resources"] = json!({"requests": {"memory": "40Gi"}});
    cluster
        .create(DEPLOYMENTS, workload("apps/v1", "Deployment", 3, spec))
        .await;
    // One is on each node; for the third there is no room.
    cluster
        .until("the reason of the third", async || {
            let pods = cluster.pods().await;
            let why = "0/2 nodes are available: 2 Insufficient memory.";
            let waiting = pods
                .iter()
                .filter(|it| it["status"].to_string().contains(why));
            let placed = pods
                .iter()
                .filter(|it| !text(&it["spec"]["nodeName"]).is_empty());
            let counts = (waiting.count(), placed.count());
            (counts == (1, 2))
                .then_some(())
                .ok_or(format!("{counts:?}"))
        })
        .await;
}
