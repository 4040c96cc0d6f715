//! Files of a release for clusterctl: components of each provider, metadata, templates of clusters.
//!
//! The components are the manifests of `generate manager`, with the label of the provider on each object and with
//! variables in place of some values.

use api::names::PROVIDER_LABEL;
use api::providers::Provider;
use serde_json::{Value, json};

use super::file;
use crate::subset::Subset;
use crate::{flavors, manifests, names};

/// Versions that clusterctl may install.
const METADATA: &str = include_str!("../../../../config/release/metadata.yaml");

/// Values of the Deployment, and the variables in their place, with these values as their defaults.
const VARIABLES: [(&str, &str, &str); 2] = [
    ("  replicas: ", "2", "FERROSTACK_REPLICAS"),
    ("        - --log=", "info", "FERROSTACK_LOG"),
];
/// The variable with the image.
const IMAGE: &str = "FERROSTACK_IMAGE";

/// A file of a release.
pub(super) struct File {
    pub(super) name: String,
    pub(super) text: String,
}

/// All [`File`]s of a provider; the infrastructure provider has the templates, too.
pub(super) fn files(provider: Provider, image: &str) -> anyhow::Result<Vec<File>> {
    let mut files = vec![
        File {
            name: file(provider),
            text: components(provider, image)?,
        },
        File {
            name: "metadata.yaml".to_owned(),
            text: METADATA.to_owned(),
        },
    ];
    if provider == Provider::Infrastructure {
        files.extend(flavors::FILES.map(|(name, text)| File {
            name: name.to_owned(),
            text: text.to_owned(),
        }));
    }
    Ok(files)
}

/// Namespace of a [`Provider`]: one for each, since clusterctl deletes a provider with its namespace.
pub(super) fn namespace(provider: Provider) -> String {
    match provider {
        Provider::Infrastructure => names::NAMESPACE.to_owned(),
        other => format!("ferrostack-{other}-system"),
    }
}

/// Manifests of a [`Provider`], with variables; `image` is the default of the managers' image.
pub(super) fn components(provider: Provider, image: &str) -> anyhow::Result<String> {
    let subset = Subset::new([provider], false);
    let rendered = manifests::render(&subset, &namespace(provider), Some(image), None)?;
    let documents: Vec<Value> = serde_saphyr::from_multiple(&rendered)?;
    let mut texts = Vec::new();
    for mut document in documents {
        label(&mut document, provider);
        let text = serde_saphyr::to_string(&document)?;
        texts.push(match document["kind"] == "Deployment" {
            true => with_variables(&text, image),
            false => text,
        });
    }
    Ok(texts.join("---\n"))
}

/// Adds the label with which clusterctl lists and deletes the objects of a provider.
fn label(document: &mut Value, provider: Provider) {
    if document["metadata"]["labels"].is_null() {
        document["metadata"]["labels"] = json!({});
    }
    document["metadata"]["labels"][PROVIDER_LABEL] = provider.label().into();
}

fn with_variables(deployment: &str, image: &str) -> String {
    let quoted = |name: &str, value: &str| format!("${{{name}:={value}}}");
    let text = deployment.replace(
        &format!("image: {image}\n"),
        &format!("image: {}\n", quoted(IMAGE, image)),
    );
    VARIABLES.iter().fold(text, |text, (key, value, name)| {
        text.replace(
            &format!("{key}{value}\n"),
            &format!("{key}{}\n", quoted(name, value)),
        )
    })
}

#[cfg(test)]
mod tests {
    use manifest::template::{Found, Template};

    use super::*;
    use crate::installed::THIS;

    const OURS: &str = "registry.example.net/ferrostack:1";

    fn documents(text: &str) -> Vec<Value> {
        serde_saphyr::from_multiple(text).unwrap()
    }

    fn rendered(template: &str, values: &[(&str, &str)]) -> String {
        let template = Template::parse(template).unwrap();
        let find = |name: &str| {
            let found = values.iter().find(|(known, _)| *known == name);
            found.map(|(_, text)| Found {
                text: (*text).to_owned(),
                is_foreign: false,
            })
        };
        template.render(&find).unwrap()
    }

    #[test]
    fn components_are_the_manifests_of_the_manager_with_the_label_of_the_provider() {
        for provider in Provider::ALL {
            let text = components(provider, OURS).unwrap();
            let mut components = documents(&rendered(&text, &[]));
            let subset = Subset::new([provider], false);
            let image = Some(OURS);
            let mut expected =
                documents(&manifests::render(&subset, &namespace(provider), image, None).unwrap());
            for (component, expected) in components.iter_mut().zip(&mut expected) {
                assert_eq!(
                    component["metadata"]["labels"][PROVIDER_LABEL],
                    provider.label()
                );
                // Definitions have it in the manifests as well.
                label(expected, provider);
                assert_eq!(component, expected);
            }
            assert_eq!(components.len(), expected.len());
            let of_kind = |kind: &str| components.iter().filter(|it| it["kind"] == kind).count();
            assert_eq!((of_kind("Namespace"), of_kind("Deployment")), (1, 1));
        }
    }

    #[test]
    fn image_replicas_and_log_are_variables() {
        let text = components(Provider::Infrastructure, OURS).unwrap();
        let names = Template::parse(&text).unwrap();
        let names: Vec<String> = names.variables().into_keys().map(str::to_owned).collect();
        assert_eq!(
            names,
            ["FERROSTACK_IMAGE", "FERROSTACK_LOG", "FERROSTACK_REPLICAS"]
        );
        let values = [
            (IMAGE, "example.org/a:2"),
            ("FERROSTACK_LOG", "warn"),
            ("FERROSTACK_REPLICAS", "1"),
        ];
        let documents = documents(&rendered(&text, &values));
        let deployment = documents.iter().find(|it| it["kind"] == "Deployment");
        let spec = &deployment.unwrap()["spec"];
        assert_eq!(spec["replicas"], 1);
        let container = &spec["template"]["spec"]["containers"][0];
        assert_eq!(container["name"], "manager");
        assert_eq!(container["image"], "example.org/a:2");
        assert_eq!(container["args"][0], "--log=warn");
    }

    #[test]
    fn the_metadata_has_a_series_for_this_version() {
        let metadata: Value = serde_saphyr::from_str(METADATA).unwrap();
        let series = metadata["releaseSeries"].as_array().unwrap();
        let mut versions = series.iter().map(|it| {
            assert_eq!(it["contract"], "v1beta2", "{it}");
            format!("v{}.{}.", it["major"], it["minor"])
        });
        assert!(versions.any(|it| THIS.starts_with(&it)), "{THIS}");
    }

    #[test]
    fn templates_come_with_the_infrastructure_alone() {
        let names = |provider| {
            let files = files(provider, OURS).unwrap().into_iter();
            files.map(|it| it.name).collect::<Vec<_>>()
        };
        assert_eq!(
            names(Provider::Core),
            ["core-components.yaml", "metadata.yaml"]
        );
        let all = names(Provider::Infrastructure);
        assert_eq!(all.len(), 2 + flavors::FILES.len());
        assert!(all.contains(&"clusterclass-dev-test.yaml".to_owned()));
    }
}
