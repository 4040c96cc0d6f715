use std::path::Path;

use super::*;
use crate::manager::older::Older;

const OLD: &str = "\
# The cluster.
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata:
  name: a
spec:
  infrastructureRef:
    apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
    kind: OpenStackCluster
    name: a
---
# Stays, with this comment.
apiVersion: v1
kind: Secret
metadata: {name: s}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: DockerCluster
metadata: {name: d}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: OpenStackCluster
metadata: {name: a}
spec:
  apiServerLoadBalancer: {enabled: true}
";

fn documents(text: &str) -> Vec<Value> {
    let documents = manifest::read("f", text).unwrap();
    documents.into_iter().map(|it| it.value).collect()
}

#[test]
fn what_is_known_is_converted_and_the_rest_stays_as_it_is() {
    let converted = all("f.yaml", OLD, "v1beta2").unwrap();
    let found = documents(&converted.text);
    assert_eq!(found[0]["apiVersion"], "cluster.x-k8s.io/v1beta2");
    let reference = &found[0]["spec"]["infrastructureRef"];
    assert_eq!(reference["apiGroup"], "infrastructure.cluster.x-k8s.io");
    assert!(reference.get("apiVersion").is_none());
    assert!(
        converted
            .text
            .contains("---\n# Stays, with this comment.\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\n---\n"),
        "{}",
        converted.text
    );
    assert_eq!(
        found[2]["apiVersion"],
        "infrastructure.cluster.x-k8s.io/v1beta1"
    );
    let balancer = &found[3]["spec"]["apiServer"]["managedLoadBalancer"];
    assert_eq!(balancer["enabled"], true);
    assert_eq!(
        converted.notes,
        [
            "f.yaml:17: DockerCluster d stays as it is: there is no conversion of its kind to v1beta2"
        ]
    );
}

#[test]
fn what_was_converted_and_converted_back_is_what_it_was() {
    let there = all("f", OLD, "v1beta2").unwrap();
    let back = all("f", &there.text, "v1beta1").unwrap();
    let again = all("f", &back.text, "v1beta2").unwrap();
    assert_eq!(documents(&again.text), documents(&there.text));
    // Nothing is to be done twice.
    assert_eq!(all("f", &there.text, "v1beta2").unwrap().text, there.text);
}

#[test]
fn the_objects_of_a_list_are_converted_within_it() {
    let text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: cluster.x-k8s.io/v1beta1\n  kind: MachineSet\n  metadata: {name: a}\n  spec: {clusterName: a, template: {spec: {clusterName: a}}}\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: c}\n";
    let converted = all("f", text, "v1beta2").unwrap();
    let value: Value = serde_saphyr::from_str(&converted.text).unwrap();
    assert_eq!(value["kind"], "List");
    assert_eq!(value["items"][0]["apiVersion"], "cluster.x-k8s.io/v1beta2");
    assert_eq!(value["items"][1]["kind"], "ConfigMap");
}

#[test]
fn what_cannot_be_converted_is_named_with_its_place() {
    let text = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n---\napiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: a}\nspec: 3\n";
    let error = format!("{:#}", all("f.yaml", text, "v1beta2").unwrap_err());
    assert!(
        error.starts_with("f.yaml:5: Cluster a: Cluster in "),
        "{error}"
    );
    let error = all("f.yaml", "a: [", "v1beta2").unwrap_err().to_string();
    assert!(error.starts_with("f.yaml:1: malformed YAML: "), "{error}");
}

#[test]
fn comments_and_order_of_a_converted_object_stay() {
    let converted = all("f.yaml", OLD, "v1beta2").unwrap();
    assert!(
        converted
            .text
            .starts_with("# The cluster.\napiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata:\n  name: a\nspec:\n  infrastructureRef:\n    kind: OpenStackCluster\n    name: a\n"),
        "{}",
        converted.text
    );
}

#[test]
fn fields_without_effect_are_named_with_the_place_of_the_object() {
    let text = "apiVersion: infrastructure.cluster.x-k8s.io/v1alpha7\nkind: OpenStackMachine\nmetadata: {name: m, namespace: ns}\nspec: {flavor: m1, floatingIP: 192.0.2.1}\n";
    let converted = all("f.yaml", text, "v1beta2").unwrap();
    assert_eq!(converted.notes.len(), 1);
    assert!(
        converted.notes[0].starts_with(
            "f.yaml:1: OpenStackMachine ns/m: spec.floatingIP of v1alpha7 has no effect"
        ),
        "{:?}",
        converted.notes
    );
    let back = all("f.yaml", &converted.text, "v1alpha7").unwrap();
    assert_eq!(documents(&back.text), documents(text));
}

/// The text of a template with a value for each variable, of the form that it needs.
fn filled(template: &str) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("${") {
        let (inside, after) = after.split_once('}').unwrap();
        let end = inside.find([':', '=']).unwrap_or(inside.len());
        let (name, default) = inside.split_at(end);
        let default = default.trim_start_matches([':', '=', '"']);
        let value = match name {
            _ if !default.is_empty() => default.trim_end_matches('"'),
            _ if name.ends_with("COUNT") || name.ends_with("VOLUME_SIZE") => "1",
            "KUBERNETES_VERSION" => "v1.34.0",
            "OPENSTACK_DNS_NAMESERVERS" => "192.0.2.53",
            "OPENSTACK_EXTERNAL_NETWORK_ID" => "0f6ab4f3-5b2c-4a7b-9d4e-2f7c3b1d0a11",
            _ if name.ends_with("_B64") => "YQ==",
            _ => "value",
        };
        text.push_str(before);
        text.push_str(value);
        rest = after;
    }
    text + rest
}

/// Beside the workspace, where they are present.
#[tokio::test]
async fn released_templates_of_every_version_become_manifests_that_are_accepted() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/upstream/templates");
    let Ok(releases) = std::fs::read_dir(&path) else {
        skipped::because(format_args!("no released templates at {}", path.display()));
        return;
    };
    let mut old = std::collections::BTreeSet::new();
    let (mut count, mut refused) = (0, Vec::new());
    for release in releases {
        for file in source::files(&release.unwrap().path()).unwrap() {
            let name = file.display().to_string();
            let template = std::fs::read_to_string(&file).unwrap();
            let converted = all(&name, &filled(&template), "v1beta2").unwrap();
            assert_eq!(converted.notes, [""; 0], "{name}");
            for document in documents(&template) {
                old.insert(document["apiVersion"].as_str().unwrap().to_owned());
            }
            let mut documents = manifest::read(&name, &converted.text).unwrap();
            // Of another project.
            documents.retain(|it| it.text(&["apiVersion"]) != "openstack.k-orc.cloud/v1alpha1");
            for document in &documents {
                let version = document.text(&["apiVersion"]);
                assert!(
                    version == "v1" || version.ends_with("/v1beta2"),
                    "{name}: {version}"
                );
            }
            let server = apiserver::ApiServer::open(apiserver::Options {
                hooks: std::sync::Arc::new(::management::Rules),
                ..apiserver::Options::default()
            });
            let client = kube::Client::new(server.await.unwrap().in_process(), "default");
            crate::up::install_definitions(&client, &Older::default())
                .await
                .unwrap();
            if let Err(problem) = crate::apply::all(&client, &documents, "default").await {
                let problem = format!("{problem:#}");
                // A field that no version has had.
                if !problem.contains("there is no field spec.template.spec.image.name") {
                    refused.push(format!("{name}: {problem}"));
                }
            }
            count += 1;
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
    assert!(count > 30, "{count}");
    for version in ["v1alpha4", "v1alpha5", "v1alpha6", "v1alpha7"] {
        assert!(
            old.contains(&format!("{}/{version}", api::infra::GROUP)),
            "{version}"
        );
    }
}
