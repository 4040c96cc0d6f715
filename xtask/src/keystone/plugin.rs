//! Output of the exec plugins in the same environments, without a terminal.

use std::collections::BTreeMap;
use std::process::Stdio;

use anyhow::Context;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::script::Environment;
use super::webhook::Program;
use super::world::World;
use crate::differences::Played;
use crate::differences::names::Names;
use crate::simulated::Client;

/// Name of the group with the output of the plugins.
pub(super) const GROUP: &str = "plugin";

/// Tolerance in seconds for the expiry of a token: ours is by the clock of this machine.
const ROUNDED: u64 = 2;

/// Runs the plugin in each [`Environment`].
pub(super) fn play(
    environments: &[Environment],
    program: &Program,
    world: &World,
    names: &Names,
) -> anyhow::Result<Played> {
    let mut cloud = world.connect()?;
    let mut played = Played {
        answers: Vec::new(),
        words: BTreeMap::new(),
        left: Value::Null,
    };
    for environment in environments {
        let (answer, words) = run(environment, program, world, names, &mut cloud)
            .with_context(|| environment.is.clone())?;
        let place = environment.is.clone();
        played.answers.push((place.clone(), answer));
        played.words.insert(place, words);
    }
    Ok(played)
}

fn run(
    environment: &Environment,
    program: &Program,
    world: &World,
    names: &Names,
    cloud: &mut Client,
) -> anyhow::Result<(Value, String)> {
    let directory = tempfile::tempdir_in(world.directory())?;
    if let Some(clouds) = &environment.clouds {
        let text = names.resolve_all(clouds)?.to_string();
        std::fs::write(directory.path().join("clouds.yaml"), text)?;
    }
    let mut command = program.plugin();
    for (name, value) in &environment.env {
        command.env(name, names.resolve(value)?);
    }
    for argument in &environment.args {
        command.arg(names.resolve(argument)?);
    }
    let ended = command
        .env("HOME", directory.path())
        .current_dir(directory.path())
        .stdin(Stdio::null())
        .output()
        .with_context(|| program.name.to_owned())?;
    let words = String::from_utf8_lossy(&ended.stderr);
    let words = words.lines().next().unwrap_or_default().to_owned();
    let mut printed: Value = serde_json::from_slice(&ended.stdout).unwrap_or(Value::Null);
    let status = &mut printed["status"];
    if let Some(token) = status["token"].as_str() {
        let subject = cloud.subject(token)?;
        let expires = |text: &Value| -> anyhow::Result<i64> {
            let text = text.as_str().context("when the token ends")?;
            Ok(text.parse::<Timestamp>()?.as_second())
        };
        let printed = expires(&status["expirationTimestamp"])?;
        let is_right = printed.abs_diff(expires(&subject["token"]["expires_at"])?) <= ROUNDED;
        status["expirationTimestamp"] = json!(match is_right {
            true => "that of the token",
            false => "another one than that of the token",
        });
        let word = |at: &str| subject["token"].pointer(at).cloned().unwrap_or_default();
        status["token"] = json!({"user": word("/user/name"), "domain": word("/user/domain/name"),
            "project": word("/project/name"), "methods": word("/methods")});
    }
    let code = ended
        .status
        .code()
        .map_or("none".to_owned(), |it| it.to_string());
    Ok((json!({"code": code, "answer": names.hide(printed)}), words))
}
