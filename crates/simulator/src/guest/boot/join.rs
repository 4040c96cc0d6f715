//! `kubeadm join`: every machine except the first.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::super::cluster::Cluster;
use super::super::console::Console;
use super::super::discovery::{self, ClusterInfo, Refusal, Trust};
use super::super::kubeadm::{self, ClusterConfiguration, Join};
use super::super::objects;
use super::super::objects::kubeadm::CONFIG_MAPS;
use super::super::objects::node::NODES;
use super::super::pki::{self, Pki};
use super::super::record::Membership;
use super::super::user_data::CloudConfig;
use super::{Boot, Tries, external_etcd_files, is_ready, kubelet_starts, system_uuid, text_file};

impl Boot {
    /// Runs `kubeadm join --config path`. The error is kubeadm's output.
    pub(super) async fn join(
        &self,
        config: &CloudConfig,
        path: &str,
        console: &Console,
    ) -> Result<Membership, String> {
        let join = kubeadm::join(text_file(config, path)?).map_err(|error| error.to_string())?;
        let endpoint = kubeadm::split_endpoint(&join.endpoint)
            .ok_or_else(|| format!("invalid API server endpoint {:?}", join.endpoint))?;
        console.cloud_init("[preflight] Running pre-flight checks");
        let info = self.discover(&join, &endpoint, console).await?;
        console.cloud_init(
            "[preflight] Reading configuration from the \"kubeadm-config\" ConfigMap in namespace \"kube-system\"...",
        );
        let trust = Trust::Authority(info.authority.clone());
        let configuration = self.cluster_configuration(&join, &endpoint, &trust).await?;
        let node = self.node_name(&join.node);
        self.refuse_taken_name(&node, &join, &endpoint, &trust)
            .await?;
        let cluster = self.cluster(&info, &endpoint.0).await?;
        let version = objects::version(&configuration);
        if let Some(port) = join.control_plane {
            let pki = self.control_plane_certificates(config, &configuration, &info)?;
            console.cloud_init("[certs] Using the existing CA certificates");
            if pki.etcd.is_some() {
                self.join_etcd(&cluster, &node, console).await?;
            }
            self.serve(
                &cluster,
                &configuration,
                &pki,
                (node.as_str(), version.as_str()),
                port,
            )?;
        }
        console.cloud_init("[kubelet-start] Starting the kubelet");
        kubelet_starts(&join.node, console)?;
        let machine = self.machine(&node, version.clone(), join.control_plane.is_some());
        let mut tries = Tries::new(self.shared.options.join_timeout, self.shared.options.retry);
        loop {
            let permit = self.shared.permits.acquire().await;
            let registered = self
                .register(
                    &cluster,
                    &configuration,
                    &join.node,
                    &machine,
                    join.control_plane,
                )
                .await;
            drop(permit);
            match registered {
                Ok(()) => break,
                Err(error) if !tries.again().await => {
                    return Err(format!("error execution phase kubelet-start: {error}"));
                }
                Err(_) => {}
            }
        }
        console.cloud_init("This node has joined the cluster");
        Ok(Membership {
            cluster: cluster.key.clone(),
            name: node,
            version,
            bind_port: join.control_plane,
        })
    }

    /// Adds the machine's member to etcd, first as a learner, promoted once in sync.
    async fn join_etcd(
        &self,
        cluster: &Cluster,
        node: &str,
        console: &Console,
    ) -> Result<(), String> {
        let (etcd, place) = (&cluster.etcd, self.place(node));
        let prefix = "error execution phase";
        console.cloud_init("[check-etcd] Checking that the etcd cluster is healthy");
        let checked = self.until(|| etcd.check()).await;
        checked.map_err(|error| format!("{prefix} check-etcd: {error}"))?;
        let add = || etcd.add_learner(&place).map_err(|status| status.message);
        let failed = |error: String| {
            format!(
                "{prefix} etcd-join: error creating local etcd static pod manifest file: {error}"
            )
        };
        self.until(add).await.map_err(failed)?;
        console.cloud_init("[etcd] Announced new etcd member joining to the existing etcd cluster");
        etcd.run(&place.machine, &self.power).map_err(failed)?;
        etcd.start(&place);
        let promote = || {
            etcd.promote(&place.machine)
                .map_err(|status| status.message)
        };
        self.until(promote).await.map_err(failed)?;
        console
            .cloud_init("[etcd] The etcd member has been promoted from learner to voting member");
        Ok(())
    }

    /// Retries a step of kubeadm until its timeout. Returns the error of the last attempt.
    async fn until(&self, step: impl Fn() -> Result<(), String>) -> Result<(), String> {
        let mut tries = Tries::new(self.shared.options.join_timeout, self.shared.options.retry);
        loop {
            match step() {
                Ok(()) => return Ok(()),
                Err(problem) if !tries.again().await => return Err(problem),
                Err(_) => {}
            }
        }
    }

    /// Runs the discovery, with retries until its timeout.
    async fn discover(
        &self,
        join: &Join,
        endpoint: &(String, u16),
        console: &Console,
    ) -> Result<ClusterInfo, String> {
        let prefix =
            "error execution phase preflight: couldn't validate the identity of the API Server";
        let mut tries = Tries::new(self.shared.options.join_timeout, self.shared.options.retry);
        let outside = &self.shared.options.outside;
        let mut printed = String::new();
        loop {
            let permit = self.shared.permits.acquire().await;
            let found = discovery::discover(join, endpoint, outside).await;
            drop(permit);
            let problem = match found {
                Ok(info) => return Ok(info),
                Err(Refusal::Never(problem)) => return Err(format!("{prefix}: {problem}")),
                Err(Refusal::NotYet(problem)) => problem,
            };
            if printed != problem {
                console.cloud_init(&format!("[discovery] {problem}, will try again"));
                printed.clone_from(&problem);
            }
            if !tries.again().await {
                return Err(format!("{prefix}: {problem}"));
            }
        }
    }

    /// Reads `kubeadm-config` with the permissions of the bootstrap token.
    async fn cluster_configuration(
        &self,
        join: &Join,
        endpoint: &(String, u16),
        trust: &Trust,
    ) -> Result<ClusterConfiguration, String> {
        let prefix = "error execution phase preflight: unable to fetch the kubeadm-config ConfigMap: failed to get config map";
        let path = format!("{CONFIG_MAPS}/kubeadm-config");
        let mut tries = Tries::new(self.shared.options.join_timeout, self.shared.options.retry);
        let outside = &self.shared.options.outside;
        let found = loop {
            let permit = self.shared.permits.acquire().await;
            let found =
                discovery::fetch(endpoint, outside, trust, Some(&join.tls_token), &path).await;
            drop(permit);
            match found {
                Ok(found) => break found,
                Err(problem) if !tries.again().await => return Err(format!("{prefix}: {problem}")),
                Err(_) => {}
            }
        };
        let text = found
            .pointer("/data/ClusterConfiguration")
            .and_then(Value::as_str)
            .ok_or_else(|| format!("{prefix}: it has no ClusterConfiguration"))?;
        kubeadm::stored(text).map_err(|error| format!("{prefix}: {error}"))
    }

    /// Rejects the name of a Node that is ready and belongs to another machine.
    async fn refuse_taken_name(
        &self,
        node: &str,
        join: &Join,
        endpoint: &(String, u16),
        trust: &Trust,
    ) -> Result<(), String> {
        let path = format!("{NODES}/{node}");
        let outside = &self.shared.options.outside;
        let Ok(found) =
            discovery::fetch(endpoint, outside, trust, Some(&join.tls_token), &path).await
        else {
            return Ok(());
        };
        if is_ready(&found) && system_uuid(&found) != self.instance.id {
            return Err(format!(
                "error execution phase kubelet-start: a Node with name {node:?} and status \"Ready\" already exists in the cluster. You must delete the existing Node or change the name of this new joining Node"
            ));
        }
        Ok(())
    }

    /// Returns the simulated [`Cluster`] at the endpoint, found by the authority verified before.
    async fn cluster(&self, info: &ClusterInfo, host: &str) -> Result<Arc<Cluster>, String> {
        let hash = pki::spki_hash(&info.authority).unwrap_or_default();
        let clusters = self.shared.clusters.with_authority(&hash).await;
        clusters
            .iter()
            .find(|cluster| cluster.endpoint_host.as_deref() == Some(host))
            .or(clusters.first())
            .cloned()
            .ok_or_else(|| format!("the cluster at {host} is not one of this simulation"))
    }

    fn control_plane_certificates(
        &self,
        config: &CloudConfig,
        configuration: &ClusterConfiguration,
        info: &ClusterInfo,
    ) -> Result<Pki, String> {
        let prefix = "error execution phase control-plane-prepare/certs";
        if configuration
            .control_plane_endpoint
            .as_deref()
            .unwrap_or_default()
            .is_empty()
        {
            return Err(format!(
                "{prefix}: unable to add a new control plane instance to a cluster that doesn't have a stable controlPlaneEndpoint address"
            ));
        }
        let external_etcd = configuration.etcd.external.is_some();
        external_etcd_files(configuration, config)?;
        let pki = Pki::load(&config.files, external_etcd, Timestamp::now().as_second())
            .map_err(|error| format!("{prefix}: {error}"))?;
        if pki::spki_hash(&info.authority) != Some(pki.ca.hash()) {
            return Err(format!(
                "{prefix}: the certificate authority in /etc/kubernetes/pki/ca.crt is not the one of the cluster"
            ));
        }
        Ok(pki)
    }
}
