//! `k8s-keystone-auth`: webhook of crate `keystone-auth` over TLS, with its files and related commands.

pub(crate) mod check;
mod config_maps;
mod events;
pub(crate) mod explain;
pub(crate) mod manifests;
mod prune;
mod service_user;
mod sync;
mod tls;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use http::HeaderValue;
use jiff::Timestamp;
use keystone_auth::keystone::{Http, Keystone, normal_url};
use keystone_auth::policy::Policy;
use keystone_auth::reload::{Apply, Files};
use keystone_auth::sync::Config;
use keystone_auth::tokens::{self, Tokens};
use keystone_auth::webhook::{self, Webhook};
use keystone_auth::{Metrics, user};
use openstack::transport::{
    HttpTransport, Limits, SharedTransport, Transport, TransportError, Trust,
};
use parking_lot::RwLock;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::service_user::ServiceUser;
use crate::cli::{GroupsFrom, KeystoneAuth, KeystoneWebhook, Output, OutputArg};
use crate::dumps;
use crate::environment::Environment;
use crate::footprint;
use crate::output::{print, print_document};
use crate::serve;

/// Runs the command.
pub(super) fn execute(args: &KeystoneAuth) -> anyhow::Result<()> {
    match args {
        KeystoneAuth::Explain(args) => print_report(&explain::report(args)?, args.output),
        KeystoneAuth::Check(args) => {
            let (text, usable) = check::run(args);
            print_report(&text, args.output)?;
            anyhow::ensure!(usable, "something will not work");
            Ok(())
        }
    }
}

fn print_report(text: &str, format: OutputArg) -> anyhow::Result<()> {
    match format.output {
        Output::Text => print(text),
        Output::Json => print_document(text),
    }
}

const POLICY: &str = "the policy";
const SYNC: &str = "the configuration of role mappings";

/// Serves until `shutdown`.
pub(crate) async fn run(
    args: &KeystoneWebhook,
    environment: &Environment,
    shutdown: CancellationToken,
    say: impl Fn(&str),
) -> anyhow::Result<()> {
    dumps::forbid();
    for (flag, why) in args.without_effect() {
        say(&format!("{flag} has no effect: {why}"));
    }
    if args.username_format.is_ambiguous() && args.allowed_domains.is_empty() {
        say(
            "users have the names of Keystone without their domains: where there are several, whoever administers one of them \
             names users like those of another; see --username-format and --allowed-domains",
        );
    }
    let metrics = Metrics::default();
    let (keystone, keystone_files) = keystone(args, environment, &metrics, &say)?;
    let webhook = webhook(args, &keystone, &metrics);
    let (sender, logins) = mpsc::channel(sync::WAITING);
    let webhook = Arc::new(webhook.with_logins(sender));
    let certificates = tls::Certificates::default();
    let mut files = vec![certificate_files(args, &certificates, &metrics)?];
    files.extend(keystone_files);
    files.extend(policy_file(args, &webhook, &metrics, &say)?);
    files.extend(sync_file(args, &webhook, &metrics)?);
    // All tasks stop on `stop`, which is cancelled by `shutdown` and at the end of this function.
    let stop = shutdown.child_token();
    let _end = stop.clone().drop_guard();
    let mut paths = vec!["/webhook".to_owned()];
    paths.extend(args.path.iter().filter(|path| *path != "/webhook").cloned());
    let router = webhook::router(Arc::clone(&webhook), &paths);
    serve::tls_by(
        "reviews",
        args.listen,
        certificates.current(),
        router,
        &stop,
        &say,
    )
    .await?;
    health(args, &webhook, &metrics, &stop, &say).await?;
    let reports = events::follow(args, environment, &stop);
    for files in files {
        let files = files.reporting(reports.clone());
        let stop = stop.clone();
        tokio::spawn(async move { stop.run_until_cancelled_owned(files.follow()).await });
    }
    config_maps::follow(args, environment, &webhook, &metrics, &stop);
    sync::follow(args, environment, &webhook, logins, &stop);
    prune::follow(args, environment, &keystone, &stop);
    footprint::without_start();
    say("ready");
    shutdown.cancelled().await;
    say("stopped");
    Ok(())
}

/// Keystone, and the files with its authorities and with the service user.
fn keystone(
    args: &KeystoneWebhook,
    environment: &Environment,
    metrics: &Metrics,
    say: &impl Fn(&str),
) -> anyhow::Result<(Arc<Http>, Vec<Files>)> {
    let url =
        normal_url(&args.keystone_url).map_err(|why| anyhow::anyhow!("--keystone-url: {why}"))?;
    let product = concat!("ferrostack/", env!("CARGO_PKG_VERSION"));
    let agent: Vec<&str> = std::iter::once(product)
        .chain(args.user_agent.iter().map(String::as_str))
        .collect();
    let agent = HeaderValue::from_str(&agent.join(" ")).context("--user-agent is no header")?;
    let service_user = given(args.cloud_config.as_deref())
        .map(|file| ServiceUser::read(file, environment))
        .transpose()?;
    let ca = given(args.keystone_ca_file.as_deref()).map(Path::to_owned);
    let of_service_user = || service_user.as_ref().and_then(ServiceUser::authorities);
    let (transport, authorities) = transport(ca.or_else(of_service_user).as_deref(), metrics)?;
    let mut files = Vec::from_iter(authorities);
    let doubts = service_user.as_ref().map(|it| it.doubts(&url));
    doubts.iter().flatten().for_each(|doubt| say(doubt));
    let (timeout, metrics_of_http) = (args.keystone_timeout, metrics.clone());
    let http = Http::new(url, transport, timeout, &agent, metrics_of_http)?;
    let http = Arc::new(http);
    if let Some(service_user) = service_user {
        files.push(service_user.follow(&http, environment, metrics)?);
    }
    Ok((http, files))
}

fn webhook(args: &KeystoneWebhook, keystone: &Arc<Http>, metrics: &Metrics) -> Webhook {
    let keystone: Arc<dyn Keystone> = Arc::clone(keystone) as _;
    let options = tokens::Options {
        ttl: args.cache_ttl,
        new_per_second: args.new_tokens_per_second,
        ask_for_groups: args.groups == GroupsFrom::Keystone,
        ..tokens::Options::default()
    };
    let tokens = Tokens::new(keystone, options, Timestamp::now, metrics.clone());
    let users = user::Options {
        scopes: args.scopes.iter().copied().collect(),
        username: args.username_format.clone(),
        group: args.group_format.clone(),
        domains: args.allowed_domains.iter().cloned().collect(),
        projects: args.allowed_projects.iter().cloned().collect(),
    };
    Webhook::new(tokens, users, args.audience.clone(), metrics.clone())
}

/// Connections to Keystone, with trust in the current content of the file.
#[derive(Debug)]
struct Reloaded(Arc<RwLock<HttpTransport>>);

impl Transport for Reloaded {
    fn send(
        &self,
        request: http::Request<bytes::Bytes>,
        limits: Limits,
    ) -> futures::future::BoxFuture<'static, Result<http::Response<bytes::Bytes>, TransportError>>
    {
        let transport = self.0.read().clone();
        transport.send(request, limits)
    }
}

fn transport(
    ca: Option<&Path>,
    metrics: &Metrics,
) -> anyhow::Result<(SharedTransport, Option<Files>)> {
    let trust = |ca_pem| Trust {
        verify: true,
        ca_pem,
        client_certificate: None,
    };
    let Some(ca) = ca else {
        return Ok((Arc::new(HttpTransport::new(&trust(None))?), None));
    };
    let text = std::fs::read(ca)
        .with_context(|| format!("--keystone-ca-file: cannot read {}", ca.display()))?;
    let current = HttpTransport::new(&trust(Some(text))).context("--keystone-ca-file")?;
    let current = Arc::new(RwLock::new(current));
    let replaced = Arc::clone(&current);
    let apply: Apply = Box::new(move |texts| {
        let text = texts.first().map(|text| text.clone().into_bytes());
        let new = HttpTransport::new(&trust(text)).map_err(|error| error.to_string())?;
        *replaced.write() = new;
        Ok(())
    });
    let files = open(
        "--keystone-ca-file",
        "the authorities of Keystone",
        vec![ca.to_owned()],
        apply,
        metrics,
    )?;
    Ok((Arc::new(Reloaded(current)), Some(files)))
}

fn certificate_files(
    args: &KeystoneWebhook,
    certificates: &tls::Certificates,
    metrics: &Metrics,
) -> anyhow::Result<Files> {
    let mut paths = vec![
        args.tls_cert_file.clone(),
        args.tls_private_key_file.clone(),
    ];
    paths.extend(given(args.client_ca_file.as_deref()).map(Path::to_owned));
    let apply = certificates.replacing();
    open(
        "--tls-cert-file and --tls-private-key-file",
        "the certificate",
        paths,
        apply,
        metrics,
    )
}

fn policy_file(
    args: &KeystoneWebhook,
    webhook: &Arc<Webhook>,
    metrics: &Metrics,
    say: &impl Fn(&str),
) -> anyhow::Result<Option<Files>> {
    let Some(path) = given(args.keystone_policy_file.as_deref()) else {
        if args
            .policy_configmap_name
            .as_deref()
            .is_none_or(str::is_empty)
        {
            say(
                "there is no policy: --keystone-policy-file or --policy-configmap-name is missing, and RBAC alone decides",
            );
        }
        return Ok(None);
    };
    let (webhook, mode) = (Arc::clone(webhook), args.policy_mode.into());
    let apply: Apply = Box::new(move |texts| {
        let text = texts.first().map_or("", String::as_str);
        let compiled = Policy::compile(text, mode).map_err(|error| error.to_string())?;
        for doubt in &compiled.doubts {
            tracing::warn!("{POLICY}: {doubt}");
        }
        webhook.set_policy(compiled.policy);
        Ok(())
    });
    open(
        "--keystone-policy-file",
        POLICY,
        vec![path.to_owned()],
        apply,
        metrics,
    )
    .map(Some)
}

fn sync_file(
    args: &KeystoneWebhook,
    webhook: &Arc<Webhook>,
    metrics: &Metrics,
) -> anyhow::Result<Option<Files>> {
    let Some(path) = given(args.sync_config_file.as_deref()) else {
        return Ok(None);
    };
    let webhook = Arc::clone(webhook);
    let apply: Apply = Box::new(move |texts| {
        let text = texts.first().map_or("", String::as_str);
        webhook.set_sync(Config::parse(text).map_err(|error| error.to_string())?);
        Ok(())
    });
    let files = open(
        "--sync-config-file",
        SYNC,
        vec![path.to_owned()],
        apply,
        metrics,
    )?;
    Ok(Some(files))
}

fn open(
    flag: &str,
    what: &'static str,
    paths: Vec<PathBuf>,
    apply: Apply,
    metrics: &Metrics,
) -> anyhow::Result<Files> {
    match Files::open(what, paths, apply, metrics.clone()) {
        Ok(files) => Ok(files),
        Err(why) => bail!("{flag}: {why}"),
    }
}

async fn health(
    args: &KeystoneWebhook,
    webhook: &Arc<Webhook>,
    metrics: &Metrics,
    stop: &CancellationToken,
    say: &impl Fn(&str),
) -> anyhow::Result<()> {
    let all = operator::metrics::Metrics::default();
    all.register(|registry| metrics.register(registry));
    let router = webhook::health(Arc::clone(webhook)).merge(operator::health::metrics(all));
    serve::plain("health and metrics", args.health_address, router, stop, say).await
}

/// Given file: an empty name means none, as in the Go program.
fn given(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| !path.as_os_str().is_empty())
}

#[cfg(test)]
mod tests;
