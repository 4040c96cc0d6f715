//! Routes to the pods of nodes, on the router of cloud.conf.
//!
//! ```text
//!   route      a route, and the record of this cluster's routes
//!   record     the stored record, a ConfigMap
//!   desired    the routes that the nodes need (pure)
//!   plan       the steps from the observed to the desired routes (pure)
//!   apply      the application of a plan
//!   status     the condition of Nodes, and events
//!   passes     the times of passes over all nodes
//! ```
//!
//! One pass serves all nodes: the router has one list of routes. A route is recorded before its creation, and only
//! recorded routes are removed.

mod apply;
mod desired;
mod passes;
mod plan;
mod record;
mod route;
mod status;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api::k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::runtime::reflector::Store;
use openstack::{Cloud, Kind, View};
use operator::watch::Skipped;

use self::apply::Outcome;
use self::desired::{Reach, Wanted};
use self::plan::{Facts, Plan};
use self::route::Record;
use self::status::Status;
use crate::context::{Context, Error};

pub(crate) use self::passes::{NAME, aspects, run};

/// Maximum age of lists while nothing has to be changed.
const AT_REST: Duration = Duration::from_secs(600);
/// Maximum age of lists for planned changes.
const FRESH: Duration = Duration::from_secs(1);
/// Interval of passes without any change.
const RESYNC: Duration = Duration::from_secs(600);
/// Interval of passes while a route is rejected.
const REJECTED: Duration = Duration::from_secs(60);

const KINDS: &[Kind] = &[Kind::Routers, Kind::Ports, Kind::Subnets];

/// Shared state of passes.
pub(crate) struct Shared {
    pub(crate) ctx: Arc<Context>,
    pub(crate) nodes: Store<Node>,
    pub(crate) skipped: Skipped,
    pub(crate) record: record::Store,
}

/// Parameters of a pass.
struct Work<'a> {
    shared: &'a Shared,
    cloud: &'a Cloud,
    router: &'a str,
    nodes: Vec<Arc<Node>>,
}

/// Makes one pass over all nodes; returns the time until the next pass without a change.
pub(crate) async fn pass(shared: &Shared) -> Result<Duration, Error> {
    let ctx = &shared.ctx;
    let settings = ctx.settings();
    let router = settings.conf.route.router_id.as_str();
    if router.is_empty() {
        return Ok(RESYNC);
    }
    let cloud = ctx.cloud(&settings).await?;
    let cluster = ctx.cluster().await?;
    let record = shared.record.read(ctx, cluster).await?;
    let work = Work {
        shared,
        cloud: &cloud,
        router,
        nodes: shared.nodes.state(),
    };
    let (_, plan) = work.observe_and_plan(&record).await?;
    work.store(cluster, &record, &plan.record).await?;
    let outcome = work.apply(&plan).await?;
    let (wanted, left) = work.plan(&plan.record, &cloud.inventory.known());
    // Removed routes leave the record.
    work.store(cluster, &plan.record, &left.record).await?;
    let statuses = statuses(&work, &wanted, &left, &outcome);
    let is_rejected = statuses.iter().any(|status| status.problem.is_some());
    status::publish(ctx, &statuses).await?;
    match outcome.error {
        Some(error) => Err(error),
        None if is_rejected => Ok(REJECTED),
        None => Ok(RESYNC),
    }
}

impl Work<'_> {
    /// Needs of the nodes, and the [`Plan`]: from lists that may be old if nothing has to be changed, else from fresh
    /// ones.
    async fn observe_and_plan(&self, record: &Record) -> Result<(Vec<Wanted>, Plan), Error> {
        let view = list(self.cloud, KINDS, AT_REST).await?;
        let (wanted, plan) = self.plan(record, &view);
        let is_complete = wanted.iter().all(|wanted| wanted.problem.is_none());
        if plan.is_settled() && plan.problems.is_empty() && is_complete {
            return Ok((wanted, plan));
        }
        let view = list(self.cloud, KINDS, FRESH).await?;
        Ok(self.plan(record, &view))
    }

    fn plan(&self, record: &Record, view: &View) -> (Vec<Wanted>, Plan) {
        let cidrs = &self.shared.ctx.options.routes.cluster_cidrs;
        let reach = Reach::new(self.router, view);
        let wanted = desired::of(&self.nodes, self.router, &reach, cidrs);
        let facts = Facts {
            router: self.router,
            record,
            view,
            knows_all_nodes: self.shared.skipped.check::<Node>(|_| true).is_ok(),
        };
        let plan = plan::of(&wanted, &reach, &facts);
        (wanted, plan)
    }

    /// Stores a changed [`Record`].
    async fn store(&self, cluster: &str, before: &Record, after: &Record) -> Result<(), Error> {
        if before == after {
            return Ok(());
        }
        let Shared { ctx, record, .. } = self.shared;
        record.write(&ctx.client, cluster, after).await
    }

    async fn apply(&self, plan: &Plan) -> Result<Outcome, Error> {
        if plan.is_settled() {
            return Ok(Outcome::default());
        }
        let extensions = list(self.cloud, &[Kind::Extensions], AT_REST).await?;
        let is_atomic = extensions.has_extension("extraroute-atomic");
        Ok(apply::run(self.cloud, plan, is_atomic).await)
    }
}

async fn list(cloud: &Cloud, kinds: &[Kind], age: Duration) -> Result<Arc<View>, Error> {
    let view = cloud.inventory.view(kinds, age).await;
    view.map_err(Error::cloud("listing routers and ports"))
}

/// Statuses to write to the Nodes, depending on the remaining [`Plan`].
fn statuses(work: &Work<'_>, wanted: &[Wanted], left: &Plan, outcome: &Outcome) -> Vec<Status> {
    let nodes = work.nodes.iter();
    let by_name: HashMap<_, _> = nodes.map(|node| (node.name_any(), node)).collect();
    let status = |wanted: &Wanted| {
        let mut routes = wanted.routes.iter().map(|leg| &leg.route);
        let failed = routes.clone().find_map(|route| outcome.failed.get(route));
        let problem = wanted.problem.as_ref();
        let problem = problem.or(left.problems.get(&wanted.node)).or(failed);
        let is_whole = problem.is_none() && !wanted.routes.is_empty();
        Some(Status {
            node: Arc::clone(by_name.get(&wanted.node)?),
            has_routes: is_whole && routes.all(|route| left.has(work.router, route)),
            problem: problem.cloned(),
        })
    };
    wanted.iter().filter_map(status).collect()
}
