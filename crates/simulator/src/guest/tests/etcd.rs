//! etcd of the guests, accessed through the API server like a control plane controller does.

use super::*;

/// A cluster of control plane machines; the first one initializes it.
async fn control_plane(options: Options, machines: &[&str]) -> (Cloud, Client) {
    let (mut cloud, client) = Cloud::initialized_by_cp_0(options).await;
    for name in machines {
        cloud.add(Machine::join(&cloud, name, true));
    }
    let count = 4 * (machines.len() + 1);
    eventually(&cloud, "all pods", async || {
        control_plane_pods(&client).await.len() == count
    })
    .await;
    // Pods are there before kubeadm has ended, and a machine that is stopped until then begins again.
    eventually(&cloud, "the ends of the joins", async || {
        machines.iter().all(|name| {
            let console = cloud.guests.console(&format!("{name}-id"));
            console.contains("bootstrap-success.complete")
        })
    })
    .await;
    (cloud, client)
}

/// The names of the members, and that of the leader.
async fn members(cloud: &Cloud, client: &Client, asked: &str) -> (Vec<String>, String) {
    let etcd = cloud.etcd(client, asked, "etcd/ca").await.unwrap();
    let (members, status) = (etcd.members().await.unwrap(), etcd.status().await.unwrap());
    let leader = members.iter().find(|member| member.id == status.leader);
    let leader = leader.map(|member| member.name.clone()).unwrap_or_default();
    let mut names: Vec<_> = members.into_iter().map(|member| member.name).collect();
    names.sort();
    (names, leader)
}

async fn write(client: &Client, name: &str) -> kube::Result<ConfigMap> {
    let map = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    let maps = Api::<ConfigMap>::namespaced(client.clone(), "default");
    maps.create(&PostParams::default(), &map).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_answer_behind_the_forwarded_port_to_clients_of_their_own_authority() {
    let (cloud, client) = control_plane(quick(), &["cp-1", "cp-2"]).await;
    let (names, leader) = members(&cloud, &client, "cp-1").await;
    assert_eq!((names.len(), leader.as_str()), (3, "cp-0"));
    let etcd = cloud.etcd(&client, "cp-0", "etcd/ca").await.unwrap();
    assert!(etcd.alarms().await.unwrap().is_empty());
    let version = etcd.status().await.unwrap().version;
    let pods = Api::<Pod>::namespaced(client.clone(), "kube-system");
    let pod = pods.get("etcd-cp-0").await.unwrap().spec.unwrap();
    let image = pod.containers[0].image.as_deref().unwrap_or_default();
    assert_eq!(image, format!("registry.k8s.io/etcd:{version}-0"));
    let list = etcd.members().await.unwrap();
    let successor = list.iter().find(|member| member.name == "cp-2").unwrap();
    etcd.move_leader(successor.id).await.unwrap();
    assert_eq!(members(&cloud, &client, "cp-1").await.1, "cp-2");
    let refused = etcd.move_leader(successor.id).await.unwrap_err();
    assert_eq!(refused.to_string(), "etcdserver: not leader");
    // The cluster's CA, which signs administrators' certificates, is not etcd's CA.
    let stranger = match cloud.etcd(&client, "cp-0", "ca").await {
        Ok(etcd) => etcd.status().await.err(),
        Err(early) => Some(early),
    };
    assert!(stranger.is_some_and(|error| error.status().is_none()));
    cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_outlives_its_machine_and_the_next_join_fails_until_it_is_removed() {
    let options = Options {
        // The others join within this time on a busy machine, and the test waits once for the whole time.
        join_timeout: Duration::from_secs(10),
        ..quick()
    };
    let (mut cloud, client) = control_plane(options, &["cp-1", "cp-2"]).await;
    cloud.remove("cp-2");
    eventually(&cloud, "cp-2's pods to go", async || {
        control_plane_pods(&client).await.len() == 8
    })
    .await;
    let (names, _) = members(&cloud, &client, "cp-0").await;
    assert_eq!(names, ["cp-0", "cp-1", "cp-2"]);

    cloud.add(Machine::join(&cloud, "cp-3", true));
    eventually(&cloud, "cp-3 to fail", async || {
        cloud.guests.console("cp-3-id").contains("bootstrap failed")
    })
    .await;
    let console = cloud.guests.console("cp-3-id");
    let words = "error execution phase check-etcd: etcd cluster is not healthy: failed to dial endpoint https://10.6.0.12:2379";
    assert!(console.contains(words), "{console}");

    let etcd = cloud.etcd(&client, "cp-0", "etcd/ca").await.unwrap();
    let list = etcd.members().await.unwrap();
    let gone = list.iter().find(|member| member.name == "cp-2").unwrap();
    etcd.remove(gone.id).await.unwrap();
    cloud.add(Machine::join(&cloud, "cp-4", true));
    eventually(&cloud, "cp-4's member", async || {
        members(&cloud, &client, "cp-0").await.0 == ["cp-0", "cp-1", "cp-4"]
    })
    .await;
    cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_quorum_nothing_is_written_until_a_member_is_back() {
    let (mut cloud, client) = control_plane(quick(), &["cp-1"]).await;
    write(&client, "before").await.unwrap();
    cloud.change("cp-1", |machine| machine.running = false);
    let refused = async || match write(&client, "meanwhile").await {
        Err(kube::Error::Api(status)) => {
            status.code == 500 && status.message == "etcdserver: request timed out"
        }
        _ => false,
    };
    eventually(&cloud, "writes to be refused", refused).await;
    let maps = Api::<ConfigMap>::namespaced(client.clone(), "default");
    maps.get("before").await.unwrap();
    cloud.change("cp-1", |machine| machine.running = true);
    eventually(&cloud, "writes to be taken", async || {
        write(&client, "after").await.is_ok()
    })
    .await;
    cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_of_three_goes_on_once_its_etcd_is_restarted_alone() {
    let (mut cloud, client) = control_plane(quick(), &["cp-1", "cp-2"]).await;
    cloud.remove("cp-1");
    cloud.remove("cp-2");
    eventually(&cloud, "writes to be refused", async || {
        write(&client, "meanwhile").await.is_err()
    })
    .await;
    let etcd = cloud.etcd(&client, "cp-0", "etcd/ca").await.unwrap();
    etcd.members().await.unwrap_err();
    let known = etcd.members_here().await.unwrap();
    assert_eq!(known.len(), 3);
    let gone = known.iter().find(|member| member.name == "cp-1").unwrap();
    let refused = etcd.remove(gone.id).await.unwrap_err();
    assert_eq!(refused.to_string(), "etcdserver: request timed out");
    let force = ("simulator:etcd".to_owned(), "force-new-cluster".to_owned());
    cloud.change("cp-0", |machine| machine.metadata.extend([force]));
    eventually(&cloud, "writes to be taken", async || {
        write(&client, "after").await.is_ok()
    })
    .await;
    assert_eq!(members(&cloud, &client, "cp-0").await.0, ["cp-0"]);
    let console = cloud.guests.console("cp-0-id");
    assert!(console.contains("forced a new cluster"), "{console}");
    cloud.add(Machine::join(&cloud, "cp-3", true));
    eventually(&cloud, "cp-3's member", async || {
        members(&cloud, &client, "cp-0").await.0 == ["cp-0", "cp-3"]
    })
    .await;
    cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_whose_member_was_removed_serves_no_more() {
    let (cloud, client) = control_plane(quick(), &["cp-1", "cp-2"]).await;
    let etcd = cloud.etcd(&client, "cp-0", "etcd/ca").await.unwrap();
    let list = etcd.members().await.unwrap();
    let going = list.iter().find(|member| member.name == "cp-1").unwrap();
    etcd.remove(going.id).await.unwrap();
    // The kubelet uses the API server of its own machine.
    eventually(&cloud, "cp-1 unreachable", async || {
        readiness(&client, "cp-1").await.as_deref() == Some("Unknown")
    })
    .await;
    let left = members(&cloud, &client, "cp-0").await;
    assert_eq!(
        left,
        (
            vec!["cp-0".to_owned(), "cp-2".to_owned()],
            "cp-0".to_owned()
        )
    );
    cloud.stop().await;
}
