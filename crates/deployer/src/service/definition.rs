//! What a service consists of, as data. `desired` makes Kubernetes objects of it.

use crate::object::Password;
use crate::parameters::Parameters;

/// Where an image has the services from PyPI: its programs are in the path, uWSGI is Debian's.
const ENVIRONMENT: &str = "/opt/openstack";

/// A service: what it needs from others, and what runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Definition {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its databases, on which the account of its name has all rights.
    pub(crate) databases: Vec<&'static str>,
    /// True if it has a virtual host and an account in the message broker.
    pub(crate) messaging: bool,
    /// True if it has an account in Keystone.
    pub(crate) account: bool,
    /// What others find in the catalogue.
    pub(crate) catalogue: Vec<Entry>,
    /// Its addresses.
    pub(crate) addresses: Vec<Address>,
    /// IP addresses of nodes on which its addresses are, too.
    pub(crate) external: Vec<String>,
    /// Its volumes.
    pub(crate) volumes: Vec<Volume>,
    /// What runs once.
    pub(crate) tasks: Vec<Task>,
    /// What runs always.
    pub(crate) workloads: Vec<Workload>,
}

/// A service in the catalogue of Keystone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Its type, such as `compute`.
    pub(crate) kind: &'static str,
    /// Its name.
    pub(crate) name: &'static str,
    /// The URL inside the cluster.
    pub(crate) url: &'static str,
}

/// A Kubernetes Service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address {
    /// Its name: other services connect to it.
    pub(crate) name: &'static str,
    /// The workload behind it.
    pub(crate) workload: &'static str,
    /// Names and numbers of its ports.
    pub(crate) ports: &'static [(&'static str, u16)],
    /// True if each replica has a name of its own, from before it is ready.
    pub(crate) replicas: bool,
    /// Who may connect to it.
    pub(crate) callers: Callers,
}

/// Who may connect to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callers {
    /// Users, and programs outside of the cloud: it asks for a token or a login.
    Anyone,
    /// The programs whose configuration names it: it holds data of the cloud.
    Readers,
}

/// A volume that outlives its Pods.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Volume {
    /// Name of the claim.
    pub(crate) name: &'static str,
    /// Its size.
    pub(crate) size: &'static str,
}

/// What runs once, as a Job that is named by its content.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// Its name, which is the name of its step.
    pub(crate) name: &'static str,
    /// What runs.
    pub(crate) run: Run,
    /// The steps before it.
    pub(crate) needs: Vec<&'static str>,
    /// True if it runs again for another image.
    pub(crate) repeat: bool,
}

/// What runs always.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    /// Its name, which is the name of its step.
    pub(crate) name: &'static str,
    /// What makes it a StatefulSet; without it, it is a Deployment of one replica.
    pub(crate) stateful: Option<Stateful>,
    /// What runs.
    pub(crate) run: Run,
    /// Names and numbers of the ports on which it listens.
    pub(crate) ports: &'static [(&'static str, u16)],
    /// How the kubelet finds out whether it is ready.
    pub(crate) ready: Probe,
    /// How the kubelet finds out whether it has to be restarted; none when a program that hangs cannot be recognized.
    pub(crate) alive: Option<Probe>,
    /// The steps before it.
    pub(crate) needs: Vec<&'static str>,
}

/// Fields of a StatefulSet that a Deployment lacks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stateful {
    /// The address that names its replicas.
    pub(crate) address: &'static str,
    /// Their number.
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
    /// The command. It never holds a secret.
    pub(crate) command: Vec<String>,
    /// The user of the package, whose number is that of the image.
    pub(crate) user: &'static str,
    /// Configuration files.
    pub(crate) files: Vec<File>,
    /// Directories of keys: the Secret, and where it is.
    pub(crate) keys: Vec<(String, &'static str)>,
    /// Writable directories that end with the Pod.
    pub(crate) scratch: Vec<&'static str>,
    /// Claims, and where they are.
    pub(crate) volumes: Vec<(&'static str, &'static str)>,
    /// Claims of the user, and where they are.
    pub(crate) claims: Vec<(String, &'static str)>,
    /// Environment variables.
    pub(crate) environment: Vec<(&'static str, Variable)>,
    /// Access to its node. A workload with it is a DaemonSet on the compute nodes.
    pub(crate) host: Option<Host>,
}

/// Access of a program to its node, beside that of every Pod. It runs as root there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Host {
    /// Directories of the node, which outlive the Pod, and where they are in the container.
    pub(crate) directories: Vec<(String, &'static str)>,
    /// True if it is in the network namespace of the node.
    pub(crate) network: bool,
    /// True if it sees the processes of the node.
    pub(crate) processes: bool,
    /// Its rights.
    pub(crate) rights: Rights,
    /// A command before it ends.
    pub(crate) ending: &'static [&'static str],
}

/// The rights of a program on its node.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rights {
    /// These capabilities.
    Capabilities(&'static [&'static str]),
    /// All.
    All,
}

impl Default for Rights {
    fn default() -> Self {
        Self::Capabilities(&[])
    }
}

/// The value of an environment variable.
#[derive(Clone, Debug)]
pub(crate) enum Variable {
    /// A text, in which `$(NAME)` is an earlier variable.
    Text(String),
    /// A field of the Pod.
    Field(&'static str),
    /// The password of an account, such as `identity-admin`.
    Account(&'static str),
    /// A database of OVN: the cluster IP of the Service of this name, which the kubelet knows, and its port.
    Database(&'static str, u16),
}

/// A configuration file: an immutable object that is named by its content, and where it is mounted.
#[derive(Clone, Debug)]
pub(crate) struct File {
    /// Begin of the name of the object; a digest follows.
    pub(crate) object: String,
    /// The path in the container.
    pub(crate) path: String,
    /// What it contains.
    pub(crate) content: Content,
}

/// The content of a file.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// Without secrets: a ConfigMap.
    Public(String),
    /// With secrets: a Secret.
    Secret(Password),
}

/// How the kubelet asks a program.
#[derive(Clone, Debug)]
pub(crate) enum Probe {
    /// A GET of the path on the port of this name is answered with a status below 400.
    Http(&'static str, &'static str),
    /// The same, asked for as this host.
    Page(&'static str, &'static str, &'static str),
    /// The same by TLS, without a look at the certificate.
    Https(&'static str, &'static str),
    /// The port of this name accepts connections.
    Tcp(&'static str),
    /// Who connects to this port and says these bytes is answered with bytes that begin with those; both in hexadecimal.
    Answers(u16, &'static str, &'static str),
    /// The command succeeds.
    Command(&'static [&'static str]),
    /// The program has an established connection to each of these ports of others.
    Connected(&'static [u16]),
    /// It has also made this file.
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

    /// The name of the file, which is the key in the object.
    pub(crate) fn key(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// A command from its words.
pub(crate) fn command(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Seconds after which a process that answers one request for so long is ended, below the patience of the edge.
const LONGEST: &str = "540";

/// The API of a workload in uWSGI on this port. A request that is under way when the Pod ends is answered.
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
