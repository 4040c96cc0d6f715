//! The first boot of a guest: cloud-init reads the user data, kubeadm turns the machine into a node.
//!
//! A boot may be interrupted at any moment and run again from the start: each step checks for existing results.

mod init;
mod join;
mod resume;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::Options;
use super::api;
use super::cluster::{Cluster, Clusters, Member, Opening, Signal};
use super::console::{Console, Consoles};
use super::kubeadm::{ClusterConfiguration, NodeRegistration, Run};
use super::objects::addons::service_address;
use super::objects::node::{self, Machine, NODES};
use super::objects::{Manifest, SERVICE_SUBNET, pods};
use super::pki::Pki;
use super::record::{Membership, StateDir};
use super::user_data::CloudConfig;
use super::{ignition, kubeadm, user_data};
use crate::data_plane::{GuestFault, Instance};
use crate::etcd::MemberHost;

/// State shared by all guests.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) consoles: Consoles,
    pub(crate) state: StateDir,
    pub(crate) clusters: Clusters,
    pub(crate) events: mpsc::UnboundedSender<Event>,
    /// Limit on the number of guests that use the CPU concurrently, without waiting guests.
    pub(crate) permits: Semaphore,
}

/// Event of a guest for the fleet.
#[derive(Debug)]
pub(crate) enum Event {
    /// An API server is up.
    Serving(Arc<Member>),
    /// The first boot has ended. `run` distinguishes the guest's runs.
    Booted {
        instance: String,
        run: u64,
        outcome: Outcome,
    },
}

/// Images of plain distributions in the tests' clouds, without kubeadm.
const WITHOUT_KUBEADM: [&str; 2] = ["ubuntu-24.04", "cirros"];

/// Result of a first boot.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The machine is a node.
    Node(Membership),
    /// The user data has no kubeadm command.
    Nothing,
    /// kubeadm or cloud-init failed. A reboot does not help.
    Failed,
}

/// Guest during the boot.
pub(crate) struct Boot {
    pub(crate) shared: Arc<Shared>,
    pub(crate) instance: Instance,
    /// Floating addresses of the instance.
    pub(crate) floating: Vec<IpAddr>,
    /// Cancelled when the machine is switched off.
    pub(crate) power: CancellationToken,
}

impl Boot {
    /// Runs cloud-init for the first time.
    pub(crate) async fn first(&self) -> Outcome {
        let console = self.console();
        console.cloud_init("Cloud-init v. 25.1 running 'modules:final'");
        let outcome = match self.run_user_data(&console).await {
            Ok(Some(node)) => {
                console.cloud_init("success > /run/cluster-api/bootstrap-success.complete");
                Outcome::Node(node)
            }
            Ok(None) => Outcome::Nothing,
            Err(message) => {
                console.cloud_init(&message);
                console
                    .cloud_init("cc_scripts_user.py[WARNING]: Failed to run module scripts_user");
                console.cloud_init("bootstrap failed");
                Outcome::Failed
            }
        };
        console.cloud_init(
            "Cloud-init v. 25.1 finished. Datasource DataSourceOpenStackLocal [net,ver=2]",
        );
        outcome
    }

    async fn run_user_data(&self, console: &Console) -> Result<Option<Membership>, String> {
        let config = self.cloud_config(console)?;
        if config.script {
            console.cloud_init("the user data is a script; scripts are not run in the simulation");
        }
        let run = kubeadm::command(&config.commands).map_err(|error| error.to_string())?;
        match GuestFault::from_instance(&self.instance).filter(|_| run.is_some()) {
            Some(GuestFault::NeverJoins) => {
                return Err("kubeadm: a fault of this simulated machine: it never joins".to_owned());
            }
            Some(GuestFault::JoinsLate(pause)) => {
                let seconds = pause.as_secs();
                console.cloud_init(&format!(
                    "a fault of this simulated machine: it joins {seconds} s late"
                ));
                tokio::time::sleep(pause).await;
            }
            Some(GuestFault::KubeletDies | GuestFault::DiskGone) | None => {}
        }
        match run {
            None => Ok(None),
            Some(_) if WITHOUT_KUBEADM.contains(&self.instance.image.as_str()) => {
                Err("/var/lib/cloud/instance/scripts/runcmd: 1: kubeadm: not found".to_owned())
            }
            Some(Run::Init(path)) => self.init(&config, &path, console).await.map(Some),
            Some(Run::Join(path)) => self.join(&config, &path, console).await.map(Some),
        }
    }

    fn console(&self) -> Console {
        self.shared.consoles.of(&self.instance.id)
    }

    fn cloud_config(&self, console: &Console) -> Result<CloudConfig, String> {
        let raw = self.instance.user_data.as_deref().unwrap_or_default();
        if ignition::is_flatcar(&self.instance) && !raw.is_empty() {
            return ignition::boot(raw, &self.instance).map_err(|error| error.to_string());
        }
        match user_data::parse(raw, &user_data::facts(&self.instance)) {
            // As in cloud-init, a warning: the machine boots, and no part of its user data is applied. The real one
            // prints the beginning of the data.
            Err(user_data::Error::Unknown | user_data::Error::NotText) => {
                console.cloud_init(
                    "__init__.py[WARNING]: Unhandled non-multipart (text/x-not-multipart) userdata: '...'",
                );
                Ok(CloudConfig::default())
            }
            parsed => parsed
                .map_err(|error| format!("util.py[WARNING]: Failed loading user data: {error}")),
        }
    }

    /// Returns the node's name: from the [`NodeRegistration`], or the host name.
    fn node_name(&self, registration: &NodeRegistration) -> String {
        let hostname = user_data::local_hostname(&self.instance.hostname);
        let name = registration
            .name
            .as_deref()
            .map(str::trim)
            .filter(|name| !name.is_empty());
        name.unwrap_or(hostname).to_lowercase()
    }

    fn machine(&self, name: &str, version: String, control_plane: bool) -> Machine {
        Machine {
            uuid: self.instance.id.clone(),
            name: name.to_owned(),
            internal: self.instance.fixed_ips.clone(),
            external: self.floating.clone(),
            version,
            vcpus: self.instance.vcpus,
            memory_mib: self.instance.memory_mib,
            disk_gib: self.instance.disk_gib,
            control_plane,
        }
    }

    /// Opens the [`Cluster`]'s API server. Retries until the timeout, because errors of the database may be temporary.
    async fn open(&self, opening: Opening<'_>) -> Result<Arc<Cluster>, String> {
        let mut tries = Tries::new(self.shared.options.init_timeout, self.shared.options.retry);
        loop {
            match self.shared.clusters.open(opening.clone()).await {
                Ok(cluster) => return Ok(cluster),
                Err(error) => {
                    warn!(instance = self.instance.id, "{error}");
                    if !tries.again().await {
                        return Err(error.to_string());
                    }
                }
            }
        }
    }

    /// Starts to serve the cluster's API at the addresses of this machine, with the name and version of the node.
    fn serve(
        &self,
        cluster: &Arc<Cluster>,
        configuration: &ClusterConfiguration,
        pki: &Pki,
        (node, version): (&str, &str),
        bind_port: u16,
    ) -> Result<(), String> {
        let names = self.serving_names(configuration, cluster.endpoint_host.as_deref(), node);
        let validity = configuration.certificate_validity()?;
        let tls = pki
            .ca
            .server_config(&names, validity)
            .map_err(|error| error.to_string())?;
        let addresses = self
            .instance
            .fixed_ips
            .iter()
            .map(|ip| SocketAddr::new(*ip, bind_port))
            .collect();
        let (serving, etcd) = match &pki.etcd {
            None => (self.power.child_token(), None),
            Some(authority) => {
                let running = cluster.etcd.run(&self.instance.id, &self.power)?;
                let names = self.member_names(node);
                let tls = authority.etcd_server(node, &names, validity);
                (running, Some(tls.map_err(|error| error.to_string())?))
            }
        };
        self.down_without_member(cluster, node, serving.clone());
        let member = Member {
            instance: self.instance.id.clone(),
            node: node.to_owned(),
            version: version.into(),
            cluster: Arc::clone(cluster),
            tls,
            addresses,
            alive: self.power.clone(),
            serving,
            etcd,
        };
        // Fails only if the fleet has ended, and this task with it.
        let _ = self.shared.events.send(Event::Serving(Arc::new(member)));
        Ok(())
    }

    /// Marks the node as down once the API server of its machine loses its etcd member: since Kubernetes 1.31 a kubelet
    /// uses the API server of its own machine.
    fn down_without_member(&self, cluster: &Arc<Cluster>, node: &str, serving: CancellationToken) {
        let (cluster, node, power) = (Arc::downgrade(cluster), node.to_owned(), self.power.clone());
        tokio::spawn(async move {
            serving.cancelled().await;
            if !power.is_cancelled()
                && let Some(cluster) = cluster.upgrade()
            {
                cluster.signal(Signal::Down(node));
            }
        });
    }

    /// Returns the [`MemberHost`] of the etcd member: machine, name and address.
    fn place(&self, node: &str) -> MemberHost {
        let host = match self.instance.fixed_ips.first() {
            Some(IpAddr::V6(address)) => format!("[{address}]"),
            Some(address) => address.to_string(),
            None => node.to_owned(),
        };
        MemberHost {
            machine: self.instance.id.clone(),
            name: node.to_owned(),
            host,
        }
    }

    /// Returns the names in the serving certificate of an etcd member, as chosen by kubeadm.
    fn member_names(&self, node: &str) -> Vec<String> {
        let local = ["localhost", "127.0.0.1", "::1", node].map(str::to_owned);
        let addresses = self.instance.fixed_ips.iter().map(ToString::to_string);
        local.into_iter().chain(addresses).collect()
    }

    /// Returns the names in the API server's certificate, as chosen by kubeadm. A machine does not know its floating
    /// addresses: only the address of the control plane's endpoint is included, and the names in `certSANs`.
    fn serving_names(
        &self,
        configuration: &ClusterConfiguration,
        endpoint_host: Option<&str>,
        node: &str,
    ) -> Vec<String> {
        let networking = &configuration.networking;
        let domain = networking.dns_domain.as_deref().unwrap_or("cluster.local");
        let subnet = networking
            .service_subnet
            .as_deref()
            .unwrap_or(SERVICE_SUBNET);
        let mut names: Vec<String> = [
            "kubernetes".to_owned(),
            "kubernetes.default".to_owned(),
            "kubernetes.default.svc".to_owned(),
            format!("kubernetes.default.svc.{domain}"),
            node.to_owned(),
        ]
        .into();
        names.extend(service_address(subnet, 1).map(|address| address.to_string()));
        names.extend(self.instance.fixed_ips.iter().map(ToString::to_string));
        names.extend(endpoint_host.map(str::to_owned));
        names.extend(configuration.api_server.cert_sans.iter().cloned());
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Registers the Node, and the static pods of a control plane.
    async fn register(
        &self,
        cluster: &Cluster,
        configuration: &ClusterConfiguration,
        registration: &NodeRegistration,
        machine: &Machine,
        bind_port: Option<u16>,
    ) -> Result<(), api::Error> {
        let now = Timestamp::now().to_string();
        let api = cluster.api.of_kubelet(&machine.name);
        let body = node::node(machine, registration, &now);
        let manifest = Manifest {
            collection: NODES.to_owned(),
            body,
        };
        let mut found = api.ensure(&manifest).await?;
        if !is_ready(&found) || system_uuid(&found) != machine.uuid {
            // The Node existed before, or has an incomplete status: the kubelet adopts it.
            let path = format!("{NODES}/{}", machine.name);
            let mut status = node::status(machine, &node::addresses(machine, registration), &now);
            // Addresses that a cloud controller manager has set stay.
            if node::is_external(registration)
                && found["status"]["addresses"]
                    .as_array()
                    .is_some_and(|known| !known.is_empty())
                && let Some(fields) = status.as_object_mut()
            {
                fields.remove("addresses");
            }
            found = api.patch_status(&path, &status).await?;
        }
        // A kubelet may not set the labels of a role: kubeadm does, as an administrator.
        let marks = node::marks(machine);
        if marks
            .iter()
            .any(|(label, value)| found["metadata"]["labels"][label] != *value)
        {
            let patch = json!({"metadata": {"labels": marks}});
            let kubeadm = cluster.api.of("kubeadm");
            let path = format!("{NODES}/{}", machine.name);
            found = kubeadm.patch(&path, &patch).await?;
        }
        if let Some(port) = bind_port {
            let uid = found
                .pointer("/metadata/uid")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let host = node::internal_address(&found);
            for pod in pods::mirror_pods(configuration, machine, host, uid, port, &now) {
                api.ensure(&pod).await?;
            }
        }
        Ok(())
    }
}

/// True if a Node is ready.
fn is_ready(node: &Value) -> bool {
    let conditions = node.pointer("/status/conditions").and_then(Value::as_array);
    conditions.is_some_and(|conditions| node::is_ready(conditions))
}

/// Returns the system UUID in the status of a Node.
fn system_uuid(node: &Value) -> &str {
    node.pointer("/status/nodeInfo/systemUUID")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Checks that the kubelet starts with its flags. If it does not, kubeadm waits in vain.
fn kubelet_starts(registration: &NodeRegistration, console: &Console) -> Result<(), String> {
    let Some(problem) = node::refused_labels(registration) else {
        return Ok(());
    };
    console.line(&format!(
        "kubelet: failed to validate kubelet flags: {problem}"
    ));
    Err(
        "error execution phase kubelet-start: failed while waiting for the kubelet to start: the kubelet is not healthy"
            .to_owned(),
    )
}

/// Returns a file of the user data that a kubeadm command names.
fn text_file<'a>(config: &'a CloudConfig, path: &str) -> Result<&'a str, String> {
    let bytes = config.files.get(path).ok_or_else(|| {
        format!("unable to read config from {path:?}: open {path}: no such file or directory")
    })?;
    std::str::from_utf8(bytes).map_err(|_| format!("unable to read config from {path:?}: not text"))
}

/// Rejects an external etcd without certificates on the machine, like kubeadm's preflight checks.
fn external_etcd_files(
    configuration: &ClusterConfiguration,
    config: &CloudConfig,
) -> Result<(), String> {
    let Some(external) = &configuration.etcd.external else {
        return Ok(());
    };
    for field in ["caFile", "certFile", "keyFile"] {
        let path = external[field].as_str().unwrap_or_default();
        if !config.files.contains_key(path) {
            return Err(format!(
                "error execution phase preflight: [preflight] Some fatal errors occurred: [ERROR ExternalEtcdVersion]: open {path}: no such file or directory"
            ));
        }
    }
    Ok(())
}

/// Attempts of one step until its timeout, with increasing pauses.
struct Tries {
    deadline: Instant,
    pause: Duration,
    longest: Duration,
}

impl Tries {
    fn new(limit: Duration, longest: Duration) -> Self {
        Self {
            deadline: Instant::now() + limit,
            pause: Duration::from_millis(100).min(longest),
            longest,
        }
    }

    /// Waits for the next attempt. False after the timeout.
    async fn again(&mut self) -> bool {
        let next = Instant::now() + self.pause;
        if next > self.deadline {
            return false;
        }
        tokio::time::sleep_until(next).await;
        self.pause = (self.pause * 2).min(self.longest);
        true
    }
}
