//! Starting the controllers, and what wakes them.

use std::sync::Arc;

use api::k8s_openapi::api::core::v1::Node;
use kube::runtime::watcher;
use kube::{Api, Client};
use openstack::CloudPool;
use operator::controller::{self, Settings};
use operator::events::Recorder;
use operator::watch::{self, Reports};
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::node::{self, Shared, absence::Absences};
use crate::options::Options;
use crate::wake;

/// The name of the node controller, in logs and metrics: it does the work of two of the Go manager's.
const NODES: &str = "cloud-node";

/// Runs the controllers until `shutdown`, and returns when the reconciles under way are through.
pub async fn run(client: Client, options: Options, shutdown: CancellationToken) {
    let requests = &options.clouds.session.metrics;
    options
        .metrics
        .register(|registry| requests.register(registry));
    let clouds = CloudPool::new(options.clouds.clone());
    let context = |controller: &str| {
        let client = operator::client::named(&client, "cloud-controller-manager");
        Arc::new(Context {
            clouds: clouds.clone(),
            recorder: Recorder::new(client.clone(), controller),
            client,
            options: options.clone(),
        })
    };
    let wanted = options.controllers;
    let nodes = async {
        if wanted.node || wanted.node_lifecycle {
            nodes(context("cloud-node-controller"), shutdown.clone()).await;
        }
    };
    nodes.await;
}

async fn nodes(ctx: Arc<Context>, shutdown: CancellationToken) {
    let api = Api::all(ctx.client.clone());
    let controller =
        watch::controller::<Node>(api, watcher::Config::default(), reports(&ctx, NODES));
    let store = controller.store();
    let controller = controller.reconcile_on(wake::nodes(ctx.clouds.changes(), store.clone()));
    let settings = Settings {
        name: NODES,
        concurrency: ctx.options.node_concurrency,
        metrics: ctx.options.metrics.clone(),
        shutdown,
    };
    let shared = Arc::new(Shared {
        ctx,
        nodes: store,
        absences: Absences::default(),
    });
    controller::run(controller, node::reconcile, shared, settings).await;
}

/// How the watch of a controller reports what cannot be decoded.
fn reports(ctx: &Context, watch: &'static str) -> Reports {
    Reports {
        watch,
        metrics: ctx.options.metrics.clone(),
        recorder: Some(ctx.recorder.clone()),
    }
}
