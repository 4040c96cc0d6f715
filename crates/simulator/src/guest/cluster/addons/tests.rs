use super::plan::Plan;
use super::*;

fn node(name: &str, ready: bool, schedulable: bool) -> NodeFacts {
    NodeFacts {
        name: name.to_owned(),
        address: "10.6.0.1".to_owned(),
        ready,
        refusal: (!schedulable).then(|| "were unschedulable".to_owned()),
    }
}

fn pod<'a>(name: &str, node: &str, image: &str) -> PodFacts<'a> {
    PodFacts {
        name: name.to_owned(),
        node: node.to_owned(),
        image: image.to_owned(),
        ready: true,
        deleting: false,
        object: &Value::Null,
    }
}

#[test]
fn every_node_that_runs_has_one_pod_with_the_image() {
    let nodes = [
        node("a", true, true),
        node("b", true, false),
        node("c", false, false),
        node("d", true, true),
    ];
    let mut ending = pod("ending", "d", "new");
    ending.deleting = true;
    let pods = [pod("old", "a", "old"), ending];
    assert_eq!(
        plan::daemon_set(&nodes, &pods, "new"),
        Plan {
            delete: vec!["old".to_owned()],
            create_on: vec!["a".to_owned(), "b".to_owned()],
            ..Plan::default()
        }
    );
    let pods = ["a", "b", "d"].map(|name| pod(name, name, "new"));
    assert_eq!(plan::daemon_set(&nodes, &pods, "new"), Plan::default());
    let status = status::daemon_set(
        &json!({"metadata": {"generation": 2}}),
        &nodes,
        &pods,
        "new",
    );
    assert_eq!(status["desiredNumberScheduled"], 4);
    assert_eq!(status["currentNumberScheduled"], 3);
    assert_eq!(status["numberReady"], 3);
    assert_eq!(status["numberUnavailable"], 1);
    assert_eq!(status["observedGeneration"], 2);
}

#[test]
fn replicas_are_spread_over_nodes_that_accept_them() {
    let nodes = [
        node("a", true, true),
        node("b", true, false),
        node("c", true, true),
    ];
    let created = |plan: Plan| plan.create_on;
    assert_eq!(created(plan::replicas(2, &nodes, &[])), ["a", "c"]);
    let there = [pod("x", "a", "i")];
    assert_eq!(created(plan::replicas(2, &nodes, &there)), ["c"]);
    assert_eq!(
        created(plan::replicas(2, &nodes[1..2], &[])),
        [""; 0],
        "no node accepts it"
    );
    let there = ["x", "y", "z"].map(|name| pod(name, "a", "i"));
    assert_eq!(plan::replicas(2, &nodes, &there).delete, ["z"]);
}

#[test]
fn replicas_that_no_node_accepts_wait_and_are_bound_later() {
    let closed = [node("b", true, false)];
    let plan = plan::replicas(2, &closed, &[]);
    assert_eq!((plan.create_pending, plan.create_on.len()), (2, 0));
    let waiting = ["x", "y"].map(|name| pod(name, "", "i"));
    assert_eq!(plan::replicas(2, &closed, &waiting), Plan::default());
    let open = [node("a", true, true), node("b", true, true)];
    let bind = plan::replicas(2, &open, &waiting).bind;
    let pair = |pod: &str, node: &str| (pod.to_owned(), node.to_owned());
    assert_eq!(bind, [pair("x", "a"), pair("y", "b")]);
    // Of too many pods, waiting ones go first.
    let both = [pod("w", "", "i"), pod("x", "a", "i")];
    assert_eq!(plan::replicas(1, &open, &both).delete, ["w"]);
}

#[test]
fn the_scheduler_names_the_taints_that_a_pod_does_not_tolerate() {
    let tainted = json!({"metadata": {"name": "n"}, "spec": {"taints": [
        {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"},
        {"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"},
    ]}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    let facts = NodeFacts::new(&tainted, &BTreeSet::new()).unwrap();
    assert_eq!(
        plan::unschedulable(&[facts, node("b", true, false)]),
        "0/2 nodes are available: 1 node(s) had untolerated taint \
         {node.cloudprovider.kubernetes.io/uninitialized: true}, 1 node(s) were unschedulable."
    );
}

#[test]
fn a_node_that_is_cordoned_tainted_or_gone_accepts_no_pods() {
    let ready = json!([{"type": "Ready", "status": "True"}]);
    let with = |spec: Value| json!({"metadata": {"name": "n"}, "spec": spec, "status": {"conditions": ready}});
    let facts = |node: &Value, gone: &[&str]| {
        let gone = gone.iter().map(|name| (*name).to_owned()).collect();
        let facts = NodeFacts::new(node, &gone).unwrap();
        (facts.ready, facts.refusal.is_none())
    };
    let control_plane = json!({"taints": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]});
    assert_eq!(facts(&with(control_plane), &[]), (true, true));
    let other =
        json!({"taints": [{"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"}]});
    assert_eq!(facts(&with(other), &[]), (true, false));
    assert_eq!(
        facts(&with(json!({"unschedulable": true})), &[]),
        (true, false)
    );
    assert_eq!(facts(&with(json!({})), &["n"]), (false, false));
}

#[test]
fn a_deployment_with_too_few_ready_pods_is_not_available() {
    let nodes = [node("a", true, true), node("b", false, false)];
    let pods = [pod("x", "b", "i"), pod("y", "b", "i")];
    let deployment = json!({"metadata": {"generation": 1}, "spec": {"replicas": 2}});
    let status = status::deployment(&deployment, &nodes, &pods, "now");
    assert_eq!(status["conditions"][0]["status"], "False");
    assert_eq!(status["unavailableReplicas"], 2);
    let pods = [pod("x", "a", "i"), pod("y", "a", "i")];
    let status = status::deployment(&deployment, &nodes, &pods, "now");
    assert_eq!(status["conditions"][0]["status"], "True");
    assert_eq!(status["unavailableReplicas"], Value::Null);
}
