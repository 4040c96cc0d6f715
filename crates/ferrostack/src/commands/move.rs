//! `move`: clusters from one management cluster to another.

mod warnings;

use anyhow::bail;
use kube::Client;
use mover::{Options, Report};
use terminal::counted;
use tokio_util::sync::CancellationToken;

use self::warnings::Warns;
use crate::cli::{Move, Output};
use crate::connect;
use crate::environment::Environment;
use crate::output::{print, remark};
use crate::signals::stop_on_signal;

/// Runs the command.
pub(super) async fn execute(args: &Move, environment: &Environment) -> anyhow::Result<()> {
    run(args, environment, stop_on_signal()?, print, remark).await
}

/// Longest list of remaining objects in a text.
const LISTED: usize = 20;

/// Moves the objects, or shows the plan of a move. `remark` is called with the progress, `print` with the result.
pub(crate) async fn run(
    args: &Move,
    environment: &Environment,
    stop: CancellationToken,
    print: impl Fn(&str) -> anyhow::Result<()>,
    remark: impl Fn(&str) + Clone + Send + Sync + 'static,
) -> anyhow::Result<()> {
    let warns = Warns::new(args.hide_api_warnings, remark.clone());
    let options = Options {
        namespace: args.connect.namespace.clone(),
        confirm_within: args.confirm_within,
        stop,
    };
    let target = match &args.to_kubeconfig {
        Some(file) => {
            let context = args.to_kubeconfig_context.as_deref();
            Some(warns.of(&connect::named(file, context, environment).await?))
        }
        None => None,
    };
    if let Some(directory) = &args.from_directory {
        let target = match target {
            Some(target) => target,
            None => warns.of(&connect::client(&args.connect.server, environment).await?),
        };
        let directory = environment.working_dir.join(directory);
        let report = mover::from_directory(&directory, &target, &options, &remark).await?;
        return print(&ended(args, &report, "are managed here now")?);
    }
    let source = warns.of(&connect::client(&args.connect.server, environment).await?);
    if args.dry_run {
        return preview(args, &source, target.as_ref(), &options, print).await;
    }
    if args.roll_back {
        mover::roll_back(&source, target.as_ref(), &options, &remark).await?;
        if target.is_none() {
            remark(
                "without --to-kubeconfig nothing was deleted in the target: what it has stays there, paused",
            );
        }
        remark("the move is undone: the source goes on as before");
        return Ok(());
    }
    if let Some(directory) = &args.to_directory {
        let directory = environment.working_dir.join(directory);
        let report = mover::to_directory(&source, &directory, &options, &remark).await?;
        return print(&ended(args, &report, "are written, and go on here")?);
    }
    let Some(target) = target else {
        bail!("--to-kubeconfig names the target");
    };
    let report = mover::to_cluster(&source, &target, &options, &remark).await?;
    print(&ended(args, &report, "have moved")?)
}

async fn preview(
    args: &Move,
    source: &Client,
    target: Option<&Client>,
    options: &Options,
    print: impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let report = mover::preview(source, target, options).await?;
    let text = match args.output.output {
        Output::Json => json(&report)?,
        Output::Text => listing(&report),
    };
    print(&text)?;
    if report.problems.is_empty() {
        return Ok(());
    }
    bail!("nothing can be moved:\n{}", report.problems.join("\n"))
}

fn json(report: &Report) -> anyhow::Result<String> {
    Ok(terminal::json(report)?)
}

/// Result of a move, from its [`Report`].
fn ended(args: &Move, report: &Report, what: &str) -> anyhow::Result<String> {
    if args.output.output == Output::Json {
        return json(report);
    }
    let names = report.clusters.join(", ");
    Ok(format!(
        "{} of namespace {} {what}: {}{}\n{}",
        counted(report.moves.len(), "object"),
        report.namespace,
        if names.is_empty() {
            "no Cluster"
        } else {
            "Cluster "
        },
        names,
        staying(report)
    ))
}

/// Objects to move, and objects that stay.
fn listing(report: &Report) -> String {
    let mut text = format!(
        "namespace {}: {} would move\n",
        report.namespace,
        counted(report.moves.len(), "object")
    );
    for (kind, count) in report.counts() {
        text.push_str(&format!("  {}\n", counted(count, kind)));
    }
    for entry in &report.moves {
        text.push_str(&format!(
            "moves: {}/{}: {}\n",
            entry.kind, entry.name, entry.reason
        ));
    }
    text + &staying(report)
}

fn staying(report: &Report) -> String {
    let mut text = String::new();
    for entry in report.stays.iter().take(LISTED) {
        text.push_str(&format!(
            "stays: {}/{}: {}\n",
            entry.kind, entry.name, entry.reason
        ));
    }
    if report.stays.len() > LISTED {
        let more = report.stays.len() - LISTED;
        text.push_str(&format!(
            "and {} more; -o json lists all\n",
            counted(more, "object")
        ));
    }
    text
}
