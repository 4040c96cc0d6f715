//! Selection of the machines that a set creates and deletes.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use api::conditions::{self, Type};
use api::core::v1beta2::{Bootstrap, ContractReference, DeletionOrder, Machine, MachineSet};
use api::kube::ResourceExt;
use api::names::{
    CLUSTER_NAME_LABEL, DELETE_MACHINE_ANNOTATION, DEPLOYMENT_NAME_LABEL, SET_NAME_LABEL,
};

use crate::inplace::Wanted;
use crate::{MACHINE_FINALIZER, naming, owners};

/// Change of the number of machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// No change.
    Keep,
    /// Number of machines to create.
    Up(usize),
    /// Names of machines to delete.
    Down(Vec<String>),
}

/// Compares the existing [`Machine`]s with the desired number.
///
/// Machines being deleted count, as upstream: replacements are created after the end of a deletion, so that a set
/// never uses more of the cloud than its replicas.
pub(crate) fn plan(wanted: i32, order: DeletionOrder, machines: &[Arc<Machine>]) -> Scale {
    let wanted = usize::try_from(wanted).unwrap_or(0);
    if machines.len() < wanted {
        return Scale::Up(wanted - machines.len());
    }
    let mut candidates: Vec<_> = machines
        .iter()
        .filter(|machine| !machine.is_deleting())
        .collect();
    let surplus = candidates.len().saturating_sub(wanted);
    if surplus == 0 {
        return Scale::Keep;
    }
    candidates.sort_by_key(|machine| (Reverse(eagerness(machine)), rank(machine, order)));
    Scale::Down(
        candidates
            .iter()
            .take(surplus)
            .map(|machine| machine.name_any())
            .collect(),
    )
}

/// Deletion priority of a [`Machine`] (upstream's values: marked 80, being updated 75, unhealthy 50).
pub(crate) fn eagerness(machine: &Machine) -> u8 {
    let failed = |type_| {
        conditions::find(machine.conditions(), type_).is_some_and(|found| found.status == "False")
    };
    let unknown = |type_| {
        conditions::find(machine.conditions(), type_).is_some_and(|found| found.status == "Unknown")
    };
    if machine
        .annotations()
        .contains_key(DELETE_MACHINE_ANNOTATION)
    {
        80
    } else if conditions::is_true(machine.conditions(), Type::Updating) {
        75
    } else if failed(Type::HealthCheckSucceeded)
        || failed(Type::NodeHealthy)
        || unknown(Type::NodeHealthy)
    {
        50
    } else {
        // A machine without a Node runs no workload.
        u8::from(machine.node_name().is_none()) * 50
    }
}

/// [`Machine`] `name` of `set`, with references to the clones of its templates.
pub(crate) fn machine(
    set: &MachineSet,
    name: &str,
    bootstrap: Option<ContractReference>,
    infrastructure: ContractReference,
) -> Machine {
    let mut spec = set.spec.template.spec.clone();
    spec.cluster_name.clone_from(&set.spec.cluster_name);
    spec.infrastructure_ref = infrastructure;
    if bootstrap.is_some() {
        spec.bootstrap = Bootstrap {
            config_ref: bootstrap,
            data_secret_name: None,
        };
    }
    let mut machine = Machine::new(name, spec);
    machine.metadata.namespace = set.namespace();
    machine.metadata.labels = Some(labels(set));
    machine.metadata.annotations = Some(annotations(set));
    machine.metadata.owner_references = Some(vec![owners::controller(set)]);
    machine.metadata.finalizers = Some(vec![MACHINE_FINALIZER.to_owned()]);
    machine
}

/// Labels and annotations of the machines of a set and of their cloned objects.
pub(crate) fn metadata(set: &MachineSet) -> Wanted {
    Wanted {
        labels: labels(set),
        annotations: annotations(set),
    }
}

fn labels(set: &MachineSet) -> BTreeMap<String, String> {
    let template = set.spec.template.metadata.as_ref();
    let mut labels = template
        .and_then(|meta| meta.labels.clone())
        .unwrap_or_default();
    labels.extend(set.spec.selector.match_labels.clone().unwrap_or_default());
    labels.insert(CLUSTER_NAME_LABEL.to_owned(), set.spec.cluster_name.clone());
    labels.insert(SET_NAME_LABEL.to_owned(), label_value(&set.name_any()));
    if let Some(deployment) = set.labels().get(DEPLOYMENT_NAME_LABEL) {
        labels.insert(DEPLOYMENT_NAME_LABEL.to_owned(), deployment.clone());
    }
    labels
}

fn annotations(set: &MachineSet) -> BTreeMap<String, String> {
    let template = set.spec.template.metadata.as_ref();
    template
        .and_then(|meta| meta.annotations.clone())
        .unwrap_or_default()
}

/// Name for a new machine of `set`; `suffix` is the value of `.random`.
pub(crate) fn name(set: &MachineSet, suffix: &str) -> String {
    let template = set
        .spec
        .machine_naming
        .as_ref()
        .and_then(|naming| naming.template.as_deref());
    let Some(template) = template else {
        return naming::with_suffix(&set.name_any(), suffix);
    };
    naming::render(
        template,
        &[
            (".cluster.name", &set.spec.cluster_name),
            (".machineSet.name", &set.name_any()),
            (".random", suffix),
        ],
    )
    .unwrap_or_else(|| naming::with_suffix(&set.name_any(), suffix))
}

/// Label value of at most 63 characters; longer names are truncated (upstream hashes them).
fn label_value(name: &str) -> String {
    naming::shortened(name)
}

fn rank(machine: &Machine, order: DeletionOrder) -> (i64, String) {
    let created = machine
        .creation_timestamp()
        .map_or(0, |time| time.0.as_second());
    let tie = machine.uid().unwrap_or_default();
    match order {
        DeletionOrder::Random => (0, tie),
        DeletionOrder::Newest => (-created, tie),
        DeletionOrder::Oldest => (created, tie),
    }
}

#[cfg(test)]
mod tests;
