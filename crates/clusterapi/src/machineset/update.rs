//! Machines that come from the sets of former templates, and are updated in place.

use std::sync::Arc;

use api::core::v1beta2::{Machine, MachineDeployment, MachineSet};
use api::kube::ResourceExt;
use api::kube::api::ListParams;
use api::names::CLUSTER_NAME_LABEL;
use operator::decode;

use super::{Runner, of, scale};
use crate::error::Doing;
use crate::inplace::MACHINE_SET_METADATA;
use crate::machinedeployment::in_place::{self, Step};
use crate::machinedeployment::revision::{self, DISABLE_CREATE};
use crate::machinedeployment::{self, machines_of};
use crate::update::{self, Target};
use crate::{Context, Error, owners};

/// Begins the update of the next machine of a former set, if `set` takes over machines and no preflight check has
/// failed.
pub(super) async fn run(
    runner: &Runner,
    set: &MachineSet,
    problems: &[String],
) -> Result<(), Error> {
    if !in_place::receives(set) || !problems.is_empty() {
        return Ok(());
    }
    let Some(deployment) = deployment_of(runner, set) else {
        return Ok(());
    };
    let sets = machinedeployment::members(runner, &deployment);
    let current = revision::current(&deployment, &sets, runner.now());
    if current.is_none_or(|current| current.uid() != set.uid()) {
        return Ok(());
    }
    let cached = machines_of(runner, &sets);
    let next = in_place::next(runner, &deployment, set, &cached).await?;
    if !matches!(next, Some(Step::Begin(_))) {
        return Ok(());
    }
    // The cache may not have the last update yet: read live before the next one begins.
    let live = live(runner, set, &sets).await?;
    let Some(Step::Begin(name)) = in_place::next(runner, &deployment, set, &live).await? else {
        return Ok(());
    };
    match live.iter().find(|machine| machine.name_any() == name) {
        Some(machine) if is_given(machine, &sets) => begin(runner, set, machine).await,
        _ => Ok(()),
    }
}

fn deployment_of(ctx: &Context, set: &MachineSet) -> Option<Arc<MachineDeployment>> {
    let owner = owners::controller_of(&set.metadata).filter(|it| it.kind == "MachineDeployment")?;
    let namespace = set.namespace().unwrap_or_default();
    ctx.machinedeployments.get(&namespace, &owner.name)
}

/// True if the set of a machine does not create another one in its place.
fn is_given(machine: &Machine, sets: &[Arc<MachineSet>]) -> bool {
    let mut givers = sets.iter().filter(|set| {
        let disabled = set.annotations().get(DISABLE_CREATE);
        disabled.is_some_and(|value| value == "true")
    });
    givers.any(|set| owners::is_controlled_by(&machine.metadata, set.as_ref()))
}

async fn begin(ctx: &Context, set: &MachineSet, machine: &Machine) -> Result<(), Error> {
    let target = Target {
        template: &set.spec.template.spec,
        owner: owners::controller(set),
        metadata: scale::metadata(set),
        manager: &MACHINE_SET_METADATA,
    };
    update::begin(ctx, machine, &target).await
}

/// [`Machine`]s of all `sets`, read live.
async fn live(
    ctx: &Context,
    set: &MachineSet,
    sets: &[Arc<MachineSet>],
) -> Result<Vec<Arc<Machine>>, Error> {
    let ours = format!("{CLUSTER_NAME_LABEL}={}", set.spec.cluster_name);
    let machines = ctx.api::<Machine>(&set.namespace().unwrap_or_default());
    let list = decode::list(&machines, &ListParams::default().labels(&ours)).await;
    let list = list.doing(|| of("listing the Machines of", set))?;
    let is_ours = |machine: &Machine| {
        let mut sets = sets.iter();
        sets.any(|set| owners::is_controlled_by(&machine.metadata, set.as_ref()))
    };
    decode::NotDecoded::check::<Machine>(&list.undecodable, |metadata| {
        let mut sets = sets.iter();
        sets.any(|set| owners::is_controlled_by(metadata, set.as_ref()))
    })?;
    Ok(list
        .objects
        .into_iter()
        .filter(is_ours)
        .map(Arc::new)
        .collect())
}
