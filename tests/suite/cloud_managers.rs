//! Cloud controller managers of clusters on a cloud that `up` takes for a real one: as its user would, the test runs
//! one beside `up` for each cluster.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ccm::{Options, Settings};
use cloud_conf::CloudConf;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ListParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, ResourceExt};
use openstack::config::CloudConfig;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The time between two looks at the clusters.
const LOOK: Duration = Duration::from_millis(200);

/// Runs a manager for each cluster of the `up` with the data directory `home/data`, until `stop`.
pub(crate) async fn run(home: PathBuf, clouds_file: PathBuf, stop: CancellationToken) {
    let mut running: BTreeMap<String, DropGuard> = BTreeMap::new();
    let work = async {
        loop {
            tokio::time::sleep(LOOK).await;
            // While `up` does not run, what is known stays.
            let Some(clusters) = clusters(&home.join("data/kubeconfig")).await else {
                continue;
            };
            running.retain(|cluster, _| clusters.contains_key(cluster));
            for (cluster, kubeconfig) in clusters {
                if !running.contains_key(&cluster)
                    && let Some(guard) = start(&kubeconfig, &clouds_file).await
                {
                    running.insert(cluster, guard);
                }
            }
        }
    };
    stop.run_until_cancelled(work).await;
}

/// The kubeconfigs of all clusters, by the uids of their Secrets.
async fn clusters(management: &Path) -> Option<BTreeMap<String, String>> {
    let client = client(Kubeconfig::read_from(management).ok()?).await?;
    let secrets: Api<Secret> = Api::all(client);
    let of_clusters = ListParams::default().labels("cluster.x-k8s.io/cluster-name");
    let found = secrets.list(&of_clusters).await.ok()?;
    let kubeconfigs = found.items.into_iter().filter_map(|secret| {
        let named = secret.name_any().ends_with("-kubeconfig");
        let value = secret.data.as_ref()?.get("value")?.0.clone();
        named.then_some((secret.uid()?, String::from_utf8(value).ok()?))
    });
    Some(kubeconfigs.collect())
}

async fn client(kubeconfig: Kubeconfig) -> Option<Client> {
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .ok()?;
    config.default_retry = false;
    Client::try_from(config).ok()
}

/// Starts the manager of a cluster whose API server answers.
async fn start(kubeconfig: &str, clouds_file: &Path) -> Option<DropGuard> {
    let client = client(Kubeconfig::from_yaml(kubeconfig).ok()?).await?;
    client.apiserver_version().await.ok()?;
    let clouds = std::fs::read_to_string(clouds_file).ok()?;
    let settings = Settings {
        conf: CloudConf::default(),
        cloud: CloudConfig::parse(&clouds, "simulated").ok()?,
    };
    let (sender, receiver) = watch::channel(Arc::new(settings));
    let stop = CancellationToken::new();
    let ends = stop.clone();
    tokio::spawn(async move {
        ccm::run(client, Options::new(receiver), ends).await;
        drop(sender);
    });
    Some(stop.drop_guard())
}
