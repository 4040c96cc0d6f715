//! `client-keystone-auth`: the exec plugin that gives kubectl a token of Keystone.
//!
//! ```text
//!   settings    login: flags, clouds.yaml, OS_*, questions
//!   person      the user in a terminal, for questions
//!   cache       tokens between two calls
//!   kubeconfig  the entry with the plugin
//! ```

mod cache;
pub(crate) mod kubeconfig;
mod person;
mod settings;

use std::sync::Arc;

use anyhow::Context;
use jiff::Timestamp;
use keystone_auth::exec_info::ExecInfo;
use openstack::{CloudConfig, Prompts, Session, SessionOptions};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use zeroize::Zeroizing;

use self::cache::Cache;
use self::person::Person;
use crate::cli::ClientKeystoneAuth;
use crate::dumps;
use crate::environment::Environment;
use crate::output::{print_document, warn};

/// Runs the command.
pub(super) async fn execute(
    args: &ClientKeystoneAuth,
    environment: &Environment,
) -> anyhow::Result<()> {
    run(args, environment, print_document, warn).await
}

/// Variable with the request of kubectl.
const EXEC_INFO: &str = "KUBERNETES_EXEC_INFO";

/// Token for kubectl, which cannot be printed.
pub(crate) struct Credential {
    token: SecretString,
    /// End of the validity, by the clock of this machine.
    ends_at: Timestamp,
    /// Time of the replacement, shortly before the end.
    renew_at: Timestamp,
}

/// Prints an ExecCredential with a token.
pub(crate) async fn run(
    args: &ClientKeystoneAuth,
    environment: &Environment,
    print: impl Fn(&str) -> anyhow::Result<()>,
    warn: impl Fn(&str),
) -> anyhow::Result<()> {
    dumps::forbid();
    let info = ExecInfo::parse(environment.non_empty(EXEC_INFO))
        .map_err(|problem| anyhow::anyhow!("{EXEC_INFO} cannot be used: {problem}"))?;
    let is_interactive = environment.interactive && info.interactive != Some(false);
    let person = is_interactive.then(|| Arc::new(Person));
    let config = settings::gather(args, &info, environment, person.as_deref())?;
    let credential = match args.cache {
        true => cached(args, &config, &info, environment, person, warn).await?,
        false => log_in(args, config, person).await?,
    };
    print(&exec_credential(&info, &credential))
}

/// Token in the cache, or the token of a new login, then kept in the cache.
async fn cached(
    args: &ClientKeystoneAuth,
    config: &CloudConfig,
    info: &ExecInfo,
    environment: &Environment,
    person: Option<Arc<Person>>,
    warn: impl Fn(&str),
) -> anyhow::Result<Credential> {
    let cache = Cache::open(config, environment).await;
    let mut cache = match cache {
        Ok(cache) => cache,
        Err(problem) => {
            warn(&format!("the token is not kept: {problem}"));
            None
        }
    };
    let server = info.server.as_deref();
    if let Some(credential) = cache.as_mut().and_then(|cache| cache.token(server)) {
        return Ok(credential);
    }
    let credential = log_in(args, config.clone(), person).await?;
    let kept = cache.map_or(Ok(()), |cache| cache.keep(&credential, server));
    if let Err(problem) = kept {
        warn(&format!("the token is not kept: {problem}"));
    }
    Ok(credential)
}

async fn log_in(
    args: &ClientKeystoneAuth,
    config: CloudConfig,
    person: Option<Arc<Person>>,
) -> anyhow::Result<Credential> {
    let agent = concat!(
        "ferrostack/",
        env!("CARGO_PKG_VERSION"),
        " client-keystone-auth"
    );
    let words = args.user_agent.iter().map(String::as_str);
    let words: Vec<&str> = words.chain([agent]).collect();
    let options = SessionOptions {
        user_agent: Some(words.join(" ")),
        prompts: person.map(|person| person as Arc<dyn Prompts>),
        ..SessionOptions::default()
    };
    let session = Session::new(config, &options)?;
    let token = session.token().await.context("no token of Keystone")?;
    let ends_at = token.ends_at();
    let margin = std::time::Duration::from_secs(300).min(token.lifetime() / 10);
    let margin = jiff::SignedDuration::try_from(margin).unwrap_or(jiff::SignedDuration::ZERO);
    Ok(Credential {
        token: token.secret().clone(),
        ends_at,
        renew_at: ends_at.saturating_sub(margin).unwrap_or(ends_at),
    })
}

/// Answer to kubectl with the [`Credential`], on one line.
fn exec_credential(info: &ExecInfo, credential: &Credential) -> Zeroizing<String> {
    let answer = json!({
        "apiVersion": info.version.name(),
        "kind": "ExecCredential",
        "status": {
            "token": credential.token.expose_secret(),
            "expirationTimestamp": credential.ends_at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        },
    });
    Zeroizing::new(format!("{answer}\n"))
}
