use std::collections::BTreeMap;
use std::time::Duration;

use apiserver::ApiServer;
use bytes::Bytes;
use http::{HeaderValue, Request};
use keystone_auth::Metrics;
use kube::api::PostParams;
use openstack::CloudConfig;
use openstack::transport::{InProcess, Limits, SharedTransport};
use serde_json::{Value, json};
use simulator::cloud::{Cloud, Options};

use super::*;

const URL: &str = "http://cloud.test";

/// A cluster, and a cloud with a service user.
struct World {
    client: Client,
    cloud: SharedTransport,
    keystone: Http,
    gone: Gone,
}

impl World {
    async fn new(service_user: &str) -> Self {
        let options = apiserver::Options {
            hooks: Arc::new(apiserver::NoHooks),
            ..apiserver::Options::default()
        };
        let server = ApiServer::open(options).await.unwrap();
        let client = Client::new(server.in_process(), "default");
        let cloud = Cloud::open(Options::default()).await.unwrap();
        let cloud: SharedTransport = Arc::new(InProcess::new(cloud.router(URL)));
        let url = format!("{URL}/identity/v3");
        let (time, agent) = (Duration::from_secs(10), HeaderValue::from_static("test"));
        let transport = Arc::clone(&cloud);
        let keystone = Http::new(url, transport, time, &agent, Metrics::default()).unwrap();
        let yaml = format!(
            "clouds: {{k: {{auth: {{auth_url: 'http://x', username: {service_user}, password: secret, \
             user_domain_name: Default, project_name: {service_user}, project_domain_name: Default}}}}}}"
        );
        let user = CloudConfig::parse(&yaml, "k").unwrap();
        keystone.set_service_user(user).unwrap();
        Self {
            client,
            cloud,
            keystone,
            gone: Gone::new(),
        }
    }

    /// A request of the cloud's administrator; the answer, and the token in its header.
    async fn asked(&self, method: &str, path: &str, token: &str, body: Value) -> (Value, String) {
        let request = Request::builder()
            .method(method)
            .uri(format!("{URL}/identity/v3{path}"))
            .header("x-auth-token", token)
            .header("content-type", "application/json")
            .body(Bytes::from(body.to_string()))
            .unwrap();
        let limits = Limits::object(Duration::from_secs(10));
        let answer = self.cloud.send(request, limits).await.unwrap();
        assert!(answer.status().is_success(), "{answer:?}");
        let token = answer.headers().get("x-subject-token");
        let token = token.map(|it| it.to_str().unwrap().to_owned());
        let body = serde_json::from_slice(answer.body()).unwrap_or_default();
        (body, token.unwrap_or_default())
    }

    async fn administrator(&self) -> String {
        let domain = json!({"name": "Default"});
        let user = json!({"name": "admin", "domain": domain, "password": "secret"});
        let identity = json!({"methods": ["password"], "password": {"user": user}});
        let scope = json!({"project": {"name": "admin", "domain": domain}});
        let body = json!({"auth": {"identity": identity, "scope": scope}});
        self.asked("POST", "/auth/tokens", "", body).await.1
    }

    async fn project(&self, name: &str) -> String {
        let token = self.administrator().await;
        let body = json!({"project": {"name": name, "domain_id": "default"}});
        let (answer, _) = self.asked("POST", "/projects", &token, body).await;
        answer["project"]["id"].as_str().unwrap().to_owned()
    }

    async fn forget(&self, project: &str) {
        let token = self.administrator().await;
        let path = format!("/projects/{project}");
        self.asked("DELETE", &path, &token, json!({})).await;
    }

    async fn namespace(&self, name: &str, marks: &[(&str, &str)], project: Option<&str>) {
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(name.to_owned());
        let texts = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter();
            pairs
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect::<BTreeMap<_, _>>()
        };
        namespace.metadata.labels = Some(texts(marks));
        namespace.metadata.annotations = project.map(|id| texts(&[(PROJECT, id)]));
        let api: Api<Namespace> = Api::all(self.client.clone());
        api.create(&PostParams::default(), &namespace)
            .await
            .unwrap();
    }

    async fn look(&mut self, prune: Prune) -> Result<(), String> {
        let session = self.keystone.service_user().unwrap();
        let looked = look(&self.client, &session, prune, &mut self.gone).await;
        looked.map_err(|error| format!("{error:#}"))
    }

    /// The namespaces of the test that stay.
    async fn left(&self) -> Vec<String> {
        let api: Api<Namespace> = Api::all(self.client.clone());
        let all = api.list(&ListParams::default()).await.unwrap().items;
        let stays = all
            .into_iter()
            .filter(|it| it.metadata.deletion_timestamp.is_none());
        let names = stays.map(|it| it.name_any());
        names.filter(|name| name.starts_with("t-")).collect()
    }
}

#[tokio::test]
async fn a_namespace_of_a_login_goes_at_the_second_look_without_its_project_and_others_stay() {
    let mut world = World::new("admin").await;
    let (gone, kept) = (world.project("gone").await, world.project("kept").await);
    let ours = &[MANAGED_BY][..];
    world.namespace("t-gone", ours, Some(&gone)).await;
    world.namespace("t-kept", ours, Some(&kept)).await;
    world.namespace("t-without-project", ours, None).await;
    world
        .namespace("t-with-empty-project", ours, Some(""))
        .await;
    world.namespace("t-unmarked", &[], Some(&gone)).await;
    let of_another = [("app.kubernetes.io/managed-by", "helm")];
    world
        .namespace("t-of-another", &of_another, Some(&gone))
        .await;
    // The name says nothing.
    world.namespace(&format!("t-{gone}"), &[], None).await;
    let all = world.left().await;
    assert_eq!(all.len(), 7);
    for _ in 0..2 {
        world.look(Prune::Delete).await.unwrap();
        assert!(world.gone.is_empty());
    }
    world.forget(&gone).await;
    for _ in 0..3 {
        world.look(Prune::Look).await.unwrap();
    }
    assert_eq!((world.gone.len(), world.left().await), (1, all.clone()));
    // After a start nothing is known to have been gone before.
    world.gone.clear();
    world.look(Prune::Delete).await.unwrap();
    assert_eq!(world.left().await, all);
    world.look(Prune::Delete).await.unwrap();
    let left = world.left().await;
    let expected = all.into_iter().filter(|name| name != "t-gone");
    assert_eq!(left, expected.collect::<Vec<_>>());
    world.look(Prune::Delete).await.unwrap();
    assert_eq!(world.left().await, left);
}

#[tokio::test]
async fn a_project_that_is_there_again_keeps_its_namespace() {
    let mut world = World::new("admin").await;
    let project = world.project("gone").await;
    world
        .namespace("t-gone", &[MANAGED_BY], Some(&project))
        .await;
    world.forget(&project).await;
    world.look(Prune::Delete).await.unwrap();
    // Whoever keeps it says so by the annotation.
    let kept = world.project("kept").await;
    let api: Api<Namespace> = Api::all(world.client.clone());
    let patch = json!({"metadata": {"annotations": {PROJECT: kept}}});
    let params = kube::api::PatchParams::default();
    api.patch("t-gone", &params, &kube::api::Patch::Merge(&patch))
        .await
        .unwrap();
    for _ in 0..3 {
        world.look(Prune::Delete).await.unwrap();
        assert_eq!(world.left().await, ["t-gone"]);
    }
}

#[tokio::test]
async fn a_service_user_that_may_not_read_projects_takes_none_for_gone() {
    let mut world = World::new("demo").await;
    let project = world.project("gone").await;
    world
        .namespace("t-gone", &[MANAGED_BY], Some(&project))
        .await;
    world.forget(&project).await;
    for _ in 0..3 {
        let error = world.look(Prune::Delete).await.unwrap_err();
        assert!(
            error.contains("does not let the service user read projects"),
            "{error}"
        );
        assert_eq!(world.left().await, ["t-gone"]);
    }
}
