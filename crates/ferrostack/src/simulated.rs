//! The simulated OpenStack with its guests, served on a loopback address.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::Context;
use ipnet::Ipv4Net;
use simulator::cloud::{self, Cloud, Latency};
use simulator::guest::{self, Guests};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::cli::LatencyArg;

/// The cloud of ordinary projects in the simulated cloud's clouds.yaml.
pub(crate) const CLOUD: &str = "simulated";
/// The Kubernetes version of the nodes that `up` creates by default.
pub(crate) const KUBERNETES_VERSION: &str = "v1.34.2";
/// The image of the nodes that `up` creates by default.
pub(crate) const IMAGE: &str = "ubuntu-24.04-kubernetes";

/// How the cloud is simulated.
pub(crate) struct Setup {
    /// File of the cloud's resources; in memory without.
    pub(crate) store: Option<PathBuf>,
    /// Directory of the guests' state; in memory without.
    pub(crate) guest_state: Option<PathBuf>,
    pub(crate) latency: LatencyArg,
    pub(crate) seed: u64,
    /// Second byte of the floating IPs, 127.N.0.0/16.
    pub(crate) floating: u8,
    /// Whether servers boot as Kubernetes nodes.
    pub(crate) guests: bool,
}

/// A running simulated cloud.
pub(crate) struct Simulated {
    pub(crate) url: String,
    pub(crate) clouds_yaml: String,
    guests: Option<Guests>,
    serving: JoinHandle<()>,
    /// Keeps the cloud's clock going.
    _cloud: Cloud,
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
        let external_cidr = Ipv4Net::new(Ipv4Addr::new(127, setup.floating, 0, 0), 16)
            .context("the range of floating IPs")?;
        let cloud = Cloud::open(cloud::Options {
            store: setup.store,
            latency: latency(&setup.latency)?,
            seed: setup.seed,
            external_cidr,
            images: vec![IMAGE.to_owned()],
            ..cloud::Options::default()
        })
        .await
        .context("the simulated cloud")?;
        let guests = setup.guests.then(|| {
            let options = guest::Options {
                state_dir: setup.guest_state,
                ..guest::Options::default()
            };
            Guests::start(cloud.world(), options, shutdown.clone())
        });
        if let Some(guests) = guests.clone() {
            cloud.set_console(move |server| guests.console(server));
        }
        let router = cloud.router(&url);
        let serving = tokio::spawn(async move {
            let served = axum::serve(listener, router)
                .with_graceful_shutdown(async move { shutdown.cancelled().await })
                .await;
            if let Err(source) = served {
                tracing::error!("the simulated cloud stopped: {source}");
            }
        });
        Ok(Self {
            clouds_yaml: cloud.clouds_yaml(&url),
            url,
            guests,
            serving,
            _cloud: cloud,
        })
    }

    /// Ends once the shutdown given to [`start`](Self::start) has come.
    pub(crate) async fn stopped(self) {
        let _ = self.serving.await;
        if let Some(guests) = self.guests {
            guests.stopped().await;
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

/// Runs a simulated cloud until Ctrl-C.
pub(crate) async fn run(
    args: &crate::cli::Simulate,
    shutdown: CancellationToken,
    say: impl Fn(&str),
) -> anyhow::Result<()> {
    let listener = TcpListener::bind(args.listen).await.map_err(|source| {
        anyhow::anyhow!(
            "cannot listen on {}: {source}; choose another address with --listen",
            args.listen
        )
    })?;
    let setup = Setup {
        store: None,
        guest_state: None,
        latency: args.latency.clone(),
        seed: args.seed,
        floating: 30,
        guests: args.guests,
    };
    let simulated = Simulated::start(setup, listener, shutdown.clone()).await?;
    if let Some(path) = &args.clouds_file {
        crate::data_dir::write_private(path, &simulated.clouds_yaml)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    say(&format!("simulated OpenStack at {}", simulated.url));
    match &args.clouds_file {
        Some(path) => say(&format!(
            "export OS_CLIENT_CONFIG_FILE={} OS_CLOUD={CLOUD}",
            path.display()
        )),
        None => say(&simulated.clouds_yaml),
    }
    shutdown.cancelled().await;
    simulated.stopped().await;
    Ok(())
}
