//! A canary password is in no log, event, status or metric.

use kube::api::{Api, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;

use crate::cloud::TestCloud;
use crate::process::{KINDS, Up};

#[tokio::test(flavor = "multi_thread")]
async fn the_password_of_the_cloud_is_seen_nowhere_but_in_its_secret() {
    let home = tempfile::tempdir().unwrap();
    let cloud = TestCloud::start(home.path()).await;
    let canary = "canary-4f2d81c7b95e";
    cloud.log_in_as_new_user("watched", canary).await;
    let args = [
        "--cloud",
        "simulated",
        "--control-plane-machine-count",
        "1",
        "--worker-machine-count",
        "1",
    ];
    let mut up = Up::start(home.path(), &args, &cloud.variables());
    up.ready().await;
    let client = up.client().await;
    let mut seen = Vec::new();
    for (group, version, kind) in KINDS {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let list = api.list(&ListParams::default()).await.unwrap();
        // Nobody has created these.
        let expected = !["ConfigMap", "Pod"].contains(&kind);
        assert!(!list.items.is_empty() || !expected, "{kind}");
        seen.push((kind.to_owned(), serde_json::to_string(&list.items).unwrap()));
    }
    let metrics = client
        .request_text(http::Request::get("/metrics").body(Vec::new()).unwrap())
        .await
        .unwrap();
    // What the controllers count is there, too.
    for counted in [
        "controller_runtime_reconcile_total{controller=\"openstackcluster\"",
        "ferrostack_openstack_requests_total{service=\"network\"",
    ] {
        assert!(metrics.contains(counted), "no {counted} in /metrics");
    }
    // The page of reference has a row for each.
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let page = std::fs::read_to_string(format!("{root}/docs/reference/metrics.md")).unwrap();
    let declared = metrics.lines().filter_map(|line| {
        let (name, kind) = line.strip_prefix("# TYPE ")?.split_once(' ')?;
        Some(format!("| `{name}` | {kind} | "))
    });
    for row in declared {
        assert!(page.contains(&row), "no row `{row}` in metrics.md");
    }
    seen.push(("metrics".to_owned(), metrics));
    let log: String = reqwest::get(format!("{}/_simulator/log", cloud.url))
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    seen.push(("log of the simulated cloud".to_owned(), log));
    seen.push((
        "log".to_owned(),
        std::fs::read_to_string(home.path().join("log")).unwrap(),
    ));
    seen.push(("output".to_owned(), up.story()));
    let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, canary);
    for (place, text) in seen {
        assert!(
            !text.contains(canary) && !text.contains(&encoded),
            "the password is in: {place}"
        );
    }
    up.stop().await;
}
