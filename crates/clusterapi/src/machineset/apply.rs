//! Creation and deletion of machines.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::core::v1beta2::{ContractReference, Machine, MachineSet};
use api::kube;
use api::kube::ResourceExt;
use api::kube::api::{
    DeleteParams, DynamicObject, ListParams, ObjectMeta, Patch, PatchParams, Preconditions,
};
use api::names::{CLUSTER_NAME_LABEL, SET_NAME_LABEL};
use futures::{StreamExt, TryStreamExt, stream};
use operator::decode::{self, NotDecoded};
use serde_json::json;
use tracing::info;

use super::inplace;
use super::scale::{self, Scale};
use super::{Duties, Runner, of};
use crate::error::{Doing, Error, is_absent};
use crate::external::CloneRequest;
use crate::inplace::MACHINE_SET_METADATA;
use crate::machinedeployment::in_place;
use crate::machinedeployment::revision::DISABLE_CREATE;
use crate::news::{self, PendingEvent};
use crate::{Context, naming, owners, selector};

/// Maximum number of concurrent creations of one set.
const AT_A_TIME: usize = 8;
/// Adopts machines with a matching selector and without a controller. A failure does not stop the others.
pub(super) async fn adopt(ctx: &Context, set: &MachineSet) -> Result<(), Error> {
    let namespace = set.namespace().unwrap_or_default();
    let orphans = ctx
        .machines
        .in_cluster(&namespace, &set.spec.cluster_name, |machine| {
            owners::controller_of(&machine.metadata).is_none()
                && !machine.is_deleting()
                && selector::matches(&set.spec.selector, machine.labels())
        });
    let mut duties = Duties::default();
    for orphan in orphans {
        duties.note(adopt_one(ctx, set, &orphan).await);
    }
    duties.done()
}

async fn adopt_one(ctx: &Context, set: &MachineSet, orphan: &Machine) -> Result<(), Error> {
    let namespace = set.namespace().unwrap_or_default();
    let mut metadata = orphan.metadata.clone();
    // Without a controller, the Cluster owns the machine; the set replaces the Cluster.
    if let Some(known) = metadata.owner_references.as_mut() {
        known.retain(|owner| owner.kind != "Cluster");
    }
    owners::ensure(&mut metadata, owners::controller(set));
    let patch = json!({"metadata": {
        "ownerReferences": metadata.owner_references,
        "resourceVersion": orphan.resource_version(),
        "labels": { SET_NAME_LABEL: naming::shortened(&set.name_any()) },
    }});
    let (machines, params) = (ctx.api::<Machine>(&namespace), PatchParams::default());
    machines
        .patch(&orphan.name_any(), &params, &Patch::Merge(&patch))
        .await
        .map(drop)
        .doing(|| format!("adopting Machine {namespace}/{}", orphan.name_any()))
}

/// Creates or deletes [`Machine`]s until their number matches the replicas. Leftovers without a Machine are deleted in
/// any case.
pub(super) async fn scale(
    runner: &Runner,
    set: &MachineSet,
    machines: &[Arc<Machine>],
    problems: &[String],
    duties: &mut Duties,
) -> Result<(), Error> {
    let order = |set: &MachineSet| {
        set.spec
            .deletion
            .as_ref()
            .and_then(|deletion| deletion.order)
            .unwrap_or_default()
    };
    let plan = scale::plan(set.replicas(), order(set), machines);
    if plan == Scale::Keep && runner.swept.get(set).is_some() {
        return Ok(());
    }
    // The cache may not contain the last writes of this controller: read live before a change.
    let Some(fresh) = reread(runner, set).await? else {
        return Ok(());
    };
    let there = members_live(runner, &fresh).await?;
    let plan = scale::plan(fresh.replicas(), order(&fresh), &there);
    let disabled = fresh.annotations().get(DISABLE_CREATE);
    let blocked = !problems.is_empty() || disabled.is_some_and(|value| value == "true");
    match plan {
        Scale::Up(missing) if !blocked => {
            let leftovers = leftovers(runner, &fresh, &there).await?;
            let names = leftovers.names.iter().cloned();
            let names = names.chain(std::iter::repeat_with(|| {
                scale::name(&fresh, &naming::suffix())
            }));
            let names: BTreeSet<_> = names.take(missing).collect();
            leftovers.delete_except(runner, &fresh, &names).await?;
            stream::iter(names)
                .map(|name| create(runner, &fresh, name))
                .buffer_unordered(AT_A_TIME)
                .try_collect::<()>()
                .await?;
        }
        Scale::Up(_) => {}
        // A machine has come from a former set, and the replicas follow.
        Scale::Down(_) if in_place::receives(&fresh) => {}
        Scale::Down(names) => {
            let swept = duties.note(sweep(runner, &fresh, &there).await);
            let surplus = |machine: &&Arc<Machine>| names.contains(&machine.name_any());
            let mut deleted = Duties::default();
            for machine in there.iter().filter(surplus) {
                deleted.note(delete_machine(runner, &fresh, machine).await);
            }
            deleted.done()?;
            if swept.is_none() {
                return Ok(());
            }
        }
        Scale::Keep => {
            if duties.note(sweep(runner, &fresh, &there).await).is_none() {
                return Ok(());
            }
        }
    }
    runner.swept.insert(set, ());
    Ok(())
}

/// [`Machine`]s controlled by `set`, read live.
pub(super) async fn members_live(
    ctx: &Context,
    set: &MachineSet,
) -> Result<Vec<Arc<Machine>>, Error> {
    let namespace = set.namespace().unwrap_or_default();
    let ours = format!("{CLUSTER_NAME_LABEL}={}", set.spec.cluster_name);
    let machines = ctx.api::<Machine>(&namespace);
    let list = decode::list(&machines, &ListParams::default().labels(&ours)).await;
    let list = list.doing(|| of("listing the Machines of", set))?;
    let ours = |machine: &ObjectMeta| owners::is_controlled_by(machine, set);
    NotDecoded::check::<Machine>(&list.undecodable, ours)?;
    let machines = list.objects.into_iter();
    let machines = machines.filter(|machine| ours(&machine.metadata));
    Ok(machines.map(Arc::new).collect())
}

/// Deletes `machine` of `set`; the UID precondition protects a new [`Machine`] with the same name.
pub(super) async fn delete_machine(
    ctx: &Context,
    set: &MachineSet,
    machine: &Machine,
) -> Result<(), Error> {
    let (namespace, name) = (machine.namespace().unwrap_or_default(), machine.name_any());
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: machine.uid(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    let deleted = match ctx.api::<Machine>(&namespace).delete(&name, &params).await {
        Err(error) if is_absent(&error) => return Ok(()),
        other => other
            .map(|_| ())
            .doing(|| format!("deleting Machine {namespace}/{name}")),
    };
    let news = PendingEvent::of_deletion("Machine", &name, deleted.as_ref().copied());
    news::publish(ctx, set, news).await;
    deleted
}

/// Deletes clones of an interrupted reconcile without a [`Machine`].
pub(super) async fn sweep(
    ctx: &Context,
    set: &MachineSet,
    machines: &[Arc<Machine>],
) -> Result<(), Error> {
    let leftovers = leftovers(ctx, set, machines).await?;
    leftovers.delete_except(ctx, set, &BTreeSet::new()).await
}

/// Set, read live; `None` if gone, being deleted or replaced by one with the same name.
async fn reread(ctx: &Context, set: &MachineSet) -> Result<Option<MachineSet>, Error> {
    let sets = ctx.api::<MachineSet>(&set.namespace().unwrap_or_default());
    let fresh = sets
        .get_opt(&set.name_any())
        .await
        .doing(|| of("reading", set))?;
    Ok(fresh.filter(|fresh| fresh.uid() == set.uid() && !fresh.is_deleting()))
}

/// Bootstrap configs and infrastructure of the set that no Machine refers to.
struct Leftovers {
    names: BTreeSet<String>,
    objects: Vec<ContractReference>,
}

impl Leftovers {
    async fn delete_except(
        &self,
        ctx: &Context,
        set: &MachineSet,
        keep: &BTreeSet<String>,
    ) -> Result<(), Error> {
        let namespace = set.namespace().unwrap_or_default();
        for object in self
            .objects
            .iter()
            .filter(|object| !keep.contains(&object.name))
        {
            info!(
                kind = object.kind,
                name = object.name,
                "deleting what no Machine refers to"
            );
            ctx.external.delete(object, &namespace).await?;
        }
        Ok(())
    }
}

async fn leftovers(
    ctx: &Context,
    set: &MachineSet,
    machines: &[Arc<Machine>],
) -> Result<Leftovers, Error> {
    let mut left = Leftovers {
        names: BTreeSet::new(),
        objects: Vec::new(),
    };
    let spec = &set.spec.template.spec;
    let namespace = set.namespace().unwrap_or_default();
    for template in spec
        .bootstrap
        .config_ref
        .iter()
        .chain([&spec.infrastructure_ref])
    {
        let Some(kind) = template.kind.strip_suffix("Template") else {
            continue;
        };
        let cluster = &set.spec.cluster_name;
        let all = ctx
            .external
            .list_live(&template.api_group, kind, &namespace, cluster)
            .await?;
        for object in all
            .iter()
            .filter(|object| is_leftover(object, set, machines))
        {
            let name = object.name_any();
            left.names.insert(name.clone());
            left.objects
                .push(ContractReference::new(&template.api_group, kind, &name));
        }
    }
    Ok(left)
}

fn is_leftover(object: &DynamicObject, set: &MachineSet, machines: &[Arc<Machine>]) -> bool {
    owners::is_controlled_by(&object.metadata, set)
        && object.metadata.deletion_timestamp.is_none()
        && !machines
            .iter()
            .any(|machine| machine.name_any() == object.name_any())
}

/// Creates the machine `name`, with an event.
async fn create(ctx: &Context, set: &MachineSet, name: String) -> Result<(), Error> {
    let created = make(ctx, set, name.clone()).await;
    let news = PendingEvent::of_creation("Machine", &name, created.as_ref().copied());
    news::publish(ctx, set, news).await;
    created
}

/// Creates the machine `name`; any of the steps may already be done.
async fn make(ctx: &Context, set: &MachineSet, name: String) -> Result<(), Error> {
    let namespace = set.namespace().unwrap_or_default();
    let request = |template| CloneRequest {
        template,
        namespace: &namespace,
        name: &name,
        cluster_name: &set.spec.cluster_name,
        owner: Some(owners::controller(set)),
        metadata: scale::metadata(set),
        manager: &MACHINE_SET_METADATA,
    };
    let spec = &set.spec.template.spec;
    let bootstrap = match &spec.bootstrap.config_ref {
        Some(template) => Some(ctx.external.clone_template(&request(template)).await?),
        None => None,
    };
    let infrastructure = match ctx
        .external
        .clone_template(&request(&spec.infrastructure_ref))
        .await
    {
        Ok(reference) => reference,
        Err(error) => {
            undo(ctx, &namespace, bootstrap.iter()).await;
            return Err(error.into());
        }
    };
    let machine = scale::machine(set, &name, bootstrap.clone(), infrastructure.clone());
    match inplace::apply(&ctx.api::<Machine>(&namespace), &machine).await {
        Ok(_) => Ok(()),
        Err(source) => {
            // The request was rejected, as opposed to a lost response: nothing else uses the clones.
            if matches!(source, kube::Error::Api(_)) {
                undo(ctx, &namespace, bootstrap.iter().chain([&infrastructure])).await;
            }
            Err(source).doing(|| format!("creating Machine {namespace}/{name}"))
        }
    }
}

async fn undo(ctx: &Context, namespace: &str, objects: impl Iterator<Item = &ContractReference>) {
    for object in objects {
        // After a failure here, the next reconcile deletes the clones as leftovers.
        if let Err(error) = ctx.external.delete(object, namespace).await {
            tracing::warn!(
                kind = object.kind,
                name = object.name,
                "cannot be deleted after a failed creation: {error}"
            );
        }
    }
}
