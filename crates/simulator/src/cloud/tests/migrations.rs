//! Hosts of a deployed cloud: services, live migrations, evacuations.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::cloud::{Host, Service};

/// A cloud with these hosts.
async fn cloud(hosts: &[(&str, bool)]) -> Cloud {
    let cloud = Cloud::open(Options::default()).await.unwrap();
    register(&cloud, hosts);
    cloud
}

fn register(cloud: &Cloud, hosts: &[(&str, bool)]) {
    let host = |(name, is_up): &(&str, bool)| Host {
        name: (*name).to_owned(),
        is_up: *is_up,
    };
    cloud
        .hosts(&hosts.iter().map(host).collect::<Vec<_>>())
        .unwrap();
}

fn ask(cloud: &Cloud, method: &Method, path: &str, body: &Value) -> (u16, Value) {
    cloud.asked(Service::Compute, method, path, body)
}

fn act(cloud: &Cloud, server: &str, action: Value) -> (u16, Value) {
    let path = format!("/v2.1/servers/{server}/action");
    ask(cloud, &Method::POST, &path, &action)
}

fn live() -> Value {
    json!({"os-migrateLive": {"host": null, "block_migration": "auto"}})
}

fn state_of(cloud: &Cloud, server: &str) -> (String, String) {
    let path = format!("/v2.1/servers/{server}");
    let (_, answer) = ask(cloud, &Method::GET, &path, &Value::Null);
    let text = |field: &str| {
        answer["server"][field]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    (text("status"), text("OS-EXT-SRV-ATTR:host"))
}

fn service(cloud: &Cloud, host: &str) -> Value {
    let path = format!("/v2.1/os-services?binary=nova-compute&host={host}");
    let (_, answer) = ask(cloud, &Method::GET, &path, &Value::Null);
    answer["services"][0].clone()
}

fn message(answer: &Value) -> &str {
    let error = answer.as_object().unwrap().values().next().unwrap();
    error["message"].as_str().unwrap()
}

#[tokio::test]
async fn a_running_server_moves_to_an_enabled_host_that_is_up() {
    let cloud = cloud(&[("a", true), ("b", true), ("c", false)]).await;
    let server = cloud.put_server("web", "a").unwrap();
    cloud.set_live_migration(Duration::from_secs(60));
    assert_eq!(act(&cloud, &server, live()).0, 202);
    assert_eq!(state_of(&cloud, &server).0, "MIGRATING");
    let status = |host: &str| {
        let path = format!("/v2.1/os-migrations?host={host}");
        let (_, list) = ask(&cloud, &Method::GET, &path, &Value::Null);
        list["migrations"][0]["status"].clone()
    };
    assert_eq!((status("b"), status("c")), (json!("queued"), Value::Null));
    cloud.advance_clock(Duration::from_secs(40));
    assert_eq!(status("b"), "running");
    let path = format!(
        "/v2.1/os-services/{}",
        service(&cloud, "b")["id"].as_str().unwrap()
    );
    let (status, answer) = ask(&cloud, &Method::DELETE, &path, &Value::Null);
    assert_eq!(status, 409);
    assert!(message(&answer).contains("in-progress migrations"));
    assert_eq!(act(&cloud, &server, live()).0, 409, "it moves already");
    cloud.advance_clock(Duration::from_secs(61));
    assert_eq!(
        state_of(&cloud, &server),
        ("ACTIVE".to_owned(), "b".to_owned())
    );
    let path = "/v2.1/os-migrations?source_compute=a&migration_type=live-migration";
    let (_, list) = ask(&cloud, &Method::GET, path, &Value::Null);
    assert_eq!(list["migrations"][0]["status"], "completed");
    assert_eq!(list["migrations"][0]["dest_compute"], "b");
}

#[tokio::test]
async fn without_a_host_and_after_a_fault_the_server_stays_and_its_action_tells_why() {
    let cloud = cloud(&[("a", true), ("b", true)]).await;
    let server = cloud.put_server("web", "a").unwrap();
    cloud.fail_migrations("web", "CPU does not match", 1);
    let id = service(&cloud, "b")["id"].as_str().unwrap().to_owned();
    for why in [
        "CPU does not match",
        "No valid host was found. There are not enough hosts available.",
    ] {
        assert_eq!(act(&cloud, &server, live()).0, 202);
        assert_eq!(
            state_of(&cloud, &server),
            ("ACTIVE".to_owned(), "a".to_owned())
        );
        let path = format!("/v2.1/servers/{server}/os-instance-actions");
        let (_, list) = ask(&cloud, &Method::GET, &path, &Value::Null);
        let action = &list["instanceActions"][0];
        assert_eq!(
            (&action["action"], &action["message"]),
            (&json!("live-migration"), &json!("Error"))
        );
        let path = format!("{path}/{}", action["request_id"].as_str().unwrap());
        let (_, action) = ask(&cloud, &Method::GET, &path, &Value::Null);
        assert_eq!(action["instanceAction"]["events"][0]["details"], why);
        let body = json!({"status": "disabled", "disabled_reason": "for a test"});
        let path = format!("/v2.1/os-services/{id}");
        assert_eq!(ask(&cloud, &Method::PUT, &path, &body).0, 200);
    }
    assert_eq!(service(&cloud, "b")["disabled_reason"], "for a test");
    let path = "/v2.1/os-migrations?status=error";
    let (_, list) = ask(&cloud, &Method::GET, path, &Value::Null);
    assert_eq!(list["migrations"].as_array().unwrap().len(), 2);
    assert_eq!(act(&cloud, &server, json!({"os-stop": null})).0, 202);
    let (status, answer) = act(&cloud, &server, live());
    assert_eq!(status, 409);
    let expected =
        format!("Cannot 'os-migrateLive' instance {server} while it is in vm_state stopped");
    assert_eq!(message(&answer), expected);
}

#[tokio::test]
async fn disks_of_hosts_are_copied_or_the_server_stays_and_a_lost_destination_is_a_failure() {
    let cloud = cloud(&[("a", true), ("b", true), ("c", true)]).await;
    let server = cloud.put_server("web", "a").unwrap();
    let shared = json!({"os-migrateLive": {"host": "b", "block_migration": false}});
    let stays = ("ACTIVE".to_owned(), "a".to_owned());
    let newest = || {
        let path = "/v2.1/os-migrations?limit=1";
        let (_, list) = ask(&cloud, &Method::GET, path, &Value::Null);
        list["migrations"][0]["status"].clone()
    };
    assert_eq!(act(&cloud, &server, shared).0, 202);
    assert_eq!(
        (state_of(&cloud, &server), newest()),
        (stays.clone(), json!("error"))
    );

    cloud.set_live_migration(Duration::from_secs(60));
    let named = json!({"os-migrateLive": {"host": "b", "block_migration": "auto"}});
    assert_eq!(act(&cloud, &server, named).0, 202);
    register(&cloud, &[("a", true), ("c", true)]);
    cloud.advance_clock(Duration::from_secs(61));
    assert_eq!(
        (state_of(&cloud, &server), newest()),
        (stays, json!("error"))
    );
}

#[tokio::test]
async fn a_host_that_is_down_is_evacuated_and_its_service_is_deleted_when_it_is_empty() {
    let cloud = cloud(&[("a", true), ("b", true)]).await;
    let server = cloud.put_server("web", "a").unwrap();
    let (status, answer) = act(&cloud, &server, json!({"evacuate": {}}));
    assert_eq!(
        (status, message(&answer)),
        (400, "Compute service of a is still in use.")
    );
    register(&cloud, &[("b", true)]);
    assert_eq!(
        act(&cloud, &server, live()).0,
        202,
        "its host is looked at later"
    );
    let (_, list) = ask(&cloud, &Method::GET, "/v2.1/os-migrations", &Value::Null);
    assert_eq!(list["migrations"][0]["status"], "error");
    let path = format!(
        "/v2.1/os-services/{}",
        service(&cloud, "a")["id"].as_str().unwrap()
    );
    assert_eq!(ask(&cloud, &Method::DELETE, &path, &Value::Null).0, 409);
    assert_eq!(act(&cloud, &server, json!({"evacuate": {}})).0, 200);
    assert_eq!(
        state_of(&cloud, &server),
        ("ACTIVE".to_owned(), "b".to_owned())
    );
    assert_eq!(ask(&cloud, &Method::DELETE, &path, &Value::Null).0, 204);
    assert_eq!(service(&cloud, "a"), Value::Null);
    let agents = |host: &str| {
        let path = format!("/v2.0/agents?host={host}");
        let (_, answer) = cloud.asked(Service::Network, &Method::GET, &path, &Value::Null);
        answer["agents"].as_array().unwrap().clone()
    };
    let path = format!("/v2.0/agents/{}", agents("a")[0]["id"].as_str().unwrap());
    let (status, _) = cloud.asked(Service::Network, &Method::DELETE, &path, &Value::Null);
    assert_eq!((status, agents("a").len(), agents("b").len()), (204, 1, 2));
}

#[tokio::test]
async fn changes_of_services_that_nova_refuses_are_refused() {
    let cloud = cloud(&[("a", true)]).await;
    let path = format!(
        "/v2.1/os-services/{}",
        service(&cloud, "a")["id"].as_str().unwrap()
    );
    for (body, expected) in [
        (json!({}), "No updates were requested."),
        (
            json!({"status": "off"}),
            "is not one of ['enabled', 'disabled']",
        ),
        (
            json!({"status": "enabled", "disabled_reason": "x"}),
            "Specifying disabled_reason requires that status be 'disabled'.",
        ),
        (
            json!({"state": "up"}),
            "Additional properties are not allowed",
        ),
    ] {
        let (status, answer) = ask(&cloud, &Method::PUT, &path, &body);
        assert_eq!(status, 400, "{body}");
        assert!(message(&answer).contains(expected), "{answer}");
    }
    let other = "/v2.1/os-services/00000000-0000-0000-0000-000000000000";
    let body = json!({"status": "enabled"});
    assert_eq!(ask(&cloud, &Method::PUT, other, &body).0, 404);
}
