//! `wait`: until objects have a state.

use std::sync::Arc;

use anyhow::bail;
use serde_json::{Value, json};
use status::asked::{self, Asked};
use status::observer::{self, observe};
use status::snapshot::{Kind, Snapshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::cli::{Awaited, Output, Wait};
use crate::connect;
use crate::environment::Environment;
use crate::output::say;

/// Runs the command.
pub(super) async fn execute(args: &Wait, environment: &Environment) -> anyhow::Result<()> {
    run(args, environment, say).await
}

/// Waits until every object has the state, and reports each.
pub(crate) async fn run(
    args: &Wait,
    environment: &Environment,
    say: impl Fn(&str),
) -> anyhow::Result<()> {
    let mut left = Vec::new();
    for word in &args.objects {
        let asked = asked::parse(std::slice::from_ref(word))?;
        if !asked.is_known() {
            bail!(
                "`{word}` is of no kind that can be waited for: {}",
                Kind::ALL.map(Kind::as_str).join(", ")
            );
        }
        let missing = format!("the API server has not listed {}", asked.label());
        left.push(Left { asked, missing });
    }
    let client = connect::client(&args.connect.server, environment).await?;
    let deadline = Instant::now() + args.timeout;
    let stop = CancellationToken::new();
    let _end = stop.clone().drop_guard();
    let mut snapshots = observe(&client, observer::ours(), stop);
    let namespace = args.connect.namespace.as_str();
    while !left.is_empty() {
        // The first snapshot is empty: it is older than the first lists.
        let Ok(Ok(())) = tokio::time::timeout_at(deadline, snapshots.changed()).await else {
            let missing: Vec<&str> = left.iter().map(|it| it.missing.as_str()).collect();
            bail!(
                "not reached after {} s: {}",
                args.timeout.as_secs(),
                missing.join("; ")
            );
        };
        let snapshot = Arc::clone(&snapshots.borrow_and_update());
        let mut waiting = Vec::new();
        for Left { asked, .. } in left {
            match state(&snapshot, &asked, namespace, &args.state)? {
                Ok(reached) => say(&match args.output.output {
                    Output::Text => reached,
                    Output::Json => terminal::json_line(&event(&asked, &reached)),
                }),
                Err(missing) => waiting.push(Left { asked, missing }),
            }
        }
        left = waiting;
    }
    Ok(())
}

/// An object that has not reached the state.
struct Left {
    asked: Asked,
    /// Missing part, in words.
    missing: String,
}

/// An object that has reached the state, for programs.
fn event(asked: &Asked, reached: &str) -> Value {
    let (object, state) = reached.split_once(": ").unwrap_or((reached, ""));
    json!({"asked": asked.label(), "object": object, "state": state})
}

/// State once reached, or the missing parts, in words.
///
/// # Errors
/// If there is no such object, unless its creation or end is awaited.
fn state(
    snapshot: &Snapshot,
    asked: &Asked,
    namespace: &str,
    awaited: &Awaited,
) -> anyhow::Result<Result<String, String>> {
    let found = asked::find(snapshot, asked, namespace);
    let (type_, status) = match (awaited, &found) {
        (Awaited::Created, Ok(item)) => return Ok(Ok(format!("{}: exists", item.label()))),
        (Awaited::Created, Err(missing)) => return Ok(Err(missing.clone())),
        (Awaited::Deleted, Ok(item)) => return Ok(Err(format!("{} exists", item.label()))),
        (Awaited::Deleted, Err(_)) => return Ok(Ok(format!("{}: does not exist", asked.label()))),
        (Awaited::Condition { type_, status }, _) => (type_, status),
    };
    let item = found.map_err(anyhow::Error::msg)?;
    let label = item.label();
    let Some(condition) = item.condition(type_) else {
        let known: Vec<&str> = item.conditions().map(|it| it.type_).collect();
        return Ok(Err(match known.is_empty() {
            true => format!("{label} has no condition {type_}"),
            false => format!(
                "{label} has no condition {type_}, only {}",
                known.join(", ")
            ),
        }));
    };
    Ok(match condition.status == status {
        true => Ok(format!("{label}: {type_} is {status}")),
        false => Err(format!(
            "{type_} of {label} is {}: {}",
            condition.status, condition.message
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::item;

    fn reached(word: &str, awaited: &str) -> Result<Result<String, String>, String> {
        let condition = json!({"type": "Available", "status": "False", "reason": "X", "message": "no machine",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let cluster = json!({"metadata": {"name": "demo", "namespace": "default", "uid": "demo"},
            "status": {"conditions": [condition]}});
        let snapshot = Snapshot::from(vec![item(Kind::Cluster, cluster)]);
        let asked = asked::parse(&[word.to_owned()]).unwrap();
        let state = state(&snapshot, &asked, "default", &awaited.parse().unwrap());
        state.map_err(|error| error.to_string())
    }

    #[test]
    fn a_reached_state_is_one_line_for_programs() {
        let asked = asked::parse(&["cl/demo".to_owned()]).unwrap();
        assert_eq!(
            event(&asked, "Cluster/demo: Available is True"),
            json!({"asked": "cl/demo", "object": "Cluster/demo", "state": "Available is True"})
        );
    }

    #[test]
    fn a_state_is_reached_or_said_in_words() {
        let ok = |text: &str| Ok(Ok(text.to_owned()));
        let waiting = |text: &str| Ok(Err(text.to_owned()));
        for (word, awaited, expected) in [
            ("demo", "create", ok("Cluster/demo: exists")),
            ("cluster/demo", "delete", waiting("Cluster/demo exists")),
            (
                "cluster/other",
                "delete",
                ok("cluster/other: does not exist"),
            ),
            (
                "demo",
                "condition=Available=False",
                ok("Cluster/demo: Available is False"),
            ),
            (
                "demo",
                "condition=Available",
                waiting("Available of Cluster/demo is False: no machine"),
            ),
            (
                "demo",
                "condition=Ready",
                waiting("Cluster/demo has no condition Ready, only Available"),
            ),
        ] {
            assert_eq!(reached(word, awaited), expected, "{word} {awaited}");
        }
        assert!(reached("other", "create").unwrap().is_err());
        assert!(reached("other", "condition=Ready").is_err());
    }
}
