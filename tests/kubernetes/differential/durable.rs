//! The scenario on the embedded server with its objects in a file, which is opened again after each file of the scenario:
//! whatever was acknowledged can be read back, and is served as before.

use std::collections::BTreeMap;
use std::time::Duration;

use apiserver::{Store, Synchronous};
use serde_json::Value;

use crate::play::{Outcome, Player};
use crate::scenario::Step;
use crate::side::{Embedded, Side};

/// Plays all steps, and opens the server again wherever the next file of the scenario begins.
pub(crate) async fn play(steps: &[Step]) -> Vec<Outcome> {
    let directory = tempfile::tempdir().unwrap();
    let embedded = Embedded::new(Store::Sqlite {
        path: directory.path().join("objects.db"),
        synchronous: Synchronous::Normal,
    });
    let mut player = Player::new().await;
    let mut outcomes = Vec::new();
    let (mut side, mut server) = embedded.open().await;
    for part in steps.chunk_by(|a, b| a.file_stem == b.file_stem) {
        outcomes.extend(player.play(&side, part).await);
        let before = settled(&side).await;
        server.close().await;
        (side, server) = embedded.open().await;
        let after = everything(&side).await;
        let differing = before
            .iter()
            .filter(|(path, list)| after.get(*path) != Some(list));
        let differing: Vec<_> = differing.map(|(path, _)| path).collect();
        assert!(
            differing.is_empty() && before.len() == after.len(),
            "{}: opened again, these are served otherwise: {differing:?}",
            part[0].file_stem
        );
    }
    server.close().await;
    outcomes
}

/// What is served once the server has nothing left to do on its own.
async fn settled(side: &Side) -> BTreeMap<String, Value> {
    let mut before = everything(side).await;
    loop {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let after = everything(side).await;
        if before == after {
            return after;
        }
        before = after;
    }
}

/// The objects of each kind in each version, by the path of their list.
async fn everything(side: &Side) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for root in ["/api", "/apis"] {
        let discovery = get(
            side,
            root,
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        )
        .await;
        for group in discovery["items"].as_array().into_iter().flatten() {
            for version in group["versions"].as_array().into_iter().flatten() {
                let name = group["metadata"]["name"]
                    .as_str()
                    .map(|name| format!("/{name}"));
                let prefix = format!(
                    "{root}{}/{}",
                    name.unwrap_or_default(),
                    version["version"].as_str().unwrap()
                );
                for resource in version["resources"].as_array().into_iter().flatten() {
                    let verbs = resource["verbs"].as_array().unwrap();
                    if verbs.iter().any(|verb| verb == "list") {
                        let path = format!("{prefix}/{}", resource["resource"].as_str().unwrap());
                        let list = get(side, &path, "application/json").await;
                        all.insert(path, list["items"].clone());
                    }
                }
            }
        }
    }
    all
}

async fn get(side: &Side, path: &str, accept: &str) -> Value {
    let request = side.admin.get(format!("{}{path}", side.url));
    let answer = request.header("accept", accept).send().await.unwrap();
    serde_json::from_str(&answer.text().await.unwrap()).unwrap_or(Value::Null)
}
