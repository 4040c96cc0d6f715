use std::path::Path;

use installer::older::Older;
use manifest::convert::converted;
use serde_json::Value;

use crate::source;

fn documents(text: &str) -> Vec<Value> {
    let documents = manifest::read("f", text).unwrap();
    documents.into_iter().map(|it| it.value).collect()
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
            let converted = converted(&name, &filled(&template), "v1beta2").unwrap();
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
            crate::commands::up::install_definitions(&client, &Older::default())
                .await
                .unwrap();
            if let Err(problem) = apply::all(&client, &documents, "default").await {
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
