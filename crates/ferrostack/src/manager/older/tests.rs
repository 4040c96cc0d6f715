use super::*;

fn words(text: &str) -> Vec<String> {
    text.split(',').map(str::to_owned).collect()
}

fn versions(definition: &CustomResourceDefinition) -> Vec<(&str, bool)> {
    let versions = definition.spec.versions.iter();
    versions.map(|it| (it.name.as_str(), it.served)).collect()
}

#[test]
fn only_known_versions_are_served_and_never_without_those_of_today() {
    let error = |text: &str| Older::named(&words(text)).unwrap_err().to_string();
    assert!(error("v1alpha3,v1beta1,v1beta2").contains("v1alpha3: there is no such version"));
    assert!(error("v1alpha7,v1beta2").contains("lacks v1beta1"));
    assert_eq!(Older::named(&[]).unwrap(), Older::default());
    assert_eq!(
        Older::named(&words("v1beta1,v1beta2")).unwrap(),
        Older::default()
    );
}

#[test]
fn versions_that_are_served_or_stored_in_the_cluster_stay() {
    let mut there = api::crds::of(&[api::infra::GROUP]);
    let mut first = Older::named(&words("v1alpha6,v1beta1,v1beta2")).unwrap();
    first.add(&mut there);
    for definition in &mut there {
        let stored = serde_json::json!({"storedVersions": ["v1alpha5", "v1beta2"]});
        definition.status = serde_json::from_value(stored).unwrap();
    }
    let mut wanted = api::crds::of(&[api::infra::GROUP]);
    first = Older::default().and(&there, |_| true);
    first.add(&mut wanted);
    let cluster = wanted
        .iter()
        .find(|it| it.spec.names.kind == "OpenStackCluster")
        .unwrap();
    let all = [
        ("v1alpha5", false),
        ("v1alpha6", true),
        ("v1beta1", true),
        ("v1beta2", true),
    ];
    assert_eq!(versions(cluster), all);
    // Another program served them.
    let mut wanted = api::crds::of(&[api::infra::GROUP]);
    Older::default().and(&there, |_| false).add(&mut wanted);
    let cluster = wanted
        .iter()
        .find(|it| it.spec.names.kind == "OpenStackCluster")
        .unwrap();
    assert_eq!(
        versions(cluster),
        [("v1alpha5", false), ("v1beta1", true), ("v1beta2", true)]
    );
}

/// An API server in the process, with these versions besides those of today.
async fn serving(client: Option<Client>, versions: &str) -> Client {
    let client = match client {
        Some(client) => client,
        None => {
            let server = apiserver::ApiServer::open(apiserver::Options {
                hooks: std::sync::Arc::new(::management::Rules),
                ..apiserver::Options::default()
            });
            Client::new(server.await.unwrap().in_process(), "default")
        }
    };
    let older = Older::named(&words(versions)).unwrap();
    crate::up::install_definitions(&client, &older)
        .await
        .unwrap();
    client
}

fn templates(client: &Client, version: &str) -> Api<kube::api::DynamicObject> {
    let kind =
        kube::core::GroupVersionKind::gvk(api::infra::GROUP, version, "OpenStackMachineTemplate");
    Api::namespaced_with(
        client.clone(),
        "default",
        &kube::api::ApiResource::from_gvk(&kind),
    )
}

#[tokio::test]
async fn objects_are_written_and_read_in_every_version_that_is_served() {
    let client = serving(None, "v1alpha4,v1alpha7,v1beta1,v1beta2").await;
    let spec = serde_json::json!({"flavor": "m1", "image": "u", "floatingIP": "192.0.2.1",
        "networks": [{"uuid": "0f6ab4f3-5b2c-4a7b-9d4e-2f7c3b1d0a11"}]});
    let old = serde_json::json!({"apiVersion": format!("{}/v1alpha4", api::infra::GROUP), "kind": "OpenStackMachineTemplate",
        "metadata": {"name": "a"}, "spec": {"template": {"spec": spec}}});
    let path = format!(
        "/apis/{}/v1alpha4/namespaces/default/openstackmachinetemplates",
        api::infra::GROUP
    );
    let request = http::Request::post(path).header("content-type", "application/json");
    let request = request.body(kube::client::Body::from(old.to_string().into_bytes()));
    let answer = client.send(request.unwrap()).await.unwrap();
    assert_eq!(answer.status(), 201);
    let warnings: Vec<&str> = answer
        .headers()
        .get_all("warning")
        .iter()
        .filter_map(|it| it.to_str().ok())
        .collect();
    let has = |text: &str| warnings.iter().any(|it| it.contains(text));
    assert!(
        has("v1alpha4 OpenStackMachineTemplate is deprecated"),
        "{warnings:?}"
    );
    assert!(
        has(
            "OpenStackMachineTemplate default/a: spec.template.spec.floatingIP of v1alpha4 has no effect"
        ),
        "{warnings:?}"
    );
    let new = templates(&client, "v1beta2").get("a").await.unwrap();
    assert_eq!(
        new.data["spec"]["template"]["spec"]["image"],
        serde_json::json!({"filter": {"name": "u"}})
    );
    let listed = templates(&client, "v1alpha7")
        .list(&ListParams::default())
        .await
        .unwrap();
    assert_eq!(
        listed.items[0].data["spec"]["template"]["spec"]["flavor"],
        "m1"
    );
    // Applied in the oldest version, and changed in the newest.
    let patch = serde_json::json!({"apiVersion": format!("{}/v1alpha4", api::infra::GROUP), "kind": "OpenStackMachineTemplate",
        "metadata": {"name": "a", "labels": {"x": "y"}}});
    let params = kube::api::PatchParams::apply("somebody");
    let applied = templates(&client, "v1alpha4")
        .patch("a", &params, &kube::api::Patch::Apply(&patch))
        .await
        .unwrap();
    assert_eq!(applied.data["spec"]["template"]["spec"], spec);
    // A version that is not served any more leaves the objects as they are.
    let client = serving(Some(client), "v1beta1,v1beta2").await;
    assert!(templates(&client, "v1alpha4").get("a").await.is_err());
    let again = templates(&client, "v1beta2").get("a").await.unwrap();
    assert_eq!(again.data["spec"], new.data["spec"]);
}
