//! Starts the controllers and their watches.

use std::pin::pin;
use std::sync::Arc;

use api::k8s_openapi::api::core::v1::{Node, Service};
use api::k8s_openapi::api::discovery::v1::EndpointSlice;
use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::future::BoxFuture;
use futures::future::OptionFuture;
use futures::{FutureExt, Stream, StreamExt, TryStreamExt, stream};
use kube::Client;
use kube::runtime::reflector::{ObjectRef, Store, store::Writer};
use kube::runtime::watcher::Event;
use kube::runtime::{Controller, WatchStreamExt, reflector, watcher};
use openstack::{CloudPool, PoolOptions};
use operator::client::Api;
use operator::controller::{self, Objects, Settings};
use operator::events::Recorder;
use operator::watch::{self, Reports, Skipped};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::metrics::Metrics;
use crate::node::{self, Shared, absence::Absences};
use crate::options::Options;
use crate::service::weights::Weights;
use crate::{routes, service, wake};

/// User-Agent and field manager.
pub const NAME: &str = "cloud-controller-manager";
/// Name of the node controller in logs and metrics. The controller combines two controllers of the Go manager.
const NODES: &str = "cloud-node";
const SERVICES: &str = "service-lb";
const ENDPOINTS: &str = "service-lb-endpoints";

/// Sessions and lists for the managers of several clusters, and their metrics.
#[derive(Clone, Debug)]
pub struct Clouds {
    pool: CloudPool,
    metrics: Metrics,
    requests: openstack::Metrics,
}

impl Clouds {
    /// Creates an empty set of clouds. The metrics under the names of the Go manager are added to `metrics`.
    pub fn new(options: PoolOptions, metrics: &operator::metrics::Metrics) -> Self {
        let counts = Metrics::default();
        let requests = openstack::Metrics::with_hook(counts.hook());
        metrics.register(|registry| counts.register(registry));
        let mut options = options;
        options.session.metrics = requests.clone();
        Self {
            pool: CloudPool::new(options),
            metrics: counts,
            requests,
        }
    }

    /// Sessions and lists, for controllers with the same credentials. Their requests are counted here, too.
    #[must_use]
    pub fn pool(&self) -> CloudPool {
        self.pool.clone()
    }

    /// Adds the metrics of all requests, under our names.
    pub fn register_requests(&self, metrics: &operator::metrics::Metrics) {
        metrics.register(|registry| self.requests.register(registry));
    }
}

/// Runs the controllers until `shutdown`, and returns after the running reconciles.
pub fn run(
    client: Client,
    options: Options,
    shutdown: CancellationToken,
) -> BoxFuture<'static, ()> {
    let clouds = Clouds::new(options.clouds.clone(), &options.metrics);
    clouds.register_requests(&options.metrics);
    let client = operator::client::named(&client, NAME);
    run_in(&clouds, client, options, shutdown)
}

/// Runs the controllers for one of several clusters, like [`run`]; `clouds` replaces the clouds of the [`Options`], and
/// `client` has the [`NAME`].
///
/// Boxed, so that the controllers are compiled in this crate alone.
pub fn run_in(
    clouds: &Clouds,
    client: Client,
    options: Options,
    shutdown: CancellationToken,
) -> BoxFuture<'static, ()> {
    controllers(clouds.clone(), client, options, shutdown).boxed()
}

async fn controllers(
    clouds: Clouds,
    client: Client,
    options: Options,
    shutdown: CancellationToken,
) {
    let context = |controller: &str| {
        Arc::new(Context {
            clouds: clouds.pool.clone(),
            recorder: Recorder::new(client.clone(), controller),
            client: client.clone(),
            metrics: clouds.metrics.clone(),
            options: options.clone(),
            uid: OnceCell::new(),
        })
    };
    let wanted = options.controllers;
    let of_nodes = context("cloud-node-controller");
    let (mut watched, store) = NodeWatch::new(&of_nodes);
    let nodes = (wanted.node || wanted.node_lifecycle)
        .then(|| nodes(of_nodes, watched.events(), store.clone(), shutdown.clone()));
    let services = wanted.service.then(|| {
        let of_services = context("service-controller");
        services(of_services, watched.events(), store, shutdown.clone())
    });
    let routes = async {
        if wanted.route {
            let running = node_routes(context("route_controller"), shutdown.clone());
            running.boxed().await;
        }
    };
    tokio::join!(
        watched.run(shutdown.clone()),
        OptionFuture::from(nodes),
        OptionFuture::from(services),
        routes
    );
}

type NodeEvent = watcher::Result<Event<Node>>;

/// Shared watch of Nodes for the controllers that always need one: each watch has buffers at both ends.
struct NodeWatch<E> {
    events: E,
    listeners: Vec<UnboundedSender<NodeEvent>>,
}

impl NodeWatch<()> {
    /// Watch, and the [`Node`]s received so far.
    fn new(
        ctx: &Context,
    ) -> (
        NodeWatch<impl Stream<Item = NodeEvent> + use<>>,
        Store<Node>,
    ) {
        let writer = Writer::<Node>::default();
        let nodes = writer.as_reader();
        let (api, config) = (Api::all(ctx.client.clone()), watcher::Config::default());
        let skipped = Skipped::default();
        let events =
            watch::events::<Node>(api, config, (), nodes.clone(), skipped, reports(ctx, NODES));
        let events =
            events.map_ok(|event| event.modify(|node| node.metadata.managed_fields = None));
        let watched = NodeWatch {
            events: watch::restarted(reflector(writer, events), NODES),
            listeners: Vec::new(),
        };
        (watched, nodes)
    }
}

impl<E: Stream<Item = NodeEvent>> NodeWatch<E> {
    /// All events of the watch, each after its Node is stored.
    fn events(&mut self) -> impl Stream<Item = NodeEvent> + Send + use<E> {
        let (sender, events) = unbounded();
        self.listeners.push(sender);
        events
    }

    /// Watches until `shutdown`, if there is a listener.
    async fn run(self, shutdown: CancellationToken) {
        let Self { events, listeners } = self;
        let Some((first, others)) = listeners.split_first() else {
            return;
        };
        let mut events = pin!(events);
        while let Some(Some(Ok(event))) = shutdown.run_until_cancelled(events.next()).await {
            for other in others {
                // A controller that has ended needs no more events.
                let _ = other.unbounded_send(Ok(event.clone()));
            }
            let _ = first.unbounded_send(Ok(event));
        }
    }
}

/// Watches Nodes for routes once cloud.conf names a router.
async fn node_routes(ctx: Arc<Context>, shutdown: CancellationToken) {
    let mut settings = ctx.options.settings.clone();
    let named = settings.wait_for(|settings| !settings.conf.route.router_id.is_empty());
    tokio::select! {
        named = named => if named.is_err() {
            return;
        },
        () = shutdown.cancelled() => return,
    }
    let writer = Writer::<Node>::default();
    let (nodes, skipped) = (writer.as_reader(), Skipped::default());
    let events = watch::events::<Node>(
        Api::all(ctx.client.clone()),
        watcher::Config::default(),
        (),
        nodes.clone(),
        skipped.clone(),
        Reports {
            recorder: None,
            ..reports(&ctx, routes::NAME)
        },
    );
    let events = watch::restarted(reflector(writer, events), routes::NAME);
    let changed = wake::watched::changed(events, routes::aspects);
    let shared = routes::Shared {
        ctx,
        nodes,
        skipped,
        record: Default::default(),
    };
    routes::run(&shared, changed, shutdown).await;
}

async fn services(
    ctx: Arc<Context>,
    events: impl Stream<Item = NodeEvent> + Send + 'static,
    nodes: Store<Node>,
    shutdown: CancellationToken,
) {
    let api = Api::all(ctx.client.clone());
    let controller =
        watch::controller::<Service>(api, watcher::Config::default(), reports(&ctx, SERVICES));
    let (store, all) = (controller.store(), controller.store());
    let touched = wake::watched::changed(events, service::node_aspects);
    let changes = wake::services(&ctx.clouds, store.clone(), ctx.options.cluster_name.clone());
    let settings = wake::settings(ctx.options.settings.clone(), store);
    let (weights, endpoints) = endpoints(&ctx);
    let of_slice = wake::of_slice(controller.store());
    let controller = controller
        .reconcile_on(stream::select(changes, settings))
        .watches_stream(endpoints, of_slice)
        .watches_stream(touched, move |_| {
            let services = all.state();
            let wanted = services
                .into_iter()
                .filter(|service| service::is_wanted(service));
            wanted
                .map(|service| ObjectRef::from_obj(&*service))
                .collect::<Vec<_>>()
        });
    let settings = Settings {
        name: SERVICES,
        concurrency: ctx.options.service_concurrency,
        objects: Objects::default(),
        metrics: ctx.options.metrics.clone(),
        shutdown,
    };
    let shared = Arc::new(service::Shared {
        ctx,
        nodes,
        recoveries: Default::default(),
        pendings: Default::default(),
        settled: Default::default(),
        drivers: Default::default(),
        weights,
    });
    controller::run(controller, service::reconcile, shared, settings).await;
}

/// [`Weights`] of members, and the changed [`EndpointSlice`]s. The watch starts once a Service needs endpoints.
fn endpoints(
    ctx: &Context,
) -> (
    Arc<Weights>,
    impl Stream<Item = watcher::Result<EndpointSlice>> + Send + use<>,
) {
    let writer = Writer::<EndpointSlice>::default();
    let slices = writer.as_reader();
    let weights = Arc::new(Weights::new(slices.clone(), ctx.options.weight_period));
    let wanted = weights.wanted();
    let reports = Reports {
        recorder: None,
        ..reports(ctx, ENDPOINTS)
    };
    let api = Api::all(ctx.client.clone());
    let skipped = Skipped::default();
    let config = watcher::Config::default();
    let events = watch::events::<EndpointSlice>(api, config, (), slices, skipped, reports);
    let events = events.map_ok(|event| event.modify(service::weights::trim));
    let changed = watch::restarted(reflector(writer, events), ENDPOINTS).touched_objects();
    let changed = async move {
        wanted.await;
        changed
    };
    (weights, changed.flatten_stream())
}

async fn nodes(
    ctx: Arc<Context>,
    events: impl Stream<Item = NodeEvent> + Send + 'static,
    store: Store<Node>,
    shutdown: CancellationToken,
) {
    let controller = Controller::for_stream(events.applied_objects(), store.clone());
    let controller = controller.reconcile_on(wake::nodes(ctx.clouds.changes(), store.clone()));
    let settings = Settings {
        name: NODES,
        concurrency: ctx.options.node_concurrency,
        objects: Objects::default(),
        metrics: ctx.options.metrics.clone(),
        shutdown,
    };
    let shared = Arc::new(Shared {
        ctx,
        nodes: store,
        absences: Absences::default(),
        hosts: Default::default(),
    });
    controller::run(controller, node::reconcile, shared, settings).await;
}

/// [`Reports`] of a controller's watch about undecodable objects.
fn reports(ctx: &Context, watch: &'static str) -> Reports {
    Reports {
        watch,
        metrics: ctx.options.metrics.clone(),
        recorder: Some(ctx.recorder.clone()),
    }
}
