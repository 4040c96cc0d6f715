//! `config repositories` and `generate provider`: the providers that this program has in itself.

use anyhow::{Context, ensure};
use api::providers::Provider;
use serde_json::json;

use crate::cli::{GenerateProvider, Output};
use crate::generate::check_namespace;
use crate::init::choice;
use crate::manager::installed::THIS;
use crate::manager::manifests;
use crate::manager::subset::Subset;
use crate::output;
use crate::upgrade::plan::{aligned, type_of};

/// Where the manifests come from.
const URL: &str = "built-in";

/// The name of a file with the manifests of a provider, as releases of providers have it.
fn file(provider: Provider) -> String {
    format!("{provider}-components.yaml")
}

/// The table of `clusterctl config repositories`.
pub(crate) fn list(output: Output) -> String {
    match output {
        Output::Json => {
            let all = Provider::ALL.map(|it| {
                json!({"name": it.name(), "type": type_of(it), "url": URL, "file": file(it), "version": THIS})
            });
            output::json_document(&json!(all))
        }
        Output::Text => {
            let mut rows = vec![["NAME", "TYPE", "URL", "FILE"].map(str::to_owned)];
            rows.extend(Provider::ALL.map(|it| {
                let (name, of_type) = (it.name().to_owned(), type_of(it).to_owned());
                [name, of_type, URL.to_owned(), file(it)]
            }));
            aligned(&rows).join("\n") + "\n"
        }
    }
}

/// Prints the manifests of the providers that are named, or what they are.
pub(crate) fn generate(
    args: &GenerateProvider,
    print: impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    check_namespace(&args.target_namespace)?;
    let named = choice::named(&args.providers)?;
    ensure!(
        !named.is_empty(),
        "no provider is named: use --core cluster-api, --bootstrap kubeadm, --control-plane kubeadm or --infrastructure openstack"
    );
    let (namespace, image) = match args.raw {
        true => (manifests::NAMESPACE, None),
        false => (args.target_namespace.as_str(), args.image.as_deref()),
    };
    let text = match args.describe {
        true => named.iter().map(|it| description(*it, namespace)).collect(),
        false => {
            let subset = Subset::new(named.iter().copied(), false);
            manifests::render(&subset, namespace, image, None)?
        }
    };
    match &args.write_to {
        Some(path) => {
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
        }
        None => print(&text),
    }
}

fn description(provider: Provider, namespace: &str) -> String {
    format!(
        "Name:               {}\nType:               {}\nURL:                {URL}\nVersion:            {THIS}\nFile:               {}\n\
         TargetNamespace:    {namespace}\nImages:             {}\n",
        provider.name(),
        type_of(provider),
        file(provider),
        manifests::IMAGE,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_providers_are_listed_as_clusterctl_lists_them() {
        let text = list(Output::Text);
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
        let json: serde_json::Value = serde_json::from_str(&list(Output::Json)).unwrap();
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
}
