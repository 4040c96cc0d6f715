//! Lives of objects in stages, cut at each write and with writes that fail: they end the same.

use std::time::Duration;

use serde_json::{Value, json};
use testbed::Calls;

use crate::world::World;

/// The life of an object. The change of each stage is written once, whatever happens to the controllers.
pub(crate) trait Life {
    /// The names of the stages.
    const STAGES: &'static [&'static str];

    /// Writes the change of a stage.
    async fn begin(world: &World, stage: &str);

    /// Waits until a stage has ended.
    async fn end(world: &World, stage: &str);
}

async fn reached(writes: &Calls) {
    while !writes.reached() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A life in which the controllers are killed at the `nth` write to the cloud, with a look at the end of each stage.
/// Returns whether there were so many.
pub(crate) async fn killed_at<L: Life>(
    world: &mut World,
    nth: u64,
    mut look: impl FnMut(&World, &'static str),
) -> bool {
    let writes = world.cut_at(nth);
    let mut was_cut = false;
    for stage in L::STAGES {
        L::begin(world, stage).await;
        if !was_cut {
            was_cut = tokio::select! {
                () = L::end(world, stage) => false,
                () = reached(&writes) => true,
            } || writes.reached();
        }
        if was_cut && writes.reached() {
            world.kill().await;
            world.cloud.on_write(|_| {});
            world.run();
        }
        L::end(world, stage).await;
        look(world, stage);
    }
    world.kill().await;
    world.cloud.on_write(|_| {});
    was_cut
}

/// How writes fail.
pub(crate) fn failures() -> Vec<Value> {
    vec![
        json!({"status": 409}),
        json!({"status": 429, "retry_after": 2}),
        json!({"status": 500}),
        json!({"status": 503, "retry_after": 2}),
        json!({"drop": true}),
        json!({"drop": true, "after_change": true}),
        json!({"garbage": true}),
    ]
}

/// From now on, the first of each of these writes (service, method, route) fails in this way.
pub(crate) async fn each_fails_once(world: &World, writes: &[(&str, &str, &str)], failure: &Value) {
    for (service, method, route) in writes {
        let mut rule = json!({"service": service, "method": method, "route": route, "count": 1});
        for (name, value) in failure.as_object().unwrap() {
            rule[name] = value.clone();
        }
        world.fault(rule).await;
    }
}
