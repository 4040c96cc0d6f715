//! Stored configurations, compiled once per change.

use std::sync::Arc;
use std::time::Duration;

use apimachinery::schema::Condition;
use apimachinery::selector::LabelSelector;
use apimachinery::value::{items, text};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

use crate::store::Store;
use crate::webhook::Target;

const MUTATING: &str = "admissionregistration.k8s.io/mutatingwebhookconfigurations";
const VALIDATING: &str = "admissionregistration.k8s.io/validatingwebhookconfigurations";

/// All hooks in the order of calls: sorted by the name of the configuration.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    pub(crate) mutating: Vec<Hook>,
    pub(crate) validating: Vec<Hook>,
}

/// One webhook of a configuration.
#[derive(Debug)]
pub(crate) struct Hook {
    pub(crate) name: String,
    pub(crate) mutating: bool,
    pub(crate) rules: Vec<Rule>,
    pub(crate) namespace_selector: LabelSelector,
    pub(crate) object_selector: LabelSelector,
    pub(crate) conditions: Vec<Condition>,
    /// `matchPolicy: Equivalent`.
    pub(crate) equivalent: bool,
    /// `failurePolicy: Fail`.
    pub(crate) fails_closed: bool,
    /// `reinvocationPolicy: IfNeeded`.
    pub(crate) reinvoke: bool,
    /// True if the hook has no side effects on dry runs.
    pub(crate) dry_runs: bool,
    pub(crate) timeout: Duration,
    versions: Vec<String>,
    pub(crate) target: Target,
}

/// Rule of a hook. All fields must match.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) operations: Vec<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) versions: Vec<String>,
    pub(crate) resources: Vec<String>,
    pub(crate) scope: String,
}

/// Compiled hooks of a server, updated when a configuration changes.
#[derive(Debug)]
pub(crate) struct Cache {
    mutating: watch::Receiver<u64>,
    validating: watch::Receiver<u64>,
    compiled: Mutex<Option<Compiled>>,
}

/// Revisions of both collections, and the [`Hooks`] at these revisions.
type Compiled = ((u64, u64), Arc<Hooks>);

impl Cache {
    pub(crate) fn new(store: &Store) -> Self {
        let mut state = store.subscribe();
        Self {
            mutating: state.subscribe(&MUTATING.into()),
            validating: state.subscribe(&VALIDATING.into()),
            compiled: Mutex::default(),
        }
    }

    /// The current [`Hooks`].
    pub(crate) fn hooks(&self, store: &Store) -> Arc<Hooks> {
        let now = (*self.mutating.borrow(), *self.validating.borrow());
        if let Some((then, hooks)) = &*self.compiled.lock()
            && *then == now
        {
            return Arc::clone(hooks);
        }
        let hooks = Arc::new(Hooks {
            mutating: compile(store, MUTATING, true),
            validating: compile(store, VALIDATING, false),
        });
        *self.compiled.lock() = Some((now, Arc::clone(&hooks)));
        hooks
    }
}

impl Hook {
    /// First supported version of AdmissionReview.
    pub(crate) fn review_version(&self) -> Option<&str> {
        let mut versions = self.versions.iter().map(String::as_str);
        versions.find(|version| matches!(*version, "v1" | "v1beta1"))
    }
}

fn compile(store: &Store, collection: &str, mutating: bool) -> Vec<Hook> {
    let configurations: Vec<Value> = {
        let state = store.read();
        let all = state.range(collection, "", None);
        all.map(|object| object.value()).collect()
    };
    let hooks = configurations
        .iter()
        .flat_map(|configuration| configuration["webhooks"].as_array().into_iter().flatten());
    hooks.filter_map(|hook| read(hook, mutating)).collect()
}

/// Compiles a [`Hook`] of a validated configuration; `None` without a supported target.
fn read(hook: &Value, mutating: bool) -> Option<Hook> {
    let selector = |field: &str| match &hook[field] {
        Value::Null => Some(LabelSelector::default()),
        given => LabelSelector::from_object(given).ok(),
    };
    let rules = hook["rules"].as_array().into_iter().flatten();
    let conditions = hook["matchConditions"].as_array().into_iter().flatten();
    Some(Hook {
        name: text(&hook["name"]).to_owned(),
        mutating,
        rules: rules.map(rule).collect(),
        namespace_selector: selector("namespaceSelector")?,
        object_selector: selector("objectSelector")?,
        conditions: conditions
            .map(|condition| Condition::new(condition["expression"].as_str().unwrap_or_default()))
            .collect(),
        equivalent: hook["matchPolicy"] != "Exact",
        fails_closed: hook["failurePolicy"] != "Ignore",
        reinvoke: hook["reinvocationPolicy"] == "IfNeeded",
        dry_runs: matches!(hook["sideEffects"].as_str(), Some("None" | "NoneOnDryRun")),
        timeout: Duration::from_secs(hook["timeoutSeconds"].as_u64().unwrap_or(10)),
        versions: texts(&hook["admissionReviewVersions"]),
        target: Target::read(&hook["clientConfig"])?,
    })
}

fn rule(rule: &Value) -> Rule {
    Rule {
        operations: texts(&rule["operations"]),
        groups: texts(&rule["apiGroups"]),
        versions: texts(&rule["apiVersions"]),
        resources: texts(&rule["resources"]),
        scope: text(&rule["scope"]).to_owned(),
    }
}

fn texts(list: &Value) -> Vec<String> {
    items(list).map(|item| text(item).to_owned()).collect()
}
