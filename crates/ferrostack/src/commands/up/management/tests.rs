use kube::api::ListParams;
use serde_json::json;

use super::*;

fn words(text: &str) -> Vec<String> {
    text.split(',').map(str::to_owned).collect()
}

/// An API server in the process, with these versions besides those of today.
async fn serving(client: Option<Client>, versions: &str) -> Client {
    let client = match client {
        Some(client) => client,
        None => {
            let server = ApiServer::open(Options {
                hooks: Arc::new(::management::Rules),
                ..Options::default()
            });
            Client::new(server.await.unwrap().in_process(), "default")
        }
    };
    let older = Older::named(&words(versions)).unwrap();
    install_definitions(&client, &older).await.unwrap();
    client
}

fn templates(client: &Client, version: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(api::infra::GROUP, version, "OpenStackMachineTemplate");
    Api::namespaced_with(client.clone(), "default", &ApiResource::from_gvk(&kind))
}

#[tokio::test]
async fn objects_are_written_and_read_in_every_version_that_is_served() {
    let client = serving(None, "v1alpha4,v1alpha7,v1beta1,v1beta2").await;
    let spec = json!({"flavor": "m1", "image": "u", "floatingIP": "192.0.2.1",
        "networks": [{"uuid": "0f6ab4f3-5b2c-4a7b-9d4e-2f7c3b1d0a11"}]});
    let old = json!({"apiVersion": format!("{}/v1alpha4", api::infra::GROUP), "kind": "OpenStackMachineTemplate",
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
        json!({"filter": {"name": "u"}})
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
    let patch = json!({"apiVersion": format!("{}/v1alpha4", api::infra::GROUP), "kind": "OpenStackMachineTemplate",
        "metadata": {"name": "a", "labels": {"x": "y"}}});
    let params = PatchParams::apply("somebody");
    let applied = templates(&client, "v1alpha4")
        .patch("a", &params, &Patch::Apply(&patch))
        .await
        .unwrap();
    assert_eq!(applied.data["spec"]["template"]["spec"], spec);
    // A version that is not served any more leaves the objects as they are.
    let client = serving(Some(client), "v1beta1,v1beta2").await;
    assert!(templates(&client, "v1alpha4").get("a").await.is_err());
    let again = templates(&client, "v1beta2").get("a").await.unwrap();
    assert_eq!(again.data["spec"], new.data["spec"]);
}
