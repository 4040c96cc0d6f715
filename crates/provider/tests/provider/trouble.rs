//! What users see when something is wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use api::core::v1beta2::Cluster;
use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use api::k8s_openapi::api::core::v1::Secret;
use openstack::Service;
use serde_json::json;
use simulator::cloud::Options as CloudOptions;

use crate::world::{MINUTE, World, eventually};

#[tokio::test(start_paused = true)]
async fn wrong_credentials_are_one_condition_and_one_event() {
    let mut world = World::open(CloudOptions::default()).await;
    let right = world.cloud.clouds_yaml("http://cloud");
    world
        .credentials(&right.replace("password: secret", "password: wrong"))
        .await;
    world.run();
    world.cluster(json!({})).await;
    let condition = world
        .cluster_says("OpenStackAuthenticationSucceeded", "demo-cloud-config")
        .await;
    assert_eq!(condition.status, "False");
    assert_eq!(condition.reason, "OpenStackAuthenticationFailed");
    let events = world.events().await;
    assert_eq!(events, ["OpenStackAuthenticationFailed"]);
    world.credentials(&right).await;
    world.poke::<OpenStackCluster>("demo").await;
    world.cluster_ready().await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_secret_is_named_and_holds_up_deletion_with_advice() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    world.delete::<Secret>("demo-cloud-config").await;
    world.delete::<OpenStackCluster>("demo").await;
    let condition = world
        .cluster_says("Deleting", "Secret default/demo-cloud-config")
        .await;
    assert!(
        condition.message.contains("remove the finalizer"),
        "{}",
        condition.message
    );
    world
        .credentials(&world.cloud.clouds_yaml("http://cloud"))
        .await;
    world.poke::<OpenStackCluster>("demo").await;
    world.gone::<OpenStackCluster>("demo").await;
    assert_eq!(world.left_over(), Default::default());
}

#[tokio::test(start_paused = true)]
async fn a_flavor_that_does_not_exist_is_named_with_those_that_do() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    world
        .machine(
            "md-0",
            false,
            json!({"flavor": {"filter": {"name": "m9.huge"}}}),
        )
        .await;
    let condition = world
        .machine_says("md-0", "InstanceReady", "flavor `m9.huge` does not exist")
        .await;
    assert_eq!(condition.reason, "DependencyFailed");
    assert!(
        condition.message.contains("m1.small"),
        "{}",
        condition.message
    );
    world
        .machine(
            "md-1",
            false,
            json!({"image": {"filter": {"name": "nope"}}}),
        )
        .await;
    world
        .machine_says("md-1", "InstanceReady", "image `nope` does not exist")
        .await;
    world.delete_machine("md-0").await;
}

#[tokio::test(start_paused = true)]
async fn an_image_that_is_uploaded_later_is_found_with_the_next_look() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    let spec = json!({"image": {"filter": {"name": "later"}}});
    world.machine("md-0", false, spec).await;
    world
        .machine_says("md-0", "InstanceReady", "image `later` does not exist")
        .await;
    let id = uuid::Uuid::new_v4().to_string();
    let image =
        json!({"id": id, "name": "later", "disk_format": "qcow2", "container_format": "bare"});
    world
        .request(Service::Image, "POST", "/images", image)
        .await;
    let file = format!("/images/{id}/file");
    world.request(Service::Image, "PUT", &file, json!({})).await;
    world.poke::<OpenStackMachine>("md-0").await;
    let server = world.machine_ready("md-0").await;
    assert!(server.spec.provider_id.is_some());
}

#[tokio::test(start_paused = true)]
async fn an_exhausted_quota_is_told_in_the_clouds_words_and_half_made_machines_can_be_deleted() {
    let quotas = BTreeMap::from([("instances".to_owned(), 0)]);
    let mut world = World::open(CloudOptions {
        quotas,
        ..CloudOptions::default()
    })
    .await;
    world.run();
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    let cluster = world.cloud.resources();
    world.machine("md-0", false, json!({})).await;
    let condition = world
        .machine_says("md-0", "InstanceReady", "uota exceeded")
        .await;
    assert_eq!(condition.reason, "InstanceCreateFailed");
    assert!(
        condition.message.contains("ask for more quota"),
        "{}",
        condition.message
    );
    assert!(
        world
            .events()
            .await
            .contains(&"FailedCreateServer".to_owned())
    );
    assert_eq!(world.count("port"), cluster["demo"]["port"] + 1);
    world.delete_machine("md-0").await;
    assert_eq!(world.cloud.resources(), cluster);
}

#[tokio::test(start_paused = true)]
async fn a_failed_step_is_one_event_with_the_cause_first() {
    let quotas = BTreeMap::from([("instances".to_owned(), 0)]);
    let mut world = World::open(CloudOptions {
        quotas,
        ..CloudOptions::default()
    })
    .await;
    world.run();
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    world.machine("md-0", false, json!({})).await;
    let condition = world
        .machine_says(
            "md-0",
            "InstanceReady",
            "(create the server: compute POST /",
        )
        .await;
    assert!(
        condition.message.starts_with("Quota exceeded"),
        "{}",
        condition.message
    );
    assert!(!condition.message.contains(".."), "{}", condition.message);
    let failed = world.notes("md-0", "Warning").await;
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert!(failed[0].starts_with("FailedCreateServer: Quota exceeded"));
}

#[tokio::test(start_paused = true)]
async fn a_failure_domain_that_is_no_zone_is_named_with_those_that_are() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    let resources = world.cloud.resources();
    world.machine_in("mars", "md-0").await;
    let condition = world
        .machine_says(
            "md-0",
            "InstanceReady",
            "failureDomain `mars` is not a zone",
        )
        .await;
    assert_eq!(condition.reason, "InvalidMachineSpec");
    assert!(
        condition.message.contains("; there are: "),
        "{}",
        condition.message
    );
    assert_eq!(world.cloud.resources(), resources);
}

#[tokio::test(start_paused = true)]
async fn a_server_in_error_shows_novas_fault() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    world.machine("md-0", false, json!({})).await;
    let machine = world.machine_ready("md-0").await;
    let id = machine.status.unwrap().instance_id.unwrap();
    world
        .cloud
        .fail_server(&id, "No valid host was found.")
        .unwrap();
    let condition = world
        .machine_says("md-0", "InstanceReady", "No valid host was found")
        .await;
    assert_eq!(condition.reason, "InstanceStateError");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_become_a_node_shows_kubeadms_words() {
    let mut world = World::open(CloudOptions::default()).await;
    world
        .cloud
        .set_console(|_| "boot\nerror execution phase preflight: unknown token\n".to_owned());
    world.options(|options| options.bootstrap_timeout = Duration::ZERO);
    world.run();
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    world.machine("md-0", false, json!({})).await;
    let condition = world.machine_says("md-0", "Ready", "unknown token").await;
    assert_eq!(condition.reason, "BootstrapFailed");
}

#[tokio::test(start_paused = true)]
async fn a_paused_cluster_is_left_alone_whatever_changes_and_goes_on_afterwards() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    let pause = async |paused: bool| {
        let spec = json!({"spec": {"paused": paused}});
        world.merge::<Cluster>("demo", spec).await;
        eventually("Paused", || async {
            let object = world.api::<OpenStackCluster>().get("demo").await.unwrap();
            let conditions = object.status.unwrap_or_default().conditions;
            match api::conditions::is_true(&conditions, "Paused") == paused {
                true => Ok(()),
                false => Err(crate::world::listed(&conditions)),
            }
        })
        .await;
    };
    pause(true).await;
    let resources = world.cloud.resources();
    // A floating IP is deleted in the cloud, the spec changes, and a machine is created.
    let session = world.session().await;
    let ips = session.network().floating_ips(&[]).await.unwrap();
    session
        .network()
        .delete_floating_ip(&ips[0].id)
        .await
        .unwrap();
    let (writes, expected) = (world.writes(), world.cloud.resources());
    let balancer = json!({"allowedCIDRs": ["192.0.2.0/24"], "monitor": {"delay": 20}});
    let change = json!({"spec": {"apiServer": {"managedLoadBalancer": balancer}}});
    world.merge::<OpenStackCluster>("demo", change).await;
    world.machine("md-0", false, json!({})).await;
    eventually("the machine to be looked at", || async {
        let object = world.api::<OpenStackMachine>().get("md-0").await.unwrap();
        let conditions = object.status.unwrap_or_default().conditions;
        match api::conditions::is_true(&conditions, "Paused") {
            true => Ok(()),
            false => Err(crate::world::listed(&conditions)),
        }
    })
    .await;
    // The lists of the cloud show the deletion meanwhile.
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.cloud.resources(), expected);
    assert_eq!(world.writes(), writes, "nothing is written while paused");
    pause(false).await;
    world.machine_ready("md-0").await;
    eventually("what changed meanwhile", || async {
        let writes = world.writes();
        let restored = world.count("floatingip") == resources["demo"]["floatingip"];
        match writes.contains_key("PUT /v2.0/lbaas/listeners/{id}") && restored {
            true => Ok(()),
            false => Err(format!("{writes:?}")),
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn allowed_cidrs_of_the_other_family_are_a_condition_and_the_others_are_applied() {
    let world = World::start().await;
    let balancer = json!({"allowedCIDRs": ["192.0.2.0/24", "2001:db8::/32"]});
    world
        .cluster(json!({"apiServer": {"managedLoadBalancer": balancer}}))
        .await;
    let reported = world
        .cluster_says("APIEndpointReady", "2001:db8::/32")
        .await;
    assert_eq!(reported.status, "False");
    assert_eq!(reported.reason, "InvalidClusterSpec");
    let listeners = world.cloud.world().borrow().listeners.clone();
    assert_eq!(listeners.len(), 1);
    let applied = &listeners[0].allowed_cidrs;
    assert!(
        applied.contains(&"192.0.2.0/24".to_owned()),
        "{listeners:?}"
    );
    assert!(
        applied.iter().all(|cidr| !cidr.contains(':')),
        "{listeners:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_without_a_network_is_a_condition_and_no_request_names_an_empty_one() {
    let world = World::start().await;
    world.cluster(json!({"managedSubnets": []})).await;
    let reported = world
        .cluster_says("APIEndpointReady", "cluster has no network")
        .await;
    assert_eq!(reported.status, "False");
    assert_eq!(reported.reason, "APIEndpointConfigFailed");
    let writes = world.writes();
    assert!(
        writes.keys().all(|call| !call.contains("loadbalancers")),
        "{writes:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_cacert_that_is_not_text_is_named_and_not_ignored() {
    let world = World::start().await;
    let data = json!({"data": {"cacert": "//79"}});
    world.merge::<Secret>("demo-cloud-config", data).await;
    world.cluster(json!({})).await;
    let condition = world
        .cluster_says(
            "OpenStackAuthenticationSucceeded",
            "the key cacert is not text",
        )
        .await;
    assert_eq!(condition.status, "False");
}

#[tokio::test(start_paused = true)]
async fn a_login_refused_with_404_is_a_problem_of_the_credentials_and_nothing_counts_as_deleted() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    world.machine("worker", false, json!({})).await;
    world.machine_ready("worker").await;
    let before = world.cloud.resources();
    // As Keystone after the deletion of the application credential, whose tokens no service accepts.
    let words = "Could not find Application Credential: 818a.";
    world
        .fault(
            json!({"service": "identity", "method": "POST", "route": "/v3/auth/tokens",
            "status": 404, "message": words}),
        )
        .await;
    for service in ["compute", "network"] {
        world
            .fault(json!({"service": service, "status": 401}))
            .await;
    }
    world.delete::<OpenStackMachine>("worker").await;
    let condition = world
        .machine_says("worker", "OpenStackAuthenticationSucceeded", words)
        .await;
    assert_eq!(condition.status, "False");
    assert_eq!(condition.reason, "OpenStackAuthenticationFailed");
    assert!(
        condition.message.contains("clouds.yaml in the Secret"),
        "{}",
        condition.message
    );
    assert_eq!(world.cloud.resources(), before);
    world.mend().await;
    world.poke::<OpenStackMachine>("worker").await;
    world.gone::<OpenStackMachine>("worker").await;
}

#[tokio::test(start_paused = true)]
async fn a_delete_refused_because_the_credential_is_gone_does_not_count_as_done() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    world.machine("worker", false, json!({})).await;
    world.machine_ready("worker").await;
    let before = world.cloud.resources();
    let words = "Could not find Application Credential: 818a.";
    world
        .fault(
            json!({"service": "identity", "method": "POST", "route": "/v3/auth/tokens",
            "status": 404, "message": words}),
        )
        .await;
    world
        .fault(json!({"method": "DELETE", "status": 401}))
        .await;
    world.delete::<OpenStackMachine>("worker").await;
    world
        .machine_says("worker", "OpenStackAuthenticationSucceeded", words)
        .await;
    assert_eq!(world.cloud.resources(), before);
}
