//! The scenario: steps in YAML, one file for each service, run in the order of the files' names.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use crate::root;

/// A request and its expected response.
///
/// `$name` in paths, headers and bodies is replaced by a saved value; a string that is exactly `$name` keeps the type
/// of the value. `$run` is unique per run; `$demo_project`, `$admin_user` and so on are those of the accounts.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    pub(crate) name: String,
    /// An account: `demo`, `admin`, one whose token an earlier step saved, `nobody` (no token) or `stranger` (a
    /// wrong one).
    #[serde(default = "demo", rename = "as")]
    pub(crate) account: String,
    /// `METHOD service path`.
    #[serde(rename = "do")]
    pub(crate) request: String,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Option<Value>,
    /// A body that is sent verbatim.
    pub(crate) raw: Option<String>,
    pub(crate) status: u16,
    /// Variables, and JSON pointers to their values in the response.
    #[serde(default)]
    pub(crate) save: BTreeMap<String, String>,
    /// The account of the response's token.
    pub(crate) login: Option<String>,
    /// Repeats the request until this is the case; the states are compared, too.
    pub(crate) until: Option<Until>,
    /// Arrays, such as `/servers[]/tags`, that are empty on one of the clouds only, because their elements depend on
    /// the content of the cloud. An unnecessary entry fails the test.
    #[serde(default)]
    pub(crate) may_be_empty: Vec<String>,
    /// Repeats the request while this is the status.
    #[serde(rename = "while")]
    pub(crate) busy: Option<u16>,
}

/// The end of a poll.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Until {
    /// JSON pointer to the state.
    pub(crate) at: String,
    /// The state that ends the poll; without it, the status of the step does.
    pub(crate) is: Option<Value>,
}

impl Step {
    /// Method, service and path.
    pub(crate) fn parts(&self) -> (&str, &str, &str) {
        let mut words = self.request.splitn(3, ' ');
        let mut next = || {
            words
                .next()
                .unwrap_or_else(|| panic!("{}: METHOD service path", self.name))
        };
        (next(), next(), next())
    }

    /// Whether one of these variables stands in it.
    fn mentions(&self, names: &BTreeSet<String>) -> bool {
        let body = self.body.as_ref().map(Value::to_string);
        let texts = self.headers.values().chain(&self.raw).chain(&body);
        let account = format!("${}_token", self.account);
        texts.chain([&self.request, &account]).any(|text| {
            let mut words = text.split('$').skip(1).map(|rest| {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                &rest[..end.unwrap_or(rest.len())]
            });
            words.any(|name| names.contains(name))
        })
    }
}

/// The steps that do not need a service that is missing: neither requests of it, nor what only these save.
pub(crate) fn without(steps: Vec<Step>, serves: impl Fn(&str) -> bool) -> Vec<Step> {
    let mut lost: BTreeSet<String> = BTreeSet::new();
    let mut kept: Vec<Step> = Vec::new();
    for step in steps {
        let serves = serves(step.parts().1) && !step.mentions(&lost);
        let saved = step.save.keys().cloned();
        let saved = saved.chain(step.login.iter().map(|account| format!("{account}_token")));
        if serves {
            for name in saved {
                lost.remove(&name);
            }
            kept.push(step);
        } else {
            lost.extend(saved);
        }
    }
    kept
}

/// All steps.
pub(crate) fn load() -> Vec<Step> {
    let mut steps = Vec::new();
    for (name, text) in files() {
        let part: Vec<Step> =
            serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        steps.extend(part);
    }
    steps
}

/// Operations that no step calls, by a prefix of `METHOD service route`: the real cloud does not have them.
pub(crate) fn apart() -> Vec<String> {
    let path = root().join("tests/openstack/scenario/not-on-the-real-cloud.txt");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(str::to_owned)
        .collect()
}

fn files() -> BTreeMap<String, String> {
    std::fs::read_dir(root().join("tests/openstack/scenario"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "yaml")
        })
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect()
}

fn demo() -> String {
    "demo".to_owned()
}
