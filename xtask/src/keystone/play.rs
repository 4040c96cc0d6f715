//! Play of a group of requests to one webhook.

use std::collections::BTreeMap;

use anyhow::Context;
use serde_json::Value;

use super::cluster::Cluster;
use super::script::{Cloud, Group, Step};
use super::webhook::{Program, Webhook, ask};
use super::world::{World, token};
use crate::differences::Played;
use crate::differences::names::Names;
use crate::simulated::Client;

/// Plays the [`Group`] to a new webhook.
pub(super) async fn play(
    group: &Group,
    program: &Program,
    world: &World,
    names: &Names,
) -> anyhow::Result<Played> {
    let (mut names, mut cloud) = (names.clone(), world.connect()?);
    let name = format!("{}-{}", group.name.replace([' ', '/'], "-"), program.name);
    let policy = world.directory().join(format!("{name}.json"));
    if let Some(value) = &group.policy {
        let text = match names.resolve_all(value)? {
            Value::String(text) => text,
            other => other.to_string(),
        };
        std::fs::write(&policy, text)?;
    }
    let policy = group.policy.as_ref().map(|_| policy.as_path());
    let mut flags: Vec<&str> = match program.name {
        "here" => group.flags.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    };
    let cluster = match &group.sync {
        Some(sync) => Some(Cluster::open(world, &names.resolve_all(sync)?).await?),
        None => None,
    };
    flags.extend(cluster.iter().flat_map(|it| &it.flags).map(String::as_str));
    let mut played = Played {
        answers: Vec::new(),
        words: BTreeMap::new(),
        left: Value::Null,
    };
    let webhook = Webhook::start(program, world, &name, policy, &flags).await?;
    let starts = Value::from(webhook.is_some().to_string());
    let starts = serde_json::json!({"code": "start", "answer": {"starts": starts}});
    played.answers.push(("start".to_owned(), starts));
    let Some(webhook) = webhook else {
        return Ok(played);
    };
    let mut connection = None;
    for step in &group.steps {
        prepare(step, &mut names, &mut cloud).with_context(|| step.is.clone())?;
        let count = step.each.len().max(1);
        for at in 0..count {
            let mut place = step.is.clone();
            if let Some(each) = step.each.get(at) {
                names.insert("each", &names.resolve(each)?);
                place = format!("{place} {}", at + 1);
            }
            let body = match (&step.body, step.review(&names)?) {
                (Some(body), _) => names.resolve(body)?,
                (None, Some(review)) => names.resolve_all(&review)?.to_string(),
                (None, None) => continue,
            };
            let (answer, words) = ask(&mut connection, &webhook, body.as_bytes()).await?;
            played.answers.push((place.clone(), names.hide(answer)));
            played.words.insert(place, words);
        }
    }
    if let Some(cluster) = cluster {
        played.left = names.hide(cluster.left().await?);
    }
    Ok(played)
}

/// Preparations of a [`Step`] before its request.
fn prepare(step: &Step, names: &mut Names, cloud: &mut Client) -> anyhow::Result<()> {
    if let Some(auth) = &step.log_in {
        let token = token(cloud, &names.resolve_all(auth)?)?;
        names.insert(step.keep.as_deref().context("keep")?, &token);
    }
    if let Some(request) = &step.cloud {
        call(request, names, cloud)?;
    }
    if let Some(seconds) = step.later {
        let body = serde_json::json!({"advance_seconds": seconds});
        cloud.call("POST", "/_simulator/clock", Some(&body))?;
    }
    Ok(())
}

/// Sends a request of the administrator to the cloud, and keeps the id in the answer.
pub(super) fn call(request: &Cloud, names: &mut Names, cloud: &mut Client) -> anyhow::Result<()> {
    let path = names.resolve(&request.path)?;
    let body = request.body.as_ref();
    let body = body.map(|it| names.resolve_all(it)).transpose()?;
    let reply = cloud.call(&request.method, &path, body.as_ref())?;
    if let Some(keep) = &request.keep {
        let reply: Value = serde_json::from_slice(&reply)?;
        let one = reply.as_object().and_then(|it| it.values().next());
        let one = one.cloned().unwrap_or_default();
        names.insert(keep, one["id"].as_str().context("an id")?);
        if let Some(secret) = one["secret"].as_str() {
            names.insert(&format!("{keep}-secret"), secret);
        }
    }
    Ok(())
}
