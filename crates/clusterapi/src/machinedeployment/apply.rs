//! Creation, scaling and deletion of the MachineSets of a deployment.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::conditions::Reason;
use api::core::v1beta2::{Machine, MachineDeployment, MachineSet};
use api::kube;
use api::kube::ResourceExt;
use api::kube::api::{DeleteParams, ListParams, ObjectMeta, Preconditions};
use api::names::{CLUSTER_NAME_LABEL, TEMPLATE_HASH_LABEL};
use operator::decode::{self, NotDecoded};
use operator::patch;

use super::in_place::{self, Step};
use super::proportion::{self, Share};
use super::rollout::{self, Bounds};
use super::{Duties, machines_of, of, oldest_first, revision, write};
use crate::error::{Doing, Error, is_absent};
use crate::news::{self, PendingEvent};
use crate::{Context, naming, owners};

/// One step towards the template and replicas of the deployment. Returns the reasons because of which machines are not
/// updated in place, if they should be.
pub(super) async fn run(
    ctx: &Context,
    deployment: &MachineDeployment,
    sets: Vec<Arc<MachineSet>>,
) -> Result<Vec<String>, Error> {
    let now = ctx.now();
    if deployment.spec.paused == Some(true) {
        let current = revision::current(deployment, &sets, now).cloned();
        scale_paused(ctx, deployment, &sets, current).await?;
        return Ok(Vec::new());
    }
    let (sets, current) = match revision::current(deployment, &sets, now).cloned() {
        Some(current) => (sets, current),
        None => {
            // The cache may lack a set of this controller: read live before the creation of another.
            let sets = members_live(ctx, deployment).await?;
            let Some(fresh) = reread(ctx, deployment).await? else {
                return Ok(Vec::new());
            };
            match revision::current(&fresh, &sets, now).cloned() {
                Some(current) => (sets, current),
                None => {
                    let new_set = Arc::new(create(ctx, &fresh, &sets).await?);
                    (sets, new_set)
                }
            }
        }
    };
    let old: Vec<_> = sets
        .into_iter()
        .filter(|set| set.uid() != current.uid())
        .collect();
    let sets: Vec<_> = old.iter().chain([&current]).cloned().collect();
    let machines = machines_of(ctx, &sets);
    let next = in_place::next(ctx, deployment, &current, &machines).await?;
    let way = Way::new(deployment, &current, &old, next.as_ref());
    let mut duties = Duties::default();
    for set in old
        .iter()
        .chain([&current])
        .filter(|set| !set.is_deleting())
    {
        let highest = (set.uid() == current.uid()).then(|| highest_revision(&old));
        duties.note(store(ctx, deployment, set, &way, highest).await);
    }
    let reasons = match &next {
        Some(Step::Roll(reasons) | Step::Replace(_, reasons)) => reasons.clone(),
        _ => Vec::new(),
    };
    duties.note(in_place(ctx, deployment, &machines, next).await);
    clean_up(ctx, deployment, &current, &old, &mut duties).await;
    duties.done().map(|()| reasons)
}

/// How the machines of a deployment come to its template.
struct Way {
    bounds: Bounds,
    /// Changed replicas by set.
    steps: BTreeMap<String, i32>,
    /// Sets of former templates, if the current one takes over their machines.
    givers: Option<Vec<String>>,
    /// True if sets of former templates create no machines.
    keeps_former: bool,
}

impl Way {
    fn new(
        deployment: &MachineDeployment,
        current: &Arc<MachineSet>,
        old: &[Arc<MachineSet>],
        next: Option<&Step>,
    ) -> Self {
        let bounds = rollout::bounds(deployment);
        let rollout = deployment.spec.rollout.as_ref();
        let strategy = rollout.and_then(|rollout| rollout.strategy.as_ref());
        let moves = next.is_some_and(|it| !matches!(it, Step::Finished | Step::Roll(_)));
        let keeps_former = moves || !rollout::is_rolling(strategy);
        let (new, former): (_, Vec<_>) = (view(current), old.iter().map(view).collect());
        let steps = match keeps_former {
            false => rollout::step(bounds, &new, &former),
            true => rollout::on_delete(bounds, &new, &former),
        };
        let there = |set: &&Arc<MachineSet>| !set.is_deleting();
        let names = || old.iter().filter(there).map(|set| set.name_any()).collect();
        Self {
            bounds,
            steps,
            givers: moves.then(names),
            keeps_former,
        }
    }

    /// Same for a paused deployment, whose machines stay as they are.
    fn paused(bounds: Bounds, steps: BTreeMap<String, i32>) -> Self {
        Self {
            bounds,
            steps,
            givers: None,
            keeps_former: false,
        }
    }
}

/// Deletes a machine that cannot be updated in place, or reports that nothing may be done. The current set begins the
/// updates.
async fn in_place(
    ctx: &Context,
    deployment: &MachineDeployment,
    machines: &[Arc<Machine>],
    next: Option<Step>,
) -> Result<(), Error> {
    match next {
        Some(Step::Replace(name, reasons)) => {
            let machine = machines.iter().find(|it| it.name_any() == name);
            let Some(machine) = machine else {
                return Ok(());
            };
            let note = format!("Machine {} is replaced", reasons.join("; "));
            let reason = Reason::InPlaceUpdateFailed.as_str();
            ctx.events.normal(deployment, reason, "Replace", note).await;
            delete_machine(ctx, machine).await
        }
        Some(Step::Refused(reasons)) => Err(Error::NotInPlace(in_place::refusal(&reasons))),
        _ => Ok(()),
    }
}

async fn delete_machine(ctx: &Context, machine: &Machine) -> Result<(), Error> {
    let (namespace, name) = (machine.namespace().unwrap_or_default(), machine.name_any());
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: machine.uid(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    match ctx.api::<Machine>(&namespace).delete(&name, &params).await {
        Err(error) if is_absent(&error) => Ok(()),
        other => other
            .map(drop)
            .doing(|| format!("deleting Machine {namespace}/{name}")),
    }
}

/// Scales a paused deployment: no [`MachineSet`] is created, the rollout stops, and the replicas are distributed over the
/// sets.
async fn scale_paused(
    ctx: &Context,
    deployment: &MachineDeployment,
    sets: &[Arc<MachineSet>],
    current: Option<Arc<MachineSet>>,
) -> Result<(), Error> {
    let bounds = rollout::bounds(deployment);
    let is_current = |set: &Arc<MachineSet>| {
        let current = current.as_ref().and_then(|current| current.uid());
        current.is_some() && set.uid() == current
    };
    let mut newest_first: Vec<_> = sets.iter().rev().filter(|set| !set.is_deleting()).collect();
    newest_first.sort_by_key(|set| !is_current(set));
    let shares: Vec<_> = newest_first.iter().map(|set| share(set)).collect();
    let steps = proportion::spread(bounds, &shares);
    let old: Vec<_> = sets
        .iter()
        .filter(|set| !is_current(set))
        .cloned()
        .collect();
    let mut duties = Duties::default();
    let way = Way::paused(bounds, steps);
    for set in newest_first {
        let highest = is_current(set).then(|| highest_revision(&old));
        duties.note(store(ctx, deployment, set, &way, highest).await);
    }
    duties.done()
}

fn share(set: &MachineSet) -> Share {
    let number = |name: &str| set.annotations().get(name)?.parse().ok();
    Share {
        name: set.name_any(),
        wanted: set.replicas(),
        desired: number(revision::DESIRED_REPLICAS),
        most: number(revision::MAX_REPLICAS),
    }
}

/// [`MachineSet`]s of `deployment`, read live, oldest first.
pub(super) async fn members_live(
    ctx: &Context,
    deployment: &MachineDeployment,
) -> Result<Vec<Arc<MachineSet>>, Error> {
    let namespace = deployment.namespace().unwrap_or_default();
    let ours = format!("{CLUSTER_NAME_LABEL}={}", deployment.spec.cluster_name);
    let sets = ctx.api::<MachineSet>(&namespace);
    let list = decode::list(&sets, &ListParams::default().labels(&ours)).await;
    let list = list.doing(|| of("listing the MachineSets of", deployment))?;
    let ours = |set: &ObjectMeta| owners::is_controlled_by(set, deployment);
    NotDecoded::check::<MachineSet>(&list.undecodable, ours)?;
    let sets = list.objects.into_iter().filter(|set| ours(&set.metadata));
    Ok(oldest_first(sets.map(Arc::new).collect()))
}

/// Deletes `set` of `deployment`; the UID precondition protects a new set with the same name.
pub(super) async fn delete_set(
    ctx: &Context,
    deployment: &MachineDeployment,
    set: &MachineSet,
) -> Result<(), Error> {
    let (namespace, name) = (set.namespace().unwrap_or_default(), set.name_any());
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: set.uid(),
            resource_version: None,
        }),
        ..DeleteParams::background()
    };
    let sets = ctx.api::<MachineSet>(&namespace);
    let deleted = match sets.delete(&name, &params).await {
        Err(error) if is_absent(&error) => return Ok(()),
        other => other
            .map(|_| ())
            .doing(|| format!("deleting MachineSet {namespace}/{name}")),
    };
    let news = PendingEvent::of_deletion("MachineSet", &name, deleted.as_ref().copied());
    news::publish(ctx, deployment, news).await;
    deleted
}

/// Deployment, read live; `None` if gone, being deleted or replaced by one with the same name.
async fn reread(
    ctx: &Context,
    deployment: &MachineDeployment,
) -> Result<Option<MachineDeployment>, Error> {
    let api = ctx.api::<MachineDeployment>(&deployment.namespace().unwrap_or_default());
    let fresh = api
        .get_opt(&deployment.name_any())
        .await
        .doing(|| of("reading", deployment))?;
    Ok(fresh.filter(|fresh| fresh.uid() == deployment.uid() && !fresh.is_deleting()))
}

/// Creates the [`MachineSet`] of the current template, with an event.
async fn create(
    ctx: &Context,
    deployment: &MachineDeployment,
    sets: &[Arc<MachineSet>],
) -> Result<MachineSet, Error> {
    let created = make(ctx, deployment, sets).await;
    let (name, result) = match &created {
        Ok(set) => (set.name_any(), Ok(())),
        Err(error) => (String::new(), Err(error)),
    };
    let news = PendingEvent::of_creation("MachineSet", &name, result);
    news::publish(ctx, deployment, news).await;
    created
}

async fn make(
    ctx: &Context,
    deployment: &MachineDeployment,
    sets: &[Arc<MachineSet>],
) -> Result<MachineSet, Error> {
    let set = revision::new_set(deployment, &naming::suffix(), revision::next_revision(sets));
    let api = ctx.api::<MachineSet>(&deployment.namespace().unwrap_or_default());
    write::apply(&api, &set)
        .await
        .doing(|| of("creating a MachineSet of", deployment))
}

/// Stores the replicas and annotations of one set, and, in the set of the current template (if `highest` is set), the
/// fields that can be changed in place.
async fn store(
    ctx: &Context,
    deployment: &MachineDeployment,
    set: &MachineSet,
    way: &Way,
    highest: Option<i64>,
) -> Result<(), Error> {
    let (mut after, bounds) = (set.clone(), way.bounds);
    if let Some(highest) = highest {
        let hash = set
            .labels()
            .get(TEMPLATE_HASH_LABEL)
            .cloned()
            .unwrap_or_default();
        revision::conform(&mut after, deployment, &hash);
        if revision::revision_of(set) <= highest {
            // A former template is current again: its revision becomes the highest.
            annotate(&mut after, revision::REVISION, highest + 1);
        }
    }
    revision::forbid_creation(&mut after, highest.is_none() && way.keeps_former);
    if let Some(wanted) = way.steps.get(&set.name_any()) {
        after.spec.replicas = Some(*wanted);
    }
    let givers = way.givers.clone().filter(|_| highest.is_some());
    in_place::let_receive(&mut after, givers);
    annotate(
        &mut after,
        revision::DESIRED_REPLICAS,
        i64::from(bounds.replicas),
    );
    annotate(
        &mut after,
        revision::MAX_REPLICAS,
        i64::from(bounds.replicas + bounds.surge),
    );
    let api = ctx.api::<MachineSet>(&set.namespace().unwrap_or_default());
    write::change(&api, deployment, set, &after).await?;
    news::publish(
        ctx,
        deployment,
        PendingEvent::of_scaling(set, after.replicas()),
    )
    .await;
    let revision = after.annotations().get(revision::REVISION).cloned();
    match revision.filter(|_| highest.is_some()) {
        Some(revision) => note(ctx, deployment, &revision).await,
        None => Ok(()),
    }
}

/// Writes the current revision to the deployment, for `kubectl` and users.
async fn note(ctx: &Context, deployment: &MachineDeployment, revision: &str) -> Result<(), Error> {
    let mut after = deployment.clone();
    let annotations = after.metadata.annotations.get_or_insert_default();
    annotations.insert(revision::REVISION.to_owned(), revision.to_owned());
    let api = ctx.api::<MachineDeployment>(&deployment.namespace().unwrap_or_default());
    match patch::object(&api, deployment, &after).await {
        // The cache is outdated; the next reconcile writes the revision.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        other => other.map(|_| ()).doing(|| of("changing", deployment)),
    }
}

/// Deletes old sets without machines once the rollout is complete.
async fn clean_up(
    ctx: &Context,
    deployment: &MachineDeployment,
    current: &MachineSet,
    old: &[Arc<MachineSet>],
    duties: &mut Duties,
) {
    let available = current
        .status
        .as_ref()
        .and_then(|status| status.available_replicas);
    let through = current.replicas() == deployment.replicas()
        && available.unwrap_or(0) >= deployment.replicas()
        && old.iter().all(|set| set.replicas() == 0);
    for set in old.iter().filter(|set| through && is_spent(set)) {
        duties.note(delete_set(ctx, deployment, set).await);
    }
}

fn is_spent(set: &MachineSet) -> bool {
    let there = set.status.as_ref().and_then(|status| status.replicas);
    set.replicas() == 0 && there.unwrap_or(0) == 0 && !set.is_deleting()
}

fn view(set: &Arc<MachineSet>) -> rollout::Set {
    let status = set.status.as_ref();
    let wanted = if set.is_deleting() { 0 } else { set.replicas() };
    rollout::Set {
        name: set.name_any(),
        wanted,
        there: status.and_then(|status| status.replicas).unwrap_or(0),
        available: status
            .and_then(|status| status.available_replicas)
            .unwrap_or(0),
    }
}

fn highest_revision(old: &[Arc<MachineSet>]) -> i64 {
    old.iter()
        .map(|set| revision::revision_of(set))
        .max()
        .unwrap_or(0)
}

fn annotate(set: &mut MachineSet, name: &str, value: i64) {
    let annotations = set.metadata.annotations.get_or_insert_default();
    annotations.insert(name.to_owned(), value.to_string());
}
