//! Power-on of a control plane machine that has booted before: its static pods start again.

use jiff::Timestamp;
use serde_json::Value;

use super::super::cluster::Opening;
use super::super::kubeadm::{self, ClusterConfiguration, Run};
use super::super::objects::kubeadm::CONFIG_MAPS;
use super::super::pki::Pki;
use super::super::record::Membership;
use super::super::user_data::CloudConfig;
use super::{Boot, text_file};

impl Boot {
    /// Serves the cluster's API again. The error is the reason why the API server does not start.
    pub(crate) async fn resume(&self, node: &Membership) -> Result<(), String> {
        let Some(port) = node.bind_port else {
            return Ok(());
        };
        let config = self.cloud_config(&self.console())?;
        let (endpoint_host, external_etcd) = written(&config)?;
        let pki = Pki::load(&config.files, external_etcd, Timestamp::now().as_second())
            .map_err(|error| error.to_string())?;
        let opening = Opening {
            key: &node.cluster,
            pki: &pki,
            endpoint_host,
            version: node.version.clone(),
        };
        let cluster = self.open(opening).await?;
        if !external_etcd {
            cluster.etcd.adopt(&self.place(&node.name));
        }
        let stored = cluster
            .api
            .get(&format!("{CONFIG_MAPS}/kubeadm-config"))
            .await;
        let configuration = stored
            .map_err(|error| error.to_string())?
            .and_then(|map| {
                let text = map
                    .pointer("/data/ClusterConfiguration")
                    .and_then(Value::as_str)?;
                kubeadm::stored(text).ok()
            })
            .unwrap_or_default();
        let named = (node.name.as_str(), node.version.as_str());
        self.serve(&cluster, &configuration, &pki, named, port)?;
        self.console()
            .line("kubelet: started the static pods of the control plane");
        Ok(())
    }
}

/// Returns the endpoint's host, and true for an external etcd, from kubeadm's file in the user data.
fn written(config: &CloudConfig) -> Result<(Option<String>, bool), String> {
    let text = |error: kubeadm::Error| error.to_string();
    match kubeadm::command(&config.commands).map_err(text)? {
        Some(Run::Init(path)) => {
            let cluster: ClusterConfiguration = kubeadm::init(text_file(config, &path)?)
                .map_err(text)?
                .cluster;
            Ok((
                cluster.endpoint().map(|(host, _)| host),
                cluster.etcd.external.is_some(),
            ))
        }
        Some(Run::Join(path)) => {
            let join = kubeadm::join(text_file(config, &path)?).map_err(text)?;
            let host = kubeadm::split_endpoint(&join.endpoint).map(|(host, _)| host);
            Ok((
                host,
                // The CA of an external etcd has no key here.
                !config.files.contains_key("/etc/kubernetes/pki/etcd/ca.key"),
            ))
        }
        None => Err("the user data asks for no node".to_owned()),
    }
}
