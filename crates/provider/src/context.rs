//! Shared parts of all reconciles of this crate.

pub(crate) mod kept;

use std::sync::Arc;
use std::time::Duration;

use api::conditions::Type;
use api::core::v1beta2::{Cluster, Machine};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use api::k8s_openapi::jiff::Timestamp;
use kube::runtime::controller::Action;
use kube::{Client, Resource, ResourceExt};
use openstack::CloudPool;
use operator::client::Api;
use operator::decode::NotDecoded;
use operator::events::Recorder;
use operator::retry::{Retry, When};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::claims::{Claims, Denial};
use crate::console::Consoles;
use crate::credentials::Access;
use crate::failures::{Failures, Unmonitored};
use crate::looks::Looks;
use crate::options::Options;
pub(crate) use crate::owners::{namespace, of_cluster, owner};
use crate::problem::Problem;

/// Maximum age of the view while an object is being changed. Changes in the cloud trigger a reconcile; this limit is
/// for missed changes.
pub(crate) const FRESH: Duration = Duration::from_secs(60);
/// Maximum age for an object in its desired state: longer than the intervals of the inventory, so that its resyncs
/// cause no list requests.
pub(crate) const AT_REST: Duration = Duration::from_secs(900);

/// Shared parts of all reconciles.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) clouds: CloudPool,
    pub(crate) recorder: Recorder,
    pub(crate) options: Options,
    pub(crate) consoles: Consoles,
    /// [`Failures`]: servers of machines for which Nova had no room.
    pub(crate) failures: Failures,
    /// [`Unmonitored`] load balancers, whose driver has no health monitors.
    pub(crate) unmonitored: Unmonitored,
    /// [`Looks`] at application credentials in Keystone.
    pub(crate) looks: Looks,
    /// True from the first object with an Image of ORC: the wish for a watch of Images.
    pub(crate) images: watch::Sender<bool>,
    /// [`Claims`] of objects to identities.
    pub(crate) claims: Arc<Claims>,
    /// Cancelled when the process stops.
    pub(crate) shutdown: CancellationToken,
}

impl Context {
    /// Current time, for conditions.
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    /// [`Access`] to credentials and clouds.
    pub(crate) fn access(&self) -> Access<'_> {
        Access {
            client: &self.client,
            pool: &self.clouds,
            ca: self.options.ca.as_deref(),
        }
    }

    /// True if a problem is not the object's: connections break off in a stopping process, especially to a cloud of the
    /// same process. Such a problem is not reported.
    pub(crate) fn is_of_shutdown(&self, result: &Result<impl Sized, Error>) -> bool {
        self.shutdown.is_cancelled() && matches!(result, Err(Error::Problem(_)))
    }
}

/// Reason why a reconcile failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A request to the API server failed.
    #[error("{doing}")]
    Kubernetes {
        /// The operation that failed.
        doing: &'static str,
        /// The error of the API server.
        source: kube::Error,
    },
    /// Undecodable object needed by this one.
    #[error(transparent)]
    NotDecoded(#[from] NotDecoded),
    /// The watch of identities does not know the object yet: see [`crate::claims`].
    #[error("the watch of identities is behind")]
    Behind,
    /// [`Problem`] already reported in the conditions of the object.
    #[error(transparent)]
    Problem(#[from] Problem),
}

impl Error {
    pub(crate) fn kubernetes(doing: &'static str) -> impl FnOnce(kube::Error) -> Self {
        move |source| Error::Kubernetes { doing, source }
    }
}

impl Retry for Error {
    fn when(&self) -> When {
        match self {
            Error::Kubernetes { source, .. } => source.when(),
            Error::NotDecoded(_) => When::Backoff,
            Error::Behind => When::Now,
            Error::Problem(problem) => problem.when(),
        }
    }
}

impl From<Denial> for Error {
    fn from(denial: Denial) -> Self {
        match denial {
            Denial::Behind => Error::Behind,
            Denial::Shared(shared) => Error::Problem(shared.problem()),
        }
    }
}

/// Interval between reconciles of a waiting object without a change in the cloud.
pub(crate) const FALLBACK: Duration = Duration::from_secs(30);

/// Requeues after the resync interval; changes trigger a reconcile earlier.
pub(crate) fn settled() -> Action {
    Action::requeue(operator::controller::RESYNC)
}

/// Requeues after this time, or after the resync interval if that is shorter.
pub(crate) fn settled_until(due: Duration) -> Action {
    Action::requeue(due.min(operator::controller::RESYNC))
}

/// [`Cluster`] of `object`: its owner, or the one in its label.
pub(crate) async fn owner_cluster<K: ResourceExt>(
    client: &Client,
    object: &K,
) -> Result<Option<Cluster>, Error> {
    let Some(name) = of_cluster(object) else {
        return Ok(None);
    };
    let clusters = Api::<Cluster>::namespaced(client.clone(), &namespace(object));
    clusters
        .get_opt(name)
        .await
        .map_err(Error::kubernetes("reading the owning Cluster"))
}

/// [`Machine`] that owns `object`.
pub(crate) async fn owner_machine<K: ResourceExt>(
    client: &Client,
    object: &K,
) -> Result<Option<Machine>, Error> {
    let Some(name) = owner(object, "Machine") else {
        return Ok(None);
    };
    let machines = Api::<Machine>::namespaced(client.clone(), &namespace(object));
    machines
        .get_opt(name)
        .await
        .map_err(Error::kubernetes("reading the owning Machine"))
}

/// True for a paused `object`, by its [`Cluster`] or by an annotation.
pub(crate) fn is_paused<K: ResourceExt>(object: &K, cluster: Option<&Cluster>) -> bool {
    object
        .annotations()
        .contains_key(api::names::PAUSED_ANNOTATION)
        || cluster.is_some_and(|cluster| cluster.spec.paused == Some(true))
}

/// True for an `object` under external management.
pub(crate) fn is_managed_elsewhere<K: ResourceExt>(object: &K) -> bool {
    object
        .annotations()
        .contains_key(api::names::MANAGED_BY_ANNOTATION)
}

/// Maximum age of the view of the cloud for a reconcile of an object with these [`Condition`]s.
pub(crate) fn age<K: Resource>(object: &K, conditions: Option<&[Condition]>) -> Duration {
    let ready = api::conditions::find(conditions.unwrap_or_default(), Type::Ready);
    let generation = object.meta().generation;
    let settled = ready.is_some_and(|c| c.status == "True" && c.observed_generation == generation);
    match settled && !is_deleting(object) {
        true => AT_REST,
        false => FRESH,
    }
}

/// True for an `object` in deletion.
pub(crate) fn is_deleting<K: Resource>(object: &K) -> bool {
    object.meta().deletion_timestamp.is_some()
}

/// Restores the transition time of [`Condition`]s with an unchanged status, even if changed in between: a status with
/// other times only is not written.
pub(crate) fn steady(before: Option<&[Condition]>, after: Option<&mut [Condition]>) {
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    for condition in after {
        let known = before.iter().find(|known| known.type_ == condition.type_);
        if let Some(known) = known.filter(|known| known.status == condition.status) {
            condition.last_transition_time = known.last_transition_time.clone();
        }
    }
}
