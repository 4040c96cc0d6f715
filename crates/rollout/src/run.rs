//! Starts the controller and its watches.

use std::sync::Arc;
use std::time::Duration;

use api::openstack::v1alpha1::OpenStack;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::Client;
use kube::runtime::watcher;
use operator::client::Api;
use operator::client::Requests;
use operator::controller::{self, Objects, Settings};
use operator::events::Recorder;
use operator::metrics::Metrics;
use operator::watch::Reports;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::accounts::AccountCache;
use crate::drain::Drains;
use crate::reconcile::{self, Context};
use crate::rendered::Rendered;
use crate::schedules::{self, Clock};
use crate::view::View;

/// Name of the controller in logs and metrics.
const NAME: &str = "openstack";

/// Name of the controller of schedules.
const SCHEDULES: &str = "openstack-schedules";

/// Timeout until the start of an answer: a lost request must not block a cloud.
const ANSWER: Duration = Duration::from_secs(60);

/// Changes within this time count as one change.
const SUCCESSION: Duration = Duration::from_millis(20);

/// Options of the controller.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Namespace of all clouds; `None` watches every namespace.
    pub namespace: Option<String>,
    /// Metrics of reconciles.
    pub metrics: Metrics,
    /// Counter of the requests to the API server.
    pub requests: Requests,
    /// Clock of schedules and drains.
    pub clock: Clock,
    /// Becomes true after the first comparison of a cloud with its desired state.
    pub looked: Option<Arc<watch::Sender<bool>>>,
    /// Desired objects, which the next controller of the process need not render again.
    pub rendered: Rendered,
}

/// Runs the controller until `shutdown`, and returns after the running reconciles.
///
/// Boxed, so that the controller is compiled in this crate alone.
pub fn run(
    client: Client,
    options: Options,
    shutdown: CancellationToken,
) -> BoxFuture<'static, ()> {
    controller(client, options, shutdown).boxed()
}

async fn controller(client: Client, options: Options, shutdown: CancellationToken) {
    let client = operator::client::counted(&client, &options.requests);
    let client = operator::client::answered_within(&client, ANSWER);
    let client = operator::client::named(&client, deployer::FIELD_MANAGER);
    let namespace = options.namespace.as_deref();
    let (changed, changes) = mpsc::channel(1);
    // Dropped at the end of this function, which ends the watches.
    let mut watches = JoinSet::new();
    let view = View::start(&client, namespace, &changed, &mut watches);
    let api = || match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    let reports = |watch| Reports {
        watch,
        metrics: options.metrics.clone(),
        recorder: Some(Recorder::new(client.clone(), NAME)),
    };
    let clouds = |watch| {
        operator::watch::controller::<OpenStack>(api(), watcher::Config::default(), reports(watch))
    };
    // A look at a cloud renders all of its objects, so changes in quick succession cause one look.
    let changes = futures::stream::unfold(changes, |mut changes| async move {
        changes.recv().await?;
        tokio::time::sleep(SUCCESSION).await;
        Some(((), changes))
    });
    let controller = clouds(NAME).reconcile_all_on(changes);
    let settings = |name| Settings {
        name,
        concurrency: 4,
        objects: Objects::default(),
        metrics: options.metrics.clone(),
        shutdown: shutdown.clone(),
    };
    let scheduler = schedules::Context {
        client: client.clone(),
        view: view.clone(),
        clock: options.clock.clone(),
    };
    let scheduled = controller::run(
        clouds(SCHEDULES),
        schedules::reconcile,
        Arc::new(scheduler),
        settings(SCHEDULES),
    );
    let settings = settings(NAME);
    let context = Arc::new(Context {
        client: client.clone(),
        view,
        accounts: AccountCache::default(),
        rendered: options.rendered,
        drains: Drains::default(),
        clock: options.clock,
        looked: options.looked,
    });
    let rolled_out = controller::run(controller, reconcile::reconcile, context, settings);
    tokio::join!(rolled_out, scheduled);
    // Kept until here: without a sender, the stream of changes would end.
    drop(changed);
}
