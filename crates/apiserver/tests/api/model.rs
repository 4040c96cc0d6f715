//! A client that lists and then watches sees exactly what a sequential model of the store sees.

use std::collections::BTreeMap;

use http::Method;
use http_body_util::BodyExt as _;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::*;

#[derive(Clone, Debug)]
enum Step {
    Create(u8),
    Update(u8, u8),
    Delete(u8),
    /// A client lists here and watches until the end.
    Client {
        streaming: bool,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..5_u8).prop_map(Step::Create),
        3 => (0..5_u8, any::<u8>()).prop_map(|(name, data)| Step::Update(name, data)),
        2 => (0..5_u8).prop_map(Step::Delete),
        1 => any::<bool>().prop_map(|streaming| Step::Client { streaming }),
    ];
    proptest::collection::vec(step, 1..40)
}

type Model = BTreeMap<String, String>;

fn entry(object: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (
        text(&object["metadata"]["name"]),
        text(&object["data"]["k"]),
    )
}

async fn run(steps: Vec<Step>) {
    let server = server().await;
    let mut model = Model::new();
    let mut clients = Vec::new();
    for step in steps {
        match step {
            Step::Create(name) => {
                let name = format!("m{name}");
                let code = post(&server, MAPS, &config_map(&name, "0")).await.0;
                assert_eq!(code, if model.contains_key(&name) { 409 } else { 201 });
                model.entry(name).or_insert_with(|| "0".to_owned());
            }
            Step::Update(name, data) => {
                let name = format!("m{name}");
                let data = data.to_string();
                let change = json!({"data": {"k": data}});
                let code = patch(&server, &format!("{MAPS}/{name}"), MERGE, &change)
                    .await
                    .0;
                assert_eq!(code, if model.contains_key(&name) { 200 } else { 404 });
                model.entry(name).and_modify(|value| *value = data);
            }
            Step::Delete(name) => {
                let name = format!("m{name}");
                let code = delete(&server, &format!("{MAPS}/{name}")).await.0;
                assert_eq!(
                    code,
                    if model.remove(&name).is_some() {
                        200
                    } else {
                        404
                    }
                );
            }
            Step::Client { streaming } => {
                let mut seen = Model::new();
                let query = if streaming {
                    "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true".to_owned()
                } else {
                    let (_, list) = get(&server, MAPS).await;
                    seen.extend(list["items"].as_array().unwrap().iter().map(entry));
                    assert_eq!(seen, model);
                    format!(
                        "resourceVersion={}",
                        list["metadata"]["resourceVersion"].as_str().unwrap()
                    )
                };
                let path = format!("{MAPS}?watch=1&{query}");
                let response = send(&server, Method::GET, &path, &[], "").await;
                clients.push((seen, response.into_body()));
            }
        }
    }
    server.close().await;
    for (mut seen, body) in clients {
        // The server is closed, but sends its pending output first.
        let text = body.collect().await.unwrap().to_bytes();
        let mut last = 0;
        for line in text
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            let event: Value = serde_json::from_slice(line).unwrap();
            let object = &event["object"];
            let revision: u64 = object["metadata"]["resourceVersion"]
                .as_str()
                .unwrap()
                .parse()
                .unwrap();
            let (name, data) = entry(object);
            match event["type"].as_str().unwrap() {
                "ADDED" => assert_eq!(seen.insert(name, data), None, "added twice"),
                "MODIFIED" => assert!(seen.insert(name, data).is_some(), "modified before added"),
                "DELETED" => assert!(seen.remove(&name).is_some(), "deleted before added"),
                _ => {
                    last = revision;
                    continue;
                }
            }
            assert!(last == 0 || revision > last, "repeated after the bookmark");
        }
        assert_eq!(seen, model);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_list_followed_by_a_watch_is_the_model(steps in steps()) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(run(steps));
    }
}
