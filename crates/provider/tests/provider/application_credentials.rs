//! Application credentials for the programs of a cluster, which the provider makes, renews and revokes.

use std::time::Duration;

use api::addons::v1beta2::ClusterResourceSetBinding;
use api::infra::v1beta2::OpenStackCluster;
use api::k8s_openapi::ByteString;
use api::k8s_openapi::api::core::v1::Secret;
use api::k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use openstack::config::{ApplicationCredentialRef, Credential};
use openstack::{CloudConfig, ErrorKind, Service};
use serde_json::{Value, json};
use simulator::cloud::Options as CloudOptions;

use crate::lives::{Life, killed_at};
use crate::world::{World, eventually};

const ANNOTATION: &str = "ferrostack.dev/application-credentials";
const BOTH: &str = "cloud-controller-manager,cinder-csi-plugin";
const CONDITION: &str = "ApplicationCredentialsReady";
const RECORD: &str = "demo-application-credentials";
const MANIFESTS: &str = "demo-cloud-configs";

async fn annotate(world: &World, value: Value) {
    let change = json!({"metadata": {"annotations": {ANNOTATION: value}}});
    world.merge::<OpenStackCluster>("demo", change).await;
}

fn text(secret: &Secret, key: &str) -> Value {
    let data = secret.data.as_ref().and_then(|data| data.get(key));
    data.map_or(Value::Null, |it| serde_json::from_slice(&it.0).unwrap())
}

async fn record(world: &World) -> Value {
    let secret = world.api::<Secret>().get_opt(RECORD).await.unwrap();
    secret.map_or(Value::Null, |it| text(&it, "record"))
}

/// The recorded credentials of a program.
async fn entries(world: &World, program: &str) -> Vec<Value> {
    let all = record(world).await;
    all[program].as_array().cloned().unwrap_or_default()
}

/// The application credentials of the user, as Keystone has them.
async fn existing(world: &World) -> Vec<Value> {
    let session = world.session().await;
    let user = session.token().await.unwrap().user_id.clone();
    let path = format!("/users/{user}/application_credentials");
    let all = world
        .request(Service::Identity, "GET", &path, Value::Null)
        .await;
    all["application_credentials"].as_array().unwrap().clone()
}

/// Waits until each of these programs has so many credentials, all usable, and the latest is in the manifests.
async fn have(world: &World, programs: &[&str], count: usize) {
    eventually("credentials", || async {
        let secret = world.api::<Secret>().get_opt(MANIFESTS).await.unwrap();
        let annotations = secret
            .map(|it| it.annotations().clone())
            .unwrap_or_default();
        for program in programs {
            let entries = entries(world, program).await;
            let name = format!("ferrostack.dev/application-credential-of-{program}");
            let delivered = annotations.get(&name).map(String::as_str);
            let latest = entries.last().and_then(|it| it["name"].as_str());
            let is_usable = entries.iter().all(|it| it["id"].is_string());
            if entries.len() != count || !is_usable || delivered != latest {
                return Err(format!("{program}: {entries:?} {delivered:?}"));
            }
        }
        let there = existing(world).await.len();
        match there == programs.len() * count {
            true => Ok(()),
            false => Err(format!("{there} in Keystone")),
        }
    })
    .await;
}

/// Puts the times of all recorded credentials back, so that they are to be renewed.
async fn age(world: &World) {
    let mut all = record(world).await;
    let moved = |text: &Value, days: i64| {
        let at: Timestamp = text.as_str().unwrap().parse().unwrap();
        json!((at - SignedDuration::from_hours(days * 24)).to_string())
    };
    for entry in all.as_object_mut().unwrap().values_mut() {
        let entry = &mut entry[0];
        entry["madeAt"] = moved(&entry["madeAt"], 25);
        entry["expiresAt"] = moved(&entry["expiresAt"], 25);
    }
    let change = json!({"data": {"record": ByteString(all.to_string().into_bytes())}});
    world.merge::<Secret>(RECORD, change).await;
    world.poke::<OpenStackCluster>("demo").await;
}

/// Writes what a ClusterResourceSet writes when it has applied the manifests, long ago.
async fn use_them(world: &World) {
    let ago = |minutes: i64| {
        let at = Timestamp::now() - SignedDuration::from_mins(minutes);
        at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    };
    let change = json!({"metadata": {"annotations": {"ferrostack.dev/written-at": ago(60)}}});
    world.merge::<Secret>(MANIFESTS, change).await;
    let binding = json!({"apiVersion": "addons.cluster.x-k8s.io/v1beta2", "kind": "ClusterResourceSetBinding",
        "metadata": {"name": "demo"}, "spec": {"clusterName": "demo", "bindings": [
            {"clusterResourceSetName": "any", "resources": [{"kind": "Secret", "name": MANIFESTS,
                "applied": true, "lastAppliedTime": ago(30)}]}]}});
    world.create(binding).await;
    world.poke::<OpenStackCluster>("demo").await;
}

async fn asking(world: &World, programs: &str) {
    world.cluster(json!({})).await;
    annotate(world, json!(programs)).await;
    world.cluster_ready().await;
}

async fn goes(world: &World) {
    world.delete::<OpenStackCluster>("demo").await;
    world.gone::<OpenStackCluster>("demo").await;
}

/// A login with what is in the manifest of a program.
async fn login_of(world: &World, program: &str) -> openstack::Session {
    let secret = world.api::<Secret>().get(MANIFESTS).await.unwrap();
    let manifest = text(&secret, &format!("{program}.yaml"));
    assert_eq!(manifest["metadata"]["namespace"], "kube-system");
    assert_eq!(
        manifest["metadata"]["name"],
        format!("{program}-cloud-config")
    );
    let conf = manifest["stringData"]["cloud.conf"]
        .as_str()
        .unwrap()
        .to_owned();
    let value = |key: &str| {
        let line = conf.lines().find_map(|line| line.strip_prefix(key));
        let value = line.unwrap().trim_start_matches([' ', '=']);
        value.trim_matches('"').to_owned()
    };
    let known = world.session().await;
    let config = CloudConfig {
        credential: Credential::ApplicationCredential {
            which: ApplicationCredentialRef::Id(value("application-credential-id")),
            secret: value("application-credential-secret").into(),
        },
        ..known.config().clone()
    };
    world.session_of(config).await
}

#[tokio::test(start_paused = true)]
async fn each_program_has_a_credential_that_allows_its_requests_and_nothing_else() {
    let world = World::start().await;
    asking(&world, BOTH).await;
    have(
        &world,
        &["cloud-controller-manager", "cinder-csi-plugin"],
        1,
    )
    .await;
    let condition = world
        .cluster_says(CONDITION, "cinder-csi-plugin until ")
        .await;
    assert_eq!(
        (condition.status, condition.reason),
        ("True".into(), "Ready".into())
    );
    for credential in existing(&world).await {
        assert_eq!(credential["unrestricted"], false);
        assert!(credential["expires_at"].is_string());
        assert!(!credential["access_rules"].as_array().unwrap().is_empty());
    }
    let manager = login_of(&world, "cloud-controller-manager").await;
    let driver = login_of(&world, "cinder-csi-plugin").await;
    manager
        .try_list(Service::Compute, "/servers/detail")
        .await
        .unwrap();
    driver
        .try_list(Service::Volume, "/volumes/detail")
        .await
        .unwrap();
    for (session, service, route) in [
        (&manager, Service::Volume, "/volumes/detail"),
        (&manager, Service::Image, "/images"),
        (&driver, Service::Network, "/ports"),
        (&driver, Service::Compute, "/flavors/detail"),
    ] {
        let error = session.try_list(service, route).await.unwrap_err();
        assert_eq!(
            error.kind(),
            ErrorKind::Unauthenticated,
            "{service} {route}"
        );
    }
    let identity = manager.identity();
    let id = existing(&world).await[0]["id"].as_str().unwrap().to_owned();
    let denied = identity
        .delete_application_credential(&id)
        .await
        .unwrap_err();
    assert_eq!(denied.kind(), ErrorKind::Denied);
    goes(&world).await;
    assert_eq!(world.left_over(), Default::default());
}

#[tokio::test(start_paused = true)]
async fn a_credential_is_renewed_before_it_expires_and_the_former_one_ends_when_the_new_one_is_in_use()
 {
    let manager = ["cloud-controller-manager"];
    let world = World::start().await;
    asking(&world, manager[0]).await;
    have(&world, &manager, 1).await;
    let former = login_of(&world, manager[0]).await;
    age(&world).await;
    have(&world, &manager, 2).await;
    let latest = login_of(&world, manager[0]).await;
    for session in [&former, &latest] {
        session.try_list(Service::Network, "/ports").await.unwrap();
    }
    use_them(&world).await;
    have(&world, &manager, 1).await;
    latest.try_list(Service::Network, "/ports").await.unwrap();
    let error = former
        .try_list(Service::Network, "/ports")
        .await
        .unwrap_err();
    assert!(
        error.is_login() || error.kind() == ErrorKind::Unauthenticated,
        "{error}"
    );
    let events = world.events().await;
    assert!(
        !events.iter().any(|it| it.contains("Warning")),
        "{events:?}"
    );
    world.cluster_ready().await;
}

#[tokio::test(start_paused = true)]
async fn at_rest_keystone_is_not_asked() {
    let world = World::start().await;
    asking(&world, BOTH).await;
    have(
        &world,
        &["cloud-controller-manager", "cinder-csi-plugin"],
        1,
    )
    .await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.cloud.reset_requests();
    tokio::time::sleep(Duration::from_secs(3000)).await;
    for _ in 0..5 {
        world.poke::<OpenStackCluster>("demo").await;
        tokio::time::sleep(Duration::from_secs(20)).await;
    }
    let asked = world.cloud.requests().into_iter();
    let asked: Vec<_> = asked.filter(|it| it.service == "identity").collect();
    assert!(asked.is_empty(), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_credential_without_a_record_is_revoked_and_one_deleted_by_hand_is_made_again() {
    let manager = ["cloud-controller-manager"];
    let mut world = World::start().await;
    asking(&world, manager[0]).await;
    have(&world, &manager, 1).await;
    let id = existing(&world).await[0]["id"].clone();
    world.kill().await;
    world.delete::<Secret>(RECORD).await;
    world.run();
    have(&world, &manager, 1).await;
    let now = existing(&world).await[0]["id"].clone();
    assert_ne!(now, id);
    let session = world.session().await;
    let identity = session.identity();
    let id = now.as_str().unwrap();
    identity.delete_application_credential(id).await.unwrap();
    tokio::time::sleep(Duration::from_secs(4000)).await;
    world.poke::<OpenStackCluster>("demo").await;
    have(&world, &manager, 1).await;
    assert_ne!(existing(&world).await[0]["id"], id);
}

#[tokio::test(start_paused = true)]
async fn credentials_of_others_are_never_revoked_whatever_their_name() {
    let world = World::start().await;
    asking(&world, "cloud-controller-manager").await;
    have(&world, &["cloud-controller-manager"], 1).await;
    let ours = existing(&world).await[0].clone();
    let session = world.session().await;
    let user = session.token().await.unwrap().user_id.clone();
    let path = format!("/users/{user}/application_credentials");
    let name = format!("{}-2", ours["name"].as_str().unwrap());
    let of_user = json!({"application_credential": {"name": name, "description": "of a person"}});
    world
        .request(Service::Identity, "POST", &path, of_user)
        .await;
    let mark = "Made by ferrostack for OpenStackCluster demo: cloud-controller-manager \
                [6d7f3d0e-7f1c-4c58-9a5e-0d4b3b1f2a11]";
    let of_neighbour = json!({"application_credential": {"name": "n", "description": mark}});
    world
        .request(Service::Identity, "POST", &path, of_neighbour)
        .await;
    goes(&world).await;
    let left = existing(&world).await;
    let names: Vec<_> = left.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, [name.as_str(), "n"]);
}

#[tokio::test(start_paused = true)]
async fn without_the_annotation_credentials_are_revoked_and_the_condition_goes() {
    let world = World::start().await;
    asking(&world, BOTH).await;
    have(
        &world,
        &["cloud-controller-manager", "cinder-csi-plugin"],
        1,
    )
    .await;
    annotate(&world, json!("cinder-csi-plugin")).await;
    have(&world, &["cinder-csi-plugin"], 1).await;
    annotate(&world, Value::Null).await;
    eventually("the condition to go", || async {
        let cluster = world.api::<OpenStackCluster>().get("demo").await.unwrap();
        let conditions = cluster.status.unwrap_or_default().conditions;
        let found = api::conditions::find(&conditions, CONDITION);
        found.map_or(Ok(()), |it| Err(it.message.clone()))
    })
    .await;
    assert_eq!(existing(&world).await, Vec::<Value>::new());
    let manifests = world.api::<Secret>().get(MANIFESTS).await.unwrap();
    assert!(manifests.data.unwrap_or_default().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_user_who_may_make_none_is_told_what_to_do_and_the_cluster_stays_ready() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    let session = world.session().await;
    let user = session.token().await.unwrap().user_id.clone();
    let path = format!("/users/{user}/application_credentials");
    let body = json!({"application_credential": {"name": "restricted"}});
    let created = world.request(Service::Identity, "POST", &path, body).await;
    let created = &created["application_credential"];
    let clouds = json!({"clouds": {"simulated": {"auth_type": "v3applicationcredential", "auth": {
        "auth_url": "http://cloud/identity/v3", "application_credential_id": created["id"],
        "application_credential_secret": created["secret"]}, "region_name": "RegionOne"}}});
    world.credentials(&clouds.to_string()).await;
    annotate(&world, json!("cloud-controller-manager")).await;
    let condition = world.cluster_says(CONDITION, "--unrestricted").await;
    assert_eq!(condition.status, "False");
    assert_eq!(condition.reason, "OpenStackAuthenticationFailed");
    assert!(
        condition
            .message
            .contains("not allowed for managing additional")
    );
    world.cluster_ready().await;
    world
        .credentials(&world.cloud.clouds_yaml("http://cloud"))
        .await;
    eventually("the credential", || async {
        match entries(&world, "cloud-controller-manager").await.len() {
            1 => Ok(()),
            other => Err(other.to_string()),
        }
    })
    .await;
    world
        .cluster_says(CONDITION, "cloud-controller-manager until")
        .await;
    goes(&world).await;
    assert_eq!(existing(&world).await.len(), 1, "that of the user");
}

#[tokio::test(start_paused = true)]
async fn a_wrong_annotation_is_a_condition_with_what_there_is() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    annotate(&world, json!("cloud-controller-manager")).await;
    world.cluster_ready().await;
    have(&world, &["cloud-controller-manager"], 1).await;
    annotate(&world, json!("ccm")).await;
    let condition = world.cluster_says(CONDITION, "`ccm` is none of").await;
    assert_eq!(condition.reason, "InvalidClusterSpec");
    assert!(condition.message.contains("cinder-csi-plugin"));
    assert_eq!(existing(&world).await.len(), 1, "what is there stays");
}

#[tokio::test(start_paused = true)]
async fn a_secret_of_somebody_else_under_the_name_is_left_alone() {
    let world = World::start().await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": RECORD},
        "stringData": {"mine": "x"}});
    world.create(secret).await;
    asking(&world, "cloud-controller-manager").await;
    let condition = world.cluster_says(CONDITION, RECORD).await;
    assert_eq!(condition.status, "False");
    assert_eq!(existing(&world).await, Vec::<Value>::new());
    let kept = world.api::<Secret>().get(RECORD).await.unwrap();
    assert!(kept.data.unwrap().contains_key("mine"));
}

/// The life of the credentials of a cluster.
struct OfCredentials;

impl Life for OfCredentials {
    const STAGES: &'static [&'static str] = &["made", "renewed", "used", "removed"];

    async fn begin(world: &World, stage: &str) {
        match stage {
            "made" => annotate(world, json!(BOTH)).await,
            "renewed" => age(world).await,
            "used" => use_them(world).await,
            _ => {
                annotate(world, Value::Null).await;
                world.delete::<ClusterResourceSetBinding>("demo").await;
            }
        }
    }

    async fn end(world: &World, stage: &str) {
        let both = ["cloud-controller-manager", "cinder-csi-plugin"];
        match stage {
            "made" | "used" => have(world, &both, 1).await,
            "renewed" => have(world, &both, 2).await,
            _ => {
                let over = || async {
                    let cluster = world.api::<OpenStackCluster>().get("demo").await.unwrap();
                    let conditions = cluster.status.unwrap_or_default().conditions;
                    match api::conditions::find(&conditions, CONDITION) {
                        None => Ok(()),
                        Some(it) => Err(it.message.clone()),
                    }
                };
                eventually("the end", over).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn killed_at_any_write_to_the_cloud_no_credential_is_doubled_or_left() {
    let mut world = World::open(CloudOptions::default()).await;
    world.run();
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    for nth in 1.. {
        let was_cut = killed_at::<OfCredentials>(&mut world, nth, |_, _| {}).await;
        assert_eq!(existing(&world).await, Vec::<Value>::new(), "write {nth}");
        world.run();
        if !was_cut {
            assert!(nth > 8, "only {nth} writes");
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn killed_at_any_write_to_the_api_server_no_credential_is_doubled_or_left() {
    let mut world = World::open(CloudOptions::default()).await;
    world.run();
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    world.kill().await;
    for nth in 1.. {
        let fuse = testbed::Fuse::at(nth);
        world.run_behind(&fuse);
        let mut was_cut = false;
        for stage in OfCredentials::STAGES {
            OfCredentials::begin(&world, stage).await;
            if !was_cut {
                was_cut = tokio::select! {
                    () = OfCredentials::end(&world, stage) => false,
                    () = fuse.blown() => true,
                };
                if was_cut {
                    world.kill().await;
                    world.run();
                }
            }
            OfCredentials::end(&world, stage).await;
        }
        world.kill().await;
        assert_eq!(existing(&world).await, Vec::<Value>::new(), "write {nth}");
        if !was_cut {
            assert!(nth > 12, "only {nth} writes");
            break;
        }
    }
}
