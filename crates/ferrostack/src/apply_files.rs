//! `apply`: manifests from files, directories, URLs or standard input, all validated before the first is written.

use std::collections::BTreeMap;

use anyhow::Context;

use crate::apply;
use crate::cli::Apply;
use crate::connect;
use crate::environment::Environment;
use crate::snapshot::counted;
use crate::source;

/// Applies the manifests in `args`, and reports the number of objects of each kind.
pub(crate) async fn run(
    args: &Apply,
    environment: &Environment,
    say: impl Fn(&str),
) -> anyhow::Result<()> {
    let documents = source::read_all(&args.files).await?;
    let client = connect::client(&args.server, environment).await?;
    apply::all(&client, &documents, &args.namespace)
        .await
        .context("the manifests were rejected")?;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for document in &documents {
        *counts.entry(document.text(&["kind"])).or_default() += 1;
    }
    for (kind, count) in counts {
        say(&format!("{} applied", counted(count, kind)));
    }
    Ok(())
}
