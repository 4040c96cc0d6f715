//! Upgrades of clusters that have a topology.

use super::*;

impl World {
    /// Lets the control plane be upgraded, or not.
    async fn allow_upgrade(&self, allowed: bool) {
        let name = self.all("FakeControlPlane").await[0].name_any();
        let value = if allowed { Value::Null } else { json!("") };
        let change = Patch::Merge(json!({ "metadata": { "annotations": { NO_UPGRADE: value } } }));
        let planes = self.fake("FakeControlPlane");
        planes
            .patch(&name, &PatchParams::default(), &change)
            .await
            .unwrap();
    }

    /// Waits for words in the message of the condition.
    async fn says(&self, words: &str) {
        eventually(words, || async {
            let (status, message) = condition(&self.demo().await, "TopologyReconciled");
            let found = status == "False" && message.contains(words);
            found.then_some(()).ok_or(message)
        })
        .await;
    }

    async fn versions(&self) -> Vec<String> {
        let deployments = self.list::<MachineDeployment>().await;
        let all = deployments
            .iter()
            .filter_map(|it| it.spec.template.spec.version.clone());
        all.collect()
    }

    /// Waits for the versions ahead of the control plane and of the workers in the status of the Cluster.
    async fn plans(&self, plane: &Value, workers: &Value) {
        eventually("the plans", || async {
            let cluster = self.demo().await;
            let status = serde_json::to_value(&cluster.status).unwrap();
            let seen = (
                &status["controlPlane"]["upgradePlan"],
                &status["workers"]["upgradePlan"],
            );
            let counted = status["workers"]["replicas"].is_number();
            (seen == (plane, workers) && counted)
                .then_some(())
                .ok_or_else(|| status.to_string())
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn workers_are_upgraded_after_the_control_plane_one_deployment_after_the_other() {
    let world = World::start().await;
    world.topology(&[("md-0", 1), ("md-1", 1)]).await;
    let old = workers(1, "v1.33.1", "small");
    world
        .built("v1.33.1", &[("md-0", old.clone()), ("md-1", old)])
        .await;
    world.allow_upgrade(false).await;
    world.change(json!({ "version": "v1.34.1" })).await;
    world
        .says("FakeControlPlane upgrading to version v1.34.1")
        .await;
    tokio::time::sleep(std::time::Duration::from_secs(30)).await;
    assert_eq!(world.versions().await, ["v1.33.1", "v1.33.1"]);
    world.allow_upgrade(true).await;
    // While the first one is replaced, the second one has its former version.
    eventually("one of them", || async {
        let versions = world.versions().await;
        let new = versions
            .iter()
            .filter(|version| *version == "v1.34.1")
            .count();
        (new > 0)
            .then_some(())
            .ok_or_else(|| format!("{versions:?}"))
    })
    .await;
    let new = workers(1, "v1.34.1", "small");
    world
        .built("v1.34.1", &[("md-0", new.clone()), ("md-1", new)])
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_over_several_minor_releases_passes_each_of_them() {
    let world = World::start().await;
    world.topology(&[("md-0", 1)]).await;
    world
        .built("v1.33.1", &[("md-0", workers(1, "v1.33.1", "small"))])
        .await;
    world.allow_upgrade(false).await;
    world.change(json!({ "version": "v1.35.0" })).await;
    // The last version of the next minor release that the class lists.
    world
        .says("FakeControlPlane upgrading to version v1.34.2")
        .await;
    let last = json!([{ "version": "v1.35.0" }]);
    world.plans(&last, &last).await;
    world.allow_upgrade(true).await;
    world
        .built("v1.35.0", &[("md-0", workers(1, "v1.35.0", "small"))])
        .await;
    world.plans(&Value::Null, &Value::Null).await;
}

#[tokio::test(start_paused = true)]
async fn a_deferred_upgrade_waits_for_its_annotation_to_go() {
    let world = World::start().await;
    world.topology(&[("md-0", 1)]).await;
    world
        .built("v1.33.1", &[("md-0", workers(1, "v1.33.1", "small"))])
        .await;
    let deployment = |annotations: Value| json!([{ "class": "worker", "name": "md-0", "replicas": 1, "metadata": { "annotations": annotations } }]);
    let deferred = deployment(json!({ "topology.cluster.x-k8s.io/defer-upgrade": "" }));
    world
        .change(json!({ "version": "v1.34.1", "workers": { "machineDeployments": deferred } }))
        .await;
    world.says("upgrade to version v1.34.1 deferred").await;
    assert_eq!(world.versions().await, ["v1.33.1"]);
    world
        .change(json!({ "workers": { "machineDeployments": deployment(Value::Null) } }))
        .await;
    world
        .built("v1.34.1", &[("md-0", workers(1, "v1.34.1", "small"))])
        .await;
}
