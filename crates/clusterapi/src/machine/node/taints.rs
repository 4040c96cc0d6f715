//! Taints of a machine on its Node.
//!
//! A taint with the propagation `Always` is kept as long as the machine has it. An annotation of the Node names the
//! taint, so that it can be removed again. A taint with the propagation `OnInitialization` is set with the first
//! change of a Node, one without such an annotation, and then left alone. All other taints belong to others.

use std::collections::BTreeSet;

use api::core::v1beta2::{Machine, MachineTaint, TaintEffect, TaintPropagation};
use api::k8s_openapi::api::core::v1::{Node, Taint};
use api::kube::ResourceExt;

/// Taint of workers from their registration by kubeadm until labels and taints are synchronized.
pub(super) const UNINITIALIZED: &str = "node.cluster.x-k8s.io/uninitialized";
/// Annotation: the kept taints of the Node, as `key:effect`, so that they can be removed again.
pub(super) const TAINTS_FROM_MACHINE: &str = "cluster.x-k8s.io/taints-from-machine";

/// Value of [`TAINTS_FROM_MACHINE`] for a [`Machine`].
pub(super) fn recorded(machine: &Machine) -> String {
    let always = of(machine, TaintPropagation::Always);
    let names: BTreeSet<String> = always
        .map(|taint| name(&taint.key, effect(taint)))
        .collect();
    names.into_iter().collect::<Vec<_>>().join(",")
}

/// [`Taint`]s of `node` after a synchronization.
pub(super) fn synced(node: &Node, machine: &Machine) -> Vec<Taint> {
    let before = node.annotations().get(TAINTS_FROM_MACHINE);
    let kept: BTreeSet<&str> = before
        .map(|names| names.split(',').collect())
        .unwrap_or_default();
    let mut taints = existing(node);
    taints.retain(|taint| {
        let lost = kept.contains(name(&taint.key, &taint.effect).as_str())
            && !wanted(machine).any(|it| is(taint, it));
        taint.key != UNINITIALIZED && !lost
    });
    for wanted in of(machine, TaintPropagation::Always) {
        match taints.iter_mut().find(|taint| is(taint, wanted)) {
            Some(taint) => taint.value.clone_from(&wanted.value),
            None => taints.push(taint(wanted)),
        }
    }
    if before.is_none() {
        for wanted in of(machine, TaintPropagation::OnInitialization) {
            if !taints.iter().any(|taint| is(taint, wanted)) {
                taints.push(taint(wanted));
            }
        }
    }
    taints
}

/// Existing [`Taint`]s of `node`.
pub(super) fn existing(node: &Node) -> Vec<Taint> {
    let spec = node.spec.as_ref();
    spec.and_then(|spec| spec.taints.clone())
        .unwrap_or_default()
}

fn wanted(machine: &Machine) -> impl Iterator<Item = &MachineTaint> {
    machine.spec.taints.iter().flatten()
}

fn of(machine: &Machine, propagation: TaintPropagation) -> impl Iterator<Item = &MachineTaint> {
    wanted(machine).filter(move |taint| taint.propagation == propagation)
}

/// True for the same identity: a Node has one [`Taint`] for each key and effect.
fn is(taint: &Taint, wanted: &MachineTaint) -> bool {
    taint.key == wanted.key && taint.effect == effect(wanted)
}

fn taint(of: &MachineTaint) -> Taint {
    Taint {
        key: of.key.clone(),
        value: of.value.clone(),
        effect: effect(of).to_owned(),
        time_added: None,
    }
}

fn name(key: &str, effect: &str) -> String {
    format!("{key}:{effect}")
}

fn effect(taint: &MachineTaint) -> &'static str {
    match taint.effect {
        TaintEffect::NoSchedule => "NoSchedule",
        TaintEffect::PreferNoSchedule => "PreferNoSchedule",
        TaintEffect::NoExecute => "NoExecute",
    }
}

#[cfg(test)]
mod tests;
