//! The simulated OpenStack with its guests, served on a loopback address.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use apiserver::Reviewer;
use apiserver::sockets::Limits;
use guests::program;
use ipnet::Ipv4Net;
use simulator::cloud::{self, Cloud, Latency, Passwords};
use simulator::data_plane::DataPlane;
use simulator::guest::{self, Guests, Outside};
use simulator::runner::Runners;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::cli::{LatencyArg, RunnerArgs};
use crate::data_dir::DataDir;
use crate::serve;

/// Entry for ordinary projects in the simulated cloud's clouds.yaml.
pub(crate) const CLOUD: &str = "simulated";
/// Default Kubernetes version of the nodes made by `up`.
pub(crate) const KUBERNETES_VERSION: &str = "v1.34.2";
/// Default image of the nodes made by `up`.
pub(crate) const IMAGE: &str = "ubuntu-24.04-kubernetes";
/// Image of machines with Flatcar, in every simulated cloud.
pub(crate) const FLATCAR: &str = "flatcar-stable";

/// The configuration of the simulated cloud.
pub(crate) struct Setup {
    /// File with the resources of the cloud; in memory if absent.
    pub(crate) store: Option<PathBuf>,
    /// The directory with the state of the guests; in memory if absent.
    pub(crate) guest_state: Option<PathBuf>,
    pub(crate) latency: LatencyArg,
    pub(crate) seed: u64,
    /// Availability zones of volumes; the zones of servers if empty.
    pub(crate) volume_zones: Vec<String>,
    /// Second byte of the floating IPs, 127.N.0.0/16, unless a runner has another range.
    pub(crate) floating: u8,
    /// [`Bodies`] of the servers.
    pub(crate) bodies: Bodies,
    /// [`Passwords`] of the cloud's users.
    pub(crate) passwords: Passwords,
}

/// Bodies of the servers of the cloud.
pub(crate) enum Bodies {
    /// Nothing: servers exist in the API only.
    Nothing,
    /// Simulated Kubernetes nodes, with a [`Reviewer`] of the users of their clusters.
    Guests(Option<Arc<dyn Reviewer>>),
    /// Machines started by a guest runner, with disks in this directory.
    Machines(RunnerArgs, PathBuf),
}

/// The tasks behind the servers.
enum Running {
    Nothing,
    Guests(Guests),
    Machines(Runners),
}

/// A running simulated cloud.
pub(crate) struct Simulated {
    pub(crate) url: String,
    pub(crate) clouds_yaml: String,
    running: Running,
    serving: JoinHandle<()>,
    /// [`Cloud`] whose background tasks must keep running.
    cloud: Cloud,
}

impl Simulated {
    /// Opens the cloud and serves it on `listener` until `shutdown`.
    pub(crate) async fn start(
        setup: Setup,
        listener: TcpListener,
        shutdown: CancellationToken,
    ) -> anyhow::Result<Self> {
        let address: SocketAddr = listener.local_addr()?;
        let url = format!("http://{address}");
        let external_cidr = setup.external_network()?;
        let cloud = Cloud::open(cloud::Options {
            store: setup.store,
            latency: latency(&setup.latency)?,
            seed: setup.seed,
            volume_zones: setup.volume_zones,
            external_cidr,
            images: vec![IMAGE.to_owned()],
            passwords: setup.passwords,
            ..cloud::Options::default()
        })
        .await
        .context("the simulated cloud")?;
        let running = setup
            .bodies
            .start(&cloud, setup.guest_state, external_cidr, &shutdown)
            .await?;
        let router = cloud.router_of_socket(&url);
        // Images may be large.
        let limits = Limits {
            body: Duration::from_secs(600),
            ..Limits::default()
        };
        let serving = tokio::spawn(serve::http(listener, router, limits, shutdown));
        Ok(Self {
            clouds_yaml: cloud.clouds_yaml(&url),
            url,
            running,
            serving,
            cloud,
        })
    }

    /// Servers of the cloud as a [`DataPlane`]; a new value follows every change.
    pub(crate) fn world(&self) -> watch::Receiver<Arc<DataPlane>> {
        self.cloud.world()
    }

    /// Waits for the end of all tasks after the shutdown given to [`start`](Self::start).
    pub(crate) async fn stopped(self) {
        let _ = self.serving.await;
        match self.running {
            Running::Nothing => {}
            Running::Guests(guests) => guests.stopped().await,
            Running::Machines(runners) => runners.stopped().await,
        }
    }
}

impl Setup {
    fn external_network(&self) -> anyhow::Result<Ipv4Net> {
        if let Bodies::Machines(args, _) = &self.bodies
            && let Some(range) = args.external_network
        {
            return Ok(range);
        }
        Ipv4Net::new(Ipv4Addr::new(127, self.floating, 0, 0), 16)
            .context("the range of floating IPs")
    }
}

impl Bodies {
    /// Machines with a runner, or else `otherwise`.
    pub(crate) fn new(
        runner: &RunnerArgs,
        directory: impl FnOnce() -> anyhow::Result<PathBuf>,
        otherwise: Self,
    ) -> anyhow::Result<Self> {
        let Some(program) = runner.program.program() else {
            return Ok(otherwise);
        };
        program.check()?;
        Ok(Self::Machines(runner.clone(), directory()?))
    }

    async fn start(
        self,
        cloud: &Cloud,
        guest_state: Option<PathBuf>,
        external: Ipv4Net,
        shutdown: &CancellationToken,
    ) -> anyhow::Result<Running> {
        match self {
            Self::Nothing => Ok(Running::Nothing),
            Self::Guests(reviewer) => {
                let options = guest::Options {
                    state_dir: guest_state,
                    reviewer,
                    ..guest::Options::default()
                };
                let guests = Guests::start(cloud.world(), options, shutdown.clone());
                let consoles = guests.clone();
                cloud.set_console(move |server| consoles.console(server));
                Ok(Running::Guests(guests))
            }
            Self::Machines(args, directory) => {
                let program = args.program.program().context("no guest runner is named")?;
                let runners = program::machines(
                    cloud.world(),
                    Arc::new(cloud.clone()),
                    &program,
                    directory,
                    Outside::with(vec![external.into()]),
                    shutdown.clone(),
                )
                .await?;
                let consoles = runners.clone();
                cloud.set_console(move |server| consoles.console(server));
                Ok(Running::Machines(runners))
            }
        }
    }
}

fn latency(asked: &LatencyArg) -> anyhow::Result<Latency> {
    match asked {
        LatencyArg::None => Ok(Latency::None),
        LatencyArg::Real => Ok(Latency::Real),
        LatencyArg::File(path) => {
            let text = std::fs::read_to_string(path).with_context(|| {
                format!(
                    "--latency {}: not `none`, not `real`, and not a readable file",
                    path.display()
                )
            })?;
            Latency::parse(&text).with_context(|| format!("--latency {}", path.display()))
        }
    }
}

/// The file of a data directory with the passwords of its simulated cloud.
const PASSWORDS: &str = "cloud-passwords.json";

/// [`Passwords`] of the simulated cloud of a data directory: made with the directory, and unchanged from then on.
///
/// # Errors
/// If the file cannot be read or written, or has another form than written.
pub(crate) fn passwords(data: &DataDir) -> anyhow::Result<Passwords> {
    if let Some(text) = data.read(PASSWORDS)? {
        return serde_json::from_str(&text)
            .with_context(|| format!("{} is damaged", data.file(PASSWORDS).display()));
    }
    let passwords = match data.file("cloud.db").exists() {
        // Of an earlier version, whose clouds have these, as have the Secrets of their clusters.
        true => Passwords::default(),
        false => Passwords::random(),
    };
    data.write(PASSWORDS, &serde_json::to_string(&passwords)?)?;
    Ok(passwords)
}

/// Values of template variables for the simulated cloud.
pub(crate) fn variables() -> std::collections::BTreeMap<String, String> {
    [
        ("KUBERNETES_VERSION", KUBERNETES_VERSION),
        ("OPENSTACK_IMAGE_NAME", IMAGE),
        ("OPENSTACK_IMAGE_NAME_UPGRADE_FROM", IMAGE),
        ("OPENSTACK_FLATCAR_IMAGE_NAME", FLATCAR),
        ("FLATCAR_IMAGE_NAME", FLATCAR),
        ("OPENSTACK_CONTROL_PLANE_MACHINE_FLAVOR", "m1.medium"),
        ("OPENSTACK_NODE_MACHINE_FLAVOR", "m1.small"),
        ("OPENSTACK_SSH_KEY_NAME", ""),
        ("OPENSTACK_DNS_NAMESERVERS", "9.9.9.9"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

#[cfg(test)]
mod tests;
