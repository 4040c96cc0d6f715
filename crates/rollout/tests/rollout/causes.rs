//! `why` names the first cause of each fault that simulated nodes know.

use api::openstack::v1alpha1::Phase;
use deployer::{Cause, Reason, Reported, Situation, Why, Written};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use simulator::nodes::Ending;
use testbed::eventually;

use crate::world::{World, full};

const IMAGE: &str = "ferrostack.local/openstack:2026.1";

impl World {
    /// Why the cloud, or an object of it, is not ready.
    async fn why(&self, object: Option<&str>) -> Why {
        let (graph, objects) = self.wanted().await;
        let plan = deployer::plan(&graph, &objects);
        let pods = self.list("", "Pod").await;
        let nodes: Api<Node> = Api::all(self.management.client.clone());
        let nodes = nodes.list(&ListParams::default()).await.unwrap().items;
        let nodes: Vec<Value> = nodes
            .iter()
            .map(|it| serde_json::to_value(it).unwrap())
            .collect();
        let status = self.cloud().await.status.unwrap_or_default();
        let accounts = status.steps.iter().filter_map(|step| {
            let written = match step.phase {
                Phase::Ready => Written::All,
                Phase::Progressing => Written::Not(step.message.clone()),
                Phase::Failed => Written::Conflict(step.message.clone()),
                Phase::Waiting => return None,
            };
            Some((step.name.clone(), written))
        });
        let reported = Reported {
            accounts: accounts.collect(),
            ..Reported::default()
        };
        let situation = Situation {
            graph: &graph,
            plan: &plan,
            objects: &objects,
            pods: &pods,
            nodes: &nodes,
            classes: None,
            reported: &reported,
        };
        deployer::why(&situation, object).unwrap()
    }

    /// Waits until the worst cause is this one.
    async fn cause(&self, reason: Reason) -> Cause {
        eventually(&format!("{reason:?}"), || async {
            let why = self.why(None).await;
            match why.causes.first() {
                Some(cause) if cause.reason == reason => Ok(cause.clone()),
                _ => Err(format!("{:#?}", why.causes)),
            }
        })
        .await
    }

    /// Waits until the cloud is ready, and there is no cause of anything.
    async fn healed(&self) {
        self.ready().await;
        eventually("no cause", || async {
            let why = self.why(None).await;
            why.causes
                .is_empty()
                .then_some(())
                .ok_or(format!("{why:#?}"))
        })
        .await;
    }
}

fn ending(status: i32, log: &str) -> Option<Ending> {
    Some(Ending {
        status,
        log: log.to_owned(),
    })
}

fn detail(cause: &Cause) -> &str {
    cause.detail.as_deref().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn an_image_that_is_missing_is_the_cause_of_all() {
    let world = World::open().await;
    world.faults.image_is_missing(IMAGE, true);
    let _controller = world.controller();
    world.create(full()).await;
    let cause = world.cause(Reason::ImageMissing).await;
    assert!(
        detail(&cause).contains(&format!("image {IMAGE} is not on node node-0")),
        "{cause:?}"
    );
    assert!(
        cause.advice.as_ref().unwrap().contains("images/build"),
        "{cause:?}"
    );
    let scheduler = world.why(Some("nova-scheduler")).await;
    assert_eq!(
        scheduler.causes[0].reason,
        Reason::ImageMissing,
        "{scheduler:?}"
    );
    world.faults.image_is_missing(IMAGE, false);
    world.healed().await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_fails_is_the_cause_of_what_comes_after_it() {
    let world = World::open().await;
    let log = "starting\n(1045) Access denied for user 'nova'";
    world.faults.container_ends("nova-schema", ending(1, log));
    let _controller = world.controller();
    world.create(full()).await;
    let cause = world.cause(Reason::TaskFailed).await;
    assert!(
        cause.of.starts_with("task nova-schema-") && cause.since.is_some(),
        "{cause:?}"
    );
    assert!(detail(&cause).contains("(1045) Access denied"), "{cause:?}");
    for waits in ["nova-conductor", "nova-compute", "nova-hosts"] {
        assert!(
            cause.waiting.iter().any(|it| it == waits),
            "{waits}: {cause:?}"
        );
    }
    let conductor = world.why(Some("nova-conductor")).await;
    assert_eq!(conductor.causes[0].of, cause.of);
    world.faults.container_ends("nova-schema", None);
}

#[tokio::test(start_paused = true)]
async fn a_program_that_crashes_is_the_cause_with_its_last_words() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(full()).await;
    world.ready().await;
    world
        .faults
        .container_ends("glance-api", ending(3, "no such store"));
    let cause = world.cause(Reason::Crashing).await;
    assert_eq!(
        (cause.of.as_str(), cause.waiting.as_slice()),
        ("glance-api", &["glance-api".to_owned()][..])
    );
    assert!(detail(&cause).contains("no such store"), "{cause:?}");
    world.faults.container_ends("glance-api", None);
    world.healed().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_gone_is_one_cause() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(full()).await;
    world.ready().await;
    world.faults.node_is_gone("node-0", true);
    let cause = world.cause(Reason::NodeGone).await;
    assert_eq!(cause.of, "node node-0");
    assert!(cause.waiting.len() > 15, "{cause:?}");
    let node = world.why(Some("node/node-0")).await;
    assert_eq!(node.causes[0].reason, Reason::NodeGone);
    world.faults.node_is_gone("node-0", false);
    world.healed().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_cordoned_is_named_with_what_to_do() {
    let world = World::open().await;
    let nodes: Api<Node> = Api::all(world.management.client.clone());
    let cordon = |cordoned: bool| {
        let (nodes, spec) = (nodes.clone(), json!({"spec": {"unschedulable": cordoned}}));
        async move {
            eventually("the node", || async {
                let (params, patch) = (PatchParams::default(), Patch::Merge(spec.clone()));
                let patched = nodes.patch("node-0", &params, &patch);
                patched.await.map(drop).map_err(|error| error.to_string())
            })
            .await;
        }
    };
    cordon(true).await;
    let _controller = world.controller();
    world.create(full()).await;
    let cause = world.cause(Reason::NoNode).await;
    assert_eq!(detail(&cause), "every ready node is cordoned");
    assert_eq!(cause.advice.as_deref(), Some("kubectl uncordon NODE"));
    cordon(false).await;
    world.healed().await;
}
