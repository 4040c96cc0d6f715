//! Faults of guests on healthy servers, and the budgets that keep their Pods.

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, EvictParams};

use super::*;

fn fault(text: &str) -> (String, String) {
    ("simulator:guest".to_owned(), text.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_never_joins_or_joins_late() {
    let (mut cloud, client) = Cloud::initialized_by_cp_0(quick()).await;
    let mut never = Machine::join(&cloud, "never", false);
    never.metadata.extend([fault("never-joins")]);
    let mut late = Machine::join(&cloud, "late", false);
    late.metadata.extend([fault("joins-late=1")]);
    let began = Instant::now();
    cloud.add(never);
    cloud.add(late);
    eventually(&cloud, "the late one", async || {
        nodes(&client).await == ["cp-0", "late"]
    })
    .await;
    assert!(began.elapsed() >= Duration::from_secs(1));
    let console = cloud.guests.console("never-id");
    assert!(
        console.contains("it never joins") && console.contains("bootstrap failed"),
        "{console}"
    );
    // A reboot does not help: a new machine joins at the same time, and the faulty one does not.
    cloud.change("never", |machine| machine.boot += 1);
    cloud.add(Machine::join(&cloud, "next", false));
    eventually(&cloud, "the next one", async || {
        nodes(&client).await.contains(&"next".to_owned())
    })
    .await;
    assert_eq!(nodes(&client).await, ["cp-0", "late", "next"]);
    cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kubelet_dies_while_its_server_runs_and_comes_back() {
    let (mut cloud, client) = Cloud::initialized_by_cp_0(quick()).await;
    cloud.add(Machine::join(&cloud, "worker-0", false));
    let is = async |status: &str| readiness(&client, "worker-0").await.as_deref() == Some(status);
    eventually(&cloud, "the worker", async || is("True").await).await;
    cloud.change("worker-0", |machine| {
        machine.metadata.extend([fault("kubelet-dies")])
    });
    eventually(&cloud, "the silence", async || is("Unknown").await).await;
    // Another start does not help: a whole first boot takes longer.
    cloud.change("worker-0", |machine| machine.boot += 1);
    cloud.add(Machine::join(&cloud, "worker-1", false));
    eventually(&cloud, "the next worker", async || {
        readiness(&client, "worker-1").await.as_deref() == Some("True")
    })
    .await;
    assert!(is("Unknown").await);
    cloud.change("worker-0", |machine| machine.metadata.clear());
    eventually(&cloud, "the kubelet to be back", async || is("True").await).await;

    // The containers of a control plane go on: its API server still takes writes.
    cloud.change("cp-0", |machine| {
        machine.metadata.extend([fault("kubelet-dies")])
    });
    eventually(&cloud, "the silence of the control plane", async || {
        readiness(&client, "cp-0").await.as_deref() == Some("Unknown")
    })
    .await;
    let map = serde_json::from_value(json!({"metadata": {"name": "still"}})).unwrap();
    let maps = Api::<ConfigMap>::namespaced(client.clone(), "default");
    maps.create(&PostParams::default(), &map).await.unwrap();
    cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_whose_disk_is_gone_boots_as_for_the_first_time() {
    let (mut cloud, client) = Cloud::initialized_by_cp_0(quick()).await;
    cloud.add(Machine::join(&cloud, "worker-0", false));
    let joined = || {
        let console = cloud.guests.console("worker-0-id");
        console.matches("This node has joined the cluster").count()
    };
    eventually(&cloud, "the worker", async || {
        joined() == 1 && readiness(&client, "worker-0").await.as_deref() == Some("True")
    })
    .await;
    cloud.change("worker-0", |machine| {
        machine.metadata.extend([fault("disk-gone")]);
        machine.running = false;
    });
    eventually(&cloud, "the silence", async || {
        readiness(&client, "worker-0").await.as_deref() == Some("Unknown")
    })
    .await;
    cloud.change("worker-0", |machine| machine.running = true);
    eventually(&cloud, "another join", async || {
        cloud
            .guests
            .console("worker-0-id")
            .contains("This node has joined the cluster")
            && readiness(&client, "worker-0").await.as_deref() == Some("True")
    })
    .await;
    cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebuilt_guest_boots_its_new_user_data() {
    // Longer than the boot from the new disk.
    let node_grace = Duration::from_millis(700);
    let options = Options {
        node_grace,
        ..quick()
    };
    let (mut cloud, client) = Cloud::initialized_by_cp_0(options).await;
    cloud.add(Machine::join(&cloud, "worker-0", false));
    eventually(&cloud, "the worker", async || {
        readiness(&client, "worker-0").await.as_deref() == Some("True")
    })
    .await;
    let nodes = Api::<Node>::all(client.clone());
    nodes
        .delete("worker-0", &DeleteParams::default())
        .await
        .unwrap();
    let other = Machine::join(&cloud, "worker-0", false).user_data + "\n# another generation\n";
    cloud.change("worker-0", |machine| {
        (machine.disk, machine.boot) = (1, 2);
        machine.user_data = other.clone();
    });
    eventually(&cloud, "another join", async || {
        readiness(&client, "worker-0").await.as_deref() == Some("True")
    })
    .await;
    // The silence of the former disk is over.
    tokio::time::sleep(2 * node_grace).await;
    assert_eq!(
        readiness(&client, "worker-0").await.as_deref(),
        Some("True")
    );
    cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn evictions_are_refused_and_allowed_by_the_budget() {
    let (mut cloud, client) = Cloud::initialized_by_cp_0(quick()).await;
    cloud.add(Machine::join(&cloud, "worker-0", false));
    let budgets = Api::<PodDisruptionBudget>::namespaced(client.clone(), "kube-system");
    let budget = json!({"metadata": {"name": "dns"}, "spec": {"minAvailable": 2,
        "selector": {"matchLabels": {"k8s-app": "kube-dns"}}}});
    let budget = serde_json::from_value(budget).unwrap();
    budgets
        .create(&PostParams::default(), &budget)
        .await
        .unwrap();
    let numbers = async || {
        let status = budgets.get("dns").await.ok()?.status?;
        Some([
            status.current_healthy?,
            status.desired_healthy?,
            status.disruptions_allowed?,
        ])
    };
    eventually(&cloud, "two healthy pods", async || {
        numbers().await == Some([2, 2, 0])
    })
    .await;
    let pods = Api::<Pod>::namespaced(client.clone(), "kube-system");
    let of_dns = ListParams::default().labels("k8s-app=kube-dns");
    let name = list(pods.clone(), &of_dns).await[0].name_any();
    let refused = pods.evict(&name, &EvictParams::default()).await;
    assert!(
        matches!(&refused, Err(kube::Error::Api(status)) if status.code == 429),
        "{refused:?}"
    );
    let patch = Patch::Merge(json!({"spec": {"minAvailable": null, "maxUnavailable": 1}}));
    let params = PatchParams::default();
    budgets.patch("dns", &params, &patch).await.unwrap();
    eventually(&cloud, "one disruption", async || {
        numbers().await == Some([2, 1, 1])
    })
    .await;
    pods.evict(&name, &EvictParams::default()).await.unwrap();
    // The pod is replaced, and the next disruption allowed.
    eventually(&cloud, "another pod", async || {
        let names: Vec<_> = list(pods.clone(), &of_dns)
            .await
            .iter()
            .map(|pod| pod.name_any())
            .collect();
        !names.contains(&name) && numbers().await == Some([2, 1, 1])
    })
    .await;
    let disrupted = budgets
        .get("dns")
        .await
        .unwrap()
        .status
        .unwrap()
        .disrupted_pods;
    assert!(disrupted.unwrap_or_default().is_empty());
    cloud.stop().await;
}
