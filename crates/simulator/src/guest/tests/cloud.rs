//! A hand-written World: the machines of one cluster behind a load balancer.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::json;

use super::super::*;
use crate::data_plane::{DataPlane, Forward, Instance, Listener, Member};
use crate::guest::pki;
use crate::guest::pki::tests::{client, client_under, files};

pub(super) const TOKEN: &str = "abcdef.0123456789abcdef";
const VIP: &str = "10.6.0.5";
/// Much longer than any step takes on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

pub(super) struct Cloud {
    pub(super) guests: Guests,
    pub(super) endpoint: IpAddr,
    files: BTreeMap<String, Vec<u8>>,
    machines: Vec<Machine>,
    /// Further listeners of the load balancer: their ports, and the ports of all machines.
    listeners: Vec<(u16, u16)>,
    world: watch::Sender<Arc<DataPlane>>,
    shutdown: CancellationToken,
}

#[derive(Clone)]
pub(super) struct Machine {
    name: String,
    pub(super) user_data: String,
    pub(super) running: bool,
    pub(super) boot: u64,
    pub(super) disk: u64,
    /// True for a member of the load balancer.
    pub(super) balanced: bool,
    /// Name of the image.
    pub(super) image: String,
    /// The properties of the server.
    pub(super) metadata: BTreeMap<String, String>,
    address: IpAddr,
}

/// Waits until `check` is true; fails with the consoles on a timeout.
pub(super) async fn eventually(cloud: &Cloud, what: &str, mut check: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !check().await {
        if started.elapsed() > PATIENCE {
            let consoles: Vec<String> = cloud
                .machines
                .iter()
                .map(|it| format!("== {}\n{}", it.name, cloud.guests.console(&it.id())))
                .collect();
            panic!("waited in vain for {what}\n{}", consoles.join("\n"));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// An address that is not used by any other test or test process.
fn fresh_address() -> IpAddr {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let number = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes()[3];
    Ipv4Addr::new(127, 128 | (high & 0x3f), low, number).into()
}

impl Cloud {
    pub(super) fn start(options: Options) -> Self {
        // Fails if another test has installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (world, follower) = watch::channel(Arc::default());
        let shutdown = CancellationToken::new();
        let guests = Guests::start(follower, options, shutdown.clone());
        let endpoint = fresh_address();
        Self {
            guests,
            endpoint,
            files: files(),
            machines: Vec::new(),
            listeners: Vec::new(),
            world,
            shutdown,
        }
    }

    /// A cloud in which machine `cp-0` has initialized a cluster that others can join with [`TOKEN`], and a client with
    /// the permissions of an administrator.
    pub(super) async fn initialized_by_cp_0(options: Options) -> (Self, Client) {
        let mut cloud = Self::start(options);
        cloud.add(Machine::init(&cloud, "cp-0"));
        let client = cloud.client();
        cloud.initialized(&client).await;
        cloud.create_token(&client, TOKEN, None).await;
        (cloud, client)
    }

    pub(super) async fn stop(&self) {
        self.shutdown.cancel();
        self.guests.stopped().await;
    }

    pub(super) fn restart(&mut self, options: Options) {
        let (world, follower) = watch::channel(Arc::new(self.snapshot()));
        self.world = world;
        self.shutdown = CancellationToken::new();
        self.guests = Guests::start(follower, options, self.shutdown.clone());
    }

    pub(super) fn add(&mut self, machine: Machine) {
        self.machines.push(machine);
        self.publish();
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.machines.retain(|machine| machine.name != name);
        self.publish();
    }

    pub(super) fn change(&mut self, name: &str, change: impl FnOnce(&mut Machine)) {
        change(
            self.machines
                .iter_mut()
                .find(|machine| machine.name == name)
                .unwrap(),
        );
        self.publish();
    }

    /// A client with the permissions of an administrator.
    pub(super) fn client(&self) -> Client {
        self.client_with(Some(("kubernetes-admin", "system:masters")), None)
    }

    /// A client with a certificate (CN, O), a token, or neither.
    pub(super) fn client_with(&self, user: Option<(&str, &str)>, token: Option<&str>) -> Client {
        let url = format!("https://{}:6443", self.endpoint).parse().unwrap();
        let mut config = kube::Config::new(url);
        // A rejected eviction (429) is what a test looks at, and not tried again for minutes.
        config.default_retry = false;
        config.root_cert = Some(
            pki::certificates(&self.files["/etc/kubernetes/pki/ca.crt"])
                .iter()
                .map(|certificate| certificate.to_vec())
                .collect(),
        );
        let auth = match (user, token) {
            (Some((name, group)), _) => {
                use base64::Engine as _;
                let encode = |text: String| base64::engine::general_purpose::STANDARD.encode(text);
                let (certificate, key) = client(&self.files, name, group);
                json!({"client-certificate-data": encode(certificate), "client-key-data": encode(key)})
            }
            (None, Some(token)) => json!({"token": token}),
            (None, None) => json!({}),
        };
        config.auth_info = serde_json::from_value(auth).unwrap();
        Client::try_from(config).unwrap()
    }

    /// Waits for `kubeadm-config`.
    pub(super) async fn initialized(&self, client: &Client) -> ConfigMap {
        let maps = Api::<ConfigMap>::namespaced(client.clone(), "kube-system");
        let found = async || maps.get("kubeadm-config").await.is_ok();
        eventually(self, "kubeadm-config", found).await;
        maps.get("kubeadm-config").await.unwrap()
    }

    pub(super) async fn create_token(
        &self,
        client: &Client,
        token: &str,
        expiration: Option<&str>,
    ) {
        let (id, secret) = token.split_once('.').unwrap();
        let mut data = json!({
            "token-id": id, "token-secret": secret, "usage-bootstrap-signing": "true",
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
        });
        if let Some(expiration) = expiration {
            data["expiration"] = expiration.into();
        }
        let secret: Secret = serde_json::from_value(json!({
            "metadata": {"name": format!("bootstrap-token-{id}"), "namespace": "kube-system"},
            "type": "bootstrap.kubernetes.io/token",
            "stringData": data,
        }))
        .unwrap();
        let secrets = Api::<Secret>::namespaced(client.clone(), "kube-system");
        secrets
            .create(&PostParams::default(), &secret)
            .await
            .unwrap();
    }

    /// Waits until `cluster-info` is signed with a token.
    pub(super) async fn signed_by(&self, client: &Client, id: &str) {
        let maps = Api::<ConfigMap>::namespaced(client.clone(), "kube-public");
        let key = format!("jws-kubeconfig-{id}");
        eventually(self, "a signature", async || {
            maps.get("cluster-info")
                .await
                .unwrap()
                .data
                .unwrap()
                .contains_key(&key)
        })
        .await;
    }

    /// A client of the etcd member on a node, through a forwarded port, with a certificate of one of the cluster's CAs.
    pub(super) async fn etcd(
        &self,
        client: &Client,
        node: &str,
        authority: &str,
    ) -> Result<::etcd::Client, ::etcd::Error> {
        let pods = Api::<Pod>::namespaced(client.clone(), "kube-system");
        let mut ports = pods
            .portforward(&format!("etcd-{node}"), &[2379])
            .await
            .unwrap();
        let (certificate, key) = client_under(authority, &self.files, "cluster-api.x-k8s.io", "");
        let ca = std::str::from_utf8(&self.files["/etc/kubernetes/pki/etcd/ca.crt"]).unwrap();
        let tls = ::etcd::tls::Tls::client(ca, &certificate, &key.into()).unwrap();
        let stream = ports.take_stream(2379).unwrap();
        ::etcd::Client::connect(stream, &tls, Duration::from_secs(60)).await
    }

    pub(super) fn hash(&self) -> String {
        let certificates = pki::certificates(&self.files["/etc/kubernetes/pki/ca.crt"]);
        pki::spki_hash(&certificates[0]).unwrap()
    }

    /// Adds a listener to the load balancer, with all machines as members.
    pub(super) fn balance(&mut self, port: u16, node_port: u16) {
        self.listeners.push((port, node_port));
        self.publish();
    }

    fn publish(&self) {
        self.world.send_replace(Arc::new(self.snapshot()));
    }

    fn snapshot(&self) -> DataPlane {
        let members = self.machines.iter().filter(|machine| machine.balanced);
        let member = |machine: &Machine, port: u16| Member {
            at: SocketAddr::new(machine.address, port),
            server: Some(machine.id()),
        };
        let api = members.map(|it| member(it, 6443));
        let listener = |port: u16, members: Vec<Member>| Listener {
            id: format!("listener-{port}"),
            load_balancer_id: "lb".to_owned(),
            project_id: "project".to_owned(),
            vip: VIP.parse().unwrap(),
            vip_port_id: "v".to_owned(),
            vip_network_id: "n".to_owned(),
            port,
            protocol: "TCP".to_owned(),
            members,
            allowed_cidrs: Vec::new(),
        };
        let further = self.listeners.iter().map(|(port, node_port)| {
            let members = self.machines.iter();
            let members = members.map(|it| member(it, *node_port));
            listener(*port, members.collect())
        });
        DataPlane {
            instances: self.machines.iter().map(Machine::instance).collect(),
            addresses: vec![Forward {
                floating: self.endpoint,
                fixed: VIP.parse().unwrap(),
                port_id: "v".to_owned(),
                server: None,
            }],
            listeners: std::iter::once(listener(6443, api.collect()))
                .chain(further)
                .collect(),
        }
    }
}

impl Machine {
    /// A machine that runs `kubeadm init`.
    pub(super) fn init(cloud: &Cloud, name: &str) -> Self {
        let kubeadm = format!(
            "---\napiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nclusterName: demo\ncontrolPlaneEndpoint: {}:6443\nkubernetesVersion: v1.34.1\nnetworking:\n  dnsDomain: cluster.local\n  podSubnet: 192.168.0.0/16\n  serviceSubnet: 10.96.0.0/12\n---\napiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n{REGISTRATION}",
            cloud.endpoint
        );
        Self::new(
            cloud,
            name,
            "init",
            "/run/kubeadm/kubeadm.yaml",
            kubeadm,
            &cloud.files,
        )
    }

    /// A machine that runs `kubeadm join`.
    pub(super) fn join(cloud: &Cloud, name: &str, control_plane: bool) -> Self {
        let mut kubeadm = format!(
            "---\napiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\ndiscovery:\n  bootstrapToken:\n    apiServerEndpoint: {}:6443\n    caCertHashes:\n    - {}\n    token: {TOKEN}\n{REGISTRATION}",
            cloud.endpoint,
            cloud.hash()
        );
        let none = BTreeMap::new();
        let files = if control_plane {
            kubeadm.push_str("controlPlane:\n  localAPIEndpoint: {}\n");
            &cloud.files
        } else {
            &none
        };
        Self::new(
            cloud,
            name,
            "join",
            "/run/kubeadm/kubeadm-join-config.yaml",
            kubeadm,
            files,
        )
    }

    /// The same machine with other user data.
    pub(super) fn replacing(mut self, from: &str, to: &str) -> Self {
        // The user data has the name as a variable.
        let from = from.replace(&format!("'{}'", self.name), "'{{ local_hostname }}'");
        assert!(self.user_data.contains(&from), "{from}");
        self.user_data = self.user_data.replace(&from, to);
        self
    }

    /// The same machine with a kubelet that waits for a cloud controller manager.
    pub(super) fn external(self) -> Self {
        let flag = "- name: provider-id";
        // The file is a JSON string in the user data.
        let external = format!("- name: cloud-provider\\n    value: external\\n  {flag}");
        self.replacing(flag, &external)
    }

    /// The same machine with the certificates of another cluster.
    pub(super) fn with_other_certificates(mut self) -> Self {
        let document = self.user_data.split("write_files:\n").nth(1).unwrap();
        let kubeadm = document
            .lines()
            .find(|line| line.contains("kubeadm-join-config"))
            .unwrap();
        let commands = document
            .lines()
            .find(|line| line.contains("kubeadm join"))
            .unwrap();
        self.user_data = format!(
            "{HEADER}{}{kubeadm}\nruncmd:\n{commands}\n",
            write_files(&files())
        );
        self
    }

    fn new(
        cloud: &Cloud,
        name: &str,
        verb: &str,
        path: &str,
        kubeadm: String,
        files: &BTreeMap<String, Vec<u8>>,
    ) -> Self {
        let config = BTreeMap::from([(path.to_owned(), kubeadm.into_bytes())]);
        let user_data = format!(
            "{HEADER}{}{}runcmd:\n- 'kubeadm {verb} --config {path}  && echo success > /run/cluster-api/bootstrap-success.complete'\n",
            write_files(files),
            write_files(&config)
        );
        let number = u8::try_from(cloud.machines.len() % 200).unwrap() + 10;
        Self {
            name: name.to_owned(),
            user_data,
            running: true,
            boot: 1,
            disk: 0,
            balanced: true,
            image: "ubuntu".to_owned(),
            metadata: BTreeMap::new(),
            address: Ipv4Addr::new(10, 6, 0, number).into(),
        }
    }

    fn id(&self) -> String {
        format!("{}-id", self.name)
    }

    fn instance(&self) -> Instance {
        Instance {
            id: self.id(),
            name: self.name.clone(),
            project_id: "project".to_owned(),
            user_data: Some(self.user_data.clone().into()),
            fixed_ips: vec![self.address],
            availability_zone: "nova".to_owned(),
            metadata: self.metadata.clone(),
            hostname: format!("{}.novalocal", self.name),
            running: self.running,
            boot: self.boot,
            disk: self.disk,
            vcpus: 2,
            memory_mib: 4096,
            disk_gib: 20,
            image: self.image.clone(),
        }
    }
}

const HEADER: &str = "## template: jinja\n#cloud-config\n\nwrite_files:\n";

const REGISTRATION: &str = "nodeRegistration:\n  name: '{{ local_hostname }}'\n  kubeletExtraArgs:\n  - name: provider-id\n    value: openstack:///'{{ instance_id }}'\n";

/// `write_files` of the files, one line each: JSON is YAML.
fn write_files(files: &BTreeMap<String, Vec<u8>>) -> String {
    files
        .iter()
        .map(|(path, content)| {
            let content = std::str::from_utf8(content).unwrap();
            format!(
                "- {}\n",
                json!({"path": path, "permissions": "0640", "content": content})
            )
        })
        .collect()
}
