//! `why`: obstacles between an object and its readiness, down to the last cause.

use anyhow::bail;
use jiff::Timestamp;
use status::snapshot::Snapshot;
use status::snapshot::follow::Wanted;
use status::why::{self, Commands};
use status::{asked, clusters};

use crate::cli::{Output, Why};
use crate::connect;
use crate::environment::Environment;
use crate::output::{self, print};

/// Runs the command.
pub(super) async fn execute(args: &Why, environment: &Environment) -> anyhow::Result<()> {
    print(&run(args, environment).await?)
}

/// Reason why an object is not ready, as text or JSON.
pub(crate) async fn run(args: &Why, environment: &Environment) -> anyhow::Result<String> {
    let management = connect::management(&args.connect.server, environment).await?;
    let namespace = args.connect.namespace.as_str();
    let followed = Snapshot::follow(&management.client, Some(namespace), Wanted::default()).await?;
    let snapshot = followed.snapshot;
    let asked = asked::parse(&args.object)?;
    let found = asked::find(&snapshot, &asked, namespace);
    let item = match (found, asked.cluster()) {
        (Ok(item), _) => item,
        // The cluster may be in another namespace, which is named.
        (Err(_), Some(name)) if !snapshot.items.iter().any(|it| it.name() == name) => {
            let missing = clusters::missing(&management.client, name, namespace).await?;
            bail!("{missing}")
        }
        (Err(missing), _) => bail!("{missing}"),
    };
    let commands = Commands {
        program: &environment.program,
        flags: &management.flags(),
        kubectl: &management.kubectl_flags(),
    };
    let answer = why::answer(&snapshot, item, &commands);
    match args.output.output {
        Output::Text => Ok(why::text(
            &answer,
            Timestamp::now(),
            output::layout(environment),
        )),
        Output::Json => Ok(terminal::json(&answer)?),
    }
}
