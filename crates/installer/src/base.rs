//! `generate manager`: manifests on the standard output, or in files as a base of kustomize.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};

use crate::manifests::{self, Issuer};
use crate::subset::Subset;

/// File read by kustomize.
const KUSTOMIZATION: &str = "kustomization.yaml";
/// Content of [`KUSTOMIZATION`]. CRDs have a separate file, so that the rest is easy to find.
const KUSTOMIZATION_FILE: &str =
    "# Written by `ferrostack generate manager --kustomize`, which writes it again.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
- definitions.yaml
- manager.yaml
";
const DEFINITIONS: &str = "definitions.yaml";
const OTHERS: &str = "manager.yaml";

/// Manifests of a manager to print or to write.
#[derive(Debug)]
pub struct Options<'a> {
    /// [`Subset`] of the providers, with its kinds.
    pub subset: Subset,
    /// Namespace of the managers.
    pub namespace: &'a str,
    /// Image; adds a Deployment.
    pub image: Option<&'a str>,
    /// Namespace of clouds.
    pub clouds: Option<&'a str>,
    /// [`Issuer`] of the certificate of the webhooks.
    pub issuer: Issuer,
}

impl Options<'_> {
    /// Manifests as one YAML stream.
    ///
    /// # Errors
    /// If a namespace has an invalid name.
    pub fn manifests(&self) -> anyhow::Result<String> {
        for name in [Some(self.namespace), self.clouds].into_iter().flatten() {
            manifest::check_namespace(name)?;
        }
        let Self {
            namespace,
            image,
            clouds,
            ..
        } = *self;
        manifests::render_by(&self.subset, namespace, image, clouds, self.issuer)
    }
}

/// Writes the base into a directory: a new one, an empty one, or one with such a base.
///
/// # Errors
/// If the directory has other files, or cannot be written.
pub fn write(directory: &Path, manifests: &str, say: impl Fn(&str)) -> anyhow::Result<()> {
    let place = directory.display();
    let documents = manifests.split_inclusive("\n---\n");
    let documents = documents.map(|it| it.strip_suffix("---\n").unwrap_or(it));
    let (definitions, others): (Vec<&str>, Vec<&str>) = documents.partition(|text| {
        text.lines()
            .any(|line| line == "kind: CustomResourceDefinition")
    });
    let kustomization = directory.join(KUSTOMIZATION);
    match fs::read_to_string(&kustomization) {
        Ok(there) if there != KUSTOMIZATION_FILE => bail!(
            "{} is not one that `generate manager --kustomize` has written, and is not overwritten: choose another directory, and name it among the resources there",
            kustomization.display()
        ),
        _ => {}
    }
    fs::create_dir_all(directory).with_context(|| format!("cannot create {place}"))?;
    let files = [
        (DEFINITIONS, definitions.join("---\n")),
        (OTHERS, others.join("---\n")),
        (KUSTOMIZATION, KUSTOMIZATION_FILE.to_owned()),
    ];
    for (name, text) in files {
        let path = directory.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    say(&format!(
        "wrote {place}; kubectl applies it with: kubectl apply --server-side --kustomize {place}"
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn generated(directory: &Path) -> anyhow::Result<()> {
        let text = manifests::render(&Subset::all(), "ours", Some("a:1"), None)?;
        write(directory, &text, |_| {})
    }

    #[test]
    fn a_base_has_all_manifests_each_once() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().join("base");
        generated(&base).unwrap();
        // The same again is no mistake.
        generated(&base).unwrap();
        let read = |name: &str| {
            let text = fs::read_to_string(base.join(name)).unwrap();
            serde_saphyr::from_multiple::<Value>(&text).unwrap()
        };
        let kustomization = read(KUSTOMIZATION);
        let mut found: Vec<Value> = kustomization[0]["resources"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|file| read(file.as_str().unwrap()))
            .collect();
        let text = manifests::render(&Subset::all(), "ours", Some("a:1"), None).unwrap();
        let mut expected: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        let key = |it: &Value| format!("{} {}", it["kind"], it["metadata"]["name"]);
        found.sort_by_key(key);
        expected.sort_by_key(key);
        assert_eq!(found, expected);
    }

    #[test]
    fn a_kustomization_of_somebody_else_is_not_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(KUSTOMIZATION);
        fs::write(&file, "namePrefix: mine-\n").unwrap();
        let error = generated(directory.path()).unwrap_err().to_string();
        assert!(error.contains("is not overwritten"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "namePrefix: mine-\n");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
