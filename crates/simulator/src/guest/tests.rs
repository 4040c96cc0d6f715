//! Clusters of guests with hand-written Worlds, observed over real TLS.

mod cloud;
mod etcd;
mod external;
mod faults;

use std::collections::BTreeSet;
use std::time::Instant;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Node, Pod};
use kube::api::{Api, ListParams, LogParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;

use self::cloud::{Cloud, Machine, PATIENCE, TOKEN, eventually};
use super::*;

fn quick() -> Options {
    Options {
        node_grace: Duration::from_millis(20),
        retry: Duration::from_millis(100),
        join_timeout: PATIENCE,
        ..Options::default()
    }
}

/// Lists objects, with a retry if the connection broke: its machine may just have been deleted.
async fn list<K>(api: Api<K>, params: &ListParams) -> Vec<K>
where
    K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let started = Instant::now();
    loop {
        match api.list(params).await {
            Ok(list) => return list.items,
            Err(kube::Error::Service(_) | kube::Error::HyperError(_))
                if started.elapsed() < PATIENCE =>
            {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Err(other) => panic!("{other}"),
        }
    }
}

async fn nodes(client: &Client) -> Vec<String> {
    let nodes = list(Api::<Node>::all(client.clone()), &ListParams::default()).await;
    let mut names: Vec<String> = nodes.iter().map(|node| node.name_any()).collect();
    names.sort();
    names
}

async fn control_plane_pods(client: &Client) -> Vec<String> {
    let pods = Api::<Pod>::namespaced(client.clone(), "kube-system");
    let pods = list(pods, &ListParams::default().labels("tier=control-plane")).await;
    let mut names: Vec<String> = pods.iter().map(|pod| pod.name_any()).collect();
    names.sort();
    names
}

fn ready(node: &Node) -> Option<String> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    Some(
        conditions
            .iter()
            .find(|condition| condition.type_ == "Ready")?
            .status
            .clone(),
    )
}

async fn readiness(client: &Client, name: &str) -> Option<String> {
    let nodes = list(Api::<Node>::all(client.clone()), &ListParams::default()).await;
    ready(nodes.iter().find(|node| node.name_any() == name)?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_comes_up_behind_a_load_balancer_and_machines_join() {
    let (mut cloud, client) = Cloud::initialized_by_cp_0(quick()).await;
    let config = cloud.initialized(&client).await;
    assert!(config.data.unwrap()["ClusterConfiguration"].contains("kubernetesVersion: v1.34.1"));
    cloud.add(Machine::join(&cloud, "cp-1", true));
    cloud.add(Machine::join(&cloud, "worker-0", false));
    eventually(&cloud, "three nodes", async || {
        nodes(&client).await == ["cp-0", "cp-1", "worker-0"]
    })
    .await;
    eventually(&cloud, "the pods of two control planes", async || {
        control_plane_pods(&client).await.len() == 8
    })
    .await;

    let api = Api::<Node>::all(client.clone());
    let control_plane = api.get("cp-1").await.unwrap();
    let spec = control_plane.spec.clone().unwrap();
    assert_eq!(spec.provider_id.as_deref(), Some("openstack:///cp-1-id"));
    assert_eq!(
        spec.taints.unwrap()[0].key,
        "node-role.kubernetes.io/control-plane"
    );
    assert!(
        control_plane
            .labels()
            .contains_key("node-role.kubernetes.io/control-plane")
    );
    let worker = api.get("worker-0").await.unwrap();
    assert_eq!(ready(&worker).as_deref(), Some("True"));
    assert_eq!(worker.spec.unwrap().taints, None);
    let status = worker.status.unwrap();
    assert_eq!(status.node_info.unwrap().kubelet_version, "v1.34.1");
    assert_eq!(status.addresses.unwrap()[0].type_, "InternalIP");

    let pod = Api::<Pod>::namespaced(client.clone(), "kube-system")
        .get("etcd-cp-1")
        .await
        .unwrap();
    assert!(
        pod.annotations()
            .contains_key("kubeadm.kubernetes.io/etcd.advertise-client-urls")
    );
    assert_eq!(pod.owner_references()[0].name, "cp-1");
    assert_eq!(pod.status.unwrap().phase.as_deref(), Some("Running"));
    // The log has the events of the machine.
    let pods = Api::<Pod>::namespaced(client.clone(), "kube-system");
    let log = pods.logs("etcd-cp-1", &LogParams::default()).await.unwrap();
    let joining = "[etcd] Announced new etcd member joining to the existing etcd cluster";
    assert!(log.contains(joining), "{log}");
    let console = cloud.guests.console("worker-0-id");
    assert!(
        console.contains("This node has joined the cluster"),
        "{console}"
    );
    assert!(console.contains("bootstrap-success.complete"), "{console}");
    cloud.stop().await;
}

/// The nodes of the pods with this label, in order.
async fn nodes_of_pods(client: &Client, label: &str) -> Vec<String> {
    let pods = Api::<Pod>::namespaced(client.clone(), "kube-system");
    let pods = list(pods, &ListParams::default().labels(label)).await;
    let mut nodes: Vec<String> = pods
        .into_iter()
        .filter_map(|pod| pod.spec?.node_name)
        .collect();
    nodes.sort();
    nodes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kube_proxy_and_coredns_look_as_on_the_nodes_there_are() {
    let (mut cloud, client) = Cloud::initialized_by_cp_0(quick()).await;
    cloud.add(Machine::join(&cloud, "worker-0", false));
    cloud.add(Machine::join(&cloud, "worker-1", false));
    let proxy = async || {
        let sets = Api::<DaemonSet>::namespaced(client.clone(), "kube-system");
        let status = sets.get("kube-proxy").await.ok()?.status?;
        Some((status.desired_number_scheduled, status.number_ready))
    };
    eventually(&cloud, "kube-proxy on three nodes", async || {
        proxy().await == Some((3, 3))
    })
    .await;
    assert_eq!(
        nodes_of_pods(&client, "k8s-app=kube-proxy").await,
        ["cp-0", "worker-0", "worker-1"]
    );
    let dns = async || {
        let deployments = Api::<Deployment>::namespaced(client.clone(), "kube-system");
        deployments
            .get("coredns")
            .await
            .ok()?
            .status?
            .ready_replicas
    };
    eventually(&cloud, "two pods of CoreDNS", async || {
        dns().await == Some(2)
    })
    .await;

    // An evicted pod is replaced on another node.
    let pods = Api::<Pod>::namespaced(client.clone(), "kube-system");
    let of_dns = ListParams::default().labels("k8s-app=kube-dns");
    let evicted = list(pods.clone(), &of_dns).await.remove(0);
    let node = evicted.spec.clone().unwrap().node_name.unwrap();
    let api = Api::<Node>::all(client.clone());
    api.cordon(&node).await.unwrap();
    pods.evict(&evicted.name_any(), &Default::default())
        .await
        .unwrap();
    eventually(&cloud, "another pod of CoreDNS", async || {
        let names: Vec<String> = list(pods.clone(), &of_dns)
            .await
            .iter()
            .map(|pod| pod.name_any())
            .collect();
        names.len() == 2 && !names.contains(&evicted.name_any()) && dns().await == Some(2)
    })
    .await;

    // A new image is rolled out, and a deleted node takes its pod along.
    let image = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "kube-proxy", "image": "registry.k8s.io/kube-proxy:v1.34.9"}]}}}});
    let sets = Api::<DaemonSet>::namespaced(client.clone(), "kube-system");
    sets.patch(
        "kube-proxy",
        &PatchParams::default(),
        &Patch::Strategic(image),
    )
    .await
    .unwrap();
    cloud.remove("worker-1");
    api.delete("worker-1", &Default::default()).await.unwrap();
    eventually(&cloud, "the new image on two nodes", async || {
        let of_proxy = ListParams::default().labels("k8s-app=kube-proxy");
        let pods = list(pods.clone(), &of_proxy).await;
        let new = |pod: &Pod| {
            let image = pod.spec.as_ref()?.containers[0].image.as_deref()?;
            Some(image.ends_with(":v1.34.9"))
        };
        pods.len() == 2
            && pods.iter().all(|pod| new(pod) == Some(true))
            && proxy().await == Some((2, 2))
    })
    .await;
    cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_of_a_user_has_an_event_that_nothing_runs_it() {
    let (cloud, client) = Cloud::initialized_by_cp_0(quick()).await;
    let pod = json!({"metadata": {"name": "nginx"}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}});
    let pods = Api::<Pod>::default_namespaced(client.clone());
    let pod = serde_json::from_value(pod).unwrap();
    pods.create(&PostParams::default(), &pod).await.unwrap();
    eventually(&cloud, "the event", async || {
        let events = Api::<Event>::all(client.clone());
        let events = list(events, &ListParams::default()).await;
        let expected =
            "the nodes of this cluster are simulated and run no containers: this Pod stays Pending";
        let of_pod = |event: &&Event| event.involved_object.name.as_deref() == Some("nginx");
        let found: Vec<_> = events.iter().filter(of_pod).collect();
        // The add-ons have none.
        events.len() == found.len()
            && found.iter().any(|event| {
                event.reason.as_deref() == Some("FailedScheduling")
                    && event
                        .message
                        .as_deref()
                        .is_some_and(|text| text.starts_with(expected))
            })
    })
    .await;
    let pod = pods.get("nginx").await.unwrap();
    assert_eq!(pod.status.unwrap().phase.as_deref(), Some("Pending"));
    cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_control_plane_machine_reports_its_own_version() {
    let (mut cloud, client) = Cloud::initialized_by_cp_0(quick()).await;
    let config = cloud.initialized(&client).await;
    let version = client.apiserver_version().await.unwrap();
    assert_eq!(version.git_version, "v1.34.1");

    let text = &config.data.unwrap()["ClusterConfiguration"];
    let data = json!({"data": {"ClusterConfiguration": text.replace("v1.34.1", "v1.35.0")}});
    let maps = Api::<ConfigMap>::namespaced(client.clone(), "kube-system");
    maps.patch(
        "kubeadm-config",
        &PatchParams::default(),
        &Patch::Merge(data),
    )
    .await
    .unwrap();
    cloud.add(Machine::join(&cloud, "cp-1", true));
    eventually(&cloud, "two nodes", async || {
        nodes(&client).await == ["cp-0", "cp-1"]
    })
    .await;
    cloud.change("cp-0", |machine| machine.balanced = false);
    eventually(&cloud, "the version of cp-1", async || {
        let version = cloud.client().apiserver_version().await;
        version.is_ok_and(|version| version.git_version == "v1.35.0" && version.minor == "35")
    })
    .await;
    cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_token_or_hash_or_certificate_gives_no_node() {
    let options = Options {
        join_timeout: Duration::from_millis(500),
        ..quick()
    };
    let (mut cloud, client) = Cloud::initialized_by_cp_0(options).await;
    cloud
        .create_token(
            &client,
            "expire.0123456789abcdef",
            Some("2020-01-01T00:00:00Z"),
        )
        .await;
    cloud.signed_by(&client, "abcdef").await;

    let zeros = format!("sha256:{}", "0".repeat(64));
    let hash = cloud.hash();
    cloud.add(Machine::join(&cloud, "unknown", false).replacing(TOKEN, "zzzzzz.0123456789abcdef"));
    cloud.add(Machine::join(&cloud, "expired", false).replacing(TOKEN, "expire.0123456789abcdef"));
    cloud.add(Machine::join(&cloud, "secret", false).replacing(TOKEN, "abcdef.1123456789abcdef"));
    cloud.add(Machine::join(&cloud, "hash", false).replacing(&hash, &zeros));
    cloud.add(Machine::join(&cloud, "ca", true).with_other_certificates());
    cloud.add(
        Machine::join(&cloud, "cp-0-again", false).replacing("name: 'cp-0-again'", "name: 'cp-0'"),
    );
    for (name, message) in [
        ("unknown", "could not find a JWS signature"),
        ("expired", "could not find a JWS signature"),
        ("secret", "failed to verify JWS signature"),
        ("hash", "pinned"),
        ("ca", "is not the one of the cluster"),
        ("cp-0-again", "already exists in the cluster"),
    ] {
        let console = || cloud.guests.console(&format!("{name}-id"));
        eventually(&cloud, name, async || {
            console().contains("bootstrap failed")
        })
        .await;
        assert!(console().contains(message), "{}", console());
        assert!(
            !console().contains("0123456789abcdef"),
            "no secret in {}",
            console()
        );
    }
    assert_eq!(nodes(&client).await, ["cp-0"]);
    cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_survives_the_process_and_nothing_boots_twice() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        state_dir: Some(directory.path().to_owned()),
        ..quick()
    };
    let (mut cloud, client) = Cloud::initialized_by_cp_0(options.clone()).await;
    cloud.add(Machine::join(&cloud, "worker-0", false));
    cloud.add(Machine::join(&cloud, "worker-1", false));
    eventually(&cloud, "workers", async || nodes(&client).await.len() == 3).await;
    let written = || {
        std::fs::read_dir(directory.path().join("instances"))
            .unwrap()
            .count()
            == 3
    };
    eventually(&cloud, "records", async || written()).await;
    // A Node that a user deletes stays deleted: its machine does not boot again.
    Api::<Node>::all(client.clone())
        .delete("worker-1", &Default::default())
        .await
        .unwrap();
    cloud.stop().await;

    cloud.restart(options.clone());
    eventually(&cloud, "the cluster again", async || {
        Api::<Node>::all(client.clone())
            .get_opt("worker-0")
            .await
            .is_ok_and(|node| node.is_some())
    })
    .await;
    assert_eq!(nodes(&client).await, ["cp-0", "worker-0"]);
    assert!(
        cloud
            .guests
            .console("worker-0-id")
            .contains("joined the cluster")
    );

    // A worker is deleted while the process is down.
    cloud.stop().await;
    cloud.remove("worker-0");
    cloud.restart(options.clone());
    eventually(&cloud, "worker-0 to be unreachable", async || {
        Api::<Node>::all(client.clone())
            .get("worker-0")
            .await
            .is_ok_and(|node| ready(&node).as_deref() == Some("Unknown"))
    })
    .await;

    // Finally the control plane, too.
    cloud.stop().await;
    cloud.remove("cp-0");
    cloud.restart(options);
    let clusters = directory.path().join("clusters");
    eventually(&cloud, "an empty directory", async || {
        std::fs::read_dir(&clusters).unwrap().count() == 0
    })
    .await;
    cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_stops_just_after_it_has_joined_becomes_unreachable() {
    let (mut cloud, client) = Cloud::initialized_by_cp_0(quick()).await;
    let names: Vec<String> = (0..24).map(|number| format!("worker-{number}")).collect();
    for name in &names {
        cloud.add(Machine::join(&cloud, name, false));
    }
    // As soon as the Node exists, before the end of the first start.
    let mut joining: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let started = Instant::now();
    while !joining.is_empty() && started.elapsed() < PATIENCE {
        for node in nodes(&client).await {
            if joining.remove(node.as_str()) {
                cloud.change(&node, |machine| machine.running = false);
            }
        }
    }
    eventually(&cloud, "all workers unreachable", async || {
        for name in &names {
            if readiness(&client, name).await.as_deref() != Some("Unknown") {
                return false;
            }
        }
        true
    })
    .await;
    cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleted_and_stopped_machines_leave_as_real_ones_do() {
    let (mut cloud, client) = Cloud::initialized_by_cp_0(quick()).await;
    for name in ["cp-1", "cp-2"] {
        cloud.add(Machine::join(&cloud, name, true));
    }
    cloud.add(Machine::join(&cloud, "worker-0", false));
    eventually(&cloud, "all pods", async || {
        control_plane_pods(&client).await.len() == 12
    })
    .await;
    eventually(&cloud, "all nodes", async || {
        nodes(&client).await.len() == 4
    })
    .await;

    // A stopped worker becomes unreachable, and recovers.
    cloud.change("worker-0", |machine| machine.running = false);
    let is =
        async |node: &str, status: &str| readiness(&client, node).await.as_deref() == Some(status);
    eventually(&cloud, "worker-0 unreachable", async || {
        is("worker-0", "Unknown").await
    })
    .await;
    cloud.change("worker-0", |machine| machine.running = true);
    eventually(&cloud, "worker-0 back", async || {
        is("worker-0", "True").await
    })
    .await;
    let worker = Api::<Node>::all(client.clone())
        .get("worker-0")
        .await
        .unwrap();
    assert_eq!(worker.spec.unwrap().taints.unwrap_or_default(), []);

    // A pod that is deleted with a grace period is removed once its kubelet has stopped the pod.
    let pods = Api::<Pod>::namespaced(client.clone(), "default");
    let pod = json!({
        "metadata": {"name": "app"},
        "spec": {"nodeName": "worker-0", "containers": [{"name": "app", "image": "app"}]},
    });
    pods.create(
        &PostParams::default(),
        &serde_json::from_value(pod).unwrap(),
    )
    .await
    .unwrap();
    pods.delete("app", &Default::default()).await.unwrap();
    eventually(&cloud, "the pod to go", async || {
        pods.get_opt("app").await.unwrap().is_none()
    })
    .await;

    // The pods of a deleted control plane machine are deleted, but not its etcd member; the others continue to serve.
    cloud.remove("cp-0");
    eventually(&cloud, "cp-0's pods to go", async || {
        control_plane_pods(&client).await.len() == 8
    })
    .await;
    eventually(&cloud, "cp-0 unreachable", async || {
        is("cp-0", "Unknown").await
    })
    .await;

    // The same for a deleted Node.
    Api::<Node>::all(client.clone())
        .delete("cp-1", &Default::default())
        .await
        .unwrap();
    eventually(&cloud, "cp-1's pods to go", async || {
        control_plane_pods(&client)
            .await
            .iter()
            .all(|name| name.ends_with("cp-2"))
    })
    .await;

    // With the last control plane machine the cluster is deleted and its address is free.
    cloud.remove("cp-1");
    cloud.remove("cp-2");
    let endpoint = cloud.endpoint;
    eventually(&cloud, "the address to be free", async || {
        std::net::TcpStream::connect((endpoint, 6443)).is_err()
    })
    .await;
    cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_control_plane_closes_connections_and_a_reboot_serves_again() {
    let (mut cloud, client) = Cloud::initialized_by_cp_0(quick()).await;
    cloud.change("cp-0", |machine| machine.running = false);
    eventually(&cloud, "the API to be down", async || {
        client.apiserver_version().await.is_err()
    })
    .await;
    assert!(
        std::net::TcpStream::connect((cloud.endpoint, 6443)).is_ok(),
        "accepted, then closed"
    );
    cloud.change("cp-0", |machine| {
        machine.running = true;
        machine.boot += 1;
    });
    eventually(&cloud, "the API to be back", async || {
        client.apiserver_version().await.is_ok()
    })
    .await;
    eventually(&cloud, "the node to be ready", async || {
        readiness(&client, "cp-0").await.as_deref() == Some("True")
    })
    .await;
    cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_sign_cluster_info_while_they_are_valid_and_open_no_other_doors() {
    let (cloud, client) = Cloud::initialized_by_cp_0(quick()).await;
    cloud.signed_by(&client, "abcdef").await;

    let anonymous = cloud.client_with(None, None);
    let bearer = cloud.client_with(None, Some(TOKEN));
    let wrong = cloud.client_with(None, Some("abcdef.1123456789abcdef"));
    let member = cloud.client_with(Some(("someone", "system:authenticated")), None);
    let code =
        async |client: &Client, namespace: &str, name: &str| match Api::<ConfigMap>::namespaced(
            client.clone(),
            namespace,
        )
        .get(name)
        .await
        {
            Ok(_) => 200,
            Err(kube::Error::Api(status)) => status.code,
            Err(other) => panic!("{other}"),
        };
    assert_eq!(code(&anonymous, "kube-public", "cluster-info").await, 200);
    assert_eq!(code(&anonymous, "kube-system", "kubeadm-config").await, 403);
    assert_eq!(code(&bearer, "kube-system", "kubeadm-config").await, 200);
    assert_eq!(code(&bearer, "kube-system", "coredns").await, 403);
    assert_eq!(code(&wrong, "kube-system", "kubeadm-config").await, 401);
    assert_eq!(code(&member, "kube-system", "kubeadm-config").await, 403);

    // An expired token's signature is removed.
    let secrets =
        Api::<k8s_openapi::api::core::v1::Secret>::namespaced(client.clone(), "kube-system");
    let expired = json!({"stringData": {"expiration": "2020-01-01T00:00:00Z"}});
    let params = PatchParams::default();
    secrets
        .patch("bootstrap-token-abcdef", &params, &Patch::Merge(expired))
        .await
        .unwrap();
    let infos = Api::<ConfigMap>::namespaced(client.clone(), "kube-public");
    eventually(&cloud, "the signature to go", async || {
        let info = infos.get("cluster-info").await.unwrap();
        !info.data.unwrap().contains_key("jws-kubeconfig-abcdef")
    })
    .await;
    assert_eq!(code(&bearer, "kube-system", "kubeadm-config").await, 401);
    cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_that_leads_elsewhere_or_broken_user_data_fails_the_boot_for_good() {
    let options = Options {
        init_timeout: Duration::from_millis(300),
        ..quick()
    };
    let mut cloud = Cloud::start(options);
    let mut lost = Machine::init(&cloud, "lost");
    lost.balanced = false;
    cloud.add(lost);
    let mut mime = Machine::init(&cloud, "mime");
    mime.user_data = "Content-Type: multipart/mixed\n".to_owned();
    cloud.add(mime);
    let mut plain = Machine::init(&cloud, "plain");
    plain.user_data = String::new();
    cloud.add(plain);
    let mut prose = Machine::init(&cloud, "prose");
    prose.user_data = "no cloud-config at all\n".to_owned();
    cloud.add(prose);
    let mut bare = Machine::init(&cloud, "bare");
    bare.image = "ubuntu-24.04".to_owned();
    cloud.add(bare);
    let console = |name: &str| cloud.guests.console(&format!("{name}-id"));
    eventually(&cloud, "lost", async || {
        console("lost").contains("bootstrap failed")
    })
    .await;
    assert!(
        console("lost").contains("does not lead to this API server"),
        "{}",
        console("lost")
    );
    eventually(&cloud, "mime", async || {
        console("mime").contains("multi-part")
    })
    .await;
    eventually(&cloud, "plain", async || {
        console("plain").contains("finished")
    })
    .await;
    assert!(!console("plain").contains("failed"));
    // cloud-init only warns, and boots.
    eventually(&cloud, "prose", async || {
        console("prose").contains("finished")
    })
    .await;
    let prose = console("prose");
    assert!(
        prose.contains("[WARNING]: Unhandled non-multipart"),
        "{prose}"
    );
    assert!(
        !prose.contains("failed") && !prose.contains("no cloud-config"),
        "{prose}"
    );
    eventually(&cloud, "bare", async || {
        console("bare").contains("bootstrap failed")
    })
    .await;
    assert!(
        console("bare").contains("kubeadm: not found"),
        "{}",
        console("bare")
    );
    cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_init_that_was_cut_off_is_finished_by_the_next_process() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        state_dir: Some(directory.path().to_owned()),
        ..quick()
    };
    let mut cloud = Cloud::start(options.clone());
    let mut machine = Machine::init(&cloud, "cp-0");
    machine.balanced = false;
    cloud.add(machine);
    let waits = || {
        cloud
            .guests
            .console("cp-0-id")
            .contains("Waiting for a healthy API server")
    };
    eventually(&cloud, "init to wait", async || waits()).await;
    cloud.stop().await;

    cloud.change("cp-0", |machine| machine.balanced = true);
    cloud.restart(options);
    let client = cloud.client();
    cloud.initialized(&client).await;
    assert_eq!(nodes(&client).await, ["cp-0"]);
    cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_in_use_is_bound_as_soon_as_it_is_free() {
    let mut cloud = Cloud::start(quick());
    let other = std::net::TcpListener::bind((cloud.endpoint, 6443)).unwrap();
    cloud.add(Machine::init(&cloud, "cp-0"));
    let waits = || {
        cloud
            .guests
            .console("cp-0-id")
            .contains("Waiting for a healthy API server")
    };
    eventually(&cloud, "init to wait", async || waits()).await;
    drop(other);
    let client = cloud.client();
    cloud.initialized(&client).await;
    cloud.stop().await;
}
