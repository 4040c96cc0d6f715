use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use api::kube::api::TypeMeta;
use serde_json::{Value, json};

use super::*;

const NOW: i64 = 1_000;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

type Given<'a> = &'a [(&'static str, Status, &'a str)];

/// A machine that was created long ago, with these conditions.
fn machine(name: &str, control_plane: bool, given: Given<'_>) -> Arc<Machine> {
    let mut machine = Machine::new(name, Default::default());
    machine.metadata.creation_timestamp = Some(Time(at(0)));
    if control_plane {
        let label = (api::names::CONTROL_PLANE_LABEL.to_owned(), String::new());
        machine.metadata.labels = Some([label].into());
    }
    let status = machine.status.get_or_insert_default();
    for (type_, is, message) in given {
        let verdict =
            Verdict::from_reported(Type::parse(type_).unwrap(), *is, "Because").because(*message);
        conditions::set(&mut status.conditions, verdict, None, at(0));
    }
    Arc::new(machine)
}

fn deployment(name: &str, given: Given<'_>) -> Arc<MachineDeployment> {
    let mut deployment = MachineDeployment::new(name, Default::default());
    let status = deployment.status.get_or_insert_default();
    for (type_, is, message) in given {
        let verdict =
            Verdict::from_reported(Type::parse(type_).unwrap(), *is, "Because").because(*message);
        conditions::set(&mut status.conditions, verdict, None, at(0));
    }
    Arc::new(deployment)
}

fn set(name: &str, owner: &str, given: Given<'_>) -> Arc<MachineSet> {
    let mut set = MachineSet::new(name, Default::default());
    set.metadata.owner_references = Some(vec![OwnerReference {
        uid: owner.to_owned(),
        ..OwnerReference::default()
    }]);
    let status = set.status.get_or_insert_default();
    for (type_, is, message) in given {
        let verdict =
            Verdict::from_reported(Type::parse(type_).unwrap(), *is, "Because").because(*message);
        conditions::set(&mut status.conditions, verdict, None, at(0));
    }
    Arc::new(set)
}

fn plane(conditions: Value) -> DynamicObject {
    let types = TypeMeta {
        api_version: "g/v1".to_owned(),
        kind: "KubeadmControlPlane".to_owned(),
    };
    let mut object = DynamicObject {
        types: Some(types),
        metadata: Default::default(),
        data: json!({ "status": { "conditions": conditions } }),
    };
    object.metadata.name = Some("cp".to_owned());
    object
}

fn cluster() -> Cluster {
    let mut cluster = Cluster::new("demo", Default::default());
    cluster.metadata.uid = Some("cluster".to_owned());
    cluster
}

fn nothing() -> Descendants<'static> {
    Descendants {
        control_plane: Ok(None),
        machines: &[],
        sets: &[],
        deployments: &[],
    }
}

fn found(seen: &Descendants<'_>, type_: &str) -> (Status, String, String) {
    let mut all = verdicts(&cluster(), seen, at(NOW)).into_iter();
    let verdict = all.find(|verdict| verdict.type_ == type_).unwrap();
    (verdict.status, verdict.reason, verdict.message)
}

fn expected(status: Status, reason: &str, message: &str) -> (Status, String, String) {
    (status, reason.to_owned(), message.to_owned())
}

#[test]
fn an_empty_cluster_has_nothing_that_is_not_ready_and_changes_nothing() {
    let cases = [
        ("ControlPlaneMachinesReady", Status::True, "NoReplicas"),
        ("WorkerMachinesReady", Status::True, "NoReplicas"),
        ("ControlPlaneMachinesUpToDate", Status::True, "NoReplicas"),
        ("WorkerMachinesUpToDate", Status::True, "NoReplicas"),
        ("RollingOut", Status::False, "NotRollingOut"),
        ("ScalingUp", Status::False, "NotScalingUp"),
        ("ScalingDown", Status::False, "NotScalingDown"),
        ("Remediating", Status::False, "NotRemediating"),
    ];
    assert_eq!(verdicts(&cluster(), &nothing(), at(NOW)).len(), cases.len());
    for (type_, status, reason) in cases {
        assert_eq!(found(&nothing(), type_), expected(status, reason, ""));
    }
}

#[test]
fn machines_of_the_control_plane_and_workers_are_told_apart() {
    use Status::{False, True, Unknown};
    let machines = [
        machine("cp-a", true, &[("Ready", True, ""), ("UpToDate", True, "")]),
        machine("cp-b", true, &[("Ready", False, "* NodeHealthy: Gone")]),
        machine(
            "w-a",
            false,
            &[
                ("Ready", Unknown, "Booting"),
                ("UpToDate", False, "* Version"),
            ],
        ),
        machine(
            "w-b",
            false,
            &[("Ready", Unknown, "Booting"), ("UpToDate", True, "")],
        ),
    ];
    let seen = Descendants {
        machines: &machines,
        ..nothing()
    };
    let cases = [
        (
            "ControlPlaneMachinesReady",
            expected(False, "NotReady", "* Machine cp-b:\n  * NodeHealthy: Gone"),
        ),
        (
            "WorkerMachinesReady",
            expected(Unknown, "ReadyUnknown", "* Machines w-a, w-b: Booting"),
        ),
        (
            "ControlPlaneMachinesUpToDate",
            expected(
                Unknown,
                "UpToDateUnknown",
                "* Machine cp-b: Condition UpToDate not yet reported",
            ),
        ),
        (
            "WorkerMachinesUpToDate",
            expected(False, "NotUpToDate", "* Machine w-a:\n  * Version"),
        ),
    ];
    for (type_, verdict) in cases {
        assert_eq!(found(&seen, type_), verdict, "{type_}");
    }
}

#[test]
fn a_machine_that_nobody_has_looked_at_counts_after_ten_seconds() {
    let mut young = machine("w", false, &[]).as_ref().clone();
    young.metadata.creation_timestamp = Some(Time(at(NOW - 4)));
    let machines = [Arc::new(young)];
    let seen = Descendants {
        machines: &machines,
        ..nothing()
    };
    let type_ = "WorkerMachinesUpToDate";
    assert_eq!(
        found(&seen, type_),
        expected(Status::True, "NoReplicas", "")
    );
    assert_eq!(look_again(&machines, at(NOW)), Some(Duration::from_secs(6)));
    assert_eq!(look_again(&machines, at(NOW + 6)), None);
    let later = verdicts(&cluster(), &seen, at(NOW + 6));
    let later = later.into_iter().find(|verdict| verdict.type_ == type_);
    assert_eq!(later.unwrap().status, Status::Unknown);
}

#[test]
fn a_cluster_changes_while_one_of_its_objects_does() {
    use Status::{False, True, Unknown};
    let scaling = "Scaling up from 1 to 3 replicas";
    let quiet =
        plane(json!([{ "type": "ScalingUp", "status": "False", "reason": "NotScalingUp" }]));
    let busy = plane(
        json!([{ "type": "ScalingUp", "status": "True", "reason": "ScalingUp", "message": scaling }]),
    );
    let silent = plane(json!([]));
    let still = [deployment("md", &[("ScalingUp", False, "")])];
    let moving = [
        deployment("a", &[("ScalingUp", True, scaling)]),
        deployment("b", &[("ScalingUp", True, scaling)]),
    ];
    let new = [deployment("md", &[])];
    let sets = [
        set("own", "cluster", &[("ScalingUp", True, scaling)]),
        set(
            "of-md",
            "deployment",
            &[("ScalingUp", True, "is not repeated")],
        ),
    ];
    let not_yet = "* MachineDeployment md: Condition ScalingUp not yet reported";
    type Case<'a> = (
        &'a DynamicObject,
        &'a [Arc<MachineDeployment>],
        &'a [Arc<MachineSet>],
    );
    let cases: [(Case<'_>, _); 6] = [
        ((&quiet, &still, &[]), expected(False, "NotScalingUp", "")),
        ((&silent, &[], &[]), expected(False, "NotScalingUp", "")),
        (
            (&busy, &still, &[]),
            expected(
                True,
                "ScalingUp",
                &format!("* KubeadmControlPlane cp: {scaling}"),
            ),
        ),
        (
            (&silent, &moving, &[]),
            expected(
                True,
                "ScalingUp",
                &format!("* MachineDeployments a, b: {scaling}"),
            ),
        ),
        (
            (&quiet, &new, &[]),
            expected(Unknown, "ScalingUpUnknown", not_yet),
        ),
        (
            (&quiet, &still, &sets),
            expected(True, "ScalingUp", &format!("* MachineSet own: {scaling}")),
        ),
    ];
    for ((plane, deployments, sets), verdict) in cases {
        let seen = Descendants {
            control_plane: Ok(Some(plane)),
            deployments,
            sets,
            machines: &[],
        };
        assert_eq!(found(&seen, "ScalingUp"), verdict);
    }
}

#[test]
fn a_control_plane_that_cannot_be_read_leaves_changes_unknown() {
    let seen = Descendants {
        control_plane: Err("reading KubeadmControlPlane"),
        ..nothing()
    };
    for type_ in ["RollingOut", "ScalingUp", "ScalingDown"] {
        let (status, reason, message) = found(&seen, type_);
        assert_eq!(
            (status, reason.as_str()),
            (Status::Unknown, "InternalError")
        );
        assert!(message.contains("KubeadmControlPlane"), "{message}");
    }
    assert_eq!(found(&seen, "Remediating").0, Status::False);
}

#[test]
fn roll_outs_are_those_of_the_control_plane_and_of_deployments() {
    let rolling = "Rolling out 2 not up-to-date replicas\n* Version v1.34.1, v1.35.0 required";
    let deployments = [deployment("md", &[("RollingOut", Status::True, rolling)])];
    let sets = [set(
        "own",
        "cluster",
        &[("RollingOut", Status::True, "no such condition")],
    )];
    let seen = Descendants {
        deployments: &deployments,
        sets: &sets,
        ..nothing()
    };
    let text = "* MachineDeployment md:\n  Rolling out 2 not up-to-date replicas\n  * Version v1.34.1, v1.35.0 required";
    assert_eq!(
        found(&seen, "RollingOut"),
        expected(Status::True, "RollingOut", text)
    );
}

#[test]
fn a_machine_that_fails_its_health_check_is_remediated_or_named() {
    use Status::{False, True};
    let ill = |name: &str, owner: Given<'_>| {
        machine(
            name,
            false,
            &[
                &[("HealthCheckSucceeded", False, "Node is gone")][..],
                owner,
            ]
            .concat(),
        )
    };
    let waits = "Waiting for remediation";
    let well = machine("well", false, &[("HealthCheckSucceeded", True, "")]);
    let cases = [
        (vec![well.clone()], expected(False, "NotRemediating", "")),
        (
            vec![well.clone(), ill("a", &[])],
            expected(
                False,
                "NotRemediating",
                "Machine a is not healthy (not to be remediated)",
            ),
        ),
        (
            vec![ill("b", &[]), ill("a", &[])],
            expected(
                False,
                "NotRemediating",
                "Machines a, b are not healthy (not to be remediated)",
            ),
        ),
        (
            vec![
                ill("a", &[("OwnerRemediated", False, waits)]),
                ill("b", &[]),
            ],
            expected(True, "Remediating", &format!("* Machine a: {waits}")),
        ),
    ];
    for (machines, verdict) in cases {
        let seen = Descendants {
            machines: &machines,
            ..nothing()
        };
        assert_eq!(found(&seen, "Remediating"), verdict);
    }
}
