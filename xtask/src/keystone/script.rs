//! Script for both webhooks: `tests/keystone/side-by-side.yaml`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, ensure};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::differences::names::Names;

const EXTRA: &str = "alpha.kubernetes.io/identity";

/// The whole script.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Script {
    /// Requests of the administrator to the cloud, before everything else.
    pub(super) prepare: Vec<Cloud>,
    pub(super) groups: Vec<Group>,
    /// Environments of the exec plugin.
    pub(super) plugins: Vec<Environment>,
}

/// Request to the cloud.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cloud {
    pub(super) method: String,
    pub(super) path: String,
    #[serde(default)]
    pub(super) body: Option<Value>,
    /// Name for the id in the answer; with the suffix `-secret`, for the secret.
    #[serde(default)]
    pub(super) keep: Option<String>,
}

/// Requests to a new webhook.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Group {
    pub(super) name: String,
    /// Policy of the webhook, as text or as JSON; none if absent.
    #[serde(default)]
    pub(super) policy: Option<Value>,
    /// Configuration of mappings and of writes to a cluster; adds a new API server.
    #[serde(default)]
    pub(super) sync: Option<Value>,
    /// Further flags of ours.
    #[serde(default)]
    pub(super) flags: Vec<String>,
    /// Plays the group after all others, since it moves the clock of the cloud.
    #[serde(default)]
    pub(super) last: bool,
    pub(super) steps: Vec<Step>,
}

/// Request to a webhook, login, or request to the cloud.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Step {
    /// Unique name within the [`Group`].
    pub(super) is: String,
    /// Sends one request for each value, available as `$each`.
    #[serde(default)]
    pub(super) each: Vec<String>,

    /// Body of a login; the token is kept.
    #[serde(default)]
    pub(super) log_in: Option<Value>,
    #[serde(default)]
    pub(super) keep: Option<String>,
    #[serde(default)]
    pub(super) cloud: Option<Cloud>,
    /// Seconds by which the clock of the cloud is advanced.
    #[serde(default)]
    pub(super) later: Option<u32>,

    /// Body as text.
    #[serde(default)]
    pub(super) body: Option<String>,
    /// Body in JSON.
    #[serde(default)]
    pub(super) json: Option<Value>,
    /// Version of the review: `v1` or `v1beta1`.
    #[serde(default)]
    pub(super) version: Option<String>,
    /// Token of a TokenReview.
    #[serde(default)]
    pub(super) token: Option<String>,
    /// SubjectAccessReview as `VERB NAMESPACE RESOURCE SUBRESOURCE GROUP`, `-` for an empty part, or `VERB /PATH`.
    #[serde(default)]
    pub(super) may: Option<String>,
    #[serde(default)]
    pub(super) user: Who,
}

/// User in a review.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Who {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) uid: String,
    #[serde(default)]
    pub(super) groups: Vec<String>,
    #[serde(default)]
    pub(super) roles: Vec<String>,
    /// Id and name of the project.
    #[serde(default)]
    pub(super) project: Vec<String>,
    /// True for a user whom nobody has authenticated.
    #[serde(default)]
    pub(super) stranger: bool,
}

/// Environment of the exec plugin.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Environment {
    pub(super) is: String,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) args: Vec<String>,
    /// clouds.yaml in the working directory of the call.
    #[serde(default)]
    pub(super) clouds: Option<Value>,
}

impl Script {
    pub(super) fn read(file: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let read: Self =
            serde_saphyr::from_str(&text).with_context(|| file.display().to_string())?;
        for group in &read.groups {
            let names: BTreeSet<&str> = group.steps.iter().map(|it| it.is.as_str()).collect();
            ensure!(
                names.len() == group.steps.len(),
                "{}: two steps have one name",
                group.name
            );
        }
        Ok(read)
    }

    /// Number of requests to each program.
    pub(super) fn requests(&self) -> usize {
        let steps = self.groups.iter().flat_map(|it| &it.steps);
        let asked = steps.filter(|it| it.is_review());
        asked.map(|it| it.each.len().max(1)).sum::<usize>() + self.plugins.len()
    }
}

impl Step {
    fn is_review(&self) -> bool {
        self.body.is_some() || self.json.is_some() || self.token.is_some() || self.may.is_some()
    }

    /// Review of the step. [`Names`] are replaced in `may` before parsing, and in all else afterwards.
    pub(super) fn review(&self, names: &Names) -> anyhow::Result<Option<Value>> {
        let version = self.version.as_deref().unwrap_or("v1beta1");
        if let Some(body) = &self.json {
            return Ok(Some(body.clone()));
        }
        if let Some(token) = &self.token {
            let version = format!("authentication.k8s.io/{version}");
            let body =
                json!({"apiVersion": version, "kind": "TokenReview", "spec": {"token": token}});
            return Ok(Some(body));
        }
        let may = self.may.as_ref().map(|it| names.resolve(it)).transpose()?;
        Ok(may.map(|may| access(version, &self.user, &may)))
    }
}

/// SubjectAccessReview in the form of API servers.
pub(super) fn access(version: &str, who: &Who, may: &str) -> Value {
    let words: Vec<&str> = may.split(' ').collect();
    let given = |names: &[(&str, usize)]| {
        let word = |at: usize| words.get(at).filter(|it| **it != "-" && !it.is_empty());
        let fields = names.iter();
        let fields = fields.filter_map(|(name, at)| Some(((*name).to_owned(), json!(word(*at)?))));
        Value::Object(fields.collect())
    };
    let mut spec = Map::new();
    let attributes = match words.get(1).is_some_and(|it| it.starts_with('/')) {
        true => ("nonResourceAttributes", given(&[("verb", 0), ("path", 1)])),
        false => (
            "resourceAttributes",
            given(&[
                ("verb", 0),
                ("namespace", 1),
                ("resource", 2),
                ("subresource", 3),
                ("group", 4),
            ]),
        ),
    };
    spec.insert(attributes.0.to_owned(), attributes.1);
    spec.insert("user".to_owned(), json!(who.name));
    if !who.uid.is_empty() {
        spec.insert("uid".to_owned(), json!(who.uid));
    }
    let groups = if version == "v1" { "groups" } else { "group" };
    spec.insert(groups.to_owned(), json!(who.groups));
    if !who.stranger {
        let extra = json!({
            format!("{EXTRA}/roles"): who.roles,
            format!("{EXTRA}/project/id"): who.project.first().into_iter().collect::<Vec<_>>(),
            format!("{EXTRA}/project/name"): who.project.get(1).into_iter().collect::<Vec<_>>(),
        });
        spec.insert("extra".to_owned(), extra);
    }
    json!({"apiVersion": format!("authorization.k8s.io/{version}"), "kind": "SubjectAccessReview", "spec": spec})
}
