//! `generate manager`, `generate chart` and `generate monitoring`: manifests of the managers and about them.

use installer::base::{self, Options};
use installer::chart;
use installer::manifests::Issuer;
use installer::monitoring;
use installer::older::Older;
use installer::subset::Subset;

use crate::cli::{GenerateChart, GenerateManager, GenerateMonitoring};

/// Prints the manifests, or writes a base of kustomize.
pub(crate) fn manager(
    args: &GenerateManager,
    print: impl Fn(&str) -> anyhow::Result<()>,
    say: impl Fn(&str),
) -> anyhow::Result<()> {
    let older = Older::named(&args.older.serve_versions)?;
    let clouds = args.openstack_namespace.as_deref();
    let subset = Subset::new(args.providers.iter().map(|it| it.0), clouds.is_some());
    let options = Options {
        subset: subset.serving(older),
        namespace: &args.namespace,
        image: args.image.as_deref(),
        clouds,
        issuer: match args.cert_manager {
            true => Issuer::CertManager,
            false => Issuer::Manager,
        },
    };
    let text = options.manifests()?;
    match &args.kustomize {
        Some(directory) => base::write(directory, &text, say),
        None => print(&text),
    }
}

/// Writes a chart for Helm.
pub(crate) fn chart(args: &GenerateChart, say: impl Fn(&str)) -> anyhow::Result<()> {
    let older = Older::named(&args.older.serve_versions)?;
    chart::write(&args.directory, older, say)
}

/// The manifests of monitoring.
pub(crate) fn monitoring(args: &GenerateMonitoring) -> anyhow::Result<String> {
    let subset = Subset::new(args.providers.iter().map(|it| it.0), false);
    monitoring::render(&subset, &args.namespace)
}
