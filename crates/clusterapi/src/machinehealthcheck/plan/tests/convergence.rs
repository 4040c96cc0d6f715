//! Unhealthy machines come to be replaced as far as the limit allows, also when the controller is cut off between the status
//! of any two machines, and none that is healthy is marked.

use std::sync::Arc;

use api::conditions;
use api::core::v1beta2::Machine;
use api::k8s_openapi::api::core::v1::Node;
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use converging::System;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::*;
use crate::machinehealthcheck::remediate::{after, by_owner, healthy, unhealthy};
use crate::machinehealthcheck::verdict::Seen;

/// A Machine and its Node.
#[derive(Clone, Debug)]
struct Checked {
    machine: Machine,
    node: Option<&'static str>,
    /// True if the former Node is gone.
    lost: bool,
}

/// Machines of a check, with an owner that replaces marked ones.
#[derive(Clone, Debug)]
struct Machines {
    check: MachineHealthCheck,
    cluster: Cluster,
    all: Vec<Checked>,
    now: Timestamp,
    next: usize,
}

/// The new conditions of a machine.
type Step = (String, Vec<Condition>);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + seconds).unwrap()
}

fn new_machine(name: &str, created: Timestamp) -> Machine {
    let machine = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": { "name": name, "creationTimestamp": created.to_string() },
        "spec": { "clusterName": "demo", "bootstrap": {},
            "infrastructureRef": { "apiGroup": "g", "kind": "K", "name": name } },
    });
    serde_json::from_value(machine).unwrap()
}

impl Machines {
    fn targets(&self) -> Vec<Target> {
        let target = |it: &Checked| {
            let node = |ready: &str| -> Node {
                let condition = json!({ "type": "Ready", "status": ready, "lastTransitionTime": at(0).to_string() });
                let node =
                    json!({ "metadata": { "name": "n" }, "status": { "conditions": [condition] } });
                serde_json::from_value(node).unwrap()
            };
            let node = match it.node {
                Some(ready) => Seen::There(Arc::new(node(ready))),
                None if it.lost => Seen::Gone,
                None => Seen::None,
            };
            Target {
                machine: Arc::new(it.machine.clone()),
                node,
            }
        };
        self.all.iter().map(target).collect()
    }

    fn judged(&self) -> Plan {
        plan(&self.check, &self.cluster, &self.targets(), self.now)
    }

    fn is(machine: &Machine, type_: &str, status: &str) -> bool {
        let known = conditions::find(machine.conditions(), type_);
        known.is_some_and(|known| known.status == status)
    }

    /// True if the owner is to replace the machine.
    fn is_marked(machine: &Machine) -> bool {
        Self::is(machine, "HealthCheckSucceeded", "False")
            && Self::is(machine, "OwnerRemediated", "False")
    }
}

impl System for Machines {
    type Step = Step;
    type State = Vec<(String, Option<&'static str>, Vec<(String, String)>)>;

    /// The writes of a reconcile, as `remediate` makes them.
    fn plan(&self) -> Vec<Step> {
        let plan = self.judged();
        let request = matches!(plan.allowed, Allowed::Yes(_)).then(by_owner);
        let well = plan
            .healthy
            .iter()
            .map(|target| (&target.machine, healthy()));
        let ill = plan.unhealthy.iter().map(|(target, cause)| {
            let known = target.machine.conditions();
            (&target.machine, unhealthy(known, cause, request.as_ref()))
        });
        let writes = well.chain(ill).filter_map(|(machine, verdicts)| {
            let after = after(machine, verdicts, self.now);
            let has_changed = after.conditions() != machine.conditions();
            has_changed.then(|| (machine.name_any(), after.conditions().to_vec()))
        });
        writes.collect()
    }

    fn take(&mut self, (name, conditions): Step) {
        let allowed = self.judged().allowed;
        let mut all = self.all.iter_mut();
        let known = all.find(|it| it.machine.name_any() == name).unwrap();
        let was_marked = Self::is_marked(&known.machine);
        known.machine.status.get_or_insert_default().conditions = conditions;
        let is_marked = Self::is_marked(&known.machine);
        assert!(
            was_marked || !is_marked || known.node != Some("True"),
            "{name} is healthy"
        );
        assert!(
            was_marked || !is_marked || matches!(allowed, Allowed::Yes(_)),
            "not allowed"
        );
    }

    /// The owner replaces marked machines, new machines get their Nodes, and time passes until one is overdue.
    fn pass(&mut self) -> bool {
        let before = self.all.len();
        self.all.retain(|it| !it.machine.is_deleting());
        let (gone, mut has_changed) = (before - self.all.len(), false);
        for it in &mut self.all {
            if Self::is_marked(&it.machine) {
                it.machine.metadata.deletion_timestamp = Some(Time(self.now));
                has_changed = true;
            } else if it.node.is_none() && it.machine.name_any().starts_with("new") {
                it.node = Some("True");
                has_changed = true;
            }
        }
        for _ in 0..gone {
            self.next += 1;
            let machine = new_machine(&format!("new-{}", self.next), self.now);
            self.all.push(Checked {
                machine,
                node: None,
                lost: false,
            });
        }
        has_changed |= gone > 0;
        if let Some(left) = self.judged().next.filter(|_| !has_changed) {
            self.now = self.now.checked_add(left).unwrap();
            has_changed = true;
        }
        has_changed
    }

    fn state(&self) -> Self::State {
        let all = self.all.iter().map(|it| {
            let known = it.machine.conditions().iter();
            let known = known.map(|it| (it.type_.clone(), it.status.clone()));
            (it.machine.name_any(), it.node, known.collect())
        });
        all.collect()
    }
}

prop_compose! {
    /// A machine in any state, with conditions that another run of the check left.
    fn checked()(
        node in select(vec![Some("True"), Some("True"), Some("True"), Some("False"), Some("Unknown"), None]),
        (lost, deleting) in (any::<bool>(), proptest::bool::weighted(0.1)),
        left in select(vec!["", "healthy", "unhealthy", "marked"]),
    ) -> (Option<&'static str>, bool, bool, &'static str) {
        (node, lost, deleting, left)
    }
}

fn machines(
    checked: Vec<(Option<&'static str>, bool, bool, &'static str)>,
    limit: &Value,
) -> Machines {
    let all = checked
        .into_iter()
        .enumerate()
        .map(|(number, (node, lost, deleting, left))| {
            let mut machine = new_machine(&format!("old-{number}"), at(-500));
            let cause = Cause {
                reason: Reason::NodeDeleted,
                message: String::new(),
            };
            let verdicts = match left {
                "healthy" => healthy(),
                "unhealthy" => unhealthy(&[], &cause, None),
                // The owner acts on the mark, whatever becomes of the Node.
                "marked" if node != Some("True") => unhealthy(&[], &cause, Some(&by_owner())),
                _ => Vec::new(),
            };
            machine = after(&machine, verdicts, at(-10));
            machine.metadata.deletion_timestamp = deleting.then(|| Time(at(-5)));
            Checked {
                machine,
                node,
                lost,
            }
        });
    let check = json!({
        "metadata": { "name": "check" },
        "spec": { "clusterName": "demo", "selector": {},
            "checks": { "nodeStartupTimeoutSeconds": 600, "unhealthyNodeConditions": [
                { "type": "Ready", "status": "Unknown", "timeoutSeconds": 300 },
                { "type": "Ready", "status": "False", "timeoutSeconds": 60 },
            ] },
            "remediation": { "triggerIf": { "unhealthyLessThanOrEqualTo": limit } } },
    });
    let condition = |type_: &str| {
        json!({
            "type": type_, "status": "True", "reason": "R", "message": "", "lastTransitionTime": at(-600).to_string(),
        })
    };
    let cluster = json!({
        "metadata": { "name": "demo" }, "spec": {},
        "status": { "conditions": [condition("InfrastructureReady"), condition("ControlPlaneInitialized")] },
    });
    Machines {
        check: serde_json::from_value(check).unwrap(),
        cluster: serde_json::from_value(cluster).unwrap(),
        all: all.collect(),
        now: at(0),
        next: 0,
    }
}

/// Everything is healthy, or too much is not; the conditions say which.
fn check_end(end: &Machines) {
    let plan = end.judged();
    assert_eq!(plan.next, None);
    match &plan.allowed {
        Allowed::Yes(_) => assert_eq!(plan.healthy.len(), end.all.len(), "{end:#?}"),
        Allowed::No(_) => assert!(!plan.unhealthy.is_empty()),
    }
    for target in &plan.healthy {
        let known = target.machine.conditions();
        assert!(Machines::is(
            &target.machine,
            "HealthCheckSucceeded",
            "True"
        ));
        assert!(conditions::find(known, "OwnerRemediated").is_none());
    }
    for (target, _) in &plan.unhealthy {
        assert!(Machines::is(
            &target.machine,
            "HealthCheckSucceeded",
            "False"
        ));
    }
}

proptest! {
    #[test]
    fn from_any_state_and_each_cut_unhealthy_machines_come_to_be_replaced_within_the_limit(
        checked in proptest::collection::vec(checked(), 0..6),
        limit in select(vec![json!("100%"), json!("40%"), json!(1), json!(0)]),
    ) {
        let machines = machines(checked, &limit);
        let mut end = converging::check(&machines);
        check_end(&end);
        // Others fail.
        end.all.iter_mut().step_by(2).for_each(|it| it.node = Some("False"));
        check_end(&converging::check(&end));
    }
}
