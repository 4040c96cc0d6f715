//! `topology plan`: effect of changed classes, templates and clusters.
//!
//! The objects of the namespace are copied into an API server in memory, the files are applied there, and the
//! controllers of ClusterClasses and topologies run on the copy until it rests. The difference to the original is the
//! plan, made by the real controllers.
//!
//! ```text
//!   copy          the objects in memory
//!   differences   changes in the copy (pure)
//! ```

pub(crate) mod copy;
pub(crate) mod differences;

use serde_json::json;

use self::copy::Copy;
use self::differences::{Difference, differences};
use crate::cli::{Output, Topology, TopologyPlan};
use crate::connect;
use crate::environment::Environment;
use crate::output::print;
use crate::source;

/// Runs the command.
pub(super) async fn execute(args: &Topology, environment: &Environment) -> anyhow::Result<()> {
    let Topology::Plan(args) = args;
    print(&run(args, environment).await?)
}

/// The text of the plan.
pub(crate) async fn run(args: &TopologyPlan, environment: &Environment) -> anyhow::Result<String> {
    let mut documents = Vec::new();
    for file in &args.files {
        documents.extend(source::read_file(file)?);
    }
    let namespace = args.connect.namespace.as_str();
    let client = connect::client(&args.connect.server, environment).await?;
    let copy = Copy::for_namespace(&client, namespace).await?;
    let before = copy.objects().await?;
    apply::all(copy.client(), &documents, namespace).await?;
    let obstacles = copy.reconcile().await?;
    let after = copy.objects().await?;
    copy.close().await;
    let mut found = differences(&before, &after);
    if let Some(cluster) = &args.cluster {
        found.retain(|difference| difference.cluster.as_ref() == Some(cluster));
    }
    Ok(match args.output.output {
        Output::Json => {
            let changes: Vec<_> = found.iter().map(|it| it.json(namespace)).collect();
            terminal::json(&json!({ "changes": changes, "obstacles": obstacles }))?
        }
        Output::Text => text(namespace, &found, &obstacles),
    })
}

fn text(namespace: &str, found: &[Difference], obstacles: &[String]) -> String {
    let mut text = String::new();
    if found.is_empty() {
        text.push_str("nothing changes\n");
    } else {
        let mut rows = vec![["NAMESPACE", "KIND", "NAME", "ACTION"].map(str::to_owned)];
        rows.extend(found.iter().map(|it| {
            [
                namespace,
                it.kind.as_str(),
                it.name.as_str(),
                it.action.as_str(),
            ]
            .map(str::to_owned)
        }));
        let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
        let widths = [width(0), width(1), width(2)];
        for [namespace, kind, name, action] in &rows {
            let [first, second, third] = widths;
            text.push_str(&format!(
                "{namespace:first$}  {kind:second$}  {name:third$}  {action}\n"
            ));
        }
    }
    for obstacle in obstacles {
        text.push_str(&format!("\n{obstacle}\n"));
    }
    text
}
