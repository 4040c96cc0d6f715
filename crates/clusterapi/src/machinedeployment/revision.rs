//! Revisions of a deployment: the MachineSet of the current template, and the content of a new one.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use api::core::v1beta2::{
    MachineDeployment, MachineSet, MachineSetSpec, MachineSpec, MachineTemplate,
};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, Time};
use api::k8s_openapi::jiff::Timestamp;
use api::kube::ResourceExt;
use api::names::{
    CLUSTER_NAME_LABEL, DEPLOYMENT_NAME_LABEL, RECEIVE_MACHINES_ANNOTATION, TEMPLATE_HASH_LABEL,
};

use crate::{MACHINE_SET_FINALIZER, naming, owners};

/// Annotation: no machine is created while `true`. The Go deployment controller writes the annotation into every set,
/// as `false` where machines may be created.
pub(crate) const DISABLE_CREATE: &str = "cluster.x-k8s.io/disable-machine-create";

pub(crate) use api::names::REVISION_ANNOTATION as REVISION;

/// Annotation: replicas of the deployment at the last scaling of the MachineSet.
pub(crate) const DESIRED_REPLICAS: &str = "machinedeployment.clusters.x-k8s.io/desired-replicas";
/// Annotation: replicas plus surge at the last scaling of the MachineSet.
pub(crate) const MAX_REPLICAS: &str = "machinedeployment.clusters.x-k8s.io/max-replicas";
/// Annotation of kubectl, not copied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// True if machines of both specs are equal, except for fields that can be changed in place: labels, annotations,
/// timeouts, gates, taints.
pub(crate) fn same_machines(a: &MachineSpec, b: &MachineSpec) -> bool {
    differences(a, b).is_empty()
}

/// The differences between machines of `have` and `want`, one line each, for messages.
pub(crate) fn differences(have: &MachineSpec, want: &MachineSpec) -> Vec<String> {
    let mut lines = Vec::new();
    let mut compare = |what: &str, have: Option<&str>, want: Option<&str>| {
        if have != want {
            let word = |value: Option<&str>| value.unwrap_or("none").to_owned();
            lines.push(format!("{what} {}, {} required", word(have), word(want)));
        }
    };
    compare("Version", have.version.as_deref(), want.version.as_deref());
    compare(
        "Failure domain",
        have.failure_domain.as_deref(),
        want.failure_domain.as_deref(),
    );
    let template = |spec: &MachineSpec| {
        let config = spec.bootstrap.config_ref.as_ref();
        config.map(|config| format!("{} {}", config.kind, config.name))
    };
    compare(
        "Bootstrap template",
        template(have).as_deref(),
        template(want).as_deref(),
    );
    if have.bootstrap.config_ref.is_none() && want.bootstrap.config_ref.is_none() {
        let secret = |spec: &MachineSpec| spec.bootstrap.data_secret_name.clone();
        compare(
            "Bootstrap secret",
            secret(have).as_deref(),
            secret(want).as_deref(),
        );
    }
    let infra = |spec: &MachineSpec| {
        format!(
            "{} {}",
            spec.infrastructure_ref.kind, spec.infrastructure_ref.name
        )
    };
    compare(
        "Infrastructure template",
        Some(&infra(have)),
        Some(&infra(want)),
    );
    lines
}

/// [`MachineSet`] among `sets` with the template of the deployment; of several, the one with the most replicas, then the
/// oldest. Sets from before a passed `rollout.after` are outdated.
pub(crate) fn current<'a>(
    deployment: &MachineDeployment,
    sets: &'a [Arc<MachineSet>],
    now: Timestamp,
) -> Option<&'a Arc<MachineSet>> {
    let after = deployment
        .spec
        .rollout
        .as_ref()
        .and_then(|rollout| rollout.after.as_ref());
    let outdated = |set: &MachineSet| match after {
        Some(Time(after)) if *after <= now => set
            .creation_timestamp()
            .is_some_and(|Time(created)| created < *after),
        _ => false,
    };
    sets.iter()
        .filter(|set| !set.is_deleting() && !outdated(set))
        .filter(|set| same_machines(&set.spec.template.spec, &deployment.spec.template.spec))
        .min_by_key(|set| {
            (
                Reverse(set.replicas()),
                set.creation_timestamp().map(|t| t.0),
            )
        })
}

/// Time until `rollout.after`; `None` if unset or passed.
pub(crate) fn due_in(
    deployment: &MachineDeployment,
    now: Timestamp,
) -> Option<std::time::Duration> {
    let after = deployment.spec.rollout.as_ref()?.after.as_ref()?.0;
    std::time::Duration::try_from(after.duration_since(now))
        .ok()
        .filter(|left| !left.is_zero())
}

/// Revision of a new [`MachineSet`] beside `sets`: one more than the highest.
pub(crate) fn next_revision(sets: &[Arc<MachineSet>]) -> i64 {
    sets.iter().map(|set| revision_of(set)).max().unwrap_or(0) + 1
}

/// Revision of a [`MachineSet`]; 0 without the annotation.
pub(crate) fn revision_of(set: &MachineSet) -> i64 {
    set.annotations()
        .get(REVISION)
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
}

/// New [`MachineSet`] for the template of the deployment. `suffix` is part of the name, and also the hash. The replicas
/// are 0: the rolling update scales the set.
pub(crate) fn new_set(deployment: &MachineDeployment, suffix: &str, revision: i64) -> MachineSet {
    let name = naming::with_suffix(&deployment.name_any(), suffix);
    let mut set = MachineSet::new(&name, MachineSetSpec::default());
    set.metadata = ObjectMeta {
        namespace: deployment.namespace(),
        owner_references: Some(vec![owners::controller(deployment)]),
        finalizers: Some(vec![MACHINE_SET_FINALIZER.to_owned()]),
        ..set.metadata
    };
    set.spec.replicas = Some(0);
    set.spec.selector = selector(deployment, suffix);
    conform(&mut set, deployment, suffix);
    let annotations = set.metadata.annotations.get_or_insert_default();
    annotations.insert(REVISION.to_owned(), revision.to_string());
    set
}

/// Copies the fields of the deployment that can be changed in place to `set`.
pub(crate) fn conform(set: &mut MachineSet, deployment: &MachineDeployment, hash: &str) {
    let spec = &deployment.spec;
    set.spec.cluster_name.clone_from(&spec.cluster_name);
    set.spec.deletion.clone_from(&spec.deletion);
    set.spec.machine_naming.clone_from(&spec.machine_naming);
    // `same_machines` holds, so the template differs only in fields that can be changed in place.
    let mut template: MachineTemplate = spec.template.clone();
    let labels = template
        .metadata
        .get_or_insert_default()
        .labels
        .get_or_insert_default();
    labels.extend(labels_of_deployment(deployment, hash));
    set.spec.template = template.clone();
    let labels = set.metadata.labels.get_or_insert_default();
    labels.extend(
        template
            .metadata
            .and_then(|metadata| metadata.labels)
            .unwrap_or_default(),
    );
    let wanted = deployment.annotations().iter();
    let wanted = wanted.filter(|(name, _)| *name != LAST_APPLIED && !is_bookkeeping(name));
    let annotations = set.metadata.annotations.get_or_insert_default();
    annotations.extend(wanted.map(|(name, value)| (name.clone(), value.clone())));
    forbid_creation(set, false);
}

/// Sets the annotation [`DISABLE_CREATE`] of the Go controller. A former set of a deployment with the strategy
/// OnDelete must not create machines: it would replace a deleted machine before the deployment can do so with the
/// current template.
pub(crate) fn forbid_creation(set: &mut MachineSet, is_forbidden: bool) {
    let annotations = set.metadata.annotations.get_or_insert_default();
    if is_forbidden {
        annotations.insert(DISABLE_CREATE.to_owned(), "true".to_owned());
    } else if let Some(disabled) = annotations.get_mut(DISABLE_CREATE) {
        "false".clone_into(disabled);
    }
}

/// True if a [`MachineSet`] belongs to the deployment: controlled by the deployment, or without a controller and matched
/// by the selector.
pub(crate) fn belongs(deployment: &MachineDeployment, set: &MachineSet) -> bool {
    match owners::controller_of(&set.metadata) {
        Some(owner) => Some(&owner.uid) == deployment.metadata.uid.as_ref(),
        None => crate::selector::matches(&deployment.spec.selector, set.labels()),
    }
}

fn selector(deployment: &MachineDeployment, hash: &str) -> LabelSelector {
    let mut selector = deployment.spec.selector.clone();
    let labels = selector.match_labels.get_or_insert_default();
    labels.insert(TEMPLATE_HASH_LABEL.to_owned(), hash.to_owned());
    selector
}

fn labels_of_deployment(deployment: &MachineDeployment, hash: &str) -> BTreeMap<String, String> {
    let entry = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    BTreeMap::from([
        entry(CLUSTER_NAME_LABEL, &deployment.spec.cluster_name),
        entry(DEPLOYMENT_NAME_LABEL, &deployment.name_any()),
        entry(TEMPLATE_HASH_LABEL, hash),
    ])
}

/// True if the annotation comes from the deployment of a set.
pub(crate) fn is_given(deployment: &MachineDeployment, annotation: &str) -> bool {
    let copied = annotation != LAST_APPLIED && !is_bookkeeping(annotation);
    let bookkeeping = [
        REVISION,
        DESIRED_REPLICAS,
        MAX_REPLICAS,
        DISABLE_CREATE,
        RECEIVE_MACHINES_ANNOTATION,
    ];
    bookkeeping.contains(&annotation) || copied && deployment.annotations().contains_key(annotation)
}

fn is_bookkeeping(annotation: &str) -> bool {
    [
        REVISION,
        DESIRED_REPLICAS,
        MAX_REPLICAS,
        api::names::PAUSED_ANNOTATION,
    ]
    .contains(&annotation)
}

#[cfg(test)]
mod tests;
