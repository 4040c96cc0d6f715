//! Logins of cloud.conf as charts write them.

use std::sync::Arc;

use ccm::Settings;
use cloud_conf::{CloudConf, Program};
use serde_json::{Value, json};

use crate::world::World;

/// As Kubernikus' chart wrote it: neither a tenant nor the domain of one.
const WITHOUT_TENANT: &str = "[Global]
auth-url = http://cloud/identity/v3
username = kubernikus
password = pw 
domain-name = Default 
region = RegionOne 
";

/// The id of the resource of Keystone's with this name.
async fn id(world: &World, kind: &str, name: &str) -> Value {
    let all = world
        .administer("GET", &format!("/identity/v3/{kind}"), Value::Null)
        .await;
    let mut all = all[kind].as_array().unwrap().iter();
    all.find(|item| item["name"] == name).unwrap()["id"].clone()
}

/// A user with a default project.
async fn user(world: &World) {
    let project = id(world, "projects", "demo").await;
    let user = json!({"user": {"name": "kubernikus", "password": "pw", "domain_id": "default",
        "default_project_id": project}});
    let user = world.administer("POST", "/identity/v3/users", user).await;
    let role = id(world, "roles", "member").await;
    let [project, user, role] =
        [&project, &user["user"]["id"], &role].map(|id| id.as_str().unwrap());
    let path = format!("/identity/v3/projects/{project}/users/{user}/roles/{role}");
    world.administer("PUT", &path, Value::Null).await;
}

#[tokio::test(start_paused = true)]
async fn a_cloud_conf_without_a_tenant_serves_in_the_default_project_of_its_user() {
    let mut world = World::open("").await;
    user(&world).await;
    let parsed = CloudConf::parse(WITHOUT_TENANT, Program::CloudControllerManager).unwrap();
    assert!(parsed.warnings.is_empty(), "{:?}", parsed.warnings);
    let conf = parsed.conf;
    let cloud = conf.global.cloud(None).unwrap();
    world
        .settings
        .send_replace(Arc::new(Settings { conf, cloud }));
    world.run();
    world.route_out().await;
    world.worker("worker-1").await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    world.published("web").await;
    // The requests of the test are those of the project demo.
    assert_eq!(world.octavia("loadbalancers").await.len(), 1);
}
