//! Application of a plan: the record, then routes, then the ports of the nodes.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use openstack::network::ExtraRoute;
use openstack::{Cloud, ErrorKind, Kind};

use super::plan::{Change, Pairs, Plan};
use super::route::Route;
use crate::context::Error;
use crate::revision;

/// Maximum number of concurrent changes of ports.
const CONCURRENCY: usize = 10;
/// Maximum number of requests per pass in the search for rejected routes.
const ATTEMPTS: usize = 16;

/// Routes that could not be created, each with the reason.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) failed: BTreeMap<Route, String>,
    /// Error worth another attempt soon.
    pub(crate) error: Option<Error>,
}

impl Outcome {
    fn fail(&mut self, routes: impl IntoIterator<Item = Route>, error: Error, is_temporary: bool) {
        let words = error.words();
        let failed = routes.into_iter().map(|route| (route, words.clone()));
        self.failed.extend(failed);
        if is_temporary {
            self.error.get_or_insert(error);
        }
    }
}

/// Applies the steps that change the cloud. A failure does not affect the routes of other nodes.
pub(crate) async fn run(cloud: &Cloud, plan: &Plan, is_atomic: bool) -> Outcome {
    let mut outcome = Outcome::default();
    for (router, change) in &plan.routers {
        routes(cloud, router, change, is_atomic, &mut outcome).await;
    }
    let pairs: Vec<_> = plan.pairs.iter().collect();
    for some in pairs.chunks(CONCURRENCY) {
        let changes = some
            .iter()
            .map(|(port, pairs)| set_pairs(cloud, port, pairs));
        let results = join_all(changes).await;
        for ((_, pairs), result) in some.iter().zip(results) {
            let Err(error) = result else {
                continue;
            };
            let is_temporary = !is_rejected(&error);
            let error = Error::cloud("changing the allowed address pairs of a node's port")(error);
            outcome.fail(pairs.add.iter().copied(), error, is_temporary);
        }
    }
    outcome
}

/// Changes the routes of a router in one batch. A rejected batch is halved, so that the routes of other nodes do not
/// wait for a rejected one.
async fn routes(
    cloud: &Cloud,
    router: &str,
    change: &Change,
    is_atomic: bool,
    outcome: &mut Outcome,
) {
    let mut remove: Vec<ExtraRoute> = change.remove.iter().map(ExtraRoute::from).collect();
    let all: Vec<Route> = change.add.iter().copied().collect();
    let mut left = vec![all];
    let mut attempts = 0;
    while let Some(batch) = left.pop() {
        attempts += 1;
        let add: Vec<ExtraRoute> = batch.iter().map(ExtraRoute::from).collect();
        let inventory = &cloud.inventory;
        let set = || inventory.set_routes(router, &add, &remove, is_atomic);
        let result = revision::change(set).await;
        let Err(error) = result else {
            // The first accepted batch has made the removals.
            remove.clear();
            continue;
        };
        // The cloud may have executed a request without an answer.
        inventory.stale(Kind::Routers);
        let is_rejected = is_rejected(&error);
        if is_rejected && batch.len() > 1 && attempts < ATTEMPTS {
            let (first, second) = batch.split_at(batch.len() / 2);
            left.extend([second.to_vec(), first.to_vec()]);
            continue;
        }
        let rest: BTreeSet<Route> = match is_rejected && attempts < ATTEMPTS {
            true => BTreeSet::new(),
            false => left.drain(..).flatten().collect(),
        };
        let error = Error::cloud(format!("changing the routes of router {router}"))(error);
        outcome.fail(batch.into_iter().chain(rest), error, !is_rejected);
    }
}

/// True if the cloud rejects a request for good: another attempt soon would fail, too.
fn is_rejected(error: &openstack::Error) -> bool {
    matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Quota)
}

async fn set_pairs(cloud: &Cloud, port: &str, pairs: &Pairs) -> openstack::Result<()> {
    let texts = |routes: &BTreeSet<Route>| {
        let ranges = routes.iter().map(|route| route.destination.to_string());
        ranges.collect::<Vec<_>>()
    };
    let inventory = &cloud.inventory;
    let (add, remove) = (texts(&pairs.add), texts(&pairs.remove));
    let set = || inventory.set_port_pairs(port, &add, &remove);
    match revision::change(set).await {
        // The port of a deleted node.
        Err(error) if error.is_absent() && pairs.add.is_empty() => {
            inventory.stale(Kind::Ports);
            Ok(())
        }
        Err(error) => {
            inventory.stale(Kind::Ports);
            Err(error)
        }
        Ok(_) => Ok(()),
    }
}
