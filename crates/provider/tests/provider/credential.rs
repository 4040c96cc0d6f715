//! An application credential as the openstack client makes it: it works, and its deletion is a problem of the credentials.

use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use openstack::Service;
use serde_json::{Value, json};

use crate::world::{World, eventually};

/// Makes an application credential of the project's user, as `openstack application credential create` does, which sends
/// an empty list of roles. Returns its path and a clouds.yaml with it.
async fn credential(world: &World, name: &str) -> (String, String) {
    let group = json!({"server_group": {"name": name, "policy": "affinity"}});
    let groups = "/os-server-groups";
    let group = world.request(Service::Compute, "POST", groups, group).await;
    let user = group["server_group"]["user_id"].as_str().unwrap();
    let path = format!("/users/{user}/application_credentials");
    let body =
        json!({"application_credential": {"name": name, "roles": [], "unrestricted": false}});
    let created = world.request(Service::Identity, "POST", &path, body).await;
    let created = &created["application_credential"];
    let text = |field: &str| created[field].as_str().unwrap();
    let clouds = json!({"clouds": {"simulated": {"auth_type": "v3applicationcredential", "auth": {
        "auth_url": "http://cloud/identity/v3", "application_credential_id": text("id"),
        "application_credential_secret": text("secret")}, "region_name": "RegionOne"}}});
    (format!("{path}/{}", text("id")), clouds.to_string())
}

#[tokio::test(start_paused = true)]
async fn an_application_credential_works_until_it_is_deleted_and_that_is_told_in_keystones_words() {
    let world = World::start().await;
    let (path, clouds) = credential(&world, "first").await;
    world.credentials(&clouds).await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    world.machine("worker", false, json!({})).await;
    world.machine_ready("worker").await;
    let before = world.cloud.resources();
    let id = path.rsplit('/').next().unwrap();
    let words = format!("Could not find Application Credential: {id}.");
    let identity = Service::Identity;
    world.request(identity, "DELETE", &path, Value::Null).await;
    world.delete::<OpenStackMachine>("worker").await;
    let type_ = "OpenStackAuthenticationSucceeded";
    let condition = world.machine_says("worker", type_, &words).await;
    assert_eq!(condition.status, "False");
    assert_eq!(condition.reason, "OpenStackAuthenticationFailed");
    let advice = "clouds.yaml in the Secret";
    assert!(condition.message.contains(advice), "{}", condition.message);
    world.poke::<OpenStackCluster>("demo").await;
    let condition = world.cluster_says(type_, &words).await;
    assert_eq!(condition.status, "False");
    let deleting = world.machine_says("worker", "Deleting", &words).await;
    assert_eq!(deleting.status, "True");
    let mut now = world.cloud.resources();
    let mut kept = before.clone();
    for all in [&mut now, &mut kept] {
        all.values_mut()
            .for_each(|types| types.retain(|type_, _| type_ != "application_credential"));
    }
    assert_eq!(now, kept, "nothing counts as deleted");

    let (_, clouds) = credential(&world, "second").await;
    world.credentials(&clouds).await;
    world.gone::<OpenStackMachine>("worker").await;
    eventually("the server to go", || async {
        (world.count("server") == 0)
            .then_some(())
            .ok_or("it is there".to_owned())
    })
    .await;
    world.cluster_ready().await;
}
