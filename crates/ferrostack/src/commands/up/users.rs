//! Users of Keystone: webhook within the process, for the API servers of `up --keystone-auth`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use apiserver::{Access, Reviewer, UserInfo};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::HeaderValue;
use jiff::Timestamp;
use keystone_auth::keystone::{Http, normal_url};
use keystone_auth::policy::{Mode, Policy};
use keystone_auth::subject::{Attributes, ResourceAttributes, Subject};
use keystone_auth::tokens::{self, Denied, Tokens};
use keystone_auth::webhook::Webhook;
use keystone_auth::{Metrics, user};
use openstack::transport::{HttpTransport, Trust};

/// Timeout of Keystone.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Policy printed by `generate keystone-auth`.
const POLICY: &str = include_str!("../../../../../config/keystone-auth/policy.yaml");

/// Identity of Keystone's users, and their rights by a policy.
#[derive(Debug)]
pub(crate) struct Users(Webhook);

impl Users {
    /// [`Users`] of the Keystone at a URL, by a policy in strict mode: the one of the file, or the one printed by
    /// `generate keystone-auth`.
    pub(crate) fn of(
        url: &str,
        trust: &Trust,
        policy: Option<&Path>,
    ) -> anyhow::Result<Arc<dyn Reviewer>> {
        let url = normal_url(url).map_err(|why| anyhow::anyhow!("the URL of Keystone: {why}"))?;
        let metrics = Metrics::default();
        let agent = HeaderValue::from_static(concat!("ferrostack/", env!("CARGO_PKG_VERSION")));
        let transport = Arc::new(HttpTransport::new(trust)?);
        let keystone = Http::new(url, transport, TIMEOUT, &agent, metrics.clone())?;
        let keystone = Arc::new(keystone);
        let tokens = Tokens::new(
            keystone,
            tokens::Options::default(),
            Timestamp::now,
            metrics.clone(),
        );
        let webhook = Webhook::new(tokens, user::Options::default(), Vec::new(), metrics);
        let text = match policy {
            Some(file) => std::fs::read_to_string(file).with_context(|| {
                format!("--keystone-policy-file: cannot read {}", file.display())
            })?,
            None => default_policy()?,
        };
        let compiled = Policy::compile(&text, Mode::Strict);
        let compiled =
            compiled.map_err(|error| anyhow::anyhow!("--keystone-policy-file: {error}"))?;
        for doubt in &compiled.doubts {
            tracing::warn!("--keystone-policy-file: {doubt}");
        }
        webhook.set_policy(compiled.policy);
        Ok(Arc::new(Self(webhook)))
    }
}

fn default_policy() -> anyhow::Result<String> {
    let map: serde_json::Value = serde_saphyr::from_str(POLICY)?;
    let text = map["data"]["policies"].as_str();
    Ok(text.context("the ConfigMap has no policies")?.to_owned())
}

impl Reviewer for Users {
    fn user<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<UserInfo>, String>> {
        async move {
            match self.0.user(&token.to_owned().into()).await {
                Ok(subject) => Ok(Some(UserInfo {
                    name: subject.name,
                    uid: subject.uid,
                    groups: subject.groups,
                    extra: subject.extra.unwrap_or_default().into_iter().collect(),
                })),
                Err(Denied::Refused(reason)) => Err(reason.to_string()),
                Err(Denied::Unavailable { reason, .. }) => Err(reason.to_string()),
            }
        }
        .boxed()
    }

    fn allows<'a>(
        &'a self,
        user: &'a UserInfo,
        wanted: &'a Access,
    ) -> BoxFuture<'a, Result<bool, String>> {
        let extra = user.extra.clone().into_iter().collect();
        let subject = Subject {
            name: user.name.clone(),
            uid: user.uid.clone(),
            groups: user.groups.clone(),
            extra: (!user.extra.is_empty()).then_some(extra),
        };
        let decision = self.0.decide(&subject, &attributes(wanted));
        futures::future::ready(Ok(decision.allowed)).boxed()
    }
}

fn attributes(wanted: &Access) -> Attributes {
    match wanted.resource.is_empty() {
        true => Attributes::Path {
            verb: wanted.verb.clone(),
            path: wanted.path.clone(),
        },
        false => Attributes::Resource(ResourceAttributes {
            verb: wanted.verb.clone(),
            group: wanted.group.clone(),
            version: String::new(),
            resource: wanted.resource.clone(),
            subresource: wanted.subresource.clone(),
            namespace: wanted.namespace.clone(),
            name: wanted.name.clone(),
        }),
    }
}
