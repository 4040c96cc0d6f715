use apiserver::ApiServer;
use clap::Parser;
use deployer::{Graph, ObjectKind, Verb};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
    ValidationDirective,
};
use operator::client::Api;

use super::*;
use crate::cli::{Cli, Command, OpenStack};

fn cloud(namespace: &str, spec: &Value) -> Cloud {
    let document = json!({"apiVersion": "ferrostack.dev/v1alpha1", "kind": "OpenStack",
        "metadata": {"name": "cloud", "namespace": namespace}, "spec": spec});
    let (parameters, _) = deployer::Parameters::read(&document).unwrap();
    Cloud::new(&document, parameters).unwrap()
}

fn graph(cloud: &Cloud, objects: &[Value]) -> Graph {
    deployer::desired(cloud, &held(cloud, objects))
}

fn api(client: &Client, namespace: &str, kind: ObjectKind) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(kind.group(), "v1", kind.name());
    Api::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk(&kind))
}

fn namespaces(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("", "v1", "Namespace");
    Api::all_with(client.clone(), &ApiResource::from_gvk(&kind))
}

async fn create_namespace(client: &Client, name: &str) {
    create_namespace_for(client, name, "restricted").await;
}

/// Makes a namespace for Pods of this level of Pod Security.
async fn create_namespace_for(client: &Client, name: &str, level: &str) {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name,
        "labels": {"pod-security.kubernetes.io/enforce": level}}});
    let object = serde_json::from_value(object).unwrap();
    namespaces(client)
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
}

/// Checks that the API server would take the Pods of every workload and task, in a namespace for those without privileges.
async fn pods_are_accepted(client: &Client, cloud: &Cloud) {
    let kind = GroupVersionKind::gvk("", "v1", "ServiceAccount");
    let accounts: Api<DynamicObject> = Api::namespaced_with(
        client.clone(),
        &cloud.namespace,
        &ApiResource::from_gvk(&kind),
    );
    // A controller makes it after the namespace.
    for _ in 0..200 {
        if accounts.get_opt("default").await.unwrap().is_some() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let kind = GroupVersionKind::gvk("", "v1", "Pod");
    let pods: Api<DynamicObject> = Api::namespaced_with(
        client.clone(),
        &cloud.namespace,
        &ApiResource::from_gvk(&kind),
    );
    let params = PatchParams {
        field_manager: Some(deployer::FIELD_MANAGER.to_owned()),
        field_validation: Some(ValidationDirective::Strict),
        force: true,
        dry_run: true,
    };
    let graph = graph(cloud, &[]);
    let templates = graph.objects().filter_map(|(_, it)| {
        Some((
            it.reference(),
            it.public().pointer("/spec/template")?.clone(),
        ))
    });
    for (reference, mut pod) in templates {
        pod["apiVersion"] = "v1".into();
        pod["kind"] = "Pod".into();
        pod["metadata"]["name"] = "pod".into();
        let answer = pods.patch("pod", &params, &Patch::Apply(pod)).await;
        answer.unwrap_or_else(|error| panic!("{reference}: {error}"));
    }
}

/// Does what the plan says.
async fn apply(client: &Client, cloud: &Cloud, plan: &Plan) {
    let objects = cluster::objects(client, &cloud.namespace).await.unwrap();
    let graph = graph(cloud, &objects);
    let params = PatchParams {
        field_manager: Some(deployer::FIELD_MANAGER.to_owned()),
        field_validation: Some(ValidationDirective::Strict),
        force: true,
        dry_run: false,
    };
    let delete = DeleteParams::background();
    for action in plan.actions() {
        let object = graph
            .objects()
            .find(|(_, it)| *it.reference() == action.object);
        let (name, object) = (&action.object.name, object.unwrap().1.exposed());
        let api = api(client, &cloud.namespace, action.object.kind);
        if action.verb == Verb::Replace {
            api.delete(name, &delete).await.unwrap();
        }
        api.patch(name, &params, &Patch::Apply(object))
            .await
            .unwrap();
    }
    for object in &plan.deletions {
        let api = api(client, &cloud.namespace, object.kind);
        api.delete(&object.name, &delete).await.unwrap();
    }
}

/// Plans and applies a cloud, changes it, and plans again: on any API server.
async fn life(client: &Client, namespace: &str, release: &str) {
    let with = |services: Value| {
        let compute =
            json!({"driver": "Fake", "fake": {"hypervisors": 2, "zones": ["az1", "az2"]}});
        let exposure = json!({"mode": "Edge", "host": "cloud.test", "addresses": ["192.0.2.7"]});
        let network = json!({"physical": [{"name": "public"}]});
        json!({"release": release, "network": network, "compute": compute, "exposure": exposure, "services": services})
    };
    let before = cloud(namespace, &with(json!({})));
    let missing = outcome(&before, &Value::Null, Some(client))
        .await
        .unwrap_err();
    assert_eq!(
        missing.to_string(),
        format!("there is no namespace {namespace}: kubectl create namespace {namespace}")
    );
    create_namespace(client, namespace).await;

    pods_are_accepted(client, &before).await;
    let first = outcome(&before, &Value::Null, Some(client)).await.unwrap();
    rejected(&before, &first).unwrap();
    assert!(
        first.plan.actions().count() > 60,
        "{}",
        first.plan.actions().count()
    );
    assert!(first.plan.actions().all(|it| it.verb == Verb::Create));
    let listed = cluster::objects(client, namespace).await.unwrap();
    assert!(
        listed.iter().all(|it| it["kind"] != "Deployment"),
        "a plan writes nothing"
    );

    apply(client, &before, &first.plan).await;
    let again = outcome(&before, &Value::Null, Some(client)).await.unwrap();
    rejected(&before, &again).unwrap();
    assert!(again.plan.is_empty(), "{:#?}", again.plan);

    let after = cloud(
        namespace,
        &with(json!({"nova": {"config": {"scheduler": {"workers": 3}}}})),
    );
    let change = outcome(&after, &Value::Null, Some(client)).await.unwrap();
    rejected(&after, &change).unwrap();
    let same = outcome(&after, &Value::Null, Some(client)).await.unwrap();
    assert_eq!(change.digest, same.digest);
    assert_ne!(change.digest, again.digest);
    // No Pod runs here: what the stores of accounts have is not known, and said so.
    let unknown = "no Pod of keystone-api is ready";
    let identities = change.plan.steps.iter().find(|it| it.name == "identities");
    assert_eq!(identities.unwrap().unknown.as_deref(), Some(unknown));
    assert!(again.plan.is_empty() && !again.is_empty());
    let restarts: Vec<&str> = change
        .plan
        .restarts
        .iter()
        .map(|it| it.workload.name.as_str())
        .collect();
    assert_eq!(restarts, ["nova-scheduler"]);
    let printed = text::of(&after, &change.plan, &change.digest, "apply");
    assert!(
        printed.contains(
            "\nrestarts\n  Deployment nova-scheduler\n      [scheduler] workers: 2 → 3\n"
        ),
        "{printed}"
    );
    apply(client, &after, &change.plan).await;
    assert!(
        outcome(&after, &Value::Null, Some(client))
            .await
            .unwrap()
            .plan
            .is_empty()
    );

    // A field that we have set, in a file that lacks it now, and one that somebody else has changed.
    let deployments = api(client, namespace, ObjectKind::Deployment);
    let params = PatchParams::apply(deployer::FIELD_MANAGER).force();
    let mut extra = graph(&after, &cluster::objects(client, namespace).await.unwrap())
        .objects()
        .find(|(_, it)| it.reference().name == "placement-api")
        .map(|(_, it)| it.exposed())
        .unwrap();
    extra["spec"]["template"]["spec"]["containers"][0]["env"] =
        json!([{"name": "EXTRA", "value": "1"}]);
    deployments
        .patch("placement-api", &params, &Patch::Apply(extra))
        .await
        .unwrap();
    let scaled = json!({"spec": {"replicas": 0}});
    deployments
        .patch("glance-api", &PatchParams::default(), &Patch::Merge(scaled))
        .await
        .unwrap();
    let drift = outcome(&after, &Value::Null, Some(client)).await.unwrap();
    assert_ne!(drift.digest, change.digest, "the world has moved");
    let drift = drift.plan;
    let paths: Vec<String> = drift
        .actions()
        .flat_map(|it| {
            it.changes
                .iter()
                .map(|change| format!("{} {}", it.object.name, change.path))
        })
        .collect();
    assert_eq!(
        paths,
        [
            "glance-api spec.replicas",
            "placement-api spec.template.spec.containers[placement-api].env",
        ]
    );
    apply(client, &after, &drift).await;
    assert!(
        outcome(&after, &Value::Null, Some(client))
            .await
            .unwrap()
            .plan
            .is_empty()
    );

    // Passwords that somebody else has changed are passed on, and not shown.
    let secrets = api(client, namespace, ObjectKind::Secret);
    let changed = json!({"stringData": {"database-placement": "canary"}});
    secrets
        .patch(
            "openstack-accounts",
            &PatchParams::default(),
            &Patch::Merge(changed),
        )
        .await
        .unwrap();
    let rotated = outcome(&after, &Value::Null, Some(client)).await.unwrap();
    let json = document(&after, &rotated, false, None).unwrap()
        + &text::of(&after, &rotated.plan, &rotated.digest, "apply");
    assert!(
        !json.contains("canary") && !json.contains("Y2FuYXJ5"),
        "{json}"
    );
    let restarts: Vec<&str> = rotated
        .plan
        .restarts
        .iter()
        .map(|it| it.workload.name.as_str())
        .collect();
    assert_eq!(restarts, ["placement-api"]);
    namespaces(client)
        .delete(namespace, &DeleteParams::default())
        .await
        .unwrap();
}

/// The same of a cloud with guests, whose programs have rights on their nodes.
async fn life_of_guests(client: &Client, namespace: &str) {
    let cloud = cloud(
        namespace,
        &json!({
            "release": "2026.1",
            "nodes": {"compute": {"openstack-compute-node": "enabled"}},
            "network": {"physical": [{"name": "public", "interface": "eth1"}]},
            "compute": {"driver": "Libvirt"},
        }),
    );
    create_namespace_for(client, namespace, "privileged").await;
    pods_are_accepted(client, &cloud).await;
    let first = outcome(&cloud, &Value::Null, Some(client)).await.unwrap();
    rejected(&cloud, &first).unwrap();
    apply(client, &cloud, &first.plan).await;
    let again = outcome(&cloud, &Value::Null, Some(client)).await.unwrap();
    let actions: Vec<_> = again.plan.actions().collect();
    assert!(actions.is_empty(), "{actions:?}");
    namespaces(client)
        .delete(namespace, &DeleteParams::default())
        .await
        .unwrap();
}

#[tokio::test]
async fn every_object_is_accepted_and_planned_again_there_is_nothing_to_do() {
    let server = ApiServer::open(apiserver::Options::default())
        .await
        .unwrap();
    let client = Client::new(server.in_process(), "default");
    life(&client, "zed", "zed").await;
    life(&client, "epoxy", "2025.1").await;
    life(&client, "gazpacho", "2026.1").await;
    life_of_guests(&client, "guests").await;
}

#[tokio::test]
async fn a_real_api_server_accepts_every_object() {
    let default = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../target/kubernetes/kubeconfig"
    );
    let path = std::env::var_os("FERROSTACK_REAL_KUBECONFIG").unwrap_or(default.into());
    let Ok(kubeconfig) = kube::config::Kubeconfig::read_from(&path) else {
        skipped::because("no kube-apiserver: tests/kubernetes/up starts one");
        return;
    };
    let _ = rustls::crypto::ring::default_provider().install_default();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    let client = Client::try_from(config).unwrap();
    if client.apiserver_version().await.is_err() {
        skipped::because("kube-apiserver does not answer: tests/kubernetes/up starts it");
        return;
    }
    for (release, name) in [("zed", "zed"), ("2025.1", "epoxy"), ("2026.1", "gazpacho")] {
        let namespace = format!("plan-{name}-{}", std::process::id());
        life(&client, &namespace, release).await;
    }
    let namespace = format!("plan-guests-{}", std::process::id());
    life_of_guests(&client, &namespace).await;
}

/// Request of a parameter file.
fn asked(file: &str) -> Asked {
    let written = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(written.path(), file).unwrap();
    parameters::read(Some(written.path()), &[], &Value::Null).unwrap()
}

#[tokio::test]
async fn a_change_that_apply_refuses_is_refused_by_the_plan_and_nothing_is_written() {
    let server = ApiServer::open(apiserver::Options::default())
        .await
        .unwrap();
    let client = Client::new(server.in_process(), "default");
    let there = "release: \"2026.1\"\ncompute: {driver: Fake, fake: {hypervisors: 3}}\n";
    // Before there is a cloud, its kind or its namespace, there is nothing to refuse.
    up::judged(&client, &asked(there)).await.unwrap();
    up::apply(&client, &asked(there)).await.unwrap();
    let version = || async {
        let kind = GroupVersionKind::gvk("ferrostack.dev", "v1alpha1", "OpenStack");
        let kind = ApiResource::from_gvk_with_plural(&kind, "openstacks");
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "openstack", &kind);
        api.get("cloud").await.unwrap().metadata.resource_version
    };
    let before = version().await;
    for (file, field) in [
        (
            "release: zed\ncompute: {driver: Fake, fake: {hypervisors: 3}}\n",
            "release",
        ),
        (
            "release: \"2026.1\"\nregion: R2\ncompute: {driver: Fake, fake: {hypervisors: 3}}\n",
            "region",
        ),
        (
            "release: \"2026.1\"\ncompute: {driver: Fake, fake: {hypervisors: 1}}\n",
            "hypervisors",
        ),
        ("release: \"2026.1\"\n", "compute"),
    ] {
        let error = up::judged(&client, &asked(file)).await.unwrap_err();
        let error = error.to_string();
        let begin = "the API server rejects OpenStack openstack/cloud: ";
        assert!(error.starts_with(begin) && error.contains(field), "{error}");
        assert!(up::apply(&client, &asked(file)).await.is_err(), "{field}");
    }
    let more = "release: \"2026.1\"\ncompute: {driver: Fake, fake: {hypervisors: 4}}\n";
    up::judged(&client, &asked(more)).await.unwrap();
    assert_eq!(version().await, before);
    up::apply(&client, &asked(more)).await.unwrap();
    assert_ne!(version().await, before);
}

#[tokio::test]
async fn a_cluster_that_never_had_a_cloud_refuses_no_plan() {
    // What a connection makes of the page for a kind that is not there.
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "answers 404 Not Found, without a Status of Kubernetes", "reason": "NotFound", "code": 404});
    let body = status.to_string();
    let service = tower::service_fn(move |_: http::Request<kube::client::Body>| {
        let body = kube::client::Body::from(body.clone().into_bytes());
        let answer = http::Response::builder().status(404).body(body).unwrap();
        std::future::ready(Ok::<_, kube::Error>(answer))
    });
    let client = Client::new(service, "default");
    let new = asked("release: \"2026.1\"\n");
    up::judged(&client, &new).await.unwrap();
}

#[tokio::test]
async fn a_cloud_that_is_being_deleted_takes_no_parameters() {
    let server = ApiServer::open(apiserver::Options::default())
        .await
        .unwrap();
    let client = Client::new(server.in_process(), "default");
    let file = asked("release: \"2026.1\"\n");
    up::apply(&client, &file).await.unwrap();
    let kind = GroupVersionKind::gvk("ferrostack.dev", "v1alpha1", "OpenStack");
    let kind = ApiResource::from_gvk_with_plural(&kind, "openstacks");
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "openstack", &kind);
    let kept = json!({"metadata": {"finalizers": ["ferrostack.dev/openstack"]}});
    api.patch("cloud", &PatchParams::default(), &Patch::Merge(kept))
        .await
        .unwrap();
    api.delete("cloud", &DeleteParams::default()).await.unwrap();
    let sentence =
        "the cloud cloud is being deleted: wait for the end of `ferrostack openstack delete`";
    for error in [
        up::judged(&client, &file).await.unwrap_err(),
        up::apply(&client, &file).await.unwrap_err(),
    ] {
        assert_eq!(error.to_string(), sentence);
    }
}

#[tokio::test]
async fn the_digest_of_a_paused_cloud_is_another() {
    let digest = async |file: &str| {
        let asked = asked(file);
        let cloud = asked.cloud().unwrap();
        let outcome = outcome(&cloud, &asked.object, None).await.unwrap();
        (outcome.digest, is_paused(&asked))
    };
    let (running, is_paused) = digest("release: \"2026.1\"\n").await;
    assert!(!is_paused);
    let (paused, is_paused) = digest("release: \"2026.1\"\npaused: true\n").await;
    assert!(is_paused && paused != running);
}

#[tokio::test]
async fn a_second_cloud_in_a_namespace_is_refused_in_a_sentence_and_leaves_nothing() {
    let server = ApiServer::open(apiserver::Options::default())
        .await
        .unwrap();
    let client = Client::new(server.in_process(), "default");
    up::apply(&client, &asked("release: \"2026.1\"\n"))
        .await
        .unwrap();
    let second = asked(
        "apiVersion: ferrostack.dev/v1alpha1\nkind: OpenStack\nmetadata: {name: other, namespace: openstack}\nspec: {release: \"2026.1\"}\n",
    );
    let sentence = "namespace openstack has the cloud cloud already, and each needs a namespace for itself: \
                    give the new one another metadata.namespace";
    for error in [
        up::judged(&client, &second).await.unwrap_err(),
        up::apply(&client, &second).await.unwrap_err(),
    ] {
        assert_eq!(error.to_string(), sentence);
    }
    // The one that is there is none of the others.
    up::apply(
        &client,
        &asked("release: \"2026.1\"\nnetwork: {mtu: 9000}\n"),
    )
    .await
    .unwrap();
}

#[tokio::test]
async fn no_new_cloud_is_made_of_zed_and_nothing_is_written() {
    let server = ApiServer::open(apiserver::Options::default())
        .await
        .unwrap();
    let client = Client::new(server.in_process(), "default");
    let zed = asked("release: zed\n");
    let sentence = "release: no new cloud is made of zed; those that are there go on. Take 2026.1";
    for error in [
        up::judged(&client, &zed).await.unwrap_err(),
        up::apply(&client, &zed).await.unwrap_err(),
    ] {
        assert_eq!(error.to_string(), sentence);
    }
    let there = namespaces(&client).get_opt("openstack").await.unwrap();
    assert!(there.is_none());
}

/// Output of the command, and its exit status.
async fn command(arguments: &[&str], file: &str) -> Result<(String, String), String> {
    let written = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(written.path(), file).unwrap();
    let path = written.path().to_str().unwrap();
    let mut line = vec!["ferrostack", "openstack", "plan", "-f", path];
    line.extend(arguments);
    let Command::OpenStack(OpenStack::Plan(args)) = Cli::parse_from(line).command else {
        panic!("another command");
    };
    let printed = std::cell::RefCell::new(String::new());
    let print = |text: &str| {
        printed.borrow_mut().push_str(text);
        Ok(())
    };
    let code = plan(&args, &Environment::of_process(), print, |_| ()).await;
    let code = code.map_err(|error| format!("{error:#}").replace(path, "cloud.yaml"))?;
    let printed = printed.into_inner().replace(path, "cloud.yaml");
    Ok((printed, format!("{code:?}")))
}

#[tokio::test]
async fn without_a_cluster_all_is_created_in_order() {
    let (text, code) = command(&["--empty"], "release: zed\n").await.unwrap();
    assert_eq!(code, format!("{:?}", ExitCode::from(2)));
    assert!(text.starts_with("Cloud cloud in namespace openstack, release zed\n\nsecrets\n  + Secret openstack-accounts\n"), "{text}");
    assert!(
        text.contains("\nmariadb, after mariadb-install\n  + StatefulSet mariadb\n"),
        "{text}"
    );
    assert!(
        text.contains("\nbroker-accounts, after rabbitmq\n  ? RabbitMQ: virtual host neutron\n"),
        "{text}"
    );
    let unknown = "\nWhat identities would write is not compared with what is there: it was not asked\ndigest ";
    assert!(text.contains(unknown), "{text}");
    let last = text.lines().last().unwrap();
    let digest = last.split([' ', ':']).nth(1).unwrap();
    let applies = format!(" openstack apply -f cloud.yaml --plan {digest}` does this");
    assert!(last.contains(&applies), "{last}");
    // Two plans are the same, though no password exists.
    assert_eq!(
        command(&["--empty"], "release: zed\n").await.unwrap().0,
        text
    );
    let (json, _) = command(&["--empty", "-o", "json"], "release: zed\n")
        .await
        .unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["namespace"], "openstack");
    assert_eq!(json["steps"][0]["actions"][0]["verb"], "create");
    assert_eq!(
        json["steps"][0]["actions"][0]["object"],
        json!({"kind": "Secret", "name": "openstack-accounts"})
    );
}

#[tokio::test]
async fn the_plan_of_a_cloud_on_this_machine_has_what_up_adds_there() {
    let on = ["--empty", "--on", "this-machine", "-o", "json"];
    let short = "release: \"2026.1\"\n";
    let (added, _) = command(&on, short).await.unwrap();
    let added: Value = serde_json::from_str(&added).unwrap();
    let steps = added["steps"].as_array().unwrap().iter();
    let names: Vec<&str> = steps.map(|it| it["name"].as_str().unwrap()).collect();
    for step in ["edge", "nova-compute", "ovn-chassis"] {
        assert!(names.contains(&step), "{names:?}");
    }
    // The file that names all of it has the same plan, and what a file names is as it says.
    let mut spec = machine::defaults();
    spec["release"] = "2026.1".into();
    let (whole, _) = command(&["--empty", "-o", "json"], &spec.to_string())
        .await
        .unwrap();
    let whole: Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(whole["steps"], added["steps"]);
    let (closed, _) = command(&on, "release: \"2026.1\"\nexposure: {mode: None}\n")
        .await
        .unwrap();
    assert!(!closed.contains("\"edge\""), "{closed}");
}

#[tokio::test]
async fn a_file_that_is_rejected_is_not_planned() {
    let file = "apiVersion: ferrostack.dev/v1alpha1\nkind: OpenStack\nmetadata: {name: Cloud}\nspec: {release: zed}\n";
    assert_eq!(
        command(&["--empty"], file).await.unwrap_err(),
        "cloud.yaml:3: metadata.name: it has to be at most 40 lower case letters, digits and `-`, and begin with a letter"
    );
    let file = "release: zed\nservices: {nova: {config: {scheduler: {wokers: 1}}}}\n";
    let error = command(&["--empty"], file).await.unwrap_err();
    assert!(
        error.contains("cloud.yaml:2: services.nova.config.scheduler.wokers: ")
            && error.contains("did you mean workers?"),
        "{error}"
    );
}

#[test]
fn refusals_and_conflicts_are_errors_that_name_the_object() {
    let cloud = cloud("openstack", &json!({"release": "zed"}));
    let refusal = Refusal {
        object: Reference {
            kind: ObjectKind::Deployment,
            name: "nova-api".to_owned(),
        },
        message: "exceeded quota: small".to_owned(),
    };
    let mut outcome = Outcome {
        plan: Plan::default(),
        refusals: vec![refusal],
        digest: String::new(),
    };
    assert_eq!(
        rejected(&cloud, &outcome).unwrap_err().to_string(),
        "the API server rejects:\n  Deployment nova-api: exceeded quota: small"
    );
    outcome
        .plan
        .conflicts
        .push("Service mariadb is there".to_owned());
    assert_eq!(
        rejected(&cloud, &outcome).unwrap_err().to_string(),
        "the plan cannot be applied in namespace openstack, which a cloud needs for itself:\n  Service mariadb is there"
    );
}
