//! Webhook: rates, times, requests to Keystone, memory.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::Serialize;
use serde_json::{Value, json};

use super::load::{Rate, Request, rate, request};
use crate::bench::csi::percentile;
use crate::keystone::webhook::{Program, Webhook};
use crate::keystone::world::{World, of_token, password, token};

/// Number of users with tokens.
const USERS: usize = 8;
/// Number of tokens in turn with which each is out of the cache when it comes again: ours keeps 10 000, and connections
/// differ in speed.
const FORGOTTEN: usize = 25_000;
/// Number of starts, for the median.
const STARTS: usize = 9;
/// Idle time before memory is read.
const REST: Duration = Duration::from_secs(3);
/// Flag against the default limit of ours: 100 new tokens a second.
const WITHOUT_LIMIT: &str = "--new-tokens-per-second=1000000";

/// Figures of a webhook.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Figures {
    /// Median milliseconds from the start of the process to its first answer.
    pub(super) start: f64,
    /// Rates of TokenReviews with a request to Keystone each: 1, 8 and 64 at a time.
    pub(super) not_cached: [Asked; 3],
    /// Rates with the same tokens repeated: 8 and 64 at a time.
    pub(super) cached: [Asked; 2],
    /// Rate of 64 concurrent reviews of one new token.
    pub(super) one_token: Asked,
    /// Rate of SubjectAccessReviews with 200 rules, 8 at a time.
    pub(super) access: Rate,
    /// Rates of SubjectAccessReviews one after the other, with one rule and with 2000.
    pub(super) access_alone: [Rate; 2],
    /// Megabytes at rest: all, and without a file behind it.
    pub(super) rss: (f64, f64),
    /// The same after reviews of all tokens, which ours keeps.
    pub(super) rss_with_tokens: (f64, f64),
}

/// [`Rate`] of TokenReviews.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Asked {
    pub(super) rate: Rate,
    /// Number of requests to Keystone.
    pub(super) requests: u64,
}

impl Asked {
    /// Requests to Keystone per review.
    pub(super) fn each(&self) -> f64 {
        self.requests as f64 / self.rate.reviews.max(1) as f64
    }
}

/// At least `count` tokens, of all users in turn. With a single user, a webhook that mixes up tokens would pass
/// unnoticed.
pub(super) fn tokens(world: &mut World, count: usize) -> anyhow::Result<Vec<String>> {
    let mut first = Vec::new();
    for number in 0..USERS {
        let name = format!("user-{number}");
        world.member(&name)?;
        first.push(token(world.admin(), &password(&name, "demo"))?);
    }
    let first = first.iter().cycle().take(count.max(FORGOTTEN));
    let of = |first: &String| token(world.admin(), &of_token(first));
    first.map(of).collect()
}

pub(super) async fn measure(
    program: &Program,
    world: &mut World,
    tokens: &[String],
    kept: usize,
    lasting: Duration,
) -> anyhow::Result<Figures> {
    crate::report(&format!("{}: start", program.name));
    let policies = [1, 200, 2000].map(|rules| policy(world, rules));
    let [one, some, many] = policies;
    let (one, some, many) = (one?, some?, many?);
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        let webhook = start(program, world, &some, &[]).await?;
        starts.push(webhook.start.as_secs_f64() * 1000.0);
    }
    let webhook = start(program, world, &some, &[]).await?;
    tokio::time::sleep(REST).await;
    let rss = webhook.memory()?;

    crate::report(&format!(
        "{}: tokens, each of which is asked about",
        program.name
    ));
    let mut not_cached = Vec::new();
    for at_once in [1, 8, 64] {
        // A new process, without the cache of the last one.
        let webhook = start(program, world, &some, &[WITHOUT_LIMIT]).await?;
        let lists = shared_out(tokens, at_once);
        not_cached.push(asked(world, &webhook, lists, Some(lasting)).await?);
    }

    crate::report(&format!("{}: tokens that are kept", program.name));
    let flags = ["--cache-ttl=1h", WITHOUT_LIMIT];
    let webhook = start(program, world, &some, &flags).await?;
    let mut cached = Vec::new();
    // A first review of each token fills the cache.
    let first = shared_out(&tokens[..64], 8);
    rate(webhook.access(), first, None).await?;
    for at_once in [8, 64] {
        let lists = shared_out(&tokens[..64], at_once);
        cached.push(asked(world, &webhook, lists, Some(lasting)).await?);
    }
    let webhook = start(program, world, &some, &flags).await?;
    let lists = vec![vec![review(&tokens[0])]; 64];
    let one_token = asked(world, &webhook, lists, None).await?;

    crate::report(&format!("{}: memory with {kept} tokens", program.name,));
    let webhook = start(program, world, &some, &flags).await?;
    rate(webhook.access(), shared_out(&tokens[..kept], 8), None).await?;
    tokio::time::sleep(REST).await;
    let rss_with_tokens = webhook.memory()?;

    crate::report(&format!("{}: access", program.name));
    let webhook = start(program, world, &some, &[]).await?;
    let lists = vec![vec![access(200)]; 8];
    let of_access = rate(webhook.access(), lists, Some(lasting)).await?;
    let mut access_alone = Vec::new();
    for (policy, rules) in [(&one, 1), (&many, 2000)] {
        let webhook = start(program, world, policy, &[]).await?;
        let lists = vec![vec![access(rules)]];
        access_alone.push(rate(webhook.access(), lists, Some(lasting)).await?);
    }
    ensure!(
        of_access.wrong == 0 && access_alone.iter().all(|it| it.wrong == 0),
        "{}: what a policy permits is not allowed",
        program.name
    );
    let arrays = "as many figures as there are kinds";
    Ok(Figures {
        start: percentile(&mut starts, 0.5),
        not_cached: not_cached.try_into().ok().context(arrays)?,
        cached: cached.try_into().ok().context(arrays)?,
        one_token,
        access: of_access,
        access_alone: access_alone.try_into().ok().context(arrays)?,
        rss,
        rss_with_tokens,
    })
}

/// Starts a webhook. `flags` are for ours only: the Go one keeps no tokens.
async fn start(
    program: &Program,
    world: &World,
    policy: &Path,
    flags: &[&str],
) -> anyhow::Result<Webhook> {
    let flags = match program.name {
        "here" => flags,
        _ => &[],
    };
    let started = Webhook::start(program, world, program.name, Some(policy), flags).await?;
    started.with_context(|| format!("{}: the webhook does not start", program.name))
}

async fn asked(
    world: &mut World,
    webhook: &Webhook,
    lists: Vec<Vec<Request>>,
    lasting: Option<Duration>,
) -> anyhow::Result<Asked> {
    world.reset()?;
    let rate = rate(webhook.access(), lists, lasting).await?;
    Ok(Asked {
        rate,
        requests: world.requests()?,
    })
}

/// Requests for reviews of the tokens, in a separate list for each connection.
fn shared_out(tokens: &[String], connections: usize) -> Vec<Vec<Request>> {
    let of = |at: usize| {
        let its_tokens = tokens.iter().skip(at).step_by(connections);
        its_tokens.map(|token| review(token)).collect()
    };
    (0..connections).map(of).collect()
}

fn review(token: &str) -> Request {
    let body = json!({"apiVersion": "authentication.k8s.io/v1beta1", "kind": "TokenReview", "spec": {"token": token}});
    request(&body.to_string())
}

/// Policy with a number of rules; the last one permits the request of [`access`].
fn policy(world: &World, rules: usize) -> anyhow::Result<PathBuf> {
    let rule = |number: usize| {
        json!({
            "users": {"roles": [format!("role-{}", number % 7)], "projects": [format!("project-{}", number % 50)]},
            "resource_permissions": {format!("namespace-{}/['pods', 'resource-{number}']", number % 300): ["get", "list"]},
        })
    };
    let file = world.directory().join(format!("policy-{rules}.json"));
    let all: Vec<Value> = (0..rules).map(rule).collect();
    std::fs::write(&file, Value::from(all).to_string())?;
    Ok(file)
}

/// Request permitted by the last of a number of rules.
fn access(rules: usize) -> Request {
    let (last, key) = (rules - 1, "alpha.kubernetes.io/identity");
    let body = json!({"apiVersion": "authorization.k8s.io/v1beta1", "kind": "SubjectAccessReview", "spec": {
        "user": "alice", "group": ["system:authenticated", "operators"],
        "extra": {format!("{key}/roles"): ["reader", format!("role-{}", last % 7)],
            format!("{key}/project/id"): ["a1b2c3"], format!("{key}/project/name"): [format!("project-{}", last % 50)]},
        "resourceAttributes": {"verb": "get", "version": "v1", "resource": format!("resource-{last}"),
            "namespace": format!("namespace-{}", last % 300), "name": "web-0"}}});
    request(&body.to_string())
}
