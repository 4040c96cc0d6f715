//! Place of a cloud: in a cluster, or on simulated nodes of an API server in this process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use apiserver::sockets::Limits;
use kube::Client;
use operator::metrics::Metrics;
use simulator::nodes;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::cli::{DataDirArg, PlaceArgs, ServerArgs};
use crate::commands::up::{self, Management};
use crate::connect;
use crate::data_dir::OPENSTACK;
use crate::data_dir::{self, DataDir};
use crate::environment::Environment;
use crate::located;
use crate::serve;

/// Place of a cloud, with the controllers in this process.
pub(super) struct Site {
    pub(super) client: Client,
    /// Stand-in for a cluster; `None` for a real cluster.
    pub(super) simulated: Option<Simulated>,
    /// Directory for the login of the administrator.
    pub(super) directory: PathBuf,
    management: Option<Management>,
    running: JoinSet<()>,
}

/// Stand-in of this process for a cluster.
pub(super) struct Simulated {
    /// URL of the APIs of the cloud.
    pub(super) openstack: String,
    pub(super) data: DataDir,
}

/// Directory of the simulated cluster; always absolute.
///
/// # Errors
/// If none is given, and the user has no home directory.
pub(super) fn directory(
    named: Option<&Path>,
    environment: &Environment,
) -> anyhow::Result<PathBuf> {
    if let Some(path) = named {
        return Ok(environment.working_dir.join(path));
    }
    located::openstack_data_dir(environment)
}

/// [`Client`] of a cloud's running cluster.
pub(super) async fn client(args: &PlaceArgs, environment: &Environment) -> anyhow::Result<Client> {
    if !is_simulated(args) {
        return connect::cluster(&server(args, None), environment).await;
    }
    let directory = directory(args.data_dir.as_deref(), environment)?;
    if data_dir::holder(&directory)?.is_none() {
        anyhow::bail!(
            "no simulated cloud is running in {}: start it with `{} openstack up`, or name a cluster with --kubeconfig or --context",
            directory.display(),
            environment.program
        );
    }
    connect::cluster(&server(args, Some(directory)), environment).await
}

/// True for the simulated cluster of a directory.
pub(super) fn is_simulated(args: &PlaceArgs) -> bool {
    args.kubeconfig.is_none() && args.context.is_none()
}

fn server(args: &PlaceArgs, directory: Option<PathBuf>) -> ServerArgs {
    ServerArgs {
        kubeconfig: args.kubeconfig.clone(),
        context: args.context.clone(),
        data_dir: DataDirArg {
            data_dir: directory,
        },
    }
}

impl Site {
    /// Connects to the cluster, or starts the simulated one.
    pub(super) async fn open(
        args: &PlaceArgs,
        environment: &Environment,
        metrics: &Metrics,
        stop: &CancellationToken,
    ) -> anyhow::Result<Self> {
        let directory = directory(args.data_dir.as_deref(), environment)?;
        if !is_simulated(args) {
            let client = connect::cluster(&server(args, None), environment).await?;
            return Ok(Self {
                client,
                simulated: None,
                directory,
                management: None,
                running: JoinSet::new(),
            });
        }
        let flag = connect::data_dir_flag(environment, &directory);
        let data = DataDir::open_when_free(&directory, &flag).await?;
        let options = nodes::Options::default();
        let programs = nodes::Programs::new(&options.faults);
        programs.keep_in(data.file(OPENSTACK));
        let nodes = up::Nodes::Simulated(Arc::new(programs.clone()));
        let management = up::serve(&data, metrics, nodes, stop).await?;
        let client = management.client.clone();
        programs.serve(client.clone());
        let mut running = JoinSet::new();
        let faults = options.faults.clone();
        running.spawn(faults.follow(client.clone(), stop.clone()));
        running.spawn(nodes::run(client.clone(), options, stop.clone()));
        let (listener, openstack) = up::listen_for_openstack(&data).await?;
        let router = programs.gateway(&openstack);
        let limits = Limits::default();
        running.spawn(serve::http(listener, router, limits, stop.clone()));
        Ok(Self {
            client,
            simulated: Some(Simulated { openstack, data }),
            directory,
            management: Some(management),
            running,
        })
    }

    /// Runs the controller with [`rollout::Options`].
    pub(super) fn control(&mut self, options: rollout::Options, stop: &CancellationToken) {
        let client = self.client.clone();
        self.running
            .spawn(rollout::run(client, options, stop.clone()));
    }

    /// Waits for the end of all tasks in this process, after a stop. Controllers end between any two requests:
    /// half-done work continues at the next start.
    pub(super) async fn stopped(mut self) {
        self.running.shutdown().await;
        drop(self.client);
        if let Some(management) = self.management {
            management.stopped().await;
        }
        // The directory is another's after all has ended.
        drop(self.simulated);
    }
}
