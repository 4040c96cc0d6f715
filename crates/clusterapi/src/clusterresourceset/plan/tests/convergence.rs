//! Each resource comes to be applied to each cluster and recorded, also when the controller is cut off between the two, and
//! what is recorded is not applied again.

use std::collections::BTreeMap;

use api::addons::v1beta2::{
    ClusterResourceSetBinding, ClusterResourceSetBindingSpec, Strategy as Mode,
};
use converging::System;
use proptest::prelude::*;
use proptest::strategy::Strategy;

use super::*;
use crate::clusterresourceset::binding::merge;

/// A workload cluster and its binding.
#[derive(Clone, Debug, PartialEq)]
struct Workload {
    binding: Option<ClusterResourceSetBinding>,
    /// Object of each resource: its content, and the number of its creations.
    objects: BTreeMap<String, (u8, usize)>,
    /// Results of attempts without a record so far.
    attempts: BTreeMap<String, bool>,
    /// How many attempts are still rejected.
    rejections: usize,
}

#[derive(Clone, Debug, PartialEq)]
struct Set {
    mode: Mode,
    /// The content of each resource.
    resources: BTreeMap<String, u8>,
    workloads: Vec<Workload>,
}

#[derive(Debug)]
enum Step {
    Apply(usize, String),
    Record(usize, Vec<String>),
}

fn source(name: &str, content: u8) -> Source {
    Source {
        resource: reference(name),
        hash: Some(format!("sha256:{content}")),
        manifests: Ok(Vec::new()),
    }
}

fn new_binding() -> ClusterResourceSetBinding {
    let spec = ClusterResourceSetBindingSpec {
        cluster_name: "demo".to_owned(),
        bindings: None,
    };
    ClusterResourceSetBinding::new("demo", spec)
}

impl System for Set {
    type Step = Step;
    type State = Self;

    /// The reconcile, one cluster after the other.
    fn plan(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (at, workload) in self.workloads.iter().enumerate() {
            let bound = workload
                .binding
                .as_ref()
                .map_or(&[][..], |it| it.of_set("set"));
            let due = self.resources.iter().filter(|(name, content)| {
                let source = source(name, **content);
                is_due(bound, &source.resource, self.mode, source.hash.as_deref())
            });
            let due: Vec<String> = due.map(|(name, _)| name.clone()).collect();
            if !due.is_empty() {
                steps.extend(due.iter().map(|name| Step::Apply(at, name.clone())));
                steps.push(Step::Record(at, due));
            }
        }
        steps
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Apply(at, name) => {
                let (content, workload) = (self.resources[&name], &mut self.workloads[at]);
                let is_rejected = workload.rejections > 0;
                workload.rejections -= usize::from(is_rejected);
                workload.attempts.insert(name.clone(), !is_rejected);
                if is_rejected {
                    return;
                }
                match workload.objects.get_mut(&name) {
                    None => drop(workload.objects.insert(name, (content, 1))),
                    // An existing object is left unchanged.
                    Some(_) if self.mode == Mode::ApplyOnce => {}
                    Some(known) => known.0 = content,
                }
            }
            Step::Record(at, names) => {
                let workload = &mut self.workloads[at];
                let results = names.iter().map(|name| {
                    let applied = workload.attempts.remove(name).unwrap();
                    result(
                        &source(name, self.resources[name]),
                        applied,
                        Timestamp::UNIX_EPOCH,
                    )
                });
                let results = results.collect();
                merge(
                    workload.binding.get_or_insert_with(new_binding),
                    "set",
                    results,
                );
            }
        }
    }

    fn state(&self) -> Self {
        let mut state = self.clone();
        // An interrupted controller does not know its own attempts.
        state
            .workloads
            .iter_mut()
            .for_each(|it| it.attempts.clear());
        state
    }
}

fn resources() -> impl Strategy<Value = BTreeMap<String, u8>> {
    proptest::collection::btree_map("[a-d]", 0..3u8, 1..4)
}

prop_compose! {
    /// New cluster, or one with former resources of this set and of another.
    fn workload()(
        of_other in any::<bool>(),
        known in proptest::collection::btree_map("[a-d]", (0..3u8, any::<bool>(), any::<bool>()), 0..3),
        rejections in 0..3usize,
    ) -> Workload {
        let mut binding = (of_other || !known.is_empty()).then(new_binding);
        let mut objects = BTreeMap::new();
        for (name, (content, applied, has_object)) in known {
            let entry = result(&source(&name, content), applied, Timestamp::UNIX_EPOCH);
            merge(binding.as_mut().unwrap(), "set", vec![entry]);
            if applied || has_object {
                objects.insert(name, (content, 1));
            }
        }
        if of_other {
            let entry = result(&source("a", 7), true, Timestamp::UNIX_EPOCH);
            merge(binding.as_mut().unwrap(), "other", vec![entry]);
        }
        Workload { binding, objects, attempts: BTreeMap::new(), rejections }
    }
}

fn check_end(before: &Set, end: &Set) {
    for (was, workload) in before.workloads.iter().zip(&end.workloads) {
        let binding = workload.binding.as_ref().unwrap();
        let other = |it: &Workload| it.binding.as_ref().map(|it| it.of_set("other").to_vec());
        assert_eq!(binding.of_set("other"), other(was).unwrap_or_default());
        for (name, content) in &end.resources {
            let entries = binding.of_set("set").iter().filter(|it| it.name == *name);
            let entries: Vec<_> = entries.collect();
            assert!(
                matches!(entries[..], [entry] if entry.applied),
                "{entries:?}"
            );
            let (known, created) = workload.objects[name];
            assert_eq!(created, 1);
            assert!(known == *content || end.mode == Mode::ApplyOnce, "{name}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn from_any_state_and_each_cut_each_resource_comes_to_be_applied_and_recorded(
        mode in prop_oneof![Just(Mode::ApplyOnce), Just(Mode::Reconcile)],
        (first, second) in (resources(), resources()),
        workloads in proptest::collection::vec(workload(), 1..4),
    ) {
        let set = Set { mode, resources: first, workloads };
        let mut end = converging::check(&set);
        check_end(&set, &end);
        // The set has other resources, and others have another content.
        end.resources = second;
        let before = end.clone();
        check_end(&before, &converging::check(&before));
    }
}
