//! Tables for kubectl, and the other forms of an answer.

use apiserver::ApiServer;
use http::Method;
use serde_json::{Value, json};

use crate::support::*;

async fn form(server: &ApiServer, path: &str, accept: &str) -> Value {
    read(send(server, Method::GET, path, &[("accept", accept)], "").await)
        .await
        .1
}

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

#[tokio::test]
async fn nodes_show_their_status_roles_and_version() {
    let server = server().await;
    let node = json!({
        "metadata": {"name": "n", "labels": {"node-role.kubernetes.io/control-plane": ""}},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"kubeletVersion": "v1.34.1"},
        },
    });
    post(&server, "/api/v1/nodes", &node).await;
    let table = form(&server, "/api/v1/nodes", TABLE).await;
    let cells = &table["rows"][0]["cells"];
    assert_eq!(
        (&cells[0], &cells[1], &cells[2], &cells[4]),
        (
            &json!("n"),
            &json!("Ready"),
            &json!("control-plane"),
            &json!("v1.34.1")
        )
    );
    assert_eq!(table["columnDefinitions"][1]["name"], "Status");
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
}

#[tokio::test]
async fn custom_resources_show_the_columns_of_their_definition() {
    let server = server().await;
    post(&server, CRDS, &widgets()).await;
    post(&server, WIDGETS, &widget("a")).await;
    patch(
        &server,
        &format!("{WIDGETS}/a/status"),
        MERGE,
        &json!({"status": {"phase": "Up"}}),
    )
    .await;
    let table = form(&server, WIDGETS, TABLE).await;
    let names: Vec<&Value> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| &column["name"])
        .collect();
    assert_eq!(names, [&json!("Name"), &json!("Phase"), &json!("Age")]);
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(cells[..2], [json!("a"), json!("Up")]);
    assert!(cells[2].as_str().unwrap().ends_with('s'));
}

#[tokio::test]
async fn metadata_alone_is_given_to_those_who_ask() {
    let server = server().await;
    post(&server, MAPS, &config_map("a", "1")).await;
    let one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let object = form(&server, &format!("{MAPS}/a"), one).await;
    assert_eq!(
        (object["kind"].as_str(), object.get("data")),
        (Some("PartialObjectMetadata"), None)
    );
    let all = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let list = form(&server, MAPS, all).await;
    assert_eq!(
        (&list["kind"], &list["items"][0]["metadata"]["name"]),
        (&json!("PartialObjectMetadataList"), &json!("a"))
    );
}

#[tokio::test]
async fn discovery_names_every_served_resource_in_both_forms() {
    let server = server().await;
    post(&server, CRDS, &widgets()).await;
    let (_, groups) = get(&server, "/apis").await;
    let group = groups["groups"]
        .as_array()
        .unwrap()
        .iter()
        .find(|g| g["name"] == "example.org")
        .unwrap();
    assert_eq!(group["preferredVersion"]["version"], "v1");
    let (_, resources) = get(&server, "/apis/example.org/v1").await;
    let names: Vec<&Value> = resources["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|resource| &resource["name"])
        .collect();
    assert_eq!(
        names,
        [
            &json!("widgets"),
            &json!("widgets/status"),
            &json!("widgets/scale")
        ]
    );
    let aggregated =
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    let list = form(&server, "/apis", aggregated).await;
    assert_eq!(list["kind"], "APIGroupDiscoveryList");
    let group = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|g| g["metadata"]["name"] == "example.org")
        .unwrap();
    assert_eq!(
        group["versions"][0]["resources"][0]["shortNames"],
        json!(["wd"])
    );
}
