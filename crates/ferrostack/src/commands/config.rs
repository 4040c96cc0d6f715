//! `config repositories`, `generate provider` and `generate repository`: built-in providers.

use std::fs;

use anyhow::Context;
use installer::repositories;

use crate::cli::{ConfigCommand, GenerateProvider, GenerateRepository, Output};
use crate::output::print;

/// Runs the command.
pub(super) fn execute(args: &ConfigCommand) -> anyhow::Result<()> {
    let ConfigCommand::Repositories(args) = args;
    print(&list(args.output))
}

/// The table of `clusterctl config repositories`.
pub(crate) fn list(output: Output) -> String {
    match output {
        Output::Json => terminal::json_document(&repositories::json()),
        Output::Text => repositories::table(),
    }
}

/// Prints the manifests of the named providers, or their description.
pub(crate) fn generate(
    args: &GenerateProvider,
    print: impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let namespace = args.target_namespace.as_str();
    manifest::check_namespace(namespace)?;
    let named = repositories::some(&args.providers.named())?;
    let text = match args.describe {
        true => repositories::descriptions(&named, namespace),
        false if args.raw => repositories::raw(&named)?,
        false => repositories::components(&named, namespace, args.image.as_deref())?,
    };
    match &args.write_to {
        Some(path) => {
            fs::write(path, &text).with_context(|| format!("cannot write {}", path.display()))
        }
        None => print(&text),
    }
}

/// Writes a repository of releases, as read by clusterctl from files, and the configuration with its paths.
pub(crate) fn write(args: &GenerateRepository, say: impl Fn(&str)) -> anyhow::Result<()> {
    let (providers, image) = (args.providers.named(), args.image.as_deref());
    repositories::write(&args.directory, &providers, image, say)
}
