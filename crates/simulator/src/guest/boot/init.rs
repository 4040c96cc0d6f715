//! `kubeadm init`: the first control plane machine of a cluster.

use jiff::Timestamp;

use super::super::api;
use super::super::cluster::{Cluster, Opening, Signal};
use super::super::console::Console;
use super::super::discovery::{self, Trust};
use super::super::kubeadm::{self, Init};
use super::super::objects::{self, addons};
use super::super::pki::Pki;
use super::super::record::Membership;
use super::super::user_data::CloudConfig;
use super::{Boot, Tries, external_etcd_files, kubelet_starts, text_file};

impl Boot {
    /// Runs `kubeadm init --config path`. The error is kubeadm's output.
    pub(super) async fn init(
        &self,
        config: &CloudConfig,
        path: &str,
        console: &Console,
    ) -> Result<Membership, String> {
        let init = kubeadm::init(text_file(config, path)?).map_err(|error| error.to_string())?;
        let version = objects::version(&init.cluster);
        console.cloud_init(&format!("[init] Using Kubernetes version: {version}"));
        console.cloud_init("[preflight] Running pre-flight checks");
        let external_etcd = init.cluster.etcd.external.is_some();
        let pki = Pki::load(&config.files, external_etcd, Timestamp::now().as_second())
            .map_err(|error| format!("error execution phase certs: {error}"))?;
        external_etcd_files(&init.cluster, config)?;
        let of_etcd = (!external_etcd).then_some("etcd/ca");
        for name in ["ca", "front-proxy-ca"].into_iter().chain(of_etcd) {
            console.cloud_init(&format!(
                "[certs] Using existing {name} certificate authority"
            ));
        }
        console.cloud_init("[certs] Using the existing \"sa\" key");

        let node = self.node_name(&init.node);
        let endpoint = init.cluster.endpoint();
        let key = cluster_key(&pki, &self.instance.id);
        let opening = Opening {
            key: &key,
            pki: &pki,
            endpoint_host: endpoint.as_ref().map(|(host, _)| host.clone()),
            version: version.clone(),
        };
        let cluster = self.open(opening).await?;
        if !external_etcd {
            cluster.etcd.found(&self.place(&node));
        }
        console.cloud_init("[kubelet-start] Starting the kubelet");
        kubelet_starts(&init.node, console)?;
        let named = (node.as_str(), version.as_str());
        self.serve(&cluster, &init.cluster, &pki, named, init.bind_port)?;
        if let Some(endpoint) = &endpoint {
            self.wait_for(endpoint, &pki, console).await?;
        }
        self.leave_behind(&cluster, &init, &pki, &node).await?;
        console.cloud_init("Your Kubernetes control-plane has initialized successfully!");
        Ok(Membership {
            cluster: key,
            name: node,
            version,
            bind_port: Some(init.bind_port),
        })
    }

    /// Waits until the control plane endpoint leads to this API server: kubeadm sends its requests there.
    async fn wait_for(
        &self,
        endpoint: &(String, u16),
        pki: &Pki,
        console: &Console,
    ) -> Result<(), String> {
        let limit = self.shared.options.init_timeout;
        let (host, port) = endpoint;
        console.cloud_init(&format!(
            "[control-plane-check] Waiting for a healthy API server at https://{host}:{port}. This can take up to {} s",
            limit.as_secs()
        ));
        let trust = Trust::Authority(pki.ca.der.clone());
        let mut tries = Tries::new(limit, self.shared.options.retry);
        while let Err(problem) =
            discovery::answers(endpoint, &self.shared.options.outside, &trust).await
        {
            if !tries.again().await {
                return Err(format!(
                    "error execution phase wait-control-plane: could not initialize a Kubernetes cluster: the control plane endpoint {host}:{port} does not lead to this API server: {problem}"
                ));
            }
        }
        Ok(())
    }

    /// Creates the objects of the remaining phases.
    async fn leave_behind(
        &self,
        cluster: &Cluster,
        init: &Init,
        pki: &Pki,
        node: &str,
    ) -> Result<(), String> {
        let mut tries = Tries::new(self.shared.options.init_timeout, self.shared.options.retry);
        while let Err(error) = self.try_leave_behind(cluster, init, pki, node).await {
            if !tries.again().await {
                return Err(format!("error execution phase upload-config: {error}"));
            }
        }
        Ok(())
    }

    async fn try_leave_behind(
        &self,
        cluster: &Cluster,
        init: &Init,
        pki: &Pki,
        node: &str,
    ) -> Result<(), api::Error> {
        let _permit = self.shared.permits.acquire().await;
        let endpoint = match init.cluster.endpoint() {
            Some((host, port)) if host.contains(':') => format!("[{host}]:{port}"),
            Some((host, port)) => format!("{host}:{port}"),
            None => {
                let address = self.instance.fixed_ips.first().map(ToString::to_string);
                format!("{}:{}", address.unwrap_or_default(), init.bind_port)
            }
        };
        for manifest in objects::kubeadm::manifests(init, &pki.ca.pem, &endpoint) {
            cluster.api.ensure(&manifest).await?;
        }
        cluster.signal(Signal::Sign);
        let machine = self.machine(node, objects::version(&init.cluster), true);
        self.register(
            cluster,
            &init.cluster,
            &init.node,
            &machine,
            Some(init.bind_port),
        )
        .await?;
        for manifest in addons::manifests(init) {
            cluster.api.ensure(&manifest).await?;
        }
        // Last, because it marks the cluster as initialized for the control plane controller.
        cluster
            .api
            .ensure(&objects::kubeadm::kubeadm_config(init))
            .await?;
        Ok(())
    }
}

/// Returns the key of a cluster, unique even among clusters with the same authority.
fn cluster_key(pki: &Pki, instance: &str) -> String {
    let hash: String = pki
        .ca
        .hash()
        .chars()
        .skip("sha256:".len())
        .take(16)
        .collect();
    format!("{hash}-{instance}")
}
