//! `convert`: manifests from one version of Cluster API's kinds to another.

use std::path::PathBuf;

use manifest::convert::{converted, unified};

use crate::cli::Convert;
use crate::environment::Environment;
use crate::output::{self, print_document, remark};
use crate::source;

/// Runs the command.
pub(super) async fn execute(args: &Convert, environment: &Environment) -> anyhow::Result<()> {
    run(args, environment, print_document, remark).await
}

/// Converts manifests, and prints or writes them, or the changes. `note` is called with unchanged parts.
pub(crate) async fn run(
    args: &Convert,
    environment: &Environment,
    print: impl Fn(&str) -> anyhow::Result<()>,
    note: impl Fn(&str),
) -> anyhow::Result<()> {
    let mut sources = args.files.clone();
    if sources.is_empty() {
        let source = args.source.clone();
        sources.push(source.unwrap_or_else(|| PathBuf::from("-")));
    }
    let mut texts = Vec::new();
    for source in &sources {
        for file in source::files(source)? {
            let name = source::name(&file);
            let text = source::text(&file).await;
            let text = text.map_err(|problem| anyhow::anyhow!("cannot read {name}: {problem}"))?;
            let converted = converted(&name, &text, args.to_version.as_str())?;
            for line in &converted.notes {
                note(line);
            }
            match args.diff {
                true => texts.push(unified(&name, "converted", &text, &converted.text)),
                false => texts.push(converted.text),
            }
        }
    }
    let text = match args.diff {
        true => texts.concat(),
        false => texts.join("---\n"),
    };
    match &args.output {
        Some(file) => output::file::write(environment, file, &text),
        None if text.is_empty() => Ok(()),
        None => print(&text),
    }
}

#[cfg(test)]
mod tests;
