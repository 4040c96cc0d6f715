//! The program is killed (`kill -9`) after every single OpenStack write, once for each.
//!
//! The cloud and its guests run in the test's process and survive. The hook runs when the change is made and
//! before the reply leaves: the program dies without knowing whether its write took place.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use kube::api::{Api, DeleteParams, DynamicObject, ListParams};
use kube::discovery::ApiResource;

use crate::cloud::TestCloud;
use crate::main_job::kind;
use crate::process::{Up, eventually};

/// A cluster with each kind of machine.
const CLUSTER: [&str; 6] = [
    "--cloud",
    "simulated",
    "--control-plane-machine-count",
    "1",
    "--worker-machine-count",
    "1",
];

/// How many scenarios run beside each other.
const LANES: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn killed_after_any_write_the_next_start_reaches_the_same_state() {
    let reference = scenario(u64::MAX, u64::MAX).await;
    assert!(
        reference.create_writes > 10 && reference.delete_writes > 5,
        "{reference:?}"
    );
    let last = reference.create_writes.max(reference.delete_writes);
    let next = Arc::new(AtomicU64::new(1));
    let lanes = (0..LANES).map(|_| {
        let (next, reference) = (Arc::clone(&next), reference.clone());
        tokio::spawn(async move {
            loop {
                let nth = next.fetch_add(1, Ordering::SeqCst);
                if nth > last {
                    return;
                }
                let outcome = scenario(nth, nth).await;
                assert_eq!(
                    outcome.resources, reference.resources,
                    "killed after write {nth}"
                );
            }
        })
    });
    for lane in lanes.collect::<Vec<_>>() {
        lane.await.unwrap();
    }
}

/// What a scenario found.
#[derive(Clone, Debug)]
struct Outcome {
    create_writes: u64,
    delete_writes: u64,
    /// Counts of the cloud's resources while the cluster was ready.
    resources: String,
}

/// Creates a cluster, killing the program after the `create`-th write, then deletes it, killing the
/// program after the `delete`-th; checks that the cloud is as it was before.
async fn scenario(create: u64, delete: u64) -> Outcome {
    let home = tempfile::tempdir().unwrap();
    let cloud = TestCloud::start(home.path()).await;
    let before = resources(&cloud);

    let executioner = Executioner::new(&cloud);
    executioner.aim(create);
    let mut up = executioner.start(home.path(), &cloud, &CLUSTER);
    let in_time = up.ready_or_ended().await;
    // Writes that follow are those of a cluster that is ready, if there are any: they are not aimed at.
    executioner.disarm();
    if executioner.has_struck() || !in_time {
        assert!(
            executioner.has_struck(),
            "the program ended by itself:\n{}",
            up.story()
        );
        assert_eq!(up.ended().await, None);
        up = executioner.start(home.path(), &cloud, &CLUSTER);
        up.ready().await;
    }
    let resources_when_ready = resources(&cloud);
    let create_writes = executioner.writes();

    executioner.aim(delete);
    let clusters =
        |client| -> Api<DynamicObject> { Api::namespaced_with(client, "default", &cluster()) };
    let api = clusters(up.client().await);
    api.delete("demo", &DeleteParams::default()).await.unwrap();
    let gone_or_struck = eventually("the end of the deletion, or of the program", || async {
        if executioner.has_struck() {
            return Some(false);
        }
        api.list(&ListParams::default())
            .await
            .ok()
            .and_then(|left| left.items.is_empty().then_some(true))
    });
    if !gone_or_struck.await {
        assert_eq!(up.ended().await, None);
        // A start with a manifest does not create the default cluster when the deletion is already through.
        let manifest = home.path().join("namespace.yaml");
        std::fs::write(
            &manifest,
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n",
        )
        .unwrap();
        let resume = ["--cloud", "simulated", "-f", manifest.to_str().unwrap()];
        up = executioner.start(home.path(), &cloud, &resume);
        eventually("the end of the deletion", || async {
            let left = clusters(up.client().await)
                .list(&ListParams::default())
                .await
                .ok()?;
            left.items.is_empty().then_some(())
        })
        .await;
    }
    let delete_writes = executioner.writes();
    assert_eq!(
        resources(&cloud),
        before,
        "create {create}, delete {delete}: {}",
        up.story()
    );
    up.stop().await;
    Outcome {
        create_writes,
        delete_writes,
        resources: resources_when_ready,
    }
}

fn cluster() -> ApiResource {
    kind("cluster.x-k8s.io", "Cluster")
}

fn resources(cloud: &TestCloud) -> String {
    serde_json::to_string_pretty(&cloud.cloud.resources()).unwrap()
}

/// Kills the program after the n-th write of the cloud.
struct Executioner(Arc<Mutex<Aim>>);

#[derive(Default)]
struct Aim {
    pid: i32,
    /// Writes since the last aim.
    writes: u64,
    /// `None`: no write is aimed at.
    target: Option<u64>,
    has_struck: bool,
}

impl Executioner {
    fn new(cloud: &TestCloud) -> Self {
        let aim = Arc::new(Mutex::new(Aim::default()));
        let hook = Arc::clone(&aim);
        cloud.cloud.on_write(move |_| {
            let mut aim = hook.lock().unwrap();
            aim.writes += 1;
            if aim.target == Some(aim.writes) {
                let pid = rustix::process::Pid::from_raw(aim.pid).unwrap();
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
                aim.has_struck = true;
            }
        });
        Self(aim)
    }

    fn start(&self, home: &Path, cloud: &TestCloud, args: &[&str]) -> Up {
        let up = Up::start(home, args, &cloud.variables());
        self.0.lock().unwrap().pid = up.pid();
        up
    }

    fn aim(&self, nth: u64) {
        let mut aim = self.0.lock().unwrap();
        (aim.writes, aim.target, aim.has_struck) = (0, Some(nth), false);
    }

    fn disarm(&self) {
        self.0.lock().unwrap().target = None;
    }

    fn has_struck(&self) -> bool {
        self.0.lock().unwrap().has_struck
    }

    fn writes(&self) -> u64 {
        self.0.lock().unwrap().writes
    }
}
