//! Components of a service, as data. `desired` makes Kubernetes objects of a [`Definition`].

use crate::object::Password;
use crate::parameters::Parameters;

/// Virtual environment of the services from PyPI: its programs are in the path, uWSGI is Debian's.
const ENVIRONMENT: &str = "/opt/openstack";

/// Service: needs from other services, and programs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Definition {
    /// Name.
    pub(crate) name: &'static str,
    /// Databases; the account with the name of the service has all rights on each.
    pub(crate) databases: Vec<&'static str>,
    /// True if the service has a virtual host and an account in the message broker.
    pub(crate) messaging: bool,
    /// True if the service has an account in Keystone.
    pub(crate) account: bool,
    /// [`Entry`]s in the catalogue.
    pub(crate) catalogue: Vec<Entry>,
    /// [`Address`]es.
    pub(crate) addresses: Vec<Address>,
    /// IP addresses of nodes that serve the addresses, too.
    pub(crate) external: Vec<String>,
    /// [`Volume`]s.
    pub(crate) volumes: Vec<Volume>,
    /// [`Task`]s, which run once.
    pub(crate) tasks: Vec<Task>,
    /// [`Workload`]s, which run always.
    pub(crate) workloads: Vec<Workload>,
}

/// Service in the catalogue of Keystone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Type, such as `compute`.
    pub(crate) kind: &'static str,
    /// Name.
    pub(crate) name: &'static str,
    /// URL inside the cluster.
    pub(crate) url: &'static str,
}

/// Kubernetes Service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address {
    /// Name, to which other services connect.
    pub(crate) name: &'static str,
    /// [`Workload`] behind the address.
    pub(crate) workload: &'static str,
    /// Names and numbers of the ports.
    pub(crate) ports: &'static [(&'static str, u16)],
    /// True if each replica has a name of its own, even before ready.
    pub(crate) replicas: bool,
    /// Permitted [`Callers`].
    pub(crate) callers: Callers,
}

/// Programs that may connect to an [`Address`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callers {
    /// Users, and programs outside of the cloud: the service requires a token or a login.
    Anyone,
    /// Programs with the address in their configuration: the service has data of the cloud.
    Readers,
}

/// Volume that outlives its Pods.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Volume {
    /// Name of the claim.
    pub(crate) name: &'static str,
    /// Size.
    pub(crate) size: &'static str,
}

/// Program that runs once, as a Job named by a digest of the content.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// Name, also of the step.
    pub(crate) name: &'static str,
    /// Program.
    pub(crate) run: Run,
    /// Steps before this one.
    pub(crate) needs: Vec<&'static str>,
    /// True if the task runs again for another image.
    pub(crate) repeat: bool,
}

/// Program that runs always.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    /// Name, also of the step.
    pub(crate) name: &'static str,
    /// Settings of a StatefulSet; a Deployment of one replica if `None`.
    pub(crate) stateful: Option<Stateful>,
    /// Program.
    pub(crate) run: Run,
    /// Names and numbers of the ports.
    pub(crate) ports: &'static [(&'static str, u16)],
    /// [`Probe`] of readiness.
    pub(crate) ready: Probe,
    /// [`Probe`] of liveness; none if a hanging program cannot be recognized.
    pub(crate) alive: Option<Probe>,
    /// Steps before this one.
    pub(crate) needs: Vec<&'static str>,
}

/// Fields of a StatefulSet that a Deployment lacks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stateful {
    /// Address with the names of the replicas.
    pub(crate) address: &'static str,
    /// Number of replicas.
    pub(crate) replicas: u32,
    /// Pod management policy: `Parallel` if true, else `OrderedReady`.
    pub(crate) parallel: bool,
}

impl Stateful {
    /// One replica.
    pub(super) fn one(address: &'static str) -> Self {
        Self {
            address,
            replicas: 1,
            parallel: false,
        }
    }
}

/// A program with its files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    /// Command, without any secret.
    pub(crate) command: Vec<String>,
    /// User of the package; the image has its number.
    pub(crate) user: &'static str,
    /// Configuration files.
    pub(crate) files: Vec<File>,
    /// Directories of keys: the Secret, and the path.
    pub(crate) keys: Vec<(String, &'static str)>,
    /// Writable directories, deleted with the Pod.
    pub(crate) scratch: Vec<&'static str>,
    /// Claims, and their paths.
    pub(crate) volumes: Vec<(&'static str, &'static str)>,
    /// Claims of the user, and their paths.
    pub(crate) claims: Vec<(String, &'static str)>,
    /// Environment variables.
    pub(crate) environment: Vec<(&'static str, Variable)>,
    /// Access to the node, which makes the workload a DaemonSet on the compute nodes.
    pub(crate) host: Option<Host>,
}

/// Access of a program to its node, beyond the access of every Pod. The program runs as root.
#[derive(Clone, Debug, Default)]
pub(crate) struct Host {
    /// Directories of the node, which outlive the Pod, and their paths in the container.
    pub(crate) directories: Vec<(String, &'static str)>,
    /// True for the network namespace of the node.
    pub(crate) network: bool,
    /// True if the program sees the processes of the node.
    pub(crate) processes: bool,
    /// [`Rights`] on the node.
    pub(crate) rights: Rights,
    /// Command run before the end of the program.
    pub(crate) ending: &'static [&'static str],
}

/// Rights of a program on its node.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rights {
    /// Capabilities.
    Capabilities(&'static [&'static str]),
    /// All rights.
    All,
}

impl Default for Rights {
    fn default() -> Self {
        Self::Capabilities(&[])
    }
}

/// Value of an environment variable.
#[derive(Clone, Debug)]
pub(crate) enum Variable {
    /// Text, with `$(NAME)` for an earlier variable.
    Text(String),
    /// A field of the Pod.
    Field(&'static str),
    /// [`Password`] of an account, such as `identity-admin`.
    Account(&'static str),
    /// Database of OVN: the cluster IP of the Service of this name, provided by the kubelet, and the port.
    Database(&'static str, u16),
}

/// Configuration file: an immutable object with a digest of its content in the name, and the path of the mount.
#[derive(Clone, Debug)]
pub(crate) struct File {
    /// First part of the object's name, before a digest.
    pub(crate) object: String,
    /// Path in the container.
    pub(crate) path: String,
    /// [`Content`] of the file.
    pub(crate) content: Content,
}

/// The content of a file.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// Content without secrets, in a ConfigMap.
    Public(String),
    /// Content with secrets, in a Secret.
    Secret(Password),
}

/// Request of the kubelet to a program.
#[derive(Clone, Debug)]
pub(crate) enum Probe {
    /// A GET of the path on the port of this name has a status below 400.
    Http(&'static str, &'static str),
    /// As [`Probe::Http`], with this host in the request.
    Page(&'static str, &'static str, &'static str),
    /// As [`Probe::Http`] over TLS, without a check of the certificate.
    Https(&'static str, &'static str),
    /// The port of this name accepts connections.
    Tcp(&'static str),
    /// These bytes, sent to this port, are answered with bytes beginning with the last ones; both in hexadecimal.
    Answers(u16, &'static str, &'static str),
    /// The command succeeds.
    Command(&'static [&'static str]),
    /// The program has an established connection to each of these ports of other programs.
    Connected(&'static [u16]),
    /// As [`Probe::Connected`], and the program has made this file.
    Announced(&'static str, &'static [u16]),
}

impl File {
    /// A file in a ConfigMap.
    pub(crate) fn public(object: impl Into<String>, path: impl Into<String>, text: String) -> Self {
        Self {
            object: object.into(),
            path: path.into(),
            content: Content::Public(text),
        }
    }

    /// A file in a Secret.
    pub(crate) fn secret(object: impl Into<String>, path: impl Into<String>, text: String) -> Self {
        Self {
            object: object.into(),
            path: path.into(),
            content: Content::Secret(Password::new(text)),
        }
    }

    /// Name of the file, also the key in the object.
    pub(crate) fn key(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// Command, from words.
pub(crate) fn command(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Limit for one request in seconds, below the timeout of the edge: uWSGI then ends the process.
const LONGEST: &str = "540";

/// Command of uWSGI for the API of a workload on this port. A running request is answered before the Pod ends.
pub(super) fn uwsgi(parameters: &Parameters, workload: &str, port: u16) -> Vec<String> {
    let mut words = command(&["uwsgi", "--plugin", "python3", "--http-socket"]);
    words.push(format!("0.0.0.0:{port}"));
    let entry = parameters.release.wsgi(workload);
    if entry.starts_with('/') {
        words.extend(command(&["--wsgi-file", entry]));
    } else {
        words.extend(command(&["--virtualenv", ENVIRONMENT, "--module"]));
        words.push(format!("{entry}:application"));
    }
    let part = workload.split('-').next().unwrap_or_default();
    let workers = parameters.workers(part);
    words.extend(command(&["--master", "--processes"]));
    words.push(workers.processes.to_string());
    words.push("--threads".to_owned());
    words.push(workers.threads.to_string());
    if part != "glance" {
        // An image is sent and received for as long as it takes.
        words.extend(command(&["--harakiri", LONGEST]));
    }
    words.extend(command(&["--enable-threads", "--lazy-apps", "--need-app"]));
    words.extend(command(&["--buffer-size", "65535", "--listen", "100"]));
    // It closes connections, and would not announce it.
    words.extend(command(&["--add-header", "Connection: close"]));
    words.extend(command(&[
        "--hook-master-start",
        "unix_signal:15 gracefully_kill_them_all",
    ]));
    words.extend(command(&["--die-on-term", "--no-orphans", "--log-4xx"]));
    words.push("--disable-logging".to_owned());
    words
}
