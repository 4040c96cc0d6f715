//! Objects kept by the process itself: clients outside of the process neither change nor delete them.

use std::sync::Arc;

use apiserver::{ApiServer, Options, UserInfo};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::support::*;

fn refusal<T: std::fmt::Debug>(answer: kube::Result<T>) -> String {
    match answer {
        Err(kube::Error::Api(status)) => {
            assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"));
            status.message
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_the_process_keeps_is_changed_by_itself_alone() {
    let options = Options {
        kept: Some(Arc::new(|new: Option<&Value>, old: &Value| {
            let is_same = new.is_some_and(|new| new["data"] == old["data"]);
            let is_kept = old["metadata"]["name"] == "ours" && !is_same;
            is_kept.then(|| "it is ours".to_owned())
        })),
        ..Options::default()
    };
    let server = ApiServer::open(options).await.unwrap();
    for name in ["ours", "theirs"] {
        let (code, _) = post(&server, MAPS, &config_map(name, "1")).await;
        assert_eq!(code, 201);
    }
    let administrator = UserInfo::new("kubernetes-admin", ["system:masters"]);
    let client = Client::new(server.in_process().as_user(administrator), "default");
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let (deletion, params) = (DeleteParams::default(), PatchParams::default());
    let data = Patch::Merge(json!({"data": {"k": "2"}}));
    let why = refusal(maps.patch("ours", &params, &data).await);
    assert!(why.ends_with("it is ours"), "{why}");
    refusal(maps.delete("ours", &deletion).await);
    refusal(maps.delete("ours", &deletion.clone().dry_run()).await);
    refusal(
        maps.delete_collection(&deletion, &ListParams::default())
            .await,
    );
    let label = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    maps.patch("ours", &params, &label).await.unwrap();
    let _gone = maps.delete("theirs", &deletion).await.unwrap();
    assert!(maps.get_opt("theirs").await.unwrap().is_none());
    // The process itself.
    let path = format!("{MAPS}/ours");
    let (code, _) = patch(&server, &path, MERGE, &json!({"data": {"k": "2"}})).await;
    assert_eq!(code, 200);
    assert_eq!(delete(&server, &path).await.0, 200);
}
