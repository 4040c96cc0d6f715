//! `version`.

use serde_json::json;

use crate::cli::{Output, Version};
use crate::connect;
use crate::environment::Environment;
use crate::output::print;

/// Runs the command.
pub(super) async fn execute(args: &Version, environment: &Environment) -> anyhow::Result<()> {
    print(&text(args, environment).await?)
}

/// Version of this program and, without `--client`, the API server's version or the reason for an unknown one.
pub(crate) async fn text(args: &Version, environment: &Environment) -> anyhow::Result<String> {
    let client = env!("CARGO_PKG_VERSION");
    let server = match args.client {
        true => None,
        false => server(args, environment).await,
    };
    Ok(match args.output.output {
        Output::Json => {
            let (version, problem) = match &server {
                Some(Ok(version)) => (Some(version), None),
                Some(Err(problem)) => (None, Some(problem)),
                None => (None, None),
            };
            let text = json!({"clientVersion": client, "serverVersion": version, "serverProblem": problem});
            terminal::json(&text)?
        }
        Output::Text => match server {
            None => format!("ferrostack {client}\n"),
            Some(Ok(version)) => format!("ferrostack {client}\nAPI server {version}\n"),
            Some(Err(problem)) => format!("ferrostack {client}\n{problem}\n"),
        },
    })
}

async fn server(args: &Version, environment: &Environment) -> Option<Result<String, String>> {
    let client = match connect::client(&args.server, environment).await {
        Ok(client) => client,
        Err(problem) => return Some(Err(operator::words::chain(&*problem))),
    };
    let info = client.apiserver_version().await;
    Some(
        info.map(|info| info.git_version)
            .map_err(|source| operator::words::chain(&source)),
    )
}
