//! Deletion of Services and claims through the workload cluster before its machines are deleted, if requested in the
//! Cluster and if the API server answers ([why](../../../../docs/adr/0078-deletion-through-the-workload-cluster.md)).
//!
//! Each look lists the objects and executes the remaining steps; no state is kept between two looks. The end is
//! recorded in an annotation of the Cluster, and then the machines are deleted.

use std::time::Duration;

use api::conditions::Reason;
use api::core::v1beta2::Cluster;
use api::deletion::{Volumes, Wanted};
use api::k8s_openapi::jiff::Timestamp;
use api::kube::ResourceExt;
use api::names::EMPTIED_ANNOTATION;
use operator::patch;

use self::plan::Plan;
use super::{key, of};
use crate::error::Doing;
use crate::summary::some_of;
use crate::{Context, Error, connections};

mod plan;
mod remote;

/// Time until the next look.
pub(super) const AGAIN: Duration = Duration::from_secs(5);

/// Timeouts for the programs in a cluster that is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For an API server that does not answer, from the last answer or from the start of the deletion.
    pub answer: Duration,
    /// For Services and volumes being deleted, from the start of the deletion.
    pub whole: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(120),
            whole: Duration::from_secs(900),
        }
    }
}

/// Next step of the deletion.
pub(super) enum Next {
    /// The machines may be deleted.
    Descend,
    /// The Cluster was changed; the change causes the next look.
    Stored,
    /// Reason and message of the wait.
    Wait(Reason, String),
}

/// End of the release, as in the annotation.
#[derive(Clone, Copy)]
enum End {
    Done,
    Unanswered,
    Late,
}

impl End {
    fn as_str(self) -> &'static str {
        match self {
            End::Done => "done",
            End::Unanswered => "unanswered",
            End::Late => "late",
        }
    }
}

/// Performs the next steps in the workload cluster.
///
/// # Errors
/// When the [`Cluster`] cannot be changed. A silent workload cluster is no error: the deletion waits, and then gives up.
pub(super) async fn run(ctx: &Context, cluster: &Cluster) -> Result<Next, Error> {
    if cluster.annotations().contains_key(EMPTIED_ANNOTATION) {
        return Ok(Next::Descend);
    }
    let wanted = match Wanted::from_cluster(cluster) {
        Ok(wanted) if wanted.is_nothing() => return Ok(Next::Descend),
        Ok(wanted) => wanted,
        Err(message) => return Ok(Next::Wait(Reason::InvalidClusterSpec, message)),
    };
    if !connections::is_reachable(cluster) {
        // No API server exists, or has ever existed.
        return Ok(Next::Descend);
    }
    let health = ctx.remote.health(&key(cluster));
    if !health.connected {
        ctx.remote.track(&key(cluster));
    }
    let seen = match ctx.remote.client(&key(cluster)) {
        Ok(client) => remote::look(&client, wanted).await.map(|it| (client, it)),
        Err(problem) => Err(problem.to_string()),
    };
    let (client, seen) = match seen {
        Ok(seen) => seen,
        // After a restart, the first attempt to connect ends by itself.
        Err(problem) if health.is_connecting() => return Ok(waiting(&problem)),
        Err(problem) => return unanswered(ctx, cluster, health.last_success, &problem).await,
    };
    let plan = plan::plan(&seen, wanted.volumes);
    if plan.is_empty() {
        return end(ctx, cluster, End::Done, None).await;
    }
    if let Err(problem) = remote::apply(&client, &plan.steps).await {
        tracing::debug!("{}: {problem}", of("emptying", cluster));
    }
    if age(ctx, cluster) >= ctx.options.patience.whole {
        return end(ctx, cluster, End::Late, Some(late(&plan, wanted))).await;
    }
    Ok(Next::Wait(
        Reason::WaitingForServicesAndVolumes,
        listed(&plan),
    ))
}

/// Time since the start of the deletion.
fn age(ctx: &Context, cluster: &Cluster) -> Duration {
    let began = cluster.metadata.deletion_timestamp.as_ref();
    since(ctx, began.map_or(Timestamp::MAX, |it| it.0))
}

fn since(ctx: &Context, moment: Timestamp) -> Duration {
    let passed = ctx.now().duration_since(moment);
    Duration::try_from(passed).unwrap_or_default()
}

fn waiting(problem: &str) -> Next {
    let text =
        format!("* the API server of the cluster, to delete its Services and claims: {problem}");
    Next::Wait(Reason::WaitingForWorkloadCluster, text)
}

/// Handles an API server without an answer, or without a usable one.
async fn unanswered(
    ctx: &Context,
    cluster: &Cluster,
    last: Option<Timestamp>,
    problem: &str,
) -> Result<Next, Error> {
    let patience = ctx.options.patience;
    let (age, silent) = (
        age(ctx, cluster),
        last.map_or(Duration::MAX, |it| since(ctx, it)),
    );
    if age.min(silent) < patience.answer && age < patience.whole {
        return Ok(waiting(problem));
    }
    let note = format!(
        "the API server of the cluster does not answer ({problem}), so that its Services and claims cannot be deleted in it. \
         What carries the uid of the cluster is deleted in the cloud; volumes only with `volumes=delete`, since their \
         reclaim policies are not known"
    );
    end(ctx, cluster, End::Unanswered, Some(note)).await
}

fn listed(plan: &Plan) -> String {
    let of = |kind: &str, names: &[String]| {
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        (!names.is_empty()).then(|| format!("* {kind}: {}", some_of(&names)))
    };
    let lines = [
        of("Services", &plan.services),
        of("PersistentVolumeClaims", &plan.claims),
        of("PersistentVolumes", &plan.volumes),
    ];
    lines.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

fn late(plan: &Plan, wanted: Wanted) -> String {
    let stays = match wanted.volumes {
        Volumes::Policy => ". Volumes among them stay",
        Volumes::Keep | Volumes::Delete => "",
    };
    format!(
        "the programs in the cluster have not deleted all of its Services and claims in time. What carries the uid of the \
         cluster is deleted in the cloud{stays}. Left are\n{}",
        listed(plan)
    )
}

/// Records the end in the [`Cluster`]; a `note` is published, too.
async fn end(
    ctx: &Context,
    cluster: &Cluster,
    end: End,
    note: Option<String>,
) -> Result<Next, Error> {
    let mut after = cluster.clone();
    let annotations = after.annotations_mut();
    annotations.insert(EMPTIED_ANNOTATION.to_owned(), end.as_str().to_owned());
    let api = ctx.api::<Cluster>(&cluster.namespace().unwrap_or_default());
    let stored = patch::object(&api, cluster, &after).await;
    stored.doing(|| of("changing", cluster))?;
    if let Some(note) = note {
        let note = api::printable::message(&note);
        let events = &ctx.events;
        events.warning(cluster, "NotEmptied", "Delete", note).await;
    }
    Ok(Next::Stored)
}
