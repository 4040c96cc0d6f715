//! Built-in [`Provider`]s, as listed by clusterctl, and as the files of a release.

mod release;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use api::providers::Provider;
use serde_json::{Value, json};

use crate::choice::{self, Named};
use crate::installed::THIS;
use crate::subset::Subset;
use crate::upgrade::plan::{aligned, type_of};
use crate::{manifests, names};

/// Location of the manifests in the list of clusterctl.
const URL: &str = "built-in";

/// Image in the files of a release; an archive of the image is in the release.
const RELEASED: &str = concat!("ferrostack:", env!("CARGO_PKG_VERSION"));
/// File with the providers, for clusterctl.
const CONFIGURATION: &str = "clusterctl.yaml";

/// Name of a file with the manifests of a [`Provider`], as in releases of providers.
fn file(provider: Provider) -> String {
    format!("{provider}-components.yaml")
}

/// Table of `clusterctl config repositories`.
pub fn table() -> String {
    let mut rows = vec![["NAME", "TYPE", "URL", "FILE"].map(str::to_owned)];
    rows.extend(Provider::ALL.map(|it| {
        let (name, of_type) = (it.name().to_owned(), type_of(it).to_owned());
        [name, of_type, URL.to_owned(), file(it)]
    }));
    aligned(&rows).join("\n") + "\n"
}

/// JSON of `clusterctl config repositories`.
pub fn json() -> Value {
    let all = Provider::ALL.map(|it| {
        json!({"name": it.name(), "type": type_of(it), "url": URL, "file": file(it), "version": THIS})
    });
    json!(all)
}

/// [`Provider`]s named by the flags, at least one.
///
/// # Errors
/// If no provider is named, or an unknown one.
pub fn some(providers: &Named) -> anyhow::Result<BTreeSet<Provider>> {
    let named = choice::named(providers)?;
    ensure!(
        !named.is_empty(),
        "no provider is named: use --core cluster-api, --bootstrap kubeadm, --control-plane kubeadm or --infrastructure openstack"
    );
    Ok(named)
}

/// Description of [`Provider`]s: version, file, namespace and image.
pub fn descriptions(providers: &BTreeSet<Provider>, namespace: &str) -> String {
    let all = providers.iter();
    all.map(|it| description(*it, namespace)).collect()
}

/// Components of [`Provider`]s in a release, with variables.
///
/// # Errors
/// If a manifest is no YAML.
pub fn raw(providers: &BTreeSet<Provider>) -> anyhow::Result<String> {
    let all = providers.iter();
    let all = all.map(|it| release::components(*it, RELEASED));
    let all: anyhow::Result<Vec<String>> = all.collect();
    Ok(all?.join("---\n"))
}

/// Manifests of one manager of [`Provider`]s.
///
/// # Errors
/// If a manifest is no YAML.
pub fn components(
    providers: &BTreeSet<Provider>,
    namespace: &str,
    image: Option<&str>,
) -> anyhow::Result<String> {
    let subset = Subset::new(providers.iter().copied(), false);
    manifests::render(&subset, namespace, image, None)
}

/// Writes a repository of releases, as read by clusterctl from files, and the configuration with its paths.
///
/// # Errors
/// If a provider is unknown, or the directory has another configuration or cannot be written.
pub fn write(
    directory: &Path,
    providers: &Named,
    image: Option<&str>,
    say: impl Fn(&str),
) -> anyhow::Result<()> {
    let mut named = choice::named(providers)?;
    if named.is_empty() {
        named.extend(Provider::ALL);
    }
    let image = image.unwrap_or(RELEASED);
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    // The addresses of the providers are paths from the root.
    let directory = directory
        .canonicalize()
        .with_context(|| format!("cannot read {}", directory.display()))?;
    let configuration = directory.join(CONFIGURATION);
    let text = configured(&directory, &named);
    check(&configuration, &text)?;
    for provider in &named {
        let version = version(&directory, *provider);
        fs::create_dir_all(&version)
            .with_context(|| format!("cannot create {}", version.display()))?;
        for file in release::files(*provider, image)? {
            write_file(&version.join(file.name), &file.text)?;
        }
    }
    write_file(&configuration, &text)?;
    let names: Vec<&str> = named.iter().map(|it| it.label()).collect();
    say(&format!(
        "wrote {}; clusterctl reads it with --config {}",
        names.join(", "),
        configuration.display()
    ));
    Ok(())
}

/// Directory of this version of a [`Provider`].
fn version(directory: &Path, provider: Provider) -> PathBuf {
    directory.join(provider.label()).join(THIS)
}

/// The configuration of clusterctl.
fn configured(directory: &Path, named: &BTreeSet<Provider>) -> String {
    let entries = named.iter().map(|it| {
        let file = version(directory, *it).join(file(*it));
        let url = format!("file://{}", file.display());
        json!({"name": it.name(), "type": type_of(*it), "url": url})
    });
    let entries: Vec<_> = entries.collect();
    // JSON is YAML.
    let lines: Vec<String> = entries.iter().map(|it| format!("- {it}\n")).collect();
    format!("providers:\n{}", lines.concat())
}

/// Rejects a configuration with other providers or settings, which would be lost.
fn check(configuration: &Path, text: &str) -> anyhow::Result<()> {
    match fs::read_to_string(configuration) {
        Ok(there) if there != text => bail!(
            "{} is there with other content, and is not overwritten: remove it, or use another directory",
            configuration.display()
        ),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => {
            Err(error).with_context(|| format!("cannot read {}", configuration.display()))
        }
    }
}

fn write_file(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn description(provider: Provider, namespace: &str) -> String {
    format!(
        "Name:               {}\nType:               {}\nURL:                {URL}\nVersion:            {THIS}\nFile:               {}\n\
         TargetNamespace:    {namespace}\nImages:             {}\n",
        provider.name(),
        type_of(provider),
        file(provider),
        names::IMAGE,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_providers_are_listed_as_clusterctl_lists_them() {
        let text = table();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5);
        assert_eq!(
            lines[0],
            "NAME          TYPE                     URL        FILE"
        );
        assert_eq!(
            lines[4],
            "openstack     InfrastructureProvider   built-in   infrastructure-components.yaml"
        );
        let json = json();
        assert_eq!(json[2]["type"], "ControlPlaneProvider");
    }

    #[test]
    fn a_description_names_type_version_and_namespace() {
        let text = description(Provider::Bootstrap, "capi");
        assert!(
            text.contains("Type:               BootstrapProvider\n"),
            "{text}"
        );
        assert!(text.contains("TargetNamespace:    capi\n"), "{text}");
    }

    fn repository(directory: &Path) -> anyhow::Result<()> {
        write(directory, &Named::default(), None, |_| {})
    }

    #[test]
    fn a_repository_has_the_files_of_each_provider_under_its_label_and_version() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let place = directory.path().join("releases");
        repository(&place).unwrap();
        let text = fs::read_to_string(place.join(CONFIGURATION)).unwrap();
        let configuration: Value = serde_saphyr::from_str(&text).unwrap();
        let providers = configuration["providers"].as_array().unwrap();
        assert_eq!(providers.len(), 4);
        for provider in providers {
            let url = provider["url"].as_str().unwrap();
            let path = Path::new(url.strip_prefix("file://").unwrap());
            assert!(path.starts_with(&root) && path.is_file(), "{url}");
            assert!(path.with_file_name("metadata.yaml").is_file());
        }
        let last = &providers[3];
        assert_eq!(last["name"], "openstack");
        assert_eq!(last["type"], "InfrastructureProvider");
        let end =
            format!("releases/infrastructure-openstack/{THIS}/infrastructure-components.yaml");
        assert!(last["url"].as_str().unwrap().ends_with(&end), "{last}");
        // The same again is no mistake.
        repository(&place).unwrap();
    }

    #[test]
    fn a_configuration_of_somebody_else_is_not_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(CONFIGURATION);
        fs::write(&file, "OPENSTACK_CLOUD: mine\n").unwrap();
        let error = repository(directory.path());
        let error = error.unwrap_err().to_string();
        assert!(error.contains("is not overwritten"), "{error}");
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            "OPENSTACK_CLOUD: mine\n"
        );
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
